// A log of more segments than the process may have descriptors: written, read, and opened again.
#include <gtest/gtest.h>

#include "tests/testing/descriptor_limit.h"
#include "tests/testing/temp_dir.h"
#include "tests/wal/log_fixture.h"
#include "wal/log_bytes.h"
#include "wal/log_writer.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kManySegments = 300;
constexpr int kFewDescriptors = 200;

class LogWriterDescriptorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::DescriptorLimit::MayBeReached()) GTEST_SKIP() << "the sanitizer needs some";
    options_.log = SmallLog();
    options_.log.log_bytes_max = uint64_t{64} << 20;
    ASSERT_OK(CreateLog(Env::Posix(), dir_.path(), options_.log));
  }
  void Open() {
    auto seen = OpenAndSee(Env::Posix(), dir_.path(), options_);
    ASSERT_OK(seen);
    seen_ = std::move(seen).value();
  }
  LogWriter* writer() { return seen_.log.writer.get(); }
  /// Until the log has so many segments; one record each goes to `firsts_`.
  void AppendTo(uint64_t segments) {
    Lsn synced = writer()->end();
    while (writer()->end() < segments * options_.log.segment_bytes) {
      ASSERT_OK_AND_ASSIGN(const Reservation at,
                           AppendRecord(writer(), {.number = ++number_, .piece_bytes = {7000}}));
      const Lsn base = AlignDown(at.lsn, options_.log.segment_bytes);
      if (at.lsn == base + kSegmentRecordBytes) firsts_.push_back(at.lsn);
      if (at.end - synced < (uint64_t{1} << 20)) continue;
      ASSERT_OK(writer()->WaitSynced(at.end, Deadline::Infinite()));
      synced = at.end;
    }
    ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  }

  testing::TempDir dir_;
  OpenOptions options_;
  SeenLog seen_;
  uint64_t number_ = 0;
  std::vector<Lsn> firsts_;
};

TEST_F(LogWriterDescriptorsTest, SegmentsNeedNoDescriptorEach) {
  const testing::DescriptorLimit limit(kFewDescriptors);
  Open();
  AppendTo(kManySegments);
  ASSERT_FALSE(HasFatalFailure());
  LogBytes bytes(std::shared_ptr<Env>(std::shared_ptr<Env>(), Env::Posix()), dir_.path(),
                 seen_.log.manifest, /*direct=*/true);
  AlignedBuffer scratch;
  ASSERT_GE(firsts_.size(), kManySegments - 1);
  for (const Lsn lsn : firsts_) {
    ASSERT_OK_AND_ASSIGN(const RecordIndex index, bytes.ReadIndex(lsn, &scratch));
    ASSERT_EQ(index.pieces.size(), 1u);
    ASSERT_OK(bytes.ReadPiece(index.pieces[0], &scratch));
  }
  EXPECT_LE(bytes.open_files(), 96u);
  ASSERT_OK(writer()->Close());
  seen_ = SeenLog();
  Open();
  ASSERT_EQ(seen_.records.size(), number_);
  for (const SeenRecord& record : seen_.records) ASSERT_TRUE(record.content_right);
  AppendTo(kManySegments + 10);
}

TEST_F(LogWriterDescriptorsTest, WhatWasReleasedIsWrittenAgain) {
  const testing::DescriptorLimit limit(kFewDescriptors);
  Open();
  AppendTo(kManySegments);
  ASSERT_FALSE(HasFatalFailure());
  writer()->ReleaseBelow((kManySegments - 1) * options_.log.segment_bytes, "a test");
  EXPECT_GE(writer()->Stats().segments_free, kManySegments - 10);
  AppendTo(2 * kManySegments);
  ASSERT_FALSE(HasFatalFailure());
  const Lsn from = (2 * kManySegments - 3) * options_.log.segment_bytes;
  writer()->ReleaseBelow(from, "a test");
  ASSERT_OK(writer()->Close());
  seen_ = SeenLog();
  options_.from = from;
  Open();
  ASSERT_FALSE(seen_.records.empty());
  EXPECT_EQ(seen_.records.back().number, number_);
  AppendTo(2 * kManySegments + 10);
}

}  // namespace
}  // namespace geardb::wal
