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

// A page of them takes a slab of its own, which others' pages have.
TEST_F(FrameRoomConcurrentTest, ColumnsThatComeWaitForReadersOfWhatMakesRoom) {
  for (int i = 0; i < 400; ++i) Add(4, 4);
  ASSERT_OK(database_->Sync());
  const auto core = testing::CoreOf(*database_);
  const Column wide{.name = "wide", .dtype = DType::kU8, .shape = {50'000}, .default_value = 3};
  auto reader = core->epochs.Enter();
  Status added = Status::NotFound("");
  std::thread caller([&] { added = table_->AddColumns({&wide, 1}); });
  while (core->arena->FramesAvailable(Pool()) == core->arena->FramesFree(Pool())) {
    std::this_thread::yield();
  }
  Add(1, 1);  // Nobody waits for the call.
  reader.Leave();
  caller.join();
  EXPECT_OK(added);
  ExpectAll();
  const std::string_view columns[] = {"wide"};
  ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(numbers_.begin()->first, columns, {}));
  EXPECT_EQ(rows[0].view().values<uint8_t>()[49'999], 3);
}

}  // namespace
}  // namespace geardb
