#include "engine/internal/recovery.h"

#include <algorithm>
#include <cstring>

namespace geardb::engine {
namespace {

/// True when every column set names a column and a slot below `slots_end`, and the values have
/// exactly their bytes.
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

}  // namespace

Status Recovery::BadRecord(const wal::RecordView& record, std::string_view why) const {
  return Status::Corruption("the record at LSN ", record.lsn, " of '", core_->directory,
                            "' does not fit the state before it: ", why);
}

Status Recovery::Visit(const wal::RecordView& record) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(record.body.data()),
                                 record.body.size());
  if (!verifier.VerifyBuffer<fb::Body>()) {
    return BadRecord(record, "its body is no FlatBuffer of operations");
  }
  const auto* body = flatbuffers::GetRoot<fb::Body>(record.body.data());
  if (body->operations() == nullptr) return Status::Ok();
  for (const fb::Operation* operation : *body->operations()) {
    GEARDB_RETURN_IF_ERROR(Apply(*operation, record));
  }
  return Status::Ok();
}

Status Recovery::Apply(const fb::Operation& operation, const wal::RecordView& record) {
  if (operation.change_type() == fb::Change::NONE || operation.change() == nullptr) {
    return BadRecord(record, "it has an operation that says nothing");
  }
  if (operation.change_type() == fb::Change::CreateTable) return CreateTable(operation);
  if (operation.change_type() == fb::Change::WriteTag) {
    return WriteTag(*operation.change_as_WriteTag(), record);
  }
  const std::shared_ptr<TableCore> table = core_->TableById(operation.table_id());
  if (table == nullptr) return BadRecord(record, "its table does not exist");
  if (operation.change_type() == fb::Change::DropTable) {
    damaged_.erase(operation.table_id());
    core_->ForgetTable(operation.table_id());
    return Status::Ok();
  }
  TableState& state = *table->state;
  if (operation.change_type() == fb::Change::Append) {
    return Append(*operation.change_as_Append(), record, table.get());
  }
  MutexLock lock(&state.mutex);
  if (operation.change_type() == fb::Change::CreatePriorityTable) {
    return CreatePriorityTable(operation, table.get());
  }
  const uint64_t slots = state.trajectories().reserved();
  switch (operation.change_type()) {
    case fb::Change::Ranges:
      table->plan->ids_end = operation.change_as_Ranges()->ids_end();
      table->plan->generations_end = operation.change_as_Ranges()->generations_end();
      return Status::Ok();
    case fb::Change::Close:
      if (!PrioritiesFit(operation.change_as_Close()->items())) {
        return BadRecord(record, "a priority is negative or not finite");
      }
      state.Apply(*operation.change_as_Close(), record.lsn);
      return Status::Ok();
    case fb::Change::Adopt:
      state.Apply(*operation.change_as_Adopt(), record.lsn);
      return Status::Ok();
    case fb::Change::Remove:
      state.Apply(*operation.change_as_Remove(), record.lsn);
      return Status::Ok();
    case fb::Change::SetColumns: {
      const fb::SetColumns& set = *operation.change_as_SetColumns();
      if (!ColumnSetsFit(table->layout(), set.column_sets(), set.column_values(), slots)) {
        return BadRecord(record, "its per-trajectory columns do not fit the schema");
      }
      state.Apply(set, record.lsn);
      return Status::Ok();
    }
    default:
      break;
  }
  if (operation.priority_table() >= state.priority_table_count()) {
    return BadRecord(record, "its priority table does not exist");
  }
  const uint32_t number = operation.priority_table();
  switch (operation.change_type()) {
    case fb::Change::SetPriorities: {
      const fb::SetPriorities& set = *operation.change_as_SetPriorities();
      if (set.items()) {
        for (const fb::Item* item : *set.items()) {
          if (!index::ValidPriority(item->priority())) {
            return BadRecord(record, "a priority is negative or not finite");
          }
        }
      }
      state.Apply(set, number);
      return Status::Ok();
    }
    case fb::Change::SetAll:
      return SetAll(operation, record, table.get());
    case fb::Change::Rescale: {
      const int shift = operation.change_as_Rescale()->shift();
      if (shift < index::kShiftMin || shift > index::kShiftMax) {
        return BadRecord(record, "its scale is out of range");
      }
      state.Apply(*operation.change_as_Rescale(), number);
      return Status::Ok();
    }
    case fb::Change::HandOver:
      state.Apply(*operation.change_as_HandOver(), number);
      return Status::Ok();
    case fb::Change::RestartDraws:
      state.Apply(*operation.change_as_RestartDraws(), number);
      return Status::Ok();
    default:
      return Status::Unsupported("the record at LSN ", record.lsn, " holds operation ",
                                 static_cast<int>(operation.change_type()),
                                 ", which this version does not know");
  }
}

Status Recovery::CreateTable(const fb::Operation& operation) {
  const fb::CreateTable& create = *operation.change_as_CreateTable();
  GEARDB_ASSIGN_OR_RETURN(const TableSpec spec, DecodeTableSpec(create.spec()));
  const Status valid = ValidateTableSpec(spec);
  if (!valid.ok()) return Status::Corruption("a stored schema is not valid: ", valid.message());
  if (core_->TableById(operation.table_id()) != nullptr) {
    return Status::Corruption("table ", operation.table_id(), " is created twice");
  }
  GEARDB_ASSIGN_OR_RETURN(auto table, core_->AddTable(spec, operation.table_id()));
  table->plan->ids_end = create.ids_end();
  table->plan->generations_end = create.generations_end();
  return Status::Ok();
}

Status Recovery::CreatePriorityTable(const fb::Operation& operation, TableCore* table) {
  const fb::CreatePriorityTable& create = *operation.change_as_CreatePriorityTable();
  GEARDB_ASSIGN_OR_RETURN(const PriorityTableSpec spec, DecodePriorityTableSpec(create.spec()));
  const Status valid = ValidatePriorityTableSpec(table->layout().spec(), spec);
  if (!valid.ok() || !index::ValidPriority(create.initial())) {
    return Status::Corruption("a stored priority table is not valid: ", valid.message());
  }
  TableState& state = *table->state;
  GEARDB_RETURN_IF_ERROR(state.AddPriorityTable(spec));
  const size_t number = state.priority_table_count() - 1;
  state.priority(number).selector().BeginBulk();
  state.Apply(create, number);
  return Status::Ok();
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
  GEARDB_RETURN_IF_ERROR(state.Reserve(lpn_count, slot_count));
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

Status Recovery::SetAll(const fb::Operation& operation, const wal::RecordView& record,
                        TableCore* table) {
  const fb::SetAll& set = *operation.change_as_SetAll();
  std::vector<float> values;
  if (set.in_pieces()) {
    for (const wal::PieceView& piece : record.pieces) {
      if (!piece.good || piece.bytes.size() % sizeof(float) != 0) {
        return BadRecord(record, "a piece with priorities is damaged");
      }
      const size_t begin = values.size();
      values.resize(begin + piece.bytes.size() / sizeof(float));
      std::memcpy(values.data() + begin, piece.bytes.data(), piece.bytes.size());
    }
  } else if (set.values()) {
    values.assign(set.values()->begin(), set.values()->end());
  } else {
    values.push_back(set.value());
  }
  if (!std::all_of(values.begin(), values.end(), index::ValidPriority)) {
    return BadRecord(record, "a priority is negative or not finite");
  }
  table->state->ApplySetAll(values, operation.priority_table());
  return Status::Ok();
}

Status Recovery::WriteTag(const fb::WriteTag& stored, const wal::RecordView& record) {
  if (stored.name() == nullptr) return BadRecord(record, "a tag has no name");
  Tag tag{.name = stored.name()->str(),
          .blob = {},
          .lsn = record.lsn,
          .created_us = stored.created_us()};
  if (stored.blob_in_pieces()) {
    for (const wal::PieceView& piece : record.pieces) {
      if (!piece.good) return BadRecord(record, "a piece of a tag's blob is damaged");
      tag.blob.insert(tag.blob.end(), piece.bytes.begin(), piece.bytes.end());
    }
  } else if (stored.blob()) {
    const auto* bytes = reinterpret_cast<const std::byte*>(stored.blob()->data());
    tag.blob.assign(bytes, bytes + stored.blob()->size());
  }
  core_->AddTag(std::move(tag));
  return Status::Ok();
}

Status Recovery::Finish(bool clean) {
  for (const auto& table : core_->AllTables()) {
    {
      MutexLock lock(&table->state->mutex);
      table->state->EndBulk();
      orphaned_ += table->state->OrphanOpenTrajectories();
    }
    GEARDB_RETURN_IF_ERROR(table->plan->TakeOver(clean));
  }
  return Status::Ok();
}

}  // namespace geardb::engine
