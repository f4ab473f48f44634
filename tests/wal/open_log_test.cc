#include "wal/open_log.h"

#include <cstring>
#include <set>

#include "base/crash_point.h"
#include "tests/wal/log_fixture.h"

namespace geardb::wal {
namespace {

using testing::CrashKind;
using testing::FaultEnv;

class OpenLogTest : public LogFixture {
 protected:
  void TearDown() override { SetCrashHook(nullptr); }
};

TEST_F(OpenLogTest, AFreshLogIsEmpty) {
  CreateAndOpen();
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(writer()->end(), 0u);
  EXPECT_EQ(report().note, "");
  EXPECT_EQ(report().epoch, (Epoch{0, 1}));
}

TEST_F(OpenLogTest, CreateRefusesWhatIsThereAndWhatMakesNoSense) {
  options_.log.ring_bytes = 1000;
  EXPECT_STATUS(kInvalidArgument, CreateLog(env_.get(), "db", options_.log),
                "ring_bytes = 1000: must be a power of two");
  options_.log = SmallLog();
  options_.log.segment_bytes = 4096;
  EXPECT_STATUS(kInvalidArgument, CreateLog(env_.get(), "db", options_.log), "segment_bytes");
  options_.log = SmallLog();
  Create();
  EXPECT_STATUS(kAlreadyExists, CreateLog(env_.get(), "db", options_.log), "db/MANIFEST");
}

TEST_F(OpenLogTest, ACreationThatCrashedAnywhereCanBeDoneAgain) {
  int whole = 0;
  for (uint64_t operation = 1; operation < 40; ++operation) {
    FaultEnv env(operation);
    ASSERT_OK(env.CreateDirectory("learners"));
    env.SetCrashAfter(operation);
    const bool created = CreateLog(&env, "learners/db", options_.log).ok();
    env.Crash(operation % 2 == 0 ? CrashKind::kProcess : CrashKind::kPowerLoss);
    auto log = OpenAndSee(&env, "learners/db", options_);
    if (created) {
      ASSERT_OK(log);
    }
    if (!log.ok()) {
      ASSERT_EQ(log.status().code(), StatusCode::kNotFound) << log.status();
      ASSERT_OK(CreateLog(&env, "learners/db", options_.log)) << operation;
      log = OpenAndSee(&env, "learners/db", options_);
      ASSERT_OK(log);
    } else {
      ++whole;
    }
    EXPECT_TRUE(log->records.empty());
  }
  EXPECT_GT(whole, 0);
  EXPECT_LT(whole, 39);
}

TEST_F(OpenLogTest, ADirectoryWithoutALogIsNotFoundAndStaysAsItIs) {
  ASSERT_OK(env_->CreateDirectory("db"));
  EXPECT_STATUS(kNotFound, OpenAndSee(env_.get(), "db", options_), "db/MANIFEST");
  ASSERT_OK_AND_ASSIGN(const auto names, env_->List("db"));
  EXPECT_TRUE(names.empty());
}

TEST_F(OpenLogTest, ASecondOwnerIsRefused) {
  CreateAndOpen();
  EXPECT_STATUS(kFailedPrecondition, OpenAndSee(env_.get(), "db", options_), "db/LOCK is held by");
  OpenOptions read_only = options_;
  read_only.read_only = true;
  EXPECT_STATUS(kFailedPrecondition, OpenAndSee(env_.get(), "db", read_only), "db/LOCK is held by");
  seen_ = SeenLog();
  EXPECT_OK(OpenAndSee(env_.get(), "db", options_));
}

TEST_F(OpenLogTest, WhatIsInTheRingSurvivesTheProcess) {
  CreateAndOpen();
  for (uint64_t i = 1; i <= 5; ++i) Append(i, 1000 * i);
  const Lsn end = writer()->end();
  CrashAndOpen(CrashKind::kProcess);
  EXPECT_EQ(Numbers(), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(report().read.end_lsn, end);
  EXPECT_EQ(report().read.segments_end_lsn, 0u);
  EXPECT_EQ(report().drained_bytes, end);
  EXPECT_EQ(report().cut_lsn, end);
  EXPECT_EQ(report().note, "cut at LSN " + std::to_string(end) + ", durability unknown");
  EXPECT_EQ(writer()->end(), end);
  EXPECT_EQ(writer()->synced(), end);
}

TEST_F(OpenLogTest, WhatWasSyncedSurvivesPowerLoss) {
  for (uint64_t seed = 1; seed < 40; ++seed) {
    env_ = std::make_unique<FaultEnv>(seed);
    CreateAndOpen();
    for (uint64_t i = 1; i <= 3; ++i) Append(i, 3000);
    ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
    for (uint64_t i = 4; i <= 6; ++i) Append(i, 3000);
    if (seed % 2 == 0) {
      ASSERT_OK(writer()->DrainOnce());
    }
    CrashAndOpen(CrashKind::kPowerLoss);
    ASSERT_GE(records().size(), 3u);
    for (size_t i = 0; i < records().size(); ++i) {
      EXPECT_EQ(records()[i].number, i + 1);
      EXPECT_TRUE(records()[i].content_right);
    }
    const size_t first = records().size();
    CrashAndOpen(CrashKind::kPowerLoss);  // What an open served is durable.
    EXPECT_EQ(records().size(), first);
    seen_ = SeenLog();
  }
}

TEST_F(OpenLogTest, AnOpenAfterACleanCloseCostsOneManifest) {
  CreateAndOpen();
  Append(1, 100);
  ASSERT_OK(writer()->Close());
  const uint64_t end = writer()->end();
  seen_ = SeenLog();
  Open();
  EXPECT_EQ(writer()->end(), end);
  EXPECT_EQ(report().drained_bytes, 0u);
  seen_ = SeenLog();
  const uint64_t syncs = env_->syncs();
  Open();  // Nothing was appended since: nothing but the manifest is synced.
  EXPECT_EQ(env_->syncs() - syncs, 1u);
}

TEST_F(OpenLogTest, RecordsOfAnOlderEpochBeyondTheCutNeverComeBack) {
  CreateAndOpen();
  Append(1, 1000);
  const TestRecord unfinished{.number = 2, .piece_bytes = {1000}};
  (void)ReserveRecord(writer(), unfinished);
  // Complete, but never published: its predecessor was not finished.
  const TestRecord orphan{.number = 3, .piece_bytes = {1000}};
  const Reservation reservation = ReserveRecord(writer(), orphan);
  FillRecord(writer(), reservation, orphan);
  writer()->Publish(reservation, nullptr);
  CrashAndOpen(CrashKind::kProcess);
  EXPECT_EQ(Numbers(), std::vector<uint64_t>{1});
  // A new record of exactly the lost one's size leads to the orphan's place.
  Append(4, 1000);
  EXPECT_EQ(writer()->end(), reservation.lsn);
  CrashAndOpen(CrashKind::kProcess);
  EXPECT_EQ(Numbers(), (std::vector<uint64_t>{1, 4}));
}

// Step f: behind a page cache a failed sync leaves bytes that can be read and that no later sync
// writes.
TEST_F(OpenLogTest, WhatAFailedSyncLeftIsWrittenAgain) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    seen_ = SeenLog();
    env_ = std::make_unique<FaultEnv>(seed);
    env_->set_direct(false);
    CreateAndOpen();
    Append(1, 3000);
    env_->FailSyncAfter(1);
    EXPECT_STATUS(kIoError, writer()->WaitSynced(writer()->end(), Deadline::Infinite()), "sync");
    env_->ClearFailures();
    CrashAndOpen(CrashKind::kProcess);
    EXPECT_EQ(Numbers(), std::vector<uint64_t>{1});
    CrashAndOpen(CrashKind::kPowerLoss);  // What an open served is durable.
    EXPECT_EQ(Numbers(), std::vector<uint64_t>{1});
  }
}

// The segment has lost its first record, the ring its second: the log ends behind the first. What
// an open then drains joins the segment's second record to the log again, if the cut is not kept.
class OpenLogCutTest : public OpenLogTest {
 protected:
  void CreateAndDie() {
    CreateAndOpen();
    uint64_t piece = 4096 - kSegmentRecordBytes;
    while (SizeOf({.number = 1, .piece_bytes = {piece}}).total() > 4096 - kSegmentRecordBytes) {
      --piece;
    }
    const Reservation first = Append(1, piece);
    ASSERT_EQ(first.end, kEnd);  // What the open drains ends with a block.
    const Reservation second = Append(2, 1000);
    Append(3, 1000);
    ASSERT_OK(writer()->DrainOnce());
    env_->Damage("db/log/segment-000001", first.lsn, 64);
    env_->Damage("db/log/ring", second.lsn, 64);
    Die();
  }
  void Die() {
    env_->Die();
    seen_ = SeenLog();
    env_->Crash(CrashKind::kProcess);
    env_->ClearFailures();
  }
  /// Copies of the files as they are when an open has drained and synced, and before it begins its
  /// epoch.
  std::vector<std::unique_ptr<FaultEnv>> OpensThatCrash() {
    static FaultEnv* env;
    static std::vector<std::unique_ptr<FaultEnv>>* copies;
    std::vector<std::unique_ptr<FaultEnv>> storage;
    env = env_.get();
    copies = &storage;
    SetCrashHook([](const char* name) {
      if (std::strcmp(name, "recovery_epoch") != 0) return;
      copies->push_back(env->CopyAfterCrash(CrashKind::kProcess, 1));
      for (uint64_t seed = 1; seed <= 8; ++seed) {
        copies->push_back(env->CopyAfterCrash(CrashKind::kPowerLoss, seed));
      }
    });
    Open();
    SetCrashHook(nullptr);
    EXPECT_EQ(Numbers(), std::vector<uint64_t>{1});
    EXPECT_EQ(storage.size(), 9u);
    return storage;
  }
  void ExpectStaysCut(FaultEnv* env) {
    ASSERT_OK_AND_ASSIGN(const SeenLog again, OpenAndSee(env, "db", options_));
    EXPECT_EQ(again.records.size(), 1u);
    EXPECT_EQ(again.log.report.read.end_lsn, kEnd);
  }

  static constexpr Lsn kEnd = 4096;
};

TEST_F(OpenLogCutTest, AnOpenThatCrashedBeyondItsCutStaysCut) {
  CreateAndDie();
  for (auto& copy : OpensThatCrash()) ExpectStaysCut(copy.get());
}

// Step d, "even if it already says so": the process died before the name of the manifest with the
// cut was synced.
TEST_F(OpenLogCutTest, ACutWhoseNameMayNotBeDurableIsWrittenAgain) {
  int cut = 0;
  for (uint64_t operation = 1; operation < 12; ++operation) {
    SCOPED_TRACE(operation);
    env_ = std::make_unique<FaultEnv>(operation);
    CreateAndDie();
    env_->SetCrashAfter(operation);
    EXPECT_STATUS(kIoError, OpenAndSee(env_.get(), "db", options_), "the process has died");
    Die();
    ASSERT_OK_AND_ASSIGN(const Manifest manifest, ReadManifest(env_.get(), "db"));
    if (manifest.cut != kEnd) continue;
    ++cut;
    for (auto& copy : OpensThatCrash()) ExpectStaysCut(copy.get());
    seen_ = SeenLog();
  }
  EXPECT_GT(cut, 0);
}

// On a full disk the manifest was overwritten, and its sync failed: the page cache shows a cut that
// the disk does not have.
TEST_F(OpenLogCutTest, ACutWhoseSyncFailedIsWrittenAgain) {
  CreateAndDie();
  env_->set_disk_bytes_max(0);
  env_->FailSyncAfter(1);
  EXPECT_STATUS(kIoError, OpenAndSee(env_.get(), "db", options_), "fdatasync db/MANIFEST");
  Die();
  ASSERT_OK_AND_ASSIGN(const Manifest manifest, ReadManifest(env_.get(), "db"));
  ASSERT_EQ(manifest.cut, kEnd);
  for (auto& copy : OpensThatCrash()) ExpectStaysCut(copy.get());
}

TEST_F(OpenLogTest, EpochsCountOpens) {
  CreateAndOpen();
  for (uint32_t open = 2; open < 6; ++open) {
    CrashAndOpen(CrashKind::kProcess);
    EXPECT_EQ(report().epoch.open, open);
  }
}

TEST_F(OpenLogTest, TheLastEpochIsNotFollowedByTheFirst) {
  Create();
  ASSERT_OK_AND_ASSIGN(Manifest manifest, ReadManifest(env_.get(), "db"));
  manifest.epoch.open = UINT32_MAX;
  ASSERT_OK(WriteManifest(env_.get(), "db", manifest));
  EXPECT_STATUS(kResourceExhausted, OpenAndSee(env_.get(), "db", options_),
                "db was opened for writing 4294967295 times");
  options_.read_only = true;
  EXPECT_OK(OpenAndSee(env_.get(), "db", options_));
}

TEST_F(OpenLogTest, AReadOnlyOpenWritesNothingAndSeesTheSame) {
  CreateAndOpen();
  Append(1, 1000);
  ASSERT_OK(writer()->DrainOnce());
  Append(2, 1000);
  env_->Die();
  seen_ = SeenLog();
  env_->Crash(CrashKind::kProcess);
  const uint64_t before = env_->operations();
  options_.read_only = true;
  Open();
  EXPECT_EQ(env_->operations(), before);
  EXPECT_EQ(writer(), nullptr);
  EXPECT_EQ(Numbers(), (std::vector<uint64_t>{1, 2}));
  ASSERT_OK(OpenAndSee(env_.get(), "db", options_));  // Readers share.
  OpenOptions writing = options_;
  writing.read_only = false;
  EXPECT_STATUS(kFailedPrecondition, OpenAndSee(env_.get(), "db", writing), "LOCK");
}

TEST_F(OpenLogTest, DamageInTheMiddleStopsAWritingOpenAndChangesNothing) {
  CreateAndOpen();
  Append(1, 1000);
  const Reservation damaged = Append(2, 1000);
  ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  CrashAndOpen(CrashKind::kProcess);
  env_->FlipBit("db/log/segment-000001", damaged.lsn + 33, 0);
  env_->Die();
  seen_ = SeenLog();
  env_->Crash(CrashKind::kProcess);
  const auto manifest = env_->Contents("db/MANIFEST");
  const std::string lsn = std::to_string(damaged.lsn);
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), "LSN " + lsn);
  options_.allow_damaged_prefix = true;  // For reading only.
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), "LSN " + lsn);
  EXPECT_EQ(env_->Contents("db/MANIFEST"), manifest);
  options_.read_only = true;
  Open();
  EXPECT_EQ(Numbers(), std::vector<uint64_t>{1});
  EXPECT_STATUS(kCorruption, report().read.damage, lsn);
}

TEST_F(OpenLogTest, AManifestOlderThanTheLogIsCorruption) {
  // A copy of MANIFEST put back: the log would end where that one's open ended.
  CreateAndOpen();
  Append(1, 1000);
  const auto older = env_->Contents("db/MANIFEST");
  for (const bool drained : {true, false}) {
    SCOPED_TRACE(drained);
    CrashAndOpen(CrashKind::kProcess);
    Append(2, 1000);
    if (drained) {
      ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
    }
    env_->Die();
    seen_ = SeenLog();
    env_->Crash(CrashKind::kProcess);
    const auto newer = env_->Contents("db/MANIFEST");
    env_->Put("db/MANIFEST", older);
    EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_),
                  "is of term 0, open 2, but MANIFEST is of term 0, open 1");
    EXPECT_EQ(env_->Contents("db/MANIFEST"), older);
    env_->Put("db/MANIFEST", newer);
    Open();
    EXPECT_EQ(Numbers(),
              drained ? (std::vector<uint64_t>{1, 2}) : (std::vector<uint64_t>{1, 2, 2}));
  }
}

TEST_F(OpenLogTest, AManifestThatNeverKnewTheRingsRecordsIsCorruption) {
  Create();
  const auto older = env_->Contents("db/MANIFEST");
  Open();
  Append(1, 1000);  // In the ring only.
  env_->Die();
  seen_ = SeenLog();
  env_->Crash(CrashKind::kProcess);
  env_->Put("db/MANIFEST", older);
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), "older than the log");
}

TEST_F(OpenLogTest, ASegmentThatTheRingReplacesDoesNotComeBack) {
  CreateAndOpen();
  while (writer()->end() < options_.log.segment_bytes + 10000) Append(1, 4000);
  ASSERT_OK(writer()->DrainOnce());
  const Lsn end = writer()->end();
  env_->Die();
  seen_ = SeenLog();
  env_->Crash(CrashKind::kProcess);
  // The second segment loses all but its first record; the ring still has its bytes.
  auto bytes = env_->Contents("db/log/segment-000002");
  if (bytes[0] == std::byte{0}) GTEST_FAIL() << "the second segment is in another file";
  bytes.resize(kSegmentRecordBytes);
  env_->Put("db/log/segment-000002", bytes);
  Open();
  EXPECT_EQ(report().read.end_lsn, end);
  CrashAndOpen(CrashKind::kPowerLoss);
  EXPECT_EQ(report().read.end_lsn, end);
}

TEST_F(OpenLogTest, ALostSegmentIsCorruption) {
  CreateAndOpen();
  while (writer()->end() < 2 * options_.log.segment_bytes) Append(1, 7000);
  ASSERT_OK(writer()->Close());
  seen_ = SeenLog();
  ASSERT_OK(env_->Remove("db/log/segment-000001"));
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), "LSN 0");
}

TEST_F(OpenLogTest, AVisitorsErrorEndsTheOpenBeforeAnythingIsWritten) {
  CreateAndOpen();
  Append(1, 1000);
  env_->Die();
  seen_ = SeenLog();
  env_->Crash(CrashKind::kProcess);
  const uint64_t before = env_->operations();
  EXPECT_STATUS(kInternal,
                OpenLog(env_.get(), "db", options_,
                        [](const RecordView&) { return Status::Internal("no place for it"); }),
                "no place for it");
  EXPECT_EQ(env_->operations(), before);
  Open();
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(OpenLogTest, ARingOfTheWrongSizeIsCorruption) {
  Create();
  env_->Put("db/log/ring", std::vector<std::byte>(100));
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), "db/log/ring has 100 bytes");
}

TEST_F(OpenLogTest, ForeignFilesInTheLogsDirectoryAreLeftAlone) {
  Create();
  env_->Put("db/log/notes.txt", std::vector<std::byte>(10, std::byte{1}));
  Open();
  Append(1, 100);
  CrashAndOpen(CrashKind::kProcess);
  EXPECT_EQ(records().size(), 1u);
  EXPECT_EQ(env_->Contents("db/log/notes.txt").size(), 10u);
}

TEST_F(OpenLogTest, SizesComeFromTheManifest) {
  CreateAndOpen();
  seen_ = SeenLog();
  options_.log.ring_bytes = uint64_t{1} << 20;
  options_.log.segment_bytes = uint64_t{1} << 20;
  Open();
  EXPECT_EQ(writer()->record_bytes_max(), SmallLog().ring_bytes / 4);
}

// The log as it is at every named crash point opens again, with all that was acknowledged.
TEST_F(OpenLogTest, ACrashAtEveryNamedPointLosesNothing) {
  struct Points {
    FaultEnv* env = nullptr;
    OpenOptions options;
    std::multiset<std::string> passed;
    uint64_t acknowledged = 0;
    uint64_t seed = 0;
  };
  static Points* points;
  Points storage;
  points = &storage;
  points->env = env_.get();
  points->options = options_;
  Create();
  SetCrashHook([](const char* name) {
    points->passed.insert(name);
    static bool inside = false;
    if (inside) return;  // The copy passes points of its own.
    inside = true;
    auto copy = points->env->CopyAfterCrash(CrashKind::kProcess, ++points->seed);
    for (int twice = 0; twice < 2; ++twice) {
      auto seen = OpenAndSee(copy.get(), "db", points->options);
      EXPECT_OK(seen) << name;
      if (!seen.ok()) break;
      EXPECT_GE(seen->records.size(), points->acknowledged) << name;
      EXPECT_LE(seen->records.size(), points->acknowledged + 1) << name;
      copy->Die();
      seen = SeenLog();
      copy->Crash(twice == 0 ? CrashKind::kPowerLoss : CrashKind::kProcess);
    }
    inside = false;
  });
  Open();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 25; ++i) {
      Append(points->acknowledged + 1, 3000);
      ++points->acknowledged;
      if (i % 7 == 0) {
        ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
      }
    }
    CrashAndOpen(CrashKind::kProcess);
    ASSERT_EQ(records().size(), points->acknowledged);
  }
  SetCrashHook(nullptr);
  for (const char* name :
       {"copy_into_ring", "drain", "rotate", "sync", "synced", "manifest", "recovery_read",
        "recovery_cut", "recovery_drain", "recovery_drained_some", "recovery_sync",
        "recovery_epoch", "recovery_serve"}) {
    EXPECT_GT(points->passed.count(name), 0u) << name;
  }
}

}  // namespace
}  // namespace geardb::wal
