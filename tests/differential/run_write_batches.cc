// Batches of changes: an append to one table, on one lane or several, and, where there is another
// table, changes of that or an append to it, and a tag.
#include <algorithm>
#include <set>

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
  const PlainTrajectory* const scored = TrajectoryAt(live, step.numbers[1] / 48);
  if (scored != victim && choices->OneIn(2)) {
    changes.set_columns = scored->id;
    for (const PlainColumn& column : live->plain.columns) {
      const bool wide = column.any_length() || column.column.name == "map";
      if (column.per_step() || wide || choices->OneIn(3)) continue;
      const Value value = std::make_shared<const Bytes>(
          RowOf(column.column, Mixed(choices->rest(), column.number)));
      changes.columns[column.number] = value;
      changes.call.Add(column.column, {value}, {});
    }
    batch->SetColumns(live->table, scored->id, changes.call.values());
  }
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
  // All at once: what is deleted finishes nothing that is removed, and others may leave with both.
  if (!changes.columns.empty()) {
    plain.SetColumns(changes.set_columns, changes.columns, changes.removed);
    ++result_.counts.shown["columns set by batches"];
  } else if (!changes.removed.empty()) {
    RemoveAll(changes.live, changes.removed, RemovalReason::kByHand);
  }
  if (!ids.empty()) plain.Finish(ids);
}

BatchedAppend Runner::AddAppend(LiveTable* live, size_t writer, uint64_t number, uint64_t extras,
                                WriteBatch* batch) {
  BatchedAppend added;
  Choices choices(number);
  std::vector<uint32_t> lanes;
  std::vector<End> ends;
  for (uint32_t lane = 0; lane < kLanesOfWriter[writer]; ++lane) {
    lanes.push_back(lane);
    ends.push_back(static_cast<End>(choices.Below(4)));
  }
  // All lanes together add no more than the smallest table may hold.
  const uint64_t most = lanes.size() == 1 || !IsBounded(live->plain.spec) ? kRowsMax : 1;
  const auto count = 1 + static_cast<int64_t>(choices.Below(most));
  added.whole = MakeCall(live, writer, lanes, ends, count, choices.rest(), extras);
  const StatusCode expected = ExpectedOf(added.whole, Op::append_steps);
  if (expected != StatusCode::kOk) added.expected = expected;
  for (const uint32_t lane : lanes) {
    AppendCall& part = added.parts.emplace_back(
        MakeCall(live, writer, {lane}, {ends[lane]}, count, choices.rest(), extras));
    BindCall(&part, /*of_lanes=*/false);
    added.at.push_back(AddTo(batch, &part, Op::append_steps));
  }
  return added;
}

void Runner::TakeOver(BatchedAppend* added, const WriteOutcome& outcome) {
  std::vector<Appended> appended;
  for (const size_t at : added->at) {
    const auto& one = outcome.operations[at].appended;
    appended.insert(appended.end(), one.begin(), one.end());
  }
  TakeOver(&added->whole, appended);
}

/// A refused batch lets lanes go whose trajectory has left: those that it came to.
void Runner::LetLanesGo(const BatchedAppend& added) {
  PlainTable& plain = added.whole.live->plain;
  std::vector<TrajectoryId>& lanes = plain.writers[added.whole.writer].lanes;
  for (uint32_t lane = 0; lane < lanes.size(); ++lane) {
    if (plain.trajectories.contains(lanes[lane])) continue;
    lanes[lane] = added.whole.live->writers[added.whole.writer]->open_trajectory(lane);
  }
}

void Runner::WriteBatches(const Step& step) {
  Choices choices(step.numbers[2]);
  // One lane or several, and another table's changes or an append to it.
  const size_t writer = choices.Below(3) / 2;
  const bool appends_to_other = choices.OneIn(3);
  LiveTable* const live = TableAt(step.numbers[0]);
  // Another table, so that what is decided before the append cannot change what it brings.
  LiveTable* const other = TableAt(step.numbers[0] + 1);
  if (live == nullptr || !EnsureWriter(live, writer)) return;
  WriteBatch batch;
  std::deque<BatchedAppend> appends;  // The batch points into them.
  appends.push_back(AddAppend(live, writer, step.numbers[1], step.numbers[3], &batch));
  OtherChanges others;
  if (other != live && !appends_to_other) {
    others = AddOthers(other, step, &choices, &batch);
  } else if (other != live && EnsureWriter(other, 1)) {
    appends.push_back(AddAppend(other, 1, step.numbers[1] / 3, step.numbers[3] / 3, &batch));
  }
  std::set<StatusCode> expected;
  for (const BatchedAppend& append : appends) {
    if (append.expected) expected.insert(*append.expected);
  }
  const bool unknown = others.removed.size() > 1;
  if (unknown) expected.insert(StatusCode::kNotFound);
  const std::vector<std::byte> blob(step.numbers[1] % 20, std::byte{3});
  const bool tags = choices.OneIn(2);
  if (tags) batch.WriteTag("batch", blob);
  const auto outcome =
      database_->Write(batch, {.admission_timeout_ms = expected.empty() ? kNobodyHelpsMs : 0});
  if (WaitsForIds(outcome.status()) && !expected.empty()) return;
  // Where several operations are to be refused, which of them says so is not told.
  const StatusCode code = outcome.status().code();
  const bool one_of_them = expected.contains(code);
  const StatusCode one = expected.empty() ? StatusCode::kOk : *expected.begin();
  if (!SameCode("write", outcome.status(), one_of_them ? code : one)) return;
  if (!outcome.ok()) {
    for (const BatchedAppend& append : appends) LetLanesGo(append);
    return;
  }
  TakeOver(others, *outcome);
  for (BatchedAppend& append : appends) TakeOver(&append, *outcome);
  if (appends.size() > 1) ++result_.counts.shown["batches of two tables"];
  if (writer == 1) ++result_.counts.shown["batches of several lanes"];
  if (!tags) return;
  std::erase_if(tags_, [](const auto& tag) { return tag.first == "batch"; });
  tags_.emplace_back("batch", blob);
  CompareTags();
}

}  // namespace geardb::differential
