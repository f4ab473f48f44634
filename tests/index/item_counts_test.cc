#include "index/item_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb::index {
namespace {

using testing::ShareOf;
using Leaves = std::vector<uint64_t>;

std::unique_ptr<ItemCounts> MakeCounts(IndexMemory* memory, uint64_t capacity, uint32_t max_times) {
  auto made =
      ItemCounts::Create(memory, "counts", {.leaf_capacity = capacity, .max_times = max_times});
  GEARDB_CHECK(made.ok());
  return std::move(made).value();
}

TEST(ItemCountsTest, WhatIsRestoredCountsOn) {
  const auto memory = TestMemory();
  const auto counts = MakeCounts(memory.get(), 100, 3);
  ASSERT_OK(counts->Reserve(10));
  counts->Restore(4, 2);
  counts->Restore(5, 3);
  EXPECT_FALSE(counts->view().IsFull(4));
  EXPECT_TRUE(counts->view().IsExhausted(5));
  EXPECT_EQ(counts->Reserve(Leaves{4}).full, Leaves{4});
  EXPECT_EQ(counts->Confirm(Leaves{4}), Leaves{4});
  counts->Restore(4, 0);
  EXPECT_EQ(counts->view().count(4).sampled, 0u);
  EXPECT_EQ(counts->view().count(4).reserved, 0u);
}

TEST(ItemCountsTest, AnItemIsHiddenAndShownAndExhausted) {
  const auto memory = TestMemory();
  const auto counts = MakeCounts(memory.get(), 100, 2);
  ASSERT_OK(counts->Reserve(10));
  const auto first = counts->Reserve(Leaves{3, 4, 3, 3});
  EXPECT_EQ(first.full, Leaves{3});
  EXPECT_EQ(first.refused, std::vector<size_t>{3});
  EXPECT_TRUE(counts->view().IsFull(3));
  EXPECT_FALSE(counts->view().IsFull(4));
  EXPECT_EQ(counts->Cancel(Leaves{3}), Leaves{3});
  EXPECT_EQ(counts->Confirm(Leaves{3, 4}), Leaves{});
  EXPECT_EQ(counts->Reserve(Leaves{3}).full, Leaves{3});
  EXPECT_FALSE(counts->view().IsExhausted(3));
  EXPECT_EQ(counts->Confirm(Leaves{3}), Leaves{3});
  EXPECT_TRUE(counts->view().IsExhausted(3));
  EXPECT_EQ(counts->Reserve(Leaves{3}).refused, std::vector<size_t>{0});
  counts->Reset({.begin = 3, .end = 4});
  EXPECT_FALSE(counts->view().IsFull(3));
  EXPECT_EQ(counts->view().count(3).sampled, 0);
}

/// One item of the model.
struct Count {
  uint64_t sampled = 0;
  uint64_t reserved = 0;
};

/// Counts beside a map of what they should be, and random calls of both.
class Twin {
 public:
  explicit Twin(uint64_t seed)
      : random_(seed),
        max_(static_cast<uint32_t>(random_() % 5)),
        counts_(MakeCounts(memory_.get(), 100'000, max_)) {
    Grow();
  }

  void Step() {
    switch (random_() % 6) {
      case 0:
      case 1:
        return Reserve();
      case 2:
      case 3:
        return GiveBack();
      case 4:
        return Reset();
      default:
        Grow();
        if (random_() % 4 == 0) ChangeMaximum();
    }
  }

  void Compare() {
    for (uint64_t leaf = 0; leaf < leaf_count_; ++leaf) {
      const Count& count = model_[leaf];
      ASSERT_EQ(counts_->view().count(leaf).sampled, count.sampled);
      ASSERT_EQ(counts_->view().count(leaf).reserved, count.reserved);
      ASSERT_EQ(counts_->view().IsFull(leaf), Full(leaf, max_));
      ASSERT_EQ(counts_->view().IsExhausted(leaf), max_ > 0 && count.sampled >= max_);
    }
  }

 private:
  bool Full(uint64_t leaf, uint32_t max) {
    return max > 0 && model_[leaf].sampled + model_[leaf].reserved >= max;
  }

  void Reserve() {
    Leaves leaves;
    for (uint64_t i = random_() % 8; i > 0; --i) leaves.push_back(random_() % leaf_count_);
    Leaves full;
    std::vector<size_t> refused;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (Full(leaves[i], max_)) {
        refused.push_back(i);
        continue;
      }
      ++model_[leaves[i]].reserved;
      outstanding_.push_back(leaves[i]);
      if (Full(leaves[i], max_)) full.push_back(leaves[i]);
    }
    const auto outcome = counts_->Reserve(leaves);
    ASSERT_EQ(outcome.full, full);
    ASSERT_EQ(outcome.refused, refused);
  }

  /// Confirms or cancels some of what is reserved.
  void GiveBack() {
    std::shuffle(outstanding_.begin(), outstanding_.end(), random_);
    const auto some = static_cast<ptrdiff_t>(random_() % (outstanding_.size() + 1));
    const Leaves leaves(outstanding_.begin(), outstanding_.begin() + some);
    outstanding_.erase(outstanding_.begin(), outstanding_.begin() + some);
    const bool confirm = random_() % 2 == 0;
    Leaves changed;
    for (const uint64_t leaf : leaves) {
      const bool was = Full(leaf, max_);
      --model_[leaf].reserved;
      if (confirm && ++model_[leaf].sampled == max_) changed.push_back(leaf);
      if (!confirm && was && !Full(leaf, max_)) changed.push_back(leaf);
    }
    ASSERT_EQ(confirm ? counts_->Confirm(leaves) : counts_->Cancel(leaves), changed);
  }

  void Reset() {
    const uint64_t begin = random_() % leaf_count_;
    const uint64_t end = std::min(leaf_count_, begin + random_() % 4);
    counts_->Reset({.begin = begin, .end = end});
    for (uint64_t leaf = begin; leaf < end; ++leaf) {
      model_.erase(leaf);
      std::erase(outstanding_, leaf);
    }
  }

  void Grow() {
    leaf_count_ += 1 + random_() % 3;
    ASSERT_OK(counts_->Reserve(leaf_count_));
  }

  void ChangeMaximum() {
    const auto other = static_cast<uint32_t>(random_() % 5);
    Leaves full, shown;
    for (uint64_t leaf = 0; leaf < leaf_count_; ++leaf) {
      if (Full(leaf, other) && !Full(leaf, max_)) full.push_back(leaf);
      if (!Full(leaf, other) && Full(leaf, max_)) shown.push_back(leaf);
    }
    ASSERT_OK_AND_ASSIGN(const auto changes, counts_->SetMaxTimes(other));
    ASSERT_EQ(changes.full, full);
    ASSERT_EQ(changes.shown, shown);
    max_ = other;
  }

  std::mt19937_64 random_;
  uint32_t max_;
  std::unique_ptr<IndexMemory> memory_ = TestMemory();
  std::unique_ptr<ItemCounts> counts_;
  uint64_t leaf_count_ = 0;
  std::map<uint64_t, Count> model_;
  Leaves outstanding_;
};

TEST(ItemCountsTest, RandomUseMatchesAMap) {
  for (uint64_t seed = 0; seed < ShareOf(60); ++seed) {
    Twin twin(seed);
    for (int step = 0; step < 300; ++step) {
      twin.Step();
      twin.Compare();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(ItemCountsTest, CountsSaturate) {
  const auto memory = TestMemory();
  const auto counts = MakeCounts(memory.get(), 10, 0);
  ASSERT_OK(counts->Reserve(2));
  const Leaves many(65'600, 1);
  EXPECT_TRUE(counts->Reserve(many).full.empty());
  EXPECT_EQ(counts->view().count(1).reserved, 65'535);
  EXPECT_TRUE(counts->Cancel(Leaves(many.begin(), many.begin() + 100)).empty());
  EXPECT_EQ(counts->view().count(1).reserved, 65'535);  // Until it is reset.
  counts->Reset({.begin = 0, .end = 2});
  EXPECT_TRUE(counts->Replay(many).empty());
  EXPECT_EQ(counts->view().count(1).sampled, 65'535);
  // The largest maximum is exact.
  counts->Reset({.begin = 0, .end = 2});
  ASSERT_OK(counts->SetMaxTimes(ItemCounts::kMaxTimesMax));
  const auto outcome = counts->Reserve(many);
  EXPECT_EQ(outcome.full, Leaves{1});
  EXPECT_EQ(outcome.refused.size(), 65'600u - 65'534u);
  EXPECT_EQ(counts->Cancel(Leaves{1}), Leaves{1});
  EXPECT_STATUS(kInvalidArgument, counts->SetMaxTimes(65'535), "0 to 65534");
}

TEST(ItemCountsTest, ReplayedSamplesExhaust) {
  const auto memory = TestMemory();
  const auto counts = MakeCounts(memory.get(), 10, 2);
  ASSERT_OK(counts->Reserve(5));
  EXPECT_EQ(counts->Replay(Leaves{1, 2, 1, 1}), Leaves{1});
  EXPECT_EQ(counts->view().count(1).sampled, 3);
  EXPECT_EQ(counts->Reserve(Leaves{1, 2}).refused, std::vector<size_t>{0});
}

TEST(ItemCountsTest, GrowthIsBounded) {
  const auto memory = TestMemory(uint64_t{1} << 20);
  EXPECT_STATUS(kInvalidArgument, ItemCounts::Create(memory.get(), "c", {.leaf_capacity = 0}),
                "1 to");
  EXPECT_STATUS(kInvalidArgument,
                ItemCounts::Create(memory.get(), "c", {.leaf_capacity = 1, .max_times = 65'535}),
                "65534");
  const auto counts = MakeCounts(memory.get(), uint64_t{1} << 33, 1);
  ASSERT_OK(counts->Reserve(1000));
  EXPECT_EQ(counts->Reserve(Leaves{999}).full, Leaves{999});
  EXPECT_STATUS(kResourceExhausted, counts->Reserve(uint64_t{1} << 30), "'counts'");
  EXPECT_STATUS(kResourceExhausted, counts->Reserve((uint64_t{1} << 33) + 1), "has room for");
  EXPECT_EQ(counts->reserved(), 1000u);
  EXPECT_TRUE(counts->view().IsFull(999));
}

}  // namespace
}  // namespace geardb::index
