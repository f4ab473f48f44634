// Epochs of a priority table: the records that begin them and end their passes.
#pragma once

#include "engine/internal/core.h"

namespace geardb::engine {

/// See PriorityTable::BeginEpoch.
Status BeginEpoch(PriorityTable::Impl* impl);

/// Logs that the rest of a pass is not shown; it says nothing where that pass has ended by then.
/// Removes what is covered by that, where the priority table says so. Waits for room in the log
/// until the deadline.
Status EndPass(PriorityTable::Impl* impl, const EpochMark& ended, Deadline deadline);

}  // namespace geardb::engine
