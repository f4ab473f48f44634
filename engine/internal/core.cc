#include "engine/internal/core.h"

#include <algorithm>

#include "base/break.h"
#include "base/crash_point.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/exit_close.h"
#include "engine/internal/table_fits.h"

namespace geardb::engine {
namespace {

/// How many ids and generations a Ranges record promises at a time.
constexpr uint64_t kRangeStep = uint64_t{1} << 20;
/// How long Close waits for room for its records.
constexpr int64_t kLastRecordsMs = 10'000;

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
  ForgetAtExit(this);
  Close().ok();  // Whoever wants to know has called Close.
  cleaner.reset();
  filler.reset();
  {
    MutexLock guard(&tables_mutex_);
    tables_.clear();
  }
  page_loader.reset();
}

namespace {

/// Of the budget of frames, as much again as one of so many may be used for pages beside them.
constexpr uint64_t kBesideShare = 16;

}  // namespace

void DatabaseCore::UsePages(std::shared_ptr<Env> held, const wal::Manifest& found) {
  page_source = std::make_unique<PageSource>(std::move(held), directory, found);
  page_loader =
      std::make_unique<PageLoader>(page_source.get(), options.background ? options.read_threads : 0,
                                   options.budgets.frames_bytes / kBesideShare);
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
                             const Eviction& eviction, const RemovalCause& cause) {
  CrashPoint("removal");
  auto change = std::make_unique<FunctionChange>(nullptr);
  FunctionChange* record = change.get();
  change->set_apply([table, record, cause](Lsn, Lsn end) {
    ApplyLock guard(table->state.get(), end);
    table->state->Apply(*record->operation()->change_as_Remove(), cause.priority_table);
    table->state->changed.NotifyAll();  // An epoch may have lost what was left of it.
  });
  auto& body = change->body;
  const auto removed = body.CreateVectorOfStructs(eviction.removed);
  const auto trimmed = body.CreateVectorOfStructs(eviction.trimmed);
  const auto reason = static_cast<uint8_t>(cause.reason);
  change->FinishBody({.table = table->layout().id(), .priority_table = cause.priority_table},
                     fb::Change::Remove, fb::CreateRemove(body, removed, trimmed, reason).Union());
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
  TablePlan* const plan = table->plan.get();
  const uint64_t ids = plan->IdsEndFor(growth);
  const uint64_t generations = plan->GenerationsEndFor(growth);
  if (ids > kIdsEnd) {
    return Status::ResourceExhausted("table '", table->layout().spec().name,
                                     "' has no ids left: ", growth.trajectories, " more from ",
                                     plan->next_id, " on; they end at ", kIdsEnd);
  }
  // A record of a call that could not wait for its sync serves as well.
  if (plan->promised_ids_end < ids || plan->promised_generations_end < generations) {
    GEARDB_RETURN_IF_ERROR(PromiseRanges(scope, table, ids, generations));
  }
  const uint64_t ids_end = plan->promised_ids_end;
  const uint64_t generations_end = plan->promised_generations_end;
  const Lsn promised = plan->promised_lsn;
  commit.Unlock();
  const Status synced = log->WaitSynced(promised, scope->how().deadline);
  commit.Lock();
  if (synced.code() == StatusCode::kDeadlineExceeded) {
    return Status::DeadlineExceeded("never admitted: waited for more ids of table '",
                                    table->layout().spec().name, "', a sync up to LSN ", promised);
  }
  GEARDB_RETURN_IF_ERROR(synced);
  plan->ids_end = std::max(plan->ids_end, ids_end);
  plan->generations_end = std::max(plan->generations_end, generations_end);
  return Status::Ok();
}

Status DatabaseCore::PromiseRanges(ChangeScope* scope, TableCore* table, uint64_t ids,
                                   uint64_t generations) {
  const uint64_t ids_end = std::min(ids + kRangeStep, kIdsEnd);
  const uint64_t generations_end = generations + kRangeStep;
  FunctionChange change([](Lsn, Lsn) {});
  change.FinishBody(
      {.table = table->layout().id()}, fb::Change::Ranges,
      fb::CreateRanges(change.body, ids_end,
                       static_cast<uint32_t>(std::min<uint64_t>(generations_end, UINT32_MAX)))
          .Union());
  const wal::RecordSize size = wal::RecordSize::For(change.body_bytes().size(), {});
  bool waited = false;
  GEARDB_RETURN_IF_ERROR(scope->AwaitRoom(
      {&size, 1}, {.urgency = wal::Urgency::kReserve, .deadline = scope->how().deadline}, &waited));
  // Somebody else may have promised more meanwhile, which this would take back: it is asked again.
  if (waited) return Status::Ok();
  const wal::Reservation reservation = scope->Reserve({.size = size});
  table->plan->promised_ids_end = ids_end;
  table->plan->promised_generations_end = generations_end;
  table->plan->promised_lsn = reservation.end;
  commit.Unlock();
  Finish(reservation, {}, &change);
  // The change is on this stack: it must have been applied before it goes.
  const Status published = log->WaitPublished(reservation.end, Deadline::Infinite());
  commit.Lock();
  return published;
}

std::shared_ptr<TableCore> DatabaseCore::FindTable(std::string_view name) const {
  MutexLock guard(&tables_mutex_);
  for (const auto& [id, table] : tables_) {
    if (!table->is_companion && table->layout().spec().name == name) return table;
  }
  return nullptr;
}

std::vector<std::shared_ptr<TableCore>> DatabaseCore::AllTables() const {
  MutexLock guard(&tables_mutex_);
  std::vector<std::shared_ptr<TableCore>> tables;
  for (const auto& [id, table] : tables_) tables.push_back(table);
  return tables;
}

std::vector<std::shared_ptr<TableCore>> DatabaseCore::UserTables() const {
  std::vector<std::shared_ptr<TableCore>> tables = AllTables();
  std::erase_if(tables, [](const auto& table) { return table->is_companion; });
  return tables;
}

std::shared_ptr<TableCore> DatabaseCore::TableById(TableId id) const {
  MutexLock guard(&tables_mutex_);
  const auto found = tables_.find(id);
  return found == tables_.end() ? nullptr : found->second;
}

bool DatabaseCore::MakeLogRoom(uint64_t bytes, Deadline deadline) {
  if (cleaner == nullptr || deadline.passed()) return false;
  if (log->BytesToBound(wal::Urgency::kAppend) >= bytes) return false;
  const WaitTimer timer(&waits.log_room);
  return cleaner->WaitForPass(bytes, deadline);
}

void DatabaseCore::KeepFrames(TableState* state, uint64_t pages) {
  for (size_t g = 0; g < state->layout().group_count(); ++g) {
    // Pages that can lose their frames need none kept.
    if (!options.resident && state->layout().group(g).logged()) continue;
    // With the one of its defaults.
    const uint64_t frames = pages == 0 || state->layout().group(g).dropped
                                ? 0
                                : pages + (state->default_frame(g).valid() ? 1 : 0);
    arena->Keep(state->pool(g), frames);
  }
}

void DatabaseCore::AddTable(std::shared_ptr<TableCore> table) {
  const TableId id = table->layout().id();
  KeepFrames(table->state.get(), PagesKept(table->layout()));
  const auto companions = table->CompanionsNow();
  {
    MutexLock guard(&tables_mutex_);
    tables_[id] = std::move(table);
    last_table_id_ = std::max(last_table_id_, id);
  }
  for (const auto& companion : companions) {
    if (companion != nullptr) AddTable(companion);
  }
  if (timekeeper != nullptr) timekeeper->LookAnew();
}

void DatabaseCore::ForgetTable(TableId id) {
  const auto forgotten = TableById(id);
  // One of a column that was dropped stays as long as its owner does.
  ForgetTable(id, forgotten != nullptr && !forgotten->is_companion);
}

void DatabaseCore::ForgetTable(TableId id, bool leaves) {
  FrameStats frames;
  if (const auto table = TableById(id)) {
    for (const auto& companion : table->CompanionsNow()) {
      if (companion != nullptr) ForgetTable(companion->layout().id(), leaves);
    }
    MutexLock state_guard(&table->state->mutex);
    frames = table->state->frames().stats();
  }
  MutexLock guard(&tables_mutex_);
  const auto found = tables_.find(id);
  if (found == tables_.end()) return;
  found->second->dropped.store(true);
  KeepFrames(found->second->state.get(), 0);
  std::erase_if(leaving_, [](const auto& presence) { return presence.expired(); });
  if (leaves) leaving_.push_back(found->second->presence);
  tables_.erase(found);
  dropped_.push_back(id);
  frames_of_dropped_.hits += frames.hits;
  frames_of_dropped_.misses += frames.misses;
  frames_of_dropped_.dropped += frames.dropped;
  frames_of_dropped_.unplaced += frames.unplaced;
}

bool DatabaseCore::HasLeaving() {
  MutexLock guard(&tables_mutex_);
  std::erase_if(leaving_, [](const auto& presence) { return presence.expired(); });
  return !leaving_.empty();
}

void DatabaseCore::AwaitLeaving() {
  if (!HasLeaving()) return;
  MutexLock guard(&tables_mutex_);
  left_.WaitUntil(&tables_mutex_, Deadline::AfterMs(1));
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
  // Tables that were not recovered do not know what was handed out.
  if (log == nullptr || !recovered_) return;
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
  opened_us = clock->SteadyTimeUs();
  if (log == nullptr) return;
  if (cold != nullptr && cold->if_open() != nullptr && cold->if_open()->read_only()) {
    const std::vector<std::string> damage = cold->if_open()->damage();
    ReleaseLog(log_released.load(), "the cold store, which is damaged and only read: " +
                                        (damage.empty() ? std::string() : damage.front()));
  }
}

void DatabaseCore::BeginWork() {
  recovered_ = true;
  if (log == nullptr) return;
  if (cold != nullptr && options.cold_tier) cleaner = std::make_unique<Cleaner>(this, cold.get());
  if (!options.background) return;
  filler = std::make_unique<Filler>(log_writer_.get());
  timekeeper = std::make_unique<Timekeeper>(this);
}

void DatabaseCore::KeepActivity(std::shared_ptr<Env> held) {
  activity = std::make_unique<ActivityKeeper>(ActivityKeeper::Place{
      .env = std::move(held), .directory = directory, .seed = manifest.Seed(), .clock = clock});
  if (log == nullptr) return;
  activity->Begin({.number = manifest.epoch.open,
                   .collect = [this] { return Counters(); },
                   .stats = [this] { return StatsNow(); },
                   .tables = [this] { return TablesNow(); },
                   .background = options.background});
}

namespace {

/// Who waits for what a table says asks again whether the database is open.
void WakeWaiters(const DatabaseCore& database) {
  for (const auto& table : database.AllTables()) {
    MutexLock lock(&table->state->mutex);
    table->state->changed.NotifyAll();
  }
}

}  // namespace

Status DatabaseCore::Close() {
  GEARDB_RETURN_IF_ERROR(CheckProcess());
  MutexLock once(&close_mutex_);  // A second caller waits for the first.
  if (activity != nullptr) activity->Stop();
  if (timekeeper != nullptr) timekeeper->Stop();
  if (cleaner != nullptr) cleaner->Stop();
  {
    MutexLock guard(&commit);
    // No ChangeScope is admitted from here on; those that were go on to their end.
    const bool first = !closed.exchange(true);
    room_made.NotifyAll();
    WakeWaiters(*this);
    while (changes_under_way_ > 0) changes_done_.WaitUntil(&commit, Deadline::Infinite());
    if (first) PromiseNothingMore();
  }
  Status status;
  if (log_writer_ != nullptr) {
    log->WaitPublished(log->end(), Deadline::Infinite()).ok();  // Close reports a failure.
    status = log_writer_->Close();
  }
  // Nobody else writes it while the directory is locked; a disk that has no room for it is no
  // error.
  if (activity != nullptr && lock != nullptr) (void)activity->Write();
  if (cold != nullptr) {
    const Status closed_cold = cold->Close();
    // What a full disk keeps the cold store from flushing is still in the log.
    const bool full = closed_cold.code() == StatusCode::kResourceExhausted;
    if (status.ok() && !full) status = closed_cold;
  }
  lock.reset();
  WakeWaiters(*this);  // Of what was published to the end.
  return status;
}

}  // namespace geardb::engine
