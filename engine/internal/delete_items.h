// PriorityTable::Delete: items that leave one priority table for good.
#pragma once

#include <cstdint>
#include <span>

#include "engine/internal/core.h"

namespace geardb::engine {

/// Logs and applies that items are deleted, all of them or none; and removes what nobody can draw
/// any more. `stale_already` items were gone before.
Result<SetOutcome> CommitDelete(PriorityTable::Impl* impl, std::span<const fb::Handed> items,
                                uint64_t stale_already);

}  // namespace geardb::engine
