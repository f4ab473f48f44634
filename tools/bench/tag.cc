// A tag: at most two synced writes at any size of the store.
#include "tools/bench/ceilings.h"
#include "tools/bench/spread.h"
#include "tools/bench/store.h"

namespace geardb::bench {
namespace {

class TagScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench, int64_t steps) {
    std::unique_ptr<TagScene> scene(new TagScene(bench->settings));
    TableSpec spec = PlainTable(100, 1000);
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    const auto bytes = static_cast<uint64_t>(steps) * 100;
    GEARDB_ASSIGN_OR_RETURN(scene->store_, MakeStore(bench->settings,
                                                     RoomyOptions(bytes * 2 + (uint64_t{64} << 20),
                                                                  bytes + (uint64_t{128} << 20)),
                                                     spec));
    GEARDB_RETURN_IF_ERROR(FillWithSteps(scene->store_.get(), steps, 1000));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    Database& db = *store_->db;
    const std::vector<std::byte> blob(4096, std::byte{7});
    const int calls = settings_.tiny ? 3 : 50;
    GEARDB_ASSIGN_OR_RETURN(const SyncTimes bare,
                            MeasureSyncs(settings_.directory, settings_.tiny ? 8 : 200));
    std::vector<double> times;
    const uint64_t before = db.Stats().fdatasyncs;
    for (int i = 0; i < calls; ++i) {
      // Something that the tag must cover.
      const std::vector<std::byte> row(100, std::byte{1});
      GEARDB_RETURN_IF_ERROR(
          store_->writer->AppendSteps({{"obs", RowsOver(store_->table->spec(), row.data(), 1)}})
              .status());
      const Stopwatch watch;
      GEARDB_RETURN_IF_ERROR(db.WriteTag("bench", blob).status());
      times.push_back(watch.us());
    }
    const double syncs = static_cast<double>(db.Stats().fdatasyncs - before) / calls;
    return Figure{Median(std::move(times)),
                  bare.write_and_fdatasync_us,
                  {{"fdatasync_us", bare.fdatasync_us}, {"fdatasyncs_per_tag", syncs}}};
  }

 private:
  explicit TagScene(const Settings& settings) : settings_(settings) {}
  const Settings settings_;
  std::shared_ptr<Store> store_;
};

}  // namespace

std::vector<Row> TagRows(const Settings& settings) {
  std::vector<Row> rows;
  for (const int64_t steps : {10'000, 100'000, 1'000'000}) {
    rows.push_back(
        {.name = "tag",
         .size = steps,
         .size_of = "steps",
         .what = "WriteTag with a blob of 4 KiB after an append, steps of 100 B stored",
         .ceiling = "median of a bare direct write of 4 KiB and its fdatasync: the target is two",
         .unit = Unit::kMicroseconds,
         .target = {Target::Kind::kRatioAtMost, 2},
         .make = [steps](Bench* bench) { return TagScene::Make(bench, steps); }});
    if (settings.tiny) break;
  }
  return rows;
}

}  // namespace geardb::bench
