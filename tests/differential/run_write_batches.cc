// Batches of changes: an append to one table and, where there is another, changes of that, and a
// tag.
#include <algorithm>

#include "tests/differential/runner.h"

namespace geardb::differential {

bool WaitsForIds(const Status& status) {
  return status.message().find("waited for more ids") != std::string_view::npos;
}

OtherChanges Runner::AddOthers(LiveTable* live, const Step& step, Choices* choices,
                               WriteBatch* batch) {
  OtherChanges changes{.live = live};
  auto& priorities = live->plain.priorities;
  if (!priorities.empty()) {
    const size_t number = choices->Below(priorities.size());
    changes.priority = &priorities[number];
    std::vector<RowId> set, deleted;
    for (const auto& [key, item] : changes.priority->items) {
      if (set.size() >= 4) break;
      changes.set.push_back(key);
      set.push_back(changes.priority->NameOf(key));
      changes.values.push_back(PriorityOf(Mixed(choices->rest(), set.size())));
    }
    if (set.size() > 2 && choices->OneIn(2)) {
      changes.deleted.push_back(changes.set[1]);
      deleted.push_back(set[1]);
    }
    changes.set_at = batch->Set(live->priority_table(number), set, changes.values);
    changes.deleted_at = batch->Delete(live->priority_table(number), deleted);
  }
  const PlainTrajectory* const victim = TrajectoryAt(live, step.numbers[1] / 24);
  if (victim == nullptr || !choices->OneIn(2)) return changes;
  changes.removed.push_back(victim->id);
  if (choices->OneIn(4)) changes.removed.push_back(live->plain.last_id + 1000);
  batch->Remove(live->table, changes.removed);
  return changes;
}

void Runner::TakeOver(const OtherChanges& changes, const WriteOutcome& outcome) {
  if (changes.live == nullptr) return;
  PlainTable& plain = changes.live->plain;
  std::set<TrajectoryId> ids;
  if (changes.priority != nullptr) {
    Same("set", outcome.operations[changes.set_at].applied, changes.set.size());
    Same("deleted", outcome.operations[changes.deleted_at].applied, changes.deleted.size());
    for (size_t i = 0; i < changes.set.size(); ++i) {
      plain.SetPriority(changes.priority, changes.set[i], changes.values[i]);
    }
    for (const ItemKey& key : changes.deleted) {
      plain.Delete(changes.priority, key);
      for (const TrajectoryId id : changes.priority->TrajectoriesOf(key)) ids.insert(id);
    }
  }
  if (!changes.removed.empty()) RemoveAll(changes.live, changes.removed, RemovalReason::kByHand);
  if (!ids.empty()) plain.Finish(ids);
}

void Runner::WriteBatches(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr || !EnsureWriter(live, 0)) return;
  Choices ends(step.numbers[1]);
  WriteBatch batch;
  const End end = static_cast<End>(ends.Below(4));
  AppendCall call = MakeCall(live, 0, {0}, {end}, 1 + static_cast<int64_t>(ends.Below(kRowsMax)),
                             ends.rest(), step.numbers[3]);
  BindCall(&call, /*of_lanes=*/false);
  StatusCode expected = ExpectedOf(call, Op::append_steps);
  const size_t append = AddTo(&batch, &call, Op::append_steps);
  // Of another table, so that what is decided before the append cannot change what it brings.
  LiveTable* const other = TableAt(step.numbers[0] + 1);
  Choices choices(step.numbers[2]);
  OtherChanges others;
  if (other != live) others = AddOthers(other, step, &choices, &batch);
  const bool unknown = others.removed.size() > 1;
  if (unknown && expected == StatusCode::kOk) expected = StatusCode::kNotFound;
  const std::vector<std::byte> blob(step.numbers[1] % 20, std::byte{3});
  const bool tags = choices.OneIn(2);
  if (tags) batch.WriteTag("batch", blob);
  const auto outcome = database_->Write(
      batch, {.admission_timeout_ms = expected == StatusCode::kOk ? kNobodyHelpsMs : 0});
  TrajectoryId& lane = live->plain.writers[0].lanes[0];
  if (unknown && !outcome.ok()) {
    ++result_.counts.refused[op_];  // By one of its operations; which, is not told.
    lane = live->writers[0]->open_trajectory(0);
    return;
  }
  if (WaitsForIds(outcome.status()) && expected != StatusCode::kOk) return;
  if (!SameCode("write", outcome.status(), expected)) return;
  if (expected == StatusCode::kNotFound) lane = 0;
  if (!outcome.ok()) return;
  TakeOver(others, *outcome);
  TakeOver(&call, outcome->operations[append].appended);
  if (!tags) return;
  std::erase_if(tags_, [](const auto& tag) { return tag.first == "batch"; });
  tags_.emplace_back("batch", blob);
  CompareTags();
}

}  // namespace geardb::differential
