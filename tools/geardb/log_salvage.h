// LogSalvage: the records of a log that can still be read, wherever they lie in its files: also
// behind damage, where no reading of the log comes to them. For what they name; nothing of them is
// applied.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/status.h"
#include "engine/database.h"
#include "wal/log_reader.h"

namespace geardb::cli {

/// A record whose header and metadata fit their checksum.
struct SalvagedRecord {
  Lsn lsn = 0;
  Lsn end = 0;
  wal::Epoch epoch;
  wal::RecordType type = wal::RecordType::kData;
  std::string file = {};  ///< Its name in the log's directory.
  // What it says.
  std::optional<TableId> first_table = {};  ///< Of its first operation.
  std::map<TableId, std::vector<TrajectoryId>> opened = {};
  std::map<TableId, std::string> created = {};  ///< Tables, by number.
  std::vector<std::string> tags = {};
};

/// The database whose segments a log's directory holds, by the records they begin with: that of
/// most of them. Nothing where there is none.
std::optional<wal::Uuid> FindUuid(Env* env, const std::string& log_directory);

/// All of them, in order of LSN; of several of one LSN that of the newest epoch. `manifest` gives
/// the uuid and the sizes.
Result<std::vector<SalvagedRecord>> SalvageLog(Env* env, const std::string& log_directory,
                                               const wal::Manifest& manifest);

/// Those of one segment's file.
Result<std::vector<SalvagedRecord>> SalvageFile(Env* env, const std::string& path,
                                                const wal::Manifest& manifest);

/// Not of an epoch that another has ended.
bool IsLive(const SalvagedRecord& record, const wal::Manifest& manifest);

/// Of the live records of one file the first that is of the segment which the file is: behind the
/// log's end it still has what it held before, as another. Its epoch is the one in which the
/// segment was begun; others may have gone on in it.
std::optional<SalvagedRecord> FirstOfSegment(const std::vector<SalvagedRecord>& records,
                                             const wal::Manifest& manifest);

/// A manifest for a database that has lost its own, from what its files say: of the newest epoch
/// among the records, which begins with its first. Corruption where they do not say enough.
Result<wal::Manifest> RebuildManifest(Env* env, const std::string& directory);

/// Where what the segments hold of a log ends: beyond it only the ring has it.
struct SegmentsEnd {
  Lsn lsn = 0;
  /// Up to here all was synced, as records say. Where that is more, and the ring has it, the files
  /// have lost what they had: an open for writing drains it again.
  Lsn synced = 0;
  bool ring_has_more = false;

  bool lost_what_the_ring_has() const { return ring_has_more && synced > lsn; }
};
/// Of a log that is good from `from` to its end.
Result<SegmentsEnd> EndOfSegments(Env* env, const std::string& directory,
                                  const wal::Manifest& manifest, Lsn from);

/// Where a log ends of which what comes first may be damaged; 0 where nothing of it can be opened.
/// The error of a record that cannot be read.
Result<Lsn> EndOfDamagedLog(Env* env, const std::string& directory, const wal::Manifest& manifest,
                            Lsn from);

}  // namespace geardb::cli
