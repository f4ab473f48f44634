// Which pages keep their frames, which go first, and loads whose page has become another.
#include "engine/internal/table_frames.h"

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

using engine::PageWaits;
using engine::TableFrames;

class TableFramesTest : public FramesTest {
 protected:
  engine::TableState& State() { return *testing::CoreOf(*database_)->AllTables()[0]->state; }
  Lpn PageOf(TrajectoryId id, uint32_t number) {
    MutexLock lock(&State().mutex);
    const auto& record = State().trajectories().record(State().trajectories().FindById(id));
    return State().pages().Find(engine::TableState::ListOf(record), number);
  }
  bool Has(Lpn lpn) {
    MutexLock lock(&State().mutex);
    return State().FrameOf(0, lpn).valid();
  }
  TableFrames::DropOutcome Drop(uint64_t frames, uint64_t looks) {
    const auto core = testing::CoreOf(*database_);
    EXPECT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
    MutexLock lock(&State().mutex);
    return State().frames().Drop(
        {.group = 0, .frames = frames, .log = core->readable_log(), .looks_max = looks});
  }
};

TEST_F(TableFramesTest, WhatWasShownStaysLonger) {
  std::vector<Lpn> pages;
  for (int i = 0; i < 6; ++i) pages.push_back(PageOf(Add(4, 4), 0));
  PageWaits waits;
  {
    MutexLock lock(&State().mutex);
    for (const size_t shown : {1u, 2u, 4u}) State().frames().ToRead(0, pages[shown], &waits);
  }
  EXPECT_TRUE(waits.empty());
  EXPECT_EQ(Drop(3, 100).dropped, 3u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(Has(pages[i]), i == 1 || i == 2 || i == 4) << i;
  // Their marks are gone: they go next.
  EXPECT_EQ(Drop(3, 1000).dropped, 3u);
}

TEST_F(TableFramesTest, LooksAreCounted) {
  for (int i = 0; i < 6; ++i) Add(4, 4);
  const TableFrames::DropOutcome outcome = Drop(100, 4);
  EXPECT_EQ(outcome.looks, 4u);
  EXPECT_EQ(outcome.dropped, 4u);
  EXPECT_EQ(Drop(100, 1000).dropped, 2u);
  EXPECT_EQ(table_->Stats().frames.dropped, 6u);
  EXPECT_EQ(table_->Stats().frames.resident_bytes, 0u);
}

TEST_F(TableFramesTest, WhatTheSegmentsDoNotHaveStays) {
  Add(4, 4);
  MutexLock lock(&State().mutex);
  const TableFrames::DropOutcome outcome =
      State().frames().Drop({.group = 0, .frames = 10, .log = {}, .looks_max = 1000});
  EXPECT_EQ(outcome.dropped, 0u);
  EXPECT_GT(outcome.too_new, 0u);
}

TEST_F(TableFramesTest, TheLastPageOfAnOpenTrajectoryStays) {
  const TrajectoryId id = AddRows(0, 0, 6, End::kGo);
  EXPECT_EQ(Drop(10, 1000).dropped, 1u);
  EXPECT_TRUE(Has(PageOf(id, 1)));
  {
    MutexLock lock(&State().mutex);
    const auto& record = State().trajectories().record(State().trajectories().FindById(id));
    State().frames().Hold(0, record.head_lpn, true);
  }
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(Drop(10, 1000).dropped, 1u);
}

TEST_F(TableFramesTest, ReadersOfOnePageShareALoad) {
  const TrajectoryId id = Add(4, 4);
  const Lpn lpn = PageOf(id, 0);
  ASSERT_EQ(Drop(10, 1000).dropped, 1u);
  PageWaits first;
  PageWaits second;
  const auto core = testing::CoreOf(*database_);
  const EpochRegistry::Guard guard = core->epochs.Enter();
  FrameRef frames[2];
  {
    MutexLock lock(&State().mutex);
    frames[0] = State().frames().ToRead(0, lpn, &first);
    frames[1] = State().frames().ToRead(0, lpn, &second);
  }
  EXPECT_EQ(frames[0], frames[1]);
  ASSERT_OK(first.Wait());
  ASSERT_OK(second.Wait());
  EXPECT_EQ(database_->Stats().log_page_reads, 1u);
  ExpectRow(id, 0, reinterpret_cast<const uint8_t*>(core->arena->Resolve(frames[0])));
  EXPECT_TRUE(Has(lpn));
}

TEST_F(TableFramesTest, ALoadWhosePageHasLeftServesThoseWhoWait) {
  const TrajectoryId id = Add(4, 4);
  const Lpn lpn = PageOf(id, 0);
  ASSERT_EQ(Drop(10, 1000).dropped, 1u);
  PageWaits waits;
  const auto core = testing::CoreOf(*database_);
  const EpochRegistry::Guard guard = core->epochs.Enter();
  FrameRef frame;
  {
    MutexLock lock(&State().mutex);
    frame = State().frames().ToRead(0, lpn, &waits);
  }
  ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{id}));
  const TrajectoryId other = Add(4, 4);
  ASSERT_EQ(PageOf(other, 0), lpn);
  ASSERT_OK(waits.Wait());
  ExpectRow(id, 3, reinterpret_cast<const uint8_t*>(core->arena->Resolve(frame)) + 3 * kFrameBytes);
  MutexLock lock(&State().mutex);
  EXPECT_NE(State().FrameOf(0, lpn), frame);
}

TEST_F(TableFramesTest, CountsOfATableComeToNothing) {
  for (int i = 0; i < 20; ++i) Add(7, 3);
  DropAll();
  ExpectAll();
  std::vector<TrajectoryId> all;
  for (const auto& [id, number] : numbers_) all.push_back(id);
  ASSERT_OK(table_->Remove(all));
  EXPECT_EQ(table_->Stats().frame_bytes, 0u);
  EXPECT_EQ(table_->Stats().frames.resident_bytes, 0u);
}

}  // namespace
}  // namespace geardb
