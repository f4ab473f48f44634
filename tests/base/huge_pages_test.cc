// concurrent: base/huge_pages.h base/huge_pages.cc
#include "base/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace geardb {
namespace {

class HugePagesTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 8 * kHugePageBytes;

  void SetUp() override {
    fd_ = memfd_create("huge-pages-test", MFD_CLOEXEC);
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(ftruncate(fd_, kBytes), 0);
    base_ = MapShared(fd_, kBytes);
    ASSERT_NE(base_, nullptr);
  }
  void TearDown() override {
    munmap(base_, kBytes);
    close(fd_);
  }
  /// Of the mapping, in huge pages.
  uint64_t HugeBytes() const {
    std::ifstream maps("/proc/self/smaps");
    const std::string name = "/memfd:huge-pages-test";
    bool ours = false;
    uint64_t kib = 0;
    for (std::string line; std::getline(maps, line);) {
      if (line.find(" /") != std::string::npos || line.find(" [") != std::string::npos) {
        ours = line.find(name) != std::string::npos;
      }
      const std::string field = "ShmemPmdMapped:";
      if (ours && line.starts_with(field)) kib += std::stoull(line.substr(field.size()));
    }
    return kib << 10;
  }

  int fd_ = -1;
  std::byte* base_ = nullptr;
};

TEST_F(HugePagesTest, AMappingIsAlignedAndShared) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(base_) % kHugePageBytes, 0u);
  base_[kBytes - 1] = std::byte{7};
  std::byte read{};
  ASSERT_EQ(pread(fd_, &read, 1, kBytes - 1), 1);
  EXPECT_EQ(read, std::byte{7});
  EXPECT_EQ(MapShared(-1, kBytes), nullptr);
}

TEST_F(HugePagesTest, WholePiecesAloneBecomeHuge) {
  HugePages pages;
  pages.Take(base_ + 4096, 2 * kHugePageBytes - 4096);
  if (pages.taken_bytes() == 0) GTEST_SKIP() << "the system has none to give";
  EXPECT_EQ(pages.taken_bytes(), kHugePageBytes);
  for (uint64_t at = 0; at < 2 * kHugePageBytes; at += 4096) base_[at] = std::byte{1};
  EXPECT_EQ(HugeBytes(), kHugePageBytes);
  pages.Take(base_, kHugePageBytes - 4096);
  EXPECT_EQ(pages.taken_bytes(), kHugePageBytes);
}

TEST_F(HugePagesTest, BytesStayAsTheyAre) {
  base_[5000] = std::byte{1};
  base_[3 * kHugePageBytes - 1] = std::byte{2};
  HugePages pages;
  pages.Take(base_, kBytes);
  for (uint64_t at = 0; at < kBytes; ++at) {
    const auto expected = at == 5000 ? 1 : at == 3 * kHugePageBytes - 1 ? 2 : 0;
    ASSERT_EQ(base_[at], std::byte(expected)) << at;
  }
}

TEST_F(HugePagesTest, WhatIsNotSharedMemoryGivesNone) {
  void* const locked =
      mmap(nullptr, 4 * kHugePageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(locked, MAP_FAILED);
  HugePages pages;
  pages.Take(static_cast<std::byte*>(locked), 4 * kHugePageBytes);
  pages.Take(base_, kBytes);
  EXPECT_EQ(pages.taken_bytes(), 0u) << "it is asked again";
  munmap(locked, 4 * kHugePageBytes);
}

using HugePagesConcurrentTest = HugePagesTest;

TEST_F(HugePagesConcurrentTest, OthersWriteMeanwhile) {
  constexpr int kRounds = 100;
  std::vector<std::thread> writers;
  for (size_t writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      for (int round = 1; round <= kRounds; ++round) {
        for (uint64_t at = writer; at < kBytes; at += 1009 * 2) base_[at] = std::byte(round);
      }
    });
  }
  HugePages pages;
  std::thread other([&] { pages.Take(base_, kBytes); });
  pages.Take(base_, kBytes);
  other.join();
  for (std::thread& writer : writers) writer.join();
  for (size_t writer = 0; writer < 2; ++writer) {
    for (uint64_t at = writer; at < kBytes; at += 1009 * 2) {
      ASSERT_EQ(base_[at], std::byte(kRounds)) << at;
    }
  }
}

}  // namespace
}  // namespace geardb
