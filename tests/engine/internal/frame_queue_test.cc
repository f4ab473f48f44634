// concurrent: engine/internal/frame_queue.cc
#include "engine/internal/frame_queue.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

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
  /// As a call does whose frames are not published yet: all that there are, of any group.
  void TakeAll() {
    hold_ = std::make_unique<FrameQueue::Hold>(&Core()->frame_queue);
    hold_->Begin();
    const auto table = Core()->AllTables()[0];
    for (size_t g = 0; g < table->layout().group_count(); ++g) {
      for (;;) {
        // What was dropped may have readers: waits for them.
        engine::FramePool* const pool = table->state->pool(g);
        const auto frame = Core()->TakeFrame(pool, 1, Deadline::Infinite());
        if (!frame.ok()) break;
        taken_.emplace_back(pool, *frame);
      }
    }
    ASSERT_GT(taken_.size(), 100u);
  }
  void Free() {
    for (const auto& [pool, frame] : taken_) Core()->arena->Free(pool, frame);
    taken_.clear();
    hold_.reset();
  }
  /// `call`, in a thread of its own, has to wait in the queue until the frames are free.
  template <typename Call>
  void ExpectWaits(const Call& call) {
    std::atomic<bool> done{false};
    std::thread caller([&] {
      call();
      done.store(true);
    });
    while (Core()->frame_queue.waiting() == 0 && !done.load()) std::this_thread::yield();
    EXPECT_FALSE(done.load());
    Free();
    caller.join();
  }

  std::unique_ptr<FrameQueue::Hold> hold_;
  std::vector<std::pair<engine::FramePool*, FrameRef>> taken_;
};

TEST_F(FrameQueueConcurrentTest, AnAppendWaitsForFramesOfOthersThatAreNotPublishedYet) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  ExpectWaits([this] { Add(40, 40); });
  ExpectAll();
}

TEST_F(FrameQueueConcurrentTest, APatchWaitsForFramesOfOthersThatAreNotPublishedYet) {
  const TrajectoryId id = Add(4, 4);
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  const std::vector<float> targets(4, 7.0f);
  const RowSpan span{.id = id, .rows = 4};
  Result<PatchOutcome> outcome = Status::NotFound("");
  ExpectWaits([&] {
    outcome = table_->Patch(
        {&span, 1},
        std::vector<ColumnValue>{{"target", TensorView::Of(std::span<const float>(targets))}});
  });
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, 4u);
}

TEST_F(FrameQueueConcurrentTest, ColumnsThatAreAddedWaitForFramesOfOthers) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  const Column wide{.name = "wide", .dtype = DType::kU8, .shape = {50'000}, .default_value = 3};
  Status added = Status::NotFound("");
  ExpectWaits([&] { added = table_->AddColumns({&wide, 1}); });
  EXPECT_OK(added);
}

// It was refused at once, and the index budget blamed for it.
TEST_F(FrameQueueConcurrentTest, ATableThatIsCreatedWaitsForFramesOfOthers) {
  ASSERT_NO_FATAL_FAILURE(TakeAll());
  TableSpec spec{.name = "other"};
  spec.groups = {{.name = "late", .late = true}};
  spec.columns = {{.name = "x"}, {.name = "target", .group = "late"}};
  Status created = Status::NotFound("");
  ExpectWaits([&] { created = database_->CreateTable(spec).status(); });
  EXPECT_OK(created);
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
