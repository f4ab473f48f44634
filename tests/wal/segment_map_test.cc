#include "wal/segment_map.h"

#include <cstring>

#include "tests/wal/log_fixture.h"
#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kSegment = 65536;

class SegmentMapTest : public ::testing::Test {
 protected:
  SegmentMapTest() {
    manifest_.uuid.fill(std::byte{7});
    manifest_.epoch = {0, 5};
    manifest_.start = 3 * kSegment;
    manifest_.segment_bytes = kSegment;
    EXPECT_OK(env_.CreateDirectory("log"));
  }

  // A file whose first record says `base`, written in opening `open`.
  void PutSegment(const std::string& name, Lsn base, uint32_t open) {
    std::vector<std::byte> bytes(kSegment);
    WritePlainRecord(bytes.data(),
                     RecordHeader{.lsn = base,
                                  .open = open,
                                  .length = kSegmentRecordBytes,
                                  .type = static_cast<uint16_t>(RecordType::kSegment)},
                     uuid_, ManifestOf(uuid_).Seed());
    env_.Put("log/" + name, bytes);
  }
  static Manifest ManifestOf(const Uuid& uuid) {
    Manifest manifest;
    manifest.uuid = uuid;
    return manifest;
  }
  std::map<Lsn, std::string> Names(Lsn from = 0) {
    auto map = SegmentMap::Read(&env_, "log", manifest_, from);
    EXPECT_OK(map);
    return map.ok() ? map->names : std::map<Lsn, std::string>();
  }

  testing::FaultEnv env_{1};
  Manifest manifest_;
  Uuid uuid_ = [] {
    Uuid uuid;
    uuid.fill(std::byte{7});
    return uuid;
  }();
};

TEST_F(SegmentMapTest, TheFirstRecordSaysWhatAFileHolds) {
  PutSegment("segment-000009", 0, 1);
  PutSegment("segment-000001", kSegment, 1);
  env_.Put("log/segment-000002", std::vector<std::byte>(kSegment));
  env_.Put("log/notes.txt", std::vector<std::byte>(3));
  env_.Put("log/ring", std::vector<std::byte>(3));
  ASSERT_OK_AND_ASSIGN(const SegmentMap map, SegmentMap::Read(&env_, "log", manifest_, 0));
  EXPECT_EQ(map.names,
            (std::map<Lsn, std::string>{{0, "segment-000009"}, {kSegment, "segment-000001"}}));
  EXPECT_EQ(map.all.size(), 3u);
  EXPECT_EQ(map.ignored, std::vector<std::string>{"notes.txt"});
}

TEST_F(SegmentMapTest, FilesThatBeginWithNeitherARecordNorZerosAreNamed) {
  PutSegment("segment-000001", 0, 1);
  PutSegment("segment-000002", kSegment, 1);
  env_.Put("log/segment-000003", std::vector<std::byte>(kSegment));
  env_.FlipBit("log/segment-000002", 9, 1);
  ASSERT_OK_AND_ASSIGN(const SegmentMap map, SegmentMap::Read(&env_, "log", manifest_, 0));
  EXPECT_EQ(map.unreadable, std::vector<std::string>{"segment-000002"});
  EXPECT_STATUS(kCorruption, SegmentMap::Read(&env_, "elsewhere", manifest_, 0),
                "elsewhere is missing");
}

TEST_F(SegmentMapTest, BelowStartTheHighestEpochWins) {
  PutSegment("segment-000001", kSegment, 2);
  PutSegment("segment-000002", kSegment, 4);
  PutSegment("segment-000003", kSegment, 3);
  EXPECT_EQ(Names(), (std::map<Lsn, std::string>{{kSegment, "segment-000002"}}));
}

TEST_F(SegmentMapTest, TheOldestInARowIsWhereALogBegins) {
  EXPECT_EQ(SegmentMap().FirstInRow(kSegment), 0u);
  manifest_.start = 100 * kSegment;
  for (const Lsn number : {1u, 2u, 5u, 6u, 7u}) {
    PutSegment("segment-00000" + std::to_string(number), number * kSegment, 4);
  }
  ASSERT_OK_AND_ASSIGN(const SegmentMap map, SegmentMap::Read(&env_, "log", manifest_, 0));
  EXPECT_EQ(map.FirstInRow(kSegment), 5 * kSegment);
}

TEST_F(SegmentMapTest, FromStartOnOnlyTheManifestsEpochCounts) {
  PutSegment("segment-000001", 3 * kSegment, 4);
  EXPECT_TRUE(Names().empty());
  PutSegment("segment-000002", 3 * kSegment, 5);
  EXPECT_EQ(Names(), (std::map<Lsn, std::string>{{3 * kSegment, "segment-000002"}}));
}

TEST_F(SegmentMapTest, AnEpochThatTheManifestDoesNotKnowIsFree) {
  PutSegment("segment-000001", kSegment, 6);
  EXPECT_TRUE(Names().empty());
}

TEST_F(SegmentMapTest, SegmentsBelowTheNeededLsnAreFree) {
  PutSegment("segment-000001", 0, 1);
  PutSegment("segment-000002", kSegment, 1);
  EXPECT_EQ(Names(kSegment).size(), 1u);
  EXPECT_EQ(Names(kSegment - 1).size(), 2u);
}

TEST_F(SegmentMapTest, ADamagedFirstRecordMakesAFileFree) {
  for (const uint64_t offset : {0u, 8u, 30u, 40u, 75u}) {
    PutSegment("segment-000001", 0, 1);
    EXPECT_EQ(Names().size(), 1u);
    env_.FlipBit("log/segment-000001", offset, 3);
    EXPECT_TRUE(Names().empty()) << offset;
  }
}

TEST_F(SegmentMapTest, AFileOfAnotherDatabaseIsNamed) {
  uuid_.fill(std::byte{8});
  PutSegment("segment-000004", 0, 1);
  EXPECT_STATUS(kCorruption, SegmentMap::Read(&env_, "log", manifest_, 0),
                "log/segment-000004 belongs to database 0808");
}

}  // namespace
}  // namespace geardb::wal
