// Statistics, histograms, gathers and places of values of any length, against a plain model.
#include <cmath>

#include "tests/engine/values_fixture.h"

namespace geardb {
namespace {

constexpr size_t kWide = 20;

struct ScannedTrajectory {
  bool chosen = false;
  std::vector<std::vector<int32_t>> steps;  // Values; the last one is of the final row.
  std::vector<int32_t> blob;
  std::vector<int32_t> wide = std::vector<int32_t>(kWide, 4);
};

class ValuesScanTest : public testing::RandomStoreTest<std::mt19937> {
 protected:
  void SetUp() override {
    Open();
    TableSpec spec;
    spec.name = "values";
    spec.final_row = true;
    spec.steps_per_page = 4;
    spec.expected_steps = 8;
    spec.columns = {{.name = "row", .dtype = DType::kI64},
                    {.name = "ints",
                     .dtype = DType::kI32,
                     .kind = ColumnKind::kRagged,
                     .in_final_row = true,
                     .expected_rows = 10},
                    {.name = "pairs",
                     .dtype = DType::kI32,
                     .shape = {2},
                     .kind = ColumnKind::kRagged,
                     .expected_rows = 5},
                    {.name = "chosen", .kind = ColumnKind::kPerTrajectory},
                    {.name = "blob", .dtype = DType::kI32, .kind = ColumnKind::kBlob},
                    {.name = "wide",
                     .dtype = DType::kI32,
                     .shape = {kWide},
                     .kind = ColumnKind::kPerTrajectory,
                     .default_value = 4}};
    Create(spec);
    random_.seed(7);
    for (int i = 0; i < 30; ++i) AppendOne();
  }

  /// An even number of them: they are pairs, too.
  std::vector<int32_t> RandomValues() {
    std::vector<int32_t> values(Below(3) == 0 ? 0 : 2 * Below(15));
    for (int32_t& value : values) value = static_cast<int32_t>(Below(2000)) - 1000;
    return values;
  }
  void AppendOne() {
    ScannedTrajectory model;
    model.chosen = Below(2) == 0;
    const auto count = static_cast<size_t>(1 + Below(9));
    const std::vector<int64_t> rows(count, 0);
    std::vector<int32_t> joined;
    std::vector<uint64_t> offsets = {0};
    std::vector<uint64_t> pair_offsets = {0};
    for (size_t i = 0; i < count; ++i) {
      const auto& value = model.steps.emplace_back(RandomValues());
      joined.insert(joined.end(), value.begin(), value.end());
      offsets.push_back(joined.size());
      pair_offsets.push_back(joined.size() / 2);
    }
    const auto pairs = static_cast<int64_t>(joined.size() / 2);
    const std::vector<ColumnValue> steps = {
        {"row", TensorView::Of(std::span<const int64_t>(rows))},
        {"ints", TensorView::Of(std::span<const int32_t>(joined)), offsets},
        {"pairs", TensorView(joined.data(), DType::kI32, {pairs, 2}), pair_offsets}};
    const auto& last = model.steps.emplace_back(RandomValues());
    const ColumnValue final{"ints", TensorView::Of(std::span<const int32_t>(last))};
    const float chosen = model.chosen ? 1 : 0;
    std::vector<ColumnValue> whole = {{"chosen", TensorView::Scalar(chosen)}};
    if (Below(3) > 0) {
      model.blob = RandomValues();
      whole.push_back({"blob", TensorView::Of(std::span<const int32_t>(model.blob))});
    }
    if (Below(3) > 0) {
      for (int32_t& value : model.wide) value = static_cast<int32_t>(Below(50));
      whole.push_back({"wide", TensorView::Of(std::span<const int32_t>(model.wide))});
    }
    ASSERT_OK_AND_ASSIGN(
        const Appended appended,
        writer_->AppendSteps(steps,
                             {.end = End::kTerminated, .final = {&final, 1}, .trajectory = whole}));
    model_[appended.id] = model;
  }

  using Values = std::vector<double>;
  /// All that `take` adds for the trajectories that are chosen.
  template <typename Take>
  Values Expected(Take take) const {
    Values values;
    for (const auto& [id, model] : model_) {
      if (model.chosen) take(model, &values);
    }
    return values;
  }
  void ExpectStatistics(std::string_view column, const Values& values) {
    SCOPED_TRACE(column);
    ASSERT_OK_AND_ASSIGN(const Filter filter, Filter::Parse("chosen > 0"));
    ASSERT_OK_AND_ASSIGN(const ColumnStatistics found, table_->Statistics(column, filter));
    ASSERT_EQ(found.count, values.size());
    double sum = 0;
    double squares = 0;
    for (const double value : values) sum += value;
    const double mean = sum / static_cast<double>(values.size());
    for (const double value : values) squares += (value - mean) * (value - mean);
    EXPECT_NEAR(found.mean, mean, 1e-9);
    EXPECT_NEAR(found.std, std::sqrt(squares / static_cast<double>(values.size())), 1e-9);
    EXPECT_EQ(found.min, *std::min_element(values.begin(), values.end()));
    EXPECT_EQ(found.max, *std::max_element(values.begin(), values.end()));
    ASSERT_OK_AND_ASSIGN(
        const ColumnHistogram histogram,
        table_->Histogram(column, {.count = 2, .low = -1000, .high = 1000}, filter));
    const auto negative = static_cast<uint64_t>(
        std::count_if(values.begin(), values.end(), [](double value) { return value < 0; }));
    EXPECT_EQ(histogram.counts, (std::vector<uint64_t>{negative, values.size() - negative}));
  }
  void ExpectAll() {
    ExpectStatistics("ints", Expected([](const ScannedTrajectory& model, Values* values) {
                       for (size_t i = 0; i + 1 < model.steps.size(); ++i) {
                         values->insert(values->end(), model.steps[i].begin(),
                                        model.steps[i].end());
                       }
                     }));
    ExpectStatistics("pairs[1]", Expected([](const ScannedTrajectory& model, Values* values) {
                       for (size_t i = 0; i + 1 < model.steps.size(); ++i) {
                         for (size_t k = 1; k < model.steps[i].size(); k += 2) {
                           values->push_back(model.steps[i][k]);
                         }
                       }
                     }));
    ExpectStatistics("blob", Expected([](const ScannedTrajectory& model, Values* values) {
                       values->insert(values->end(), model.blob.begin(), model.blob.end());
                     }));
    ExpectStatistics("wide[3]", Expected([](const ScannedTrajectory& model, Values* values) {
                       values->push_back(model.wide[3]);
                     }));
  }

  std::map<TrajectoryId, ScannedTrajectory> model_;
};

TEST_F(ValuesScanTest, StatisticsAreOfAllRowsOfAllValues) {
  ExpectAll();
  testing::DropFrames(*database_);
  ExpectAll();
  writer_.reset();
  Reopen();
  OpenAgain("values");
  ExpectAll();
  EXPECT_STATUS(kInvalidArgument, table_->Statistics("pairs"), "name an element of a vector");
  EXPECT_STATUS(kInvalidArgument, table_->Statistics("wide[20]"), "no element of a vector");
  ASSERT_OK_AND_ASSIGN(const Filter none, Filter::Parse("chosen > 5"));
  EXPECT_EQ(table_->Statistics("ints", none)->count, 0u);
}

TEST_F(ValuesScanTest, AGatherTakesRowsOfAnyTrajectories) {
  testing::DropFrames(*database_);
  std::vector<RowId> rows;
  std::vector<int32_t> expected;
  std::vector<int64_t> offsets = {0};
  for (int i = 0; i < 200; ++i) {
    const auto& [id, model] = *std::next(model_.begin(), static_cast<ptrdiff_t>(Below(30)));
    const auto count = static_cast<int64_t>(model.steps.size());
    const auto row = static_cast<int64_t>(Below(static_cast<uint64_t>(count)));
    rows.push_back({id, Below(2) == 0 ? row : row - count});
    const auto& value = model.steps[static_cast<size_t>(row)];
    expected.insert(expected.end(), value.begin(), value.end());
    offsets.push_back(static_cast<int64_t>(expected.size()));
  }
  const std::vector<RowId> none;
  const GatherColumn columns[] = {{"ints", rows}, {"row", {rows.data(), 3}}, {"pairs", none}};
  ASSERT_OK_AND_ASSIGN(const auto read, table_->Gather(columns));
  const auto found = read[0].view().values<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(found.begin(), found.end()), expected);
  EXPECT_EQ(read[0].offsets, offsets);
  EXPECT_EQ(read[1].shape, Shape({3}));
  EXPECT_EQ(read[2].shape, Shape({0, 2}));
  EXPECT_EQ(read[2].offsets, std::vector<int64_t>{0});
  rows.push_back({model_.begin()->first, 99});
  const GatherColumn wrong{"ints", rows};
  EXPECT_STATUS(kInvalidArgument, table_->Gather({&wrong, 1}), "entry 200 names row 99");
}

TEST_F(ValuesScanTest, PlacesCountThePagesOfValues) {
  const std::vector<GroupPlaces> places = table_->Places();
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[0].column, "");
  uint64_t bytes = 0;
  const char* names[] = {"ints", "pairs", "blob", "wide"};
  for (size_t i = 0; i < places.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(places[i].column, names[i - 1]);
    }
    EXPECT_GT(places[i].pages, 0u);
    EXPECT_EQ(places[i].framed, places[i].pages);
    EXPECT_EQ(places[i].in_log, places[i].pages);
    bytes += places[i].pages * places[i].frame_bytes;
  }
  EXPECT_EQ(bytes, table_->Stats().frame_bytes);
  ASSERT_OK(table_->DropColumns(std::vector<std::string_view>{"blob"}));
  EXPECT_EQ(table_->Places().size(), 4u);
}

// What is said of the tables that hold values names what the user knows.
TEST_F(ValuesScanTest, MessagesNameTheColumn) {
  const auto core = testing::CoreOf(*database_)->FindTable("values");
  EXPECT_EQ("table '" + core->companions[0]->layout().spec().name + "'",
            "table 'values', column 'ints'");
  const Column huge{.name = "huge", .shape = {2'000'000}, .kind = ColumnKind::kBlob};
  EXPECT_STATUS(kInvalidArgument, table_->AddColumns({&huge, 1}),
                "table 'values', column 'huge': a page of 1 steps has 8000000 bytes");
}

}  // namespace
}  // namespace geardb
