// Which rows a patch writes, and where their values are: what its caller gave, checked.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/internal/append_values.h"
#include "engine/internal/priority_state.h"
#include "engine/internal/table_state.h"
#include "engine/table.h"

namespace geardb::engine {

/// Rows [first_row, first_row + rows) of a trajectory that is there; their values begin with row
/// `value_row` of what was given.
struct PatchTarget {
  Slot slot = kNoSlot;
  int64_t first_row = 0;
  int64_t rows = 0;
  uint64_t value_row = 0;
  friend bool operator==(const PatchTarget&, const PatchTarget&) = default;
};

/// The values of a call, checked: for each column its number and where its rows begin.
struct PatchValues {
  struct Bound {
    size_t column = 0;
    const std::byte* rows = nullptr;
  };
  std::vector<Bound> columns;
  /// Of ragged columns: their rows above are `ranges` (patch_values.h).
  struct Ragged {
    size_t column = 0;
    size_t companion = 0;
    ValueRows values;
    std::shared_ptr<std::vector<RaggedRange>> ranges;  ///< Of each value.
  };
  std::vector<Ragged> ragged;
  uint64_t entries = 0;  ///< Packed: rows in all; padded: items.
  uint64_t padded = 0;   ///< Rows of each item's share; 0: packed.
};

/// Checks names, dtypes and shapes: [Σ rows, ...], or [items, rows, ...]; of ragged columns offsets
/// of Σ rows values.
Result<PatchValues> BindPatchValues(const TableLayout& layout, ColumnValues values);

/// Where the rows of a call are. Caller holds the state's mutex.
class PatchRows {
 public:
  PatchRows(const TableState& state, const PatchValues& values) : state_(state), values_(values) {}

  /// The next `rows` rows of the values are for rows from `first_row` on of the trajectory in
  /// `slot`. What was trimmed is passed over. InvalidArgument for rows beyond its end.
  Status Add(Slot slot, int64_t first_row, int64_t rows);
  /// The next `rows` rows of the values are for nobody.
  Status AddStale(int64_t rows);
  /// InvalidArgument when values are left over.
  Status CheckWhole() const;

  const std::vector<PatchTarget>& targets() const { return targets_; }
  uint64_t stale() const { return stale_; }

 private:
  /// Where the values of the next `rows` rows begin.
  Result<uint64_t> Take(int64_t rows);

  const TableState& state_;
  const PatchValues& values_;
  std::vector<PatchTarget> targets_;
  uint64_t items_ = 0;
  uint64_t taken_ = 0;
  uint64_t stale_ = 0;
};

/// Of late groups, by trajectory and group: the row up to which a patch fills them.
using FilledRows = std::map<std::pair<Slot, uint32_t>, uint64_t>;
/// Of those among `groups` that are late: InvalidArgument where `targets` would leave a gap, since
/// they are filled from the first row on.
Status CheckFilled(const TableState& state, std::span<const uint32_t> groups,
                   std::vector<PatchTarget> targets, FilledRows* filled);

/// Rows of trajectories, and of items by their handles.
Status ResolveSpans(const TableState& state, std::span<const RowSpan> spans, PatchRows* rows);
Status ResolveHandles(const TableState& state, const PriorityState& priority,
                      std::span<const ItemHandle> handles, PatchRows* rows);

}  // namespace geardb::engine
