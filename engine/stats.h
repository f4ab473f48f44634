// Stats: what a database, a table and a priority table hold and have done. Plain structs; a
// snapshot each, not one consistent cut.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "engine/removals.h"

namespace geardb {

/// An itemised budget, in bytes.
struct BudgetStats {
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
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
  // Memory.
  BudgetStats frames = {};
  BudgetStats index = {};
  BudgetStats batches = {};
  std::string frame_pages = {};  ///< "huge", "4 KiB": the pages behind the frames.
  // Pages read because they were not in memory, since the open.
  uint64_t log_page_reads = 0;   ///< From the log; a page in several pieces counts each.
  uint64_t cold_page_reads = 0;  ///< From the cold store.
  std::vector<std::string> tables = {};
};

/// Which pages of a table are in memory; counts are since the open.
struct FrameStats {
  uint64_t resident_bytes = 0;  ///< Of the frames that its pages have.
  uint64_t hits = 0;            ///< Pages shown that had a frame: once for each run of rows.
  uint64_t misses = 0;          ///< That had none, and were read.
  uint64_t dropped = 0;         ///< Frames given up to make room.
  uint64_t unplaced = 0;        ///< Pages read into memory beside the budget, which was in use.
};

struct TableStats {
  uint64_t trajectories = 0;
  uint64_t open_trajectories = 0;
  uint64_t steps = 0;
  uint64_t pages = 0;
  uint64_t frame_bytes = 0;  ///< Bytes that frames of all its pages take.
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
  /// Of a sample or an insert of one item: "" where it is admitted. Names the limiter, its counts,
  /// and how much of what is needed.
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

struct PriorityTableStats {
  uint64_t items = 0;
  uint64_t drawable_items = 0;
  uint64_t draws = 0;            ///< Batches handed over, ever: the next draw number.
  uint64_t sampled_items = 0;    ///< Since the open.
  uint64_t updates_applied = 0;  ///< Since the open.
  uint64_t updates_stale = 0;    ///< Since the open.
  uint64_t rescales = 0;         ///< Since the open.
  uint64_t filtered_items = 0;   ///< That a standing filter hides now.
  int scale_shift = 0;           ///< s of q = round(w * 2^s), -32 to 40: see PriorityTable.
  float max_priority = 1;
  LimiterStats limiter = {};
  EpochStats epoch = {};  ///< SelectorKind::kEpoch only.
  std::string mode = "host";
};

}  // namespace geardb
