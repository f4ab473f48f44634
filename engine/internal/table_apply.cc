// How each kind of log record changes a TableState.

#include <algorithm>
#include <cstring>

#include "base/break.h"
#include "engine/internal/anchors.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

void TableState::Apply(const fb::Append& append, Lsn lsn, const PageFrames& frames) {
  Leave(append);
  if (append.opened()) {
    for (const fb::Opened* opened : *append.opened()) Open(*opened, lsn);
  }
  std::vector<uint64_t> set_before;  // Of each of its rows, where it sets columns.
  if (append.rows() != nullptr && append.column_sets() != nullptr) {
    for (const fb::Rows* rows : *append.rows()) {
      set_before.push_back(trajectories_->record(rows->slot()).columns_set);
    }
  }
  SetColumnValues(append.column_sets(), append.column_values());
  if (append.rows() == nullptr) return;

  const fb::NewPage* pages =
      append.pages() ? reinterpret_cast<const fb::NewPage*>(append.pages()->Data()) : nullptr;
  size_t taken = 0;
  size_t written = 0;
  std::vector<RowsChange> changes;
  changes.reserve(append.rows()->size());
  for (const fb::Rows* rows : *append.rows()) {
    index::TrajectoryRecord& record = trajectories_->record(rows->slot());
    RowsChange change{rows->slot(), static_cast<int64_t>(record.rows_end), 0, false};
    taken += ExtendRows(*rows, lsn, pages + taken, frames, &written);
    const End end = static_cast<End>(rows->end());
    const bool cut_row_is_final = end == End::kCut && layout().spec().final_row;
    if (cut_row_is_final) --steps_;
    // A stream's last row may be a final row while it goes on.
    const bool last_is_final = rows->has_final() || cut_row_is_final;
    record.flags = static_cast<uint8_t>(record.flags & ~index::kFinalRowStored);
    if (last_is_final) record.flags |= index::kFinalRowStored;
    if (rows->closes()) CloseTrajectory(rows->slot(), end, last_is_final);
    Refilter(rows->slot());
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
      update.Add(changes[c], set_before.empty() ? UINT64_MAX : set_before[c]);
      if (per_rows) update.Insert(items->values()->Get(static_cast<uint32_t>(c)));
    }
    if (per_rows) continue;
    if (items && items->values() && items->values()->size() == update.count()) {
      update.Insert(std::span(items->values()->data(), items->values()->size()));
    } else {
      update.Insert(items ? items->value() : priorities_[i]->max_priority());
    }
  }
  for (const RowsChange& change : changes) NoteFinished(change.slot);
}

void TableState::Apply(const fb::Close& close, Lsn lsn) {
  if (close.removed()) {
    for (const fb::Removed* removed : *close.removed()) {
      RemoveTrajectory(*removed, {RemovalReason::kByHand});
    }
  }
  if (close.ended() == nullptr) return;
  for (const fb::Ended* ended : *close.ended()) {
    index::TrajectoryRecord* record = trajectories_->FindLive(ended->slot(), ended->generation());
    if (record == nullptr || record->state == index::TrajectoryState::kClosed) continue;
    const auto rows_end = static_cast<int64_t>(record->rows_end);
    bool last_is_final = layout().spec().final_row;
    if (layout().spec().stream) {
      RowCursor cursor(*this, *record);
      const uint8_t flags = cursor.FlagsOf(rows_end - 1);
      if ((flags & kRowEndMask) == 0) {
        const uint8_t final_flag = layout().spec().final_row ? kRowFinal : uint8_t{0};
        SetRowFlags(*record, rows_end - 1, static_cast<uint8_t>(flags | kRowCut | final_flag));
        if (layout().spec().final_row) --steps_;
      } else {
        last_is_final = (flags & kRowFinal) != 0;
      }
    } else if (layout().spec().final_row) {
      --steps_;
    }
    CloseTrajectory(ended->slot(), static_cast<End>(ended->end()), last_is_final);
    record->last_lsn = lsn;
    Refilter(ended->slot());
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
    NoteFinished(ended->slot());
  }
}

void TableState::Apply(const fb::Adopt& adopt, Lsn lsn) {
  if (adopt.adopted() == nullptr) return;
  for (const fb::Adopted* adopted : *adopt.adopted()) AdoptOne(*adopted, lsn);
}

void TableState::AdoptOne(const fb::Adopted& adopted, Lsn lsn) {
  index::TrajectoryRecord* record = trajectories_->FindLive(adopted.slot(), adopted.generation());
  if (record == nullptr || record->state == index::TrajectoryState::kClosed) return;
  const bool was_open = record->state == index::TrajectoryState::kOpen;
  record->state =
      adopted.orphaned() ? index::TrajectoryState::kOrphaned : index::TrajectoryState::kOpen;
  record->session = adopted.session();
  record->lane = adopted.lane();
  record->last_lsn = lsn;
  frames_->HoldAll(record->tail_lpn, false);
  AdoptCompanions(adopted, lsn);
  Refilter(adopted.slot());
  // Where it was open, a writer left it without a word, and another has it.
  if (adopted.orphaned() || was_open) ReleaseDropped(record->tail_lpn);
  open_count_ += (adopted.orphaned() ? 0u : 1u);
  open_count_ -= (was_open ? 1 : 0);
}

void TableState::Apply(const fb::Remove& remove, uint32_t priority_table) {
  const auto reason = static_cast<RemovalReason>(remove.reason());
  Leave(remove.removed(), remove.trimmed(), {reason, priority_table});
}

void TableState::Leave(const fb::Append& append) {
  for (uint32_t i = 0; append.removed() != nullptr && i < append.removed()->size(); ++i) {
    const bool by_hand = i < append.by_hand();
    RemoveTrajectory(*append.removed()->Get(i),
                     {by_hand ? RemovalReason::kByHand : RemovalReason::kCapacity});
  }
  Leave(nullptr, append.trimmed(), {});
}

void TableState::Leave(const flatbuffers::Vector<const fb::Removed*>* removed,
                       const flatbuffers::Vector<const fb::Trimmed*>* trimmed,
                       const RemovalCause& cause) {
  if (removed != nullptr) {
    for (const fb::Removed* trajectory : *removed) RemoveTrajectory(*trajectory, cause);
  }
  if (trimmed != nullptr) {
    for (const fb::Trimmed* head : *trimmed) Trim(*head);
  }
}

namespace {

/// The raw priority, for entry `entry` of a record, of items of a priority table.
float NewPriority(const flatbuffers::Vector<flatbuffers::Offset<fb::NewItems>>* items, size_t table,
                  size_t entry, float otherwise) {
  for (uint32_t i = 0; items != nullptr && i < items->size(); ++i) {
    const fb::NewItems& given = *items->Get(i);
    if (given.priority_table() != table) continue;
    const bool each = given.per_rows() && given.values() && entry < given.values()->size();
    return each ? given.values()->Get(static_cast<uint32_t>(entry)) : given.value();
  }
  return otherwise;
}

}  // namespace

void TableState::Apply(const fb::SetColumns& set) {
  std::vector<std::pair<Slot, uint64_t>> set_before;
  for (uint32_t i = 0; set.column_sets() != nullptr && i < set.column_sets()->size(); ++i) {
    const Slot slot = set.column_sets()->Get(i)->slot();
    if (!set_before.empty() && set_before.back().first == slot) continue;
    set_before.emplace_back(slot, trajectories_->record(slot).columns_set);
  }
  SetColumnValues(set.column_sets(), set.column_values());
  for (const auto& [slot, before] : set_before) {
    Refilter(slot);
    InsertReady(slot, before, set.items());
  }
}

void TableState::InsertReady(Slot slot, uint64_t before,
                             const flatbuffers::Vector<flatbuffers::Offset<fb::NewItems>>* items) {
  const index::TrajectoryRecord& record = trajectories_->record(slot);
  for (size_t i = 0; i < priorities_.size(); ++i) {
    const uint64_t wanted = priorities_[i]->required.columns;
    if ((wanted & ~before) == 0 || (wanted & ~record.columns_set) != 0) continue;
    AnchorUpdate update(this, i);
    update.AddRows(slot, static_cast<int64_t>(record.first_row),
                   static_cast<int64_t>(record.rows_end));
    update.AddTrajectory(slot);
    update.Insert(NewPriority(items, i, 0, priorities_[i]->max_priority()));
  }
  NoteFinished(slot);
}

void TableState::ApplyPatch(const PatchedRows& patched, Lsn lsn) {
  for (const PatchedPage& page : patched.pages) {
    index::GroupPageRecord& record = pages_->group_page(page.group, page.lpn);
    if (frames_->ShowsDefaults(page.group, page.lpn)) {
      frame_bytes_ += layout().group(page.group).pages.frame_bytes();
    }
    frames_->Replace(page.group, page.lpn, page.frame);
    // Else no record says so, and what an image says is what records make.
    if (!layout().group(page.group).logged()) continue;
    record.flags = static_cast<uint8_t>(record.flags & ~kPageInCold);
    record.rows_filled = static_cast<uint16_t>(page.rows);
    if (record.birth_lsn == kNoLsn) record.birth_lsn = lsn;
    record.newest_lsn = lsn;
    record.piece_count = 1;
    record.piece_at = page.place.at;
    record.flags = static_cast<uint8_t>(record.flags & ~kPageFromPart);
    if (page.place.at < lsn) record.flags |= kPageFromPart;
    record.piece_checksum = static_cast<uint32_t>(page.place.checksum);
  }
  std::vector<uint64_t> filled_before;
  for (const PatchedGroup& group : patched.groups) {
    filled_before.push_back(0);
    if (!layout().group(group.group).late) continue;
    filled_before.back() = Filled(group.group, group.slot);
    const uint64_t filled = std::max(group.filled, filled_before.back());
    std::memcpy(trajectories_->column(layout().group(group.group).filled_place, group.slot).data(),
                &filled, sizeof(filled));
  }
  size_t entry = 0;  // Of the record: it has none for groups that are not logged.
  for (size_t k = 0; k < patched.groups.size(); ++k) {
    const PatchedGroup& group = patched.groups[k];
    if (!layout().group(group.group).logged()) continue;
    const size_t place = entry++;
    if (group.filled <= filled_before[k]) continue;
    for (size_t i = 0; i < priorities_.size(); ++i) {
      const std::vector<uint32_t>& wanted = priorities_[i]->required.groups;
      if (std::find(wanted.begin(), wanted.end(), group.group) == wanted.end()) continue;
      AnchorUpdate update(this, i);
      update.AddFilled(group.slot, static_cast<int64_t>(filled_before[k]),
                       static_cast<int64_t>(group.filled));
      update.Insert(NewPriority(patched.items, i, place, priorities_[i]->max_priority()));
    }
    NoteFinished(group.slot);
  }
}

void TableState::Apply(const fb::CreatePriorityTable& create, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  UseFilter(priority_table);
  // By slot; members join their groups in the order of their ids.
  std::vector<std::pair<TrajectoryId, Slot>> order;
  trajectories_->ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    order.emplace_back(priority.groups() != nullptr ? record.id : 0, slot);
  });
  if (priority.groups() != nullptr) std::sort(order.begin(), order.end());
  for (const auto& [id, slot] : order) {
    const index::TrajectoryRecord& record = trajectories_->record(slot);
    AnchorUpdate update(this, priority_table);
    if (priority.draws_windows()) {
      update.AddRows(slot, static_cast<int64_t>(record.first_row),
                     static_cast<int64_t>(record.rows_end));
    } else {
      update.AddTrajectory(slot);
    }
    float value = create.initial();
    if (priority.spec().initial == InitialPriority::kColumn) {
      const auto column = layout().FindTrajectoryColumn(priority.spec().initial_priority_column);
      if (column) {
        std::memcpy(&value, ValueOf(*column, slot).data(), sizeof(value));
        if (!index::ValidPriority(value)) value = create.initial();
      }
    }
    update.Insert(value);
  }
}

PriorityOutcome TableState::ApplySet(std::span<const fb::Item> items, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  PriorityOutcome outcome;
  std::vector<uint64_t> leaves;
  std::vector<float> values;
  leaves.reserve(items.size());
  values.reserve(items.size());
  // The misses of one item overlap with those of the others.
  const index::Membership members = priority.selector().members();
  for (const fb::Item& item : items) {
    if (!priority.draws_windows() || item.leaf() >= priority.selector().reserved()) continue;
    __builtin_prefetch(&pages_->page(layout().LpnOfLeaf(item.leaf())));
    members.Prefetch(item.leaf());
  }
  for (const fb::Item& item : items) {
    uint32_t generation = 0;
    const bool live = GenerationOfLeaf(priority, item.leaf(), &generation) &&
                      (kBreak.ignore_generation || generation == item.generation());
    if (!live || !priority.selector().Contains(item.leaf())) {
      ++outcome.stale;
      continue;
    }
    leaves.push_back(item.leaf());
    values.push_back(item.priority());
    NoteItem(priority_table, item.leaf());
  }
  outcome.applied = leaves.size();
  priority.Update(leaves, values);
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
  for (const uint64_t leaf : leaves) NoteItem(priority_table, leaf);
  const size_t count = std::min(leaves.size(), values.size());
  priority.Update(std::span(leaves).first(count), values.first(count));
  priority.counters.updates_applied += count;
  return PriorityOutcome{count, 0};
}

void TableState::Apply(const fb::Rescale& rescale, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  if (priority.prioritized() == nullptr) return;
  priority.prioritized()->Rescale(rescale.shift());
  ++priority.counters.rescales;
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

void TableState::ResetCounters() {
  for (const auto& priority : priorities_) priority->counters = PriorityTableStats();
  appended_rows_ = 0;
  removals_.ResetCounters();
  trimmed_rows_ = 0;
}

uint64_t TableState::OrphanOpenTrajectories() {
  uint64_t orphaned = 0;
  trajectories_->ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    if (record.state == index::TrajectoryState::kClosed) return;
    trajectories_->record(slot).state = index::TrajectoryState::kOrphaned;
    Refilter(slot);
    ReleaseDropped(record.tail_lpn);
    ++orphaned;
  });
  open_count_ = 0;
  return orphaned;
}

}  // namespace geardb::engine
