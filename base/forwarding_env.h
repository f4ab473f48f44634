// ForwardingEnv: the system's files, for an Env that changes some of what is done with them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"

namespace geardb {

/// Env::Posix() in all that a derived class does not override.
class ForwardingEnv : public Env {
 public:
  Result<std::unique_ptr<File>> OpenFile(const std::string& path, FileOptions options) override {
    return Posix()->OpenFile(path, options);
  }
  Result<std::vector<std::string>> List(const std::string& directory) override {
    return Posix()->List(directory);
  }
  Result<bool> Exists(const std::string& path) override { return Posix()->Exists(path); }
  Status Remove(const std::string& path) override { return Posix()->Remove(path); }
  Status Rename(const std::string& from, const std::string& to) override {
    return Posix()->Rename(from, to);
  }
  Status CreateDirectory(const std::string& path) override {
    return Posix()->CreateDirectory(path);
  }
  Status SyncDirectory(const std::string& path) override { return Posix()->SyncDirectory(path); }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path, LockMode mode) override {
    return Posix()->Lock(path, mode);
  }
};

}  // namespace geardb
