// Priority tables without draws.
#include <algorithm>
#include <cmath>

#include "tests/differential/runner.h"

namespace geardb::differential {

KeptBatch* Runner::BatchAt(uint64_t number) {
  return batches_.empty() ? nullptr : &batches_[number % batches_.size()];
}

/// Items from the `first`-th on.
std::vector<ItemKey> ItemsFrom(const PlainPriority& priority, uint64_t first, uint64_t count) {
  std::vector<ItemKey> keys = priority.ItemsInOrder();
  if (keys.empty()) return keys;
  keys.erase(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(first % keys.size()));
  if (keys.size() > count) keys.resize(count);
  return keys;
}

/// Items from the `b`-th on, and one that is none.
void Runner::SetRows(const Step& step) {
  const auto [live, number] = PriorityAt(step.numbers[0]);
  if (live == nullptr) return;
  PlainPriority& priority = live->plain.priorities[number];
  Choices choices(step.numbers[2]);
  std::vector<RowId> rows;
  std::vector<float> values;
  const uint64_t count = choices.Below(6) + 1;
  const bool unknown = choices.OneIn(3);
  const bool twice = choices.OneIn(3);
  std::vector<ItemKey> keys = ItemsFrom(priority, step.numbers[1], count);
  if (twice && !keys.empty()) keys.push_back(keys[0]);
  for (const ItemKey& key : keys) rows.push_back(priority.NameOf(key, rows.size()));
  const size_t there = rows.size();
  if (unknown) rows.push_back({live->plain.last_id + 7, 0});
  for (size_t i = 0; i < rows.size(); ++i) {
    values.push_back(PriorityOf(Mixed(choices.rest(), i)));
  }
  const auto table = live->priority_table(number);
  if (choices.OneIn(8) && !values.empty()) {
    std::vector<float> wrong = values;
    wrong.back() = -1;
    SameCode("negative", table->Set(rows, wrong).status(), StatusCode::kInvalidArgument);
  }
  const auto outcome = table->Set(rows, values);
  if (!SameCode("set", outcome.status(), StatusCode::kOk)) return;
  Same("applied", outcome->applied, there);
  Same("stale", outcome->stale, rows.size() - there);
  for (size_t i = 0; i < there; ++i) {
    live->plain.SetPriority(&priority, keys[i], values[i]);
  }
}

void Runner::SetHandles(const Step& step) {
  const KeptBatch* const batch = BatchAt(step.numbers[0]);
  if (batch == nullptr) return;
  PlainPriority& priority = batch->table->plain.priorities[batch->priority];
  std::vector<float> values;
  uint64_t stale = 0;
  for (size_t i = 0; i < batch->keys.size(); ++i) {
    values.push_back(PriorityOf(Mixed(step.numbers[1], i)));
    if (!priority.items.contains(batch->keys[i])) {
      ++stale;
    } else {
      batch->table->plain.SetPriority(&priority, batch->keys[i], values[i]);
    }
  }
  const auto table = batch->table->priority_table(batch->priority);
  const auto outcome = table->Set(batch->handles, values);
  if (!SameCode("set", outcome.status(), StatusCode::kOk)) return;
  Same("stale", outcome->stale, stale);
  Same("applied", outcome->applied, batch->keys.size() - stale);
}

void Runner::SetAll(const Step& step) {
  const auto [live, number] = PriorityAt(step.numbers[0]);
  if (live == nullptr) return;
  PlainPriority& priority = live->plain.priorities[number];
  const uint64_t how = step.numbers[2] % 4;
  const size_t items = priority.items.size();
  std::vector<float> values(how == 0 ? 1 : how == 3 ? items + 2 : items);
  for (size_t i = 0; i < values.size(); ++i) values[i] = PriorityOf(Mixed(step.numbers[1], i));
  const auto outcome = live->priority_table(number)->SetAll(values);
  if (!SameCode("set", outcome.status(),
                how == 3 ? StatusCode::kFailedPrecondition : StatusCode::kOk)) {
    return;
  }
  if (!outcome.ok()) return;
  Same("applied", outcome->applied, items);
  size_t at = 0;
  for (const ItemKey& key : priority.ItemsInOrder()) {
    live->plain.SetPriority(&priority, key, values[how == 0 ? 0 : at++]);
  }
}

void Runner::DeleteRows(const Step& step) {
  const auto [live, number] = PriorityAt(step.numbers[0]);
  if (live == nullptr) return;
  PlainPriority& priority = live->plain.priorities[number];
  std::vector<RowId> rows;
  std::set<TrajectoryId> ids;
  const std::vector<ItemKey> keys = ItemsFrom(priority, step.numbers[1], step.numbers[2] % 4 + 1);
  for (const ItemKey& key : keys) {
    rows.push_back(priority.NameOf(key, step.numbers[2]));
    for (const TrajectoryId id : priority.TrajectoriesOf(key)) ids.insert(id);
  }
  const uint64_t there = rows.size();
  rows.push_back({live->plain.last_id + 7, 0});
  const auto outcome = live->priority_table(number)->Delete(rows);
  if (!SameCode("delete", outcome.status(), StatusCode::kOk)) return;
  Same("applied", outcome->applied, there);
  Same("stale", outcome->stale, uint64_t{1});
  if (bug_ == PlantedBug::kForgetsDeleted) return;
  ++live->plain.moment;
  for (const ItemKey& key : keys) live->plain.Delete(&priority, key);
  live->plain.Finish(ids);
}

void Runner::DeleteHandles(const Step& step) {
  const KeptBatch* const batch = BatchAt(step.numbers[0]);
  if (batch == nullptr) return;
  PlainTable& plain = batch->table->plain;
  PlainPriority& priority = plain.priorities[batch->priority];
  const size_t count = std::min<size_t>(1 + step.numbers[1] % 2, batch->handles.size());
  uint64_t applied = 0;
  std::set<TrajectoryId> ids;
  const auto table = batch->table->priority_table(batch->priority);
  const auto outcome = table->Delete(std::span(batch->handles).first(count));
  if (!SameCode("delete", outcome.status(), StatusCode::kOk)) return;
  ++plain.moment;
  for (size_t i = 0; i < count; ++i) {
    if (!plain.Delete(&priority, batch->keys[i])) continue;
    ++applied;
    for (const TrajectoryId id : priority.TrajectoriesOf(batch->keys[i])) ids.insert(id);
  }
  Same("applied", outcome->applied, applied);
  Same("stale", outcome->stale, count - applied);
  plain.Finish(ids);
}

/// New actions for the length parts of items.
void Runner::PatchItems(const Step& step) {
  const KeptBatch* const batch = BatchAt(step.numbers[0]);
  if (batch == nullptr) return;
  PlainTable& plain = batch->table->plain;
  const PlainPriority& priority = plain.priorities[batch->priority];
  const PlainColumn* column = plain.FindColumn("act");
  const PlainColumn* const ragged = plain.FindColumn("text");
  if (ragged != nullptr && !ragged->late && step.numbers[1] % 3 == 2) column = ragged;
  if (column == nullptr || priority.draws_groups() || batch->within) return;  // Not of groups.
  struct Rows {
    TrajectoryId id;
    int64_t first;
    std::vector<Values> rows;
  };
  std::vector<Rows> patched;
  std::vector<Value> values;
  uint64_t stale = 0;
  bool too_early = false;
  for (size_t i = 0; i < batch->keys.size(); ++i) {
    const ItemKey& key = batch->keys[i];
    const bool there = priority.items.contains(key);
    Rows rows{key.first, 0, {}};
    if (there) {
      const PlainTrajectory& trajectory = plain.trajectories.at(key.first);
      rows.first = plain.Place(priority.spec, trajectory, key.second).anchor;
      if (!priority.windows()) rows.first = trajectory.steps_end() - batch->lengths[i];
    }
    for (int64_t r = 0; r < batch->lengths[i]; ++r) {
      values.push_back(std::make_shared<const Bytes>(
          RowOf(column->column, Mixed(step.numbers[1], values.size()))));
      rows.rows.push_back({{column->number, values.back()}});
      const bool gone = !there || rows.first + r < plain.trajectories.at(key.first).first_row();
      stale += gone ? 1u : 0u;
      too_early |= !gone && column == ragged && !plain.trajectories.at(key.first).closed();
    }
    if (there) patched.push_back(std::move(rows));
  }
  CallValues call;
  call.Add(column->column, values, static_cast<int64_t>(values.size()));
  const auto table = batch->table->priority_table(batch->priority);
  const auto outcome = table->Patch(batch->handles, call.values());
  const StatusCode expected = too_early ? StatusCode::kFailedPrecondition : StatusCode::kOk;
  if (!SameCode("patch", outcome.status(), expected) || !outcome.ok()) return;
  Same("stale", outcome->stale, stale);
  Same("applied", outcome->applied, values.size() - stale);
  for (const Rows& rows : patched) plain.Patch(rows.id, rows.first, rows.rows);
}

void Runner::Configure(const Step& step) {
  const auto [live, number] = PriorityAt(step.numbers[0]);
  if (live == nullptr) return;
  PlainPriority& priority = live->plain.priorities[number];
  for (const LiveSampler& sampler : samplers_) {
    // Which items are drawn ahead at random the model does not know.
    for (const LivePart& part : sampler.parts) {
      const bool ahead = sampler.options.prefetch > 0 || sampler.options.tokens_max > 0;
      if (part.table == live && part.priority == number && ahead) return;
    }
  }
  Choices choices(step.numbers[1]);
  PriorityLimits limits = LimitsKind(priority.spec, IsBounded(live->plain.spec), &choices);
  const bool counts = !priority.is_queue() && priority.spec.selector != SelectorKind::kEpoch;
  if (priority.takes_when_ready() && counts && choices.OneIn(2)) {
    limits = {.max_times_sampled = 1 + static_cast<uint32_t>(choices.Below(3))};
  }
  const Status status = live->priority_table(number)->Configure(limits);
  if (!SameCode("configure", status, StatusCode::kOk)) return;
  std::set<ItemKey> groups;  // That could be drawn before.
  if (priority.takes_when_ready()) groups = priority.GroupsNotEnded();
  differential::Configure(&priority, limits);
  std::erase_if(groups, [&](const ItemKey& key) { return !priority.has_ended(key); });
  CountRegrouped(live->plain.Regroup(&priority, groups));
  live->plain.Settle();
  PriorityLimits wrong = limits;
  wrong.limiter = {.kind = LimiterKind::kMinSize, .min_size = 0};
  SameCode("wrong", live->priority_table(number)->Configure(wrong), StatusCode::kInvalidArgument);
}

void Runner::SetFilter(const Step& step) {
  const auto [live, number] = PriorityAt(step.numbers[0]);
  if (live == nullptr) return;
  PlainPriority& priority = live->plain.priorities[number];
  Choices choices(step.numbers[1]);
  const std::string filter = FilterKind(&choices, /*standing=*/true);
  const auto action = static_cast<FilterAction>(choices.Below(2));
  const bool epoch = priority.spec.selector == SelectorKind::kEpoch;
  StatusCode expected = StatusCode::kOk;
  for (const char* name : {"goal", "flag"}) {
    if (filter.find(name) == std::string::npos) continue;
    if (live->plain.FindColumn(name) == nullptr) expected = StatusCode::kNotFound;
  }
  if (epoch && !filter.empty()) expected = StatusCode::kInvalidArgument;
  const Status status = live->priority_table(number)->SetFilter(filter, action);
  if (!SameCode("set", status, expected) || !status.ok()) return;
  priority.spec.filter = filter;
  priority.spec.filter_action = action;
  ++live->plain.moment;
  live->plain.Settle();
}

void Runner::BeginEpoch(const Step& step) {
  // The next one that has epochs.
  for (uint64_t i = 0; i < 8; ++i) {
    const auto [live, number] = PriorityAt(step.numbers[0] + i);
    if (live == nullptr) return;
    PlainPriority& priority = live->plain.priorities[number];
    if (priority.spec.selector != SelectorKind::kEpoch) continue;
    if (!SameCode("begin", live->priority_table(number)->BeginEpoch(), StatusCode::kOk)) return;
    return differential::BeginEpoch(&priority);
  }
}

void Runner::SealGroup(const Step& step) {
  // The next one that has groups.
  for (uint64_t i = 0; i < 8; ++i) {
    const auto [live, number] = PriorityAt(step.numbers[0] + i);
    if (live == nullptr) return;
    PlainPriority& priority = live->plain.priorities[number];
    const auto table = live->priority_table(number);
    if (!priority.draws_groups()) {
      if (i > 0) continue;
      SameCode("no groups", table->SealGroup(0), StatusCode::kInvalidArgument);
      SameCode("no groups", table->SealOverdueGroups().status(), StatusCode::kInvalidArgument);
      continue;
    }
    const int64_t key = static_cast<int64_t>(step.numbers[1] % 4) - 1;
    const bool there = live->plain.SealGroup(&priority, key);
    SameCode("seal", table->SealGroup(key), there ? StatusCode::kOk : StatusCode::kNotFound);
    return;
  }
}

/// Of all priority tables that have groups.
void Runner::SealOverdue(const Step& step) {
  for (uint64_t i = 0; i < 8; ++i) {
    const auto [live, number] = PriorityAt(step.numbers[0] + i);
    if (live == nullptr) return;
    PlainPriority& priority = live->plain.priorities[number];
    if (!priority.draws_groups()) continue;
    const auto sealed = live->priority_table(number)->SealOverdueGroups();
    if (!SameCode("seal", sealed.status(), StatusCode::kOk)) return;
    Same("how many", *sealed, live->plain.SealOverdueGroups(&priority));
  }
}

void Runner::ComparePriority(LiveTable* live, size_t number) {
  const PlainPriority& priority = live->plain.priorities[number];
  const auto table = live->priority_table(number);
  const std::string name = " of " + std::string(priority.windows() ? "windows" : "trajectories");
  std::vector<ItemKey> found, expected;
  for (const RowId& row : table->Items()) found.emplace_back(row.id, row.row);
  for (const ItemKey& key : priority.ItemsInOrder()) {
    const TrajectoryId id = priority.NameOf(key).id;
    const int64_t first = live->plain.trajectories.at(id).first_row();
    expected.emplace_back(id, priority.windows() ? key.second : first);
  }
  if (!Same("items" + name, found, expected)) return;
  Same("item count", table->Count(), expected.size());
  const std::vector<ItemKey> drawable = DrawableItems(live->plain, priority);
  Same("drawable", table->DrawableCount(), drawable.size());
  const PriorityTableStats stats = table->Stats();
  const auto probabilities = Probabilities(priority, drawable, stats.scale_shift);
  for (const auto& [key, item] : priority.items) {
    const RowId row = priority.NameOf(key, key.first);
    if (HasPriorities(priority.spec.selector)) {
      const auto raw = table->Priority(row);
      if (!raw.ok()) return Differ("priority", raw.status().ToString());
      if (!Same("priority", *raw, item.priority)) return;
    }
    const auto probability = table->Probability(row);
    if (!probability.ok()) return Differ("probability", probability.status().ToString());
    const auto chance = probabilities.find(key);
    const double exact = chance == probabilities.end() ? 0 : chance->second;
    if (std::abs(*probability - exact) > exact * 1e-12) {
      return Differ("probability", "of " + Printed(key) + " " + Printed(*probability) +
                                       ", expected " + Printed(exact));
    }
  }
  if (HasPriorities(priority.spec.selector)) {
    Same("max priority", table->MaxPriority(), priority.max_priority);
  }
  Same("no item", table->Priority({live->plain.last_id + 1, 0}).status().code(),
       StatusCode::kNotFound);
  CompareCounts(live, number);
}

void Runner::CompareCounts(LiveTable* live, size_t number) {
  const PlainPriority& priority = live->plain.priorities[number];
  const PlainCounts& counts = priority.counts;
  const auto table = live->priority_table(number);
  const PriorityTableStats stats = table->Stats();
  const auto count = [](int64_t value) { return static_cast<uint64_t>(value); };
  Same("inserts", stats.limiter.inserts, count(counts.inserts));
  Same("samples", stats.limiter.samples, count(counts.samples));
  Same("reserved", stats.limiter.reserved, count(counts.reserved));
  Same("deletes", stats.limiter.deletes, count(counts.deletes));
  Same("draws", stats.draws, priority.next_draw);
  if (priority.times_max() > 0) {
    Same("deleted unsampled", stats.limiter.deleted_unsampled, count(counts.unsampled));
    uint64_t exhausted = 0;
    for (const auto& [key, item] : priority.items) exhausted += priority.exhausted(item) ? 1u : 0u;
    Same("exhausted", stats.limiter.exhausted, exhausted);
  }
  const GroupStats groups = priority.CountGroups();
  Same("groups that wait", stats.groups.waiting, groups.waiting);
  Same("groups that are ready", stats.groups.ready, groups.ready);
  Same("members", stats.groups.members, groups.members);
  Same("complete", stats.groups.complete, groups.complete);
  Same("sealed by hand", stats.groups.sealed_by_hand, groups.sealed_by_hand);
  Same("sealed by deadline", stats.groups.sealed_by_deadline, groups.sealed_by_deadline);
  const BlockReport blocked = table->WhyBlocked();
  Same("samples blocked", !blocked.samples.reason.empty(),
       RefusalOf(live->plain, priority, 1) != StatusCode::kOk);
  Same("inserts blocked", !blocked.inserts.reason.empty(),
       AdmitsItems(priority, 1) != StatusCode::kOk);
  if (priority.spec.selector != SelectorKind::kEpoch) return;
  Same("epoch", stats.epoch.epoch, priority.epoch.epoch);
  // Of items that leave together the model does not know the order, which says whether a pass has
  // ended before the last of the epoch left.
  if (!priority.epoch.cut.empty()) Same("pass", stats.epoch.pass, priority.epoch.pass);
  Same("epoch items", stats.epoch.items, priority.epoch.cut.size());
  Same("remaining", stats.epoch.remaining, priority.epoch.remaining.size());
  Same("exhausted", stats.epoch.exhausted, priority.epoch_over());
}

}  // namespace geardb::differential
