#include "tools/geardb/open_store.h"

#include <algorithm>
#include <utility>

#include "base/page_view.h"
#include "engine/internal/cold_check.h"
#include "engine/internal/cold_tier.h"
#include "tools/geardb/memory_need.h"
#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

/// Budgets of less would be larger by default.
constexpr uint64_t kIndexBytesMin = uint64_t{64} << 20;

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

/// A head that cannot be read names nothing.
void FollowHeads(engine::ColdTier* tier, LogNames* names) {
  const engine::ImageSource source = tier->CurrentImage();
  for (const engine::ImageChunk& chunk : tier->ImageChunks()) {
    if (chunk.kind != engine::ImageKind::kTable) continue;
    auto reader = engine::ChunkReader::Open(source, chunk, tier->head().lsn);
    if (!reader.ok()) continue;
    std::vector<uint64_t> words;
    const auto head = reader->FlatBuffer<engine::fb::TableHead>(&words);
    if (head.ok()) names->Follow(**head);
  }
}

}  // namespace

Result<std::unique_ptr<Database>> OpenStore(const Invocation& invocation, const StoreFiles& files) {
  const std::string& directory = files.directory;
  DatabaseOptions options;
  options.read_only = true;
  options.create_if_missing = false;
  options.background = false;
  const uint64_t memory = invocation.arguments.Count("memory");
  if (memory > 0) {
    if (memory < kSlabBytes) {
      return Status::InvalidArgument("--memory is ", BytesText(memory), "; expected at least ",
                                     BytesText(kSlabBytes));
    }
    options.budgets.frames_bytes = memory;
    options.budgets.index_bytes = std::max(memory, kIndexBytesMin);
  }
  auto database = Database::Open(directory, options);
  if (database.ok()) return database;
  return ExplainMemory(invocation, files, ExplainRefusal(directory, database.status()));
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
  auto files = TakeFiles(invocation);
  if (files.ok()) return files;
  return ExplainRefusal(invocation.arguments.Text("directory"), files.status());
}

Result<StoreFiles> TakeFiles(const Invocation& invocation) {
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
  GEARDB_ASSIGN_OR_RETURN(files.lock, std::move(lock));
  GEARDB_ASSIGN_OR_RETURN(files.manifest, ReadManifest(files.directory));
  return files;
}

Result<wal::Manifest> ReadManifest(const std::string& directory) {
  return wal::ReadManifest(Env::Posix(), directory);
}

Result<std::string> TableName(const Invocation& invocation, const Database& database) {
  std::string name = invocation.arguments.Text("table");
  if (!name.empty()) return name;
  const std::vector<std::string> names = database.Tables();
  if (names.size() == 1) return names.front();
  std::string list;
  for (const std::string& one : names) list += (list.empty() ? "" : ", ") + one;
  return Status::InvalidArgument("which table? The database in '",
                                 invocation.arguments.Text("directory"), "' has ",
                                 names.empty() ? "none" : list);
}

Result<Filter> FilterOf(const Invocation& invocation) {
  if (!invocation.arguments.Has("filter")) return Filter::All();
  return Filter::Parse(invocation.arguments.Text("filter"));
}

LogReading ReadingOf(const StoreFiles& files) {
  LogReading reading{.options = {.all_types = true, .allow_damaged_prefix = true}};
  const auto found =
      engine::HoldsColdStore(Env::Posix(), JoinPath(files.directory, engine::kColdDirectory));
  if (!found.ok() || !*found) return reading;
  reading.options.from = kNoLsn;
  engine::ColdTier tier(Env::Posix(), files.directory, engine::ColdStoreOptions{.read_only = true});
  if (!tier.OpenExisting(0).ok() || tier.head().number == 0) return reading;
  reading.open_from = tier.head().log_from;
  reading.options.released = std::min(tier.head().log_start, tier.head().log_from);
  FollowHeads(&tier, &reading.names);
  return reading;
}

}  // namespace geardb::cli
