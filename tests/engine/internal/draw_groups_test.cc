// DrawGroups: random joins, leaves and seals against the plain model, with numbers and generations;
// and what an image may say of them.
#include "engine/internal/draw_groups.h"

#include <random>

#include "tests/engine/internal/draw_groups_fixture.h"

namespace geardb::engine {
namespace {

using testing::ModelDrawGroup;
using testing::ModelDrawGroups;
using By = ModelDrawGroup::By;

class DrawGroupsTest : public ::testing::Test {
 protected:
  std::unique_ptr<DrawGroups> Make(const GroupSpec& spec, uint64_t slots = 64) {
    auto memory = index::IndexMemory::Create({.budget_bytes = uint64_t{8} << 20});
    EXPECT_OK(memory);
    memories_.push_back(std::move(*memory));
    auto groups = DrawGroups::Create(memories_.back().get(), "test", spec, 0, 1024);
    EXPECT_OK(groups);
    EXPECT_OK((*groups)->Reserve(slots));
    return std::move(*groups);
  }
  static std::vector<Slot> MembersOf(const DrawGroups& groups, uint64_t group) {
    std::vector<Slot> members;
    groups.ForEachMember(group, [&](Slot slot) { members.push_back(slot); });
    return members;
  }
  /// A copy, by what an image has of each.
  std::unique_ptr<DrawGroups> CopyOf(const DrawGroups& groups, const GroupSpec& spec) {
    auto copy = Make(spec);
    for (uint64_t group = 0; group < groups.reserved(); ++group) {
      if (!groups.InUse(group)) continue;
      EXPECT_EQ(copy->Restore({.group = group,
                               .key = groups.KeyOf(group),
                               .generation = groups.GenerationOf(group),
                               .ready = groups.IsReady(group),
                               .end = groups.EndOf(group)},
                              MembersOf(groups, group)),
                "");
    }
    return copy;
  }

  std::vector<std::unique_ptr<index::IndexMemory>> memories_;
};

void ExpectSame(const DrawGroups& groups, const ModelDrawGroups& model,
                const std::map<uint64_t, uint32_t>& generations) {
  EXPECT_EQ(groups.Stats(), model.Stats());
  EXPECT_EQ(groups.count(), model.groups.size());
  for (const ModelDrawGroup& wanted : model.groups) {
    ASSERT_TRUE(groups.InUse(wanted.number));
    EXPECT_EQ(groups.KeyOf(wanted.number), wanted.key);
    EXPECT_EQ(groups.IsReady(wanted.number), wanted.ready);
    EXPECT_EQ(groups.TakesMembers(wanted.number), wanted.takes);
    EXPECT_EQ(groups.GenerationOf(wanted.number), generations.at(wanted.number));
    EXPECT_EQ(groups.FirstUs(wanted.number), wanted.first_us);
    std::vector<TrajectoryId> members;
    groups.ForEachMember(wanted.number, [&](Slot slot) {
      members.push_back(slot);
      EXPECT_EQ(groups.GroupOf(slot), wanted.number);
    });
    EXPECT_EQ(members, wanted.members);
    EXPECT_EQ(groups.FirstOf(wanted.number), wanted.members.front());
    EXPECT_EQ(groups.LastOf(wanted.number), wanted.members.back());
    if (wanted.takes) {
      EXPECT_EQ(groups.FindTaking(wanted.key), wanted.number);
    }
  }
}

TEST_F(DrawGroupsTest, RandomChangesAreThoseOfThePlainModel) {
  constexpr Slot kSlots = 40;
  for (uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    std::mt19937_64 random(seed);
    GroupSpec spec{.key = "key", .count = 1 + static_cast<uint32_t>(random() % 5)};
    spec.at_least = static_cast<uint32_t>(random() % (spec.count + 1));
    if (spec.at_least > 0 && spec.at_least < spec.count && seed % 2 == 0) spec.deadline_ms = 10;
    PriorityTableSpec table{.group = spec};
    ModelDrawGroups model(table);
    std::unique_ptr<DrawGroups> groups = Make(spec);
    std::map<uint64_t, uint32_t> generations;
    uint32_t next_generation = 1;
    for (int i = 0; i < 400 && !HasFailure(); ++i) {
      const auto slot = static_cast<Slot>(random() % kSlots);
      // Extremes too: a key is any integer of 64 bits.
      constexpr int64_t kKeys[] = {0, -1, INT64_MIN, INT64_MAX};
      const int64_t key = kKeys[random() % 4];
      const uint64_t what = random() % 10;
      ModelDrawGroup* const taking = model.Taking(key);
      if (what == 0 && taking != nullptr) {
        const bool was_ready = taking->ready;
        EXPECT_EQ(groups->Seal(taking->number, GroupEnd::kSealed), !was_ready);
        model.Seal(taking, 0, By::kHand);
      } else if (what == 1 && taking != nullptr && !taking->ready) {
        EXPECT_TRUE(groups->Seal(taking->number, GroupEnd::kDeadline));
        model.Seal(taking, 0, By::kDeadline);
      } else if (what == 2) {
        groups = CopyOf(*groups, spec);
        for (ModelDrawGroup& group : model.groups) group.first_us = 0;
      } else if (model.Of(slot) == nullptr) {
        const uint64_t ready = model.inserts;
        model.Join(slot, key, 0, i);
        const DrawGroups::Joined joined =
            groups->Join({.slot = slot, .generation = next_generation, .key = key, .now_us = i});
        const ModelDrawGroup& of = *model.Of(slot);
        EXPECT_EQ(joined.group, of.number);
        EXPECT_EQ(joined.is_ready_now, model.inserts > ready);
        if (of.members.size() == 1) generations[of.number] = next_generation;
        ++next_generation;
      } else {
        const uint64_t number = model.Of(slot)->number;
        const size_t before = model.groups.size();
        model.Leave(slot);
        const DrawGroups::Left left = groups->Leave(slot);
        EXPECT_EQ(left.group, number);
        EXPECT_EQ(left.is_gone, model.groups.size() < before);
        EXPECT_EQ(groups->Leave(slot).group, DrawGroups::kNoGroup) << "it has left";
      }
      ExpectSame(*groups, model, generations);
    }
  }
}

TEST_F(DrawGroupsTest, WhatWaitsIsSaid) {
  const std::unique_ptr<DrawGroups> groups = Make({.key = "key", .count = 3});
  EXPECT_EQ(groups->WaitingText(), "");
  groups->Join({.slot = 4, .generation = 1, .key = 7});
  EXPECT_EQ(groups->WaitingText(), "1 group waits for members: that of key 7 has 1 of 3");
  groups->Join({.slot = 5, .generation = 2, .key = 8});
  EXPECT_EQ(groups->WaitingText(), "2 groups wait for members: that of key 7 has 1 of 3");
}

TEST_F(DrawGroupsTest, WhatNoRecordsMakeIsNotRestored) {
  const GroupSpec spec{.key = "key", .count = 3, .at_least = 2};
  const auto restore = [&](DrawGroups::Stored stored, const std::vector<Slot>& members,
                           const GroupSpec& of) { return Make(of)->Restore(stored, members); };
  const DrawGroups::Stored waits{.group = 3, .key = 1, .generation = 9};
  const DrawGroups::Stored ready{.group = 3, .key = 1, .generation = 9, .ready = true};
  EXPECT_EQ(restore(waits, {1}, spec), "");
  EXPECT_EQ(restore(ready, {1}, spec), "") << "one has left";
  EXPECT_NE(restore(waits, {}, spec), "");
  EXPECT_NE(restore(waits, {1, 2, 3, 4}, spec), "");
  EXPECT_NE(restore(waits, {1, 1}, spec), "");
  EXPECT_NE(restore(waits, {64}, spec), "");
  EXPECT_NE(restore(waits, {1, 2}, spec), "") << "it would be ready";
  EXPECT_NE(restore(ready, {1, 2, 3}, spec), "") << "it would be complete";
  DrawGroups::Stored wrong = waits;
  wrong.group = 64;
  EXPECT_NE(restore(wrong, {1}, spec), "");
  wrong = waits;
  wrong.generation = 0;
  EXPECT_NE(restore(wrong, {1}, spec), "");
  wrong = waits;
  wrong.end = GroupEnd::kSealed;
  EXPECT_NE(restore(wrong, {1}, spec), "");
  const GroupSpec late{.key = "key", .count = 3, .at_least = 2, .deadline_ms = 1};
  EXPECT_EQ(restore(waits, {1, 2}, late), "");
  EXPECT_NE(restore(ready, {1}, late), "") << "nothing has sealed it";
  const std::unique_ptr<DrawGroups> groups = Make(spec);
  EXPECT_EQ(groups->Restore(waits, std::vector<Slot>{1}), "");
  DrawGroups::Stored other = waits;
  EXPECT_NE(groups->Restore(other, std::vector<Slot>{2}), "") << "the number is taken";
  other.group = 4;
  EXPECT_NE(groups->Restore(other, std::vector<Slot>{1}), "") << "a member is another's";
  EXPECT_NE(groups->Restore(other, std::vector<Slot>{2}), "") << "two of a key take members";
}

TEST_F(DrawGroupsTest, TheIndexBudgetBoundsThem) {
  auto memory = index::IndexMemory::Create({.budget_bytes = 1 << 20});
  ASSERT_OK(memory);
  ASSERT_OK_AND_ASSIGN(
      const auto groups,
      DrawGroups::Create(memory->get(), "per", {.key = "key", .count = 2}, 0, 1 << 20));
  EXPECT_STATUS(kResourceExhausted, groups->Reserve(1 << 20), "per draw groups");
  ASSERT_OK(groups->Reserve(64));
  EXPECT_GT(groups->committed_bytes(), 0u);
}

}  // namespace
}  // namespace geardb::engine
