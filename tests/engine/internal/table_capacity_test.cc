#include "engine/internal/table_capacity.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/matchers.h"
#include "tests/testing/named_number.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

TEST(TableCapacityTest, IsWhatABudgetHoldsOfPagesAndTrajectories) {
  ASSERT_OK_AND_ASSIGN(const auto memory, index::IndexMemory::Create({.budget_bytes = 1 << 20}));
  EXPECT_EQ(LpnCapacityOf(*memory), (1u << 20) / 72);
  EXPECT_EQ(SlotCapacityOf(*memory), (1u << 20) / 152);
  ASSERT_OK_AND_ASSIGN(const auto least, index::IndexMemory::Create({.budget_bytes = 1}));
  EXPECT_EQ(LpnCapacityOf(*least), 1024u);
  EXPECT_EQ(SlotCapacityOf(*least), 1024u);
}

class ManyTablesTest : public testing::StoreTest {};

// Each took addresses for 2^33 numbers, and 64 KiB of each of its parts: 53 were possible.
TEST_F(ManyTablesTest, HundredsFitSixtyFourMiB) {
  options_.budgets.frames_bytes = uint64_t{1} << 30;
  options_.budgets.index_bytes = uint64_t{64} << 20;
  OpenEmpty();
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {testing::WindowSpec("p")};
  size_t tables = 0;
  Status status;
  // A larger budget has room for a few more, and one that is large enough for none.
  for (int budgets = 0; budgets < 5; ++budgets) {
    for (status = Status::Ok(); tables < 1000 && status.ok(); ++tables) {
      spec.name = "t" + std::to_string(tables);
      status = database_->CreateTable(spec).status();
    }
    --tables;
    EXPECT_GT(tables, 300u);
    ASSERT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
    const auto named = testing::NumberBehind("raise it to ", status);
    options_.budgets.index_bytes = named.value_or(options_.budgets.index_bytes);
    Reopen();
    EXPECT_EQ(database_->Tables().size(), tables);
    if (!named) break;
  }
  EXPECT_STATUS(kResourceExhausted, status, "tables that there are, whatever budgets.index_bytes");
}

}  // namespace
}  // namespace geardb::engine
