// SlowSyncEnv: the machine's files on a disk that takes its time to make them durable.
#pragma once

#include <chrono>

#include "base/forwarding_env.h"
#include "base/mutex.h"

namespace geardb::bench {

/// Env::Posix(), but each fdatasync takes `extra` longer, and one is served after the other: a disk
/// with a volatile cache, which it empties for each flush. Thread-safe. Outlives its files.
class SlowSyncEnv final : public ForwardingEnv {
 public:
  explicit SlowSyncEnv(std::chrono::microseconds extra) : extra_(extra) {}

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, FileOptions options) override;

 private:
  class SlowFile;
  Status Sync(File* file);

  const std::chrono::microseconds extra_;
  Mutex mutex_;
  CondVar time_passes_;
  std::chrono::steady_clock::time_point free_ GEARDB_GUARDED_BY(mutex_);  // Of what came before.
};

}  // namespace geardb::bench
