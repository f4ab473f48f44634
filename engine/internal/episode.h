// Rows of a trajectory, found through its pages, and the episode around a row as a priority table
// sees it.
#pragma once

#include <cstdint>

#include "base/window.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

/// Walks the pages of one trajectory. Valid while the table's mutex is held.
class RowCursor {
 public:
  RowCursor(const TableState& state, const index::TrajectoryRecord& record)
      : state_(&state), record_(&record) {}
  /// As above, standing at a page that is known to hold rows of the trajectory.
  RowCursor(const TableState& state, const index::TrajectoryRecord& record, Lpn lpn)
      : state_(&state),
        record_(&record),
        lpn_(lpn),
        page_number_(state.pages().page(lpn).page_number) {}

  /// The page of a row in [first page, rows_end).
  Lpn PageOf(int64_t row);
  uint64_t LeafOf(int64_t row) {
    const Lpn lpn = PageOf(row);
    return state_->layout().Leaf(lpn, state_->layout().OffsetInPage(row));
  }
  /// The flags byte of a row of a stream table.
  uint8_t FlagsOf(int64_t row);

  const TableState& state() const { return *state_; }
  const index::TrajectoryRecord& record() const { return *record_; }

 private:
  const TableState* state_;
  const index::TrajectoryRecord* record_;
  Lpn lpn_ = kNoLpn;
  uint32_t page_number_ = 0;
};

/// How far from a row the rows are that matter to whoever asks.
struct Reach {
  int64_t left = 0;
  int64_t right = 0;
};

/// Without final rows, the last row of a truncated or cut episode stands in for one.
inline bool PlaysFinalRow(const TableLayout& layout, const WindowRule& rule, End end) {
  return !layout.spec().final_row && rule.extent.after >= 1 &&
         (end == End::kTruncated || end == End::kCut);
}

/// A whole trajectory as one episode, which it is but in a stream.
inline Episode EpisodeOfAll(const TableLayout& layout, const index::TrajectoryRecord& record,
                            const WindowRule& rule) {
  Episode episode;
  episode.begin = static_cast<int64_t>(record.first_row);
  episode.rows_end = static_cast<int64_t>(record.rows_end);
  episode.open = record.state != index::TrajectoryState::kClosed;
  episode.head_missing = record.first_row > 0;
  const bool last_is_final =
      (record.flags & index::kFinalRowStored) != 0 || PlaysFinalRow(layout, rule, record.end);
  episode.steps_end = episode.rows_end - (last_is_final ? 1 : 0);
  return episode;
}

/// The episode of `row` (which is there) under `rule`. In a stream, its flags are looked at no
/// further than `reach`: an edge beyond is given as if it lay just beyond the reach.
Episode FindEpisode(RowCursor* cursor, const WindowRule& rule, int64_t row, Reach reach);

/// The reach that placing a window of `rule` at its anchor needs.
Reach PlacementReach(const WindowRule& rule);

/// The whole trajectory as the item of a priority table over trajectories: its rule and episode.
WindowRule TrajectoryRule(const TableState& state, const index::TrajectoryRecord& record);
Episode TrajectoryEpisode(const TableState& state, const index::TrajectoryRecord& record);

/// Is the row an anchor of the rule, apart from episodes' bounds: no final row, nor one that plays
/// its part?
bool MayBeAnchor(RowCursor* cursor, const WindowRule& rule, int64_t row);

/// One past the last step that an anchor's window shows or promises. It does not depend on what
/// follows: a promised row that is no step is none when others follow it, either.
int64_t NeededEnd(RowCursor* cursor, const WindowRule& rule, const Episode& episode, int64_t row);

/// What the row carried, and whether an episode begins with it.
End EndOfRow(RowCursor* cursor, int64_t row);
bool IsFirstRow(RowCursor* cursor, int64_t row);
bool IsFinalRow(RowCursor* cursor, int64_t row);

}  // namespace geardb::engine
