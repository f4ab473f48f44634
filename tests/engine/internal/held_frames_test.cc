#include "engine/internal/held_frames.h"

#include <vector>

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

using engine::HeldFrames;

class HeldFramesTest : public FramesTest {
 protected:
  std::shared_ptr<engine::DatabaseCore> Core() { return testing::CoreOf(*database_); }
  uint64_t Used() { return Core()->arena->used_bytes(); }
};

TEST_F(HeldFramesTest, AreThereUntilTheyAreReleased) {
  const uint64_t used = Used();
  HeldFrames held(Core().get());
  const std::vector<uint64_t> bytes = {8192, 4096, 4096};
  bool was_there = false;
  ASSERT_OK(held.Take(bytes, Deadline::Infinite(), &was_there));
  EXPECT_TRUE(was_there);
  EXPECT_GE(Used(), used + 16384);
  held.Release();
  EXPECT_EQ(Used(), used);
}

TEST_F(HeldFramesTest, PagesAreDroppedForThem) {
  for (int i = 0; i < 400; ++i) Add(4, 4);
  ASSERT_OK(database_->Sync());
  HeldFrames held(Core().get());
  const std::vector<uint64_t> bytes(8, uint64_t{64} << 10);
  bool was_there = true;
  ASSERT_OK(held.Take(bytes, Deadline::Infinite(), &was_there));
  EXPECT_FALSE(was_there);
  held.Release();
  ExpectAll();
}

TEST_F(HeldFramesTest, AChangeIsTriedWithTheFramesThatItLacked) {
  const uint64_t used = Used();
  int tries = 0;
  ASSERT_OK(engine::TryWithFrames(Core().get(), Deadline::Infinite(),
                                  [&](HeldFrames* held, std::vector<uint64_t>* lacking) {
                                    if (++tries == 1) {
                                      *lacking = {4096};
                                      return Status::ResourceExhausted("no frame");
                                    }
                                    EXPECT_GT(Used(), used);
                                    held->Release();
                                    EXPECT_EQ(Used(), used);
                                    return Status::Ok();
                                  }));
  EXPECT_EQ(tries, 2);
}

TEST_F(HeldFramesTest, WhatIsNotForWantOfFramesIsRefusedAtOnce) {
  int tries = 0;
  const auto attempt = [&](const Status& status, std::vector<uint64_t> needed) {
    return engine::TryWithFrames(Core().get(), Deadline::Infinite(),
                                 [&](HeldFrames*, std::vector<uint64_t>* lacking) {
                                   ++tries;
                                   *lacking = needed;
                                   return status;
                                 });
  };
  EXPECT_STATUS(kResourceExhausted, attempt(Status::ResourceExhausted("index"), {}), "index");
  EXPECT_STATUS(kNotFound, attempt(Status::NotFound("gone"), {4096}), "gone");
  EXPECT_EQ(tries, 2);
  // The frames are there each time.
  EXPECT_STATUS(kResourceExhausted, attempt(Status::ResourceExhausted("index"), {4096}), "index");
  EXPECT_GT(tries, 3);
  // They never will be.
  EXPECT_STATUS(kResourceExhausted,
                attempt(Status::ResourceExhausted("index"), std::vector<uint64_t>(100, 256 << 10)),
                "frame");
}

}  // namespace
}  // namespace geardb
