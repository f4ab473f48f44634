#include "tests/testing/random_programs.h"

#include <cstdlib>

#include "tests/testing/sanitizers.h"

namespace geardb::testing {
uint64_t FromEnvironment(const char* name, uint64_t absent) {
  const char* const text = std::getenv(name);
  return text == nullptr ? absent : std::strtoull(text, nullptr, 10);
}

uint64_t ShareOf(uint64_t all) { return kSanitized ? (all + 3) / 4 : all; }
bool InShare(uint64_t number) { return !kSanitized || number % 5 == 0; }

}  // namespace geardb::testing
