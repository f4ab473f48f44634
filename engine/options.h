// Options of a database. Behaviour first, performance second: tuning never changes meaning.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace geardb {

class Clock;
class Env;

/// Hard limits of memory, each itemised in Stats. Over them a call waits by its deadline or fails
/// with ResourceExhausted. Frames and index may have 2^44 bytes each at most. With ring_bytes they
/// are what a database takes of a process, but for code and what malloc's arenas keep of memory
/// that was given back, which does not grow with them: README.md has figures, and how to have less.
/// Pages that a batch, Gather or Read needs and that have no free frame are read a few at a time,
/// into a sixteenth of `frames_bytes` beside it, or one page for each
/// (DatabaseStats::pages_beside_bytes).
struct Budgets {
  /// Frames of pages in host memory. 0: a quarter of the memory that the cgroup (or the machine)
  /// allows. With less than all tables have to have at once (two pages of each column group and of
  /// each column of values) new tables and columns, and an open for writing, are refused with the
  /// bytes that would do.
  uint64_t frames_bytes = 0;
  /// Records, page tables, trees and bitmaps. An empty table takes some 130 KiB. Whatever this is,
  /// a database has at most some 490 tables with a priority table each: they lay out addresses for
  /// what they may hold, of which there are 1024 times as many. 0: an eighth of `frames_bytes`, at
  /// least 64 MiB.
  uint64_t index_bytes = 0;
  /// Buffers of batches, of all samplers together.
  uint64_t batch_bytes = uint64_t{1} << 30;
  /// RocksDB's, of the cold store: blocks of its files, and half of it what is not flushed yet; the
  /// last batch, of about 1 MiB, may come on top. At least 4 MiB. 0: an eighth of `frames_bytes`,
  /// at least 8 MiB and at most 64 MiB.
  uint64_t cold_bytes = 0;
};

struct DatabaseOptions {
  /// Those with which a process takes about `process_bytes` in memory, at most a tenth more: 26 MiB
  /// are taken off first for code of its libraries, threads and what malloc keeps; then an eighth
  /// each for the cold store (64 MiB at most) and the index, and a sixteenth each for batches and
  /// the ring; frames have what is left. At least 64 MiB, and what is less is taken for that. A
  /// database that there is keeps the ring which it was created with; what the program itself has
  /// comes on top.
  static DatabaseOptions Within(uint64_t process_bytes);

  // Behaviour.
  bool create_if_missing = true;
  /// AlreadyExists where there is a database; FailedPrecondition while somebody else creates one.
  bool error_if_exists = false;
  /// Nothing is written: no manifest, no drained tail. Only observer samplers may draw.
  bool read_only = false;
  /// Every page stays in memory, and what does not fit the frame budget is refused. Else a page
  /// whose rows are in the log or in the cold store gives its frame to others when the budget is
  /// full, and is read when it is shown again.
  bool resident = false;
  /// What lives in the oldest segments of a log that has reached its bound moves to RocksDB, in
  /// the directory `cold`, and the segments are written again. Off: a full log refuses what brings
  /// bytes of the user's. What is there already is read and kept either way.
  bool cold_tier = true;
  /// When the cold store's files have more than this times the bytes of what is live in them, they
  /// are written anew; above 1. Smaller: less space, more writing.
  double space_amplification_max = 1.5;
  /// Acknowledgement of writers' calls where neither the call nor the writer names one.
  Ack ack = Ack::kLog;
  /// The log's segments may come to this; at least one segment, and two with cold_tier: the one
  /// that is being written is never given back. With cold_tier it is less where all files of the
  /// log would have more than a third of what the disk has room for at open: the cold store needs
  /// the rest.
  /// Calls wait then until some are free (cold_tier), and are refused with DeadlineExceeded where a
  /// pass that may free some has not ended by their deadlines. Where none will be free, all
  /// that brings bytes of the user's fails with ResourceExhausted naming what pins the log:
  /// appends, Set and SetAll, draws, SetColumns, new tables and priority tables, tags with a blob
  /// over 64 KiB. Removals, closings and small tags go on for another 1 MiB or a sixteenth of this,
  /// whichever is more (in whole segments); then they fail so too. A larger value at the next open
  /// lets everything go on. A full disk refuses the same calls; removals, closings and small tags
  /// then have one segment, and everything goes on when there is room again (removals from the cold
  /// store make some). On the disk the ring and spare segments come on top: as many as the ring
  /// fills, and one, in which an open on a full disk goes on.
  uint64_t log_bytes_max = uint64_t{4} << 30;
  /// Everything is synced this long after it was written, even if nobody asks.
  int64_t sync_interval_ms = 1000;

  // Performance.
  Budgets budgets = {};
  /// Threads fault in the whole frame budget at open.
  bool prefault = false;
  /// Size of a log segment and of the ring, powers of two of at least 64 KiB and 32 KiB; fixed when
  /// the directory is created. Segments of 0: an eighth of log_bytes_max, rounded down to a power
  /// of two, within 64 KiB and 64 MiB. They bound what goes into the log at once: with r, the
  /// smaller of a quarter of the ring and half of a segment, a page has less than r bytes, one call
  /// of a writer some r / 64 pages, and a tag's blob, a Set or a SetAll less than r² / 48 bytes:
  /// 5 MiB with r = 16 KiB, 1 GiB with r = 256 KiB. With cold_tier, the ring has a sixteenth of
  /// what the disk has room for at most, but two of the segments asked for.
  uint64_t segment_bytes = 0;
  uint64_t ring_bytes = uint64_t{64} << 20;
  /// Threads that read pages which are not in memory, begun with the first; 0: who waits reads.
  uint32_t read_threads = 16;
  /// Background threads (drain, sync, prefetch); what cannot be without one is refused with
  /// ResourceExhausted where the system has no more. Off: tests drive every step by hand.
  bool background = true;

  // Seams; null is the machine's own. Not owned, must outlive the database.
  Env* env = nullptr;
  const Clock* clock = nullptr;
};

}  // namespace geardb
