#include "engine/internal/table_change.h"

#include <algorithm>
#include <cstring>

#include "engine/internal/change_scope.h"
#include "engine/internal/index_budget.h"
#include "engine/internal/ready_items.h"
#include "engine/internal/set_filter.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_scan.h"
#include "engine/internal/write_call.h"

namespace geardb::engine {
namespace {

CommitOptions ReserveUrgency() {
  return {.urgency = wal::Urgency::kReserve, .deadline = Deadline::AfterMs(kAdmissionMs)};
}

CommitOptions AppendUrgency() { return {.deadline = Deadline::AfterMs(kAdmissionMs)}; }

/// How many trajectories one record can remove.
uint64_t RemovedMax(const DatabaseCore& database) {
  return (database.log->record_bytes_max() - 2048) / sizeof(fb::Removed);
}

}  // namespace

Status RemoveTrajectories(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                          std::span<const TrajectoryId> ids, const RemovalCause& cause,
                          Deadline deadline) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  const std::set<TrajectoryId> wanted(ids.begin(), ids.end());
  if (wanted.empty()) return Status::Ok();
  const uint64_t ids_max = RemovedMax(*database);
  if (wanted.size() > ids_max) {
    return Status::InvalidArgument("table '", table->layout().spec().name, "': ", wanted.size(),
                                   " trajectories cannot be removed at once; at most ", ids_max,
                                   " fit a record of this log (a quarter of its ring)");
  }
  const CommitOptions how{.urgency = wal::Urgency::kReserve, .deadline = deadline};
  Lsn end = 0;
  {
    ChangeScope scope(database, table.get(), how);
    const wal::RecordSize size = DatabaseCore::RemovalSize(wanted.size());
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, how, &waited));
    GEARDB_RETURN_IF_ERROR(database->CatchUp());
    std::vector<Slot> slots;
    {
      MutexLock state_lock(&table->state->mutex);
      for (const TrajectoryId id : wanted) {
        slots.push_back(table->state->trajectories().FindById(id));
        if (slots.back() == kNoSlot) {
          return Status::NotFound("table '", table->layout().spec().name, "' has no trajectory ",
                                  id, "; nothing was removed");
        }
      }
    }
    Eviction eviction;
    for (const Slot slot : slots) eviction.removed.push_back(table->plan->Remove(slot));
    end = database->LogRemoval(&scope, table, eviction, cause);
  }
  GEARDB_RETURN_IF_ERROR(database->Acknowledge(end, Ack::kLog));
  RescaleWhereDue(database, table);
  return Status::Ok();
}

TrajectoryId OwnerOf(const TableCore& owner, const TableCore& companion, TrajectoryId id) {
  MutexLock lock(&owner.state->mutex);
  const Slot slot = companion.state->trajectories().FindById(id);
  return slot == kNoSlot ? 0 : owner.state->trajectories().record(slot).id;
}

namespace {

/// It is hidden until the next open.
bool IsUnreadable(const TableCore& table, TrajectoryId id) {
  MutexLock lock(&table.state->mutex);
  const Slot slot = table.state->trajectories().FindById(id);
  return slot != kNoSlot && table.state->IsUnreadable(slot);
}

}  // namespace

Status RemoveDamaged(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                     TrajectoryId id, const Status& why, Deadline deadline) {
  if (table->is_companion) {
    const auto owner = table->owner.lock();
    if (owner == nullptr) return why;
    return RemoveDamaged(database, owner, OwnerOf(*owner, *table, id), why, deadline);
  }
  if (IsUnreadable(*table, id)) return Status::Ok();
  if (database->log == nullptr) {
    if (HideTrajectories(table.get(), {&id, 1}) == 0) return Status::Ok();
    return Status::Corruption(why.message(), "; the trajectory is not shown any more");
  }
  const Status removed =
      RemoveTrajectories(database, table, {&id, 1}, {RemovalReason::kDamaged}, deadline);
  if (removed.ok()) return Status::Corruption(why.message(), "; the trajectory was removed");
  if (removed.code() == StatusCode::kNotFound) return Status::Ok();
  return Status::Corruption(why.message(),
                            "; the trajectory could not be removed: ", removed.message());
}

Status HideUnreadable(const std::shared_ptr<TableCore>& table, TrajectoryId id, const Status& why) {
  if (table->is_companion) {
    const auto owner = table->owner.lock();
    return owner == nullptr ? why : HideUnreadable(owner, OwnerOf(*owner, *table, id), why);
  }
  MutexLock lock(&table->state->mutex);
  TableState& state = *table->state;
  const Slot slot = state.trajectories().FindById(id);
  if (slot == kNoSlot || state.IsUnreadable(slot)) return Status::Ok();
  if (const Status hidden = state.HideUnreadable(slot); !hidden.ok()) {
    return Status::Corruption(why.message(),
                              "; the trajectory could not be hidden: ", hidden.message());
  }
  return Status::Corruption(why.message(), "; the trajectory is not drawn until the next open");
}

Result<uint64_t> RemoveChosen(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                              const RemovalCause& cause, const ChooseSlots& choose,
                              Deadline deadline) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  CommitOptions how = {.urgency = wal::Urgency::kReserve, .deadline = deadline};
  const uint64_t each_max = RemovedMax(*database);
  std::vector<Slot> slots;
  Lsn end = 0;
  {
    ChangeScope scope(database, table.get(), how);
    std::vector<wal::RecordSize> records;
    for (bool waited = true; waited;) {
      GEARDB_RETURN_IF_ERROR(scope.status());
      GEARDB_RETURN_IF_ERROR(database->CatchUp());
      {
        MutexLock state_lock(&table->state->mutex);
        GEARDB_ASSIGN_OR_RETURN(slots, choose(*table->state));
      }
      if (slots.empty()) return uint64_t{0};
      records.clear();
      for (uint64_t done = 0; done < slots.size(); done += each_max) {
        records.push_back(
            DatabaseCore::RemovalSize(std::min<uint64_t>(each_max, slots.size() - done)));
      }
      GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({records.data(), 1}, how, &waited));
    }
    if (records.size() > 1) {
      // Refused before the first, where the log's bound or the disk has no room for all.
      GEARDB_RETURN_IF_ERROR(scope.PrepareFor(records, how.urgency));
      how.deadline = Deadline::Infinite();  // What has begun is finished.
    }
    for (size_t i = 0; i < records.size(); ++i) {
      GEARDB_RETURN_IF_ERROR(scope.AwaitRoomHolding(records[i], how));
      Eviction eviction;
      for (uint64_t at = i * each_max; at < slots.size() && at < (i + 1) * each_max; ++at) {
        eviction.removed.push_back(table->plan->Remove(slots[at]));
      }
      end = database->LogRemoval(&scope, table, eviction, cause);
    }
  }
  GEARDB_RETURN_IF_ERROR(database->Acknowledge(end, Ack::kLog));
  RescaleWhereDue(database, table);
  return uint64_t{slots.size()};
}

Result<uint64_t> RemoveMatching(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                                const Filter& filter, const RemovalCause& cause) {
  return RemoveChosen(database, table, cause,
                      [&](const TableState& state)
                          GEARDB_REQUIRES(state.mutex) { return MatchingSlots(state, filter); });
}

Result<uint64_t> RemoveRange(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                             const IdRange& ids) {
  return RemoveChosen(database, table, {}, [&ids](const TableState& state) {
    std::vector<Slot> slots;
    state.trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
      if (record.id >= ids.begin && record.id < ids.end) slots.push_back(slot);
    });
    return Result<std::vector<Slot>>(std::move(slots));
  });
}

Status RemoveMany(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                  std::span<const TrajectoryId> ids, const RemovalCause& cause) {
  const uint64_t each_max = RemovedMax(*database);
  for (uint64_t done = 0; done < ids.size(); done += each_max) {
    const uint64_t count = std::min<uint64_t>(each_max, ids.size() - done);
    GEARDB_RETURN_IF_ERROR(RemoveTrajectories(database, table, ids.subspan(done, count), cause));
  }
  return Status::Ok();
}

Status RemoveAllOf(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                   const std::function<FinishedByCause(const TableState& state)>& find,
                   Deadline deadline) {
  const uint64_t each_max = RemovedMax(*database);
  const FinishedByCause finished = [&] {
    MutexLock state_lock(&table->state->mutex);
    return find(*table->state);
  }();
  for (const auto& found : finished) {
    const RemovalCause& cause = found.first;
    // Looked for again where nothing else can change them any more: what was found may have left,
    // or be none of these by now.
    const auto choose = [&](const TableState& state) GEARDB_REQUIRES(state.mutex) {
      std::vector<Slot> slots;
      const FinishedByCause now = find(state);
      if (const auto still = now.find(cause); still != now.end()) {
        for (const TrajectoryId id : still->second) {
          slots.push_back(state.trajectories().FindById(id));
          if (slots.size() == each_max) break;
        }
      }
      return Result<std::vector<Slot>>(std::move(slots));
    };
    // A record at a time: all of them may be more than the log has room for at once.
    for (uint64_t removed = each_max; removed == each_max;) {
      GEARDB_ASSIGN_OR_RETURN(removed, RemoveChosen(database, table, cause, choose, deadline));
    }
  }
  return Status::Ok();
}

namespace {

/// They leave with what follows: see FollowUp.
void LeaveToFollowUp(DatabaseCore* database, TableCore* table,
                     std::vector<SlotOfTrajectory> finished) GEARDB_REQUIRES(table->state->mutex) {
  if (finished.empty()) return;
  table->state->PutBackFinished(std::move(finished));
  LeaveFollowUp(database, table, Deadline::AfterMs(kFollowUpAgainMs));
}

}  // namespace

void RemoveFinished(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                    std::span<const fb::Sampled> sampled) {
  const auto find = [&](const TableState& state) GEARDB_REQUIRES(state.mutex) {
    FinishedByCause finished;
    if (!state.RemovesFinished()) return finished;
    for (const fb::Sampled& seen : sampled) {
      const index::TrajectoryRecord& record = state.trajectories().record(seen.slot());
      const bool there =
          record.generation == seen.generation() && record.state != index::TrajectoryState::kFree;
      if (!there || !state.IsFinished(seen.slot())) continue;
      finished[state.CauseOfFinished(seen.slot())].push_back(record.id);
    }
    return finished;
  };
  if (RemoveAllOf(database, table, find).ok()) return;
  std::vector<SlotOfTrajectory> later;
  for (const fb::Sampled& seen : sampled) later.push_back({seen.slot(), seen.generation()});
  MutexLock lock(&table->state->mutex);
  LeaveToFollowUp(database, table.get(), std::move(later));
}

void RemoveAllFinished(DatabaseCore* database) {
  if (database->log == nullptr) return;  // Read-only.
  for (const auto& table : database->AllTables()) RemoveAllFinishedOf(database, table);
}

void RemoveAllFinishedOf(DatabaseCore* database, const std::shared_ptr<TableCore>& table) {
  const auto find = [](const TableState& state) GEARDB_REQUIRES(state.mutex) {
    FinishedByCause finished;
    for (const Slot slot : state.FinishedTrajectories()) {
      finished[state.CauseOfFinished(slot)].push_back(state.trajectories().record(slot).id);
    }
    return finished;
  };
  if (RemoveAllOf(database, table, find).ok()) return;
  MutexLock lock(&table->state->mutex);
  std::vector<SlotOfTrajectory> later;
  for (const Slot slot : table->state->FinishedTrajectories()) {
    later.push_back({slot, table->state->trajectories().record(slot).generation});
  }
  LeaveToFollowUp(database, table.get(), std::move(later));
}

size_t HideTrajectories(TableCore* table, std::span<const TrajectoryId> ids) {
  MutexLock lock(&table->state->mutex);
  std::vector<fb::Removed> hidden;
  for (const TrajectoryId id : ids) {
    const Slot slot = table->state->trajectories().FindById(id);
    if (slot == kNoSlot) continue;
    hidden.emplace_back(id, slot, table->state->trajectories().record(slot).generation);
  }
  flatbuffers::FlatBufferBuilder body;
  body.Finish(fb::CreateRemove(body, body.CreateVectorOfStructs(hidden), 0));
  table->state->Apply(*flatbuffers::GetRoot<fb::Remove>(body.GetBufferPointer()), 0);
  return hidden.size();
}

Status TruncateTrajectory(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                          const RowId& first) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  const CommitOptions how = ReserveUrgency();
  Lsn end = 0;
  {
    ChangeScope scope(database, table.get(), how);
    const wal::RecordSize size = DatabaseCore::RemovalSize(1);
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, how, &waited));
    GEARDB_RETURN_IF_ERROR(database->CatchUp());
    Slot slot = kNoSlot;
    {
      MutexLock state_lock(&table->state->mutex);
      const TableState& state = *table->state;
      slot = state.trajectories().FindById(first.id);
      if (slot == kNoSlot) {
        return Status::NotFound("table '", table->layout().spec().name, "' has no trajectory ",
                                first.id);
      }
      const index::TrajectoryRecord& record = state.trajectories().record(slot);
      const int64_t steps_end = state.StepsEnd(record);
      if (first.row < 0 || first.row >= steps_end) {
        return Status::InvalidArgument("table '", table->layout().spec().name, "': trajectory ",
                                       first.id, " cannot begin at row ", first.row,
                                       "; its steps are rows ", record.first_row, " to ",
                                       steps_end - 1);
      }
      if (first.row <= static_cast<int64_t>(record.first_row)) return Status::Ok();
    }
    Eviction eviction;
    eviction.trimmed.push_back(table->plan->Trim(slot, static_cast<uint64_t>(first.row)));
    end = database->LogRemoval(&scope, table, eviction, {});
  }
  GEARDB_RETURN_IF_ERROR(database->Acknowledge(end, Ack::kLog));
  FollowUp(database, table);
  return Status::Ok();
}

flatbuffers::Offset<fb::SetColumns> EncodeSetColumns(const TableCore& table, Slot slot,
                                                     std::span<const size_t> columns,
                                                     std::span<const std::byte* const> values,
                                                     flatbuffers::FlatBufferBuilder* builder) {
  const TableLayout& layout = table.layout();
  std::vector<fb::ColumnSet> sets;
  std::vector<uint8_t> bytes;
  std::vector<ColumnGiven> given;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto* value = reinterpret_cast<const uint8_t*>(values[i]);
    sets.emplace_back(slot, static_cast<uint32_t>(columns[i]));
    bytes.insert(bytes.end(), value, value + layout.trajectory_columns()[columns[i]].bytes);
    given.push_back({columns[i], value});
  }
  std::vector<flatbuffers::Offset<fb::NewItems>> items;
  {
    MutexLock state_lock(&table.state->mutex);
    items = BuildReadyItems(table, {&slot, 1}, given, builder);
  }
  const auto sets_offset = builder->CreateVectorOfStructs(sets);
  const auto bytes_offset = builder->CreateVector(bytes);
  const auto items_offset = items.empty() ? 0 : builder->CreateVector(items);
  return fb::CreateSetColumns(*builder, sets_offset, bytes_offset, items_offset);
}

void RememberColumn(const TableLayout& layout, size_t column, const std::byte* value, Lane* lane) {
  if (lane == nullptr) return;
  size_t offset = 0;
  for (size_t c = 0; c < column; ++c) offset += layout.trajectory_columns()[c].bytes;
  const uint64_t bytes = layout.trajectory_columns()[column].bytes;
  const std::span<const std::byte> unset = layout.unset_trajectory();
  for (size_t at = lane->columns.size(); at < offset + bytes; ++at) {
    lane->columns.push_back(unset[at]);  // It came later than the writer.
  }
  std::memcpy(lane->columns.data() + offset, value, bytes);
}

Status SetTrajectoryColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                            TrajectoryId id, ColumnValues values) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  GEARDB_ASSIGN_OR_RETURN(ColumnSetting setting, BindColumns(table->layout(), values));
  setting.id = id;
  if (setting.columns.empty()) {
    MutexLock lock(&table->state->mutex);
    if (table->state->trajectories().FindById(id) != kNoSlot) return Status::Ok();
    return Status::NotFound("table '", table->layout().spec().name, "' has no trajectory ", id);
  }
  const WriteBatch::Impl none;
  const WriteOptions options{.ack = Ack::kLog, .admission_timeout_ms = kAdmissionMs};
  return WriteCall(database, none, options).SetColumns(table, std::move(setting));
}

namespace {

/// InvalidArgument naming a trajectory whose value of the column that gives the priorities is none.
Status CheckInitialColumn(const TableState& state, const PriorityTableSpec& spec) {
  if (spec.initial != InitialPriority::kColumn) return Status::Ok();
  const size_t column = *state.layout().FindTrajectoryColumn(spec.initial_priority_column);
  Status status;
  state.trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    float value = 0;
    std::memcpy(&value, state.ValueOf(column, slot).data(), sizeof(value));
    if (index::ValidPriority(value) || !status.ok()) return;
    status = Status::InvalidArgument(
        "priority table '", spec.name, "' takes priorities from column '",
        spec.initial_priority_column, "', which is ", value, " for trajectory ", record.id,
        "; expected a finite value of at least 0");
  });
  return status;
}

/// What a priority table names is there.
Status CheckFits(const TableLayout& layout, const PriorityTableSpec& spec) {
  GEARDB_RETURN_IF_ERROR(ValidatePriorityTableSpec(layout.spec(), spec));
  GEARDB_RETURN_IF_ERROR(CheckRequiredNames(layout.spec(), spec));
  GEARDB_RETURN_IF_ERROR(CheckStandingFilter(spec, layout));
  return CheckRequiredNumbers(layout, spec);
}

/// What the table would be with one more.
TableSpec WithPriorityTable(TableCore* table, const PriorityTableSpec& spec) {
  MutexLock lock(&table->state->mutex);
  TableSpec with = table->state->WholeSpec();
  with.priority_tables.push_back(spec);
  return with;
}

/// As CreatePriorityTable, where there is index memory now.
Status TryCreatePriorityTable(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                              const PriorityTableSpec& spec, const CommitOptions& how) {
  FunctionChange change(nullptr);
  const auto stored = EncodePriorityTableSpec(&change.body, spec);
  size_t number = 0;
  wal::Reservation reservation;
  {
    ChangeScope scope(database, table.get(), how);
    // The second is of a rescale: what comes after the first must not be refused.
    const wal::RecordSize bounds[] = {wal::RecordSize::For(change.body.GetSize() + 1024, {}),
                                      DatabaseCore::RescaleSize()};
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom(bounds, how, &waited));
    GEARDB_RETURN_IF_ERROR(database->CatchUp());
    {
      MutexLock state_lock(&table->state->mutex);
      number = table->state->priority_table_count();
      // A column may have been dropped since.
      GEARDB_RETURN_IF_ERROR(CheckFits(table->layout(), spec));
      for (size_t i = 0; i < number; ++i) {
        if (table->state->priority(i).spec().name == spec.name) {
          return Status::AlreadyExists("table '", table->layout().spec().name,
                                       "' has a priority table '", spec.name, "'");
        }
      }
      GEARDB_RETURN_IF_ERROR(CheckInitialColumn(*table->state, spec));
      GEARDB_RETURN_IF_ERROR(table->state->AddPriorityTable(spec));
    }
    table->plan->max_priority.push_back(1.0f);
    change.FinishBody(
        {.table = table->layout().id(), .priority_table = static_cast<uint32_t>(number)},
        fb::Change::CreatePriorityTable,
        fb::CreateCreatePriorityTable(change.body, stored, FirstPriority(spec)).Union());
    change.set_apply([&table, &change, number](Lsn, Lsn end) {
      ApplyLock state_lock(table->state.get(), end);
      table->state->Apply(*change.operation()->change_as_CreatePriorityTable(), number);
      table->state->changed.NotifyAll();
    });
    reservation = scope.Reserve({.size = wal::RecordSize::For(change.body_bytes().size(), {})});
    database->Finish(reservation, {}, &change);
    // What was stored may have any priorities.
    GEARDB_RETURN_IF_ERROR(RescaleInScope(database, &scope, table, static_cast<uint32_t>(number)));
  }
  return database->Acknowledge(reservation.end, Ack::kSync);
}

}  // namespace

Status CreatePriorityTable(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                           const PriorityTableSpec& spec) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  GEARDB_RETURN_IF_ERROR(CheckFits(table->layout(), spec));
  if (database->timekeeper != nullptr) {
    GEARDB_RETURN_IF_ERROR(database->timekeeper->Watch(
        {.name = table->layout().spec().name, .priority_tables = {spec}}));
  }
  const CommitOptions how = AppendUrgency();
  const Status status = TryWhileTablesLeave(
      database, how.deadline, [&] { return TryCreatePriorityTable(database, table, spec, how); });
  if (database->timekeeper != nullptr) database->timekeeper->LookAnew();
  if (!status.ok()) return NameIndexBudget(status, *database, WithPriorityTable(table.get(), spec));
  if (!spec.filter.empty()) FollowUp(database, table);
  return Status::Ok();
}

}  // namespace geardb::engine
