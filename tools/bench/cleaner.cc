// The cleaner: how fast it moves pages from the log to RocksDB.
#include <algorithm>
#include <thread>

#include "tools/bench/rocks_write.h"
#include "tools/bench/spread.h"
#include "tools/bench/whole_store.h"

namespace geardb::bench {
namespace {

constexpr int64_t kSteps = 1024;

/// Where the rows of what it moves are.
enum class From : uint8_t { kFrames, kLog };

/// A store that waits for each pass of its cleaner, so that nothing runs beside it.
class CleanerScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench, From from) {
    const Settings& settings = bench->settings;
    const uint64_t log = Scaled(settings, kGiB);
    GEARDB_RETURN_IF_ERROR(CheckDiskRoom(settings, 8 * log));
    std::unique_ptr<CleanerScene> scene(new CleanerScene);
    TableSpec spec = PlainTable(kStepBytes, kSteps);
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    DatabaseOptions options = WholeOptions({.log_bytes = log,
                                            .frames_bytes = from == From::kLog ? log / 4 : 2 * log,
                                            .index_bytes = log / 4});
    GEARDB_ASSIGN_OR_RETURN(scene->store_, MakeStore(settings, options, spec));
    GEARDB_ASSIGN_OR_RETURN(scene->peers_, ScratchDirectory::Make(settings));
    using Pages = RocksWrites::Pages;
    GEARDB_ASSIGN_OR_RETURN(scene->raw_,
                            RocksWrites::Make(scene->peers_->path() + "/raw", Pages::kRaw));
    GEARDB_ASSIGN_OR_RETURN(scene->encoded_,
                            RocksWrites::Make(scene->peers_->path() + "/encoded", Pages::kEncoded));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    Database& db = *store_->db;
    const DatabaseStats before = db.Stats();
    DatabaseStats after;
    do {
      GEARDB_RETURN_IF_ERROR(episodes_.Append(store_.get()));
      GEARDB_RETURN_IF_ERROR(db.Sync());
      do {
        std::this_thread::yield();
        after = db.Stats();
      } while (after.cleaner.running);
    } while (after.cleaner.pages == before.cleaner.pages);
    const double seconds =
        static_cast<double>(after.cleaner.busy_us - before.cleaner.busy_us) * 1e-6;
    GEARDB_RETURN_IF_ERROR(after.cleaner.last);
    const uint64_t bytes = after.cleaner.page_bytes - before.cleaner.page_bytes;
    const uint64_t pages = after.cleaner.pages - before.cleaner.pages;
    std::vector<std::span<const std::byte>> same;
    for (uint64_t page = 0; page < pages; ++page, ++given_) {
      const uint64_t each = episodes_.bytes() / kPageBytes;
      same.push_back(episodes_.Rows(given_ / each).subspan(given_ % each * kPageBytes, kPageBytes));
    }
    GEARDB_ASSIGN_OR_RETURN(const double raw, raw_->Write(same));
    GEARDB_ASSIGN_OR_RETURN(const double encoded, encoded_->Write(same));
    const auto read = static_cast<double>(after.log_page_reads - before.log_page_reads);
    return Figure{static_cast<double>(bytes) / seconds,
                  raw,
                  {{"rocksdb_of_encoded_pages", encoded},
                   {"bytes_of_a_pass", static_cast<double>(bytes)},
                   {"image_bytes",
                    static_cast<double>(after.cleaner.image_bytes - before.cleaner.image_bytes)},
                   {"read_from_the_log", read / static_cast<double>(pages)}}};
  }

 private:
  CleanerScene() = default;
  std::shared_ptr<ScratchDirectory> peers_;
  std::unique_ptr<RocksWrites> raw_;
  std::unique_ptr<RocksWrites> encoded_;
  std::shared_ptr<Store> store_;
  Episodes episodes_{kSteps, kStepBytes, Content::kHalf};
  uint64_t given_ = 0;
};

Row CleanerRow(const Settings& settings, From from) {
  const uint64_t log = Scaled(settings, kGiB);
  return {.name = from == From::kLog ? "cleaner.log" : "cleaner.frames",
          .size = static_cast<int64_t>(kPageBytes),
          .size_of = "bytes a page",
          .what =
              "bytes of pages, half of them zeros, that a pass of the cleaner moves from a log "
              "of " +
              SizeText(log) + " to RocksDB, the index and the flush included, " +
              (from == From::kLog ? "its pages read from the log" : "its pages in memory"),
          .ceiling =
              "RocksDB's own write of as many of these pages: raw, compressed by it (LZ4), "
              "batches of 8 MiB, the flush included, the cold store's options",
          .unit = Unit::kBytesPerSecond,
          .target = {Target::Kind::kRatioAtLeast, 0.70},
          .repetitions = 7,
          .make = [from](Bench* bench) { return CleanerScene::Make(bench, from); }};
}

}  // namespace

std::vector<Row> CleanerRows(const Settings& settings) {
  return {CleanerRow(settings, From::kFrames), CleanerRow(settings, From::kLog)};
}

}  // namespace geardb::bench
