// Recovery of columns that come and leave.

#include "engine/internal/column_change.h"
#include "engine/internal/recovery.h"
#include "engine/internal/stored_schema.h"
#include "engine/internal/table_fits.h"

namespace geardb::engine {

Status Recovery::ChangeCompanions(const TableHistory& after, const wal::RecordView& record,
                                  const std::shared_ptr<TableCore>& table) {
  const TableLayout layout(after, after.version, table->layout().id());
  std::vector<std::shared_ptr<TableCore>> come;
  std::vector<size_t> leave;
  TableId next = core_->NextTableId();
  for (size_t k = 0; k < layout.companions().size(); ++k) {
    const CompanionColumn& column = layout.companions()[k];
    if (k < table->companions.size()) {
      if (column.dropped && table->companions[k] != nullptr) leave.push_back(k);
      continue;
    }
    // As of tables that are created: ids ascend, and the last one is kept free.
    if (column.id < next || column.id >= UINT32_MAX - 1) {
      return BadRecord(record, "table ", column.id, " of column '", column.name,
                       "' is created after table ", next - 1);
    }
    next = column.id + 1;
    GEARDB_ASSIGN_OR_RETURN(come.emplace_back(), MakeTable(column.spec, column.id, table.get()));
  }
  const std::vector<std::shared_ptr<TableCore>> before = table->companions;
  {
    MutexLock lock(&table->state->mutex);
    engine::ChangeCompanions(table, come, leave);
  }
  for (const auto& companion : come) core_->AddTable(companion);
  for (const size_t k : leave) {
    const TableId id = before[k]->layout().id();
    damaged_.erase(id);
    core_->ForgetTable(id);
  }
  return Status::Ok();
}

Status Recovery::ChangeColumns(const fb::Operation& operation, const wal::RecordView& record,
                               const std::shared_ptr<TableCore>& table) {
  TableState& state = *table->state;
  const bool adds = operation.change_type() == fb::Change::AddColumns;
  Result<TableHistory> after =
      adds ? DecodeAddColumns(*operation.change_as_AddColumns(), state.history())
           : DecodeDropColumns(*operation.change_as_DropColumns(), state.history());
  if (after.status().code() == StatusCode::kUnsupported) return after.status();
  if (!after.ok()) return BadRecord(record, after.status().message());
  {
    MutexLock lock(&state.mutex);
    GEARDB_RETURN_IF_ERROR(Fits(record, CheckDroppable(state, *after)));
  }
  const fb::AddColumns* added = adds ? operation.change_as_AddColumns() : nullptr;
  if (adds) GEARDB_RETURN_IF_ERROR(Fits(record, CheckIdsEnd(added->ids_end())));
  GEARDB_ASSIGN_OR_RETURN(auto change, WithAllRoom([&] { return state.PrepareColumns(*after); }));
  {
    MutexLock lock(&state.mutex);
    state.ApplyColumns(std::move(change), /*has_writers=*/false);
  }
  core_->KeepFrames(&state, PagesKept(state.layout()));
  const size_t companions = table->companions.size();
  GEARDB_RETURN_IF_ERROR(ChangeCompanions(*after, record, table));
  for (size_t k = companions; k < table->companions.size(); ++k) {
    table->companions[k]->plan->ids_end = added->ids_end();
    table->companions[k]->plan->generations_end = added->generations_end();
  }
  return Status::Ok();
}

}  // namespace geardb::engine
