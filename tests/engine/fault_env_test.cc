// The database on a file system that fails: power loss and death at random operations (in the
// middle of an open, too), failed syncs, a full disk, flipped bits. tests/testing/fault_env.h says
// what each can do. GEARDB_FAULT_SEED and GEARDB_FAULT_RUNS choose other programs.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/testing/engine_fault_run.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::ActorModel;
using testing::CrashKind;
using testing::EngineFaultRun;
using testing::FaultEnv;
using testing::FromEnvironment;

/// Calls `program` with as many runs as this build or the environment asks for, each with a seed of
/// its own. Returns how many these are.
template <typename Program>
uint64_t ForSeeds(uint64_t all, Program&& program) {
  const uint64_t first = FromEnvironment("GEARDB_FAULT_SEED", 1);
  const uint64_t runs = FromEnvironment("GEARDB_FAULT_RUNS", testing::ShareOf(all));
  for (uint64_t i = 0; i < runs; ++i) {
    SCOPED_TRACE("GEARDB_FAULT_SEED=" + std::to_string(first + i) + " GEARDB_FAULT_RUNS=1");
    EngineFaultRun run(first + i);
    program(&run);
    EXPECT_EQ(run.wrong(), "");
    if (::testing::Test::HasFailure()) break;
  }
  return runs;
}

void RunWithCrashes(EngineFaultRun* run, bool power_loss) {
  for (int round = 0; round < 4 && run->wrong().empty(); ++round) {
    run->env().SetCrashAfter(1 + run->random().Below(run->random().OneIn(2) ? 40 : 600));
    if (run->Start()) run->Steps(1 + run->random().Below(300));
    if (run->actor() != nullptr && !run->actor()->failure().ok() && !run->env().crashed()) {
      run->Fail("step: " + run->actor()->failure().ToString());
    }
    const bool power = power_loss && run->random().OneIn(2);
    run->Crash(power ? CrashKind::kPowerLoss : CrashKind::kProcess);
    run->Verify(/*faults=*/power_loss);
  }
}

TEST(FaultEnvTest, DeathOfTheProcessLosesNothingAcknowledgedAtLog) {
  uint64_t large_sets = 0;
  uint64_t large_patches = 0;
  const uint64_t runs = ForSeeds(150, [&](EngineFaultRun* run) {
    RunWithCrashes(run, false);
    large_sets += run->large_sets();
    large_patches += run->large_patches();
  });
  EXPECT_GE(large_sets, runs / 2);
  EXPECT_GE(large_patches, runs / 4);
}

TEST(FaultEnvTest, PowerLossLosesNothingSynced) {
  uint64_t large_sets = 0;
  uint64_t large_patches = 0;
  const uint64_t runs = ForSeeds(300, [&](EngineFaultRun* run) {
    RunWithCrashes(run, true);
    large_sets += run->large_sets();
    large_patches += run->large_patches();
  });
  EXPECT_GE(large_sets, runs / 2);
  EXPECT_GE(large_patches, runs / 4);
}

TEST(FaultEnvTest, WithoutMapsAndDirectWritesTheSameHolds) {
  ForSeeds(60, [](EngineFaultRun* run) {
    run->env().set_maps(false);
    run->env().set_direct(run->random().OneIn(2));
    run->env().set_direct_writes(false);
    RunWithCrashes(run, true);
  });
}

// After the first failed sync every write returns that error, and reads go on.
TEST(FaultEnvTest, FailedSyncIsFinal) {
  ForSeeds(100, [](EngineFaultRun* run) {
    // Where the device is full, so is it for a spare file: what needs one is refused, no more.
    const bool full = run->random().OneIn(2);
    ASSERT_TRUE(run->Start(/*may_be_full=*/full));
    run->env().FailSyncAfter(1 + run->random().Below(40), full);
    run->Steps(2000);
    const Status first = run->actor()->failure();
    ASSERT_STATUS(kIoError, first, "");
    run->env().ClearFailures();
    // An append that wanted a spare file has said so before it.
    const Status kept = run->database()->Sync();
    EXPECT_TRUE(first.message().ends_with(kept.message())) << first.ToString();
    auto table = run->database()->OpenTable("kept");
    ASSERT_OK(table);
    const std::vector<TrajectoryRecord> records = (*table)->Scan({});
    if (!records.empty()) {
      const Status removed = (*table)->Remove({&records[0].id, 1});
      EXPECT_EQ(removed.ToString(), kept.ToString());
      EXPECT_OK((*table)->Read(records[0].id, {}, {}));
    }
    EXPECT_EQ(run->database()->WriteTag("t", {}).status().ToString(), kept.ToString());
    EXPECT_EQ(run->database()->DropTable("few").ToString(), kept.ToString());
    EXPECT_EQ((*table)->Scan({}).size(), records.size());
    run->Crash(CrashKind::kPowerLoss);
    run->Verify();
  });
}

// A page cache shows what a failed sync has left, and later syncs do not write it.
TEST(FaultEnvTest, WhatAFailedSyncHasLeftIsWrittenAgainByTheNextOpen) {
  ForSeeds(100, [](EngineFaultRun* run) {
    run->env().set_direct(false);
    ASSERT_TRUE(run->Start());
    run->env().FailSyncAfter(1 + run->random().Below(40));
    run->Steps(2000);
    ASSERT_STATUS(kIoError, run->actor()->failure(), "fdatasync");
    run->env().ClearFailures();
    run->Crash(CrashKind::kProcess);
    // Whoever opens it next may write around the page cache.
    run->env().set_direct(run->random().OneIn(2));
    run->env().set_direct_writes(run->random().OneIn(2));
    run->Verify();
  });
}

TEST(FaultEnvTest, FullDiskRefusesAppendsUntilThereIsRoom) {
  uint64_t tags = 0;
  const uint64_t runs = ForSeeds(60, [&](EngineFaultRun* run) {
    ASSERT_TRUE(run->Start(/*may_be_full=*/true));
    run->Steps(50);
    run->env().set_disk_bytes_max(run->env().disk_bytes() + run->random().Below(200'000));
    for (int i = 0; i < 5000 && run->actor()->refused() == 0; ++i) {
      run->Steps(1);
      ASSERT_OK(run->actor()->failure());
    }
    ASSERT_GT(run->actor()->refused(), 0u);
    // The spare files are for this, until they are full, too.
    const auto tag = run->database()->WriteTag("other", std::vector<std::byte>(100));
    EXPECT_TRUE(tag.ok() || tag.status().code() == StatusCode::kResourceExhausted);
    tags += tag.ok() ? 1u : 0u;
    if (run->random().OneIn(2)) {
      run->Crash(CrashKind::kProcess);
      auto reopened = Database::Open(EngineFaultRun::kDirectory, run->options());
      ASSERT_OK(reopened);
      run->Compare(reopened->get());
      ASSERT_OK((*reopened)->Close());
      reopened->reset();
      run->env().set_disk_bytes_max(UINT64_MAX);
    } else {
      run->env().set_disk_bytes_max(UINT64_MAX);
      const uint64_t refused = run->actor()->refused();
      run->Steps(50);
      ASSERT_OK(run->actor()->failure());
      EXPECT_EQ(run->actor()->refused(), refused);
      run->Crash(CrashKind::kProcess);
    }
    run->Verify();
    ASSERT_TRUE(run->Start());
    run->Steps(20);
    ASSERT_OK(run->actor()->failure());
  });
  EXPECT_GE(tags, runs / 2);
}

/// A file of the store, and a byte of it that may hold something.
struct Place {
  std::string path;
  uint64_t offset = 0;
};
Place ChoosePlace(EngineFaultRun* run) {
  const std::string directory = EngineFaultRun::kDirectory;
  std::vector<std::string> paths;
  for (const std::string& part : {directory, directory + "/log"}) {
    const auto names = run->env().List(part);
    for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
      const std::string path = part + "/" + name;
      const std::vector<std::byte> bytes = run->env().Contents(path);
      const bool holds_something =
          std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
      // Most of it is in segments.
      const size_t times = name.starts_with("segment") ? 6 : 1;
      if (holds_something) paths.insert(paths.end(), times, path);
    }
  }
  Place place{.path = paths[run->random().Below(paths.size())]};
  const std::vector<std::byte> bytes = run->env().Contents(place.path);
  // Not in the zeros behind the end.
  size_t end = bytes.size();
  while (end > 1 && bytes[end - 1] == std::byte{0}) --end;
  // Half of the time where it was written last, which is there still.
  const size_t from = run->random().Below(2) == 0 ? 0 : end - end / 4 - 1;
  place.offset = from + run->random().Below(end - from);
  return place;
}

// A flipped bit costs nothing, or the trajectories of its page or the blob of its tag, by name; or
// the open says what is damaged and writes nothing.
TEST(FaultEnvTest, FlippedBitsAreFoundAndNamed) {
  uint64_t refused = 0;
  uint64_t lost = 0;
  const uint64_t runs = ForSeeds(300, [&](EngineFaultRun* run) {
    ASSERT_TRUE(run->Start());
    run->actor()->set_large_sets(false);  // Else they are most of the log, and hardly any is pages.
    run->Steps(30 + run->random().Below(200));
    ASSERT_OK(run->actor()->failure());
    run->Close();
    const Place place = ChoosePlace(run);
    SCOPED_TRACE(place.path + " at " + std::to_string(place.offset));
    const int bit = static_cast<int>(run->random().Below(8));
    run->env().FlipBit(place.path, place.offset, bit);
    DatabaseOptions reading = run->options();
    reading.read_only = true;
    (void)Database::Open(EngineFaultRun::kDirectory, reading).ok();
    auto opened = Database::Open(EngineFaultRun::kDirectory, run->options());
    if (!opened.ok()) {
      ++refused;
      const StatusCode code = opened.status().code();
      EXPECT_TRUE(code == StatusCode::kCorruption || code == StatusCode::kUnsupported)
          << opened.status().ToString();
      run->env().FlipBit(place.path, place.offset, bit);
      run->Verify();
      return;
    }
    run->oracle().set_damage(true);
    run->Compare(opened->get());
    const std::string note = (*opened)->recovery().note;
    for (const auto& [key, trajectory] : run->oracle().model(0).trajectories()) {
      if (trajectory.table != 0 || !trajectory.absent) continue;
      ++lost;
      const std::string name = "'kept'/" + std::to_string(trajectory.id);
      EXPECT_NE(note.find(name), std::string::npos) << name << " is missing; note: " << note;
    }
    ASSERT_OK((*opened)->Close());
    opened->reset();
    run->Verify();
  });
  if (runs < 300) return;  // A share of them may meet no page.
  EXPECT_GT(refused, 0u);
  EXPECT_GT(lost, 0u);
}

}  // namespace
}  // namespace geardb
