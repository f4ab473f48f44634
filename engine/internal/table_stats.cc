#include "engine/internal/table_stats.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "base/concatenate.h"
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
    if (layout.group(g).dropped) continue;
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

namespace {

/// Items that fail the filter, or could not be read.
uint64_t HiddenByFilter(const PriorityState& priority) {
  return priority.filter() == nullptr ? 0 : priority.filter()->filtered().count();
}

/// Visible items that have no weight.
uint64_t CountWeightless(const PriorityState& priority) {
  uint64_t visible = 0;
  const index::Selector& selector = priority.selector();
  selector.ForEachMember({0, selector.reserved()},
                         [&](uint64_t leaf) { visible += selector.IsHidden(leaf) ? 0u : 1u; });
  return visible - selector.drawable();
}

std::string NamesRequired(std::span<const std::string> required) {
  std::string names;
  for (const std::string& name : required) names += (names.empty() ? "'" : ", '") + name + "'";
  return "items come once they have " + names;
}

/// Of the batches that are waited for the smallest that cannot be drawn, or one row.
uint64_t RowsAwaited(const PriorityState& priority) {
  uint64_t rows = UINT64_MAX;
  for (const auto& [batch, own] : priority.batches_waiting) {
    const bool blocked = !priority.CanDraw(batch) || !priority.BlockedSample(batch).text.empty();
    if (blocked) rows = std::min(rows, batch);
  }
  return rows == UINT64_MAX ? 1 : rows;
}

}  // namespace

PriorityTableStats StatsOf(const TableState& state, const PriorityState& priority) {
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
  stats.unreadable_items = state.UnreadableItems(priority);
  stats.filtered_items = HiddenByFilter(priority) - stats.unreadable_items;
  return stats;
}

std::string WhyUndrawable(const TableState& state, const PriorityState& priority) {
  const uint64_t items = priority.selector().count();
  std::string why;
  const auto add = [&why](uint64_t count, std::string_view what) {
    if (count > 0) why += Concatenate(why.empty() ? "" : ", ", count, what);
  };
  const uint64_t unreadable = state.UnreadableItems(priority);
  add(priority.CountExhausted(), " are exhausted");
  add(HiddenByFilter(priority) - unreadable, " fail the filter");
  add(unreadable, " are of trajectories that could not be read");
  if (priority.bounded()) {
    add(priority.limiter().state().reserved, " rows of them are drawn and not handed over");
  }
  if (priority.prioritized() != nullptr) add(CountWeightless(priority), " have priority 0");
  if (!why.empty()) why = Concatenate("of ", items, " items ", why);
  if (items == 0) {
    why = "it has no items";
    if (state.rows() > 0) why += Concatenate(": none of ", state.rows(), " rows is one");
    const Extent& extent = priority.spec().window.extent;
    const int64_t span = extent.before + extent.length + extent.after;
    if (state.rows() > 0 && priority.draws_windows() && span > 1) {
      why += Concatenate(" (a window is over ", span, ")");
    }
    const uint64_t deleted = priority.CountDeleted({0, priority.selector().reserved()});
    if (deleted > 0) why += Concatenate("; ", deleted, " were deleted");
  }
  const std::vector<std::string>& required = priority.spec().required;
  if (!required.empty()) why += (why.empty() ? "" : "; ") + NamesRequired(required);
  return why;
}

bool NamesLimiter(const PriorityState& priority) {
  return priority.spec().limiter != RateLimit() || priority.selector().count() > 0;
}

std::string WhyNoItems(const TableState& state, const PriorityState& priority) {
  if (priority.selector().count() > 0 || state.rows() == 0) return "";
  return "; " + WhyUndrawable(state, priority);
}

BlockReport WhyBlocked(const TableState& state, const PriorityState& priority) {
  const uint64_t rows = RowsAwaited(priority);
  BlockReport report;
  report.samples = {priority.BlockedSample(rows).text,
                    static_cast<uint32_t>(priority.batches_waiting.size())};
  report.inserts = {priority.BlockedInsert(1).text, priority.appends_waiting};
  std::string& reason = report.samples.reason;
  if (priority.CanDraw(rows)) {
    for (const auto& waiting : priority.batches_waiting) {
      if (reason.empty()) reason = waiting.own;
    }
    return report;
  }
  if (!NamesLimiter(priority)) reason.clear();
  if (!reason.empty()) reason += WhyNoItems(state, priority);
  if (reason.empty() && priority.epoch() != nullptr) reason = priority.epoch()->WhyUndrawable();
  if (reason.empty()) {
    const uint64_t drawable = priority.selector().drawable();
    reason = drawable == 0
                 ? "no item can be drawn"
                 : Concatenate(drawable, " items can be drawn, of ", rows, " for a batch");
    const std::string why = WhyUndrawable(state, priority);
    if (!why.empty()) reason += ": " + why;
  }
  reason += WaitingGroups(priority);
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
                                        .blocked = WhyBlocked(state, priority)});
  }
  return activity;
}

}  // namespace geardb::engine
