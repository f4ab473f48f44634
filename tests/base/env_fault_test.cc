// The fault file system itself: every failure of its model happens, and nothing else does.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb::testing {
namespace {

constexpr uint64_t kSector = FaultEnv::kSectorBytes;

std::vector<std::byte> Filled(uint64_t bytes, char c) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(c));
}

// What a file of `sectors` sectors says, one letter each; '?' for a torn sector.
std::string Letters(const FaultEnv& env, const std::string& path) {
  std::string letters;
  const auto bytes = env.Contents(path);
  for (size_t i = 0; i < bytes.size(); i += kSector) {
    const auto sector = std::span(bytes).subspan(i, kSector);
    const bool whole =
        std::all_of(sector.begin(), sector.end(), [&](std::byte b) { return b == sector[0]; });
    letters += whole ? static_cast<char>(sector[0]) : '?';
  }
  return letters;
}

class EnvFaultTest : public ::testing::Test {
 protected:
  // Writes four sectors of `synced`, syncs, writes four of `unsynced`.
  static void TwoVersions(FaultEnv* env) {
    ASSERT_OK(env->CreateDirectory("d"));
    ASSERT_OK_AND_ASSIGN(auto file, env->OpenFile("d/f", {.mode = FileMode::kCreate}));
    ASSERT_OK(file->Write(0, Filled(4 * kSector, 'a')));
    ASSERT_OK(file->Sync());
    ASSERT_OK(env->SyncDirectory("d"));
    ASSERT_OK(file->Write(0, Filled(4 * kSector, 'b')));
  }
};

TEST_F(EnvFaultTest, DeathOfTheProcessKeepsEveryWrite) {
  FaultEnv env(1);
  TwoVersions(&env);
  env.Crash(CrashKind::kProcess);
  EXPECT_EQ(Letters(env, "d/f"), "bbbb");
}

TEST_F(EnvFaultTest, PowerLossMixesVersionsBySector) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    FaultEnv env(seed);
    TwoVersions(&env);
    env.Crash(CrashKind::kPowerLoss);
    seen.insert(Letters(env, "d/f"));
  }
  EXPECT_EQ(seen.size(), 16u);  // Every mixture of a and b, and nothing else.
  for (const std::string& letters : seen) EXPECT_EQ(letters.find('?'), std::string::npos);
}

TEST_F(EnvFaultTest, PowerLossAfterDeathStillLosesWhatWasUnsynced) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    FaultEnv env(seed);
    TwoVersions(&env);
    env.Crash(CrashKind::kProcess);
    env.Crash(CrashKind::kPowerLoss);
    seen.insert(Letters(env, "d/f"));
  }
  EXPECT_TRUE(seen.count("aaaa") && seen.count("bbbb") && seen.size() > 4);
}

TEST_F(EnvFaultTest, MapsKeepTheirBytesOverDeathAndAnyMixtureOverPowerLoss) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    FaultEnv env(seed);
    ASSERT_OK(env.CreateDirectory("d"));
    ASSERT_OK_AND_ASSIGN(auto file, env.OpenFile("d/f", {.mode = FileMode::kCreate}));
    ASSERT_OK(file->Write(0, Filled(4096, 'a')));
    ASSERT_OK(file->Sync());
    ASSERT_OK(env.SyncDirectory("d"));
    ASSERT_OK_AND_ASSIGN(auto map, file->Map());
    std::memset(map->data(), 'b', 4096);
    env.WriteBackSome();
    std::memset(map->data() + 4096, 'c', 4096);  // The same bytes, by their other address.
    auto after_death = env.CopyAfterCrash(CrashKind::kProcess, seed);
    EXPECT_EQ(Letters(*after_death, "d/f"), "cccccccc");
    env.Crash(CrashKind::kPowerLoss);
    for (char c : Letters(env, "d/f")) seen.insert(std::string(1, c));
    std::memset(map->data(), 'd', 4096);  // A dead process: nobody sees it.
    EXPECT_EQ(Letters(env, "d/f").find('d'), std::string::npos);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"a", "b", "c"}));
}

TEST_F(EnvFaultTest, UnsyncedNamesMayBeLost) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    FaultEnv env(seed);
    env.Put("d/old", Filled(1, 'o'));
    ASSERT_OK(env.OpenFile("d/fresh", {.mode = FileMode::kCreate}));
    ASSERT_OK(env.Rename("d/old", "d/new"));
    env.Crash(CrashKind::kPowerLoss);
    ASSERT_OK_AND_ASSIGN(const auto names, env.List("d"));
    std::string all;
    for (const auto& name : names) all += name + " ";
    seen.insert(all);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old ", "new ", "fresh old ", "fresh new "}));
}

TEST_F(EnvFaultTest, ACrashTearsTheOperationAndEndsAllOthers) {
  FaultEnv env(3);
  TwoVersions(&env);
  ASSERT_OK_AND_ASSIGN(auto file, env.OpenFile("d/f", {.mode = FileMode::kReadWrite}));
  env.SetCrashAfter(2);
  EXPECT_OK(file->Sync());
  EXPECT_FALSE(env.crashed());
  EXPECT_STATUS(kIoError, file->Write(0, Filled(4 * kSector, 'c')), "died");
  EXPECT_TRUE(env.crashed());
  EXPECT_STATUS(kIoError, file->Sync(), "died");
  EXPECT_STATUS(kIoError, env.List("d"), "died");
  env.Crash(CrashKind::kProcess);
  EXPECT_OK(env.List("d"));
  EXPECT_STATUS(kIoError, file->Sync(), "died");  // A handle of the dead process.
}

TEST_F(EnvFaultTest, AFullDiskRefusesGrowthAndNothingElse) {
  FaultEnv env(4);
  ASSERT_OK(env.CreateDirectory("d"));
  env.set_disk_bytes_max(1000);
  ASSERT_OK_AND_ASSIGN(auto file, env.OpenFile("d/f", {.mode = FileMode::kCreate}));
  EXPECT_OK(file->Allocate(1000));
  EXPECT_OK(file->Write(500, Filled(500, 'x')));
  EXPECT_STATUS(kResourceExhausted, file->Write(900, Filled(101, 'x')), "No space left");
  EXPECT_STATUS(kResourceExhausted, file->Allocate(1001), "No space left");
  env.set_disk_bytes_max(2000);
  EXPECT_OK(file->Allocate(1001));
}

TEST_F(EnvFaultTest, AFailedSyncMakesNothingDurable) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    FaultEnv env(seed);
    TwoVersions(&env);
    env.FailSyncAfter(1);
    ASSERT_OK_AND_ASSIGN(auto file, env.OpenFile("d/f", {.mode = FileMode::kReadWrite}));
    EXPECT_STATUS(kIoError, file->Sync(), "fdatasync d/f");
    EXPECT_STATUS(kIoError, file->Sync(), "fdatasync d/f");
    env.Crash(CrashKind::kPowerLoss);
    seen.insert(Letters(env, "d/f"));
  }
  EXPECT_GT(seen.count("aaaa"), 0u);
}

TEST_F(EnvFaultTest, TheSameSeedFailsTheSameWay) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FaultEnv one(seed), two(seed);
    TwoVersions(&one);
    TwoVersions(&two);
    one.Crash(CrashKind::kPowerLoss);
    two.Crash(CrashKind::kPowerLoss);
    EXPECT_EQ(one.Contents("d/f"), two.Contents("d/f"));
  }
}

TEST_F(EnvFaultTest, FlippedBitsAreInEveryVersion) {
  FaultEnv env(5);
  TwoVersions(&env);
  env.FlipBit("d/f", 600, 0);
  EXPECT_EQ(Letters(env, "d/f"), "b?bb");
  env.Crash(CrashKind::kPowerLoss);
  EXPECT_EQ(Letters(env, "d/f")[1], '?');
}

TEST_F(EnvFaultTest, LocksExcludeAndDieWithTheProcess) {
  FaultEnv env(6);
  ASSERT_OK(env.CreateDirectory("d"));
  ASSERT_OK_AND_ASSIGN(auto lock, env.Lock("d/LOCK", LockMode::kExclusive));
  EXPECT_STATUS(kFailedPrecondition, env.Lock("d/LOCK", LockMode::kShared), "held by");
  env.Crash(CrashKind::kProcess);
  EXPECT_OK(env.Lock("d/LOCK", LockMode::kExclusive));
}

TEST_F(EnvFaultTest, DirectFilesRefuseUnalignedBuffers) {
  FaultEnv env(7);
  ASSERT_OK(env.CreateDirectory("d"));
  ASSERT_OK_AND_ASSIGN(auto file, env.OpenFile("d/f", {.mode = FileMode::kCreate, .direct = true}));
  ASSERT_TRUE(file->direct());
  EXPECT_STATUS(kUnsupported, file->Write(0, Filled(100, 'x')), "Invalid argument");
  env.set_direct(false);
  ASSERT_OK_AND_ASSIGN(auto other,
                       env.OpenFile("d/f", {.mode = FileMode::kCreate, .direct = true}));
  EXPECT_FALSE(other->direct());
  EXPECT_FALSE(other->direct_note().empty());
}

}  // namespace
}  // namespace geardb::testing
