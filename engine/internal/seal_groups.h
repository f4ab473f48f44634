// Draw groups that are sealed: by hand, or since their deadline has passed.
//
// When a group's first member came is known in this process alone (DrawGroups::FirstUs); what
// becomes of a deadline is a record, so that groups are the same wherever the log is read.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/internal/core.h"
#include "engine/internal/timekeeper.h"

namespace geardb::engine {

/// See PriorityTable::SealGroup.
Status SealGroup(PriorityTable::Impl* impl, int64_t key);
/// See PriorityTable::SealOverdueGroups.
Result<uint64_t> SealOverdueGroups(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                                   uint32_t priority_table, const GoesOn& goes_on = ToTheEnd);

}  // namespace geardb::engine
