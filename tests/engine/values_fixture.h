// Shared by tests of values of any length: a table that has all kinds of them, and a plain model of
// it, vectors of vectors, that takes the same calls.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb::testing {

using Bytes = std::vector<uint8_t>;
inline constexpr int64_t kBigRow = 40 << 10;
inline constexpr size_t kGoal = 40;

/// Steps have "row", their number; ragged "text" (u8), "rgb" (u8[3], in final rows) and "big" (rows
/// of 40 KiB); trajectories have "score", blob "prompt" and wide "goal".
inline TableSpec ValuesSpec(bool final_row) {
  TableSpec spec;
  spec.name = "values";
  spec.final_row = final_row;
  spec.expected_steps = 8;
  spec.steps_per_page = 4;
  spec.columns = {
      {.name = "row", .dtype = DType::kI64, .in_final_row = final_row},
      {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged, .expected_rows = 30},
      {.name = "rgb",
       .dtype = DType::kU8,
       .shape = {3},
       .kind = ColumnKind::kRagged,
       .in_final_row = final_row,
       .expected_rows = 3},
      {.name = "big",
       .dtype = DType::kU8,
       .shape = {kBigRow},
       .kind = ColumnKind::kRagged,
       .expected_rows = 1},
      {.name = "score", .kind = ColumnKind::kPerTrajectory},
      {.name = "prompt", .dtype = DType::kU8, .kind = ColumnKind::kBlob, .expected_rows = 100},
      {.name = "goal", .shape = {kGoal}, .kind = ColumnKind::kPerTrajectory, .default_value = 1.5}};
  PriorityTableSpec windows = WindowSpec("windows", {.before = 1, .length = 3});
  windows.selector = SelectorKind::kUniform;
  windows.window.left = EdgeRule::kPad;
  PriorityTableSpec whole;
  whole.name = "whole";
  whole.item = ItemKind::kTrajectory;
  whole.selector = SelectorKind::kUniform;
  spec.priority_tables = {windows, whole};
  return spec;
}

/// Steps have "row" and ragged "text" alone; pages of four.
inline TableSpec TextSpec() {
  TableSpec spec;
  spec.name = "values";
  spec.columns = {
      {.name = "row", .dtype = DType::kI64},
      {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged, .expected_rows = 30}};
  spec.steps_per_page = 4;
  return spec;
}

/// Of one step: a ragged column's value is the bytes of all its rows.
struct ModelStep {
  Bytes text = {};
  Bytes rgb = {};
  Bytes big = {};
};
struct ModelTrajectory {
  std::vector<ModelStep> steps;  ///< Stored rows, final ones included, from row 0 on.
  int64_t first_row = 0;
  std::optional<Bytes> prompt;
  std::optional<std::vector<float>> goal;
  bool open = false;
};

/// Rows to be given to a writer, and the same for the model.
class ValueRowsOf {
 public:
  ValueRowsOf(std::vector<ModelStep> steps, int64_t first_row, bool one, bool final = false,
              bool with_big = true)
      : steps_(std::move(steps)) {
    const auto count = static_cast<int64_t>(steps_.size());
    for (int64_t i = 0; i < count; ++i) rows_.push_back(first_row + i);
    const auto add = [&](const char* name, Bytes ModelStep::*member, int64_t row_bytes,
                         Shape shape) {
      Ragged& ragged = ragged_.emplace_back();
      ragged.offsets = {0};
      for (const ModelStep& step : steps_) {
        const Bytes& value = step.*member;
        ragged.bytes.insert(ragged.bytes.end(), value.begin(), value.end());
        ragged.offsets.push_back(ragged.bytes.size() / static_cast<size_t>(row_bytes));
      }
      const auto total = static_cast<int64_t>(ragged.offsets.back());
      ColumnValue value{name,
                        TensorView(ragged.bytes.data(), DType::kU8, shape.WithOuter({total}))};
      if (!one) value.offsets = ragged.offsets;
      values_.push_back(value);
    };
    ragged_.reserve(3);
    values_.push_back({"row", one ? TensorView::Scalar(rows_[0])
                                  : TensorView::Of(std::span<const int64_t>(rows_))});
    add("rgb", &ModelStep::rgb, 3, {3});
    if (final) return;
    add("text", &ModelStep::text, 1, {});
    if (with_big) add("big", &ModelStep::big, kBigRow, {kBigRow});
  }
  ValueRowsOf(const ValueRowsOf&) = delete;
  const std::vector<ColumnValue>& values() const { return values_; }
  const std::vector<ModelStep>& steps() const { return steps_; }

 private:
  struct Ragged {
    Bytes bytes;
    std::vector<uint64_t> offsets;
  };
  std::vector<ModelStep> steps_;
  std::vector<int64_t> rows_;
  std::vector<Ragged> ragged_;
  std::vector<ColumnValue> values_;
};

/// A store, and random numbers for programs over it.
template <typename Random>
class RandomStoreTest : public StoreTest {
 protected:
  uint64_t Below(uint64_t end) {
    return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_);
  }
  Bytes RandomBytes(uint64_t count) {
    Bytes bytes(count);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    return bytes;
  }

  Random random_;
};

}  // namespace geardb::testing
