// How a writer's trajectories end without rows: cut, resumed by another writer, orphaned.

#include <algorithm>
#include <cstring>

#include "engine/internal/append.h"
#include "engine/internal/episode.h"
#include "engine/internal/frame_room.h"
#include "engine/internal/set_filter.h"

namespace geardb {

using engine::Lane;
namespace fb = engine::fb;

namespace {

/// With which a writer takes trajectories, or leaves them as orphans.
class AdoptChange final : public engine::Change {
 public:
  explicit AdoptChange(std::shared_ptr<engine::TableCore> table) : table_(std::move(table)) {}
  void Say(std::span<const fb::Adopted> adopted) {
    const auto offset = body.CreateVectorOfStructs(adopted.data(), adopted.size());
    FinishBody({.table = table_->layout().id()}, fb::Change::Adopt,
               fb::CreateAdopt(body, offset).Union());
  }

 private:
  void Apply(Lsn lsn, Lsn end) override {
    engine::ApplyLock lock(table_->state.get(), end);
    table_->state->Apply(*operation()->change_as_Adopt(), lsn);
    table_->state->changed.NotifyAll();  // A standing filter may let it through now.
  }
  const std::shared_ptr<engine::TableCore> table_;
};

}  // namespace

bool engine::IsOrphan(const TableCore& table, Slot slot) {
  switch (table.state->trajectories().record(slot).state) {
    case index::TrajectoryState::kOrphaned:
      return true;
    case index::TrajectoryState::kOpen:
      return table.plan->OpenLane(slot) == nullptr;
    case index::TrajectoryState::kFree:
    case index::TrajectoryState::kClosed:
      break;
  }
  return false;
}

int64_t engine::OrphanedUs(const DatabaseCore& database, const TableCore& table, Slot slot) {
  return std::max(table.plan->orphaned_us(slot), database.opened_us);
}

Result<Appended> Writer::Impl::Cut(uint32_t number) {
  GEARDB_RETURN_IF_ERROR(database_->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(*table_));
  Lane& lane = *lanes_[number];
  if (lane.id == 0) {
    return Status::FailedPrecondition("table '", layout().spec().name, "': lane ", number,
                                      " has no open trajectory");
  }
  auto table = table_;
  engine::FunctionChange change(nullptr);
  change.set_apply([table, &change](Lsn lsn, Lsn end) {
    engine::ApplyLock lock(table->state.get(), end);
    table->state->Apply(*change.operation()->change_as_Close(), lsn);
    table->state->changed.NotifyAll();
  });
  const engine::CommitOptions how{.urgency = wal::Urgency::kReserve,
                                  .deadline = Deadline::AfterMs(options_.admission_timeout_ms)};
  Appended appended{.id = lane.id, .first_row = lane.rows_end};
  wal::Reservation reservation;
  {
    engine::ChangeScope scope(database_.get(), table_.get(), how);
    const wal::RecordSize bound = CloseSize();
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&bound, 1}, how, &waited));
    if (lane.removed.load()) {
      const TrajectoryId id = lane.id;
      ForgetRemoved(&lane);
      return Status::NotFound("trajectory ", id, " of table '", layout().spec().name,
                              "' was removed");
    }
    GEARDB_RETURN_IF_ERROR(
        database_->log->WaitPublished(table_->plan->last_lsn(lane.slot), Deadline::Infinite()));
    // With final rows a single row cannot be both the last step and the final row.
    int64_t first_row = 0;
    {
      MutexLock state_lock(&table_->state->mutex);
      first_row = static_cast<int64_t>(table_->state->trajectories().record(lane.slot).first_row);
    }
    const bool between_episodes = layout().spec().stream && lane.episode_ended;
    const bool nothing_left =
        layout().spec().final_row && lane.rows_end - first_row == 1 && !between_episodes;
    if (nothing_left) appended.id = 0;
    BuildClose(lane, nothing_left, &change);
    reservation = scope.Reserve({.size = wal::RecordSize::For(change.body_bytes().size(), {})});
    if (!nothing_left) {
      table_->plan->NoteUse(lane.slot, reservation.end);
      table_->plan->NoteClosed(lane.slot);
    }
    lane.Reset();
    lane.removed.store(false);
    database_->room_made.NotifyAll();
  }
  database_->Finish(reservation, {}, &change);
  GEARDB_RETURN_IF_ERROR(AwaitOwn(reservation.end));
  engine::FollowUp(database_.get(), table_);
  appended.end_lsn = reservation.end;
  return appended;
}

wal::RecordSize Writer::Impl::CloseSize() const {
  return wal::RecordSize::For(1024 + table_->state->priority_table_count() * 64, {});
}

void Writer::Impl::BuildClose(const Lane& lane, bool nothing_left, engine::Change* change) {
  auto& body = change->body;
  std::vector<fb::Ended> ended;
  std::vector<fb::Removed> removed;
  std::vector<flatbuffers::Offset<fb::NewItems>> items;
  if (nothing_left) {
    removed.push_back(table_->plan->Remove(lane.slot));
  } else {
    ended.emplace_back(lane.slot, lane.generation, static_cast<uint8_t>(End::kCut));
    for (uint32_t i = 0; i < table_->state->priority_table_count(); ++i) {
      items.push_back(fb::CreateNewItems(body, i, InitialPriorityOf(i, lane)));
    }
  }
  const auto ended_offset = body.CreateVectorOfStructs(ended);
  const auto removed_offset = body.CreateVectorOfStructs(removed);
  const auto items_offset = body.CreateVector(items);
  change->FinishBody({.table = layout().id()}, fb::Change::Close,
                     fb::CreateClose(body, ended_offset, removed_offset, items_offset).Union());
}

Status Writer::Impl::Resume(TrajectoryId id, uint32_t number,
                            std::optional<int64_t> left_until_us) {
  GEARDB_RETURN_IF_ERROR(database_->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(*table_));
  Lane& lane = *lanes_[number];
  ForgetRemoved(&lane);
  if (lane.id != 0) {
    return Status::FailedPrecondition("table '", layout().spec().name, "': lane ", number,
                                      " has trajectory ", lane.id, " open");
  }
  const Deadline deadline = Deadline::AfterMs(options_.admission_timeout_ms);
  for (;;) {
    bool no_frame = false;
    const Status resumed = ResumeOnce({id, left_until_us}, number, deadline, &no_frame);
    if (resumed.ok() || !no_frame || deadline.passed()) return resumed;
    // Pages of others are dropped where nobody waits for the commit mutex.
    GEARDB_RETURN_IF_ERROR(MakeRoomForTail(deadline));
  }
}

Status Writer::Impl::ResumeOnce(const WantedOrphan& orphan, uint32_t number, Deadline deadline,
                                bool* no_frame) {
  Lane& lane = *lanes_[number];
  AdoptChange change(table_);
  const engine::CommitOptions how{.urgency = wal::Urgency::kReserve, .deadline = deadline};
  std::vector<wal::RecordSize> bounds = {wal::RecordSize::For(1024, {})};
  wal::Reservation reservation;
  {
    engine::ChangeScope scope(database_.get(), table_.get(), how);
    // One that could be taken and not be cut would be left anew: as if its writer had just gone.
    if (orphan.left_until_us) bounds.push_back(CloseSize());
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom(bounds, how, &waited));
    GEARDB_RETURN_IF_ERROR(database_->CatchUp());
    // So the rows of a page are, in each group, with it from one row on.
    if (&table_->layout() != layout_) {
      return Status::FailedPrecondition("table '", layout().spec().name, "': trajectory ",
                                        orphan.id,
                                        " cannot be resumed by a writer that was made before the "
                                        "table's columns changed: make another");
    }
    const Status taken = TakeOverOrphan(orphan, number);
    *no_frame = taken.code() == StatusCode::kResourceExhausted;
    GEARDB_RETURN_IF_ERROR(taken);
    const fb::Adopted adopted(lane.slot, lane.generation, database_->manifest.epoch.open, number,
                              false);
    change.Say({&adopted, 1});
    reservation = scope.Reserve({.size = wal::RecordSize::For(change.body_bytes().size(), {})});
    table_->plan->SetOpenLane(lane.slot, &lane);
    table_->plan->NoteUse(lane.slot, reservation.end);
  }
  database_->Finish(reservation, {}, &change);
  return AwaitOwn(reservation.end);
}

Status Writer::Impl::MakeRoomForTail(Deadline deadline) {
  std::vector<engine::FramePool*> pools;
  for (const uint32_t group : layout().appended_groups()) {
    pools.push_back(table_->state->pool(group));
  }
  for (const Impl* companion : AppendedCompanions()) {
    pools.push_back(companion->table_->state->pool(0));
  }
  return engine::MakeRoomForOneEach(database_.get(), pools, deadline);
}

Status Writer::Impl::TakeOverOrphan(const WantedOrphan& orphan, uint32_t number) {
  const TrajectoryId id = orphan.id;
  Lane* const lane = lanes_[number].get();
  MutexLock lock(&table_->state->mutex);
  const engine::TableState& state = *table_->state;
  const Slot slot = state.trajectories().FindById(id);
  if (slot == kNoSlot) {
    return Status::NotFound("table '", layout().spec().name, "' has no trajectory ", id);
  }
  const index::TrajectoryRecord& record = state.trajectories().record(slot);
  if (!engine::IsOrphan(*table_, slot)) {
    return Status::FailedPrecondition(
        "trajectory ", id, " of table '", layout().spec().name, "' is ",
        record.state == index::TrajectoryState::kOpen ? "open: another writer has it" : "closed");
  }
  if (engine::OrphanedUs(*database_, *table_, slot) > orphan.left_until_us.value_or(INT64_MAX)) {
    return Status::FailedPrecondition("trajectory ", id, " of table '", layout().spec().name,
                                      "' was left by its writer a moment ago");
  }
  lane->Reset();
  lane->slot = slot;
  lane->generation = record.generation;
  lane->rows_end = static_cast<int64_t>(record.rows_end);
  lane->tail_lpn = record.tail_lpn;
  if (record.tail_lpn != kNoLpn) {
    Status taken = TakeOverTail(lane);
    if (taken.ok()) taken = TakeOverCompanions(*lane, number);
    if (!taken.ok()) {
      lane->Reset();  // As it was: what is appended next begins a trajectory.
      return taken;
    }
    state.frames().HoldAll(record.tail_lpn, true);  // Until it is this writer's.
  }
  if (layout().spec().stream && lane->rows_end > 0) {
    engine::RowCursor cursor(state, record);
    lane->episode_ended = engine::EndOfRow(&cursor, lane->rows_end - 1) != End::kGo;
  }
  lane->id = id;  // Nothing fails any more.
  size_t offset = 0;
  for (size_t c = 0; c < layout().trajectory_columns().size(); ++c) {
    const auto value = state.ValueOf(c, slot);
    std::memcpy(lane->columns.data() + offset, value.data(), value.size());
    offset += value.size();
  }
  return Status::Ok();
}

Status Writer::Impl::TakeOverTail(Lane* lane) {
  const engine::TableState& state = *table_->state;
  const Lpn tail = lane->tail_lpn;
  lane->tail_generation = state.pages().page(tail).generation;
  for (size_t a = 0; a < lane->tail.size(); ++a) {
    const uint32_t group = layout().appended_groups()[a];
    GEARDB_ASSIGN_OR_RETURN(const FrameRef frame, state.frames().ReadNow(group, tail));
    lane->tail[a] = {.frame = frame,
                     .lsn = state.pages().group_page(group, tail).newest_lsn,
                     .shows_defaults = state.frames().ShowsDefaults(group, tail)};
  }
  return Status::Ok();
}

void Writer::Impl::Orphan() {
  if (table_->is_companion) return;  // With its owner.
  std::vector<const Lane*> open;
  for (const auto& lane : lanes_) {
    if (lane->id != 0) open.push_back(lane.get());
  }
  if (open.empty()) return;
  const size_t in_record =
      database_->log == nullptr
          ? open.size()
          : std::max<size_t>((database_->log->record_bytes_max() - 2048) / sizeof(fb::Adopted), 1);
  for (size_t first = 0; first < open.size(); first += in_record) {
    const auto leaving = std::span(open).subspan(first, std::min(in_record, open.size() - first));
    // Where there is no room, nobody is to be told: what has no lane is an orphan all the same.
    if (Leave(leaving).ok()) continue;
    MutexLock commit(&database_->commit);
    // The clock may be gone with what was closed, in which no orphan's time comes.
    const bool open_still = database_->CheckOpen().ok();
    const int64_t now_us = open_still ? database_->clock->SteadyTimeUs() : 0;
    for (const Lane* lane : leaving) {
      if (lane->removed.load()) continue;
      table_->plan->SetOpenLane(lane->slot, nullptr);
      table_->plan->NoteOrphaned(lane->slot, now_us);
    }
  }
}

Result<TrajectoryId> Writer::Impl::Detach(uint32_t number) {
  GEARDB_RETURN_IF_ERROR(database_->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(*table_));
  Lane& lane = *lanes_[number];
  if (lane.id == 0) {
    return Status::FailedPrecondition("table '", layout().spec().name, "': lane ", number,
                                      " has no open trajectory");
  }
  const TrajectoryId id = lane.id;
  const bool removed = lane.removed.load();
  const Lane* const left = &lane;
  const Status status = removed ? Status::Ok() : Leave({&left, 1});
  // Where there was no room to say so, it stays with this writer.
  if (!status.ok() && !lane.removed.load()) return status;
  const bool gone = lane.removed.load();
  lane.Reset();
  lane.removed.store(false);
  if (!gone) return id;
  return Status::NotFound("trajectory ", id, " of table '", layout().spec().name, "' was removed");
}

Status Writer::Impl::Leave(std::span<const Lane* const> lanes) {
  AdoptChange change(table_);
  const engine::CommitOptions how{.urgency = wal::Urgency::kReserve,
                                  .deadline = Deadline::AfterMs(options_.admission_timeout_ms)};
  const wal::RecordSize bound = wal::RecordSize::For(1024 + lanes.size() * sizeof(fb::Adopted), {});
  std::vector<fb::Adopted> orphans;
  wal::Reservation reservation;
  {
    engine::ChangeScope scope(database_.get(), table_.get(), how);
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&bound, 1}, how, &waited));
    for (const Lane* lane : lanes) {
      if (lane->removed.load()) continue;
      orphans.emplace_back(lane->slot, lane->generation, 0, 0, true);
    }
    if (orphans.empty()) return Status::Ok();
    change.Say(orphans);
    reservation = scope.Reserve({.size = wal::RecordSize::For(change.body_bytes().size(), {})});
    const int64_t now = database_->clock->SteadyTimeUs();
    for (const fb::Adopted& orphan : orphans) {
      table_->plan->NoteUse(orphan.slot(), reservation.end);
      table_->plan->SetOpenLane(orphan.slot(), nullptr);
      table_->plan->NoteOrphaned(orphan.slot(), now);
    }
  }
  database_->Finish(reservation, {}, &change);
  return database_->log->WaitPublished(reservation.end, Deadline::Infinite());
}

}  // namespace geardb
