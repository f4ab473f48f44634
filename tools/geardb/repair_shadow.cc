#include "tools/geardb/repair_shadow.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>

#include "tools/geardb/segment_head.h"

namespace geardb::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "geardb-repair-";
constexpr int kLockTries = 8;
/// Budgets of less would be larger by default.
constexpr uint64_t kIndexBytesMin = uint64_t{64} << 20;

Status FromError(const std::error_code& error, const std::string& what) {
  return error ? Status::IoError(what, ": ", error.message()) : Status::Ok();
}

Status WriteSmallFile(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Status::Ok() : Status::IoError(path, " cannot be written");
}

/// A directory of this user's that is there and that nobody else has locked, locked; or -1.
int LockDirectory(const fs::path& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory < 0) return -1;
  struct stat locked = {};
  struct stat there = {};
  const bool own = flock(directory, LOCK_EX | LOCK_NB) == 0 && fstat(directory, &locked) == 0 &&
                   locked.st_uid == geteuid() && stat(path.c_str(), &there) == 0 &&
                   locked.st_ino == there.st_ino;
  if (own) return directory;
  close(directory);
  return -1;
}

/// What repairs have left that were killed.
void RemoveForsaken(const fs::path& temporary) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(temporary, ignored)) {
    if (entry.path().filename().string().starts_with(kPrefix)) found.push_back(entry.path());
  }
  for (const fs::path& path : found) {
    const int lock = LockDirectory(path);
    if (lock < 0) continue;
    fs::remove_all(path, ignored);
    close(lock);
  }
}

}  // namespace

Shadow::~Shadow() {
  RemoveOwn();
  if (lock_ >= 0) close(lock_);
}

void Shadow::RemoveOwn() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::string Shadow::InPlace(std::string text, const std::string& directory) const {
  for (size_t at = 0; !path_.empty() && (at = text.find(path_, at)) != std::string::npos;) {
    text.replace(at, path_.size(), directory);
    at += directory.size();
  }
  return text;
}

Status Shadow::MakeDirectory() {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  GEARDB_RETURN_IF_ERROR(FromError(error, "looking for a directory of temporary files"));
  RemoveForsaken(temporary);
  // Another repair may take it for forsaken before it is locked; and there are file systems that
  // lock no directories.
  for (int tries = 0; lock_ < 0 && tries < kLockTries; ++tries) {
    RemoveOwn();
    std::string name = (temporary / kPrefix).string() + "XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      return Status::IoError("no directory can be made in '", temporary.string(), "'");
    }
    path_ = name;
    lock_ = LockDirectory(path_);
  }
  return Status::Ok();
}

Status Shadow::Make(const RepairPlan& plan, const wal::Manifest& manifest) {
  GEARDB_RETURN_IF_ERROR(MakeDirectory());
  std::error_code error;
  const fs::path root = fs::absolute(plan.directory, error);
  GEARDB_RETURN_IF_ERROR(FromError(error, plan.directory));
  const fs::path log = fs::path(path_) / wal::kLogDirectoryName;
  fs::create_directory(log, error);
  GEARDB_RETURN_IF_ERROR(FromError(error, log.string()));
  const fs::path real_log = root / wal::kLogDirectoryName;
  if (fs::is_directory(real_log)) {
    for (const auto& entry : fs::directory_iterator(real_log)) {
      const std::string file = entry.path().filename().string();
      const bool gone = std::ranges::count(plan.aside, file) > 0 ||
                        (plan.ring_bytes > 0 && file == wal::kRingName);
      if (gone) continue;
      fs::create_symlink(entry.path(), log / file, error);
      GEARDB_RETURN_IF_ERROR(FromError(error, file));
    }
  }
  if (plan.ring_bytes > 0) {
    GEARDB_RETURN_IF_ERROR(WriteSmallFile((log / wal::kRingName).string(), {}));
    fs::resize_file(log / wal::kRingName, plan.ring_bytes, error);
    GEARDB_RETURN_IF_ERROR(FromError(error, "the ring"));
  }
  for (const SegmentToHead& head : plan.heads) {
    fs::remove(log / head.name, error);
    fs::copy_file(real_log / head.name, log / head.name, error);
    GEARDB_RETURN_IF_ERROR(FromError(error, head.name));
    std::fstream file(log / head.name, std::ios::in | std::ios::out | std::ios::binary);
    const auto bytes = SegmentHead(manifest, head.base, head.epoch);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return Status::IoError(head.name, " cannot be written");
  }
  if (plan.segment) {
    const fs::path file = log / FreeSegmentName(log.string());
    GEARDB_RETURN_IF_ERROR(WriteSmallFile(
        file.string(), SegmentHead(manifest, plan.segment->base, plan.segment->epoch)));
    fs::resize_file(file, manifest.segment_bytes, error);
    GEARDB_RETURN_IF_ERROR(FromError(error, "a segment"));
  }
  const fs::path cold = root / "cold";
  if (!plan.cold_aside && fs::exists(cold)) {
    fs::create_directory_symlink(cold, fs::path(path_) / "cold", error);
    GEARDB_RETURN_IF_ERROR(FromError(error, cold.string()));
  }
  GEARDB_RETURN_IF_ERROR(WriteSmallFile(JoinPath(path_, wal::kLockName), {}));
  return WriteSmallFile(JoinPath(path_, wal::kManifestName), wal::EncodeManifest(manifest));
}

Result<std::unique_ptr<Database>> Shadow::Open(uint64_t memory_bytes) const {
  DatabaseOptions options;
  options.read_only = true;
  options.create_if_missing = false;
  options.background = false;
  if (memory_bytes > 0) {
    options.budgets.frames_bytes = memory_bytes;
    options.budgets.index_bytes = std::max(memory_bytes, kIndexBytesMin);
  }
  return Database::Open(path_, options);
}

}  // namespace geardb::cli
