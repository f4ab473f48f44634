// Batched inserts and samples beside Reverb (Cassirer et al., 2021, arXiv 2102.04736), which does
// the same from Python: one table by priority of steps of so many random bytes.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/philox.h"
#include "tools/bench/append_rate.h"
#include "tools/bench/spread.h"

namespace geardb::bench {
namespace {

constexpr uint64_t kTableBytes = uint64_t{256} << 20;
constexpr uint64_t kBatchBytesMax = uint64_t{64} << 20;
constexpr int64_t kBatch = 256;
constexpr int64_t kTrajectorySteps = 1000;
constexpr int64_t kAhead = 2;  // Batches; the peer reads as many.

/// Appends at memory ack, since Reverb's items are in memory; the ceiling copies the same bytes.
class InsertScene final : public Scene {
 public:
  explicit InsertScene(std::unique_ptr<Appending> appending) : appending_(std::move(appending)) {}

  Result<Figure> Measure() override {
    const auto payload = static_cast<double>(appending_->kind().payload_bytes);
    const double copy =
        appending_->loops()->Copy(appending_->rows(), appending_->kind().burst_bytes);
    GEARDB_ASSIGN_OR_RETURN(const double append, appending_->Append());
    GEARDB_RETURN_IF_ERROR(appending_->Settle());
    return Figure{append / payload, copy / payload, {}};
  }

 private:
  std::unique_ptr<Appending> appending_;
};

struct SampleKind {
  uint64_t payload_bytes = 0;
  int64_t items = 0;
  int64_t batch = kBatch;
};

/// Draws and gathers; the ceiling copies as many rows from random places of as large a memory.
class SampleScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(const Settings& settings, const SampleKind& kind) {
    std::unique_ptr<SampleScene> scene(new SampleScene(kind));
    TableSpec spec = PlainTable(kind.payload_bytes, kTrajectorySteps);
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    DatabaseOptions options = RoomyOptions(2 * kTableBytes, uint64_t{256} << 20);
    options.budgets.batch_bytes = 8 * kBatchBytesMax;
    GEARDB_ASSIGN_OR_RETURN(scene->store_, MakeStore(settings, options, spec));
    GEARDB_RETURN_IF_ERROR(FillWithSteps(scene->store_.get(), kind.items,
                                         std::min(kind.items, scene->steps_of_trajectory())));
    GEARDB_ASSIGN_OR_RETURN(
        scene->sampler_,
        scene->store_->table->priority_table("prioritized")
            ->NewSampler({.batch = kind.batch, .views = {{.column = "obs"}}, .prefetch = kAhead}));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    const uint64_t bytes = static_cast<uint64_t>(kind_.batch) * kind_.payload_bytes;
    const auto calls =
        static_cast<int>(std::clamp<uint64_t>((uint64_t{256} << 20) / bytes, 4, 2000));
    const Stopwatch draw;
    for (int call = 0; call < calls; ++call) GEARDB_RETURN_IF_ERROR(sampler_->Next().status());
    const double drawn = static_cast<double>(bytes) * calls / draw.seconds();
    const Stopwatch copy;
    for (int call = 0; call < calls; ++call) CopyRows(static_cast<uint64_t>(call));
    return Figure{drawn, static_cast<double>(bytes) * calls / copy.seconds(), {}};
  }

 private:
  explicit SampleScene(const SampleKind& kind)
      : kind_(kind),
        source_(static_cast<uint64_t>(kind.items) * kind.payload_bytes),
        batch_(static_cast<uint64_t>(kind.batch) * kind.payload_bytes) {}

  /// Of at most some 8 MiB.
  int64_t steps_of_trajectory() const {
    const auto most = static_cast<int64_t>((uint64_t{8} << 20) / kind_.payload_bytes);
    return std::clamp<int64_t>(most, 1, kTrajectorySteps);
  }
  void CopyRows(uint64_t call) {
    std::byte* to = batch_.get();
    for (int64_t row = 0; row < kind_.batch; ++row, to += kind_.payload_bytes) {
      const uint64_t random =
          PhiloxRandom64(7, call, static_cast<uint32_t>(row), PhiloxPurpose::kItem);
      const uint64_t item = random % static_cast<uint64_t>(kind_.items);
      std::memcpy(to, source_.get() + item * kind_.payload_bytes, kind_.payload_bytes);
    }
  }

  const SampleKind kind_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<Sampler> sampler_;
  Memory source_;
  Memory batch_;
};

Row InsertRow(const AppendKind& kind) {
  const uint64_t batch = std::max<uint64_t>(kind.batch_bytes / kind.payload_bytes, 1);
  const std::string payload = std::to_string(kind.payload_bytes);
  return {.name = "reverb.insert",
          .size = static_cast<int64_t>(kind.payload_bytes),
          .size_of = "bytes a step",
          .what = "steps appended in calls of " + BytesText(batch * kind.payload_bytes) +
                  " at memory ack, every step an item of a prioritized priority table",
          .ceiling = "memcpy of the same calls into 256 MiB",
          .unit = Unit::kPerSecond,
          .target = {Target::Kind::kTimesPeerAtLeast, 100, 0.60},
          .make = [kind](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            GEARDB_ASSIGN_OR_RETURN(auto made, Appending::Make(bench->settings, kind));
            return std::unique_ptr<Scene>(std::make_unique<InsertScene>(std::move(made)));
          },
          .peer = {"reverb", "insert --payload " + payload + " --batch " + std::to_string(batch)}};
}

Row SampleRow(const SampleKind& kind) {
  const std::string payload = std::to_string(kind.payload_bytes);
  return {
      .name = "reverb.sample",
      .size = static_cast<int64_t>(kind.payload_bytes),
      .size_of = "bytes a step",
      .what =
          "Sampler::Next of 256 steps (at most 64 MiB), gather included, two batches ahead, from "
          "256 MiB, or a million steps where that is less",
      .ceiling = "memcpy of as many rows from random places",
      .unit = Unit::kBytesPerSecond,
      .target = {Target::Kind::kTimesPeerAtLeast, 50, 0.70},
      .make = [kind](Bench* bench) { return SampleScene::Make(bench->settings, kind); },
      .peer = {"reverb", "sample --payload " + payload + " --items " + std::to_string(kind.items) +
                             " --batch " + std::to_string(kind.batch)}};
}

}  // namespace

std::vector<Row> AgainstReverbRows(const Settings& settings) {
  std::vector<Row> rows;
  for (const uint64_t payload : {100u, 1u << 10, 4u << 10, 64u << 10, 1u << 20}) {
    AppendKind kind{.payload_bytes = payload, .ack = Ack::kMemory, .prioritized = true};
    if (settings.tiny) kind.burst_bytes = 2 << 20;
    rows.push_back(InsertRow(kind));
  }
  for (const uint64_t payload : {100u, 1u << 10, 4u << 10, 64u << 10, 1u << 20}) {
    const uint64_t table_bytes = settings.tiny ? uint64_t{4} << 20 : kTableBytes;
    rows.push_back(SampleRow(
        {.payload_bytes = payload,
         .items = static_cast<int64_t>(std::min<uint64_t>(table_bytes / payload, 1'000'000)),
         .batch = static_cast<int64_t>(std::min<uint64_t>(kBatch, kBatchBytesMax / payload))}));
  }
  return rows;
}

}  // namespace geardb::bench
