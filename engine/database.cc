#include "engine/database.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/malloc_limits.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/cold_check.h"
#include "engine/internal/cold_first_use.h"
#include "engine/internal/cold_tier.h"
#include "engine/internal/core.h"
#include "engine/internal/exit_close.h"
#include "engine/internal/index_budget.h"
#include "engine/internal/log_sizes.h"
#include "engine/internal/recovery.h"
#include "engine/internal/reopen.h"
#include "engine/internal/table_change.h"
#include "engine/internal/table_create.h"
#include "engine/internal/table_fits.h"
#include "engine/internal/write_call.h"

namespace geardb {
namespace {

namespace fb = engine::fb;

constexpr uint64_t kIndexBytesMin = uint64_t{64} << 20;
/// Of less, memtables and the last batch together would be more than all.
constexpr uint64_t kColdBytesMin = uint64_t{4} << 20;
constexpr uint64_t kDefaultColdBytesMin = uint64_t{8} << 20;
constexpr uint64_t kDefaultColdBytesMax = uint64_t{64} << 20;
/// Of each budget: what no machine has, and its address space still holds.
constexpr uint64_t kBudgetBytesMax = uint64_t{1} << 44;
/// A tag with a blob of at most this may use the log's reserve beyond its bound.
constexpr size_t kReserveTagBytes = size_t{64} << 10;

/// The directory of the database that there is, not locked yet, or that is created now.
Result<wal::CreatedLog> FindOrCreate(Env* env, const std::string& directory,
                                     const DatabaseOptions& options, const wal::LogOptions& log) {
  auto held = env->HoldDirectory(directory);
  bool exists = false;
  if (held.ok()) {
    GEARDB_ASSIGN_OR_RETURN(exists, (*held)->Exists(JoinPath(directory, wal::kManifestName)));
  } else if (held.status().code() != StatusCode::kNotFound) {
    return held.status();
  }
  if (exists && options.error_if_exists) {
    return Status::AlreadyExists("there is a database in '", directory, "'");
  }
  if (exists) return wal::CreatedLog{.directory = std::move(*held), .lock = nullptr};
  if (!options.create_if_missing || options.read_only) {
    return Status::NotFound("there is no database in '", directory, "'");
  }
  if (options.cold_tier) {
    GEARDB_RETURN_IF_ERROR(engine::CheckGoesRound(log.log_bytes_max, log.segment_bytes, ""));
  }
  GEARDB_ASSIGN_OR_RETURN(const bool cold,
                          engine::HoldsColdStore(env, JoinPath(directory, engine::kColdDirectory)));
  if (cold) {
    // Who creates now may have it by now.
    GEARDB_ASSIGN_OR_RETURN(exists, env->Exists(JoinPath(directory, wal::kManifestName)));
    if (!exists) {
      return Status::Corruption("'", directory, "' holds a cold store, but there is no ",
                                wal::kManifestName,
                                " beside it: a database has lost it, and none is created here");
    }
  }
  auto created = wal::CreateLog(env, directory, log);
  const bool late = created.status().code() == StatusCode::kAlreadyExists;
  if (!late || options.error_if_exists) return created;
  GEARDB_ASSIGN_OR_RETURN(auto others, env->HoldDirectory(directory));
  return wal::CreatedLog{.directory = std::move(others), .lock = nullptr};
}

Status CheckBudgets(const DatabaseOptions& options) {
  if (options.sync_interval_ms < 1) {
    return Status::InvalidArgument("sync_interval_ms is ", options.sync_interval_ms,
                                   "; expected at least 1");
  }
  const Budgets& budgets = options.budgets;
  for (const auto& [name, bytes] : {std::pair("budgets.frames_bytes", budgets.frames_bytes),
                                    std::pair("budgets.index_bytes", budgets.index_bytes),
                                    std::pair("budgets.cold_bytes", budgets.cold_bytes)}) {
    if (bytes <= kBudgetBytesMax) continue;
    return Status::InvalidArgument(name, " is ", bytes, "; expected at most ", kBudgetBytesMax);
  }
  if (budgets.cold_bytes > 0 && budgets.cold_bytes < kColdBytesMin) {
    return Status::InvalidArgument("budgets.cold_bytes is ", budgets.cold_bytes,
                                   "; expected at least ", kColdBytesMin,
                                   ", or 0 for a share of budgets.frames_bytes");
  }
  if (!(options.space_amplification_max > 1)) {
    return Status::InvalidArgument("space_amplification_max is ", options.space_amplification_max,
                                   "; expected more than 1");
  }
  if (options.log_bytes_max == 0) {
    return Status::InvalidArgument("log_bytes_max is 0; expected at least one segment of the log");
  }
  if (static_cast<uint8_t>(options.ack) > static_cast<uint8_t>(Ack::kSync)) {
    return Status::InvalidArgument("unknown acknowledgement ", static_cast<int>(options.ack));
  }
  return Status::Ok();
}

/// The sizes that the options ask for, or those of this machine.
void ChooseSizes(Env* env, const std::string& directory, DatabaseOptions* options) {
  if (options->cold_tier && !options->read_only) {
    const engine::LogBytes asked = {options->log_bytes_max, options->ring_bytes};
    const engine::LogBytes fits =
        engine::LogBytesOnDisk(env, directory, asked, options->segment_bytes);
    options->log_bytes_max = std::max(fits.log, std::min(asked.log, 2 * options->segment_bytes));
    options->ring_bytes = fits.ring;
  }
  Budgets* const budgets = &options->budgets;
  if (budgets->frames_bytes == 0) budgets->frames_bytes = engine::DefaultFrameBudget();
  if (budgets->index_bytes == 0) {
    budgets->index_bytes = std::max(budgets->frames_bytes / 8, kIndexBytesMin);
  }
  if (budgets->cold_bytes == 0) {
    budgets->cold_bytes =
        std::clamp(budgets->frames_bytes / 8, kDefaultColdBytesMin, kDefaultColdBytesMax);
  }
  const uint64_t in_all = budgets->frames_bytes + budgets->index_bytes + budgets->batch_bytes +
                          budgets->cold_bytes + options->ring_bytes;
  LimitMalloc(in_all);
}

wal::LogOptions LogOptionsOf(const DatabaseOptions& options) {
  return {.log_bytes_max = options.log_bytes_max,
          .sync_interval_ms = options.sync_interval_ms,
          .segment_bytes = options.segment_bytes > 0
                               ? options.segment_bytes
                               : engine::ChooseSegmentBytes(options.log_bytes_max),
          .ring_bytes = options.ring_bytes,
          .background = options.background};
}

/// The two segments without which a log does not go round it has also on a disk that others have
/// filled, where `asked` has them.
Status FitSegments(const DatabaseOptions& asked, engine::DatabaseCore* core, wal::LogOptions* log) {
  if (!asked.cold_tier || asked.read_only) return Status::Ok();
  const uint64_t segment = core->manifest.segment_bytes;
  log->log_bytes_max = std::max(log->log_bytes_max, std::min(asked.log_bytes_max, 2 * segment));
  core->options.log_bytes_max = log->log_bytes_max;
  return engine::CheckGoesRound(log->log_bytes_max, segment, " in '" + core->directory + "'");
}

/// Two whole segments of the log are more than a tenth of what it may hold.
bool IsLean(const engine::DatabaseCore& core) {
  const Budgets& budgets = core.options.budgets;
  return 2 * core.manifest.segment_bytes >
         (budgets.frames_bytes + budgets.index_bytes + budgets.batch_bytes + budgets.cold_bytes) /
             10;
}

Status WatchTimes(const engine::DatabaseCore& core) {
  if (core.timekeeper == nullptr) return Status::Ok();
  for (const auto& table : core.AllTables()) {
    MutexLock lock(&table->state->mutex);
    GEARDB_RETURN_IF_ERROR(core.timekeeper->Watch(table->state->WholeSpec()));
  }
  return Status::Ok();
}

/// For frames and index; says how long it took to fault the frames in.
Status MakeMemory(engine::DatabaseCore* core) {
  const auto began = std::chrono::steady_clock::now();
  const Budgets& budgets = core->options.budgets;
  const bool prefault = core->options.prefault;
  GEARDB_ASSIGN_OR_RETURN(
      core->arena,
      engine::HostArena::Create({.budget_bytes = budgets.frames_bytes, .prefault = prefault},
                                &core->epochs));
  if (prefault) {
    core->recovery.prefault_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  GEARDB_ASSIGN_OR_RETURN(core->index_memory,
                          index::IndexMemory::Create({.budget_bytes = budgets.index_bytes,
                                                      .name = "geardb-index",
                                                      .budget_name = engine::kIndexBudgetName}));
  return Status::Ok();
}

/// What is known of an open that is refused.
struct OpenAttempt {
  uint64_t index_bytes = 0;                    ///< The budget that it is made with, or was to be.
  std::optional<wal::OpenReport> written_out;  ///< Of engine::ReadLog: another may do better.
  std::string cut;                             ///< What was done to the log, if it was not closed.
};

Result<std::shared_ptr<Database::Impl>> OpenImpl(const std::string& directory,
                                                 const DatabaseOptions& options,
                                                 OpenAttempt* attempt) {
  const auto began = std::chrono::steady_clock::now();
  if (directory.empty()) {
    return Status::InvalidArgument("the directory of the database is '': expected a path");
  }
  GEARDB_RETURN_IF_ERROR(CheckBudgets(options));
  // What it stands on lives as long as the process only where it is the process's.
  const bool ours = options.env == nullptr && options.clock == nullptr;
  std::optional<engine::OpeningBeforeExit> opening;
  if (ours) {
    opening.emplace();
    GEARDB_RETURN_IF_ERROR(opening->status());
    engine::UseColdStoreOnce();
  }
  std::shared_ptr<Database::Impl> impl(new Database::Impl(options),
                                       DeleteUnlessForked<Database::Impl>());
  impl->directory = directory;
  ChooseSizes(impl->env, directory, &impl->options);
  attempt->index_bytes = impl->options.budgets.index_bytes;
  wal::LogOptions log = LogOptionsOf(impl->options);
  GEARDB_RETURN_IF_ERROR(MakeMemory(impl.get()));
  GEARDB_ASSIGN_OR_RETURN(wal::CreatedLog found, FindOrCreate(impl->env, directory, options, log));
  const LockMode mode = options.read_only ? LockMode::kShared : LockMode::kExclusive;
  GEARDB_ASSIGN_OR_RETURN(impl->manifest, wal::LockAndReadManifest(found.directory.get(), directory,
                                                                   mode, &found.lock));
  GEARDB_RETURN_IF_ERROR(FitSegments(options, impl.get(), &log));
  impl->UsePages(found.directory, impl->manifest);
  engine::ImageHead image;
  GEARDB_RETURN_IF_ERROR(engine::LoadImage(impl.get(), found.directory.get(), &image));
  engine::Recovery recovery(impl.get());
  GEARDB_ASSIGN_OR_RETURN(wal::OpenedLog opened,
                          engine::ReadLog(found.directory.get(),
                                          {.log = log,
                                           .from = image.log_from,
                                           .keep = image.log_start,
                                           .reach = image.lsn,
                                           .read_only = options.read_only,
                                           .allow_damaged_prefix = options.read_only,
                                           .take_lock = false,
                                           .lean = IsLean(*impl)},
                                          image, impl.get(), &recovery, &attempt->written_out));
  impl->manifest = opened.manifest;
  impl->page_source->UseManifest(opened.manifest);
  impl->lock = std::move(found.lock);
  impl->UseLog(std::move(opened.writer));
  RecoveryReport& report = impl->recovery;
  engine::NoteLog(opened.report.read, impl.get());
  if (attempt->cut.empty()) attempt->cut = opened.report.note;
  GEARDB_RETURN_IF_ERROR(recovery.Finish());
  impl->BeginWork();
  if (!options.read_only) GEARDB_RETURN_IF_ERROR(engine::CheckOpenFits(*impl));
  report.image = image.lsn;
  engine::NoteRecovery(opened.report, attempt->written_out, recovery, &report);
  GEARDB_RETURN_IF_ERROR(engine::RemoveDamaged(impl.get(), recovery));
  engine::RemoveAllFinished(impl.get());
  engine::NoteDamage(*impl, &report);
  GEARDB_RETURN_IF_ERROR(WatchTimes(*impl));
  impl->KeepActivity(found.directory);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (ours) engine::CloseAtExit(impl.get(), [core = impl.get()] { (void)core->Close(); });
  return impl;
}

}  // namespace

Database::Database(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Database::~Database() { Close().ok(); }

Result<std::unique_ptr<Database>> Database::Open(const std::string& directory,
                                                 const DatabaseOptions& options) {
  OpenAttempt attempt;
  auto impl = OpenImpl(directory, options, &attempt);
  if (!impl.ok() && attempt.written_out.has_value()) impl = OpenImpl(directory, options, &attempt);
  if (!impl.ok()) {
    Env* const env = options.env == nullptr ? Env::Posix() : options.env;
    const Status refused =
        engine::NameIndexBudget(impl.status(), env, directory, attempt.index_bytes);
    if (attempt.written_out.has_value()) attempt.cut = attempt.written_out->note;
    if (attempt.cut.empty()) return refused;
    // The next open finds a log that was closed, and cannot say it.
    return refused.WithContext("the log in '" + directory + "' was " + attempt.cut);
  }
  return std::unique_ptr<Database>(new Database(std::move(*impl)));
}

// ---- Tables.

namespace {

std::shared_ptr<Table::Impl> HandleOf(const std::shared_ptr<Database::Impl>& database,
                                      std::shared_ptr<engine::TableCore> table) {
  auto impl = std::make_shared<Table::Impl>();
  impl->database = database;
  impl->table = std::move(table);
  return impl;
}

Status NoSuchTable(const Database& database, std::string_view name) {
  std::string names;
  for (const std::string& other : database.Tables()) names += (names.empty() ? "" : ", ") + other;
  return Status::NotFound("database '", database.directory(), "' has no table '", name,
                          "'; it has ", names.empty() ? "none" : names);
}

}  // namespace

Result<std::shared_ptr<Table>> Database::CreateTable(const TableSpec& spec) {
  GEARDB_ASSIGN_OR_RETURN(auto table, engine::CreateTable(impl_.get(), spec));
  return std::shared_ptr<Table>(new Table(HandleOf(impl_, std::move(table))));
}

Result<std::shared_ptr<Table>> Database::OpenTable(std::string_view name) {
  GEARDB_RETURN_IF_ERROR(impl_->CheckOpen());
  auto table = impl_->FindTable(name);
  if (table == nullptr) return NoSuchTable(*this, name);
  return std::shared_ptr<Table>(new Table(HandleOf(impl_, std::move(table))));
}

Result<std::shared_ptr<Table>> Database::OpenOrCreateTable(const TableSpec& spec) {
  GEARDB_RETURN_IF_ERROR(impl_->CheckProcess());
  GEARDB_RETURN_IF_ERROR(ValidateTableSpec(spec));
  auto table = impl_->FindTable(spec.name);
  while (table == nullptr) {
    auto created = CreateTable(spec);
    if (created.status().code() != StatusCode::kAlreadyExists) return created;
    // Somebody else was first. As durable as if this call had created it; unless it is dropped.
    GEARDB_RETURN_IF_ERROR(Sync(Deadline::Infinite()));
    table = impl_->FindTable(spec.name);
  }
  std::shared_ptr<Table> opened(new Table(HandleOf(impl_, table)));
  GEARDB_RETURN_IF_ERROR(CheckSameSpec(opened->spec(), spec));
  GEARDB_RETURN_IF_ERROR(impl_->CheckTable(*table));
  return opened;
}

std::vector<std::string> Database::Tables() const {
  std::vector<std::string> names;
  for (const auto& table : impl_->UserTables()) names.push_back(table->layout().spec().name);
  return names;
}

Status Database::DropTable(std::string_view name) {
  engine::DatabaseCore& core = *impl_;
  GEARDB_RETURN_IF_ERROR(core.CheckWritable());
  std::shared_ptr<engine::TableCore> table;
  engine::FunctionChange change(nullptr);
  const engine::CommitOptions how{.urgency = wal::Urgency::kReserve,
                                  .deadline = Deadline::AfterMs(engine::kAdmissionMs)};
  wal::Reservation reservation;
  {
    engine::ChangeScope scope(&core, nullptr, how);
    const wal::RecordSize bound = wal::RecordSize::For(512, {});
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&bound, 1}, how, &waited));
    GEARDB_RETURN_IF_ERROR(core.CatchUp());
    table = core.FindTable(name);
    if (table == nullptr) return NoSuchTable(*this, name);
    const TableId id = table->layout().id();
    change.FinishBody({.table = id}, fb::Change::DropTable,
                      fb::CreateDropTable(change.body).Union());
    change.set_apply([table](Lsn, Lsn end) {
      engine::ApplyLock state_lock(table->state.get(), end);
      table->state->changed.NotifyAll();
    });
    reservation = scope.Reserve({.size = wal::RecordSize::For(change.body_bytes().size(), {})});
    core.ForgetTable(id);
    core.room_made.NotifyAll();  // Its writers wait for nothing any more.
  }
  core.Finish(reservation, {}, &change);
  return core.Acknowledge(reservation.end, Ack::kSync);
}

// ---- Tags.

Result<std::unique_ptr<Sampler>> Database::NewSampler(std::span<const SamplerPart> parts,
                                                      const SamplerOptions& options) {
  GEARDB_RETURN_IF_ERROR(impl_->CheckOpen());
  return Sampler::OfParts(parts, options);
}

Result<Tag> Database::WriteTag(std::string_view name, std::span<const std::byte> blob) {
  engine::DatabaseCore& core = *impl_;
  GEARDB_RETURN_IF_ERROR(core.CheckWritable());
  GEARDB_RETURN_IF_ERROR(engine::CheckTagName(name));
  Tag tag{.name = std::string(name),
          .blob = {blob.begin(), blob.end()},
          .lsn = 0,
          .created_us = core.clock->WallTimeUs()};
  engine::FunctionChange change(nullptr);
  const auto name_offset = change.body.CreateString(tag.name);
  change.FinishBody({}, fb::Change::WriteTag,
                    fb::CreateWriteTag(change.body, name_offset, 0, tag.created_us, true).Union());
  engine::BulkRecord record(&core, &change);
  GEARDB_RETURN_IF_ERROR(record.CheckFits(blob.size(), {}).WithContext("tag '" + tag.name + "'"));
  record.AddBytes(std::as_bytes(std::span(tag.blob)));
  change.set_apply([&](Lsn lsn, Lsn) {
    tag.lsn = lsn;
    core.AddTag(tag);
  });
  const engine::CommitOptions how{
      .type = wal::RecordType::kTag,
      .urgency = blob.size() <= kReserveTagBytes ? wal::Urgency::kReserve : wal::Urgency::kAppend,
      .deadline = Deadline::AfterMs(engine::kAdmissionMs)};
  const auto reserve = [&] {
    engine::ChangeScope scope(&core, nullptr, how);
    return record.Reserve(&scope);
  };
  GEARDB_RETURN_IF_ERROR(engine::WithLogRoom(&core, how.deadline, reserve));
  record.Finish();
  GEARDB_RETURN_IF_ERROR(core.Acknowledge(record.end(), Ack::kSync));
  return tag;
}

Result<Tag> Database::LastTag(std::optional<std::string_view> name) const {
  GEARDB_RETURN_IF_ERROR(impl_->CheckProcess());
  std::optional<Tag> newest;
  for (Tag& tag : impl_->Tags()) {
    if (!name || tag.name == *name) newest = std::move(tag);
  }
  if (newest && newest->damaged) {
    return Status::Corruption("tag '", newest->name, "' of database '", impl_->directory,
                              "', at LSN ", newest->lsn, ", has lost its blob to a damaged piece");
  }
  if (newest) return *std::move(newest);
  if (name) return Status::NotFound("database '", impl_->directory, "' has no tag '", *name, "'");
  return Status::NotFound("database '", impl_->directory, "' has no tag");
}

std::vector<Tag> Database::Tags() const { return impl_->Tags(); }

// ---- The rest.

Status Database::Wait(Ticket ticket, Ack level, Deadline deadline) {
  GEARDB_RETURN_IF_ERROR(impl_->CheckProcess());
  if (impl_->log == nullptr) return impl_->CheckWritable();
  const Lsn end = impl_->log->end();
  if (ticket.end > end) {
    return Status::InvalidArgument("a ticket for LSN ", ticket.end, ", which database '",
                                   impl_->directory, "' has not given out: its log ends at LSN ",
                                   end);
  }
  return impl_->Acknowledge(ticket.end, level, deadline);
}

Status Database::Sync(Deadline deadline) {
  GEARDB_RETURN_IF_ERROR(impl_->CheckWritable());
  return impl_->Acknowledge(impl_->log->end(), Ack::kSync, deadline);
}

Status Database::Close() {
  if (impl_ == nullptr) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(impl_->CheckProcess());
  return impl_->Close();
}

const std::string& Database::directory() const { return impl_->directory; }
const RecoveryReport& Database::recovery() const { return impl_->recovery; }

}  // namespace geardb
