// The budget that an error names is enough: nobody raises it twice for one table.
#include "engine/internal/index_budget.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::FaultEnv;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class IndexBudgetTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.env = &env_;
    options_.background = false;
  }
  void TearDown() override { Close(); }

  FaultEnv env_{1};
};

TEST_F(IndexBudgetTest, TheIndexBudgetThatAnErrorNamesIsEnough) {
  const auto enough = [](const Status& status) {
    const std::string text(status.message());
    const std::string before = "raise it to ";
    const size_t at = text.find(before);
    EXPECT_NE(at, std::string::npos) << status;
    return at == std::string::npos ? 64 * kMiB : std::stoull(text.substr(at + before.size()));
  };
  for (const int tables : {1, 3}) {
    for (const int priority_tables : {0, 1, 20}) {
      for (const uint64_t budget : {uint64_t{64} << 10, kMiB, 2 * kMiB}) {
        SCOPED_TRACE(std::to_string(tables) + " tables with " + std::to_string(priority_tables));
        TableSpec spec = StepSpec();
        for (int i = 0; i < priority_tables; ++i) {
          spec.priority_tables.push_back(WindowSpec("p" + std::to_string(i)));
        }
        options_.budgets.index_bytes = budget;
        OpenEmpty();
        for (int i = 0; i < tables; ++i) {
          spec.name = "t" + std::to_string(i);
          const Status first = database_->CreateTable(spec).status();
          if (!first.ok()) {
            options_.budgets.index_bytes = enough(first);
            EXPECT_GT(options_.budgets.index_bytes, budget);
            Reopen();
            ASSERT_OK(database_->CreateTable(spec));
          }
          OpenAgain(spec.name);
          AppendClosed(0, 1);
        }
        // One more priority table than there is room for.
        Status later;
        for (int i = 0; i < 64 && later.ok(); ++i) {
          later = table_->CreatePriorityTable(WindowSpec("later" + std::to_string(i))).status();
        }
        if (later.ok()) continue;
        options_.budgets.index_bytes = enough(later);
        Reopen();
        OpenAgain(spec.name);
        EXPECT_OK(table_->CreatePriorityTable(WindowSpec("last")));
      }
    }
  }
}

}  // namespace
}  // namespace geardb
