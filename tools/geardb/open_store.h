// Opening a database that is not running, to look into it: nothing is written.
#pragma once

#include <memory>
#include <string>

#include "base/env.h"
#include "base/status.h"
#include "engine/database.h"
#include "tools/geardb/command.h"
#include "tools/geardb/log_names.h"
#include "wal/log_reader.h"

namespace geardb::cli {

/// The files of a database, held so that nobody opens it for writing.
struct StoreFiles {
  std::string directory;
  std::unique_ptr<FileLock> lock;
  wal::Manifest manifest;

  std::string log_directory() const { return JoinPath(directory, wal::kLogDirectoryName); }
  std::string ring_path() const { return JoinPath(log_directory(), wal::kRingName); }
};

/// Takes the lock and reads the manifest. NotFound when there is no database; FailedPrecondition
/// names the owner of one that is running.
Result<StoreFiles> TakeFiles(const Invocation& invocation);
/// The same, for what needs all of it: says that a running one has to be closed first.
Result<StoreFiles> OpenFiles(const Invocation& invocation);

/// Of a database that may be running.
Result<wal::Manifest> ReadManifest(const std::string& directory);

/// Replays the log and gives the database, read-only. FailedPrecondition names the owner of one
/// that is running; ResourceExhausted says what --memory to give.
Result<std::unique_ptr<Database>> OpenStore(const Invocation& invocation, const StoreFiles& files);

/// What of a store is not shown because it is damaged. OK when nothing is.
Status DamageOf(const Database& database);
/// kExitGood; or says on standard error that what was shown is not all, and kExitDamage.
int WarnOfDamage(const Invocation& invocation, const Status& damage);

/// The table that was asked for by "table"; the only one there is when none was. InvalidArgument
/// names those there are.
Result<std::string> TableName(const Invocation& invocation, const Database& database);

/// What was given as "filter", else all.
Result<Filter> FilterOf(const Invocation& invocation);

/// How the log is read by itself.
struct LogReading {
  /// Where there is a cold store: from the oldest segment on from which all follow one another, and
  /// that the store has not made free; its first ones may have been written again. Else from LSN 0.
  wal::ReadOptions options;
  /// An open reads no record before it: the image of the index has what they say.
  Lsn open_from = 0;
  /// Of what that image has.
  LogNames names = {};
};
LogReading ReadingOf(const StoreFiles& files);

}  // namespace geardb::cli
