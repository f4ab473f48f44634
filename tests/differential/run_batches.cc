// A batch is what the model has of its items.
#include <algorithm>
#include <cmath>

#include "tests/differential/runner.h"

namespace geardb::differential {

BatchRows Runner::RowsOf(const LiveSampler& sampler, const PlainDraw& drawn, const Batch& batch) {
  BatchRows rows;
  const auto size = static_cast<size_t>(batch.size());
  for (size_t p = 0; p < sampler.parts.size(); ++p) {
    const PlainPriority& priority =
        TableOf(sampler, drawn, p).priorities[sampler.parts[p].priority];
    for (int64_t i = 0; i < drawn.items[p] && rows.size() < size; ++i) {
      const size_t first = rows.size();
      const auto key = priority.ItemOf(batch.trajectory_ids()[first], batch.anchors()[first]);
      std::vector<TrajectoryId> ids(1);
      if (key) ids = priority.TrajectoriesOf(*key);
      const auto& within = sampler.options.within;
      const size_t count = within ? static_cast<size_t>(within->count) : ids.size();
      for (size_t at = first; at < std::min(first + count, size); ++at) {
        const TrajectoryId id = within ? batch.trajectory_ids()[at] : ids[at - first];
        rows.push_back({p, at == first, key.value_or(ItemKey()), id, batch.anchors()[at]});
      }
    }
  }
  std::vector<TrajectoryId> ids;
  for (const BatchRow& row : rows) ids.push_back(row.id);
  const auto found = batch.trajectory_ids();
  Same("trajectories", std::vector<TrajectoryId>(found.begin(), found.end()), ids);
  return rows;
}

BatchRows Runner::CompareBatch(const LiveSampler& sampler, const PlainDraw& drawn,
                               const Batch& batch) {
  const BatchRows rows = RowsOf(sampler, drawn, batch);
  if (!sampler.options.observer) Same("draw number", batch.draw_number(), drawn.numbers[0]);
  for (size_t p = 0; p < sampler.parts.size() && !different(); ++p) {
    const PlainTable& plain = TableOf(sampler, drawn, p);
    const PlainPriority& priority = plain.priorities[sampler.parts[p].priority];
    const auto probabilities =
        Probabilities(priority, DrawableItems(plain, priority), drawn.scales[p]);
    const auto& within = sampler.options.within;
    const PriorityTableSpec rule = sampler.RuleOf(priority.spec);
    std::vector<ItemKey> keys;
    for (size_t at = 0; at < rows.size() && !different(); ++at) {
      if (rows[at].part != p) continue;
      const ItemKey& key = rows[at].key;
      if (rows[at].begins_item) keys.push_back(key);
      // The first may have been drawn for the batch before.
      const auto earlier = sampler.carried_chances.find(key);
      const bool carried = sampler.carries && key == rows[0].key &&
                           earlier != sampler.carried_chances.end() &&
                           batch.probabilities()[at] == batch.probabilities()[0];
      if (!carried && !probabilities.contains(key)) {
        Differ("item", Printed(key) + " cannot be drawn");
      }
      if (different()) break;
      const double found = batch.probabilities()[at];
      const bool as_now =
          probabilities.contains(key) && std::abs(found - probabilities.at(key)) < 1e-12;
      double chance = carried && !as_now ? earlier->second : probabilities.at(key);
      if (within) {
        const auto anchors = plain.AnchorsWithin(rule, priority, key);
        CompareWithin(*within, anchors, rows[at], at % static_cast<size_t>(within->count));
        chance /= static_cast<double>(std::max<size_t>(anchors.size(), 1));
      }
      CompareProbability(sampler, priority, batch.probabilities()[at], chance);
      Same("source", batch.sources()[at], static_cast<uint32_t>(p));
      if (!different()) CompareItem(sampler, plain, priority, rows[at], batch, at);
    }
    std::vector<ItemKey> drawable = DrawableItems(plain, priority);
    std::erase_if(drawable, [&](const ItemKey& key) {
      return within && plain.AnchorsWithin(rule, priority, key).empty();
    });
    if (!different()) CompareOrder(priority, drawable, keys);
  }
  if (!different()) CompareGroups(sampler, drawn, rows, batch);
  if (!different()) CompareWeights(sampler, drawn, rows, batch);
  if (!different()) CompareOutputs(sampler, drawn, rows, batch);
  result_.counts.rows_compared += rows.size();
  return rows;
}

void Runner::CompareProbability(const LiveSampler& sampler, const PlainPriority& priority,
                                double found, double expected) {
  // Ahead, a scale may lie between.
  const double bound = sampler.options.prefetch > 0 ? 4e-3 : 1e-12;
  // Rows that would come too often are drawn again, from what is left.
  const bool again = priority.times_max() > 0 && !priority.distinct();
  const bool larger = again && found > expected && found <= 1;
  if (larger || std::abs(found - expected) <= bound * expected) return;
  Differ("probability", Printed(found) + ", expected " + Printed(expected) + ", selector " +
                            Printed(priority.spec.selector));
}

/// Window `window` of its item stands at one of the anchors, in its stratum.
void Runner::CompareWithin(const WindowsWithin& within, const std::vector<Anchor>& anchors,
                           const BatchRow& row, size_t window) {
  const auto found = std::find(anchors.begin(), anchors.end(), Anchor(row.id, row.anchor));
  if (found == anchors.end()) {
    return Differ("anchor within", Printed(row.anchor) + " of " + Printed(row.id));
  }
  if (!within.stratified) return;
  // Each anchor taken `count` times, a stratum has as many of them as there are anchors.
  const auto count = static_cast<size_t>(within.count);
  const auto place = static_cast<size_t>(found - anchors.begin()) * count;
  const size_t first = window * anchors.size();
  const bool inside = place + count > first && place < first + anchors.size();
  Same("anchor within its stratum", inside, true);
}

void Runner::CompareItem(const LiveSampler& sampler, const PlainTable& plain,
                         const PlainPriority& priority, const BatchRow& row, const Batch& batch,
                         size_t at) {
  const PlainTrajectory& trajectory = plain.trajectories.at(row.id);
  const PriorityTableSpec rule = sampler.RuleOf(priority.spec);
  if (rule.item != ItemKind::kWindow) Same("anchor", row.anchor, trajectory.first_row());
  const int64_t length = plain.Place(rule, trajectory, row.anchor).steps;
  Same("length", batch.lengths()[at], length);
  const auto members = static_cast<int64_t>(priority.TrajectoriesOf(row.key).size());
  Same("length of the handle", int64_t{batch.handles()[at].length},
       priority.draws_groups() ? members : length);
  Same("trajectory length", batch.trajectory_lengths()[at], trajectory.steps_end());
  Same("end", batch.trajectory_ends()[at], trajectory.end);
  Same("times sampled", batch.times_sampled()[at], trajectory.times_sampled);
}

/// Which rows belong together; nothing where the items are no groups.
void Runner::CompareGroups(const LiveSampler& sampler, const PlainDraw& drawn,
                           const BatchRows& rows, const Batch& batch) {
  std::vector<int64_t> groups, offsets, keys;
  for (size_t at = 0; at < rows.size(); ++at) {
    const PlainTable& plain = TableOf(sampler, drawn, rows[at].part);
    const PlainPriority& priority = plain.priorities[sampler.parts[rows[at].part].priority];
    if (!priority.draws_groups()) continue;
    if (rows[at].begins_item) {
      offsets.push_back(static_cast<int64_t>(at));
      keys.push_back(priority.groups.at(rows[at].key).key);
    }
    groups.push_back(static_cast<int64_t>(keys.size()) - 1);
  }
  if (!keys.empty()) offsets.push_back(static_cast<int64_t>(rows.size()));
  const auto listed = [](std::span<const int64_t> values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  Same("group count", batch.group_count(), static_cast<int64_t>(keys.size()));
  Same("groups", listed(batch.groups()), groups);
  Same("group offsets", listed(batch.group_offsets()), offsets);
  Same("group keys", listed(batch.group_keys()), keys);
}

void Runner::CompareOrder(const PlainPriority& priority, const std::vector<ItemKey>& drawable,
                          const std::vector<ItemKey>& keys) {
  if (!priority.distinct()) return;
  const std::set<ItemKey> different_keys(keys.begin(), keys.end());
  Same("distinct items", different_keys.size(), keys.size());
  if (!priority.ordered()) return;
  std::vector<std::tuple<double, ItemAge>> found, first;
  for (const ItemKey& key : keys) found.push_back(PlaceInOrder(priority, key));
  for (const ItemKey& key : drawable) first.push_back(PlaceInOrder(priority, key));
  std::sort(first.begin(), first.end());
  first.resize(keys.size());
  if (found == first) return;
  std::vector<ItemKey> expected;
  for (const auto& place : first) {
    for (const ItemKey& key : drawable) {
      if (PlaceInOrder(priority, key) == place) expected.push_back(key);
    }
  }
  Differ("order", "found " + Printed(keys) + ", expected " + Printed(expected));
}

/// (n·P)^−β as of each part, divided by the largest of the batch, or of the table, or by nothing.
void Runner::CompareWeights(const LiveSampler& sampler, const PlainDraw& drawn,
                            const BatchRows& rows, const Batch& batch) {
  std::vector<double> drawable, weights;
  for (size_t p = 0; p < sampler.parts.size(); ++p) {
    const PlainTable& plain = TableOf(sampler, drawn, p);
    const PlainPriority& priority = plain.priorities[sampler.parts[p].priority];
    // None may be left when an item comes that waited for its batch: n cancels out there.
    const size_t count = DrawableItems(plain, priority).size();
    drawable.push_back(static_cast<double>(std::max<size_t>(count, 1)));
  }
  double largest = 0;
  for (size_t at = 0; at < rows.size(); ++at) {
    const LivePart& part = sampler.parts[rows[at].part];
    const SelectorKind selector = part.table->plain.priorities[part.priority].spec.selector;
    const double chance = drawable[rows[at].part] * batch.probabilities()[at];
    const bool weighs =
        HasWeights(selector) || (sampler.options.within && selector == SelectorKind::kUniform);
    weights.push_back(weighs ? std::pow(chance, -sampler.options.beta) : 1);
    largest = std::max(largest, weights.back());
  }
  const LivePart& whole = sampler.parts[0];
  const PlainTable& plain = TableOf(sampler, drawn, 0);
  const PlainPriority& priority = plain.priorities[whole.priority];
  const bool weighs = HasWeights(priority.spec.selector);
  if (weighs && sampler.options.weight_maximum == WeightMaximum::kTable) {
    for (const auto& [key, chance] :
         Probabilities(priority, DrawableItems(plain, priority), drawn.scales[0])) {
      largest = std::max(largest, std::pow(drawable[0] * chance, -sampler.options.beta));
    }
  }
  if (sampler.options.weight_maximum == WeightMaximum::kNone) largest = 1;
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto found = static_cast<double>(batch.weights()[i]);
    if (std::abs(found - weights[i] / largest) < 1e-5 * (1 + found)) continue;
    return Differ("weight", Printed(found) + ", expected " + Printed(weights[i] / largest));
  }
}

}  // namespace geardb::differential
