// LogPrefetch: has the system read what an open will look at of the log, while the index is loaded.
//
// The open goes through the log from where the image of the index ends, through the ring, and
// through segments that were given back, for what nobody should have lost (wal/vouch_scan.h): from
// the disk that is as long as loading the index of a million trajectories.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/env.h"
#include "wal/manifest.h"
#include "wal/segment_map.h"

namespace geardb::engine {

/// Whose log, and what of it.
struct PrefetchedLog {
  Env* env = nullptr;
  const std::string& directory;  ///< Of the database.
  const wal::Manifest& manifest;
  const wal::SegmentMap& map;
  Lsn from = 0;      ///< Reading begins here.
  Lsn released = 0;  ///< Segments that end at or below were given back.
};

class LogPrefetch {
 public:
  /// With `background`, and where the system has a thread; else it does nothing. What `log` names
  /// outlives it.
  LogPrefetch(const PrefetchedLog& log, bool background);
  /// What has not been read by then is not.
  ~LogPrefetch();
  LogPrefetch(const LogPrefetch&) = delete;
  LogPrefetch& operator=(const LogPrefetch&) = delete;

  /// Waits until all is read; for tests.
  void Wait();
  uint64_t bytes() const { return bytes_.load(); }

 private:
  void Run(const PrefetchedLog& log);
  /// False: enough has been read, or the file cannot be.
  bool Prefetch(const PrefetchedLog& log, const std::string& name, uint64_t bytes);

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> bytes_{0};
  std::thread thread_;
};

}  // namespace geardb::engine
