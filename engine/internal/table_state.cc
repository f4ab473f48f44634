#include "engine/internal/table_state.h"

#include <algorithm>
#include <cstring>

#include "base/break.h"
#include "engine/internal/anchors.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kLpnGrowth = 64;
constexpr uint64_t kSlotGrowth = 64;
constexpr uint64_t kNumbersMax = UINT32_MAX - 1;

/// How many numbers an index budget could ever hold, at `bytes` each.
uint64_t CapacityOf(const index::IndexMemory& memory, uint64_t bytes) {
  return std::clamp<uint64_t>(memory.budget_bytes() / bytes, 1024, kNumbersMax);
}
uint64_t LpnCapacity(const index::IndexMemory& memory) {
  return CapacityOf(memory, sizeof(index::PageRecord) + sizeof(index::GroupPageRecord));
}
uint64_t SlotCapacity(const index::IndexMemory& memory) {
  return CapacityOf(memory, sizeof(index::TrajectoryRecord));
}

uint64_t LeafCapacity(const index::IndexMemory& memory, const TableLayout& layout,
                      const PriorityTableSpec& spec) {
  const uint64_t places = spec.item == ItemKind::kTrajectory
                              ? SlotCapacity(memory)
                              : LpnCapacity(memory) * layout.steps_per_page();
  // A prioritized leaf takes 8 bytes and a bit, a uniform one a bit and its share of a count.
  const uint64_t affordable = spec.selector == SelectorKind::kPrioritized
                                  ? memory.budget_bytes() / 8
                                  : memory.budget_bytes() * 8;
  return std::max<uint64_t>(std::min(places, affordable), 1024);
}

}  // namespace

TableState::TableState(const Memory& memory, const TableSpec& spec, TableId id)
    : memory_(memory),
      layout_(spec, id),
      pool_(memory.arena->NewPool(layout_.pages().frame_bytes(), "table '" + spec.name + "'")) {}

TableState::~TableState() {
  trajectories_->ForEach([this](Slot, const index::TrajectoryRecord& record) {
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) {
      memory_.arena->Retire(pool_, pages_->group_page(0, lpn).frame);
    }
  });
}

Result<std::unique_ptr<TableState>> TableState::Create(const Memory& memory, const TableSpec& spec,
                                                       TableId id) {
  std::unique_ptr<TableState> state(new TableState(memory, spec, id));
  std::vector<uint32_t> column_bytes;
  for (const TrajectoryColumn& column : state->layout_.trajectory_columns()) {
    column_bytes.push_back(column.bytes);
  }
  auto pages =
      index::PageTable::Create(memory.index, spec.name + " pages",
                               {.lpn_capacity = LpnCapacity(*memory.index), .group_count = 1});
  auto trajectories = index::TrajectoryIndex::Create(
      memory.index, spec.name + " trajectories",
      {.slot_capacity = SlotCapacity(*memory.index), .column_bytes = column_bytes});
  // The destructor walks both.
  if (!pages.ok() || !trajectories.ok()) {
    return pages.ok() ? trajectories.status() : pages.status();
  }
  state->pages_ = std::move(*pages);
  state->trajectories_ = std::move(*trajectories);
  return state;
}

Status TableState::AddPriorityTable(const PriorityTableSpec& spec) {
  GEARDB_ASSIGN_OR_RETURN(
      auto priority,
      PriorityState::Create(memory_.index, spec, LeafCapacity(*memory_.index, layout_, spec)));
  const uint64_t leaves = priority->draws_windows() ? pages_->reserved() * layout_.steps_per_page()
                                                    : trajectories_->reserved();
  if (leaves > 0) GEARDB_RETURN_IF_ERROR(priority->selector().Reserve(leaves));
  priorities_.push_back(std::move(priority));
  return Status::Ok();
}

Status TableState::Reserve(uint64_t lpn_count, uint64_t slot_count) {
  if (lpn_count > pages_->reserved()) {
    // A little ahead where the budget allows it, else exactly what is asked.
    for (uint64_t extra : {kLpnGrowth + pages_->reserved() / 16, uint64_t{0}}) {
      Status status = pages_->Reserve(lpn_count + extra);
      for (const auto& priority : priorities_) {
        if (!status.ok()) break;
        if (!priority->draws_windows()) continue;
        status = priority->selector().Reserve((lpn_count + extra) * layout_.steps_per_page());
      }
      if (status.ok()) break;
      if (extra == 0) return status.WithContext("table '" + layout_.spec().name + "'");
    }
  }
  if (slot_count > trajectories_->reserved()) {
    for (uint64_t extra : {kSlotGrowth + trajectories_->reserved() / 16, uint64_t{0}}) {
      Status status = trajectories_->Reserve(slot_count + extra);
      for (const auto& priority : priorities_) {
        if (!status.ok()) break;
        if (priority->draws_windows()) continue;
        status = priority->selector().Reserve(slot_count + extra);
      }
      if (status.ok()) break;
      if (extra == 0) return status.WithContext("table '" + layout_.spec().name + "'");
    }
  }
  return Status::Ok();
}

bool TableState::IsTrajectoryItem(const index::TrajectoryRecord& record) const {
  return record.state == index::TrajectoryState::kClosed &&
         StepsEnd(record) > static_cast<int64_t>(record.first_row);
}

uint64_t TableState::LeafOfRow(const index::TrajectoryRecord& record, int64_t row) const {
  if (row < static_cast<int64_t>(record.first_row) ||
      row >= static_cast<int64_t>(record.rows_end)) {
    return UINT64_MAX;
  }
  const Lpn lpn = pages_->Find(ListOf(record), layout_.PageNumber(row));
  return lpn == kNoLpn ? UINT64_MAX : layout_.Leaf(lpn, layout_.OffsetInPage(row));
}

uint64_t TableState::LeafOfItem(const PriorityState& priority, Slot slot, int64_t row) const {
  if (!priority.draws_windows()) return slot;
  return LeafOfRow(trajectories_->record(slot), row);
}

bool TableState::GenerationOfLeaf(const PriorityState& priority, uint64_t leaf,
                                  uint32_t* generation) const {
  if (priority.draws_windows()) {
    const Lpn lpn = layout_.LpnOfLeaf(leaf);
    if (leaf >> layout_.pages().steps_shift() >= pages_->reserved()) return false;
    const index::PageRecord& page = pages_->page(lpn);
    *generation = page.generation;
    return page.in_use;
  }
  if (leaf >= trajectories_->reserved()) return false;
  const index::TrajectoryRecord& record = trajectories_->record(static_cast<Slot>(leaf));
  *generation = record.generation;
  return record.state != index::TrajectoryState::kFree;
}

// ---- Rows.

void TableState::ReleaseHeadPage(index::TrajectoryRecord* record) {
  index::PageList list = ListOf(*record);
  const Lpn lpn = pages_->UnlinkHead(&list);
  record->head_lpn = list.head;
  record->tail_lpn = list.tail;
  const uint64_t steps = layout_.steps_per_page();
  for (const auto& priority : priorities_) {
    if (priority->draws_windows()) priority->selector().Erase({lpn * steps, (lpn + 1) * steps});
  }
  memory_.arena->Retire(pool_, pages_->group_page(0, lpn).frame);
  --page_count_;
}

void TableState::RemoveTrajectory(const fb::Removed& removed) {
  index::TrajectoryRecord* record = trajectories_->FindLive(removed.slot(), removed.generation());
  if (record == nullptr) return;
  rows_ -= record->rows_end - record->first_row;
  RowCursor cursor(*this, *record);
  uint64_t final_rows = (record->flags & index::kFinalRowStored) != 0 ? 1 : 0;
  if (layout_.spec().stream && layout_.spec().final_row) {
    final_rows = 0;
    for (uint64_t row = record->first_row; row < record->rows_end; ++row) {
      final_rows += IsFinalRow(&cursor, static_cast<int64_t>(row)) ? 1 : 0;
    }
  }
  steps_ -= record->rows_end - record->first_row - final_rows;
  while (record->head_lpn != kNoLpn) ReleaseHeadPage(record);
  for (const auto& priority : priorities_) {
    if (!priority->draws_windows()) {
      priority->selector().Erase({removed.slot(), uint64_t{removed.slot()} + 1});
    }
  }
  if (record->state == index::TrajectoryState::kOpen) --open_count_;
  trajectories_->Erase(removed.slot());
  ++removed_trajectories_;
}

void TableState::Trim(const fb::Trimmed& trimmed, Lsn lsn) {
  index::TrajectoryRecord* record = trajectories_->FindLive(trimmed.slot(), trimmed.generation());
  if (record == nullptr || trimmed.first_row() <= record->first_row ||
      trimmed.first_row() >= record->rows_end) {
    return;
  }
  const uint64_t old_first = record->first_row;
  uint64_t final_rows = 0;
  if (layout_.spec().stream) {
    RowCursor cursor(*this, *record);
    for (uint64_t row = old_first; row < trimmed.first_row(); ++row) {
      final_rows += IsFinalRow(&cursor, static_cast<int64_t>(row)) ? 1 : 0;
    }
  }
  rows_ -= trimmed.first_row() - old_first;
  steps_ -= trimmed.first_row() - old_first - final_rows;
  trimmed_rows_ += trimmed.first_row() - old_first;
  record->first_row = trimmed.first_row();
  record->last_lsn = lsn;
  const uint32_t first_page = layout_.PageNumber(static_cast<int64_t>(record->first_row));
  while (pages_->page(record->head_lpn).page_number < first_page) ReleaseHeadPage(record);
  // Rows of the head page that are gone, and anchors that now reach before `first_row`.
  const uint32_t offset = layout_.OffsetInPage(static_cast<int64_t>(record->first_row));
  const uint64_t page_leaf = layout_.Leaf(record->head_lpn, 0);
  for (size_t i = 0; i < priorities_.size(); ++i) {
    PriorityState& priority = *priorities_[i];
    if (!priority.draws_windows()) continue;
    priority.selector().Erase({page_leaf, page_leaf + offset});
    AnchorUpdate update(this, i);
    const auto first = static_cast<int64_t>(record->first_row);
    update.AddRows(trimmed.slot(), first, first + priority.spec().window.extent.before + 1);
    update.Insert(priority.max_priority());
  }
}

void TableState::Open(const fb::Opened& opened, Lsn lsn) {
  index::TrajectoryRecord& record = trajectories_->Insert(
      {.slot = opened.slot(), .generation = opened.generation(), .id = opened.id()});
  record.created_us = opened.created_us();
  record.session = opened.session();
  record.lane = opened.lane();
  record.last_lsn = lsn;
  ++open_count_;
}

size_t TableState::ExtendRows(const fb::Rows& rows, Lsn lsn, const fb::NewPage* pages,
                              std::span<const FrameRef> frames) {
  index::TrajectoryRecord& record = trajectories_->record(rows.slot());
  size_t taken = 0;
  uint64_t row = record.rows_end;
  const uint64_t end = row + rows.count();
  while (row < end) {
    const uint32_t offset = layout_.OffsetInPage(static_cast<int64_t>(row));
    if (offset == 0) {
      index::PageList list = ListOf(record);
      pages_->Append({.lpn = pages[taken].lpn(),
                      .slot = rows.slot(),
                      .generation = pages[taken].generation(),
                      .page_number = layout_.PageNumber(static_cast<int64_t>(row))},
                     &list);
      record.head_lpn = list.head;
      record.tail_lpn = list.tail;
      index::GroupPageRecord& fresh = pages_->group_page(0, record.tail_lpn);
      fresh.frame = frames[taken];
      fresh.birth_lsn = lsn;
      ++taken;
      ++page_count_;
    }
    const uint64_t here = std::min<uint64_t>(end - row, layout_.steps_per_page() - offset);
    index::GroupPageRecord& page = pages_->group_page(0, record.tail_lpn);
    page.rows_filled = static_cast<uint32_t>(offset + here);
    page.newest_lsn = lsn;
    if (page.piece_count < UINT16_MAX) ++page.piece_count;
    row += here;
  }
  record.rows_end = end;
  record.last_lsn = lsn;
  rows_ += rows.count();
  steps_ += rows.count() - (rows.has_final() ? 1 : 0);
  appended_rows_ += rows.count() - (rows.has_final() ? 1 : 0);
  return taken;
}

void TableState::CloseTrajectory(index::TrajectoryRecord* record, End end, bool last_row_is_final) {
  if (record->state == index::TrajectoryState::kOpen) --open_count_;
  record->state = index::TrajectoryState::kClosed;
  record->end = end;
  if (last_row_is_final) record->flags |= index::kFinalRowStored;
}

void TableState::SetRowFlags(const index::TrajectoryRecord& record, int64_t row, uint8_t flags) {
  RowCursor cursor(*this, record);
  const Lpn lpn = cursor.PageOf(row);
  std::byte* frame = memory_.arena->Resolve(pages_->group_page(0, lpn).frame);
  frame[layout_.pages().FrameOffset(*layout_.flags_column(), layout_.OffsetInPage(row))] =
      std::byte{flags};
}

void TableState::SetColumnValues(const flatbuffers::Vector<const fb::ColumnSet*>* sets,
                                 const flatbuffers::Vector<uint8_t>* values) {
  if (sets == nullptr || values == nullptr) return;
  const uint8_t* value = values->data();
  for (const fb::ColumnSet* set : *sets) {
    const std::span<std::byte> into = trajectories_->column(set->column(), set->slot());
    std::memcpy(into.data(), value, into.size());
    trajectories_->record(set->slot()).columns_set |= uint64_t{1} << set->column();
    value += into.size();
  }
}

// ---- Applying.

void TableState::Apply(const fb::Append& append, Lsn lsn, std::span<const FrameRef> frames) {
  if (append.removed()) {
    for (const fb::Removed* removed : *append.removed()) RemoveTrajectory(*removed);
  }
  if (append.trimmed()) {
    for (const fb::Trimmed* trimmed : *append.trimmed()) Trim(*trimmed, lsn);
  }
  if (append.opened()) {
    for (const fb::Opened* opened : *append.opened()) Open(*opened, lsn);
  }
  SetColumnValues(append.column_sets(), append.column_values());
  if (append.rows() == nullptr) return;

  const fb::NewPage* pages =
      append.pages() ? reinterpret_cast<const fb::NewPage*>(append.pages()->Data()) : nullptr;
  size_t taken = 0;
  std::vector<RowsChange> changes;
  changes.reserve(append.rows()->size());
  for (const fb::Rows* rows : *append.rows()) {
    index::TrajectoryRecord& record = trajectories_->record(rows->slot());
    RowsChange change{rows->slot(), static_cast<int64_t>(record.rows_end), 0, false};
    taken += ExtendRows(*rows, lsn, pages + taken, frames.subspan(taken));
    const End end = static_cast<End>(rows->end());
    const bool cut_row_is_final = end == End::kCut && layout_.spec().final_row;
    if (cut_row_is_final) --steps_;
    if (rows->closes()) CloseTrajectory(&record, end, rows->has_final() || cut_row_is_final);
    change.new_rows_end = static_cast<int64_t>(record.rows_end);
    change.ended = end != End::kGo;
    changes.push_back(change);
  }

  for (size_t i = 0; i < priorities_.size(); ++i) {
    const fb::NewItems* items = nullptr;
    if (append.items()) {
      for (const fb::NewItems* candidate : *append.items()) {
        if (candidate->priority_table() == i) items = candidate;
      }
    }
    AnchorUpdate update(this, i);
    const bool per_rows =
        items && items->per_rows() && items->values() && items->values()->size() == changes.size();
    for (size_t c = 0; c < changes.size(); ++c) {
      update.Add(changes[c]);
      if (per_rows) update.Insert(items->values()->Get(static_cast<uint32_t>(c)));
    }
    if (per_rows) continue;
    if (items && items->values() && items->values()->size() == update.count()) {
      update.Insert(std::span(items->values()->data(), items->values()->size()));
    } else {
      update.Insert(items ? items->value() : priorities_[i]->max_priority());
    }
  }
}

void TableState::Apply(const fb::Close& close, Lsn lsn) {
  if (close.removed()) {
    for (const fb::Removed* removed : *close.removed()) RemoveTrajectory(*removed);
  }
  if (close.ended() == nullptr) return;
  for (const fb::Ended* ended : *close.ended()) {
    index::TrajectoryRecord* record = trajectories_->FindLive(ended->slot(), ended->generation());
    if (record == nullptr || record->state == index::TrajectoryState::kClosed) continue;
    const auto rows_end = static_cast<int64_t>(record->rows_end);
    bool last_is_final = layout_.spec().final_row;
    if (layout_.spec().stream) {
      RowCursor cursor(*this, *record);
      const uint8_t flags = cursor.FlagsOf(rows_end - 1);
      if ((flags & kRowEndMask) == 0) {
        const uint8_t final_flag = layout_.spec().final_row ? kRowFinal : uint8_t{0};
        SetRowFlags(*record, rows_end - 1, static_cast<uint8_t>(flags | kRowCut | final_flag));
        if (layout_.spec().final_row) --steps_;
      } else {
        last_is_final = (flags & kRowFinal) != 0;
      }
    } else if (layout_.spec().final_row) {
      --steps_;
    }
    CloseTrajectory(record, static_cast<End>(ended->end()), last_is_final);
    record->last_lsn = lsn;
    for (size_t i = 0; i < priorities_.size(); ++i) {
      AnchorUpdate update(this, i);
      update.Add({ended->slot(), rows_end, rows_end, true});
      float value = priorities_[i]->max_priority();
      if (close.items()) {
        for (const fb::NewItems* items : *close.items()) {
          if (items->priority_table() == i) value = items->value();
        }
      }
      update.Insert(value);
    }
  }
}

void TableState::Apply(const fb::Adopt& adopt, Lsn lsn) {
  if (adopt.adopted() == nullptr) return;
  for (const fb::Adopted* adopted : *adopt.adopted()) {
    index::TrajectoryRecord* record =
        trajectories_->FindLive(adopted->slot(), adopted->generation());
    if (record == nullptr || record->state == index::TrajectoryState::kClosed) continue;
    const bool was_open = record->state == index::TrajectoryState::kOpen;
    record->state =
        adopted->orphaned() ? index::TrajectoryState::kOrphaned : index::TrajectoryState::kOpen;
    record->session = adopted->session();
    record->lane = adopted->lane();
    record->last_lsn = lsn;
    open_count_ += (adopted->orphaned() ? 0 : 1);
    open_count_ -= (was_open ? 1 : 0);
  }
}

void TableState::Apply(const fb::Remove& remove, Lsn lsn) {
  if (remove.removed()) {
    for (const fb::Removed* removed : *remove.removed()) RemoveTrajectory(*removed);
  }
  if (remove.trimmed()) {
    for (const fb::Trimmed* trimmed : *remove.trimmed()) Trim(*trimmed, lsn);
  }
}

void TableState::Apply(const fb::SetColumns& set, Lsn lsn) {
  SetColumnValues(set.column_sets(), set.column_values());
  if (set.column_sets() == nullptr) return;
  for (const fb::ColumnSet* column : *set.column_sets()) {
    trajectories_->record(column->slot()).last_lsn = lsn;
  }
}

void TableState::Apply(const fb::CreatePriorityTable& create, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  trajectories_->ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    AnchorUpdate update(this, priority_table);
    if (priority.draws_windows()) {
      update.AddRows(slot, static_cast<int64_t>(record.first_row),
                     static_cast<int64_t>(record.rows_end));
    } else {
      update.AddTrajectory(slot);
    }
    float value = create.initial();
    if (priority.spec().initial == InitialPriority::kColumn) {
      const auto column = layout_.FindTrajectoryColumn(priority.spec().initial_priority_column);
      if (column) {
        std::memcpy(&value, trajectories_->column(*column, slot).data(), sizeof(value));
        if (!index::ValidPriority(value)) value = create.initial();
      }
    }
    update.Insert(value);
  });
}

PriorityOutcome TableState::Apply(const fb::SetPriorities& set, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  PriorityOutcome outcome;
  if (set.items() == nullptr) return outcome;
  std::vector<uint64_t> leaves;
  std::vector<float> values;
  leaves.reserve(set.items()->size());
  values.reserve(set.items()->size());
  for (const fb::Item* item : *set.items()) {
    uint32_t generation = 0;
    const bool live = GenerationOfLeaf(priority, item->leaf(), &generation) &&
                      (kBreak.ignore_generation || generation == item->generation());
    if (!live || !priority.selector().Contains(item->leaf())) {
      ++outcome.stale;
      continue;
    }
    leaves.push_back(item->leaf());
    values.push_back(item->priority());
  }
  outcome.applied = leaves.size();
  priority.selector().Update(leaves, values);
  priority.counters.updates_applied += outcome.applied;
  priority.counters.updates_stale += outcome.stale;
  return outcome;
}

PriorityOutcome TableState::ApplySetAll(std::span<const float> values, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  index::Selector& selector = priority.selector();
  std::vector<uint64_t> leaves;
  leaves.reserve(selector.count());
  selector.ForEachMember({0, selector.reserved()}, [&](uint64_t leaf) { leaves.push_back(leaf); });
  std::vector<float> each;
  if (values.size() == 1) {
    each.assign(leaves.size(), values[0]);
    values = each;
  }
  const size_t count = std::min(leaves.size(), values.size());
  selector.Update(std::span(leaves).first(count), values.first(count));
  priority.counters.updates_applied += count;
  return PriorityOutcome{count, 0};
}

void TableState::Apply(const fb::Rescale& rescale, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  if (priority.prioritized() == nullptr) return;
  priority.prioritized()->Rescale(rescale.shift());
  ++priority.counters.rescales;
}

void TableState::Apply(const fb::HandOver& hand_over, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  priority.next_draw = std::max(priority.next_draw, hand_over.draw_number() + 1);
  priority.next_ahead = std::max(priority.next_ahead, priority.next_draw);
  if (hand_over.sampled() == nullptr) return;
  for (const fb::Sampled* sampled : *hand_over.sampled()) {
    index::TrajectoryRecord* record =
        trajectories_->FindLive(sampled->slot(), sampled->generation());
    if (record != nullptr) record->times_sampled += sampled->count();
    priority.counters.sampled_items += sampled->count();
  }
}

void TableState::Apply(const fb::RestartDraws& restart, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  priority.seed = restart.seed();
  priority.next_draw = restart.draw_number();
  priority.next_ahead = restart.draw_number();
}

void TableState::BeginBulk() {
  for (const auto& priority : priorities_) priority->selector().BeginBulk();
}
void TableState::EndBulk() {
  for (const auto& priority : priorities_) priority->selector().EndBulk();
}

uint64_t TableState::OrphanOpenTrajectories() {
  uint64_t orphaned = 0;
  trajectories_->ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    if (record.state != index::TrajectoryState::kOpen) return;
    trajectories_->record(slot).state = index::TrajectoryState::kOrphaned;
    ++orphaned;
  });
  open_count_ = 0;
  return orphaned;
}

}  // namespace geardb::engine
