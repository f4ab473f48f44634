// Pages that get rows after the cleaner has moved them, or whose first rows lie in a part of a
// call: they lose their frames like others, and come back from the log and the cold store.
#include "tests/engine/internal/cleaner_fixture.h"

namespace geardb {
namespace {

class PagesThatGoOnTest : public CleanerStoreTest {
 protected:
  /// As a crash would leave it.
  void OpenAfterCrash() {
    auto copy = testing::CopyOpenStore(dir_->path());
    Close();
    dir_ = std::move(copy);
    Open();
    OpenAgain("frames", {.lanes = 2});
  }
  /// `count` trajectories of `rows` that anybody may resume.
  void AddOpen(int count, int64_t rows) {
    for (int i = 0; i < count; ++i) {
      const int64_t number = next_++;
      const TrajectoryId id = AddRows(number, 0, rows, End::kGo);
      numbers_[id] = number;
      ASSERT_OK(writer_->Detach());
    }
  }
  /// Each gets a row more.
  void GoOn(int64_t row) {
    for (const auto& [id, number] : numbers_) {
      ASSERT_OK(writer_->Resume(id));
      AddRows(number, row, 1, End::kGo);
      ASSERT_OK(writer_->Detach());
    }
  }
  void ExpectNothingStays() {
    ASSERT_OK(database_->Sync());
    DropAll();
    uint64_t framed = 0;
    for (const GroupPlaces& places : table_->Places()) framed += places.framed;
    EXPECT_EQ(framed, 0u);
  }
};

// Each kept its frame until the next pass, which came with the log's growth alone: with as many as
// there are frames, nobody could write any more.
TEST_F(PagesThatGoOnTest, RowsThatTheCleanerMovedAndThoseThatCameLater) {
  AddOpen(50, 5);
  ASSERT_OK(CleanAll());
  for (int64_t row = 5; row < 8; ++row) {
    GoOn(row);
    ExpectNothingStays();
    ExpectAll();
  }
  ASSERT_OK(CleanAll());
  ExpectNothingStays();
  ExpectAll();
}

TEST_F(PagesThatGoOnTest, TheyAreThereAfterACrashAndAnotherMove) {
  AddOpen(50, 5);
  ASSERT_OK(CleanAll());
  GoOn(5);
  OpenAfterCrash();
  ExpectNothingStays();
  ExpectAll();
  GoOn(6);
  ExpectNothingStays();
  ASSERT_OK(CleanAll());
  OpenAfterCrash();
  ExpectAll();
}

// What was patched is newer than what the cold store has, and what came behind the patch newer yet.
TEST_F(PagesThatGoOnTest, APatchBetweenTheMoveAndTheRows) {
  AddOpen(20, 5);
  ASSERT_OK(CleanAll());
  const std::vector<float> rewards = {-7};
  for (const auto& [id, number] : numbers_) {
    const RowSpan span = {.id = id, .first_row = 4, .rows = 1};
    const ColumnValue value = {"reward", TensorView::Of(std::span<const float>(rewards))};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  }
  GoOn(5);
  ExpectNothingStays();
  ExpectAll();
  for (const auto& [id, number] : numbers_) {
    const std::string_view column = "reward";
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, {&column, 1}, {}));
    const auto found = read[0].view().values<float>();
    EXPECT_EQ(found[3], static_cast<float>(number * 100 + 3));
    EXPECT_EQ(found[4], -7);
    EXPECT_EQ(found[5], static_cast<float>(number * 100 + 5));
  }
}

// A column group that came later has pages with rows that nobody gave it, between those of pieces.
TEST_F(PagesThatGoOnTest, AGroupThatCameLater) {
  AddOpen(20, 5);
  const Column wide = {.name = "wide", .shape = {64}, .default_value = 2};
  ASSERT_OK(table_->AddColumns(std::span(&wide, 1)));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = 2}));
  const std::vector<float> mine(64, 3);
  const std::vector<uint8_t> frame(kFrameBytes);
  const auto go_on = [&] {
    for (const auto& [id, number] : numbers_) {
      ASSERT_OK(writer_->Resume(id));
      ASSERT_OK(writer_->Append({{"frame", TensorView::Of(std::span<const uint8_t>(frame))},
                                 {"reward", TensorView::Scalar(1.0f)},
                                 {"wide", TensorView::Of(std::span<const float>(mine))}}));
      ASSERT_OK(writer_->Detach());
    }
  };
  go_on();
  ASSERT_OK(CleanAll());
  go_on();
  ExpectNothingStays();
  for (const auto& [id, number] : numbers_) {
    const std::string_view column = "wide";
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, {&column, 1}, {}));
    const auto found = read[0].view().values<float>();
    for (size_t row = 0; row < 7; ++row) EXPECT_EQ(found[row * 64 + 63], row < 5 ? 2 : 3) << row;
  }
}

class PagesThatGoOnConcurrentTest : public PagesThatGoOnTest {};

// A piece that the cold store has, too, was read again from a segment that had been given back in
// between: the page was taken for damaged, and its trajectory removed.
TEST_F(PagesThatGoOnConcurrentTest, ReadersBesidePassesThatGiveSegmentsBack) {
  AddOpen(40, 5);
  ASSERT_OK(CleanAll());
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      DropAll();
      ExpectAll();
    }
  });
  for (int64_t row = 5; row < 45; ++row) {
    GoOn(row);
    EXPECT_OK(CleanAll());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(table_->Count(), 40u);
}

class CallsInPartsTest : public PagesThatGoOnTest {
 protected:
  static constexpr uint32_t kLanes = 128;
  void SetUp() override {
    options_.log_bytes_max = uint64_t{256} << 20;
    options_.ring_bytes = options_.segment_bytes = 1 << 20;
    FramesTest::SetUp();
  }
  /// A row for each lane, in more than one record.
  Status AppendAll(int64_t row) {
    std::vector<uint8_t> bytes(size_t{kLanes} * kFrameBytes);
    std::vector<float> rewards(kLanes);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      rewards[static_cast<size_t>(lane)] = static_cast<float>(lane * 100 + row);
      for (int64_t at = 0; at < kFrameBytes; ++at) {
        bytes[static_cast<size_t>(lane * kFrameBytes + at)] = ByteOf(lane, row, at);
      }
    }
    const std::vector<End> ends(kLanes, End::kGo);
    const auto appended = writer_->AppendLanes(
        {{"frame", TensorView(bytes.data(), DType::kU8, Shape({kLanes, kFrameBytes}))},
         {"reward", TensorView::Of(std::span<const float>(rewards))}},
        {.ends = ends});
    GEARDB_RETURN_IF_ERROR(appended.status());
    for (int64_t lane = 0; row == 0 && lane < kLanes; ++lane) {
      numbers_[(*appended)[static_cast<size_t>(lane)].id] = lane;
    }
    return Status::Ok();
  }
};

// Once anything of the log had been given back, pages whose first rows lie in a part stayed in
// memory, there and in every open.
TEST_F(CallsInPartsTest, MoreThanTheFramesHoldAfterAPass) {
  for (int i = 0; i < 20; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  RemoveAll();
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = kLanes}));
  for (int64_t row = 0; row < 80; ++row) ASSERT_OK(AppendAll(row)) << row;
  ExpectAll();
  OpenAfterCrash();
  ExpectAll();
}

// Where a segment ended between the parts of a call, and was given back, the record was no longer
// read for its other parts: what they had was lost for every page that went on.
TEST_F(CallsInPartsTest, APassThatGivesTheFirstPartsBack) {
  next_ = 1000;  // Others than the lanes'.
  for (const uint64_t left : {100u << 10, 200u << 10, 300u << 10, 400u << 10}) {
    const auto core = testing::CoreOf(*database_);
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = 1}));
    while (options_.segment_bytes - core->log->end() % options_.segment_bytes > left) Add(1, 1);
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = kLanes}));
    const uint64_t begin = core->log->end();
    ASSERT_OK(AppendAll(0));
    ASSERT_OK(CleanAll());
    ASSERT_GT(core->log_released.load(), begin);
    ASSERT_LT(core->log_released.load(), core->log->end());
    for (uint32_t lane = 0; lane < kLanes; ++lane) AddRows(lane, 1, 1, End::kTerminated, lane);
    ExpectNothingStays();
    ExpectAll();
  }
  OpenAfterCrash();
  ExpectNothingStays();
  ExpectAll();
  ASSERT_OK(CleanAll());
  ExpectAll();
}

}  // namespace
}  // namespace geardb
