#include "index/taken_weights.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace geardb::index {
namespace {

/// The definition: walks over what was taken, in order.
uint64_t NaivePlace(const std::map<uint64_t, uint64_t>& taken, uint64_t point) {
  for (const auto& [start, weight] : taken) {
    if (start > point) break;
    point += weight;
  }
  return point;
}

TEST(TakenWeightsTest, NothingTakenMovesNothing) {
  const TakenWeights taken;
  EXPECT_EQ(taken.Place(0), 0u);
  EXPECT_EQ(taken.Place(UINT64_MAX), UINT64_MAX);
}

TEST(TakenWeightsTest, RandomIntervalsMatchAWalk) {
  // Blocks of weights, also far beyond 32 bits, taken in random order until nothing remains.
  for (const uint64_t scale : {uint64_t{1}, uint64_t{7}, uint64_t{1} << 50}) {
    std::mt19937_64 random(scale);
    std::map<uint64_t, uint64_t> blocks;
    uint64_t total = 0;
    for (int i = 0; i < 700; ++i) {
      const uint64_t weight = 1 + random() % (scale * 3);
      blocks[total] = weight;
      total += weight;
    }
    TakenWeights taken;
    std::map<uint64_t, uint64_t> reference;
    uint64_t remaining = total;
    while (remaining > 0) {
      for (const uint64_t point : {uint64_t{0}, random() % remaining, remaining - 1}) {
        ASSERT_EQ(taken.Place(point), NaivePlace(reference, point));
      }
      const uint64_t place = taken.Place(random() % remaining);
      const auto block = std::prev(blocks.upper_bound(place));
      ASSERT_FALSE(reference.contains(block->first));
      taken.Take(block->first, block->second);
      reference.insert(*block);
      remaining -= block->second;
    }
    EXPECT_EQ(reference, blocks);
    EXPECT_EQ(taken.Place(0), total);
  }
}

TEST(TakenWeightsTest, IntervalsInOrderAreNoWorseThanOthers) {
  // A list instead of a tree would take 10^10 steps, and a stack frame for each interval.
  for (const bool ascending : {true, false}) {
    TakenWeights taken;
    constexpr uint64_t kIntervals = 100'000;
    for (uint64_t i = 0; i < kIntervals; ++i) {
      taken.Take((ascending ? i : kIntervals - 1 - i) * 10, 4);
    }
    for (uint64_t point = 0; point < 600; ++point) {
      ASSERT_EQ(taken.Place(point), point / 6 * 10 + 4 + point % 6);
    }
    EXPECT_EQ(taken.Place(kIntervals * 6), kIntervals * 10);
  }
}

}  // namespace
}  // namespace geardb::index
