// Slabs that are kept for a pool: who may take them, and when.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/internal/arena_fixture.h"

namespace geardb::engine {
namespace {

using ArenaKeptTest = ArenaTest;

// The slabs that a table at its bound lacks would be gone until the next open.
TEST_F(ArenaKeptTest, SlabsKeptForOnePoolAreLeftByOthers) {
  Create(4);
  FramePool* full = arena_->NewPool(kSlabBytes / 2, "table 'full'");
  FramePool* late = arena_->NewPool(kSlabBytes / 2, "table 'late'");
  arena_->Keep(full, 4);
  arena_->Keep(late, 3);  // 2 slabs.
  std::vector<FrameRef> frames = TakeAll(full);
  EXPECT_EQ(frames.size(), 4u);
  EXPECT_STATUS(
      kResourceExhausted, arena_->Allocate(full, Deadline::Now()),
      "has 4194304 bytes of frames in use, 4194304 bytes of free slabs kept for the bounds "
      "of other tables");
  {
    // What readers hold is waited for, not replaced from what is kept.
    const EpochRegistry::Guard reader = epochs_.Enter();
    arena_->Retire(full, frames[0]);
    EXPECT_FALSE(arena_->Allocate(full, Deadline::Now()).ok());
  }
  EXPECT_EQ(Take(full), frames[0]);
  EXPECT_EQ(TakeAll(late).size(), 4u);
  // A pool without a bound has what is left, and nothing is kept any more.
  arena_->Free(full, frames[2]);
  arena_->Free(full, frames[3]);
  FramePool* unbounded = arena_->NewPool(64 * kKiB, "table 'unbounded'");
  EXPECT_TRUE(TakeAll(unbounded).empty());
  arena_->Keep(full, 0);
  EXPECT_EQ(TakeAll(unbounded).size(), 32u);
}

TEST_F(ArenaKeptTest, APoolMayTakeMoreThanItsOwnWhereMoreIsFree) {
  Create(4);
  FramePool* a = arena_->NewPool(kSlabBytes, "a");
  FramePool* b = arena_->NewPool(kSlabBytes, "b");
  arena_->Keep(a, 1);
  arena_->Keep(b, 1);
  const std::vector<FrameRef> frames = TakeAll(a);
  EXPECT_EQ(frames.size(), 3u);
  EXPECT_EQ(TakeAll(b).size(), 1u);
  arena_->Free(a, frames[1]);  // b has its own; whoever comes first takes this.
  EXPECT_EQ(Take(b), frames[1]);
}

// What others had when the second was kept, only the second waits for.
TEST_F(ArenaKeptTest, WhoseSlabsWereKeptFirstIsServedFirst) {
  Create(6);
  FramePool* first = arena_->NewPool(kSlabBytes, "first");
  FramePool* other = arena_->NewPool(kSlabBytes, "other");
  FramePool* second = arena_->NewPool(kSlabBytes, "second");
  arena_->Keep(first, 2);
  const std::vector<FrameRef> frames = TakeAll(other);
  EXPECT_EQ(frames.size(), 4u);
  arena_->Free(other, frames[0]);
  arena_->Keep(second, 4);
  EXPECT_EQ(TakeAll(second).size(), 1u);
  EXPECT_TRUE(TakeAll(other).empty());
  EXPECT_EQ(TakeAll(first).size(), 2u);
  for (size_t i = 1; i < frames.size(); ++i) arena_->Free(other, frames[i]);
  EXPECT_TRUE(TakeAll(other).empty());
  EXPECT_EQ(TakeAll(second).size(), 3u);
}

TEST_F(ArenaKeptTest, RunsAreKeptSideBySide) {
  Create(9);
  FramePool* large = arena_->NewPool(2 * kSlabBytes, "large");
  FramePool* small = arena_->NewPool(kSlabBytes, "small");
  arena_->Keep(large, 3);
  arena_->Keep(small, 2);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const std::vector<FrameRef> singles = TakeAll(small);
    EXPECT_EQ(singles.size(), 3u);
    const std::vector<FrameRef> runs = TakeAll(large);
    EXPECT_EQ(runs.size(), 3u);
    EXPECT_EQ(arena_->used_bytes(), 9 * kSlabBytes);
    arena_->Free(large, runs[1]);
    arena_->Free(small, singles[0]);
    EXPECT_EQ(TakeAll(small).size(), 1u);  // Not the two slabs that the frame has left.
    EXPECT_EQ(Take(large), runs[1]);
    for (const FrameRef frame : singles) arena_->Free(small, frame);
    for (const FrameRef frame : runs) arena_->Free(large, frame);
  }
  arena_->Keep(large, 0);
  EXPECT_EQ(TakeAll(small).size(), 9u);
}

// A pool that comes when others have taken the slabs gets its runs when they give them back.
TEST_F(ArenaKeptTest, RunsAreKeptOnceTheyAreFree) {
  Create(6);
  FramePool* small = arena_->NewPool(kSlabBytes, "small");
  FramePool* old = arena_->NewPool(2 * kSlabBytes, "old");
  FramePool* large = arena_->NewPool(2 * kSlabBytes, "large");
  std::vector<FrameRef> singles = {Take(small), Take(small)};
  const std::vector<FrameRef> runs = TakeAll(old);
  ASSERT_EQ(runs.size(), 2u);
  arena_->Keep(large, 2);
  EXPECT_TRUE(arena_->LacksKept());
  arena_->Retire(old, runs[1]);
  arena_->Retire(small, singles[0]);
  arena_->Retire(small, singles[1]);
  EXPECT_TRUE(TakeAll(small).empty());
  EXPECT_FALSE(arena_->LacksKept());
  EXPECT_EQ(TakeAll(large).size(), 2u);
  arena_->Free(old, runs[0]);
  EXPECT_EQ(TakeAll(small).size(), 2u);
}

TEST_F(ArenaKeptTest, NothingIsKeptWhereMoreIsKeptThanThereIs) {
  Create(4);
  FramePool* a = arena_->NewPool(2 * kSlabBytes, "a");
  FramePool* b = arena_->NewPool(kSlabBytes, "b");
  arena_->Keep(a, 2);
  EXPECT_TRUE(TakeAll(b).empty());
  arena_->Keep(b, 1);
  EXPECT_EQ(TakeAll(b).size(), 4u);
}

TEST_F(ArenaKeptTest, WhatWasThereBeforeTakesWhatIsKept) {
  Create(4);
  FramePool* a = arena_->NewPool(2 * kSlabBytes, "a");
  FramePool* b = arena_->NewPool(kSlabBytes, "b");
  arena_->Keep(a, 2);
  EXPECT_FALSE(arena_->Allocate(b, Deadline::Now()).ok());
  const auto taken = arena_->Allocate(b, Deadline::Now(), Kept::kTaken);
  ASSERT_OK(taken);
  EXPECT_EQ(TakeAll(a).size(), 1u);
  EXPECT_FALSE(arena_->Allocate(b, Deadline::Now()).ok());  // The other one is a's, again.
  arena_->Free(b, *taken);
  EXPECT_EQ(TakeAll(a).size(), 1u);
}

}  // namespace
}  // namespace geardb::engine
