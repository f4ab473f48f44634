// Where a patch of a ragged column puts its values: behind those that are there; what no step shows
// any more leaves from the head.
#include "engine/internal/patch_values.h"

#include "tests/engine/values_fixture.h"

namespace geardb::engine {
namespace {

TableSpec LateSpec() {
  TableSpec spec;
  spec.name = "t";
  spec.steps_per_page = 4;
  spec.expected_steps = 8;
  spec.groups = {{.name = "late", .late = true}};
  spec.columns = {{.name = "row", .dtype = DType::kI64},
                  {.name = "late",
                   .dtype = DType::kU8,
                   .kind = ColumnKind::kRagged,
                   .group = "late",
                   .expected_rows = 8}};
  return spec;
}

TEST(PatchValuesTest, OffsetsSayHowManyValuesThereAre) {
  const TableLayout layout(LateSpec(), 1);
  const std::vector<uint8_t> bytes(6, 1);
  const std::vector<uint64_t> offsets = {0, 2, 2, 6};
  const ColumnValue given{"late", TensorView::Of(std::span<const uint8_t>(bytes)), offsets};
  PatchValues bound;
  ASSERT_OK(BindRaggedPatch(layout, given, 1, &bound));
  EXPECT_EQ(bound.entries, 3u);
  EXPECT_EQ(bound.padded, 0u);
  ASSERT_EQ(bound.ragged[0].ranges->size(), 3u);
  EXPECT_EQ(bound.columns[0].rows,
            reinterpret_cast<const std::byte*>(bound.ragged[0].ranges->data()));
  // Of one row they may be left out.
  PatchValues one;
  ASSERT_OK(BindRaggedPatch(layout, {"late", given.value}, 1, &one));
  EXPECT_EQ(one.entries, 1u);
  bound.padded = 2;
  EXPECT_STATUS(kInvalidArgument, BindRaggedPatch(layout, given, 1, &bound),
                "which ragged ones cannot have");
}

class PatchValuesStoreTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    Open();
    Create(LateSpec());
    const std::vector<int64_t> rows(8, 0);
    const ColumnValue row{"row", TensorView::Of(std::span<const int64_t>(rows))};
    ASSERT_OK(writer_->AppendSteps({&row, 1}, {.end = End::kTerminated}));
  }
  /// `count` rows of the trajectory get values of 10 bytes each.
  void Patch(int64_t first, int64_t count) {
    const std::vector<uint8_t> bytes(static_cast<size_t>(10 * count), 1);
    std::vector<uint64_t> offsets;
    for (int64_t i = 0; i <= count; ++i) offsets.push_back(static_cast<uint64_t>(10 * i));
    const RowSpan span{1, first, count};
    const ColumnValue value{"late", TensorView::Of(std::span<const uint8_t>(bytes)), offsets};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  }
  /// First row and end of what the companion has of the trajectory, whose pages have 16 rows.
  std::pair<uint64_t, uint64_t> Held() const {
    const auto core = testing::CoreOf(*database_)->FindTable("t");
    const TableState& late = *core->companions[0]->state;
    MutexLock lock(&core->state->mutex);
    EXPECT_EQ(late.layout().steps_per_page(), 16u);
    EXPECT_EQ(core->plan->companion_bytes(), core->state->companion_frame_bytes());
    const index::TrajectoryRecord& record = late.trajectories().record(0);
    EXPECT_EQ(record.state, index::TrajectoryState::kClosed);
    return {record.first_row, record.rows_end};
  }
};

using Rows = std::pair<uint64_t, uint64_t>;

TEST_F(PatchValuesStoreTest, OnlyWhatNamesAllGivesMemoryBack) {
  Patch(0, 4);
  EXPECT_EQ(Held(), Rows(0, 40));
  Patch(4, 4);  // No value leaves.
  EXPECT_EQ(Held(), Rows(0, 80));
  Patch(2, 6);
  EXPECT_EQ(Held(), Rows(0, 140));
  Patch(0, 8);  // Row 140 is in the page that begins with 128.
  EXPECT_EQ(Held(), Rows(128, 220));
  writer_.reset();
  Reopen();
  OpenAgain("t");
  EXPECT_EQ(Held(), Rows(128, 220));
  ASSERT_OK(table_->Truncate(1, 5));
  Patch(5, 3);
  EXPECT_EQ(Held(), Rows(208, 250));
}

TEST_F(PatchValuesStoreTest, AllOfThemMayBecomeEmpty) {
  Patch(0, 8);
  const std::vector<uint64_t> offsets(9, 0);
  const std::vector<uint8_t> none;
  const RowSpan span{1, 0, 8};
  const ColumnValue value{"late", TensorView::Of(std::span<const uint8_t>(none)), offsets};
  ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  EXPECT_EQ(Held(), Rows(64, 80)) << "the last page stays";
  const std::string_view name = "late";
  ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(1, {&name, 1}, {}));
  EXPECT_EQ(read[0].shape, Shape({0}));
}

}  // namespace
}  // namespace geardb::engine
