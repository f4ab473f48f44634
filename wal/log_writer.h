// LogWriter: the writing end of the log, from the reservation of an LSN to its durability.
//
// A record passes through four states, each a prefix of the log:
//   reserved   it has its LSN and its bytes in the ring, Reserve()
//   published  it and all before it are complete in the mapped ring: survives the process,
//   Publish() drained    it is written to its segment file (a background thread, or whoever waits)
//   synced     fdatasync has returned for every segment it touches: survives power loss
//
// Invariants:
//   synced() <= drained() <= published() <= end(); synced() and published() are ends of records.
//   Bytes of the ring are reused only when the record that holds them is wholly drained.
//   After the first write or fsync error nothing is admitted, and every call returns that error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "wal/log_format.h"
#include "wal/log_options.h"

namespace geardb::wal {

/// Called once for each published record, in LSN order, one call at a time, by whichever thread
/// completes the head of the log, which holds no lock that Reserve or Fill need. It must not wait
/// for the log. The object is the caller's: it lives until the call, and may delete itself in it.
class PublishCallback {
 public:
  virtual void OnPublished(Lsn lsn, Lsn end) = 0;

 protected:
  ~PublishCallback() = default;
};

/// Which reserves a record may take from: of segment files, and of bytes beyond log_bytes_max.
enum class Urgency : uint8_t {
  /// What brings bytes of the user's: refused while the disk leaves only spare files, and at
  /// log_bytes_max. Once the other kind has taken from a reserve, nothing of it is for this kind.
  kAppend,
  /// Removals, small tags, closings, id ranges: may take one of the spare files, and go on beyond
  /// log_bytes_max by the larger of 1 MiB and a sixteenth of it, rounded up to whole segments.
  kReserve,
};

/// What Reserve is told about a record.
struct RecordRequest {
  RecordType type = RecordType::kData;
  RecordSize size;
  uint16_t flags = 0;
  uint32_t part = 0;  ///< For a record in parts: its number, from 0.
  Lsn group_lsn = 0;  ///< LSN of part 0; ignored for part 0 of kPart, which begins the group.
};

/// A record's place in the log. Trivially copyable; must be filled and published exactly once,
/// since everything after it waits for it.
struct Reservation {
  Lsn lsn = 0;          ///< Of the record.
  Lsn end = 0;          ///< One past its last byte: what to wait for.
  Lsn group_lsn = 0;    ///< What later records of the group say; 0 for a record of its own.
  uint64_t ticket = 0;  ///< Number of the reservation.
  Lsn synced_lsn = 0;   ///< What its header says.
  RecordRequest request;
};

/// Where the bytes of a piece are, to be read by themselves later.
struct PiecePlace {
  Lsn at = kNoLsn;        ///< Of their first byte.
  uint64_t checksum = 0;  ///< PieceEntry::checksum.
};

/// The bytes of one piece: of this record, given as runs that are copied one after the other, or in
/// an earlier part of the group.
struct PieceSource {
  std::span<const std::span<const std::byte>> runs = {};  ///< Of this record.
  PieceEntry foreign = {};                                ///< lsn != 0: in a part; `runs` is empty.
  PiecePlace* place = nullptr;  ///< Where to say where `runs` went, once they are there.
};

/// The content of a record; sizes must be those of its RecordSize.
struct RecordContent {
  std::span<const std::byte> body;
  std::span<const PieceSource> pieces;
};

/// Counters since the open, and where the log stands.
struct LogStats {
  Lsn end = 0, published = 0, drained = 0, synced = 0;
  uint64_t records = 0;  ///< Reserved, pads, segment records and seals included.
  uint64_t bytes = 0;    ///< Reserved.
  uint64_t drain_writes = 0;
  uint64_t drain_bytes = 0;  ///< Written to segments; a partial block counts each time.
  uint64_t fsyncs = 0;
  uint64_t fsync_median_us = 0;  ///< Over the last 1024.
  uint64_t fsync_max_us = 0;
  uint64_t room_waits = 0;  ///< WaitForRoom calls that had to wait.
  uint64_t seals = 0;
  uint64_t segments_live = 0;
  uint64_t segments_free = 0;
  std::string write_path;  ///< "direct" or "buffered (why)".
  std::string ring_path;   ///< "mapped" or "written (why)".
};

/// Made by OpenLog (wal/open_log.h). Thread-safe except where a call says otherwise. The destructor
/// closes it if Close was not called.
class LogWriter {
 public:
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// The largest RecordSize::total() that one record may have (a quarter of the ring). More goes in
  /// parts.
  uint64_t record_bytes_max() const;

  /// Room for these records, reserved in this order, right now? Never waits. The answer holds until
  /// the next Reserve, so the caller keeps its own commit mutex from here to there. If not, release
  /// that mutex, call WaitForRoom, and try again.
  bool HasRoom(std::span<const RecordSize> sizes, Urgency urgency);
  bool HasRoom(const RecordSize& size, Urgency urgency) { return HasRoom({&size, 1}, urgency); }

  /// Waits until HasRoom may be true. InvalidArgument: could never fit (one over
  /// record_bytes_max(), or together over half the ring). ResourceExhausted: the disk is full,
  /// naming the spare segment files there are and those that stay, or log_bytes_max (for kReserve:
  /// its reserve too) is reached, naming the bytes used and what pins the oldest segment.
  /// DeadlineExceeded: "never admitted". The first write or fsync error, once there was one.
  /// Cancelled: closed.
  Status WaitForRoom(std::span<const RecordSize> sizes, Urgency urgency, Deadline deadline);
  Status WaitForRoom(const RecordSize& size, Urgency urgency, Deadline deadline) {
    return WaitForRoom({&size, 1}, urgency, deadline);
  }

  /// For whoever writes more than one record for one change: nothing is written of what cannot be
  /// finished. Makes the segment files that records of these sizes take, one after the other from
  /// here; while the caller keeps its commit mutex, they wait for nothing but the ring then, and
  /// only the log's first error stops them. Those that take from the reserves may be among them:
  /// what fits as kAppend fits so too. InvalidArgument: one is over record_bytes_max().
  /// ResourceExhausted, naming the bytes asked for: they would
  /// pass log_bytes_max (for kReserve its reserve), or the disk is full; the files that could be
  /// made are removed again.
  Status PrepareFor(std::span<const RecordSize> sizes, Urgency urgency) const;
  /// How many segments more they take: what does not fit where one ends leaves it unfilled.
  uint64_t SegmentsFor(std::span<const RecordSize> sizes) const;

  /// Bytes of whole segments that records may still take below log_bytes_max (for kReserve with its
  /// reserve).
  uint64_t BytesToBound(Urgency urgency) const;

  /// Takes the next LSN (after a pad and a segment record where the segment ends). Cannot fail when
  /// HasRoom has just said yes. One thread at a time.
  Reservation Reserve(const RecordRequest& request);

  /// Copies metadata and pieces into the ring, checksums them, and finishes the header. Any thread,
  /// many in parallel.
  void Fill(const Reservation& reservation, const RecordContent& content);

  /// Says that the record is complete. `callback` (or nullptr) runs here or on the thread that
  /// completes the record's last unfinished predecessor. Never waits for another record.
  void Publish(const Reservation& reservation, PublishCallback* callback);

  /// Until everything below `end` (a record's end) is published, its callbacks done.
  /// DeadlineExceeded: "published state unknown"; the record will still be published.
  Status WaitPublished(Lsn end, Deadline deadline) const;
  /// Until everything below `end` is synced. The first waiter drains and syncs for all.
  /// DeadlineExceeded: "published, durability unknown" or as WaitPublished.
  Status WaitSynced(Lsn end, Deadline deadline) const;

  /// The LSN that the next record takes, and the ends of the three prefixes. Any thread.
  Lsn end() const;
  Lsn published() const;
  Lsn drained() const;
  Lsn synced() const;
  /// Records that begin below are in the segments, whole; at most drained(). Any thread.
  Lsn boundary() const;

  /// Segments that end at or below `flushed` may be recycled: whoever calls has replaced and
  /// flushed everything in them. `pinned_by` says in words what holds the rest, for error texts.
  void ReleaseBelow(Lsn flushed, std::string_view pinned_by);

  /// OK, or the first write or fsync error.
  Status failure() const;
  LogStats Stats() const;

  /// Drains, syncs, seals and stops the background thread. Everything reserved must have been
  /// published. Where the log ends exactly where a segment ends, the seal begins another, if a
  /// spare file is there. Later calls return Cancelled; a second Close returns what the first did.
  Status Close();

  // What the background thread does, for tests that run without it. Any thread.

  /// Writes what is published to the segments, the partial last block too.
  Status DrainOnce();
  /// Writes only whole blocks of it: the drain may stop inside a record.
  Status DrainBlocksOnce();
  /// Syncs what is drained.
  Status SyncOnce();
  /// Writes, drains and syncs a seal if everything is synced, the last record is none, and it
  /// does not end exactly where a segment ends.
  Status SealOnce();
  /// Makes the spare segment files that are missing.
  Status PrepareSpares();
  /// Gives the disk those spare files that are neither for removals nor for the next open, or,
  /// where there are none of these, the one for removals. None is made, and what needs one is
  /// refused, before RestoreSpares. Whether there were any.
  bool GiveUpSpares();
  /// What was given up is made again, once there is room.
  void RestoreSpares();
  /// Whether spare files are missing because the disk has no room for them: appends wait for that.
  bool LacksRoomForSpares() const;

 private:
  friend class LogOpener;
  class Core;
  explicit LogWriter(std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;
};

}  // namespace geardb::wal
