// PriorityTable::Delete: what leaves one priority table stays away, and everything else stays.
//
// The reference is a second priority table of the same rule from which nothing is deleted: the
// items of the first are those of the second without what was deleted.
#include "engine/internal/delete_items.h"

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "tests/engine/internal/random_window.h"
#include "tests/engine/rate_limit_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

using Item = std::pair<TrajectoryId, int64_t>;

struct Handle {
  ItemHandle handle;
  Item item;
};

class DeleteItemsTest : public testing::RateLimitFixture {
 protected:
  uint64_t Roll(uint64_t below) { return random_() % below; }

  // ---- Random programs.

  PriorityTableSpec RandomRule(bool stream) {
    PriorityTableSpec spec = WindowSpec("kept");
    if (!stream && Roll(4) == 0) spec.item = ItemKind::kTrajectory;
    spec.window = testing::RandomWindow(stream, [this](uint64_t below) { return Roll(below); });
    constexpr SelectorKind kSelectors[] = {SelectorKind::kUniform, SelectorKind::kPrioritized,
                                           SelectorKind::kFifo, SelectorKind::kMaxHeap};
    spec.selector = kSelectors[Roll(4)];
    if (Roll(3) == 0) spec.required = {"late"};
    if (Roll(4) == 0) spec.required.push_back("version");
    return spec;
  }

  void CreateTwins() {
    TableSpec spec = StepSpec(/*final_row=*/Roll(2) == 0);
    spec.stream = Roll(3) == 0;
    spec.groups = {{.name = "late", .late = true}};
    spec.columns.push_back({.name = "target", .group = "late"});
    PriorityTableSpec kept = RandomRule(spec.stream);
    PriorityTableSpec thinned = kept;
    thinned.name = "thinned";
    if (Roll(3) == 0) thinned.max_times_sampled = 1 + static_cast<uint32_t>(Roll(2));
    spec.priority_tables = {kept, thinned};
    final_row_ = spec.final_row;
    trajectories_ = kept.item == ItemKind::kTrajectory;
    Create(spec, {.lanes = 2});
  }

  std::set<Item> ItemsOf(const char* name) {
    std::set<Item> items;
    for (const RowId& row : priority(name)->Items()) {
      items.emplace(row.id, trajectories_ ? 0 : row.row);
    }
    return items;
  }

  void Compare() {
    std::set<Item> expected = ItemsOf("kept");
    std::erase_if(expected, [&](const Item& item) { return deleted_.contains(item); });
    ASSERT_EQ(ItemsOf("thinned"), expected);
    const PriorityTableStats stats = priority("thinned")->Stats();
    EXPECT_EQ(stats.items, expected.size());
    EXPECT_EQ(stats.limiter.inserts - stats.limiter.deletes, expected.size());
  }

  void AppendSome() {
    constexpr End kEnds[] = {End::kGo,         End::kGo,        End::kGo,
                             End::kTerminated, End::kTruncated, End::kCut};
    const auto count = static_cast<int64_t>(1 + Roll(7));
    const Rows rows(0, count);
    AppendOptions options{.lane = static_cast<uint32_t>(Roll(2)), .end = kEnds[Roll(6)]};
    const bool final = options.end == End::kTerminated || options.end == End::kTruncated;
    if (final_row_ && final) options.final = rows.final_row();
    const uint32_t version = 1;
    const ColumnValue value{"version", TensorView::Scalar(version)};
    if (Roll(2) == 0) options.trajectory = {&value, 1};
    ASSERT_OK(writer_->AppendSteps(rows.many(), options));
  }

  std::vector<TrajectoryRecord> Records() { return table_->Scan({}); }

  void PatchSome() {
    const auto records = Records();
    if (records.empty()) return;
    const TrajectoryRecord& record = records[Roll(records.size())];
    ASSERT_OK_AND_ASSIGN(const int64_t filled, table_->Filled(record.id, "late"));
    const int64_t rows =
        std::min<int64_t>(record.rows_end - filled, static_cast<int64_t>(1 + Roll(8)));
    if (rows <= 0) return;
    const std::vector<float> values(static_cast<size_t>(rows), 1);
    const ColumnValue value{"target", TensorView::Of(std::span<const float>(values))};
    const RowSpan span{record.id, filled, rows};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  }

  void TrimSome() {
    const auto records = Records();
    if (records.empty()) return;
    const TrajectoryRecord& record = records[Roll(records.size())];
    const int64_t steps = record.steps_end - record.first_row;
    if (steps < 2) return;
    const int64_t by = static_cast<int64_t>(Roll(static_cast<uint64_t>(steps - 1)));
    ASSERT_OK(table_->Truncate(record.id, record.first_row + by));
  }

  void RemoveOne() {
    const auto records = Records();
    if (records.empty()) return;
    const TrajectoryRecord& record = records[Roll(records.size())];
    if (record.state == TrajectoryState::kOpen) return;
    ASSERT_OK(table_->Remove({&record.id, 1}));
  }

  void SetVersion() {
    const auto records = Records();
    if (records.empty()) return;
    const uint32_t version = 2;
    const ColumnValue value{"version", TensorView::Scalar(version)};
    ASSERT_OK(table_->SetColumns(records[Roll(records.size())].id, {&value, 1}));
  }

  /// Handles of items, some of which will be gone when they are used.
  void DrawHandles() {
    const auto drawable = static_cast<int64_t>(priority("kept")->DrawableCount());
    if (drawable == 0) return;
    const auto rows = std::min<int64_t>(drawable, static_cast<int64_t>(1 + Roll(6)));
    ASSERT_OK_AND_ASSIGN(
        auto sampler, priority("kept")->NewSampler(
                          {.batch = rows, .observer = true, .seed = Roll(1000), .timeout_ms = 0}));
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    for (size_t i = 0; i < static_cast<size_t>(batch.size()); ++i) {
      const Item item{batch.trajectory_ids()[i], trajectories_ ? 0 : batch.anchors()[i]};
      handles_.push_back({batch.handles()[i], item});
    }
  }

  void DeleteByHandle() {
    DrawHandles();
    std::vector<ItemHandle> handles;
    uint64_t applied = 0;
    std::set<Item> items = ItemsOf("thinned");
    for (uint64_t n = Roll(6); n > 0 && !handles_.empty(); --n) {
      const Handle& chosen = handles_[Roll(handles_.size())];
      handles.push_back(chosen.handle);
      applied += items.erase(chosen.item);
      deleted_.insert(chosen.item);
    }
    ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority("thinned")->Delete(handles));
    EXPECT_EQ(outcome.applied, applied);
    EXPECT_EQ(outcome.stale, handles.size() - applied);
  }

  void DeleteByRow() {
    const std::vector<RowId> items = priority("thinned")->Items();
    std::vector<RowId> rows;
    std::set<Item> there = ItemsOf("thinned");
    uint64_t applied = 0;
    for (uint64_t n = Roll(5); n > 0; --n) {
      RowId row = items.empty() || Roll(6) == 0 ? RowId{777, 0} : items[Roll(items.size())];
      const Item item{row.id, trajectories_ ? 0 : row.row};
      applied += there.erase(item);
      if (row.id != 777) deleted_.insert(item);
      rows.push_back(row);
    }
    ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority("thinned")->Delete(rows));
    EXPECT_EQ(outcome.applied, applied);
    EXPECT_EQ(outcome.stale, rows.size() - applied);
  }

  void ReopenSome() {
    std::unique_ptr<testing::TempDir> copy;
    if (Roll(2) == 0) copy = testing::CopyOpenStore(dir_->path());
    Close();
    if (copy) dir_ = std::move(copy);
    Open();
    OpenAgain("steps", {.lanes = 2});
    uint32_t lane = 0;
    for (const TrajectoryRecord& record : Records()) {
      if (record.state != TrajectoryState::kOrphaned || lane == 2) continue;
      ASSERT_OK(writer_->Resume(record.id, lane++));
    }
  }

  void Run(uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    deleted_.clear();
    handles_.clear();
    OpenEmpty();
    CreateTwins();
    for (int step = 0; step < 80 && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const uint64_t what = Roll(100);
      if (what < 40) {
        AppendSome();
      } else if (what < 55) {
        DeleteByHandle();
      } else if (what < 70) {
        DeleteByRow();
      } else if (what < 80) {
        PatchSome();
      } else if (what < 86) {
        TrimSome();
      } else if (what < 90) {
        SetVersion();
      } else if (what < 93) {
        RemoveOne();
      } else if (what < 96) {
        if (writer_->open_trajectory(0) != 0) {
          ASSERT_OK(writer_->Cut(0));
        }
      } else {
        ReopenSome();
      }
      if (!HasFatalFailure()) Compare();
    }
  }

  std::mt19937_64 random_;
  std::set<Item> deleted_;
  std::vector<Handle> handles_;
  bool final_row_ = false;
  bool trajectories_ = false;
};

TEST_F(DeleteItemsTest, WhatIsDeletedStaysAwayAndNothingElseGoes) {
  const uint64_t programs = testing::ShareOf(60);
  for (uint64_t seed = 1; seed <= programs && !HasFailure(); ++seed) Run(seed);
}

// ---- What the limiter says.

TEST_F(DeleteItemsTest, ANeverSampledItemGivesItsPlaceInAQueueBack) {
  CreateLimited(Queue(3));
  ASSERT_OK(TryAppend(0, 3));
  EXPECT_STATUS(kDeadlineExceeded, TryAppend(10, 1), "queue");
  const RowId second{1, 1};
  ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority("limited")->Delete({&second, 1}));
  EXPECT_EQ(outcome.applied, 1u);
  ASSERT_OK(TryAppend(10, 1));
  EXPECT_STATUS(kDeadlineExceeded, TryAppend(20, 1), "queue");
  EXPECT_EQ(Limits().deletes, 1u);
  EXPECT_EQ(Limits().deleted_unsampled, 1u);
  auto sampler = Sample(3);
  ASSERT_OK_AND_ASSIGN(const Batch batch, NextNow(sampler.get()));
  EXPECT_EQ(RateLimitFixture::ItemsOf(batch), (std::vector<Item>{{1, 0}, {1, 2}, {2, 0}}));
}

TEST_F(DeleteItemsTest, AnAppendThatWaitsForAPlaceIsLetIn) {
  CreateLimited(Queue(1));
  ASSERT_OK(TryAppend(0, 1));
  writer_ = std::move(*table_->NewWriter({.admission_timeout_ms = 600'000}));
  std::thread deleter([&] {
    while (priority("limited")->WhyBlocked().inserts.waiting == 0) std::this_thread::yield();
    const RowId first{1, 0};
    EXPECT_OK(priority("limited")->Delete({&first, 1}));
  });
  EXPECT_OK(TryAppend(10, 1));
  deleter.join();
}

TEST_F(DeleteItemsTest, ARowThatIsOnItsWayIsNoSampleOfTheQueue) {
  CreateLimited(Queue(4));
  ASSERT_OK(TryAppend(0, 3));
  auto sampler = Sample(2, /*prefetch=*/1);
  ASSERT_OK(NextNow(sampler.get()));  // Rows 0 and 1.
  ASSERT_OK(TryAppend(10, 1));
  sampler.reset();
  sampler = Sample(1, /*prefetch=*/2);
  ASSERT_OK(NextNow(sampler.get()));  // Row 2; row 0 of the second is drawn ahead.
  EXPECT_EQ(Limits().reserved, 1u);
  const RowId ahead{2, 0};
  ASSERT_OK(priority("limited")->Delete({&ahead, 1}));
  EXPECT_EQ(Limits().deleted_unsampled, 1u);
  // The trajectory has gone with its last item, and the batch still shows it.
  EXPECT_EQ(table_->Count(), 0u);
  ASSERT_OK_AND_ASSIGN(const Batch batch, NextNow(sampler.get()));
  EXPECT_EQ(RateLimitFixture::ItemsOf(batch), (std::vector<Item>{{2, 0}}));
  const LimiterStats before = Limits();
  EXPECT_EQ(before.samples, 3u);
  EXPECT_EQ(before.inserts, 4u);
  EXPECT_EQ(before.reserved, 0u);
  sampler.reset();
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Limits().samples, before.samples);
  EXPECT_EQ(Limits().deletes, before.deletes);
  EXPECT_EQ(Limits().deleted_unsampled, before.deleted_unsampled);
}

// ---- Trajectories that nobody can draw any more.

TEST_F(DeleteItemsTest, TheLastItemTakesItsTrajectoryWithIt) {
  TableSpec spec = StepSpec();
  PriorityTableSpec removes = WindowSpec("limited");
  removes.max_times_sampled = 1;
  removes.remove_when_exhausted = true;
  spec.priority_tables = {removes, WindowSpec("other")};
  Create(spec);
  const TrajectoryId id = AppendClosed(0, 3);
  const TrajectoryId open = Append(10, 1).id;
  auto sampler = Sample(1);
  ASSERT_OK(NextNow(sampler.get()));
  for (const TrajectoryId of : {id, open}) {
    std::vector<RowId> rows;
    for (const RowId& row : priority("limited")->Items()) {
      if (row.id == of) rows.push_back(row);
    }
    ASSERT_OK(priority("limited")->Delete(rows));
  }
  EXPECT_EQ(table_->Count(), 2u) << "the other priority table can draw both";
  const std::vector<RowId> rest = priority("other")->Items();
  EXPECT_EQ(rest.size(), 4u);
  ASSERT_OK(priority("other")->Delete({rest.data(), 2}));
  EXPECT_EQ(table_->Count(), 2u);
  ASSERT_OK(priority("other")->Delete(rest));
  EXPECT_STATUS(kNotFound, table_->Find(id), "");
  EXPECT_OK(table_->Find(open)) << "an open one may still bring items";
}

TEST_F(DeleteItemsTest, TheNextOpenRemovesWhatACrashLeft) {
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("limited")};
  Create(spec);
  AppendClosed(0, 2);
  AppendClosed(10, 2);
  const std::vector<RowId> rows = {{1, 0}, {1, 1}, {2, 0}};
  ASSERT_OK(priority("limited")->Delete(rows));
  EXPECT_EQ(table_->Count(), 2u);
  ASSERT_OK(priority("limited")->Configure({.remove_when_exhausted = true}));
  Reopen();
  OpenAgain("steps");
  EXPECT_STATUS(kNotFound, table_->Find(1), "");
  EXPECT_OK(table_->Find(2));
}

// ---- Refusals.

TEST_F(DeleteItemsTest, WhatDoesNotFitARecordDeletesNothing) {
  options_.ring_bytes = 32 << 10;
  options_.segment_bytes = 64 << 10;
  OpenEmpty();
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("limited")};
  Create(spec);
  AppendClosed(0, 100);
  const std::vector<RowId> many(1000, RowId{1, 5});
  EXPECT_STATUS(kInvalidArgument, priority("limited")->Delete(many),
                "1000 items cannot be deleted at once; at most 384 fit");
  EXPECT_EQ(priority("limited")->Count(), 100u);
  EXPECT_OK(priority("limited")->Delete({many.data(), 384}));
  EXPECT_EQ(priority("limited")->Count(), 99u);
  ASSERT_OK_AND_ASSIGN(const SetOutcome none,
                       priority("limited")->Delete(std::span<const RowId>()));
  EXPECT_EQ(none.applied + none.stale, 0u);
}

TEST_F(DeleteItemsTest, AReadOnlyDatabaseAndAForgedHandleDeleteNothing) {
  TableSpec spec = StepSpec();
  PriorityTableSpec whole = WindowSpec("whole");
  whole.item = ItemKind::kTrajectory;
  spec.priority_tables = {WindowSpec("limited"), whole};
  Create(spec);
  AppendClosed(0, 3);
  const std::vector<ItemHandle> forged = {
      {.leaf = UINT64_MAX, .generation = 1}, {.leaf = uint64_t{1} << 40}, {.leaf = 0}};
  for (const char* name : {"limited", "whole"}) {
    ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority(name)->Delete(forged));
    EXPECT_EQ(outcome.stale, 3u);
    EXPECT_EQ(outcome.applied, 0u);
  }
  const RowId first{1, 0};
  Close();
  options_.read_only = true;
  Open();
  table_ = database_->OpenTable("steps").value();
  EXPECT_STATUS(kFailedPrecondition, priority("limited")->Delete({&first, 1}), "read-only");
  EXPECT_EQ(priority("limited")->Count(), 3u);
}

}  // namespace
}  // namespace geardb
