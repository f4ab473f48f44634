// CreateLog and OpenLog: from a directory to a writer positioned at the end of its log.
//
// The steps of an open are those of wal/FORMAT.md, "Opening", a to h; nothing is written before d.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/env.h"
#include "base/status.h"
#include "wal/log_options.h"
#include "wal/log_reader.h"
#include "wal/log_writer.h"
#include "wal/manifest.h"

namespace geardb::wal {

/// What was created, for an OpenLog without `take_lock`: nothing comes in between.
struct CreatedLog {
  std::shared_ptr<Env> directory;  ///< Held.
  std::unique_ptr<FileLock> lock;
};

/// Makes the log of a new database in `directory` (which is made if missing): uuid, ring, first
/// segment, manifest. AlreadyExists when a manifest is there, FailedPrecondition when another owner
/// holds the lock, InvalidArgument for sizes that are not powers of two or too small,
/// ResourceExhausted where the system has no thread for the writer's background work. A crash
/// before the manifest is there leaves a directory in which CreateLog can be called again.
Result<CreatedLog> CreateLog(Env* env, const std::string& directory, const LogOptions& options);

/// The first half of an open's step a: the manifest of `directory`, read once nobody else may
/// change it. `lock` is taken where it is null. NotFound, and no lock file appears, where there is
/// none.
Result<Manifest> LockAndReadManifest(Env* env, const std::string& directory, LockMode mode,
                                     std::unique_ptr<FileLock>* lock);

/// See OpenLog.
struct OpenOptions {
  LogOptions log;                     ///< Sizes are taken from the manifest, all else from here.
  Lsn from = 0;                       ///< c: the smallest LSN that the caller needs to see.
  Lsn keep = kNoLsn;                  ///< Segments that end beyond it stay, too, unread.
  Lsn reach = 0;                      ///< Corruption, nothing written, where the log ends below.
  bool read_only = false;             ///< Writes nothing; there is no writer then.
  bool allow_damaged_prefix = false;  ///< With read_only: serve what lies before the damage.
  bool take_lock = true;              ///< False: the caller already holds `directory`/LOCK.
  bool lean = false;                  ///< See ReadOptions.
};

/// What an open found and did.
struct OpenReport {
  ReadReport read;
  Epoch epoch;                 ///< Of this opening.
  Lsn cut_lsn = kNoLsn;        ///< Where the log was cut when bytes of it may have been lost.
  std::string note;            ///< "cut at LSN x, durability unknown", or empty after a seal.
  uint64_t drained_bytes = 0;  ///< From the ring to the segments (step e).
  double read_seconds = 0, drain_seconds = 0, sync_seconds = 0, total_seconds = 0;
};

/// Sees every valid record of the engine's types (data, tag, commit) in LSN order. An error ends
/// the open with that error. It is called before anything is written; nothing may be served before
/// OpenLog has returned.
using RecordVisitor = std::function<Status(const RecordView&)>;

/// An open log. `writer` is null after a read-only open; `lock` is null when it was not taken here.
struct OpenedLog {
  Manifest manifest;
  OpenReport report;
  std::unique_ptr<FileLock> lock;  ///< Declared before the writer: released after it.
  std::unique_ptr<LogWriter> writer;
};

/// Opens the log of `directory`. NotFound when there is no manifest; Unsupported for a newer format
/// (both versions are named); Corruption for damage below what is known to have been synced, with
/// LSN, file and offset; FailedPrecondition when another owner holds the lock;
/// ResourceExhausted, before anything is written, where the system has no thread for the writer.
Result<OpenedLog> OpenLog(Env* env, const std::string& directory, const OpenOptions& options,
                          const RecordVisitor& visitor);

}  // namespace geardb::wal
