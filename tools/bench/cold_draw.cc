// Drawing windows from a table of which a quarter fits into memory.
#include <algorithm>

#include "tools/bench/spread.h"
#include "tools/bench/whole_store.h"

namespace geardb::bench {
namespace {

constexpr int64_t kSteps = 1024;
constexpr int64_t kWindow = 16;
constexpr int64_t kBatch = 256;
constexpr int64_t kPrefetch = 4;

class ColdDrawScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench) {
    const Settings& settings = bench->settings;
    std::unique_ptr<ColdDrawScene> scene(new ColdDrawScene(settings));
    const uint64_t frames = std::max(Scaled(settings, kGiB / 2), 16 * kMiB);
    const uint64_t stored = 4 * frames;
    GEARDB_RETURN_IF_ERROR(CheckDiskRoom(settings, 3 * stored));
    TableSpec spec = PlainTable(kStepBytes, kSteps);
    spec.priority_tables = {WindowsOf(kWindow, SelectorKind::kUniform)};
    DatabaseOptions options =
        WholeOptions({.log_bytes = frames, .frames_bytes = frames, .index_bytes = frames / 4});
    scene->threads_ = static_cast<int>(options.read_threads);
    GEARDB_ASSIGN_OR_RETURN(scene->store_, MakeStore(settings, options, spec));
    Episodes episodes(kSteps, kStepBytes, Content::kRandom);
    GEARDB_RETURN_IF_ERROR(episodes.AppendBytes(scene->store_.get(), stored));
    GEARDB_RETURN_IF_ERROR(scene->store_->db->Sync());
    scene->total_ = stored / 4;
    SamplerOptions sampler{.batch = kBatch, .views = {{.column = "obs"}}, .prefetch = kPrefetch};
    sampler.timeout_ms = 60'000;
    GEARDB_ASSIGN_OR_RETURN(scene->sampler_,
                            scene->store_->table->priority_table("uniform")->NewSampler(sampler));
    GEARDB_ASSIGN_OR_RETURN(scene->reads_, RandomReads::Make(settings.directory, stored));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    GEARDB_RETURN_IF_ERROR(DropFromPageCache(store_->directory->path()));
    const DatabaseStats before = store_->db->Stats();
    const TableStats table_before = store_->table->Stats();
    DatabaseStats after = before;
    uint64_t batches = 0;
    const Stopwatch watch;
    while (PagesRead(after) - PagesRead(before) < total_ / kPageBytes) {
      GEARDB_RETURN_IF_ERROR(sampler_->Next().status());
      after = store_->db->Stats();
      ++batches;
    }
    const double seconds = watch.seconds();
    const TableStats table_after = store_->table->Stats();
    GEARDB_ASSIGN_OR_RETURN(
        const double bare,
        reads_->Rate({.read_bytes = kPageBytes, .total = total_, .threads = threads_}));
    const auto pages = static_cast<double>(PagesRead(after) - PagesRead(before));
    const auto hits = static_cast<double>(table_after.frames.hits - table_before.frames.hits);
    const auto misses = static_cast<double>(table_after.frames.misses - table_before.frames.misses);
    const auto of_log = static_cast<double>(after.log_page_reads - before.log_page_reads);
    const auto items = static_cast<double>(batches * static_cast<uint64_t>(kBatch));
    return Figure{pages * static_cast<double>(kPageBytes) / seconds,
                  bare,
                  {{"share_of_log", of_log / pages},
                   {"share_in_memory", hits / std::max(hits + misses, 1.0)},
                   {"windows_per_second", items / seconds},
                   {"unplaced", static_cast<double>(table_after.frames.unplaced -
                                                    table_before.frames.unplaced)}}};
  }

  std::string note() const override {
    return "page cache: the store's files are dropped from it before each repetition, in which the "
           "log is read directly and the cold store through it; the ceiling reads directly";
  }

 private:
  explicit ColdDrawScene(const Settings& settings) : settings_(settings) {}

  static uint64_t PagesRead(const DatabaseStats& stats) {
    return stats.log_page_reads + stats.cold_page_reads;
  }

  const Settings settings_;
  int threads_ = 0;
  uint64_t total_ = 0;
  std::unique_ptr<RandomReads> reads_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace

std::vector<Row> ColdDrawRows(const Settings& settings) {
  const uint64_t frames = std::max(Scaled(settings, kGiB / 2), 16 * kMiB);
  return {{.name = "draw.cold",
           .size = static_cast<int64_t>(4 * frames / kMiB),
           .size_of = "MiB stored",
           .what = "bytes of pages of 64 KiB read for uniform draws of 256 windows of " +
                   std::to_string(kWindow) + " steps, four batches ahead, from a table of which " +
                   SizeText(frames) +
                   " fit into memory and as much into the log, until a quarter "
                   "of it was read",
           .ceiling =
               "direct reads of 64 KiB at random places of a file of the table's size, by as "
               "many threads as read for the store",
           .unit = Unit::kBytesPerSecond,
           .target = {Target::Kind::kRatioAtLeast, 0.60},
           .repetitions = 5,
           .make = [](Bench* bench) { return ColdDrawScene::Make(bench); }}};
}

}  // namespace geardb::bench
