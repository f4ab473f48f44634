#include "tools/bench/whole_store.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/philox.h"
#include "tools/bench/machine.h"

namespace geardb::bench {
namespace {

constexpr uint64_t kSegmentsMin = 16;
constexpr uint64_t kSegmentBytesMin = 512 << 10;
constexpr uint64_t kSegmentBytesMax = 64 * kMiB;
constexpr uint64_t kTinyShare = 128;
constexpr uint64_t kPoolBytes = 32 * kMiB;
constexpr uint64_t kRun = 64;
/// Where trajectories begin in the pool, in runs: a prime number of them apart.
constexpr uint64_t kStride = 100'003;

}  // namespace

uint64_t Scaled(const Settings& settings, uint64_t bytes) {
  return settings.tiny ? bytes / kTinyShare : bytes / settings.scale;
}

std::string SizeText(uint64_t bytes) {
  if (bytes % kGiB == 0) return std::to_string(bytes / kGiB) + " GiB";
  return std::to_string(bytes / kMiB) + " MiB";
}

DatabaseOptions WholeOptions(const WholeBudgets& budgets) {
  DatabaseOptions options;
  const uint64_t segment = std::clamp(std::bit_floor(budgets.log_bytes / kSegmentsMin),
                                      kSegmentBytesMin, kSegmentBytesMax);
  options.segment_bytes = segment;
  options.ring_bytes = segment;
  options.log_bytes_max = std::max(budgets.log_bytes, kSegmentsMin * segment);
  options.budgets.frames_bytes = std::max(budgets.frames_bytes, 16 * kMiB);
  options.budgets.index_bytes = std::max(budgets.index_bytes, 16 * kMiB);
  options.budgets.batch_bytes = 64 * kMiB;
  return options;
}

Status CheckDiskRoom(const Settings& settings, uint64_t bytes) {
  const uint64_t there = AvailableDiskBytes(settings.directory);
  if (there >= bytes) return Status::Ok();
  return Status::ResourceExhausted("needs ", bytes / kMiB, " MiB of disk; ", there / kMiB,
                                   " MiB are free");
}

Episodes::Episodes(int64_t steps, uint64_t step_bytes, Content content)
    : steps_(steps),
      step_bytes_(step_bytes),
      bytes_(static_cast<uint64_t>(steps) * step_bytes),
      pool_(std::max(kPoolBytes, 2 * bytes_)) {
  for (uint64_t offset = 0; offset < pool_.size(); offset += sizeof(uint64_t)) {
    const bool zero = content == Content::kHalf && offset / kRun % 2 == 1;
    const uint64_t random = PhiloxRandom64(21, offset, 0, PhiloxPurpose::kItem);
    const uint64_t word = zero ? 0 : random;
    std::memcpy(pool_.get() + offset, &word, sizeof(word));
  }
}

std::span<const std::byte> Episodes::Rows(uint64_t number) const {
  const uint64_t places = (pool_.size() - bytes_) / kRun;
  return {pool_.get() + number * kStride % places * kRun, bytes_};
}

Status Episodes::Append(Store* store) {
  const TensorView rows(Rows(next_++).data(), DType::kU8,
                        Shape({steps_, static_cast<int64_t>(step_bytes_)}));
  return store->writer->AppendTrajectory({{"obs", rows}}, {.end = End::kTerminated}).status();
}

Status Episodes::AppendBytes(Store* store, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += bytes_) GEARDB_RETURN_IF_ERROR(Append(store));
  return Status::Ok();
}

}  // namespace geardb::bench
