// Draw groups in batches: what is shown of each, by whole members, by tokens and by windows within,
// against what a priority table over trajectories shows of the same, and an exact distribution.
#include "engine/internal/group_draw.h"

#include <cmath>
#include <cstring>

#include "base/philox.h"
#include "tests/engine/internal/draw_groups_fixture.h"
#include "tests/testing/frequencies.h"

namespace geardb {
namespace {

class GroupDrawTest : public testing::DrawGroupsFixture {
 protected:
  /// Groups of one to four members with the keys 0, 1, …; the same trajectories in "all".
  void Fill(PriorityTableSpec spec, int keys = 6) {
    TableSpec table = TableOf(spec);
    PriorityTableSpec all = testing::WindowSpec("all");
    all.item = ItemKind::kTrajectory;
    all.window = {};
    all.selector = SelectorKind::kFifo;
    table.priority_tables.push_back(all);
    PriorityTableSpec windows = testing::WindowSpec("windows", kWindow.extent);
    windows.window = kWindow;
    table.priority_tables.push_back(windows);
    Create(table);
    int64_t steps = 1;
    for (int32_t key = 0; key < keys; ++key) {
      for (int32_t i = 0; i <= key % 4; ++i) {
        members_[key].push_back(Complete(key, steps, 100 * steps));
        steps = steps % 9 + 1;
      }
      if (key % 4 < 3) {
        ASSERT_OK(groups()->SealGroup(key));
      }
      if (!HasPriorities(spec.selector)) continue;
      const RowId row{members_[key][0], 0};
      const float priority = static_cast<float>(1 + key % 3);
      ASSERT_OK(groups()->Set({&row, 1}, {&priority, 1}));
    }
    for (const RowId& row : priority("windows")->Items()) anchors_[row.id].push_back(row.row);
  }
  static std::vector<View> Views() {
    return {{.column = "action", .masks = true}, {.column = "obs"}, {.column = "prompt"}};
  }
  /// What each output has of row i of a packed batch.
  static std::map<std::string, std::vector<std::byte>> ShownOf(const Batch& batch, size_t i) {
    std::map<std::string, std::vector<std::byte>> shown;
    for (const std::string_view name : batch.OutputNames()) {
      const TensorView view = batch[name];
      const auto cu = batch.CuSeqlens(name);
      const bool per_item = cu->empty();
      const auto begin = per_item ? i : static_cast<size_t>((*cu)[i]);
      const auto end = per_item ? i + 1 : static_cast<size_t>((*cu)[i + 1]);
      const size_t entries =
          per_item ? static_cast<size_t>(batch.size()) : static_cast<size_t>(cu->back());
      const size_t bytes = view.byte_count() / entries;
      const auto* from = static_cast<const std::byte*>(view.bytes);
      shown[std::string(name)].assign(from + begin * bytes, from + end * bytes);
    }
    return shown;
  }
  int64_t Tokens(int32_t key, bool packed) {
    int64_t sum = 0;
    int64_t longest = 0;
    for (const TrajectoryId id : members_.at(key)) {
      const auto steps = static_cast<int64_t>(Numbers(id).size());
      sum += steps;
      longest = std::max(longest, steps);
    }
    return packed ? sum : longest * static_cast<int64_t>(members_.at(key).size());
  }

  static constexpr WindowRule kWindow = {.extent = {.before = 1, .length = 2, .after = 0}};
  std::map<int32_t, std::vector<TrajectoryId>> members_;
  std::map<TrajectoryId, std::vector<int64_t>> anchors_;
};

TEST_F(GroupDrawTest, ARowShowsItsMemberAsATrajectoryIsShown) {
  Fill(GroupsSpec(Four(), SelectorKind::kUniform));
  uint64_t trajectories = 0;
  for (const auto& [key, members] : members_) trajectories += members.size();
  ASSERT_OK_AND_ASSIGN(const auto all,
                       priority("all")->NewSampler({.batch = static_cast<int64_t>(trajectories),
                                                    .views = Views(),
                                                    .layout = BatchLayout::kPacked,
                                                    .observer = true}));
  ASSERT_OK_AND_ASSIGN(const Batch each, all->Next());
  std::map<TrajectoryId, std::map<std::string, std::vector<std::byte>>> shown;
  for (size_t i = 0; i < trajectories; ++i) shown[each.trajectory_ids()[i]] = ShownOf(each, i);
  const auto sampler = SampleGroups({.batch = 5, .views = Views(), .layout = BatchLayout::kPacked});
  for (int n = 0; n < 10; ++n) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    ASSERT_EQ(batch.group_count(), 5);
    EXPECT_EQ(batch.group_offsets().front(), 0);
    EXPECT_EQ(batch.group_offsets().back(), batch.size());
    for (size_t g = 0; g < 5; ++g) {
      const auto key = static_cast<int32_t>(batch.group_keys()[g]);
      const std::vector<TrajectoryId>& members = members_.at(key);
      const auto begin = static_cast<size_t>(batch.group_offsets()[g]);
      ASSERT_EQ(batch.group_offsets()[g + 1] - batch.group_offsets()[g],
                static_cast<int64_t>(members.size()));
      for (size_t m = 0; m < members.size(); ++m) {
        EXPECT_EQ(batch.trajectory_ids()[begin + m], members[m]);
        EXPECT_EQ(ShownOf(batch, begin + m), shown.at(members[m]));
        EXPECT_EQ(batch.groups()[begin + m], static_cast<int64_t>(g));
        EXPECT_EQ(batch.handles()[begin + m].length, members.size());
        EXPECT_DOUBLE_EQ(batch.probabilities()[begin + m], 1.0 / 6);
      }
    }
  }
}

TEST_F(GroupDrawTest, GroupsComeByTheirPriorities) {
  Fill(GroupsSpec(Four()));
  const auto sampler = SampleGroups({.batch = 8, .views = {{.column = "obs"}}, .beta = 1});
  std::map<int64_t, double> distribution;
  double total = 0;
  for (const auto& [key, members] : members_) total += 1 + key % 3;
  for (const auto& [key, members] : members_) distribution[key] = (1 + key % 3) / total;
  std::map<int64_t, int64_t> counts;
  for (int n = 0; n < 250; ++n) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    double least = 1;
    for (const int64_t key : batch.group_keys()) least = std::min(least, distribution[key]);
    for (size_t row = 0; row < static_cast<size_t>(batch.size()); ++row) {
      const auto g = static_cast<size_t>(batch.groups()[row]);
      const double wanted = distribution[batch.group_keys()[g]];
      EXPECT_NEAR(batch.probabilities()[row], wanted, 1e-6);
      EXPECT_NEAR(batch.weights()[row], least / wanted, 1e-5);
    }
    for (const int64_t key : batch.group_keys()) ++counts[key];
  }
  testing::ExpectFrequencies(distribution, counts);
}

TEST_F(GroupDrawTest, SetTakesTheHandlesOfABatch) {
  Fill(GroupsSpec(Four()));
  const auto sampler = SampleGroups({.batch = 6, .views = {{.column = "obs"}}});
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  std::vector<float> of_rows;
  std::map<int64_t, float> wanted;
  for (size_t row = 0; row < static_cast<size_t>(batch.size()); ++row) {
    of_rows.push_back(static_cast<float>(row + 1));
    wanted[batch.group_keys()[static_cast<size_t>(batch.groups()[row])]] = of_rows.back();
  }
  ASSERT_OK_AND_ASSIGN(SetOutcome outcome, groups()->Set(batch.handles(), of_rows));
  EXPECT_EQ(outcome.applied, of_rows.size());
  for (const auto& [key, priority] : wanted) {
    for (const TrajectoryId id : members_.at(static_cast<int32_t>(key))) {
      ASSERT_OK_AND_ASSIGN(const float found, groups()->Priority({id, 0}));
      EXPECT_EQ(found, priority);
    }
  }
  // One for each group; a group without its first member is the same one.
  const auto key = static_cast<int32_t>(batch.group_keys()[0]);
  std::vector<TrajectoryId>& members = members_.at(key);
  if (members.size() > 1) {
    ASSERT_OK(table_->Remove({members.data(), 1}));
    members.erase(members.begin());
  }
  const float one[] = {0.25f};
  ASSERT_OK_AND_ASSIGN(outcome, groups()->Set(batch.handles().first(1), one));
  EXPECT_EQ(outcome.applied, 1u);
  // Once all have left, the handle is stale, whoever has the number.
  ASSERT_OK(table_->Remove(members));
  CompleteSome(key, 4);
  ASSERT_OK_AND_ASSIGN(outcome, groups()->Set(batch.handles().first(1), one));
  EXPECT_EQ(outcome.stale, 1u);
  const std::vector<float> rewards(8);
  const ColumnValue values[] = {{"reward", TensorView::Of(std::span<const float>(rewards))}};
  EXPECT_STATUS(kInvalidArgument, groups()->Patch(batch.handles(), values),
                "draws groups, whose handles name several");
}

TEST_F(GroupDrawTest, ATokenBudgetSplitsNoGroup) {
  for (const bool packed : {true, false}) {
    OpenEmpty();
    members_.clear();
    Fill(GroupsSpec(Four(), SelectorKind::kUniform), 9);
    SamplerOptions options{.batch = 1000, .views = Views(), .tokens_max = 60};
    options.layout = packed ? BatchLayout::kPacked : BatchLayout::kPadded;
    // The same draws, one group each.
    options.restart_draw = 0;
    const auto sampler = SampleGroups(options);
    for (int n = 0; n < 30; ++n) {
      ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
      int64_t sum = 0;
      int64_t longest = 0;
      for (const int64_t length : batch.lengths()) {
        sum += length;
        longest = std::max(longest, length);
      }
      const int64_t tokens = packed ? sum : longest * batch.size();
      EXPECT_TRUE(tokens <= 60 || batch.group_count() == 1) << tokens;
      for (size_t g = 0; g < static_cast<size_t>(batch.group_count()); ++g) {
        const auto& members = members_.at(static_cast<int32_t>(batch.group_keys()[g]));
        EXPECT_EQ(batch.group_offsets()[g + 1] - batch.group_offsets()[g],
                  static_cast<int64_t>(members.size()));
      }
      EXPECT_GT(batch.group_count(), 0);
    }
    options.oversized = Oversized::kFail;
    options.tokens_max = 1;
    EXPECT_STATUS(kFailedPrecondition, SampleGroups(options)->Next(), "(a group) has");
  }
}

TEST_F(GroupDrawTest, TokenBudgetsAreFilledAsFarAsTheNextGroupAllows) {
  Fill(GroupsSpec(Four(), SelectorKind::kFifo), 9);
  SamplerOptions options{.batch = 1000, .views = Views(), .tokens_max = 45};
  options.layout = BatchLayout::kPacked;
  ASSERT_OK_AND_ASSIGN(const Batch batch, SampleGroups(options)->Next());
  int64_t tokens = 0;
  int32_t key = 0;
  while (tokens + Tokens(key, true) <= 45) tokens += Tokens(key++, true);
  EXPECT_EQ(batch.group_count(), key);
  EXPECT_EQ(batch.lengths().size(), static_cast<size_t>(batch.group_offsets().back()));
}

TEST_F(GroupDrawTest, WindowsWithinAGroupStandAtEachOfItsAnchorsAlike) {
  for (const bool stratified : {false, true}) {
    OpenEmpty();
    members_.clear();
    anchors_.clear();
    Fill(GroupsSpec(Four()));
    SamplerOptions options{.batch = 4, .views = {{.column = "action"}}};
    options.within = WindowsWithin{.window = kWindow, .count = 3, .stratified = stratified};
    const auto sampler = SampleGroups(options);
    double total = 0;
    for (const auto& [key, members] : members_) total += 1 + key % 3;
    using Item = std::pair<TrajectoryId, int64_t>;
    std::map<Item, double> distribution;
    std::map<int64_t, std::vector<Item>> of_key;
    for (const auto& [key, members] : members_) {
      for (const TrajectoryId id : members) {
        for (const int64_t row : anchors_[id]) of_key[key].push_back({id, row});
      }
      for (const Item& item : of_key[key]) {
        distribution[item] = (1 + key % 3) / total / static_cast<double>(of_key[key].size());
      }
    }
    std::map<Item, int64_t> counts;
    for (int n = 0; n < 400; ++n) {
      ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
      ASSERT_EQ(batch.size(), 12);
      ASSERT_EQ(batch.group_count(), 4);
      for (size_t row = 0; row < 12; ++row) {
        EXPECT_EQ(batch.groups()[row], static_cast<int64_t>(row / 3));
        const Item item{batch.trajectory_ids()[row], batch.anchors()[row]};
        ASSERT_TRUE(distribution.contains(item));
        EXPECT_NEAR(batch.probabilities()[row], distribution[item], 1e-6);
        // The stratum is one of three of the group's anchors.
        const std::vector<Item>& all = of_key[batch.group_keys()[row / 3]];
        EXPECT_EQ(batch.handles()[row].length,
                  members_.at(static_cast<int32_t>(batch.group_keys()[row / 3])).size());
        if (stratified) {
          const auto at = std::find(all.begin(), all.end(), item) - all.begin();
          const auto j = static_cast<double>(row % 3);
          const auto anchors = static_cast<double>(all.size());
          EXPECT_GT(static_cast<double>(at + 1), j * anchors / 3 - 1e-9);
          EXPECT_LT(static_cast<double>(at), (j + 1) * anchors / 3 + 1e-9);
        }
        ++counts[item];
      }
    }
    if (stratified) {
      EXPECT_EQ(counts.size(), distribution.size());
    } else {
      testing::ExpectFrequencies(distribution, counts);
    }
  }
}

TEST_F(GroupDrawTest, ADrawnGroupIsOneSampleOfEachMember) {
  PriorityTableSpec spec = GroupsSpec(Four(), SelectorKind::kFifo);
  spec.max_times_sampled = 2;
  spec.remove_when_exhausted = true;
  Create(TableOf(spec));
  const std::vector<TrajectoryId> ids = CompleteSome(7, 4);
  Complete(8);
  SamplerOptions options{.batch = 1, .views = {{.column = "action"}}};
  options.within = WindowsWithin{.window = kWindow, .count = 5};
  ASSERT_OK(SampleGroups(options)->Next());
  for (const TrajectoryId id : ids) EXPECT_EQ(table_->Find(id)->times_sampled, 1u);
  EXPECT_EQ(groups()->Stats().limiter.samples, 1u);
  EXPECT_EQ(groups()->Stats().sampled_items, 1u);
  options.within.reset();
  ASSERT_OK(SampleGroups(options)->Next());
  EXPECT_EQ(groups()->Stats().limiter.samples, 2u);
  EXPECT_EQ(table_->Stats().trajectories, 1u) << "all members of the exhausted group have left";
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 1, .members = 1}));
}

TEST_F(GroupDrawTest, WhatIsSampledWithoutAMaximumIsNotCounted) {
  PriorityTableSpec spec = GroupsSpec(Four(), SelectorKind::kFifo);
  spec.max_times_sampled = 3;
  Create(TableOf(spec));
  CompleteSome(7, 4);
  const auto sampler = SampleGroups({.batch = 1, .views = {{.column = "action"}}});
  ASSERT_OK(sampler->Next());
  ASSERT_OK(groups()->Configure({}));
  for (int i = 0; i < 5; ++i) ASSERT_OK(sampler->Next());
  ASSERT_OK(groups()->Configure({.max_times_sampled = 2}));
  EXPECT_EQ(groups()->DrawableCount(), 1u) << "one of two";
  ASSERT_OK(sampler->Next());
  EXPECT_EQ(groups()->DrawableCount(), 0u);
}

TEST_F(GroupDrawTest, WhatWasDrawnWithoutAMaximumHoldsNoPlace) {
  Create(TableOf(GroupsSpec(Four(), SelectorKind::kFifo)));
  CompleteSome(7, 4);
  CompleteSome(8, 4);
  const auto sample = [this](int64_t batch) {
    return SampleGroups({.batch = batch, .views = {{.column = "action"}}, .prefetch = 1});
  };
  auto first = sample(2);
  ASSERT_OK(first->Next());  // Both are drawn ahead.
  ASSERT_OK(groups()->Configure({.max_times_sampled = 1}));
  const auto second = sample(1);
  ASSERT_OK(second->Next());  // Key 7; key 8 is drawn ahead.
  EXPECT_EQ(groups()->DrawableCount(), 0u);
  first.reset();
  EXPECT_EQ(groups()->DrawableCount(), 0u) << "the place is the second sampler's";
  EXPECT_STATUS(kDeadlineExceeded, sample(1)->Next(), "");
  ASSERT_OK_AND_ASSIGN(const Batch batch, second->Next());
  EXPECT_EQ(batch.group_keys()[0], 8);
}

TEST_F(GroupDrawTest, AnEpochShowsEachGroupOnce) {
  PriorityTableSpec spec = GroupsSpec(Four(), SelectorKind::kEpoch);
  spec.epoch = {.passes = 2, .remove_covered = true};
  Create(TableOf(spec));
  for (int32_t key = 0; key < 5; ++key) CompleteSome(key, 4);
  CompleteSome(9, 3);
  ASSERT_OK(groups()->BeginEpoch());
  const auto sampler = SampleGroups({.batch = 2, .views = {{.column = "action"}}});
  std::map<int64_t, int> seen;
  for (int n = 0; n < 6; ++n) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    EXPECT_EQ(batch.size(), 4 * batch.group_count());
    for (const int64_t key : batch.group_keys()) ++seen[key];
    if (n == 2) {
      EXPECT_EQ(seen.size(), 5u);
    }
  }
  for (const auto& [key, times] : seen) EXPECT_EQ(times, 2) << key;
  EXPECT_STATUS(kOutOfRange, sampler->Next(), "");
  EXPECT_EQ(table_->Stats().trajectories, 3u) << "what is covered has left, what waits has not";
}

TEST_F(GroupDrawTest, GroupsAreMixedWithGroupsAlone) {
  TableSpec table = TableOf(GroupsSpec(Four(), SelectorKind::kUniform));
  PriorityTableSpec pairs = GroupsSpec({.key = "prompt", .count = 2}, SelectorKind::kUniform);
  pairs.name = "pairs";
  table.priority_tables.push_back(pairs);
  PriorityTableSpec single = testing::WindowSpec("single");
  single.item = ItemKind::kTrajectory;
  single.window = {};
  table.priority_tables.push_back(single);
  Create(table);
  CompleteSome(7, 8);
  const auto part = [&](const char* name, int64_t count) {
    return SamplerPart{
        .priority_table = table_->priority_table(name), .share = ShareKind::kFixed, .count = count};
  };
  const SamplerPart wrong[] = {part("groups", 1), part("single", 1)};
  EXPECT_STATUS(kInvalidArgument,
                database_->NewSampler(wrong, {.batch = 2, .views = {{.column = "action"}}}),
                "groups are mixed with groups alone");
  const SamplerPart right[] = {part("groups", 1), part("pairs", 2)};
  ASSERT_OK_AND_ASSIGN(const auto sampler,
                       database_->NewSampler(right, {.batch = 3, .views = {{.column = "action"}}}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  EXPECT_EQ(batch.size(), 8);
  const auto offsets = batch.group_offsets();
  EXPECT_EQ(std::vector<int64_t>(offsets.begin(), offsets.end()),
            (std::vector<int64_t>{0, 4, 6, 8}));
}

// It fitted when it was drawn, and was handed over with all of its steps.
TEST_F(GroupDrawTest, ACarriedGroupThatHasGrownTooLargeIsNamed) {
  PriorityTableSpec spec =
      GroupsSpec({.key = "prompt", .count = 3, .at_least = 1}, SelectorKind::kFifo);
  spec.max_times_sampled = 100;
  Create(TableOf(spec));
  Complete(1, 6);
  Complete(2, 6);
  SamplerOptions options{.batch = 8, .views = {{.column = "obs"}}};
  options.layout = BatchLayout::kPacked;
  options.tokens_max = 10;
  options.oversized = Oversized::kFail;
  const auto sampler = SampleGroups(options);
  ASSERT_OK_AND_ASSIGN(const Batch fits, sampler->Next());
  EXPECT_EQ(fits.group_keys()[0], 1);
  const TrajectoryId joined = Complete(2, 20);
  EXPECT_STATUS(kFailedPrecondition, sampler->Next(),
                "(a group) has 26 steps; the sampler's tokens_max is 10");
  ASSERT_OK(table_->Remove({&joined, 1}));
  ASSERT_OK_AND_ASSIGN(const Batch again, sampler->Next());
  EXPECT_EQ(again.group_keys()[0], 2);
  EXPECT_EQ(again.group_count(), 1);
}

// Whoever has the slot of one that was drawn ahead, and has left, was not shown.
TEST_F(GroupDrawTest, AMemberInThePlaceOfADrawnOneIsOfTheNextGroup) {
  PriorityTableSpec spec =
      GroupsSpec({.key = "prompt", .count = 3, .at_least = 1}, SelectorKind::kFifo);
  spec.max_times_sampled = 2;
  spec.remove_when_exhausted = true;
  Create(TableOf(spec));
  const std::vector<TrajectoryId> members = CompleteSome(7, 2);
  const auto sampler = SampleGroups({.batch = 1, .views = {{.column = "obs"}}, .prefetch = 1});
  ASSERT_OK(sampler->Next());
  ASSERT_OK(table_->Remove({&members[0], 1}));
  const TrajectoryId late = Complete(7);
  ASSERT_OK(sampler->Next());  // Drawn ahead, of the first two.
  EXPECT_EQ(table_->Count(), 1u);
  ASSERT_OK_AND_ASSIGN(const Batch next, sampler->Next());
  EXPECT_EQ(next.trajectory_ids()[0], late);
}

}  // namespace
}  // namespace geardb
