#include "engine/internal/episode.h"

#include <algorithm>

namespace geardb::engine {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 62;

}  // namespace

Lpn RowCursor::PageOf(int64_t row) {
  const uint32_t wanted = state_->layout().PageNumber(row);
  if (lpn_ != kNoLpn) {
    if (wanted == page_number_) return lpn_;
    const index::PageRecord& page = state_->pages().page(lpn_);
    if (wanted == page_number_ + 1) {
      lpn_ = page.next;
    } else if (wanted + 1 == page_number_) {
      lpn_ = page.prev;
    } else {
      lpn_ = state_->pages().Find(TableState::ListOf(*record_), wanted);
    }
  } else {
    lpn_ = state_->pages().Find(TableState::ListOf(*record_), wanted);
  }
  GEARDB_CHECK(lpn_ != kNoLpn);
  page_number_ = wanted;
  return lpn_;
}

uint8_t RowCursor::FlagsOf(int64_t row) {
  return state_->pages().row_flags(PageOf(row))[state_->layout().OffsetInPage(row)];
}

Episode FindEpisode(RowCursor* cursor, const WindowRule& rule, int64_t row, Reach reach) {
  const TableLayout& layout = cursor->state().layout();
  const bool bounded_by_flags = layout.spec().stream && !rule.cross_ends;
  Episode episode = EpisodeOfAll(layout, cursor->record(), rule);
  if (layout.spec().stream && !bounded_by_flags && episode.rows_end > episode.begin) {
    // The last row is a step, or not, by what it carries itself.
    RowCursor tail(cursor->state(), cursor->record(), cursor->record().tail_lpn);
    episode.steps_end = episode.rows_end - (MayBeAnchor(&tail, rule, episode.rows_end - 1) ? 0 : 1);
  }
  if (!bounded_by_flags) return episode;

  const int64_t first = episode.begin;
  const int64_t rows_end = episode.rows_end;
  int64_t begin = row;
  const int64_t left_limit = std::max(first, row - std::min(reach.left, kNoLimit));
  while (begin > left_limit && (cursor->FlagsOf(begin) & kRowFirst) == 0) --begin;
  episode.begin = begin;
  episode.head_missing = begin == first && first > 0 && (cursor->FlagsOf(begin) & kRowFirst) == 0;

  const int64_t right_limit =
      reach.right >= rows_end - row ? rows_end : std::max(row + 1, row + reach.right);
  episode.open = true;
  episode.rows_end = episode.steps_end = right_limit;
  for (int64_t last = row; last < right_limit; ++last) {
    const uint8_t flags = cursor->FlagsOf(last);
    if ((flags & kRowEndMask) == 0) continue;
    episode.open = false;
    if ((flags & kRowFinal) != 0) {
      // A cut, or the caller stands on the final row itself.
      episode.steps_end = last;
      episode.rows_end = last + 1;
    } else if (layout.spec().final_row) {
      episode.steps_end = last + 1;
      // Flags come from the log: they may speak of a final row that is not there.
      episode.rows_end = std::min(last + 2, rows_end);
    } else {
      episode.rows_end = last + 1;
      episode.steps_end = last + (PlaysFinalRow(layout, rule, EndOfFlags(flags)) ? 0 : 1);
    }
    break;
  }
  return episode;
}

Reach PlacementReach(const WindowRule& rule) {
  const Extent& extent = rule.extent;
  Reach reach{extent.before + 1, extent.length + extent.after + 1};
  if (rule.right == EdgeRule::kShift) reach.left += extent.length + extent.after;
  if (rule.left == EdgeRule::kShift) reach.right += extent.before;
  if (rule.stride_from_end) reach.right = kNoLimit;
  return reach;
}

bool MayBeAnchor(RowCursor* cursor, const WindowRule& rule, int64_t row) {
  const TableLayout& layout = cursor->state().layout();
  if (!layout.spec().stream) return true;  // Episode::steps_end says it.
  const uint8_t flags = cursor->FlagsOf(row);
  return (flags & kRowFinal) == 0 && !PlaysFinalRow(layout, rule, EndOfFlags(flags));
}

WindowRule TrajectoryRule(const TableState& state, const index::TrajectoryRecord& record) {
  WindowRule rule;
  rule.extent.length = state.StepsEnd(record) - static_cast<int64_t>(record.first_row);
  rule.extent.after = static_cast<int64_t>(record.rows_end) - state.StepsEnd(record);
  rule.left = EdgeRule::kClip;
  rule.right = EdgeRule::kClip;
  rule.cross_ends = true;
  return rule;
}

Episode TrajectoryEpisode(const TableState& state, const index::TrajectoryRecord& record) {
  Episode episode;
  episode.begin = static_cast<int64_t>(record.first_row);
  episode.steps_end = state.StepsEnd(record);
  episode.rows_end = static_cast<int64_t>(record.rows_end);
  return episode;
}

int64_t NeededEnd(RowCursor* cursor, const WindowRule& rule, const Episode& episode, int64_t row) {
  const PlacedWindow window = PlaceWindow(rule, episode, row);
  const int64_t shown_end = window.anchor + window.steps;
  int64_t end = std::min(shown_end + rule.extent.after, episode.steps_end);
  while (end > shown_end && !MayBeAnchor(cursor, rule, end - 1)) --end;
  return end;
}

End EndOfRow(RowCursor* cursor, int64_t row) {
  const TableState& state = cursor->state();
  const index::TrajectoryRecord& record = cursor->record();
  if (state.layout().spec().stream) return EndOfFlags(cursor->FlagsOf(row));
  if (record.state != index::TrajectoryState::kClosed) return End::kGo;
  const int64_t rows_end = static_cast<int64_t>(record.rows_end);
  const int64_t steps_end = state.StepsEnd(record);
  if (row == rows_end - 1) return record.end;
  // The last step's row carries the end as well, unless the final row is the cut row itself.
  return row == steps_end - 1 && record.end != End::kCut ? record.end : End::kGo;
}

bool IsFirstRow(RowCursor* cursor, int64_t row) {
  if (cursor->state().layout().spec().stream) return (cursor->FlagsOf(row) & kRowFirst) != 0;
  return row == 0;
}

bool IsFinalRow(RowCursor* cursor, int64_t row) {
  if (cursor->state().layout().spec().stream) return (cursor->FlagsOf(row) & kRowFinal) != 0;
  return row >= cursor->state().StepsEnd(cursor->record());
}

}  // namespace geardb::engine
