// Patch: late groups filled, columns rewritten, beside appends and reopens.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

/// Rows as of testing::StepSpec, with "target" f32 and "logits" f32[2] in the late group "late", −1
/// where nobody filled them, and "cache" f32 in a volatile late group.
TableSpec PatchSpec(bool final_row = false) {
  TableSpec spec = testing::StepSpec(final_row);
  spec.groups = {{.name = "late", .late = true},
                 {.name = "cache", .late = true, .is_volatile = true}};
  spec.columns.push_back({.name = "target", .group = "late", .default_value = -1});
  spec.columns.push_back({.name = "logits", .shape = {2}, .group = "late", .default_value = -1});
  spec.columns.push_back({.name = "cache", .group = "cache"});
  return spec;
}

std::vector<float> Ramp(float first, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

class TablePatchTest : public testing::StoreTest {
 protected:
  std::vector<float> Floats(TrajectoryId id, std::string_view column) const {
    const auto rows = table_->Read(id, {&column, 1}, {});
    EXPECT_OK(rows);
    if (!rows.ok()) return {};
    const auto values = (*rows)[0].view().values<float>();
    return {values.begin(), values.end()};
  }
  Result<PatchOutcome> Patch(std::string_view column, const RowSpan& span,
                             const std::vector<float>& values) {
    const ColumnValue value{column, TensorView::Of(std::span<const float>(values))};
    return table_->Patch({&span, 1}, {&value, 1});
  }
};

TEST_F(TablePatchTest, ALateGroupIsFilledFromItsFirstRowOn) {
  Create(PatchSpec());
  const TrajectoryId id = AppendClosed(0, 7);
  EXPECT_EQ(Floats(id, "target"), std::vector<float>(7, -1));
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome, Patch("target", {id, 0, 5}, Ramp(10, 5)));
  EXPECT_EQ(outcome.applied, 5u);
  EXPECT_EQ(outcome.stale, 0u);
  EXPECT_GT(outcome.end_lsn, 0u);
  EXPECT_EQ(Floats(id, "target"), (std::vector<float>{10, 11, 12, 13, 14, -1, -1}));
  EXPECT_EQ(Floats(id, "logits"), std::vector<float>(14, -1));
  EXPECT_EQ(*table_->Filled(id, "late"), 5);
  EXPECT_STATUS(kInvalidArgument, Patch("target", {id, 6, 1}, Ramp(0, 1)), "up to row 5");
  ASSERT_OK(Patch("target", {id, 4, 3}, Ramp(20, 3)));
  EXPECT_EQ(Floats(id, "target"), (std::vector<float>{10, 11, 12, 13, 20, 21, 22}));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Floats(id, "target"), (std::vector<float>{10, 11, 12, 13, 20, 21, 22}));
  EXPECT_EQ(*table_->Filled(id, "late"), 7);
}

TEST_F(TablePatchTest, SpansOfOneCallMayComeInAnyOrder) {
  Create(PatchSpec());
  const TrajectoryId id = AppendClosed(0, 9);
  const std::vector<RowSpan> spans = {{id, 4, 5}, {id, 2, 3}, {id, 0, 3}};
  const std::vector<float> values = Ramp(0, 11);
  const ColumnValue value{"target", TensorView::Of(std::span<const float>(values))};
  ASSERT_OK(table_->Patch(spans, {&value, 1}));
  // Of rows 2 and 4 the later span's value stays.
  EXPECT_EQ(Floats(id, "target"), (std::vector<float>{8, 9, 10, 6, 7, 1, 2, 3, 4}));
}

TEST_F(TablePatchTest, ColumnsOfAppendsAreRewritten) {
  Create(PatchSpec(true));
  const TrajectoryId id = AppendClosed(0, 6);
  ASSERT_OK(Patch("reward", {id, 1, 4}, Ramp(50, 4)));
  EXPECT_EQ(Floats(id, "reward"), (std::vector<float>{0, 50, 51, 52, 53, 1.25f, 0}));
  EXPECT_EQ(Numbers(id), (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 0}));
  ASSERT_OK(Patch("reward", {id, -1, 1}, Ramp(7, 1)));  // The final row's.
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Floats(id, "reward"), (std::vector<float>{0, 50, 51, 52, 53, 1.25f, 7}));
  EXPECT_EQ(Numbers(id), (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 0}));
}

TEST_F(TablePatchTest, AWriterGoesOnInAPatchedPage) {
  Create(PatchSpec());
  const TrajectoryId id = Append(0, 2).id;
  ASSERT_OK(Patch("reward", {id, 0, 2}, Ramp(70, 2)));
  Append(2, 1);
  ASSERT_OK(Patch("reward", {id, 1, 2}, Ramp(80, 2)));
  Append(3, 4);
  EXPECT_EQ(Numbers(id), testing::Count(0, 7));
  EXPECT_EQ(Floats(id, "reward"), (std::vector<float>{70, 80, 81, 0.75f, 1, 1.25f, 1.5f}));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(id), testing::Count(0, 7));
  EXPECT_EQ(Floats(id, "reward"), (std::vector<float>{70, 80, 81, 0.75f, 1, 1.25f, 1.5f}));
}

// Where its page was before belongs to others by then.
TEST_F(TablePatchTest, AWriterDoesNotGoOnWhereThePageWasBefore) {
  Create(PatchSpec(), {.lanes = 2});
  const TrajectoryId id = Append(0, 1).id;
  std::map<TrajectoryId, int64_t> others;
  // Frames are reused once enough of them have left: by later patches, and by others.
  for (int64_t i = 0; i < 400; ++i) {
    if (i % 4 == 0) {
      ASSERT_OK(Patch("reward", {id, 0, 1}, Ramp(70, 1)));
    }
    others[Append(1000 + 4 * i, 4, End::kTruncated, 1).id] = 1000 + 4 * i;
  }
  Append(1, 3);
  const auto check = [&] {
    EXPECT_EQ(Numbers(id), testing::Count(0, 4));
    for (const auto& [other, first] : others) {
      EXPECT_EQ(Numbers(other), testing::Count(static_cast<int32_t>(first), 4)) << other;
    }
  };
  check();
  Reopen();
  OpenAgain("steps");
  check();
}

TEST_F(TablePatchTest, WhatIsVolatileIsNotLogged) {
  Create(PatchSpec());
  const TrajectoryId id = AppendClosed(0, 6);
  const uint64_t before = database_->Stats().log_bytes;
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome, Patch("cache", {id, 0, 6}, Ramp(1, 6)));
  EXPECT_EQ(outcome.end_lsn, 0u);
  EXPECT_EQ(outcome.applied, 6u);
  EXPECT_EQ(database_->Stats().log_bytes, before);
  EXPECT_EQ(Floats(id, "cache"), Ramp(1, 6));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Floats(id, "cache"), std::vector<float>(6, 0));
  EXPECT_EQ(*table_->Filled(id, "cache"), 0);
}

TEST_F(TablePatchTest, GroupsOfOneCallAreOneChange) {
  Create(PatchSpec());
  const TrajectoryId id = AppendClosed(0, 3);
  const std::vector<float> values = Ramp(5, 3);
  const TensorView view = TensorView::Of(std::span<const float>(values));
  const ColumnValue columns[] = {{"target", view}, {"reward", view}, {"cache", view}};
  const RowSpan span{id, 0, 3};
  ASSERT_OK(table_->Patch({&span, 1}, columns));
  for (const char* column : {"target", "reward", "cache"}) {
    EXPECT_EQ(Floats(id, column), values) << column;
  }
}

TEST_F(TablePatchTest, WhatIsGoneIsStale) {
  Create(PatchSpec());
  const TrajectoryId gone = AppendClosed(0, 3);
  const TrajectoryId trimmed = AppendClosed(0, 9);
  ASSERT_OK(table_->Remove({&gone, 1}));
  ASSERT_OK(table_->Truncate(trimmed, 5));
  const std::vector<RowSpan> spans = {{gone, 0, 3}, {trimmed, 3, 4}};
  const std::vector<float> values = Ramp(0, 7);
  const ColumnValue value{"target", TensorView::Of(std::span<const float>(values))};
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome, table_->Patch(spans, {&value, 1}));
  EXPECT_EQ(outcome.applied, 2u);
  EXPECT_EQ(outcome.stale, 5u);
  EXPECT_EQ(Floats(trimmed, "target"), (std::vector<float>{5, 6, -1, -1}));
  EXPECT_EQ(*table_->Filled(trimmed, "late"), 7);
}

TEST_F(TablePatchTest, WhatIsTrimmedCountsAsFilled) {
  Create(PatchSpec());
  const TrajectoryId id = AppendClosed(0, 9);
  EXPECT_EQ(*table_->Filled(id, "late"), 0);
  ASSERT_OK(table_->Truncate(id, 5));
  EXPECT_EQ(*table_->Filled(id, "late"), 5);
  const std::vector<float> values = Ramp(0, 2);
  const ColumnValue value{"target", TensorView::Of(std::span<const float>(values))};
  const RowSpan behind{id, 6, 2};
  EXPECT_STATUS(kInvalidArgument, table_->Patch({&behind, 1}, {&value, 1}), "filled up to row 5");
  const RowSpan next{id, 5, 2};
  ASSERT_OK(table_->Patch({&next, 1}, {&value, 1}));
  EXPECT_EQ(*table_->Filled(id, "late"), 7);
}

TEST_F(TablePatchTest, WrongCallsChangeNothing) {
  Create(PatchSpec());
  const TrajectoryId id = AppendClosed(0, 4);
  const std::vector<float> values = Ramp(0, 4);
  const TensorView four = TensorView::Of(std::span<const float>(values));
  const auto patch = [&](std::string_view column, TensorView value, const RowSpan& span) {
    const ColumnValue given{column, value};
    return table_->Patch({&span, 1}, {&given, 1});
  };
  EXPECT_STATUS(kInvalidArgument, patch("target", four, {id, 0, 3}), "given for 3");
  EXPECT_STATUS(kInvalidArgument, patch("target", four, {id, 0, 5}), "for more: 5");
  EXPECT_STATUS(kInvalidArgument, patch("target", four, {id, 1, 4}), "ends at row 4");
  EXPECT_STATUS(kInvalidArgument, patch("target", four, {id, -5, 4}), "4 rows from -1");
  EXPECT_STATUS(kInvalidArgument, patch("target", four, {id, 0, -1}), "a patch of -1 rows");
  EXPECT_STATUS(kInvalidArgument, patch("target", four, {id, INT64_MAX, 4}), "ends at row 4");
  EXPECT_STATUS(kInvalidArgument, patch("action", four, {id, 0, 4}), "takes i32");
  EXPECT_STATUS(kInvalidArgument, patch("logits", four, {id, 0, 4}), "rows of [2]");
  EXPECT_STATUS(kInvalidArgument, patch("score", four, {id, 0, 4}), "SetColumns");
  EXPECT_STATUS(kNotFound, patch("none", four, {id, 0, 4}), "no column 'none'");
  EXPECT_STATUS(kInvalidArgument,
                patch("target", TensorView(nullptr, DType::kF32, {4}), {id, 0, 4}), "no bytes");
  EXPECT_STATUS(kInvalidArgument, table_->Patch({}, {}), "no column");
  const ColumnValue twice[] = {{"target", four}, {"target", four}};
  const RowSpan span{id, 0, 4};
  EXPECT_STATUS(kInvalidArgument, table_->Patch({&span, 1}, twice), "given twice");
  const ColumnValue uneven[] = {
      {"target", four}, {"reward", TensorView::Of(std::span<const float>(values).first(3))}};
  EXPECT_STATUS(kInvalidArgument, table_->Patch({&span, 1}, uneven), "with 4 rows");
  EXPECT_STATUS(kNotFound, table_->Filled(id, "none"), "no column group 'none'");
}

TEST_F(TablePatchTest, ALargePatchIsWholeAfterAReopen) {
  options_.ring_bytes = uint64_t{128} << 10;  // Records of up to 32 KiB.
  options_.segment_bytes = uint64_t{1} << 20;
  OpenEmpty();
  Create(PatchSpec());
  std::vector<RowSpan> spans;
  for (int i = 0; i < 40; ++i) spans.push_back({AppendClosed(100 * i, 50), 0, 50});
  std::vector<float> values = Ramp(0, 2000);
  ColumnValue value{"target", TensorView::Of(std::span<const float>(values))};
  ASSERT_OK(table_->Patch(spans, {&value, 1}));
  values = Ramp(9, 4000);
  value = {"logits", TensorView::Of(std::span<const float>(values), Shape({2000, 2}))};
  ASSERT_OK(table_->Patch(spans, {&value, 1}));
  Reopen();
  OpenAgain("steps");
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(Floats(spans[i].id, "target"), Ramp(static_cast<float>(50 * i), 50));
    EXPECT_EQ(Floats(spans[i].id, "logits"), Ramp(static_cast<float>(9 + 100 * i), 100));
  }
}

TEST_F(TablePatchTest, ItemsArePatchedByTheirHandles) {
  TableSpec spec = PatchSpec();
  spec.priority_tables = {testing::WindowSpec("windows", {.before = 0, .length = 3, .after = 0}),
                          testing::WindowSpec("whole")};
  spec.priority_tables[0].window.right = EdgeRule::kShift;
  spec.priority_tables[1].item = ItemKind::kTrajectory;
  Create(spec);
  for (int i = 0; i < 5; ++i) AppendClosed(100 * i, 6 + i);
  for (const char* name : {"windows", "whole"}) {
    ASSERT_OK_AND_ASSIGN(const auto sampler,
                         priority(name)->NewSampler({.batch = 7, .views = {{.column = "action"}}}));
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    const TensorView shown = batch["action"];
    const int64_t longest = shown.shape[1];
    std::vector<float> values(static_cast<size_t>(7 * longest));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 1000 + static_cast<float>(shown.values<int32_t>()[i]);
    }
    const ColumnValue value{"reward",
                            TensorView::Of(std::span<const float>(values), Shape({7, longest}))};
    ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome,
                         priority(name)->Patch(batch.handles(), {&value, 1}));
    uint64_t rows = 0;
    for (size_t i = 0; i < 7; ++i) {
      rows += static_cast<uint64_t>(batch.lengths()[i]);
      const std::vector<float> rewards = Floats(batch.trajectory_ids()[i], "reward");
      const std::vector<int32_t> numbers = Numbers(batch.trajectory_ids()[i]);
      for (int64_t k = 0; k < batch.lengths()[i]; ++k) {
        const int32_t number =
            shown.values<int32_t>()[i * static_cast<size_t>(longest) + static_cast<size_t>(k)];
        const auto row = static_cast<size_t>(std::find(numbers.begin(), numbers.end(), number) -
                                             numbers.begin());
        EXPECT_EQ(rewards[row], 1000 + static_cast<float>(number)) << name;
      }
    }
    EXPECT_EQ(outcome.applied, rows);
  }
}

TEST_F(TablePatchTest, AHandleOfAnItemThatIsGoneIsStaleWhereItsRowsAreThere) {
  TableSpec spec = PatchSpec();
  spec.priority_tables = {testing::WindowSpec("windows")};
  Create(spec);
  const TrajectoryId id = AppendClosed(0, 1);
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("windows")->NewSampler({.batch = 1}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  ASSERT_OK(priority("windows")->Delete(batch.handles()));
  const std::vector<float> ten = {10};
  const ColumnValue value{"reward", TensorView::Of(std::span<const float>(ten))};
  const std::vector<float> before = Floats(id, "reward");
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome,
                       priority("windows")->Patch(batch.handles(), {&value, 1}));
  EXPECT_EQ(outcome.applied, 0u);
  EXPECT_EQ(outcome.stale, 1u);
  EXPECT_EQ(Floats(id, "reward"), before);
}

TEST_F(TablePatchTest, AHandleOfARowThatBecameFinalIsStale) {
  TableSpec spec = PatchSpec(/*final_row=*/true);
  spec.priority_tables = {testing::WindowSpec("windows")};
  spec.priority_tables[0].selector = SelectorKind::kLifo;
  Create(spec);
  const TrajectoryId id = Append(0, 3, End::kGo).id;
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("windows")->NewSampler({.batch = 1}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  ASSERT_EQ(batch.anchors()[0], 2);
  ASSERT_OK(writer_->Cut());
  const std::vector<float> ten = {10};
  const ColumnValue value{"reward", TensorView::Of(std::span<const float>(ten))};
  const std::vector<float> before = Floats(id, "reward");
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome,
                       priority("windows")->Patch(batch.handles(), {&value, 1}));
  EXPECT_EQ(outcome.stale, 1u);
  EXPECT_EQ(Floats(id, "reward"), before);
}

TEST_F(TablePatchTest, HandlesOfWhatLeftAreStale) {
  TableSpec spec = PatchSpec();
  spec.priority_tables = {testing::WindowSpec("windows", {.before = 0, .length = 2, .after = 0})};
  Create(spec);
  const TrajectoryId id = AppendClosed(0, 2);
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("windows")->NewSampler({.batch = 1}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  const auto length = static_cast<size_t>(batch.lengths()[0]);
  ASSERT_OK(table_->Remove({&id, 1}));
  const TrajectoryId next = AppendClosed(10, 2);  // In the same page.
  const std::vector<float> values(length, 99);
  const ColumnValue value{"reward", TensorView::Of(std::span<const float>(values))};
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome,
                       priority("windows")->Patch(batch.handles(), {&value, 1}));
  EXPECT_EQ(outcome.stale, length);
  EXPECT_EQ(outcome.applied, 0u);
  EXPECT_EQ(Floats(next, "reward"), (std::vector<float>{2.5, 2.75}));
}

TEST_F(TablePatchTest, AStreamKeepsItsFlags) {
  TableSpec spec = PatchSpec();
  spec.stream = true;
  spec.priority_tables = {testing::WindowSpec("steps")};
  Create(spec);
  const TrajectoryId id = Append(0, 3, End::kTerminated).id;
  Append(3, 2);
  ASSERT_OK(Patch("reward", {id, 0, 5}, Ramp(0, 5)));
  Append(5, 2, End::kTruncated);
  ASSERT_OK(writer_->Cut());
  ASSERT_OK(Patch("reward", {id, 4, 3}, Ramp(4, 3)));
  const auto ends = [&] {
    std::vector<End> all;
    const auto sampler = priority("steps")->NewSampler(
        {.batch = 256, .views = {{.column = "action", .masks = true}}, .observer = true});
    const Batch batch = std::move(*sampler.value()->Next());
    const TensorView shown = batch["action.end"];
    std::map<int64_t, End> of_row;
    for (size_t i = 0; i < 256; ++i) {
      of_row[batch.anchors()[i]] = static_cast<End>(shown.values<uint8_t>()[i]);
    }
    for (const auto& [row, end] : of_row) all.push_back(end);
    return all;
  };
  const std::vector<End> expected = {End::kGo, End::kGo, End::kTerminated, End::kGo,
                                     End::kGo, End::kGo, End::kTruncated};
  EXPECT_EQ(ends(), expected);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(ends(), expected);
  EXPECT_EQ(Floats(id, "reward"), Ramp(0, 7));
}

}  // namespace
}  // namespace geardb
