#include "engine/internal/anchors.h"

#include <algorithm>

namespace geardb::engine {

void AnchorUpdate::Found(index::LeafRange leaves) {
  count_ += leaves.size();
  if (!ranges_.empty() && ranges_.back().end == leaves.begin) {
    ranges_.back().end = leaves.end;
  } else {
    ranges_.push_back(leaves);
  }
}

void AnchorUpdate::AddFilled(Slot slot, int64_t before, int64_t filled) {
  if (!priority_->draws_windows()) return AddTrajectory(slot);
  // A window ends no further from its row than this, shifted or not.
  const Extent& extent = priority_->spec().window.extent;
  AddRows(slot, before - extent.before - extent.length - extent.after, filled);
}

void AnchorUpdate::Add(const RowsChange& change, uint64_t set_before) {
  const uint64_t wanted = priority_->required.columns;
  if ((wanted & ~set_before) != 0) {
    AddRows(change.slot, 0, change.new_rows_end);
    AddTrajectory(change.slot);
    return;
  }
  if (!priority_->draws_windows()) {
    if (change.ended) AddTrajectory(change.slot);
    return;
  }
  const WindowRule& rule = priority_->spec().window;
  const index::TrajectoryRecord& record = state_->trajectories().record(change.slot);
  // Where windows cross ends, only the end of the stream ends their episode.
  const bool ended =
      change.ended && (!rule.cross_ends || record.state == index::TrajectoryState::kClosed);
  const int64_t promise = rule.extent.length + rule.extent.after;
  // The last row that a window could stand at so far; an end may take that from it.
  int64_t standing = change.old_rows_end - promise;
  int64_t end = change.new_rows_end;
  if (!ended) {
    // The right side is required: exactly these windows have become complete. Where windows cross
    // ends the one before them, too, if the last row was no step until others followed it.
    standing += rule.cross_ends ? 0 : 1;
    end = change.new_rows_end - promise + 1;
  }
  const bool all = ended && rule.stride_from_end;  // They appear at the end of their episode.
  if (all || rule.left == EdgeRule::kShift) {
    RowCursor cursor(*state_, record);
    const int64_t row = std::max(static_cast<int64_t>(record.first_row),
                                 std::min(change.old_rows_end, change.new_rows_end - 1));
    const int64_t reach = all ? INT64_MAX : rule.extent.before + promise + 1;
    const Episode episode = FindEpisode(&cursor, rule, row, Reach{reach, 1});
    // Windows that stand where the left side has moved them are complete together.
    const bool shifts = rule.left == EdgeRule::kShift && !LeftRequired(rule, episode);
    if (!ended && shifts && end <= episode.begin + rule.extent.before) return;
    standing = all ? episode.begin : FirstRowStandingAt(rule, episode, standing);
  }
  AddRows(change.slot, standing, end);
}

void AnchorUpdate::AddRows(Slot slot, int64_t begin, int64_t end) {
  if (!priority_->draws_windows()) return;
  state_->NotePriorities(number_, slot);
  const index::TrajectoryRecord& record = state_->trajectories().record(slot);
  const WindowRule& rule = priority_->spec().window;
  const index::Selector& selector = priority_->selector();
  RowCursor cursor(*state_, record);
  begin = std::max(begin, static_cast<int64_t>(record.first_row));
  end = std::min(end, static_cast<int64_t>(record.rows_end));
  const bool flags_matter = state_->layout().spec().stream;
  const Reach reach{PlacementReach(rule).left, INT64_MAX};
  const int64_t ready_end =
      priority_->required.empty() ? INT64_MAX : state_->ReadyEnd(*priority_, slot);
  if (ready_end <= 0) return;
  Episode episode;
  int64_t episode_end = begin;  // Rows below it are in `episode`.
  const TableLayout& layout = state_->layout();
  // Where every row may begin a window, those of an episode that do follow one another: what holds
  // at both ends of some rows holds for all of them.
  int64_t unbroken_from = !flags_matter && rule.stride == 1 ? begin : end;
  for (int64_t row = begin; row < end; ++row) {
    if (row >= episode_end) {
      episode = FindEpisode(&cursor, rule, row, reach);
      episode_end = std::max(episode.rows_end, row + 1);
    }
    if (row >= unbroken_from) {
      const int64_t in_page = layout.steps_per_page() - layout.OffsetInPage(row);
      const int64_t rows = std::min({end, episode_end, row + in_page}) - row;
      const uint64_t first = cursor.LeafOf(row);
      const index::LeafRange leaves{first, first + static_cast<uint64_t>(rows)};
      if (IsAnchor(rule, episode, row) && IsAnchor(rule, episode, row + rows - 1) &&
          (ready_end == INT64_MAX ||
           NeededEnd(&cursor, rule, episode, row + rows - 1) <= ready_end) &&
          selector.members().Count(leaves) == 0 && priority_->CountDeleted(leaves) == 0) {
        Found(leaves);
        row += rows - 1;
        continue;
      }
      unbroken_from = row + rows;  // One by one until there.
    }
    const bool anchor =
        IsAnchor(rule, episode, row) && (!flags_matter || MayBeAnchor(&cursor, rule, row));
    const uint64_t leaf = cursor.LeafOf(row);
    const bool member = selector.Contains(leaf);
    if (anchor && !member && !priority_->IsDeleted(leaf)) {
      const bool ready =
          ready_end == INT64_MAX || NeededEnd(&cursor, rule, episode, row) <= ready_end;
      if (ready) Found({leaf, leaf + 1});
    } else if (!anchor && member) {
      priority_->Erase({leaf, leaf + 1});
    }
  }
}

void AnchorUpdate::AddTrajectory(Slot slot) {
  if (priority_->draws_windows()) return;
  state_->NotePriorities(number_, slot);
  const index::TrajectoryRecord& record = state_->trajectories().record(slot);
  const bool ready =
      priority_->required.empty() || state_->ReadyEnd(*priority_, slot) >= state_->StepsEnd(record);
  if (!ready || !state_->IsTrajectoryItem(record)) return;
  uint64_t leaf = slot;
  if (DrawGroups* const groups = priority_->groups()) {
    const bool is_member = groups->GroupOf(slot) != DrawGroups::kNoGroup;
    if (is_member || !state_->JoinGroup(priority_, slot, &leaf)) return;
    state_->NoteItem(number_, leaf);
  } else if (priority_->selector().Contains(slot) || priority_->IsDeleted(slot)) {
    return;
  }
  Found({leaf, leaf + 1});
}

void AnchorUpdate::AddSealed(uint64_t group, GroupEnd why) {
  state_->NoteItem(number_, group);
  if (priority_->groups()->Seal(group, why)) Found({group, group + 1});
}

void AnchorUpdate::Insert(float raw_priority) {
  for (const index::LeafRange& range : ranges_) priority_->Insert(range, raw_priority);
  HideFailing();
  Clear();
}

void AnchorUpdate::Insert(std::span<const float> raw_priorities) {
  std::vector<uint64_t> leaves;
  leaves.reserve(count_);
  for (const index::LeafRange& range : ranges_) {
    for (uint64_t leaf = range.begin; leaf < range.end; ++leaf) leaves.push_back(leaf);
  }
  priority_->Insert(leaves, raw_priorities.first(leaves.size()));
  HideFailing();
  Clear();
}

void AnchorUpdate::Clear() {
  ranges_.clear();
  count_ = 0;
}

bool ItemsMayCome(const TableState& state, const PriorityState& priority, Slot slot) {
  if (priority.required.empty()) return false;
  const index::TrajectoryRecord& record = state.trajectories().record(slot);
  const int64_t ready_end = state.ReadyEnd(priority, slot);
  if (ready_end >= state.StepsEnd(record)) return false;
  if (!priority.draws_windows()) return state.IsTrajectoryItem(record);
  const WindowRule& rule = priority.spec().window;
  const Extent& extent = rule.extent;
  const Reach reach{PlacementReach(rule).left, INT64_MAX};
  const auto rows_end = static_cast<int64_t>(record.rows_end);
  RowCursor cursor(state, record);
  Episode episode;
  int64_t episode_end = INT64_MIN;  // Rows below it are in `episode`.
  // Windows of rows before these are ready, wherever an edge has moved them.
  int64_t row = std::max(static_cast<int64_t>(record.first_row),
                         ready_end - extent.before - extent.length - extent.after);
  for (; row < rows_end; ++row) {
    if (row >= episode_end) {
      episode = FindEpisode(&cursor, rule, row, reach);
      episode_end = std::max(episode.rows_end, row + 1);
    }
    if (IsAnchor(rule, episode, row) && MayBeAnchor(&cursor, rule, row) &&
        NeededEnd(&cursor, rule, episode, row) > ready_end) {
      return true;
    }
  }
  return false;
}

}  // namespace geardb::engine
