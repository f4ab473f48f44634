#include "index/lifo_remover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

TEST(LifoRemoverTest, TheNewestLeavesFirstInWhateverOrderTheyCame) {
  std::mt19937_64 random(5);
  for (int program = 0; program < 50; ++program) {
    LifoRemover remover;
    ASSERT_OK(remover.Reserve(40));
    std::vector<LeftTrajectory> members;
    for (Slot slot = 0; slot < 40; ++slot) {
      members.push_back({slot, static_cast<uint32_t>(slot + 1), random() % 8});
    }
    std::shuffle(members.begin(), members.end(), random);
    for (const LeftTrajectory& member : members) remover.Add(member);
    while (members.size() > 20) {
      remover.Erase(members.back().slot);
      remover.Erase(members.back().slot);
      members.pop_back();
    }
    EXPECT_EQ(remover.count(), 20u);
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return std::tie(a.age, a.generation) > std::tie(b.age, b.generation);
    });
    remover.Begin(9);
    for (const LeftTrajectory& member : members) EXPECT_EQ(remover.Next(), member.slot);
    EXPECT_EQ(remover.Next(), std::nullopt);
    remover.End();
    remover.Begin(9);
    EXPECT_EQ(remover.Next(), members[0].slot) << "nothing has left";
    remover.End();
  }
}

TEST(LifoRemoverTest, AnEmptyOneGivesNone) {
  LifoRemover remover;
  ASSERT_OK(remover.Reserve(1));
  remover.Begin(0);
  EXPECT_EQ(remover.Next(), std::nullopt);
  remover.End();
}

}  // namespace
}  // namespace geardb::index
