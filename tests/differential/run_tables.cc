// Tables, columns, and trajectories without rows that come.
#include <algorithm>

#include "tests/differential/runner.h"

namespace geardb::differential {
namespace {

constexpr size_t kTablesMax = 3;

}  // namespace

/// Groups of which every column was dropped take no frames any more.
void LiveTable::TakePageBytes() {
  plain.page_bytes = 0;
  for (const GroupPlaces& places : table->Places()) {
    const bool there = std::any_of(plain.groups.begin(), plain.groups.end(),
                                   [&](const ColumnGroup& g) { return g.name == places.group; });
    if (places.column.empty() && (there || places.group.empty())) {
      plain.page_bytes += places.frame_bytes;
    }
  }
}

LiveTable* Runner::TableAt(uint64_t number) {
  return tables_.empty() ? nullptr : tables_[number % tables_.size()].get();
}

PlainTrajectory* Runner::TrajectoryAt(LiveTable* live, uint64_t number) {
  auto& trajectories = live->plain.trajectories;
  if (trajectories.empty()) return nullptr;
  auto found = trajectories.begin();
  std::advance(found, number % trajectories.size());
  return &found->second;
}

std::pair<LiveTable*, size_t> Runner::PriorityAt(uint64_t number) {
  size_t all = 0;
  for (const auto& live : tables_) all += live->plain.priorities.size();
  if (all == 0) return {nullptr, 0};
  size_t at = number % all;
  for (const auto& live : tables_) {
    if (at < live->plain.priorities.size()) return {live.get(), at};
    at -= live->plain.priorities.size();
  }
  return {nullptr, 0};
}

void Runner::CreateTable(const Step& step) {
  if (tables_.size() >= kTablesMax) {
    const TableSpec there = TableKind(tables_.back()->plain.spec.name, step.numbers[0]);
    SameCode("name", database_->CreateTable(there).status(), StatusCode::kAlreadyExists);
    return;
  }
  const TableSpec spec = TableKind("t" + std::to_string(tables_made_), step.numbers[0]);
  auto table =
      step.numbers[0] % 2 == 0 ? database_->CreateTable(spec) : database_->OpenOrCreateTable(spec);
  if (!SameCode("create", table.status(), StatusCode::kOk)) return;
  ++tables_made_;
  tables_.push_back(std::make_unique<LiveTable>(PlainTable(spec, clock_.now_us)));
  tables_.back()->table = std::move(*table);
  tables_.back()->TakePageBytes();
  PlainTable& plain = tables_.back()->plain;
  const bool bytes = plain.spec.bytes_max > 0;
  if (bytes && bug_ == PlantedBug::kHoldsAPageMore) plain.spec.bytes_max += plain.page_bytes;
  CompareTable(tables_.back().get());
}

void Runner::DropTable(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) {
    SameCode("unknown", database_->DropTable("t"), StatusCode::kNotFound);
    return;
  }
  CountStats();
  StopAll(live);
  const std::string name = live->plain.spec.name;
  SameCode("drop", database_->DropTable(name), StatusCode::kOk);
  // Those that are left end with Cancelled.
  for (size_t w = 0; w < live->plain.writers.size(); ++w) {
    if (live->writers[w] == nullptr) continue;
    SameCode("its writer", live->writers[w]->Cut(0).status(), StatusCode::kCancelled);
  }
  std::erase_if(batches_, [&](const KeptBatch& batch) { return batch.table == live; });
  std::erase_if(tables_, [&](const auto& other) { return other.get() == live; });
  SameCode("dropped", database_->OpenTable(name).status(), StatusCode::kNotFound);
}

void Runner::OpenTable(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  const TableSpec stored = live->table->spec();
  auto again = database_->OpenOrCreateTable(stored);
  if (!SameCode("again", again.status(), StatusCode::kOk)) return;
  Same("id", (*again)->id(), live->table->id());
  TableSpec other = stored;
  other.trajectories_max += 1;
  SameCode("other spec", database_->OpenOrCreateTable(other).status(),
           StatusCode::kFailedPrecondition);
  for (const std::string& name : live->table->PriorityTables()) {
    SameCode("priority table", live->table->OpenPriorityTable(name).status(), StatusCode::kOk);
  }
  SameCode("no priority table", live->table->OpenPriorityTable("none").status(),
           StatusCode::kNotFound);
}

void Runner::CreatePriorityTable(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr || live->plain.priorities.size() >= 5) return;
  PlainTable& plain = live->plain;
  for (const char* name : {"goal", "flag", "prio", "team"}) {
    if (plain.FindColumn(name) == nullptr) return;  // Kinds name them.
  }
  TableSpec spec = plain.spec;
  spec.groups = plain.groups;
  std::erase_if(spec.columns, [&plain](const Column& column) {
    return plain.FindColumn(column.name) == nullptr;  // It was dropped.
  });
  const std::string name = "p" + std::to_string(plain.priorities.size());
  const PriorityTableSpec priority = PriorityTableKind(name, spec, step.numbers[1]);
  // Who is there joins in the order of slots, which the model knows while none has been free again.
  if (priority.item == ItemKind::kGroup && !plain.removals.empty()) return;
  if (!SameCode("create", live->table->CreatePriorityTable(priority).status(), StatusCode::kOk)) {
    return;
  }
  plain.CreatePriority(priority);
  SameCode("again", live->table->CreatePriorityTable(priority).status(),
           StatusCode::kAlreadyExists);
  CompareTable(live);
}

void Runner::RemoveAll(LiveTable* live, const std::vector<TrajectoryId>& ids,
                       RemovalReason reason) {
  ++live->plain.moment;
  for (const TrajectoryId id : ids) live->plain.Remove(id, reason);
  live->plain.Settle();
}

void Runner::Remove(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  Choices choices(step.numbers[2]);
  std::set<TrajectoryId> ids;
  for (uint64_t i = choices.Below(3) + 1; i > 0; --i) {
    const PlainTrajectory* const chosen = TrajectoryAt(live, step.numbers[1] + i);
    if (chosen != nullptr) ids.insert(chosen->id);
  }
  std::vector<TrajectoryId> list(ids.begin(), ids.end());
  if (choices.OneIn(5)) {
    list.push_back(live->plain.last_id + 1000);
    SameCode("unknown", live->table->Remove(list), StatusCode::kNotFound);
    return;
  }
  if (SameCode("remove", live->table->Remove(list), StatusCode::kOk)) {
    RemoveAll(live, list, RemovalReason::kByHand);
  }
}

void Runner::RemoveRange(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  const PlainTrajectory* const first = live ? TrajectoryAt(live, step.numbers[1]) : nullptr;
  if (first == nullptr) return;
  const IdRange range(first->id, first->id + step.numbers[2] % 4);
  std::vector<TrajectoryId> ids;
  for (const auto& [id, trajectory] : live->plain.trajectories) {
    if (id >= range.begin && id < range.end) ids.push_back(id);
  }
  const auto removed = live->table->Remove(range);
  if (!SameCode("remove", removed.status(), StatusCode::kOk)) return;
  Same("how many", *removed, ids.size());
  RemoveAll(live, ids, RemovalReason::kByHand);
}

void Runner::RemovePassing(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  Choices choices(step.numbers[1]);
  std::string text = FilterKind(&choices, /*standing=*/false);
  if (text.empty()) text = "id < 0";
  const auto filter = Filter::Parse(text);
  if (!SameCode("parse", filter.status(), StatusCode::kOk)) return;
  const auto removed = live->table->Remove(*filter);
  if (live->table->Check(*filter).ok()) {
    if (!SameCode("remove", removed.status(), StatusCode::kOk)) return;
  } else {
    SameCode("column", removed.status(), StatusCode::kNotFound);
    return;
  }
  std::vector<TrajectoryId> ids;
  for (const auto& [id, trajectory] : live->plain.trajectories) {
    if (text != "id < 0" && live->plain.Passes(text, trajectory)) ids.push_back(id);
  }
  Same("how many", *removed, ids.size());
  RemoveAll(live, ids, RemovalReason::kByHand);
}

void Runner::Truncate(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  const PlainTrajectory* const chosen = live ? TrajectoryAt(live, step.numbers[1]) : nullptr;
  if (chosen == nullptr) return;
  const TrajectoryId id = chosen->id;
  const int64_t row = chosen->first_row() + static_cast<int64_t>(step.numbers[2] % 12);
  const bool allowed = row < chosen->steps_end();
  const Status status = live->table->Truncate(id, row);
  SameCode("truncate", status, allowed ? StatusCode::kOk : StatusCode::kInvalidArgument);
  if (!status.ok()) return;
  if (row == chosen->first_row()) return;
  ++live->plain.moment;
  if (bug_ != PlantedBug::kTruncatesNothing) live->plain.Truncate(id, row);
  live->plain.Settle();
  if (!live->plain.trajectories.contains(id)) return;  // A filter's: first_row.
  const auto found = live->table->Find(id);
  if (!found.ok()) return Differ("find", found.status().ToString());
  Same("first row", found->first_row, live->plain.trajectories.at(id).first_row());
}

void Runner::SetColumns(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  const PlainTrajectory* const chosen = live ? TrajectoryAt(live, step.numbers[1]) : nullptr;
  if (chosen == nullptr) return;
  const TrajectoryId id = chosen->id;
  Choices choices(step.numbers[2]);
  const uint64_t which = choices.Below(8) + 1;
  CallValues call;
  Values values;
  for (const PlainColumn& column : live->plain.columns) {
    if (column.per_step() || (which >> (column.number % 4) & 1) == 0) continue;
    const Value value =
        std::make_shared<const Bytes>(RowOf(column.column, Mixed(choices.rest(), column.number)));
    values[column.number] = value;
    call.Add(column.column, {value}, {});
  }
  if (values.empty()) return;
  if (SameCode("set", live->table->SetColumns(id, call.values()), StatusCode::kOk)) {
    live->plain.SetColumns(id, values);
  }
}

void Runner::Patch(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  const PlainTrajectory* const chosen = live ? TrajectoryAt(live, step.numbers[1]) : nullptr;
  if (chosen == nullptr) return;
  Choices choices(step.numbers[2]);
  const int64_t before = choices.OneIn(4) ? std::min<int64_t>(chosen->first_row(), 2) : 0;
  const int64_t there = chosen->rows_end() - chosen->first_row();
  const int64_t skipped = choices.OneIn(2) ? static_cast<int64_t>(choices.Below(8)) % there : 0;
  const int64_t first = chosen->first_row() - before + skipped;
  const int64_t count =
      std::min<int64_t>(static_cast<int64_t>(choices.Below(12)) + 1, chosen->rows_end() - first);
  const bool from_end = choices.OneIn(4);
  CallValues call;
  std::vector<Values> rows(static_cast<size_t>(count));
  bool gap = false, too_early = false;
  for (const PlainColumn& column : live->plain.columns) {
    if (!column.per_step()) continue;
    if ((column.number + step.numbers[3]) % 3 != 0) continue;
    std::vector<Value> values;
    for (size_t r = 0; r < rows.size(); ++r) {
      values.push_back(std::make_shared<const Bytes>(
          RowOf(column.column, Mixed(choices.rest(), r * 64 + column.number))));
      rows[r][column.number] = values.back();
    }
    call.Add(column.column, values, count);
    too_early |= column.any_length() && !column.late && !chosen->closed();
    if (!column.late) continue;
    const auto filled = chosen->filled.find(column.column.group);
    const int64_t end = filled == chosen->filled.end() ? 0 : filled->second;
    gap |= first > std::max(end, chosen->first_row());
  }
  if (rows[0].empty()) return;
  const RowSpan span{chosen->id, from_end ? first - chosen->rows_end() : first, count};
  const auto outcome = live->table->Patch({&span, 1}, call.values());
  const int64_t stale = std::clamp<int64_t>(chosen->first_row() - first, 0, count);
  StatusCode expected = gap ? StatusCode::kInvalidArgument : StatusCode::kOk;
  if (!gap && too_early && stale < count) expected = StatusCode::kFailedPrecondition;
  if (!SameCode("patch", outcome.status(), expected) || !outcome.ok()) return;
  Same("stale", outcome->stale, static_cast<uint64_t>(stale));
  Same("applied", outcome->applied, static_cast<uint64_t>(count - stale));
  if (stale == count) return;
  live->plain.Patch(chosen->id, first, rows);
  for (const PlainColumn& column : live->plain.columns) {
    if (column.any_length() && rows[0].contains(column.number)) {
      ++result_.counts.shown["patched values"];
    }
  }
}

void Runner::AddColumns(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr || columns_made_ >= 4) return;
  Choices choices(step.numbers[1]);
  const uint64_t bytes_max = live->plain.spec.bytes_max;
  // A call fits afterwards, too.
  if (bytes_max > 0 && kPagesOfCall * (live->plain.page_bytes + 128) > bytes_max) return;
  const std::string name = "added" + std::to_string(columns_made_++);
  Column column{.name = name, .dtype = DType::kI16, .default_value = 5};
  std::vector<ColumnGroup> groups;
  const uint64_t kind = choices.Below(bytes_max > 0 ? 3 : 7);
  if (kind == 1) column.kind = ColumnKind::kPerTrajectory;
  if (kind == 3 || kind == 4) {
    column.kind = kind == 3 ? ColumnKind::kRagged : ColumnKind::kBlob;
    column.default_value = 0;
    column.expected_rows = 100;
  }
  if (kind == 2 || kind > 4) {
    groups.push_back({.name = name + "/group", .late = kind != 5, .is_volatile = kind > 4});
    column.group = groups[0].name;
  }
  if (!SameCode("add", live->table->AddColumns({&column, 1}, groups), StatusCode::kOk)) return;
  if (kind == 0 || kind == 3) {
    column.group = name;
    groups.push_back({.name = name});
  }
  for (const ColumnGroup& group : groups) live->plain.groups.push_back(group);
  live->plain.AddColumn(column);
  live->TakePageBytes();
  SameCode("again", live->table->AddColumns({&column, 1}), StatusCode::kInvalidArgument);
  CompareTable(live);
}

void Runner::DropColumns(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  const auto& columns = live->plain.columns;
  const Column column = columns[step.numbers[1] % columns.size()].column;
  size_t in_first = 0, in_its_group = 0;
  for (const PlainColumn& other : columns) {
    in_first += other.per_step() && other.column.group.empty() ? 1u : 0u;
    in_its_group += other.per_step() && other.column.group == column.group ? 1u : 0u;
  }
  const bool per_step = column.kind == ColumnKind::kPerStep;
  StatusCode expected = StatusCode::kOk;
  for (const PlainPriority& priority : live->plain.priorities) {
    const PriorityTableSpec& spec = priority.spec;
    for (const std::string& name : spec.required) {
      const bool last_of_it = name == column.group && in_its_group == 1;
      if (name != column.name && !last_of_it) continue;
      expected = StatusCode::kFailedPrecondition;
    }
    const bool takes = spec.initial == InitialPriority::kColumn;
    const bool named = spec.filter.find(column.name) != std::string::npos;
    if (spec.group.key == column.name) expected = StatusCode::kFailedPrecondition;
    if ((takes && spec.initial_priority_column == column.name) || named) {
      expected = StatusCode::kFailedPrecondition;
    }
  }
  if (per_step && column.group.empty() && in_first == 1) expected = StatusCode::kInvalidArgument;
  const std::string_view name = column.name;
  if (!SameCode("drop", live->table->DropColumns({&name, 1}), expected)) return;
  if (expected != StatusCode::kOk) return;
  live->plain.DropColumn(name);
  live->TakePageBytes();
  SameCode("again", live->table->DropColumns({&name, 1}), StatusCode::kNotFound);
  CompareTable(live);
}

// Time.

void Runner::PassTime(const Step& step) {
  clock_.now_us += static_cast<int64_t>(step.numbers[0] % 300) * 1000;
  for (const auto& live : tables_) live->plain.now_us = clock_.now_us;
}

void Runner::CloseOrphans(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  const auto older_ms = static_cast<int64_t>(step.numbers[1] % 200);
  const auto closed = live->table->CloseOrphans(older_ms);
  if (!SameCode("close", closed.status(), StatusCode::kOk)) return;
  Same("how many", *closed, live->plain.CloseOrphans(older_ms));
}

void Runner::RemoveExpired(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  const auto removed = live->table->RemoveExpired();
  if (!SameCode("remove", removed.status(), StatusCode::kOk)) return;
  Same("how many", *removed, live->plain.RemoveExpired());
}

// The log.

void Runner::WriteTag(const Step& step) {
  const std::string name = "tag " + std::to_string(step.numbers[0] % 3);
  std::vector<std::byte> blob(step.numbers[1] % 50, static_cast<std::byte>(step.numbers[1]));
  const auto tag = database_->WriteTag(name, blob);
  if (!SameCode("write", tag.status(), StatusCode::kOk)) return;
  Same("time", tag->created_us, clock_.now_us);
  std::erase_if(tags_, [&](const auto& other) { return other.first == name; });
  tags_.emplace_back(name, blob);
  CompareTags();
}

void Runner::Wait(const Step& step) {
  const auto level = static_cast<Ack>(step.numbers[1] % 3);
  if (step.numbers[0] % 4 == 3) {
    const Ticket beyond{database_->Stats().log_end + 64};
    SameCode("beyond", database_->Wait(beyond, level), StatusCode::kInvalidArgument);
    return;
  }
  SameCode("wait", database_->Wait({last_end_}, level), StatusCode::kOk);
  SameCode("sync", database_->Sync(), StatusCode::kOk);
}

}  // namespace geardb::differential
