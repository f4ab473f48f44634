#include "engine/internal/core.h"

#include <algorithm>

#include "base/break.h"
#include "base/crash_point.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/priority_limits.h"
#include "engine/internal/table_fits.h"

namespace geardb::engine {
namespace {

/// How many ids and generations a Ranges record promises at a time.
constexpr uint64_t kRangeStep = uint64_t{1} << 20;
/// How long Close waits for room for its records.
constexpr int64_t kLastRecordsMs = 10'000;
/// More than a valid schema has: what is beyond is not even copied from a record.
constexpr size_t kStoredNameMax = 256;
constexpr size_t kStoredColumnsMax = 1024;

}  // namespace

void Change::OnPublished(Lsn lsn, Lsn end) {
  Apply(lsn, end);
  if (deletes_itself) delete this;
}

const fb::Operation* Change::operation() const {
  return flatbuffers::GetRoot<fb::Body>(body.GetBufferPointer())->operations()->Get(0);
}

void Change::FinishBody(Target target, fb::Change kind, flatbuffers::Offset<void> change) {
  const auto operation =
      fb::CreateOperation(body, target.table, target.priority_table, kind, change);
  body.Finish(fb::CreateBody(body, body.CreateVector(&operation, 1)));
}

DatabaseCore::DatabaseCore(const DatabaseOptions& options_in)
    : options(options_in),
      env(options_in.env ? options_in.env : Env::Posix()),
      clock(options_in.clock ? options_in.clock : Clock::System()),
      evictor(std::make_unique<Evictor>(this)) {}

DatabaseCore::~DatabaseCore() {
  Close().ok();  // Whoever wants to know has called Close.
  cleaner.reset();
  filler.reset();
  {
    MutexLock guard(&tables_mutex_);
    tables_.clear();
  }
  page_loader.reset();
}

void DatabaseCore::UsePages(std::shared_ptr<Env> held, const wal::Manifest& found) {
  page_source = std::make_unique<PageSource>(std::move(held), directory, found);
  page_loader = std::make_unique<PageLoader>(page_source.get(),
                                             options.background ? options.read_threads : 0);
}

Status DatabaseCore::CheckProcess() const {
  if (!owner.forked()) return Status::Ok();
  return Status::FailedPrecondition("database '", directory, "' was opened by process ",
                                    owner.pid(), ", of which this one is a fork: it cannot use ",
                                    "what that one has opened");
}

Status DatabaseCore::CheckOpen() const {
  GEARDB_RETURN_IF_ERROR(CheckProcess());
  if (closed.load()) return Status::Cancelled("database '", directory, "' is closed");
  return Status::Ok();
}

Status DatabaseCore::CheckWritable() const {
  GEARDB_RETURN_IF_ERROR(CheckOpen());
  if (log == nullptr) {
    return Status::FailedPrecondition("database '", directory, "' is open read-only");
  }
  return Status::Ok();
}

Status DatabaseCore::CheckTable(const TableCore& table) const {
  GEARDB_RETURN_IF_ERROR(CheckOpen());
  return CheckNotDropped(table);
}

Status DatabaseCore::CheckNotDropped(const TableCore& table) const {
  if (!table.dropped.load()) return Status::Ok();
  return Status::Cancelled("table '", table.layout().spec().name, "' was dropped");
}

void DatabaseCore::Finish(const wal::Reservation& reservation,
                          std::span<const wal::PieceSource> pieces, Change* change) {
  std::span<const std::byte> body;
  if (change != nullptr) body = change->body_bytes();
  log_writer_->Fill(reservation, {.body = body, .pieces = pieces});
  log_writer_->Publish(reservation, change);
}

Status DatabaseCore::CatchUp() { return Acknowledge(log->end(), Ack::kLog); }

Result<Lsn> DatabaseCore::Commit(const TableCore* table, Change* change, const CommitOptions& how) {
  const wal::RecordSize size = wal::RecordSize::For(change->body_bytes().size(), {});
  wal::Reservation reservation;
  {
    ChangeScope scope(this, table, how);
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, how, &waited));
    reservation = scope.Reserve({.type = how.type, .size = size});
    if (how.makes_room) room_made.NotifyAll();
  }
  Finish(reservation, {}, change);
  return reservation.end;
}

wal::RecordSize DatabaseCore::RemovalSize(size_t entries) {
  return wal::RecordSize::For(1024 + entries * sizeof(fb::Removed), {});
}

Lsn DatabaseCore::LogRemoval(ChangeScope* scope, const std::shared_ptr<TableCore>& table,
                             const Eviction& eviction) {
  CrashPoint("removal");
  auto change = std::make_unique<FunctionChange>(nullptr);
  FunctionChange* record = change.get();
  change->set_apply([table, record](Lsn, Lsn end) {
    ApplyLock guard(table->state.get(), end);
    table->state->Apply(*record->operation()->change_as_Remove());
  });
  auto& body = change->body;
  const auto removed = body.CreateVectorOfStructs(eviction.removed);
  const auto trimmed = body.CreateVectorOfStructs(eviction.trimmed);
  change->FinishBody({.table = table->layout().id()}, fb::Change::Remove,
                     fb::CreateRemove(body, removed, trimmed).Union());
  const wal::RecordSize size = wal::RecordSize::For(change->body_bytes().size(), {});
  GEARDB_CHECK(size.total() <= RemovalSize(eviction.size()).total());
  const wal::Reservation reservation = scope->Reserve({.size = size});
  change->deletes_itself = true;
  Finish(reservation, {}, change.release());
  const Lsn end = reservation.end;
  for (const fb::Trimmed& trim : eviction.trimmed) table->plan->Note(trim.slot(), end);
  room_made.NotifyAll();
  return end;
}

Status DatabaseCore::LogRescale(ChangeScope* scope, const std::shared_ptr<TableCore>& table,
                                uint32_t priority_table, int shift) {
  FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    ApplyLock guard(table->state.get(), end);
    table->state->Apply(*change.operation()->change_as_Rescale(), priority_table);
  });
  change.FinishBody({.table = table->layout().id(), .priority_table = priority_table},
                    fb::Change::Rescale, fb::CreateRescale(change.body, shift).Union());
  const wal::RecordSize size = wal::RecordSize::For(change.body_bytes().size(), {});
  bool waited = false;
  GEARDB_RETURN_IF_ERROR(scope->AwaitRoom({&size, 1}, scope->how(), &waited));
  // What others logged meanwhile may not fit this scale.
  if (waited) return Status::Ok();
  const wal::Reservation reservation = scope->Reserve({.size = size});
  Finish(reservation, {}, &change);
  // Whoever asks next must not be told the same again.
  return log->WaitPublished(reservation.end, Deadline::Infinite());
}

Status DatabaseCore::Acknowledge(Lsn end, Ack ack, Deadline deadline) {
  switch (ack) {
    case Ack::kMemory:
      return Status::Ok();
    case Ack::kLog:
      if (filler != nullptr && log->published() < end) filler->FillBelow(end);
      return log->WaitPublished(end, deadline);
    case Ack::kSync:
      if (filler != nullptr && log->published() < end) filler->FillBelow(end);
      return log->WaitSynced(end, deadline);
  }
  return Status::InvalidArgument("unknown acknowledgement ", static_cast<int>(ack));
}

Status DatabaseCore::ExtendRanges(ChangeScope* scope, TableCore* table, const Growth& growth) {
  const TablePlan& plan = *table->plan;
  if (plan.next_id + growth.trajectories > kIdsEnd) {
    return Status::ResourceExhausted("table '", table->layout().spec().name,
                                     "' has no ids left: ", growth.trajectories, " more from ",
                                     plan.next_id, " on; they end at ", kIdsEnd);
  }
  const uint64_t ids_end = std::min(plan.next_id + growth.trajectories + kRangeStep, kIdsEnd);
  const uint64_t generations_end =
      plan.next_generation + growth.trajectories + growth.pages + kRangeStep;
  FunctionChange change([](Lsn, Lsn) {});
  change.FinishBody(
      {.table = table->layout().id()}, fb::Change::Ranges,
      fb::CreateRanges(change.body, ids_end,
                       static_cast<uint32_t>(std::min<uint64_t>(generations_end, UINT32_MAX)))
          .Union());
  const wal::RecordSize size = wal::RecordSize::For(change.body_bytes().size(), {});
  const Deadline deadline = scope->how().deadline;
  bool waited = false;
  GEARDB_RETURN_IF_ERROR(scope->AwaitRoom(
      {&size, 1}, {.urgency = wal::Urgency::kReserve, .deadline = deadline}, &waited));
  const wal::Reservation reservation = scope->Reserve({.size = size});
  table->plan->promised_ids_end = ids_end;
  table->plan->promised_generations_end = generations_end;
  commit.Unlock();
  Finish(reservation, {}, &change);
  Status synced = log->WaitSynced(reservation.end, deadline);
  // The change is on this stack: it must have been applied before it goes.
  const Status published = log->WaitPublished(reservation.end, Deadline::Infinite());
  commit.Lock();
  GEARDB_RETURN_IF_ERROR(published);
  GEARDB_RETURN_IF_ERROR(synced);
  table->plan->ids_end = std::max(table->plan->ids_end, ids_end);
  table->plan->generations_end = std::max(table->plan->generations_end, generations_end);
  return Status::Ok();
}

std::shared_ptr<TableCore> DatabaseCore::FindTable(std::string_view name) const {
  MutexLock guard(&tables_mutex_);
  for (const auto& [id, table] : tables_) {
    if (table->layout().spec().name == name) return table;
  }
  return nullptr;
}

std::vector<std::shared_ptr<TableCore>> DatabaseCore::AllTables() const {
  MutexLock guard(&tables_mutex_);
  std::vector<std::shared_ptr<TableCore>> tables;
  for (const auto& [id, table] : tables_) tables.push_back(table);
  return tables;
}

std::shared_ptr<TableCore> DatabaseCore::TableById(TableId id) const {
  MutexLock guard(&tables_mutex_);
  const auto found = tables_.find(id);
  return found == tables_.end() ? nullptr : found->second;
}

void DatabaseCore::MakeLogRoom(uint64_t bytes, Deadline deadline) {
  if (cleaner == nullptr || log->BytesToBound(wal::Urgency::kAppend) >= bytes) return;
  (void)cleaner->WaitForPass(deadline);
}

Result<FrameRef> DatabaseCore::TakeFrame(FramePool* pool, uint64_t ahead, Deadline deadline) {
  if (!options.resident) {
    if (const auto frame = arena->TryAllocate(pool)) return *frame;
    evictor->MakeRoom(pool, ahead);
  }
  return arena->Allocate(pool, deadline);
}

Result<std::shared_ptr<TableCore>> DatabaseCore::MakeTable(const TableSpec& spec, TableId id,
                                                           Kept kept) {
  // A dropped table's last handle gives frames back, which a fork shares.
  std::shared_ptr<TableCore> table(new TableCore, DeleteUnlessForked<TableCore>());
  GEARDB_ASSIGN_OR_RETURN(table->state, TableState::Create({.index = index_memory.get(),
                                                            .arena = arena.get(),
                                                            .loader = page_loader.get(),
                                                            .kept = kept},
                                                           spec, id));
  GEARDB_ASSIGN_OR_RETURN(table->plan, TablePlan::Create(index_memory.get(), table->state.get()));
  return table;
}

void DatabaseCore::KeepFrames(TableState* state, uint64_t pages) {
  for (size_t g = 0; g < state->layout().group_count(); ++g) {
    // Pages that can lose their frames need none kept.
    if (!options.resident && state->layout().group(g).logged()) continue;
    // With the one of its defaults.
    const uint64_t frames = pages == 0 ? 0 : pages + (state->default_frame(g).valid() ? 1 : 0);
    arena->Keep(state->pool(g), frames);
  }
}

void DatabaseCore::AddTable(std::shared_ptr<TableCore> table) {
  const TableId id = table->layout().id();
  KeepFrames(table->state.get(), PagesKept(table->layout()));
  MutexLock guard(&tables_mutex_);
  tables_[id] = std::move(table);
  last_table_id_ = std::max(last_table_id_, id);
}

void DatabaseCore::ForgetTable(TableId id) {
  MutexLock guard(&tables_mutex_);
  const auto found = tables_.find(id);
  if (found == tables_.end()) return;
  found->second->dropped.store(true);
  KeepFrames(found->second->state.get(), 0);
  tables_.erase(found);
  dropped_.push_back(id);
}

std::vector<TableId> DatabaseCore::TakeDropped() {
  MutexLock guard(&tables_mutex_);
  return std::exchange(dropped_, {});
}

TableId DatabaseCore::NextTableId() const {
  MutexLock guard(&tables_mutex_);
  return last_table_id_ + 1;
}

void DatabaseCore::AddTag(Tag tag) {
  CrashPoint("tag");
  MutexLock guard(&tables_mutex_);
  std::string name = tag.name;
  tags_[std::move(name)] = std::move(tag);
}

std::vector<Tag> DatabaseCore::Tags() const {
  MutexLock guard(&tables_mutex_);
  std::vector<Tag> tags;
  for (const auto& [name, tag] : tags_) tags.push_back(tag);
  std::sort(tags.begin(), tags.end(), [](const Tag& a, const Tag& b) { return a.lsn < b.lsn; });
  return tags;
}

void DatabaseCore::PromiseNothingMore() {
  if (log == nullptr) return;
  for (const auto& table : AllTables()) {
    const TablePlan& plan = *table->plan;
    if (plan.next_id >= plan.ids_end && plan.next_generation >= plan.generations_end) continue;
    auto change = std::make_unique<FunctionChange>([](Lsn, Lsn) {});
    change->FinishBody({.table = table->layout().id()}, fb::Change::Ranges,
                       fb::CreateRanges(change->body, plan.next_id,
                                        static_cast<uint32_t>(
                                            std::min<uint64_t>(plan.next_generation, UINT32_MAX)))
                           .Union());
    const wal::RecordSize size = wal::RecordSize::For(change->body_bytes().size(), {});
    const Status room =
        log_writer_->WaitForRoom(size, wal::Urgency::kReserve, Deadline::AfterMs(kLastRecordsMs));
    // Without the record the old promise holds: numbers are skipped, none comes twice.
    if (!room.ok() || !log_writer_->HasRoom(size, wal::Urgency::kReserve)) return;
    const wal::Reservation reservation = log_writer_->Reserve({.size = size});
    change->deletes_itself = true;
    Finish(reservation, {}, change.release());
  }
}

void DatabaseCore::UseLog(std::unique_ptr<wal::LogWriter> writer) {
  log_writer_ = std::move(writer);
  log = log_writer_.get();
  opened_us = clock->WallTimeUs();
  if (log == nullptr) return;
  if (cold != nullptr && options.cold_tier) cleaner = std::make_unique<Cleaner>(this, cold.get());
  if (!options.background) return;
  filler = std::make_unique<Filler>(log_writer_.get());
  timekeeper = std::make_unique<Timekeeper>(this);
}

Status DatabaseCore::Close() {
  GEARDB_RETURN_IF_ERROR(CheckProcess());
  MutexLock once(&close_mutex_);  // A second caller waits for the first.
  if (timekeeper != nullptr) timekeeper->Stop();
  if (cleaner != nullptr) cleaner->Stop();
  {
    MutexLock guard(&commit);
    // No ChangeScope is admitted from here on; those that were go on to their end.
    const bool first = !closed.exchange(true);
    room_made.NotifyAll();
    while (changes_under_way_ > 0) changes_done_.WaitUntil(&commit, Deadline::Infinite());
    if (first) PromiseNothingMore();
  }
  Status status;
  if (log_writer_ != nullptr) {
    log->WaitPublished(log->end(), Deadline::Infinite()).ok();  // Close reports a failure.
    status = log_writer_->Close();
  }
  if (cold != nullptr) {
    const Status closed_cold = cold->Close();
    if (status.ok()) status = closed_cold;
  }
  lock.reset();
  return status;
}

// ---- The schema in the log.

flatbuffers::Offset<fb::PriorityTableSpec> EncodePriorityTableSpec(
    flatbuffers::FlatBufferBuilder* builder, const PriorityTableSpec& spec) {
  const auto name = builder->CreateString(spec.name);
  const auto column = builder->CreateString(spec.initial_priority_column);
  const auto required = spec.required.empty() ? 0 : builder->CreateVectorOfStrings(spec.required);
  const auto limits = EncodeLimits(builder, LimitsOf(spec));
  fb::PriorityTableSpecBuilder stored(*builder);
  stored.add_name(name);
  stored.add_item(static_cast<uint8_t>(spec.item));
  stored.add_before(spec.window.extent.before);
  stored.add_length(spec.window.extent.length);
  stored.add_after(spec.window.extent.after);
  stored.add_stride(spec.window.stride);
  stored.add_stride_from_end(spec.window.stride_from_end);
  stored.add_left(static_cast<uint8_t>(spec.window.left));
  stored.add_right(static_cast<uint8_t>(spec.window.right));
  stored.add_cross_ends(spec.window.cross_ends);
  stored.add_selector(static_cast<uint8_t>(spec.selector));
  stored.add_alpha(spec.alpha);
  stored.add_initial(static_cast<uint8_t>(spec.initial));
  stored.add_initial_value(spec.initial_priority_value);
  stored.add_initial_column(column);
  stored.add_seed(spec.seed);
  if (!spec.required.empty()) stored.add_required(required);
  stored.add_limits(limits);
  return stored.Finish();
}

Result<PriorityTableSpec> DecodePriorityTableSpec(const fb::PriorityTableSpec* stored) {
  if (stored == nullptr || stored->name() == nullptr) {
    return Status::Corruption("a priority table is stored without its name");
  }
  const auto* column = stored->initial_column();
  if (stored->name()->size() > kStoredNameMax ||
      (column != nullptr && column->size() > kStoredNameMax)) {
    return Status::Corruption("a priority table is stored with a name of more than ",
                              kStoredNameMax, " characters");
  }
  PriorityTableSpec spec;
  spec.name = stored->name()->str();
  spec.item = static_cast<ItemKind>(stored->item());
  spec.window.extent = Extent{stored->before(), stored->length(), stored->after()};
  spec.window.stride = stored->stride();
  spec.window.stride_from_end = stored->stride_from_end();
  spec.window.left = static_cast<EdgeRule>(stored->left());
  spec.window.right = static_cast<EdgeRule>(stored->right());
  spec.window.cross_ends = stored->cross_ends();
  spec.selector = static_cast<SelectorKind>(stored->selector());
  if (spec.selector > kSelectorKindLast) {
    return Status::Unsupported("written by a newer GearDB: priority table '", spec.name,
                               "' has selector ", static_cast<int>(stored->selector()));
  }
  spec.alpha = stored->alpha();
  spec.initial = static_cast<InitialPriority>(stored->initial());
  spec.initial_priority_value = stored->initial_value();
  if (column != nullptr) spec.initial_priority_column = column->str();
  spec.seed = stored->seed();
  for (uint32_t i = 0; stored->required() != nullptr && i < stored->required()->size(); ++i) {
    const auto* name = stored->required()->Get(i);
    if (name->size() > kStoredNameMax || i >= kStoredColumnsMax) {
      return Status::Corruption("priority table '", spec.name, "' requires ",
                                stored->required()->size(), " names, one of ", name->size(),
                                " characters");
    }
    spec.required.push_back(name->str());
  }
  const Result<PriorityLimits> limits = DecodeLimits(stored->limits());
  if (!limits.ok()) return limits.status().WithContext("priority table '" + spec.name + "'");
  SetLimits(*limits, &spec);
  return spec;
}

flatbuffers::Offset<fb::TableSpec> EncodeTableSpec(flatbuffers::FlatBufferBuilder* builder,
                                                   const TableSpec& spec) {
  std::vector<flatbuffers::Offset<fb::Column>> columns;
  for (const Column& column : spec.columns) {
    const auto name = builder->CreateString(column.name);
    const auto dims = column.shape.dims();
    const auto shape = builder->CreateVector(dims.data(), dims.size());
    const auto group = std::find_if(spec.groups.begin(), spec.groups.end(),
                                    [&](const auto& known) { return known.name == column.group; });
    const auto number = column.group.empty() ? 0 : group - spec.groups.begin() + 1;
    columns.push_back(fb::CreateColumn(*builder, name, static_cast<uint8_t>(column.dtype), shape,
                                       static_cast<uint8_t>(column.kind), column.in_final_row,
                                       static_cast<uint16_t>(number), column.default_value));
  }
  std::vector<flatbuffers::Offset<fb::ColumnGroup>> groups;
  for (const ColumnGroup& group : spec.groups) {
    const auto name = builder->CreateString(group.name);
    groups.push_back(fb::CreateColumnGroup(*builder, name, group.late, group.is_volatile));
  }
  const auto name = builder->CreateString(spec.name);
  const auto columns_offset = builder->CreateVector(columns);
  const auto groups_offset = groups.empty() ? 0 : builder->CreateVector(groups);
  return fb::CreateTableSpec(*builder, name, columns_offset, spec.final_row, spec.stream,
                             spec.steps_per_page, spec.expected_steps, spec.trajectories_max,
                             spec.steps_max, spec.bytes_max, static_cast<uint8_t>(spec.remover),
                             /*partitions=*/1, groups_offset, spec.ttl_ms, spec.orphan_timeout_ms);
}

Result<TableSpec> DecodeTableSpec(const fb::TableSpec* stored) {
  if (stored == nullptr || stored->name() == nullptr || stored->columns() == nullptr) {
    return Status::Corruption("a table is stored without its name or columns");
  }
  if (stored->name()->size() > kStoredNameMax || stored->columns()->size() > kStoredColumnsMax) {
    return Status::Corruption("a table is stored with a name of ", stored->name()->size(),
                              " characters and ", stored->columns()->size(), " columns");
  }
  TableSpec spec;
  spec.name = stored->name()->str();
  if (stored->partitions() == 0) {
    return Status::Corruption("table '", spec.name, "' is stored with 0 partitions");
  }
  if (stored->partitions() > 1) {
    return Status::Unsupported("written by a newer GearDB: table '", spec.name, "' has ",
                               stored->partitions(), " partitions");
  }
  for (uint32_t i = 0; stored->groups() != nullptr && i < stored->groups()->size(); ++i) {
    const fb::ColumnGroup* group = stored->groups()->Get(i);
    if (group->name() == nullptr || group->name()->size() > kStoredNameMax ||
        i >= kColumnGroupsMax) {
      return Status::Corruption("table '", spec.name,
                                "' is stored with a column group that is none");
    }
    spec.groups.push_back({group->name()->str(), group->late(), group->is_volatile()});
  }
  for (const fb::Column* column : *stored->columns()) {
    if (column->name() == nullptr || column->name()->size() > kStoredNameMax ||
        (column->shape() && column->shape()->size() > Shape::kRankMax)) {
      return Status::Corruption("table '", spec.name, "' is stored with a column that is none");
    }
    Column decoded;
    decoded.name = column->name()->str();
    decoded.dtype = static_cast<DType>(column->dtype());
    if (column->shape()) {
      for (const int64_t dim : *column->shape()) decoded.shape.Append(dim);
    }
    decoded.kind = static_cast<ColumnKind>(column->kind());
    decoded.in_final_row = column->in_final_row();
    decoded.default_value = column->default_value();
    if (column->group() > spec.groups.size()) {
      return Status::Corruption("table '", spec.name, "' is stored with a column in group ",
                                column->group(), " of ", spec.groups.size() + 1);
    }
    if (column->group() > 0) decoded.group = spec.groups[column->group() - 1u].name;
    spec.columns.push_back(std::move(decoded));
  }
  spec.final_row = stored->final_row();
  spec.stream = stored->stream();
  spec.steps_per_page = stored->steps_per_page();
  spec.expected_steps = stored->expected_steps();
  spec.trajectories_max = stored->trajectories_max();
  spec.steps_max = stored->steps_max();
  spec.bytes_max = stored->bytes_max();
  spec.remover = static_cast<Remover>(stored->remover());
  spec.ttl_ms = stored->ttl_ms();
  spec.orphan_timeout_ms = stored->orphan_timeout_ms();
  return spec;
}

}  // namespace geardb::engine
