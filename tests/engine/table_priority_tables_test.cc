// Table::PriorityTables: the names of what draws from a table.
#include <gtest/gtest.h>

#include "tests/testing/store_fixture.h"

namespace geardb::testing {
namespace {

using PriorityTablesTest = StoreTest;

TEST_F(PriorityTablesTest, AreNamedInOrderOfCreation) {
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("second"), WindowSpec("first")};
  Create(spec);
  ASSERT_OK(table_->CreatePriorityTable(WindowSpec("another")));
  const std::vector<std::string> expected = {"second", "first", "another"};
  EXPECT_EQ(table_->PriorityTables(), expected);
  Reopen();
  OpenAgain(spec.name);
  EXPECT_EQ(table_->PriorityTables(), expected);
}

TEST_F(PriorityTablesTest, AreNoneWhereNoneWasCreated) {
  Create(StepSpec());
  EXPECT_TRUE(table_->PriorityTables().empty());
}

}  // namespace
}  // namespace geardb::testing
