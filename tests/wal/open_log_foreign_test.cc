// Files in a log's directory that are none of the log's: what an open writes over, and what it
// refuses before it has changed anything.

#include <algorithm>
#include <map>
#include <string>

#include "tests/wal/log_fixture.h"
#include "wal/open_log.h"

namespace geardb::wal {
namespace {

using testing::CrashKind;

class OpenLogForeignTest : public LogFixture {
 protected:
  void SetUp() override {
    CreateAndOpen();
    while (writer()->end() < options_.log.segment_bytes + 10000) Append(++appended_, 4000);
    ASSERT_OK(writer()->DrainOnce());
  }
  void Kill() {
    env_->Die();
    seen_ = SeenLog();
    env_->Crash(CrashKind::kProcess);
  }
  /// All files, but not the owner's process id.
  std::map<std::string, std::vector<std::byte>> Files() {
    std::map<std::string, std::vector<std::byte>> files;
    for (const std::string folder : {"db", "db/log"}) {
      const auto names = env_->List(folder);
      EXPECT_OK(names);
      for (const std::string& name : *names) {
        const std::string path = JoinPath(folder, name);
        if (name == kLockName || name == kLogDirectoryName) continue;
        files[path] = env_->Contents(path);
      }
    }
    return files;
  }
  /// Both kinds of open; a reader does not care for what only a writer would write over.
  void ExpectRefused(const std::string& why, bool also_by_readers) {
    const auto before = Files();
    OpenOptions reading = options_;
    reading.read_only = true;
    if (also_by_readers) {
      EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", reading), why);
    } else {
      ASSERT_OK_AND_ASSIGN(const SeenLog read, OpenAndSee(env_.get(), "db", reading));
      EXPECT_EQ(read.records.size(), appended_);
    }
    EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), why);
    EXPECT_TRUE(Files() == before);
  }
  /// The ring of another log, with as many records.
  std::vector<std::byte> RingOfAnother() {
    EXPECT_OK(CreateLog(env_.get(), "other", options_.log));
    auto other = OpenAndSee(env_.get(), "other", options_);
    EXPECT_OK(other);
    while (other->log.writer->end() < options_.log.segment_bytes + 10000) {
      EXPECT_OK(AppendRecord(other->log.writer.get(), {.number = 1, .piece_bytes = {4000}}));
    }
    return env_->Contents("other/log/ring");
  }

  uint64_t appended_ = 0;
};

TEST_F(OpenLogForeignTest, AFileWithASegmentsNameAndAnythingInItIsRefused) {
  Kill();
  for (const size_t bytes : {1u, 7000u, 65536u, 65537u}) {
    env_->Put("db/log/segment-000098", std::vector<std::byte>(bytes, std::byte{'g'}));
    ExpectRefused("db/log/segment-000098 has " + std::to_string(bytes) + " bytes and is neither",
                  false);
  }
  ASSERT_OK(env_->Remove("db/log/segment-000098"));
  Open();
  EXPECT_EQ(records().size(), appended_);
}

TEST_F(OpenLogForeignTest, ASpareFileThatWasCutShortIsMadeWhole) {
  Kill();
  env_->Put("db/log/segment-000098", {});
  env_->Put("db/log/segment-000099", std::vector<std::byte>(5000));
  Open();
  EXPECT_EQ(records().size(), appended_);
  EXPECT_EQ(env_->Contents("db/log/segment-000098").size(), options_.log.segment_bytes);
  EXPECT_EQ(env_->Contents("db/log/segment-000099").size(), options_.log.segment_bytes);
}

TEST_F(OpenLogForeignTest, ASegmentCutShortInItsFirstRecordIsRefused) {
  Kill();
  auto bytes = env_->Contents("db/log/segment-000002");
  // Its first byte is of a checksum, and may be 0.
  ASSERT_TRUE(std::any_of(bytes.begin(), bytes.begin() + kSegmentRecordBytes, [](std::byte byte) {
    return byte != std::byte{0};
  })) << "the second segment is in another file";
  bytes.resize(kSegmentRecordBytes - 1);
  env_->Put("db/log/segment-000002", bytes);
  const auto before = Files();
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), "db/log/segment-000002");
  EXPECT_TRUE(Files() == before);
}

TEST_F(OpenLogForeignTest, TheRingOfAnotherDatabaseIsRefusedWhereItsFirstBytesSayIt) {
  // Only where a segment is no longer than the ring does it begin with a segment's first record.
  options_.log.ring_bytes = options_.log.segment_bytes;
  seen_ = SeenLog();
  env_ = std::make_unique<testing::FaultEnv>(2);
  appended_ = 0;
  SetUp();
  ASSERT_OK(writer()->SyncOnce());
  Append(++appended_, 100);  // Only in the ring.
  const auto foreign = RingOfAnother();
  Kill();
  const auto own = env_->Contents("db/log/ring");
  env_->Put("db/log/ring", foreign);
  ExpectRefused("db/log/ring belongs to database ", true);
  env_->Put("db/log/ring", own);
  Open();
  EXPECT_EQ(records().size(), appended_);
}

}  // namespace
}  // namespace geardb::wal
