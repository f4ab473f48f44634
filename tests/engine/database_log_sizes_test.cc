// A log goes round with every pair of sizes that an open accepts.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/engine/frames_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

constexpr uint64_t kKiBOfSizes = uint64_t{1} << 10;

class DatabaseLogSizesTest : public FramesTest {
 protected:
  void SetUp() override {}
  /// Appends some times the log's size, a few rows at a time and in calls that need a segment
  /// nearly whole.
  void GoRound(int64_t rows) {
    OpenEmpty();
    numbers_.clear();
    Make();
    const uint64_t until = 5 * options_.log_bytes_max;
    while (database_->Stats().log_published < until && !HasFailure()) {
      Add(rows, rows);
      Add(2 * rows, 1);
    }
    EXPECT_GT(Frames().dropped + database_->Stats().cleaner.segments, 0u);
    EXPECT_LE(database_->Stats().log_segments_live * SegmentBytes(), options_.log_bytes_max);
    ExpectAll();
    Again();
    ExpectAll();
  }
  uint64_t SegmentBytes() const { return testing::CoreOf(*database_)->manifest.segment_bytes; }
};

TEST_F(DatabaseLogSizesTest, EveryPairThatIsAcceptedGoesRound) {
  options_.budgets.frames_bytes = 6 << 20;
  uint64_t pairs = 0;
  for (const uint64_t segment : {64 * kKiBOfSizes, 256 * kKiBOfSizes, 1024 * kKiBOfSizes}) {
    for (const uint64_t max : {segment, 2 * segment - 1, 2 * segment, 2 * segment + segment / 2,
                               3 * segment, 5 * segment + 1, 8 * segment}) {
      options_.segment_bytes = segment;
      options_.log_bytes_max = max;
      SCOPED_TRACE(std::to_string(segment) + " of " + std::to_string(max));
      if (max < 2 * segment) {
        EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->File("none"), options_),
                      "log_bytes_max is " + std::to_string(max) + "; expected at least " +
                          std::to_string(2 * segment));
        EXPECT_FALSE(std::filesystem::exists(dir_->File("none")));
        continue;
      }
      // A page of four rows has 16 KiB, and a record at most half of a segment.
      for (const uint64_t ring : {64 * kKiBOfSizes, 1024 * kKiBOfSizes}) {
        options_.ring_bytes = ring;
        if (std::min(ring / 4, segment / 2) <= 20 * kKiBOfSizes) continue;
        if (!testing::InShare(pairs++)) continue;
        GoRound(std::min<int64_t>(static_cast<int64_t>(segment / 2 / kFrameBytes), 24));
        if (HasFailure()) return;
      }
    }
  }
}

// An open of segments that are there names them.
TEST_F(DatabaseLogSizesTest, ABoundBelowTwoSegmentsThatAreThereIsRefused) {
  options_.segment_bytes = 256 * kKiBOfSizes;
  Open();
  Make();
  Close();
  options_.segment_bytes = 0;
  options_.log_bytes_max = 500 * kKiBOfSizes;
  EXPECT_STATUS(
      kInvalidArgument, Database::Open(dir_->path(), options_),
      "expected at least 524288, two segments of segment_bytes = 262144 in '" + dir_->path() + "'");
  // Without a cleaner nothing goes round, and one segment is what it is.
  options_.cold_tier = false;
  Open();
  options_.cold_tier = true;
  Close();
  options_.read_only = true;
  Open();
  options_.read_only = false;
  Close();
  options_.log_bytes_max = 512 * kKiBOfSizes;
  Open();
}

TEST_F(DatabaseLogSizesTest, SegmentsFollowTheBoundWhereNobodyNamesThem) {
  options_.segment_bytes = 0;
  options_.log_bytes_max = 1024 * kKiBOfSizes;
  options_.budgets.frames_bytes = 6 << 20;
  for (const uint64_t ring : {256 * kKiBOfSizes, 64 * 1024 * kKiBOfSizes}) {
    options_.ring_bytes = ring;
    GoRound(/*rows=*/8);
    EXPECT_EQ(SegmentBytes(), 128 * kKiBOfSizes);
  }
  options_.log_bytes_max = DatabaseOptions().log_bytes_max;
  OpenEmpty();
  EXPECT_EQ(SegmentBytes(), 64 * 1024 * kKiBOfSizes);
}

// Its records leave parts of segments unfilled: a log of which half is free has no room for a
// change of less than a half, and the cleaner has to make some though it has more than it keeps
// free.
TEST_F(DatabaseLogSizesTest, ChangesOfAThirdOfTheLogGoOn) {
  options_.segment_bytes = 512 * kKiBOfSizes;
  options_.log_bytes_max = 4096 * kKiBOfSizes;
  options_.ring_bytes = 64 * 1024 * kKiBOfSizes;
  options_.budgets.frames_bytes = 8 << 20;
  for (const bool background : {true, false}) {
    options_.background = background;
    OpenEmpty();
    TableSpec spec{.name = "blobs"};
    spec.columns = {{.name = "step"},
                    {.name = "blob", .dtype = DType::kU8, .kind = ColumnKind::kBlob}};
    ASSERT_OK_AND_ASSIGN(const auto table, database_->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    const std::vector<uint8_t> bytes(1'500'000, 7);
    const ColumnValue blob{"blob", TensorView::Of(std::span<const uint8_t>(bytes))};
    const float step = 1;
    for (int i = 0; i < 12; ++i) {
      ASSERT_OK(writer->Append({{"step", TensorView::Scalar(step)}},
                               {.end = End::kTerminated, .trajectory = {&blob, 1}}))
          << i;
    }
    EXPECT_LE(database_->Stats().log_segments_live * SegmentBytes(), options_.log_bytes_max);
    // One that takes all segments but the one that is written is refused by name, and does no harm.
    const std::vector<uint8_t> most(3'600'000, 7);
    const ColumnValue large{"blob", TensorView::Of(std::span<const uint8_t>(most))};
    EXPECT_STATUS(kResourceExhausted,
                  writer->Append({{"step", TensorView::Scalar(step)}},
                                 {.end = End::kTerminated, .trajectory = {&large, 1}}),
                  "a larger log_bytes_max has room");
    EXPECT_OK(writer->Append({{"step", TensorView::Scalar(step)}},
                             {.end = End::kTerminated, .trajectory = {&blob, 1}}));
  }
}

}  // namespace
}  // namespace geardb
