// One step at a time at `log` ack, and a row for each of many environments.
#include <algorithm>

#include "base/hash.h"
#include "tools/bench/append_rate.h"
#include "tools/bench/spread.h"

namespace geardb::bench {
namespace {

constexpr int64_t kEpisode = 1000;
constexpr int kSteps = 20'000;

/// A table that holds `bytes`, with a prioritized priority table over its steps.
Result<std::shared_ptr<Store>> MakeStepStore(const Settings& settings, uint64_t payload,
                                             uint64_t bytes) {
  TableSpec spec = PlainTable(payload, kEpisode);
  spec.bytes_max = bytes;
  spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
  GEARDB_ASSIGN_OR_RETURN(
      auto store, MakeStore(settings, RoomyOptions(bytes * 3 / 2, uint64_t{256} << 20), spec));
  // Once through the ring: the first touch of its pages is not what is measured.
  const uint64_t ring = settings.tiny ? uint64_t{1} << 20 : uint64_t{80} << 20;
  GEARDB_RETURN_IF_ERROR(
      FillWithSteps(store.get(), static_cast<int64_t>(ring / payload), kEpisode));
  return store;
}

class StepScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench, uint64_t payload) {
    std::unique_ptr<StepScene> scene(new StepScene(payload));
    scene->steps_ = bench->settings.tiny ? 500 : kSteps;
    GEARDB_ASSIGN_OR_RETURN(scene->store_,
                            MakeStepStore(bench->settings, payload, uint64_t{256} << 20));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    std::vector<double> times;
    times.reserve(static_cast<size_t>(steps_));
    const Column column = store_->table->spec().columns[0];
    const TensorView row(source_.get(), column.dtype, column.shape);
    for (int step = 0; step < steps_; ++step) {
      const AppendOptions options{.end = ++row_ % kEpisode == 0 ? End::kTerminated : End::kGo};
      const Stopwatch watch;
      const auto appended = store_->writer->Append({{"obs", row}}, options);
      times.push_back(watch.us());
      GEARDB_RETURN_IF_ERROR(appended.status());
    }
    std::vector<double> bare;
    for (int step = 0; step < steps_; ++step) {
      const Stopwatch watch;
      loops_.CopyCopyHash({source_.get(), payload_}, payload_);
      bare.push_back(watch.us());
    }
    const double p99 = Quantile(times, 0.99);
    const double p999 = Quantile(times, 0.999);
    return Figure{
        Median(std::move(times)), Median(std::move(bare)), {{"p99_us", p99}, {"p99.9_us", p999}}};
  }

 private:
  explicit StepScene(uint64_t payload)
      : payload_(payload), source_(payload), loops_(uint64_t{256} << 20, uint64_t{64} << 20) {}

  const uint64_t payload_;
  int steps_ = 0;
  int64_t row_ = 0;
  Memory source_;
  CopyLoops loops_;
  std::shared_ptr<Store> store_;
};

/// AppendLanes: one atomic record for all environments.
class LanesScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench, uint32_t lanes, uint64_t payload) {
    std::unique_ptr<LanesScene> scene(new LanesScene(lanes, payload));
    scene->calls_ = bench->settings.tiny ? 3 : 60;
    GEARDB_ASSIGN_OR_RETURN(scene->store_,
                            MakeStepStore(bench->settings, payload, uint64_t{1} << 30));
    GEARDB_ASSIGN_OR_RETURN(scene->store_->writer,
                            scene->store_->table->NewWriter({.lanes = lanes}));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    const TensorView rows = RowsOver(store_->table->spec(), source_.get(), lanes_);
    std::vector<double> times;
    std::vector<double> bare;
    for (int call = 0; call < calls_; ++call) {
      const std::vector<End> ends(lanes_, ++row_ % kEpisode == 0 ? End::kTerminated : End::kGo);
      const Stopwatch watch;
      const auto appended = store_->writer->AppendLanes({{"obs", rows}}, {.ends = ends});
      times.push_back(watch.us());
      GEARDB_RETURN_IF_ERROR(appended.status());
      const Stopwatch loop;
      loops_.CopyCopyHash({source_.get(), source_bytes_}, source_bytes_);
      bare.push_back(loop.us());
      if (call % 8 == 7) GEARDB_RETURN_IF_ERROR(store_->db->Sync());
    }
    const double median = Median(std::move(times));
    return Figure{median, Median(std::move(bare)), {{"us_per_row", median / lanes_}}};
  }

 private:
  LanesScene(uint32_t lanes, uint64_t payload)
      : lanes_(lanes),
        source_bytes_(lanes * payload),
        source_(source_bytes_),
        loops_(uint64_t{256} << 20, uint64_t{64} << 20) {}

  const uint32_t lanes_;
  const uint64_t source_bytes_;
  int calls_ = 0;
  int64_t row_ = 0;
  Memory source_;
  CopyLoops loops_;
  std::shared_ptr<Store> store_;
};

Row StepRow(uint64_t payload) {
  return {.name = "append.step",
          .size = static_cast<int64_t>(payload),
          .size_of = "bytes a step",
          .what =
              "median of single steps at log ack, episodes of 1000, every step an item of a "
              "prioritized priority table",
          .ceiling = "a bare copy, copy and checksum of one step",
          .unit = Unit::kMicroseconds,
          .target = payload == 1024 ? Target{Target::Kind::kValueAtMost, 2} : Target{},
          .make = [payload](Bench* bench) { return StepScene::Make(bench, payload); }};
}

Row LanesRow(uint32_t lanes, uint64_t payload) {
  return {.name = "append.lanes",
          .size = lanes,
          .size_of = "environments",
          .what = "AppendLanes of a row of " + BytesText(payload) +
                  " for each environment at log ack, one record",
          .ceiling = "a bare copy, copy and checksum of all the rows",
          .unit = Unit::kMicroseconds,
          .make = [=](Bench* bench) { return LanesScene::Make(bench, lanes, payload); }};
}

}  // namespace

std::vector<Row> AppendStepRows(const Settings&) {
  return {StepRow(100), StepRow(1024), StepRow(16 << 10), LanesRow(64, 1024), LanesRow(4096, 1024)};
}

}  // namespace geardb::bench
