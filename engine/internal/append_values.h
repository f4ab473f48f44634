// Values of any length that a caller gives (ragged columns, blobs, wide per-trajectory columns),
// checked against their column: which rows each has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/internal/companion.h"
#include "engine/internal/table_layout.h"
#include "engine/tensor.h"

namespace geardb::engine {

/// Rows that a call appends to a companion. `rows` are the caller's, or `made`'s.
struct CompanionRows {
  size_t companion = 0;
  const std::byte* rows = nullptr;
  uint64_t count = 0;
  std::shared_ptr<const std::vector<std::byte>> made = nullptr;
};

/// What was given for a column: value i is rows [offsets[i], offsets[i + 1]) of `rows`.
struct ValueRows {
  const std::byte* rows = nullptr;
  std::vector<uint64_t> offsets;  ///< One more than there are values; from 0 on, ascending.

  size_t size() const { return offsets.size() - 1; }
  uint64_t total() const { return offsets.back(); }
  uint64_t count(size_t value) const { return offsets[value + 1] - offsets[value]; }
};

/// How many values are expected.
struct ValueCount {
  /// Not known: any number of at least one, and the offsets say it.
  std::optional<uint64_t> values = 1;
  /// Without offsets, one value of all rows. Else offsets are needed.
  bool alone = true;
};

/// InvalidArgument, naming table and column, for another dtype or row shape, offsets that do not
/// ascend from 0 to the number of rows, another number of values.
Result<ValueRows> BindValues(const std::string& table, const CompanionColumn& column,
                             const ColumnValue& given, const ValueCount& count);

}  // namespace geardb::engine
