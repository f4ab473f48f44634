// Children that write to a cold store, with flushes at random and RocksDB's own between them, are
// killed with SIGKILL at any time, at the points of a reclamation, and between a change of the
// manifest and that of its copy. What an open finds must be the batches up to its flushed LSN,
// exactly.
//
// GEARDB_COLD_KILLS sets the number of children, GEARDB_COLD_KILL_SEED what they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>

#include "engine/internal/cold_store.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/killed_child.h"
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
                                   nullptr, "cold_covered", nullptr, "cold_manifest_copy"};

struct Shared {
  std::atomic<uint64_t> written{0};  // The step whose batch was written last.
  std::atomic<uint64_t> flushed{0};  // The step that a call of Flush has covered last.
  std::atomic<uint64_t> own{0};      // Flushes that nobody has asked for.
};

class ColdStoreCrashTest : public ::testing::Test {
 protected:
  /// In the child: goes on where the store is, until it is killed.
  Status Work(const std::string& directory, ColdModel model, uint64_t round) {
    GEARDB_ASSIGN_OR_RETURN(const auto store, ColdStore::Open(directory, SmallColdOptions()));
    if (store->flushed_lsn() != ColdModel::LsnOf(model.step())) {
      return Status::Internal("the child found another LSN");
    }
    Random random(round);
    const uint64_t flush_one_in = random.OneIn(3) ? 60 : 6;
    uint64_t asked = 0;
    for (int steps = 0; steps < 20000; ++steps) {
      ColdBatch batch(*store);
      GEARDB_RETURN_IF_ERROR(model.Step(&batch));
      GEARDB_RETURN_IF_ERROR(store->Write(&batch, ColdModel::LsnOf(model.step())));
      shared_->written.store(model.step());
      if (random.OneIn(flush_one_in)) {
        ++asked;
        GEARDB_RETURN_IF_ERROR(store->Flush());
        shared_->flushed.store(model.step());
      }
      if (random.OneIn(150)) GEARDB_RETURN_IF_ERROR(store->CompactForSpace());
      const uint64_t flushes = store->stats().flushes;
      shared_->own.store(flushes > 3 * asked ? flushes : 0);
    }
    return Status::Internal("the child was not killed");
  }

  /// Runs a child until it dies.
  void KillAChild(const std::string& directory, const ColdModel& model, uint64_t round) {
    Random random(round + 77);
    const char* const point = kPoints[round % std::size(kPoints)];
    const uint64_t until = model.step() + random.Below(random.OneIn(3) ? 10 : 150);
    const testing::Death death = {point, 1 + static_cast<int64_t>(random.Below(5))};
    std::function<bool()> due;
    if (point == nullptr) due = [&] { return shared_->written.load() >= until; };
    const testing::ChildEnd end = testing::RunChild(
        death, [&] { return Work(directory, model, round); }, due);
    ++kills_[end == testing::ChildEnd::kAtPoint ? point : "any time"];
  }

  testing::SharedWithChildren<Shared> shared_;
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
    shared_.Reset();
    shared_->written.store(model->step());  // It may die while it opens the store.
    KillAChild(dir->File("cold"), *model, round);
    if (HasFailure()) return;
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
