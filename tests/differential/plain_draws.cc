// PlainTable's priority tables: items, limits, and what may be drawn.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/differential/plain_table.h"

namespace geardb::differential {

// Items.

void PlainTable::CreatePriority(const PriorityTableSpec& created) {
  PlainPriority priority{.spec = created};
  priority.counts_items = priority.times_max() > 0;
  priorities.push_back(std::move(priority));
  const uint64_t now = moment;
  moment = 0;  // ItemAge {0, 0, 0}.
  Settle();
  moment = now + 1;
}

void PlainTable::Settle(const std::map<TrajectoryId, int64_t>& lanes,
                        const GivenPriorities& given) {
  for (size_t p = 0; p < priorities.size(); ++p) SettlePriority(p, lanes, given);
  // Standing filters that expire what they fail.
  std::vector<std::pair<TrajectoryId, std::string>> expired;
  for (const auto& [id, trajectory] : trajectories) {
    for (const PlainPriority& priority : priorities) {
      const bool expires = priority.spec.filter_action == FilterAction::kExpire;
      if (!expires || !trajectory.closed() || Passes(priority.spec.filter, trajectory)) continue;
      expired.emplace_back(id, priority.spec.name);
      break;
    }
  }
  for (const auto& [id, name] : expired) Remove(id, RemovalReason::kFilter, name);
  std::vector<TrajectoryId> finished;
  for (const auto& [id, trajectory] : trajectories) {
    if (IsFinished(trajectory)) finished.push_back(id);
  }
  for (const TrajectoryId id : finished) Remove(id, RemovalReason::kExhausted);
  if (expired.empty() && finished.empty()) return;
  for (size_t p = 0; p < priorities.size(); ++p) SettlePriority(p, {}, {});
}

void PlainTable::SettlePriority(size_t number, const std::map<TrajectoryId, int64_t>& lanes,
                                const GivenPriorities& given) {
  PlainPriority& priority = priorities[number];
  const auto keep_away = [&](const ItemKey& key) {
    if (priority.draws_groups()) return priority.groups.contains(key);
    const auto found = trajectories.find(key.first);
    if (found == trajectories.end()) return false;
    if (!priority.windows()) return true;
    // Remembered until its page has left (README, "Draws and updates").
    return key.second / spec.steps_per_page >= found->second.first_row() / spec.steps_per_page;
  };
  if (priority.draws_groups()) SettleGroups(&priority, lanes);
  std::erase_if(priority.deleted, [&](const ItemKey& key) { return !keep_away(key); });
  const std::set<ItemKey> there = ItemsThere(priority);
  std::vector<ItemKey> added, gone;
  for (const ItemKey& key : there) {
    if (!priority.items.contains(key)) added.push_back(key);
  }
  for (const auto& [key, item] : priority.items) {
    if (!there.contains(key)) gone.push_back(key);
  }
  for (const ItemKey& key : gone) ItemLeaves(&priority, key);
  // In the order in which they come: of lanes, then rows.
  const auto maker_of = [&](const ItemKey& key) {
    return priority.draws_groups() ? priority.groups.at(key).made_ready : key.first;
  };
  const auto lane_of = [&](const ItemKey& key) {
    const auto lane = lanes.find(maker_of(key));
    return lane == lanes.end() ? 0 : lane->second;
  };
  std::stable_sort(added.begin(), added.end(),
                   [&](const ItemKey& a, const ItemKey& b) { return lane_of(a) < lane_of(b); });
  const auto values = given.find(number);
  const float largest = priority.max_priority;
  for (size_t i = 0; i < added.size(); ++i) {
    const ItemKey& key = added[i];
    PlainItem item{.priority = largest};
    const bool group = priority.draws_groups();
    const int64_t row = group ? static_cast<int64_t>(key.first) : key.second;
    if (moment > 0) item.age = {moment, lane_of(key), row};
    if (values != given.end()) {
      item.priority = values->second[values->second.size() == 1 ? 0 : i];
    } else if (priority.spec.initial == InitialPriority::kConstant) {
      item.priority = priority.spec.initial_priority_value;
    } else if (priority.spec.initial == InitialPriority::kColumn) {
      const PlainColumn* const column = FindColumn(priority.spec.initial_priority_column);
      const Value value = ValueOf(trajectories.at(maker_of(key)), *column);
      std::memcpy(&item.priority, value->data(), sizeof(float));
    }
    priority.max_priority = std::max(priority.max_priority, item.priority);
    priority.items[key] = item;
    ++priority.counts.inserts;
  }
}

/// That there are by what the trajectories, and groups of them, are now.
std::set<ItemKey> PlainTable::ItemsThere(const PlainPriority& priority) const {
  std::set<ItemKey> there;
  for (const auto& [key, group] : priority.groups) {
    if (group.made_ready != 0) there.insert(key);
  }
  for (const auto& [id, trajectory] : trajectories) {
    if (priority.draws_groups()) break;
    for (const int64_t row : Anchors(priority.spec, trajectory)) {
      if (IsReady(priority.spec, trajectory, row)) there.insert({id, row});
    }
  }
  for (const ItemKey& key : priority.deleted) there.erase(key);
  return there;
}

void PlainTable::ItemLeaves(PlainPriority* priority, const ItemKey& key) {
  const PlainItem& item = priority->items.at(key);
  ++priority->counts.deletes;
  if (priority->counts_items && item.sampled == 0) ++priority->counts.unsampled;
  priority->items.erase(key);
  priority->epoch.cut.erase(key);
  if (priority->epoch.remaining.erase(key) > 0) Cover(priority, {});
}

void PlainTable::SetPriority(PlainPriority* priority, const ItemKey& key, float value) {
  priority->items.at(key).priority = value;
  priority->max_priority = std::max(priority->max_priority, value);
}

bool PlainTable::Delete(PlainPriority* priority, const ItemKey& key) {
  if (!priority->items.contains(key)) return false;
  ItemLeaves(priority, key);
  priority->deleted.insert(key);
  return true;
}

// What nobody can draw any more.

bool PlainTable::IsFinished(const PlainTrajectory& trajectory) const {
  bool asked_for = false;
  bool all = true;
  for (const PlainPriority& priority : priorities) {
    const PlainEpoch& epoch = priority.epoch;
    size_t items = 0, covered = 0, exhausted = 0;
    bool waits = false;                            // For what is required, or for members.
    for (const ItemKey& key : priority.deleted) {  // Also rows that are no anchors any more.
      const bool there = key.first == trajectory.id && key.second >= trajectory.first_row();
      if (priority.windows() && there) {
        asked_for |= priority.removes_exhausted();
      }
    }
    std::vector<ItemKey> keys;
    for (const int64_t row : Anchors(priority.spec, trajectory)) {
      // Of one that is in no group: none, so that it waits.
      keys.push_back(priority.ItemOf(trajectory.id, row).value_or(ItemKey()));
    }
    for (const ItemKey& key : keys) {
      const auto item = priority.items.find(key);
      if (priority.deleted.contains(key)) {
        asked_for |= priority.removes_exhausted();
        continue;
      }
      if (item == priority.items.end()) {
        waits = true;
        continue;
      }
      ++items;
      exhausted += priority.exhausted(item->second) ? 1u : 0u;
      covered += epoch.cut.contains(key) && !epoch.remaining.contains(key) ? 1u : 0u;
    }
    if (exhausted > 0 && priority.removes_exhausted()) asked_for = true;
    all &= !waits && exhausted == items;
    const bool last_pass = epoch.epoch > 0 && epoch.pass >= priority.spec.epoch.passes;
    const bool removes = priority.spec.epoch.remove_covered && trajectory.closed() && last_pass;
    if (removes && !waits && items > 0 && covered == items) return true;
  }
  return trajectory.closed() && asked_for && all;
}

void PlainTable::Finish(const std::set<TrajectoryId>& ids) {
  ++moment;
  for (const TrajectoryId id : ids) {
    const auto found = trajectories.find(id);
    if (found != trajectories.end() && IsFinished(found->second)) {
      Remove(id, RemovalReason::kExhausted);
    }
  }
  Settle();
}

void PlainTable::FinishAll() {
  std::set<TrajectoryId> ids;
  for (const auto& [id, trajectory] : trajectories) ids.insert(id);
  Finish(ids);
}

// Limiters (rate_limit.h).

StatusCode AdmitsItems(const PlainPriority& priority, int64_t items) {
  const RateLimit& limit = priority.spec.limiter;
  const PlainCounts& counts = priority.counts;
  if (items == 0 || limit.kind == LimiterKind::kMinSize) return StatusCode::kOk;
  const auto refused = [](bool never) {
    return never ? StatusCode::kInvalidArgument : StatusCode::kDeadlineExceeded;
  };
  const int64_t inserts = counts.inserts - counts.inserts_from;
  const int64_t samples = counts.samples - counts.samples_from;
  if (priority.is_queue()) {
    const auto capacity = static_cast<int64_t>(limit.capacity);
    const bool fits = inserts - counts.unsampled - samples + items <= capacity;
    return fits ? StatusCode::kOk : refused(items > capacity);
  }
  if (counts.size() < static_cast<int64_t>(limit.min_size)) return StatusCode::kOk;
  const double ratio = limit.samples_per_insert;
  const double more = static_cast<double>(items) * ratio;
  const double error = static_cast<double>(inserts) * ratio - static_cast<double>(samples);
  const double centre = static_cast<double>(limit.min_size) * ratio;
  if (error + more <= centre + limit.error_buffer) return StatusCode::kOk;
  return refused(more > 2 * limit.error_buffer);
}

bool AdmitsRows(const PlainPriority& priority, int64_t rows) {
  const RateLimit& limit = priority.spec.limiter;
  const PlainCounts& counts = priority.counts;
  const int64_t inserts = counts.inserts - counts.inserts_from;
  const int64_t samples = counts.samples - counts.samples_from;
  if (priority.is_queue()) {
    return inserts - counts.unsampled - samples - counts.reserved >= rows;
  }
  if (counts.size() < static_cast<int64_t>(limit.min_size)) return false;
  if (limit.kind == LimiterKind::kMinSize) return true;
  const double ratio = limit.samples_per_insert;
  const double error = static_cast<double>(inserts) * ratio - static_cast<double>(samples);
  return error - static_cast<double>(counts.reserved + rows) >=
         static_cast<double>(limit.min_size) * ratio - limit.error_buffer;
}

StatusCode RefusalOf(const PlainTable& table, const PlainPriority& priority, int64_t rows) {
  const RateLimit& limit = priority.spec.limiter;
  const bool admitted = AdmitsRows(priority, rows);
  const auto drawable = static_cast<int64_t>(DrawableItems(table, priority).size());
  const bool distinct = priority.distinct() || priority.times_max() > 0;
  if (drawable >= (distinct ? rows : 1) && admitted && rows > 0) return StatusCode::kOk;
  const bool full = priority.counts.size() >= static_cast<int64_t>(limit.min_size);
  const bool never = priority.is_queue() ? rows > static_cast<int64_t>(limit.capacity)
                                         : limit.kind == LimiterKind::kRatio && full &&
                                               static_cast<double>(rows) > 2 * limit.error_buffer;
  if (never && !admitted) return StatusCode::kInvalidArgument;
  if (priority.spec.selector == SelectorKind::kEpoch && priority.epoch_over()) {
    return StatusCode::kOutOfRange;
  }
  return StatusCode::kDeadlineExceeded;
}

void Configure(PlainPriority* priority, const PriorityLimits& limits) {
  const RateLimit& to = limits.limiter;
  const RateLimit from = priority->spec.limiter;
  PlainCounts& counts = priority->counts;
  const bool was_queue = priority->is_queue();
  priority->spec.limiter = to;
  priority->spec.max_times_sampled = limits.max_times_sampled;
  priority->spec.remove_when_exhausted = limits.remove_when_exhausted;
  const bool queue = priority->is_queue();
  const bool goes_on = queue ? was_queue
                             : from.kind == to.kind && from.min_size == to.min_size &&
                                   from.samples_per_insert == to.samples_per_insert;
  if (!goes_on) {
    const auto least = static_cast<int64_t>(to.min_size);
    const int64_t taken = queue ? counts.size() + counts.unsampled : std::min(counts.size(), least);
    counts.inserts_from = counts.inserts - taken;
    counts.samples_from = counts.samples;
  }
  if (queue && !was_queue) {
    for (auto& [key, item] : priority->items) {
      item.sampled = 0;
      item.reserved = std::min(item.reserved, 1u);
    }
  }
  priority->counts_items |= priority->times_max() > 0;
}

// Draws.

bool IsDrawable(const PlainTable& table, const PlainPriority& priority, const ItemKey& key) {
  const PlainItem& item = priority.items.at(key);
  if (priority.spec.selector == SelectorKind::kEpoch) return priority.epoch.remaining.contains(key);
  if (HasWeights(priority.spec.selector) && item.priority == 0) return false;
  if (priority.times_max() > 0 && item.sampled + item.reserved >= priority.times_max())
    return false;
  const std::vector<TrajectoryId> ids = priority.TrajectoriesOf(key);
  return std::all_of(ids.begin(), ids.end(), [&](TrajectoryId id) {
    return table.Passes(priority.spec.filter, table.trajectories.at(id));
  });
}

std::vector<ItemKey> DrawableItems(const PlainTable& table, const PlainPriority& priority) {
  std::vector<ItemKey> keys;
  for (const auto& [key, item] : priority.items) {
    if (IsDrawable(table, priority, key)) keys.push_back(key);
  }
  return keys;
}

std::map<ItemKey, double> Probabilities(const PlainPriority& priority,
                                        const std::vector<ItemKey>& drawable, int scale) {
  std::map<ItemKey, double> probabilities;
  double total = 0;
  for (const ItemKey& key : drawable) {
    double weight = 1;
    if (HasWeights(priority.spec.selector)) {
      const auto raw = static_cast<double>(priority.items.at(key).priority);
      weight = std::max(1.0, std::round(std::ldexp(std::pow(raw, priority.spec.alpha), scale)));
    }
    probabilities[key] = weight;
    total += weight;
  }
  for (auto& [key, probability] : probabilities) {
    probability = priority.ordered() ? 1 : probability / total;
  }
  return probabilities;
}

std::tuple<double, ItemAge> PlaceInOrder(const PlainPriority& priority, const ItemKey& key) {
  const PlainItem& item = priority.items.at(key);
  const auto raw = static_cast<double>(item.priority);
  const auto [change, lane, row] = item.age;
  switch (priority.spec.selector) {
    case SelectorKind::kLifo:
      return {-static_cast<double>(change), ItemAge(0, -lane, -row)};
    case SelectorKind::kMinHeap:
      return {raw, item.age};
    case SelectorKind::kMaxHeap:
      return {-raw, item.age};
    default:
      return {0, item.age};
  }
}

// Epochs.

void BeginEpoch(PlainPriority* priority) {
  for (auto& [key, group] : priority->groups) {
    if (group.made_ready != 0 && group.stop == GroupStop::kNone) group.stop = GroupStop::kCut;
  }
  PlainEpoch& epoch = priority->epoch;
  ++epoch.epoch;
  epoch.pass = 1;
  epoch.cut.clear();
  for (const auto& [key, item] : priority->items) epoch.cut.insert(key);
  epoch.remaining = epoch.cut;
  Cover(priority, {});
}

void Cover(PlainPriority* priority, const std::set<ItemKey>& keys) {
  PlainEpoch& epoch = priority->epoch;
  for (const ItemKey& key : keys) epoch.remaining.erase(key);
  if (!epoch.remaining.empty() || priority->epoch_over()) return;
  ++epoch.pass;
  epoch.remaining = epoch.cut;
}

void EndPass(PlainPriority* priority) {
  priority->epoch.remaining.clear();
  Cover(priority, {});
}

}  // namespace geardb::differential
