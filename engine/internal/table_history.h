// TableHistory: the columns that a table has and had, each with the change that it came with and
// the one that it left with. What the table is after any number of these changes follows from it.
//
// Invariants:
// - Columns and groups keep their numbers, and no number is used twice: those that come are last.
// - The columns of a group come together, in one change. So its pages never change their layout.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/schema.h"

namespace geardb::engine {

/// Of what has not left.
inline constexpr uint32_t kNotDropped = UINT32_MAX;

struct ColumnHistory {
  Column column;                   ///< Its `group` is the name of the one with the number `group`.
  uint32_t group = 0;              ///< Number of its group, where it is per step.
  uint32_t added = 0;              ///< The change that it came with; 0: the table's creation.
  uint32_t dropped = kNotDropped;  ///< The change that it left with.
  /// Of one that was added and has a companion (companion.h): which table that is. 0: of those
  /// that the table was created with, it follows from their order.
  TableId companion = 0;

  bool IsThere(uint32_t version) const { return added <= version && version < dropped; }
};

/// Of group number i + 1. It has left when all its columns have.
struct GroupHistory {
  ColumnGroup group;
  uint32_t added = 0;
};

struct TableHistory {
  /// A table as it is created, without its priority tables. `steps_per_page` is chosen, if it is 0.
  explicit TableHistory(TableSpec created);

  TableSpec options;  ///< Without columns and groups.
  std::vector<ColumnHistory> columns;
  std::vector<GroupHistory> groups;
  /// How often the columns have changed; number of the last change.
  uint32_t version = 0;

  /// The table after the first `at` changes, with the columns and groups that there were.
  TableSpec SpecAt(uint32_t at) const;
  TableSpec spec() const { return SpecAt(version); }
  /// Whether some column of group `number` is there after `at` changes.
  bool HasGroup(size_t number, uint32_t at) const;
};

/// With columns that come: per-step ones in groups that come with them, each in one of `groups` or,
/// where it names none, in one of its own with its name. InvalidArgument.
Result<TableHistory> WithColumns(const TableHistory& before, std::span<const Column> columns,
                                 std::span<const ColumnGroup> groups);
/// The companions of the columns that came with the last change get numbers from `first` on;
/// returns the one behind them.
TableId NumberCompanions(TableHistory* history, TableId first);
/// Without these columns. NotFound, InvalidArgument.
Result<TableHistory> WithoutColumns(const TableHistory& before,
                                    std::span<const std::string_view> names);
/// A history that was stored: InvalidArgument for one that no changes make.
Status ValidateHistory(const TableHistory& history);

}  // namespace geardb::engine
