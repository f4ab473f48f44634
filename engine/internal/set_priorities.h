// Updates of raw priorities: from lists of items to log records.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/internal/core.h"
#include "engine/table.h"

namespace geardb::engine {

/// An item and its place in the selector.
struct ListedItem {
  RowId row;
  uint64_t leaf = 0;
};

/// All items in order of (id, row). The state's mutex is held.
std::vector<ListedItem> ListItems(const PriorityTable::Impl& impl);

/// The leaf of an item, or UINT64_MAX. The state's mutex is held.
uint64_t FindItem(const PriorityTable::Impl& impl, const RowId& row);

/// After a change of the weights, or one that was refused after the scale had been changed for it:
/// a scale that fits what there is now, instead of draws that tell small ones apart no more, or
/// large ones. The change stands, or is refused, whatever becomes of this.
void RescaleIfDue(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                  uint32_t priority_table);

/// Likewise for all priority tables of a table.
void RescaleWhereDue(DatabaseCore* database, const std::shared_ptr<TableCore>& table);

/// Likewise within a change; waits for room in the log as that does, and then releases the commit
/// mutex.
Status RescaleInScope(DatabaseCore* database, ChangeScope* scope,
                      const std::shared_ptr<TableCore>& table, uint32_t priority_table)
    GEARDB_REQUIRES(database->commit);

struct ScaleChange {
  uint32_t priority_table;
  int shift;
};

/// Logs a scale ahead of a change that takes `records`, once it is clear that there is room for all
/// of them: what is refused leaves the scale alone.
Status RescaleAhead(DatabaseCore* database, ChangeScope* scope,
                    const std::shared_ptr<TableCore>& table, const ScaleChange& change,
                    std::vector<wal::RecordSize> records) GEARDB_REQUIRES(database->commit);

/// What a Set refuses before anything else: InvalidArgument naming the first priority that is none,
/// or both numbers.
Status CheckSet(const PriorityTableSpec& spec, size_t items, std::span<const float> priorities);
/// The first of these.
Status CheckRawPriorities(const PriorityTableSpec& spec, std::span<const float> priorities);

/// Logs another scale ahead of a Set of these items, whose change takes `records`, where one does
/// not fit it. True: it did, and released the commit mutex where it waited; the caller asks again.
Result<bool> RescaleForSet(PriorityTable::Impl* impl, ChangeScope* scope,
                           std::span<const fb::Item> items, std::vector<wal::RecordSize> records)
    GEARDB_REQUIRES(impl->database->commit);
/// The plan's maximum with these items set. It is exact: the largest priority of an item that is
/// there counts.
Result<float> MaxWith(PriorityTable::Impl* impl, std::span<const fb::Item> items)
    GEARDB_REQUIRES(impl->database->commit);

/// Logs and applies updates, all of them or none; priorities are valid. `stale_already` items were
/// gone before.
Result<SetOutcome> CommitSet(PriorityTable::Impl* impl, std::span<const fb::Item> items,
                             uint64_t stale_already);

/// Logs and applies a priority for every item: in order of (id, row), or one for all.
Result<SetOutcome> CommitSetAll(PriorityTable::Impl* impl, std::span<const float> priorities);

/// See PriorityTable::Configure.
Status ConfigureLimits(PriorityTable::Impl* impl, const PriorityLimits& limits);

}  // namespace geardb::engine
