// What a process takes in memory over the budgets that it was given, in a long run beyond memory.
#include <algorithm>

#include "tools/bench/usage.h"
#include "tools/bench/whole_store.h"

namespace geardb::bench {
namespace {

constexpr int64_t kSteps = 256;

struct Shape {
  uint64_t frames_bytes = 0;
  uint64_t index_bytes = 0;
  uint64_t log_bytes = 0;
  uint64_t table_bytes = 0;
  uint64_t appended_bytes = 0;
};

class MemoryScene final : public Scene {
 public:
  MemoryScene(const Settings& settings, const Shape& shape) : settings_(settings), shape_(shape) {}

  Result<Figure> Measure() override {
    GEARDB_RETURN_IF_ERROR(CheckDiskRoom(settings_, 3 * shape_.table_bytes));
    Episodes episodes(kSteps, kStepBytes, Content::kHalf);
    GiveBackFreeMemory();
    const MemoryUse before = OwnMemory();
    TableSpec spec = PlainTable(kStepBytes, kSteps);
    spec.bytes_max = shape_.table_bytes;
    spec.priority_tables = {WindowsOf(16, SelectorKind::kPrioritized)};
    const DatabaseOptions options = WholeOptions({.log_bytes = shape_.log_bytes,
                                                  .frames_bytes = shape_.frames_bytes,
                                                  .index_bytes = shape_.index_bytes});
    GEARDB_ASSIGN_OR_RETURN(const auto store, MakeStore(settings_, options, spec));
    GEARDB_RETURN_IF_ERROR(episodes.Append(store.get()));
    GEARDB_ASSIGN_OR_RETURN(
        const auto sampler,
        store->table->priority_table("prioritized")
            ->NewSampler(
                {.batch = 256, .views = {{.column = "obs"}}, .prefetch = 2, .timeout_ms = 60'000}));
    MemoryUse most;
    uint64_t used = 0;
    constexpr uint64_t kLooks = 64;
    for (uint64_t look = 0; look < kLooks; ++look) {
      GEARDB_RETURN_IF_ERROR(episodes.AppendBytes(store.get(), shape_.appended_bytes / kLooks));
      for (int draw = 0; draw < 4; ++draw) {
        GEARDB_ASSIGN_OR_RETURN(const Batch batch, sampler->Next());
        most = Larger(most, OwnMemory());
        if (draw == 0) used = std::max(used, Used(store->db->Stats(), options));
      }
    }
    const DatabaseStats after = store->db->Stats();
    const Budgets& budgets = options.budgets;
    const uint64_t limits = budgets.frames_bytes + budgets.index_bytes + budgets.batch_bytes +
                            after.cold_memory.limit_bytes + options.ring_bytes;
    return Figure{
        static_cast<double>(most.rss - before.rss),
        static_cast<double>(limits),
        {{"pss", static_cast<double>(most.pss - before.pss)},
         {"used_of_budgets", static_cast<double>(used)},
         {"rss_over_used", static_cast<double>(most.rss - before.rss) /
                               static_cast<double>(std::max<uint64_t>(used, 1))},
         {"frames_used", static_cast<double>(after.frames.used_bytes)},
         {"index_used", static_cast<double>(after.index.used_bytes)},
         {"cold_used", static_cast<double>(after.cold.memory_bytes)},
         {"malloc_resident", static_cast<double>(most.malloc_resident)},
         {"malloc_allocated", static_cast<double>(most.malloc_allocated)},
         {"pages_read", static_cast<double>(after.log_page_reads + after.cold_page_reads)},
         {"passes", static_cast<double>(after.cleaner.passes)}}};
  }

 private:
  static MemoryUse Larger(const MemoryUse& a, const MemoryUse& b) {
    return {std::max(a.rss, b.rss), std::max(a.pss, b.pss),
            std::max(a.malloc_resident, b.malloc_resident),
            std::max(a.malloc_allocated, b.malloc_allocated)};
  }
  static uint64_t Used(const DatabaseStats& stats, const DatabaseOptions& options) {
    return stats.frames.used_bytes + stats.index.used_bytes + stats.batches.used_bytes +
           options.ring_bytes + stats.cold.memory_bytes;
  }

  const Settings settings_;
  const Shape shape_;
};

}  // namespace

std::vector<Row> MemoryRows(const Settings& settings) {
  const Shape large = {.frames_bytes = Scaled(settings, kGiB / 2),
                       .index_bytes = Scaled(settings, 32 * kMiB),
                       .log_bytes = Scaled(settings, kGiB / 2),
                       .table_bytes = Scaled(settings, 2 * kGiB),
                       .appended_bytes = Scaled(settings, 6 * kGiB)};
  const Shape small = {.frames_bytes = Scaled(settings, 64 * kMiB),
                       .index_bytes = Scaled(settings, 16 * kMiB),
                       .log_bytes = Scaled(settings, 128 * kMiB),
                       .table_bytes = Scaled(settings, kGiB),
                       .appended_bytes = Scaled(settings, 3 * kGiB)};
  std::vector<Row> rows;
  for (const Shape& shape : {small, large}) {
    rows.push_back(
        {.name = "memory",
         .size = static_cast<int64_t>(shape.table_bytes / kMiB),
         .size_of = "MiB stored",
         .what = "resident memory that a store adds to the process, at most: " +
                 SizeText(shape.appended_bytes) + " appended to a table of " +
                 SizeText(shape.table_bytes) + ", frames of " + SizeText(shape.frames_bytes) +
                 ", a log of " + SizeText(shape.log_bytes) +
                 ", batches of 256 windows of 16 steps drawn between, two ahead",
         .ceiling = "the sum of the budgets: frames, index, batches, the ring, the cold store",
         .unit = Unit::kBytes,
         .target = {Target::Kind::kRatioAtMost, 1.10},
         .repetitions = 3,
         .make = [shape](Bench* bench) -> Result<std::unique_ptr<Scene>> {
           return std::unique_ptr<Scene>(std::make_unique<MemoryScene>(bench->settings, shape));
         }});
  }
  return rows;
}

}  // namespace geardb::bench
