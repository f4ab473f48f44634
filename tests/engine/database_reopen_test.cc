// What a reopen gives back: everything.

#include <gtest/gtest.h>

#include <map>

#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class DatabaseReopenTest : public StoreTest {
 protected:
  TableSpec Spec(bool final_row = true, bool stream = false) {
    TableSpec spec = StepSpec(final_row);
    spec.stream = stream;
    PriorityTableSpec uniform = WindowSpec("uniform");
    uniform.selector = SelectorKind::kUniform;
    PriorityTableSpec whole = WindowSpec("whole");
    whole.item = ItemKind::kTrajectory;
    spec.priority_tables = {WindowSpec("per", {.before = 1, .length = 2, .after = 1}), uniform,
                            whole};
    return spec;
  }

  /// All that can be asked of a table.
  struct Seen {
    std::vector<std::vector<int64_t>> records;
    std::map<TrajectoryId, std::vector<std::byte>> rows;
    std::map<std::string, std::vector<double>> priorities;
    std::map<std::string, std::vector<uint64_t>> standing;

    bool operator==(const Seen&) const = default;
  };
  Seen Look() {
    Seen seen;
    for (const TrajectoryRecord& record : table_->Scan({})) {
      // What was open is an orphan now.
      const auto state =
          record.state == TrajectoryState::kOpen ? TrajectoryState::kOrphaned : record.state;
      seen.records.push_back({static_cast<int64_t>(record.id), static_cast<int64_t>(state),
                              static_cast<int64_t>(record.end), record.first_row, record.rows_end,
                              record.steps_end, record.created_us,
                              static_cast<int64_t>(record.times_sampled)});
      const std::string_view columns[] = {"obs", "action", "reward", "version", "score"};
      const auto read = table_->Read(record.id, columns, {});
      EXPECT_OK(read);
      for (const ColumnRows& column : *read) {
        auto& bytes = seen.rows[record.id];
        bytes.insert(bytes.end(), column.bytes.begin(), column.bytes.end());
      }
    }
    for (const PriorityTableSpec& spec : specs_) {
      PriorityTable* table = priority(spec.name);
      EXPECT_EQ(table->spec(), spec);
      for (const RowId& item : table->Items()) {
        auto& values = seen.priorities[spec.name];
        values.push_back(static_cast<double>(item.id));
        values.push_back(static_cast<double>(item.row));
        values.push_back(static_cast<double>(*table->Priority(item)));
        values.push_back(*table->Probability(item));
      }
      const PriorityTableStats stats = table->Stats();
      seen.standing[spec.name] = {stats.items, stats.drawable_items, stats.draws,
                                  static_cast<uint64_t>(stats.scale_shift),
                                  static_cast<uint64_t>(stats.max_priority * 1000)};
    }
    seen.standing["table"] = {table_->Count(), table_->StepCount(), table_->Stats().pages,
                              table_->Stats().row_bytes};
    return seen;
  }
  void CreateTable(const TableSpec& spec, uint32_t lanes = 4) {
    specs_ = spec.priority_tables;
    Create(spec, {.lanes = lanes});
  }
  std::vector<int64_t> Draw(const std::string& name) {
    auto sampler = priority(name)->NewSampler({.batch = 16, .views = {{.column = "action"}}});
    EXPECT_OK(sampler);
    const auto batch = (*sampler)->Next();
    EXPECT_OK(batch);
    std::vector<int64_t> drawn = {static_cast<int64_t>(batch->draw_number())};
    for (size_t i = 0; i < 16; ++i) {
      drawn.push_back(static_cast<int64_t>(batch->trajectory_ids()[i]));
      drawn.push_back(batch->anchors()[i]);
    }
    return drawn;
  }

  /// One random change of the table.
  void Disturb(testing::Random* source, int64_t step) {
    testing::Random& random = *source;
    const auto lane = static_cast<uint32_t>(random.Below(4));
    switch (random.Below(12)) {
      case 0: {
        const auto records = table_->Scan({});
        if (records.empty()) break;
        const TrajectoryId ids[] = {records[random.Below(records.size())].id};
        ASSERT_OK(table_->Remove(ids));
        for (uint32_t i = 0; i < 4; ++i) writer_->Cut(i).status().ok();  // Forgets what is gone.
        break;
      }
      case 1: {
        const auto records = table_->Scan({});
        if (records.empty()) break;
        const TrajectoryRecord& record = records[random.Below(records.size())];
        if (record.steps_end - record.first_row < 2) break;
        ASSERT_OK(table_->Truncate(
            record.id, record.first_row + static_cast<int64_t>(random.Below(static_cast<uint64_t>(
                                              record.steps_end - record.first_row)))));
        break;
      }
      case 2:
        for (const auto& spec : specs_) {
          if (priority(spec.name)->DrawableCount() > 0) Draw(spec.name);
        }
        break;
      case 3: {
        PriorityTable* table = priority(random.OneIn(2) ? "per" : "whole");
        const auto items = table->Items();
        if (items.empty()) break;
        const RowId rows[] = {items[random.Below(items.size())]};
        const float values[] = {static_cast<float>(random.Below(1u << random.Below(31)))};
        ASSERT_OK(table->Set(rows, values));
        break;
      }
      case 4: {
        const auto records = table_->Scan({});
        if (records.empty()) break;
        const auto score = static_cast<float>(random.Below(100));
        const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
        ASSERT_OK(table_->SetColumns(records[random.Below(records.size())].id, values));
        break;
      }
      case 5:
        writer_->Cut(lane).status().ok();  // There may be nothing to cut.
        break;
      default:
        Append(1000 * step, 1 + static_cast<int64_t>(random.Below(9)),
               random.OneIn(2) ? End::kGo : static_cast<End>(1 + random.Below(3)), lane);
    }
  }
  void WorkAtRandom(testing::Random* random) {
    for (int64_t step = 0; step < 150 && !HasFatalFailure(); ++step) Disturb(random, step);
  }

  std::vector<PriorityTableSpec> specs_;
};

TEST_F(DatabaseReopenTest, ALogThatEndsWhereASegmentEndsIsCleanToo) {
  options_.background = false;  // Nothing else is logged.
  OpenEmpty();
  const auto end = [this] { return database_->Stats().log_end; };
  const auto tag = [this](uint64_t bytes) {
    ASSERT_OK(database_->WriteTag("t", std::vector<std::byte>(bytes)));
  };
  tag(6400);
  const uint64_t before = end();
  tag(6400);
  const uint64_t beside_blob = end() - before - 6400;
  while (options_.segment_bytes - end() > 100'000) tag(64'000);
  tag(options_.segment_bytes - end() - beside_blob);
  ASSERT_EQ(end(), options_.segment_bytes);
  for (int open = 0; open < 2; ++open) {
    Reopen();
    EXPECT_TRUE(database_->recovery().clean) << database_->recovery().note;
    EXPECT_EQ(database_->Tags().size(), 1u);
  }
}

TEST_F(DatabaseReopenTest, EverythingIsThereAfterRandomWork) {
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(seed);
    testing::Random random(seed);
    OpenEmpty();
    CreateTable(Spec(seed % 2 == 0, seed >= 3));
    WorkAtRandom(&random);
    if (HasFatalFailure()) return;
    const Seen before = Look();
    for (int open = 0; open < 2; ++open) {
      Reopen();
      OpenAgain("steps");
      EXPECT_TRUE(database_->recovery().clean);
      const Seen after = Look();
      EXPECT_EQ(before.records, after.records);
      EXPECT_EQ(before.rows, after.rows);
      EXPECT_EQ(before.priorities, after.priorities);
      EXPECT_EQ(before.standing, after.standing);
    }
    // And it goes on as if nothing had been.
    AppendClosed(0, 5);
    const Seen later = Look();
    Reopen();
    OpenAgain("steps");
    EXPECT_TRUE(later == Look());
  }
}

TEST_F(DatabaseReopenTest, DrawsGoOnWhereTheyStood) {
  std::vector<std::vector<int64_t>> plain, reopened;
  for (const bool reopen : {false, true}) {
    OpenEmpty();
    CreateTable(Spec());
    for (int64_t t = 0; t < 6; ++t) AppendClosed(100 * t, 10 + t);
    for (int i = 0; i < 10; ++i) {
      for (const auto& spec : specs_) (reopen ? reopened : plain).push_back(Draw(spec.name));
      const RowId rows[] = {{1, i}};
      const float values[] = {static_cast<float>(10 * i)};
      ASSERT_OK(priority("per")->Set(rows, values));
      if (reopen && i % 3 == 1) {
        Reopen();
        OpenAgain("steps");
      }
    }
  }
  EXPECT_EQ(plain, reopened);
}

TEST_F(DatabaseReopenTest, SeedAndRestartAreKept) {
  const auto anchors_of = [](const Result<Batch>& batch) {
    EXPECT_OK(batch);
    return std::vector<int64_t>(batch->anchors().begin(), batch->anchors().end());
  };
  // Draw `number` under `seed`, whatever the priority table's own state is.
  const auto observed = [&](uint64_t seed, uint64_t number) {
    const SamplerOptions options{
        .batch = 8, .observer = true, .seed = seed, .restart_draw = number};
    const auto sampler = priority("per")->NewSampler(options);
    EXPECT_OK(sampler);
    return anchors_of((*sampler)->Next());
  };
  // With draws between the restart and the reopen, and without any.
  for (const uint64_t draws : {2u, 0u}) {
    SCOPED_TRACE(draws);
    OpenEmpty();
    CreateTable(Spec());
    AppendClosed(0, 20);
    auto sampler = priority("per")->NewSampler({.batch = 8, .seed = 99, .restart_draw = 50});
    ASSERT_OK(sampler);
    for (uint64_t number = 50; number < 50 + draws; ++number) {
      const auto batch = (*sampler)->Next();
      EXPECT_EQ(batch->draw_number(), number);
      EXPECT_EQ(anchors_of(batch), observed(99, number));
    }
    sampler->reset();
    std::vector<std::vector<int64_t>> expected;
    for (uint64_t i = 0; i < 3; ++i) expected.push_back(observed(99, 50 + draws + i));
    EXPECT_NE(expected[0], observed(Spec().priority_tables[0].seed, 50 + draws));
    Reopen();
    OpenAgain("steps");
    sampler = priority("per")->NewSampler({.batch = 8});
    ASSERT_OK(sampler);
    for (uint64_t i = 0; i < 3; ++i) {
      const auto batch = (*sampler)->Next();
      EXPECT_EQ(batch->draw_number(), 50 + draws + i);
      EXPECT_EQ(anchors_of(batch), expected[i]);
    }
  }
}

TEST_F(DatabaseReopenTest, WhatWasOpenIsOrphanedAndCanGoOnMidPageAndMidEpisode) {
  for (const bool stream : {false, true}) {
    for (const bool final_row : {false, true}) {
      for (const int64_t rows : {1, 3, 4, 5, 8}) {
        SCOPED_TRACE(rows);
        OpenEmpty();
        CreateTable(Spec(final_row, stream));
        if (stream) Append(100, 2, End::kTerminated);
        Append(0, rows);
        const uint32_t version = 3;
        const ColumnValue values[] = {{"version", TensorView::Scalar(version)}};
        ASSERT_OK(table_->SetColumns(1, values));
        const auto items = priority("per")->Items();
        Reopen();
        OpenAgain("steps", {.lanes = 2});
        EXPECT_EQ(database_->recovery().orphaned, 1u);
        EXPECT_EQ(table_->Find(1)->state, TrajectoryState::kOrphaned);
        EXPECT_EQ(table_->Stats().open_trajectories, 0u);
        EXPECT_EQ(priority("per")->Items(), items);  // Drawable as before.
        ASSERT_OK(writer_->Resume(1, 1));
        EXPECT_EQ(table_->Find(1)->state, TrajectoryState::kOpen);
        EXPECT_EQ(Append(rows, 6, End::kTruncated, 1).first_row,
                  rows + (stream ? (final_row ? 3 : 2) : 0));
        Reopen();
        OpenAgain("steps");
        std::vector<int32_t> expected = testing::Count(0, static_cast<int32_t>(rows + 6));
        if (final_row) expected.push_back(0);
        if (stream && final_row) expected.insert(expected.begin(), 0);
        if (stream) expected.insert(expected.begin(), {100, 101});
        EXPECT_EQ(Numbers(1), expected);
        const std::string_view columns[] = {"version"};
        EXPECT_EQ((*table_->Read(1, columns, {}))[0].view().values<uint32_t>()[0], 3u);
        // The rows before and after the reopen are one episode.
        PriorityTableSpec spec =
            WindowSpec("one", {.before = 0, .length = rows + 6, .after = final_row ? 1 : 0});
        spec.window.right = EdgeRule::kRequire;
        ASSERT_OK(table_->CreatePriorityTable(spec));
        EXPECT_EQ(priority("one")->Count(), 1u);
      }
    }
  }
}

TEST_F(DatabaseReopenTest, SchemasAreStored) {
  TableSpec spec = Spec();
  spec.steps_max = 100;
  spec.trajectories_max = 7;
  spec.expected_steps = 55;
  spec.priority_tables[0].window.stride = 2;
  spec.priority_tables[0].window.stride_from_end = true;
  spec.priority_tables[0].window.left = EdgeRule::kShift;
  spec.priority_tables[0].window.right = EdgeRule::kPad;
  spec.priority_tables[2].initial = InitialPriority::kColumn;
  spec.priority_tables[2].initial_priority_column = "score";
  CreateTable(spec);
  TableSpec other = StepSpec();
  other.name = "other";
  ASSERT_OK(database_->CreateTable(other));
  Reopen();
  EXPECT_EQ(database_->Tables(), (std::vector<std::string>{"steps", "other"}));
  OpenAgain("steps");
  EXPECT_EQ(table_->spec(), spec);
  for (const auto& priority_spec : spec.priority_tables) {
    EXPECT_EQ(priority(priority_spec.name)->spec(), priority_spec);
  }
  EXPECT_OK(database_->OpenOrCreateTable(spec));
  spec.steps_max = 101;
  EXPECT_STATUS(kFailedPrecondition, database_->OpenOrCreateTable(spec), "steps_max 100, not 101");
}

TEST_F(DatabaseReopenTest, CountersBeginAtTheOpen) {
  CreateTable(Spec());
  const TrajectoryId id = AppendClosed(0, 8);
  AppendClosed(0, 8);
  Draw("per");
  const RowId rows[] = {{1, 0}};
  const float values[] = {1e9f};
  ASSERT_OK(priority("per")->Set(rows, values));
  ASSERT_OK(table_->Truncate(id, 5));
  const TrajectoryId ids[] = {id};
  ASSERT_OK(table_->Remove(ids));
  Reopen();
  OpenAgain("steps");
  const TableStats table = table_->Stats();
  EXPECT_EQ(table.appended_rows, 0u);
  EXPECT_EQ(table.removed_trajectories, 0u);
  EXPECT_EQ(table.trimmed_rows, 0u);
  const PriorityTableStats stats = priority("per")->Stats();
  EXPECT_EQ(stats.sampled_items, 0u);
  EXPECT_EQ(stats.updates_applied, 0u);
  EXPECT_EQ(stats.rescales, 0u);
  EXPECT_EQ(stats.draws, 1u);  // Ever.
  EXPECT_EQ(table.steps, 8u);
}

TEST_F(DatabaseReopenTest, IdsAreNeverUsedAgain) {
  CreateTable(Spec());
  for (int t = 0; t < 3; ++t) AppendClosed(0, 2);
  const TrajectoryId ids[] = {1, 2, 3};
  ASSERT_OK(table_->Remove(ids));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(AppendClosed(0, 2), 4u);
}

TEST_F(DatabaseReopenTest, StaleHandlesStayStale) {
  CreateTable(Spec());
  AppendClosed(0, 8);
  auto sampler = priority("per")->NewSampler({.batch = 4});
  const auto batch = (*sampler)->Next();
  const std::vector<ItemHandle> handles(batch->handles().begin(), batch->handles().end());
  sampler->reset();
  Reopen();
  OpenAgain("steps");
  const float values[] = {2, 2, 2, 2};
  EXPECT_EQ(priority("per")->Set(handles, values)->applied, 4u);
  const TrajectoryId ids[] = {1};
  ASSERT_OK(table_->Remove(ids));
  Reopen();
  OpenAgain("steps");
  AppendClosed(0, 8);
  EXPECT_EQ(priority("per")->Set(handles, values)->stale, 4u);
}

TEST_F(DatabaseReopenTest, ReadOnlyOpensShowEverythingAndChangeNothing) {
  CreateTable(Spec());
  AppendClosed(0, 8);
  Append(100, 3);
  ASSERT_OK(database_->WriteTag("tag", {}));
  Reopen();
  OpenAgain("steps");
  const Seen before = Look();
  options_.read_only = true;
  Reopen();
  auto table = database_->OpenTable("steps");
  ASSERT_OK(table);
  table_ = *table;
  EXPECT_TRUE(before == Look());
  EXPECT_OK(database_->LastTag("tag"));
  EXPECT_STATUS(kFailedPrecondition, table_->NewWriter({}), "read-only");
  EXPECT_STATUS(kFailedPrecondition, database_->CreateTable(StepSpec()), "read-only");
  EXPECT_STATUS(kFailedPrecondition, database_->WriteTag("t", {}), "read-only");
  EXPECT_STATUS(kFailedPrecondition, database_->DropTable("steps"), "read-only");
  const TrajectoryId ids[] = {1};
  EXPECT_STATUS(kFailedPrecondition, table_->Remove(ids), "read-only");
  EXPECT_STATUS(kFailedPrecondition, table_->Truncate(1, 2), "read-only");
  const float one[] = {1};
  EXPECT_STATUS(kFailedPrecondition, priority("per")->SetAll(one), "read-only");
  EXPECT_STATUS(kFailedPrecondition, priority("per")->NewSampler({}), "read-only");
  auto observer = priority("per")->NewSampler({.batch = 4, .observer = true});
  ASSERT_OK(observer);
  EXPECT_OK((*observer)->Next());
  observer->reset();
  options_.read_only = false;
  Reopen();
  OpenAgain("steps");
  EXPECT_TRUE(before == Look());
}

TEST_F(DatabaseReopenTest, HandlesOfAClosedDatabaseSayCancelled) {
  CreateTable(Spec());
  AppendClosed(0, 8);
  auto per = table_->priority_table("per");
  auto sampler = per->NewSampler({.batch = 4});
  auto observer = per->NewSampler({.batch = 4, .observer = true});
  ASSERT_OK(sampler);
  ASSERT_OK(observer);
  ASSERT_OK(database_->Close());
  ASSERT_OK(database_->Close());
  database_.reset();
  const Rows rows(0, 1);
  EXPECT_STATUS(kCancelled, writer_->Append(rows.one()), "closed");
  EXPECT_STATUS(kCancelled, writer_->Cut(), "closed");
  EXPECT_STATUS(kCancelled, writer_->Resume(1), "closed");
  EXPECT_STATUS(kCancelled, (*sampler)->Next(), "closed");
  EXPECT_STATUS(kCancelled, table_->Read(1, {}, {}), "closed");
  EXPECT_STATUS(kCancelled, table_->Gather({}), "closed");
  EXPECT_STATUS(kCancelled, table_->Find(1), "closed");
  EXPECT_STATUS(kCancelled, table_->NewWriter({}), "closed");
  EXPECT_STATUS(kCancelled, table_->Truncate(1, 1), "closed");
  EXPECT_STATUS(kCancelled, table_->CreatePriorityTable(WindowSpec("new")), "closed");
  EXPECT_STATUS(kCancelled, table_->OpenPriorityTable("per"), "closed");
  const float one[] = {1};
  EXPECT_STATUS(kCancelled, per->SetAll(one), "closed");
  EXPECT_STATUS(kCancelled, per->NewSampler({}), "closed");
  EXPECT_STATUS(kCancelled, (*observer)->Next(), "closed");
  // The handle is there: an exit may close a database under a thread that goes on.
  EXPECT_STATUS(kCancelled, table_->priority_table("per")->NewSampler({}), "closed");
  EXPECT_EQ(table_->priority_table("other"), nullptr);
  // What can still be asked for.
  EXPECT_EQ(per->Count(), 8u);
  EXPECT_OK(per->Priority({.id = 1, .row = 2}));
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_EQ(table_->Scan({}).size(), 1u);
  EXPECT_EQ(table_->StepCount(), 8u);
  sampler->reset();
  observer->reset();
}

}  // namespace
}  // namespace geardb
