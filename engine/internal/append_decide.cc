// Step 3 of an append: what the record says. engine/internal/append.h has the other steps.

#include <algorithm>
#include <cstring>

#include "base/break.h"
#include "engine/internal/append.h"

namespace geardb {

using engine::AppendPlan;
using engine::CallPlan;
using engine::ChangeScope;
using engine::CommitOptions;
using engine::Lane;
using engine::LaneRows;
using engine::PageRows;
using engine::TableLayout;
namespace fb = engine::fb;

namespace {

/// Upper bound of a body: its vectors, and what FlatBuffers puts around them.
uint64_t BodyBytesMax(const AppendPlan& plan, const engine::TableState& state,
                      std::span<const InitialPriorities> priorities, size_t evictions_max) {
  uint64_t bytes = 1024;
  bytes += plan.calls.size() * (sizeof(fb::Opened) + sizeof(fb::Rows));
  bytes += plan.pieces.size() * sizeof(fb::PieceRows) + plan.pages.size() * sizeof(fb::NewPage);
  uint64_t column_bytes = 0;
  for (const engine::TrajectoryColumn& column : state.layout().trajectory_columns()) {
    column_bytes += column.bytes + sizeof(fb::ColumnSet);
  }
  bytes += plan.calls.size() * column_bytes;
  bytes += state.priority_table_count() * (64 + plan.calls.size() * sizeof(float));
  for (const InitialPriorities& given : priorities) bytes += given.values.size_bytes();
  return bytes + evictions_max * sizeof(fb::Removed);
}

/// Whether it is time to promise more ids and generations than were promised so far.
bool RunsLow(const engine::TablePlan& plan, const engine::Growth& growth) {
  constexpr uint64_t kAhead = uint64_t{1} << 17;
  const uint64_t ids_end = std::max(plan.ids_end, plan.promised_ids_end);
  const uint64_t generations_end = std::max(plan.generations_end, plan.promised_generations_end);
  return (ids_end < plan.IdsEndFor(growth) + kAhead && ids_end < engine::kIdsEnd) ||
         generations_end < plan.GenerationsEndFor(growth) + kAhead;
}

}  // namespace

void Writer::Impl::PromiseNumbers() {
  constexpr int64_t kWaitMs = 1000;
  const engine::Growth first{.pages = lanes_.size() * layout().appended_groups().size(),
                             .trajectories = lanes_.size()};
  {
    ChangeScope scope(database_.get(), table_.get(), {.deadline = Deadline::AfterMs(kWaitMs)});
    Status status = scope.status();
    while (status.ok() && !table_->plan->HasIds(first)) {
      status = database_->ExtendRanges(&scope, table_.get(), first);
    }
  }
  for (const auto& companion : companions_) {
    if (companion != nullptr) companion->PromiseNumbers();
  }
}

Status Writer::Impl::CheckLanes(Calls calls, AppendPlan* plan) const {
  for (const LaneRows& call : calls) {
    const Lane& lane = *lanes_[call.lane];
    // With the owner's trajectory leaves that of a companion.
    const Lane& known = call.owner != nullptr ? *call.owner : lane;
    if (!known.removed.load() && HasTail(lane)) continue;
    plan->lanes_left = true;
    const auto owner = table_->owner.lock();
    const TableLayout& named = owner != nullptr ? owner->layout() : layout();
    return Status::NotFound("trajectory ", known.id, " of table '", named.spec().name,
                            "' was removed");
  }
  return Status::Ok();
}

bool Writer::Impl::HasTail(const Lane& lane) const {
  if (!lane.without_writer || lane.id == 0) return true;
  MutexLock lock(&table_->state->mutex);
  return table_->state->pages().IsLive(lane.tail_lpn, lane.tail_generation);
}

Status Writer::Impl::CheckColumns(Calls calls) const {
  for (const LaneRows& call : calls) {
    if (call.trajectory.empty()) continue;
    MutexLock lock(&table_->state->mutex);
    for (size_t column = 0; column < call.trajectory.size(); ++column) {
      if (call.trajectory[column] == nullptr) continue;
      GEARDB_RETURN_IF_ERROR(table_->state->CheckColumnValue(column, call.trajectory[column]));
    }
  }
  return Status::Ok();
}

Status Writer::Impl::ChooseEviction(ChangeScope* scope, AppendPlan* plan, bool* again) {
  const engine::WaitPublished wait = [this](Lsn lsn) {
    return database_->log->WaitPublished(std::min(lsn, database_->log->end()),
                                         Deadline::Infinite());
  };
  const engine::Growth growth = table_->plan->WithPromised(plan->growth, plan->promised);
  const Status status = engine::EvictionChoice(table_->plan.get(), wait)
                            .Choose(growth, &plan->eviction, plan->leaving);
  if (status.code() != StatusCode::kResourceExhausted) return status;
  const Deadline deadline = scope->how().deadline;
  if (layout().spec().remover != Remover::kNone || deadline.passed()) return status;
  // Somebody may remove something by hand; once the database is closed, nobody will.
  GEARDB_RETURN_IF_ERROR(database_->CheckWritable());
  if (plan->before_wait) plan->before_wait();
  const engine::FrameQueue::Pause pause(plan->hold);
  const engine::WaitTimer timer(&database_->waits.table_room);
  if (!database_->room_made.WaitUntil(&database_->commit, deadline)) return status;
  *again = true;
  return Status::Ok();
}

Status Writer::Impl::Decide(Calls calls, Priorities priorities, ChangeScope* scope,
                            AppendPlan* plan, bool* again) {
  GEARDB_RETURN_IF_ERROR(DecideRoom(calls, scope, plan, again));
  return *again ? Status::Ok() : DecideItems(calls, priorities, scope, plan, again);
}

Status Writer::Impl::DecideRoom(Calls calls, ChangeScope* scope, AppendPlan* plan, bool* again) {
  *again = false;
  plan->eviction = {};
  // Nobody waits for room, of the table or the log, with a place that another could take.
  if (plan->parts == 0) ReturnPlaces(plan);
  GEARDB_RETURN_IF_ERROR(scope->status());
  GEARDB_RETURN_IF_ERROR(CheckLanes(calls, plan));
  if (!table_->plan->HasIds(plan->growth)) {
    *again = true;
    return database_->ExtendRanges(scope, table_.get(), plan->growth);
  }
  if (RunsLow(*table_->plan, plan->growth)) {
    *again = true;  // By the time that they are needed, the promise is synced.
    return database_->PromiseRanges(scope, table_.get(), table_->plan->IdsEndFor(plan->growth),
                                    table_->plan->GenerationsEndFor(plan->growth));
  }
  const engine::Growth growth = table_->plan->WithPromised(plan->growth, plan->promised);
  if (!table_->plan->Over(growth) && plan->leaving.empty()) return Status::Ok();
  return ChooseEviction(scope, plan, again);
}

Status Writer::Impl::DecideItems(Calls calls, Priorities priorities, ChangeScope* scope,
                                 AppendPlan* plan, bool* again) {
  GEARDB_RETURN_IF_ERROR(CheckItemCounts(calls, priorities, plan));
  GEARDB_RETURN_IF_ERROR(table_->plan->AdmitNumbers(plan->growth));
  GEARDB_RETURN_IF_ERROR(AdmitItems(calls, scope, plan, again));
  if (*again) return Status::Ok();
  // Last: a call that is refused leaves the scale alone.
  GEARDB_RETURN_IF_ERROR(RescaleIfDue(calls, priorities, scope, *plan, again));
  plan->rescaled |= *again;
  return Status::Ok();
}

Result<wal::RecordSize> Writer::Impl::SizeOf(Priorities priorities, const AppendPlan& plan) const {
  const wal::RecordSize size = plan.SizeWith(BodyMax(priorities, plan, RemovedInRecordMax()));
  GEARDB_RETURN_IF_ERROR(CheckRecordFits(plan, plan.pieces.size(), size));
  return size;
}

uint64_t Writer::Impl::BodyMax(Priorities priorities, const AppendPlan& plan,
                               size_t own_max) const {
  const size_t entries = std::min(plan.eviction.size(), own_max);
  return BodyBytesMax(plan, *table_->state, priorities, entries);
}

Status Writer::Impl::CheckRecordFits(const AppendPlan& plan, uint64_t pieces,
                                     const wal::RecordSize& size) const {
  if (size.total() <= database_->log->record_bytes_max()) return Status::Ok();
  const size_t entries = std::min(plan.eviction.size(), RemovedInRecordMax());
  return Status::InvalidArgument(
      "table '", layout().spec().name, "': a call with ", plan.growth.rows, " rows in ", pieces,
      " pages, for which ", entries, " trajectories or heads leave, needs a log record of ",
      size.total(), " bytes; at most ", database_->log->record_bytes_max(),
      " fit the ring (a quarter of it)");
}

wal::RecordSize Writer::Impl::LeastRecord(uint64_t pieces) {
  return wal::RecordSize::For(pieces * sizeof(fb::PieceRows), {}, pieces);
}

Status Writer::Impl::Admit(Calls calls, Priorities priorities, ChangeScope* scope, AppendPlan* plan,
                           bool* again) {
  GEARDB_RETURN_IF_ERROR(Decide(calls, priorities, scope, plan, again));
  if (*again) return Status::Ok();
  GEARDB_ASSIGN_OR_RETURN(const wal::RecordSize size, SizeOf(priorities, *plan));
  CommitOptions how = scope->how();
  // Behind its parts, the record that names them is a small one, and takes what is kept for such.
  if (plan->parts > 0) how.urgency = wal::Urgency::kReserve;
  GEARDB_RETURN_IF_ERROR(scope->AwaitRoom({&size, 1}, how, again));
  if (*again) return Status::Ok();
  return Evict(size, scope, plan);
}

Result<std::vector<wal::RecordSize>> Writer::Impl::AdmitParts(Calls calls, Priorities priorities,
                                                              ChangeScope* scope,
                                                              AppendPlan* plan) {
  for (bool again = true; again;) {
    GEARDB_RETURN_IF_ERROR(Decide(calls, priorities, scope, plan, &again));
  }
  GEARDB_ASSIGN_OR_RETURN(std::vector<wal::RecordSize> sizes, Records(priorities, *plan));
  GEARDB_RETURN_IF_ERROR(scope->PrepareFor(sizes, scope->how().urgency));
  return sizes;
}

Result<std::vector<wal::RecordSize>> Writer::Impl::Records(Priorities priorities,
                                                           const AppendPlan& plan) const {
  std::vector<wal::RecordSize> sizes;
  if (plan.in_parts && plan.parts == 0) {
    for (const engine::PartOfPieces& part : plan.Parts(database_->log->record_bytes_max())) {
      sizes.push_back(part.size);
    }
  }
  for (const wal::RecordSize& removal : RemovalsAhead(plan.eviction, RemovedInRecordMax())) {
    sizes.push_back(removal);
  }
  GEARDB_ASSIGN_OR_RETURN(sizes.emplace_back(), SizeOf(priorities, plan));
  return sizes;
}

std::vector<wal::RecordSize> Writer::Impl::RemovalsAhead(const engine::Eviction& eviction,
                                                         size_t own_max) const {
  const size_t entries_max = RemovedInRecordMax();
  const size_t ahead = eviction.size() - std::min(eviction.size(), own_max);
  return std::vector<wal::RecordSize>((ahead + entries_max - 1) / entries_max,
                                      engine::DatabaseCore::RemovalSize(entries_max));
}

Status Writer::Impl::LogRemovalsAhead(size_t own_max, ChangeScope* scope, AppendPlan* plan) {
  const size_t entries_max = RemovedInRecordMax();
  while (plan->eviction.size() > own_max) {
    GEARDB_RETURN_IF_ERROR(scope->AwaitRoomHolding(engine::DatabaseCore::RemovalSize(entries_max),
                                                   {.urgency = wal::Urgency::kReserve}));
    const size_t count = std::min(entries_max, plan->eviction.size() - own_max);
    const engine::Eviction ahead = plan->eviction.Split(count, plan->with_record);
    table_->plan->Take(ahead);
    database_->LogRemoval(scope, table_, ahead, {RemovalReason::kCapacity});
  }
  return Status::Ok();
}

size_t Writer::Impl::RemovedInRecordMax() const {
  return std::max<size_t>(database_->log->record_bytes_max() / 8 / sizeof(fb::Removed), 16);
}

Status Writer::Impl::Evict(const wal::RecordSize& append, ChangeScope* scope, AppendPlan* plan) {
  const size_t entries_max = RemovedInRecordMax();
  if (plan->eviction.size() > entries_max) {
    // More than one record takes: the others go ahead, and nothing may stop the append after them.
    std::vector<wal::RecordSize> sizes = RemovalsAhead(plan->eviction, entries_max);
    sizes.push_back(append);
    GEARDB_RETURN_IF_ERROR(scope->PrepareFor(sizes, wal::Urgency::kAppend));
    GEARDB_RETURN_IF_ERROR(LogRemovalsAhead(entries_max, scope, plan));
    GEARDB_RETURN_IF_ERROR(scope->AwaitRoomHolding(append, {}));
  }
  table_->plan->Take(plan->eviction);
  return Status::Ok();
}

void Writer::Impl::TakeNumbers(Calls calls, AppendPlan* plan) {
  engine::TablePlan& numbers = *table_->plan;
  const int64_t now = plan->growth.trajectories > 0 ? database_->clock->WallTimeUs() : 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    CallPlan& call = plan->calls[i];
    Lane& lane = *lanes_[calls[i].lane];
    if (call.opens) {
      lane.generation = numbers.TakeGeneration();
      const Lane* const owner = calls[i].owner;
      lane.slot = owner != nullptr ? numbers.TakeSlotOf(owner->slot, lane.generation)
                                   : numbers.TakeSlot(&lane, lane.generation);
      if (owner != nullptr) lane.owner_generation = owner->generation;
      lane.id = numbers.TakeId();
      call.created_us = now;
    }
    call.id = lane.id;
    if (calls[i].trajectory.empty()) continue;
    size_t offset = 0;
    for (size_t c = 0; c < layout().trajectory_columns().size(); ++c) {
      const uint32_t bytes = layout().trajectory_columns()[c].bytes;
      if (calls[i].trajectory[c] != nullptr) {
        std::memcpy(lane.columns.data() + offset, calls[i].trajectory[c], bytes);
      }
      offset += bytes;
    }
  }
  plan->previous_lsns.clear();
  size_t at = 0;
  for (PageRows& page : plan->pages) {
    Lane& lane = *lanes_[calls[page.call].lane];
    if (page.new_page) {
      lane.tail_generation = numbers.TakeGeneration();
      lane.tail_lpn = numbers.TakePage(lane.tail_generation);
      std::fill(lane.tail.begin(), lane.tail.end(), Lane::Tail{});
      lane.ClearMoved();
    }
    for (Lane::Tail& tail : lane.tail) {
      tail.frame = plan->frames[at++];
      tail.shows_defaults = false;
      plan->previous_lsns.push_back(tail.lsn);
    }
    page.lpn = lane.tail_lpn;
    page.generation = lane.tail_generation;
  }
  numbers.AddRows(plan->growth.rows);
}

void Writer::Impl::BuildBody(Calls calls, Priorities priorities, const AppendPlan& plan,
                             AppendChange* change) {
  change->body.Clear();
  const auto append = EncodeAppend(calls, priorities, plan, &change->body);
  change->FinishBody({.table = layout().id()}, fb::Change::Append, append.Union());
}

flatbuffers::Offset<fb::Append> Writer::Impl::EncodeAppend(
    Calls calls, Priorities priorities, const AppendPlan& plan,
    flatbuffers::FlatBufferBuilder* builder) {
  auto& body = *builder;
  std::vector<fb::Opened> opened;
  std::vector<fb::Rows> rows;
  std::vector<fb::NewPage> new_pages;
  std::vector<fb::PieceRows> pieces;
  std::vector<fb::ColumnSet> sets;
  std::vector<uint8_t> values;
  rows.reserve(calls.size());
  pieces.reserve(plan.pieces.size());
  const bool closes = !layout().spec().stream;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Lane& lane = *lanes_[calls[i].lane];
    const CallPlan& call = plan.calls[i];
    if (call.opens) {
      opened.emplace_back(lane.id, call.created_us, lane.slot, lane.generation,
                          database_->manifest.epoch.open, calls[i].lane);
    }
    rows.emplace_back(lane.slot, lane.generation, static_cast<uint64_t>(call.first_row),
                      static_cast<uint32_t>(call.stored), static_cast<uint8_t>(calls[i].end),
                      !calls[i].final_columns.empty(), closes && calls[i].end != End::kGo);
    for (size_t c = 0; c < calls[i].trajectory.size(); ++c) {
      if (calls[i].trajectory[c] == nullptr) continue;
      const auto* value = reinterpret_cast<const uint8_t*>(calls[i].trajectory[c]);
      sets.emplace_back(lane.slot, static_cast<uint32_t>(c));
      values.insert(values.end(), value, value + layout().trajectory_columns()[c].bytes);
    }
  }
  const auto groups = layout().appended_groups();
  for (size_t p = 0; p < plan.pages.size(); ++p) {
    const PageRows& page = plan.pages[p];
    if (page.new_page) new_pages.emplace_back(page.lpn, page.generation);
    for (size_t a = 0; a < groups.size(); ++a) {
      if (!layout().group(groups[a]).logged()) continue;
      pieces.emplace_back(plan.previous_lsns[p * groups.size() + a], page.lpn, page.generation,
                          static_cast<uint16_t>(page.offset), static_cast<uint16_t>(page.count),
                          static_cast<uint16_t>(groups[a]));
    }
  }
  const auto removed_offset =
      plan.eviction.removed.empty() ? 0 : body.CreateVectorOfStructs(plan.eviction.removed);
  const auto trimmed_offset =
      plan.eviction.trimmed.empty() ? 0 : body.CreateVectorOfStructs(plan.eviction.trimmed);
  const auto opened_offset = opened.empty() ? 0 : body.CreateVectorOfStructs(opened);
  const auto rows_offset = body.CreateVectorOfStructs(rows);
  const auto pages_offset = new_pages.empty() ? 0 : body.CreateVectorOfStructs(new_pages);
  const auto pieces_offset = body.CreateVectorOfStructs(pieces);
  const auto sets_offset = sets.empty() ? 0 : body.CreateVectorOfStructs(sets);
  const auto values_offset = values.empty() ? 0 : body.CreateVector(values);
  const auto items = BuildItems(calls, priorities, &body);
  const auto items_offset = items.empty() ? 0 : body.CreateVector(items);
  return fb::CreateAppend(body, removed_offset, trimmed_offset, opened_offset, rows_offset,
                          pages_offset, pieces_offset, sets_offset, values_offset, items_offset,
                          layout().version(), static_cast<uint32_t>(plan.leaving.size()));
}

void Writer::Impl::AdvanceLanes(Calls calls, const AppendPlan& plan,
                                const wal::Reservation& record) {
  engine::TablePlan& numbers = *table_->plan;
  for (const fb::Trimmed& trimmed : plan.eviction.trimmed) numbers.Note(trimmed.slot(), record.end);
  for (size_t i = 0; i < calls.size(); ++i) {
    Lane& lane = *lanes_[calls[i].lane];
    numbers.NoteUse(lane.slot, record.end);
    lane.rows_end += static_cast<int64_t>(plan.calls[i].stored);
    for (Lane::Tail& tail : lane.tail) tail.lsn = record.lsn;
    lane.episode_ended = calls[i].end != End::kGo;
    if (calls[i].end == End::kGo || layout().spec().stream) continue;
    numbers.NoteClosed(lane.slot);
    lane.Reset();
  }
}

namespace {

/// Parts that nobody will finish, or that are finished, keep the log no more.
void LeaveGroup(engine::DatabaseCore* database, Lsn group) GEARDB_REQUIRES(database->commit) {
  database->open_groups.erase(database->open_groups.find(group));
  if (database->cleaner != nullptr) database->cleaner->ForgetFruitless();
}

/// Says where an append in parts begins, until it is finished or given up.
class OpenGroup {
 public:
  OpenGroup(engine::DatabaseCore* database, engine::TablePlan* table, AppendPlan* plan)
      : database_(database), table_(table), plan_(plan) {}
  ~OpenGroup() GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
    if (table_->TakeBack(&plan_->promised)) database_->room_made.NotifyAll();
    if (plan_->parts == 0) return;
    LeaveGroup(database_, plan_->group_lsn);
  }
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;

 private:
  engine::DatabaseCore* const database_;
  engine::TablePlan* const table_;
  AppendPlan* const plan_;
};

}  // namespace

Status Writer::Impl::GoAheadInParts(Calls calls, Priorities priorities, ChangeScope* scope,
                                    AppendPlan* plan) {
  GEARDB_ASSIGN_OR_RETURN(const std::vector<wal::RecordSize> sizes,
                          AdmitParts(calls, priorities, scope, plan));
  table_->plan->Promise(plan->growth, &plan->promised);
  // The pieces of parts lie in frames, a tail page's among them, and the append's place in the
  // log, which keeps them otherwise, is taken after them: see CopyRows. Nobody waits for room
  // with the guard: who makes some may wait for it.
  const EpochRegistry::Guard guard = database_->epochs.Enter();
  GEARDB_RETURN_IF_ERROR(CheckLanes(calls, plan));
  plan->in_parts = false;  // None is written yet: pieces may still come from other frames.
  FollowPatches(calls, plan);
  plan->in_parts = true;
  return WriteParts(sizes, scope, plan);
}

void Writer::Impl::GiveUpParts(AppendPlan* plan) {
  if (plan->parts == 0) return;
  LeaveGroup(database_.get(), plan->group_lsn);
  plan->parts = 0;
  plan->group_lsn = 0;
  plan->DescribePieces(layout(), *database_->arena);
  if (table_->plan->TakeBack(&plan->promised)) database_->room_made.NotifyAll();
  ReturnPlaces(plan);
}

Result<wal::Reservation> Writer::Impl::Reserve(Calls calls, Priorities priorities,
                                               Deadline deadline, AppendPlan* plan,
                                               AppendChange* change) {
  const CommitOptions how{.deadline = deadline};
  const uint64_t record_max = database_->log->record_bytes_max();
  bool in_parts = plan->SizeWith(1024).total() > record_max / 2;
  uint64_t body_bytes = 1024;
  for (const InitialPriorities& given : priorities) body_bytes += given.values.size_bytes();
  uint64_t each = 64;  // Of a lane, its columns with it.
  for (const auto& column : layout().trajectory_columns()) each += column.bytes;
  body_bytes += calls.size() * each;
  if (!in_parts && plan->SizeWith(body_bytes).total() > record_max / 8) {
    // Its body may take the rest of a record, and what leaves for it an eighth of one.
    MutexLock lock(&database_->commit);
    in_parts = plan->SizeWith(BodyMax(priorities, *plan, 0)).total() > record_max / 4 * 3;
  }
  if (in_parts) database_->MakeLogRoom(plan->SizeWith(1024).total(), deadline);
  ChangeScope scope(database_.get(), table_.get(), how);
  const OpenGroup group(database_.get(), table_->plan.get(), plan);
  plan->in_parts = in_parts;
  // Nobody waits for others with parts in the log, which goes back no further than to these.
  if (in_parts) {
    plan->before_wait = [this, plan]() GEARDB_REQUIRES(database_->commit) { GiveUpParts(plan); };
  }
  for (bool again = true; again;) {
    if (in_parts && plan->parts == 0) {
      GEARDB_RETURN_IF_ERROR(GoAheadInParts(calls, priorities, &scope, plan));
    }
    GEARDB_RETURN_IF_ERROR(Admit(calls, priorities, &scope, plan, &again));
  }
  for (const auto& [number, value] : plan->largest_given) {
    table_->plan->max_priority[number] = std::max(table_->plan->max_priority[number], value);
  }
  FollowPatches(calls, plan);
  TakeNumbers(calls, plan);
  BuildBody(calls, priorities, *plan, change);
  // A record that nobody will ever replay, in the tree that is built to lose data.
  const wal::RecordType type = kBreak.skip_log ? wal::RecordType::kPart : wal::RecordType::kData;
  const wal::Reservation reservation =
      scope.Reserve({.type = type,
                     .size = plan->SizeWith(change->body_bytes().size()),
                     .part = plan->in_parts ? plan->parts : 0,
                     .group_lsn = plan->group_lsn});
  AdvanceLanes(calls, *plan, reservation);
  change->new_frames = plan->new_frames;
  change->places.swap(plan->places);  // Pieces point into it.
  change->layout = &layout();
  change->admitted = std::move(plan->admitted);
  plan->admitted.clear();
  if (plan->eviction.size() > 0) database_->room_made.NotifyAll();
  return reservation;
}

}  // namespace geardb
