#include "tools/geardb/open_store.h"

#include <utility>

#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

/// A refusal because of another owner, with a word on what to do.
Status ExplainRefusal(const std::string& directory, const Status& status) {
  if (status.code() != StatusCode::kFailedPrecondition) return status;
  return Status::FailedPrecondition("the database in '", directory,
                                    "' is running; close it first: ", status.message());
}

Status NoDatabase(const std::string& directory) {
  return Status::NotFound("there is no database in '", directory, "': no file '",
                          JoinPath(directory, wal::kManifestName), "'");
}

}  // namespace

Result<std::unique_ptr<Database>> OpenStore(const Invocation& invocation) {
  const std::string directory = invocation.arguments.Text("directory");
  DatabaseOptions options;
  options.read_only = true;
  options.create_if_missing = false;
  options.background = false;
  options.budgets.frames_bytes = invocation.arguments.Count("memory");
  auto database = Database::Open(directory, options);
  if (!database.ok()) return ExplainRefusal(directory, database.status());
  return database;
}

Status DamageOf(const Database& database) {
  const RecoveryReport& recovery = database.recovery();
  if (!recovery.damage.ok()) return recovery.damage;
  const uint64_t pieces =
      recovery.damaged_pages + recovery.damaged_priorities + recovery.damaged_tags;
  if (pieces == 0) return Status::Ok();
  std::string what;
  if (recovery.damaged_pages > 0) {
    what = Counted(recovery.damaged_pages, "page") + " cannot be read";
  }
  if (!recovery.note.empty()) what += (what.empty() ? "" : "; ") + recovery.note;
  return Status::Corruption(what);
}

int WarnOfDamage(const Invocation& invocation, const Status& damage) {
  if (damage.ok()) return kExitGood;
  *invocation.err << "geardb: DAMAGE: not all is shown: " << Printable(damage.message())
                  << "; see 'geardb verify'\n";
  return kExitDamage;
}

Result<StoreFiles> OpenFiles(const Invocation& invocation) {
  Env* env = Env::Posix();
  StoreFiles files;
  files.directory = invocation.arguments.Text("directory");
  GEARDB_ASSIGN_OR_RETURN(const bool exists,
                          env->Exists(JoinPath(files.directory, wal::kManifestName)));
  if (!exists) return NoDatabase(files.directory);
  auto lock = env->Lock(JoinPath(files.directory, wal::kLockName), LockMode::kShared);
  if (lock.status().code() == StatusCode::kNotFound) {
    return Status::NotFound("there is no file '", JoinPath(files.directory, wal::kLockName),
                            "', by which owners exclude one another; make an empty one");
  }
  if (!lock.ok()) return ExplainRefusal(files.directory, lock.status());
  files.lock = std::move(lock).value();
  GEARDB_ASSIGN_OR_RETURN(files.manifest, wal::ReadManifest(env, files.directory));
  return files;
}

}  // namespace geardb::cli
