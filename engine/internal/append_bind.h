// What a writer's caller gives, checked against the table and the lanes, as rows to append. Nothing
// is changed.
#pragma once

#include <vector>

#include "engine/internal/append_plan.h"
#include "engine/writer.h"

namespace geardb::engine {

/// The rows of one call.
struct BoundAppend {
  std::vector<LaneRows> calls;    ///< One for each lane of which rows are stored.
  std::vector<LaneRows> nothing;  ///< Of these nothing is left: the cut of a first row.
};

/// The calls of a Writer that append to one lane.
enum class AppendKind : uint8_t { kOneRow, kSteps, kTrajectory };

/// InvalidArgument for a lane that the writer does not have; FailedPrecondition in a fork.
Status CheckLane(Writer::Impl* impl, uint32_t lane);

/// As Writer::Append, AppendSteps and AppendTrajectory refuse a call before it does anything. What
/// they bind points to the caller's bytes.
Result<BoundAppend> BindAppend(Writer::Impl* impl, AppendKind kind, ColumnValues rows,
                               const AppendOptions& options);
/// Likewise Writer::AppendLanes.
Result<BoundAppend> BindAppendLanes(Writer::Impl* impl, ColumnValues rows,
                                    const AppendLanesOptions& options);

}  // namespace geardb::engine
