// Patch: new values for rows that are stored already.
#pragma once

#include <cstdint>
#include <optional>

#include "base/types.h"

namespace geardb {

/// Rows [first_row, first_row + rows) of a trajectory. `first_row` is absolute; a negative one
/// counts from the end, as in NumPy.
struct RowSpan {
  TrajectoryId id = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
};

struct PatchOptions {
  std::optional<Ack> ack = {};  ///< Absent: the database's. At least kLog.
  /// How long a call may wait for frames, for room in the log's ring and for another patch of the
  /// table: one at a time.
  int64_t admission_timeout_ms = 10'000;
};

/// What became of the rows of a patch.
struct PatchOutcome {
  uint64_t applied = 0;  ///< Rows that have their new values.
  uint64_t stale = 0;    ///< Rows that are gone, or of a trajectory that is: ignored.
  Lsn end_lsn = 0;       ///< Ticket{end_lsn} waits for an acknowledgement; 0: nothing was logged.
};

}  // namespace geardb
