#include "base/env.h"

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
  const size_t slash = path.rfind('/');
  return env->SyncDirectory(slash == std::string::npos ? "." : path.substr(0, slash));
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

}  // namespace geardb
