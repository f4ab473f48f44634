// What a step costs in frames, in the index and in the log, beside its own bytes. Counted, not
// timed.
#include "base/philox.h"
#include "tools/bench/append_rate.h"
#include "tools/bench/store.h"

namespace geardb::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// What is stored.
struct Shape {
  uint64_t payload = 0;
  uint32_t steps_per_page = 0;  ///< 0: the default for `expected_steps`.
  uint64_t expected_steps = 1024;
  bool one_by_one = false;  ///< A trajectory of one step in a call of its own.
};

class BytesScene final : public Scene {
 public:
  BytesScene(const Settings& settings, const Shape& shape) : settings_(settings), shape_(shape) {}

  Result<Figure> Measure() override {
    TableSpec spec = PlainTable(shape_.payload, shape_.expected_steps);
    spec.steps_per_page = shape_.steps_per_page;
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    DatabaseOptions options = RoomyOptions(512 * kMiB, 1024 * kMiB);
    options.prefault = false;
    GEARDB_ASSIGN_OR_RETURN(const auto store, MakeStore(settings_, options, spec));
    const DatabaseStats empty = store->db->Stats();
    GEARDB_RETURN_IF_ERROR(Fill(store.get()));
    const TableStats table = store->table->Stats();
    const DatabaseStats after = store->db->Stats();
    const auto steps = static_cast<double>(table.steps);
    const auto per_step = [steps](uint64_t bytes) { return static_cast<double>(bytes) / steps; };
    const double frames = per_step(table.frame_bytes);
    const double index = per_step(after.index.used_bytes - empty.index.used_bytes);
    return Figure{frames,
                  per_step(table.row_bytes),
                  {{"log_bytes_per_step", per_step(after.log_bytes - empty.log_bytes)},
                   {"index_bytes_per_step", index},
                   {"memory_bytes_per_step", frames + index},
                   {"steps", steps}}};
  }

 private:
  /// Lengths uniform in 4·S…8·S.
  Status Fill(Store* store) {
    const uint64_t page = store->table->steps_per_page();
    const uint64_t target = settings_.tiny ? 1 * kMiB : 128 * kMiB;
    const std::vector<std::byte> rows(8 * page * shape_.payload, std::byte{1});
    const TableSpec spec = store->table->spec();
    uint32_t trajectory = 0;
    for (uint64_t done = 0; done < target; ++trajectory) {
      const uint64_t random = PhiloxRandom64(2, 0, trajectory, PhiloxPurpose::kItem);
      const uint64_t count = shape_.one_by_one ? 1 : 4 * page + MulHi64(random, 4 * page + 1);
      const TensorView view = RowsOver(spec, rows.data(), static_cast<int64_t>(count));
      GEARDB_RETURN_IF_ERROR(
          store->writer
              ->AppendTrajectory({{"obs", view}}, {.end = End::kTerminated, .ack = Ack::kMemory})
              .status());
      done += count * shape_.payload;
      if (shape_.one_by_one && trajectory > 200'000) break;
    }
    return store->db->Sync();
  }

  const Settings settings_;
  const Shape shape_;
};

Row BytesRow(const char* name, const Shape& shape, Target target) {
  std::string what = "frame bytes of a step of " + BytesText(shape.payload);
  what += shape.one_by_one ? ", a trajectory of one step in each call, S = 1"
                           : ", lengths uniform in 4 S to 8 S, whole trajectories appended";
  return {.name = name,
          .size = static_cast<int64_t>(shape.payload),
          .size_of = "bytes a step",
          .what = what,
          .ceiling = "the true bytes of its row",
          .unit = Unit::kBytes,
          .target = target,
          .repetitions = 1,
          .make = [shape](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            return std::unique_ptr<Scene>(std::make_unique<BytesScene>(bench->settings, shape));
          }};
}

}  // namespace

std::vector<Row> BytesRows(const Settings&) {
  const Target target{Target::Kind::kRatioAtMost, 1.15};
  return {
      BytesRow("bytes.stored", {.payload = 4}, target),
      BytesRow("bytes.stored", {.payload = 100}, target),
      BytesRow("bytes.stored", {.payload = 1024}, target),
      BytesRow("bytes.stored", {.payload = 28224}, target),
      BytesRow("bytes.transition",
               {.payload = 100, .steps_per_page = 1, .expected_steps = 1, .one_by_one = true}, {})};
}

}  // namespace geardb::bench
