#include "engine/internal/anchors.h"

#include <algorithm>

namespace geardb::engine {

void AnchorUpdate::Found(uint64_t leaf) {
  ++count_;
  if (!ranges_.empty() && ranges_.back().end == leaf) {
    ++ranges_.back().end;
  } else {
    ranges_.push_back({leaf, leaf + 1});
  }
}

void AnchorUpdate::Add(const RowsChange& change) {
  if (!priority_->draws_windows()) {
    if (change.ended) AddTrajectory(change.slot);
    return;
  }
  const WindowRule& rule = priority_->spec().window;
  const int64_t promise = rule.extent.length + rule.extent.after;
  const index::TrajectoryRecord& record = state_->trajectories().record(change.slot);
  const auto first = static_cast<int64_t>(record.first_row);
  if (!change.ended) {
    // The right side is required: exactly these rows have become complete. Where windows cross ends
    // the row before them, too, if the last row was no step until others followed it.
    const int64_t waited = rule.cross_ends ? 1 : 0;
    AddRows(change.slot, std::max(first, change.old_rows_end - promise + 1 - waited),
            change.new_rows_end - promise + 1);
    return;
  }
  int64_t begin = change.old_rows_end - promise;
  if (rule.stride_from_end) {
    // All of the episode's anchors appear at its end.
    begin = first;
    if (state_->layout().spec().stream && !rule.cross_ends) {
      RowCursor cursor(*state_, record);
      begin = std::max(first, std::min(change.old_rows_end, change.new_rows_end - 1));
      while (begin > first && (cursor.FlagsOf(begin) & kRowFirst) == 0) --begin;
    }
  }
  AddRows(change.slot, std::max(first, begin), change.new_rows_end);
}

void AnchorUpdate::AddRows(Slot slot, int64_t begin, int64_t end) {
  if (!priority_->draws_windows()) return;
  const index::TrajectoryRecord& record = state_->trajectories().record(slot);
  const WindowRule& rule = priority_->spec().window;
  index::Selector& selector = priority_->selector();
  RowCursor cursor(*state_, record);
  begin = std::max(begin, static_cast<int64_t>(record.first_row));
  end = std::min(end, static_cast<int64_t>(record.rows_end));
  const bool flags_matter = state_->layout().spec().stream;
  Episode episode;
  int64_t episode_end = begin;  // Rows below it are in `episode`.
  for (int64_t row = begin; row < end; ++row) {
    if (row >= episode_end) {
      episode = FindEpisode(&cursor, rule, row, Reach{rule.extent.before + 1, INT64_MAX});
      episode_end = std::max(episode.rows_end, row + 1);
    }
    const bool anchor =
        IsAnchor(rule, episode, row) && (!flags_matter || MayBeAnchor(&cursor, rule, row));
    const uint64_t leaf = cursor.LeafOf(row);
    const bool member = selector.Contains(leaf);
    if (anchor && !member) {
      Found(leaf);
    } else if (!anchor && member) {
      selector.Erase({leaf, leaf + 1});
    }
  }
}

void AnchorUpdate::AddTrajectory(Slot slot) {
  if (priority_->draws_windows()) return;
  const index::TrajectoryRecord& record = state_->trajectories().record(slot);
  if (state_->IsTrajectoryItem(record) && !priority_->selector().Contains(slot)) Found(slot);
}

void AnchorUpdate::Insert(float raw_priority) {
  for (const index::LeafRange& range : ranges_) priority_->selector().Insert(range, raw_priority);
  Clear();
}

void AnchorUpdate::Insert(std::span<const float> raw_priorities) {
  std::vector<uint64_t> leaves;
  leaves.reserve(count_);
  for (const index::LeafRange& range : ranges_) {
    for (uint64_t leaf = range.begin; leaf < range.end; ++leaf) leaves.push_back(leaf);
  }
  priority_->selector().Insert(leaves, raw_priorities.first(leaves.size()));
  Clear();
}

void AnchorUpdate::Clear() {
  ranges_.clear();
  count_ = 0;
}

}  // namespace geardb::engine
