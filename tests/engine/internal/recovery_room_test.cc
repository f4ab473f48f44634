// What a database that is opened finds frames for: it has the budget of the one that wrote the log.
#include "tests/engine/internal/cleaner_fixture.h"
#include "tests/engine/values_fixture.h"
#include "tests/testing/files.h"

namespace geardb {
namespace {

class RecoveryRoomTest : public CleanerStoreTest {
 protected:
  void SetUp() override {
    FramesTest::SetUp();
    options_.log_bytes_max = uint64_t{256} << 20;
    Again();
  }
  /// As a crash would leave it.
  void OpenAfterCrash() {
    auto copy = testing::CopyOpenStore(dir_->path());
    Close();
    dir_ = std::move(copy);
    Open();
  }
  /// As a power loss that leaves their first MiB, and the ring.
  void LoseSegments() const {
    for (const auto& [path, bytes] : testing::FilesOf(dir_->path() + "/log")) {
      if (path.find("segment-") == std::string::npos) continue;
      if (bytes.find_first_not_of('\0') >= 64) continue;  // A spare one.
      std::string lost = bytes;
      std::fill(lost.begin() + (1 << 20), lost.end(), '\0');
      testing::WriteBytes(path, lost);
    }
  }
};

// Tables of an image asked nobody to drop pages for the frame of a new group's defaults.
TEST_F(RecoveryRoomTest, ColumnsThatCameBehindAnImageAndMoreThanTheBudget) {
  for (int i = 0; i < 100; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  for (int i = 0; i < 400; ++i) Add(8, 8);
  const Column wide = {.name = "wide", .shape = {2048}, .default_value = 2};
  ASSERT_OK(table_->AddColumns(std::span(&wide, 1)));
  Again();
  EXPECT_GT(database_->recovery().image, 0u);
  ASSERT_OK_AND_ASSIGN(const auto statistics, table_->Statistics("wide[2047]"));
  EXPECT_EQ(statistics.count, 500u * 8);
  EXPECT_EQ(statistics.min, 2);
  ExpectAll();
}

// The last pages of all that was ever open and left by a crash kept their frames until the log's
// end, though their writers had gone.
TEST_F(RecoveryRoomTest, WhatManyWritersHadOpenWhenTheyDied) {
  constexpr uint32_t kLanes = 100;
  for (int session = 0; session < 6; ++session) {
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = kLanes}));
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const int64_t number = next_++;
      numbers_[AddRows(number, 0, 1, End::kGo, lane)] = number;
    }
    OpenAfterCrash();
    OpenAgain("frames");
  }
  EXPECT_EQ(table_->Count(), 6u * kLanes);
  ExpectAll();
  // They go on, too.
  const TrajectoryId first = numbers_.begin()->first;
  ASSERT_OK(writer_->Resume(first));
  AddRows(numbers_[first], 1, 2, End::kTerminated);
  ExpectAll();
}

// Room for the next piece was made by dropping a page that had just got rows: the log gave back
// what it had been before, and the trajectory was taken for damaged.
TEST_F(RecoveryRoomTest, PagesOfClosedTrajectoriesThatGoOnAsOthersBegin) {
  constexpr size_t kPatched = 60, kBytes = 20'000, kMany = 1 << 20;
  options_.background = false;
  options_.budgets.frames_bytes = 64 << 20;
  options_.ring_bytes = options_.segment_bytes = 32 << 20;  // The patches stay in the ring.
  OpenEmpty();
  TableSpec spec = testing::TextSpec();
  spec.columns[1].expected_rows = 16 << 10;
  Create(spec);
  std::map<TrajectoryId, testing::Bytes> texts;
  for (int i = 0; i < 300; ++i) {
    const int64_t row = i;
    const testing::Bytes text(kBytes, static_cast<uint8_t>(i));
    ASSERT_OK_AND_ASSIGN(const Appended appended,
                         writer_->Append({{"row", TensorView::Scalar(row)},
                                          {"text", TensorView::Of(std::span<const uint8_t>(text))}},
                                         {.end = End::kTerminated}));
    texts[appended.id] = text;
  }
  ASSERT_OK(database_->Sync());
  const auto patch = [&](const std::map<TrajectoryId, testing::Bytes>& with) {
    std::vector<RowSpan> spans;
    testing::Bytes joined;
    std::vector<uint64_t> offsets = {0};
    for (const auto& [id, text] : with) {
      spans.push_back({.id = id, .first_row = 0, .rows = 1});
      joined.insert(joined.end(), text.begin(), text.end());
      offsets.push_back(joined.size());
      texts[id] = text;
    }
    const ColumnValue value = {"text", TensorView::Of(std::span<const uint8_t>(joined)), offsets};
    ASSERT_OK(table_->Patch(spans, {&value, 1}, {.ack = Ack::kLog}));
  };
  for (uint8_t round = 0; round < 2; ++round) {
    std::map<TrajectoryId, testing::Bytes> with;
    for (size_t i = 0; i < kPatched; ++i) {
      with[2 + 4 * i] = testing::Bytes(3, static_cast<uint8_t>(200 + round));
    }
    with[300] = testing::Bytes(kMany, round);
    patch(with);
  }
  options_.budgets.frames_bytes = 6 << 20;
  OpenAfterCrash();
  EXPECT_TRUE(database_->recovery().damaged_trajectories.empty());
  OpenAgain("values");
  for (const auto& [id, text] : texts) {
    const std::string_view column = "text";
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, std::span(&column, 1), {}));
    ASSERT_EQ(read[0].bytes.size(), text.size()) << id;
    EXPECT_EQ(std::memcmp(read[0].bytes.data(), text.data(), text.size()), 0) << id;
  }
}

// A replay knows no session's end: the last pages of all of them kept their frames in a group that
// had been dropped.
TEST_F(RecoveryRoomTest, AGroupThatIsDroppedAfterManySessions) {
  constexpr uint32_t kLanes = 60;
  TableSpec spec = FrameSpec();
  spec.name = "wide";
  spec.groups.push_back({.name = "g"});
  spec.columns[0].group = "g";
  Create(spec);
  const std::vector<uint8_t> frame(kFrameBytes, 5);
  for (int session = 0; session < 7; ++session) {
    OpenAgain("wide", {.lanes = kLanes});
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      ASSERT_OK(writer_->Append({{"frame", TensorView::Of(std::span<const uint8_t>(frame))},
                                 {"reward", TensorView::Scalar(1.0f)}},
                                {.lane = lane}));
    }
    OpenAfterCrash();
  }
  OpenAgain("wide", {.lanes = kLanes});
  const std::string_view dropped = "frame";
  ASSERT_OK(table_->DropColumns({&dropped, 1}));
  const Column wide = {.name = "wide", .shape = {8192}, .default_value = 3};
  ASSERT_OK(table_->AddColumns(std::span(&wide, 1)));
  OpenAfterCrash();
  OpenAgain("wide", {.lanes = kLanes});
  EXPECT_EQ(table_->Count(), 7u * kLanes);
  ASSERT_OK_AND_ASSIGN(const auto statistics, table_->Statistics("wide[8191]"));
  EXPECT_EQ(statistics.min, 3);
}

// What writers appended to a group that had been dropped before took frames in each replay, and no
// record of their sessions gave them back.
TEST_F(RecoveryRoomTest, AGroupThatWritersGoOnInWhenItIsDropped) {
  constexpr uint32_t kLanes = 60;
  TableSpec spec = FrameSpec();
  spec.name = "wide";
  spec.columns.push_back(
      {.name = "w0", .dtype = DType::kU8, .shape = {kFrameBytes}, .group = "late"});
  spec.groups[0].late = false;
  spec.columns.erase(spec.columns.begin());
  Create(spec);
  const std::vector<uint8_t> frame(kFrameBytes, 5);
  for (int session = 0; session < 8; ++session) {
    OpenAgain("wide", {.lanes = kLanes});
    const std::string now = "w" + std::to_string(session);
    const auto append = [&](const std::string& column) {
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        ASSERT_OK(writer_->Append({{column, TensorView::Of(std::span<const uint8_t>(frame))},
                                   {"reward", TensorView::Scalar(1.0f)},
                                   {"target", TensorView::Scalar(2.0f)}},
                                  {.lane = lane}));
      }
    };
    ASSERT_NO_FATAL_FAILURE(append(now));
    const std::string_view dropped = now;
    ASSERT_OK(table_->DropColumns({&dropped, 1}));
    const Column next = {.name = "w" + std::to_string(session + 1),
                         .dtype = DType::kU8,
                         .shape = {kFrameBytes},
                         .default_value = 3};
    ASSERT_OK(table_->AddColumns(std::span(&next, 1)));
    ASSERT_NO_FATAL_FAILURE(append(now));
    ASSERT_NO_FATAL_FAILURE(OpenAfterCrash());
  }
  OpenAgain("wide", {.lanes = kLanes});
  EXPECT_EQ(table_->Count(), 8u * kLanes);
  EXPECT_EQ(table_->StepCount(), 16u * kLanes);
}

// What a page that goes on is read into was asked for as by a call that comes, which may not take
// what is kept for another table's bound.
TEST_F(RecoveryRoomTest, LanesThatWereThereBeforeATableWithABound) {
  constexpr uint32_t kLanes = 180;
  options_.resident = true;
  options_.budgets.frames_bytes = 16 << 20;
  OpenEmpty();
  TableSpec spec;
  spec.name = "lanes";
  spec.columns = {{.name = "x", .shape = {1024}}};
  spec.steps_per_page = 16;
  Create(spec);
  OpenAgain("lanes", {.lanes = kLanes});
  const std::vector<float> rows(size_t{kLanes} * 1024, 1);
  const std::vector<End> ends(kLanes, End::kGo);
  const auto append = [&] {
    return writer_
        ->AppendLanes({{"x", TensorView(rows.data(), DType::kF32, Shape({kLanes, 1024}))}},
                      {.ends = ends})
        .status();
  };
  ASSERT_OK(append());
  spec.name = "bound";
  spec.bytes_max = 6 << 20;
  ASSERT_OK(database_->CreateTable(spec));
  ASSERT_OK(CleanAll());
  ASSERT_OK(append());
  ASSERT_OK(database_->Sync());
  OpenAfterCrash();
  OpenAgain("lanes", {.lanes = kLanes});
  EXPECT_EQ(table_->StepCount(), 2u * kLanes);
}

// Pages of the ring alone cannot leave their frames, and a ring that outlives its segments has more
// of them than there ever were frames.
TEST_F(RecoveryRoomTest, APowerLossThatTookTheSegmentsAndLeftTheRing) {
  options_.cold_tier = false;
  options_.ring_bytes = options_.segment_bytes = 32 << 20;
  options_.sync_interval_ms = 600'000;
  OpenEmpty();
  Make();
  for (int i = 0; i < 60; ++i) Add(64, 64);  // 15 MiB, with 6 MiB of frames.
  EXPECT_GT(Frames().dropped, 0u);
  auto copy = testing::CopyOpenStore(dir_->path());
  Close();
  dir_ = std::move(copy);
  LoseSegments();
  Open();
  const RecoveryReport report = database_->recovery();
  EXPECT_EQ(report.clean, report.note.empty()) << report.note;  // An idle log is sealed.
  EXPECT_EQ(report.ring_records, 0u) << "all had room at the first try";
  EXPECT_TRUE(report.damaged_trajectories.empty());
  OpenAgain("frames");
  EXPECT_EQ(table_->Count(), 60u);
  ExpectAll();
  Again();
  EXPECT_TRUE(database_->recovery().clean);
  ExpectAll();
}

class RefusedOpenTest : public RecoveryRoomTest {
 protected:
  /// Columns whose defaults take more than the frames of an open with `kFew`, and a crash.
  void WriteWideColumns() {
    options_.background = false;  // Nothing is sealed but by a close.
    options_.cold_tier = false;
    options_.ring_bytes = options_.segment_bytes = 32 << 20;
    options_.budgets.frames_bytes = 64 << 20;
    OpenEmpty();
    Make();
    for (int i = 0; i < 20; ++i) Add(16, 16);
    std::vector<Column> wide;
    for (int i = 0; i < 30; ++i) {
      wide.push_back({.name = "wide" + std::to_string(i), .shape = {16384}});
    }
    for (const Column& column : wide) ASSERT_OK(table_->AddColumns({&column, 1}));
    ASSERT_OK(database_->Sync());
    auto copy = testing::CopyOpenStore(dir_->path());
    Close();
    dir_ = std::move(copy);
  }
  Status OpenWith(uint64_t frames_bytes) {
    options_.budgets.frames_bytes = frames_bytes;
    auto opened = Database::Open(dir_->path(), options_);
    if (opened.ok()) database_ = std::move(*opened);
    return opened.status();
  }
  static constexpr uint64_t kFew = 6 << 20, kEnough = 64 << 20;
};

// It began another epoch: the next open took the log for one that had been closed.
TEST_F(RefusedOpenTest, LeavesALogWithoutARingAsItIs) {
  ASSERT_NO_FATAL_FAILURE(WriteWideColumns());
  const auto before = testing::FilesOf(dir_->path() + "/log");
  const Status refused = OpenWith(kFew);
  ASSERT_STATUS(kResourceExhausted, refused, "frame");
  EXPECT_EQ(refused.message().find("cut at LSN"), std::string_view::npos) << refused;
  EXPECT_TRUE(testing::FilesOf(dir_->path() + "/log") == before);
  ASSERT_OK(OpenWith(kEnough));
  EXPECT_FALSE(database_->recovery().clean);
  EXPECT_NE(database_->recovery().note.find("cut at LSN"), std::string::npos);
  OpenAgain("frames");
  ExpectAll();
}

TEST_F(RefusedOpenTest, SaysWhereItHasCutTheLog) {
  ASSERT_NO_FATAL_FAILURE(WriteWideColumns());
  LoseSegments();
  EXPECT_STATUS(kResourceExhausted, OpenWith(kFew), "' was cut at LSN");
  ASSERT_OK(OpenWith(kEnough));
  OpenAgain("frames");
  ExpectAll();
}

}  // namespace
}  // namespace geardb
