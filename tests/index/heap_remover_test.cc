#include "index/heap_remover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

struct Member {
  LeftTrajectory left;
  float priority = 0;
};

void Check(HeapRemover::Order order) {
  const bool smallest = order == HeapRemover::Order::kSmallestFirst;
  constexpr float kPriorities[] = {0.0f, -0.0f, 1e-45f, 0.5f, 1.0f, 1.5f, 3e38f};
  std::mt19937_64 random(smallest ? 1 : 2);
  HeapRemover remover(order);
  ASSERT_OK(remover.Reserve(60));
  std::map<Slot, Member> members;
  for (int step = 0; step < 3000; ++step) {
    const auto slot = static_cast<Slot>(random() % 60);
    const uint64_t what = random() % 3;
    if (what == 0) {
      remover.Erase(slot);
      members.erase(slot);
    } else if (!members.contains(slot)) {
      members[slot].left = {slot, static_cast<uint32_t>(step + 1), random() % 6};
      remover.Add(members[slot].left);
    } else {
      members[slot].priority = kPriorities[random() % std::size(kPriorities)];
      remover.SetPriority(slot, members[slot].priority);
    }
    if (step % 5 != 0) continue;
    std::vector<Member> order_of;
    for (const auto& [at, member] : members) order_of.push_back(member);
    std::sort(order_of.begin(), order_of.end(), [&](const Member& a, const Member& b) {
      if (a.priority != b.priority) return (a.priority < b.priority) == smallest;
      if (a.left.age != b.left.age) return a.left.age < b.left.age;
      return a.left.generation < b.left.generation;
    });
    remover.Begin(0);
    for (const Member& member : order_of) ASSERT_EQ(remover.Next(), member.left.slot);
    ASSERT_EQ(remover.Next(), std::nullopt);
    remover.End();
  }
}

TEST(HeapRemoverTest, TheSmallestLeavesFirstAmongEqualsTheOldest) {
  Check(HeapRemover::Order::kSmallestFirst);
}

TEST(HeapRemoverTest, OrTheLargest) { Check(HeapRemover::Order::kLargestFirst); }

}  // namespace
}  // namespace geardb::index
