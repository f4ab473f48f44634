// Budgets are hard, itemised, and a call that meets one leaves the store in order.

#include <gtest/gtest.h>

#include <thread>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

constexpr uint64_t kBudgetMiB = uint64_t{1} << 20;

class DatabaseBudgetTest : public StoreTest {
 protected:
  TableSpec WideSpec() {
    TableSpec spec;
    spec.name = "wide";
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {64 << 10}}};
    spec.steps_per_page = 1;
    spec.priority_tables = {WindowSpec("per")};
    return spec;
  }
  // And ten rows of 64 KiB.
  void OpenWithOneMiBOfBatches() {
    options_.budgets.batch_bytes = kBudgetMiB;
    OpenEmpty();
    Create(WideSpec());
    ASSERT_OK(AppendWide(10));
  }
  Status AppendWide(int64_t rows, End end = End::kGo) {
    const std::vector<uint8_t> bytes(static_cast<size_t>(rows) << 16, 7);
    return writer_
        ->AppendSteps(
            {{"x", TensorView::Of(std::span<const uint8_t>(bytes), Shape({rows, 64 << 10}))}},
            {.end = end})
        .status();
  }
};

TEST_F(DatabaseBudgetTest, WhatNoMachineHasIsRefusedByName) {
  Close();
  const uint64_t huge = uint64_t{1} << 60;
  options_.budgets.frames_bytes = huge;
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->path(), options_),
                "budgets.frames_bytes is 1152921504606846976; expected at most 17592186044416");
  options_ = testing::SmallOptions();
  options_.budgets.index_bytes = huge;
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->path(), options_),
                "budgets.index_bytes is 1152921504606846976; expected at most 17592186044416");
  options_ = testing::SmallOptions();
  options_.budgets.cold_bytes = huge;
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->path(), options_),
                "budgets.cold_bytes is 1152921504606846976; expected at most 17592186044416");
}

TEST_F(DatabaseBudgetTest, TheColdStoreTakesAShareOfTheFramesOrWhatItIsGiven) {
  const auto limit = [&](uint64_t frames_bytes, uint64_t cold_bytes) {
    options_.budgets.frames_bytes = frames_bytes;
    options_.budgets.cold_bytes = cold_bytes;
    Reopen();
    return database_->Stats().cold_memory.limit_bytes;
  };
  EXPECT_EQ(limit(4 * kBudgetMiB, 0), 8 * kBudgetMiB);
  EXPECT_EQ(limit(160 * kBudgetMiB, 0), 20 * kBudgetMiB);
  EXPECT_EQ(limit(4096 * kBudgetMiB, 0), 64 * kBudgetMiB);
  EXPECT_EQ(limit(4096 * kBudgetMiB, 100 * kBudgetMiB), 100 * kBudgetMiB);
  EXPECT_EQ(limit(4 * kBudgetMiB, 4 * kBudgetMiB), 4 * kBudgetMiB);
  Close();
  options_.budgets.cold_bytes = 4 * kBudgetMiB - 1;
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->path(), options_),
                "budgets.cold_bytes is 4194303; expected at least 4194304, or 0 for a share of "
                "budgets.frames_bytes");
}

// What the text says of a page is what is refused.
TEST_F(DatabaseBudgetTest, APageFitsAQuarterOfTheRingLessFourKiB) {
  options_.ring_bytes = 32 << 10;
  OpenEmpty();
  TableSpec spec;
  spec.name = "small";
  spec.steps_per_page = 1;
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {4097}}};
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec),
                "has 4097 bytes; at most 4096 fit a record of the log (a quarter of the ring's "
                "32768 bytes and half of a segment's 1048576 bytes, less 4096)");
  spec.columns[0].shape = {4096};
  EXPECT_OK(database_->CreateTable(spec));
}

TEST_F(DatabaseBudgetTest, FramesRunOutAndComeBack) {
  options_.budgets.frames_bytes = 4 * kBudgetMiB;
  options_.resident = true;
  OpenEmpty();
  Create(WideSpec());
  uint64_t rows = 0;
  Status status;
  while ((status = AppendWide(1)).ok()) ++rows;
  EXPECT_STATUS(kResourceExhausted, status, "the frame budget of 4194304 bytes");
  EXPECT_STATUS(kResourceExhausted, status, "table 'wide'");
  EXPECT_GE(rows, 60u);
  EXPECT_LE(database_->Stats().frames.used_bytes, 4 * kBudgetMiB);
  EXPECT_EQ(database_->Stats().frames.limit_bytes, 4 * kBudgetMiB);
  EXPECT_EQ(table_->StepCount(), rows);
  // A call that finds half of its frames gives them back.
  ASSERT_OK(table_->Truncate(1, 10));
  EXPECT_FALSE(AppendWide(20).ok());
  EXPECT_EQ(table_->StepCount(), rows - 10);
  EXPECT_OK(AppendWide(10, End::kTerminated));
  const TrajectoryId ids[] = {1};
  ASSERT_OK(table_->Remove(ids));
  for (uint64_t i = 0; i < rows; ++i) ASSERT_OK(AppendWide(1));
  Reopen();
  OpenAgain("wide");
  EXPECT_EQ(table_->StepCount(), rows);
}

TEST_F(DatabaseBudgetTest, AStoreLargerThanTheBudgetIsNotOpened) {
  Create(WideSpec());
  ASSERT_OK(AppendWide(200));
  Close();
  options_.budgets.frames_bytes = 4 * kBudgetMiB;
  options_.resident = true;
  EXPECT_STATUS(kResourceExhausted, Database::Open(dir_->path(), options_),
                "the frame budget of 4194304 bytes");
  options_.budgets.frames_bytes = 64 * kBudgetMiB;
  Open();
  OpenAgain("wide");
  EXPECT_EQ(table_->StepCount(), 200u);
}

TEST_F(DatabaseBudgetTest, TheIndexRunsOutAndTheStoreGoesOn) {
  // With small pages their records run out first, with large ones the items' weights.
  for (const uint32_t steps_per_page : {1u, 16u, 64u, 256u}) {
    SCOPED_TRACE(steps_per_page);
    options_.budgets.index_bytes = steps_per_page <= 16 ? 2 * kBudgetMiB : 6 * kBudgetMiB;
    OpenEmpty();
    TableSpec spec = StepSpec();
    spec.steps_per_page = steps_per_page;
    spec.priority_tables = {WindowSpec("per")};
    Create(spec);
    Status status;
    uint64_t count = 0;
    const Rows rows(0, 100);
    for (; status.ok() && count < 10'000; ++count) {
      status = writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
    }
    EXPECT_STATUS(kResourceExhausted, status, "table 'steps'");
    EXPECT_EQ(table_->Count(), count - 1);
    EXPECT_EQ(priority("per")->Count(), 100 * (count - 1));
    EXPECT_LE(database_->Stats().index.used_bytes, options_.budgets.index_bytes);
    const TrajectoryId ids[] = {1, 2};
    ASSERT_OK(table_->Remove(ids));
    EXPECT_OK(writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}));
    Reopen();
    OpenAgain("steps");
    EXPECT_EQ(table_->Count(), count - 2);
  }
}

TEST_F(DatabaseBudgetTest, AnIndexTooSmallForATableMakesNone) {
  options_.budgets.index_bytes = 64 << 10;
  OpenEmpty();
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("per"), WindowSpec("other")};
  EXPECT_STATUS(kResourceExhausted, database_->CreateTable(spec),
                "table 'steps' with 2 priority tables does not fit budgets.index_bytes = 65536");
  EXPECT_TRUE(database_->Tables().empty());
  options_.budgets.index_bytes = 64 * kBudgetMiB;
  Reopen();
  EXPECT_TRUE(database_->Tables().empty());
  EXPECT_OK(database_->OpenOrCreateTable(spec));
}

TEST_F(DatabaseBudgetTest, EveryIndexBudgetMakesATableOrNone) {
  // Whatever part of a table's index it is that does not fit.
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("a"), WindowSpec("b"), WindowSpec("c")};
  bool made = false;
  for (uint64_t budget = 64 << 10; budget <= (uint64_t{2} << 20); budget += 64 << 10) {
    SCOPED_TRACE(budget);
    options_.budgets.index_bytes = budget;
    OpenEmpty();
    const auto table = database_->CreateTable(spec);
    EXPECT_EQ(database_->Tables().size(), table.ok() ? 1u : 0u) << table.status();
    made = table.ok();
  }
  EXPECT_TRUE(made);
}

TEST_F(DatabaseBudgetTest, DroppedTablesGiveTheirMemoryBack) {
  TableSpec spec = WideSpec();
  spec.priority_tables.push_back(WindowSpec("other"));
  const uint64_t index_before = database_->Stats().index.used_bytes;
  uint64_t frames_after_first = 0;
  for (int round = 0; round < 60; ++round) {
    Create(spec);
    ASSERT_OK(AppendWide(40, End::kTerminated));  // 2.5 MiB of 64.
    writer_.reset();
    table_.reset();
    ASSERT_OK(database_->DropTable("wide"));
    if (round == 0) frames_after_first = database_->Stats().frames.used_bytes;
  }
  EXPECT_EQ(database_->Stats().index.used_bytes, index_before);
  EXPECT_LE(database_->Stats().frames.used_bytes, frames_after_first + (uint64_t{8} << 20));
}

using DatabaseBudgetConcurrentTest = DatabaseBudgetTest;

// Its pages could not leave, and nobody waited for it: the next call was refused at once.
TEST_F(DatabaseBudgetConcurrentTest, CallsWaitForADroppedTableThatSomebodyHas) {
  options_.budgets.frames_bytes = 8 * kBudgetMiB;
  for (int round = 0; round < 3; ++round) {
    OpenEmpty();
    Create(WideSpec());
    ASSERT_OK(AppendWide(100, End::kTerminated));
    writer_.reset();
    auto held = std::move(table_);
    ASSERT_OK(database_->DropTable("wide"));
    std::thread holder([&] {
      for (int i = 0; i < 20'000; ++i) std::this_thread::yield();
      held.reset();
    });
    Create(WideSpec());
    EXPECT_OK(AppendWide(100, End::kTerminated));
    holder.join();
  }
}

// As of frames, so of index memory: what the table that leaves has is enough.
TEST_F(DatabaseBudgetConcurrentTest, ChangesOfTablesWaitForIndexMemoryOfADroppedOne) {
  options_.budgets.index_bytes = kBudgetMiB;
  for (const bool columns : {false, true}) {
    SCOPED_TRACE(columns ? "columns" : "priority tables");
    OpenEmpty();
    TableSpec leaves = StepSpec();
    leaves.name = "leaves";
    for (int i = 0; i < 4; ++i) leaves.priority_tables.push_back(WindowSpec(std::to_string(i)));
    auto held = database_->CreateTable(leaves).value();
    Create(StepSpec());
    int made = 0;
    const auto change = [&] {
      const std::string name = "more" + std::to_string(made++);
      if (!columns) return table_->CreatePriorityTable(WindowSpec(name)).status();
      const Column column{.name = name, .dtype = DType::kU8, .kind = ColumnKind::kBlob};
      return table_->AddColumns({&column, 1});
    };
    Status refused;
    while (refused.ok() && made < 1000) refused = change();
    EXPECT_STATUS(kResourceExhausted, refused, "budgets.index_bytes");
    ASSERT_OK(database_->DropTable("leaves"));
    std::thread holder([&] {
      for (int i = 0; i < 20'000; ++i) std::this_thread::yield();
      held.reset();
    });
    EXPECT_OK(change());
    holder.join();
  }
}

TEST_F(DatabaseBudgetTest, BatchesRunOutAndComeBack) {
  OpenWithOneMiBOfBatches();
  auto small = priority("per")->NewSampler({.batch = 4, .views = {{.column = "x"}}});
  auto large = priority("per")->NewSampler({.batch = 32, .views = {{.column = "x"}}});
  ASSERT_OK(large);
  EXPECT_STATUS(kResourceExhausted, (*large)->Next(), "the batch budget of 1048576 bytes");
  EXPECT_LE(database_->Stats().batches.used_bytes, kBudgetMiB);
  std::vector<Batch> held;
  Status status;
  for (uint64_t i = 0; i < 10 && status.ok(); ++i) {
    auto batch = (*small)->Next();
    status = batch.status();
    if (!batch.ok()) break;
    EXPECT_EQ(batch->draw_number(), i);  // The refused batch has used up none.
    held.push_back(std::move(*batch));
  }
  EXPECT_STATUS(kResourceExhausted, status, "batch budget");
  EXPECT_EQ(held.size(), 3u);
  held.pop_back();
  const auto batch = (*small)->Next();
  ASSERT_OK(batch);
  EXPECT_EQ(batch->draw_number(), 3u);
}

TEST_F(DatabaseBudgetTest, WhatReleasedBatchesLeaveIsThereForOtherSamplers) {
  OpenWithOneMiBOfBatches();
  auto first = priority("per")->NewSampler({.batch = 4, .views = {{.column = "x"}}});
  auto second = priority("per")->NewSampler({.batch = 12, .views = {{.column = "x"}}});
  {
    std::vector<Batch> held;
    for (int i = 0; i < 3; ++i) held.push_back((*first)->Next().value());
    EXPECT_STATUS(kResourceExhausted, (*second)->Next(), "the batch budget of 1048576 bytes");
  }
  EXPECT_OK((*second)->Next());
  EXPECT_OK((*first)->Next());
}

// Drawn later, it would see other updates than it is promised.
TEST_F(DatabaseBudgetTest, ABatchThatHadNoRoomInItsTurnIsNotDrawnLater) {
  OpenWithOneMiBOfBatches();
  auto per = priority("per");
  auto sampler = per->NewSampler({.batch = 4, .views = {{.column = "x"}}, .prefetch = 1});
  ASSERT_OK(sampler);
  std::vector<Batch> held;
  uint64_t draw = 0;
  const auto expect_next = [&](double items, int64_t row_to_take) {
    ASSERT_OK_AND_ASSIGN(Batch batch, (*sampler)->Next());
    EXPECT_EQ(batch.draw_number(), draw++);
    EXPECT_NEAR(1 / batch.probabilities()[0], items, 1e-3);
    held.push_back(std::move(batch));
    const RowId row{.id = 1, .row = row_to_take};
    const float none = 0;
    ASSERT_OK(per->Set(std::span(&row, 1), std::span(&none, 1)));
  };
  expect_next(10, 0);
  expect_next(10, 1);  // Drawn before the first Set.
  expect_next(9, 2);
  held.clear();
  EXPECT_STATUS(kResourceExhausted, (*sampler)->Next(),
                "no batch was drawn ahead (prefetch 1): a batch needs ");
  expect_next(7, 3);  // As the first: after all that was submitted.
  expect_next(7, 4);
  expect_next(6, 5);
  // The next one has no room, which is of no interest any more.
  ASSERT_OK(database_->DropTable("wide"));
  EXPECT_STATUS(kCancelled, (*sampler)->Next(), "was dropped");
}

TEST_F(DatabaseBudgetTest, APrefetchThatIsTooDeepDeliversWhatHasRoom) {
  OpenWithOneMiBOfBatches();
  auto sampler =
      priority("per")->NewSampler({.batch = 4, .views = {{.column = "x"}}, .prefetch = 8});
  ASSERT_OK(sampler);
  for (uint64_t i = 0; i < 9; ++i) {
    const auto batch = (*sampler)->Next();
    ASSERT_OK(batch);
    EXPECT_EQ(batch->draw_number(), i);
    if (i % 3 == 2) {
      EXPECT_STATUS(kResourceExhausted, (*sampler)->Next(), "(prefetch 8)");
    }
  }
}

// 2^64 bytes and a multiple of them are no 0 bytes.
TEST_F(DatabaseBudgetTest, BatchesLargerThanAnyNumberAreRefusedByName) {
  const int64_t most = int64_t{1} << 23;
  TableSpec spec = WideSpec();
  const Extent extent{.before = most, .length = most, .after = 0};
  spec.priority_tables = {WindowSpec("window", extent), WindowSpec("whole")};
  spec.priority_tables[0].window.left = EdgeRule::kPad;
  spec.priority_tables[0].window.right = EdgeRule::kPad;
  spec.priority_tables[1].item = ItemKind::kTrajectory;
  Create(spec);
  ASSERT_OK(AppendWide(1, End::kTerminated));
  // 2^2 items of 2^23 rows, each with a stack of 2^23 rows of 2^16 bytes.
  SamplerOptions options{.batch = 4, .views = {{.column = "x", .name = "v"}}};
  options.views[0].rows.count = most;
  options.views[0].stack = most;
  EXPECT_STATUS(kInvalidArgument, priority("window")->NewSampler(options),
                "view 'v' of priority table 'window' shows 4 items with 8388608 entries of "
                "549755813888 bytes; expected at most 17592186044416");
  const auto refused = [&](const char* name, BatchLayout layout, const char* what) {
    options.layout = layout;
    const auto sampler = priority(name)->NewSampler(options);
    ASSERT_OK(sampler);
    EXPECT_STATUS(kResourceExhausted, (*sampler)->Next(), what);
    EXPECT_LT(database_->Stats().batches.used_bytes, 4096u);
  };
  refused("whole", BatchLayout::kPadded, "view 'v': 4 x 8388608 entries of 549755813888");
  refused("window", BatchLayout::kPacked, "entries of 549755813888 bytes do not fit the batch");
}

TEST_F(DatabaseBudgetTest, WhatABatchSaysOfItsItemsCounts) {
  OpenWithOneMiBOfBatches();
  auto many = priority("per")->NewSampler({.batch = 1 << 20});
  ASSERT_OK(many);
  EXPECT_STATUS(kResourceExhausted, (*many)->Next(), "the batch budget of 1048576 bytes");
  EXPECT_EQ(database_->Stats().batches.used_bytes, 0u);
  auto few = priority("per")->NewSampler({.batch = 1000});
  {
    const auto batch = (*few)->Next();
    ASSERT_OK(batch);
    EXPECT_GT(database_->Stats().batches.used_bytes, 1000u * 80);
  }
  few->reset();
  EXPECT_EQ(database_->Stats().batches.used_bytes, 0u);
}

TEST_F(DatabaseBudgetTest, TablesThatCannotFitAreRefused) {
  options_.budgets.frames_bytes = 4 * kBudgetMiB;
  options_.resident = true;
  OpenEmpty();
  TableSpec spec = WideSpec();
  spec.bytes_max = 8 * kBudgetMiB;
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "of the frame budget of 4194304");
  spec.bytes_max = 1000;
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "1000 bytes");
  spec.bytes_max = 0;
  spec.steps_max = 1000;
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "1000 steps");
  spec.steps_max = 0;
  spec.columns[0].shape = {1 << 20};
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "ring_bytes");
  EXPECT_TRUE(database_->Tables().empty());
}

TEST_F(DatabaseBudgetTest, PrefaultedFramesAreTheSameFrames) {
  options_.prefault = true;
  OpenEmpty();
  Create(StepSpec());
  Append(0, 10);
  EXPECT_EQ(Numbers(1), testing::Count(0, 10));
}

}  // namespace
}  // namespace geardb
