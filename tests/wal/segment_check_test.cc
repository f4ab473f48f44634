#include "wal/segment_check.h"

#include <cstring>

#include "tests/wal/log_fixture.h"
#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kSegment = 65536;

class SegmentCheckTest : public ::testing::Test {
 protected:
  SegmentCheckTest() {
    manifest_.uuid.fill(std::byte{7});
    manifest_.segment_bytes = kSegment;
    EXPECT_OK(env_.CreateDirectory("log"));
  }
  /// A first record of database `id`, followed by zeros up to `bytes`.
  static std::vector<std::byte> Segment(uint8_t id, uint64_t bytes = kSegment) {
    Manifest owner;
    owner.uuid.fill(std::byte{id});
    std::vector<std::byte> content(std::max<uint64_t>(bytes, kSegmentRecordBytes));
    WritePlainRecord(content.data(),
                     RecordHeader{.lsn = 0,
                                  .open = 1,
                                  .length = kSegmentRecordBytes,
                                  .type = static_cast<uint16_t>(RecordType::kSegment)},
                     owner.uuid, owner.Seed());
    content.resize(bytes);
    return content;
  }
  Status Check(const std::vector<std::byte>& content) {
    env_.Put("log/segment-000001", content);
    return CheckFreeSegment(&env_, "log/segment-000001", manifest_);
  }

  testing::FaultEnv env_{1};
  Manifest manifest_;
};

TEST_F(SegmentCheckTest, SegmentsOfThisDatabaseAndEmptyFilesMayBecomeSegments) {
  EXPECT_OK(Check(Segment(7)));
  EXPECT_OK(Check(Segment(7, 4096)));
  EXPECT_OK(Check(std::vector<std::byte>(kSegment)));
  std::vector<std::byte> forgotten = Segment(7);
  std::fill(forgotten.begin(), forgotten.begin() + 4096, std::byte{0});
  forgotten.back() = std::byte{1};
  EXPECT_OK(Check(forgotten)) << "its first block was zeroed, since it had lost its end";
}

TEST_F(SegmentCheckTest, ASpareThatWasCutShortHoldsOnlyZeros) {
  for (const size_t bytes : {0u, 1u, 127u, 128u, 5000u, 65535u}) {
    EXPECT_OK(Check(std::vector<std::byte>(bytes))) << bytes;
  }
}

TEST_F(SegmentCheckTest, AllElseIsNamedWithItsSize) {
  EXPECT_STATUS(kCorruption, Check(std::vector<std::byte>(7000, std::byte{'g'})),
                "log/segment-000001 has 7000 bytes and is neither a segment of database 0707");
  std::vector<std::byte> late(5000);
  late.back() = std::byte{1};
  EXPECT_STATUS(kCorruption, Check(late), "5000 bytes");
  EXPECT_STATUS(kCorruption, Check({std::byte{1}}), "1 bytes");
  EXPECT_STATUS(kCorruption, Check(std::vector<std::byte>(kSegment, std::byte{'g'})), "neither");
  EXPECT_STATUS(kCorruption, Check(std::vector<std::byte>(kSegment + 1)), "65537 bytes");
  EXPECT_STATUS(kCorruption, Check(Segment(7, kSegment + 64)), "65600 bytes");
  EXPECT_STATUS(kCorruption, Check(Segment(8)), "neither");
}

TEST_F(SegmentCheckTest, AnySegmentRecordNamesItsDatabase) {
  Uuid eight;
  eight.fill(std::byte{8});
  EXPECT_EQ(SegmentOwner(Segment(8)), eight);
  EXPECT_EQ(SegmentOwner(Segment(8, 127)), std::nullopt);
  for (const size_t at : {0u, 8u, 30u, 40u, 75u}) {
    std::vector<std::byte> damaged = Segment(8);
    damaged[at] ^= std::byte{4};
    EXPECT_EQ(SegmentOwner(damaged), std::nullopt) << at;
  }
}

TEST_F(SegmentCheckTest, ARingOfAnotherDatabaseIsNamedWhereItsFirstBytesSayIt) {
  for (const uint8_t id : {uint8_t{7}, uint8_t{8}}) {
    env_.Put("log/ring", Segment(id, kSegment));
    ASSERT_OK_AND_ASSIGN(const auto ring,
                         RingFile::Open(&env_, "log/ring", kSegment, RingAccess::kReadOnly));
    const Status status = CheckRingOwner(ring.get(), "log/ring", manifest_);
    if (id == 7) {
      EXPECT_OK(status);
    } else {
      EXPECT_STATUS(kCorruption, status, "log/ring belongs to database 0808");
    }
    // Rows may lie there then, and rows may be anything.
    Manifest longer = manifest_;
    longer.segment_bytes = 2 * kSegment;
    EXPECT_OK(CheckRingOwner(ring.get(), "log/ring", longer));
  }
}

}  // namespace
}  // namespace geardb::wal
