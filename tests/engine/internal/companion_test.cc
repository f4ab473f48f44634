#include "engine/internal/companion.h"

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

TableSpec Owner(uint64_t expected_steps) {
  TableSpec spec;
  spec.name = "t";
  spec.expected_steps = expected_steps;
  return spec;
}

uint32_t PageRows(const Column& column, uint64_t expected_steps = 1000) {
  return CompanionSpec(Owner(expected_steps), column).steps_per_page;
}

Column Blob(uint64_t expected_rows, Shape shape = {}) {
  return {.name = "b",
          .dtype = DType::kU8,
          .shape = shape,
          .kind = ColumnKind::kBlob,
          .expected_rows = expected_rows};
}

Column Ragged(uint64_t expected_rows, Shape shape = {}) {
  Column column = Blob(expected_rows, shape);
  column.kind = ColumnKind::kRagged;
  return column;
}

// Stored pages are laid out by these.
TEST(CompanionTest, SizesOfPagesAreFrozen) {
  EXPECT_EQ(PageRows(Blob(0)), 1024u);
  EXPECT_EQ(PageRows(Blob(0, {3})), 512u);
  EXPECT_EQ(PageRows(Blob(1)), 1u);
  EXPECT_EQ(PageRows(Blob(100)), 32u);
  EXPECT_EQ(PageRows(Blob(uint64_t{1} << 31)), 32768u);
  EXPECT_EQ(PageRows(Blob(uint64_t{1} << 31, {100})), 512u);
  EXPECT_EQ(PageRows(Blob(0, {100'000})), 1u);
  EXPECT_EQ(PageRows(Ragged(0)), 32768u);
  EXPECT_EQ(PageRows(Ragged(2), 8), 4u);
  EXPECT_EQ(PageRows(Ragged(1), 1), 1u);
  EXPECT_EQ(PageRows(Ragged(1, {4}), UINT64_MAX), 16384u);
  const Column wide = {.name = "w", .shape = {40}, .kind = ColumnKind::kPerTrajectory};
  EXPECT_EQ(PageRows(wide), 1u);
}

TEST(CompanionTest, WhatIsWideOrOfAnyLengthHasOne) {
  Column column = {.name = "c", .shape = {16}, .kind = ColumnKind::kPerTrajectory};
  EXPECT_FALSE(HasCompanion(column));
  column.shape = {17};
  EXPECT_TRUE(HasCompanion(column));
  column.kind = ColumnKind::kPerStep;
  EXPECT_FALSE(HasCompanion(column));
  EXPECT_TRUE(HasCompanion(Blob(0)));
  EXPECT_TRUE(HasCompanion(Ragged(0)));
  EXPECT_EQ(RowBytes(Ragged(0, {3})), 3u);
  EXPECT_EQ(StoredRowBytes(Ragged(0, {3})), sizeof(RaggedRange));
  EXPECT_EQ(StoredRowBytes(column), 68u);
}

TEST(CompanionTest, WhatSuchAColumnCannotBeIsNamed) {
  const TableSpec spec = Owner(1);
  EXPECT_OK(ValidateCompanion(spec, Blob(7)));
  Column column = Blob(0);
  column.default_value = 1;
  EXPECT_STATUS(kInvalidArgument, ValidateCompanion(spec, column), "that of a ragged column");
  column = {.name = "step", .expected_rows = 3};
  EXPECT_STATUS(kInvalidArgument, ValidateCompanion(spec, column), "neither ragged nor a blob");
  EXPECT_STATUS(kInvalidArgument, ValidateCompanion(spec, Blob(kValueRowsMax + 1)), "at most");
  TableSpec late = spec;
  late.groups = {{.name = "g", .late = true}, {.name = "v", .is_volatile = true}};
  column = Ragged(0);
  EXPECT_OK(ValidateCompanion(late, column));
  column.group = "g";
  EXPECT_OK(ValidateCompanion(late, column));
  column.group = "v";
  EXPECT_STATUS(kUnsupported, ValidateCompanion(late, column), "'v', which is volatile");
}

TEST(CompanionTest, NoUserHasItsName) {
  const TableSpec spec = CompanionSpec(Owner(1), Blob(0));
  EXPECT_EQ(spec.name, "t', column 'b");
  EXPECT_STATUS(kInvalidArgument, ValidateTableSpec(spec), "has characters outside");
}

}  // namespace
}  // namespace geardb::engine
