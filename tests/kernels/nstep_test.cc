#include "kernels/nstep.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace geardb {
namespace {

TEST(NStepTest, CountsAllRowsWhenNoneIsTerminal) {
  const float rewards[] = {1, 2, 4};
  const uint8_t terminals[] = {0, 0, 0};
  const NStepResult result = NStepReturn(rewards, nullptr, 0.5f, terminals, 3);
  EXPECT_EQ(result.value, 1 + 1 + 1);
  EXPECT_EQ(result.discount, 0.125f);
  EXPECT_EQ(result.mask, 1.0f);
  EXPECT_EQ(result.steps, 3u);
}

TEST(NStepTest, StopsAfterTheFirstTerminalRow) {
  const float rewards[] = {1, 2, 4, 8};
  const uint8_t terminals[] = {0, 7, 0, 1};
  const NStepResult result = NStepReturn(rewards, nullptr, 0.5f, terminals, 4);
  EXPECT_EQ(result.value, 2.0f);
  EXPECT_EQ(result.discount, 0.25f);
  EXPECT_EQ(result.mask, 0.0f);
  EXPECT_EQ(result.steps, 2u);
}

TEST(NStepTest, ATerminalRowBeyondTheCountedOnesChangesNothing) {
  const float rewards[] = {1, 2};
  const uint8_t terminals[] = {0, 1};
  const NStepResult result = NStepReturn(rewards, nullptr, 0.5f, terminals, 1);
  EXPECT_EQ(result.value, 1.0f);
  EXPECT_EQ(result.mask, 1.0f);
  EXPECT_EQ(result.steps, 1u);
}

TEST(NStepTest, DiscountsOfRowsReplaceGamma) {
  const float rewards[] = {1, 1, 1};
  const float discounts[] = {0.5f, 0.0f, 0.25f};
  const uint8_t terminals[] = {0, 0, 0};
  const NStepResult result = NStepReturn(rewards, discounts, 0.9f, terminals, 3);
  EXPECT_EQ(result.value, 1.5f);
  EXPECT_EQ(result.discount, 0.0f);
  EXPECT_EQ(result.mask, 1.0f);
}

TEST(NStepTest, NoRowsAreAllZero) {
  const NStepResult result = NStepReturn(nullptr, nullptr, 0.9f, nullptr, 0);
  EXPECT_EQ(result.value, 0.0f);
  EXPECT_EQ(result.discount, 0.0f);
  EXPECT_EQ(result.mask, 0.0f);
  EXPECT_EQ(result.steps, 0u);
}

TEST(NStepTest, SumsInStepOrderInSinglePrecision) {
  // In double, or from the other end, the small rewards would not be lost.
  const float rewards[] = {0x1p24f, 1, 1};
  const uint8_t terminals[] = {0, 0, 0};
  EXPECT_EQ(NStepReturn(rewards, nullptr, 1.0f, terminals, 3).value, 0x1p24f);
}

TEST(NStepTest, EntriesOfABatchShareRows) {
  std::mt19937 random(5);
  std::vector<float> rewards(64);
  std::vector<float> discounts(64);
  std::vector<uint8_t> terminals(64);
  for (size_t i = 0; i < rewards.size(); ++i) {
    rewards[i] = static_cast<float>(random() % 1000) / 7.0f;
    discounts[i] = static_cast<float>(random() % 100) / 99.0f;
    terminals[i] = random() % 6 == 0;
  }
  std::vector<NStepEntry> entries;
  for (uint64_t i = 0; i < 60; ++i) entries.push_back(NStepEntry{i, random() % 5});
  std::vector<float> returns(60);
  std::vector<float> products(60);
  std::vector<float> masks(60);
  std::vector<uint64_t> steps(60);
  NStepBatch batch{entries, rewards, discounts, terminals, 0.9f, returns, products, masks, steps};
  for (const bool with_column : {true, false}) {
    if (!with_column) batch.discounts = {};
    NStepCpu(batch);
    for (size_t i = 0; i < entries.size(); ++i) {
      float sum = 0;
      float product = entries[i].rows == 0 ? 0.0f : 1.0f;
      float mask = product;
      uint64_t counted = 0;
      for (uint64_t row = i; row < i + entries[i].rows && mask != 0; ++row, ++counted) {
        sum = sum + product * rewards[row];
        product = product * (with_column ? discounts[row] : 0.9f);
        if (terminals[row] != 0) mask = 0;
      }
      ASSERT_EQ(returns[i], sum) << i;
      ASSERT_EQ(products[i], product) << i;
      ASSERT_EQ(masks[i], mask) << i;
      ASSERT_EQ(steps[i], counted) << i;
    }
  }
}

}  // namespace
}  // namespace geardb
