// When a patch of a ragged column writes all of a trajectory's values again.
#include "engine/internal/patch_rewrite.h"

#include "tests/engine/values_fixture.h"

namespace geardb::engine {
namespace {

class PatchRewriteTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    TableSpec spec;
    spec.name = "t";
    spec.steps_per_page = 4;
    spec.groups = {{.name = "late", .late = true}};
    spec.columns = {{.name = "row", .dtype = DType::kI64},
                    {.name = "late",
                     .dtype = DType::kU8,
                     .kind = ColumnKind::kRagged,
                     .group = "late",
                     .expected_rows = 8}};
    Open();
    Create(spec);
    const std::vector<int64_t> rows(8, 0);
    const ColumnValue row{"row", TensorView::Of(std::span<const int64_t>(rows))};
    ASSERT_OK(writer_->AppendSteps({&row, 1}, {.end = End::kTerminated}));
  }
  /// `count` rows of the trajectory get values of `bytes` bytes each.
  void Patch(int64_t first, int64_t count, uint64_t bytes) {
    const std::vector<uint8_t> values(static_cast<size_t>(count) * bytes, 1);
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i <= static_cast<uint64_t>(count); ++i) offsets.push_back(bytes * i);
    const RowSpan span{1, first, count};
    const ColumnValue value{"late", TensorView::Of(std::span<const uint8_t>(values)), offsets};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  }
  std::shared_ptr<TableCore> core() const { return testing::CoreOf(*database_)->FindTable("t"); }
  /// What is found for the trajectory, as of the owner's `generation`.
  Result<std::optional<WholeColumn>> Find(uint32_t generation) const {
    return FindRewrite(testing::CoreOf(*database_).get(), *core(),
                       {.column = 1, .companion = 0, .slot = 0, .generation = generation});
  }
  uint32_t Generation() const {
    const auto table = core();
    MutexLock lock(&table->state->mutex);
    return table->state->trajectories().record(0).generation;
  }
};

TEST_F(PatchRewriteTest, NothingIsFoundBeforeHalfOfTheRowsWouldLeave) {
  Patch(0, 3, 2);
  ASSERT_OK_AND_ASSIGN(const auto whole, Find(Generation()));
  EXPECT_FALSE(whole);
  // Six are shown, and ten kept.
  Patch(1, 1, 2);
  Patch(1, 1, 2);
  ASSERT_OK_AND_ASSIGN(const auto most, Find(Generation()));
  EXPECT_FALSE(most);
}

TEST_F(PatchRewriteTest, ThenItIsAllThatIsFilled) {
  Patch(0, 3, 2);
  for (int i = 0; i < 3; ++i) Patch(1, 1, 2);
  ASSERT_OK_AND_ASSIGN(const auto whole, Find(Generation()));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->span.id, 1u);
  EXPECT_EQ(whole->span.first_row, 0);
  EXPECT_EQ(whole->span.rows, 3);
  EXPECT_EQ(whole->offsets, (std::vector<uint64_t>{0, 2, 4, 6}));
  EXPECT_EQ(whole->value().column, "late");
  EXPECT_EQ(whole->value().value.shape, Shape({6}));
  ASSERT_OK_AND_ASSIGN(const auto other, Find(Generation() + 1));
  EXPECT_FALSE(other) << "the trajectory in the slot is another one";
}

TEST_F(PatchRewriteTest, WhatWasTrimmedIsNotAmongIt) {
  Patch(0, 4, 2);
  for (int i = 0; i < 5; ++i) Patch(3, 1, 2);
  ASSERT_OK(table_->Truncate(1, 2));
  ASSERT_OK_AND_ASSIGN(const auto whole, Find(Generation()));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->span.first_row, 2);
  EXPECT_EQ(whole->span.rows, 2);
  EXPECT_EQ(whole->offsets, (std::vector<uint64_t>{0, 2, 4}));
}

}  // namespace
}  // namespace geardb::engine
