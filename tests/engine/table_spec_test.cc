// Table::spec: what a table is now, its priority tables included.
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "tests/testing/store_fixture.h"

namespace geardb::testing {
namespace {

/// Two priority tables that differ from the defaults.
TableSpec SpecWithPriorities() {
  TableSpec spec = StepSpec(true);
  spec.steps_max = 1000;
  spec.priority_tables = {WindowSpec("second", {.before = 1, .length = 3, .after = 1}),
                          WindowSpec("first")};
  spec.priority_tables[0].window.stride = 2;
  spec.priority_tables[1].selector = SelectorKind::kUniform;
  return spec;
}

using TableSpecTest = StoreTest;

TEST_F(TableSpecTest, NamesThePriorityTablesThatTheTableWasMadeWith) {
  const TableSpec spec = SpecWithPriorities();
  Create(spec);
  EXPECT_EQ(table_->spec(), spec);
  Reopen();
  OpenAgain(spec.name);
  EXPECT_EQ(table_->spec(), spec);
}

TEST_F(TableSpecTest, NamesThoseThatWereAddedAfterThem) {
  TableSpec spec = SpecWithPriorities();
  Create(spec);
  PriorityTableSpec added = WindowSpec("added");
  added.initial = InitialPriority::kColumn;
  added.initial_priority_column = "score";
  ASSERT_OK(table_->CreatePriorityTable(added));
  spec.priority_tables.push_back(added);
  EXPECT_EQ(table_->spec(), spec);
  Reopen();
  OpenAgain(spec.name);
  EXPECT_EQ(table_->spec(), spec);
  EXPECT_OK(database_->OpenOrCreateTable(table_->spec()));
}

TEST_F(TableSpecTest, HasThePageSizeThatWasChosen) {
  TableSpec spec = StepSpec();
  spec.steps_per_page = 0;
  spec.expected_steps = 100;
  Create(spec);
  EXPECT_EQ(table_->spec().steps_per_page, table_->steps_per_page());
  EXPECT_NE(table_->steps_per_page(), 0u);
}

TEST_F(TableSpecTest, ATableMadeFromItIsEqual) {
  Create(SpecWithPriorities());
  ASSERT_OK(table_->CreatePriorityTable(WindowSpec("added")));
  TableSpec spec = table_->spec();
  spec.name = "twin";
  ASSERT_OK_AND_ASSIGN(const auto twin, database_->CreateTable(spec));
  EXPECT_EQ(twin->spec(), spec);
  EXPECT_EQ(twin->PriorityTables(), table_->PriorityTables());
  for (const PriorityTableSpec& priority_spec : spec.priority_tables) {
    EXPECT_EQ(twin->priority_table(priority_spec.name)->spec(), priority_spec);
  }
}

// It was stored as 0: the table was refused to whoever asked for it by its own spec.
TEST_F(TableSpecTest, HasDefaultsOfNegativeZero) {
  TableSpec spec = StepSpec();
  spec.groups = {{.name = "late", .late = true}};
  spec.columns.push_back({.name = "late", .group = "late", .default_value = -0.0});
  spec.columns.push_back(
      {.name = "whole", .kind = ColumnKind::kPerTrajectory, .default_value = -0.0});
  spec.columns.push_back({.name = "count", .dtype = DType::kI32, .default_value = -0.0});
  Create(spec);
  const Column added = {.name = "added", .default_value = -0.0};
  ASSERT_OK(table_->AddColumns({&added, 1}));
  spec = table_->spec();
  const Rows rows(0, 1);
  std::vector<ColumnValue> values = rows.one();
  const int32_t count = 0;
  values.push_back({"count", TensorView::Scalar(count)});
  ASSERT_OK_AND_ASSIGN(const Appended appended, writer_->Append(values, {.end = End::kTerminated}));
  for (int open = 0; open < 2; ++open) {
    EXPECT_OK(database_->OpenOrCreateTable(spec));
    const std::string_view names[] = {"late", "whole", "added"};
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(appended.id, names, {}));
    for (const auto& column : read) {
      EXPECT_TRUE(std::signbit(column.view().values<float>()[0])) << column.column;
    }
    Reopen();
    OpenAgain(spec.name);
  }
  spec.columns.back().default_value = 0;
  EXPECT_STATUS(kFailedPrecondition, database_->OpenOrCreateTable(spec), "default -0");
}

TEST_F(TableSpecTest, OutlivesTheTable) {
  const TableSpec spec = SpecWithPriorities();
  Create(spec);
  ASSERT_OK(database_->DropTable(spec.name));
  EXPECT_EQ(table_->spec(), spec);
  const TableSpec kept = table_->spec();
  writer_.reset();
  table_.reset();
  EXPECT_EQ(kept, spec);
}

}  // namespace
}  // namespace geardb::testing
