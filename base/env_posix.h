// PosixEnv: the operating system's files (Linux).
#pragma once

#include <string>

#include "base/env.h"

namespace geardb {

/// See Env. Get it with Env::Posix().
class PosixEnv final : public Env {
 public:
  PosixEnv();
  ~PosixEnv() override;

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, FileOptions options) override;
  Result<std::vector<std::string>> List(const std::string& directory) override;
  Result<bool> Exists(const std::string& path) override;
  Result<uint64_t> FreeBytes(const std::string& directory) override;
  Status Remove(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status CreateDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  Result<std::shared_ptr<Env>> HoldDirectory(const std::string& directory) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path, LockMode mode) override;

 private:
  // A path as the system's *at calls take it.
  struct Place {
    int directory;
    const char* path;
  };

  // Of a directory that is held: its path, without slashes at its end, and its descriptor.
  PosixEnv(std::string held, int fd) : held_(std::move(held)), fd_(fd) {}

  // InvalidArgument for a path with a NUL. The result points into `path`.
  Result<Place> PlaceOf(const std::string& path) const;
  Result<int> OpenRegular(const std::string& path, int flags) const;
  // `flags`: O_RDONLY to list or sync it, O_PATH only to go on from it.
  Result<int> OpenDirectory(const std::string& path, int flags) const;

  const std::string held_;
  const int fd_;  // Else AT_FDCWD.
};

}  // namespace geardb
