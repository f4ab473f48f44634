// Opening a database: how fast its log is read back, and how long a small one takes.
#include <algorithm>

#include "tools/bench/ceilings.h"
#include "tools/bench/spread.h"
#include "tools/bench/store.h"

namespace geardb::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class ReplayScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench, uint64_t bytes, uint64_t payload) {
    std::unique_ptr<ReplayScene> scene(new ReplayScene);
    if (bench->settings.tiny) bytes = 8 * kMiB;
    TableSpec spec = PlainTable(payload, 1000);
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    scene->options_ = RoomyOptions(bytes * 2 + 64 * kMiB, bytes / payload * 16 + 128 * kMiB);
    GEARDB_ASSIGN_OR_RETURN(scene->store_, MakeStore(bench->settings, scene->options_, spec));
    GEARDB_RETURN_IF_ERROR(
        FillWithSteps(scene->store_.get(), static_cast<int64_t>(bytes / payload), 1000));
    scene->store_->writer.reset();
    scene->store_->table.reset();
    GEARDB_RETURN_IF_ERROR(scene->store_->db->Close());
    scene->store_->db.reset();
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    const std::string& path = store_->directory->path();
    GEARDB_RETURN_IF_ERROR(DropFromPageCache(path));
    GEARDB_ASSIGN_OR_RETURN(auto db, Database::Open(path, options_));
    const RecoveryReport report = db->recovery();
    GEARDB_RETURN_IF_ERROR(db->Close());
    db.reset();
    GEARDB_RETURN_IF_ERROR(DropFromPageCache(path));
    GEARDB_ASSIGN_OR_RETURN(const double bare, RecoveryReadRate(path, report.bytes));
    const double seconds = report.seconds - report.prefault_seconds;
    return Figure{static_cast<double>(report.bytes) / seconds,
                  bare,
                  {{"log_bytes", static_cast<double>(report.bytes)},
                   {"records", static_cast<double>(report.records)},
                   {"seconds", seconds}}};
  }

 private:
  ReplayScene() = default;
  DatabaseOptions options_;
  std::shared_ptr<Store> store_;
};

/// A store of a thousand steps, opened and closed.
class SmallOpenScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench) {
    std::unique_ptr<SmallOpenScene> scene(new SmallOpenScene);
    TableSpec spec = PlainTable(100, 1000);
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    GEARDB_ASSIGN_OR_RETURN(scene->store_, MakeStore(bench->settings, DatabaseOptions{}, spec));
    GEARDB_RETURN_IF_ERROR(FillWithSteps(scene->store_.get(), 1000, 1000));
    scene->store_->writer.reset();
    scene->store_->table.reset();
    GEARDB_RETURN_IF_ERROR(scene->store_->db->Close());
    scene->store_->db.reset();
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    const Stopwatch watch;
    GEARDB_ASSIGN_OR_RETURN(auto db, Database::Open(store_->directory->path(), {}));
    const double us = watch.us();
    const Stopwatch close;
    GEARDB_RETURN_IF_ERROR(db->Close());
    return Figure{us, 0, {{"close_us", close.us()}}};
  }

 private:
  SmallOpenScene() = default;
  std::shared_ptr<Store> store_;
};

Row ReplayRow(uint64_t bytes, uint64_t payload) {
  return {.name = "recovery",
          .size = static_cast<int64_t>(payload),
          .size_of = "bytes a step",
          .what = "opening a store with " + std::to_string(bytes / kMiB) +
                  " MiB of steps in trajectories of 1000, its log not in the page cache, the "
                  "arena faulted in before",
          .ceiling =
              "reading the same bytes of the segment files and hashing them, and reading the "
              "ring, which an open looks through; one buffer ahead",
          .unit = Unit::kBytesPerSecond,
          .target = {Target::Kind::kRatioAtLeast, 0.80},
          .repetitions = 5,
          .make = [=](Bench* bench) { return ReplayScene::Make(bench, bytes, payload); }};
}

}  // namespace

std::vector<Row> RecoveryRows(const Settings&) {
  Row open{.name = "open.small",
           .size = 1000,
           .size_of = "steps",
           .what = "Database::Open of a closed store of 1000 steps, default options",
           .unit = Unit::kMicroseconds,
           .target = {Target::Kind::kValueAtMost, 50'000},
           .make = [](Bench* bench) { return SmallOpenScene::Make(bench); }};
  return {ReplayRow(1024 * kMiB, 1024), ReplayRow(256 * kMiB, 100), open};
}

}  // namespace geardb::bench
