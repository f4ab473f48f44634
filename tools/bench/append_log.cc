// Batched appends at `log` ack: bursts that fit the ring, and as much as the disk takes.
#include <algorithm>

#include "tools/bench/append_rate.h"

namespace geardb::bench {
namespace {

/// Bursts: what no append can do without is a copy, a copy and a checksum.
class BurstScene final : public Scene {
 public:
  explicit BurstScene(std::unique_ptr<Appending> appending) : appending_(std::move(appending)) {}

  Result<Figure> Measure() override {
    const uint64_t total = appending_->kind().burst_bytes;
    const double loop = appending_->loops()->CopyCopyHash(appending_->rows(), total);
    GEARDB_ASSIGN_OR_RETURN(const double append, appending_->Append());
    GEARDB_RETURN_IF_ERROR(appending_->Settle());
    return Figure{append, loop, {}};
  }

 private:
  std::unique_ptr<Appending> appending_;
};

/// Sustained: a new store each time, since nothing recycles its log yet.
class SustainedScene final : public Scene {
 public:
  SustainedScene(const Settings& settings, const AppendKind& kind)
      : settings_(settings), kind_(kind) {}

  Result<Figure> Measure() override {
    AppendKind warm = kind_;
    warm.burst_bytes = 24 << 20;
    GEARDB_ASSIGN_OR_RETURN(const auto bursts, Appending::Make(settings_, warm));
    const double loop = bursts->loops()->CopyCopyHash(bursts->rows(), kind_.burst_bytes);
    GEARDB_ASSIGN_OR_RETURN(const double disk,
                            DiskWriteRate(bursts->store()->directory->path(), kind_.burst_bytes));
    double seconds = 0;
    uint64_t done = 0;
    while (done < kind_.burst_bytes) {
      GEARDB_ASSIGN_OR_RETURN(const double rate, bursts->Append());
      seconds += static_cast<double>(warm.burst_bytes) / rate;
      done += warm.burst_bytes;
    }
    const DatabaseStats stats = bursts->store()->db->Stats();
    return Figure{
        static_cast<double>(done) / seconds,
        std::min(disk, loop),
        {{"disk_bytes_per_second", disk},
         {"loop_bytes_per_second", loop},
         {"log_bytes_per_byte", static_cast<double>(stats.log_bytes) /
                                    static_cast<double>(done + (settings_.tiny ? 0 : 264 << 20))}}};
  }

 private:
  const Settings settings_;
  const AppendKind kind_;
};

Row BurstRow(const AppendKind& kind) {
  return {.name = "append.log.burst",
          .size = static_cast<int64_t>(kind.payload_bytes),
          .size_of = "bytes a step",
          .what = "calls of " + BytesText(std::max(kind.batch_bytes, kind.payload_bytes)) +
                  " at log ack, " + BytesText(kind.burst_bytes) + " in all, which the ring takes",
          .ceiling =
              "a bare loop: copy into 256 MiB, copy from there into a ring of 64 MiB, "
              "checksum",
          .unit = Unit::kBytesPerSecond,
          .target = {Target::Kind::kRatioAtLeast, 0.90},
          .make = [kind](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            GEARDB_ASSIGN_OR_RETURN(auto made, Appending::Make(bench->settings, kind));
            return std::unique_ptr<Scene>(std::make_unique<BurstScene>(std::move(made)));
          }};
}

Row SustainedRow(const AppendKind& kind) {
  return {.name = "append.log.sustained",
          .size = static_cast<int64_t>(kind.payload_bytes),
          .size_of = "bytes a step",
          .what = "calls of 1 MiB at log ack, " + BytesText(kind.burst_bytes) +
                  " in all, many times the ring",
          .ceiling =
              "the smaller of direct writes of 1 MiB and the bare loop of copy, copy and "
              "checksum",
          .unit = Unit::kBytesPerSecond,
          .target = {Target::Kind::kRatioAtLeast, 0.90},
          .repetitions = 5,
          .make = [kind](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            return std::unique_ptr<Scene>(std::make_unique<SustainedScene>(bench->settings, kind));
          }};
}

}  // namespace

std::vector<Row> AppendLogRows(const Settings& settings) {
  std::vector<Row> rows;
  for (const uint64_t payload : {100u, 1u << 10, 4u << 10, 64u << 10, 1u << 20}) {
    AppendKind kind{.payload_bytes = payload, .ack = Ack::kLog};
    if (settings.tiny) kind.burst_bytes = 2 << 20;
    rows.push_back(BurstRow(kind));
  }
  AppendKind kind{.payload_bytes = 4 << 10, .burst_bytes = 1 << 30, .ack = Ack::kLog};
  if (settings.tiny) kind.burst_bytes = 48 << 20;
  rows.push_back(SustainedRow(kind));
  return rows;
}

}  // namespace geardb::bench
