#include "index/prioritized_selector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "base/fixed_math.h"
#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

std::unique_ptr<PrioritizedSelector> MakePrioritized(IndexMemory* memory, uint64_t capacity,
                                                     double alpha = 0.6) {
  auto selector =
      PrioritizedSelector::Create(memory, "per", {.leaf_capacity = capacity, .alpha = alpha});
  GEARDB_CHECK(selector.ok() && selector.value()->Reserve(capacity).ok());
  return std::move(selector).value();
}

/// The definition: q from libm's pow, in a map from members to raw priorities.
uint32_t NaiveWeight(float raw, double alpha, int shift) {
  if (raw == 0.0f) return 0;
  const double scaled = std::pow(double{raw}, alpha) * std::ldexp(1.0, shift);
  if (scaled >= 4294967295.0) return UINT32_MAX;
  return std::max(1u, static_cast<uint32_t>(std::floor(scaled + 0.5)));
}

/// `weight` is the naive one, or its neighbour where the product is so near a half that the last
/// bits of pow decide.
bool IsWeight(uint32_t weight, float raw, double alpha, int shift) {
  const uint32_t naive = NaiveWeight(raw, alpha, shift);
  if (weight == naive) return true;
  const double scaled = std::pow(double{raw}, alpha) * std::ldexp(1.0, shift);
  const double from_half = std::fabs(scaled - std::floor(scaled) - 0.5);
  return from_half < scaled * 1e-13 && (weight + 1 == naive || weight == naive + 1);
}

void ExpectMatches(const PrioritizedSelector& selector, const std::map<uint64_t, float>& members) {
  uint64_t total = 0;
  uint64_t drawable = 0;
  for (const auto& [leaf, raw] : members) {
    const uint32_t weight = selector.view().tree().leaves()[leaf];
    ASSERT_EQ(selector.raw_priority(leaf), raw) << "leaf " << leaf;
    ASSERT_TRUE(IsWeight(weight, raw, selector.alpha(), selector.shift()))
        << "leaf " << leaf << " raw " << raw << " weight " << weight;
    total += weight;
    drawable += weight != 0 ? 1 : 0;
  }
  ASSERT_EQ(selector.total(), total);
  ASSERT_EQ(selector.drawable(), drawable);
  ASSERT_EQ(selector.count(), members.size());
  std::vector<uint64_t> walked;
  selector.ForEachMember(LeafRange{0, UINT64_MAX}, [&](uint64_t leaf) { walked.push_back(leaf); });
  std::vector<uint64_t> expected;
  for (const auto& [leaf, raw] : members) expected.push_back(leaf);
  ASSERT_EQ(walked, expected);
  double largest = 0;
  for (const auto& [leaf, raw] : members) {
    largest = std::max(largest, std::pow(double{raw}, selector.alpha()));
  }
  const double bound = selector.LargestWeightBound();
  ASSERT_GE(bound, largest);
  if (largest > 1e-20) {
    ASSERT_LE(bound, largest * std::pow(2.0, selector.alpha()) * 1.0001);
  }
}

float RandomRaw(std::mt19937_64* random) {
  switch ((*random)() % 6) {
    case 0:
      return 0.0f;
    case 1:
      return 1.0f;
    case 2:
      return static_cast<float>((*random)() % 1000) * 1e-6f;
    default:
      return static_cast<float>((*random)() % 100'000) * 1e-3f;
  }
}

TEST(PrioritizedSelectorTest, DrawIsFrozen) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 2100);
  std::vector<uint64_t> members;
  std::vector<float> raw;
  for (uint64_t leaf = 100; leaf < 2100; ++leaf) {
    members.push_back(leaf);
    raw.push_back(static_cast<float>(leaf % 97) / 8);
  }
  EXPECT_EQ(selector->Insert(members, raw), 2000u);
  // From a second implementation: 50 decimal digits, a second Philox, a linear search.
  EXPECT_EQ(selector->total(), 360'862'681u);
  EXPECT_EQ(selector->view().tree().leaves()[101], 43'238u);
  EXPECT_EQ(selector->view().tree().leaves()[196], 28'526u);
  std::vector<uint64_t> leaves(16);
  std::vector<double> probabilities(16);
  ASSERT_TRUE(selector->Draw({.seed = 2024, .draw_number = 3}, leaves, probabilities));
  EXPECT_EQ(leaves, (std::vector<uint64_t>{1059, 255, 2002, 380, 1990, 1726, 1918, 1177, 2068, 1765,
                                           1836, 1084, 650, 579, 2093, 1631}));
  for (size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_EQ(probabilities[i], selector->view().tree().leaves()[leaves[i]] / 360'862'681.0);
    EXPECT_EQ(probabilities[i], selector->view().Probability(leaves[i]));
  }
}

TEST(PrioritizedSelectorTest, RandomOperationsMatchAMap) {
  for (const uint64_t capacity : {1u, 32u, 33u, 1025u, 3000u}) {
    for (const double alpha : {0.0, 0.6, 1.0, 2.5}) {
      SCOPED_TRACE(::testing::Message() << capacity << " leaves, alpha " << alpha);
      const auto memory = TestMemory();
      std::mt19937_64 random(capacity);
      const auto selector = MakePrioritized(memory.get(), capacity, alpha);
      std::map<uint64_t, float> members;
      float largest = 1.0f;
      for (int step = 0; step < 40; ++step) {
        const uint64_t begin = random() % capacity;
        const LeafRange range{begin, begin + 1 + random() % (capacity - begin)};
        std::vector<uint64_t> leaves(random() % 600);
        std::vector<float> raw(leaves.size());
        for (size_t i = 0; i < leaves.size(); ++i) {
          leaves[i] = random() % capacity;
          raw[i] = RandomRaw(&random);
        }
        const size_t before = members.size();
        switch (random() % 5) {
          case 0: {
            const float one = RandomRaw(&random);
            for (uint64_t i = range.begin; i < range.end; ++i) members[i] = one;
            largest = std::max(largest, one);
            ASSERT_EQ(selector->Insert(range, one), members.size() - before);
            break;
          }
          case 1:
            members.erase(members.lower_bound(range.begin), members.lower_bound(range.end));
            ASSERT_EQ(selector->Erase(range), before - members.size());
            break;
          case 2:
            for (size_t i = 0; i < leaves.size(); ++i) {
              members[leaves[i]] = raw[i];
              largest = std::max(largest, raw[i]);
            }
            ASSERT_EQ(selector->Insert(leaves, raw), members.size() - before);
            break;
          case 3:
            selector->Rescale(static_cast<int>(random() % 30));
            break;
          default: {
            uint64_t applied = 0;
            for (size_t i = 0; i < leaves.size(); ++i) {
              const auto found = members.find(leaves[i]);
              if (found == members.end()) continue;
              found->second = raw[i];
              largest = std::max(largest, raw[i]);
              ++applied;
            }
            ASSERT_EQ(selector->Update(leaves, raw), applied);
          }
        }
        ASSERT_EQ(selector->max_priority(), largest);
        ExpectMatches(*selector, members);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(PrioritizedSelectorTest, ARestoredScaleAdvisesTheSame) {
  const auto memory = TestMemory();
  const auto make = [&] {
    auto selector =
        PrioritizedSelector::Create(memory.get(), "per", {.leaf_capacity = 10'000, .alpha = 1});
    GEARDB_CHECK(selector.ok() && selector.value()->Reserve(10'000).ok());
    return std::move(selector).value();
  };
  const auto selector = make();
  selector->Insert({0, 9000}, 1e20f);  // Cut at the first shift.
  EXPECT_TRUE(selector->scale().saturated);
  selector->Rescale(*selector->AdviseShift(0));
  selector->Insert({0, 9000}, 1e-6f);
  selector->Rescale(*selector->AdviseShift(0));
  selector->Insert({9000, 9100}, 1e-9f);
  EXPECT_EQ(selector->scale().changed, 100u);
  EXPECT_EQ(selector->scale().max_priority, 1e20f);
  const auto restored = make();
  restored->Rescale(selector->shift());
  restored->Insert({0, 9000}, 1e-6f);
  restored->Insert({9000, 9100}, 1e-9f);
  restored->RestoreScale(selector->scale());
  EXPECT_EQ(restored->scale(), selector->scale());
  for (PrioritizedSelector* each : {selector.get(), restored.get()}) {
    each->Erase({0, 9000});
    each->Insert({0, 4200}, 1e-9f);
  }
  EXPECT_EQ(restored->AdviseShift(0), selector->AdviseShift(0));
  EXPECT_EQ(restored->total(), selector->total());
}

TEST(PrioritizedSelectorTest, LastOfEqualUpdatesWins) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 10, 1.0);
  selector->Insert(LeafRange{0, 10}, 1.0f);
  EXPECT_EQ(selector->Update(std::vector<uint64_t>{4, 4, 4}, std::vector<float>{2, 3, 5}), 3u);
  EXPECT_EQ(selector->raw_priority(4), 5.0f);
  EXPECT_EQ(selector->total(), (9 + 5) * 65536u);
}

TEST(PrioritizedSelectorTest, PriorityZeroStaysAMemberAndIsNeverDrawn) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 100, 0.0);
  selector->Insert(LeafRange{0, 100}, 1.0f);
  selector->Insert(LeafRange{0, 50}, 0.0f);
  EXPECT_EQ(selector->count(), 100u);
  EXPECT_EQ(selector->drawable(), 50u);
  std::vector<uint64_t> leaves(2000);
  ASSERT_TRUE(selector->Draw({.seed = 1}, leaves, {}));
  for (const uint64_t leaf : leaves) EXPECT_GE(leaf, 50u);
  EXPECT_TRUE(selector->Contains(10));
  selector->Update(std::vector<uint64_t>{10}, std::vector<float>{0.5f});
  EXPECT_EQ(selector->drawable(), 51u);
  selector->Insert(LeafRange{0, 100}, 0.0f);
  EXPECT_FALSE(selector->Draw({.seed = 1}, leaves, {}));
  EXPECT_EQ(selector->count(), 100u);
}

TEST(PrioritizedSelectorTest, TinyPrioritiesStillWeighOne) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 3, 1.0);
  selector->Insert(LeafRange{0, 1}, std::numeric_limits<float>::denorm_min());
  selector->Insert(LeafRange{1, 2}, 1e-30f);
  EXPECT_EQ(selector->total(), 2u);
  EXPECT_EQ(selector->SmallestProbability(), 0.5);
}

TEST(PrioritizedSelectorTest, TooLargeWeightsAreCutAndFlagged) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 3, 1.0);
  selector->Insert(LeafRange{0, 3}, 1.0f);
  EXPECT_TRUE(selector->MaxWeightFits(65535.0));
  EXPECT_FALSE(selector->MaxWeightFits(65536.0));
  EXPECT_FALSE(selector->saturated());
  selector->Update(std::vector<uint64_t>{1}, std::vector<float>{1e6f});
  EXPECT_TRUE(selector->saturated());
  EXPECT_EQ(selector->view().tree().leaves()[1], UINT32_MAX);
  selector->Rescale(0);
  EXPECT_FALSE(selector->saturated());
  EXPECT_EQ(selector->view().tree().leaves()[1], 1'000'000u);
  EXPECT_EQ(selector->view().tree().leaves()[0], 1u);
  selector->Insert(LeafRange{2, 3}, std::numeric_limits<float>::max());
  EXPECT_TRUE(selector->saturated());
}

TEST(PrioritizedSelectorTest, ShiftIsChosenWithRoomAbove) {
  for (const double weight : {1e-30, 1e-3, 0.9999, 1.0, 1.5, 65536.0, 1e7}) {
    const int shift = ChooseShift(weight);
    const double scaled = std::ldexp(weight, shift);
    if (shift < kShiftMax) {
      EXPECT_GE(scaled, std::ldexp(1.0, 27)) << weight;
    }
    EXPECT_LT(scaled, std::ldexp(1.0, 28)) << weight;
  }
  EXPECT_EQ(ChooseShift(0.0), kShiftInitial);
  EXPECT_EQ(ChooseShift(1e300), kShiftMin);
  EXPECT_EQ(ChooseShift(1e-300), kShiftMax);
}

TEST(PrioritizedSelectorTest, ShiftMovesDownForWhatDoesNotFit) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 100, 1.0);
  selector->Insert(LeafRange{0, 100}, 1.0f);
  EXPECT_EQ(selector->AdviseShift(selector->WeightOf(60'000.0f)), std::nullopt);
  const auto advice = selector->AdviseShift(selector->WeightOf(100'000.0f));
  ASSERT_TRUE(advice.has_value());
  EXPECT_EQ(*advice, 27 - 16);
  selector->Rescale(*advice);
  EXPECT_TRUE(selector->MaxWeightFits(100'000.0));
  // Nothing fits better than at the least shift.
  selector->Rescale(kShiftMin);
  EXPECT_EQ(selector->AdviseShift(1e30), std::nullopt);
}

TEST(PrioritizedSelectorTest, ShiftMovesUpWhenWeightsFade) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 1000, 1.0);
  selector->Insert(LeafRange{0, 1000}, 1.0f);
  EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
  selector->Insert(LeafRange{0, 1000}, 1e-3f);
  const auto advice = selector->AdviseShift(0.0);
  ASSERT_TRUE(advice.has_value());
  // 1e-3 lies below 2^-9, the bound that the exponent gives.
  EXPECT_EQ(*advice, 27 + 9);
  selector->Rescale(*advice);
  EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
  // One large member leaves no room.
  selector->Rescale(kShiftInitial);
  selector->Insert(LeafRange{0, 1}, 4096.0f);
  EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
  // Or one that is about to come.
  selector->Insert(LeafRange{0, 1}, 1e-3f);
  EXPECT_EQ(selector->AdviseShift(4096.0), std::nullopt);
}

// They were shown again in a scale in which they all weighed the same.
TEST(PrioritizedSelectorTest, ShiftMovesUpThoughAllMembersAreHidden) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 1000, 1.0);
  selector->Insert(LeafRange{0, 10}, 1.0f);
  selector->Insert(LeafRange{10, 11}, 1e12f);
  const auto down = selector->AdviseShift(0.0);
  ASSERT_TRUE(down.has_value());
  selector->Rescale(*down);
  ASSERT_OK(selector->ReserveHidden());
  const std::vector<uint64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  selector->Hide(all);
  EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
  selector->Erase(LeafRange{10, 11});
  EXPECT_TRUE(selector->AdviseShift(0.0).has_value());
  // Of zeros alone no scale is better.
  selector->Insert(LeafRange{0, 10}, 0.0f);
  EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
}

// Up again only after a sixteenth as many changes as there are members: however they come, and with
// the members that there are then.
TEST(PrioritizedSelectorTest, ShiftOfManyWaitsBeforeItMovesUpAgain) {
  const auto memory = TestMemory();
  for (const int way : {0, 1, 2, 3}) {
    SCOPED_TRACE(way);
    const auto selector = MakePrioritized(memory.get(), 20'000, 1.0);
    selector->Insert(LeafRange{0, 16'000}, 1e-3f);
    const std::optional<int> first = selector->AdviseShift(0.0);
    ASSERT_TRUE(first.has_value());  // There was none before.
    const auto flatten = [&] {
      selector->Rescale(0);
      selector->Rescale(1);
    };
    flatten();
    EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
    const std::vector<uint64_t> leaves = {5, 6};
    const std::vector<float> raw = {1e-3f, 1e-3f};
    switch (way) {
      case 0:
        for (int i = 0; i < 500; ++i) {
          EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
          selector->Update(leaves, raw);
        }
        break;
      case 1:
        selector->Insert(LeafRange{16'000, 16'999}, 1e-3f);
        EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
        selector->Insert(LeafRange{16'999, 17'100}, 1e-3f);
        break;
      case 2:
        selector->Erase(LeafRange{0, 900});
        EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
        selector->Erase(LeafRange{0, 950});
        break;
      default:
        selector->Erase(LeafRange{100, 20'000});
        flatten();
        break;
    }
    EXPECT_EQ(selector->AdviseShift(0.0), first);
  }
}

TEST(PrioritizedSelectorTest, ShiftMovesDownForWhatWasCut) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 100, 1.0);
  selector->Insert(LeafRange{0, 100}, 1.0f);
  selector->Rescale(27);
  selector->Insert(LeafRange{0, 1}, 1000.0f);
  ASSERT_TRUE(selector->saturated());
  EXPECT_EQ(selector->AdviseShift(0.0), 27 - 10);
  selector->Rescale(27 - 10);
  EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
  // What is gone needs no room.
  selector->Rescale(27);
  selector->Insert(LeafRange{0, 1}, 1.0f);
  EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
}

TEST(PrioritizedSelectorTest, ShiftMovesUpToItsLimit) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 100, 1.0);
  selector->Insert(LeafRange{0, 100}, 1e-10f);
  selector->Rescale(kShiftMax - 1);
  EXPECT_EQ(selector->AdviseShift(0.0), kShiftMax);
  selector->Rescale(kShiftMax);
  EXPECT_EQ(selector->AdviseShift(0.0), std::nullopt);
}

TEST(PrioritizedSelectorTest, CapacityBulkAndHistoryDoNotChangeDraws) {
  const auto memory = TestMemory();
  constexpr uint64_t kLeaves = 20'000;
  const auto direct = MakePrioritized(memory.get(), kLeaves);
  auto wide = PrioritizedSelector::Create(memory.get(), "wide",
                                          {.leaf_capacity = uint64_t{1} << 32, .alpha = 0.6});
  ASSERT_OK(wide);
  ASSERT_OK(wide.value()->Reserve(kLeaves));
  const auto bulk = MakePrioritized(memory.get(), kLeaves + 999);
  std::mt19937_64 random(4);
  std::vector<uint64_t> leaves;
  std::vector<float> raw;
  for (uint64_t leaf = 0; leaf < kLeaves; ++leaf) {
    if (random() % 3 == 0) continue;
    leaves.push_back(leaf);
    raw.push_back(RandomRaw(&random));
  }
  direct->Insert(leaves, raw);
  wide.value()->Insert(LeafRange{0, kLeaves}, 3.0f);
  wide.value()->Rescale(5);
  wide.value()->Erase(LeafRange{0, kLeaves});
  wide.value()->Insert(leaves, raw);
  wide.value()->Rescale(kShiftInitial);
  bulk->BeginBulk();
  for (size_t i = 0; i < leaves.size(); ++i) {
    bulk->Insert(LeafRange{leaves[i], leaves[i] + 1}, raw[i]);
  }
  bulk->EndBulk();
  std::vector<std::vector<uint64_t>> drawn;
  std::vector<std::vector<double>> probabilities;
  for (const PrioritizedSelector* selector : {direct.get(), wide.value().get(), bulk.get()}) {
    drawn.emplace_back(3000);
    probabilities.emplace_back(3000);
    ASSERT_TRUE(
        selector->Draw({.seed = 11, .draw_number = 12}, drawn.back(), probabilities.back()));
    EXPECT_EQ(selector->drawable(), direct->drawable());
    EXPECT_EQ(drawn.back(), drawn.front());
    EXPECT_EQ(probabilities.back(), probabilities.front());
  }
}

// Each count is binomial: five standard deviations and 1 hold for the fixed seed.
TEST(PrioritizedSelectorTest, FrequenciesFollowThePriorities) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 3000, 0.6);
  std::map<uint64_t, float> members;
  for (uint64_t i = 0; i < 40; ++i) members[i * 73] = static_cast<float>(i) * 0.25f;
  for (const auto& [leaf, raw] : members) selector->Insert(LeafRange{leaf, leaf + 1}, raw);
  double sum = 0;
  for (const auto& [leaf, raw] : members) sum += std::pow(double{raw}, 0.6);
  constexpr size_t kDraws = 300'000;
  std::vector<uint64_t> leaves(kDraws);
  selector->Draw({.seed = 5}, leaves, {});
  std::map<uint64_t, double> counts;
  for (const uint64_t leaf : leaves) ++counts[leaf];
  EXPECT_EQ(counts.size(), 39u);
  for (const auto& [leaf, raw] : members) {
    const double p = std::pow(double{raw}, 0.6) / sum;
    EXPECT_NEAR(counts[leaf], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)) + 1) << leaf;
  }
}

TEST(PrioritizedSelectorTest, UpdatesOfOthersArePassedOver) {
  const auto memory = TestMemory();
  const auto selector = MakePrioritized(memory.get(), 1000, 1.0);
  selector->Insert(LeafRange{10, 20}, 1.0f);
  EXPECT_EQ(selector->Update(std::vector<uint64_t>{5, 15, 999, 1000, UINT64_MAX, 16},
                             std::vector<float>{9, 2, 9, 9, 9, 3}),
            2u);
  EXPECT_EQ(selector->total(), (8 + 2 + 3) * 65536u);
  EXPECT_EQ(selector->max_priority(), 3.0f);
}

TEST(PrioritizedSelectorTest, WrongOptionsAndFullBudgetsAreNamed) {
  const auto memory = TestMemory(uint64_t{2} << 20);
  const auto create = [&](uint64_t capacity, double alpha) {
    return PrioritizedSelector::Create(memory.get(), "per",
                                       {.leaf_capacity = capacity, .alpha = alpha});
  };
  EXPECT_STATUS(kInvalidArgument, create(0, 1), "0 leaves");
  EXPECT_STATUS(kInvalidArgument, create(uint64_t{1} << 36, 1), "leaves");
  EXPECT_STATUS(kInvalidArgument, create(10, -0.1), "alpha -0.1");
  EXPECT_STATUS(kInvalidArgument, create(10, std::nan("")), "alpha nan");
  auto selector = create(uint64_t{1} << 30, 1);
  ASSERT_OK(selector);
  ASSERT_OK(selector.value()->Reserve(100));
  selector.value()->Insert(LeafRange{0, 100}, 1);
  EXPECT_STATUS(kResourceExhausted, selector.value()->Reserve(uint64_t{1} << 24), "'per'");
  EXPECT_EQ(selector.value()->reserved(), 100u);
  EXPECT_EQ(selector.value()->count(), 100u);
  EXPECT_FALSE(selector.value()->Contains(100));
}

TEST(PrioritizedSelectorTest, ValidPrioritiesAreFiniteAndNotNegative) {
  EXPECT_TRUE(ValidPriority(0.0f));
  EXPECT_TRUE(ValidPriority(std::numeric_limits<float>::max()));
  EXPECT_FALSE(ValidPriority(std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(ValidPriority(std::nanf("")));
  EXPECT_FALSE(ValidPriority(-1e-30f));
}

}  // namespace
}  // namespace geardb::index
