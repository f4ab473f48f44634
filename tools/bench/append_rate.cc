#include "tools/bench/append_rate.h"

#include <algorithm>

#include "tools/bench/spread.h"

namespace geardb::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kTableBytes = 256 * kMiB;
constexpr uint64_t kRingBytes = 64 * kMiB;

}  // namespace

std::string BytesText(uint64_t bytes) {
  if (bytes % kMiB == 0) return std::to_string(bytes / kMiB) + " MiB";
  if (bytes % 1024 == 0) return std::to_string(bytes / 1024) + " KiB";
  return std::to_string(bytes) + " B";
}

Appending::Appending(const AppendKind& kind)
    : kind_(kind),
      steps_(static_cast<int64_t>(std::max<uint64_t>(kind.batch_bytes / kind.payload_bytes, 1))),
      source_(static_cast<uint64_t>(steps_) * kind.payload_bytes),
      loops_(kTableBytes, kRingBytes) {}

Result<std::unique_ptr<Appending>> Appending::Make(const Settings& settings,
                                                   const AppendKind& kind) {
  std::unique_ptr<Appending> made(new Appending(kind));
  TableSpec spec = PlainTable(kind.payload_bytes, static_cast<uint64_t>(made->steps_));
  spec.bytes_max = kTableBytes;
  if (kind.prioritized) spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
  DatabaseOptions options = RoomyOptions(2 * kTableBytes, 256 * kMiB);
  options.ring_bytes = kRingBytes;
  GEARDB_ASSIGN_OR_RETURN(made->store_, MakeStore(settings, options, spec));
  // Once through the whole table, so that frames are touched and the oldest begin to leave.
  for (uint64_t done = 0; done < kTableBytes && !settings.tiny; done += kind.burst_bytes) {
    GEARDB_RETURN_IF_ERROR(made->Append().status());
    GEARDB_RETURN_IF_ERROR(made->Settle());
  }
  return made;
}

Result<double> Appending::Append() {
  const TensorView rows = RowsOver(store_->table->spec(), source_.get(), steps_);
  const AppendOptions options{.end = End::kTerminated, .ack = kind_.ack};
  uint64_t done = 0;
  const Stopwatch watch;
  while (done < kind_.burst_bytes) {
    const auto appended = store_->writer->AppendTrajectory({{"obs", rows}}, options);
    GEARDB_RETURN_IF_ERROR(appended.status());
    done += call_bytes();
  }
  return static_cast<double>(done) / watch.seconds();
}

}  // namespace geardb::bench
