#include "base/env.h"

#include <algorithm>
#include <cstring>

#include "base/env_posix.h"

namespace geardb {

Env* Env::Posix() {
  static PosixEnv* const env = new PosixEnv;  // Never deleted: files may outlive static storage.
  return env;
}

Result<std::vector<std::byte>> ReadWholeFile(Env* env, const std::string& path,
                                             uint64_t bytes_max) {
  GEARDB_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, {.mode = FileMode::kRead}));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > bytes_max) {
    return Status::Corruption(path, " has ", size, " bytes, at most ", bytes_max,
                              " were ever written to it");
  }
  std::vector<std::byte> bytes(size);
  GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes));
  bytes.resize(read);
  return bytes;
}

Status ReadSparse(File* file, uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    GEARDB_ASSIGN_OR_RETURN(const FileExtent extent, file->NextWritten(offset));
    const bool none = extent.begin >= extent.end;
    const uint64_t hole =
        none ? into.size() : std::min<uint64_t>(extent.begin - offset, into.size());
    std::memset(into.data(), 0, hole);
    offset += hole;
    into = into.subspan(hole);
    if (into.empty()) break;
    const auto wanted = into.first(std::min<uint64_t>(extent.end - offset, into.size()));
    GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(offset, wanted));
    std::memset(wanted.data() + read, 0, wanted.size() - read);
    offset += wanted.size();
    into = into.subspan(wanted.size());
  }
  return Status::Ok();
}

Status ReplaceFile(Env* env, const std::string& path, std::span<const std::byte> bytes) {
  const std::string fresh = path + ".new";
  GEARDB_ASSIGN_OR_RETURN(const bool leftover, env->Exists(fresh));
  if (leftover) GEARDB_RETURN_IF_ERROR(env->Remove(fresh));
  {
    GEARDB_ASSIGN_OR_RETURN(auto file, env->OpenFile(fresh, {.mode = FileMode::kCreate}));
    GEARDB_RETURN_IF_ERROR(file->Write(0, bytes));
    GEARDB_RETURN_IF_ERROR(file->Sync());
  }
  GEARDB_RETURN_IF_ERROR(env->Rename(fresh, path));
  return env->SyncDirectory(ParentOf(path));
}

std::string ParentOf(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

}  // namespace geardb
