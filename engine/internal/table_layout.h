// TableLayout: a table's spec compiled into what the data path needs: columns by number, their row
// sizes, and the layout of pages. Immutable once made.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/page_view.h"
#include "base/types.h"
#include "engine/schema.h"

namespace geardb::engine {

// The engine-kept flags byte of a row of a stream table. On disk: frozen.
inline constexpr uint8_t kRowFirst = 1;       ///< First row of an episode.
inline constexpr uint8_t kRowFinal = 2;       ///< The final row of an episode: no step.
inline constexpr uint8_t kRowTerminated = 4;  ///< The episode ended with this row…
inline constexpr uint8_t kRowTruncated = 8;
inline constexpr uint8_t kRowCut = 16;
inline constexpr uint8_t kRowEndMask = kRowTerminated | kRowTruncated | kRowCut;

/// The flag that says `end`; 0 for go.
constexpr uint8_t FlagOfEnd(End end) {
  switch (end) {
    case End::kTerminated:
      return kRowTerminated;
    case End::kTruncated:
      return kRowTruncated;
    case End::kCut:
      return kRowCut;
    default:
      return 0;
  }
}
constexpr End EndOfFlags(uint8_t flags) {
  if (flags & kRowTerminated) return End::kTerminated;
  if (flags & kRowTruncated) return End::kTruncated;
  if (flags & kRowCut) return End::kCut;
  return End::kGo;
}

/// A per-step column of the user's. Its number is its place in the pages.
struct StepColumn {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint64_t row_bytes = 0;
  bool in_final_row = false;
};

/// A per-trajectory column.
struct TrajectoryColumn {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint32_t bytes = 0;
};

class TableLayout {
 public:
  /// `spec` is valid (ValidateTableSpec); its steps_per_page is replaced by the one chosen.
  TableLayout(TableSpec spec, TableId id);

  const TableSpec& spec() const { return spec_; }
  TableId id() const { return id_; }
  const PageLayout& pages() const { return pages_; }
  uint32_t steps_per_page() const { return pages_.steps_per_page(); }
  std::span<const StepColumn> step_columns() const { return step_columns_; }
  std::span<const TrajectoryColumn> trajectory_columns() const { return trajectory_columns_; }
  /// Number of columns that a final row carries.
  size_t final_column_count() const { return final_column_count_; }
  /// The number of the flags column in the pages; only stream tables have one.
  std::optional<size_t> flags_column() const { return flags_column_; }

  std::optional<size_t> FindStepColumn(std::string_view name) const;
  std::optional<size_t> FindTrajectoryColumn(std::string_view name) const;
  /// NotFound that names the column and those there are.
  Status NoSuchColumn(std::string_view name) const;

  // Steps, leaves and pages.
  uint32_t PageNumber(int64_t row) const {
    return static_cast<uint32_t>(row >> pages_.steps_shift());
  }
  uint32_t OffsetInPage(int64_t row) const {
    return static_cast<uint32_t>(row) & (pages_.steps_per_page() - 1);
  }
  uint64_t Leaf(Lpn lpn, uint32_t offset) const {
    return (uint64_t{lpn} << pages_.steps_shift()) | offset;
  }
  Lpn LpnOfLeaf(uint64_t leaf) const { return static_cast<Lpn>(leaf >> pages_.steps_shift()); }

 private:
  TableSpec spec_;
  TableId id_;
  std::vector<StepColumn> step_columns_;
  std::vector<TrajectoryColumn> trajectory_columns_;
  std::optional<size_t> flags_column_;
  size_t final_column_count_ = 0;
  PageLayout pages_;
};

}  // namespace geardb::engine
