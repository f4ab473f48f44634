#include "engine/internal/set_priorities.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "engine/internal/bulk_record.h"
#include "engine/internal/change_scope.h"

namespace geardb::engine {
namespace {

/// The record of a Set: says what became of it.
class SetChange final : public Change {
 public:
  SetChange(PriorityTable::Impl* impl) : impl_(impl) {}
  PriorityOutcome outcome;

 private:
  void Apply(Lsn) override {
    MutexLock lock(&impl_->table->state->mutex);
    outcome = impl_->table->state->Apply(*operation()->change_as_SetPriorities(), impl_->number);
    impl_->table->state->changed.NotifyAll();
  }
  PriorityTable::Impl* impl_;
};

float Largest(std::span<const fb::Item> items) {
  float largest = 0;
  for (const fb::Item& item : items) largest = std::max(largest, item.priority());
  return largest;
}

/// Keeps the plan's maximum exact: the largest priority of an item that is there counts.
Status RaiseMax(PriorityTable::Impl* impl, std::span<const fb::Item> items)
    GEARDB_REQUIRES(impl->database->commit) {
  float& max = impl->table->plan->max_priority[impl->number];
  if (Largest(items) <= max) return Status::Ok();
  // Rare: look at the items as they will be when this record is applied.
  DatabaseCore& database = *impl->database;
  GEARDB_RETURN_IF_ERROR(database.CatchUp());
  MutexLock lock(&impl->table->state->mutex);
  const PriorityState& priority = impl->state();
  for (const fb::Item& item : items) {
    uint32_t generation = 0;
    if (item.priority() > max &&
        impl->table->state->GenerationOfLeaf(priority, item.leaf(), &generation) &&
        generation == item.generation() && priority.selector().Contains(item.leaf())) {
      max = item.priority();
    }
  }
  return Status::Ok();
}

/// Logs a rescale first where the weights to come need it.
Status RescaleIfDue(PriorityTable::Impl* impl, ChangeScope* scope, float largest, bool* again)
    GEARDB_REQUIRES(impl->database->commit) {
  std::optional<int> shift;
  {
    MutexLock lock(&impl->table->state->mutex);
    index::PrioritizedSelector* selector = impl->state().prioritized();
    if (selector == nullptr) return Status::Ok();
    shift = selector->AdviseShift(selector->WeightOf(largest));
  }
  if (!shift) return Status::Ok();
  *again = true;
  return impl->database->LogRescale(scope, impl->table, impl->number, *shift);
}

/// After an update that made the weights much smaller: a scale that fits what there is now, instead
/// of draws that tell the small ones apart no more. The update stands whatever becomes of this.
void RescaleIfFaded(PriorityTable::Impl* impl) {
  {
    MutexLock lock(&impl->table->state->mutex);
    const index::PrioritizedSelector* selector = impl->state().prioritized();
    if (selector == nullptr || !selector->AdviseShift(0)) return;
  }
  bool again = false;
  ChangeScope scope(impl->database.get(), impl->table.get(), {});
  if (scope.status().ok()) (void)RescaleIfDue(impl, &scope, 0, &again).ok();
}

/// The records of a Set: one, or as many as its items take.
class SetRecords {
 public:
  SetRecords(PriorityTable::Impl* impl, std::span<const fb::Item> items, size_t items_in_record) {
    for (size_t first = 0; first < items.size(); first += items_in_record) {
      const auto part = items.subspan(first, std::min(items_in_record, items.size() - first));
      auto change = std::make_unique<SetChange>(impl);
      const auto offset = change->body.CreateVectorOfStructs(part.data(), part.size());
      change->FinishBody({.table = impl->table->layout().id(), .priority_table = impl->number},
                         fb::Change::SetPriorities,
                         fb::CreateSetPriorities(change->body, offset).Union());
      sizes_.push_back(wal::RecordSize::For(change->body_bytes().size(), {}));
      changes_.push_back(std::move(change));
    }
  }

  std::span<const wal::RecordSize> sizes() const { return sizes_; }
  SetChange* change(size_t i) { return changes_[i].get(); }
  SetOutcome Sum() const {
    SetOutcome sum;
    for (const auto& change : changes_) {
      sum.applied += change->outcome.applied;
      sum.stale += change->outcome.stale;
    }
    return sum;
  }

 private:
  std::vector<std::unique_ptr<SetChange>> changes_;
  std::vector<wal::RecordSize> sizes_;
};

}  // namespace

std::vector<ListedItem> ListItems(const PriorityTable::Impl& impl) {
  const TableState& state = *impl.table->state;
  const PriorityState& priority = impl.state();
  const TableLayout& layout = state.layout();
  std::vector<ListedItem> items;
  items.reserve(priority.selector().count());
  priority.selector().ForEachMember({0, priority.selector().reserved()}, [&](uint64_t leaf) {
    if (!priority.draws_windows()) {
      const auto& record = state.trajectories().record(static_cast<Slot>(leaf));
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

Result<SetOutcome> CommitSet(PriorityTable::Impl* impl, std::span<const fb::Item> items,
                             uint64_t stale_already) {
  DatabaseCore& database = *impl->database;
  GEARDB_RETURN_IF_ERROR(database.CheckWritable());
  GEARDB_RETURN_IF_ERROR(database.CheckTable(*impl->table));
  if (items.empty()) return SetOutcome{.stale = stale_already};
  const uint64_t record_max = database.log->record_bytes_max();
  SetRecords records(impl, items, std::max<size_t>((record_max - 1024) / sizeof(fb::Item), 16));
  const wal::RecordSize& first = records.sizes().front();
  Lsn end = 0;
  wal::Reservation last;
  {
    // Kept from the first record to the last: all of it fits the log, or nothing of it is done.
    ChangeScope scope(&database, impl->table.get(), {});
    for (bool again = true; again;) {
      GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&first, 1}, {}, &again));
      if (!again) GEARDB_RETURN_IF_ERROR(RescaleIfDue(impl, &scope, Largest(items), &again));
    }
    GEARDB_RETURN_IF_ERROR(database.log->PrepareFor(records.sizes(), wal::Urgency::kAppend));
    GEARDB_RETURN_IF_ERROR(RaiseMax(impl, items));
    last = scope.Reserve({.size = first});
    for (size_t i = 1; i < records.sizes().size(); ++i) {
      database.Finish(last, {}, records.change(i - 1));
      end = last.end;
      const Status room = scope.AwaitRoomHolding(records.sizes()[i], {});
      if (!room.ok()) {
        // The log has failed. What was published before is still to be applied, from here.
        database.log->WaitPublished(end, Deadline::Infinite()).ok();
        return room;
      }
      last = scope.Reserve({.size = records.sizes()[i]});
    }
    end = last.end;
  }
  database.Finish(last, {}, records.change(records.sizes().size() - 1));
  GEARDB_RETURN_IF_ERROR(database.Acknowledge(end, Ack::kLog));
  RescaleIfFaded(impl);
  SetOutcome outcome = records.Sum();
  outcome.stale += stale_already;
  outcome.end_lsn = end;
  return outcome;
}

Result<SetOutcome> CommitSetAll(PriorityTable::Impl* impl, std::span<const float> priorities) {
  DatabaseCore& database = *impl->database;
  GEARDB_RETURN_IF_ERROR(database.CheckWritable());
  GEARDB_RETURN_IF_ERROR(database.CheckTable(*impl->table));
  const float largest =
      priorities.empty() ? 0 : *std::max_element(priorities.begin(), priorities.end());
  std::vector<float> by_leaf(priorities.begin(), priorities.end());
  PriorityOutcome outcome;
  FunctionChange change([impl, &outcome, &by_leaf](Lsn) {
    MutexLock lock(&impl->table->state->mutex);
    outcome = impl->table->state->ApplySetAll(by_leaf, impl->number);
    impl->table->state->changed.NotifyAll();
  });
  BulkRecord record(&database, &change);
  {
    // Kept to the end: no item may come or go between the list and the record.
    ChangeScope scope(&database, impl->table.get(), {});
    GEARDB_RETURN_IF_ERROR(scope.status());
    for (bool again = !priorities.empty(); again;) {
      again = false;
      GEARDB_RETURN_IF_ERROR(RescaleIfDue(impl, &scope, largest, &again));
    }
    GEARDB_RETURN_IF_ERROR(database.CatchUp());
    uint64_t items = 0;
    {
      MutexLock state_lock(&impl->table->state->mutex);
      items = impl->state().selector().count();
      if (priorities.size() > 1 && items == priorities.size()) {
        std::vector<std::pair<uint64_t, float>> order;
        order.reserve(items);
        for (const ListedItem& item : ListItems(*impl)) {
          order.emplace_back(item.leaf, priorities[order.size()]);
        }
        std::sort(order.begin(), order.end());
        for (size_t i = 0; i < order.size(); ++i) by_leaf[i] = order[i].second;
      }
    }
    if (priorities.size() != 1 && items != priorities.size()) {
      return Status::FailedPrecondition("priority table '", impl->spec.name, "' has ", items,
                                        " items; ", priorities.size(), " priorities are given");
    }
    if (priorities.empty()) return SetOutcome{};
    change.FinishBody(
        {.table = impl->table->layout().id(), .priority_table = impl->number}, fb::Change::SetAll,
        fb::CreateSetAll(change.body, by_leaf[0], 0, by_leaf.size() > 1, items).Union());
    const auto bytes = std::as_bytes(std::span(by_leaf));
    GEARDB_RETURN_IF_ERROR(record.Reserve(&scope, by_leaf.size() > 1 ? bytes : bytes.first(0)));
    float& max = impl->table->plan->max_priority[impl->number];
    if (items > 0) max = std::max(max, largest);
  }
  record.Finish();
  GEARDB_RETURN_IF_ERROR(database.Acknowledge(record.end(), Ack::kLog));
  RescaleIfFaded(impl);
  return SetOutcome{.applied = outcome.applied, .stale = outcome.stale, .end_lsn = record.end()};
}

}  // namespace geardb::engine
