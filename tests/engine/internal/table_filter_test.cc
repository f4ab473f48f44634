// Standing filters: random programs against a plain model that asks the condition of every
// trajectory after every call, live, after reopens and from images. And what could not be read,
// which is hidden likewise.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "engine/internal/cleaner.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::WindowSpec;

/// A trajectory, as the program made it.
struct KnownValues {
  uint32_t version = 0;
  bool set = false;
  int64_t length = 0;
  bool closed = false;
};

/// version >= at_least && length > longer
struct Bound {
  uint32_t at_least = 0;
  int64_t longer = 0;
  bool Passes(const KnownValues& known) const {
    return known.version >= at_least && known.length > longer;
  }
  std::string text() const {
    return "version >= " + std::to_string(at_least) + " && length > " + std::to_string(longer);
  }
};

class TableFilterTest : public testing::StoreTest {
 protected:
  void Make() {
    TableSpec spec = testing::StepSpec();
    spec.priority_tables = {WindowSpec("hides"), WindowSpec("whole"), WindowSpec("times"),
                            WindowSpec("all")};
    spec.priority_tables[0].filter = bounds_["hides"].text();
    spec.priority_tables[1].item = ItemKind::kTrajectory;
    spec.priority_tables[1].selector = SelectorKind::kFifo;
    spec.priority_tables[2].max_times_sampled = 2;
    spec.priority_tables[2].selector = SelectorKind::kUniform;
    spec.priority_tables[2].filter = "state == closed";
    Create(spec, {.lanes = 3});
    spec_ = spec;
  }
  void Again() {
    const std::map<std::string, PriorityTableStats> before = StatsOfAll();
    open_.clear();
    Reopen();
    OpenAgain("steps", {.lanes = 3});
    for (const auto& [name, stats] : before) {
      EXPECT_EQ(priority(name)->Stats().drawable_items, stats.drawable_items) << name;
    }
    for (auto& [id, known] : known_) {  // What was open is given up.
      if (known.closed) continue;
      EXPECT_OK(writer_->Resume(id));
      EXPECT_OK(writer_->Cut(0));
      known.closed = true;
    }
  }
  std::map<std::string, PriorityTableStats> StatsOfAll() {
    std::map<std::string, PriorityTableStats> all;
    for (const char* name : {"hides", "whole", "times", "all"}) {
      all[name] = priority(name)->Stats();
    }
    return all;
  }
  void AddRows() {
    const auto lane = static_cast<uint32_t>(random_() % 3);
    const auto count = static_cast<int64_t>(1 + random_() % 6);
    const bool ends = random_() % 2 == 0;
    const TrajectoryId id = Append(next_, count, ends ? End::kTerminated : End::kGo, lane).id;
    next_ += count;
    KnownValues& known = known_[id];
    known.length += count;
    known.closed = ends;
    if (ends) {
      open_.erase(lane);
    } else {
      open_[lane] = id;
    }
    if (random_() % 2 == 0) SetVersion(id);
  }
  void SetVersion(TrajectoryId id) {
    const auto version = static_cast<uint32_t>(random_() % 5);
    const ColumnValue value{"version", TensorView::Scalar(version)};
    ASSERT_OK(table_->SetColumns(id, {&value, 1}));
    known_[id].version = version;
  }
  TrajectoryId Any() {
    auto at = known_.begin();
    std::advance(at, static_cast<int64_t>(random_() % known_.size()));
    return at->first;
  }

  /// Every item of `name` is drawable iff its trajectory passes and it was not shown too often.
  template <typename Passes>
  void ExpectItems(const std::string& name, const Passes& passes) {
    PriorityTable* const table = priority(name);
    uint64_t drawable = 0;
    uint64_t filtered = 0;
    std::map<TrajectoryId, int64_t> items;
    for (const RowId& row : table->Items()) {
      ASSERT_TRUE(known_.contains(row.id)) << name;
      ++items[row.id];
      const bool pass = passes(known_.at(row.id));
      const bool shown = name == "times" && shown_[{row.id, row.row}] >= 2;
      ASSERT_OK_AND_ASSIGN(const double probability, table->Probability(row));
      ASSERT_EQ(probability > 0, pass && !shown)
          << name << ": row " << row.row << " of trajectory " << row.id;
      drawable += pass && !shown ? 1u : 0u;
      filtered += pass ? 0u : 1u;
    }
    EXPECT_EQ(table->Stats().drawable_items, drawable) << name;
    EXPECT_EQ(table->Stats().filtered_items, filtered) << name;
    for (const auto& [id, known] : known_) {
      const int64_t wanted = name == "whole" ? (known.closed ? 1 : 0) : known.length;
      const auto found = items.find(id);
      ASSERT_EQ(found == items.end() ? 0 : found->second, wanted) << name << ": " << id;
    }
  }
  void ExpectModel() {
    ExpectItems("hides", [&](const KnownValues& known) { return bounds_["hides"].Passes(known); });
    ExpectItems("whole", [&](const KnownValues& known) { return bounds_["whole"].Passes(known); });
    ExpectItems("times", [&](const KnownValues& known) { return known.closed; });
    ExpectItems("all", [](const KnownValues&) { return true; });
  }
  void Draw(const std::string& name) {
    if (priority(name)->Stats().drawable_items < 4) return;
    ASSERT_OK_AND_ASSIGN(const auto sampler, priority(name)->NewSampler({.batch = 4}));
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next(Deadline::Now()));
    for (size_t i = 0; i < 4; ++i) {
      const TrajectoryId id = batch.trajectory_ids()[i];
      if (name == "hides") {
        EXPECT_TRUE(bounds_["hides"].Passes(known_.at(id)));
      }
      if (name == "times") {
        EXPECT_TRUE(known_.at(id).closed);
        ++shown_[{id, batch.anchors()[i]}];
      }
    }
  }
  void MoveBound(const std::string& name) {
    bounds_[name] = {static_cast<uint32_t>(random_() % 5), static_cast<int64_t>(random_() % 8)};
    ASSERT_OK(priority(name)->SetFilter(bounds_[name].text()));
  }

  TableSpec spec_;
  std::map<std::string, Bound> bounds_ = {{"hides", {1, 2}}, {"whole", {0, 0}}};
  std::map<TrajectoryId, KnownValues> known_;
  std::map<uint32_t, TrajectoryId> open_;  // By lane.
  std::map<std::pair<TrajectoryId, int64_t>, int> shown_;
  int64_t next_ = 0;
  std::mt19937_64 random_{11};
};

TEST_F(TableFilterTest, RandomProgramsHideWhatFails) {
  Make();
  for (int step = 0; step < 300; ++step) {
    switch (random_() % 12) {
      case 0:
        MoveBound(random_() % 2 == 0 ? "hides" : "whole");
        break;
      case 1:
      case 2:
        if (!known_.empty()) SetVersion(Any());
        break;
      case 3:
      case 4:
        Draw(random_() % 2 == 0 ? "hides" : "times");
        break;
      case 5: {
        if (known_.size() < 20) break;
        const TrajectoryId id = Any();
        if (!known_[id].closed) break;
        ASSERT_OK(table_->Remove({&id, 1}));
        known_.erase(id);
        break;
      }
      case 6:
        if (step % 3 == 0) Again();
        break;
      case 7:
        if (step % 4 == 0) {
          ASSERT_OK(testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true));
        }
        break;
      default:
        AddRows();
    }
    ExpectModel();
    if (HasFatalFailure()) FAIL() << "at step " << step;
  }
  ASSERT_OK(priority("hides")->SetFilter(""));
  EXPECT_EQ(priority("hides")->Stats().filtered_items, 0u);
  EXPECT_EQ(priority("hides")->DrawableCount(), priority("hides")->Count());
}

/// The slot of one that expired before is that of the next: a reopen replays the first.
TEST_F(TableFilterTest, WhatExpiresBehindAReopenLeaves) {
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {testing::WindowSpec("fresh")};
  spec.priority_tables[0].filter = "length > 9";
  spec.priority_tables[0].filter_action = FilterAction::kExpire;
  Create(spec);
  AppendClosed(0, 1);
  EXPECT_EQ(table_->Count(), 0u);
  Reopen();
  OpenAgain("steps");
  const TrajectoryId id = AppendClosed(1, 1);
  EXPECT_EQ(table_->Count(), 0u);
  ASSERT_OK_AND_ASSIGN(const Removals left, table_->ReadRemovals(1));
  EXPECT_EQ(left.removals, (std::vector<Removal>{{id, RemovalReason::kFilter, "fresh"}}));
}

class UnreadableTest : public testing::StoreTest {
 protected:
  void CreateWith(std::vector<PriorityTableSpec> priority_tables) {
    TableSpec spec = testing::StepSpec();
    spec.priority_tables = std::move(priority_tables);
    Create(spec);
  }
  /// As a draw does that has met a file that is away.
  void HideUnreadable(TrajectoryId id) {
    engine::TableState& state = *testing::CoreOf(*database_)->FindTable("steps")->state;
    MutexLock lock(&state.mutex);
    ASSERT_OK(state.HideUnreadable(state.trajectories().FindById(id)));
  }
  void ExpectItems(const char* name, uint64_t items, uint64_t unreadable) {
    const PriorityTableStats stats = priority(name)->Stats();
    EXPECT_EQ(stats.items, items) << name;
    EXPECT_EQ(stats.drawable_items, items - unreadable) << name;
    EXPECT_EQ(stats.unreadable_items, unreadable) << name;
    EXPECT_EQ(stats.filtered_items, 0u) << name;
  }
  std::string Said(const char* name, SamplerOptions options) {
    const auto sampler = priority(name)->NewSampler(options);
    EXPECT_OK(sampler);
    return (*sampler)->Next(Deadline::Now()).status().ToString();
  }
};

TEST_F(UnreadableTest, NothingShowsItsItemsBeforeTheNextOpen) {
  PriorityTableSpec whole = WindowSpec("whole");
  whole.item = ItemKind::kTrajectory;
  whole.selector = SelectorKind::kFifo;
  PriorityTableSpec times = WindowSpec("times");
  times.max_times_sampled = 1;
  CreateWith({WindowSpec("all"), whole, times});
  const TrajectoryId away = AppendClosed(0, 3);
  AppendClosed(3, 2);
  HideUnreadable(away);
  ExpectItems("all", 5, 3);
  ExpectItems("whole", 2, 1);
  ExpectItems("times", 5, 3);
  // Another filter, one that expires, and none.
  for (const char* filter : {"length < 9", "length < 8", ""}) {
    ASSERT_OK(priority("all")->SetFilter(
        filter, *filter == '\0' ? FilterAction::kHide : FilterAction::kExpire));
    ExpectItems("all", 5, 3);
  }
  EXPECT_EQ(table_->Stats().trajectories, 2u);
  // Another priority table.
  ASSERT_OK(table_->CreatePriorityTable(WindowSpec("later")));
  ExpectItems("later", 5, 3);
  // Draws that are given up, and other limits.
  ASSERT_OK_AND_ASSIGN(auto sampler, priority("times")->NewSampler({.batch = 2, .prefetch = 1}));
  ASSERT_OK(sampler->Next());
  sampler.reset();
  ASSERT_OK(priority("times")->Configure({.max_times_sampled = 0}));
  ExpectItems("times", 5, 3);
  EXPECT_NE(Said("whole", {.batch = 2})
                .find("holds 1 items that can be drawn; the batch takes 2 distinct ones: of 2 "
                      "items 1 are of trajectories that could not be read"),
            std::string::npos);
  // What is appended behind it is not.
  AppendClosed(5, 4);
  ExpectItems("all", 9, 3);
  Reopen();
  OpenAgain("steps");
  for (const char* name : {"all", "times", "later"}) ExpectItems(name, 9, 0);
  ExpectItems("whole", 3, 0);
}

TEST_F(UnreadableTest, WhatIsAppendedToItIsHiddenToo) {
  PriorityTableSpec whole = WindowSpec("whole");
  whole.item = ItemKind::kTrajectory;
  CreateWith({WindowSpec("all"), whole});
  const TrajectoryId away = Append(0, 3).id;
  HideUnreadable(away);
  Append(3, 40);  // Other pages.
  ExpectItems("all", 43, 43);
  EXPECT_EQ(AppendClosed(43, 1), away);
  ExpectItems("all", 44, 44);
  ExpectItems("whole", 1, 1);
  EXPECT_NE(priority("whole")->WhyBlocked().samples.reason.find(
                "of 1 items 1 are of trajectories that could not be read"),
            std::string::npos);
  // The next in its slot is another.
  ASSERT_OK(table_->Remove({&away, 1}));
  AppendClosed(0, 2);
  ExpectItems("all", 2, 0);
  ExpectItems("whole", 1, 0);
}

TEST_F(UnreadableTest, APassOfAnEpochWaitsForIt) {
  for (const bool drop_last : {false, true}) {
    const std::string name = drop_last ? "drops" : "keeps";
    PriorityTableSpec spec = WindowSpec(name);
    spec.selector = SelectorKind::kEpoch;
    spec.epoch = {.passes = 1, .remove_covered = true};
    CreateWith({spec});
    const TrajectoryId away = AppendClosed(0, 3);
    AppendClosed(3, 5);
    ASSERT_OK(priority(name)->BeginEpoch());
    HideUnreadable(away);
    ASSERT_OK_AND_ASSIGN(const auto sampler,
                         priority(name)->NewSampler({.batch = 5, .drop_last = drop_last}));
    ASSERT_OK(sampler->Next(Deadline::Now()));
    EXPECT_STATUS(kDeadlineExceeded, sampler->Next(Deadline::Now()),
                  "3 are of trajectories that could not be read");
    EXPECT_EQ(priority(name)->Stats().epoch.remaining, 3u);
    EXPECT_EQ(table_->Stats().trajectories, 1u);
    ASSERT_OK(table_->Remove({&away, 1}));
    EXPECT_STATUS(kOutOfRange, sampler->Next(Deadline::Now()), "is exhausted");
    ASSERT_OK(database_->DropTable("steps"));
  }
}

}  // namespace
}  // namespace geardb
