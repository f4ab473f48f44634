// Shared by tests of a store with more data than memory: rows large enough to fill its budgets,
// whose bytes follow from their trajectory's number.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {

inline constexpr int64_t kFrameBytes = 4096;
inline constexpr int64_t kPageRows = 4;

/// Rows of 4 KiB and a reward, pages of four rows; a late group "late" with "target".
inline TableSpec FrameSpec() {
  TableSpec spec;
  spec.name = "frames";
  spec.groups = {{.name = "late", .late = true}};
  spec.columns = {{.name = "frame", .dtype = DType::kU8, .shape = {kFrameBytes}},
                  {.name = "reward"},
                  {.name = "target", .group = "late", .default_value = -1}};
  spec.steps_per_page = kPageRows;
  spec.priority_tables = {testing::WindowSpec("all", {.length = 2})};
  spec.priority_tables[0].selector = SelectorKind::kUniform;
  return spec;
}

/// Byte `at` of row `row` of trajectory number `number`.
inline uint8_t ByteOf(int64_t number, int64_t row, int64_t at) {
  uint64_t mixed = static_cast<uint64_t>(number * 1'000'003 + row * 8191 + at);
  mixed = (mixed ^ mixed >> 7) * 0x9E3779B97F4A7C15u;
  return static_cast<uint8_t>((mixed ^ mixed >> 32) * 0xBF58476D1CE4E5B9u >> 56);
}

class FramesTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.budgets.frames_bytes = 6 << 20;  // Three slabs: two for pages of 16 KiB.
    Open();
    Make();
  }
  void Make() {
    ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(FrameSpec()));
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = 2}));
  }
  void Again() {
    Reopen();
    OpenAgain("frames", {.lanes = 2});
  }

  /// Appends a trajectory in calls of `each` rows.
  TrajectoryId Add(int64_t rows, int64_t each, End last = End::kTerminated) {
    const int64_t number = next_++;
    TrajectoryId id = 0;
    for (int64_t first = 0; first < rows; first += each) {
      const int64_t count = std::min(each, rows - first);
      id = AddRows(number, first, count, first + count == rows ? last : End::kGo);
    }
    numbers_[id] = number;
    return id;
  }
  TrajectoryId AddRows(int64_t number, int64_t first, int64_t count, End end, uint32_t lane = 0) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count * kFrameBytes));
    std::vector<float> rewards(static_cast<size_t>(count));
    for (int64_t row = 0; row < count; ++row) {
      rewards[static_cast<size_t>(row)] = static_cast<float>(number * 100 + first + row);
      for (int64_t at = 0; at < kFrameBytes; ++at) {
        bytes[static_cast<size_t>(row * kFrameBytes + at)] = ByteOf(number, first + row, at);
      }
    }
    const std::vector<ColumnValue> values = {
        {"frame", TensorView(bytes.data(), DType::kU8, Shape({count, kFrameBytes}))},
        {"reward", TensorView::Of(std::span<const float>(rewards))}};
    const auto appended = writer_->AppendSteps(values, {.lane = lane, .end = end});
    EXPECT_OK(appended);
    return appended.ok() ? appended->id : 0;
  }

  /// The thread that has read a page beside the frames lets go of it a moment after it is there.
  void AwaitNothingBeside() const {
    while (database_->Stats().pages_beside_bytes > 0) std::this_thread::yield();
  }
  void ExpectRow(TrajectoryId id, int64_t row, const uint8_t* bytes) const {
    const int64_t number = numbers_.at(id);
    int64_t at = 0;
    while (at < kFrameBytes && bytes[at] == ByteOf(number, row, at)) ++at;
    ASSERT_EQ(at, kFrameBytes) << "trajectory " << id << ", row " << row;
  }
  void ExpectAll() const {
    for (const auto& [id, number] : numbers_) {
      const std::string_view column = "frame";
      const auto rows = table_->Read(id, {&column, 1}, {});
      ASSERT_OK(rows);
      const auto bytes = (*rows)[0].view().values<uint8_t>();
      for (size_t row = 0; row < bytes.size() / kFrameBytes; ++row) {
        ExpectRow(id, static_cast<int64_t>(row), bytes.data() + row * kFrameBytes);
      }
    }
  }
  uint64_t DropAll() { return testing::DropFrames(*database_); }
  void ExpectDraws(int64_t prefetch, int batches) {
    ASSERT_OK_AND_ASSIGN(const auto priority, table_->OpenPriorityTable("all"));
    ASSERT_OK_AND_ASSIGN(
        const auto sampler,
        priority->NewSampler({.batch = 16, .views = {{.column = "frame"}}, .prefetch = prefetch}));
    for (int i = 0; i < batches; ++i) {
      ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
      const auto bytes = batch["frame"].values<uint8_t>();
      for (size_t item = 0; item < 16; ++item) {
        for (int64_t k = 0; k < batch.lengths()[item]; ++k) {
          const size_t entry = item * 2 + static_cast<size_t>(k);
          ExpectRow(batch.trajectory_ids()[item], batch.anchors()[item] + k,
                    bytes.data() + entry * kFrameBytes);
        }
      }
    }
  }
  FrameStats Frames() const { return table_->Stats().frames; }

  int64_t next_ = 0;
  std::map<TrajectoryId, int64_t> numbers_;  // By trajectory.
};

}  // namespace geardb
