#include "engine/internal/write_change.h"

#include <algorithm>

namespace geardb::engine {

void WriteChange::Apply(Lsn lsn, Lsn end) GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  std::vector<TableCore*> tables;
  for (const Target& target : targets) {
    if (target.table != nullptr) tables.push_back(target.table.get());
  }
  std::sort(tables.begin(), tables.end(), [](const TableCore* a, const TableCore* b) {
    return a->layout().id() < b->layout().id();
  });
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  std::vector<TableState*> locked;  // A companion has its owner's mutex, and comes behind it.
  for (TableCore* table : tables) {
    const bool held = std::any_of(locked.begin(), locked.end(), [&](const TableState* state) {
      return state->shared_mutex == table->state->shared_mutex;
    });
    if (!held) {
      locked.push_back(table->state.get());
      locked.back()->mutex.Lock();
    }
    table->state->applied_end = end;
  }
  const auto& operations = *flatbuffers::GetRoot<fb::Body>(body.GetBufferPointer())->operations();
  for (uint32_t i = 0; i < operations.size(); ++i) ApplyTo(*operations.Get(i), &targets[i], lsn);
  for (TableCore* table : tables) {
    if (table->state->FollowUpDue()) table->follow_up_due.store(true);
    table->state->changed.NotifyAll();
  }
  for (TableState* state : locked) state->mutex.Unlock();
}

void WriteChange::ApplyTo(const fb::Operation& operation, Target* target, Lsn lsn)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  TableState* state = target->table != nullptr ? target->table->state.get() : nullptr;
  const uint32_t number = operation.priority_table();
  if (const auto* set = operation.change_as_SetPriorities()) {
    std::vector<fb::Item> items;
    items.reserve(set->items()->size());
    for (const fb::Item* item : *set->items()) items.push_back(*item);
    target->set = state->ApplySet(items, number);
  } else if (const auto* deleted = operation.change_as_DeleteItems()) {
    std::vector<fb::Handed> items;
    items.reserve(deleted->items()->size());
    for (const fb::Handed* item : *deleted->items()) items.push_back(*item);
    target->deleted = state->ApplyDelete(items, number);
  } else if (const auto* remove = operation.change_as_Remove()) {
    state->Apply(*remove, number);
  } else if (const auto* append = operation.change_as_Append()) {
    const Appends& brings = target->appends;
    state->Apply(*append, lsn, {brings.layout, brings.new_frames, brings.places});
    state->Arrived(brings.admitted);
  } else if (const auto* columns = operation.change_as_SetColumns()) {
    state->Apply(*columns);
  } else if (const auto* tag = operation.change_as_WriteTag()) {
    AddTag(*tag, lsn);
  }
}

void WriteChange::AddTag(const fb::WriteTag& tag, Lsn lsn) {
  database_->AddTag(
      {.name = tag.name()->str(), .blob = blob, .lsn = lsn, .created_us = tag.created_us()});
}

}  // namespace geardb::engine
