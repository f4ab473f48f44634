// Values of any length in a WriteCall: rows of companions beside those of their owner, and columns
// of a trajectory that is there. One record has all of it, the owner's operation first.

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "engine/internal/frame_room.h"
#include "engine/internal/ready_items.h"
#include "engine/internal/table_change.h"
#include "engine/internal/write_call.h"

namespace geardb::engine {

Result<std::vector<Appended>> AppendWithCompanions(Writer::Impl* writer, Writer::Impl::Calls calls,
                                                   Writer::Impl::Priorities priorities,
                                                   const WriteOptions& options) {
  const WriteBatch::Impl none;
  return WriteCall(writer->database(), none, options).Append(writer, calls, priorities);
}

Result<std::vector<Appended>> WriteCall::Append(Writer::Impl* writer, Writer::Impl::Calls calls,
                                                Writer::Impl::Priorities priorities) {
  alone_ = true;
  ack_ = std::max(ack_, Ack::kLog);
  GEARDB_RETURN_IF_ERROR(AddRows(0, writer, {priorities.begin(), priorities.end()}, calls));
  GEARDB_RETURN_IF_ERROR(RunBound());
  std::vector<Appended> appended;
  const AppendPlan& plan = appends_[0].plan;
  for (size_t i = 0; i < calls.size(); ++i) {
    appended.push_back({.id = plan.calls[i].id,
                        .first_row = plan.calls[i].first_row,
                        .rows = static_cast<int64_t>(calls[i].rows),
                        .end_lsn = records_.back().reservation.end});
  }
  return appended;
}

Status WriteCall::AddCompanionRows(size_t operation, Writer::Impl* writer, const LaneRows& call) {
  for (const CompanionRows& rows : call.companions) {
    if (rows.count == 0) continue;
    Writer::Impl* const of_companion = writer->CompanionFor(rows.companion, call.lane);
    if (of_companion == nullptr) continue;
    const bool ragged = writer->layout().companions()[rows.companion].ragged();
    LaneRows theirs{.lane = call.lane, .rows = rows.count, .columns = {rows.rows}};
    theirs.owner = &writer->lane(call.lane);
    // A ragged one ends with its owner, others are closed from the beginning.
    if (!ragged) theirs.end = End::kTruncated;
    if (ragged && !writer->layout().spec().stream) theirs.end = call.end;
    GEARDB_RETURN_IF_ERROR(AddRows(operation, of_companion, {}, {&theirs, 1}));
  }
  return Status::Ok();
}

void WriteCall::LeaveOutDropped() {
  const size_t left_out = std::erase_if(appends_, [](TableAppend& append) {
    const TableCore& table = *append.writer->table_;
    if (!table.is_companion || !table.dropped.load()) return false;
    const auto owner = table.owner.lock();
    if (owner == nullptr || owner->dropped.load()) return false;
    append.writer->FreeFrames(&append.plan);
    return true;
  });
  if (left_out > 0) CollectPieces();
}

uint64_t WriteCall::CompanionGrowth(const TableCore& owner) const {
  uint64_t bytes = 0;
  for (const TableAppend& other : appends_) {
    if (other.writer->table_->owner.lock().get() != &owner) continue;
    AppendPlan plan;
    other.writer->CountRows(other.calls, &plan);
    bytes += plan.growth.pages * other.writer->layout().page_bytes();
  }
  return bytes;
}

// ---- Columns of a trajectory.

Status WriteCall::SetColumns(const std::shared_ptr<TableCore>& table, ColumnSetting setting) {
  alone_ = true;
  ack_ = Ack::kLog;
  TableColumns& columns = columns_.emplace_back();
  columns.table = table;
  columns.setting = std::move(setting);
  const auto companions = table->CompanionsNow();
  for (const CompanionRows& rows : columns.setting.companions) {
    const auto& companion = companions[rows.companion];
    if (rows.count == 0 || companion == nullptr) continue;
    columns.writers.push_back(std::make_unique<Writer::Impl>(
        std::shared_ptr<DatabaseCore>(database_, [](DatabaseCore*) {}), companion,
        WriterOptions()));
    LaneRows theirs{.rows = rows.count, .end = End::kTruncated, .columns = {rows.rows}};
    theirs.owner = &columns.lane;
    GEARDB_RETURN_IF_ERROR(AddRows(0, columns.writers.back().get(), {}, {&theirs, 1}));
  }
  return RunBound();
}

Status WriteCall::CheckColumnsOnce() const {
  std::set<std::pair<const TableCore*, TrajectoryId>> removed, set;
  for (const TableRemoval& removal : removals_) {
    for (const auto& [operation, id] : removal.ids) removed.emplace(removal.table.get(), id);
  }
  for (const TableColumns& columns : columns_) {
    const std::pair one(columns.table.get(), columns.setting.id);
    const bool again = !set.insert(one).second;
    if (!again && !removed.contains(one)) continue;
    const Status refused = Status::InvalidArgument(
        "table '", columns.table->layout().spec().name, "': columns of trajectory ", one.second,
        again ? " are set by another operation, too" : " are set, and the batch removes it");
    return OfOperation(columns.operation, refused);
  }
  return Status::Ok();
}

Status WriteCall::FindColumns(TableColumns* columns) {
  const TableCore& table = *columns->table;
  GEARDB_RETURN_IF_ERROR(database_->CheckNotDropped(table));
  const ColumnSetting& setting = columns->setting;
  if (LaneOf(table, setting.id)) {
    return Status::InvalidArgument(
        "table '", table.layout().spec().name, "': columns of trajectory ", setting.id,
        " are set, and the batch appends to it; give them with the rows");
  }
  MutexLock lock(&table.state->mutex);
  const Slot slot = table.state->trajectories().FindById(setting.id);
  if (slot == kNoSlot) {
    return Status::NotFound("table '", table.layout().spec().name, "' has no trajectory ",
                            setting.id);
  }
  columns->lane.slot = slot;
  columns->lane.generation = table.state->trajectories().record(slot).generation;
  for (size_t i = 0; i < setting.columns.size(); ++i) {
    GEARDB_RETURN_IF_ERROR(table.state->CheckColumnValue(setting.columns[i], setting.values[i]));
  }
  return Status::Ok();
}

uint64_t WriteCall::ColumnsBytesMax(const TableColumns& columns) {
  uint64_t bytes = ReadyItemsBytes(*columns.table, 1);
  for (const size_t column : columns.setting.columns) {
    bytes += columns.table->layout().trajectory_columns()[column].bytes + sizeof(fb::ColumnSet);
  }
  return bytes;
}

void WriteCall::CommitColumns(const TableColumns& columns) {
  const TableLayout& layout = columns.table->layout();
  const Slot slot = columns.lane.slot;
  Lane* const lane = columns.table->plan->OpenLane(slot);
  for (size_t i = 0; i < columns.setting.columns.size(); ++i) {
    const size_t column = columns.setting.columns[i];
    const TrajectoryColumn& set = layout.trajectory_columns()[column];
    if (set.companion) columns.table->plan->EmptyCompanion(*set.companion, slot);
    RememberColumn(layout, column, columns.setting.values[i], lane);
  }
}

flatbuffers::Offset<fb::Operation> WriteCall::EncodeColumns(const TableColumns& columns,
                                                            WriteChange* change) {
  const TableCore& table = *columns.table;
  change->targets.push_back({.table = columns.table});
  const auto set = EncodeSetColumns(table, columns.lane.slot, columns.setting.columns,
                                    columns.setting.values, &change->body);
  return fb::CreateOperation(change->body, table.layout().id(), 0, fb::Change::SetColumns,
                             set.Union());
}

// ---- Rows of companions alone.

Status WriteCall::BindOwned(std::span<const OwnedRows> rows) {
  const auto companions = owned_->table->CompanionsNow();
  for (size_t k = 0; k < companions.size(); ++k) {
    std::vector<OwnedRows> of_companion;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(of_companion),
                 [&](const OwnedRows& one) { return one.companion == k; });
    if (of_companion.empty() || companions[k] == nullptr) continue;
    const WriterOptions options{.lanes = static_cast<uint32_t>(of_companion.size())};
    Writer::Impl& writer = *owned_->writers.emplace_back(std::make_unique<Writer::Impl>(
        std::shared_ptr<DatabaseCore>(database_, [](DatabaseCore*) {}), companions[k], options));
    GEARDB_ASSIGN_OR_RETURN(const std::vector<LaneRows> calls,
                            TakeOverOwned(of_companion, &writer));
    if (!calls.empty()) GEARDB_RETURN_IF_ERROR(AddRows(0, &writer, {}, calls));
  }
  return Status::Ok();
}

Result<std::vector<LaneRows>> WriteCall::TakeOverOwned(std::span<const OwnedRows> rows,
                                                       Writer::Impl* writer)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {  // A companion has its owner's mutex.
  std::vector<LaneRows> calls;
  TableState& state = *writer->table_->state;
  MutexLock lock(&owned_->table->state->mutex);
  for (const OwnedRows& one : rows) {
    const auto& record = owned_->table->state->trajectories().record(one.slot);
    if (record.state == index::TrajectoryState::kFree || record.generation != one.generation) {
      continue;  // It has left.
    }
    Lane& owner = *owned_->lanes.emplace_back(std::make_unique<Lane>());
    owner.id = record.id;
    owner.slot = one.slot;
    owner.generation = one.generation;
    const auto number = static_cast<uint32_t>(calls.size());
    Lane& lane = writer->lane(number);
    GEARDB_RETURN_IF_ERROR(writer->TakeOverOwned(owner, &lane));
    lane.without_writer = true;
    if (lane.id != 0) {
      state.frames().HoldAll(lane.tail_lpn, true);
      owned_->held.push_back({&state, lane.tail_lpn, lane.tail_generation});
    }
    calls.push_back({.lane = number,
                     .rows = one.count,
                     .end = End::kTruncated,
                     .columns = {one.rows},
                     .owner = &owner});
  }
  return calls;
}

Status WriteCall::CheckOwned() const {
  if (owned_ == nullptr) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(database_->CheckNotDropped(*owned_->table));
  MutexLock lock(&owned_->table->state->mutex);
  for (const auto& lane : owned_->lanes) {
    const auto& record = owned_->table->state->trajectories().record(lane->slot);
    // A slot that is free has the generation of who left it.
    const bool there = record.state != index::TrajectoryState::kFree;
    if (there && record.generation == lane->generation) continue;
    return Status::NotFound("trajectory ", lane->id, " has left");
  }
  return Status::Ok();
}

void WriteCall::NoteOwned(Lsn end) GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  if (owned_ == nullptr) return;
  // Whoever evicts one of these waits for what its companions get.
  for (const auto& lane : owned_->lanes) owned_->table->plan->Note(lane->slot, end);
}

void WriteCall::LetGoOwned() {
  MutexLock lock(&owned_->table->state->mutex);
  for (const OwnedAppend::Held& held : owned_->held) {
    if (held.state->pages().IsLive(held.lpn, held.generation)) {
      held.state->frames().HoldAll(held.lpn, false);
    }
  }
  owned_->held.clear();
}

Status WriteCall::AppendOwned(const std::shared_ptr<TableCore>& table,
                              std::span<const OwnedRows> rows) {
  alone_ = true;
  ack_ = Ack::kLog;
  for (;;) {
    appends_.clear();
    owned_ = std::make_unique<OwnedAppend>();
    owned_->table = table;
    Status status = BindOwned(rows);
    const bool no_frame = status.code() == StatusCode::kResourceExhausted;
    if (status.ok()) status = RunBound();
    LetGoOwned();
    if (no_frame && !deadline_.passed()) {
      std::vector<FramePool*> pools;
      const auto companions = table->CompanionsNow();
      for (const OwnedRows& one : rows) {
        const auto& companion = companions[one.companion];
        if (companion != nullptr) pools.push_back(companion->state->pool(0));
      }
      GEARDB_RETURN_IF_ERROR(MakeRoomForOneEach(database_, pools, deadline_));
      continue;
    }
    // What has left is left out.
    if (status.code() != StatusCode::kNotFound) return status;
  }
}

}  // namespace geardb::engine
