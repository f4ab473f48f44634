// From Database::Open to the first batch, over a database most of which is in RocksDB.
#include <algorithm>

#include "tools/bench/spread.h"
#include "tools/bench/whole_store.h"

namespace geardb::bench {
namespace {

/// What opening may take besides reading the log.
constexpr double kOpenUs = 2e6;
constexpr uint64_t kStoredBytes = 10 * kGiB;
constexpr uint64_t kLogBytes = kGiB;

class FirstBatchScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench, uint64_t trajectories) {
    const Settings& settings = bench->settings;
    const uint64_t stored = Scaled(settings, kStoredBytes);
    GEARDB_RETURN_IF_ERROR(CheckDiskRoom(settings, stored + stored / 4));
    std::unique_ptr<FirstBatchScene> scene(new FirstBatchScene);
    const auto steps =
        static_cast<int64_t>(std::max<uint64_t>(stored / kStepBytes / trajectories, 1));
    TableSpec spec = PlainTable(kStepBytes, static_cast<uint64_t>(steps));
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    scene->options_ = WholeOptions({.log_bytes = Scaled(settings, kLogBytes),
                                    .frames_bytes = Scaled(settings, kGiB),
                                    .index_bytes = stored / 8});
    GEARDB_ASSIGN_OR_RETURN(scene->store_, MakeStore(settings, scene->options_, spec));
    Store& store = *scene->store_;
    Episodes episodes(steps, kStepBytes, Content::kHalf);
    GEARDB_RETURN_IF_ERROR(episodes.AppendBytes(&store, stored));
    store.writer.reset();
    store.table.reset();
    GEARDB_RETURN_IF_ERROR(store.db->Close());
    store.db.reset();
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    const std::string& path = store_->directory->path();
    GEARDB_RETURN_IF_ERROR(DropFromPageCache(path));
    const Stopwatch watch;
    GEARDB_ASSIGN_OR_RETURN(auto db, Database::Open(path, options_));
    const double open_us = watch.us();
    GEARDB_ASSIGN_OR_RETURN(const auto table, db->OpenTable("replay"));
    const auto prioritized = table->priority_table("prioritized");
    if (prioritized == nullptr) return Status::Internal("the priority table is gone");
    GEARDB_ASSIGN_OR_RETURN(auto sampler,
                            prioritized->NewSampler({.batch = 256, .views = {{.column = "obs"}}}));
    GEARDB_RETURN_IF_ERROR(sampler->Next().status());
    const double us = watch.us();
    const RecoveryReport report = db->recovery();
    const uint64_t pages = db->Stats().cold_page_reads + db->Stats().log_page_reads;
    sampler.reset();
    GEARDB_RETURN_IF_ERROR(db->Close());
    GEARDB_RETURN_IF_ERROR(DropFromPageCache(path));
    GEARDB_ASSIGN_OR_RETURN(const double bare,
                            RecoveryReadRate(path, std::max<uint64_t>(report.bytes, 1)));
    const auto log_bytes = static_cast<double>(report.bytes);
    return Figure{us,
                  kOpenUs + log_bytes / bare * 1e6,
                  {{"open_us", open_us},
                   {"log_us", log_bytes / bare * 1e6},
                   {"log_bytes", log_bytes},
                   {"pages_read", static_cast<double>(pages)},
                   {"from_an_image", report.image > 0 ? 1.0 : 0.0}}};
  }

 private:
  FirstBatchScene() = default;
  DatabaseOptions options_;
  std::shared_ptr<Store> store_;
};

Row FirstBatchRow(const Settings& settings, uint64_t trajectories) {
  const uint64_t stored = Scaled(settings, kStoredBytes);
  return {.name = "open.first_batch",
          .size = static_cast<int64_t>(trajectories),
          .size_of = "trajectories",
          .what =
              "Database::Open and a first batch of 256 prioritized steps, of a closed store "
              "with " +
              SizeText(stored) + " of steps of 1 KiB and a log of " +
              SizeText(Scaled(settings, kLogBytes)) + ", nothing of it in the page cache",
          .ceiling =
              "2 s, and reading the log since the index was last put into RocksDB and "
              "hashing it",
          .unit = Unit::kMicroseconds,
          .target = {Target::Kind::kRatioAtMost, 1},
          .repetitions = 3,
          .make = [=](Bench* bench) { return FirstBatchScene::Make(bench, trajectories); }};
}

}  // namespace

std::vector<Row> FirstBatchRows(const Settings& settings) {
  std::vector<Row> rows;
  for (const uint64_t trajectories :
       {uint64_t{1000}, uint64_t{10000}, uint64_t{100000}, uint64_t{1000000}}) {
    // At least two steps each.
    if (Scaled(settings, kStoredBytes) < 2 * kStepBytes * trajectories) break;
    rows.push_back(FirstBatchRow(settings, trajectories));
  }
  return rows;
}

}  // namespace geardb::bench
