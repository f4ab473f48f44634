// Reading without drawing: Read, Gather, Scan, Find.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Random;
using testing::StepSpec;
using testing::StoreTest;

/// list(range(n))[begin:end:step] as Python's documentation defines it, on rows that begin at
/// `first`: "the indices of the sequence" are clamped to what is there.
std::vector<int32_t> PythonSlice(int64_t first, int64_t rows_end, const RowRange& range) {
  std::vector<int32_t> picked;
  const auto place = [&](int64_t bound) { return bound < 0 ? bound + rows_end : bound; };
  if (range.step > 0) {
    const int64_t begin = std::max(range.begin ? place(*range.begin) : first, first);
    const int64_t end = std::min(range.end ? place(*range.end) : rows_end, rows_end);
    for (int64_t row = begin; row < end; row += range.step) {
      picked.push_back(static_cast<int32_t>(row));
      if (range.step > rows_end) break;
    }
  } else {
    const int64_t begin = std::min(range.begin ? place(*range.begin) : rows_end - 1, rows_end - 1);
    const int64_t end = std::max(range.end ? place(*range.end) : first - 1, first - 1);
    for (int64_t row = begin; row > end; row += range.step) {
      picked.push_back(static_cast<int32_t>(row));
      if (range.step < -rows_end) break;
    }
  }
  return picked;
}

class TableReadTest : public StoreTest {
 protected:
  static constexpr int64_t kRows = 11;

  void SetUp() override {
    StoreTest::SetUp();
    Create(StepSpec());
    for (int t = 0; t < 3; ++t) AppendClosed(100 * t, kRows);
  }
  Result<std::vector<ColumnRows>> Gather(std::string_view column, const std::vector<RowId>& rows) {
    const GatherColumn columns[] = {{column, rows}};
    return table_->Gather(columns);
  }
};

TEST_F(TableReadTest, SlicesArePythons) {
  std::vector<std::optional<int64_t>> bounds = {std::nullopt};
  for (int64_t bound = -kRows - 3; bound <= kRows + 3; ++bound) bounds.push_back(bound);
  for (const auto& begin : bounds) {
    for (const auto& end : bounds) {
      for (const int64_t step : {1, 2, 3, 5, 11, 100, -1, -2, -3, -11, -100}) {
        const RowRange range{begin, end, step};
        ASSERT_EQ(Numbers(1, range), PythonSlice(0, kRows, range))
            << begin.value_or(999) << ':' << end.value_or(999) << ':' << step;
      }
    }
  }
}

TEST_F(TableReadTest, SlicesOfATruncatedTrajectoryKeepAbsoluteRows) {
  ASSERT_OK(table_->Truncate(1, 5));
  for (const auto& range : {RowRange{}, RowRange{0, 7}, RowRange{6, {}}, RowRange{-3, {}},
                            RowRange{{}, {}, -2}, RowRange{-100, 100, 3}, RowRange{10, 2, -4}}) {
    EXPECT_EQ(Numbers(1, range), PythonSlice(5, kRows, range));
  }
}

TEST_F(TableReadTest, ExtremeSlicesDoNotOverflow) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Numbers(1, {least, most, most}), std::vector<int32_t>{0});
  EXPECT_EQ(Numbers(1, {most, least, least}), std::vector<int32_t>{10});
  EXPECT_EQ(Numbers(1, {least, most, 1}).size(), 11u);
  EXPECT_EQ(Numbers(1, {most, least, -1}).size(), 11u);
  EXPECT_TRUE(Numbers(1, {most, {}, 1}).empty());
}

TEST_F(TableReadTest, AllStepColumnsAreReadByDefault) {
  const auto rows = table_->Read(1, {}, {2, 4});
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].column, "obs");
  EXPECT_EQ((*rows)[0].shape, Shape({2, 2}));
  EXPECT_EQ((*rows)[0].bytes.size(), 16u);
  EXPECT_EQ((*rows)[0].view().values<float>()[3], 3.5f);
  EXPECT_EQ((*rows)[2].view().values<float>()[1], 0.75f);
}

TEST_F(TableReadTest, UnknownNamesAreRefused) {
  const std::string_view columns[] = {"obs", "nothing"};
  EXPECT_STATUS(kNotFound, table_->Read(1, columns, {}), "no column 'nothing'; it has obs");
  EXPECT_STATUS(kNotFound, table_->Read(4, {}, {}), "no trajectory 4");
  EXPECT_STATUS(kNotFound, table_->Read(0, {}, {}), "no trajectory 0");
  EXPECT_STATUS(kInvalidArgument, table_->Read(1, {}, {.step = 0}), "step 0");
  EXPECT_STATUS(kNotFound, table_->Find(4), "no trajectory 4");
  EXPECT_STATUS(kNotFound, Gather("nothing", {{1, 0}}), "no column 'nothing'");
  EXPECT_STATUS(kInvalidArgument, Gather("version", {{1, 0}}), "'version' is per trajectory");
}

TEST_F(TableReadTest, GatherIsFancyIndexing) {
  // What NumPy gives for stored[id][rows], with any rows: strided, repeated, reversed, permuted,
  // negative, of many trajectories.
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<RowId> rows;
    std::vector<int32_t> expected;
    for (uint64_t i = random.Below(40); i > 0; --i) {
      const auto id = static_cast<TrajectoryId>(1 + random.Below(3));
      const auto row = static_cast<int64_t>(random.Below(2 * kRows)) - kRows;
      rows.push_back({id, row});
      expected.push_back(static_cast<int32_t>(100 * (id - 1)) +
                         static_cast<int32_t>(row < 0 ? row + kRows : row));
    }
    const auto gathered = Gather("action", rows);
    ASSERT_OK(gathered);
    EXPECT_EQ((*gathered)[0].shape, Shape({static_cast<int64_t>(rows.size())}));
    const auto view = (*gathered)[0].view();
    const auto values = view.values<int32_t>();
    ASSERT_EQ(std::vector<int32_t>(values.begin(), values.end()), expected);
  }
}

TEST_F(TableReadTest, EachGatheredColumnHasItsOwnRows) {
  std::vector<RowId> strided, reversed;
  for (int64_t row = 0; row < kRows; row += 3) strided.push_back({2, row});
  for (int64_t row = kRows - 1; row >= 0; --row) reversed.push_back({3, row});
  const GatherColumn columns[] = {{"reward", strided}, {"obs", reversed}, {"action", {}}};
  const auto gathered = table_->Gather(columns);
  ASSERT_OK(gathered);
  EXPECT_EQ((*gathered)[0].view().values<float>()[1], 103.0f / 4);
  EXPECT_EQ((*gathered)[1].shape, Shape({kRows, 2}));
  EXPECT_EQ((*gathered)[1].view().values<float>()[0], 210.0f);
  EXPECT_EQ((*gathered)[1].view().values<float>()[21], 200.5f);
  EXPECT_EQ((*gathered)[2].shape, Shape({0}));
  EXPECT_TRUE((*gathered)[2].bytes.empty());
}

TEST_F(TableReadTest, RowsThatAreNotThereAreNamed) {
  EXPECT_STATUS(kInvalidArgument, Gather("action", {{1, 0}, {1, 11}}), "entry 1 names row 11");
  EXPECT_STATUS(kInvalidArgument, Gather("action", {{1, -12}}), "entry 0 names row -12");
  EXPECT_STATUS(kInvalidArgument, Gather("action", {{1, 0}, {7, 0}}), "trajectory 7");
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_STATUS(kInvalidArgument, Gather("action", {{1, least}}), "entry 0");
  ASSERT_OK(table_->Truncate(1, 5));
  EXPECT_STATUS(kInvalidArgument, Gather("action", {{1, 4}}), "which has rows 5 to 10");
  EXPECT_OK(Gather("action", {{1, 5}}));
}

TEST_F(TableReadTest, ScanVisitsInOrderOfId) {
  const TrajectoryId removed[] = {2};
  ASSERT_OK(table_->Remove(removed));
  Append(0, 2);  // Takes the slot that became free; its id is larger all the same.
  std::vector<TrajectoryId> ids;
  for (const auto& record : table_->Scan({})) ids.push_back(record.id);
  EXPECT_EQ(ids, (std::vector<TrajectoryId>{1, 3, 4}));
  EXPECT_EQ(table_->Scan({.from_id = 2, .end_id = 4}).size(), 1u);
  EXPECT_EQ(table_->Scan({.state = TrajectoryState::kOpen})[0].id, 4u);
  EXPECT_EQ(table_->Scan({.limit = 2})[1].id, 3u);
  EXPECT_TRUE(table_->Scan({.limit = 0}).empty());
  EXPECT_TRUE(table_->Scan({.from_id = 4, .end_id = 2}).empty());
}

TEST_F(TableReadTest, RecordsSayWhatIsStored) {
  const auto record = table_->Find(2);
  ASSERT_OK(record);
  EXPECT_EQ(record->id, 2u);
  EXPECT_EQ(record->end, End::kTerminated);
  EXPECT_EQ(record->first_row, 0);
  EXPECT_EQ(record->rows_end, kRows);
  EXPECT_GT(record->created_us, int64_t{1'600'000'000'000'000});
  EXPECT_EQ(record->times_sampled, 0u);
}

TEST_F(TableReadTest, ColumnsCanBeSetLater) {
  const uint32_t version = 5;
  const float score = -2;
  const ColumnValue values[] = {{"version", TensorView::Scalar(version)},
                                {"score", TensorView::Scalar(score)}};
  ASSERT_OK(table_->SetColumns(2, values));
  const std::string_view columns[] = {"score", "version"};
  const auto read = table_->Read(2, columns, {});
  ASSERT_OK(read);
  EXPECT_EQ((*read)[0].shape, Shape());
  EXPECT_EQ((*read)[0].view().values<float>()[0], -2.0f);
  EXPECT_EQ((*read)[1].view().values<uint32_t>()[0], 5u);
}

TEST_F(TableReadTest, WrongColumnsAreNotSet) {
  const uint32_t version = 5;
  const float score = -2;
  const auto set = [&](TrajectoryId id, std::vector<ColumnValue> values) {
    return table_->SetColumns(id, values);
  };
  EXPECT_STATUS(kNotFound, set(9, {{"version", TensorView::Scalar(version)}}), "no trajectory 9");
  EXPECT_STATUS(kNotFound, set(1, {{"vers", TensorView::Scalar(version)}}), "no column 'vers'");
  EXPECT_STATUS(kInvalidArgument, set(1, {{"reward", TensorView::Scalar(score)}}), "per step");
  EXPECT_STATUS(kInvalidArgument, set(1, {{"version", TensorView::Scalar(score)}}), "'version'");
  EXPECT_STATUS(
      kInvalidArgument,
      set(1, {{"score", TensorView::Scalar(score)}, {"score", TensorView::Scalar(score)}}),
      "given twice");
  EXPECT_STATUS(kInvalidArgument, set(1, {{"score", TensorView(nullptr, DType::kF32, Shape())}}),
                "no bytes");
}

}  // namespace
}  // namespace geardb
