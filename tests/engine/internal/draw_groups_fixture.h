// A store whose trajectories are drawn in groups, and the plain model of them: what the words of
// GroupSpec (engine/schema.h) say, with lists and no index.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/testing/hand_clock.h"
#include "tests/testing/store_fixture.h"

namespace geardb::testing {

/// One group as it must be.
struct ModelDrawGroup {
  int64_t key = 0;
  uint64_t number = 0;
  std::vector<TrajectoryId> members = {};
  int64_t first_us = 0;
  bool ready = false;
  bool takes = true;
  bool deleted = false;
  float priority = 0;
  uint64_t age = 0;    ///< The number of items that were ready before it.
  uint64_t times = 0;  ///< Draws of it that were handed over.
  enum class By { kTaking, kComplete, kHand, kDeadline, kUndrawable } by = By::kTaking;

  bool is_item() const { return ready && !deleted; }
};

/// All groups of a priority table.
class ModelDrawGroups {
 public:
  explicit ModelDrawGroups(const PriorityTableSpec& spec) : spec_(spec) {}

  uint32_t at_least() const {
    return spec_.group.at_least == 0 ? spec_.group.count : spec_.group.at_least;
  }
  ModelDrawGroup* Taking(int64_t key) {
    for (ModelDrawGroup& group : groups) {
      if (group.key == key && group.takes) return &group;
    }
    return nullptr;
  }
  ModelDrawGroup* Of(TrajectoryId id) {
    for (ModelDrawGroup& group : groups) {
      if (std::count(group.members.begin(), group.members.end(), id) > 0) return &group;
    }
    return nullptr;
  }
  bool IsExhausted(const ModelDrawGroup& group) const {
    return spec_.max_times_sampled > 0 && group.times >= spec_.max_times_sampled;
  }
  bool IsUndrawable(const ModelDrawGroup& group) const {
    return group.ready && (group.deleted || IsExhausted(group));
  }
  /// `score`: of the column that priorities may come from.
  void Join(TrajectoryId id, int64_t key, float score, int64_t now_us) {
    ModelDrawGroup* group = Taking(key);
    if (group != nullptr && IsUndrawable(*group)) {
      group->takes = false;
      group->by = ModelDrawGroup::By::kUndrawable;
      group = nullptr;
    }
    if (group == nullptr) {
      uint64_t number = 0;
      while (std::any_of(groups.begin(), groups.end(),
                         [number](const auto& other) { return other.number == number; })) {
        ++number;
      }
      group =
          &groups.emplace_back(ModelDrawGroup{.key = key, .number = number, .first_us = now_us});
    }
    group->members.push_back(id);
    const bool complete = group->members.size() == spec_.group.count;
    const bool enough = spec_.group.deadline_ms == 0 && group->members.size() >= at_least();
    if (complete) {
      group->takes = false;
      group->by = ModelDrawGroup::By::kComplete;
    }
    if (complete || enough) BeReady(group, score);
  }
  void Seal(ModelDrawGroup* group, float last_score, ModelDrawGroup::By by) {
    group->takes = false;
    group->by = by;
    BeReady(group, last_score);
  }
  /// A hand-over has exhausted it: of groups that take members when they are ready.
  void End(ModelDrawGroup* group) {
    if (!group->takes || spec_.group.deadline_ms > 0 || at_least() == spec_.group.count) return;
    group->takes = false;
    group->by = ModelDrawGroup::By::kUndrawable;
  }
  void Leave(TrajectoryId id) {
    for (ModelDrawGroup& group : groups) std::erase(group.members, id);
    std::erase_if(groups, [](const ModelDrawGroup& group) { return group.members.empty(); });
  }
  void Set(ModelDrawGroup* group, float priority) {
    group->priority = priority;
    max_priority = std::max(max_priority, priority);
  }
  GroupStats Stats() const {
    GroupStats stats;
    for (const ModelDrawGroup& group : groups) {
      stats.members += group.members.size();
      ++(group.ready ? stats.ready : stats.waiting);
      if (!group.ready) continue;
      using By = ModelDrawGroup::By;
      stats.taking += group.by == By::kTaking ? 1u : 0u;
      stats.complete += group.by == By::kComplete ? 1u : 0u;
      stats.sealed_by_hand += group.by == By::kHand ? 1u : 0u;
      stats.sealed_by_deadline += group.by == By::kDeadline ? 1u : 0u;
    }
    return stats;
  }

  std::vector<ModelDrawGroup> groups;  ///< In the order in which they began.
  float max_priority = 1;
  uint64_t inserts = 0;  ///< Groups that were ready, ever.

 private:
  void BeReady(ModelDrawGroup* group, float score) {
    if (group->ready) return;
    group->ready = true;
    group->age = inserts++;
    if (!HasPriorities(spec_.selector)) return;
    switch (spec_.initial) {
      case InitialPriority::kMax:
        return Set(group, max_priority);
      case InitialPriority::kConstant:
        return Set(group, spec_.initial_priority_value);
      case InitialPriority::kColumn:
        return Set(group, score);
    }
  }

  const PriorityTableSpec spec_;
};

/// A table with the key "prompt" (i32), and one priority table over groups, "groups".
class DrawGroupsFixture : public StoreTest {
 protected:
  void SetUp() override {
    options_.background = false;  // What a test does not do by hand does not happen.
    options_.clock = &clock_;
    Open();
  }
  void TearDown() override {  // The clock goes first.
    writer_.reset();
    Close();
  }
  static PriorityTableSpec GroupsSpec(const GroupSpec& group,
                                      SelectorKind selector = SelectorKind::kPrioritized) {
    PriorityTableSpec spec = WindowSpec("groups");
    spec.item = ItemKind::kGroup;
    spec.window = {};
    spec.group = group;
    spec.selector = selector;
    return spec;
  }
  static TableSpec TableOf(const PriorityTableSpec& priority_spec) {
    TableSpec spec = StepSpec();
    spec.columns.push_back(
        {.name = "prompt", .dtype = DType::kI32, .kind = ColumnKind::kPerTrajectory});
    spec.priority_tables = {priority_spec};
    return spec;
  }
  /// Four members, all of which have to come.
  static GroupSpec Four() { return {.key = "prompt", .count = 4}; }

  /// A closed trajectory of rows numbered from `first` on.
  TrajectoryId Complete(int32_t prompt, int64_t steps = 2, int64_t first = 0) {
    const Rows rows(first, steps);
    const ColumnValue key[] = {{"prompt", TensorView::Scalar(prompt)}};
    const auto appended =
        writer_->AppendSteps(rows.many(), {.end = End::kTerminated, .trajectory = key});
    EXPECT_OK(appended);
    return appended.ok() ? appended->id : 0;
  }
  std::vector<TrajectoryId> CompleteSome(int32_t prompt, int count) {
    std::vector<TrajectoryId> ids;
    for (int i = 0; i < count; ++i) ids.push_back(Complete(prompt));
    return ids;
  }
  PriorityTable* groups() { return priority("groups"); }
  GroupStats Groups() { return groups()->Stats().groups; }
  std::unique_ptr<Sampler> SampleGroups(SamplerOptions options) {
    options.timeout_ms = 0;
    auto sampler = groups()->NewSampler(options);
    EXPECT_OK(sampler);
    return sampler.ok() ? std::move(*sampler) : nullptr;
  }
  void PassMs(int64_t ms) { clock_.now_us += ms * 1000; }

  HandClock clock_;
};

}  // namespace geardb::testing
