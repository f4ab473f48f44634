// Recovery of columns that come and leave.

#include "engine/internal/column_change.h"
#include "engine/internal/recovery.h"
#include "engine/internal/stored_schema.h"
#include "engine/internal/table_fits.h"

namespace geardb::engine {

Status Recovery::ChangeColumns(const fb::Operation& operation, const wal::RecordView& record,
                               TableCore* table) {
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
  GEARDB_ASSIGN_OR_RETURN(auto change, state.PrepareColumns(std::move(*after)));
  {
    MutexLock lock(&state.mutex);
    state.ApplyColumns(std::move(change));
  }
  core_->KeepFrames(&state, PagesKept(state.layout()));
  return Status::Ok();
}

}  // namespace geardb::engine
