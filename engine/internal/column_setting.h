// ColumnSetting: per-trajectory columns that a call sets, checked against their table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/internal/append_bind.h"
#include "engine/internal/table_layout.h"

namespace geardb::engine {

/// The bytes are the caller's.
struct ColumnSetting {
  TrajectoryId id = 0;
  std::vector<size_t> columns;           ///< By number.
  std::vector<const std::byte*> values;  ///< Of each, as it is in index memory.
  std::vector<CompanionRows> companions;
  std::deque<uint64_t> counts;  ///< What `values` of those with companions point to.

  ColumnSetting() = default;
  ColumnSetting(ColumnSetting&&) = default;  // Elements of a deque stay where they are.
  ColumnSetting& operator=(ColumnSetting&&) = default;
};

/// What `values` set. NotFound, InvalidArgument: what is wrong with them.
Result<ColumnSetting> BindColumns(const TableLayout& layout, ColumnValues values);

}  // namespace geardb::engine
