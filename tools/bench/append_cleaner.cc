// Appending while the cleaner moves what was appended before to RocksDB.
#include <algorithm>

#include "tools/bench/rocks_write.h"
#include "tools/bench/spread.h"
#include "tools/bench/whole_store.h"

namespace geardb::bench {
namespace {

constexpr int64_t kSteps = 1024;

class AppendCleanerScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench) {
    const Settings& settings = bench->settings;
    const uint64_t log = Scaled(settings, kGiB / 2);
    GEARDB_RETURN_IF_ERROR(CheckDiskRoom(settings, 16 * log));
    std::unique_ptr<AppendCleanerScene> scene(new AppendCleanerScene(settings));
    TableSpec spec = PlainTable(kStepBytes, kSteps);
    spec.bytes_max = 4 * log;
    GEARDB_ASSIGN_OR_RETURN(
        scene->store_,
        MakeStore(settings,
                  WholeOptions({.log_bytes = log, .frames_bytes = log, .index_bytes = log / 8}),
                  spec));
    scene->total_ = 3 * log;
    GEARDB_RETURN_IF_ERROR(scene->episodes_.AppendBytes(scene->store_.get(), 5 * log));
    GEARDB_ASSIGN_OR_RETURN(scene->peers_, ScratchDirectory::Make(settings));
    GEARDB_ASSIGN_OR_RETURN(
        scene->rocks_, RocksWrites::Make(scene->peers_->path() + "/raw", RocksWrites::Pages::kRaw));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    GEARDB_RETURN_IF_ERROR(store_->db->Sync());
    const DatabaseStats before = store_->db->Stats();
    const Stopwatch watch;
    GEARDB_RETURN_IF_ERROR(episodes_.AppendBytes(store_.get(), total_));
    const double seconds = watch.seconds();
    const DatabaseStats after = store_->db->Stats();
    GEARDB_RETURN_IF_ERROR(after.cleaner.last);
    GEARDB_ASSIGN_OR_RETURN(const double disk, DiskWriteRate(settings_.directory, total_ / 2));
    std::vector<std::span<const std::byte>> pages;
    while (pages.size() * kPageBytes < total_ / 4) {
      const auto rows = episodes_.Rows(written_++);
      for (uint64_t at = 0; at < rows.size(); at += kPageBytes) {
        pages.push_back(rows.subspan(at, kPageBytes));
      }
    }
    GEARDB_ASSIGN_OR_RETURN(const double rocks, rocks_->Write(pages));
    const auto moved = static_cast<double>(after.cleaner.page_bytes - before.cleaner.page_bytes);
    return Figure{
        static_cast<double>(total_) / seconds,
        1 / (1 / disk + 1 / rocks),
        {{"disk_bytes_per_second", disk},
         {"rocksdb_bytes_per_second", rocks},
         {"passes", static_cast<double>(after.cleaner.passes - before.cleaner.passes)},
         {"compactions", static_cast<double>(after.cold.compactions - before.cold.compactions)},
         {"moved_per_byte", moved / static_cast<double>(total_)},
         {"waited_us", static_cast<double>(after.waits.log_room.us - before.waits.log_room.us)}}};
  }

 private:
  explicit AppendCleanerScene(const Settings& settings) : settings_(settings) {}

  const Settings settings_;
  uint64_t total_ = 0;
  uint64_t written_ = 0;
  std::shared_ptr<ScratchDirectory> peers_;
  std::unique_ptr<RocksWrites> rocks_;
  std::shared_ptr<Store> store_;
  Episodes episodes_{kSteps, kStepBytes, Content::kHalf};
};

}  // namespace

std::vector<Row> AppendCleanerRows(const Settings& settings) {
  const uint64_t log = Scaled(settings, kGiB / 2);
  return {{.name = "append.cleaner",
           .size = static_cast<int64_t>(kStepBytes),
           .size_of = "bytes a step",
           .what = "calls of 1 MiB at log ack, " + SizeText(3 * log) +
                   " in all, half zeros, to a full table of " + SizeText(4 * log) +
                   " from which the oldest leave, with a log of " + SizeText(log) +
                   ", so that the cleaner moves all of it",
           .ceiling = "1 / (1 / direct writes of 1 MiB + 1 / RocksDB's own write of such pages)",
           .unit = Unit::kBytesPerSecond,
           .target = {Target::Kind::kRatioAtLeast, 0.70},
           .repetitions = 3,
           .make = [](Bench* bench) { return AppendCleanerScene::Make(bench); }}};
}

}  // namespace geardb::bench
