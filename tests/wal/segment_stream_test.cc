// concurrent: wal/segment_stream.h
#include "wal/segment_stream.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/env.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kStreamSegment = uint64_t{4} << 20;

// Byte `i` of the log.
std::byte ByteAt(Lsn i) { return static_cast<std::byte>((i >> 3) * 2654435761u >> 24); }

// `segments` files from base 0 on the operating system's files, where reads take their time.
class SegmentStreamConcurrentTest : public ::testing::TestWithParam<bool> {
 protected:
  void Write(uint64_t segments) {
    for (uint64_t s = 0; s < segments; ++s) {
      const std::string name = "segment-00000" + std::to_string(s);
      ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File(name), {.mode = FileMode::kCreate}));
      std::vector<std::byte> bytes(kStreamSegment);
      for (uint64_t i = 0; i < kStreamSegment; ++i) bytes[i] = ByteAt(s * kStreamSegment + i);
      ASSERT_OK(file->Write(0, bytes));
      map_.names[s * kStreamSegment] = name;
    }
  }

  void ExpectAll(bool lean) {
    SegmentStream stream(env_, dir_.path(), &map_, kStreamSegment, GetParam(), lean);
    testing::Random random(3);
    for (Lsn at = 0; at < 5 * kStreamSegment;) {
      const uint64_t wanted = 64 * (1 + random.Below(random.OneIn(50) ? 16384 : 64));
      ASSERT_OK_AND_ASSIGN(const auto bytes, stream.At(at, wanted));
      const uint64_t left = kStreamSegment - at % kStreamSegment;
      ASSERT_GE(bytes.size(), std::min(wanted, left));
      ASSERT_LE(bytes.size(), left);
      const uint64_t used = std::min<uint64_t>(wanted, left);
      for (uint64_t i = 0; i < used; i += 61) ASSERT_EQ(bytes[i], ByteAt(at + i)) << at + i;
      at += used;
    }
  }

  Env* const env_ = Env::Posix();
  testing::TempDir dir_;
  SegmentMap map_;
};

TEST_P(SegmentStreamConcurrentTest, EveryByteComesInOrder) {
  Write(5);
  for (const bool lean : {false, true}) ExpectAll(lean);
}

TEST_P(SegmentStreamConcurrentTest, MayBeginAnywhereAndSkipSegments) {
  Write(5);
  SegmentStream stream(env_, dir_.path(), &map_, kStreamSegment, GetParam());
  for (Lsn at : {kStreamSegment + 64, 3 * kStreamSegment - 64, 3 * kStreamSegment,
                 4 * kStreamSegment + 640}) {
    ASSERT_OK_AND_ASSIGN(const auto bytes, stream.At(at, 64));
    ASSERT_GE(bytes.size(), 64u);
    EXPECT_EQ(bytes[1], ByteAt(at + 1));
  }
}

TEST_P(SegmentStreamConcurrentTest, AMissingSegmentIsEmptyAndAMissingRestIsZero) {
  Write(1);
  ASSERT_OK_AND_ASSIGN(auto file, env_->OpenFile(dir_.File("short"), {.mode = FileMode::kCreate}));
  const std::byte one[1] = {std::byte{1}};
  ASSERT_OK(file->Write(100, one));
  map_.names[kStreamSegment] = "short";
  SegmentStream stream(env_, dir_.path(), &map_, kStreamSegment, GetParam());
  ASSERT_OK_AND_ASSIGN(auto bytes, stream.At(kStreamSegment, kStreamSegment));
  ASSERT_EQ(bytes.size(), kStreamSegment);
  EXPECT_EQ(bytes[100], std::byte{1});
  EXPECT_EQ(bytes[kStreamSegment - 1], std::byte{0});
  ASSERT_OK_AND_ASSIGN(bytes, stream.At(2 * kStreamSegment, 64));
  EXPECT_TRUE(bytes.empty());
  EXPECT_NE(stream.PlaceOf(kStreamSegment + 7).find("short at offset 7"), std::string::npos);
  EXPECT_NE(stream.PlaceOf(2 * kStreamSegment).find("no file holds"), std::string::npos);
}

TEST_P(SegmentStreamConcurrentTest, AFileThatCannotBeOpenedIsAnError) {
  map_.names[0] = "not-there";
  SegmentStream stream(env_, dir_.path(), &map_, kStreamSegment, GetParam());
  EXPECT_STATUS(kNotFound, stream.At(0, 64), "not-there");
  EXPECT_STATUS(kNotFound, stream.At(64, 64), "not-there");
}

INSTANTIATE_TEST_SUITE_P(Threads, SegmentStreamConcurrentTest, ::testing::Bool());

}  // namespace
}  // namespace geardb::wal
