#include "index/uniform_selector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/philox.h"
#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

std::unique_ptr<UniformSelector> MakeUniform(IndexMemory* memory, uint64_t capacity,
                                             uint64_t reserved) {
  auto selector = UniformSelector::Create(memory, "uniform", capacity);
  GEARDB_CHECK(selector.ok() && selector.value()->Reserve(reserved).ok());
  return std::move(selector).value();
}

void ExpectMatches(const UniformSelector& selector, const std::set<uint64_t>& members) {
  ASSERT_EQ(selector.count(), members.size());
  ASSERT_EQ(selector.total(), members.size());
  std::vector<uint64_t> walked;
  selector.ForEachMember(LeafRange{0, UINT64_MAX}, [&](uint64_t leaf) { walked.push_back(leaf); });
  ASSERT_EQ(walked, std::vector<uint64_t>(members.begin(), members.end()));
  uint64_t rank = 0;
  for (const uint64_t leaf : members) ASSERT_EQ(selector.view().Select(rank++), leaf);
}

TEST(UniformSelectorTest, DrawIsFrozen) {
  const auto memory = TestMemory();
  const auto selector = MakeUniform(memory.get(), 5000, 5000);
  for (uint64_t leaf = 1; leaf < 5000; leaf += 3) selector->Insert(LeafRange{leaf, leaf + 1}, 1);
  selector->Insert(LeafRange{1000, 1300}, 1);
  EXPECT_EQ(selector->count(), 1867u);
  std::vector<uint64_t> leaves(16);
  std::vector<double> probabilities(16);
  ASSERT_TRUE(selector->Draw({.seed = 42, .draw_number = 5}, leaves, probabilities));
  // From a second implementation of Philox and a linear search.
  EXPECT_EQ(leaves, (std::vector<uint64_t>{1214, 4810, 1402, 1014, 3010, 4, 2824, 4534, 3787, 2542,
                                           1813, 832, 3070, 1996, 4852, 979}));
  for (const double p : probabilities) EXPECT_EQ(p, 1.0 / 1867);
}

TEST(UniformSelectorTest, RandomOperationsMatchASet) {
  for (const uint64_t capacity : {1u, 255u, 256u, 257u, 8192u, 8193u, 20000u}) {
    SCOPED_TRACE(capacity);
    const auto memory = TestMemory();
    std::mt19937_64 random(capacity);
    const auto selector = MakeUniform(memory.get(), capacity, capacity);
    std::set<uint64_t> members;
    for (int step = 0; step < 60; ++step) {
      const uint64_t begin = random() % capacity;
      const LeafRange range{begin, begin + 1 + random() % (capacity - begin)};
      uint64_t changed = 0;
      switch (random() % 3) {
        case 0:
          for (uint64_t i = range.begin; i < range.end; ++i) changed += members.insert(i).second;
          ASSERT_EQ(selector->Insert(range, 1), changed);
          break;
        case 1:
          for (uint64_t i = range.begin; i < range.end; ++i) changed += members.erase(i);
          ASSERT_EQ(selector->Erase(range), changed);
          break;
        default: {
          std::vector<uint64_t> leaves(random() % 600);
          for (uint64_t& leaf : leaves) {
            leaf = random() % capacity;
            changed += members.insert(leaf).second;
          }
          const std::vector<float> priorities(leaves.size(), 1);
          ASSERT_EQ(selector->Insert(leaves, priorities), changed);
          ASSERT_EQ(selector->Update(leaves, priorities), leaves.size());
        }
      }
      ExpectMatches(*selector, members);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(UniformSelectorTest, EmptyDrawsNothing) {
  const auto memory = TestMemory();
  const auto selector = MakeUniform(memory.get(), 1000, 1000);
  std::vector<uint64_t> leaves = {7, 7};
  EXPECT_FALSE(selector->Draw({}, leaves, {}));
  EXPECT_EQ(leaves, (std::vector<uint64_t>{7, 7}));
  selector->Insert(LeafRange{999, 1000}, 1);
  EXPECT_TRUE(selector->Draw({}, leaves, {}));
  EXPECT_EQ(leaves, (std::vector<uint64_t>{999, 999}));
  selector->Erase(LeafRange{0, 1000});
  EXPECT_FALSE(selector->Draw({}, leaves, {}));
}

TEST(UniformSelectorTest, LeavesBeyondTheReservedAreNoMembers) {
  const auto memory = TestMemory();
  const auto selector = MakeUniform(memory.get(), uint64_t{1} << 37, 10);
  selector->Insert(LeafRange{0, 10}, 1);
  EXPECT_TRUE(selector->Contains(9));
  EXPECT_FALSE(selector->Contains(10));
  EXPECT_FALSE(selector->Contains(uint64_t{1} << 50));
  EXPECT_EQ(selector->Erase(LeafRange{5, uint64_t{1} << 50}), 5u);
  EXPECT_EQ(selector->Update(std::vector<uint64_t>{1, 5, 1000}, std::vector<float>{1, 1, 1}), 1u);
}

TEST(UniformSelectorTest, CapacityBulkAndHistoryDoNotChangeDraws) {
  const auto memory = TestMemory();
  const auto direct = MakeUniform(memory.get(), 30'000, 30'000);
  const auto wide = MakeUniform(memory.get(), uint64_t{1} << 37, 30'000);
  const auto bulk = MakeUniform(memory.get(), 50'000, 30'000);
  std::mt19937_64 random(8);
  wide->Insert(LeafRange{0, 30'000}, 1);
  bulk->BeginBulk();
  for (uint64_t leaf = 0; leaf < 30'000; ++leaf) {
    if (random() % 3 == 0) {
      direct->Insert(LeafRange{leaf, leaf + 1}, 1);
      bulk->Insert(LeafRange{leaf, leaf + 1}, 1);
    } else {
      wide->Erase(LeafRange{leaf, leaf + 1});
    }
  }
  bulk->EndBulk();
  std::vector<uint64_t> a(1000);
  std::vector<uint64_t> b(1000);
  std::vector<uint64_t> c(1000);
  ASSERT_TRUE(direct->Draw({.seed = 1, .draw_number = 2}, a, {}));
  ASSERT_TRUE(wide->Draw({.seed = 1, .draw_number = 2}, b, {}));
  ASSERT_TRUE(bulk->Draw({.seed = 1, .draw_number = 2}, c, {}));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a, c);
}

TEST(UniformSelectorTest, RowsOfADrawMayBeTakenInParts) {
  const auto memory = TestMemory();
  const auto selector = MakeUniform(memory.get(), 5000, 5000);
  selector->Insert(LeafRange{10, 4000}, 1);
  std::vector<uint64_t> whole(600);
  std::vector<uint64_t> parts(600);
  selector->Draw({.seed = 3, .draw_number = 9}, whole, {});
  selector->Draw({.seed = 3, .draw_number = 9}, std::span(parts).first(251), {});
  selector->Draw({.seed = 3, .draw_number = 9, .first_row = 251}, std::span(parts).subspan(251),
                 {});
  EXPECT_EQ(whole, parts);
  selector->Draw({.seed = 3, .draw_number = 10}, parts, {});
  EXPECT_NE(whole, parts);
}

// Each count is binomial: five standard deviations and 1 hold for the fixed seed.
TEST(UniformSelectorTest, FrequenciesAreEqualOverHoles) {
  const auto memory = TestMemory();
  const auto selector = MakeUniform(memory.get(), 3000, 3000);
  selector->Insert(LeafRange{3, 9}, 1);
  selector->Insert(LeafRange{250, 270}, 1);
  selector->Insert(LeafRange{2990, 3000}, 1);
  constexpr size_t kDraws = 200'000;
  std::vector<uint64_t> leaves(kDraws);
  selector->Draw({.seed = 77}, leaves, {});
  std::map<uint64_t, double> counts;
  for (const uint64_t leaf : leaves) ++counts[leaf];
  ASSERT_EQ(counts.size(), 36u);
  const double p = 1.0 / 36;
  const double bound = 5 * std::sqrt(kDraws * p * (1 - p)) + 1;
  for (const auto& [leaf, count] : counts) {
    EXPECT_TRUE(selector->Contains(leaf));
    EXPECT_NEAR(count, kDraws * p, bound) << "leaf " << leaf;
  }
}

TEST(UniformSelectorTest, WrongCapacitiesAndFullBudgetsAreNamed) {
  const auto memory = TestMemory(uint64_t{1} << 20);
  EXPECT_STATUS(kInvalidArgument, UniformSelector::Create(memory.get(), "u", 0), "'u'");
  EXPECT_STATUS(kInvalidArgument, UniformSelector::Create(memory.get(), "u", UINT64_MAX), "'u'");
  const auto selector = MakeUniform(memory.get(), uint64_t{1} << 32, 100);
  selector->Insert(LeafRange{0, 100}, 1);
  EXPECT_STATUS(kResourceExhausted, selector->Reserve(uint64_t{1} << 30), "'uniform'");
  EXPECT_EQ(selector->reserved(), 100u);
  EXPECT_EQ(selector->count(), 100u);
}

}  // namespace
}  // namespace geardb::index
