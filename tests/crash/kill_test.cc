// The kill test: children that run a random workload from several threads are killed with SIGKILL,
// when they have begun some number of operations and at named points (base/crash_point.h), opens
// included. The oracle lives in this process, which shares with its children only the entries of
// their operations. After each death the directory is opened twice and compared with the oracle.
//
// GEARDB_KILLS sets the number of children (default 120), GEARDB_KILL_SEED what they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <thread>

#include "tests/testing/drop_frames.h"
#include "tests/testing/engine_actor.h"
#include "tests/testing/engine_oracle.h"
#include "tests/testing/killed_child.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

using testing::EngineActor;
using testing::EngineOracle;
using testing::FromEnvironment;
using testing::OpLog;
using testing::Random;
using testing::TempDir;

constexpr uint32_t kActors = 4;
constexpr uint64_t kRoundsPerDirectory = 10;
// In every third directory one actor is alone, which may call SetAll.
constexpr uint64_t kDirectoriesPerAlone = 3;
// Records near a quarter of the ring, the most that one may have: the ring fills.
constexpr uint32_t kLargeRows = 240;

struct Phase {
  const char* point;  // Null: whenever the operations begun reach a number.
  uint64_t hits_max;
  bool during_open = false;
  bool drains = false;
};
constexpr Phase kAnyTime = {nullptr, 0};
constexpr Phase kDrain = {"drain", 30};
// Each must be hit. The points that an open passes are hit in a child that does nothing else. Some
// it passes only where the one before has left published bytes in the ring that were not drained:
// that one dies as a drain begins, when there are always some.
constexpr Phase kPhases[] = {
    kAnyTime,
    {"copy_rows", 400},
    {"copy_into_ring", 400},
    kDrain,
    {"rotate", 2},
    {"sync_begun", 30},
    {"sync", 30},
    {"synced", 30},
    {"removal", 60},
    {"append_evicts", 60},
    {"tag", 8},
    {"patch", 60},
    {"clean", 3},
    {"index_chunk", 3},
    {"image_taken", 3},
    {"flush", 3},
    {"recycle", 3},
    {"compaction", 1},
    {"manifest", 2, true},
    {"recovery_read", 1, true},
    {"recovery_cut", 1, true, true},
    {"recovery_drain", 1, true, true},
    {"recovery_drained_some", 1, true, true},
    {"recovery_sync", 1, true},
    {"recovery_epoch", 1, true},
    {"recovery_serve", 1, true},
};

/// What parent and child share.
struct Shared {
  std::atomic<uint64_t> large_sets[kActors] = {};  // EngineActor::large_sets().
  std::atomic<uint64_t> large_patches[kActors] = {};
  OpLog logs[kActors];
};

DatabaseOptions SmallOptions(const TempDir&) {
  DatabaseOptions options;
  options.budgets.frames_bytes = 64 << 20;
  options.budgets.index_bytes = 64 << 20;
  options.segment_bytes = 64 << 10;
  options.ring_bytes = 32 << 10;
  options.sync_interval_ms = 5;
  options.log_bytes_max = 24 * options.segment_bytes;  // The cleaner has something to do.
  options.space_amplification_max = 1.01;              // And to compact.
  return options;
}

class KillTest : public ::testing::Test {
 protected:
  /// Runs `work` in a child until it dies.
  void KillAChild(const Phase& phase, uint64_t hits, const std::function<Status()>& work,
                  const std::function<bool()>& due = {}) {
    const testing::Death death = {phase.point, static_cast<int64_t>(hits)};
    switch (testing::RunChild(death, work, due)) {
      case testing::ChildEnd::kReturned:
        break;
      case testing::ChildEnd::kAtPoint:
        ++kills_[phase.point];
        break;
      case testing::ChildEnd::kKilled:
        ++kills_["random"];
        break;
    }
  }

  Status Workload(const DatabaseOptions& options, const std::string& directory, uint64_t seed) {
    GEARDB_ASSIGN_OR_RETURN(const auto db, Database::Open(directory, options));
    GEARDB_RETURN_IF_ERROR(testing::MakeOracleTables(db.get()));
    std::vector<Status> ends(oracle_->actors());
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < oracle_->actors(); ++i) {
      threads.emplace_back([&, i] { ends[i] = Act(db.get(), i, seed); });
    }
    for (std::thread& thread : threads) thread.join();
    for (Status& end : ends) GEARDB_RETURN_IF_ERROR(end);
    return Status::Ok();
  }

  /// What one thread of a child does.
  Status Act(Database* db, uint32_t i, uint64_t seed) {
    EngineActor actor({db, &shared_->logs[i], oracle_->first_op()}, oracle_->model(i),
                      seed * kActors + i);
    actor.set_alone(oracle_->actors() == 1);
    if (seed % 3 == 0) {  // The ring fills, and few ask for a sync, which drains it.
      actor.set_large_rows(kLargeRows);
      actor.set_acks({Ack::kMemory, Ack::kLog});
    }
    GEARDB_RETURN_IF_ERROR(actor.Begin());
    while (actor.Step()) {
      shared_->large_sets[i].store(actor.large_sets());
      shared_->large_patches[i].store(actor.large_patches());
    }
    return actor.failure();
  }

  uint64_t OperationsBegun() const {
    uint64_t begun = 0;
    for (const OpLog& log : shared_->logs) begun += log.started.load();
    return begun;
  }

  /// Opens the directory twice, and compares it with the oracle both times.
  void Verify(const DatabaseOptions& options, const std::string& directory) {
    std::vector<const OpLog*> logs;
    for (const OpLog& log : shared_->logs) logs.push_back(&log);
    for (int open = 0; open < 2; ++open) {
      auto db = Database::Open(directory, options);
      ASSERT_OK(db);
      // The second time every page that can be is read, from the log or the cold store.
      if (open == 1) testing::DropFrames(**db);
      const std::string wrong = oracle_->Check(db->get(), open == 0 ? logs : none_, {});
      ASSERT_EQ(wrong, "") << "at open " << open << " of " << directory;
      ASSERT_OK((*db)->Close());
    }
  }

  testing::SharedWithChildren<Shared> shared_;
  std::unique_ptr<EngineOracle> oracle_;
  const std::vector<const OpLog*> none_ = {};
  std::map<std::string, uint64_t> kills_;
};

TEST_F(KillTest, WhatWasAcknowledgedIsThereAndNothingElse) {
  const uint64_t first_seed = FromEnvironment("GEARDB_KILL_SEED", 1);
  std::unique_ptr<TempDir> dir;
  uint64_t large_sets = 0;
  uint64_t large_patches = 0;
  constexpr uint64_t kPhaseCount = std::size(kPhases);
  const uint64_t kills =
      FromEnvironment("GEARDB_KILLS", testing::ShareOf(std::max(uint64_t{120}, 4 * kPhaseCount)));
  for (uint64_t round = 0; round < kills; ++round) {
    const uint64_t seed = first_seed + round;
    SCOPED_TRACE("round " + std::to_string(round) +
                 ", GEARDB_KILL_SEED=" + std::to_string(first_seed));
    Random random(seed);
    if (round % kRoundsPerDirectory == 0) {
      dir = std::make_unique<TempDir>();
      const bool alone = round / kRoundsPerDirectory % kDirectoriesPerAlone == 1;
      oracle_ = std::make_unique<EngineOracle>(alone ? 1 : kActors);
    }
    const DatabaseOptions options = SmallOptions(*dir);
    const Phase& phase = kPhases[round % kPhaseCount];
    shared_.Reset();
    const Phase working = phase.drains ? kDrain : phase.during_open ? kAnyTime : phase;
    const uint64_t begun_max = 1 + random.Below(random.OneIn(3) ? 50 : 1500);
    const bool late = working.point != nullptr;
    KillAChild(
        working, 1 + random.Below(working.hits_max),
        [&] { return Workload(options, dir->path(), seed); },
        [&] { return OperationsBegun() >= (late ? 6000 : begun_max); });
    for (const auto& count : shared_->large_sets) large_sets += count.load();
    for (const auto& count : shared_->large_patches) large_patches += count.load();
    for (int again = phase.during_open ? 2 : 0; again > 0; --again) {
      KillAChild(phase, again == 2 ? 1 : 1 + random.Below(phase.hits_max),
                 [&] { return Database::Open(dir->path(), options).status(); });
    }
    if (HasFailure()) return;
    Verify(options, dir->path());
    if (HasFatalFailure()) return;
  }
  std::printf("%8llu calls that set more than one record takes\n",
              static_cast<unsigned long long>(large_sets));
  std::printf("%8llu patches that take more than one record\n",
              static_cast<unsigned long long>(large_patches));
  if (kills >= kPhaseCount) {
    EXPECT_GT(large_sets, kills / 2);
    EXPECT_GT(large_patches, kills / 2);
  }
  for (const Phase& phase : kPhases) {
    const std::string name = phase.point == nullptr ? "random" : phase.point;
    std::printf("%8llu kills at %s\n", static_cast<unsigned long long>(kills_[name]), name.c_str());
    if (kills < kPhaseCount) continue;
    EXPECT_GT(kills_[name], 0u) << "no child died at " << name;
  }
}

}  // namespace
}  // namespace geardb
