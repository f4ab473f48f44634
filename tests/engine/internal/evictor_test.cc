// A store with more data than memory: pages lose their frames, and what is shown of them is what
// was stored, whoever shows it.
#include "engine/internal/evictor.h"

#include <set>

#include "tests/engine/frames_fixture.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/files.h"

namespace geardb {
namespace {

using EvictorTest = FramesTest;

TEST_F(EvictorTest, AppendsGoOnBeyondTheFrameBudget) {
  for (int i = 0; i < 300; ++i) Add(1 + i % 11, 16);
  EXPECT_GT(Frames().dropped, 0u);
  EXPECT_LE(database_->Stats().frames.used_bytes, database_->Stats().frames.limit_bytes);
  EXPECT_GT(table_->Stats().frame_bytes, database_->Stats().frames.limit_bytes);
  ExpectAll();
  EXPECT_GT(database_->Stats().log_page_reads, 0u);
  Again();
  ExpectAll();
}

TEST_F(EvictorTest, ATableIsMadeWhereOthersHaveAllFrames) {
  for (int i = 0; i < 300; ++i) Add(8, 8);
  TableSpec spec = FrameSpec();
  spec.name = "other";
  spec.columns[0].shape = {2 * kFrameBytes};
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("frames"));
  ExpectAll();
}

TEST_F(EvictorTest, PagesInManyPiecesComeBack) {
  for (int i = 0; i < 200; ++i) Add(1 + i % 13, 1 + i % 3);
  EXPECT_GT(Frames().dropped, 0u);
  ExpectAll();
  Again();
  ExpectAll();
  DropAll();
  ExpectAll();
}

TEST_F(EvictorTest, DrawsShowWhatWasStored) {
  for (int i = 0; i < 250; ++i) Add(2 + i % 9, 1 + i % 8);
  ExpectDraws(0, 60);
  ExpectDraws(4, 60);
  EXPECT_GT(Frames().misses, 0u);
  EXPECT_GT(Frames().hits, 0u);
  Again();
  ExpectDraws(3, 20);
}

// Each column of each view made room for the page anew, at others' cost.
TEST_F(EvictorTest, ThereIsRoomForAPageHoweverManyRowsOfItAreWanted) {
  const TrajectoryId id = Add(4, 4);
  const auto core = testing::CoreOf(*database_);
  ASSERT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
  DropAll();
  engine::PageWaits waits;
  {
    engine::TableState& state = *core->AllTables()[0]->state;
    MutexLock lock(&state.mutex);
    const EpochRegistry::Guard guard = core->epochs.Enter();
    const Lpn lpn = state.trajectories().record(state.trajectories().FindById(id)).head_lpn;
    for (uint32_t row = 0; row < 4; ++row) (void)state.RowToRead(0, lpn, row, &waits);
    ASSERT_EQ(waits.size(), 4u);
    const engine::Evictor::Wanted wanted = engine::Evictor::FramesOf(waits);
    ASSERT_EQ(wanted.size(), 1u);
    EXPECT_EQ(wanted.begin()->second, 1u);
  }
  EXPECT_OK(waits.Wait());
}

// It kept two thirds of the frames for good, however little was read of it.
TEST_F(EvictorTest, ATableOfWhichNothingIsReadGivesItsFramesToOneThatIs) {
  TableSpec spec = FrameSpec();
  spec.name = "idle";
  ASSERT_OK_AND_ASSIGN(const auto idle, database_->CreateTable(spec));
  const auto read = std::exchange(table_, idle);
  ASSERT_OK_AND_ASSIGN(writer_, idle->NewWriter({.lanes = 2}));
  for (int i = 0; i < 200; ++i) Add(4, 4);
  table_ = read;
  ASSERT_OK_AND_ASSIGN(writer_, read->NewWriter({.lanes = 2}));
  numbers_.clear();
  for (int i = 0; i < 400; ++i) Add(4, 4);
  ExpectDraws(2, 300);
  EXPECT_LT(idle->Stats().frames.resident_bytes, uint64_t{1} << 20);
  EXPECT_GT(read->Stats().frames.resident_bytes, uint64_t{2} << 20);
}

TEST_F(EvictorTest, WithoutThreadsWhoeverWaitsReads) {
  options_.background = false;
  Again();
  for (int i = 0; i < 200; ++i) Add(2 + i % 9, 16);
  ExpectAll();
  ExpectDraws(2, 30);
}

TEST_F(EvictorTest, APatchOfDroppedPagesKeepsWhatItDoesNotName) {
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(Add(9, 3));
  EXPECT_GT(DropAll(), 0u);
  const std::vector<float> rewards = {-1, -2, -3};
  const std::vector<float> targets = {5, 6, 7};
  for (const TrajectoryId id : ids) {
    const RowSpan reward_rows{id, 3, 3};
    const ColumnValue reward{"reward", TensorView::Of(std::span<const float>(rewards))};
    ASSERT_OK(table_->Patch({&reward_rows, 1}, {&reward, 1}));
    const RowSpan target_rows{id, 0, 3};
    const ColumnValue target{"target", TensorView::Of(std::span<const float>(targets))};
    ASSERT_OK(table_->Patch({&target_rows, 1}, {&target, 1}));
  }
  const auto check = [&] {
    ExpectAll();
    for (const TrajectoryId id : ids) {
      const std::string_view columns[] = {"reward", "target"};
      ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id, columns, {}));
      const auto first = static_cast<float>(numbers_[id] * 100);
      const std::vector<float> expected = {first, first + 1, first + 2, -1,       -2,
                                           -3,    first + 6, first + 7, first + 8};
      const auto read = rows[0].view().values<float>();
      EXPECT_EQ(std::vector<float>(read.begin(), read.end()), expected);
      const auto late = rows[1].view().values<float>();
      EXPECT_EQ(std::vector<float>(late.begin(), late.end()),
                (std::vector<float>{5, 6, 7, -1, -1, -1, -1, -1, -1}));
    }
  };
  check();
  EXPECT_GT(DropAll(), 0u);
  check();
  Again();
  check();
}

TEST_F(EvictorTest, AnOrphanGoesOnInAPageThatWasDropped) {
  const TrajectoryId id = AddRows(0, 0, 6, End::kGo);
  numbers_[id] = 0;
  next_ = 1;
  EXPECT_EQ(DropAll(), 1u);  // The last page is its writer's.
  Again();
  EXPECT_EQ(DropAll(), 2u);
  ASSERT_OK(writer_->Resume(id));
  EXPECT_EQ(DropAll(), 0u);
  EXPECT_EQ(AddRows(0, 6, 5, End::kTerminated), id);
  ExpectAll();
  Again();
  ExpectAll();
}

TEST_F(EvictorTest, StatisticsReadPagesByTheWay) {
  double sum = 0;
  for (int i = 0; i < 100; ++i) Add(7, 7);
  for (int64_t number = 0; number < 100; ++number) {
    for (int64_t row = 0; row < 7; ++row) sum += static_cast<double>(number * 100 + row);
  }
  DropAll();
  ASSERT_OK_AND_ASSIGN(const ColumnStatistics statistics, table_->Statistics("reward"));
  EXPECT_EQ(statistics.count, 700u);
  EXPECT_DOUBLE_EQ(statistics.mean, sum / 700);
  EXPECT_EQ(DropAll(), 0u);  // None was left in memory.
}

TEST_F(EvictorTest, NStepReturnsReadPages) {
  for (int i = 0; i < 100; ++i) Add(9, 5);
  PriorityTableSpec spec = testing::WindowSpec("returns", {.length = 1, .after = 3});
  spec.selector = SelectorKind::kUniform;
  ASSERT_OK_AND_ASSIGN(const auto priority, table_->CreatePriorityTable(spec));
  ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      priority->NewSampler({.batch = 16,
                            .views = {{.column = "frame"}},
                            .n_step = NStep{.reward_column = "reward", .n = 3, .gamma = 1}}));
  for (int i = 0; i < 10; ++i) {
    DropAll();
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    const auto returns = batch["nstep.return"].values<float>();
    for (size_t item = 0; item < 16; ++item) {
      float expected = 0;
      for (int64_t row = batch.anchors()[item];
           row < std::min<int64_t>(batch.anchors()[item] + 3, 9); ++row) {
        expected += static_cast<float>(numbers_[batch.trajectory_ids()[item]] * 100 + row);
      }
      EXPECT_EQ(returns[item], expected);
    }
  }
}

TEST_F(EvictorTest, WhereEveryPageStaysAFullBudgetRefuses) {
  options_.resident = true;
  OpenEmpty();
  Make();
  numbers_.clear();
  std::vector<uint8_t> bytes(16 * kFrameBytes);
  Status status;
  for (int i = 0; i < 300 && status.ok(); ++i) {
    const std::vector<float> rewards(16);
    const std::vector<ColumnValue> values = {
        {"frame", TensorView(bytes.data(), DType::kU8, Shape({16, kFrameBytes}))},
        {"reward", TensorView::Of(std::span<const float>(rewards))}};
    status = writer_->AppendSteps(values, {.end = End::kTerminated}).status();
  }
  EXPECT_STATUS(kResourceExhausted, status, "budgets.frames_bytes");
  EXPECT_EQ(Frames().dropped, 0u);
}

TEST_F(EvictorTest, ADamagedPageCostsItsTrajectory) {
  const TrajectoryId good = Add(4, 4);
  const TrajectoryId bad = Add(4, 4);
  ASSERT_EQ(DropAll(), 2u);
  // A byte of the second one's frames, in the log's segment.
  std::string wanted;
  for (int64_t at = 0; at < 64; ++at) wanted.push_back(static_cast<char>(ByteOf(1, 2, at)));
  int damaged = 0;
  for (auto [path, bytes] : testing::FilesOf(dir_->path())) {
    const size_t found = bytes.find(wanted);
    if (path.find("segment-") == std::string::npos || found == std::string::npos) continue;
    bytes[found + 10] ^= 1;
    testing::WriteBytes(path, bytes);
    ++damaged;
  }
  ASSERT_EQ(damaged, 1);
  const std::string_view column = "frame";
  EXPECT_STATUS(kCorruption, table_->Read(bad, {&column, 1}, {}),
                "page 0 of trajectory " + std::to_string(bad) + " of table 'frames'");
  ASSERT_OK_AND_ASSIGN(const auto priority, table_->OpenPriorityTable("all"));
  ASSERT_OK_AND_ASSIGN(const auto sampler,
                       priority->NewSampler({.batch = 16, .views = {{.column = "frame"}}}));
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) status = sampler->Next().status();
  EXPECT_STATUS(kCorruption, status, "the trajectory was removed");
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    for (const TrajectoryId id : batch.trajectory_ids()) EXPECT_EQ(id, good);
  }
}

// A learner was told of one with each call, and got no batch before the last of them.
TEST_F(EvictorTest, AllDamagedTrajectoriesOfABatchAreToldAtOnce) {
  const TrajectoryId good = Add(4, 4);
  std::set<TrajectoryId> bad;
  for (int i = 0; i < 5; ++i) bad.insert(Add(4, 4));
  ASSERT_EQ(DropAll(), 6u);
  for (auto [path, bytes] : testing::FilesOf(dir_->path())) {
    if (path.find("segment-") == std::string::npos) continue;
    for (const TrajectoryId id : bad) {
      std::string wanted;
      for (int64_t at = 0; at < 64; ++at) {
        wanted.push_back(static_cast<char>(ByteOf(numbers_[id], 2, at)));
      }
      const size_t found = bytes.find(wanted);
      if (found != std::string::npos) bytes[found + 10] ^= 1;
    }
    testing::WriteBytes(path, bytes);
  }
  ASSERT_OK_AND_ASSIGN(const auto priority, table_->OpenPriorityTable("all"));
  ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      priority->NewSampler({.batch = 256, .views = {{.column = "frame"}}, .prefetch = 0}));
  // So many rows show each of six but once in 10^20 draws.
  const Status status = sampler->Next().status();
  EXPECT_STATUS(kCorruption, status, "so it is with others of the batch: 'frames'/");
  for (const TrajectoryId id : bad) {
    EXPECT_NE(status.message().find(std::to_string(id)), std::string::npos) << id;
    EXPECT_STATUS(kNotFound, table_->Find(id), "");
  }
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  for (const TrajectoryId id : batch.trajectory_ids()) EXPECT_EQ(id, good);
}

}  // namespace
}  // namespace geardb
