// What patches of ragged columns leave behind: rows of a companion that no step shows any more lie
// among those that some do, and stay. Where they have become more than those, all values of the
// trajectory's column are written again, behind them, so that what is before leaves (GiveBack).
//
// A patch looks when the rows that are kept pass a power of two, which takes reading the column's
// ranges; so a value that is patched for ever costs its bytes about three times, and what is kept
// stays below four times what is shown, and two pages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/internal/core.h"
#include "engine/internal/patch_values.h"

namespace geardb::engine {

/// All values of a trajectory's column.
struct WholeColumn {
  RowSpan span = {};
  ColumnRows rows = {};
  std::vector<uint64_t> offsets = {};

  ColumnValue value() const { return {rows.column, rows.view(), offsets}; }
};

/// What to patch the trajectory's column with; nothing where not enough would leave by it, or the
/// trajectory has left. No mutex but `patches` is held.
Result<std::optional<WholeColumn>> FindRewrite(DatabaseCore* database, const TableCore& table,
                                               const PatchedValues::Grown& grown);

}  // namespace geardb::engine
