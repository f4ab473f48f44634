// Pools that are too many for the slabs there are share some.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "tests/engine/internal/arena_fixture.h"
#include "tests/testing/fault_env.h"

// concurrent: engine/internal/arena.h

namespace geardb::engine {
namespace {

class ArenaPartsTest : public ArenaTest {
 protected:
  void CreateWith(uint64_t slabs, size_t pools, uint64_t frame_bytes) {
    Create(slabs);
    pools_.clear();
    for (size_t i = 0; i < pools; ++i) {
      pools_.push_back(arena_->NewPool(frame_bytes, "pool " + std::to_string(i)));
    }
  }
  std::vector<FramePool*> pools_;
};

TEST_F(ArenaPartsTest, EachOfManyPoolsHasFrames) {
  CreateWith(4, 32, 64 * kKiB);
  std::vector<FrameRef> frames;
  for (FramePool* pool : pools_) frames.push_back(Take(pool));
  EXPECT_EQ(arena_->SharedNow(), (std::vector<uint32_t>{0, 1, 2, 3}));
  for (FramePool* pool : pools_) {
    EXPECT_EQ(arena_->BytesOwned(pool), kPartBytes);
    EXPECT_EQ(arena_->SlabsOwned(pool), 0u);
    EXPECT_EQ(TakeAll(pool).size(), 3u);  // Of the same part.
  }
  EXPECT_EQ(arena_->used_bytes(), 4 * kSlabBytes);
  // A part of another pool is for whoever needs one.
  arena_->Free(pools_[3], frames[3]);
  EXPECT_EQ(arena_->FramesAvailable(pools_[7]), 0u);
  EXPECT_FALSE(arena_->Allocate(pools_[7], Deadline::Now()).ok());
}

// Also what it had when there were enough stays its own, until it is empty.
TEST_F(ArenaPartsTest, OnceThereAreManyPoolsAllTakeParts) {
  CreateWith(4, 1, 64 * kKiB);
  const FrameRef first = Take(pools_[0]);
  EXPECT_EQ(arena_->SlabsOwned(pools_[0]), 1u);
  pools_.push_back(arena_->NewPool(64 * kKiB, "b"));
  Take(pools_[1]);
  EXPECT_EQ(arena_->SlabsOwned(pools_[1]), 0u);
  std::vector<FrameRef> frames;
  for (int i = 0; i < 31 + 5; ++i) frames.push_back(Take(pools_[0]));
  EXPECT_EQ(arena_->BytesOwned(pools_[0]), kSlabBytes + 2 * kPartBytes);
  for (int i = 0; i < 31; ++i) arena_->Free(pools_[0], frames[static_cast<size_t>(i)]);
  arena_->Free(pools_[0], first);
  EXPECT_EQ(arena_->BytesOwned(pools_[0]), 2 * kPartBytes);
  // All that there is.
  EXPECT_EQ(TakeAll(pools_[0]).size() + 5 + 4, 4u * 32);
}

TEST_F(ArenaPartsTest, WhereThereAreSlabsForAllNothingIsShared) {
  CreateWith(16, 4, 64 * kKiB);
  for (FramePool* pool : pools_) Take(pool);
  EXPECT_TRUE(arena_->SharedNow().empty());
  for (FramePool* pool : pools_) EXPECT_EQ(arena_->SlabsOwned(pool), 1u);
}

TEST_F(ArenaPartsTest, ASharedSlabIsFreeWhenAllOfItIs) {
  CreateWith(2, 6, 128 * kKiB);
  std::vector<FrameRef> frames;
  for (FramePool* pool : pools_) frames.push_back(Take(pool));
  ASSERT_EQ(arena_->SharedNow().size(), 1u);
  FramePool* large = arena_->NewPool(2 * kSlabBytes, "large");
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_STATUS(kResourceExhausted, arena_->Allocate(large, Deadline::Now()),
                  "bytes free in slabs that tables share");
    arena_->Retire(pools_[i], frames[i]);
  }
  Take(large);
  EXPECT_TRUE(arena_->SharedNow().empty());
}

// Nothing is shared of what is kept, and a pool for which slabs are kept has those.
TEST_F(ArenaPartsTest, KeptSlabsAreNotShared) {
  CreateWith(4, 8, 64 * kKiB);
  arena_->Keep(pools_[0], 3 * 32);
  EXPECT_EQ(TakeAll(pools_[1]).size(), 32u);
  EXPECT_FALSE(arena_->Allocate(pools_[2], Deadline::Now()).ok());
  EXPECT_EQ(TakeAll(pools_[0]).size(), 3u * 32);
  EXPECT_EQ(arena_->BytesOwned(pools_[0]), 3 * kSlabBytes);
}

// What was allocated before slabs were kept takes parts before it takes of those.
TEST_F(ArenaPartsTest, WhatWasThereBeforeFillsParts) {
  CreateWith(4, 8, 64 * kKiB);
  arena_->Keep(pools_[0], 2 * 32);
  for (int i = 0; i < 64; ++i) {
    ASSERT_OK(arena_->Allocate(pools_[1], Deadline::Now(), Kept::kTaken)) << i;
  }
  EXPECT_EQ(arena_->SharedNow().size(), 2u);
  EXPECT_EQ(TakeAll(pools_[0]).size(), 64u);
}

TEST_F(ArenaPartsTest, FramesOfMostSizesFillParts) {
  EXPECT_TRUE(FitsParts(128));
  EXPECT_TRUE(FitsParts(64 * kKiB));
  EXPECT_TRUE(FitsParts(65 * kKiB));  // Three.
  EXPECT_TRUE(FitsParts(256 * kKiB));
  EXPECT_FALSE(FitsParts(130 * kKiB));
  EXPECT_TRUE(FitsParts(192 * kKiB));
  EXPECT_FALSE(FitsParts(257 * kKiB));
}

TEST_F(ArenaPartsTest, RandomUseKeepsPoolsApart) {
  Create(6);
  testing::Random random(11);
  std::vector<FramePool*> pools;
  for (const uint64_t kib : {4u, 33u, 64u, 100u, 192u, 256u, 512u, 3000u}) {
    pools.push_back(arena_->NewPool(kib * kKiB, std::to_string(kib)));
  }
  std::vector<std::pair<FramePool*, FrameRef>> held;
  for (int step = 0; step < 30'000; ++step) {
    if (random.OneIn(200)) {
      arena_->Keep(pools[random.Below(pools.size())], random.Below(5));
    } else if (held.size() < 200 && random.OneIn(2)) {
      FramePool* pool = pools[random.Below(pools.size())];
      const auto frame =
          arena_->Allocate(pool, Deadline::Now(), random.OneIn(5) ? Kept::kTaken : Kept::kLeft);
      if (!frame.ok()) continue;
      for (const auto& [other_pool, other] : held) {
        ASSERT_TRUE(frame->offset() + pool->frame_bytes() <= other.offset() ||
                    other.offset() + other_pool->frame_bytes() <= frame->offset());
      }
      held.emplace_back(pool, *frame);
    } else if (!held.empty()) {
      const size_t at = random.Below(held.size());
      if (random.OneIn(3)) arena_->MoveDown(held[at].first, &held[at].second);
      arena_->Free(held[at].first, held[at].second);
      held[at] = held.back();
      held.pop_back();
    }
  }
  for (const auto& [pool, frame] : held) arena_->Free(pool, frame);
  for (FramePool* pool : pools) arena_->Keep(pool, 0);
  EXPECT_TRUE(arena_->SharedNow().empty());
  EXPECT_EQ(Take(arena_->NewPool(6 * kSlabBytes, "whole")).offset(), 0u);  // Nothing was lost.
}

class ArenaPartsConcurrentTest : public ArenaPartsTest {};

TEST_F(ArenaPartsConcurrentTest, ThreadsShareSlabs) {
  CreateWith(2, 12, 96 * kKiB);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t round = 0; round < 300; ++round) {
        FramePool* pool = pools_[(t * 3 + round) % pools_.size()];
        const auto frame = arena_->Allocate(pool, Deadline::AfterMs(60'000));
        if (!frame.ok()) continue;
        std::memset(arena_->Resolve(*frame), static_cast<int>(t), 64);
        EXPECT_EQ(arena_->Resolve(*frame)[63], static_cast<std::byte>(t));
        (void)arena_->SharedNow();
        (void)arena_->FramesUsed(static_cast<uint32_t>(frame->offset() / kPartBytes));
        arena_->Retire(pool, *frame);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(arena_->LacksKept());  // Reclaims.
  EXPECT_TRUE(arena_->SharedNow().empty());
}

}  // namespace
}  // namespace geardb::engine
