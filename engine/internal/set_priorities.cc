#include "engine/internal/set_priorities.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/internal/bulk_record.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/priority_limits.h"

namespace geardb::engine {
namespace {

float Largest(std::span<const fb::Item> items) {
  float largest = 0;
  for (const fb::Item& item : items) largest = std::max(largest, item.priority());
  return largest;
}

/// The largest priority above `floor` of an item that will be there when a record that is reserved
/// now is applied; `floor` where there is none.
Result<float> LargestThere(PriorityTable::Impl* impl, std::span<const fb::Item> items, float floor)
    GEARDB_REQUIRES(impl->database->commit) {
  GEARDB_RETURN_IF_ERROR(impl->database->CatchUp());
  MutexLock lock(&impl->table->state->mutex);
  const PriorityState& priority = impl->state();
  float largest = floor;
  for (const fb::Item& item : items) {
    uint32_t generation = 0;
    if (item.priority() > largest &&
        impl->table->state->GenerationOfLeaf(priority, item.leaf(), &generation) &&
        generation == item.generation() && priority.selector().Contains(item.leaf())) {
      largest = item.priority();
    }
  }
  return largest;
}

/// The shift that the weights there are should get.
std::optional<int> AdvisedShift(const TableCore& table, uint32_t priority_table) {
  MutexLock lock(&table.state->mutex);
  const index::PrioritizedSelector* selector = table.state->priority(priority_table).prioritized();
  return selector == nullptr ? std::nullopt : selector->AdviseShift(0);
}

/// The shift that the weights should get before one is that of `largest`, which does not fit.
std::optional<int> ShiftFor(const PriorityTable::Impl& impl, float largest) {
  MutexLock lock(&impl.table->state->mutex);
  const index::PrioritizedSelector* selector = impl.state().prioritized();
  if (selector == nullptr) return std::nullopt;
  const double weight = selector->WeightOf(largest);
  return selector->MaxWeightFits(weight) ? std::nullopt : selector->AdviseShift(weight);
}

/// What was called, for the error of one that is too large.
std::string CallText(const char* call, const PriorityTable::Impl& impl) {
  return std::string(call) + " of priority table '" + impl.spec.name + "' of table '" +
         impl.table->layout().spec().name + "'";
}

/// Whether a record's body takes these items; otherwise they go into its pieces.
bool FitOneBody(const DatabaseCore& database, std::span<const fb::Item> items) {
  return items.size_bytes() + 1024 <= database.log->record_bytes_max();
}

}  // namespace

Status CheckSet(const PriorityTableSpec& spec, size_t items, std::span<const float> priorities) {
  if (items != priorities.size()) {
    return Status::InvalidArgument("priority table '", spec.name, "': ", priorities.size(),
                                   " priorities for ", items, " items");
  }
  return CheckRawPriorities(spec, priorities);
}

Status CheckRawPriorities(const PriorityTableSpec& spec, std::span<const float> priorities) {
  for (size_t i = 0; i < priorities.size(); ++i) {
    if (index::ValidPriority(priorities[i])) continue;
    return Status::InvalidArgument("priority table '", spec.name, "': priority ", i, " is ",
                                   priorities[i], "; expected a finite value of at least 0");
  }
  return Status::Ok();
}

Result<float> MaxWith(PriorityTable::Impl* impl, std::span<const fb::Item> items) {
  const float max = impl->table->plan->max_priority[impl->number];
  if (Largest(items) <= max) return max;
  return LargestThere(impl, items, max);  // Rare.
}

Result<bool> RescaleForSet(PriorityTable::Impl* impl, ChangeScope* scope,
                           std::span<const fb::Item> items, std::vector<wal::RecordSize> records) {
  if (!ShiftFor(*impl, Largest(items))) return false;
  // Rare: what reaches no item needs no scale.
  GEARDB_ASSIGN_OR_RETURN(const float largest, LargestThere(impl, items, 0));
  const std::optional<int> shift = ShiftFor(*impl, largest);
  if (!shift) return false;
  GEARDB_RETURN_IF_ERROR(RescaleAhead(impl->database.get(), scope, impl->table,
                                      {impl->number, *shift}, std::move(records)));
  return true;
}

Status RescaleAhead(DatabaseCore* database, ChangeScope* scope,
                    const std::shared_ptr<TableCore>& table, const ScaleChange& change,
                    std::vector<wal::RecordSize> records) {
  records.insert(records.begin(), DatabaseCore::RescaleSize());
  GEARDB_RETURN_IF_ERROR(scope->PrepareFor(records, scope->how().urgency));
  return database->LogRescale(scope, table, change.priority_table, change.shift);
}

Status RescaleInScope(DatabaseCore* database, ChangeScope* scope,
                      const std::shared_ptr<TableCore>& table, uint32_t priority_table) {
  for (;;) {
    // What is on its way counts, too: a scale that fits the rest may be none for it.
    GEARDB_RETURN_IF_ERROR(database->CatchUp());
    const std::optional<int> shift = AdvisedShift(*table, priority_table);
    if (!shift) return Status::Ok();
    GEARDB_RETURN_IF_ERROR(database->LogRescale(scope, table, priority_table, *shift));
  }
}

void RescaleIfDue(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                  uint32_t priority_table) {
  if (!database->CheckWritable().ok()) return;  // What called may have been refused for it.
  if (!AdvisedShift(*table, priority_table)) return;
  // Waits for no room: another change will ask again.
  ChangeScope scope(database, table.get(), {.deadline = Deadline::Now()});
  if (!scope.status().ok()) return;
  (void)RescaleInScope(database, &scope, table, priority_table).ok();
}

void RescaleWhereDue(DatabaseCore* database, const std::shared_ptr<TableCore>& table) {
  if (!database->CheckWritable().ok()) return;
  size_t count = 0;
  {
    MutexLock lock(&table->state->mutex);
    count = table->state->priority_table_count();
  }
  for (uint32_t i = 0; i < count; ++i) RescaleIfDue(database, table, i);
}

std::vector<ListedItem> ListItems(const PriorityTable::Impl& impl) {
  const TableState& state = *impl.table->state;
  const PriorityState& priority = impl.state();
  const TableLayout& layout = state.layout();
  std::vector<ListedItem> items;
  items.reserve(priority.selector().count());
  priority.selector().ForEachMember({0, priority.selector().reserved()}, [&](uint64_t leaf) {
    if (!priority.draws_windows()) {
      const auto& record = state.trajectories().record(state.SlotOfLeaf(priority, leaf));
      items.push_back({{record.id, static_cast<int64_t>(record.first_row)}, leaf});
      return;
    }
    const index::PageRecord& page = state.pages().page(layout.LpnOfLeaf(leaf));
    const uint64_t offset = leaf & (layout.steps_per_page() - 1);
    items.push_back(
        {{state.trajectories().record(page.slot).id,
          static_cast<int64_t>(uint64_t{page.page_number} * layout.steps_per_page() + offset)},
         leaf});
  });
  std::sort(items.begin(), items.end(), [](const ListedItem& a, const ListedItem& b) {
    return a.row.id != b.row.id ? a.row.id < b.row.id : a.row.row < b.row.row;
  });
  return items;
}

uint64_t FindItem(const PriorityTable::Impl& impl, const RowId& row) {
  const TableState& state = *impl.table->state;
  const Slot slot = state.trajectories().FindById(row.id);
  if (slot == kNoSlot) return UINT64_MAX;
  const auto rows_end = static_cast<int64_t>(state.trajectories().record(slot).rows_end);
  const uint64_t leaf =
      state.LeafOfItem(impl.state(), slot, row.row < 0 ? row.row + rows_end : row.row);
  if (leaf == UINT64_MAX || !impl.state().selector().Contains(leaf)) return UINT64_MAX;
  return leaf;
}

namespace {

Result<SetOutcome> TrySet(PriorityTable::Impl* impl, std::span<const fb::Item> items,
                          uint64_t stale_already) {
  DatabaseCore& database = *impl->database;
  GEARDB_RETURN_IF_ERROR(database.CheckWritable());
  GEARDB_RETURN_IF_ERROR(database.CheckTable(*impl->table));
  if (items.empty()) return SetOutcome{.stale = stale_already};
  PriorityOutcome outcome;
  FunctionChange change([impl, items, &outcome](Lsn, Lsn end) {
    ApplyLock lock(impl->table->state.get(), end);
    outcome = impl->table->state->ApplySet(items, impl->number);
    impl->table->state->changed.NotifyAll();
  });
  const bool in_pieces = !FitOneBody(database, items);
  const auto in_body =
      in_pieces ? 0 : change.body.CreateVectorOfStructs(items.data(), items.size());
  change.FinishBody(
      {.table = impl->table->layout().id(), .priority_table = impl->number},
      fb::Change::SetPriorities,
      fb::CreateSetPriorities(change.body, in_body, in_pieces, in_pieces ? items.size() : 0)
          .Union());
  const wal::RecordSize size = wal::RecordSize::For(change.body_bytes().size(), {});
  BulkRecord record(&database, &change);
  if (in_pieces) {
    const Status fits =
        record.CheckFits(items.size_bytes(), {.things = "items", .bytes = sizeof(fb::Item)});
    if (!fits.ok()) return fits.WithContext(CallText("Set", *impl));
    record.AddBytes(std::as_bytes(items));
  }
  {
    ChangeScope scope(&database, impl->table.get(), {});
    for (bool again = true; again;) {
      GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, {}, &again));
      if (again) continue;
      GEARDB_ASSIGN_OR_RETURN(again, RescaleForSet(impl, &scope, items, record.Records()));
    }
    GEARDB_ASSIGN_OR_RETURN(const float max, MaxWith(impl, items));
    GEARDB_RETURN_IF_ERROR(record.Reserve(&scope));
    impl->table->plan->max_priority[impl->number] = max;
  }
  record.Finish();
  GEARDB_RETURN_IF_ERROR(database.Acknowledge(record.end(), Ack::kLog));
  return SetOutcome{
      .applied = outcome.applied, .stale = outcome.stale + stale_already, .end_lsn = record.end()};
}

/// Priorities given in order of (id, row), one for each item, in that of their leaves.
void OrderByLeaf(const PriorityTable::Impl& impl, std::span<const float> priorities,
                 std::vector<float>* by_leaf) {
  if (priorities.size() <= 1) return;
  std::vector<std::pair<uint64_t, float>> order;
  order.reserve(priorities.size());
  MutexLock lock(&impl.table->state->mutex);
  for (const ListedItem& item : ListItems(impl)) {
    order.emplace_back(item.leaf, priorities[order.size()]);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) (*by_leaf)[i] = order[i].second;
}

Result<SetOutcome> TrySetAll(PriorityTable::Impl* impl, std::span<const float> priorities) {
  DatabaseCore& database = *impl->database;
  GEARDB_RETURN_IF_ERROR(database.CheckWritable());
  GEARDB_RETURN_IF_ERROR(database.CheckTable(*impl->table));
  const float largest =
      priorities.empty() ? 0 : *std::max_element(priorities.begin(), priorities.end());
  std::vector<float> by_leaf(priorities.begin(), priorities.end());
  PriorityOutcome outcome;
  FunctionChange change([impl, &outcome, &by_leaf](Lsn, Lsn end) {
    ApplyLock lock(impl->table->state.get(), end);
    outcome = impl->table->state->ApplySetAll(by_leaf, impl->number);
    impl->table->state->changed.NotifyAll();
  });
  BulkRecord record(&database, &change);
  const auto bytes = std::as_bytes(std::span(by_leaf));
  if (by_leaf.size() > 1) record.AddBytes(bytes);
  {
    // Kept to the end: no item may come or go between the list and the record.
    ChangeScope scope(&database, impl->table.get(), {});
    GEARDB_RETURN_IF_ERROR(scope.status());
    uint64_t items = 0;
    for (bool again = true; again;) {
      again = false;
      GEARDB_RETURN_IF_ERROR(database.CatchUp());
      {
        MutexLock state_lock(&impl->table->state->mutex);
        items = impl->state().selector().count();
      }
      if (priorities.size() != 1 && items != priorities.size()) {
        return Status::FailedPrecondition("priority table '", impl->spec.name, "' has ", items,
                                          " items; ", priorities.size(), " priorities are given");
      }
      if (priorities.empty()) return SetOutcome{};
      OrderByLeaf(*impl, priorities, &by_leaf);
      change.body.Clear();
      change.FinishBody(
          {.table = impl->table->layout().id(), .priority_table = impl->number}, fb::Change::SetAll,
          fb::CreateSetAll(change.body, by_leaf[0], 0, by_leaf.size() > 1, items).Union());
      const Status fits =
          record.CheckFits(bytes.size(), {.things = "priorities", .bytes = sizeof(float)});
      if (!fits.ok()) return fits.WithContext(CallText("SetAll", *impl));
      const std::optional<int> shift = items > 0 ? ShiftFor(*impl, largest) : std::nullopt;
      if (!shift) continue;
      again = true;
      GEARDB_RETURN_IF_ERROR(
          RescaleAhead(&database, &scope, impl->table, {impl->number, *shift}, record.Records()));
    }
    GEARDB_RETURN_IF_ERROR(record.Reserve(&scope));
    float& max = impl->table->plan->max_priority[impl->number];
    if (items > 0) max = std::max(max, largest);
  }
  record.Finish();
  GEARDB_RETURN_IF_ERROR(database.Acknowledge(record.end(), Ack::kLog));
  return SetOutcome{.applied = outcome.applied, .stale = outcome.stale, .end_lsn = record.end()};
}

}  // namespace

Result<SetOutcome> CommitSet(PriorityTable::Impl* impl, std::span<const fb::Item> items,
                             uint64_t stale_already) {
  auto outcome = TrySet(impl, items, stale_already);
  RescaleIfDue(impl->database.get(), impl->table, impl->number);
  return outcome;
}

Result<SetOutcome> CommitSetAll(PriorityTable::Impl* impl, std::span<const float> priorities) {
  auto outcome = TrySetAll(impl, priorities);
  RescaleIfDue(impl->database.get(), impl->table, impl->number);
  return outcome;
}

Status ConfigureLimits(PriorityTable::Impl* impl, const PriorityLimits& limits) {
  DatabaseCore& database = *impl->database;
  TableState& state = *impl->table->state;
  GEARDB_RETURN_IF_ERROR(database.CheckWritable());
  GEARDB_RETURN_IF_ERROR(database.CheckTable(*impl->table));
  FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    ApplyLock lock(&state, end);
    state.Apply(*change.operation()->change_as_Configure(), impl->number);
    state.changed.NotifyAll();
  });
  const auto stored = EncodeLimits(&change.body, limits);
  change.FinishBody({.table = impl->table->layout().id(), .priority_table = impl->number},
                    fb::Change::Configure,
                    fb::CreateConfigure(change.body, stored, /*regroups=*/true).Union());
  const wal::RecordSize size = wal::RecordSize::For(change.body_bytes().size(), {});
  if (database.timekeeper != nullptr) {
    PriorityTableSpec wanted{.name = impl->spec.name};
    SetLimits(limits, &wanted);
    GEARDB_RETURN_IF_ERROR(database.timekeeper->Watch(
        {.name = impl->table->layout().spec().name, .priority_tables = {wanted}}));
  }
  Status published;
  {
    // To the end: whoever has the commit mutex knows what the limits are.
    ChangeScope scope(&database, impl->table.get(), {});
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, {}, &waited));
    GEARDB_RETURN_IF_ERROR(scope.status());
    GEARDB_RETURN_IF_ERROR(database.CatchUp());
    {
      MutexLock lock(&state.mutex);
      PriorityTableSpec spec = impl->state().spec();
      SetLimits(limits, &spec);
      GEARDB_RETURN_IF_ERROR(ValidateLimits(spec));
      GEARDB_RETURN_IF_ERROR(impl->state().PrepareLimits(limits));
    }
    const wal::Reservation reservation = scope.Reserve({.size = size});
    database.Finish(reservation, {}, &change);
    published = database.Acknowledge(reservation.end, Ack::kLog);
    database.room_made.NotifyAll();
  }
  RescaleIfDue(&database, impl->table, impl->number);
  return published;
}

}  // namespace geardb::engine
