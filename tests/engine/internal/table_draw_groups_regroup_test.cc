// Who joined a group after its draw, of groups that are ready before they are complete: they are of
// the next one once a hand-over has ended it, live and in a replay.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/internal/change_scope.h"
#include "tests/engine/internal/draw_groups_fixture.h"
#include "tests/engine/internal/live_core.h"
#include "tests/engine/internal/store_images.h"
#include "tests/testing/index_dump.h"

namespace geardb {
namespace {

namespace fb = engine::fb;

class TableDrawGroupsRegroupTest : public testing::DrawGroupsFixture {
 protected:
  /// Groups of two to four, each sampled once.
  static PriorityTableSpec OnceSpec() {
    PriorityTableSpec spec =
        GroupsSpec({.key = "prompt", .count = 4, .at_least = 2}, SelectorKind::kFifo);
    spec.max_times_sampled = 1;
    spec.remove_when_exhausted = true;
    return spec;
  }
  /// Key 7 is handed over, key 8 drawn ahead.
  std::unique_ptr<Sampler> DrawAhead() {
    CompleteSome(7, 2);
    CompleteSome(8, 2);
    auto sampler = SampleGroups({.batch = 1, .views = {{.column = "action"}}, .prefetch = 1});
    EXPECT_OK(sampler->Next());
    return sampler;
  }
  static std::vector<TrajectoryId> IdsOf(const Batch& batch) {
    const auto ids = batch.trajectory_ids();
    return {ids.begin(), ids.end()};
  }
  std::string Dump() { return testing::DumpIndex(*testing::CoreOf(*database_)); }
  /// What a crash leaves comes back as it was.
  void ExpectReplayed() {
    ASSERT_OK(database_->Sync());
    const std::string before = Dump();
    const std::string groups_before = before.substr(before.find(" priority table"));
    auto copy = testing::CopyOpenStore(dir_->path());
    writer_.reset();
    Close();
    dir_ = std::move(copy);
    Open();
    OpenAgain("steps");
    const std::string after = Dump();
    EXPECT_EQ(after.substr(after.find(" priority table")), groups_before);
  }
  /// Those that were taken are what the log makes; the store is closed.
  void ExpectImages(const testing::StoreImages& images) {
    writer_.reset();
    Close();
    images.Check(dir_->path());
  }
};

// They were removed with it, and nobody had seen them.
TEST_F(TableDrawGroupsRegroupTest, WhoJoinedAfterTheDrawWaitsForOthers) {
  Create(TableOf(OnceSpec()));
  auto sampler = DrawAhead();
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 2, .taking = 1}));
  const TrajectoryId late = Complete(8);
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 3, .taking = 1}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  EXPECT_EQ(batch.size(), 2);
  EXPECT_OK(table_->Find(late));
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 1, .members = 1}));
  sampler.reset();
  ExpectReplayed();
  const TrajectoryId other = Complete(8);
  sampler = SampleGroups({.batch = 1, .views = {{.column = "action"}}});
  ASSERT_OK_AND_ASSIGN(const Batch next, sampler->Next());
  EXPECT_EQ(IdsOf(next), (std::vector{late, other}));
  EXPECT_EQ(table_->Count(), 0u);
}

TEST_F(TableDrawGroupsRegroupTest, EnoughOfThemAreTheNextGroupAtOnce) {
  PriorityTableSpec spec = OnceSpec();
  spec.limiter = {.kind = LimiterKind::kQueue, .capacity = 2};
  Create(TableOf(spec), {.admission_timeout_ms = 0});
  auto sampler = DrawAhead();
  // The group is complete by them, and a key of its own has the other place of the queue.
  const std::vector<TrajectoryId> late = CompleteSome(8, 2);
  CompleteSome(9, 2);
  EXPECT_EQ(Groups(), (GroupStats{.ready = 2, .members = 6, .taking = 1, .complete = 1}));
  ASSERT_OK(sampler->Next());  // Of key 8; that of key 9 is drawn ahead.
  EXPECT_EQ(Groups(), (GroupStats{.ready = 2, .members = 4, .taking = 2}));
  EXPECT_NE(groups()->WhyBlocked().inserts.reason, "") << "it has the place of the one before";
  sampler.reset();
  ExpectReplayed();
  sampler = SampleGroups({.batch = 1, .views = {{.column = "action"}}});
  ASSERT_OK_AND_ASSIGN(Batch next, sampler->Next());
  EXPECT_EQ(next.group_keys()[0], 9);
  ASSERT_OK_AND_ASSIGN(next, sampler->Next());
  EXPECT_EQ(IdsOf(next), late);
  EXPECT_EQ(table_->Count(), 0u);
}

TEST_F(TableDrawGroupsRegroupTest, TheyJoinTheOneThatHasBegunMeanwhile) {
  Create(TableOf(OnceSpec()));
  auto sampler = DrawAhead();
  const std::vector<TrajectoryId> late = CompleteSome(8, 2);
  const TrajectoryId first = Complete(8);
  EXPECT_EQ(Groups().waiting, 1u);
  ASSERT_OK(sampler->Next());
  ASSERT_OK_AND_ASSIGN(const Batch next, sampler->Next());
  EXPECT_EQ(IdsOf(next), (std::vector{first, late[0], late[1]}));
  sampler.reset();
  ExpectReplayed();
}

// Nor is an item left behind where nothing is removed.
TEST_F(TableDrawGroupsRegroupTest, ExhaustedOnesKeepWhomTheyHaveShown) {
  PriorityTableSpec spec = OnceSpec();
  spec.remove_when_exhausted = false;
  spec.selector = SelectorKind::kMaxHeap;
  spec.initial = InitialPriority::kColumn;
  spec.initial_priority_column = "score";
  Create(TableOf(spec));
  auto sampler = DrawAhead();
  const std::vector<TrajectoryId> late = CompleteSome(8, 2);
  const float score = 3;
  const ColumnValue column[] = {{"score", TensorView::Scalar(score)}};
  ASSERT_OK(table_->SetColumns(late[1], column));
  ASSERT_OK(sampler->Next());
  EXPECT_EQ(Groups(), (GroupStats{.ready = 3, .members = 6, .taking = 1, .complete = 1}));
  const RowId row{late[0], 0};
  EXPECT_EQ(*groups()->Priority(row), score) << "of the one that made it ready";
  sampler.reset();
  ExpectReplayed();
  EXPECT_EQ(groups()->DrawableCount(), 1u);
  // An exhausted one takes nobody.
  CompleteSome(7, 1);
  EXPECT_EQ(Groups().waiting, 1u);
}

TEST_F(TableDrawGroupsRegroupTest, WhatAnEpochHasCoveredAndRemovesTakesNobodyAlong) {
  PriorityTableSpec spec = OnceSpec();
  spec.selector = SelectorKind::kEpoch;
  spec.max_times_sampled = 0;
  spec.remove_when_exhausted = {};
  spec.epoch = {.passes = 1, .remove_covered = true};
  Create(TableOf(spec));
  CompleteSome(7, 2);
  CompleteSome(8, 2);
  ASSERT_OK(groups()->BeginEpoch());
  auto sampler = SampleGroups({.batch = 1, .views = {{.column = "action"}}, .prefetch = 2});
  ASSERT_OK(sampler->Next());
  const std::vector<TrajectoryId> late = {Complete(7), Complete(8)};
  ASSERT_OK(sampler->Next());
  for (const TrajectoryId id : late) EXPECT_OK(table_->Find(id));
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 2, .members = 2}));
  sampler.reset();
  ExpectReplayed();
}

// A batch that was drawn before another one, and handed over behind it, forgot what that showed.
TEST_F(TableDrawGroupsRegroupTest, WhoWasShownByAnyBatchHasBeenSeen) {
  PriorityTableSpec spec = OnceSpec();
  spec.max_times_sampled = 3;
  Create(TableOf(spec));
  testing::StoreImages images;
  CompleteSome(8, 2);
  auto early = SampleGroups({.batch = 1, .views = {{.column = "action"}}, .prefetch = 1});
  ASSERT_OK(early->Next());  // It has drawn the two again.
  Complete(8);
  auto late = SampleGroups({.batch = 1, .views = {{.column = "action"}}});
  ASSERT_OK_AND_ASSIGN(const Batch all, late->Next());
  EXPECT_EQ(all.size(), 3);
  images.Take(*database_);
  ASSERT_OK_AND_ASSIGN(const Batch two, early->Next());
  EXPECT_EQ(two.size(), 2);
  EXPECT_EQ(table_->Count(), 0u);
  early.reset();
  late.reset();
  ExpectReplayed();
  ExpectImages(images);
}

// They were removed, and nobody had seen them.
TEST_F(TableDrawGroupsRegroupTest, ALowerMaximumEndsGroupsAsHandOversDo) {
  PriorityTableSpec spec = OnceSpec();
  spec.max_times_sampled = 3;
  Create(TableOf(spec));
  testing::StoreImages images;
  CompleteSome(7, 2);
  auto sampler = SampleGroups({.batch = 1, .views = {{.column = "action"}}});
  ASSERT_OK(sampler->Next());
  const TrajectoryId late = Complete(7);
  images.Take(*database_);
  ASSERT_OK(groups()->Configure({.max_times_sampled = 1, .remove_when_exhausted = true}));
  EXPECT_OK(table_->Find(late));
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 1, .members = 1}));
  sampler.reset();
  ExpectReplayed();
  ExpectImages(images);
}

// They came back as groups that had not been sampled.
TEST_F(TableDrawGroupsRegroupTest, WhereOnlyCompleteOnesAreReadyALowerMaximumEndsThemAlone) {
  PriorityTableSpec spec = OnceSpec();
  spec.group.at_least = spec.group.count = 2;
  spec.max_times_sampled = 3;
  Create(TableOf(spec));
  CompleteSome(7, 2);
  auto sampler = SampleGroups({.batch = 1, .views = {{.column = "action"}}});
  ASSERT_OK(sampler->Next());
  ASSERT_OK(groups()->Configure({.max_times_sampled = 1, .remove_when_exhausted = true}));
  EXPECT_EQ(table_->Count(), 0u);
  sampler.reset();
  ExpectReplayed();
}

// Of a pass that was given up they left with the others, of a cut that they were not in.
TEST_F(TableDrawGroupsRegroupTest, NobodyJoinsWhatIsInTheCutOfAnEpoch) {
  PriorityTableSpec spec = OnceSpec();
  spec.selector = SelectorKind::kEpoch;
  spec.max_times_sampled = 0;
  spec.remove_when_exhausted = {};
  spec.epoch = {.passes = 1, .remove_covered = true};
  Create(TableOf(spec));
  testing::StoreImages images;
  for (const int32_t prompt : {7, 8, 9}) CompleteSome(prompt, 2);
  CompleteSome(5, 1);
  ASSERT_OK(groups()->BeginEpoch());
  images.Take(*database_);
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 1, .ready = 3, .members = 7}));
  auto sampler = SampleGroups({.batch = 2, .drop_last = true, .views = {{.column = "action"}}});
  ASSERT_OK(sampler->Next());
  std::vector<TrajectoryId> late;
  for (const int32_t prompt : {5, 7, 8, 9}) late.push_back(Complete(prompt));
  EXPECT_STATUS(kOutOfRange, sampler->Next(), "exhausted");
  for (const TrajectoryId id : late) EXPECT_OK(table_->Find(id));
  EXPECT_EQ(table_->Count(), 5u);
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 3, .ready = 1, .members = 5, .taking = 1}));
  sampler.reset();
  ExpectReplayed();
  ExpectImages(images);
}

TEST_F(TableDrawGroupsRegroupTest, AnImageTakenMeanwhileHasThemWhereTheyWere) {
  Create(TableOf(OnceSpec()));
  testing::StoreImages images;
  auto sampler = DrawAhead();
  CompleteSome(8, 3);
  images.Take(*database_);
  ASSERT_OK(sampler->Next());
  images.Take(*database_);
  CompleteSome(8, 2);
  sampler.reset();
  ExpectImages(images);
}

// A log of before says which numbers groups had, and who had left with them.
TEST_F(TableDrawGroupsRegroupTest, AHandOverOfBeforeLeavesThemWhereTheyAre) {
  PriorityTableSpec spec = OnceSpec();
  spec.remove_when_exhausted = false;
  Create(TableOf(spec));
  CompleteSome(8, 3);
  const auto core = testing::CoreOf(*database_);
  const auto table = core->TableById(table_->id());
  engine::FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    engine::ApplyLock lock(table->state.get(), end);
    table->state->Apply(*change.operation()->change_as_HandOver(), 0);
  });
  std::vector<fb::Sampled> sampled;
  fb::Handed item;
  {
    MutexLock lock(&table->state->mutex);
    const engine::TableState& state = *table->state;
    for (const Slot slot : {Slot{0}, Slot{1}}) {
      sampled.emplace_back(slot, state.trajectories().record(slot).generation, 1);
    }
    item = fb::Handed(0, state.priority(0).groups()->GenerationOf(0));
  }
  const auto sampled_offset = change.body.CreateVectorOfStructs(sampled);
  const auto items_offset = change.body.CreateVectorOfStructs(&item, 1);
  change.FinishBody({.table = table_->id()}, fb::Change::HandOver,
                    fb::CreateHandOver(change.body, 0, sampled_offset, items_offset).Union());
  ASSERT_OK_AND_ASSIGN(const Lsn end, core->Commit(table.get(), &change, {}));
  ASSERT_OK(core->Acknowledge(end, Ack::kLog));
  EXPECT_EQ(groups()->DrawableCount(), 0u);
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 3, .taking = 1}));
  ExpectReplayed();
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 3, .taking = 1}));
}

}  // namespace
}  // namespace geardb
