// From a plan of rows to their bytes: those of pages with frames are gathered once all are there,
// those of pages without afterwards, page by page.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "engine/internal/arena.h"
#include "engine/internal/episode.h"
#include "engine/internal/page_loader.h"
#include "engine/internal/run_builder.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

/// Copies what `runs` have to their outputs, with the pages of `waits`. No table's mutex is held,
/// and the caller has an epoch guard since that of the pages' tables was. Corruption, IoError: see
/// PageWaits::failed.
Status GatherRows(RunBuilder* runs, PageWaits* waits, const HostArena& arena);
/// The same, with the mutex of their tables held since the rows were looked up, when `waits` had
/// `before` pages: where none has come since, none is waited for.
Status GatherRowsHeld(RunBuilder* runs, PageWaits* waits, const HostArena& arena, size_t before);

/// Rows [begin, end) of a step column, of a trajectory that has them.
struct RowsOfColumn {
  size_t column = 0;
  uint64_t row_bytes = 0;  ///< The column's.
  int64_t begin = 0;
  int64_t end = 0;
};
/// Where a copy goes.
struct RowsOutput {
  uint64_t destination = 0;    ///< Bytes from the beginning of the output that was begun last.
  uint64_t out_row_bytes = 0;  ///< Delivered.
};

/// Plans the copies of rows of the cursor's trajectory, one behind the other. The mutex of the
/// table is held.
inline void CopyRows(RowCursor* cursor, const RowsOfColumn& rows, const RowsOutput& output,
                     RunBuilder* runs, PageWaits* waits) {
  const TableState& state = cursor->state();
  const TableLayout& layout = state.layout();
  uint64_t destination = output.destination;
  for (int64_t row = rows.begin; row < rows.end;) {
    const uint32_t offset = layout.OffsetInPage(row);
    const int64_t here = std::min<int64_t>(rows.end - row, layout.steps_per_page() - offset);
    const Lpn lpn = cursor->PageOf(row);
    const auto count = static_cast<uint64_t>(here);
    const FrameRef source = state.RowToRead(rows.column, lpn, offset, waits);
    runs->Copy(source, count * rows.row_bytes, destination, count * output.out_row_bytes);
    destination += count * output.out_row_bytes;
    row += here;
  }
}

}  // namespace geardb::engine
