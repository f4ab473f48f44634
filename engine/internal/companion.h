// Companion tables: where a table keeps what has no fixed size in it. A ragged column, a blob and a
// wide per-trajectory column have one each: a table that nobody sees, of one per-step column, whose
// trajectory in a slot belongs to the owner's trajectory in the same slot and holds its rows, one
// value behind the other. So pages, places, checksums, images and all else are those of any table.
// engine/README.md, "Values of any length".
//
// Invariants:
// - The ids of companions follow the owner's, in the order of the columns; those of columns that
// were
//   added later were the next ones then. All are larger than the owner's.
// - A trajectory of a companion is there only while one of the owner is in its slot. What removes,
//   trims, closes or adopts that one, or sets the column anew, does so with this one: by the same
//   record, in the same call of the state.
// - Owner and companions have one mutex.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/types.h"
#include "engine/schema.h"

namespace geardb::engine {

/// Of a ragged column each step has the rows [begin, end) of the trajectory's: two u64.
struct RaggedRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Bytes of one row of a column, or 0 when a dimension is not positive or the product is out of
/// range.
uint64_t RowBytes(const Column& column);
/// Bytes of what a step of a per-step column has in the table itself.
uint64_t StoredRowBytes(const Column& column);
/// Ragged, a blob, or wide and per trajectory.
bool HasCompanion(const Column& column);
/// InvalidArgument for what such a column cannot be.
Status ValidateCompanion(const TableSpec& spec, const Column& column);
/// " per step", " ragged", …
std::string KindText(ColumnKind kind);

/// The companion of a column of a table. A function of what is stored of the two: frozen.
TableSpec CompanionSpec(const TableSpec& owner, const Column& column);

}  // namespace geardb::engine
