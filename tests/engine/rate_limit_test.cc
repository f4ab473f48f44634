// Limits of a priority table, seen from outside: who waits, what the texts say, what is given back.

#include "engine/rate_limit.h"

#include "tests/engine/rate_limit_fixture.h"

namespace geardb {
namespace {

using testing::RateLimitFixture;
using testing::Rows;
using testing::StepSpec;

class RateLimitTest : public RateLimitFixture {};

TEST_F(RateLimitTest, AQueueGivesEachItemOnceAndRemovesIt) {
  CreateLimited(Queue(4));
  for (int64_t k = 0; k < 4; ++k) ASSERT_OK(TryAppend(k, 1));
  EXPECT_STATUS(kDeadlineExceeded, TryAppend(4, 1).status(),
                "table 'steps': the append was never admitted: priority table 'limited' waits: "
                "queue of capacity 4: 4 items wait; 1 more sample is needed to insert 1");
  auto sampler = Sample(2);
  auto batch = NextNow(sampler.get());
  ASSERT_OK(batch);
  EXPECT_EQ(ItemsOf(*batch), (std::vector<Item>{{1, 0}, {2, 0}}));
  EXPECT_EQ(table_->Stats().trajectories, 2u);
  EXPECT_EQ(priority("limited")->Count(), 2u);
  // What was refused takes no effect later.
  const auto appended = TryAppend(5, 1);
  ASSERT_OK(appended);
  EXPECT_EQ(Numbers(appended->id), std::vector<int32_t>{5});
  EXPECT_EQ(table_->Stats().trajectories, 3u);
  ASSERT_OK(NextNow(sampler.get()));
  EXPECT_STATUS(kDeadlineExceeded, NextNow(sampler.get()).status(),
                "priority table 'limited' of table 'steps' waits: queue of capacity 4: 1 items "
                "wait; 1 more insert is needed to sample 2");
  EXPECT_EQ(priority("limited")->Stats().draws, 2u);
}

TEST_F(RateLimitTest, ABatchThatNeverFitsIsRefusedAtOnce) {
  CreateLimited(Queue(2));
  EXPECT_STATUS(kInvalidArgument, TryAppend(0, 3).status(),
                "priority table 'limited' never admits the call: queue of capacity 2");
  ASSERT_OK(TryAppend(0, 2));
  EXPECT_STATUS(kInvalidArgument, Sample(3)->Next(Deadline::Infinite()).status(),
                "3 samples at once are never allowed");
}

TEST_F(RateLimitTest, SamplesWaitForTheMinimumAndUseUpNoDrawNumber) {
  CreateLimited(Limited({.min_size = 3}, SelectorKind::kUniform));
  ASSERT_OK(TryAppend(0, 2));
  auto sampler = Sample(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_STATUS(kDeadlineExceeded, NextNow(sampler.get()).status(),
                  "waits: min size 3: 2 items; 1 more item is needed to sample 1");
  }
  EXPECT_EQ(priority("limited")->WhyBlocked().samples.reason,
            "min size 3: 2 items; 1 more item is needed to sample 1");
  ASSERT_OK(TryAppend(2, 1));
  const auto batch = NextNow(sampler.get());
  ASSERT_OK(batch);
  EXPECT_EQ(batch->draw_number(), 0u);
  EXPECT_EQ(priority("limited")->WhyBlocked().samples.reason, "");
}

TEST_F(RateLimitTest, ARatioHoldsBothSides) {
  CreateLimited(Limited({.kind = LimiterKind::kRatio, .samples_per_insert = 2, .error_buffer = 2},
                        SelectorKind::kUniform));
  auto sampler = Sample(1);
  int64_t inserts = 0, samples = 0;
  for (int round = 0; round < 50; ++round) {
    while (TryAppend(inserts, 1).ok()) ++inserts;
    EXPECT_LE(inserts * 2 - samples, 2 + 2);
    while (NextNow(sampler.get()).ok()) ++samples;
    EXPECT_GE(inserts * 2 - samples, 2 - 2);
  }
  EXPECT_GT(inserts, 50);
  EXPECT_EQ(Limits().samples, static_cast<uint64_t>(samples));
  EXPECT_EQ(Limits().inserts, static_cast<uint64_t>(inserts));
}

TEST_F(RateLimitTest, ADestroyedSamplerGivesBackWhatItDrewAhead) {
  CreateLimited(Queue(6));
  ASSERT_OK(TryAppend(0, 6));
  {
    auto ahead = Sample(2, 2);
    ASSERT_EQ(ItemsOf(*NextNow(ahead.get())), (std::vector<Item>{{1, 0}, {1, 1}}));
    EXPECT_EQ(Limits().reserved, 4u);
    EXPECT_EQ(Limits().samples, 2u);
    EXPECT_EQ(priority("limited")->DrawableCount(), 0u);
    auto other = Sample(1);
    EXPECT_STATUS(kDeadlineExceeded, NextNow(other.get()).status(),
                  "4 items wait, of which 4 are reserved; 1 reserved sample less is needed");
    // What is reserved keeps its place.
    EXPECT_OK(TryAppend(6, 2));
    EXPECT_STATUS(kDeadlineExceeded, TryAppend(8, 1).status(), "never admitted");
  }
  EXPECT_EQ(Limits().reserved, 0u);
  EXPECT_EQ(priority("limited")->DrawableCount(), 6u);
  auto sampler = Sample(2);
  EXPECT_EQ(ItemsOf(*NextNow(sampler.get())), (std::vector<Item>{{1, 2}, {1, 3}}));
}

TEST_F(RateLimitTest, AClosedDatabaseHoldsNothingBack) {
  CreateLimited(Queue(6));
  ASSERT_OK(TryAppend(0, 6));
  auto sampler = Sample(1, 2);
  ASSERT_OK(NextNow(sampler.get()));
  PriorityTable* const limited = priority("limited");
  EXPECT_EQ(limited->Stats().limiter.reserved, 2u);
  ASSERT_OK(database_->Close());
  EXPECT_STATUS(kCancelled, NextNow(sampler.get()).status(), "is closed");
  EXPECT_EQ(limited->Stats().limiter.reserved, 0u);
  EXPECT_EQ(limited->DrawableCount(), 5u);
}

TEST_F(RateLimitTest, ABatchThatNoRecordCanNameIsRefused) {
  CreateLimited(Limited({}, SelectorKind::kUniform, 1));
  ASSERT_OK(TryAppend(0, 1));
  EXPECT_STATUS(kInvalidArgument, NextNow(Sample(20'000).get()).status(),
                "a batch of 20000 does not fit a record of this log; at most ");
  EXPECT_OK(NextNow(Sample(1).get()));
}

TEST_F(RateLimitTest, AnObserverTouchesNothing) {
  CreateLimited(Queue(4));
  ASSERT_OK(TryAppend(0, 3));
  const LimiterStats before = Limits();
  auto observer = Sample(3, 0, true);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(NextNow(observer.get())->size(), 3);
  EXPECT_EQ(Limits().samples, before.samples);
  EXPECT_EQ(Limits().reserved, 0u);
  EXPECT_EQ(priority("limited")->DrawableCount(), 3u);
}

TEST_F(RateLimitTest, ARemovedItemGivesItsPlaceBack) {
  CreateLimited(Queue(2));
  const auto first = TryAppend(0, 1);
  ASSERT_OK(first);
  ASSERT_OK(TryAppend(1, 1));
  ASSERT_FALSE(TryAppend(2, 1).ok());
  const TrajectoryId ids[] = {first->id};
  ASSERT_OK(table_->Remove(ids));
  EXPECT_EQ(Limits().deleted_unsampled, 1u);
  ASSERT_OK(TryAppend(2, 1));
  ASSERT_FALSE(TryAppend(3, 1).ok());
}

TEST_F(RateLimitTest, WhatComesByACutIsNeverRefused) {
  PriorityTableSpec spec = Queue(1);
  spec.item = ItemKind::kTrajectory;
  CreateLimited(spec);
  ASSERT_OK(TryAppend(0, 1));
  ASSERT_OK(TryAppend(1, 1, End::kGo));  // No item yet.
  EXPECT_STATUS(kDeadlineExceeded, TryAppend(2, 1).status(), "never admitted");
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(Limits().inserts, 2u);
  auto sampler = Sample(2);
  EXPECT_STATUS(kInvalidArgument, Sample(3)->Next(Deadline::Now()).status(), "never allowed");
  ASSERT_OK(NextNow(sampler.get()));
  EXPECT_EQ(table_->Stats().trajectories, 0u);
}

TEST_F(RateLimitTest, WhatWasTakenWhileItWasOpenLeavesWithItsEnd) {
  PriorityTableSpec spec = Queue(16);
  spec.window.stride = 2;  // Rows 1 and 3 make no item.
  CreateLimited(spec);
  auto sampler = Sample(1);
  const auto append = [&](int64_t first, int64_t count) {
    Append(first, count);
    while (NextNow(sampler.get()).ok()) {
    }
    EXPECT_EQ(table_->Count(), 1u) << "it is open";
  };
  append(0, 3);
  Append(3, 1, End::kTerminated);
  EXPECT_EQ(table_->Count(), 0u);
  append(10, 1);
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(table_->Count(), 0u);
  append(20, 2);
  writer_.reset();
  ASSERT_OK(table_->CloseOrphans(0));
  EXPECT_EQ(table_->Count(), 0u);
  ASSERT_OK_AND_ASSIGN(const Removals removals, table_->ReadRemovals(0));
  ASSERT_EQ(removals.removals.size(), 3u);
  for (const Removal& removal : removals.removals) {
    EXPECT_EQ(removal.reason, RemovalReason::kExhausted);
  }
}

TEST_F(RateLimitTest, WhatATrimOrOtherLimitsLeaveWithoutAnythingToDrawLeaves) {
  CreateLimited(
      Limited({.kind = LimiterKind::kStack, .capacity = 16}, SelectorKind::kLifo, /*max_times=*/0));
  const auto appended = TryAppend(0, 4);
  ASSERT_OK(appended);
  auto sampler = Sample(2);
  ASSERT_OK(NextNow(sampler.get()));  // Rows 3 and 2.
  ASSERT_OK(table_->Truncate(appended->id, 1));
  EXPECT_EQ(table_->Count(), 1u);
  ASSERT_OK(table_->Truncate(appended->id, 2));
  EXPECT_EQ(table_->Count(), 0u);

  ASSERT_OK(priority("limited")->Configure({.max_times_sampled = 2}));
  ASSERT_OK(TryAppend(10, 2));
  ASSERT_OK(NextNow(sampler.get()));
  ASSERT_OK(priority("limited")->Configure({.max_times_sampled = 1}));
  EXPECT_STATUS(kDeadlineExceeded, NextNow(sampler.get()).status(),
                "priority table 'limited' of table 'steps' has nothing to draw: of 2 items 2 are "
                "exhausted");
  EXPECT_EQ(table_->Count(), 1u);
  ASSERT_OK(
      priority("limited")->Configure({.max_times_sampled = 1, .remove_when_exhausted = true}));
  EXPECT_EQ(table_->Count(), 0u);
}

TEST_F(RateLimitTest, ARowThatNoItemNeedsHoldsNoTrajectory) {
  TableSpec spec = StepSpec();
  spec.groups = {{.name = "late", .late = true}};
  spec.columns.push_back({.name = "target", .group = "late"});
  PriorityTableSpec once = Limited({}, SelectorKind::kFifo, /*max_times=*/1);
  once.window.extent.after = 1;
  once.remove_when_exhausted = true;
  once.required = {"late"};
  spec.priority_tables = {once};
  Create(spec);
  const auto appended = TryAppend(0, 3, End::kCut);  // Row 2 plays the final row.
  ASSERT_OK(appended);
  const float target = 1;
  for (int64_t row = 0; row < 2; ++row) {
    const ColumnValue value{"target", TensorView::Of(std::span(&target, 1))};
    const RowSpan span{appended->id, row, 1};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
    EXPECT_EQ(table_->Count(), 1u) << "row " << row;
  }
  auto sampler = Sample(1);
  ASSERT_OK(NextNow(sampler.get()));
  EXPECT_EQ(table_->Count(), 1u);
  ASSERT_OK(NextNow(sampler.get()));
  EXPECT_EQ(table_->Count(), 0u);
}

TEST_F(RateLimitTest, DeletedItemsOfRowsThatAreGoneCountNoMore) {
  PriorityTableSpec once = Limited({}, SelectorKind::kFifo, /*max_times=*/1);
  once.window.extent.after = 1;
  once.remove_when_exhausted = true;
  CreateLimited(once);
  const auto appended = TryAppend(0, 3, End::kCut);  // Row 2 plays the final row.
  ASSERT_OK(appended);
  const RowId row{appended->id, 0};
  ASSERT_OK(priority("limited")->Delete({&row, 1}));
  ASSERT_OK(table_->Truncate(appended->id, 2));
  EXPECT_EQ(table_->Count(), 1u) << "it has no item, and none was exhausted";
}

TEST_F(RateLimitTest, WhatIsThereOrBecomesReadyIsNeverRefused) {
  Create(StepSpec(), {.admission_timeout_ms = 0});
  for (int64_t k = 0; k < 3; ++k) ASSERT_OK(TryAppend(k, 1));
  ASSERT_OK(table_->CreatePriorityTable(Queue(1)));
  EXPECT_EQ(Limits().inserts, 3u);
  EXPECT_STATUS(kDeadlineExceeded, TryAppend(3, 1).status(), "3 more samples are needed");
  auto sampler = Sample(1);
  for (int i = 0; i < 3; ++i) ASSERT_OK(NextNow(sampler.get()));
  ASSERT_OK(TryAppend(3, 1));

  sampler.reset();
  OpenEmpty();
  PriorityTableSpec spec = Queue(1);
  spec.required = {"score"};
  CreateLimited(spec);
  for (int64_t k = 0; k < 3; ++k) ASSERT_OK(TryAppend(k, 1));
  const float score = 1;
  for (TrajectoryId id = 1; id <= 3; ++id) {
    const ColumnValue value = {"score", TensorView::Scalar(score)};
    ASSERT_OK(table_->SetColumns(id, {&value, 1}));
  }
  EXPECT_EQ(Limits().inserts, 3u);
  ASSERT_OK(TryAppend(3, 1));  // No item yet.
  sampler = Sample(1);
  for (int i = 0; i < 3; ++i) ASSERT_OK(NextNow(sampler.get()));
  // The one without a score may still become an item.
  EXPECT_EQ(table_->Stats().trajectories, 1u);
}

TEST_F(RateLimitTest, RowsThatWaitedForWhatAnAppendSetsAreAdmittedWithIt) {
  const float score = 1;
  const ColumnValue column{"score", TensorView::Scalar(score)};
  for (const bool stream : {false, true}) {
    OpenEmpty();
    PriorityTableSpec priority_spec = Queue(8);
    priority_spec.required = {"score"};
    TableSpec spec = StepSpec();
    spec.stream = stream;
    spec.priority_tables = {priority_spec};
    Create(spec, {.admission_timeout_ms = 0});
    // Of a stream in an episode that has ended, too.
    ASSERT_OK(TryAppend(0, 5, stream ? End::kTerminated : End::kGo));
    ASSERT_OK(TryAppend(5, 3, End::kGo));
    EXPECT_EQ(Limits().inserts, 0u);
    const Rows rows(8, 1);
    const AppendOptions options{.end = End::kTerminated, .trajectory = {&column, 1}};
    EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(rows.many(), options).status(),
                  "never admits");
    EXPECT_EQ(Limits().inserts, 0u);
    ASSERT_OK(table_->SetColumns(1, {&column, 1}));  // That waits for nothing.
    EXPECT_EQ(Limits().inserts, 8u);
    EXPECT_STATUS(kDeadlineExceeded, writer_->AppendSteps(rows.many(), options).status(),
                  "never admitted");
  }
}

TEST_F(RateLimitTest, FilledRowsThatAnEndMakesReadyAreAdmittedWithIt) {
  PriorityTableSpec priority_spec = Queue(2);
  priority_spec.window.extent = {.before = 0, .length = 2, .after = 1};
  priority_spec.required = {"late"};
  TableSpec spec = StepSpec();
  spec.groups = {{.name = "late", .late = true}};
  spec.columns.push_back({.name = "target", .group = "late"});
  spec.priority_tables = {priority_spec};
  Create(spec, {.admission_timeout_ms = 0});
  ASSERT_OK(TryAppend(0, 3, End::kGo));
  const std::vector<float> values(3, 1);
  const ColumnValue value{"target", TensorView::Of(std::span<const float>(values))};
  const RowSpan span{1, 0, 3};
  ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  EXPECT_EQ(Limits().inserts, 1u);
  // The last row shows what follows, and is waited for no more.
  EXPECT_STATUS(kDeadlineExceeded, TryAppend(3, 1, End::kTruncated).status(), "never admitted");
  EXPECT_EQ(Limits().inserts, 1u);
  auto sampler = Sample(1);
  ASSERT_OK(NextNow(sampler.get()));
  ASSERT_OK(TryAppend(3, 1, End::kTruncated));
  EXPECT_EQ(Limits().inserts, 3u);
}

TEST_F(RateLimitTest, ALargeAppendIsAdmittedOnce) {
  CreateLimited(Queue(20'000));
  ASSERT_OK(TryAppend(0, 16'000));  // In parts.
  EXPECT_STATUS(kDeadlineExceeded, TryAppend(0, 4'001).status(), "1 more sample is needed");
  ASSERT_OK(TryAppend(0, 4'000));
  EXPECT_EQ(Limits().inserts, 20'000u);
}

TEST_F(RateLimitTest, EachItemIsSampledAsOftenAsItMay) {
  for (const SelectorKind kind :
       {SelectorKind::kUniform, SelectorKind::kPrioritized, SelectorKind::kWithoutReplacement,
        SelectorKind::kFifo, SelectorKind::kLifo, SelectorKind::kMinHeap, SelectorKind::kMaxHeap}) {
    OpenEmpty();
    CreateLimited(Limited({}, kind, 3));
    ASSERT_OK(TryAppend(0, 5));
    std::map<Item, int> times;
    auto sampler = Sample(1);
    for (int row = 0; row < 15; ++row) {
      auto batch = NextNow(sampler.get());
      ASSERT_OK(batch);
      ++times[ItemsOf(*batch)[0]];
      if (row == 7) {  // The counts are in the log.
        sampler.reset();
        Reopen();
        OpenAgain("steps");
        sampler = Sample(1);
      }
    }
    EXPECT_EQ(times.size(), 5u);
    for (const auto& [item, count] : times) EXPECT_EQ(count, 3);
    EXPECT_STATUS(kDeadlineExceeded, NextNow(sampler.get()).status(), "has nothing to draw");
    EXPECT_EQ(Limits().exhausted, 5u);
    EXPECT_EQ(priority("limited")->Count(), 5u);  // They are kept: nobody said to remove them.
    EXPECT_EQ(priority("limited")->WhyBlocked().samples.reason,
              "no item can be drawn: of 5 items 5 are exhausted");
  }
}

TEST_F(RateLimitTest, ABatchDrawsAgainWhatItHasDrawnTooOften) {
  PriorityTableSpec spec = Limited({}, SelectorKind::kPrioritized, 2);
  CreateLimited(spec);
  ASSERT_OK(TryAppend(0, 8));
  // Nearly all the weight is at one item.
  const RowId heavy[] = {{1, 0}};
  const float large[] = {1e6f};
  ASSERT_OK(priority("limited")->Set(heavy, large));
  auto sampler = Sample(8);
  std::map<Item, int> times;
  for (const Item& item : ItemsOf(*NextNow(sampler.get()))) ++times[item];
  EXPECT_EQ((times[{1, 0}]), 2);
  for (const auto& [item, count] : times) EXPECT_LE(count, 2);
  // Fewer than eight can be drawn: two are gone at least.
  EXPECT_STATUS(kDeadlineExceeded, NextNow(sampler.get()).status(),
                "items that can be drawn; the batch takes 8 distinct ones: of 8 items");
}

TEST_F(RateLimitTest, ACopiedDirectoryGoesOnWhereHandOversEnded) {
  CreateLimited(Queue(8));
  ASSERT_OK(TryAppend(0, 8));
  auto sampler = Sample(2, 2);
  ASSERT_OK(NextNow(sampler.get()));  // Two more batches are drawn ahead.
  const auto copy = testing::CopyOpenStore(dir_->path());
  sampler.reset();
  Close();
  dir_ = std::make_unique<testing::TempDir>();
  auto opened = Database::Open(copy->path(), options_);
  ASSERT_OK(opened);
  database_ = std::move(*opened);
  OpenAgain("steps");
  EXPECT_EQ(Limits().reserved, 0u);
  EXPECT_EQ(Limits().samples, 2u);
  sampler = Sample(6);
  const auto batch = NextNow(sampler.get());
  ASSERT_OK(batch);
  EXPECT_EQ(batch->draw_number(), 1u);
  EXPECT_EQ(ItemsOf(*batch)[0], Item(1, 2));
  sampler.reset();
  Close();
}

TEST_F(RateLimitTest, OtherLimitsTakeEffectAtOnceAndStay) {
  CreateLimited(Queue(2));
  ASSERT_OK(TryAppend(0, 2));
  ASSERT_FALSE(TryAppend(2, 1).ok());
  EXPECT_STATUS(kInvalidArgument,
                priority("limited")->Configure({.limiter = {.kind = LimiterKind::kQueue}}),
                "priority table 'limited'");
  EXPECT_STATUS(
      kInvalidArgument,
      priority("limited")->Configure({.limiter = {.kind = LimiterKind::kStack, .capacity = 2}}),
      "without a lifo selector");
  ASSERT_OK(
      priority("limited")->Configure({.limiter = {.kind = LimiterKind::kQueue, .capacity = 3}}));
  ASSERT_OK(TryAppend(2, 1));
  ASSERT_FALSE(TryAppend(3, 1).ok());
  Reopen();
  TableSpec spec = StepSpec();
  spec.priority_tables = {Queue(2)};
  EXPECT_STATUS(kFailedPrecondition, database_->OpenOrCreateTable(spec).status(),
                "priority table 'limited' is stored with limits queue of capacity 3");
  spec.priority_tables = {Queue(3)};
  ASSERT_OK(database_->OpenOrCreateTable(spec));
  OpenAgain("steps", {.admission_timeout_ms = 0});
  ASSERT_FALSE(TryAppend(3, 1).ok());
  // Every item twice, from 0 on.
  ASSERT_OK(priority("limited")->Configure({.max_times_sampled = 2}));
  auto sampler = Sample(3);
  for (int i = 0; i < 2; ++i) ASSERT_OK(NextNow(sampler.get()));
  EXPECT_FALSE(NextNow(sampler.get()).ok());
  ASSERT_OK(priority("limited")->Configure({}));
  EXPECT_OK(NextNow(sampler.get()));
}

TEST_F(RateLimitTest, LimitsThatCannotBeAreRefused) {
  const auto refused = [&](const PriorityTableSpec& priority, std::string_view why) {
    TableSpec spec = StepSpec();
    spec.priority_tables = {priority};
    EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec).status(), std::string(why));
  };
  refused(Limited({.min_size = 0}, SelectorKind::kFifo), "'limited': min_size is 0");
  refused(Queue(0), "the capacity of a queue is 0");
  refused(Limited({.kind = LimiterKind::kRatio}, SelectorKind::kFifo), "error_buffer is 0");
  refused(Limited({.kind = static_cast<LimiterKind>(9)}, SelectorKind::kFifo), "unknown kind 9");
  refused(Limited({}, SelectorKind::kFifo, kMaxTimesSampledMax + 1), "max_times_sampled 65535");
  refused(Limited({.kind = LimiterKind::kQueue, .capacity = 1}, SelectorKind::kFifo, 2),
          "an item of a queue or stack is sampled once");
  refused(Limited({.kind = LimiterKind::kQueue, .capacity = 1}, SelectorKind::kLifo),
          "that is what makes a stack");
}

}  // namespace
}  // namespace geardb
