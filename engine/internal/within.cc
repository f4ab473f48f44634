#include "engine/internal/within.h"

#include <algorithm>

namespace geardb::engine {
namespace {

/// The least of [0, count] that `holds`, or count; it holds for all behind the first.
template <typename Holds>
int64_t FirstThat(int64_t count, Holds holds) {
  int64_t begin = 0;
  int64_t end = count;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

}  // namespace

AnchorRows::AnchorRows(const TableState& state, const WindowRule& rule, Slot slot) {
  const index::TrajectoryRecord& record = state.trajectories().record(slot);
  if (record.rows_end <= record.first_row) return;
  if (state.layout().spec().stream) {
    FindInStream(state, rule, record);
    return;
  }
  RowCursor cursor(state, record);
  const auto first_row = static_cast<int64_t>(record.first_row);
  const Episode episode = FindEpisode(&cursor, rule, first_row, PlacementReach(rule));
  if (episode.steps_end <= episode.begin || (rule.stride_from_end && episode.open)) return;
  stride_ = rule.stride;
  const int64_t phase = rule.stride_from_end ? (episode.steps_end - 1) % stride_ : 0;
  first_ = episode.begin + (phase + stride_ - episode.begin % stride_) % stride_;
  if (first_ >= episode.steps_end) return;
  const int64_t candidates = (episode.steps_end - 1 - first_) / stride_ + 1;
  // From some row on the left side is there, and up to some row the right side.
  const auto shifted = [&](int64_t at) {
    return ShiftedAnchor(rule, episode, first_ + at * stride_);
  };
  int64_t begin = 0;
  int64_t end = candidates;
  if (LeftRequired(rule, episode)) {
    begin = FirstThat(
        candidates, [&](int64_t at) { return shifted(at) - rule.extent.before >= episode.begin; });
  }
  if (RightRequired(rule, episode)) {
    end = FirstThat(candidates,
                    [&](int64_t at) { return shifted(at) > LastWholeAnchor(rule, episode); });
  }
  first_ += begin * stride_;
  count_ = std::max<int64_t>(0, end - begin);
}

void AnchorRows::FindInStream(const TableState& state, const WindowRule& rule,
                              const index::TrajectoryRecord& record) {
  RowCursor cursor(state, record);
  const Reach reach{PlacementReach(rule).left, INT64_MAX};
  const auto rows_end = static_cast<int64_t>(record.rows_end);
  Episode episode;
  int64_t episode_end = 0;
  for (auto row = static_cast<int64_t>(record.first_row); row < rows_end; ++row) {
    if (row >= episode_end) {
      episode = FindEpisode(&cursor, rule, row, reach);
      episode_end = std::max(episode.rows_end, row + 1);
    }
    if (IsAnchor(rule, episode, row) && MayBeAnchor(&cursor, rule, row)) rows_.push_back(row);
  }
  count_ = static_cast<int64_t>(rows_.size());
}

ItemAnchors::ItemAnchors(const BatchPart& part, uint64_t leaf) {
  if (part.groups == nullptr) {
    Add(part, static_cast<Slot>(leaf));
  } else {
    part.groups->ForEachMember(leaf, [&](Slot slot) { Add(part, slot); });
  }
}

void ItemAnchors::Add(const BatchPart& part, Slot slot) {
  AnchorRows found(*part.state, *part.rule, slot);
  if (found.count() == 0) return;
  ends_.push_back(count() + found.count());
  slots_.push_back(slot);
  rows_.push_back(std::move(found));
}

std::pair<Slot, int64_t> ItemAnchors::at(int64_t at) const {
  const auto found = std::upper_bound(ends_.begin(), ends_.end(), at);
  const auto i = static_cast<size_t>(found - ends_.begin());
  const int64_t before = i == 0 ? 0 : ends_[i - 1];
  return {slots_[i], rows_[i].row(at - before)};
}

int64_t DrawAnchor(const DrawKey& key, int64_t anchors, int64_t j, int64_t count, bool stratified) {
  const uint64_t random =
      PhiloxRandom64(key.seed, key.draw_number, key.row, PhiloxPurpose::kAnchor);
  const auto at = static_cast<int64_t>(MulHi64(random, static_cast<uint64_t>(anchors)));
  // Each anchor taken `count` times, stratum j is those from j · anchors on.
  return stratified ? (j * anchors + at) / count : at;
}

}  // namespace geardb::engine
