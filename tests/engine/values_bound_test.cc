// Values of any length count for bytes_max: what can never fit it is refused, whoever brings it,
// and what has passed it leaves without a stand-still.
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class ValuesBoundTest : public testing::StoreTest {
 protected:
  using ValueBytes = std::vector<uint8_t>;
  static constexpr uint64_t kMegabyte = uint64_t{1} << 20;
  static constexpr uint64_t kBound = kMegabyte;

  /// Steps have "row"; "value", of bytes, is of that kind, and in pages of 32 KiB.
  static TableSpec BoundSpec(ColumnKind kind, uint64_t bytes_max = kBound) {
    TableSpec spec;
    spec.name = "bound";
    spec.columns = {{.name = "row", .dtype = DType::kI64},
                    {.name = "value", .dtype = DType::kU8, .kind = kind, .expected_rows = 200'000}};
    spec.steps_per_page = 4;
    spec.bytes_max = bytes_max;
    return spec;
  }
  static ColumnValue Give(const ValueBytes& bytes) {
    return {"value", TensorView::Of(std::span<const uint8_t>(bytes))};
  }
  /// Without a value.
  Result<Appended> TryAddRow(End end, uint32_t lane = 0) {
    const int64_t row = 7;
    return writer_->Append({{"row", TensorView::Scalar(row)}}, {.lane = lane, .end = end});
  }
  TrajectoryId AddRow(End end, uint32_t lane = 0) {
    const auto appended = TryAddRow(end, lane);
    EXPECT_OK(appended);
    return appended.ok() ? appended->id : 0;
  }
  Status SetBlob(TrajectoryId id, const ValueBytes& blob) {
    const ColumnValue value = Give(blob);
    return table_->SetColumns(id, {&value, 1});
  }
  /// All values of a trajectory.
  ValueBytes Values(TrajectoryId id) const {
    const std::string_view name = "value";
    const auto read = table_->Read(id, {&name, 1}, {});
    EXPECT_OK(read);
    if (!read.ok()) return {};
    const auto bytes = (*read)[0].view().values<uint8_t>();
    return {bytes.begin(), bytes.end()};
  }
  uint64_t Held() const { return table_->Stats().frame_bytes; }

  const ValueBytes few_ = {1, 2, 3};
  const ValueBytes most_ = ValueBytes(600 << 10, 5);  // One fits, two don't.
  const ValueBytes too_many_ = ValueBytes(2 * kBound, 9);
};

// SetColumns took it, and nobody could append any more.
TEST_F(ValuesBoundTest, ABlobThatNeverFitsIsRefusedWhoeverBringsIt) {
  Create(BoundSpec(ColumnKind::kBlob));
  const TrajectoryId id = AddRow(End::kGo);
  ASSERT_OK(SetBlob(id, few_));
  const uint64_t held = Held();
  const ColumnValue blob = Give(too_many_);
  const int64_t row = 8;
  EXPECT_STATUS(kInvalidArgument,
                writer_->Append({{"row", TensorView::Scalar(row)}}, {.trajectory = {&blob, 1}}),
                "one call adds");
  EXPECT_STATUS(kInvalidArgument, SetBlob(id, too_many_), "one call adds");
  EXPECT_EQ(Held(), held);
  EXPECT_EQ(Values(id), few_);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(AddRow(End::kGo), id);
  ASSERT_EQ(AddRow(End::kTerminated), id);
  EXPECT_OK(SetBlob(id, most_));
}

TEST_F(ValuesBoundTest, SoAreValuesThatAPatchBrings) {
  Create(BoundSpec(ColumnKind::kRagged));
  const int64_t row = 7;
  ASSERT_OK_AND_ASSIGN(
      const Appended appended,
      writer_->Append({{"row", TensorView::Scalar(row)}, Give(few_)}, {.end = End::kTerminated}));
  const uint64_t held = Held();
  const auto patch = [&](const ValueBytes& bytes) {
    const std::vector<uint64_t> offsets = {0, bytes.size()};
    ColumnValue value = Give(bytes);
    value.offsets = offsets;
    const RowSpan span{appended.id, 0, 1};
    return table_->Patch({&span, 1}, {&value, 1});
  };
  EXPECT_STATUS(kInvalidArgument, patch(too_many_), "one call adds");
  EXPECT_EQ(Held(), held);
  EXPECT_EQ(Values(appended.id), few_);
  ASSERT_OK(patch(most_));
  EXPECT_EQ(Values(appended.id), most_);
}

// Already the first row in a page that was there took the oldest trajectory away.
TEST_F(ValuesBoundTest, WhatHasPassedItLeavesForTheNextPage) {
  Create(BoundSpec(ColumnKind::kBlob));
  const TrajectoryId oldest = AddRow(End::kTerminated);
  const TrajectoryId next = AddRow(End::kTerminated);
  const TrajectoryId open = AddRow(End::kGo);
  ASSERT_OK(SetBlob(oldest, most_));
  ASSERT_OK(SetBlob(next, most_));
  ASSERT_GT(Held(), kBound);
  for (int row = 1; row < 4; ++row) ASSERT_EQ(AddRow(End::kGo), open);
  EXPECT_EQ(table_->Count(), 3u);
  ASSERT_EQ(AddRow(End::kGo), open);
  EXPECT_EQ(table_->Count(), 2u);
  EXPECT_STATUS(kNotFound, table_->Find(oldest), "");
  EXPECT_EQ(Values(next), most_);
  EXPECT_LE(Held(), kBound);
}

// No lane got a row in until one of them was cut.
TEST_F(ValuesBoundTest, RowsThatTakeNoPageComeAlsoWhereNothingMayLeave) {
  Create(BoundSpec(ColumnKind::kBlob), {.lanes = 2});
  const TrajectoryId first = AddRow(End::kGo, 0);
  const TrajectoryId second = AddRow(End::kGo, 1);
  ASSERT_OK(SetBlob(first, most_));
  ASSERT_OK(SetBlob(second, most_));
  for (int row = 1; row < 4; ++row) {
    ASSERT_EQ(AddRow(End::kGo, 0), first);
    ASSERT_EQ(AddRow(End::kGo, 1), second);
  }
  EXPECT_STATUS(kResourceExhausted, TryAddRow(End::kGo, 1), "is full");
  ASSERT_OK(writer_->Cut(0));
  ASSERT_EQ(AddRow(End::kGo, 1), second);
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_LE(Held(), kBound);
}

// All of the bound was kept for pages of the steps, and the values found no frame.
TEST_F(ValuesBoundTest, ValuesComeToItWhereAllPagesStayInMemory) {
  options_.budgets.frames_bytes = 16 * kMegabyte;
  options_.resident = true;
  OpenEmpty();
  constexpr uint64_t kMost = 10 * kMegabyte;
  Create(BoundSpec(ColumnKind::kRagged, kMost));
  const ValueBytes value(20'000, 7);
  uint64_t given = 0;
  for (int64_t row = 0; given < 3 * kMost; ++row) {
    ASSERT_OK(writer_->Append({{"row", TensorView::Scalar(row)}, Give(value)},
                              {.end = row % 8 == 7 ? End::kTerminated : End::kGo}))
        << "row " << row;
    ASSERT_LE(Held(), kMost) << "row " << row;
    given += value.size();
  }
  EXPECT_GT(Held(), kMost / 2);
}

// A page had 256 steps, none of whose values leaves before the next one is begun: the streams stood
// still at step 217.
TEST_F(ValuesBoundTest, APageIsChosenSoThatManyStreamsGoOn) {
  constexpr uint32_t kStreams = 16;
  constexpr uint64_t kMost = 10 * kMegabyte;
  constexpr uint64_t kValue = 3000;
  TableSpec spec = BoundSpec(ColumnKind::kRagged, kMost);
  spec.steps_per_page = 0;
  spec.stream = true;
  spec.columns[1].expected_rows = kValue;
  Create(spec, {.lanes = kStreams});
  EXPECT_EQ(table_->steps_per_page(), 32u);
  const std::vector<int64_t> rows(kStreams, 7);
  const ValueBytes values(kStreams * kValue, 7);
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i <= kStreams; ++i) offsets.push_back(i * kValue);
  ColumnValue given = Give(values);
  given.offsets = offsets;
  for (int step = 0; step < 600; ++step) {
    const std::vector<End> ends(kStreams, step % 20 == 19 ? End::kTerminated : End::kGo);
    ASSERT_OK(writer_->AppendLanes({{"row", TensorView::Of(std::span<const int64_t>(rows))}, given},
                                   {.ends = ends}))
        << "step " << step;
    ASSERT_LE(Held(), kMost) << "step " << step;
  }
  EXPECT_GT(table_->Stats().trimmed_rows, 0u);
}

TEST_F(ValuesBoundTest, ItIsAsEverWithoutABoundOrForSmallValues) {
  TableSpec spec = BoundSpec(ColumnKind::kRagged, 0);
  spec.steps_per_page = 0;
  const uint32_t steps = ChooseStepsPerPage(spec);
  Create(spec);
  EXPECT_EQ(table_->steps_per_page(), steps);
  spec.name = "small";
  spec.bytes_max = 10 * kMegabyte;
  spec.columns[1].expected_rows = 100;
  ASSERT_OK_AND_ASSIGN(const auto small, database_->CreateTable(spec));
  EXPECT_EQ(small->steps_per_page(), steps);
}

}  // namespace
}  // namespace geardb
