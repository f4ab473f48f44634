// A batch whose rows and priorities together need more than a record (256 KiB) goes in parts.
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "engine/write_batch.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

// Whether it goes in parts was settled before its priorities were counted: it was refused, though
// with more rows it would have gone.
class BatchInPartsTest : public testing::StoreTest {
 protected:
  static constexpr int64_t kWidth = 64;  // Rows of 512 bytes.
  static constexpr int64_t kFirst = 6000;
  static constexpr int64_t kMore = 340;

  /// Each of `width` times its number.
  static std::vector<int64_t> NumberedRows(int64_t first, int64_t count, int64_t width) {
    std::vector<int64_t> rows;
    for (int64_t row = first; row < first + count; ++row) {
      rows.insert(rows.end(), static_cast<size_t>(width), row);
    }
    return rows;
  }
  static ColumnValue Give(const std::vector<int64_t>& rows, int64_t width) {
    const auto count = static_cast<int64_t>(rows.size()) / width;
    return {"row", TensorView::Of(std::span<const int64_t>(rows), Shape({count, width}))};
  }
  static TableSpec SpecOf(int64_t width, uint32_t steps_per_page) {
    TableSpec spec;
    spec.name = "numbers";
    spec.columns = {{.name = "row", .dtype = DType::kI64, .shape = {width}}};
    spec.steps_per_page = steps_per_page;
    spec.priority_tables = {testing::WindowSpec("per")};
    return spec;
  }

  /// A table with kFirst items, of a trajectory that goes on.
  void FillTable() {
    Create(SpecOf(kWidth, 16));
    for (int64_t row = 0; row < kFirst; row += 100) {
      const std::vector<int64_t> rows = NumberedRows(row, 100, kWidth);
      const auto appended = writer_->AppendSteps({Give(rows, kWidth)});
      ASSERT_OK(appended);
      id_ = appended->id;
    }
    items_ = priority("per")->Items();
    ASSERT_EQ(items_.size(), static_cast<size_t>(kFirst));
  }
  void ExpectRowsOf(TrajectoryId id, int64_t count, int64_t width) const {
    const std::string_view name = "row";
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, {&name, 1}, {}));
    const auto found = read[0].view().values<int64_t>();
    EXPECT_EQ(std::vector<int64_t>(found.begin(), found.end()), NumberedRows(0, count, width));
  }

  TrajectoryId id_ = 0;
  std::vector<RowId> items_;
};

TEST_F(BatchInPartsTest, WithPrioritiesThatItSets) {
  FillTable();
  std::vector<float> priorities;
  for (size_t i = 0; i < items_.size(); ++i) {
    priorities.push_back(static_cast<float>(1 + i % 7));
  }
  const std::vector<int64_t> more = NumberedRows(kFirst, kMore, kWidth);
  WriteBatch batch;
  batch.Set(table_->priority_table("per"), items_, priorities);
  batch.AppendSteps(writer_.get(), {Give(more, kWidth)}, {.end = End::kTerminated});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
  EXPECT_EQ(outcome.operations[0].applied, items_.size());
  for (const bool again : {false, true}) {
    if (again) {
      Reopen();
      OpenAgain("numbers");
    }
    ExpectRowsOf(id_, kFirst + kMore, kWidth);
    PriorityTable* const per = priority("per");
    EXPECT_EQ(per->Count(), static_cast<uint64_t>(kFirst + kMore));
    for (size_t i = 0; i < items_.size(); i += 17) {
      ASSERT_EQ(*per->Priority(items_[i]), priorities[i]) << "item " << i;
    }
  }
}

TEST_F(BatchInPartsTest, WithItemsThatItDeletes) {
  FillTable();
  const std::vector<int64_t> more = NumberedRows(kFirst, kMore, kWidth);
  WriteBatch batch;
  batch.AppendSteps(writer_.get(), {Give(more, kWidth)}, {.end = End::kTerminated});
  batch.Delete(table_->priority_table("per"), items_);
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
  EXPECT_EQ(outcome.operations[1].applied, items_.size());
  for (const bool again : {false, true}) {
    if (again) {
      Reopen();
      OpenAgain("numbers");
    }
    ExpectRowsOf(id_, kFirst + kMore, kWidth);
    const std::vector<RowId> left = priority("per")->Items();
    ASSERT_EQ(left.size(), static_cast<size_t>(kMore));
    EXPECT_EQ(left.front(), (RowId{id_, kFirst}));
  }
}

TEST_F(BatchInPartsTest, WithTrajectoriesThatItRemoves) {
  constexpr int64_t kRemoved = 6500;
  constexpr int64_t kRows = 300;
  const std::vector<int64_t> row = NumberedRows(0, 1, kWidth);
  const std::vector<int64_t> more = NumberedRows(0, kRows, kWidth);
  for (const bool own : {true, false}) {
    SCOPED_TRACE(own);
    OpenEmpty();
    TableSpec other = SpecOf(kWidth, 1);
    other.name = "others";
    Create(other);
    const std::unique_ptr<Writer> beside = std::move(writer_);
    Create(SpecOf(kWidth, 1));
    std::vector<TrajectoryId> ids;
    for (int64_t i = 0; i < kRemoved; ++i) {
      ASSERT_OK_AND_ASSIGN(const Appended closed,
                           writer_->AppendSteps({Give(row, kWidth)},
                                                {.end = End::kTerminated, .ack = Ack::kMemory}));
      ids.push_back(closed.id);
    }
    WriteBatch batch;
    batch.Remove(table_, ids);
    batch.AppendSteps(own ? writer_.get() : beside.get(), {Give(more, kWidth)},
                      {.end = End::kTerminated});
    ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
    EXPECT_EQ(table_->Count(), own ? 1u : 0u);
    Reopen();
    OpenAgain("numbers");
    EXPECT_EQ(table_->Count(), own ? 1u : 0u);
    if (!own) OpenAgain("others");
    ExpectRowsOf(outcome.operations[1].appended[0].id, kRows, kWidth);
  }
}

// One for all of the first part: beside the others it becomes one for each.
TEST_F(BatchInPartsTest, WithInitialPrioritiesOfSeveralOperations) {
  constexpr int64_t kEach = 11'000;
  Create(SpecOf(1, 256), {.lanes = 2});
  const std::vector<int64_t> rows = NumberedRows(0, kEach, 1);
  const float one[] = {9};
  std::vector<float> many;
  for (int64_t row = 0; row < kEach; ++row) many.push_back(static_cast<float>(1 + row % 7));
  const InitialPriorities of_first[] = {{"per", one}};
  const InitialPriorities of_second[] = {{"per", many}};
  const std::vector<ColumnValue> values = {Give(rows, 1)};
  WriteBatch batch;
  batch.AppendSteps(writer_.get(), values,
                    {.lane = 0, .end = End::kTerminated, .priorities = of_first});
  batch.AppendSteps(writer_.get(), values,
                    {.lane = 1, .end = End::kTerminated, .priorities = of_second});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
  const TrajectoryId first = outcome.operations[0].appended[0].id;
  const TrajectoryId second = outcome.operations[1].appended[0].id;
  for (const bool again : {false, true}) {
    if (again) {
      Reopen();
      OpenAgain("numbers");
    }
    ExpectRowsOf(first, kEach, 1);
    ExpectRowsOf(second, kEach, 1);
    PriorityTable* const per = priority("per");
    EXPECT_EQ(per->Count(), static_cast<uint64_t>(2 * kEach));
    for (int64_t row = 0; row < kEach; row += 37) {
      ASSERT_EQ(*per->Priority({first, row}), 9.0f) << "row " << row;
      ASSERT_EQ(*per->Priority({second, row}), many[static_cast<size_t>(row)]) << "row " << row;
    }
  }
}

}  // namespace
}  // namespace geardb
