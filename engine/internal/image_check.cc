#include "engine/internal/image_check.h"

#include <algorithm>
#include <bit>

#include "engine/internal/episode.h"
#include "engine/internal/image_draw_groups.h"
#include "engine/internal/image_items.h"
#include "engine/internal/table_plan.h"

namespace geardb::engine {

std::string CheckTrajectory(const TableLayout& layout, const index::TrajectoryRecord& record,
                            Lsn lsn) {
  using index::TrajectoryState;
  const TableSpec& spec = layout.spec();
  if (record.generation == 0) return "it has no generation";
  if (record.id == 0 || record.id >= kIdsEnd) return "its id is " + std::to_string(record.id);
  const bool rows_fit = record.first_row < record.rows_end &&
                        ((record.rows_end - 1) >> layout.steps_shift()) < index::kNoPage;
  if (!rows_fit) {
    return "it has rows " + std::to_string(record.first_row) + " to " +
           std::to_string(record.rows_end);
  }
  const bool closed = record.state == TrajectoryState::kClosed;
  if (!closed && record.state != TrajectoryState::kOpen &&
      record.state != TrajectoryState::kOrphaned) {
    return "its state is " + std::to_string(static_cast<int>(record.state));
  }
  const bool ended =
      record.end == End::kTerminated || record.end == End::kTruncated || record.end == End::kCut;
  if (ended != closed || (!ended && record.end != End::kGo)) {
    return std::string(closed ? "closed" : "open") + ", its end is " +
           std::to_string(static_cast<int>(record.end));
  }
  const bool final_stored = (record.flags & index::kFinalRowStored) != 0;
  // In a stream the flags of the last row say it.
  const bool final_fits =
      spec.stream ? spec.final_row || !final_stored : final_stored == (closed && spec.final_row);
  if ((record.flags & ~index::kFinalRowStored) != 0 || !final_fits) {
    return "its flags are " + std::to_string(record.flags);
  }
  const uint64_t columns = layout.trajectory_columns().size();
  if (columns < index::kColumnsSetBits && (record.columns_set >> columns) != 0) {
    return "it sets columns that the table does not have";
  }
  return record.last_lsn < lsn ? "" : "its last record is " + std::to_string(record.last_lsn);
}

std::string CheckGroupPage(const GroupLayout& group, const index::GroupPageRecord& record,
                           const PageOfTrajectory& page, Lsn lsn) {
  uint64_t rows = page.rows;
  if (group.late) rows = std::min(rows, std::max(page.filled, page.first) - page.first);
  const bool written = record.birth_lsn != kNoLsn;
  // Of a late group, rows that were trimmed before anybody wrote them count as filled.
  const bool may_be_unwritten = group.late ? page.filled <= page.first : group.added;
  // In one that came later, a page may have rows without it, before and behind those with it.
  const bool fills =
      record.rows_filled == rows ||
      (group.added && !group.late && record.rows_filled > 0 && record.rows_filled < rows);
  if (written ? !fills : record.rows_filled != 0 || !may_be_unwritten) {
    return "it has " + std::to_string(record.rows_filled) + " of " + std::to_string(rows) + " rows";
  }
  if ((record.flags & ~kPageFlagsSaved) != 0) {
    return "its flags are " + std::to_string(record.flags);
  }
  const bool in_log = written && group.logged();
  const bool pieces_fit = in_log ? record.piece_count >= 1 : record.piece_count == 0;
  const bool lsns_fit = (!written || record.birth_lsn < lsn) &&
                        (in_log ? record.newest_lsn >= record.birth_lsn && record.newest_lsn < lsn
                                : record.newest_lsn == kNoLsn);
  if (!pieces_fit || !lsns_fit) {
    return "it has " + std::to_string(record.piece_count) + " pieces, from LSN " +
           std::to_string(record.birth_lsn) + " to " + std::to_string(record.newest_lsn);
  }
  // It lies in the newest record, or in a part of it, before.
  if (record.piece_at != kNoLsn && !(in_log && record.piece_at < lsn)) {
    return "its piece is at " + std::to_string(record.piece_at);
  }
  return "";
}

namespace {

/// The row after one with these flags begins an episode.
bool EndsEpisode(const TableSpec& spec, uint8_t flags) {
  if ((flags & kRowEndMask) == 0) return false;
  // The step before a final row carries its end, too.
  return !spec.final_row || (flags & kRowFinal) != 0;
}

}  // namespace

std::string CheckRowFlags(const TableState& state, const index::TrajectoryRecord& record,
                          uint64_t* final_rows) {
  const TableSpec& spec = state.layout().spec();
  RowCursor cursor(state, record);
  const auto first = static_cast<int64_t>(record.first_row);
  const auto rows_end = static_cast<int64_t>(record.rows_end);
  *final_rows = 0;
  uint8_t before = 0;
  for (int64_t row = first; row < rows_end; ++row) {
    const uint8_t flags = cursor.FlagsOf(row);
    const uint8_t end = flags & kRowEndMask;
    const bool final_row = (flags & kRowFinal) != 0;
    const bool follows_step =
        row > first && !EndsEpisode(spec, before) && before != 0 && (before & kRowEndMask) != 0;
    bool fits = (flags & ~(kRowFirst | kRowFinal | kRowEndMask)) == 0 && std::popcount(end) <= 1 &&
                (!final_row || (spec.final_row && end != 0));
    if (row > first) fits &= ((flags & kRowFirst) != 0) == EndsEpisode(spec, before);
    if (row == 0) fits &= (flags & kRowFirst) != 0;
    // Behind the last step of an episode that has one, the final row.
    if (follows_step) fits &= final_row && end == (before & kRowEndMask);
    // A cut's row is its own final row; others stand behind a step.
    if (spec.final_row && end == kRowCut) fits &= final_row;
    if (final_row && end != kRowCut) fits &= row > first ? follows_step : row > 0;
    if (!fits) {
      return "the flags of row " + std::to_string(row) + " are " + std::to_string(flags) +
             ", behind " + std::to_string(before);
    }
    *final_rows += final_row ? 1 : 0;
    before = flags;
  }
  const bool closed = record.state == index::TrajectoryState::kClosed;
  const bool final_stored = (record.flags & index::kFinalRowStored) != 0;
  const bool ends = (before & kRowEndMask) == 0 || EndsEpisode(spec, before);
  if (!ends || (closed && (before & kRowEndMask) == 0) ||
      final_stored != ((before & kRowFinal) != 0)) {
    return "its last row has the flags " + std::to_string(before);
  }
  return "";
}

namespace {

/// Counts the members in the pages of a trajectory; the first leaf that is no anchor goes to `bad`.
uint64_t CountAnchors(const TableState& state, const PriorityState& priority, Slot slot,
                      uint64_t* bad) {
  const TableLayout& layout = state.layout();
  const index::TrajectoryRecord& record = state.trajectories().record(slot);
  const WindowRule& rule = priority.spec().window;
  const Reach reach{PlacementReach(rule).left, INT64_MAX};
  const bool flags_matter = layout.spec().stream;
  const bool ready = priority.required.empty() || state.ReadyEnd(priority, slot) > 0;
  RowCursor cursor(state, record);
  Episode episode;
  int64_t episode_end = INT64_MIN;  // Rows below it, from the last member on, are in `episode`.
  uint64_t members = 0;
  for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state.pages().page(lpn).next) {
    const uint64_t first_leaf = layout.Leaf(lpn, 0);
    const int64_t first_row = int64_t{state.pages().page(lpn).page_number} << layout.steps_shift();
    const auto visit = [&](uint64_t leaf) {
      ++members;
      const int64_t row = first_row + static_cast<int64_t>(leaf - first_leaf);
      const bool there = row >= static_cast<int64_t>(record.first_row) &&
                         row < static_cast<int64_t>(record.rows_end);
      if (there && row >= episode_end) {
        episode = FindEpisode(&cursor, rule, row, reach);
        episode_end = std::max(episode.rows_end, row + 1);
      }
      const bool anchor = there && ready && IsAnchor(rule, episode, row) &&
                          (!flags_matter || MayBeAnchor(&cursor, rule, row));
      if (!anchor) *bad = std::min(*bad, leaf);
    };
    priority.selector().ForEachMember({first_leaf, first_leaf + layout.steps_per_page()}, visit);
  }
  return members;
}

/// The first member whose place is free.
uint64_t FirstWithoutPlace(const TableState& state, const PriorityState& priority) {
  uint64_t found = UINT64_MAX;
  priority.selector().ForEachMember({0, priority.selector().reserved()}, [&](uint64_t leaf) {
    uint32_t generation = 0;
    if (!state.GenerationOfLeaf(priority, leaf, &generation)) found = std::min(found, leaf);
  });
  return found;
}

/// The first deleted leaf that no row, or trajectory, has.
uint64_t FirstDeletedWithoutPlace(const TableState& state, const PriorityState& priority) {
  uint64_t found = UINT64_MAX;
  const TableLayout& layout = state.layout();
  priority.ForEachDeleted([&](uint64_t leaf) {
    uint32_t generation = 0;
    bool there = state.GenerationOfLeaf(priority, leaf, &generation);
    if (there && priority.draws_windows()) {
      const index::PageRecord& page = state.pages().page(layout.LpnOfLeaf(leaf));
      const uint64_t row = (uint64_t{page.page_number} << layout.steps_shift()) +
                           (leaf & (layout.steps_per_page() - 1));
      there = row < state.trajectories().record(page.slot).rows_end;
    }
    if (!there) found = std::min(found, leaf);
  });
  return found;
}

/// Items that are trajectories, or windows; `bad` is the first that cannot be one.
uint64_t CountItems(const TableState& state, const PriorityState& priority, uint64_t* bad) {
  uint64_t members = 0;
  state.trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    if (priority.draws_windows()) {
      members += CountAnchors(state, priority, slot, bad);
    } else if (priority.selector().Contains(slot)) {
      ++members;
      const bool ready =
          priority.required.empty() || state.ReadyEnd(priority, slot) >= state.StepsEnd(record);
      if (!ready || !state.IsTrajectoryItem(record)) *bad = std::min<uint64_t>(*bad, slot);
    }
  });
  return members;
}

}  // namespace

Status CheckItems(const TableState& state, uint32_t priority_table, uint64_t chunk_bytes) {
  const PriorityState& priority = state.priority(priority_table);
  uint64_t members = priority.selector().count();
  uint64_t bad = UINT64_MAX;
  if (priority.groups() != nullptr) {
    const GroupsImage groups(state.layout().id(), priority_table, chunk_bytes);
    GEARDB_RETURN_IF_ERROR(groups.Check(state, priority));
  } else {
    members = CountItems(state, priority, &bad);
  }
  if (members != priority.selector().count()) {
    bad = std::min(bad, FirstWithoutPlace(state, priority));
  }
  const ItemsImage items(state.layout().id(), priority_table, chunk_bytes);
  const uint64_t deleted = FirstDeletedWithoutPlace(state, priority);
  if (deleted != UINT64_MAX) {
    return BadChunk(items.ChunkOf(priority, deleted), "leaf ", deleted, " of priority table '",
                    priority.spec().name, "' is deleted, and nothing lies there");
  }
  if (bad == UINT64_MAX) return Status::Ok();
  return BadChunk(items.ChunkOf(priority, bad), "the item at leaf ", bad,
                  " cannot be one of priority table '", priority.spec().name, "'");
}

}  // namespace geardb::engine
