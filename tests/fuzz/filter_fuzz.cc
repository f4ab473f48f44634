// Any text is a filter or InvalidArgument, and a filter reads the same when it is printed.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "engine/internal/filter_expression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  using geardb::engine::ParseFilter;
  const auto parsed = ParseFilter({reinterpret_cast<const char*>(input), size});
  if (!parsed.ok()) {
    GEARDB_CHECK(parsed.status().code() == geardb::StatusCode::kInvalidArgument);
    return 0;
  }
  const std::string printed = geardb::engine::PrintFilter(*parsed);
  const auto again = ParseFilter(printed);
  GEARDB_CHECK(again.ok() && *again == *parsed);
  GEARDB_CHECK(geardb::engine::PrintFilter(*again) == printed);
  return 0;
}
