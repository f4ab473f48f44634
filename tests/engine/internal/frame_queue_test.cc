// concurrent: engine/internal/frame_queue.cc
#include "engine/internal/frame_queue.h"

#include <thread>

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

using engine::FrameQueue;

TEST(FrameQueueTest, WhoHasNobodyToWaitForIsToldSo) {
  FrameQueue queue;
  const FrameQueue::Place place(&queue);
  EXPECT_TRUE(place.AwaitTurn(Deadline::Now()));
  EXPECT_FALSE(queue.AwaitEnd(queue.ended(), Deadline::Infinite()));
  FrameQueue::Hold hold(&queue);
  const uint64_t ended = queue.ended();
  hold.Begin();
  EXPECT_TRUE(queue.AwaitEnd(ended, Deadline::Now()));  // It may end yet.
  hold.End();
  EXPECT_EQ(queue.ended(), ended + 1);
  EXPECT_TRUE(queue.AwaitEnd(ended, Deadline::Infinite()));
}

TEST(FrameQueueTest, PlacesHaveTheirTurnsInOrder) {
  FrameQueue queue;
  auto first = std::make_unique<FrameQueue::Place>(&queue);
  FrameQueue::Place second(&queue);
  EXPECT_TRUE(first->AwaitTurn(Deadline::Now()));
  EXPECT_FALSE(second.AwaitTurn(Deadline::Now()));
  first.reset();
  EXPECT_TRUE(second.AwaitTurn(Deadline::Now()));
}

class FrameQueueConcurrentTest : public FramesTest {
 protected:
  void TearDown() override {
    Free();
    FramesTest::TearDown();
  }
  std::shared_ptr<engine::DatabaseCore> Core() { return testing::CoreOf(*database_); }
  engine::FramePool* Pool() { return Core()->AllTables()[0]->state->pool(0); }
  /// As a call does whose frames are not published yet: all that there are.
  void TakeAll() {
    hold_ = std::make_unique<FrameQueue::Hold>(&Core()->frame_queue);
    hold_->Begin();
    for (;;) {
      const auto frame = Core()->TakeFrame(Pool(), 1, Deadline::Now());
      if (!frame.ok()) break;
      taken_.push_back(*frame);
    }
    ASSERT_GT(taken_.size(), 100u);
  }
  void Free() {
    for (const FrameRef frame : taken_) Core()->arena->Free(Pool(), frame);
    taken_.clear();
    hold_.reset();
  }
  /// Until so many have a place in the queue.
  void AwaitWaits(uint64_t waits) {
    while (Core()->frame_queue.waiting() < waits) std::this_thread::yield();
  }

  std::unique_ptr<FrameQueue::Hold> hold_;
  std::vector<FrameRef> taken_;
};

TEST_F(FrameQueueConcurrentTest, AnAppendWaitsForFramesOfOthersThatAreNotPublishedYet) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  std::thread appends([this] { Add(40, 40); });
  AwaitWaits(1);
  Free();
  appends.join();
  ExpectAll();
}

TEST_F(FrameQueueConcurrentTest, APatchWaitsForFramesOfOthersThatAreNotPublishedYet) {
  const TrajectoryId id = Add(4, 4);
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  const std::vector<float> targets(4, 7.0f);
  const RowSpan span{.id = id, .rows = 4};
  Result<PatchOutcome> outcome = Status::NotFound("");
  std::thread patches([&] {
    outcome = table_->Patch(
        {&span, 1},
        std::vector<ColumnValue>{{"target", TensorView::Of(std::span<const float>(targets))}});
  });
  AwaitWaits(1);
  Free();
  patches.join();
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, 4u);
}

TEST_F(FrameQueueConcurrentTest, ColumnsThatAreAddedWaitForFramesOfOthers) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  const Column wide{.name = "wide", .dtype = DType::kU8, .shape = {50'000}, .default_value = 3};
  Status added = Status::NotFound("");
  std::thread changes([&] { added = table_->AddColumns({&wide, 1}); });
  AwaitWaits(1);
  Free();
  changes.join();
  EXPECT_OK(added);
}

TEST_F(FrameQueueConcurrentTest, WhoIsRefusedAtOnceHasTakenNothing) {
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = 2, .admission_timeout_ms = 0}));
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  const std::vector<uint8_t> bytes(40 * kFrameBytes);
  const std::vector<float> rewards(40);
  const std::vector<ColumnValue> values = {
      {"frame", TensorView(bytes.data(), DType::kU8, Shape({40, kFrameBytes}))},
      {"reward", TensorView::Of(std::span<const float>(rewards))}};
  EXPECT_STATUS(kResourceExhausted, writer_->AppendSteps(values, {.end = End::kTerminated}),
                "taken by others");
  Free();
  const uint64_t used = Core()->arena->used_bytes();
  EXPECT_LT(used, uint64_t{1} << 20);
  Add(40, 40);
  ExpectAll();
}

// Two of them fit; each takes what there is until none is left for another.
TEST_F(FrameQueueConcurrentTest, LargeAppendsThatDoNotFitTogetherComeOneBehindAnother) {
  constexpr int64_t kLargeRows = 500;  // 2 MiB.
  constexpr int kCallsEach = 8;
  const std::vector<uint8_t> bytes(kLargeRows * kFrameBytes, 3);
  const std::vector<float> rewards(kLargeRows);
  const std::vector<ColumnValue> values = {
      {"frame", TensorView(bytes.data(), DType::kU8, Shape({kLargeRows, kFrameBytes}))},
      {"reward", TensorView::Of(std::span<const float>(rewards))}};
  std::vector<std::thread> actors;
  for (int actor = 0; actor < 4; ++actor) {
    actors.emplace_back([&] {
      ASSERT_OK_AND_ASSIGN(const auto writer, table_->NewWriter({}));
      for (int call = 0; call < kCallsEach; ++call) {
        ASSERT_OK(writer->AppendTrajectory(values, {.end = End::kTerminated}));
      }
    });
  }
  for (std::thread& actor : actors) actor.join();
  EXPECT_EQ(table_->Stats().trajectories, 4u * kCallsEach);
}

TEST_F(FrameQueueConcurrentTest, SmallCallsWaitBehindALargeOneButNotForWhoIsKeptByLimits) {
  FrameQueue& queue = Core()->frame_queue;
  FrameQueue::Hold has(&queue);
  has.Begin();
  const FrameQueue::Place place(&queue);
  ASSERT_TRUE(place.AwaitTurn(Deadline::Now()));
  FrameQueue::Hold later(&queue);
  std::atomic<bool> begun{false};
  std::thread small([&] {
    later.BeginBehind(Deadline::Infinite());
    begun.store(true);
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(begun.load());
  const FrameQueue::Pause pause(&has);
  small.join();
  EXPECT_TRUE(begun.load());
}

}  // namespace
}  // namespace geardb
