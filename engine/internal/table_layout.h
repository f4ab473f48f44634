// TableLayout: a table's columns, as of one of their changes, compiled into what the data path
// needs: columns by number, their row sizes, and the layout of pages. Immutable once made. Columns
// and groups that were dropped keep their numbers and places; no name finds them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/page_view.h"
#include "base/types.h"
#include "engine/internal/table_history.h"
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

/// What has a companion table (companion.h).
struct CompanionColumn {
  std::string name;  ///< Of the column.
  ColumnKind kind = ColumnKind::kBlob;
  // Of one row.
  DType dtype = DType::kU8;
  Shape shape;
  uint64_t row_bytes = 0;
  uint64_t default_bits = 0;  ///< Of an element, where no value is set: wide ones.
  size_t column = 0;          ///< Among the step columns, or the per-trajectory columns.
  TableSpec spec;             ///< Of the companion,
  TableId id = 0;             ///< and its number.
  bool dropped = false;       ///< It is there no more.

  /// One row always: a wide per-trajectory column.
  bool fixed() const { return kind == ColumnKind::kPerTrajectory; }
  bool ragged() const { return kind == ColumnKind::kRagged; }
};

/// A per-step column of the user's. Of a ragged one, what is in the table itself: RaggedRange, with
/// the dtype and shape of that.
struct StepColumn {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint64_t row_bytes = 0;
  bool in_final_row = false;
  uint32_t group = 0;
  uint32_t place = 0;         ///< In the pages of its group.
  uint64_t default_bits = 0;  ///< Of an element (kernels/convert.h, ElementBits).
  bool dropped = false;
  std::optional<size_t> companion = {};  ///< Ragged: which of the companions has its rows.
};

/// A column group. Its pages have its columns in the order of the schema, in group 0 of a stream
/// the flags behind them.
struct GroupLayout {
  std::string name;
  bool late = false;
  bool is_volatile = false;
  bool added = false;    ///< It came later than the table: pages may be older than it.
  bool dropped = false;  ///< All its columns were. Its pages show defaults, but for the last ones
                         ///< of trajectories that are open.
  size_t filled_place = 0;  ///< Of a late one: which column of the trajectories says how far.
  PageLayout pages = {};
  std::vector<size_t> columns = {};  ///< Numbers of its step columns, by place.

  /// Its pieces are in the log.
  bool logged() const { return !is_volatile; }
  /// Pages of it may be there in which nobody has written: they show the defaults.
  bool may_be_unwritten() const { return late || is_volatile || added; }
};

/// A per-trajectory column. Of a blob or a wide one, what is in index memory: how many rows it has,
/// a u64.
struct TrajectoryColumn {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint32_t bytes = 0;
  uint64_t default_bits = 0;
  size_t place = 0;  ///< Which column of the trajectories (index::TrajectoryIndex) it is.
  bool dropped = false;
  std::optional<size_t> companion = {};
};

/// Writes a column's default into all elements of `into`.
void FillElements(DType dtype, uint64_t bits, std::span<std::byte> into);

class TableLayout {
 public:
  /// `spec` is valid (ValidateTableSpec); its steps_per_page is replaced by the one chosen.
  TableLayout(TableSpec spec, TableId id);
  /// After the first `version` changes of the columns.
  TableLayout(const TableHistory& history, uint32_t version, TableId id);

  /// With the columns and groups that there are, in the order of their numbers.
  const TableSpec& spec() const { return spec_; }
  uint32_t version() const { return version_; }
  TableId id() const { return id_; }
  uint32_t steps_per_page() const { return groups_[0].pages.steps_per_page(); }
  uint32_t steps_shift() const { return groups_[0].pages.steps_shift(); }
  std::span<const GroupLayout> groups() const { return groups_; }
  const GroupLayout& group(size_t number) const { return groups_[number]; }
  size_t group_count() const { return groups_.size(); }
  /// Numbers of the groups that writers append, ascending; the first is 0.
  std::span<const uint32_t> appended_groups() const { return appended_groups_; }
  /// Of these, those whose pieces are in the log.
  std::span<const uint32_t> logged_groups() const { return logged_groups_; }
  /// Numbers of the groups that have left.
  std::span<const uint32_t> dropped_groups() const { return dropped_groups_; }
  /// Bytes of the frames of a page, in all groups that there are.
  uint64_t page_bytes() const { return page_bytes_; }
  /// True bytes of a row, in all groups that there are.
  uint64_t bytes_per_step() const { return bytes_per_step_; }
  /// Of the group whose pages are largest: bytes of a whole page in the log.
  uint64_t piece_bytes_max() const { return piece_bytes_max_; }
  std::span<const StepColumn> step_columns() const { return step_columns_; }
  std::span<const TrajectoryColumn> trajectory_columns() const { return trajectory_columns_; }
  std::span<const CompanionColumn> companions() const { return companions_; }
  /// Row sizes of the columns of the trajectories, by their places: those of the user's, and how
  /// far late groups are filled.
  std::span<const uint32_t> place_bytes() const { return place_bytes_; }
  /// Number of columns that a final row carries.
  size_t final_column_count() const { return final_column_count_; }
  /// The place of the flags column in the pages of group 0; only stream tables have one.
  std::optional<size_t> flags_column() const { return flags_column_; }
  /// Where a row of a step column lies in the frame of its group.
  uint64_t RowOffset(size_t column, uint32_t offset_in_page) const {
    const StepColumn& found = step_columns_[column];
    return groups_[found.group].pages.FrameOffset(found.place, offset_in_page);
  }
  /// Where the flags byte of a row lies in the frame of group 0, in a stream.
  uint64_t FlagsOffset(uint32_t offset_in_page) const {
    return groups_[0].pages.FrameOffset(*flags_column_, offset_in_page);
  }
  /// Per-trajectory values of a trajectory of which none was set, one column after the other.
  std::span<const std::byte> unset_trajectory() const { return unset_trajectory_; }

  std::optional<size_t> FindStepColumn(std::string_view name) const;
  std::optional<size_t> FindTrajectoryColumn(std::string_view name) const;
  /// Of a group besides the first.
  std::optional<uint32_t> FindGroup(std::string_view name) const;
  /// NotFound that names the column and those there are.
  Status NoSuchColumn(std::string_view name) const;

  // Steps, leaves and pages.
  uint32_t PageNumber(int64_t row) const { return static_cast<uint32_t>(row >> steps_shift()); }
  uint32_t OffsetInPage(int64_t row) const {
    return static_cast<uint32_t>(row) & (steps_per_page() - 1);
  }
  uint64_t Leaf(Lpn lpn, uint32_t offset) const {
    return (uint64_t{lpn} << steps_shift()) | offset;
  }
  Lpn LpnOfLeaf(uint64_t leaf) const { return static_cast<Lpn>(leaf >> steps_shift()); }

 private:
  size_t AddCompanion(const ColumnHistory& known, size_t number);
  void AddColumn(const ColumnHistory& known, bool dropped,
                 std::vector<std::vector<uint64_t>>* row_bytes);
  void PlaceColumns(const TableHistory& history);
  void LayOutGroup(uint32_t number, std::span<const uint64_t> row_bytes);

  uint32_t version_ = 0;
  TableSpec spec_;
  TableId id_;
  std::vector<StepColumn> step_columns_;
  std::vector<TrajectoryColumn> trajectory_columns_;
  std::vector<CompanionColumn> companions_;
  std::vector<GroupLayout> groups_;
  std::vector<uint32_t> appended_groups_;
  std::vector<uint32_t> logged_groups_;
  std::vector<uint32_t> dropped_groups_;
  std::vector<uint32_t> place_bytes_;
  std::vector<std::byte> unset_trajectory_;
  std::optional<size_t> flags_column_;
  size_t final_column_count_ = 0;
  uint64_t page_bytes_ = 0;
  uint64_t bytes_per_step_ = 0;
  uint64_t piece_bytes_max_ = 0;
};

/// InvalidArgument where a priority table requires a per-trajectory column whose number is too
/// large: of dropped ones the numbers are not used again.
Status CheckRequiredNumbers(const TableLayout& layout, const PriorityTableSpec& spec);
/// The group that a name in PriorityTableSpec::required means; none: it means a column.
std::optional<uint32_t> FindRequirableGroup(const TableLayout& layout, std::string_view name);
/// InvalidArgument where such a name could mean both: of what comes anew.
Status CheckRequiredNames(const TableSpec& table, const PriorityTableSpec& spec);

}  // namespace geardb::engine
