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

void AppendPlan::DescribePieces(const PageLayout& layout, const HostArena& arena) {
  const size_t columns = layout.column_count();
  runs.reserve(pages.size() * columns);
  pieces.reserve(pages.size());
  piece_bytes.reserve(pages.size());
  for (const PageRows& page : pages) {
    const std::byte* frame = arena.Resolve(page.frame);
    for (size_t c = 0; c < columns; ++c) {
      runs.emplace_back(frame + layout.FrameOffset(c, page.offset),
                        layout.region(c).row_bytes * page.count);
    }
    piece_bytes.push_back(layout.bytes_per_step() * page.count);
  }
  for (size_t i = 0; i < pages.size(); ++i) {
    pieces.push_back({.runs = std::span(runs).subspan(i * columns, columns)});
  }
}

std::vector<PartOfPieces> AppendPlan::Parts(uint64_t record_bytes_max) const {
  std::vector<PartOfPieces> split;
  const auto size_of = [&](size_t first, size_t count) {
    return wal::RecordSize::For(0, std::span(piece_bytes).subspan(first, count));
  };
  for (size_t first = 0; first < piece_bytes.size(); first += split.back().count) {
    size_t count = 1;
    while (first + count < piece_bytes.size() &&
           size_of(first, count + 1).total() <= record_bytes_max) {
      ++count;
    }
    split.push_back({first, count, size_of(first, count)});
  }
  return split;
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
  for (size_t c = 0; c < layout.step_columns().size(); ++c) {
    const uint64_t row_bytes = layout.step_columns()[c].row_bytes;
    const DType dtype = layout.step_columns()[c].dtype;
    std::byte* into = copy.frame + layout.pages().FrameOffset(c, copy.page->offset);
    if (user_end > begin) {
      CopyElements(dtype, into,
                   {call.columns[c] + begin * row_bytes, (user_end - begin) * row_bytes});
      into += (user_end - begin) * row_bytes;
    }
    if (end == user_end) continue;
    if (call.final_columns[c] != nullptr) {
      CopyElements(dtype, into, {call.final_columns[c], row_bytes});
    } else {
      std::memset(into, 0, row_bytes);
    }
  }
  if (!layout.flags_column()) return;
  std::byte* flags =
      copy.frame + layout.pages().FrameOffset(*layout.flags_column(), copy.page->offset);
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

uint64_t CountNewItems(const TableState& state, const NewItemsOf& of, const Lane& lane,
                       const LaneRows& call) {
  const PriorityState& priority = state.priority(of.priority_table);
  const TableSpec& table = state.layout().spec();
  const bool ended = call.end != End::kGo;
  if (!priority.draws_windows()) return ended && !table.stream ? 1 : 0;

  const WindowRule& rule = priority.spec().window;
  const bool has_record = lane.id != 0;
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
  if (ended && rule.stride_from_end) row = episode.begin;
  uint64_t items = 0;
  for (; row < episode.rows_end; ++row) {
    if (!IsAnchor(rule, episode, row)) continue;
    if (row < old_end) {
      if (table.stream && !MayBeAnchor(&cursor, rule, row)) continue;
      if (priority.selector().Contains(cursor.LeafOf(row))) continue;
    }
    ++items;
  }
  return items;
}

}  // namespace geardb::engine
