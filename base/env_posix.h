// PosixEnv: the operating system's files (Linux).
#pragma once

#include "base/env.h"

namespace geardb {

/// See Env. Get it with Env::Posix().
class PosixEnv final : public Env {
 public:
  Result<std::unique_ptr<File>> OpenFile(const std::string& path, FileOptions options) override;
  Result<std::vector<std::string>> List(const std::string& directory) override;
  Result<bool> Exists(const std::string& path) override;
  Status Remove(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status CreateDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path, LockMode mode) override;
};

}  // namespace geardb
