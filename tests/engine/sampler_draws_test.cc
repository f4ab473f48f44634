// The order of draws: prefetching, draw numbers, observers, waits and counts.

#include <gtest/gtest.h>

#include <map>

#include "tests/engine/sampler_fixture.h"

namespace geardb {
namespace {

using testing::SamplerFixture;
using testing::WindowSpec;

class SamplerDrawsTest : public SamplerFixture {};

TEST_F(SamplerDrawsTest, BatchSeesExactlyTheUpdatesBeforeTheHandOverOfBatchIMinusN) {
  // Update u makes row u the only one that can be drawn; it is submitted after Next number u.
  for (const int64_t depth : {0, 1, 3}) {
    for (const bool background : {true, false}) {
      SCOPED_TRACE(depth);
      options_.background = background;
      OpenEmpty();
      CreateWith(WindowSpec("per"));
      AppendClosed(0, 40);
      DrawOnly({{1, 0}});
      auto sampler = Sample({.batch = 4, .views = {{.column = "action"}}, .prefetch = depth});
      int64_t current = 0;
      std::vector<int64_t> row_at_hand_over;  // What was drawable when batch i was handed over.
      for (int64_t i = 0; i < 12; ++i) {
        const int64_t before = current;
        const auto batch = sampler->Next();
        ASSERT_OK(batch);
        row_at_hand_over.push_back(before);
        int64_t expected = before;  // N = 0: everything submitted before this Next.
        if (depth > 0) expected = i < depth ? 0 : row_at_hand_over[static_cast<size_t>(i - depth)];
        EXPECT_EQ(batch->anchors()[0], expected) << "batch " << i;
        EXPECT_EQ(batch->draw_number(), static_cast<uint64_t>(i));
        EXPECT_EQ(Values<int32_t>(*batch, "action"),
                  Ints(4, static_cast<int32_t>(batch->anchors()[0])));
        const RowId rows[] = {{1, current}, {1, i + 1}};
        const float values[] = {0, 1};
        ASSERT_OK(priority("per")->Set(rows, values));
        current = i + 1;
      }
    }
  }
  options_.background = true;
}

TEST_F(SamplerDrawsTest, PrefetchedBatchesThatWereNotHandedOverAreDrawnAgain) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 40);
  std::vector<std::vector<int64_t>> plain, ahead;
  {
    auto sampler = Sample({.batch = 8, .seed = 5, .restart_draw = 0});
    for (int i = 0; i < 6; ++i) {
      const auto batch = sampler->Next();
      plain.emplace_back(batch->anchors().begin(), batch->anchors().end());
    }
  }
  for (int i = 0; i < 6; ++i) {
    SamplerOptions options{.batch = 8, .prefetch = 3, .seed = 5};
    if (i == 0) options.restart_draw = 0;
    auto sampler = Sample(options);  // Destroyed with two or three batches ahead.
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    EXPECT_EQ(batch->draw_number(), static_cast<uint64_t>(i));
    ahead.emplace_back(batch->anchors().begin(), batch->anchors().end());
  }
  EXPECT_EQ(plain, ahead);
  EXPECT_EQ(priority("per")->Stats().draws, 6u);
  EXPECT_EQ(table_->Find(1)->times_sampled, 12u * 8);
}

TEST_F(SamplerDrawsTest, SamplersShareTheDrawNumbersOfTheirPriorityTable) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 40);
  auto one = Sample({.batch = 8});
  auto two = Sample({.batch = 8});
  for (uint64_t i = 0; i < 6; i += 2) {
    EXPECT_EQ(one->Next()->draw_number(), i);
    EXPECT_EQ(two->Next()->draw_number(), i + 1);
  }
}

TEST_F(SamplerDrawsTest, NumbersDrawnAheadBelowOneHandedOverArePassedOver) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 40);
  auto ahead = Sample({.batch = 8, .prefetch = 2});
  auto other = Sample({.batch = 8});
  EXPECT_EQ(ahead->Next()->draw_number(), 0u);  // 1 and 2 are drawn ahead.
  EXPECT_EQ(other->Next()->draw_number(), 3u);
  ahead.reset();
  EXPECT_EQ(other->Next()->draw_number(), 4u);
  other.reset();
  EXPECT_EQ(Sample({.batch = 8})->Next()->draw_number(), 5u);
}

TEST_F(SamplerDrawsTest, NumbersAboveTheLastOneHandedOverComeAgainWithTheLastSampler) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 40);
  auto other = Sample({.batch = 8});
  EXPECT_EQ(Sample({.batch = 8, .prefetch = 2})->Next()->draw_number(), 0u);
  EXPECT_EQ(other->Next()->draw_number(), 3u);  // Not 1: another lived.
  EXPECT_EQ(Sample({.batch = 8, .prefetch = 2})->Next()->draw_number(), 4u);
  other.reset();
  EXPECT_EQ(Sample({.batch = 8})->Next()->draw_number(), 5u);
  auto ahead = Sample({.batch = 8, .prefetch = 2});
  EXPECT_EQ(ahead->Next()->draw_number(), 6u);
  ahead.reset();
  const std::string name = table_->spec().name;
  Reopen();
  OpenAgain(name);
  EXPECT_EQ(Sample({.batch = 8})->Next()->draw_number(), 7u);
}

TEST_F(SamplerDrawsTest, RestartBeginsAgainAtADrawNumber) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 40);
  const auto draw = [&](const SamplerOptions& options) {
    auto sampler = Sample(options);
    const auto batch = sampler->Next();
    EXPECT_OK(batch);
    return std::pair(batch->draw_number(),
                     std::vector<int64_t>(batch->anchors().begin(), batch->anchors().end()));
  };
  const auto first = draw({.batch = 8, .seed = 3, .restart_draw = 100});
  EXPECT_EQ(first.first, 100u);
  const auto second = draw({.batch = 8});
  EXPECT_EQ(second.first, 101u);
  EXPECT_NE(first.second, second.second);
  EXPECT_EQ(draw({.batch = 8, .seed = 3, .restart_draw = 100}), first);
  EXPECT_NE(draw({.batch = 8, .seed = 4, .restart_draw = 100}).second, first.second);
}

TEST_F(SamplerDrawsTest, ObserversTouchNothing) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 40);
  auto sampler = Sample({.batch = 8});
  ASSERT_OK(sampler->Next());
  ASSERT_OK(database_->Sync());
  const auto table_before = table_->Find(1)->times_sampled;
  const auto draws_before = priority("per")->Stats().draws;
  const Lsn end = database_->Stats().log_end;
  auto observer =
      Sample({.batch = 8, .views = {{.column = "action"}}, .observer = true, .seed = 1});
  auto same = Sample({.batch = 8, .prefetch = 2, .observer = true, .seed = 1});
  auto other = Sample({.batch = 8, .observer = true, .seed = 2});
  std::vector<int64_t> third;
  for (uint64_t i = 0; i < 4; ++i) {
    const auto batch = observer->Next();
    ASSERT_OK(batch);
    EXPECT_EQ(batch->draw_number(), i);
    const auto again = same->Next();
    ASSERT_OK(again);
    const std::vector<int64_t> anchors(batch->anchors().begin(), batch->anchors().end());
    EXPECT_EQ(anchors, std::vector<int64_t>(again->anchors().begin(), again->anchors().end()));
    const auto different = other->Next();
    EXPECT_NE(anchors,
              std::vector<int64_t>(different->anchors().begin(), different->anchors().end()));
    if (i == 3) third = anchors;
  }
  auto later = Sample({.batch = 8, .observer = true, .seed = 1, .restart_draw = 3});
  const auto batch = later->Next();
  EXPECT_EQ(third, std::vector<int64_t>(batch->anchors().begin(), batch->anchors().end()));
  EXPECT_EQ(table_->Find(1)->times_sampled, table_before);
  EXPECT_EQ(priority("per")->Stats().draws, draws_before);
  // The log may have been sealed meanwhile, but no draw is in it.
  EXPECT_LE(database_->Stats().log_end - end, 256u);
  EXPECT_EQ(sampler->Next()->draw_number(), 1u);
}

TEST_F(SamplerDrawsTest, TimeoutUsesUpNoDrawNumber) {
  CreateWith(WindowSpec("per", {.before = 0, .length = 3, .after = 0}));
  for (const int64_t prefetch : {0, 2}) {
    auto sampler = Sample({.batch = 8, .prefetch = prefetch, .timeout_ms = 1});
    EXPECT_STATUS(kDeadlineExceeded, sampler->Next(),
                  "priority table 'per' of table 'steps' has nothing to draw: it has no items");
    EXPECT_STATUS(kDeadlineExceeded, sampler->Next(Deadline::Now()), "nothing to draw");
  }
  AppendClosed(0, 3);
  auto sampler = Sample({.batch = 8, .timeout_ms = 1});
  EXPECT_EQ(sampler->Next()->draw_number(), 0u);
  const float zero[] = {0};
  ASSERT_OK(priority("per")->SetAll(zero));
  EXPECT_STATUS(kDeadlineExceeded, sampler->Next(), "of 3 items 3 have priority 0");
  const float one[] = {1};
  ASSERT_OK(priority("per")->SetAll(one));
  EXPECT_EQ(sampler->Next()->draw_number(), 1u);
}

TEST_F(SamplerDrawsTest, TimesSampledCountsRowsHandedOver) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 4);
  AppendClosed(0, 4);
  auto sampler = Sample({.batch = 10, .prefetch = 2});
  std::map<TrajectoryId, uint64_t> counts;
  for (int i = 0; i < 5; ++i) {
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    for (const TrajectoryId id : batch->trajectory_ids()) ++counts[id];
    for (const TrajectoryId id : {1u, 2u}) {
      EXPECT_EQ(table_->Find(id)->times_sampled, counts[id]);
    }
  }
  EXPECT_EQ(priority("per")->Stats().sampled_items, 50u);
  EXPECT_EQ(priority("per")->Stats().draws, 5u);
}

}  // namespace
}  // namespace geardb
