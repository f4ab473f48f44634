#include "engine/internal/append_plan.h"

#include <algorithm>
#include <cstring>

#include "engine/internal/episode.h"

namespace geardb::engine {

uint8_t FlagsOfStoredRow(const TableLayout& layout, const StoredRows& rows, uint64_t number) {
  uint8_t flags = number == 0 && rows.begins_episode ? kRowFirst : uint8_t{0};
  if (number + 1 >= rows.steps) flags |= FlagOfEnd(rows.end);
  const bool final_row = number >= rows.steps;
  const bool cut_is_final =
      rows.end == End::kCut && layout.spec().final_row && number + 1 == rows.steps;
  if (final_row || cut_is_final) flags |= kRowFinal;
  return flags;
}

void AppendPlan::DescribePieces(const TableLayout& layout, const HostArena& arena) {
  const auto groups = layout.appended_groups();
  const size_t piece_count = pages.size() * layout.logged_groups().size();
  runs.clear();
  places.assign(pages.size() * groups.size(), {});
  pieces.clear();
  piece_bytes.clear();
  pieces.reserve(piece_count);
  piece_bytes.reserve(piece_count);
  for (size_t i = 0; i < pages.size(); ++i) {
    const PageRows& page = pages[i];
    for (size_t a = 0; a < groups.size(); ++a) {
      const GroupLayout& group = layout.group(groups[a]);
      if (!group.logged()) continue;
      const std::byte* frame = arena.Resolve(frames[i * groups.size() + a]);
      for (size_t c = 0; c < group.pages.column_count(); ++c) {
        runs.emplace_back(frame + group.pages.FrameOffset(c, page.offset),
                          group.pages.region(c).row_bytes * page.count);
      }
      piece_bytes.push_back(group.pages.bytes_per_step() * page.count);
    }
  }
  size_t first = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const GroupLayout& group = layout.group(groups[i % groups.size()]);
    if (!group.logged()) continue;
    const size_t columns = group.pages.column_count();
    pieces.push_back({.runs = std::span(runs).subspan(first, columns), .place = &places[i]});
    first += columns;
  }
}

wal::RecordSize AppendPlan::SizeWith(uint64_t body_bytes) const {
  if (in_parts) return wal::RecordSize::For(body_bytes, {}, pieces.size());
  return wal::RecordSize::For(body_bytes, piece_bytes);
}

void AppendPlan::Clear() {
  constexpr size_t kPagesKept = 64;
  AppendPlan was = std::exchange(*this, AppendPlan());
  if (was.pages.capacity() > kPagesKept || was.calls.capacity() > kPagesKept) return;
  const auto keep = [](auto* memory, auto* vector) {
    memory->clear();
    vector->swap(*memory);
  };
  keep(&was.calls, &calls);
  keep(&was.pages, &pages);
  keep(&was.frames, &frames);
  keep(&was.new_frames, &new_frames);
  keep(&was.previous_lsns, &previous_lsns);
  keep(&was.places, &places);
  keep(&was.runs, &runs);
  keep(&was.pieces, &pieces);
  keep(&was.piece_bytes, &piece_bytes);
}

void CopyRowsIntoPage(const PageCopy& copy) {
  const TableLayout& layout = *copy.layout;
  const LaneRows& call = *copy.call;
  const uint64_t begin = copy.rows_done;
  const uint64_t end = begin + copy.page->count;
  const uint64_t user_end = std::min<uint64_t>(end, call.rows);
  const auto groups = layout.appended_groups();
  size_t place = 0;
  for (size_t c = 0; c < layout.step_columns().size(); ++c) {
    const StepColumn& column = layout.step_columns()[c];
    if (layout.group(column.group).late || layout.group(column.group).dropped) continue;
    while (groups[place] != column.group) place = (place + 1) % groups.size();
    const uint64_t row_bytes = column.row_bytes;
    const DType dtype = column.dtype;
    std::byte* into = copy.frames[place] + layout.RowOffset(c, copy.page->offset);
    if (user_end > begin) {
      const uint64_t bytes = (user_end - begin) * row_bytes;
      if (column.dropped) {
        FillElements(dtype, column.default_bits, {into, bytes});
      } else {
        CopyElements(dtype, into, {call.columns[c] + begin * row_bytes, bytes});
      }
      into += bytes;
    }
    if (end == user_end) continue;
    if (call.final_columns[c] != nullptr) {
      CopyElements(dtype, into, {call.final_columns[c], row_bytes});
    } else {
      FillElements(dtype, column.default_bits, {into, row_bytes});
    }
  }
  if (!layout.flags_column()) return;
  std::byte* flags = copy.frames[0] + layout.FlagsOffset(copy.page->offset);
  const StoredRows stored{call.rows, call.end, copy.begins_episode};
  for (uint64_t row = begin; row < end; ++row) {
    flags[row - begin] = std::byte{FlagsOfStoredRow(layout, stored, row)};
  }
}

std::optional<uint32_t> FindPriorityTable(const TableState& state, std::string_view name) {
  for (size_t i = 0; i < state.priority_table_count(); ++i) {
    if (state.priority(i).spec().name == name) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

namespace {

/// A trajectory as it is before a call, and how far its rows are ready once the call has set its
/// columns.
struct Stored {
  const TableState& state;
  const PriorityState& priority;
  int64_t rows_end = 0;
  int64_t ready_end = INT64_MAX;
};

/// A row that is an anchor of the episode, and was no item before.
bool BecomesItem(const Stored& stored, RowCursor* cursor, const Episode& episode, int64_t row) {
  const WindowRule& rule = stored.priority.spec().window;
  if (!IsAnchor(rule, episode, row)) return false;
  if (row < stored.rows_end) {
    const bool flags_matter = stored.state.layout().spec().stream;
    if (flags_matter && !MayBeAnchor(cursor, rule, row)) return false;
    const uint64_t leaf = cursor->LeafOf(row);
    if (stored.priority.selector().Contains(leaf) || stored.priority.IsDeleted(leaf)) return false;
  }
  if (stored.ready_end == INT64_MAX) return true;
  // Steps of the call are filled by nobody yet.
  const PlacedWindow window = PlaceWindow(rule, episode, row);
  const int64_t end = window.anchor + window.steps + rule.extent.after;
  if (std::min(end, episode.steps_end) > stored.rows_end) return false;
  return NeededEnd(cursor, rule, episode, row) <= stored.ready_end;
}

/// Of the rows [begin, end) of a stream, whose episodes have ended.
uint64_t CountInEnded(const Stored& stored, RowCursor* cursor, int64_t begin, int64_t end) {
  const WindowRule& rule = stored.priority.spec().window;
  const Reach reach{PlacementReach(rule).left, INT64_MAX};
  Episode episode;
  uint64_t items = 0;
  for (int64_t row = begin; row < end; ++row) {
    if (row == begin || row >= episode.rows_end) episode = FindEpisode(cursor, rule, row, reach);
    items += BecomesItem(stored, cursor, episode, row) ? 1u : 0u;
  }
  return items;
}

/// The per-trajectory columns that are set once the call is there.
uint64_t ColumnsSet(const LaneRows& call, uint64_t before) {
  uint64_t set = before;
  for (size_t c = 0; c < std::min<size_t>(call.trajectory.size(), 64); ++c) {
    if (call.trajectory[c] != nullptr) set |= uint64_t{1} << c;
  }
  return set;
}

}  // namespace

uint64_t CountNewItems(const TableState& state, const NewItemsOf& of, const Lane& lane,
                       const LaneRows& call) {
  const PriorityState& priority = state.priority(of.priority_table);
  const bool has_record = lane.id != 0;
  const TableSpec& table = state.layout().spec();
  const bool ended = call.end != End::kGo;
  // Rows that nobody has patched wait for that; what a call sets may be all that is waited for.
  const uint64_t set_before = has_record ? state.trajectories().record(lane.slot).columns_set : 0;
  const uint64_t set = ColumnsSet(call, set_before);
  if ((priority.required.columns & ~set) != 0) return 0;
  Stored stored{state, priority, lane.rows_end};
  if (!priority.required.groups.empty()) {
    stored.ready_end = has_record ? state.ReadyEnd(priority, lane.slot, set) : 0;
    if (stored.ready_end <= 0) return 0;
  }
  if (!priority.draws_windows()) {
    const bool last_is_final = table.final_row && call.end == End::kCut;
    const auto steps = static_cast<int64_t>(call.rows) - (last_is_final ? 1 : 0);
    return ended && !table.stream && stored.ready_end >= lane.rows_end + steps ? 1 : 0;
  }

  const WindowRule& rule = priority.spec().window;
  const index::TrajectoryRecord empty;
  const index::TrajectoryRecord& record =
      has_record ? state.trajectories().record(lane.slot) : empty;
  RowCursor cursor(state, record);
  const auto first = static_cast<int64_t>(of.first_row);
  const int64_t old_end = lane.rows_end;
  const auto rows = static_cast<int64_t>(call.rows + (call.final_columns.empty() ? 0 : 1));
  const bool by_flags = table.stream && !rule.cross_ends;

  Episode episode;
  episode.begin = first;
  episode.head_missing = first > 0;
  episode.rows_end = old_end + rows;
  episode.open = table.stream && rule.cross_ends ? true : !ended;
  if (by_flags) {
    episode.begin = old_end;
    if (!lane.episode_ended) {
      while (episode.begin > first &&
             (episode.begin == old_end || (cursor.FlagsOf(episode.begin) & kRowFirst) == 0)) {
        --episode.begin;
      }
    }
    episode.head_missing = episode.begin == first && first > 0 && episode.begin < old_end &&
                           (cursor.FlagsOf(first) & kRowFirst) == 0;
  }
  const bool cut_short = call.end == End::kTruncated || call.end == End::kCut;
  const bool last_is_final = !call.final_columns.empty() ||
                             (table.final_row && call.end == End::kCut) ||
                             (!table.final_row && cut_short && rule.extent.after >= 1);
  episode.steps_end = episode.rows_end - (ended && last_is_final ? 1 : 0);

  const int64_t promise = rule.extent.length + rule.extent.after;
  int64_t row = FirstRowStandingAt(rule, episode, old_end - promise);
  // With what is set now come rows from before it, too.
  const bool waited = (priority.required.columns & ~set_before) != 0;
  if (waited || (ended && rule.stride_from_end)) row = episode.begin;
  uint64_t items = waited ? CountInEnded(stored, &cursor, first, episode.begin) : 0;
  for (; row < episode.rows_end; ++row) {
    items += BecomesItem(stored, &cursor, episode, row) ? 1u : 0u;
  }
  return items;
}

}  // namespace geardb::engine
