#include "engine/options.h"

#include <algorithm>
#include <bit>

namespace geardb {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
/// Code that is run, 17 MiB of it, most of these RocksDB's; the rest is stacks, and what malloc
/// keeps.
constexpr uint64_t kBesideBytes = 26 * kMiB;
constexpr uint64_t kProcessBytesMin = 64 * kMiB;

}  // namespace

DatabaseOptions DatabaseOptions::Within(uint64_t process_bytes) {
  const uint64_t all = std::max(process_bytes, kProcessBytesMin);
  DatabaseOptions options;
  options.ring_bytes = std::min(std::bit_floor(all / 16), options.ring_bytes);
  Budgets& budgets = options.budgets;
  budgets.index_bytes = all / 8;
  budgets.batch_bytes = std::min(all / 16, budgets.batch_bytes);
  budgets.cold_bytes = std::min(all / 8, 64 * kMiB);
  budgets.frames_bytes = all - kBesideBytes - budgets.index_bytes - budgets.batch_bytes -
                         budgets.cold_bytes - options.ring_bytes;
  return options;
}

}  // namespace geardb
