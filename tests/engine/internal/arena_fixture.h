// An arena and what its tests take from it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/internal/arena.h"
#include "tests/testing/matchers.h"

namespace geardb::engine {

inline constexpr uint64_t kKiB = 1024;

class ArenaTest : public ::testing::Test {
 protected:
  void Create(uint64_t slabs) {
    auto arena = HostArena::Create({.budget_bytes = slabs * kSlabBytes}, &epochs_);
    ASSERT_OK(arena);
    arena_ = std::move(*arena);
  }
  FrameRef Take(FramePool* pool) {
    const auto frame = arena_->Allocate(pool, Deadline::Now());
    EXPECT_OK(frame);
    return frame.ok() ? *frame : FrameRef();
  }
  std::vector<FrameRef> TakeAll(FramePool* pool) {
    std::vector<FrameRef> frames;
    for (;;) {
      const auto frame = arena_->Allocate(pool, Deadline::Now());
      if (!frame.ok()) return frames;
      frames.push_back(*frame);
    }
  }

  EpochRegistry epochs_;
  std::unique_ptr<HostArena> arena_;
};

}  // namespace geardb::engine
