// Batched appends at `memory` ack beside memcpy.
#include "tools/bench/append_rate.h"

namespace geardb::bench {
namespace {

class MemoryScene final : public Scene {
 public:
  explicit MemoryScene(std::unique_ptr<Appending> appending) : appending_(std::move(appending)) {}

  Result<Figure> Measure() override {
    const uint64_t total = appending_->kind().burst_bytes;
    const double copy = appending_->loops()->Copy(appending_->rows(), total);
    GEARDB_ASSIGN_OR_RETURN(const double append, appending_->Append());
    GEARDB_RETURN_IF_ERROR(appending_->Settle());
    const double payload = static_cast<double>(appending_->kind().payload_bytes);
    return Figure{append, copy, {{"steps_per_second", append / payload}}};
  }

 private:
  std::unique_ptr<Appending> appending_;
};

Row MemoryRow(const AppendKind& kind) {
  PeerWork peer;
  if (kind.prioritized) {
    peer = {"cpprb",
            "insert --payload " + std::to_string(kind.payload_bytes) + " --batch " +
                std::to_string(std::max<uint64_t>(kind.batch_bytes / kind.payload_bytes, 1))};
  }
  return {.name = std::string("append.memory") + (kind.prioritized ? ".prioritized" : ""),
          .size = static_cast<int64_t>(kind.payload_bytes),
          .size_of = "bytes a step",
          .what = "calls of " + BytesText(std::max(kind.batch_bytes, kind.payload_bytes)) +
                  " at memory ack, " + BytesText(kind.burst_bytes) +
                  " in all, which the ring takes without waiting for the disk" +
                  (kind.prioritized ? "; every step an item of a prioritized priority table"
                                    : "; no priority table"),
          .ceiling = "memcpy of the same calls into 256 MiB",
          .unit = Unit::kBytesPerSecond,
          .target = {Target::Kind::kRatioAtLeast, 0.60},
          .make = [kind](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            GEARDB_ASSIGN_OR_RETURN(auto made, Appending::Make(bench->settings, kind));
            return std::unique_ptr<Scene>(std::make_unique<MemoryScene>(std::move(made)));
          },
          .peer = peer};
}

}  // namespace

std::vector<Row> AppendMemoryRows(const Settings& settings) {
  std::vector<Row> rows;
  for (const bool prioritized : {false, true}) {
    for (const uint64_t payload : {100u, 1u << 10, 4u << 10, 64u << 10, 1u << 20}) {
      AppendKind kind{.payload_bytes = payload, .ack = Ack::kMemory, .prioritized = prioritized};
      if (settings.tiny) kind.burst_bytes = 2 << 20;
      rows.push_back(MemoryRow(kind));
    }
  }
  return rows;
}

}  // namespace geardb::bench
