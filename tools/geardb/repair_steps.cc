#include "tools/geardb/repair_steps.h"

#include <algorithm>
#include <filesystem>

#include "base/crash_point.h"
#include "engine/internal/cold_check.h"
#include "engine/internal/cold_tier.h"
#include "tools/geardb/segment_head.h"

namespace geardb::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kIndexBytesMin = uint64_t{64} << 20;
constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

class Steps {
 public:
  explicit Steps(const RepairPlan& plan) : plan_(plan) {}

  Status Keep();
  Status MoveCold();
  Status WriteLogFiles();
  Status WriteManifest();
  Status MoveStrangers();
  const std::string& kept_in() const { return kept_in_; }

 private:
  std::string InLog(const std::string& name) const {
    return JoinPath(JoinPath(plan_.directory, wal::kLogDirectoryName), name);
  }
  Status MakeKeptIn();
  Status Copy(const std::string& from, const std::string& to);

  const RepairPlan& plan_;
  Env* const env_ = Env::Posix();
  std::string kept_in_;
};

Status Steps::MakeKeptIn() {
  if (!kept_in_.empty()) return Status::Ok();
  for (int number = 1;; ++number) {
    kept_in_ = JoinPath(plan_.directory, "repair-" + std::to_string(number));
    GEARDB_ASSIGN_OR_RETURN(const bool exists, env_->Exists(kept_in_));
    if (!exists) break;
  }
  GEARDB_RETURN_IF_ERROR(env_->CreateDirectory(kept_in_));
  GEARDB_RETURN_IF_ERROR(env_->CreateDirectory(JoinPath(kept_in_, wal::kLogDirectoryName)));
  GEARDB_RETURN_IF_ERROR(env_->SyncDirectory(kept_in_));
  return env_->SyncDirectory(plan_.directory);
}

Status Steps::Copy(const std::string& from, const std::string& to) {
  GEARDB_ASSIGN_OR_RETURN(const auto source, env_->OpenFile(from, {.mode = FileMode::kRead}));
  GEARDB_ASSIGN_OR_RETURN(const auto target, env_->OpenFile(to, {.mode = FileMode::kCreateNew}));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t size, source->Size());
  std::vector<std::byte> bytes(std::min(size, kCopyBytes));
  for (uint64_t at = 0; at < size;) {
    const std::span<std::byte> part = std::span(bytes).first(std::min(size - at, kCopyBytes));
    GEARDB_ASSIGN_OR_RETURN(const size_t read, source->Read(at, part));
    if (read == 0) break;
    GEARDB_RETURN_IF_ERROR(target->Write(at, part.first(read)));
    at += read;
  }
  return target->Sync();
}

Status Steps::Keep() {
  std::vector<std::string> names = plan_.kept;
  for (const SegmentToHead& head : plan_.heads) {
    if (std::ranges::count(names, head.name) == 0) names.push_back(head.name);
  }
  GEARDB_ASSIGN_OR_RETURN(const bool manifest,
                          env_->Exists(JoinPath(plan_.directory, wal::kManifestName)));
  if (!names.empty() || (plan_.manifest && manifest)) GEARDB_RETURN_IF_ERROR(MakeKeptIn());
  for (const std::string& name : names) {
    CrashPoint("repair_keep");
    GEARDB_RETURN_IF_ERROR(
        Copy(InLog(name), JoinPath(JoinPath(kept_in_, wal::kLogDirectoryName), name)));
  }
  if (plan_.manifest && manifest) {
    GEARDB_RETURN_IF_ERROR(Copy(JoinPath(plan_.directory, wal::kManifestName),
                                JoinPath(kept_in_, wal::kManifestName)));
  }
  if (kept_in_.empty()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(env_->SyncDirectory(JoinPath(kept_in_, wal::kLogDirectoryName)));
  return env_->SyncDirectory(kept_in_);
}

Status Steps::MoveCold() {
  if (!plan_.cold_aside) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(MakeKeptIn());
  CrashPoint("repair_cold");
  GEARDB_RETURN_IF_ERROR(
      env_->Rename(JoinPath(plan_.directory, "cold"), JoinPath(kept_in_, "cold")));
  GEARDB_RETURN_IF_ERROR(env_->SyncDirectory(kept_in_));
  return env_->SyncDirectory(plan_.directory);
}

Status Steps::WriteLogFiles() {
  const std::string log = JoinPath(plan_.directory, wal::kLogDirectoryName);
  GEARDB_RETURN_IF_ERROR(env_->CreateDirectory(log));
  wal::Manifest manifest;
  if (plan_.manifest) {
    manifest = *plan_.manifest;
  } else {
    GEARDB_ASSIGN_OR_RETURN(manifest, wal::ReadManifest(env_, plan_.directory));
  }
  for (const SegmentToHead& head : plan_.heads) {
    CrashPoint("repair_head");
    GEARDB_ASSIGN_OR_RETURN(const auto file,
                            env_->OpenFile(InLog(head.name), {.mode = FileMode::kReadWrite}));
    GEARDB_RETURN_IF_ERROR(file->Write(0, SegmentHead(manifest, head.base, head.epoch)));
    GEARDB_RETURN_IF_ERROR(file->Sync());
  }
  if (plan_.segment) {
    CrashPoint("repair_segment");
    const std::string path = InLog(FreeSegmentName(log));
    // A file of zeros is a spare one; with its first record it is the segment.
    GEARDB_ASSIGN_OR_RETURN(const auto file, env_->OpenFile(path, {.mode = FileMode::kCreateNew}));
    GEARDB_RETURN_IF_ERROR(file->Allocate(manifest.segment_bytes));
    GEARDB_RETURN_IF_ERROR(
        file->Write(0, SegmentHead(manifest, plan_.segment->base, plan_.segment->epoch)));
    GEARDB_RETURN_IF_ERROR(file->Sync());
  }
  if (plan_.ring_bytes > 0) {
    CrashPoint("repair_ring");
    const std::string path = InLog(wal::kRingName);
    GEARDB_ASSIGN_OR_RETURN(const bool exists, env_->Exists(path));
    if (exists) {
      GEARDB_RETURN_IF_ERROR(MakeKeptIn());
      GEARDB_RETURN_IF_ERROR(
          env_->Rename(path, JoinPath(JoinPath(kept_in_, wal::kLogDirectoryName), wal::kRingName)));
    }
    GEARDB_ASSIGN_OR_RETURN(const auto file, env_->OpenFile(path, {.mode = FileMode::kCreateNew}));
    GEARDB_RETURN_IF_ERROR(file->Allocate(plan_.ring_bytes));
    GEARDB_RETURN_IF_ERROR(file->Sync());
  }
  return env_->SyncDirectory(log);
}

Status Steps::WriteManifest() {
  if (!plan_.manifest) return Status::Ok();
  CrashPoint("repair_manifest");
  return wal::WriteManifest(env_, plan_.directory, *plan_.manifest);
}

Status Steps::MoveStrangers() {
  for (const std::string& name : plan_.aside) {
    if (name == wal::kRingName) continue;  // It has left already.
    CrashPoint("repair_aside");
    GEARDB_RETURN_IF_ERROR(MakeKeptIn());
    GEARDB_RETURN_IF_ERROR(
        env_->Rename(InLog(name), JoinPath(JoinPath(kept_in_, wal::kLogDirectoryName), name)));
  }
  if (plan_.aside.empty()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(env_->SyncDirectory(JoinPath(kept_in_, wal::kLogDirectoryName)));
  return env_->SyncDirectory(JoinPath(plan_.directory, wal::kLogDirectoryName));
}

/// The open itself drains the ring, where segments have lost what it has.
Status RemoveTrajectories(const RepairPlan& plan, const RepairOptions& options) {
  DatabaseOptions open;
  open.create_if_missing = false;
  open.background = false;
  // Removals need room, however full the log is; with a cold tier it is bounded by the disk.
  open.log_bytes_max = uint64_t{1} << 62;
  open.cold_tier = false;
  if (options.memory_bytes > 0) {
    open.budgets.frames_bytes = options.memory_bytes;
    open.budgets.index_bytes = std::max(options.memory_bytes, kIndexBytesMin);
  }
  GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(plan.directory, open));
  const auto remove = [&](const std::string& name, TrajectoryId id) -> Status {
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable(name));
    const Status removed = table->Remove(std::span(&id, 1));
    return removed.code() == StatusCode::kNotFound ? Status::Ok() : removed;
  };
  for (const auto& [name, ids] : plan.remove) {
    if (ids.empty()) continue;
    CrashPoint("repair_remove");
    for (const TrajectoryId id : ids) GEARDB_RETURN_IF_ERROR(remove(name, id));
  }
  // What the open has found, and could not remove for want of room, is still there.
  for (const TrajectoryName& damaged : database->recovery().damaged_trajectories) {
    GEARDB_RETURN_IF_ERROR(remove(damaged.table, damaged.id));
  }
  return database->Close();
}

/// The cold store goes on without files of pages that are lost.
Status DropColdPages(const RepairPlan& plan) {
  if (!plan.drop_cold_pages) return Status::Ok();
  const std::string cold = JoinPath(plan.directory, engine::kColdDirectory);
  CrashPoint("repair_cold_pages");
  GEARDB_RETURN_IF_ERROR(engine::MendColdPages(cold, plan.log_start));
  // What could not be written before.
  return plan.mend_cold ? engine::MendColdChunks(cold, plan.log_start) : Status::Ok();
}

/// Corruption where some damage is left.
Status CheckCold(const RepairPlan& plan) {
  if (!plan.mend_cold && !plan.mend_files && !plan.drop_cold_pages) return Status::Ok();
  const std::string cold = JoinPath(plan.directory, engine::kColdDirectory);
  GEARDB_ASSIGN_OR_RETURN(const engine::ColdCheck left, engine::CheckColdChunks(cold));
  if (left.damage().empty()) return Status::Ok();
  return Status::Corruption("what is left cannot be repaired: ", left.damage()[0]);
}

}  // namespace

Result<Repaired> TakeRepairSteps(const RepairPlan& plan, const RepairOptions& options,
                                 std::unique_ptr<FileLock>* lock) {
  Steps steps(plan);
  GEARDB_RETURN_IF_ERROR(steps.Keep());
  GEARDB_RETURN_IF_ERROR(steps.MoveCold());
  GEARDB_RETURN_IF_ERROR(steps.WriteLogFiles());
  GEARDB_RETURN_IF_ERROR(steps.WriteManifest());
  GEARDB_RETURN_IF_ERROR(steps.MoveStrangers());
  if (plan.mend_files) {
    GEARDB_RETURN_IF_ERROR(
        engine::MendColdFiles(JoinPath(plan.directory, engine::kColdDirectory), plan.log_start));
  }
  if (plan.mend_cold) {
    const Status mended =
        engine::MendColdChunks(JoinPath(plan.directory, engine::kColdDirectory), plan.log_start);
    // Where other files are lost, RocksDB takes no writes, and all is read from the good copies.
    if (mended.code() != StatusCode::kFailedPrecondition) GEARDB_RETURN_IF_ERROR(mended);
  }
  // Where no older version is taken for a page, an open need not meet these files any more.
  if (plan.drop_before_removals) GEARDB_RETURN_IF_ERROR(DropColdPages(plan));
  if (!plan.remove.empty() || plan.drain_ring) {
    lock->reset();
    GEARDB_RETURN_IF_ERROR(RemoveTrajectories(plan, options));
    GEARDB_ASSIGN_OR_RETURN(
        *lock, Env::Posix()->Lock(JoinPath(plan.directory, wal::kLockName), LockMode::kExclusive));
  }
  if (!plan.drop_before_removals) GEARDB_RETURN_IF_ERROR(DropColdPages(plan));
  GEARDB_RETURN_IF_ERROR(CheckCold(plan));
  return Repaired{.kept_in = steps.kept_in()};
}

}  // namespace geardb::cli
