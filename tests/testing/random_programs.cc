#include "tests/testing/random_programs.h"

#include <cstdlib>

namespace geardb::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

uint64_t FromEnvironment(const char* name, uint64_t absent) {
  const char* const text = std::getenv(name);
  return text == nullptr ? absent : std::strtoull(text, nullptr, 10);
}

uint64_t ShareOf(uint64_t all) { return kSanitized ? (all + 3) / 4 : all; }

}  // namespace geardb::testing
