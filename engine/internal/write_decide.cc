// Steps 2 and 3 of a WriteCall: what its record says. engine/internal/write_call.h has the others.
//
// The analysis of locks does not see that the databases of writers and priority tables, whose
// commit mutex is held, are the call's own.

#include <algorithm>
#include <set>
#include <string>

#include "base/break.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/write_call.h"

namespace geardb::engine {

namespace {

/// A batch without rows and priorities, and a tag no larger than this, may use the log's reserve.
constexpr size_t kSmallTagBytes = size_t{64} << 10;

}  // namespace

// ---- Step 2.

Status WriteCall::Reserve() {
  records_.clear();
  removed_.clear();
  parts_ = 0;
  group_lsn_ = 0;
  in_parts_ = false;
  CollectPieces();
  uint64_t whole = 0;
  {
    MutexLock lock(&database_->commit);
    whole = wal::RecordSize::For(BodyMax() + ItemBytesMax(), piece_bytes_).total();
  }
  // What leaves for it may yet come on top.
  in_parts_ = !pieces_.empty() && whole > database_->log->record_bytes_max() / 4 * 3;
  for (TableAppend& append : appends_) {
    append.plan.in_parts = in_parts_;
    append.plan.before_wait = [this] { (void)ReleaseAdmitted(); };
  }
  if (in_parts_) database_->MakeLogRoom(whole, deadline_);
  const bool brings = !appends_.empty() || !sets_.empty() || !columns_.empty();
  const bool large = tag_ != nullptr && tag_->blob.size() > kSmallTagBytes;
  const CommitOptions how{
      .type = tag_ != nullptr ? wal::RecordType::kTag : wal::RecordType::kData,
      .urgency = brings || large ? wal::Urgency::kAppend : wal::Urgency::kReserve,
      .deadline = deadline_};
  ChangeScope scope(database_, nullptr, how);
  for (bool again = true; again;) GEARDB_RETURN_IF_ERROR(Decide(&scope, &again));
  if (recorded_.empty()) return Status::Ok();
  if (in_parts_) GEARDB_RETURN_IF_ERROR(WriteParts(&scope));
  GEARDB_RETURN_IF_ERROR(WriteRemovalsAhead(&scope));
  Commit(&scope);
  return Status::Ok();
}

Status WriteCall::Decide(ChangeScope* scope, bool* again) {
  *again = false;
  GEARDB_RETURN_IF_ERROR(scope->status());
  LeaveOutDropped();
  GEARDB_RETURN_IF_ERROR(CheckTables());
  GEARDB_RETURN_IF_ERROR(database_->CatchUp());
  for (TableRemoval& removal : removals_) GEARDB_RETURN_IF_ERROR(FindRemoved(&removal));
  for (TableColumns& columns : columns_) {
    GEARDB_RETURN_IF_ERROR(OfOperation(columns.operation, FindColumns(&columns)));
  }
  GEARDB_RETURN_IF_ERROR(CheckOwned());
  GEARDB_RETURN_IF_ERROR(FindItems());
  GEARDB_RETURN_IF_ERROR(DecideAppends(scope, again));
  if (*again) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(DecideItems(scope, again));
  if (*again) return Status::Ok();
  return AwaitRoom(scope, again);
}

Status WriteCall::CheckTables() const {
  for (const TableAppend& append : appends_) {
    const Status there = database_->CheckNotDropped(*append.writer->table_);
    GEARDB_RETURN_IF_ERROR(OfOperation(append.operation(), there));
  }
  for (const TableRemoval& removal : removals_) {
    const Status there = database_->CheckNotDropped(*removal.table);
    GEARDB_RETURN_IF_ERROR(OfOperation(removal.ids[0].first, there));
  }
  for (const ItemSet& set : sets_) {
    const Status there = database_->CheckNotDropped(*set.given->table->table);
    GEARDB_RETURN_IF_ERROR(OfOperation(set.operation, there));
  }
  for (const ItemDelete& deleted : deletes_) {
    const Status there = database_->CheckNotDropped(*deleted.given->table->table);
    GEARDB_RETURN_IF_ERROR(OfOperation(deleted.operation, there));
  }
  return Status::Ok();
}

std::optional<uint32_t> WriteCall::LaneOf(const TableCore& table, TrajectoryId id) const
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  for (const TableAppend& append : appends_) {
    if (append.writer->table_.get() != &table) continue;
    for (const LaneRows& call : append.calls) {
      if (append.writer->lane(call.lane).id == id) return call.lane;
    }
  }
  return std::nullopt;
}

Status WriteCall::FindRemoved(TableRemoval* removal) {
  const std::string& name = removal->table->layout().spec().name;
  removal->slots.clear();
  for (const auto& [operation, id] : removal->ids) {
    if (const auto lane = LaneOf(*removal->table, id)) {
      return Status::InvalidArgument("operation ", operation, ": table '", name, "': trajectory ",
                                     id, " is removed, and lane ", *lane, " appends to it");
    }
    MutexLock lock(&removal->table->state->mutex);
    const Slot slot = removal->table->state->trajectories().FindById(id);
    if (slot == kNoSlot) {
      return Status::NotFound("operation ", operation, ": table '", name, "' has no trajectory ",
                              id);
    }
    removal->slots.push_back(slot);
  }
  std::sort(removal->slots.begin(), removal->slots.end());
  removal->slots.erase(std::unique(removal->slots.begin(), removal->slots.end()),
                       removal->slots.end());
  return Status::Ok();
}

template <typename Add>
uint64_t WriteCall::FindItems(PriorityTable::Impl* table, const ItemNames& names, Add add) const {
  for (size_t i = 0; i < names.handles.size(); ++i) {
    add(i, names.handles[i].leaf, names.handles[i].generation);
  }
  uint64_t stale = 0;
  MutexLock lock(&table->table->state->mutex);
  for (size_t i = 0; i < names.rows.size(); ++i) {
    const uint64_t leaf = FindItem(*table, names.rows[i]);
    uint32_t generation = 0;
    if (leaf == UINT64_MAX ||
        !table->table->state->GenerationOfLeaf(table->state(), leaf, &generation)) {
      ++stale;
      continue;
    }
    add(i, leaf, generation);
  }
  return stale;
}

Status WriteCall::FindItems() GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  for (ItemSet& set : sets_) {
    const std::vector<float>& priorities = set.given->priorities;
    set.items.clear();
    set.stale = FindItems(set.given->table.get(), set.given->items,
                          [&](size_t i, uint64_t leaf, uint32_t generation) {
                            set.items.emplace_back(leaf, generation, priorities[i]);
                          });
    GEARDB_ASSIGN_OR_RETURN(set.largest, MaxWith(set.given->table.get(), set.items));
  }
  for (ItemDelete& deleted : deletes_) {
    deleted.items.clear();
    deleted.stale = FindItems(deleted.given->table.get(), deleted.given->items,
                              [&](size_t, uint64_t leaf, uint32_t generation) {
                                deleted.items.emplace_back(leaf, generation);
                              });
  }
  return Status::Ok();
}

Status WriteCall::DecideAppends(ChangeScope* scope, bool* again)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  if (ReleaseAdmitted()) database_->room_made.NotifyAll();
  for (TableAppend& append : appends_) {
    append.plan.leaving.clear();
    for (const TableRemoval& removal : removals_) {
      if (removal.table == append.writer->table_) append.plan.leaving = removal.slots;
    }
    const Status room = append.writer->DecideRoom(append.calls, scope, &append.plan, again);
    GEARDB_RETURN_IF_ERROR(OfOperation(append.operation(), room));
    if (*again) return Status::Ok();
    KeepWithRecord(&append);
  }
  // Places of limiters are taken once there is room in all tables.
  for (TableAppend& append : appends_) {
    GEARDB_RETURN_IF_ERROR(MergePriorities(&append));
    const Status items =
        append.writer->DecideItems(append.calls, append.given, scope, &append.plan, again);
    GEARDB_RETURN_IF_ERROR(OfOperation(append.operation(), items));
    if (*again) return Status::Ok();
  }
  return Status::Ok();
}

void WriteCall::KeepWithRecord(TableAppend* append) const
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  std::set<Slot> named(append->plan.leaving.begin(), append->plan.leaving.end());
  for (const TableColumns& columns : columns_) {
    if (columns.table == append->writer->table_) named.insert(columns.lane.slot);
  }
  std::vector<fb::Removed>& removed = append->plan.eviction.removed;
  const auto others =
      std::stable_partition(removed.begin(), removed.end(),
                            [&](const fb::Removed& one) { return named.contains(one.slot()); });
  append->plan.with_record = static_cast<size_t>(others - removed.begin());
}

float WriteCall::InitialOf(const Writer::Impl& writer, uint32_t number, const LaneRows& call) const
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  float value = writer.LargestIncoming(number, {&call, 1}, {});
  if (writer.table_->state->priority(number).spec().initial != InitialPriority::kMax) return value;
  for (const ItemSet& set : sets_) {
    const PriorityTable::Impl& table = *set.given->table;
    if (table.table == writer.table_ && table.number == number)
      value = std::max(value, set.largest);
  }
  return value;
}

Status WriteCall::MergePriorities(TableAppend* append)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  Writer::Impl* writer = append->writer;
  append->given = append->parts[0].given;
  if (append->parts.size() == 1) return Status::Ok();
  append->given.clear();
  append->values.clear();
  GEARDB_RETURN_IF_ERROR(writer->AwaitLanes(append->calls));
  MutexLock lock(&writer->table_->state->mutex);
  const TableState& state = *writer->table_->state;
  for (uint32_t number = 0; number < state.priority_table_count(); ++number) {
    const std::string& name = state.priority(number).spec().name;
    const auto of_table = [&](const InitialPriorities& given) {
      return given.priority_table == name;
    };
    bool any = false;
    std::vector<float> values;
    for (const AppendPart& part : append->parts) {
      const auto given = std::find_if(part.given.begin(), part.given.end(), of_table);
      const bool is_given = given != part.given.end();
      any |= is_given;
      size_t items = 0;
      for (size_t c = part.first; c < part.first + part.count; ++c) {
        const LaneRows& call = append->calls[c];
        const uint64_t of_call = writer->NewItems(number, call, append->plan);
        items += of_call;
        const float value = is_given ? given->values[0] : InitialOf(*writer, number, call);
        values.insert(values.end(), of_call, value);
      }
      if (!is_given) continue;
      GEARDB_RETURN_IF_ERROR(
          OfOperation(part.operation, Writer::Impl::CheckItemCount(*given, items)));
      if (given->values.size() == 1) continue;
      std::copy(given->values.begin(), given->values.end(),
                values.end() - static_cast<ptrdiff_t>(items));
    }
    if (!any || values.empty()) continue;
    const std::vector<float>& kept = append->values[number] = std::move(values);
    append->given.push_back({name, kept});
  }
  return Status::Ok();
}

Status WriteCall::DecideItems(ChangeScope* scope, bool* again)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  std::map<PriorityTable::Impl*, std::vector<fb::Item>> items;
  for (const ItemSet& set : sets_) {
    auto& all = items[set.given->table.get()];
    all.insert(all.end(), set.items.begin(), set.items.end());
  }
  for (const auto& [table, all] : items) {
    if (all.empty()) continue;
    GEARDB_ASSIGN_OR_RETURN(*again, RescaleForSet(table, scope, all, Records(BodyMax())));
    if (*again) return Status::Ok();
  }
  for (const ItemDelete& deleted : deletes_) {
    PriorityTable::Impl* table = deleted.given->table.get();
    if (deleted.items.empty()) continue;
    MutexLock lock(&table->table->state->mutex);
    GEARDB_RETURN_IF_ERROR(OfOperation(deleted.operation, table->state().PrepareDelete()));
  }
  return Status::Ok();
}

// ---- Step 3.

void WriteCall::Commit(ChangeScope* scope) GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  // Whoever comes with the largest priority has that of the batch.
  for (const ItemSet& set : sets_) {
    PriorityTable::Impl* table = set.given->table.get();
    float& max = table->table->plan->max_priority[table->number];
    max = std::max(max, set.largest);
  }
  for (const TableColumns& columns : columns_) CommitColumns(columns);
  for (TableAppend& append : appends_) {
    TablePlan& plan = *append.writer->table_->plan;
    for (const auto& [number, value] : append.plan.largest_given) {
      plan.max_priority[number] = std::max(plan.max_priority[number], value);
    }
    if (!in_parts_) append.writer->FollowPatches(append.calls, &append.plan);
    plan.Take(append.plan.eviction);
    append.writer->EmptyCompanions(append.calls, append.plan);
    append.writer->TakeNumbers(append.calls, &append.plan);
  }
  if (!in_parts_) CollectPieces();
  removed_.resize(removals_.size());
  for (size_t i = 0; i < removals_.size(); ++i) {
    if (removals_[i].with_append) continue;
    for (const Slot slot : removals_[i].slots) {
      removed_[i].removed.push_back(removals_[i].table->plan->Remove(slot));
    }
  }
  if (kBreak.split_batch && !in_parts_ && recorded_.size() > 1) {
    Record(scope, 0, recorded_.size() - 1);
    Record(scope, recorded_.size() - 1, 1);
  } else {
    Record(scope, 0, recorded_.size());
  }
  for (TableAppend& append : appends_) append.plan.admitted.clear();
  database_->room_made.NotifyAll();
}

void WriteCall::Record(ChangeScope* scope, size_t first, size_t count)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  OnItsWay record;
  record.change = std::make_unique<WriteChange>(database_);
  record.recorded.assign(recorded_.begin() + static_cast<ptrdiff_t>(first),
                         recorded_.begin() + static_cast<ptrdiff_t>(first + count));
  record.first_piece = records_.empty() ? 0 : records_.back().first_piece + records_.back().pieces;
  auto& body = record.change->body;
  std::vector<flatbuffers::Offset<fb::Operation>> operations;
  for (const Recorded& recorded : record.recorded) {
    operations.push_back(Encode(recorded, record.change.get()));
    if (recorded.kind == Recorded::Kind::kAppend) {
      record.pieces += appends_[recorded.index].plan.pieces.size();
    }
  }
  body.Finish(fb::CreateBody(body, body.CreateVector(operations)));
  const uint64_t body_bytes = record.change->body_bytes().size();
  const auto bytes = std::span(piece_bytes_).subspan(record.first_piece, record.pieces);
  record.reservation =
      scope->Reserve({.type = scope->how().type,
                      .size = in_parts_ ? wal::RecordSize::For(body_bytes, {}, record.pieces)
                                        : wal::RecordSize::For(body_bytes, bytes),
                      .part = parts_,
                      .group_lsn = group_lsn_});
  for (const Recorded& recorded : record.recorded) {
    if (recorded.kind == Recorded::Kind::kColumns) {
      const TableColumns& columns = columns_[recorded.index];
      columns.table->plan->Note(columns.lane.slot, record.reservation.end);
    }
    if (recorded.kind != Recorded::Kind::kAppend) continue;
    TableAppend& append = appends_[recorded.index];
    append.writer->AdvanceLanes(append.calls, append.plan, record.reservation);
  }
  NoteOwned(record.reservation.end);
  records_.push_back(std::move(record));
}

flatbuffers::Offset<fb::Operation> WriteCall::Encode(const Recorded& recorded, WriteChange* change)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  auto& body = change->body;
  const size_t i = recorded.index;
  switch (recorded.kind) {
    case Recorded::Kind::kSet: {
      const PriorityTable::Impl& table = *sets_[i].given->table;
      change->targets.push_back({.table = table.table});
      const auto items = body.CreateVectorOfStructs(sets_[i].items);
      return fb::CreateOperation(body, table.table->layout().id(), table.number,
                                 fb::Change::SetPriorities,
                                 fb::CreateSetPriorities(body, items).Union());
    }
    case Recorded::Kind::kDelete: {
      const PriorityTable::Impl& table = *deletes_[i].given->table;
      change->targets.push_back({.table = table.table});
      const auto items = body.CreateVectorOfStructs(deletes_[i].items);
      return fb::CreateOperation(body, table.table->layout().id(), table.number,
                                 fb::Change::DeleteItems,
                                 fb::CreateDeleteItems(body, items).Union());
    }
    case Recorded::Kind::kRemove: {
      change->targets.push_back({.table = removals_[i].table});
      const auto removed = body.CreateVectorOfStructs(removed_[i].removed);
      return fb::CreateOperation(body, removals_[i].table->layout().id(), 0, fb::Change::Remove,
                                 fb::CreateRemove(body, removed).Union());
    }
    case Recorded::Kind::kColumns:
      return EncodeColumns(columns_[i], change);
    case Recorded::Kind::kAppend: {
      TableAppend& append = appends_[i];
      const auto offset =
          append.writer->EncodeAppend(append.calls, append.given, append.plan, &body);
      auto& target =
          change->targets.emplace_back(WriteChange::Target{.table = append.writer->table_});
      target.appends = {.new_frames = append.plan.new_frames,
                        .places = {},
                        .layout = &append.writer->layout(),
                        .admitted = append.plan.admitted};
      target.appends.places.swap(append.plan.places);  // Pieces point into it.
      return fb::CreateOperation(body, append.writer->layout().id(), 0, fb::Change::Append,
                                 offset.Union());
    }
    case Recorded::Kind::kTag:
      break;
  }
  change->targets.emplace_back();
  change->blob.assign(tag_->blob.begin(), tag_->blob.end());
  const auto name = body.CreateString(tag_->name);
  const auto blob =
      body.CreateVector(reinterpret_cast<const uint8_t*>(tag_->blob.data()), tag_->blob.size());
  return fb::CreateOperation(
      body, 0, 0, fb::Change::WriteTag,
      fb::CreateWriteTag(body, name, blob, database_->clock->WallTimeUs()).Union());
}

}  // namespace geardb::engine
