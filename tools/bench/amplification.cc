// What is written to disk for a byte appended, and what lies there for a byte that lives. Counted,
// not timed.
#include <algorithm>

#include "tools/bench/usage.h"
#include "tools/bench/whole_store.h"

namespace geardb::bench {
namespace {

/// What is appended where.
struct Shape {
  const char* name = "";
  uint64_t table_bytes = 0;
  uint64_t log_bytes = 0;
  uint64_t appended_bytes = 0;  ///< Once the table and the log are full.
  Remover remover = Remover::kFifo;
  int64_t steps = 256;  ///< Of a trajectory.
  uint64_t step_bytes = kStepBytes;
};

class AmplificationScene final : public Scene {
 public:
  AmplificationScene(const Settings& settings, const Shape& shape)
      : settings_(settings), shape_(shape) {}

  Result<Figure> Measure() override {
    GEARDB_RETURN_IF_ERROR(CheckDiskRoom(settings_, 3 * shape_.table_bytes + shape_.log_bytes));
    TableSpec spec = PlainTable(shape_.step_bytes, static_cast<uint64_t>(shape_.steps));
    spec.bytes_max = shape_.table_bytes;
    spec.remover = shape_.remover;
    spec.remover_seed = 7;
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    const DatabaseOptions options =
        WholeOptions({.log_bytes = shape_.log_bytes,
                      .frames_bytes = std::min(shape_.table_bytes * 2, Scaled(settings_, kGiB / 2)),
                      .index_bytes = shape_.table_bytes / 4 + 64 * kMiB});
    GEARDB_ASSIGN_OR_RETURN(const auto store, MakeStore(settings_, options, spec));
    Episodes episodes(shape_.steps, shape_.step_bytes, Content::kRandom);
    // Segments are zeroed once; from here on they are written again.
    GEARDB_RETURN_IF_ERROR(episodes.AppendBytes(
        store.get(),
        shape_.table_bytes + std::max(options.log_bytes_max, shape_.log_bytes) * 5 / 4));
    GEARDB_RETURN_IF_ERROR(store->db->Sync());
    const uint64_t written = OwnBytesWritten();
    const DatabaseStats before = store->db->Stats();
    double space = 0;
    constexpr uint64_t kLooks = 16;
    for (uint64_t look = 0; look < kLooks; ++look) {
      GEARDB_RETURN_IF_ERROR(episodes.AppendBytes(store.get(), shape_.appended_bytes / kLooks));
      space = std::max(space, SpaceAmplification(*store));
    }
    GEARDB_RETURN_IF_ERROR(store->db->Sync());
    const DatabaseStats after = store->db->Stats();
    GEARDB_RETURN_IF_ERROR(after.cleaner.last);
    const auto appended = static_cast<double>(shape_.appended_bytes);
    const auto share = [appended](uint64_t to, uint64_t from) {
      return static_cast<double>(to - from) / appended;
    };
    const double log = share(after.log_bytes, before.log_bytes);
    const double flushed = share(after.cold.flush_bytes, before.cold.flush_bytes);
    const double compacted = share(after.cold.compaction_bytes, before.cold.compaction_bytes);
    const double all = share(OwnBytesWritten(), written);
    const bool of_space = shape_.remover != Remover::kFifo;
    Figure figure{of_space ? space : all, 0, {}};
    figure.more = {
        {"written", all},
        {"written_by_stats", log + flushed + compacted},
        {"log", log},
        {"cold_flushes", flushed},
        {"cold_compactions", compacted},
        {"images", share(after.cleaner.image_bytes, before.cleaner.image_bytes)},
        {"passes", static_cast<double>(after.cleaner.passes - before.cleaner.passes)},
        {"compactions", static_cast<double>(after.cold.compactions - before.cold.compactions)},
        {"space_largest", space},
        {"space_at_the_end", SpaceAmplification(*store)},
        {"cold_space_at_the_end", static_cast<double>(after.cold.disk_bytes) /
                                      std::max(static_cast<double>(after.cold.live_bytes), 1.0)}};
    return figure;
  }

 private:
  static double SpaceAmplification(const Store& store) {
    return static_cast<double>(DiskBytesOf(store.directory->path())) /
           static_cast<double>(std::max<uint64_t>(store.table->Stats().row_bytes, 1));
  }

  const Settings settings_;
  const Shape shape_;
};

Row AmplificationRow(const Shape& shape, Target target) {
  const bool of_space = shape.remover != Remover::kFifo;
  return {
      .name = std::string("amplification.") + shape.name,
      .size = static_cast<int64_t>(shape.table_bytes / kMiB),
      .size_of = "MiB stored",
      .what = std::string(of_space ? "bytes that the store's files take for a byte of rows that "
                                     "lives, at most, while "
                                   : "bytes that the kernel counts as written for a byte "
                                     "appended: ") +
              SizeText(shape.appended_bytes) + " of random bytes, trajectories of " +
              std::to_string(shape.steps) + " steps of " + std::to_string(shape.step_bytes) +
              " bytes, appended to a full table of " + SizeText(shape.table_bytes) +
              " from which " +
              (of_space ? "trajectories leave at random" : "the oldest trajectory leaves") +
              ", with a log of " + SizeText(shape.log_bytes),
      .unit = Unit::kTimes,
      .target = target,
      .repetitions = 1,
      .make = [shape](Bench* bench) -> Result<std::unique_ptr<Scene>> {
        return std::unique_ptr<Scene>(std::make_unique<AmplificationScene>(bench->settings, shape));
      },
      .told = true};
}

}  // namespace

std::vector<Row> AmplificationRows(const Settings& settings) {
  const auto scaled = [&](uint64_t bytes) { return Scaled(settings, bytes); };
  return {AmplificationRow({.name = "fifo_in_log",
                            .table_bytes = scaled(kGiB / 2),
                            .log_bytes = scaled(kGiB),
                            .appended_bytes = scaled(4 * kGiB)},
                           {Target::Kind::kValueAtMost, 1.1}),
          AmplificationRow({.name = "fifo_beyond_log",
                            .table_bytes = scaled(2 * kGiB),
                            .log_bytes = scaled(kGiB),
                            .appended_bytes = scaled(4 * kGiB)},
                           {Target::Kind::kValueAtMost, 2.3}),
          AmplificationRow({.name = "short_in_log",
                            .table_bytes = scaled(kGiB / 8),
                            .log_bytes = scaled(kGiB / 2),
                            .appended_bytes = scaled(kGiB),
                            .steps = 20,
                            .step_bytes = 100},
                           {}),
          AmplificationRow({.name = "short_beyond_log",
                            .table_bytes = scaled(kGiB / 2),
                            .log_bytes = scaled(kGiB / 4),
                            .appended_bytes = scaled(kGiB),
                            .steps = 20,
                            .step_bytes = 100},
                           {}),
          AmplificationRow({.name = "random_removal",
                            .table_bytes = scaled(2 * kGiB),
                            .log_bytes = scaled(kGiB / 2),
                            .appended_bytes = scaled(4 * kGiB),
                            .remover = Remover::kUniform},
                           {})};
}

}  // namespace geardb::bench
