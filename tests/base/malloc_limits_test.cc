// concurrent: base/malloc_limits.h
// Few arenas for little memory, and none of our business where somebody has decided.
#include "base/malloc_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

/// glibc's: writes what malloc has, as XML.
extern "C" int malloc_info(int options, FILE* file);

namespace {

/// What jemalloc would be asked; empty: there is none.
std::map<std::string, ptrdiff_t>* jemalloc_settings = nullptr;

}  // namespace

/// As jemalloc's.
extern "C" int mallctl(const char* name, void* old, size_t* old_size, void* set, size_t set_size) {
  if (jemalloc_settings == nullptr) return ENOENT;
  const auto found = jemalloc_settings->find(name);
  if (found == jemalloc_settings->end()) return ENOENT;
  if (old != nullptr) std::memcpy(old, &found->second, *old_size);
  if (set != nullptr) std::memcpy(&found->second, set, set_size);
  return 0;
}

namespace geardb {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string MallocInfo() {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* const file = open_memstream(&text, &bytes);
  malloc_info(0, file);
  std::fclose(file);
  std::string info(text, bytes);
  std::free(text);
  return info;
}

TEST(MallocLimitsTest, FewForLittleMemory) {
  EXPECT_EQ(MallocArenasFor(0), 2);
  EXPECT_EQ(MallocArenasFor(64 * kMiB), 2);
  EXPECT_EQ(MallocArenasFor(139 * kMiB), 4);
  EXPECT_EQ(MallocArenasFor(512 * kMiB - 1), 15);
  EXPECT_EQ(MallocArenasFor(512 * kMiB), 0);
  EXPECT_EQ(MallocArenasFor(UINT64_MAX), 0);
}

TEST(MallocLimitsTest, JemallocIsAskedToGiveBackSoonUnlessSomebodyHasDecided) {
  EXPECT_FALSE(LimitJemalloc());
  std::map<std::string, ptrdiff_t> of_it = {{"opt.dirty_decay_ms", 10'000},
                                            {"arenas.dirty_decay_ms", 10'000},
                                            {"arenas.narenas", 3},
                                            {"arena.0.dirty_decay_ms", 10'000},
                                            {"arena.2.dirty_decay_ms", 10'000},
                                            {"arena.3.dirty_decay_ms", 10'000}};
  of_it["thread.tcache.enabled"] = 1;
  jemalloc_settings = &of_it;
  KeepNoThreadCache();
  EXPECT_EQ(of_it["thread.tcache.enabled"], 1);
  EXPECT_TRUE(LimitJemalloc());
  KeepNoThreadCache();
  EXPECT_EQ(of_it["thread.tcache.enabled"], 0);
  EXPECT_EQ(of_it["arenas.dirty_decay_ms"], 200);
  EXPECT_EQ(of_it["arena.0.dirty_decay_ms"], 200);
  EXPECT_EQ(of_it["arena.2.dirty_decay_ms"], 200);
  EXPECT_EQ(of_it["arena.3.dirty_decay_ms"], 10'000);  // There are three.
  of_it["opt.dirty_decay_ms"] = 0;
  of_it["arenas.dirty_decay_ms"] = 0;
  EXPECT_FALSE(LimitJemalloc());
  EXPECT_EQ(of_it["arenas.dirty_decay_ms"], 0);
  jemalloc_settings = nullptr;
}

class MallocLimitsConcurrentTest : public ::testing::Test {
 protected:
  /// How many there are once so many threads have used malloc at once.
  static size_t ArenasAfter(int threads) {
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([] {
        for (size_t i = 1; i < 2000; ++i) std::free(std::malloc(i * 16));
      });
    }
    for (std::thread& thread : all) thread.join();
    const std::string found = MallocInfo();
    size_t arenas = 0;
    for (size_t at = 0; (at = found.find("<heap nr=", at)) != std::string::npos; ++at) ++arenas;
    return arenas;
  }
};

TEST_F(MallocLimitsConcurrentTest, NoMoreAreMadeThanWereAskedFor) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__has_feature)
  GTEST_SKIP() << "the sanitizers have a malloc of their own";
#endif
  std::vector<std::thread> askers;
  for (int t = 0; t < 4; ++t) askers.emplace_back([] { LimitMalloc(64 * kMiB); });
  for (std::thread& asker : askers) asker.join();
  // A limit is not lifted again.
  LimitMalloc(400 * kMiB);
  const size_t before = ArenasAfter(0);
  EXPECT_LE(ArenasAfter(12), std::max<size_t>(before, 3));
}

/// Bytes of chunks that malloc has mapped, one by one.
uint64_t MappedChunks() {
  const std::string found = MallocInfo();
  const std::string name = "<total type=\"mmap\" count=\"";
  const size_t at = found.find("size=\"", found.find(name));
  return at == std::string::npos ? 0 : std::strtoull(found.c_str() + at + 6, nullptr, 10);
}

// By itself glibc takes chunks of up to the largest size that was freed from an arena, and keeps
// them there.
TEST(MallocLimitsTest, LargeChunksAreGivenBackAtOnce) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__has_feature)
  GTEST_SKIP() << "the sanitizers have a malloc of their own";
#endif
  LimitMalloc(64 * kMiB);
  std::free(std::malloc(8 * kMiB));
  const uint64_t before = MappedChunks();
  void* volatile chunk = std::malloc(2 * kMiB);
  const uint64_t with = MappedChunks();
  std::free(chunk);
  EXPECT_GE(with, before + 2 * kMiB);
  EXPECT_EQ(MappedChunks(), before);
}

}  // namespace
}  // namespace geardb
