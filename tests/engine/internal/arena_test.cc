// concurrent: engine/internal/arena.h
#include "engine/internal/arena.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "tests/engine/internal/arena_fixture.h"
#include "tests/testing/fault_env.h"

namespace geardb::engine {
namespace {

/// Of shared memory, the arena's among it.
uint64_t ResidentBytes() {
  uint64_t size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(ArenaTest, FramesAreDistinctAndWritable) {
  Create(4);
  FramePool* pool = arena_->NewPool(64 * kKiB, "a");
  const auto frames = TakeAll(pool);
  EXPECT_EQ(frames.size(), 4u * 32);
  std::set<uint64_t> offsets;
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_TRUE(offsets.insert(frames[i].offset()).second);
    EXPECT_EQ(frames[i].offset() % 128, 0u);
    std::memset(arena_->Resolve(frames[i]), static_cast<int>(i), 64 * kKiB);
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(arena_->Resolve(frames[i])[0], static_cast<std::byte>(i));
    EXPECT_EQ(arena_->Resolve(frames[i])[64 * kKiB - 1], static_cast<std::byte>(i));
  }
  EXPECT_EQ(arena_->used_bytes(), 4 * kSlabBytes);
}

TEST_F(ArenaTest, SixteenBytesCanBeLoadedAtTheLastByteOfTheLastFrame) {
  Create(2);
  FramePool* pool = arena_->NewPool(64 * kKiB, "a");
  const FrameRef last = TakeAll(pool).back();
  EXPECT_EQ(last.offset(), 2 * kSlabBytes - 64 * kKiB);
  std::array<std::byte, 16> loaded;
  std::memcpy(loaded.data(), arena_->Resolve(last) + 64 * kKiB - 1, loaded.size());
  EXPECT_EQ(loaded.back(), std::byte{0});
}

TEST_F(ArenaTest, TheBudgetIsNamedWhenItIsUsedUp) {
  Create(1);
  FramePool* pool = arena_->NewPool(512 * kKiB, "table 'x'");
  TakeAll(pool);
  EXPECT_STATUS(kResourceExhausted, arena_->Allocate(pool, Deadline::Now()),
                "no frame of 524288 bytes for table 'x': the frame budget of 2097152 bytes has "
                "2097152 bytes of frames in use");
}

TEST_F(ArenaTest, WhatHoldsPartlyUsedSlabsIsNamed) {
  Create(4);
  FramePool* sparse = arena_->NewPool(512 * kKiB, "table 'sparse'");
  FramePool* other = arena_->NewPool(512 * kKiB, "table 'other'");
  FramePool* wanting = arena_->NewPool(1024 * kKiB, "table 'wanting'");
  const FrameRef one = Take(other);
  const auto frames = TakeAll(sparse);
  ASSERT_EQ(frames.size(), 3u * 4);
  for (size_t i = 0; i < frames.size(); ++i) {
    if (i % 4 != 0) arena_->Free(sparse, frames[i]);
  }
  EXPECT_STATUS(kResourceExhausted, arena_->Allocate(wanting, Deadline::Now()),
                "no frame of 1048576 bytes for table 'wanting': the frame budget of 8388608 bytes "
                "has 2097152 bytes of frames in use, 6291456 bytes unused in their slabs of "
                "2097152 bytes, each of one table until it is empty (4718592 in 3 of table "
                "'sparse')");
  arena_->Free(other, one);
  FramePool* large = arena_->NewPool(2 * kSlabBytes, "table 'large'");
  EXPECT_STATUS(kResourceExhausted, arena_->Allocate(large, Deadline::Now()),
                ", 2097152 bytes of free slabs, not enough side by side");
}

TEST_F(ArenaTest, OddSizesFillTheirSlabs) {
  Create(1);
  FramePool* pool = arena_->NewPool(384, "a");
  EXPECT_EQ(TakeAll(pool).size(), kSlabBytes / 384);
}

// Of frames for which no part will do.
TEST_F(ArenaTest, ASlabBelongsToOnePoolUntilItIsEmpty) {
  Create(1);
  FramePool* small = arena_->NewPool(512 * kKiB, "small");
  FramePool* other = arena_->NewPool(1024 * kKiB, "other");
  const FrameRef first = Take(small);
  const FrameRef second = Take(small);
  EXPECT_FALSE(arena_->Allocate(other, Deadline::Now()).ok());
  arena_->Free(small, first);
  EXPECT_FALSE(arena_->Allocate(other, Deadline::Now()).ok());
  arena_->Free(small, second);
  EXPECT_EQ(TakeAll(other).size(), 2u);
  EXPECT_FALSE(arena_->Allocate(small, Deadline::Now()).ok());
}

TEST_F(ArenaTest, LowestFreeFramesComeFirst) {
  Create(2);
  FramePool* pool = arena_->NewPool(64 * kKiB, "a");
  const auto frames = TakeAll(pool);
  arena_->Free(pool, frames[40]);
  arena_->Free(pool, frames[7]);
  arena_->Free(pool, frames[3]);
  EXPECT_EQ(Take(pool), frames[3]);
  EXPECT_EQ(Take(pool), frames[7]);
  EXPECT_EQ(Take(pool), frames[40]);
}

TEST_F(ArenaTest, FramesLargerThanASlabTakeRunsFromTheEnd) {
  Create(8);
  FramePool* large = arena_->NewPool(5 * kSlabBytes / 2, "large");
  FramePool* small = arena_->NewPool(64 * kKiB, "small");
  const FrameRef first = Take(large);   // Slabs 5 … 7.
  const FrameRef one = Take(small);     // 0.
  const FrameRef second = Take(large);  // 2 … 4.
  EXPECT_EQ(first.offset(), 5 * kSlabBytes);
  EXPECT_EQ(one.offset(), 0u);
  EXPECT_EQ(second.offset(), 2 * kSlabBytes);
  EXPECT_EQ(arena_->used_bytes(), 6 * kSlabBytes + 64 * kKiB);
  std::memset(arena_->Resolve(second), 1, 5 * kSlabBytes / 2);
  EXPECT_FALSE(arena_->Allocate(large, Deadline::Now()).ok());  // Only slab 1 is left.
  arena_->Free(large, first);
  EXPECT_EQ(Take(large), first);
  arena_->Free(large, first);
  arena_->Free(large, second);
  FramePool* larger = arena_->NewPool(4 * kSlabBytes, "larger");
  EXPECT_EQ(Take(larger).offset(), 4 * kSlabBytes);
  EXPECT_FALSE(arena_->Allocate(larger, Deadline::Now()).ok());  // 1 … 3 are left.
}

TEST_F(ArenaTest, ARunDoesNotSkipAGap) {
  // Slabs 0 and 2 are taken.
  Create(7);
  FramePool* one = arena_->NewPool(kSlabBytes, "one");
  FramePool* two = arena_->NewPool(2 * kSlabBytes, "two");
  FrameRef slabs[3];
  for (FrameRef& slab : slabs) slab = Take(one);
  arena_->Free(one, slabs[1]);
  EXPECT_EQ(Take(two).offset(), 5 * kSlabBytes);
  EXPECT_EQ(Take(two).offset(), 3 * kSlabBytes);
  EXPECT_FALSE(arena_->Allocate(two, Deadline::Now()).ok());
  EXPECT_EQ(Take(one), slabs[1]);
}

TEST_F(ArenaTest, PoolsOfManySlabsAskForHugePages) {
  Create(24);
  if (arena_->page_kind() != "4 KiB") GTEST_SKIP() << "all memory has them";
  FramePool* small = arena_->NewPool(kSlabBytes, "small");
  for (int i = 0; i < 7; ++i) Take(small);
  const uint64_t before = ResidentBytes();
  FramePool* large = arena_->NewPool(kSlabBytes / 2, "large");
  for (int i = 0; i < 14; ++i) Take(large);
  EXPECT_EQ(arena_->page_kind(), "4 KiB");
  EXPECT_LT(ResidentBytes(), before + kSlabBytes) << "of slabs that nobody has written";
  const FrameRef first = Take(large);
  if (arena_->page_kind() == "4 KiB") GTEST_SKIP() << "the system has none to give";
  EXPECT_EQ(arena_->page_kind(), "huge (asked for)");
  EXPECT_GE(ResidentBytes(), before + kSlabBytes);
  EXPECT_EQ(arena_->Resolve(first)[kSlabBytes / 2 - 1], std::byte{0});
}

TEST_F(ArenaTest, RetiredFramesWaitForTheirReaders) {
  Create(1);
  FramePool* pool = arena_->NewPool(kSlabBytes, "a");
  const FrameRef frame = Take(pool);
  auto reader = epochs_.Enter();
  arena_->Retire(pool, frame);
  EXPECT_EQ(arena_->used_bytes(), kSlabBytes);  // Still.
  EXPECT_FALSE(arena_->Allocate(pool, Deadline::Now()).ok());
  auto late = epochs_.Enter();  // Began after it was retired: does not hold it.
  reader.Leave();
  EXPECT_EQ(arena_->used_bytes(), 0u) << "though nobody has asked for a frame since";
  EXPECT_EQ(Take(pool), frame);
}

// Else a table that is full takes slab after slab, which others then lack.
TEST_F(ArenaTest, RetiredFramesAreUsedBeforeAnotherSlab) {
  Create(4);
  FramePool* pool = arena_->NewPool(64 * kKiB, "a");
  std::vector<FrameRef> frames;
  for (int i = 0; i < 32; ++i) frames.push_back(Take(pool));
  for (int i = 0; i < 100; ++i) {
    FrameRef& oldest = frames[static_cast<size_t>(i) % frames.size()];
    arena_->Retire(pool, oldest);
    oldest = Take(pool);
    ASSERT_LT(oldest.offset(), kSlabBytes) << i;
  }
  // One that somebody reads waits for nobody, while there is another slab.
  const EpochRegistry::Guard reader = epochs_.Enter();
  arena_->Retire(pool, frames[0]);
  EXPECT_EQ(Take(pool).offset(), kSlabBytes);
}

TEST_F(ArenaTest, ADroppedPoolGoesWithItsLastFrame) {
  Create(4);
  for (const uint64_t frame_bytes : {64 * kKiB, 2 * kSlabBytes}) {
    SCOPED_TRACE(frame_bytes);
    FramePool* pool = arena_->NewPool(frame_bytes, "a");
    EXPECT_EQ(arena_->pool_count(), 1u);
    arena_->Keep(pool, 1);
    arena_->Free(pool, Take(pool));
    arena_->Retire(pool, Take(pool));
    {
      const EpochRegistry::Guard reader = epochs_.Enter();
      arena_->Retire(pool, Take(pool));
      arena_->DropPool(pool);
      EXPECT_EQ(arena_->pool_count(), 1u);
    }
    arena_->LacksKept();  // Reclaims.
    EXPECT_EQ(arena_->pool_count(), 0u);
    arena_->DropPool(arena_->NewPool(frame_bytes, "empty"));
    EXPECT_EQ(arena_->pool_count(), 0u);
    EXPECT_EQ(arena_->used_bytes(), 0u);
  }
}

// Free slabs between others' are lent for a run behind the budget.
TEST_F(ArenaTest, RunsNeedNoNeighbours) {
  Create(8);
  FramePool* small = arena_->NewPool(kSlabBytes, "small");
  FramePool* large = arena_->NewPool(3 * kSlabBytes, "large");
  const std::vector<FrameRef> frames = TakeAll(small);
  for (const FrameRef frame : frames) std::memset(arena_->Resolve(frame), 1, kSlabBytes);
  for (const size_t freed : {1u, 3u, 5u}) arena_->Free(small, frames[freed]);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const uint64_t resident = ResidentBytes();
    const FrameRef run = Take(large);
    EXPECT_GE(run.offset(), 8 * kSlabBytes);
    EXPECT_TRUE(TakeAll(small).empty());
    EXPECT_EQ(arena_->used_bytes(), 8 * kSlabBytes);
    EXPECT_EQ(arena_->Resolve(run)[0], std::byte{0});
    std::memset(arena_->Resolve(run), 2, 3 * kSlabBytes);
    EXPECT_LE(ResidentBytes(), resident + kSlabBytes / 2);
    EXPECT_EQ(arena_->Resolve(frames[0])[kSlabBytes - 1], std::byte{1});
    arena_->Free(large, run);
    const std::vector<FrameRef> again = TakeAll(small);
    EXPECT_EQ(again.size(), 3u);
    for (const FrameRef frame : again) {
      EXPECT_LT(frame.offset(), 8 * kSlabBytes);
      std::memset(arena_->Resolve(frame), 1, kSlabBytes);
      arena_->Free(small, frame);
    }
  }
}

TEST_F(ArenaTest, WhatIsMovedDownIsInFewSlabs) {
  Create(8);
  FramePool* pool = arena_->NewPool(512 * kKiB, "a");
  FramePool* other = arena_->NewPool(kSlabBytes, "other");
  std::vector<FrameRef> frames = TakeAll(pool);
  std::vector<std::pair<FrameRef, int>> left;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (i % 4 != i / 4 % 4) {
      arena_->Free(pool, frames[i]);
      continue;
    }
    left.emplace_back(frames[i], static_cast<int>(i));
    std::memset(arena_->Resolve(frames[i]), static_cast<int>(i), 512 * kKiB);
  }
  ASSERT_EQ(left.size(), 8u);
  EXPECT_TRUE(TakeAll(other).empty());
  for (auto& [frame, value] : left) arena_->MoveDown(pool, &frame);
  EXPECT_EQ(TakeAll(other).size(), 6u);
  std::set<uint64_t> offsets;
  for (const auto& [frame, value] : left) {
    EXPECT_TRUE(offsets.insert(frame.offset()).second);
    EXPECT_EQ(arena_->Resolve(frame)[0], static_cast<std::byte>(value));
    EXPECT_EQ(arena_->Resolve(frame)[512 * kKiB - 1], static_cast<std::byte>(value));
    arena_->Free(pool, frame);
  }
}

TEST_F(ArenaTest, BudgetsBelowASlabAreRefused) {
  EXPECT_STATUS(kInvalidArgument, HostArena::Create({.budget_bytes = 1000}, &epochs_), "1000");
  EXPECT_STATUS(kInvalidArgument, HostArena::Create({.budget_bytes = 0}, &epochs_), "0 bytes");
}

TEST_F(ArenaTest, RandomUseNeverHandsAFrameOutTwice) {
  Create(16);
  testing::Random random(3);
  FramePool* pools[] = {arena_->NewPool(96 * kKiB, "a"), arena_->NewPool(384 * kKiB, "b"),
                        arena_->NewPool(3 * kSlabBytes - 128, "c"),
                        arena_->NewPool(kSlabBytes, "d")};
  std::vector<std::pair<FramePool*, FrameRef>> held;
  uint64_t used = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random.OneIn(100)) {
      arena_->Keep(pools[random.Below(4)], random.Below(6));
    } else if (random.OneIn(2)) {
      FramePool* pool = pools[random.Below(4)];
      const auto frame = arena_->Allocate(pool, Deadline::Now());
      if (!frame.ok()) continue;
      for (const auto& [other_pool, other] : held) {
        ASSERT_TRUE(frame->offset() + pool->frame_bytes() <= other.offset() ||
                    other.offset() + other_pool->frame_bytes() <= frame->offset());
      }
      held.emplace_back(pool, *frame);
    } else if (!held.empty()) {
      const size_t at = random.Below(held.size());
      if (random.OneIn(2)) {
        arena_->Free(held[at].first, held[at].second);
      } else {
        arena_->Retire(held[at].first, held[at].second);
      }
      held[at] = held.back();
      held.pop_back();
    }
  }
  for (const auto& [pool, frame] : held) arena_->Free(pool, frame);
  for (FramePool* pool : pools) arena_->Keep(pool, 0);
  FramePool* whole = arena_->NewPool(16 * kSlabBytes, "whole");
  EXPECT_EQ(Take(whole).offset(), 0u);  // Nothing was lost.
  used = arena_->used_bytes();
  EXPECT_EQ(used, 16 * kSlabBytes);
}

class ArenaConcurrentTest : public ArenaTest {};

TEST_F(ArenaConcurrentTest, ThreadsTakeAndRetireWhileReadersRead) {
  Create(2);
  FramePool* pool = arena_->NewPool(256 * kKiB, "a");
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 400; ++round) {
        const auto frame = arena_->Allocate(pool, Deadline::AfterMs(60'000));
        if (!frame.ok()) continue;
        ++taken;
        auto* bytes = reinterpret_cast<uint64_t*>(arena_->Resolve(*frame));
        bytes[0] = bytes[9] = static_cast<uint64_t>(t);
        {
          const auto reader = epochs_.Enter();
          EXPECT_EQ(bytes[0], static_cast<uint64_t>(t));
          EXPECT_EQ(bytes[9], static_cast<uint64_t>(t));
        }
        arena_->Retire(pool, *frame);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken, 1600u);
}

TEST_F(ArenaConcurrentTest, AllocateWaitsForARetiredFrame) {
  Create(1);
  FramePool* pool = arena_->NewPool(kSlabBytes, "a");
  const FrameRef frame = Take(pool);
  auto reader = epochs_.Enter();
  arena_->Retire(pool, frame);
  Result<FrameRef> got = Status::NotFound("");
  std::thread waiting([&] { got = arena_->Allocate(pool, Deadline::Infinite()); });
  reader.Leave();
  waiting.join();
  ASSERT_OK(got);
  EXPECT_EQ(*got, frame);
}

}  // namespace
}  // namespace geardb::engine
