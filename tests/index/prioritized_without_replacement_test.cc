// Draws without replacement: every sequence of rows has the probability of sequential draws.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "index/prioritized_selector.h"
#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

std::unique_ptr<PrioritizedSelector> MakeWithoutReplacement(IndexMemory* memory, uint64_t leaves) {
  auto selector = PrioritizedSelector::Create(
      memory, "without", {.leaf_capacity = leaves, .alpha = 1.0, .without_replacement = true});
  GEARDB_CHECK(selector.ok() && selector.value()->Reserve(leaves).ok());
  return std::move(selector).value();
}

// Chi-square over the 5·4·3 sequences, 59 degrees of freedom: beyond 135 with probability below
// 1e-7; fixed seed.
TEST(WithoutReplacementTest, SequencesHaveTheProbabilitiesOfSequentialDraws) {
  const auto memory = TestMemory();
  const auto selector = MakeWithoutReplacement(memory.get(), 2000);
  const std::vector<uint64_t> leaves = {3, 40, 41, 1000, 1999};
  const std::vector<float> raw = {1, 2, 3, 4, 10};
  selector->Insert(leaves, raw);
  std::map<std::vector<uint64_t>, double> counts;
  constexpr double kDraws = 200'000;
  std::vector<uint64_t> batch(3);
  std::vector<double> probabilities(3);
  for (uint64_t draw = 0; draw < static_cast<uint64_t>(kDraws); ++draw) {
    ASSERT_EQ(selector->Draw({.seed = 5, .draw_number = draw}, batch, probabilities), 3u);
    ++counts[batch];
  }
  ASSERT_EQ(counts.size(), 60u);
  double chi = 0;
  for (const auto& [sequence, count] : counts) {
    double probability = 1;
    double rest = 20;
    for (const uint64_t leaf : sequence) {
      const double weight = selector->raw_priority(leaf);
      probability *= weight / rest;
      rest -= weight;
    }
    chi += std::pow(count - kDraws * probability, 2) / (kDraws * probability);
  }
  EXPECT_LT(chi, 135.0);
  for (size_t i = 0; i < 3; ++i) {  // Before the draw, not among what remained.
    EXPECT_EQ(probabilities[i], selector->view().Probability(batch[i]));
  }
}

TEST(WithoutReplacementTest, FirstRowIsThatOfADrawWithReplacement) {
  const auto memory = TestMemory();
  const auto without = MakeWithoutReplacement(memory.get(), 5000);
  auto with =
      PrioritizedSelector::Create(memory.get(), "with", {.leaf_capacity = 5000, .alpha = 1});
  ASSERT_OK(with);
  ASSERT_OK(with.value()->Reserve(5000));
  for (uint64_t leaf = 0; leaf < 5000; leaf += 3) {
    const auto raw = static_cast<float>(leaf % 17);
    without->Insert(LeafRange{leaf, leaf + 1}, raw);
    with.value()->Insert(LeafRange{leaf, leaf + 1}, raw);
  }
  for (uint64_t draw = 0; draw < 100; ++draw) {
    std::vector<uint64_t> a(1);
    std::vector<uint64_t> b(1);
    ASSERT_EQ(without->Draw({.seed = 2, .draw_number = draw}, a, {}), 1u);
    ASSERT_EQ(with.value()->Draw({.seed = 2, .draw_number = draw}, b, {}), 1u);
    EXPECT_EQ(a, b);
  }
}

TEST(WithoutReplacementTest, AllOfVeryUnequalWeightsAreDrawnInTheEnd) {
  const auto memory = TestMemory();
  const auto selector = MakeWithoutReplacement(memory.get(), 3000);
  selector->Insert(LeafRange{0, 3000}, 1e-5f);
  selector->Insert(LeafRange{7, 8}, 60'000.0f);  // Rejection would take 10^11 tries.
  std::vector<uint64_t> leaves(3001, UINT64_MAX);
  EXPECT_EQ(selector->Draw({.seed = 3}, leaves, {}), 3000u);
  EXPECT_EQ(leaves[3000], UINT64_MAX);
  EXPECT_EQ(leaves[0], 7u);
  std::sort(leaves.begin(), leaves.end());
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(leaves[i], i);
}

}  // namespace
}  // namespace geardb::index
