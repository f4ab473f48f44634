// What a database that is opened finds frames for: it has the budget of the one that wrote the log.
#include "tests/engine/internal/cleaner_fixture.h"
#include "tests/engine/values_fixture.h"

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

}  // namespace
}  // namespace geardb
