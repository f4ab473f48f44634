// Reading values of any length: which rows of a companion a step or a trajectory has, and their
// copies. All calls need the table's mutex held.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/internal/companion.h"
#include "engine/internal/gather_rows.h"
#include "engine/internal/run_builder.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

class RowCursor;

/// The rows that a blob or a wide column has of the trajectory; none where it is not set.
RaggedRange RangeOfBlob(const TableState& state, size_t companion, Slot slot);

/// A step whose rows are wanted.
struct RaggedStep {
  const TableState* state = nullptr;
  Slot slot = kNoSlot;
  int64_t row = 0;
  size_t column = 0;  ///< Among the step columns.
};
/// The ranges of steps, in their order: brings their pages in, and waits until they are there.
/// Corruption where a page is damaged (see PageWaits::failed), or says what cannot be.
Result<std::vector<RaggedRange>> ReadRanges(std::span<const RaggedStep> steps, PageWaits* waits);

/// Copies rows of a companion's trajectory, which are there.
void CopyRange(const TableState& companion, Slot slot, const RaggedRange& range,
               const RowsOutput& output, RunBuilder* runs, PageWaits* waits);

}  // namespace geardb::engine
