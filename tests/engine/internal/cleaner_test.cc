// A store with more data than its log may hold: the cleaner moves pages to the cold store, and the
// index with them; what is there stays there.
#include "engine/internal/cleaner.h"

#include "tests/engine/internal/cleaner_fixture.h"
#include "tests/testing/files.h"

namespace geardb {
namespace {

using CleanerTest = CleanerStoreTest;

TEST_F(CleanerTest, ALogOfAFewSegmentsHoldsMuchMore) {
  for (int i = 0; i < 1200; ++i) Add(1 + i % 14, 1 + i % 16);
  EXPECT_GT(Cleaned().segments, 8u);
  EXPECT_OK(Cleaned().last);
  EXPECT_GT(table_->Stats().frame_bytes, 3 * options_.log_bytes_max);
  ExpectAll();
  EXPECT_GT(database_->Stats().cold_page_reads, 0u);
  ExpectDraws(2, 40);
  Again();
  EXPECT_GT(database_->recovery().image, 0u);
  EXPECT_TRUE(database_->recovery().clean);
  EXPECT_LT(database_->recovery().bytes, options_.log_bytes_max);
  ExpectAll();
  ExpectDraws(0, 40);
  for (int i = 0; i < 300; ++i) Add(1 + i % 14, 1 + i % 5);
  ExpectAll();
  Again();
  ExpectAll();
}

TEST_F(CleanerTest, WithoutThreadsWhoeverFindsTheLogFullCleans) {
  options_.background = false;
  Again();
  for (int i = 0; i < 500; ++i) Add(1 + i % 14, 1 + i % 16);
  EXPECT_GT(Cleaned().segments, 4u);
  ExpectAll();
  Again();
  ExpectAll();
}

// Each was a read of 4 KiB of its own, for which who appended to a full log waited.
TEST_F(CleanerTest, ShortPagesOfTheLogShareReadsOfItsFiles) {
  options_.background = false;
  Again();
  TableSpec spec{.name = "short"};
  spec.columns = {{.name = "x", .dtype = DType::kU64}};
  spec.steps_per_page = 1;
  ASSERT_OK_AND_ASSIGN(const auto table, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
  constexpr uint64_t kPages = 1000;
  for (uint64_t i = 0; i < kPages; ++i) {
    const std::vector<uint64_t> x = {i};
    ASSERT_OK(
        writer->AppendTrajectory({{"x", TensorView::Of<uint64_t>(x)}}, {.end = End::kTerminated}));
  }
  for (int i = 0; i < 120; ++i) Add(4, 4);  // Until their segment may go.
  const auto core = testing::CoreOf(*database_);
  ASSERT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
  DropAll();
  const uint64_t pages_before = core->page_source->log_reads();
  const uint64_t reads_before = core->page_source->log_file_reads();
  ASSERT_OK(CleanAll());
  const uint64_t pages = core->page_source->log_reads() - pages_before;
  ASSERT_GE(pages, kPages);
  EXPECT_LT(core->page_source->log_file_reads() - reads_before, pages / 4);
}

// As a batch that was given up leaves a page; the next who wants it looked for it in a segment that
// was gone by then.
TEST_F(CleanerTest, APassThatGivesNothingBackIsFruitlessUntilMoreIsLogged) {
  options_.background = false;
  Again();
  const auto core = testing::CoreOf(*database_);
  for (int i = 0; i < 100; ++i) Add(4, 4);
  ASSERT_OK(CleanAll());
  EXPECT_GT(Cleaned().segments, 0u);
  EXPECT_FALSE(core->cleaner->IsFruitless());
  ASSERT_OK(CleanAll());
  EXPECT_TRUE(core->cleaner->IsFruitless());
  core->cleaner->ForgetFruitless();  // Parts that held the log back were given up.
  EXPECT_FALSE(core->cleaner->IsFruitless());
  ASSERT_OK(core->cleaner->CleanNow(/*all=*/false));
  EXPECT_TRUE(core->cleaner->IsFruitless());
  Add(1, 1);
  EXPECT_FALSE(core->cleaner->IsFruitless());
}

TEST_F(CleanerTest, APageThatWasAskedForBeforeItMovedIsReadWhereItIs) {
  options_.background = false;  // Nobody reads it by itself.
  Again();
  const TrajectoryId id = Add(4, 4);
  const TrajectoryId of_pieces = Add(4, 1);
  for (int i = 0; i < 200; ++i) Add(4, 4);
  const auto core = testing::CoreOf(*database_);
  ASSERT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
  DropAll();
  {
    engine::PageWaits waits;
    engine::TableState& state = *core->AllTables()[0]->state;
    MutexLock lock(&state.mutex);
    const EpochRegistry::Guard guard = core->epochs.Enter();
    for (const TrajectoryId asked : {id, of_pieces}) {
      const Slot slot = state.trajectories().FindById(asked);
      (void)state.RowToRead(0, state.trajectories().record(slot).head_lpn, 0, &waits);
    }
    ASSERT_EQ(waits.size(), 2u);
  }
  ASSERT_OK(CleanAll());
  ASSERT_GT(Cleaned().segments, 0u);
  for (int i = 0; i < 400; ++i) Add(4, 4);  // The segments are written again.
  ExpectAll();
}

TEST_F(CleanerTest, TheIndexComesFromItsImage) {
  TableSpec spec = FrameSpec();
  spec.name = "index";
  spec.columns.push_back(
      {.name = "version", .dtype = DType::kU32, .kind = ColumnKind::kPerTrajectory});
  spec.priority_tables = {testing::WindowSpec("weights"), testing::WindowSpec("order")};
  spec.priority_tables[1].selector = SelectorKind::kFifo;
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  for (int i = 0; i < 60; ++i) Add(3 + i % 5, 2);
  ASSERT_OK_AND_ASSIGN(auto weights, table_->OpenPriorityTable("weights"));
  std::vector<float> priorities(weights->Count());
  for (size_t i = 0; i < priorities.size(); ++i) priorities[i] = static_cast<float>(i % 7);
  ASSERT_OK(weights->SetAll(priorities));
  ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{2, 5}));
  const auto describe = [&] {
    std::string text;
    for (const char* name : {"weights", "order"}) {
      const auto priority = table_->OpenPriorityTable(name).value();
      text += std::string(name) + " " + std::to_string(priority->Count()) + " " +
              std::to_string(priority->Stats().draws) + ":";
      for (const RowId& row : priority->Items()) {
        text += " " + std::to_string(row.id) + "/" + std::to_string(row.row) + "=" +
                std::to_string(priority->Priority(row).value());
      }
    }
    for (const TrajectoryRecord& record : table_->Scan({})) {
      text += " " + std::to_string(record.id) + ":" + std::to_string(record.rows_end) + "x" +
              std::to_string(record.times_sampled);
    }
    return text;
  };
  ASSERT_OK_AND_ASSIGN(auto sampler, weights->NewSampler({.batch = 8}));
  for (int i = 0; i < 5; ++i) ASSERT_OK(sampler->Next());
  sampler.reset();
  const std::string before = describe();
  ASSERT_OK(CleanAll());
  EXPECT_GT(Cleaned().image_bytes, 0u);
  EXPECT_EQ(describe(), before);
  weights.reset();
  Reopen();
  OpenAgain("index");
  EXPECT_GT(database_->recovery().image, 0u);
  EXPECT_EQ(describe(), before);
}

TEST_F(CleanerTest, OpenTrajectoriesGoOn) {
  const TrajectoryId id = AddRows(0, 0, 6, End::kGo, 1);
  numbers_[id] = 0;
  next_ = 1;
  for (int i = 0; i < 120; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  EXPECT_EQ(AddRows(0, 6, 3, End::kGo, 1), id);
  for (int i = 0; i < 120; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  ExpectAll();
  Again();
  ExpectAll();
  ASSERT_OK(writer_->Resume(id, 1));
  EXPECT_EQ(AddRows(0, 9, 5, End::kTerminated, 1), id);
  DropAll();
  ExpectAll();
  Again();
  ExpectAll();
}

TEST_F(CleanerTest, APassThatFailsIsNotMadeAgainWithEveryRecord) {
  const auto files = UseFaultFiles();
  for (int i = 0; i < 10; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  files->SetSpace(0);
  const uint64_t failed = Cleaned().failed;
  while (LogBytes() < options_.log_bytes_max - (256 << 10)) Add(1, 1);
  EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");  // Once one that is under way has ended.
  EXPECT_LE(Cleaned().failed - failed, 4u);
}

// The log has what the cold store could not write.
TEST_F(CleanerTest, AFullDiskIsNoErrorOfAClose) {
  const auto files = UseFaultFiles();
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  for (int i = 0; i < 60; ++i) Add(8, 8);
  // The reserve is as large as it has to be: what finds the disk full is what is written.
  auto* const store = testing::CoreOf(*database_)->cold->if_open();
  ASSERT_OK(store->CompactForSpace());
  ASSERT_OK(store->KeepReserve());
  files->SetSpace(0);
  EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
  EXPECT_STATUS(kResourceExhausted, store->status(), "full");
  EXPECT_OK(database_->Close());
  Again();
  EXPECT_TRUE(database_->recovery().clean);
  ExpectAll();
}

TEST_F(CleanerTest, AFifoTableThatFitsItsLogIsWrittenOnce) {
  TableSpec spec = FrameSpec();
  spec.name = "fifo";
  spec.bytes_max = 3 << 20;
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  for (int i = 0; i < 1500; ++i) Add(4, 4);
  EXPECT_GT(Cleaned().segments, 8u);
  EXPECT_GT(Cleaned().busy_us, 0u);
  EXPECT_EQ(Cleaned().pages, 0u);
}

TEST_F(CleanerTest, AFifoTableBeyondItsLogIsWrittenTwice) {
  TableSpec spec = FrameSpec();
  spec.name = "fifo";
  spec.bytes_max = 24 << 20;
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = 2}));
  for (int i = 0; i < 1500; ++i) Add(16, 16);
  ASSERT_OK(CleanAll());
  const DatabaseStats stats = database_->Stats();
  EXPECT_GT(stats.cleaner.page_bytes, 2 * spec.bytes_max);
  // Once more by flushes, and by compactions the keys alone, with the index.
  EXPECT_LT(stats.cold.compaction_bytes, stats.cleaner.page_bytes / 4 + stats.cleaner.image_bytes);
}

TEST_F(CleanerTest, PatchesOfColdPagesStay) {
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(Add(9, 3));
  ASSERT_OK(CleanAll());
  DropAll();
  const std::vector<float> targets = {5, 6, 7};
  const ColumnValue target{"target", TensorView::Of(std::span<const float>(targets))};
  for (const TrajectoryId id : ids) {
    const RowSpan rows{id, 0, 3};
    ASSERT_OK(table_->Patch({&rows, 1}, {&target, 1}));
  }
  const auto check = [&] {
    ExpectAll();
    for (const TrajectoryId id : ids) {
      const std::string_view column = "target";
      ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id, {&column, 1}, {}));
      const auto read = rows[0].view().values<float>();
      EXPECT_EQ(std::vector<float>(read.begin(), read.end()),
                (std::vector<float>{5, 6, 7, -1, -1, -1, -1, -1, -1}));
    }
  };
  check();
  ASSERT_OK(CleanAll());
  DropAll();
  check();
  Again();
  check();
}

// A patch in parts: the new start of the log lies between pieces of it and its record.
TEST_F(CleanerTest, PagesThatALongPatchFirstWroteStay) {
  TableSpec spec = FrameSpec();
  spec.name = "patched";
  spec.columns.push_back({.name = "shot", .dtype = DType::kU8, .shape = {kFrameBytes}});
  spec.columns.back().group = "late";
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  std::vector<RowSpan> rows;
  for (int i = 0; i < 100; ++i) rows.push_back({Add(4, 4), 0, 4});
  std::vector<uint8_t> bytes(400 * kFrameBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 251);
  const ColumnValue shots{"shot", TensorView(bytes.data(), DType::kU8, Shape({400, kFrameBytes}))};
  ASSERT_OK(table_->Patch(rows, {&shots, 1}));
  ASSERT_OK(CleanAll());
  const auto check = [&] {
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string_view column = "shot";
      ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(rows[i].id, {&column, 1}, {}));
      const auto shown = read[0].view().values<uint8_t>();
      ASSERT_TRUE(std::equal(shown.begin(), shown.end(),
                             bytes.data() + i * 4 * static_cast<size_t>(kFrameBytes)));
    }
  };
  DropAll();
  check();
  Reopen();
  OpenAgain("patched");
  for (int i = 0; i < 180; ++i) Add(8, 8);  // Over the segments that are free.
  check();
  ExpectAll();
}

// A group that came later begins behind the first row of its page, in a batch in parts: the new
// start of the log lies between a piece and the record.
TEST_F(CleanerTest, RowsThatALongBatchGivesANewGroupStay) {
  constexpr uint32_t kLanes = 100;
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = kLanes}));
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const TrajectoryId id = AddRows(lane, 0, 1, End::kGo, lane);
    numbers_[id] = lane;
  }
  writer_.reset();
  const Column shot{.name = "shot", .dtype = DType::kU8, .shape = {kFrameBytes}};
  ASSERT_OK(table_->AddColumns({&shot, 1}));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = kLanes}));
  std::vector<uint8_t> frames(kLanes * 2 * kFrameBytes);
  const float rewards[] = {1, 2};
  WriteBatch batch;
  for (const auto& [id, number] : numbers_) {
    const auto lane = static_cast<uint32_t>(number);
    ASSERT_OK(writer_->Resume(id, lane));
    uint8_t* const bytes = frames.data() + number * 2 * kFrameBytes;
    for (int64_t at = 0; at < 2 * kFrameBytes; ++at) {
      bytes[at] = ByteOf(number, 1 + at / kFrameBytes, at % kFrameBytes);
    }
    const TensorView two(bytes, DType::kU8, Shape({2, kFrameBytes}));
    const std::vector<ColumnValue> values = {
        {"frame", two}, {"shot", two}, {"reward", TensorView::Of(std::span<const float>(rewards))}};
    batch.AppendSteps(writer_.get(), values, {.lane = lane, .end = End::kTerminated});
  }
  ASSERT_OK(database_->Write(batch));
  ASSERT_OK(CleanAll());
  DropAll();
  const auto check = [&] {
    ExpectAll();
    for (const auto& [id, number] : numbers_) {
      const std::string_view column = "shot";
      ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, {&column, 1}, {}));
      const auto shown = read[0].view().values<uint8_t>();
      ASSERT_EQ(shown.size(), 3u * kFrameBytes);
      ASSERT_TRUE(std::all_of(shown.begin(), shown.begin() + kFrameBytes,
                              [](uint8_t byte) { return byte == 0; }));
      ASSERT_TRUE(std::equal(shown.begin() + kFrameBytes, shown.end(),
                             frames.data() + number * 2 * kFrameBytes));
    }
  };
  check();
  Again();
  TableSpec spec = FrameSpec();
  spec.name = "more";
  ASSERT_OK_AND_ASSIGN(const auto more, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, more->NewWriter({}));
  const auto of_batch = numbers_;
  for (int i = 0; i < 180; ++i) Add(8, 8);  // Over the segments that are free.
  numbers_ = of_batch;
  check();
}

// More segments than a pass keeps free by itself.
TEST_F(CleanerTest, ALargeCallGetsTheSegmentsThatItNeeds) {
  options_.budgets.frames_bytes = 32 << 20;
  Again();
  std::vector<RowSpan> rows;
  while (LogBytes() < uint64_t{23} << 18) rows.push_back({Add(4, 4), 0, 4});
  ASSERT_EQ(Cleaned().passes, 0u);
  rows.resize(200);
  Again();  // Nothing is known of how much comes while a pass is made.
  std::vector<uint8_t> bytes(rows.size() * 4 * kFrameBytes, 7);
  const ColumnValue frames{"frame",
                           TensorView(bytes.data(), DType::kU8,
                                      Shape({static_cast<int64_t>(rows.size()) * 4, kFrameBytes}))};
  ASSERT_OK(table_->Patch(rows, {&frames, 1}));
  for (const RowSpan& row : rows) numbers_.erase(row.id);
  ExpectAll();
}

// Passes followed one another without an end, each counted as one that gave segments back.
TEST_F(CleanerTest, WhatAChangeInPartsKeepsIsNotCountedAsGivenBack) {
  for (int i = 0; i < 40; ++i) Add(8, 8);
  const auto core = testing::CoreOf(*database_);
  std::multiset<Lsn>::iterator open;
  {
    MutexLock commit(&core->commit);
    open = core->open_groups.insert(core->log_released.load() + 64);
  }
  const uint64_t before = Cleaned().segments;
  ASSERT_OK(CleanAll());
  EXPECT_EQ(Cleaned().segments, before);
  {
    MutexLock commit(&core->commit);
    core->open_groups.erase(open);
  }
  ASSERT_OK(CleanAll());
  EXPECT_GT(Cleaned().segments, before);
  ExpectAll();
}

TEST_F(CleanerTest, AReadOnlyOpenSeesAllOfIt) {
  for (int i = 0; i < 400; ++i) Add(1 + i % 14, 1 + i % 16);
  options_.read_only = true;
  Reopen();
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("frames"));
  ExpectAll();
  EXPECT_GT(database_->Stats().cold_page_reads, 0u);
}

TEST_F(CleanerTest, ALogWithoutItsColdStoreIsRefused) {
  for (int i = 0; i < 400; ++i) Add(8, 8);
  Close();
  std::filesystem::remove_all(dir_->path() + "/cold");
  EXPECT_STATUS(kCorruption, Database::Open(dir_->path(), options_), "there is no cold store");
}

}  // namespace
}  // namespace geardb
