#include "engine/internal/patch_rows.h"

#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

/// Trajectories 1 of 6 rows and 2 of 3, of which rows 0 and 1 are trimmed.
class PatchRowsTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    Open();
    Create(testing::StepSpec());
    AppendClosed(0, 6);
    AppendClosed(10, 3);
    ASSERT_OK(table_->Truncate(2, 2));
    core_ = testing::CoreOf(*database_);
    state_ = core_->FindTable("steps")->state.get();
  }
  void TearDown() override {
    core_.reset();
    Close();
  }
  std::shared_ptr<DatabaseCore> core_;
  TableState* state_ = nullptr;
};

TEST_F(PatchRowsTest, PackedValuesFollowOneAnother) {
  MutexLock lock(&state_->mutex);
  const PatchValues values{.columns = {}, .ragged = {}, .entries = 8};
  PatchRows rows(*state_, values);
  ASSERT_OK(rows.Add(0, 2, 4));
  ASSERT_OK(rows.AddStale(1));
  EXPECT_STATUS(kInvalidArgument, rows.CheckWhole(), "values of 8 rows are given for 5");
  ASSERT_OK(rows.Add(1, 0, 3));  // Two of them were trimmed.
  ASSERT_OK(rows.CheckWhole());
  ASSERT_EQ(rows.targets().size(), 2u);
  EXPECT_EQ(rows.targets()[0].value_row, 0u);
  EXPECT_EQ(rows.targets()[1].first_row, 2);
  EXPECT_EQ(rows.targets()[1].rows, 1);
  EXPECT_EQ(rows.targets()[1].value_row, 7u);
  EXPECT_EQ(rows.stale(), 3u);
  EXPECT_STATUS(kInvalidArgument, rows.Add(0, 0, 1), "for more: 9");
}

TEST_F(PatchRowsTest, PaddedValuesHaveAShareForEach) {
  MutexLock lock(&state_->mutex);
  const PatchValues values{.columns = {}, .ragged = {}, .entries = 2, .padded = 5};
  PatchRows rows(*state_, values);
  ASSERT_OK(rows.AddStale(5));
  EXPECT_STATUS(kInvalidArgument, rows.CheckWhole(), "values of 2 entries are given for 1");
  ASSERT_OK(rows.Add(0, 1, 5));
  ASSERT_OK(rows.CheckWhole());
  EXPECT_EQ(rows.targets()[0].value_row, 5u);
  EXPECT_STATUS(kInvalidArgument, rows.Add(0, 0, 1), "2 entries are given for more");
  PatchRows wide(*state_, values);
  EXPECT_STATUS(kInvalidArgument, wide.Add(0, 0, 6), "entry 0 has 6 rows; its values have 5");
}

TEST_F(PatchRowsTest, RowsBeyondTheEndAreRefused) {
  MutexLock lock(&state_->mutex);
  const PatchValues values{.columns = {}, .ragged = {}, .entries = 100};
  PatchRows rows(*state_, values);
  ASSERT_OK(rows.Add(0, 6, 0));
  EXPECT_STATUS(kInvalidArgument, rows.Add(0, 6, 1), "1 rows from 6 of trajectory 1");
  EXPECT_STATUS(kInvalidArgument, rows.Add(0, -1, 2), "2 rows from -1");
  EXPECT_STATUS(kInvalidArgument, rows.Add(0, 0, 7), "which ends at row 6");
}

TEST_F(PatchRowsTest, ValuesAreRowsOrSharesOfRows) {
  const TableLayout& layout = state_->layout();
  const std::vector<float> bytes(100);
  const auto bind = [&](Shape shape) {
    const ColumnValue value{"obs", TensorView(bytes.data(), DType::kF32, shape)};
    return BindPatchValues(layout, {&value, 1});
  };
  ASSERT_OK_AND_ASSIGN(const PatchValues packed, bind({7, 2}));
  EXPECT_EQ(packed.entries, 7u);
  EXPECT_EQ(packed.padded, 0u);
  ASSERT_OK_AND_ASSIGN(const PatchValues padded, bind({7, 3, 2}));
  EXPECT_EQ(padded.entries, 7u);
  EXPECT_EQ(padded.padded, 3u);
  for (const Shape& shape : {Shape({2}), Shape({7, 3}), Shape({1, 7, 3, 2}), Shape({7, 0, 2})}) {
    EXPECT_STATUS(kInvalidArgument, bind(shape), "[items, rows, ...]");
  }
}

}  // namespace
}  // namespace geardb::engine
