#include "engine/internal/recovery.h"

#include <algorithm>
#include <cstring>

#include "engine/internal/priority_limits.h"
#include "engine/internal/record_body.h"

namespace geardb::engine {

namespace {

/// All else follows from the owner's operations.
bool MayBeOfCompanion(const fb::Operation& operation) {
  const fb::Remove* remove = operation.change_as_Remove();
  if (remove != nullptr) return remove->removed() == nullptr || remove->removed()->size() == 0;
  return operation.change_type() == fb::Change::Append ||
         operation.change_type() == fb::Change::Ranges;
}

}  // namespace

Status Recovery::Fits(const wal::RecordView& record, const Status& check) const {
  return check.ok() ? check : BadRecord(record, check.message());
}

Status Recovery::Visit(const wal::RecordView& record) {
  const Result<const fb::Body*> body = ReadBody(record.body);
  if (!body.ok()) return BadRecord(record, body.status().message());
  const auto* operations = (*body)->operations();
  if (operations == nullptr || operations->size() == 0) return Status::Ok();
  for (const fb::Operation* operation : *operations) {
    if (operation->partition() != 0) {
      return Status::Unsupported("written by a newer GearDB: the record at LSN ", record.lsn,
                                 " changes partition ", operation->partition(), " of table ",
                                 operation->table_id(), "; this version knows partition 0 only");
    }
    if (operation->change_type() <= fb::Change::MAX) continue;
    return Status::Unsupported("written by a newer GearDB: the record at LSN ", record.lsn,
                               " holds operation ", static_cast<int>(operation->change_type()),
                               ", which this version does not know");
  }
  GEARDB_RETURN_IF_ERROR(Fits(record, CheckOperations(**body, record.pieces.size())));
  met_ring_ |= record.from_ring;
  if (!record.from_ring) core_->read_from_segments.store(record.end);
  // The operations of a WriteBatch have its pieces one after the other.
  wal::RecordView part = record;
  size_t piece = 0;
  for (const fb::Operation* operation : *operations) {
    if (operations->size() > 1) {
      part.pieces = record.pieces.subspan(std::min(piece, record.pieces.size()));
      part.pieces = part.pieces.first(std::min<size_t>(PiecesOf(*operation), part.pieces.size()));
      piece += PiecesOf(*operation);
    }
    GEARDB_RETURN_IF_ERROR(Apply(*operation, part));
  }
  return Status::Ok();
}

Status Recovery::Apply(const fb::Operation& operation, const wal::RecordView& record) {
  if (operation.change_type() == fb::Change::CreateTable) return CreateTable(operation, record);
  if (operation.change_type() == fb::Change::WriteTag) {
    return WriteTag(*operation.change_as_WriteTag(), record);
  }
  const TableId id = operation.table_id();
  const std::shared_ptr<TableCore> table = core_->TableById(id);
  if (table == nullptr) {
    // A call that was under way while its table was dropped may have its record after the drop.
    if (id != 0 && id < core_->NextTableId()) return Status::Ok();
    return BadRecord(record, "table ", id, " does not exist");
  }
  if (table->is_companion && !MayBeOfCompanion(operation)) {
    return BadRecord(record, "operation ", static_cast<int>(operation.change_type()),
                     " is of table ", id, ", which another table owns");
  }
  if (operation.change_type() == fb::Change::DropTable) {
    for (const auto& companion : table->companions) {
      if (companion != nullptr) bad_pages_.erase(companion->layout().id());
    }
    bad_pages_.erase(id);
    core_->ForgetTable(id);
    return Status::Ok();
  }
  if (operation.change_type() == fb::Change::AddColumns ||
      operation.change_type() == fb::Change::DropColumns) {
    return ChangeColumns(operation, record, table);
  }
  MutexLock lock(&table->state->mutex);
  const Status applied = ApplyToTable(operation, record, table.get());
  (void)table->state->TakeFinished();  // Behind the log an open looks at every trajectory.
  return applied;
}

Status Recovery::ApplyToTable(const fb::Operation& operation, const wal::RecordView& record,
                              TableCore* table) {
  TableState& state = *table->state;
  switch (operation.change_type()) {
    case fb::Change::Append:
      return Append(*operation.change_as_Append(), record, table);
    case fb::Change::CreatePriorityTable:
      return CreatePriorityTable(operation, record, table);
    case fb::Change::Ranges: {
      const fb::Ranges& ranges = *operation.change_as_Ranges();
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckIdsEnd(ranges.ids_end())));
      table->plan->ids_end = ranges.ids_end();
      table->plan->generations_end = ranges.generations_end();
      return Status::Ok();
    }
    case fb::Change::Close: {
      const fb::Close& close = *operation.change_as_Close();
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckClose(state, close)));
      state.Apply(close, record.lsn);
      return Status::Ok();
    }
    case fb::Change::Adopt:
      state.Apply(*operation.change_as_Adopt(), record.lsn);
      return Status::Ok();
    case fb::Change::Remove: {
      const fb::Remove& remove = *operation.change_as_Remove();
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckRemove(state, remove)));
      state.Apply(remove, operation.priority_table());
      return Status::Ok();
    }
    case fb::Change::Patch:
      return Patch(*operation.change_as_Patch(), record, table);
    case fb::Change::SetColumns: {
      const fb::SetColumns& set = *operation.change_as_SetColumns();
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckSetColumns(state, set)));
      state.Apply(set);
      return Status::Ok();
    }
    default:
      return ApplyToPriorityTable(operation, record, table);
  }
}

Status Recovery::ApplyToPriorityTable(const fb::Operation& operation, const wal::RecordView& record,
                                      TableCore* table) {
  TableState& state = *table->state;
  const uint32_t number = operation.priority_table();
  if (number >= state.priority_table_count()) {
    return BadRecord(record, "priority table ", number, " of table ", operation.table_id(),
                     " does not exist");
  }
  switch (operation.change_type()) {
    case fb::Change::SetPriorities:
      return SetPriorities(operation, record, table);
    case fb::Change::SetAll:
      return SetAll(operation, record, table);
    case fb::Change::Rescale: {
      const fb::Rescale& rescale = *operation.change_as_Rescale();
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckRescale(rescale)));
      state.Apply(rescale, number);
      return Status::Ok();
    }
    case fb::Change::HandOver: {
      const fb::HandOver& hand_over = *operation.change_as_HandOver();
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckHandOver(hand_over, state.priority(number))));
      state.Apply(hand_over, number);
      return Status::Ok();
    }
    case fb::Change::BeginEpoch:
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckHasEpochs(state.priority(number))));
      state.Apply(*operation.change_as_BeginEpoch(), number);
      return Status::Ok();
    case fb::Change::EndPass:
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckHasEpochs(state.priority(number))));
      state.Apply(*operation.change_as_EndPass(), number);
      return Status::Ok();
    case fb::Change::DeleteItems: {
      std::vector<fb::Handed> items;
      const auto* stored = operation.change_as_DeleteItems()->items();
      for (uint32_t i = 0; stored != nullptr && i < stored->size(); ++i) {
        items.push_back(*stored->Get(i));
      }
      GEARDB_RETURN_IF_ERROR(state.priority(number).PrepareDelete());
      state.ApplyDelete(items, number);
      return Status::Ok();
    }
    case fb::Change::SealGroups:
      GEARDB_RETURN_IF_ERROR(Fits(record, CheckHasGroups(state.priority(number))));
      state.Apply(*operation.change_as_SealGroups(), number);
      return Status::Ok();
    case fb::Change::SetFilter:
      return SetFilter(*operation.change_as_SetFilter(), record, &state, number);
    case fb::Change::Configure: {
      const fb::Configure& configure = *operation.change_as_Configure();
      PriorityState& priority = state.priority(number);
      PriorityTableSpec spec = priority.spec();
      const Result<PriorityLimits> limits = DecodeLimits(configure.limits());
      if (limits.status().code() == StatusCode::kUnsupported) return limits.status();
      if (!limits.ok()) return BadRecord(record, limits.status().message());
      SetLimits(*limits, &spec);
      GEARDB_RETURN_IF_ERROR(Fits(record, ValidateLimits(spec)));
      GEARDB_RETURN_IF_ERROR(priority.PrepareLimits(*limits));
      state.Apply(configure, number);
      return Status::Ok();
    }
    default:
      state.Apply(*operation.change_as_RestartDraws(), number);
      return Status::Ok();
  }
}

Status Recovery::SetFilter(const fb::SetFilter& set, const wal::RecordView& record,
                           TableState* state, size_t number) {
  PriorityTableSpec spec = state->priority(number).spec();
  const Status decoded = DecodeFilter(set.filter(), set.action(), &spec);
  if (decoded.code() == StatusCode::kUnsupported) return decoded;
  GEARDB_RETURN_IF_ERROR(Fits(record, decoded));
  GEARDB_RETURN_IF_ERROR(Fits(record, CheckStandingFilter(spec, state->layout())));
  GEARDB_RETURN_IF_ERROR(state->PrepareFilter(number));
  state->Apply(set, number);
  return Status::Ok();
}

Status Recovery::CreateTable(const fb::Operation& operation, const wal::RecordView& record) {
  const fb::CreateTable& create = *operation.change_as_CreateTable();
  const TableId id = operation.table_id();
  // Ids ascend in the order of the log; the last one is kept free, so that there is a next one.
  if (id < core_->NextTableId() || id > UINT32_MAX - 1 - kLengthColumnsMax) {
    return BadRecord(record, "table ", id, " is created after table ", core_->NextTableId() - 1);
  }
  const Result<TableSpec> spec = DecodeTableSpec(create.spec());
  if (spec.status().code() == StatusCode::kUnsupported) return spec.status();
  if (!spec.ok()) return BadRecord(record, spec.status().message());
  GEARDB_RETURN_IF_ERROR(Fits(record, ValidateTableSpec(*spec)));
  GEARDB_RETURN_IF_ERROR(Fits(record, CheckIdsEnd(create.ids_end())));
  if (core_->FindTable(spec->name) != nullptr) {
    return BadRecord(record, "there is a table '", spec->name, "' already");
  }
  GEARDB_ASSIGN_OR_RETURN(auto table, MakeTable(*spec, id));
  table->plan->ids_end = create.ids_end();
  table->plan->generations_end = create.generations_end();
  for (const auto& companion : table->companions) {
    companion->plan->ids_end = create.ids_end();
    companion->plan->generations_end = create.generations_end();
  }
  core_->AddTable(std::move(table));
  return Status::Ok();
}

Status Recovery::CreatePriorityTable(const fb::Operation& operation, const wal::RecordView& record,
                                     TableCore* table) {
  const fb::CreatePriorityTable& create = *operation.change_as_CreatePriorityTable();
  TableState& state = *table->state;
  const Result<PriorityTableSpec> spec = DecodePriorityTableSpec(create.spec());
  if (spec.status().code() == StatusCode::kUnsupported) return spec.status();
  if (!spec.ok()) return BadRecord(record, spec.status().message());
  const TableSpec& table_spec = table->layout().spec();
  GEARDB_RETURN_IF_ERROR(Fits(record, ValidatePriorityTableSpec(table_spec, *spec)));
  GEARDB_RETURN_IF_ERROR(Fits(record, CheckStandingFilter(*spec, table->layout())));
  GEARDB_RETURN_IF_ERROR(Fits(record, CheckRequiredNumbers(table->layout(), *spec)));
  if (!index::ValidPriority(create.initial())) {
    return BadRecord(record, "priority table '", spec->name, "' begins with priority ",
                     create.initial());
  }
  const size_t number = state.priority_table_count();
  if (operation.priority_table() != number) {
    return BadRecord(record, "priority table '", spec->name, "' is created as number ",
                     operation.priority_table(), " after ", number, " others");
  }
  for (size_t i = 0; i < number; ++i) {
    if (state.priority(i).spec().name != spec->name) continue;
    return BadRecord(record, "there is a priority table '", spec->name, "' already");
  }
  GEARDB_RETURN_IF_ERROR(state.AddPriorityTable(*spec));
  state.priority(number).selector().BeginBulk();
  state.Apply(create, number);
  return Status::Ok();
}

Status Recovery::SetPriorities(const fb::Operation& operation, const wal::RecordView& record,
                               TableCore* table) {
  const fb::SetPriorities& set = *operation.change_as_SetPriorities();
  GEARDB_RETURN_IF_ERROR(Fits(record, CheckSetPriorities(set, record.pieces)));
  std::vector<fb::Item> items;
  if (set.in_pieces()) {
    for (const wal::PieceView& piece : record.pieces) {
      const size_t count = piece.bytes.size() / sizeof(fb::Item);
      if (!piece.good) {
        damaged_priorities_ += count;
      } else if (count > 0) {
        items.resize(items.size() + count);
        std::memcpy(&items[items.size() - count], piece.bytes.data(), piece.bytes.size());
      }
    }
  } else if (set.items()) {
    for (const fb::Item* item : *set.items()) items.push_back(*item);
  }
  table->state->ApplySet(items, operation.priority_table());
  return Status::Ok();
}

namespace {

/// What a damaged piece said of these items, from item `first` on, is lost: they stay as they are.
void KeepPriorities(const PriorityState& priority, size_t first, std::span<float> values) {
  std::fill(values.begin(), values.end(), 1.0f);
  size_t item = 0;
  const index::Selector& selector = priority.selector();
  selector.ForEachMember({0, selector.reserved()}, [&](uint64_t leaf) {
    if (item >= first && item - first < values.size()) {
      values[item - first] = priority.raw_priority(leaf);
    }
    ++item;
  });
}

}  // namespace

Status Recovery::SetAll(const fb::Operation& operation, const wal::RecordView& record,
                        TableCore* table) {
  const fb::SetAll& set = *operation.change_as_SetAll();
  const uint32_t number = operation.priority_table();
  GEARDB_RETURN_IF_ERROR(
      Fits(record, CheckSetAll(set, record.pieces, table->state->priority(number))));
  std::vector<float> values;
  if (set.in_pieces()) {
    values.resize(set.count());
    size_t filled = 0;
    for (const wal::PieceView& piece : record.pieces) {
      const std::span<float> into =
          std::span(values).subspan(filled, piece.bytes.size() / sizeof(float));
      if (!piece.good) {
        KeepPriorities(table->state->priority(number), filled, into);
        damaged_priorities_ += into.size();
      } else if (!into.empty()) {
        std::memcpy(into.data(), piece.bytes.data(), piece.bytes.size());
      }
      filled += into.size();
    }
  } else if (set.values()) {
    values.assign(set.values()->begin(), set.values()->end());
  } else {
    values.push_back(set.value());
  }
  table->state->ApplySetAll(values, number);
  return Status::Ok();
}

Status Recovery::WriteTag(const fb::WriteTag& stored, const wal::RecordView& record) {
  GEARDB_RETURN_IF_ERROR(Fits(record, CheckTag(stored, record.pieces)));
  Tag tag{.name = stored.name()->str(),
          .blob = {},
          .lsn = record.lsn,
          .created_us = stored.created_us()};
  if (stored.blob_in_pieces()) {
    for (const wal::PieceView& piece : record.pieces) {
      tag.blob.insert(tag.blob.end(), piece.bytes.begin(), piece.bytes.end());
      tag.damaged |= !piece.good;
    }
    if (tag.damaged) tag.blob.clear();
  } else if (stored.blob()) {
    const auto* bytes = reinterpret_cast<const std::byte*>(stored.blob()->data());
    tag.blob.assign(bytes, bytes + stored.blob()->size());
  }
  core_->AddTag(std::move(tag));
  return Status::Ok();
}

void Recovery::CountDamage() {
  for (const auto& [id, pages] : bad_pages_) {
    const auto table = core_->TableById(id);
    if (table == nullptr) continue;
    MutexLock lock(&table->state->mutex);
    const TableState& state = *table->state;
    for (const PageOfGroup& page : pages) {
      if (!state.pages().IsLive(page.lpn, page.generation)) continue;
      if (state.layout().group(page.group).dropped) continue;
      const Slot slot = state.pages().page(page.lpn).slot;
      damaged_[id].emplace(slot, state.trajectories().record(slot).generation);
      ++damaged_pages_;
    }
  }
}

Status Recovery::Finish() {
  CountDamage();
  if (core_->arena->LacksKept()) PackFrames();
  core_->may_be_cold = false;
  for (const auto& table : core_->AllTables()) {
    {
      MutexLock lock(&table->state->mutex);
      table->state->frames().EndMayBeCold();
      table->state->EndBulk();
      table->state->ResetCounters();
      orphaned_ += table->state->OrphanOpenTrajectories();
    }
    GEARDB_RETURN_IF_ERROR(table->plan->TakeOver(/*created=*/false));
  }
  return Status::Ok();
}

}  // namespace geardb::engine
