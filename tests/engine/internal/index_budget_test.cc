// The budget that an error names is enough: nobody raises it twice for one table.
#include "engine/internal/index_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/testing/fault_env.h"
#include "tests/testing/named_number.h"
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
  static uint64_t EnoughOf(const Status& refused) {
    const auto named = testing::NumberBehind("raise it to ", refused);
    EXPECT_TRUE(named) << refused;
    return named.value_or(64 * kMiB);
  }

  FaultEnv env_{1};
};

TEST_F(IndexBudgetTest, TheIndexBudgetThatAnErrorNamesIsEnough) {
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
            options_.budgets.index_bytes = EnoughOf(first);
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
        options_.budgets.index_bytes = EnoughOf(later);
        Reopen();
        OpenAgain(spec.name);
        EXPECT_OK(table_->CreatePriorityTable(WindowSpec("last")));
      }
    }
  }
}

// It named the next piece of memory alone, and so hundreds of opens later that of the last one.
TEST_F(IndexBudgetTest, AnOpenNamesWhatWasUsedWhenItWasOpenLast) {
  OpenEmpty();
  for (int i = 0; i < 8; ++i) {
    TableSpec spec = StepSpec();
    spec.name = "t" + std::to_string(i);
    spec.priority_tables = {WindowSpec("p")};
    ASSERT_OK(database_->CreateTable(spec));
  }
  OpenAgain("t0");
  for (int64_t i = 0; i < 4000; ++i) AppendClosed(i, 1);
  // A process that dies leaves no numbers: twice the budget is named, and soon enough.
  const auto died = env_.CopyAfterCrash(testing::CrashKind::kProcess, 1);
  DatabaseOptions options = options_;
  options.env = died.get();
  options.budgets.index_bytes = kMiB / 16;
  int tries = 0;
  for (Status refused;; options.budgets.index_bytes = EnoughOf(refused), ++tries) {
    refused = Database::Open(dir_->path(), options).status();
    if (refused.ok() || tries == 8) break;
    EXPECT_STATUS(kResourceExhausted, refused, "is not known");
  }
  EXPECT_GT(tries, 2);
  EXPECT_LT(tries, 8);
  Close();
  for (const uint64_t budget : {kMiB / 16, kMiB}) {
    options_.budgets.index_bytes = budget;
    const Status refused = Database::Open(dir_->path(), options_).status();
    EXPECT_STATUS(kResourceExhausted, refused, "that it wrote last, it used ");
    options_.budgets.index_bytes = EnoughOf(refused);
    EXPECT_GT(options_.budgets.index_bytes, budget);
    EXPECT_OK(Database::Open(dir_->path(), options_));
  }
}

// Numbers that one table had taken ahead were lacking for another when the log was replayed.
TEST_F(IndexBudgetTest, AnOpenFitsTheBudgetThatWasFilled) {
  std::mt19937_64 random(1);
  for (uint64_t budget = kMiB / 2; budget <= kMiB; budget += kMiB / 16) {
    SCOPED_TRACE(budget);
    options_.budgets.index_bytes = budget;
    OpenEmpty();
    std::vector<std::unique_ptr<Writer>> writers;
    for (int i = 0; i < 3; ++i) {
      TableSpec spec = StepSpec();
      spec.name = "t" + std::to_string(i);
      spec.expected_steps = 16;
      spec.priority_tables = {WindowSpec("p")};
      spec.columns.push_back({.name = "b", .dtype = DType::kU8, .kind = ColumnKind::kBlob});
      Create(spec, {.admission_timeout_ms = 0});
      writers.push_back(std::move(writer_));
    }
    for (int refused = 0; refused < 20;) {
      const testing::Rows rows(0, 1 + static_cast<int64_t>(random() % 30));
      const std::vector<uint8_t> bytes(random() % 50);
      const ColumnValue blob{"b", TensorView::Of(std::span<const uint8_t>(bytes))};
      const auto appended = writers[random() % 3]->AppendSteps(
          rows.many(), {.end = End::kTerminated, .trajectory = {&blob, 1}});
      refused += appended.ok() ? 0 : 1;
    }
    const uint64_t used = database_->Stats().index.used_bytes;
    writers.clear();
    table_.reset();
    ASSERT_OK(database_->Close());
    auto reopened = Database::Open(dir_->path(), options_);
    ASSERT_OK(reopened);
    EXPECT_LE((*reopened)->Stats().index.used_bytes, used);
  }
}

}  // namespace
}  // namespace geardb
