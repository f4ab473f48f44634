// Draw frequencies against an exact distribution, by Pearson's chi-square statistic.
//
// Bound: of a chi-square variable with d degrees of freedom, d ± 6·sqrt(2d) is left with a chance
// below 10^-6 (for d of ten and more; a little above for fewer). Seeds are fixed, so a test that
// passes once passes always.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>

namespace geardb::testing {

/// Keys with an expected count below 5 are taken together. One that cannot be drawn must not be
/// there; one with probability 0 may be left out of `distribution`.
template <typename Key>
void ExpectFrequencies(const std::map<Key, double>& distribution,
                       const std::map<Key, int64_t>& counts) {
  double draws = 0;
  for (const auto& [key, count] : counts) {
    const auto found = distribution.find(key);
    ASSERT_TRUE(found != distribution.end() && found->second > 0)
        << ::testing::PrintToString(key) << " cannot be drawn";
    draws += static_cast<double>(count);
  }
  double statistic = 0, cells = 0, rare_expected = 0, rare_count = 0, sum = 0;
  const auto cell = [&](double expected, double count) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (const auto& [key, probability] : distribution) {
    sum += probability;
    const auto found = counts.find(key);
    const double count = found == counts.end() ? 0 : static_cast<double>(found->second);
    if (draws * probability >= 5) {
      cell(draws * probability, count);
    } else {
      rare_expected += draws * probability;
      rare_count += count;
    }
  }
  ASSERT_NEAR(sum, 1, 1e-9) << "no distribution";
  if (rare_expected >= 5) cell(rare_expected, rare_count);
  const double freedom = cells - 1;
  EXPECT_LE(statistic, freedom + 6 * std::sqrt(2 * freedom));
  if (freedom >= 20) {
    EXPECT_GE(statistic, freedom - 6 * std::sqrt(2 * freedom)) << "more even than chance allows";
  }
}

}  // namespace geardb::testing
