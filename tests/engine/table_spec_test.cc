// Table::spec: what a table is now, its priority tables included.
#include <gtest/gtest.h>

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
