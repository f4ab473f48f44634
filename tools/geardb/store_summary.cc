#include "tools/geardb/store_summary.h"

#include <memory>
#include <utility>

namespace geardb::cli {
namespace {

Result<TableSummary> SummarizeTable(Table* table) {
  TableSummary summary;
  summary.id = table->id();
  summary.spec = table->spec();
  summary.steps_per_page = table->steps_per_page();
  summary.stats = table->Stats();
  summary.places = table->Places();
  for (const TrajectoryRecord& record : table->Scan({})) {
    summary.open += record.state == TrajectoryState::kOpen ? 1 : 0;
    summary.closed += record.state == TrajectoryState::kClosed ? 1 : 0;
    summary.orphaned += record.state == TrajectoryState::kOrphaned ? 1 : 0;
  }
  for (const std::string& name : table->PriorityTables()) {
    GEARDB_ASSIGN_OR_RETURN(const auto priorities, table->OpenPriorityTable(name));
    summary.priority_tables.push_back({priorities->spec(), priorities->Stats()});
  }
  return summary;
}

}  // namespace

double TableSummary::fill() const {
  return stats.frame_bytes == 0
             ? 1.0
             : static_cast<double>(stats.row_bytes) / static_cast<double>(stats.frame_bytes);
}

double TableSummary::frame_bytes_per_row_byte() const {
  return stats.row_bytes == 0
             ? 1.0
             : static_cast<double>(stats.frame_bytes) / static_cast<double>(stats.row_bytes);
}

Result<StoreSummary> Summarize(const StoreFiles& files, Database* database) {
  StoreSummary summary;
  summary.manifest = files.manifest;
  summary.recovery = database->recovery();
  summary.stats = database->Stats();
  summary.activity = database->Activity();
  summary.tags = database->Tags();
  GEARDB_ASSIGN_OR_RETURN(const auto names, Env::Posix()->List(files.log_directory()));
  for (const std::string& name : names) {
    uint64_t number = 0;
    summary.segment_files += wal::ParseSegmentName(name, &number) ? 1u : 0u;
  }
  for (const std::string& name : database->Tables()) {
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable(name));
    GEARDB_ASSIGN_OR_RETURN(TableSummary one, SummarizeTable(table.get()));
    summary.tables.push_back(std::move(one));
  }
  return summary;
}

}  // namespace geardb::cli
