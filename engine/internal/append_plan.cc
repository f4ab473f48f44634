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

/// Anchors among the rows [begin, end) of a stream, whose episodes have ended.
uint64_t CountAnchors(RowCursor* cursor, const PriorityState& priority, int64_t begin,
                      int64_t end) {
  const WindowRule& rule = priority.spec().window;
  const Reach reach{PlacementReach(rule).left, INT64_MAX};
  Episode episode;
  uint64_t anchors = 0;
  for (int64_t row = begin; row < end; ++row) {
    if (row == begin || row >= episode.rows_end) episode = FindEpisode(cursor, rule, row, reach);
    if (!IsAnchor(rule, episode, row) || !MayBeAnchor(cursor, rule, row)) continue;
    anchors += priority.IsDeleted(cursor->LeafOf(row)) ? 0u : 1u;
  }
  return anchors;
}

}  // namespace

uint64_t CountNewItems(const TableState& state, const NewItemsOf& of, const Lane& lane,
                       const LaneRows& call) {
  const PriorityState& priority = state.priority(of.priority_table);
  const bool has_record = lane.id != 0;
  const TableSpec& table = state.layout().spec();
  const bool ended = call.end != End::kGo;
  // Rows that nobody has patched wait for that; what a call sets may be all that is waited for.
  if (!priority.required.groups.empty()) return 0;
  uint64_t set = has_record ? state.trajectories().record(lane.slot).columns_set : 0;
  for (size_t c = 0; c < std::min<size_t>(call.trajectory.size(), 64); ++c) {
    if (call.trajectory[c] != nullptr) set |= uint64_t{1} << c;
  }
  if ((priority.required.columns & ~set) != 0) return 0;
  if (!priority.draws_windows()) return ended && !table.stream ? 1 : 0;

  const WindowRule& rule = priority.spec().window;
  const index::TrajectoryRecord empty;
  const index::TrajectoryRecord& record =
      has_record ? state.trajectories().record(lane.slot) : empty;
  RowCursor cursor(state, record);
  const auto first = static_cast<int64_t>(of.first_row);
  const int64_t old_end = lane.rows_end;
  const auto stored = static_cast<int64_t>(call.rows + (call.final_columns.empty() ? 0 : 1));
  const bool by_flags = table.stream && !rule.cross_ends;

  Episode episode;
  episode.begin = first;
  episode.head_missing = first > 0;
  episode.rows_end = old_end + stored;
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
  const bool waited = has_record && (priority.required.columns & ~record.columns_set) != 0;
  if (waited || (ended && rule.stride_from_end)) row = episode.begin;
  uint64_t items = waited ? CountAnchors(&cursor, priority, first, episode.begin) : 0;
  for (; row < episode.rows_end; ++row) {
    if (!IsAnchor(rule, episode, row)) continue;
    if (row < old_end) {
      if (table.stream && !MayBeAnchor(&cursor, rule, row)) continue;
      const uint64_t leaf = cursor.LeafOf(row);
      if (priority.selector().Contains(leaf) || priority.IsDeleted(leaf)) continue;
    }
    ++items;
  }
  return items;
}

}  // namespace geardb::engine
