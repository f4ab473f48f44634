// Recovery of appends: what a record may say, and its pieces into frames.

#include <algorithm>
#include <cstring>

#include "engine/internal/recovery.h"

namespace geardb::engine {

bool ColumnSetsFit(const TableLayout& layout, const flatbuffers::Vector<const fb::ColumnSet*>* sets,
                   const flatbuffers::Vector<uint8_t>* values, uint64_t slots_end) {
  if (sets == nullptr) return values == nullptr;
  uint64_t bytes = 0;
  for (const fb::ColumnSet* set : *sets) {
    if (set->column() >= layout.trajectory_columns().size() || set->slot() >= slots_end) {
      return false;
    }
    bytes += layout.trajectory_columns()[set->column()].bytes;
  }
  return values != nullptr && values->size() == bytes;
}

bool PrioritiesFit(const flatbuffers::Vector<flatbuffers::Offset<fb::NewItems>>* items) {
  if (items == nullptr) return true;
  for (const fb::NewItems* entry : *items) {
    if (!index::ValidPriority(entry->value())) return false;
    if (entry->values() == nullptr) continue;
    for (const float value : *entry->values()) {
      if (!index::ValidPriority(value)) return false;
    }
  }
  return true;
}

Status Recovery::CheckAppend(const fb::Append& append, const wal::RecordView& record,
                             const TableCore& table) const {
  const TableState& state = *table.state;
  const TableLayout& layout = table.layout();
  std::map<Slot, uint64_t> rows_end;  // Of trajectories that begin here.
  std::set<Slot> free_slots;
  if (append.removed()) {
    for (const fb::Removed* removed : *append.removed()) free_slots.insert(removed->slot());
  }
  if (append.opened()) {
    for (const fb::Opened* opened : *append.opened()) {
      const bool free =
          opened->slot() >= state.trajectories().reserved() ||
          free_slots.count(opened->slot()) > 0 ||
          state.trajectories().record(opened->slot()).state == index::TrajectoryState::kFree;
      if (!free || opened->slot() == kNoSlot || opened->generation() == 0) {
        return BadRecord(record, "a trajectory begins in a slot that is taken");
      }
      if (!rows_end.emplace(opened->slot(), 0).second) {
        return BadRecord(record, "two trajectories begin in one slot");
      }
    }
  }
  size_t pages = 0;
  size_t pieces = 0;
  std::set<Slot> seen;
  for (const fb::Rows* rows : *append.rows()) {
    const auto opened = rows_end.find(rows->slot());
    uint64_t end = 0;
    if (opened == rows_end.end()) {
      const bool live =
          rows->slot() < state.trajectories().reserved() && free_slots.count(rows->slot()) == 0 &&
          state.trajectories().record(rows->slot()).state != index::TrajectoryState::kFree &&
          state.trajectories().record(rows->slot()).generation == rows->generation();
      if (!live) return BadRecord(record, "rows for a trajectory that is not there");
      end = state.trajectories().record(rows->slot()).rows_end;
    }
    if (end != rows->first_row() || rows->count() == 0 || !seen.insert(rows->slot()).second) {
      return BadRecord(record, "rows that do not follow the trajectory's end");
    }
    for (uint64_t row = end; row < end + rows->count();) {
      const uint32_t offset = layout.OffsetInPage(static_cast<int64_t>(row));
      const uint64_t here =
          std::min<uint64_t>(end + rows->count() - row, layout.steps_per_page() - offset);
      pages += offset == 0 ? 1 : 0;
      const bool fits = append.pieces() && pieces < append.pieces()->size() &&
                        pieces < record.pieces.size() &&
                        append.pieces()->Get(static_cast<uint32_t>(pieces))->first() == offset &&
                        append.pieces()->Get(static_cast<uint32_t>(pieces))->count() == here;
      if (!fits) return BadRecord(record, "its pieces are not those of its rows");
      ++pieces;
      row += here;
    }
  }
  if (pages != (append.pages() ? append.pages()->size() : 0) || pieces != record.pieces.size()) {
    return BadRecord(record, "the number of its pages or pieces is not that of its rows");
  }
  if (!PrioritiesFit(append.items())) {
    return BadRecord(record, "a priority is negative or not finite");
  }
  return Status::Ok();
}

Status Recovery::CopyPieces(const fb::Append& append, const wal::RecordView& record,
                            TableCore* table, std::span<const FrameRef> frames) {
  const TableState& state = *table->state;
  const PageLayout& pages = table->layout().pages();
  size_t taken = 0;
  size_t piece = 0;
  for (const fb::Rows* rows : *append.rows()) {
    uint64_t row = rows->first_row();
    for (const uint64_t end = row + rows->count(); row < end; ++piece) {
      const fb::PieceRows& where = *append.pieces()->Get(static_cast<uint32_t>(piece));
      const wal::PieceView& view = record.pieces[piece];
      FrameRef frame;
      if (where.first() == 0) {
        frame = frames[taken++];
      } else {
        frame =
            state.pages().group_page(0, state.trajectories().record(rows->slot()).tail_lpn).frame;
      }
      const PieceColumns columns(pages, where.count());
      const bool good = view.good && view.bytes.size() == columns.bytes();
      if (!good) {
        damaged_[table->layout().id()].emplace(rows->slot(), rows->generation());
        ++damaged_pages_;
      }
      std::byte* base = core_->arena->Resolve(frame);
      columns.ForEach([&](size_t column, uint64_t offset, uint64_t bytes) {
        std::byte* into = base + pages.FrameOffset(column, where.first());
        if (good) {
          std::memcpy(into, view.bytes.data() + offset, bytes);
        } else {
          std::memset(into, 0, bytes);
        }
      });
      row += where.count();
    }
  }
  return Status::Ok();
}

Status Recovery::Append(const fb::Append& append, const wal::RecordView& record, TableCore* table) {
  TableState& state = *table->state;
  MutexLock lock(&state.mutex);
  if (append.rows() == nullptr) return BadRecord(record, "an append without rows");
  GEARDB_RETURN_IF_ERROR(CheckAppend(append, record, *table));
  uint64_t lpn_count = 0;
  uint64_t slot_count = 0;
  if (append.pages()) {
    for (const fb::NewPage* page : *append.pages()) {
      lpn_count = std::max<uint64_t>(lpn_count, uint64_t{page->lpn()} + 1);
      table->plan->next_generation =
          std::max<uint64_t>(table->plan->next_generation, uint64_t{page->generation()} + 1);
    }
  }
  if (append.opened()) {
    for (const fb::Opened* opened : *append.opened()) {
      slot_count = std::max<uint64_t>(slot_count, uint64_t{opened->slot()} + 1);
      table->plan->next_id = std::max(table->plan->next_id, opened->id() + 1);
      table->plan->next_generation =
          std::max<uint64_t>(table->plan->next_generation, uint64_t{opened->generation()} + 1);
    }
  }
  GEARDB_RETURN_IF_ERROR(table->plan->ReserveNumbers(lpn_count, slot_count));
  if (!ColumnSetsFit(table->layout(), append.column_sets(), append.column_values(),
                     state.trajectories().reserved())) {
    return BadRecord(record, "its per-trajectory columns do not fit the schema");
  }
  // What leaves gives its frames back first: nobody reads during recovery.
  flatbuffers::FlatBufferBuilder leaving;
  const auto removed = append.removed()
                           ? leaving.CreateVectorOfStructs<fb::Removed>(
                                 append.removed()->size(),
                                 [&](size_t i, fb::Removed* out) {
                                   *out = *append.removed()->Get(static_cast<uint32_t>(i));
                                 })
                           : 0;
  const auto trimmed = append.trimmed()
                           ? leaving.CreateVectorOfStructs<fb::Trimmed>(
                                 append.trimmed()->size(),
                                 [&](size_t i, fb::Trimmed* out) {
                                   *out = *append.trimmed()->Get(static_cast<uint32_t>(i));
                                 })
                           : 0;
  leaving.Finish(fb::CreateRemove(leaving, removed, trimmed));
  state.Apply(*flatbuffers::GetRoot<fb::Remove>(leaving.GetBufferPointer()), record.lsn);
  if (append.pages()) {
    for (const fb::NewPage* page : *append.pages()) {
      if (page->generation() == 0 || state.pages().page(page->lpn()).in_use) {
        return BadRecord(record, "a page takes an LPN that is in use");
      }
    }
  }
  std::vector<FrameRef> frames;
  for (size_t i = 0; i < (append.pages() ? append.pages()->size() : 0); ++i) {
    GEARDB_ASSIGN_OR_RETURN(const FrameRef frame,
                            core_->arena->Allocate(state.pool(), Deadline::Now()));
    frames.push_back(frame);
  }
  GEARDB_RETURN_IF_ERROR(CopyPieces(append, record, table, frames));
  state.Apply(append, record.lsn, frames);
  return Status::Ok();
}

}  // namespace geardb::engine
