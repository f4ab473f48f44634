// Stats: what a database, a table and a priority table hold and have done. Plain structs; a
// snapshot each, not one consistent cut.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/removals.h"

namespace geardb {

/// An itemised budget, in bytes.
struct BudgetStats {
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
};

/// What the cleaner has done since the open.
struct CleanerStats {
  uint64_t passes = 0;
  uint64_t failed = 0;       ///< Passes that ended with an error.
  uint64_t pages = 0;        ///< Put into the cold store.
  uint64_t page_bytes = 0;   ///< Of their frames.
  uint64_t image_bytes = 0;  ///< Of index chunks.
  uint64_t segments = 0;     ///< Given back to the log.
  uint64_t busy_us = 0;      ///< Time that passes have taken, those that have ended.
  bool running = false;      ///< One is under way, or has been asked for.
  Status last = {};          ///< Of the last pass, or else of the last compaction for space.
};

/// The cold store: counts are since the open, the others are of now.
struct ColdStats {
  uint64_t pages_read = 0;     ///< Asked for.
  uint64_t pages_missing = 0;  ///< Of those, NotFound.
  uint64_t pages_failed = 0;   ///< Of those, damaged or not readable.
  /// Read well, from blob files, though a bad block hides where they lie. Such blocks keep files
  /// from being compacted, and so the log from going on, once it is full: `geardb repair` mends
  /// them.
  uint64_t pages_salvaged = 0;
  uint64_t bytes_read = 0;        ///< Decoded into frames.
  uint64_t block_cache_hits = 0;  ///< Blocks of keys; values are not cached.
  uint64_t block_cache_misses = 0;
  uint64_t bytes_written = 0;  ///< In batches, compressed.
  uint64_t flushes = 0;
  uint64_t compactions = 0;       ///< Finished, those made for space included.
  uint64_t flush_bytes = 0;       ///< Written to files by flushes.
  uint64_t compaction_bytes = 0;  ///< Written to files by compactions.
  uint64_t disk_bytes = 0;        ///< Of all SST and blob files.
  uint64_t live_bytes = 0;        ///< Of those, not known to be garbage.
  /// Beside them: of the files that hold room on the disk for removals and opens (RESERVE,
  /// OPEN_RESERVE).
  uint64_t reserve_bytes = 0;
  uint64_t pending_compaction_bytes = 0;
  bool compacting = false;  ///< A compaction is under way, or about to begin.
  uint64_t memory_bytes = 0;
};

/// Waits of one kind, since the open: how many, and how long all together (of calls side by side,
/// the sum).
struct WaitCount {
  uint64_t waits = 0;
  uint64_t us = 0;
};

/// What calls waited for.
struct WaitStats {
  WaitCount frames = {};    ///< Appends and patches: frames, and the dropping of pages for them.
  WaitCount log_room = {};  ///< Changes: room in the log's ring or segments, the cleaner included.
  WaitCount limiters = {};  ///< Appends: limiters of priority tables.
  WaitCount table_room = {};  ///< Appends: room in a table from which nothing leaves by itself.
  WaitCount pages = {};       ///< Draws and reads: each page that was to be read first.
};

struct DatabaseStats {
  // The log.
  Lsn log_end = 0;
  Lsn log_published = 0;
  Lsn log_drained = 0;
  Lsn log_synced = 0;
  uint64_t log_records = 0;  ///< Written since the open.
  uint64_t log_bytes = 0;    ///< Written since the open.
  uint64_t fdatasyncs = 0;
  uint64_t fdatasync_p50_us = 0;
  std::string log_io = {};  ///< "direct" or "buffered", with the reason.
  /// Pages whose pieces all lie from here on are in the log, the others in the cold store.
  Lsn log_start = 0;
  Lsn log_released = 0;  ///< Segments that end at or below it are free, or written again.
  Lsn image_lsn = 0;  ///< As of which the cold store has the index: a recovery replays from here.
  uint64_t log_segments_live = 0;
  uint64_t log_segments_free = 0;
  /// What a loss of power would take: published, and not known to be synced.
  uint64_t log_lag_bytes() const {
    return log_published > log_synced ? log_published - log_synced : 0;
  }
  /// What a recovery would replay: the bytes of the log since the image.
  uint64_t cleaner_lag_bytes() const {
    return log_published > image_lsn ? log_published - image_lsn : 0;
  }
  CleanerStats cleaner = {};
  ColdStats cold = {};  ///< Zeros where there is no cold store.
  WaitStats waits = {};
  // Memory.
  BudgetStats frames = {};
  BudgetStats index = {};
  BudgetStats batches = {};
  BudgetStats cold_memory = {};  ///< Of the cold store; nothing is used where there is none.
  /// Memory of pages that are read beside the frames, all of which are in use, and the most that
  /// there was of it since the open: a sixteenth of the frames' budget for those that are read
  /// ahead, and one page for each call that reads.
  uint64_t pages_beside_bytes = 0;
  uint64_t pages_beside_most_bytes = 0;
  /// The pages behind the frames: "huge (advised)", "huge (asked for)" (some of them), "4 KiB".
  std::string frame_pages = {};
  // Pages read because they were not in memory, since the open.
  uint64_t log_page_reads = 0;   ///< From the log; a page in several pieces counts each.
  uint64_t cold_page_reads = 0;  ///< From the cold store.
  std::vector<std::string> tables = {};
};

/// Which pages of a table are in memory, without those that hold the values of its ragged columns,
/// blobs and wide columns; counts are since the open.
struct FrameStats {
  uint64_t resident_bytes = 0;  ///< Of the frames that its pages have.
  uint64_t hits = 0;            ///< Pages shown that had a frame: once for each run of rows.
  uint64_t misses = 0;          ///< That had none, and were read.
  uint64_t dropped = 0;         ///< Frames given up to make room.
  uint64_t unplaced = 0;        ///< Pages read into memory beside the budget, which was in use.
};

/// Where the bytes of a column group's pages are: pages in which something was written, each of
/// which may be in several places. Bytes are pages times the bytes of a frame.
struct GroupPlaces {
  std::string group = {};    ///< "": the group that writers append, if it has no name.
  uint64_t frame_bytes = 0;  ///< Of a page.
  uint64_t pages = 0;
  uint64_t framed = 0;       ///< Have a frame: after an open, those that were read or appended.
  uint64_t in_log = 0;       ///< Are read from the log (its ring included) without one.
  uint64_t in_cold = 0;      ///< Are read from the cold store without one.
  uint64_t in_both = 0;      ///< Of in_log: the cold store has some older version, too.
  uint64_t only_framed = 0;  ///< Are nowhere else: of volatile groups.
  /// Not "": the pages are of the values of this ragged column, blob or wide per-trajectory column.
  std::string column = {};

  friend bool operator==(const GroupPlaces&, const GroupPlaces&) = default;
};

struct TableStats {
  uint64_t trajectories = 0;
  uint64_t open_trajectories = 0;
  uint64_t steps = 0;
  uint64_t pages = 0;
  uint64_t frame_bytes = 0;  ///< Bytes that frames of its pages take, but for pages of defaults.
  FrameStats frames = {};
  uint64_t row_bytes = 0;  ///< True bytes of its rows.
  uint64_t index_bytes = 0;
  uint64_t appended_rows = 0;                             ///< Since the open.
  uint64_t removed_trajectories = 0;                      ///< Since the open.
  std::array<uint64_t, kRemovalReasons> removed_by = {};  ///< The same, by RemovalReason.
  uint64_t trimmed_rows = 0;
};

/// What one side of a limiter waits for.
struct BlockedSide {
  /// Of a sample or an insert of one item, or of the smallest batch that waits: "" where it is
  /// admitted. Names the limiter, its counts, and how much of what is needed; or what keeps items
  /// from being drawn.
  std::string reason = {};
  uint64_t waiting = 0;  ///< Calls that wait now; of appends those that wait for this limiter.
};

/// Why calls on a priority table wait.
struct BlockReport {
  BlockedSide samples = {};  ///< Calls of Sampler::Next, for items or for the limiter.
  BlockedSide inserts = {};  ///< Appends.
};

/// Of a limiter and its counts, ever, as the log has them.
struct LimiterStats {
  std::string limits = {};         ///< In words: "queue of capacity 4, items sampled …".
  uint64_t inserts = 0;            ///< Items that became drawable.
  uint64_t samples = 0;            ///< Rows handed over.
  uint64_t reserved = 0;           ///< Rows drawn and not handed over.
  uint64_t deletes = 0;            ///< Items that left.
  uint64_t deleted_unsampled = 0;  ///< Of those, never sampled, where items are counted.
  uint64_t exhausted = 0;          ///< Items that will not be drawn again.
};

/// Where an epoch stands, as the log has it.
struct EpochStats {
  uint64_t epoch = 0;      ///< Epochs begun; 0: none.
  uint64_t pass = 0;       ///< Of this epoch, from 1.
  uint64_t passes = 0;     ///< That it has.
  uint64_t items = 0;      ///< Of its cut that are still there.
  uint64_t remaining = 0;  ///< Of those, not handed over in this pass.
  uint64_t reserved = 0;   ///< Of those, drawn.
  bool exhausted = false;  ///< Nothing is left to draw until another begins; none has begun.

  friend bool operator==(const EpochStats&, const EpochStats&) = default;
};

/// Draw groups of a priority table, as the log has them; ItemKind::kGroup only.
struct GroupStats {
  uint64_t waiting = 0;  ///< Are not ready.
  uint64_t ready = 0;    ///< These are its items, but for deleted ones.
  uint64_t members = 0;  ///< Trajectories in any of them.
  // Of those that are ready:
  /// Have k of n members, and take others; one that is deleted is among these until the next member
  /// of its key, which begins another.
  uint64_t taking = 0;
  uint64_t complete = 0;            ///< Had n members.
  uint64_t sealed_by_hand = 0;      ///< PriorityTable::SealGroup.
  uint64_t sealed_by_deadline = 0;  ///< GroupSpec::deadline_ms.

  friend bool operator==(const GroupStats&, const GroupStats&) = default;
};

struct PriorityTableStats {
  uint64_t items = 0;
  uint64_t drawable_items = 0;
  uint64_t draws = 0;            ///< Batches handed over, ever: the next draw number.
  uint64_t sampled_items = 0;    ///< Since the open.
  uint64_t updates_applied = 0;  ///< Since the open.
  uint64_t updates_stale = 0;    ///< Since the open.
  uint64_t rescales = 0;         ///< Since the open.
  uint64_t filtered_items = 0;   ///< That a standing filter hides now.
  /// Of trajectories that could not be read, since a file is away: hidden until the next open.
  uint64_t unreadable_items = 0;
  int scale_shift = 0;  ///< s of q = round(w * 2^s), -32 to 40: see PriorityTable.
  float max_priority = 1;
  LimiterStats limiter = {};
  EpochStats epoch = {};  ///< SelectorKind::kEpoch only.
  GroupStats groups = {};
  std::string mode = "host";
};

/// A priority table of a database that is in use.
struct PriorityTableActivity {
  std::string name = {};
  uint64_t items = 0;
  uint64_t drawable_items = 0;
  uint64_t draws = 0;        ///< Batches handed over, ever.
  BlockReport blocked = {};  ///< As PriorityTable::WhyBlocked says.
};

/// A table of a database that is in use, each as of TableStats.
struct TableActivity {
  TableId id = 0;
  std::string name = {};
  uint64_t trajectories = 0;
  uint64_t open_trajectories = 0;
  uint64_t steps = 0;
  uint64_t pages = 0;
  uint64_t frame_bytes = 0;
  uint64_t row_bytes = 0;
  std::vector<GroupPlaces> places = {};
  std::vector<PriorityTableActivity> priority_tables = {};
};

/// The tables of a database, when they were last counted: at most a fiftieth of the time goes into
/// that.
struct TablesActivity {
  std::vector<TableActivity> tables = {};
  uint64_t left_out = 0;  ///< Tables for which the file has no room.
  int64_t seen_us = 0;    ///< When they were counted, since 1970-01-01 UTC; 0: not yet.
};

/// What processes that had a database open for writing did with it. Each is as of the struct that
/// has it since the open: FrameStats of all tables, CleanerStats, ColdStats, WaitStats.
struct ActivityCounters {
  uint64_t frame_hits = 0;
  uint64_t frame_misses = 0;
  uint64_t frames_dropped = 0;
  uint64_t frames_unplaced = 0;
  uint64_t log_page_reads = 0;
  uint64_t cold_page_reads = 0;
  uint64_t log_records = 0;
  uint64_t log_bytes = 0;
  uint64_t fdatasyncs = 0;
  uint64_t cleaner_passes = 0;
  uint64_t cleaner_failed = 0;
  uint64_t cleaner_segments = 0;
  uint64_t cleaner_pages = 0;
  uint64_t cleaner_page_bytes = 0;
  uint64_t cleaner_image_bytes = 0;
  uint64_t cold_block_hits = 0;
  uint64_t cold_block_misses = 0;
  uint64_t cold_bytes_read = 0;
  uint64_t cold_bytes_written = 0;
  uint64_t waits_for_frames = 0;
  uint64_t wait_for_frames_us = 0;
  uint64_t waits_for_log_room = 0;
  uint64_t wait_for_log_room_us = 0;
  uint64_t waits_for_limiters = 0;
  uint64_t wait_for_limiters_us = 0;
  uint64_t waits_for_table_room = 0;
  uint64_t wait_for_table_room_us = 0;
  uint64_t waits_for_pages = 0;
  uint64_t wait_for_pages_us = 0;

  friend bool operator==(const ActivityCounters&, const ActivityCounters&) = default;
};

/// The last opening of a database for writing, and all of them. Kept in a file of the database's
/// (COUNTERS), which is written at most every few seconds and by Close: after a death the last
/// seconds are missing.
struct DatabaseActivity {
  bool known = false;      ///< The file is there and whole, or the database is open for writing.
  std::string note = {};   ///< Why not.
  uint32_t opening = 0;    ///< The number of the opening that `last` counts.
  uint32_t since = 0;      ///< `total` counts this opening and all after it.
  int64_t opened_us = 0;   ///< When `last` began, since 1970-01-01 UTC.
  int64_t written_us = 0;  ///< When it was written; of an open database, now.
  ActivityCounters last = {};
  ActivityCounters total = {};
  /// As of then, of the log its places, of the cold store its bytes, and the budgets; the rest is
  /// zero.
  DatabaseStats stats = {};
  TablesActivity tables = {};
};

}  // namespace geardb
