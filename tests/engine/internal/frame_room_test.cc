#include "engine/internal/frame_room.h"

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

}  // namespace
}  // namespace geardb
