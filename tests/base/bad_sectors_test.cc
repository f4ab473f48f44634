// Reads around sectors that cannot be read.
#include "base/bad_sectors.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/env.h"
#include "tests/testing/matchers.h"

namespace geardb {
namespace {

/// A file of some blocks and a few bytes, byte by byte its block's number.
class BadSectorsTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 5 * kSectorBlockBytes + 100;

  static std::byte ByteAt(uint64_t at) {
    return static_cast<std::byte>(at / kSectorBlockBytes + 1);
  }
  /// Of a file whose blocks `bad_` cannot be read.
  std::optional<size_t> Read(uint64_t offset, std::span<std::byte> into) {
    return ReadAroundBadSectors(offset, into, [this](uint64_t at, std::span<std::byte> part) {
      return ReadPart(at, part);
    });
  }
  std::optional<size_t> ReadPart(uint64_t at, std::span<std::byte> part) {
    ++reads_;
    const size_t bytes = at < kBytes ? std::min<size_t>(part.size(), kBytes - at) : 0;
    for (uint64_t block = at / kSectorBlockBytes; block * kSectorBlockBytes < at + bytes; ++block) {
      if (bad_.contains(block) && (!heals_ || reads_ < 2)) return std::nullopt;
    }
    for (size_t i = 0; i < bytes; ++i) part[i] = ByteAt(at + i);
    return bytes;
  }
  /// Reads these bytes; all are right but those in bad blocks.
  void ExpectRead(uint64_t offset, size_t bytes) {
    std::vector<std::byte> into(bytes);
    const auto read = Read(offset, into);
    const bool to_the_end = offset + bytes > kBytes;
    ASSERT_TRUE(read);
    if (!to_the_end || !bad_.contains(kBytes / kSectorBlockBytes)) {
      ASSERT_EQ(*read, std::min<size_t>(bytes, kBytes - offset));
    }
    for (size_t i = 0; i < std::min<size_t>(*read, kBytes - offset); ++i) {
      const bool bad = bad_.contains((offset + i) / kSectorBlockBytes);
      ASSERT_EQ(into[i], bad ? kUnreadableByte : ByteAt(offset + i)) << offset + i;
    }
  }

  std::set<uint64_t> bad_;
  bool heals_ = false;
  int reads_ = 0;
};

TEST_F(BadSectorsTest, ABadBlockCostsItsBytesWhereverTheReadBegins) {
  for (uint64_t block = 0; block <= 5; ++block) {
    bad_ = {block};
    for (const uint64_t offset :
         {uint64_t{0}, uint64_t{10}, kSectorBlockBytes, 2 * kSectorBlockBytes + 7}) {
      for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{9000}, size_t{30000}}) {
        ExpectRead(offset, bytes);
      }
    }
  }
}

TEST_F(BadSectorsTest, SeveralAreReadAround) {
  bad_ = {1, 3};
  ExpectRead(0, kBytes);
  bad_ = {2, 3};
  ExpectRead(0, kBytes);
}

TEST_F(BadSectorsTest, WhereNoNeighbourCanBeReadItIsTheDisk) {
  std::vector<std::byte> into(kBytes);
  bad_ = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(Read(0, into), std::nullopt);
  bad_ = {1, 2, 3};
  EXPECT_EQ(Read(0, into), std::nullopt);
  EXPECT_EQ(Read(2 * kSectorBlockBytes, std::span(into).first(10)), std::nullopt);
}

TEST_F(BadSectorsTest, WhatIsReadAtTheSecondTryIsNotLost) {
  bad_ = {0};
  heals_ = true;
  std::vector<std::byte> into(100);
  ASSERT_EQ(Read(0, into), into.size());
  EXPECT_EQ(into[0], ByteAt(0));
}

// What is not mapped of a process cannot be read: its memory is a file with bad sectors.
TEST(BadSectorsOfAFileTest, AreReadAround) {
  constexpr size_t kBlock = kSectorBlockBytes;
  void* const mapped =
      ::mmap(nullptr, 5 * kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const at = static_cast<std::byte*>(mapped);
  std::fill_n(at, 5 * kBlock, std::byte{7});
  ASSERT_EQ(::munmap(at + 2 * kBlock, kBlock), 0);
  ASSERT_OK_AND_ASSIGN(const auto file, Env::Posix()->OpenFile("/proc/self/mem", {}));
  const auto offset = reinterpret_cast<uint64_t>(at);
  std::vector<std::byte> into(5 * kBlock - 10);
  ASSERT_OK_AND_ASSIGN(const size_t read, file->Read(offset + 10, into));
  ASSERT_EQ(read, into.size());
  for (size_t i = 0; i < into.size(); ++i) {
    const bool bad = (i + 10) / kBlock == 2;
    ASSERT_EQ(into[i], bad ? kUnreadableByte : std::byte{7}) << i;
  }
  // Nothing is there at all.
  const auto none = file->Read(uint64_t{1} << 46, into);
  EXPECT_STATUS(kIoError, none.status(), "/proc/self/mem");
  ::munmap(at, 2 * kBlock);
  ::munmap(at + 3 * kBlock, 2 * kBlock);
}

}  // namespace
}  // namespace geardb
