#include "wal/ring_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kRing = 32768;

class RingFileTest : public ::testing::TestWithParam<RingAccess> {
 protected:
  void SetUp() override {
    ASSERT_OK(env_.CreateDirectory("d"));
    ASSERT_OK(RingFile::Create(&env_, "d/ring", kRing));
    ASSERT_OK(env_.SyncDirectory("d"));
  }

  testing::FaultEnv env_{1};
};

TEST_P(RingFileTest, ARecordOverTheSeamIsOneRun) {
  ASSERT_OK_AND_ASSIGN(auto ring, RingFile::Open(&env_, "d/ring", kRing, GetParam()));
  const Lsn lsn = 5 * kRing - 100;
  std::memset(ring->At(lsn), 'x', 200);
  ASSERT_OK(ring->Commit(lsn, 200));
  EXPECT_EQ(static_cast<char>(*ring->At(5 * kRing + 99)), 'x');
  EXPECT_EQ(static_cast<char>(*ring->At(5 * kRing + 100)), '\0');
  // By either way around, and in the file.
  EXPECT_EQ(std::memcmp(ring->At(5 * kRing - 200) + 100, ring->At(lsn), 200), 0);
  const auto bytes = env_.Contents("d/ring");
  EXPECT_EQ(static_cast<char>(bytes[99]), 'x');
  EXPECT_EQ(static_cast<char>(bytes[kRing - 1]), 'x');
}

TEST_P(RingFileTest, CommittedBytesSurviveTheProcess) {
  {
    ASSERT_OK_AND_ASSIGN(auto ring, RingFile::Open(&env_, "d/ring", kRing, GetParam()));
    std::memset(ring->At(kRing - 64), 'y', 128);
    ASSERT_OK(ring->Commit(kRing - 64, 128));
    env_.Crash(testing::CrashKind::kProcess);
  }
  for (RingAccess access : {RingAccess::kReadOnly, RingAccess::kMapped, RingAccess::kWritten}) {
    ASSERT_OK_AND_ASSIGN(auto ring, RingFile::Open(&env_, "d/ring", kRing, access));
    EXPECT_EQ(std::memcmp(ring->At(kRing - 64), std::string(128, 'y').data(), 128), 0);
    ASSERT_OK_AND_ASSIGN(const auto extents, ring->WrittenExtents());
    ASSERT_EQ(extents.size(), 2u);
    EXPECT_EQ(extents[0].begin, 0u);
    EXPECT_EQ(extents[1].end, kRing);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RingFileTest,
                         ::testing::Values(RingAccess::kMapped, RingAccess::kWritten));

TEST_F(RingFileTest, AFileOfAnotherSizeIsCorruption) {
  EXPECT_STATUS(kCorruption, RingFile::Open(&env_, "d/ring", 2 * kRing, RingAccess::kMapped),
                "d/ring has 32768 bytes, the manifest says 65536");
}

TEST_F(RingFileTest, WhereMapsDoNotWorkTheRingIsWrittenAndSaysWhy) {
  env_.set_maps(false);
  ASSERT_OK_AND_ASSIGN(auto ring, RingFile::Open(&env_, "d/ring", kRing, RingAccess::kMapped));
  EXPECT_NE(ring->path_name().find("written (map d/ring shared: No such device)"),
            std::string::npos)
      << ring->path_name();
  std::memset(ring->At(0), 'z', 10);
  ASSERT_OK(ring->Commit(0, 10));
  EXPECT_EQ(static_cast<char>(env_.Contents("d/ring")[9]), 'z');
}

TEST_F(RingFileTest, AFullDiskIsNoticedWhenTheRingIsMade) {
  env_.set_disk_bytes_max(kRing + 1000);
  EXPECT_STATUS(kResourceExhausted, RingFile::Create(&env_, "d/other", kRing), "No space");
}

TEST_F(RingFileTest, AReadOnlyRingWritesNothing) {
  const uint64_t before = env_.operations();
  ASSERT_OK(RingFile::Open(&env_, "d/ring", kRing, RingAccess::kReadOnly));
  EXPECT_EQ(env_.operations(), before);
}

}  // namespace
}  // namespace geardb::wal
