#include "engine/internal/recovery.h"

#include <algorithm>
#include <cstring>

#include "engine/internal/record_body.h"

namespace geardb::engine {
Status Recovery::BadRecord(const wal::RecordView& record, std::string_view why) const {
  return Status::Corruption("the record at LSN ", record.lsn, " of '", core_->directory,
                            "' does not fit the state before it: ", why);
}

Status Recovery::Visit(const wal::RecordView& record) {
  const Result<const fb::Body*> body = ReadBody(record.body);
  if (!body.ok()) return BadRecord(record, body.status().message());
  if ((*body)->operations() == nullptr) return Status::Ok();
  for (const fb::Operation* operation : *(*body)->operations()) {
    GEARDB_RETURN_IF_ERROR(Apply(*operation, record));
  }
  return Status::Ok();
}

Status Recovery::Apply(const fb::Operation& operation, const wal::RecordView& record) {
  if (operation.change_type() == fb::Change::CreateTable) return CreateTable(operation);
  if (operation.change_type() == fb::Change::WriteTag) {
    return WriteTag(*operation.change_as_WriteTag(), record);
  }
  const std::shared_ptr<TableCore> table = core_->TableById(operation.table_id());
  if (table == nullptr) {
    // A call that was under way while its table was dropped may have its record after the drop.
    if (operation.table_id() < core_->NextTableId()) return Status::Ok();
    return BadRecord(record, "its table does not exist");
  }
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
      return ApplyToPriorityTable(operation, record, table.get());
  }
}

Status Recovery::ApplyToPriorityTable(const fb::Operation& operation, const wal::RecordView& record,
                                      TableCore* table) {
  TableState& state = *table->state;
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
      return SetAll(operation, record, table);
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

Status Recovery::Finish() {
  for (const auto& table : core_->AllTables()) {
    {
      MutexLock lock(&table->state->mutex);
      table->state->EndBulk();
      table->state->ResetCounters();
      orphaned_ += table->state->OrphanOpenTrajectories();
    }
    GEARDB_RETURN_IF_ERROR(table->plan->TakeOver(/*created=*/false));
  }
  return Status::Ok();
}

}  // namespace geardb::engine
