// ViewPlan: a sampler's views compiled against its table: columns by number, rows relative to the
// anchor, sizes, and everything that is wrong with them said before anything is drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/internal/row_draw.h"
#include "engine/internal/table_layout.h"
#include "engine/sampler.h"
#include "kernels/gather.h"

namespace geardb::engine {

// Outputs besides the views.
inline constexpr const char* kNStepNames[] = {"nstep.return", "nstep.discount",
                                              "nstep.bootstrap_row", "nstep.mask"};
inline constexpr const char* kMaskSuffixes[] = {".valid", ".learn", ".is_first", ".end"};

/// Of one output of a batch: what no machine has.
inline constexpr uint64_t kViewBytesMax = uint64_t{1} << 44;

/// A view, compiled.
struct CompiledView {
  std::string name;
  bool per_trajectory = false;  ///< One value per item; the rest does not apply.
  size_t column = 0;            ///< Number among step columns, or among per-trajectory columns.
  DType stored = DType::kF32;
  DType delivered = DType::kF32;
  Shape row_shape;
  uint64_t row_bytes = 0;      ///< Stored.
  uint64_t out_row_bytes = 0;  ///< Delivered.
  GatherConvert convert = GatherConvert::kCopy;
  uint64_t pad_bits = 0;
  bool drop_axis = false;  ///< Exactly one row: no L axis.
  bool bootstrap = false;
  std::optional<size_t> draw;  ///< Shows the rows of this RowDraw.
  bool masks = false;
  /// Shows rows of this companion of the table: any number for each entry, or of a fixed one (a
  /// wide per-trajectory column) one, or `pad_bits`.
  std::optional<size_t> companion = {};
  bool fixed = false;
  int64_t stack = 1;
  // Rows relative to the anchor: `list`, or begin + k * stride.
  std::vector<int64_t> list;
  int64_t begin = 0;
  int64_t stride = 1;
  int64_t count = 0;  ///< Fixed number of rows; ViewRows::kItemLength: the item's.
  int64_t plus = 0;

  /// Of one entry, with the rows stacked in it: below 2^53.
  uint64_t entry_bytes() const { return out_row_bytes * static_cast<uint64_t>(stack); }
  /// Rows of an item whose length part is `item_length` steps.
  int64_t RowCount(int64_t item_length) const {
    if (!list.empty()) return static_cast<int64_t>(list.size());
    return (count == ViewRows::kItemLength ? item_length : count) + plus;
  }
  int64_t Relative(int64_t k) const {
    return list.empty() ? begin + k * stride : list[static_cast<size_t>(k)];
  }
  /// How far the view reaches beyond a length part of `item_length`.
  int64_t Over(int64_t item_length) const;
  /// Rows that follow one another, unstacked: whole stretches can be copied.
  bool contiguous() const {
    return list.empty() && stride == 1 && stack == 1 && !bootstrap && !draw;
  }
};

/// n-step, compiled.
struct CompiledNStep {
  size_t reward = 0;
  std::optional<size_t> discount;
  std::optional<size_t> life_loss;
  int64_t n = 1;
  float gamma = 1;
  bool every_row = false;
};

struct ViewPlan {
  std::vector<CompiledView> views;
  std::optional<CompiledNStep> n_step;
  std::vector<CompiledRowDraw> row_draws;

  /// Of all outputs, in their order: n-step (its bootstrap rows are views' rows), drawn rows, then
  /// the views, each with its masks.
  std::vector<std::string> OutputNames() const;
  /// The largest stack of drawn rows.
  int64_t DrawnStack() const;
  /// NotFound, naming it, for a column that was dropped since.
  Status CheckColumns(const TableLayout& now) const;
};

/// InvalidArgument or NotFound, naming the view and what is wrong with it.
Result<ViewPlan> CompileViews(const TableLayout& layout, const PriorityTableSpec& spec,
                              const SamplerOptions& options);

}  // namespace geardb::engine
