// Children that write to a cold store, with flushes at random and RocksDB's own between them, are
// killed with SIGKILL at any time and at the points of a reclamation. What an open finds must be
// the batches up to its flushed LSN, exactly.
//
// GEARDB_COLD_KILLS sets the number of children, GEARDB_COLD_KILL_SEED what they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>

#include "base/crash_point.h"
#include "engine/internal/cold_store.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::ColdModel;
using testing::FromEnvironment;
using testing::Random;
using testing::SmallColdOptions;
using testing::TempDir;

constexpr uint64_t kRoundsPerDirectory = 12;
// Null: at any time. The others must each be hit.
constexpr const char* kPoints[] = {nullptr, "cold_flushed", nullptr, "cold_files_dropped",
                                   nullptr, "cold_covered"};

struct Shared {
  std::atomic<uint64_t> written{0};  // The step whose batch was written last.
  std::atomic<uint64_t> flushed{0};  // The step that a call of Flush has covered last.
  std::atomic<uint64_t> own{0};      // Flushes that nobody has asked for.
  std::atomic<uint32_t> hit{0};
  std::atomic<uint32_t> failed{0};
  char why[512] = {};
};

Shared* hook_shared = nullptr;
const char* hook_point = nullptr;
std::atomic<int64_t> hook_hits{0};

void DieAtPoint(const char* name) {
  if (std::strcmp(name, hook_point) != 0 || hook_hits.fetch_sub(1) != 1) return;
  hook_shared->hit.store(1);
  ::kill(::getpid(), SIGKILL);
}

class ColdStoreCrashTest : public ::testing::Test {
 protected:
  ColdStoreCrashTest() {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    GEARDB_CHECK(memory != MAP_FAILED);
    shared_ = new (memory) Shared();
  }
  ~ColdStoreCrashTest() override { ::munmap(shared_, sizeof(Shared)); }

  void GiveUp(const std::string& why) {
    if (shared_->failed.fetch_add(1) != 0) return;
    std::snprintf(shared_->why, sizeof(shared_->why), "%s", why.c_str());
  }

  /// In the child: goes on where the store is, until it is killed.
  void Work(const std::string& directory, ColdModel model, uint64_t round) {
    auto store = ColdStore::Open(directory, SmallColdOptions());
    if (!store.ok()) return GiveUp("open: " + store.status().ToString());
    if ((*store)->flushed_lsn() != ColdModel::LsnOf(model.step())) {
      return GiveUp("the child found another LSN");
    }
    Random random(round);
    const uint64_t flush_one_in = random.OneIn(3) ? 60 : 6;
    uint64_t asked = 0;
    for (int steps = 0; steps < 20000; ++steps) {
      ColdBatch batch(**store);
      Status status = model.Step(&batch);
      if (status.ok()) status = (*store)->Write(&batch, ColdModel::LsnOf(model.step()));
      shared_->written.store(model.step());
      if (status.ok() && random.OneIn(flush_one_in)) {
        status = (*store)->Flush();
        ++asked;
        if (status.ok()) shared_->flushed.store(model.step());
      }
      if (status.ok() && random.OneIn(150)) status = (*store)->CompactForSpace();
      if (!status.ok()) return GiveUp("step: " + status.ToString());
      const uint64_t flushes = (*store)->stats().flushes;
      shared_->own.store(flushes > 3 * asked ? flushes : 0);
    }
  }

  /// Runs a child until it dies.
  void RunChild(const std::string& directory, const ColdModel& model, uint64_t round) {
    Random random(round + 77);
    const char* const point = kPoints[round % std::size(kPoints)];
    const uint64_t until = model.step() + random.Below(random.OneIn(3) ? 10 : 150);
    const int64_t hits = 1 + static_cast<int64_t>(random.Below(5));
    const pid_t child = ::fork();
    GEARDB_CHECK(child >= 0);
    if (child == 0) {
      hook_shared = shared_;
      hook_point = point;
      hook_hits.store(hits);
      if (point != nullptr) SetCrashHook(&DieAtPoint);
      Work(directory, model, round);
      ::_exit(3);
    }
    int how = 0;
    bool killed = false;
    // One that dies by itself is waited for without taking its processor.
    while (::waitpid(child, &how, point == nullptr && !killed ? WNOHANG : 0) == 0) {
      if (shared_->written.load() >= until) {
        ::kill(child, SIGKILL);
        killed = true;
      }
      ::sched_yield();
    }
    ASSERT_EQ(shared_->failed.load(), 0u) << shared_->why;
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << "status " << how;
    ++kills_[shared_->hit.load() != 0 ? point : "any time"];
  }

  Shared* shared_ = nullptr;
  std::map<std::string, uint64_t> kills_;
};

TEST_F(ColdStoreCrashTest, AnOpenFindsTheBatchesUpToTheFlushedLsnExactly) {
  const uint64_t first_seed = FromEnvironment("GEARDB_COLD_KILL_SEED", 1);
  const uint64_t kills = FromEnvironment("GEARDB_COLD_KILLS", testing::ShareOf(30));
  std::unique_ptr<TempDir> dir;
  std::unique_ptr<ColdModel> model;
  uint64_t own_flushes = 0;
  uint64_t lost = 0;
  for (uint64_t round = 0; round < kills; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const uint64_t seed = first_seed + round / kRoundsPerDirectory;
    if (round % kRoundsPerDirectory == 0) {
      dir = std::make_unique<TempDir>();
      model = std::make_unique<ColdModel>(seed);
    }
    new (shared_) Shared();
    ASSERT_NO_FATAL_FAILURE(RunChild(dir->File("cold"), *model, round));
    own_flushes += shared_->own.load();
    for (int open = 0; open < 2; ++open) {
      ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(dir->File("cold"), SmallColdOptions()));
      const uint64_t step = store->flushed_lsn() / ColdModel::LsnOf(1);
      ASSERT_GE(step, shared_->flushed.load());
      ASSERT_LE(step, shared_->written.load() + 1);  // It may die before it says so.
      if (open == 0) lost += std::max(step, shared_->written.load()) - step;
      auto found = std::make_unique<ColdModel>(seed);
      found->StepTo(step);
      ASSERT_EQ(found->Compare(store.get()), "") << "open " << open << ", step " << step;
      ASSERT_THAT(store->damage(), ::testing::IsEmpty());
      model = std::move(found);
      if (open == 0 && round % 2 == 0) {
        ASSERT_OK(store->Close());
      }
    }
  }
  for (const auto& [name, count] : kills_) {
    std::printf("%8llu kills at %s\n", static_cast<unsigned long long>(count), name.c_str());
  }
  // The test has seen what it is for.
  for (const char* point : kPoints) {
    if (point != nullptr) {
      EXPECT_GT(kills_[point], 0u) << point;
    }
  }
  EXPECT_GT(own_flushes, 0u) << "RocksDB has never flushed by itself";
  EXPECT_GT(lost, 0u) << "nothing unflushed was ever lost";
}

}  // namespace
}  // namespace geardb::engine
