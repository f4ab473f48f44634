#include "base/large_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/testing/sanitizers.h"

namespace geardb {
namespace {

TEST(LargeMemoryTest, IsAlignedAndWritable) {
  for (const uint64_t bytes : {1u, 64u, 1000u, 32767u, 32768u, 100'001u, 5'000'000u}) {
    SCOPED_TRACE(bytes);
    std::byte* const memory = TakeMemory(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    std::memset(memory, 7, bytes);
    EXPECT_EQ(memory[bytes - 1], std::byte{7});
    GiveMemoryBack(memory, bytes);
  }
  GiveMemoryBack(nullptr, 100);
}

uint64_t ResidentPages() {
  uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

// Of these sizes malloc would keep each that lies below another.
TEST(LargeMemoryTest, LeavesTheProcessInAnyOrder) {
  if constexpr (testing::kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed";
  constexpr uint64_t kBytes = 100 << 10;
  constexpr size_t kPieces = 200;
  constexpr uint64_t kPages = kPieces * kBytes / 4096;
  std::byte* pieces[kPieces];
  const uint64_t before = ResidentPages();
  for (std::byte*& piece : pieces) std::memset(piece = TakeMemory(kBytes), 1, kBytes);
  EXPECT_GE(ResidentPages(), before + kPages);
  for (size_t i = 0; i < kPieces - 1; ++i) GiveMemoryBack(pieces[i], kBytes);
  EXPECT_LT(ResidentPages(), before + kPages / 4);
  GiveMemoryBack(pieces[kPieces - 1], kBytes);
}

TEST(LargeMemoryTest, WhatNobodyReadsAgainLeavesAtOnce) {
  if constexpr (testing::kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed";
  constexpr uint64_t kBytes = 8 << 20;
  const uint64_t before = ResidentPages();
  std::byte* const memory = TakeMemory(kBytes);
  std::memset(memory, 1, kBytes);
  EXPECT_GE(ResidentPages(), before + kBytes / 4096);
  LeaveMemory(memory + 100, kBytes - 200);
  EXPECT_LT(ResidentPages(), before + kBytes / 4096 / 4);
  EXPECT_EQ(memory[99], std::byte{1});
  EXPECT_EQ(memory[kBytes - 100], std::byte{1});
  LeaveMemory(memory + 1, 100);  // Less than a page: it stays.
  EXPECT_EQ(memory[1], std::byte{1});
  std::memset(memory, 2, kBytes);
  EXPECT_EQ(memory[kBytes / 2], std::byte{2});
  GiveMemoryBack(memory, kBytes);
}

}  // namespace
}  // namespace geardb
