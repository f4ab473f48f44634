#include "engine/internal/patch_rewrite.h"

#include <utility>

#include "engine/internal/table_read.h"
#include "engine/internal/value_read.h"

namespace geardb::engine {

Result<std::optional<WholeColumn>> FindRewrite(DatabaseCore* database, const TableCore& table,
                                               const PatchedValues::Grown& grown) {
  const TableLayout& layout = table.layout();
  const StepColumn& column = layout.step_columns()[grown.column];
  WholeColumn whole;
  uint64_t kept = 0;
  {
    MutexLock lock(&table.state->mutex);
    const TableState& state = *table.state;
    const index::TrajectoryRecord& record = state.trajectories().record(grown.slot);
    if (record.generation != grown.generation) return std::optional<WholeColumn>();
    const RaggedRange range = RangeOfBlob(state, grown.companion, grown.slot);
    kept = range.end - range.begin;
    const bool late = layout.group(column.group).late;
    const uint64_t end = late ? state.Filled(column.group, grown.slot) : record.rows_end;
    whole.span = {.id = record.id,
                  .first_row = static_cast<int64_t>(record.first_row),
                  .rows = static_cast<int64_t>(end - std::min(end, record.first_row))};
  }
  if (whole.span.rows == 0) return std::optional<WholeColumn>();
  const std::string_view name = column.name;
  const RowRange rows = {.begin = whole.span.first_row,
                         .end = whole.span.first_row + whole.span.rows};
  GEARDB_ASSIGN_OR_RETURN(auto read, ReadRows(database, table, whole.span.id, {&name, 1}, rows));
  whole.rows = std::move(read[0]);
  whole.offsets.assign(whole.rows.offsets.begin(), whole.rows.offsets.end());
  if (kept < 2 * whole.offsets.back()) return std::optional<WholeColumn>();
  return std::optional(std::move(whole));
}

}  // namespace geardb::engine
