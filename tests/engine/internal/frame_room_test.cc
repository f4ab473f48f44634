// concurrent: engine/internal/core.cc
#include "engine/internal/frame_room.h"

#include <thread>

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

class FrameRoomTest : public FramesTest {
 protected:
  engine::FramePool* Pool() { return testing::CoreOf(*database_)->AllTables()[0]->state->pool(0); }
  Status MakeRoom(size_t frames) {
    const std::vector<engine::FramePool*> pools(frames, Pool());
    return engine::MakeRoomForOneEach(testing::CoreOf(*database_).get(), pools, Deadline::Now());
  }
};

TEST_F(FrameRoomTest, PagesAreDroppedForAllAtOnce) {
  for (int i = 0; i < 400; ++i) Add(4, 4);
  ASSERT_OK(database_->Sync());
  const auto core = testing::CoreOf(*database_);
  ASSERT_LT(core->arena->FramesAvailable(Pool()), 16u);
  ASSERT_OK(MakeRoom(16));
  EXPECT_GE(core->arena->FramesAvailable(Pool()), 16u);
  const uint64_t used = core->arena->used_bytes();
  ASSERT_OK(MakeRoom(16));
  EXPECT_EQ(core->arena->used_bytes(), used);  // Nothing is kept.
  ExpectAll();
}

TEST_F(FrameRoomTest, MoreThanThereIsMemoryForIsRefusedAndGivenBack) {
  const uint64_t used = testing::CoreOf(*database_)->arena->used_bytes();
  EXPECT_STATUS(kResourceExhausted, MakeRoom(1000), "frame");
  EXPECT_EQ(testing::CoreOf(*database_)->arena->used_bytes(), used);
  ASSERT_OK(MakeRoom(100));
}

class FrameRoomConcurrentTest : public FrameRoomTest {};

TEST_F(FrameRoomConcurrentTest, WhatOthersTakeFirstIsMadeAgain) {
  for (int i = 0; i < 400; ++i) Add(4, 4);
  ASSERT_OK(database_->Sync());
  const auto core = testing::CoreOf(*database_);
  std::vector<FrameRef> others;
  const auto take_all = [&] {
    while (const auto frame = core->arena->TryAllocate(Pool())) others.push_back(*frame);
  };
  take_all();
  auto reader = core->epochs.Enter();
  Result<FrameRef> taken = Status::NotFound("");
  std::thread waiter([&] { taken = core->TakeFrame(Pool(), 1, Deadline::Infinite()); });
  // What it has dropped is the reader's.
  while (core->arena->FramesAvailable(Pool()) == 0) std::this_thread::yield();
  reader.Leave();
  take_all();
  waiter.join();
  EXPECT_OK(taken);
  if (taken.ok()) others.push_back(*taken);
  for (const FrameRef frame : others) core->arena->Free(Pool(), frame);
  ExpectAll();
}

}  // namespace
}  // namespace geardb
