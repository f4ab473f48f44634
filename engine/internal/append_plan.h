// The parts of an append: where its rows come from, which pages they fill, which pieces they make.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/internal/append_values.h"
#include "engine/internal/bulk_record.h"
#include "engine/internal/frame_queue.h"
#include "engine/internal/table_plan.h"
#include "engine/internal/table_state.h"
#include "wal/log_writer.h"

namespace geardb::engine {

/// Where the rows of one call come from, and for which lane: `rows` rows of each per-step column at
/// `columns[c]`, and a final row if `final_columns` is not empty.
struct LaneRows {
  uint32_t lane = 0;
  uint64_t rows = 0;
  End end = End::kGo;
  std::vector<const std::byte*> columns = {};        ///< Per step column.
  std::vector<const std::byte*> final_columns = {};  ///< Per step column; null: zero. Empty: none.
  std::vector<const std::byte*> trajectory = {};     ///< Per per-trajectory column; null: not set.
  std::vector<CompanionRows> companions = {};        ///< What goes into the table's companions.
  /// What some of the pointers above point to: ranges of rows, and numbers of them.
  std::vector<std::shared_ptr<const std::vector<uint64_t>>> made = {};
  const Lane* owner = nullptr;  ///< Of rows of a companion: the owner's lane, whose slot they take.
};

/// A run of rows that one call writes into one page: a piece in each group that is logged.
struct PageRows {
  size_t call = 0;  ///< Index of its LaneRows.
  bool new_page = false;
  uint32_t offset = 0;  ///< Of the first row in the page.
  uint32_t count = 0;
  Lpn lpn = kNoLpn;  ///< Known once the numbers are taken.
  uint32_t generation = 0;
};

/// One call's share of the record.
struct CallPlan {
  uint64_t stored = 0;    ///< Rows, a final row included.
  int64_t first_row = 0;  ///< Absolute row of the first.
  bool opens = false;     ///< A trajectory begins.
  TrajectoryId id = 0;
  int64_t created_us = 0;
};

/// Everything that is decided about one append.
struct AppendPlan {
  Growth growth;
  std::vector<CallPlan> calls;
  std::vector<PageRows> pages;
  // Of each of `pages`, in each group that is appended: its frame, whether that is a new one (else
  // not valid), and the record of the piece before.
  std::vector<FrameRef> frames;
  std::vector<FrameRef> new_frames;
  std::vector<Lsn> previous_lsns;
  // Where its piece is, once that is in the log.
  std::vector<wal::PiecePlace> places;
  // Pieces: of each of `pages`, one for each group that is logged.
  std::vector<std::span<const std::byte>> runs;
  std::vector<wal::PieceSource> pieces;
  std::vector<uint64_t> piece_bytes;
  bool rescaled = false;  ///< Some weights have another scale, for what the call brings.
  bool in_parts = false;  ///< The pieces go ahead of the record, in parts.
  bool alone = false;     ///< Nobody else appends from the first part to the record.
  Lsn group_lsn = 0;
  uint32_t parts = 0;    ///< Written.
  Growth promised = {};  ///< Room of the table that nobody else takes while they are written.
  Eviction eviction;
  /// Trajectories that leave with the record whatever room there is; what was logged of them is
  /// published.
  std::vector<Slot> leaving;
  /// Of `eviction.removed` so many, from the first on, leave with the record itself, whatever goes
  /// ahead of it: others of its operations name them.
  size_t with_record = 0;
  /// A trajectory that was open on one of the lanes has left: what the call is refused for.
  bool lanes_left = false;
  /// Called before a wait for what others do: what was admitted beside this is given back.
  std::function<void()> before_wait;
  /// Of the call, while it has these frames; null: of one that takes none.
  FrameQueue::Hold* hold = nullptr;
  /// Items that the limiters have admitted, by number of priority table; empty where none is asked.
  std::vector<uint64_t> admitted;
  /// The largest initial priority given, by number of priority table: raises "max" once admitted.
  std::vector<std::pair<uint32_t, float>> largest_given;

  /// As new, with the memory of what it was, where that is little.
  void Clear();
  /// Fills `runs`, `pieces` and `piece_bytes` from `pages` and `frames`.
  void DescribePieces(const TableLayout& layout, const HostArena& arena);
  /// The pieces in parts, none over `record_bytes_max`.
  std::vector<PartOfPieces> Parts(uint64_t record_bytes_max) const {
    return SplitIntoParts(piece_bytes, record_bytes_max);
  }
  /// The record's size with a body of `body_bytes`.
  wal::RecordSize SizeWith(uint64_t body_bytes) const;
};

/// What CopyRowsIntoPage copies.
struct PageCopy {
  const TableLayout* layout = nullptr;
  const LaneRows* call = nullptr;
  std::span<std::byte* const> frames;  ///< Of the page, by group that is appended.
  const PageRows* page = nullptr;
  uint64_t rows_done = 0;       ///< Rows of the call that went into earlier pages.
  bool begins_episode = false;  ///< Streams: the call's first row is the first of an episode.
};
void CopyRowsIntoPage(const PageCopy& copy);

/// The rows that a call stores on one lane, as far as their flags go.
struct StoredRows {
  uint64_t steps = 0;  ///< Without a final row.
  End end = End::kGo;
  bool begins_episode = false;
};
/// Flags of the stored row with that number, from 0; in a stream they are a column.
uint8_t FlagsOfStoredRow(const TableLayout& layout, const StoredRows& rows, uint64_t number);

/// The number of the priority table of that name.
std::optional<uint32_t> FindPriorityTable(const TableState& state, std::string_view name);

/// Where CountNewItems counts: in a priority table, of a trajectory that then begins at a row.
struct NewItemsOf {
  size_t priority_table = 0;
  uint64_t first_row = 0;  ///< After what the call's own record trims.
};
/// How many items of a priority table the call will make drawable. The lane's records so far are
/// published, and the state's mutex is held.
uint64_t CountNewItems(const TableState& state, const NewItemsOf& of, const Lane& lane,
                       const LaneRows& call);

}  // namespace geardb::engine
