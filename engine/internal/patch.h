// Patch: new values for rows that are stored. Of every page that it touches a call makes a copy
// with the values in it, and its record, which has the whole new pages, swaps them in: readers see
// a page before the call or after it, and nobody reads a page to change it.
//
//   1. resolve the rows to pages, under the state's mutex
//   2. take frames, copy the pages, put the values over them (no lock: an epoch guard keeps the
//   old)
//   3. commit mutex: what has come or gone since then; the LSN
//   4. the pieces, publish (the swap), acknowledge
//
// Invariants: the patches of a table come one after the other (TableCore::patches); a page's rows
// in the copy are those of the page when the record gets its LSN.
#pragma once

#include <functional>
#include <memory>

#include "engine/internal/core.h"
#include "engine/internal/patch_rows.h"

namespace geardb::engine {

/// Fills in PatchRows; the state's mutex is held.
using ResolvePatch = std::function<Status(const TableState& state, PatchRows* rows)>;

/// See Table::Patch.
Result<PatchOutcome> PatchTable(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                                const ResolvePatch& resolve, ColumnValues values,
                                const PatchOptions& options);

}  // namespace geardb::engine
