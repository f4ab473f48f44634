// What Next says of an epoch: short batches, rests that are left out, ends, and whom it waits for.
#include <map>
#include <set>
#include <thread>

#include "tests/engine/rate_limit_fixture.h"

namespace geardb {
namespace {

class SamplerEpochTest : public testing::RateLimitFixture {
 protected:
  void CreateEpochs(uint32_t passes, int64_t items, bool remove_covered = false) {
    PriorityTableSpec spec = Limited({}, SelectorKind::kEpoch);
    spec.epoch = {.passes = passes, .remove_covered = remove_covered};
    CreateLimited(spec);
    ASSERT_OK(TryAppend(0, items));
  }
  std::unique_ptr<Sampler> SampleWith(SamplerOptions options) {
    options.timeout_ms = 0;
    return priority("limited")->NewSampler(options).value();
  }
  EpochStats Epoch() { return priority("limited")->Stats().epoch; }
  static int64_t SizeOf(Sampler* sampler) {
    const auto batch = sampler->Next();
    return batch.ok() ? batch->size() : -static_cast<int64_t>(batch.status().code());
  }
  static constexpr int64_t kEnd = -static_cast<int64_t>(StatusCode::kOutOfRange);
};

TEST_F(SamplerEpochTest, TheLastBatchOfAPassIsShortAndTheEndIsSaidAtOnce) {
  CreateEpochs(2, 10);
  auto sampler = SampleWith({.batch = 4});
  EXPECT_STATUS(kOutOfRange, sampler->Next(Deadline::Infinite()), "no epoch has begun");
  EXPECT_EQ(priority("limited")->DrawableCount(), 0u);
  ASSERT_OK(priority("limited")->BeginEpoch());
  EXPECT_EQ(priority("limited")->DrawableCount(), 10u);
  EXPECT_EQ(*priority("limited")->Probability({1, 3}), 0.1);
  for (const int64_t size : std::vector<int64_t>{4, 4, 2, 4, 4, 2})
    EXPECT_EQ(SizeOf(sampler.get()), size);
  EXPECT_STATUS(kOutOfRange, sampler->Next(Deadline::Infinite()),
                "epoch 1 is exhausted after pass 2");
  EXPECT_EQ(*priority("limited")->Probability({1, 3}), 0.0);
  EXPECT_EQ(priority("limited")->Stats().draws, 6u);
  ASSERT_OK(priority("limited")->BeginEpoch());
  EXPECT_EQ(SizeOf(sampler.get()), 4);
  EXPECT_EQ(priority("limited")->Stats().draws, 7u);
}

TEST_F(SamplerEpochTest, BatchesAreAheadToTheEndOfAPass) {
  CreateEpochs(3, 10);
  ASSERT_OK(priority("limited")->BeginEpoch());
  auto sampler = SampleWith({.batch = 3, .prefetch = 8});
  EXPECT_EQ(SizeOf(sampler.get()), 3);
  EXPECT_EQ(Epoch().reserved, 7u);
  EXPECT_EQ(Epoch().remaining, 7u);
  for (const int64_t size : std::vector<int64_t>{3, 3, 1, 3, 3, 3, 1, 3, 3, 3, 1, kEnd, kEnd}) {
    EXPECT_EQ(SizeOf(sampler.get()), size);
  }
}

TEST_F(SamplerEpochTest, DropLastLeavesTheRestOut) {
  CreateEpochs(2, 10);
  ASSERT_OK(priority("limited")->BeginEpoch());
  auto sampler = SampleWith({.batch = 4, .drop_last = true, .prefetch = 2});
  for (const int64_t size : std::vector<int64_t>{4, 4, 4, 4, kEnd, kEnd})
    EXPECT_EQ(SizeOf(sampler.get()), size);
  EXPECT_TRUE(Epoch().exhausted);
  EXPECT_EQ(Epoch().remaining, 0u);
  ASSERT_OK(priority("limited")->BeginEpoch());
  auto large = SampleWith({.batch = 11, .drop_last = true});
  EXPECT_EQ(SizeOf(large.get()), kEnd) << "no pass has as many";
  sampler.reset();
  large.reset();
  Reopen();
  OpenAgain("steps");
  EXPECT_TRUE(Epoch().exhausted);
  EXPECT_EQ(Epoch().epoch, 2u);
}

TEST_F(SamplerEpochTest, WhatIsLeftOutCountsAsCovered) {
  CreateEpochs(1, 5, /*remove_covered=*/true);
  ASSERT_OK(TryAppend(0, 4));
  ASSERT_OK(priority("limited")->BeginEpoch());
  ASSERT_OK(TryAppend(0, 4));
  auto sampler = SampleWith({.batch = 4, .drop_last = true});
  for (const int64_t size : std::vector<int64_t>{4, 4, kEnd})
    EXPECT_EQ(SizeOf(sampler.get()), size);
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_OK(table_->Find(3));
}

TEST_F(SamplerEpochTest, ADestroyedSamplerGivesBackWhatItHadDrawn) {
  CreateEpochs(1, 10);
  ASSERT_OK(priority("limited")->BeginEpoch());
  auto first = SampleWith({.batch = 4, .prefetch = 2});
  auto second = SampleWith({.batch = 4});
  ASSERT_OK(first->Next());  // 6 items are ahead.
  EXPECT_STATUS(kDeadlineExceeded, second->Next(),
                "6 items of pass 1 of epoch 1 are drawn by other samplers and not handed over");
  std::set<int64_t> rows;
  std::thread waits([&] {
    while (true) {
      const auto batch = second->Next(Deadline::Infinite());
      if (!batch.ok()) break;
      for (const int64_t row : batch->anchors()) EXPECT_TRUE(rows.insert(row).second);
    }
  });
  while (priority("limited")->WhyBlocked().samples.waiting == 0) std::this_thread::yield();
  first.reset();
  waits.join();
  EXPECT_EQ(rows.size(), 6u);
}

TEST_F(SamplerEpochTest, AWaitEndsWhenWhatItWaitsForLeaves) {
  CreateEpochs(1, 4);
  ASSERT_OK(TryAppend(0, 2));
  ASSERT_OK(priority("limited")->BeginEpoch());
  auto first = SampleWith({.batch = 3, .prefetch = 2});
  auto second = SampleWith({.batch = 3});
  ASSERT_OK(first->Next());
  Status status;
  std::thread waits([&] { status = second->Next(Deadline::Infinite()).status(); });
  while (priority("limited")->WhyBlocked().samples.waiting == 0) std::this_thread::yield();
  ASSERT_OK(table_->Remove({0, 100}));
  waits.join();
  EXPECT_STATUS(kOutOfRange, status, "exhausted");
  EXPECT_OK(first->Next()) << "what was drawn is delivered";
}

TEST_F(SamplerEpochTest, BatchesOfAnEpochThatWasGivenUpCoverNothing) {
  CreateEpochs(1, 6);
  ASSERT_OK(priority("limited")->BeginEpoch());
  auto sampler = SampleWith({.batch = 2, .prefetch = 2});
  ASSERT_OK(sampler->Next());
  ASSERT_OK(priority("limited")->BeginEpoch());
  EXPECT_EQ(Epoch().remaining, 6u);
  EXPECT_EQ(SizeOf(sampler.get()), 2);
  EXPECT_EQ(SizeOf(sampler.get()), 2);
  std::map<int64_t, int> seen;
  while (true) {
    const auto batch = sampler->Next();
    if (!batch.ok()) break;
    for (const int64_t row : batch->anchors()) ++seen[row];
  }
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [row, times] : seen) EXPECT_EQ(times, 1);
}

TEST_F(SamplerEpochTest, AnObserverTouchesNothing) {
  CreateEpochs(1, 6);
  ASSERT_OK(priority("limited")->BeginEpoch());
  auto observer = SampleWith({.batch = 4, .observer = true, .seed = 3});
  for (int draw = 0; draw < 5; ++draw) EXPECT_EQ(SizeOf(observer.get()), 4);
  auto sampler = SampleWith({.batch = 5});
  EXPECT_EQ(SizeOf(sampler.get()), 5);
  EXPECT_EQ(SizeOf(observer.get()), 1);
  EXPECT_EQ(SizeOf(sampler.get()), 1);
  EXPECT_EQ(SizeOf(observer.get()), kEnd);
}

TEST_F(SamplerEpochTest, AnEpochIsAPartOfABatchUpToWhatIsLeft) {
  TableSpec spec = testing::StepSpec();
  PriorityTableSpec epochs = Limited({}, SelectorKind::kEpoch);
  epochs.epoch.passes = 2;
  spec.priority_tables = {epochs, testing::WindowSpec("flat")};
  Create(spec);
  ASSERT_OK(TryAppend(0, 8));
  ASSERT_OK(priority("limited")->BeginEpoch());
  const std::vector<SamplerPart> parts = {{.priority_table = table_->priority_table("limited"),
                                           .share = ShareKind::kUpToAvailable,
                                           .count = 3},
                                          {.priority_table = table_->priority_table("flat")}};
  const auto of_epoch = [](const Batch& batch) {
    std::vector<int64_t> rows;
    for (size_t i = 0; i < static_cast<size_t>(batch.size()); ++i) {
      if (batch.sources()[i] == 0) rows.push_back(batch.anchors()[i]);
    }
    return rows;
  };
  ASSERT_OK_AND_ASSIGN(auto sampler, database_->NewSampler(parts, {.batch = 5, .prefetch = 1}));
  std::map<int64_t, int> seen;
  const auto next = [&](size_t expected) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    EXPECT_EQ(batch.size(), 5);
    EXPECT_EQ(of_epoch(batch).size(), expected);
    for (const int64_t row : of_epoch(batch)) ++seen[row];
  };
  next(3);
  next(3);
  EXPECT_EQ(Epoch().reserved, 2u);
  sampler.reset();  // What it had drawn ahead is drawn again.
  EXPECT_EQ(Epoch().reserved, 0u);
  EXPECT_EQ(Epoch().remaining, 2u);
  sampler = database_->NewSampler(parts, {.batch = 5}).value();
  next(2);
  ASSERT_EQ(seen.size(), 8u);
  EXPECT_EQ(Epoch().pass, 2u);
  for (const size_t rows : {3u, 3u, 2u, 0u, 0u}) next(rows);
  for (const auto& [row, times] : seen) EXPECT_EQ(times, 2) << row;
  EXPECT_TRUE(Epoch().exhausted);
  sampler.reset();
  Reopen();
  OpenAgain("steps");
  EXPECT_TRUE(Epoch().exhausted);
  EXPECT_EQ(priority("limited")->Stats().draws, priority("flat")->Stats().draws);
}

TEST_F(SamplerEpochTest, OptionsThatWouldHoldUpAPassAreRefused) {
  TableSpec spec = testing::StepSpec();
  PriorityTableSpec epochs = Limited({}, SelectorKind::kEpoch);
  PriorityTableSpec trajectories = epochs;
  trajectories.name = "trajectories";
  trajectories.item = ItemKind::kTrajectory;
  trajectories.window = {};
  spec.priority_tables = {epochs, trajectories, testing::WindowSpec("flat")};
  Create(spec);
  EXPECT_STATUS(kInvalidArgument, priority("limited")->NewSampler({.batch = 4, .tokens_max = 9}),
                "'limited' draws epochs and has tokens_max 9");
  EXPECT_STATUS(
      kInvalidArgument,
      priority("trajectories")->NewSampler({.batch = 4, .within = WindowsWithin{.window = {}}}),
      "'trajectories' draws epochs and windows within trajectories");
  const auto with_share = [&](const SamplerPart& epoch, bool drop_last) {
    const std::vector<SamplerPart> parts = {epoch,
                                            {.priority_table = table_->priority_table("flat")}};
    return database_->NewSampler(parts, {.batch = 4, .drop_last = drop_last}).status();
  };
  SamplerPart part{
      .priority_table = table_->priority_table("limited"), .share = ShareKind::kFixed, .count = 2};
  EXPECT_STATUS(kInvalidArgument, with_share(part, false), "draws epochs and has share 0");
  part.share = ShareKind::kUpToAvailable;
  EXPECT_OK(with_share(part, false));
  EXPECT_STATUS(kInvalidArgument, with_share(part, true), "has parts and drop_last");
  part = {.priority_table = table_->priority_table("limited"),
          .share = ShareKind::kProbability,
          .probability = 0.5};
  EXPECT_STATUS(kInvalidArgument, with_share(part, false), "draws epochs and has share 1");
}

}  // namespace
}  // namespace geardb
