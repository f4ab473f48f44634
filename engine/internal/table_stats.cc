#include "engine/internal/table_stats.h"

#include <numeric>
#include <string>

#include "engine/internal/core.h"
#include "engine/internal/group_draw.h"
#include "engine/internal/priority_limits.h"
#include "engine/internal/sampling.h"

namespace geardb::engine {

TableStats StatsOf(const TableState& state) {
  MutexLock lock(&state.mutex);
  const TableLayout& layout = state.layout();
  const auto& removed_by = state.removals().counts();
  return TableStats{
      .trajectories = state.trajectories().count(),
      .open_trajectories = state.open_count(),
      .steps = state.steps(),
      .pages = state.page_count(),
      .frame_bytes = state.frame_bytes() + state.companion_frame_bytes(),
      .frames = state.frames().stats(),
      .row_bytes = state.rows() * layout.bytes_per_step(),
      .index_bytes = state.index_bytes(),
      .appended_rows = state.appended_rows(),
      .removed_trajectories = std::accumulate(removed_by.begin(), removed_by.end(), uint64_t{0}),
      .removed_by = removed_by,
      .trimmed_rows = state.trimmed_rows()};
}

std::vector<GroupPlaces> PlacesOf(const TableState& state) {
  /// Pages that are looked at while the mutex is held once.
  constexpr uint64_t kLooksEach = 4096;
  const TableLayout& layout = state.layout();
  std::vector<GroupPlaces> all;
  for (size_t g = 0; g < layout.group_count(); ++g) {
    GroupPlaces places{.group = layout.group(g).name,
                       .frame_bytes = layout.group(g).pages.frame_bytes()};
    for (Lpn next = 0; next != kNoLpn;) {
      MutexLock lock(&state.mutex);
      state.frames().CountPlaces(g, kLooksEach, &next, &places);
    }
    all.push_back(std::move(places));
  }
  for (size_t k = 0; k < layout.companions().size(); ++k) {
    const CompanionColumn& column = layout.companions()[k];
    GroupPlaces places{.column = column.name};
    if (column.ragged()) {
      places.group = layout.group(layout.step_columns()[column.column].group).name;
    }
    bool there = true;
    for (Lpn next = 0; there && next != kNoLpn;) {
      MutexLock lock(&state.mutex);
      const TableState* companion = state.companion(k);
      there = companion != nullptr;
      if (!there) break;
      places.frame_bytes = companion->layout().page_bytes();
      companion->frames().CountPlaces(0, kLooksEach, &next, &places);
    }
    if (there) all.push_back(std::move(places));
  }
  return all;
}

PriorityTableStats StatsOf(const PriorityState& priority) {
  PriorityTableStats stats = priority.counters;
  stats.items = priority.selector().count();
  stats.drawable_items = priority.selector().drawable();
  stats.draws = priority.next_draw;
  stats.max_priority = priority.max_priority();
  const index::RateLimiterState& counts = priority.limiter().state();
  stats.limiter = {.limits = Describe(LimitsOf(priority.spec())),
                   .inserts = counts.inserts,
                   .samples = counts.samples,
                   .reserved = counts.reserved,
                   .deletes = counts.deletes,
                   .deleted_unsampled = counts.deleted_unsampled,
                   .exhausted = priority.CountExhausted()};
  if (priority.prioritized()) stats.scale_shift = priority.prioritized()->shift();
  if (priority.epoch() != nullptr) stats.epoch = priority.epoch()->Stats();
  if (priority.groups() != nullptr) stats.groups = priority.groups()->Stats();
  if (priority.filter() != nullptr) stats.filtered_items = priority.filter()->filtered().count();
  return stats;
}

BlockReport WhyBlocked(const PriorityState& priority) {
  BlockReport report;
  report.samples = {priority.BlockedSample(1).text, priority.samplers_waiting};
  report.inserts = {priority.BlockedInsert(1).text, priority.appends_waiting};
  if (priority.CanDraw(1)) return report;
  if (report.samples.reason.empty() && priority.epoch() != nullptr) {
    report.samples.reason = priority.epoch()->WhyUndrawable();
  }
  if (report.samples.reason.empty()) {
    report.samples.reason = "no item can be drawn: " + priority.WhyUndrawable();
  }
  report.samples.reason += WaitingGroups(priority);
  return report;
}

TableActivity ActivityOf(const TableState& state) {
  const TableStats stats = StatsOf(state);
  TableActivity activity{.trajectories = stats.trajectories,
                         .open_trajectories = stats.open_trajectories,
                         .steps = stats.steps,
                         .pages = stats.pages,
                         .frame_bytes = stats.frame_bytes,
                         .row_bytes = stats.row_bytes,
                         .places = PlacesOf(state)};
  MutexLock lock(&state.mutex);
  activity.id = state.layout().id();
  activity.name = state.layout().spec().name;
  for (uint32_t number = 0; number < state.priority_table_count(); ++number) {
    const PriorityState& priority = state.priority(number);
    activity.priority_tables.push_back({.name = priority.spec().name,
                                        .items = priority.selector().count(),
                                        .drawable_items = priority.selector().drawable(),
                                        .draws = priority.next_draw,
                                        .blocked = WhyBlocked(priority)});
  }
  return activity;
}

}  // namespace geardb::engine
