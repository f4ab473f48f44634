// A Set or SetAll of any size is one event: whatever interrupts it, all of it is there or nothing.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "base/crash_point.h"
#include "engine/database.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb {
namespace {

using testing::CrashKind;
using testing::FaultEnv;

// 80 KB of priorities, 320 KB of items: several times the ring, whose records have at most 8 KiB.
constexpr int64_t kItems = 20'000;
constexpr uint64_t kRingBytes = 32 << 10;

/// Sets every item, by whichever call.
using SetCall = std::function<Status(PriorityTable*, const std::vector<float>&)>;

Status SetByRow(PriorityTable* table, const std::vector<float>& priorities) {
  return table->Set(table->Items(), priorities).status();
}
Status SetAll(PriorityTable* table, const std::vector<float>& priorities) {
  return table->SetAll(priorities).status();
}

class FaultSetTest : public ::testing::Test {
 protected:
  FaultSetTest() {
    options_.budgets.frames_bytes = 16 << 20;
    options_.budgets.index_bytes = 16 << 20;
    options_.segment_bytes = 64 << 10;
    options_.ring_bytes = kRingBytes;
    options_.background = false;
  }

  void Open(FaultEnv* env) {
    options_.env = env;
    ASSERT_OK_AND_ASSIGN(database_, Database::Open("store", options_));
    TableSpec spec;
    spec.name = "t";
    spec.columns = {{.name = "value", .dtype = DType::kU8}};
    spec.steps_per_page = 256;
    spec.priority_tables = {{.name = "per"}};
    ASSERT_OK_AND_ASSIGN(table_, database_->OpenOrCreateTable(spec));
    per_ = table_->priority_table("per");
  }
  void Forget(FaultEnv* env) {
    env->Die();
    per_.reset();
    table_.reset();
    database_.reset();
  }

  /// A store with kItems items of priority 1, synced.
  void Fill(FaultEnv* env) {
    Open(env);
    ASSERT_OK_AND_ASSIGN(const auto writer, table_->NewWriter({}));
    const std::vector<uint8_t> values(kItems);
    const std::vector<ColumnValue> rows = {{"value", TensorView::Of<uint8_t>(values, {kItems})}};
    ASSERT_OK(writer->AppendTrajectory(rows, {.end = End::kTerminated, .ack = Ack::kSync}));
  }

  std::vector<float> Priorities() {
    std::vector<float> found;
    for (const RowId& item : per_->Items()) found.push_back(*per_->Priority(item));
    return found;
  }

  /// Calls it once and looks at what a crash at each point of the way would have left.
  void InterruptEverywhere(CrashKind kind, const SetCall& call) {
    const std::vector<float> before(kItems, 1);
    std::vector<float> after(kItems);
    std::iota(after.begin(), after.end(), 2.0f);
    Fill(&env_);
    if (HasFatalFailure()) return;
    copies_.kind = kind;
    now_ = this;
    SetCrashHook(&CopyNow);
    const Status set = call(per_.get(), after);
    SetCrashHook(nullptr);
    ASSERT_OK(set);
    Forget(&env_);
    ASSERT_GE(copies_.made.size(), 20u);
    for (size_t i = 0; i < copies_.made.size(); ++i) {
      SCOPED_TRACE("interrupted at point " + std::to_string(i));
      for (int opened = 0; opened < 2; ++opened) {
        Open(copies_.made[i].get());
        if (HasFatalFailure()) return;
        const std::vector<float> found = Priorities();
        ASSERT_TRUE(found == before || found == after) << "a part of it is there";
        Forget(copies_.made[i].get());
        copies_.made[i]->Crash(CrashKind::kProcess);
      }
    }
    // What was acknowledged at log, the death of the process does not take.
    env_.Crash(CrashKind::kProcess);
    Open(&env_);
    EXPECT_TRUE(Priorities() == after);
  }

  static void CopyNow(const char*) {
    Copies& copies = now_->copies_;
    copies.made.push_back(now_->env_.CopyAfterCrash(copies.kind, copies.made.size()));
  }
  static inline FaultSetTest* now_ = nullptr;

  struct Copies {
    CrashKind kind = CrashKind::kProcess;
    std::vector<std::unique_ptr<FaultEnv>> made;
  };
  // These outlive the database.
  FaultEnv env_{1};
  Copies copies_;
  DatabaseOptions options_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
  std::shared_ptr<PriorityTable> per_;
};

TEST_F(FaultSetTest, DeathInTheMiddleOfASet) { InterruptEverywhere(CrashKind::kProcess, SetByRow); }
TEST_F(FaultSetTest, DeathInTheMiddleOfASetAll) {
  InterruptEverywhere(CrashKind::kProcess, SetAll);
}

// Nothing is acknowledged at sync: the power loss decides which of the two is found.
TEST_F(FaultSetTest, PowerLossInTheMiddleOfASet) {
  InterruptEverywhere(CrashKind::kPowerLoss, SetByRow);
}
TEST_F(FaultSetTest, PowerLossInTheMiddleOfASetAll) {
  InterruptEverywhere(CrashKind::kPowerLoss, SetAll);
}

}  // namespace
}  // namespace geardb
