// concurrent: engine/internal/cleaner.h engine/internal/cleaner.cc
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/internal/cleaner.h"
#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

class CleanerConcurrentTest : public FramesTest {
 protected:
  void SetUp() override {
    options_.log_bytes_max = 8 << 20;  // Eight segments.
    FramesTest::SetUp();
  }
  /// The first page of a trajectory, from the cold store.
  Status ReadFromCold(TrajectoryId id) {
    const auto core = testing::CoreOf(*database_);
    const PageLayout& pages = core->AllTables()[0]->layout().group(0).pages;
    std::vector<std::byte> frame(pages.frame_bytes());
    engine::ColdRead read;
    read.key = {.table = core->AllTables()[0]->layout().id(), .trajectory = id};
    read.layout = &pages;
    read.frame = frame;
    return core->cold->if_open()->ReadPages({&read, 1});
  }
};

// Whoever drew a page before its trajectory left reads it, however long that takes.
TEST_F(CleanerConcurrentTest, WhatHasLeftIsReadByWhoeverSawItThere) {
  const TrajectoryId first = Add(4, 4);
  for (int i = 0; i < 400; ++i) Add(4, 4);
  const auto core = testing::CoreOf(*database_);
  ASSERT_OK(core->cleaner->CleanNow(/*all=*/true));
  ASSERT_OK(ReadFromCold(first));
  for (int i = 0; i < 100; ++i) Add(4, 4);  // Segments for the next pass.
  EpochRegistry::Guard reader = core->epochs.Enter();
  ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{first}));
  const uint64_t images = core->cleaner->stats().image_bytes;
  Status cleaned = Status::Internal("not yet");
  std::thread cleaner([&] { cleaned = core->cleaner->CleanNow(/*all=*/true); });
  // It goes as far as it can without this reader: an image of the index without the trajectory.
  while (core->cleaner->stats().image_bytes == images) std::this_thread::yield();
  Status read;
  for (int i = 0; i < 500 && read.ok(); ++i) read = ReadFromCold(first);
  EXPECT_OK(read);
  reader.Leave();
  cleaner.join();
  ASSERT_OK(cleaned);
  EXPECT_STATUS(kNotFound, ReadFromCold(first), "");
  numbers_.erase(first);
  ExpectAll();
}

// It was refused as for good, as if nothing ever made room.
TEST_F(CleanerConcurrentTest, ACallThatAPassOutlastsIsRefusedForItsDeadline) {
  options_.budgets.frames_bytes = 64 << 20;  // The log ends first.
  Again();
  const auto core = testing::CoreOf(*database_);
  ASSERT_OK_AND_ASSIGN(const auto hasty, table_->NewWriter({.admission_timeout_ms = 20}));
  const std::vector<uint8_t> bytes(static_cast<size_t>(kPageRows * kFrameBytes));
  const std::vector<float> rewards(static_cast<size_t>(kPageRows));
  const std::vector<ColumnValue> rows = {
      {"frame", TensorView(bytes.data(), DType::kU8, Shape({kPageRows, kFrameBytes}))},
      {"reward", TensorView::Of(std::span<const float>(rewards))}};
  EpochRegistry::Guard reader = core->epochs.Enter();  // A pass waits for it.
  Status refused;
  const auto of_ring = [&] { return refused.message().find("log's ring") != std::string::npos; };
  for (int i = 0; i < 10'000 && (refused.ok() || of_ring()); ++i) {  // A busy disk is no pass.
    refused = hasty->AppendTrajectory(rows, {.end = End::kTerminated}).status();
  }
  EXPECT_STATUS(kDeadlineExceeded, refused, "has not ended its pass yet");
  reader.Leave();
  EXPECT_OK(writer_->AppendTrajectory(rows, {.end = End::kTerminated}));
}

// What it had in parts kept readers' guard while it waited: no pass came to its end, no frame came
// free, and Close waited for it.
TEST_F(CleanerConcurrentTest, ALargeAppendThatWaitsHoldsUpNoPass) {
  constexpr int64_t kRows = 100;  // More than a record takes.
  TableSpec spec = FrameSpec();
  spec.name = "limited";
  spec.priority_tables = {testing::WindowSpec("all")};
  spec.priority_tables[0].selector = SelectorKind::kFifo;
  spec.priority_tables[0].limiter = {.kind = LimiterKind::kQueue, .capacity = kRows + 50};
  ASSERT_OK_AND_ASSIGN(const auto table, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({.admission_timeout_ms = 600'000}));
  const std::vector<uint8_t> bytes(static_cast<size_t>(kRows * kFrameBytes));
  const std::vector<float> rewards(static_cast<size_t>(kRows));
  const std::vector<ColumnValue> rows = {
      {"frame", TensorView(bytes.data(), DType::kU8, Shape({kRows, kFrameBytes}))},
      {"reward", TensorView::Of(std::span<const float>(rewards))}};
  const auto append = [&] { return writer->AppendTrajectory(rows, {.end = End::kTerminated}); };
  ASSERT_OK(append());
  std::thread waits([&] { EXPECT_OK(append()); });
  const auto queue = table->priority_table("all");
  while (queue->WhyBlocked().inserts.waiting == 0) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) Add(4, 4);
  EXPECT_OK(testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true));
  ASSERT_OK_AND_ASSIGN(const auto sampler, queue->NewSampler({.batch = kRows}));
  EXPECT_OK(sampler->Next());
  waits.join();
}

// It asked for no pass, and was told that none makes room.
TEST_F(CleanerConcurrentTest, WhoNeverWaitsTriesUntilAPassHasMadeRoom) {
  options_.budgets.frames_bytes = 64 << 20;  // The log ends first.
  Again();
  ASSERT_OK_AND_ASSIGN(const auto hasty, table_->NewWriter({.admission_timeout_ms = 0}));
  const std::vector<uint8_t> bytes(static_cast<size_t>(kPageRows * kFrameBytes));
  const std::vector<float> rewards(static_cast<size_t>(kPageRows));
  const std::vector<ColumnValue> rows = {
      {"frame", TensorView(bytes.data(), DType::kU8, Shape({kPageRows, kFrameBytes}))},
      {"reward", TensorView::Of(std::span<const float>(rewards))}};
  int refused = 0;
  for (int appended = 0; appended < 2000;) {  // Four logs.
    const Status status = hasty->AppendTrajectory(rows, {.end = End::kTerminated}).status();
    if (status.ok()) {
      ++appended;
      continue;
    }
    ++refused;
    ASSERT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    std::this_thread::yield();
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace geardb
