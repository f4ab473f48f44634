#include "engine/internal/append_plan.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class AppendPlanTest : public ::testing::Test {
 protected:
  /// The frame of a page after a call of three rows (and a final row) was copied to it.
  std::vector<std::byte> Copy(const TableLayout& layout, const PageRows& page, uint64_t rows_done,
                              End end, bool with_final) {
    std::vector<std::byte> frame(layout.page_bytes(), std::byte{0xEE});
    std::byte* const base = frame.data();
    LaneRows call{.rows = 3, .end = end};
    for (const ColumnValue& value : rows_.many()) {
      call.columns.push_back(static_cast<const std::byte*>(value.value.bytes));
    }
    if (with_final) {
      call.final_columns = {static_cast<const std::byte*>(last_.many()[0].value.bytes), nullptr,
                            nullptr};
    }
    CopyRowsIntoPage({.layout = &layout,
                      .call = &call,
                      .frames = {&base, 1},
                      .page = &page,
                      .rows_done = rows_done,
                      .begins_episode = true});
    return frame;
  }
  static int32_t Action(const TableLayout& layout, const std::vector<std::byte>& frame,
                        uint32_t offset) {
    int32_t value = 0;
    std::memcpy(&value, frame.data() + layout.RowOffset(1, offset), sizeof(value));
    return value;
  }
  static uint8_t Flags(const TableLayout& layout, const std::vector<std::byte>& frame,
                       uint32_t offset) {
    return static_cast<uint8_t>(frame[layout.FlagsOffset(offset)]);
  }

  const testing::Rows rows_{5, 3};
  const testing::Rows last_{8, 1};
};

TEST_F(AppendPlanTest, RowsGoToTheirPlacesAndNowhereElse) {
  const TableLayout layout(testing::StepSpec(true), 1);
  const auto frame = Copy(layout, {.offset = 1, .count = 2}, 1, End::kGo, false);
  EXPECT_EQ(Action(layout, frame, 1), 6);
  EXPECT_EQ(Action(layout, frame, 2), 7);
  EXPECT_EQ(Action(layout, frame, 0), static_cast<int32_t>(0xEEEEEEEE));
  EXPECT_EQ(Action(layout, frame, 3), static_cast<int32_t>(0xEEEEEEEE));
}

TEST_F(AppendPlanTest, OtherColumnsOfAFinalRowAreZero) {
  const TableLayout layout(testing::StepSpec(true), 1);
  const auto frame = Copy(layout, {.offset = 0, .count = 4}, 0, End::kTerminated, true);
  EXPECT_EQ(Action(layout, frame, 2), 7);
  EXPECT_EQ(Action(layout, frame, 3), 0);
  float obs = 0;
  std::memcpy(&obs, frame.data() + layout.RowOffset(0, 3), sizeof(obs));
  EXPECT_EQ(obs, 8.0f);
}

TEST_F(AppendPlanTest, StreamsFlagTheirRows) {
  TableSpec spec = testing::StepSpec(true);
  spec.stream = true;
  const TableLayout layout(spec, 1);
  auto frame = Copy(layout, {.offset = 0, .count = 4}, 0, End::kTruncated, true);
  EXPECT_EQ(Flags(layout, frame, 0), kRowFirst);
  EXPECT_EQ(Flags(layout, frame, 1), 0);
  EXPECT_EQ(Flags(layout, frame, 2), kRowTruncated);
  EXPECT_EQ(Flags(layout, frame, 3), kRowTruncated | kRowFinal);
  frame = Copy(layout, {.offset = 0, .count = 3}, 0, End::kCut, false);
  EXPECT_EQ(Flags(layout, frame, 2), kRowCut | kRowFinal);
  spec = testing::StepSpec(false);
  spec.stream = true;
  const TableLayout without(spec, 1);
  frame = Copy(without, {.offset = 0, .count = 3}, 0, End::kCut, false);
  EXPECT_EQ(Flags(without, frame, 2), kRowCut);
}

}  // namespace
}  // namespace geardb::engine
