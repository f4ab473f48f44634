// RepairPlan: what is wrong with a database that is not running, what would make it one that opens
// again, and what that loses. Nothing of the database is written here.
//
// What is planned is tried out first: a directory elsewhere holds links to the database's files
// and, in their place, those that a repair would write, and is opened for reading. So what the plan
// says of what stays is what an open finds, and the repair itself does nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/database.h"
#include "tools/geardb/log_salvage.h"
#include "wal/log_reader.h"

namespace geardb::cli {

/// A trajectory whose last rows may be lost: it was open where the log is cut.
struct CutShort {
  TrajectoryId id = 0;
  int64_t rows_end = 0;  ///< Rows from here on are lost, if there were any.
};

inline constexpr TrajectoryId kNoEnd = UINT64_MAX;

/// What a table loses.
struct TableLoss {
  TableId id = 0;
  std::string name = {};
  bool whole = false;                           ///< The table itself.
  std::vector<TrajectoryId> trajectories = {};  ///< Ascending.
  /// Ids that no record names which can be read: of trajectories that are lost, or never used.
  /// First and last; kNoEnd: all from there on.
  std::vector<std::pair<TrajectoryId, TrajectoryId>> unnamed = {};
  std::vector<CutShort> cut_short = {};

  bool empty() const {
    return !whole && trajectories.empty() && unnamed.empty() && cut_short.empty();
  }
};

/// Bytes [from, to) of the log.
struct LogLoss {
  Lsn from = 0;
  Lsn to = 0;
  uint64_t readable_records = 0;  ///< That lie there.
};

/// A segment whose first record is written.
struct SegmentToHead {
  std::string name = {};
  Lsn base = 0;
  wal::Epoch epoch = {};
};

struct RepairPlan {
  std::string directory;
  // What is said.
  std::vector<std::string> damage;   ///< What is wrong, a line each.
  std::vector<std::string> actions;  ///< What is done, a line each.
  std::vector<std::string> losses;   ///< What is lost besides.
  std::vector<std::string> notes;    ///< What was lost before, and no repair brings back.
  std::optional<LogLoss> log;
  std::vector<TableLoss> tables;
  /// Why it cannot be repaired; empty: it can be.
  std::string impossible;

  // What is written, in the order of RepairPlan's steps (repair_steps.h).
  std::optional<wal::Manifest> manifest;
  uint64_t ring_bytes = 0;               ///< A new ring of so many bytes; 0: none.
  std::vector<SegmentToHead> heads;      ///< Files that get their first record again.
  std::optional<SegmentToHead> segment;  ///< One that is made, and has nothing else.
  bool cold_aside = false;               ///< The cold store leaves.
  std::vector<std::string> aside;        ///< Files of the log's directory that leave.
  std::vector<std::string> kept;         ///< Likewise: they will be written over, and are copied.
  bool make_lock = false;
  /// The segments have lost what was synced, and the ring has it: an open for writing puts it back.
  bool drain_ring = false;
  bool mend_cold = false;  ///< Copies of index chunks in the cold store are written again.
  /// Of the cold store, blob files get headers and footers again, SST files tails.
  bool mend_files = false;
  bool drop_cold_pages = false;  ///< The cold store goes on without files of pages that are lost.
  /// Before anything is removed: pages name their LSNs, so that no older version is taken for what
  /// was lost. Else what cannot be read is removed while the files are still there.
  bool drop_before_removals = false;
  Lsn log_start = kNoLsn;  ///< Of the log's oldest segment; 0: it has none.
  std::map<std::string, std::vector<TrajectoryId>> remove;  ///< By table.

  bool nothing_wrong() const { return damage.empty(); }
};

struct RepairOptions {
  std::string directory;
  uint64_t memory_bytes = 0;  ///< 0: as an open takes by default.
};

/// The caller holds the directory's lock. An error is what prevents an answer: Unsupported for a
/// newer GearDB's database, ResourceExhausted for too little memory, NotFound where there is none.
Result<RepairPlan> PlanRepair(const RepairOptions& options);

}  // namespace geardb::cli
