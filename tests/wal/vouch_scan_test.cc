// concurrent: wal/vouch_scan.cc
#include "wal/vouch_scan.h"

#include <cstring>

#include "tests/wal/log_fixture.h"
#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kScanSegment = 65536;
constexpr uint64_t kRing = 32768;

// Files with single records in them; every case asks what they vouch for beyond LSN 1024.
class VouchScanTest : public ::testing::Test {
 protected:
  VouchScanTest() {
    manifest_.uuid.fill(std::byte{7});
    manifest_.epoch = {0, 5};
    manifest_.start = 640;
    manifest_.segment_bytes = kScanSegment;
    manifest_.ring_bytes = kRing;
    EXPECT_OK(env_.CreateDirectory("log"));
    EXPECT_OK(RingFile::Create(&env_, "log/ring", kRing));
    env_.Put("log/segment-000001", std::vector<std::byte>(kScanSegment));
    env_.Put("log/segment-000002", std::vector<std::byte>(kScanSegment));
  }

  // Puts a record into a file at the offset of its LSN.
  void PutRecord(const std::string& name, Lsn lsn, Lsn synced, uint32_t open = 5) {
    auto bytes = env_.Contents("log/" + name);
    const uint64_t offset = lsn % bytes.size();
    WritePlainRecord(bytes.data() + offset,
                     RecordHeader{.lsn = lsn, .synced_lsn = synced, .open = open, .length = 128},
                     manifest_.uuid, manifest_.Seed());
    env_.Put("log/" + name, bytes);
  }

  template <typename T>
  Result<T> Scan(Result<T> (*scan)(Env*, const ScannedLog&, const Followed&)) {
    SegmentMap map;
    map.all = {"segment-000001", "segment-000002"};
    auto ring = RingFile::Open(&env_, "log/ring", kRing, RingAccess::kReadOnly);
    EXPECT_OK(ring);
    map.names = names_;
    const std::string directory = "log";
    return scan(&env_,
                {.directory = directory, .manifest = manifest_, .map = map, .ring = ring->get()},
                followed_);
  }
  Result<Lsn> Scan() { return Scan(ScanForVouched); }
  RecordsBeyond Beyond() {
    auto beyond = Scan(ScanBeyond);
    EXPECT_OK(beyond);
    return beyond.ok() ? *beyond : RecordsBeyond();
  }
  Lsn Vouched() {
    const auto vouched = Scan();
    EXPECT_OK(vouched);
    return vouched.ok() ? *vouched : 0;
  }

  testing::FaultEnv env_{1};
  Followed followed_{.kept_from = 0, .segments_end = 0, .stop = 1024};
  std::map<Lsn, std::string> names_;  // Of the segments that have one.
  Manifest manifest_;
};

TEST_F(VouchScanTest, WithoutRecordsBeyondTheStopStartIsVouched) {
  EXPECT_EQ(Vouched(), 640u);
  PutRecord("segment-000001", 1024, 1000);  // At the stop, not beyond it.
  PutRecord("segment-000001", 512, 500);
  EXPECT_EQ(Vouched(), 640u);
}

TEST_F(VouchScanTest, TheLargestClaimOfAnyFileCounts) {
  PutRecord("segment-000001", 2048, 1500);
  EXPECT_EQ(Vouched(), 1500u);
  PutRecord("segment-000002", kScanSegment + 64 * 1000, 1700);
  EXPECT_EQ(Vouched(), 1700u);
  PutRecord("ring", 5 * kRing + 64, 1800);
  EXPECT_EQ(Vouched(), 1800u);
}

TEST_F(VouchScanTest, OlderEpochsDoNotVouch) {
  PutRecord("segment-000001", 2048, 1500, 4);
  PutRecord("ring", 4096, 1500, 4);
  EXPECT_EQ(Vouched(), 640u);
}

TEST_F(VouchScanTest, ARecordWithoutALengthIsNone) {
  auto bytes = env_.Contents("log/segment-000001");
  const RecordHeader header{.lsn = 2048, .synced_lsn = 1500, .open = 6, .length = 0};
  std::memcpy(bytes.data() + 2048, &header, sizeof(header));
  env_.Put("log/segment-000001", bytes);
  EXPECT_EQ(Vouched(), 640u);
}

TEST_F(VouchScanTest, ALaterEpochThanTheManifestsIsCorruption) {
  PutRecord("segment-000002", 8192, 0, 6);
  EXPECT_STATUS(kCorruption, Scan(), "segment-000002: the record at LSN 8192 is of term 0, open 6");
  PutRecord("segment-000002", 8192, 0, 4);
  EXPECT_EQ(Vouched(), 640u);
  PutRecord("ring", 1024, 0, 7);  // At the stop, where it was not followed.
  EXPECT_STATUS(kCorruption, Scan(), "the ring: the record at LSN 1024 is of term 0, open 7");
}

TEST_F(VouchScanTest, WhatWasFollowedIsNotReadAgain) {
  names_ = {{0, "segment-000001"}, {kScanSegment, "segment-000002"}};
  followed_ = {
      .kept_from = 0, .segments_end = kScanSegment + 4096 + 64, .stop = kScanSegment + 4096 + 64};
  // A reader that has followed these has seen what lies there, whatever looks like a record.
  PutRecord("segment-000001", 2 * kScanSegment + 2048, 1500);
  PutRecord("segment-000002", 3 * kScanSegment + 2048, 1600);
  EXPECT_EQ(Vouched(), 640u);
  PutRecord("segment-000002", kScanSegment + 4096 + 128, 1700);  // In the block where it stopped.
  EXPECT_EQ(Vouched(), 1700u);
  followed_.kept_from = kScanSegment;  // The first was given back.
  PutRecord("segment-000001", 2 * kScanSegment + 2048, 1800);
  EXPECT_EQ(Vouched(), 1800u);
  names_.clear();  // Nobody's segment.
  PutRecord("segment-000002", 3 * kScanSegment + 2048, 1900);
  EXPECT_EQ(Vouched(), 1900u);
}

TEST_F(VouchScanTest, DamagedHeadersDoNotVouch) {
  PutRecord("segment-000001", 2048, 1500);
  env_.FlipBit("log/segment-000001", 2048 + 16, 0);
  EXPECT_EQ(Vouched(), 640u);
}

TEST_F(VouchScanTest, ARecordAtAnotherOffsetThanItsLsnDoesNotVouch) {
  PutRecord("segment-000001", 2048, 1500);
  auto bytes = env_.Contents("log/segment-000001");
  std::memmove(bytes.data() + 4096, bytes.data() + 2048, 128);
  std::memset(bytes.data() + 2048, 0, 128);
  env_.Put("log/segment-000001", bytes);
  EXPECT_EQ(Vouched(), 640u);
}

TEST_F(VouchScanTest, AClaimOverTheEndOfABlockOfTheRingCounts) {
  PutRecord("segment-000001", kScanSegment - 128, 1500);
  EXPECT_EQ(Vouched(), 1500u);
}

using Files = std::map<std::string, uint64_t>;

TEST_F(VouchScanTest, NothingOfTheEpochLiesBeyondAnEnd) {
  PutRecord("segment-000001", 2048, 0, 4);
  PutRecord("segment-000001", 512, 0);
  PutRecord("ring", 1024, 0);
  const RecordsBeyond beyond = Beyond();
  EXPECT_EQ(beyond.records, 0u);
  EXPECT_EQ(beyond.by_file, Files());
  EXPECT_FALSE(beyond.acknowledged);
}

TEST_F(VouchScanTest, RecordsBeyondTheEndAreCountedOnceByFile) {
  PutRecord("segment-000001", 2048, 0);
  PutRecord("segment-000002", kScanSegment + 4096, 0);
  PutRecord("ring", 2048, 0);
  PutRecord("ring", kScanSegment + 8192, 0);
  PutRecord("segment-000002", kScanSegment + 16384, 0);
  env_.FlipBit("log/segment-000002", 16384 + 20, 1);
  const RecordsBeyond beyond = Beyond();
  EXPECT_EQ(beyond.records, 3u);
  EXPECT_EQ(beyond.end_lsn, kScanSegment + 8192 + 128);
  EXPECT_EQ(beyond.by_file,
            (Files{{"log/segment-000001", 1}, {"log/segment-000002", 1}, {"log/ring", 1}}));
  EXPECT_TRUE(beyond.acknowledged);
  manifest_.cut = kScanSegment;
  EXPECT_EQ(Beyond().records, 1u);
}

TEST_F(VouchScanTest, InTheRingAloneTheyWereAcknowledgedIfTheRingHasGoneRoundSince) {
  PutRecord("ring", kRing - 128, 0);
  EXPECT_EQ(Beyond().end_lsn, kRing);
  EXPECT_FALSE(Beyond().acknowledged);
  PutRecord("ring", kRing, 0);  // There was no room for it before the stop was drained.
  EXPECT_EQ(Beyond().records, 2u);
  EXPECT_TRUE(Beyond().acknowledged);
  EXPECT_FALSE(Beyond().header_at_end);
}

TEST_F(VouchScanTest, AHeaderAtTheStopIsSeenInRingAndSegment) {
  EXPECT_FALSE(Beyond().header_at_end);
  PutRecord("segment-000002", 1024, 0);
  EXPECT_FALSE(Beyond().header_at_end);
  names_ = {{0, "segment-000002"}};
  EXPECT_TRUE(Beyond().header_at_end);
  names_.clear();
  PutRecord("ring", 1024, 0, 4);
  EXPECT_FALSE(Beyond().header_at_end);
  PutRecord("ring", 1024, 0);
  EXPECT_TRUE(Beyond().header_at_end);
  EXPECT_FALSE(Beyond().acknowledged);
}

TEST_F(VouchScanTest, InTheRingAloneTheyWereAcknowledgedIfTheOneBeforeThemWasComplete) {
  PutRecord("ring", 2048, 0);
  EXPECT_EQ(Beyond().records, 1u);
  EXPECT_FALSE(Beyond().acknowledged);
  PutRecord("ring", 1024, 0);
  env_.FlipBit("log/ring", 1024 + 70, 1);
  EXPECT_EQ(Beyond().records, 1u);
  EXPECT_TRUE(Beyond().acknowledged);
}

// Segments so large that threads share them.
class VouchScanConcurrentTest : public VouchScanTest {
 protected:
  static constexpr uint64_t kLarge = uint64_t{40} << 20;
  VouchScanConcurrentTest() {
    manifest_.segment_bytes = kLarge;
    env_.Put("log/segment-000001", std::vector<std::byte>(kLarge));
    env_.Put("log/segment-000002", std::vector<std::byte>(kLarge));
  }
};

TEST_F(VouchScanConcurrentTest, TheLargestClaimOfAnyFileCounts) {
  PutRecord("segment-000001", 2048, 1500);
  PutRecord("segment-000002", 2 * kLarge - 128, 1700);
  EXPECT_EQ(Vouched(), 1700u);
  PutRecord("segment-000001", 3 * kLarge - 256, 1800);
  EXPECT_EQ(Vouched(), 1800u);
}

TEST_F(VouchScanConcurrentTest, WhatOneThreadFindsWrongIsTheAnswer) {
  PutRecord("segment-000001", 2048, 1500);
  PutRecord("segment-000002", 2 * kLarge - 128, 1700, /*open=*/6);
  EXPECT_STATUS(kCorruption, Scan().status(), "segment-000002");
}

}  // namespace
}  // namespace geardb::wal
