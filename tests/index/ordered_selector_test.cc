#include "index/ordered_selector.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "tests/index/memory_fixture.h"
#include "tests/index/selector_model.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

constexpr ItemOrder kOrders[] = {ItemOrder::kOldestFirst, ItemOrder::kNewestFirst,
                                 ItemOrder::kSmallestFirst, ItemOrder::kLargestFirst};

std::unique_ptr<OrderedSelector> MakeOrdered(IndexMemory* memory,
                                             const OrderedSelector::Options& options) {
  auto selector = OrderedSelector::Create(memory, "ordered", options);
  GEARDB_CHECK(selector.ok() && selector.value()->Reserve(options.leaf_capacity).ok());
  return std::move(selector).value();
}

std::vector<uint64_t> All(const OrderedSelector& selector) {
  std::vector<uint64_t> leaves(selector.count());
  leaves.resize(selector.Draw({}, leaves, {}));
  return leaves;
}

TEST(ItemOrderTest, KeysGiveBackWhatTheyWereMadeOfAndStandInItsOrder) {
  const float raws[] = {0.0f, std::numeric_limits<float>::denorm_min(), 1e-30f, 0.5f, 1.0f,
                        3.0f, std::numeric_limits<float>::max()};
  for (const ItemOrder order : kOrders) {
    const uint64_t last = SequenceLimit(order) - 1;
    for (const float raw : raws) {
      for (const uint64_t sequence : {uint64_t{0}, uint64_t{1}, last / 2, last}) {
        const uint64_t key = MakeKey(order, raw, sequence);
        EXPECT_NE(key & kVisibleKey, 0u);
        EXPECT_NE(key & kKeyMask, 0u);
        EXPECT_EQ(SequenceOfKey(order, key), sequence);
        EXPECT_EQ(SequenceOfKey(order, key & kKeyMask), sequence);
        EXPECT_EQ(RawPriorityOfKey(order, key), OrdersByPriority(order) ? raw : 1.0f);
        for (const float other : raws) {
          const uint64_t other_key = MakeKey(order, other, 1);
          bool first = order == ItemOrder::kNewestFirst ? sequence > 1 : sequence < 1;
          if (OrdersByPriority(order) && raw != other) {
            first = (order == ItemOrder::kSmallestFirst) == (raw < other);
          }
          EXPECT_EQ(key > other_key, first) << raw << " " << sequence << " " << other;
        }
      }
    }
    EXPECT_EQ(MakeKey(order, -0.0f, 3), MakeKey(order, 0.0f, 3));
  }
}

TEST(OrderedSelectorTest, ARestoredOneGivesTheSameAndGoesOnAlike) {
  std::mt19937_64 random(11);
  for (const ItemOrder order : kOrders) {
    const auto memory = TestMemory();
    const auto selector = MakeOrdered(memory.get(), {.leaf_capacity = 500, .order = order});
    for (int i = 0; i < 2000; ++i) {
      const uint64_t leaf = random() % 500;
      const float raw = static_cast<float>(random() % 8) / 4;
      if (random() % 3 == 0) selector->Erase({leaf, leaf + 1});
      if (random() % 3 != 0) selector->Insert({leaf, leaf + 1}, raw);
    }
    const auto restored = MakeOrdered(memory.get(), {.leaf_capacity = 700, .order = order});
    restored->BeginBulk();
    selector->ForEachMember({0, 500}, [&](uint64_t leaf) {
      const float raw = selector->raw_priority(leaf);
      const uint64_t sequence = SequenceOfKey(order, selector->view().keys()[leaf]);
      EXPECT_LT(sequence, selector->next_sequence());
      restored->Restore({&leaf, 1}, {&raw, 1}, {&sequence, 1});
    });
    restored->RestoreEnd(selector->next_sequence(), selector->max_priority());
    restored->EndBulk();
    EXPECT_EQ(restored->max_priority(), selector->max_priority());
    for (uint64_t i = 0; i < 50; ++i) {
      ASSERT_EQ(All(*restored), All(*selector)) << "after " << i;
      const uint64_t leaf = random() % 500;
      for (OrderedSelector* each : {selector.get(), restored.get()}) {
        each->Insert({leaf, std::min<uint64_t>(leaf + 3, 500)}, static_cast<float>(i));
        each->Erase({i * 7, i * 7 + 2});
      }
    }
  }
}

TEST(OrderedSelectorTest, EachOrderGivesItsOwn) {
  const auto memory = TestMemory();
  const std::vector<uint64_t> leaves = {8, 3, 5, 1, 3, 9};
  const std::vector<float> raw = {2, 7, 0, 2, 1, 7};  // Leaf 3 ends at 1.
  const std::vector<std::vector<uint64_t>> expected = {
      {8, 3, 5, 1, 9}, {9, 1, 5, 3, 8}, {5, 3, 8, 1, 9}, {9, 8, 1, 3, 5}};
  for (const ItemOrder order : kOrders) {
    const auto selector = MakeOrdered(memory.get(), {.leaf_capacity = 10, .order = order});
    EXPECT_EQ(selector->Insert(leaves, raw), 5u);
    EXPECT_EQ(All(*selector), expected[static_cast<size_t>(order)]);
    EXPECT_EQ(selector->max_priority(), OrdersByPriority(order) ? 7.0f : 1.0f);
    // Again: everything keeps its place among equals.
    EXPECT_EQ(selector->Insert(LeafRange{0, 10}, 4.0f), 5u);
    EXPECT_EQ(selector->Erase({0, 1}), 1u);
    std::vector<uint64_t> first = {8, 3, 5, 1, 9, 2, 4, 6, 7};
    if (order == ItemOrder::kNewestFirst) std::reverse(first.begin(), first.end());
    EXPECT_EQ(All(*selector), first);
  }
}

TEST(OrderedSelectorTest, HeapsGoOnWhenSequenceNumbersEnd) {
  for (const ItemOrder order : {ItemOrder::kSmallestFirst, ItemOrder::kLargestFirst}) {
    const auto memory = TestMemory();
    constexpr uint64_t kLeaves = 700;
    // One selector begins near the end of the numbers, the other is far from it: same calls.
    for (const uint64_t before_end : {uint64_t{0}, uint64_t{1}, uint64_t{300}, uint64_t{900}}) {
      const auto near_end =
          MakeOrdered(memory.get(), {.leaf_capacity = kLeaves,
                                     .order = order,
                                     .next_sequence = SequenceLimit(order) - before_end});
      const auto far = MakeOrdered(memory.get(), {.leaf_capacity = kLeaves, .order = order});
      std::mt19937_64 random(before_end);
      for (int step = 0; step < 400; ++step) {
        const uint64_t begin = random() % kLeaves;
        const LeafRange range{begin, std::min(kLeaves, begin + 1 + random() % 30)};
        const auto raw = static_cast<float>(random() % 4);
        const std::vector<uint64_t> some = {random() % kLeaves, random() % kLeaves};
        const uint64_t choice = random() % 5;
        const bool bulk = random() % 5 == 0;
        for (OrderedSelector* selector : {near_end.get(), far.get()}) {
          if (bulk) selector->BeginBulk();
          if (choice == 0) selector->Erase(range);
          if (choice == 1) selector->Hide(some);
          if (choice == 2) selector->Show(some);
          if (choice == 3) selector->Insert(some, std::vector<float>{raw, 1});
          if (choice == 4) selector->Insert(range, raw);
          if (bulk) selector->EndBulk();
        }
        ASSERT_EQ(near_end->drawable(), far->drawable());
        ASSERT_EQ(All(*near_end), All(*far)) << "step " << step;
      }
    }
  }
}

TEST(OrderedSelectorTest, WrongCapacitiesAndFullBudgetsAreNamed) {
  const auto memory = TestMemory(uint64_t{1} << 20);
  for (const ItemOrder order : kOrders) {
    EXPECT_STATUS(kInvalidArgument, OrderedSelector::Create(memory.get(), "o", {.order = order}),
                  "'o'");
    EXPECT_STATUS(
        kInvalidArgument,
        OrderedSelector::Create(
            memory.get(), "o",
            {.leaf_capacity = OrderedSelector::LeafCapacityMax(order) + 1, .order = order}),
        "'o'");
  }
  auto selector = OrderedSelector::Create(memory.get(), "o", {.leaf_capacity = uint64_t{1} << 30});
  ASSERT_OK(selector);
  ASSERT_OK(selector.value()->Reserve(100));
  selector.value()->Insert(LeafRange{0, 100}, 1);
  EXPECT_STATUS(kResourceExhausted, selector.value()->Reserve(uint64_t{1} << 29), "'o'");
  EXPECT_EQ(selector.value()->reserved(), 100u);
  EXPECT_EQ(selector.value()->count(), 100u);
}

}  // namespace
}  // namespace geardb::index
