// Changes to a table that come from outside of writers and samplers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/internal/change_scope.h"
#include "engine/internal/core.h"
#include "engine/table.h"

namespace geardb::engine {

/// The raw priority that items of a new priority table begin with, unless a column says it.
inline float FirstPriority(const PriorityTableSpec& spec) {
  return spec.initial == InitialPriority::kConstant ? spec.initial_priority_value : 1.0f;
}

/// Takes trajectories out of the state of a database that is open read-only; returns how many were
/// there.
size_t HideTrajectories(TableCore* table, std::span<const TrajectoryId> ids);

/// The trajectory of a table that has that of a companion; 0: that is not there any more.
TrajectoryId OwnerOf(const TableCore& owner, const TableCore& companion, TrajectoryId id);

/// What a read of this page of the table has met is not there any more: the page has left, or its
/// column group was dropped.
inline bool HasLeft(const TableCore& table, const PagePlace& place) {
  MutexLock lock(&table.state->mutex);
  return !table.state->pages().IsLive(place.lpn, place.generation) ||
         table.state->layout().group(place.group).dropped;
}

/// A page of the trajectory (or of one of a companion, then its owner's is meant) was found
/// damaged, as `why` says: the trajectory is removed, or hidden where the database is read-only.
/// Returns `why`, and what has become of it; OK where it has left, or is hidden, already. A removal
/// waits for room in the log at most until `deadline`.
Status RemoveDamaged(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                     TrajectoryId id, const Status& why,
                     Deadline deadline = Deadline::AfterMs(kAdmissionMs));

/// Such a page cannot be read, since a file is away or was cut: the trajectory stays, and until the
/// next open its items are not drawn. Returns as RemoveDamaged.
Status HideUnreadable(const std::shared_ptr<TableCore>& table, TrajectoryId id, const Status& why);

/// See Table::Remove, Table::Truncate, Table::SetColumns, Table::CreatePriorityTable.
Status RemoveTrajectories(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                          std::span<const TrajectoryId> ids, const RemovalCause& cause = {},
                          Deadline deadline = Deadline::AfterMs(kAdmissionMs));
/// Chooses what leaves; the state's mutex is held.
using ChooseSlots = std::function<Result<std::vector<Slot>>(const TableState& state)>;
/// Removes what `choose` says, which is asked again where the call had to wait.
Result<uint64_t> RemoveChosen(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                              const RemovalCause& cause, const ChooseSlots& choose,
                              Deadline deadline = Deadline::AfterMs(kAdmissionMs));
Result<uint64_t> RemoveMatching(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                                const Filter& filter, const RemovalCause& cause = {});
/// Any number of trajectories, by as many records as that takes; NotFound as of Table::Remove.
Status RemoveMany(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                  std::span<const TrajectoryId> ids, const RemovalCause& cause);
/// See Table::Remove of a range.
Result<uint64_t> RemoveRange(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                             const IdRange& ids);
Status TruncateTrajectory(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                          const RowId& first);
Status SetTrajectoryColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                            TrajectoryId id, ColumnValues values);
/// What a record that sets columns of the trajectory in `slot` says; values as they are in index
/// memory. All that has an LSN is published.
flatbuffers::Offset<fb::SetColumns> EncodeSetColumns(const TableCore& table, Slot slot,
                                                     std::span<const size_t> columns,
                                                     std::span<const std::byte* const> values,
                                                     flatbuffers::FlatBufferBuilder* builder);
/// In the copy of a writer that has the trajectory open; null when none has.
void RememberColumn(const TableLayout& layout, size_t column, const std::byte* value, Lane* lane);
Status CreatePriorityTable(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                           const PriorityTableSpec& spec);

/// Trajectories that are finished (TableState::IsFinished), each once.
using FinishedByCause = std::map<RemovalCause, std::vector<TrajectoryId>>;
/// Removes what `find` finds, with the table's mutex: it is asked again once nothing but the record
/// that removes it can come between.
Status RemoveAllOf(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                   const std::function<FinishedByCause(const TableState& state)>& find,
                   Deadline deadline = Deadline::AfterMs(kAdmissionMs));
/// Removes those of the trajectories that nobody can draw any more (TableState::IsFinished), by a
/// record of its own. Where the log refuses it they leave with what follows (FollowUp), or at the
/// next open, as after a crash.
void RemoveFinished(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                    std::span<const fb::Sampled> sampled);
/// Likewise of all trajectories of a table.
void RemoveAllFinishedOf(DatabaseCore* database, const std::shared_ptr<TableCore>& table);
/// Likewise of all tables, when a database has been opened.
void RemoveAllFinished(DatabaseCore* database);

}  // namespace geardb::engine
