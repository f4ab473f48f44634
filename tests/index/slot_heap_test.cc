#include "index/slot_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace geardb::index {
namespace {

std::vector<Slot> Listed(SlotHeap* heap, size_t most = SIZE_MAX) {
  std::vector<Slot> slots;
  heap->Begin();
  while (slots.size() < most) {
    const auto slot = heap->Next();
    if (!slot) break;
    slots.push_back(*slot);
  }
  return slots;
}

TEST(SlotHeapTest, RandomProgramsListWhatASortedMapLists) {
  constexpr Slot kSlots = 200;
  std::mt19937_64 random(3);
  SlotHeap heap;
  heap.Reserve(kSlots);
  std::map<SlotKey, Slot> model;
  std::map<Slot, SlotKey> keys;
  EXPECT_TRUE(Listed(&heap).empty());
  for (int step = 0; step < 5000; ++step) {
    const auto slot = static_cast<Slot>(random() % kSlots);
    if (keys.contains(slot)) model.erase(keys[slot]);
    if (random() % 3 == 0) {
      heap.Erase(slot);
      keys.erase(slot);
    } else {
      // Few ranks, so that ages decide; negative ones, too. Generations differ.
      keys[slot] = {.rank = static_cast<int64_t>(random() % 5) - 2,
                    .age = random() % 4 + (uint64_t{1} << 40),
                    .generation = static_cast<uint32_t>(step)};
      heap.Set(slot, keys[slot]);
      model[keys[slot]] = slot;
    }
    ASSERT_EQ(heap.count(), model.size());
    ASSERT_EQ(heap.Contains(slot), keys.contains(slot));
    if (step % 7 != 0) continue;
    std::vector<Slot> expected;
    for (const auto& [key, at] : model) expected.push_back(at);
    ASSERT_EQ(Listed(&heap), expected) << "step " << step;
    expected.resize(std::min<size_t>(expected.size(), 3));
    ASSERT_EQ(Listed(&heap, 3), expected) << "listing takes nothing out";
  }
}

TEST(SlotHeapTest, TheOnlySlotComesAndGoes) {
  SlotHeap heap;
  heap.Reserve(1);
  heap.Erase(0);
  heap.Set(0, {.rank = 1});
  heap.Set(0, {.rank = 2});
  EXPECT_EQ(heap.key(0).rank, 2);
  EXPECT_EQ(Listed(&heap), std::vector<Slot>{0});
  heap.Erase(0);
  EXPECT_TRUE(Listed(&heap).empty());
}

}  // namespace
}  // namespace geardb::index
