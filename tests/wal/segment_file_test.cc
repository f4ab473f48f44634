#include "wal/segment_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"
#include "wal/aligned_buffer.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kSegment = 65536;

class SegmentFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(env_.CreateDirectory("log")); }

  testing::FaultEnv env_{1};
  SegmentPool pool_{env_.HoldDirectory("log").value(), "log", kSegment, /*direct=*/true};
};

TEST_F(SegmentFileTest, ASpareIsDurableBeforeItIsHandedOut) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    testing::FaultEnv env(seed);
    ASSERT_OK(env.CreateDirectory("log"));
    SegmentPool pool(env.HoldDirectory("log").value(), "log", kSegment, true);
    ASSERT_OK(pool.CreateSpare());
    EXPECT_EQ(pool.free_count(), 1u);
    env.Crash(testing::CrashKind::kPowerLoss);
    EXPECT_EQ(env.Contents("log/segment-000001").size(), kSegment);
  }
}

TEST_F(SegmentFileTest, BoundFilesAreFoundByLsnAndReleasedWhenTheyEnd) {
  ASSERT_OK(pool_.CreateSpare());
  ASSERT_OK(pool_.CreateSpare());
  EXPECT_EQ(pool_.Find(0), nullptr);
  pool_.Bind(0);
  pool_.Bind(kSegment);
  EXPECT_EQ(pool_.free_count(), 0u);
  EXPECT_NE(pool_.Find(0), pool_.Find(kSegment));
  EXPECT_EQ(pool_.Find(kSegment - 1), pool_.Find(0));
  EXPECT_EQ(pool_.LiveFrom(kSegment - 1).size(), 2u);
  EXPECT_EQ(pool_.LiveFrom(kSegment).size(), 1u);
  pool_.ReleaseBelow(kSegment - 1);
  EXPECT_EQ(pool_.live_count(), 2u);
  pool_.ReleaseBelow(kSegment);
  EXPECT_EQ(pool_.live_count(), 1u);
  EXPECT_EQ(pool_.free_count(), 1u);
  EXPECT_EQ(pool_.oldest_base(), kSegment);
  EXPECT_EQ(pool_.Find(0), nullptr);
}

TEST_F(SegmentFileTest, AWriteMakesItDirtyUntilASyncTakesIt) {
  ASSERT_OK(pool_.CreateSpare());
  pool_.Bind(0);
  EXPECT_TRUE(pool_.TakeDirty().empty());
  const AlignedBuffer block(4096);
  ASSERT_OK(pool_.Find(0)->Write(4096, block.span()));
  EXPECT_EQ(pool_.TakeDirty().size(), 1u);
  EXPECT_TRUE(pool_.TakeDirty().empty());
}

TEST_F(SegmentFileTest, AFullDiskMakesNoSpareAndLeavesNoFile) {
  ASSERT_OK(pool_.CreateSpare());
  env_.set_disk_bytes_max(kSegment + 1000);
  EXPECT_STATUS(kResourceExhausted, pool_.CreateSpare(), "spare segment file");
  ASSERT_OK_AND_ASSIGN(const auto names, env_.List("log"));
  EXPECT_EQ(names, std::vector<std::string>{"segment-000001"});
  env_.set_disk_bytes_max(UINT64_MAX);
  EXPECT_OK(pool_.CreateSpare());
}

TEST_F(SegmentFileTest, AFileThatSomebodyElseMadeIsNotTakenForASpare) {
  for (const char* const path : {"log/segment-000001", "log/segment-000002"}) {
    env_.Put(path, std::vector<std::byte>(100, std::byte{1}));
  }
  ASSERT_OK(pool_.CreateSpare());
  EXPECT_EQ(env_.Contents("log/segment-000001"), std::vector<std::byte>(100, std::byte{1}));
  EXPECT_EQ(env_.Contents("log/segment-000002"), std::vector<std::byte>(100, std::byte{1}));
  EXPECT_EQ(pool_.NextFree()->path(), "log/segment-000003");
}

TEST_F(SegmentFileTest, WithoutDirectIoItIsBufferedAndSaysWhy) {
  ASSERT_OK(pool_.CreateSpare());
  EXPECT_EQ(pool_.write_path(), "direct");
  env_.set_direct(false);
  SegmentPool other(env_.HoldDirectory("log").value(), "log", kSegment, true);
  ASSERT_OK(other.AddFree("segment-000001"));
  EXPECT_EQ(other.write_path(), "buffered (O_DIRECT: Invalid argument)");
  SegmentPool chosen(env_.HoldDirectory("log").value(), "log", kSegment, false);
  ASSERT_OK(chosen.AddFree("segment-000001"));
  EXPECT_EQ(chosen.write_path(), "buffered (by choice)");
}

TEST_F(SegmentFileTest, WhereOnlyDirectReadsWorkItWritesThroughThePageCache) {
  ASSERT_OK(pool_.CreateSpare());
  pool_.Bind(0);
  SegmentFile* segment = pool_.Find(0);
  EXPECT_TRUE(segment->direct());
  env_.set_direct_writes(false);
  const AlignedBuffer block(4096);
  std::memset(block.data(), 'x', block.span().size());
  ASSERT_OK(segment->Write(4096, block.span()));
  EXPECT_FALSE(segment->direct());
  EXPECT_EQ(segment->write_path(), "buffered (direct writes were refused)");
  EXPECT_EQ(segment->written_bytes(), 8192u);
  ASSERT_OK(segment->Sync());
  env_.Crash(testing::CrashKind::kPowerLoss);
  EXPECT_EQ(env_.Contents("log/segment-000001")[4096], std::byte{'x'});
}

TEST_F(SegmentFileTest, AShortFileIsMadeWholeAndALongOneRefused) {
  env_.Put("log/segment-000001", std::vector<std::byte>(100));
  ASSERT_OK(pool_.AddFree("segment-000001"));
  EXPECT_EQ(env_.Contents("log/segment-000001").size(), kSegment);
  env_.Put("log/segment-000002", std::vector<std::byte>(kSegment + 1));
  EXPECT_STATUS(kCorruption, pool_.AddFree("segment-000002"), "log/segment-000002 has 65537");
}

TEST_F(SegmentFileTest, AShortFreeFileForgetsWhatItClaimed) {
  env_.Put("log/segment-000001", std::vector<std::byte>(105, std::byte{1}));
  ASSERT_OK(pool_.AddFree("segment-000001"));
  EXPECT_EQ(env_.Contents("log/segment-000001"), std::vector<std::byte>(kSegment));
  env_.Put("log/segment-000002", std::vector<std::byte>(105, std::byte{1}));
  ASSERT_OK(pool_.AddLive("segment-000002", 0));  // A live one keeps what it has.
  EXPECT_EQ(env_.Contents("log/segment-000002")[104], std::byte{1});
}

TEST_F(SegmentFileTest, OfManyFilesThoseThatAreWrittenNextAreOpen) {
  constexpr uint64_t kSegments = 100;
  for (uint64_t i = 0; i < kSegments; ++i) {
    ASSERT_OK(pool_.CreateSpare());
    EXPECT_EQ(pool_.ready_count(), 1u);
    pool_.Bind(i * kSegment);
  }
  const auto open_files = [&] {
    uint64_t open = 0;
    for (const SegmentFile* file : pool_.LiveFrom(0)) open += file->is_open() ? 1u : 0u;
    return open;
  };
  EXPECT_EQ(open_files(), kSegments);
  pool_.RestBelow(10 * kSegment);
  EXPECT_EQ(open_files(), 90u);
  const AlignedBuffer block(4096);
  std::memset(block.data(), 'x', block.span().size());
  ASSERT_OK(pool_.Find(20 * kSegment)->Write(0, block.span()));
  pool_.RestBelow(kSegments * kSegment);
  EXPECT_EQ(open_files(), 80u);  // The write may be lost.
  EXPECT_EQ(pool_.TakeDirty().size(), 1u);
  pool_.RestBelow(kSegments * kSegment);
  EXPECT_EQ(open_files(), 64u);
  EXPECT_TRUE(pool_.Find((kSegments - 1) * kSegment)->is_open());
  EXPECT_OK(pool_.Find(0)->Sync());
  EXPECT_EQ(open_files(), 64u);
}

TEST_F(SegmentFileTest, AFreeFileIsOpenedBeforeItIsTaken) {
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_OK(pool_.CreateSpare());
    pool_.Bind(i * kSegment);
  }
  pool_.RestBelow(100 * kSegment);
  pool_.ReleaseBelow(99 * kSegment);
  EXPECT_EQ(pool_.free_count(), 99u);
  EXPECT_EQ(pool_.ready_count(), 0u);
  EXPECT_EQ(pool_.NextFree(), nullptr);
  ASSERT_OK(pool_.WakeSpare());
  EXPECT_EQ(pool_.ready_count(), 1u);
  ASSERT_NE(pool_.NextFree(), nullptr);
  EXPECT_TRUE(pool_.NextFree()->is_open());
  pool_.Bind(100 * kSegment);
  EXPECT_TRUE(pool_.Find(100 * kSegment)->is_open());
  // One that somebody has removed is no spare file any more.
  EXPECT_EQ(pool_.Find(100 * kSegment)->path(), "log/segment-000001");
  ASSERT_OK(env_.Remove("log/segment-000002"));
  ASSERT_OK(pool_.WakeSpare());
  EXPECT_EQ(pool_.free_count(), 97u);
  EXPECT_EQ(pool_.ready_count(), 0u);
  ASSERT_OK(pool_.WakeSpare());
  EXPECT_EQ(pool_.NextFree()->path(), "log/segment-000003");
}

TEST_F(SegmentFileTest, AFileThatWasClosedIsWrittenAsItWasBefore) {
  ASSERT_OK(pool_.CreateSpare());
  pool_.Bind(0);
  SegmentFile* const segment = pool_.Find(0);
  env_.set_direct_writes(false);
  const AlignedBuffer block(4096);
  std::memset(block.data(), 'x', block.span().size());
  ASSERT_OK(segment->Write(0, block.span()));
  ASSERT_OK(segment->Sync());
  segment->Rest();
  EXPECT_EQ(pool_.write_path(), "buffered (direct writes were refused)");
  ASSERT_OK(segment->Write(4096, block.span()));
  EXPECT_EQ(pool_.write_path(), "buffered (direct writes were refused)");
  ASSERT_OK(segment->Sync());
  env_.Crash(testing::CrashKind::kPowerLoss);
  EXPECT_EQ(env_.Contents("log/segment-000001")[8191], std::byte{'x'});
}

TEST_F(SegmentFileTest, KnowsHowFarItWasWritten) {
  ASSERT_OK(pool_.CreateSpare());
  EXPECT_EQ(pool_.NextFree()->written_bytes(), 0u);
  ASSERT_OK(pool_.NextFree()->WriteZeros(0, 8192));
  EXPECT_EQ(pool_.NextFree()->written_bytes(), 8192u);
}

}  // namespace
}  // namespace geardb::wal
