#include "index/epoch_selector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

std::unique_ptr<EpochSelector> MakeEpochs(IndexMemory* memory, uint64_t leaves) {
  auto selector = EpochSelector::Create(memory, "epoch", leaves);
  GEARDB_CHECK(selector.ok() && selector.value()->Reserve(leaves).ok());
  return std::move(selector).value();
}

TEST(EpochSelectorTest, EachPassCoversTheCutOnceAndEndsWithAShortBatch) {
  const auto memory = TestMemory();
  const auto selector = MakeEpochs(memory.get(), 2000);
  std::vector<uint64_t> batch(64);
  selector->Insert(LeafRange{500, 1500}, 1);
  EXPECT_EQ(selector->Draw({.seed = 1}, batch, {}), 0u);  // No epoch has begun.
  selector->BeginEpoch();
  uint64_t draw = 0;
  std::vector<uint64_t> first_pass;
  for (uint64_t pass = 1; pass <= 3; ++pass) {
    EXPECT_EQ(selector->epoch(), 1u);
    EXPECT_EQ(selector->pass(), pass);
    std::vector<uint64_t> seen;
    std::vector<uint64_t> sizes;
    while (selector->remaining() > 0) {
      const uint64_t drawn = selector->Draw({.seed = 1, .draw_number = draw++}, batch, {});
      sizes.push_back(drawn);
      EXPECT_EQ(selector->Take(std::span(batch).first(drawn)), drawn);
      seen.insert(seen.end(), batch.begin(), batch.begin() + static_cast<long>(drawn));
      if (seen.size() == 320) selector->Insert(LeafRange{0, 10 * pass}, 1);  // Not of this cut.
    }
    EXPECT_EQ(sizes.size(), 16u);
    EXPECT_EQ(sizes.back(), 1000u % 64);
    EXPECT_NE(seen, first_pass);  // Another order.
    first_pass = seen;
    const std::set<uint64_t> distinct(seen.begin(), seen.end());
    EXPECT_EQ(distinct.size(), 1000u);
    EXPECT_EQ(*distinct.begin(), 500u);
    EXPECT_EQ(*distinct.rbegin(), 1499u);
    selector->BeginPass();
    EXPECT_EQ(selector->remaining(), 1000u);
  }
  selector->BeginEpoch();
  EXPECT_EQ(selector->remaining(), 1030u);
  EXPECT_EQ(selector->epoch(), 2u);
  EXPECT_EQ(selector->pass(), 1u);
}

TEST(EpochSelectorTest, ErasedLeaveTheEpochAndTheirLeavesMayBeOthers) {
  const auto memory = TestMemory();
  const auto selector = MakeEpochs(memory.get(), 100);
  selector->Insert(LeafRange{0, 10}, 1);
  selector->BeginEpoch();
  EXPECT_EQ(selector->Take(std::vector<uint64_t>{1, 2, 2, 50, 1000}), 2u);
  selector->Erase({2, 4});
  EXPECT_EQ(selector->remaining(), 7u);
  EXPECT_EQ(selector->cut(), 8u);
  selector->Insert(LeafRange{2, 4}, 1);  // Other items.
  EXPECT_EQ(selector->GiveBack(std::vector<uint64_t>{1, 1, 2, 3, 50, 1000}), 1u);
  EXPECT_EQ(selector->remaining(), 8u);
  selector->BeginPass();
  EXPECT_EQ(selector->remaining(), 8u);
  EXPECT_EQ(selector->count(), 10u);
}

TEST(EpochSelectorTest, HiddenRemainAndAreDrawnWhenShown) {
  const auto memory = TestMemory();
  const auto selector = MakeEpochs(memory.get(), 100);
  selector->Insert(LeafRange{0, 3}, 1);
  ASSERT_OK(selector->ReserveHidden());
  selector->Hide(std::vector<uint64_t>{1});
  selector->BeginEpoch();
  std::vector<uint64_t> batch(5);
  EXPECT_EQ(selector->Draw({.seed = 1}, batch, {}), 2u);
  selector->Take(std::span(batch).first(2));
  EXPECT_EQ(selector->Draw({.seed = 1}, batch, {}), 0u);
  EXPECT_EQ(selector->remaining(), 1u);
  EXPECT_EQ(selector->drawable(), 0u);
  selector->Show(std::vector<uint64_t>{1});
  EXPECT_EQ(selector->Draw({.seed = 1}, batch, {}), 1u);
  EXPECT_EQ(batch[0], 1u);
}

// Chi-square with 119 degrees of freedom: beyond 215 with probability below 1e-6; fixed seed.
TEST(EpochSelectorTest, EveryOrderOfTheItemsIsEquallyLikely) {
  const auto memory = TestMemory();
  const auto selector = MakeEpochs(memory.get(), 1000);
  for (const uint64_t leaf : {1u, 250u, 300u, 999u, 512u})
    selector->Insert(LeafRange{leaf, leaf + 1}, 1);
  selector->BeginEpoch();
  std::map<std::vector<uint64_t>, double> orders;
  constexpr double kDraws = 60'000;
  std::vector<uint64_t> batch(5);
  for (uint64_t draw = 0; draw < static_cast<uint64_t>(kDraws); ++draw) {
    ASSERT_EQ(selector->Draw({.seed = 9, .draw_number = draw}, batch, {}), 5u);
    ++orders[batch];
  }
  ASSERT_EQ(orders.size(), 120u);
  double chi = 0;
  for (const auto& [order, count] : orders)
    chi += std::pow(count - kDraws / 120, 2) / (kDraws / 120);
  EXPECT_LT(chi, 215.0);
}

TEST(EpochSelectorTest, ReplayingTheCallsGivesTheSameDraws) {
  const auto memory = TestMemory();
  std::vector<std::unique_ptr<EpochSelector>> both;
  for (int i = 0; i < 2; ++i) both.push_back(MakeEpochs(memory.get(), 5000));
  both[1]->BeginBulk();  // As a recovery does.
  for (const auto& selector : both) {
    selector->Insert(LeafRange{100, 4000}, 1);
    selector->BeginEpoch();
    selector->Take(std::vector<uint64_t>{100, 200, 300, 3999});
    selector->Erase({150, 250});
    selector->GiveBack(std::vector<uint64_t>{200, 300});
    selector->Insert(LeafRange{150, 160}, 1);
  }
  both[1]->EndBulk();
  std::vector<uint64_t> a(300);
  std::vector<uint64_t> b(300);
  EXPECT_EQ(both[0]->remaining(), 3900u - 100 - 2);
  EXPECT_EQ(both[1]->remaining(), both[0]->remaining());
  EXPECT_EQ(both[0]->Draw({.seed = 3}, a, {}), 300u);
  EXPECT_EQ(both[1]->Draw({.seed = 3}, b, {}), 300u);
  EXPECT_EQ(a, b);
}

TEST(EpochSelectorTest, WrongCapacitiesAreNamed) {
  const auto memory = TestMemory();
  EXPECT_STATUS(kInvalidArgument, EpochSelector::Create(memory.get(), "e", 0), "'e'");
  EXPECT_STATUS(kInvalidArgument, EpochSelector::Create(memory.get(), "e", UINT64_MAX), "'e'");
}

TEST(EpochSelectorTest, WhatIsRestoredGoesOnAlike) {
  const auto memory = TestMemory();
  const auto selector = MakeEpochs(memory.get(), 900);
  selector->Insert(LeafRange{100, 700}, 1);
  selector->BeginEpoch();
  selector->BeginEpoch();
  selector->BeginPass();
  std::vector<uint64_t> leaves(250);
  ASSERT_EQ(selector->Draw({.seed = 4}, leaves, {}), 250u);
  selector->Take(leaves);
  selector->Insert(LeafRange{0, 50}, 1);
  selector->Erase({300, 310});

  const auto restored = MakeEpochs(memory.get(), 900);
  const auto leaves_of = [](const Membership& members) {
    std::vector<uint64_t> all;
    members.ForEach({0, 900}, [&](uint64_t leaf) { all.push_back(leaf); });
    return all;
  };
  restored->BeginBulk();
  const std::vector<uint64_t> members = leaves_of(selector->members());
  restored->Insert(members, std::vector<float>(members.size(), 1.0f));
  restored->RestoreCut(leaves_of(selector->cut_members()));
  EXPECT_EQ(restored->remaining(), 0u);
  restored->GiveBack(leaves_of(selector->remaining_members()));
  restored->RestoreNumbers(2, 2);
  restored->EndBulk();
  EXPECT_EQ(restored->epoch(), 2u);
  EXPECT_EQ(restored->pass(), 2u);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(restored->cut(), selector->cut());
    EXPECT_EQ(restored->remaining(), selector->remaining());
    EXPECT_EQ(restored->drawable(), selector->drawable());
    std::vector<uint64_t> other(250);
    selector->Draw({.seed = 5}, leaves, {});
    restored->Draw({.seed = 5}, other, {});
    EXPECT_EQ(leaves, other);
    for (EpochSelector* each : {selector.get(), restored.get()}) each->BeginPass();
  }
}

}  // namespace
}  // namespace geardb::index
