// LogReader: the valid records of a log, in LSN order, from the segments and then the ring.
//
// It writes nothing. Recovery is built on it, and so are `geardb log` and `geardb verify`, on a
// store that is not running.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/status.h"
#include "wal/log_format.h"
#include "wal/manifest.h"

namespace geardb::wal {

/// A piece as it was read. `bytes` is valid until the next record is asked for.
struct PieceView {
  Lsn lsn = 0;          ///< The record that holds the bytes: this one, or a part.
  uint32_t offset = 0;  ///< In that record's piece area.
  Lsn at = kNoLsn;      ///< Of its first byte; kNoLsn where that record is not in the log read.
  bool good = true;  ///< False: page damage. Its bytes do not fit its checksum, or are not there.
  std::span<const std::byte> bytes;  ///< Empty when the part that held them is not in the log read.
  uint64_t checksum = 0;
};

/// A record as it was read. Spans are valid until the next record is asked for; the body is
/// 8-byte aligned.
struct RecordView {
  RecordHeader header;
  Lsn lsn = 0;
  Lsn end = 0;
  RecordType type = RecordType::kData;
  bool from_ring = false;    ///< Read from the ring: it had not been drained.
  bool page_damage = false;  ///< One of its pieces is not good.
  std::span<const std::byte> body;
  std::span<const PieceView> pieces;
};

/// See LogReader::Open.
struct ReadOptions {
  /// Where to begin: the end of a record, or 0; kNoLsn: with the oldest segment from which all
  /// follow one another, as of a log whose first ones are written again.
  Lsn from = 0;
  /// Segments that end beyond it have never been given back: what their first records say is true
  /// of all that is in them.
  Lsn keep = kNoLsn;
  /// With `from` kNoLsn: segments that end at or below it are the log's no more, though nothing has
  /// been written over them yet.
  Lsn released = 0;
  bool all_types = false;  ///< Also pads, segment records, seals and parts.
  bool use_ring = true;
  /// Damage in the middle of the log ends the reading, as if the log ended there.
  bool allow_damaged_prefix = false;
  bool read_ahead = true;  ///< A second thread, if one can be had, reads the segments.
  /// Memory of what was looked at leaves the process at once: else two segments are held, and read
  /// a fifth faster.
  bool lean = false;
};

/// Where a reading ended, once Next has returned nothing.
struct ReadReport {
  Lsn start_lsn = 0;
  Lsn segments_end_lsn = 0;  ///< z: records below came from segments.
  Lsn end_lsn = 0;           ///< y: the end of the log.
  Lsn vouched_lsn = 0;       ///< Known to have been synced, as far as this reading had to find out.
  Lsn synced_lsn = 0;        ///< The largest that a record says was synced when it was written.
  uint64_t records = 0;      ///< Of all types.
  uint64_t ring_records = 0;
  uint64_t bytes = 0;
  uint64_t damaged_pieces = 0;
  uint64_t void_groups = 0;  ///< Records in parts that have no final record.
  /// Lsn of the last valid record if it is a seal: nothing was lost. Otherwise kNoLsn.
  Lsn seal_lsn = kNoLsn;
  Status damage;  ///< With allow_damaged_prefix: what ended the reading.
};

/// Valid records of the newest opening that lie beyond the log's end: the one there is missing or
/// damaged, and was not known to be synced. No reading comes to them, and an open for writing drops
/// them.
struct RecordsBeyond {
  uint64_t records = 0;
  Lsn end_lsn = 0;                               ///< The end of the last of them.
  std::map<std::string, uint64_t> by_file = {};  ///< Path → how many it holds.
  /// They may have been acknowledged. False: they lie in the ring, where other writers have
  /// overtaken one that died before its record was there.
  bool acknowledged = false;
  /// The header of the record at the log's end is there: it was once complete.
  bool header_at_end = false;
};

/// Iterates over a log. Not thread-safe.
class LogReader {
 public:
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// Opens the log of `directory`, described by `manifest`, for reading. The caller holds the
  /// directory's lock, or knows that nobody writes.
  static Result<std::unique_ptr<LogReader>> Open(Env* env, const std::string& directory,
                                                 const Manifest& manifest,
                                                 const ReadOptions& options);

  /// The next record, or nothing at the log's end. Corruption, with LSN, file and offset, when the
  /// log is damaged below what is known to have been synced. A record in parts comes once, with its
  /// final record, and its pieces in the parts are resolved. Unsupported for an unknown type.
  Result<std::optional<RecordView>> Next();

  /// Complete after Next has returned nothing.
  const ReadReport& report() const;

  /// What lies beyond the end, once Next has returned nothing: reads the rest of the files.
  Result<RecordsBeyond> FindBeyond();

  /// "path at offset n": where a byte of the log is, or would be, in its segment file.
  std::string PlaceOf(Lsn lsn) const;

 private:
  friend class LogOpener;
  class Core;
  explicit LogReader(std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;
};

}  // namespace geardb::wal
