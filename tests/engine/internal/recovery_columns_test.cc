// Changes of columns as a hostile log might hold them.
#include "engine/internal/stored_schema.h"
#include "tests/engine/internal/recovery_fixture.h"

namespace geardb::engine {
namespace {

class RecoveryColumnsTest : public RecoveryFixture {
 protected:
  struct StoredColumn {
    const char* name = nullptr;
    uint16_t group = 0;
    uint8_t kind = 0;
    uint8_t dtype = static_cast<uint8_t>(DType::kF32);
    std::vector<int64_t> shape = {};
    uint32_t companion = 0;
  };
  Status Add(const std::vector<StoredColumn>& columns, const std::vector<std::string>& groups = {},
             bool late = false) {
    std::vector<flatbuffers::Offset<fb::Column>> stored;
    for (const StoredColumn& column : columns) {
      const auto name = column.name != nullptr ? builder_.CreateString(column.name) : 0;
      stored.push_back(fb::CreateColumn(builder_, name, column.dtype,
                                        builder_.CreateVector(column.shape), column.kind, false,
                                        column.group, 0, 0, 0, 0, 0, column.companion));
    }
    std::vector<flatbuffers::Offset<fb::ColumnGroup>> of_groups;
    for (const std::string& group : groups) {
      of_groups.push_back(
          fb::CreateColumnGroup(builder_, builder_.CreateString(group), late, false));
    }
    const auto columns_offset = builder_.CreateVector(stored);
    const auto groups_offset = builder_.CreateVector(of_groups);
    return Feed(fb::Change::AddColumns,
                fb::CreateAddColumns(builder_, columns_offset, groups_offset, ids_end_, 1 << 20));
  }
  Status Drop(const std::vector<std::string>& names) {
    return Feed(fb::Change::DropColumns,
                fb::CreateDropColumns(builder_, builder_.CreateVectorOfStrings(names)));
  }
  uint64_t ids_end_ = 1 << 20;
  void ExpectSpec(size_t columns, uint32_t version) {
    MutexLock lock(&steps().mutex);
    EXPECT_EQ(steps().WholeSpec().columns.size(), columns);
    EXPECT_EQ(steps().layout().version(), version);
  }
};

TEST_F(RecoveryColumnsTest, ChangesAreTakenUpAndAppendsAreOfTheirTime) {
  CreateSteps();
  ASSERT_OK(Add({{.name = "x", .group = 1}, {.name = "y", .kind = 1}}, {"more"}));
  ExpectSpec(7, 1);
  ASSERT_OK(Feed(Begins(1, 0, 3)));  // Of a writer that knows neither.
  AppendParts known = Begins(2, 1, 2);
  known.pieces.push_back(fb::PieceRows(kNoLsn, 1, 22, 0, 2, 1));
  known.piece_bytes = {32, 8};
  ExpectRefused(known, "pieces");
  known.column_changes = 1;
  ASSERT_OK(Feed(known));
  // The first goes on with a writer that knows the group, in the middle of a page.
  AppendParts on;
  on.rows = {fb::Rows(0, 11, 3, 1, 0, false, false)};
  on.pieces = {fb::PieceRows(kNoLsn, 0, 21, 3, 1, 0), fb::PieceRows(kNoLsn, 0, 21, 3, 1, 1)};
  on.piece_bytes = {16, 4};
  on.column_changes = 1;
  ASSERT_OK(Feed(on));
  ASSERT_OK(Drop({"x", "reward"}));
  ExpectSpec(5, 2);
  // One that knows the group goes on having it, others do not; "reward" has its place.
  AppendParts old = Begins(3, 2, 1);
  old.pieces.push_back(fb::PieceRows(kNoLsn, 2, 23, 0, 1, 1));
  old.piece_bytes = {16, 4};
  old.column_changes = 1;
  ASSERT_OK(Feed(old));
  AppendParts next = Begins(4, 3, 1);
  next.column_changes = 2;
  ASSERT_OK(Feed(next));
  next = Begins(5, 4, 1);
  next.column_changes = 3;
  ExpectRefused(next, "those after 3 changes of them; there were 2");
}

TEST_F(RecoveryColumnsTest, WhatIsNoChangeIsRefused) {
  CreateSteps();
  const auto refused = [&](const Status& status, std::string_view why) {
    EXPECT_STATUS(kCorruption, status, why);
    EXPECT_STATUS(kCorruption, status, "the record at LSN ");
    ExpectSpec(5, 0);
  };
  refused(Add({}), "no columns are to be added");
  refused(Add({{.name = nullptr, .group = 1}}, {"g"}), "a column that is none");
  refused(Add({{.name = "x", .group = 0}}), "in group 0, which does not come with it");
  refused(Add({{.name = "x", .group = 2}}, {"g"}), "in group 2, which does not come with it");
  refused(Add({{.name = "x", .group = 1, .kind = 1}}, {"g"}), "does not come with it");
  refused(Add({{.name = "x", .group = 1}}, {"g", "h"}), "no column is in group 'h'");
  refused(Add({{.name = "x", .group = 1}}, {"g", "g"}), "no column is in group 'g'");
  refused(Add({{.name = "x", .group = 1}}, {""}), "no column is in group ''");
  refused(Add({{.name = "obs", .group = 1}}, {"g"}), "two columns named 'obs'");
  refused(Add({{.name = "x", .group = 1, .dtype = 99}}, {"g"}), "unknown dtype");
  refused(Add({{.name = "x", .group = 1, .kind = 7}}, {"g"}), "does not come with it");
  refused(Add({{.name = "x", .group = 1, .shape = {-1}}}, {"g"}), "dimensions must be positive");
  refused(Drop({}), "no columns are to be dropped");
  refused(Drop({"nothing"}), "has no column 'nothing'");
  refused(Drop({"obs", "action", "reward"}), "no per-step column");
  refused(Drop({std::string(300, 'x')}), "a name of 300 characters");
}

TEST_F(RecoveryColumnsTest, CompanionsComeUnderNumbersOfTheirOwn) {
  CreateSteps();
  constexpr auto kBlob = static_cast<uint8_t>(ColumnKind::kBlob);
  constexpr auto kWhole = static_cast<uint8_t>(ColumnKind::kPerTrajectory);
  const auto blob = [](uint32_t companion) {
    return StoredColumn{.name = "blob", .kind = kBlob, .companion = companion};
  };
  EXPECT_STATUS(kCorruption, Add({blob(0)}), "column 'blob' with its values in table 0");
  EXPECT_STATUS(kCorruption, Add({{.name = "x", .kind = kWhole, .companion = 9}}),
                "column 'x' with its values in table 9");
  EXPECT_STATUS(kCorruption, Add({{.name = "x", .group = 0, .companion = 9}}), "");
  ids_end_ = UINT64_MAX;
  EXPECT_STATUS(kCorruption, Add({blob(9)}), "are promised");
  ids_end_ = 1 << 20;
  ASSERT_OK(Add({blob(9)}));
  EXPECT_EQ(feed_.core().NextTableId(), 10u);
  ASSERT_NE(feed_.core().TableById(9), nullptr);
  EXPECT_EQ(feed_.core().TableById(9)->plan->ids_end, ids_end_);
  ASSERT_OK(Drop({"blob"}));
  EXPECT_EQ(feed_.core().TableById(9), nullptr);
  EXPECT_EQ(feed_.core().NextTableId(), 10u);
  EXPECT_STATUS(kCorruption, Add({blob(9)}), "table 9 of column 'blob' is created after table 9");
}

TEST_F(RecoveryColumnsTest, NoCompanionComesTwice) {
  CreateSteps();
  constexpr auto kBlob = static_cast<uint8_t>(ColumnKind::kBlob);
  EXPECT_STATUS(kCorruption,
                Add({{.name = "a", .kind = kBlob, .companion = 9},
                     {.name = "b", .kind = kBlob, .companion = 9}}),
                "table 9 of column 'b' is created after table 9");
}

TEST_F(RecoveryColumnsTest, WhatAPriorityTableNeedsDoesNotLeave) {
  CreateSteps();
  ASSERT_OK(Add({{.name = "x", .group = 1}}, {"late"}, /*late=*/true));
  PriorityTableSpec spec = testing::WindowSpec("waits");
  spec.required = {"late", "version"};
  ASSERT_OK(CreatePriorityTable(spec, 1));
  EXPECT_STATUS(kCorruption, Drop({"x"}), "'waits' requires group 'late'");
  EXPECT_STATUS(kCorruption, Drop({"version"}), "'waits' requires column 'version'");
  ASSERT_OK(Drop({"score"}));
}

TEST_F(RecoveryColumnsTest, ColumnsWithLargeNumbersAreNotRequired) {
  CreateSteps();
  for (int k = 0; k < 64; ++k) {
    ASSERT_OK(Add({{.name = "y", .kind = 1}}));
    ASSERT_OK(Drop({"y"}));
  }
  ASSERT_OK(Add({{.name = "y", .kind = 1}}));
  PriorityTableSpec spec = testing::WindowSpec("waits");
  spec.required = {"y"};
  EXPECT_STATUS(kCorruption, CreatePriorityTable(spec, 1), "number 66, dropped ones counted");
}

}  // namespace
}  // namespace geardb::engine
