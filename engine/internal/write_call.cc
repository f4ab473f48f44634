#include "engine/internal/write_call.h"

#include <algorithm>

#include "base/crash_point.h"
#include "engine/internal/set_filter.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {

namespace {

Status CheckGiven(const void* given, std::string_view what) {
  if (given != nullptr) return Status::Ok();
  return Status::InvalidArgument("no ", what, " is given; the pointer is null");
}

}  // namespace

Status WriteCall::OfOperation(size_t operation, const Status& status) const {
  if (status.ok() || alone_) return status;
  return status.WithContext("operation " + std::to_string(operation));
}

Status CheckTagName(std::string_view name) {
  if (name.empty() || name.size() > kTagNameBytesMax) {
    return Status::InvalidArgument("a tag's name has ", name.size(), " bytes; expected 1 to ",
                                   kTagNameBytesMax);
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte >= 0x20 && byte != 0x7f) continue;
    return Status::InvalidArgument("a tag's name has the control character ", int{byte},
                                   " as its byte ", i, "; expected none");
  }
  return Status::Ok();
}

WriteCall::WriteCall(DatabaseCore* database, const WriteBatch::Impl& batch,
                     const WriteOptions& options)
    : database_(database),
      batch_(batch),
      deadline_(Deadline::AfterMs(options.admission_timeout_ms)),
      ack_(options.ack.value_or(database->options.ack)),
      hold_(&database->frame_queue) {}

WriteCall::~WriteCall() = default;

// ---- Step 1.

Status WriteCall::Bind() {
  if (ack_ > Ack::kSync) {
    return Status::InvalidArgument("a batch with the unknown acknowledgement ",
                                   static_cast<int>(ack_));
  }
  for (size_t i = 0; i < batch_.operations.size(); ++i) {
    const Status bound =
        std::visit([&](const auto& operation) { return Bind(i, operation); }, batch_.operations[i]);
    GEARDB_RETURN_IF_ERROR(OfOperation(i, bound));
  }
  for (TableRemoval& removal : removals_) {
    removal.with_append = std::any_of(
        appends_.begin(), appends_.end(),
        [&](const TableAppend& append) { return append.writer->table_ == removal.table; });
  }
  ack_ = std::max(ack_, tag_ != nullptr ? Ack::kSync : Ack::kLog);
  return CheckColumnsOnce();
}

Status WriteCall::CheckDatabase(const DatabaseCore* database, std::string_view what) const {
  if (database == database_) return Status::Ok();
  return Status::InvalidArgument(what, " is of database '", database->directory, "', not of '",
                                 database_->directory, "'");
}

Status WriteCall::Bind(size_t operation, const AppendOperation& append) {
  Writer::Impl* writer = append.writer;
  GEARDB_RETURN_IF_ERROR(CheckGiven(writer, "writer"));
  GEARDB_RETURN_IF_ERROR(CheckDatabase(writer->database_.get(), "the writer"));
  const std::vector<InitialPriorities> given = append.given();
  const std::vector<ColumnValue> final = append.final.values();
  const std::vector<ColumnValue> trajectory = append.trajectory.values();
  BoundAppend bound;
  if (append.kind) {
    const AppendOptions options{.lane = append.lane,
                                .end = append.end,
                                .final = final,
                                .trajectory = trajectory,
                                .priorities = given};
    GEARDB_ASSIGN_OR_RETURN(bound, BindAppend(writer, *append.kind, append.rows.values(), options));
  } else {
    const AppendLanesOptions options{
        .ends = append.ends, .final = final, .trajectory = trajectory, .priorities = given};
    GEARDB_ASSIGN_OR_RETURN(bound, BindAppendLanes(writer, append.rows.values(), options));
  }
  GEARDB_RETURN_IF_ERROR(writer->CheckCall(bound.calls, ack_));
  if (bound.calls.empty()) return writer->CheckNothing(bound.nothing, given, ack_);
  GEARDB_RETURN_IF_ERROR(writer->CheckCall(bound.nothing, ack_));
  return AddRows(operation, writer, given, bound.calls);
}

Status WriteCall::AddRows(size_t operation, Writer::Impl* writer,
                          const std::vector<InitialPriorities>& given,
                          std::span<const LaneRows> calls) {
  auto found = std::find_if(appends_.begin(), appends_.end(), [&](const TableAppend& other) {
    return other.writer->table_ == writer->table_;
  });
  if (found == appends_.end()) {
    found = appends_.insert(found, TableAppend());
    found->writer = writer;
  }
  const std::string& table = writer->layout().spec().name;
  if (found->writer != writer) {
    return Status::InvalidArgument("table '", table, "': another writer than that of operation ",
                                   found->operation(), "; a batch takes one for each table");
  }
  for (const LaneRows& call : calls) {
    if (found->lanes.insert(call.lane).second) continue;
    return Status::InvalidArgument("table '", table, "': lane ", call.lane,
                                   " comes twice in one batch");
  }
  found->parts.push_back({operation, found->calls.size(), calls.size(), given});
  found->calls.insert(found->calls.end(), calls.begin(), calls.end());
  for (const LaneRows& call : calls) {
    GEARDB_RETURN_IF_ERROR(AddCompanionRows(operation, writer, call));
  }
  return Status::Ok();
}

Status WriteCall::Bind(size_t operation, const SetOperation& set) {
  GEARDB_RETURN_IF_ERROR(CheckGiven(set.table.get(), "priority table"));
  GEARDB_RETURN_IF_ERROR(CheckDatabase(set.table->database.get(), "the priority table"));
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(*set.table->table));
  GEARDB_RETURN_IF_ERROR(CheckSet(set.table->spec, set.items.size(), set.priorities));
  sets_.push_back({operation, &set, {}, 0, 0});
  return Status::Ok();
}

Status WriteCall::Bind(size_t operation, const DeleteOperation& deleted) {
  GEARDB_RETURN_IF_ERROR(CheckGiven(deleted.table.get(), "priority table"));
  GEARDB_RETURN_IF_ERROR(CheckDatabase(deleted.table->database.get(), "the priority table"));
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(*deleted.table->table));
  deletes_.push_back({operation, &deleted, {}, 0});
  return Status::Ok();
}

Status WriteCall::Bind(size_t operation, const RemoveOperation& remove) {
  GEARDB_RETURN_IF_ERROR(CheckGiven(remove.table.get(), "table"));
  GEARDB_RETURN_IF_ERROR(CheckDatabase(remove.table->database.get(), "the table"));
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(*remove.table->table));
  if (remove.ids.empty()) return Status::Ok();
  auto found = std::find_if(removals_.begin(), removals_.end(), [&](const TableRemoval& other) {
    return other.table == remove.table->table;
  });
  if (found == removals_.end()) {
    found = removals_.insert(found, TableRemoval());
    found->table = remove.table->table;
  }
  for (const TrajectoryId id : remove.ids) found->ids.emplace_back(operation, id);
  return Status::Ok();
}

Status WriteCall::Bind(size_t operation, const SetColumnsOperation& set) {
  GEARDB_RETURN_IF_ERROR(CheckGiven(set.table.get(), "table"));
  GEARDB_RETURN_IF_ERROR(CheckDatabase(set.table->database.get(), "the table"));
  const std::shared_ptr<TableCore>& table = set.table->table;
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(*table));
  GEARDB_ASSIGN_OR_RETURN(ColumnSetting setting, BindColumns(table->layout(), set.values.values()));
  if (!setting.companions.empty()) {
    const size_t companion = setting.companions[0].companion;
    return Status::InvalidArgument("table '", table->layout().spec().name, "': column '",
                                   table->layout().companions()[companion].name,
                                   "' has values of any length, or wide ones; a batch sets others, "
                                   "Table::SetColumns also these");
  }
  setting.id = set.id;
  TableColumns& columns = columns_.emplace_back();
  columns.operation = operation;
  columns.table = table;
  columns.setting = std::move(setting);
  return Status::Ok();
}

Status WriteCall::Bind(size_t, const TagOperation& tag) {
  GEARDB_RETURN_IF_ERROR(CheckTagName(tag.name));
  if (tag_ != nullptr) return Status::InvalidArgument("a second tag; a batch takes one");
  tag_ = &tag;
  return Status::Ok();
}

Status WriteCall::TakeFrames() {
  for (TableAppend& append : appends_) {
    GEARDB_RETURN_IF_ERROR(OfOperation(append.operation(), TakeFrames(&append)));
  }
  return Status::Ok();
}

Status WriteCall::TakeFrames(TableAppend* append) {
  Writer::Impl* writer = append->writer;
  append->plan = {};
  const uint64_t pieces = writer->CountRows(append->calls, &append->plan);
  append->plan.growth.companion_bytes = CompanionGrowth(*writer->table_);
  GEARDB_RETURN_IF_ERROR(writer->CheckFits(append->plan, pieces));
  if (const auto owner = writer->table_->owner.lock(); owner != nullptr) {
    // Rows that come without their owner's, too.
    GEARDB_RETURN_IF_ERROR(owner->plan->CheckFits({.companion_bytes = CompanionGrowth(*owner)}));
  }
  append->plan.hold = &hold_;
  return writer->CopyRows(append->calls, deadline_, &append->plan);
}

// ---- The whole way.

Result<WriteOutcome> WriteCall::Run() {
  GEARDB_RETURN_IF_ERROR(database_->CheckWritable());
  GEARDB_RETURN_IF_ERROR(Bind());
  GEARDB_RETURN_IF_ERROR(RunBound());
  return Outcome();
}

Status WriteCall::RunBound() {
  // As Writer::Impl::Append.
  for (const TableAppend& append : appends_) {
    const auto& table = append.writer->table_;
    if (table->follow_up_due.load()) RemoveFinishedNow(database_, table);
  }
  const Status reserved = WithLogRoom(database_, deadline_, [&] {
    Status status =
        TakeInTurn(database_, &hold_, deadline_,
                   {.take = [this] { return TakeFrames(); }, .give_back = [this] { GiveBack(); }});
    if (status.ok()) status = Reserve();
    if (!status.ok()) GiveUp();
    return status;
  });
  if (!reserved.ok()) {
    ForgetRemoved(reserved);
    SeeToTables(/*written=*/false);
    return reserved;
  }
  CrashPoint("write_batch");
  for (OnItsWay& record : records_) {
    const auto pieces = std::span(pieces_).subspan(record.first_piece, record.pieces);
    database_->Finish(record.reservation, pieces, record.change.get());
    CrashPoint("write_batch");
  }
  hold_.End();
  if (!records_.empty()) {
    GEARDB_RETURN_IF_ERROR(database_->Acknowledge(records_.back().reservation.end, ack_));
    SeeToTables(/*written=*/true);
  }
  return Status::Ok();
}

void WriteCall::ForgetRemoved(const Status& told) {
  // A trajectory's rows and those of its values leave together, whichever was asked first.
  const auto owner_of = [](const TableAppend& append) {
    const auto owner = append.writer->table_->owner.lock();
    return owner != nullptr ? owner : append.writer->table_;
  };
  for (const TableAppend& append : appends_) {
    if (!append.plan.lanes_left) continue;
    for (const TableAppend& other : appends_) {
      if (owner_of(other) == owner_of(append)) other.writer->ForgetRemoved(other.calls, told);
    }
  }
}

void WriteCall::GiveBack() {
  for (TableAppend& append : appends_) append.writer->FreeFrames(&append.plan);
}

bool WriteCall::ReleaseAdmitted() {
  bool any = false;
  for (TableAppend& append : appends_) {
    any |= !append.plan.admitted.empty();
    append.writer->ReleaseItems(&append.plan);
  }
  return any;
}

void WriteCall::GiveUp() {
  (void)ReleaseAdmitted();
  GiveBack();
  hold_.End();
  MutexLock lock(&database_->commit);
  database_->room_made.NotifyAll();
}

void WriteCall::SeeToTables(bool written) {
  std::vector<std::shared_ptr<TableCore>> tables;
  for (const TableAppend& append : appends_) tables.push_back(append.writer->table_);
  for (const TableColumns& columns : columns_) tables.push_back(columns.table);
  for (const TableRemoval& removal : removals_) tables.push_back(removal.table);
  for (const ItemSet& set : sets_) tables.push_back(set.given->table->table);
  for (const ItemDelete& deleted : deletes_) tables.push_back(deleted.given->table->table);
  std::sort(tables.begin(), tables.end());
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  for (const auto& table : tables) {
    if (written) {
      FollowUp(database_, table);
      continue;
    }
    // Within the time of the call that was refused: for nothing longer than for itself.
    RescaleWhereDue(database_, table);
    if (table->follow_up_due.load()) RemoveFinishedNow(database_, table);
  }
  if (!written) return;
  for (const OnItsWay& record : records_) {
    for (const WriteChange::Target& target : record.change->targets) {
      if (target.deleted.touched.empty()) continue;
      RemoveFinished(database_, target.table, target.deleted.touched);
    }
  }
}

WriteOutcome WriteCall::Outcome() const {
  WriteOutcome outcome;
  outcome.operations.resize(batch_.operations.size());
  if (!records_.empty()) outcome.end_lsn = records_.back().reservation.end;
  for (size_t i = 0; i < batch_.operations.size(); ++i) {
    const auto* append = std::get_if<AppendOperation>(&batch_.operations[i]);
    if (append == nullptr) continue;
    outcome.operations[i].appended.resize(append->kind ? 1 : append->writer->options().lanes);
  }
  for (const TableAppend& append : appends_) {
    if (append.writer->table_->is_companion) continue;
    for (const AppendPart& part : append.parts) {
      std::vector<Appended>& appended = outcome.operations[part.operation].appended;
      for (size_t c = part.first; c < part.first + part.count; ++c) {
        const CallPlan& call = append.plan.calls[c];
        appended[appended.size() == 1 ? 0 : append.calls[c].lane] = {
            .id = call.id,
            .first_row = call.first_row,
            .rows = static_cast<int64_t>(append.calls[c].rows),
            .end_lsn = outcome.end_lsn};
      }
    }
  }
  for (const ItemSet& set : sets_) outcome.operations[set.operation].stale = set.stale;
  for (const ItemDelete& deleted : deletes_) {
    outcome.operations[deleted.operation].stale = deleted.stale;
  }
  for (const OnItsWay& record : records_) {
    for (size_t i = 0; i < record.recorded.size(); ++i) {
      const Recorded& recorded = record.recorded[i];
      const WriteChange::Target& target = record.change->targets[i];
      const bool is_set = recorded.kind == Recorded::Kind::kSet;
      if (!is_set && recorded.kind != Recorded::Kind::kDelete) continue;
      const PriorityOutcome& came_to = is_set ? target.set : target.deleted.items;
      OperationOutcome& one = outcome.operations[is_set ? sets_[recorded.index].operation
                                                        : deletes_[recorded.index].operation];
      one.applied = came_to.applied;
      one.stale += came_to.stale;
    }
  }
  return outcome;
}

}  // namespace geardb::engine

namespace geardb {

Result<WriteOutcome> Database::Write(const WriteBatch& batch, const WriteOptions& options) {
  return engine::WriteCall(impl_.get(), *batch.impl_, options).Run();
}

}  // namespace geardb
