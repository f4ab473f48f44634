#include "engine/table.h"

#include <algorithm>
#include <cstring>

#include "engine/internal/append.h"
#include "engine/internal/column_change.h"
#include "engine/internal/core.h"
#include "engine/internal/filter_bind.h"
#include "engine/internal/patch.h"
#include "engine/internal/table_change.h"
#include "engine/internal/table_read.h"
#include "engine/internal/table_scan.h"
#include "engine/internal/table_stats.h"

namespace geardb {

Table::Table(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Table::~Table() = default;

TableSpec Table::spec() const {
  MutexLock lock(&impl_->table->state->mutex);
  return impl_->table->state->WholeSpec();
}
TableId Table::id() const { return impl_->table->layout().id(); }
uint32_t Table::steps_per_page() const { return impl_->table->layout().steps_per_page(); }

// ---- Writing.

Result<std::unique_ptr<Writer>> Table::NewWriter(const WriterOptions& options) {
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckTable(*impl_->table));
  constexpr uint32_t kLanesMax = 1u << 20;
  if (options.lanes < 1 || options.lanes > kLanesMax) {
    return Status::InvalidArgument("a writer of table '", impl_->table->layout().spec().name,
                                   "' has ", options.lanes, " lanes; expected 1 to ", kLanesMax);
  }
  if (options.admission_timeout_ms < 0) {
    return Status::InvalidArgument("a writer of table '", impl_->table->layout().spec().name,
                                   "' has admission_timeout_ms ", options.admission_timeout_ms);
  }
  if (options.ack > Ack::kSync) {
    return Status::InvalidArgument("a writer of table '", impl_->table->layout().spec().name,
                                   "' has the unknown acknowledgement ",
                                   static_cast<int>(*options.ack));
  }
  auto impl = std::make_unique<Writer::Impl>(impl_->database, impl_->table, options);
  impl->PromiseNumbers();
  return std::unique_ptr<Writer>(new Writer(std::move(impl)));
}

Status Table::Remove(std::span<const TrajectoryId> ids) {
  return engine::RemoveTrajectories(impl_->database.get(), impl_->table, ids);
}

Result<uint64_t> Table::Remove(const Filter& filter) {
  return engine::RemoveMatching(impl_->database.get(), impl_->table, filter);
}

Result<uint64_t> Table::Remove(const IdRange& ids) {
  return engine::RemoveRange(impl_->database.get(), impl_->table, ids);
}

Status Table::Truncate(TrajectoryId id, int64_t first_row) {
  return engine::TruncateTrajectory(impl_->database.get(), impl_->table, {id, first_row});
}

Status Table::SetColumns(TrajectoryId id, ColumnValues values) {
  return engine::SetTrajectoryColumns(impl_->database.get(), impl_->table, id, values);
}

// ---- Drawing.

namespace {

std::shared_ptr<PriorityTable::Impl> FindPriority(const Table::Impl& impl, std::string_view name,
                                                  std::string* names) {
  MutexLock lock(&impl.table->state->mutex);
  for (size_t i = 0; i < impl.table->state->priority_table_count(); ++i) {
    const PriorityTableSpec& spec = impl.table->state->priority(i).spec();
    if (names) *names += (names->empty() ? "" : ", ") + spec.name;
    if (spec.name != name) continue;
    auto found = std::make_shared<PriorityTable::Impl>();
    found->database = impl.database;
    found->table = impl.table;
    found->number = static_cast<uint32_t>(i);
    found->spec = spec;
    return found;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> Table::PriorityTables() const {
  MutexLock lock(&impl_->table->state->mutex);
  std::vector<std::string> names;
  for (size_t i = 0; i < impl_->table->state->priority_table_count(); ++i) {
    names.push_back(impl_->table->state->priority(i).spec().name);
  }
  return names;
}

Result<std::shared_ptr<PriorityTable>> Table::OpenPriorityTable(std::string_view name) {
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckTable(*impl_->table));
  std::string names;
  auto found = FindPriority(*impl_, name, &names);
  if (found == nullptr) {
    return Status::NotFound("table '", impl_->table->layout().spec().name,
                            "' has no priority table '", name, "'; it has ",
                            names.empty() ? "none" : names);
  }
  return std::shared_ptr<PriorityTable>(new PriorityTable(std::move(found)));
}

std::shared_ptr<PriorityTable> Table::priority_table(std::string_view name) {
  if (!impl_->database->CheckProcess().ok()) return nullptr;
  std::string names;
  auto found = FindPriority(*impl_, name, &names);
  if (found == nullptr) return nullptr;
  return std::shared_ptr<PriorityTable>(new PriorityTable(std::move(found)));
}

Result<std::shared_ptr<PriorityTable>> Table::CreatePriorityTable(const PriorityTableSpec& spec) {
  GEARDB_RETURN_IF_ERROR(engine::CreatePriorityTable(impl_->database.get(), impl_->table, spec));
  return OpenPriorityTable(spec.name);
}

// ---- Reading.

uint64_t Table::Count() const {
  MutexLock lock(&impl_->table->state->mutex);
  return impl_->table->state->trajectories().count();
}

uint64_t Table::StepCount() const {
  MutexLock lock(&impl_->table->state->mutex);
  return impl_->table->state->steps();
}

Result<TrajectoryRecord> Table::Find(TrajectoryId id) const {
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckTable(*impl_->table));
  MutexLock lock(&impl_->table->state->mutex);
  const engine::TableState& state = *impl_->table->state;
  const Slot slot = state.trajectories().FindById(id);
  if (slot == kNoSlot) {
    return Status::NotFound("table '", impl_->table->layout().spec().name, "' has no trajectory ",
                            id);
  }
  return engine::DescribeTrajectory(state, state.trajectories().record(slot));
}

std::vector<TrajectoryRecord> Table::Scan(const ScanOptions& options) const {
  engine::FirstRecords records(options.limit);
  MutexLock lock(&impl_->table->state->mutex);
  records.LookAtAll(*impl_->table->state, options);
  return std::move(records).Finish();
}

Status Table::Check(const Filter& filter) const {
  return engine::CheckFilter(filter, impl_->table->layout());
}

Result<uint64_t> Table::Count(const Filter& filter) const {
  return engine::CountMatching(impl_->database.get(), *impl_->table, filter);
}

Result<std::vector<TrajectoryRecord>> Table::Scan(const Filter& filter,
                                                  const ScanOptions& options) const {
  return engine::ScanRecords(impl_->database.get(), *impl_->table, filter, options);
}

Result<ColumnStatistics> Table::Statistics(std::string_view column, const Filter& filter) const {
  return engine::ColumnStatisticsOf(impl_->database.get(), *impl_->table, {column, filter});
}

Result<ColumnHistogram> Table::Histogram(std::string_view column, const HistogramBins& bins,
                                         const Filter& filter) const {
  return engine::ColumnHistogramOf(impl_->database.get(), *impl_->table, {column, filter}, bins);
}

Result<std::vector<ColumnRows>> Table::Read(TrajectoryId id,
                                            std::span<const std::string_view> columns,
                                            const RowRange& range) const {
  return engine::ReadRows(impl_->database.get(), *impl_->table, id, columns, range);
}

Result<std::vector<ColumnRows>> Table::Gather(std::span<const GatherColumn> columns) const {
  return engine::GatherRows(impl_->database.get(), *impl_->table, columns);
}

Result<PatchOutcome> Table::Patch(std::span<const RowSpan> spans, ColumnValues values,
                                  const PatchOptions& options) {
  const engine::ResolvePatch resolve = [spans](const engine::TableState& state,
                                               engine::PatchRows* rows) {
    return engine::ResolveSpans(state, spans, rows);
  };
  return engine::PatchTable(impl_->database.get(), impl_->table, resolve, values, options);
}

Result<int64_t> Table::Filled(TrajectoryId id, std::string_view group) const {
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckTable(*impl_->table));
  const engine::TableState& state = *impl_->table->state;
  MutexLock lock(&impl_->table->state->mutex);
  const engine::TableLayout& layout = state.layout();
  const auto found = layout.FindGroup(group);
  if (!found) {
    return Status::NotFound("table '", layout.spec().name, "' has no column group '", group, "'");
  }
  if (!layout.group(*found).late) {
    return Status::InvalidArgument("table '", layout.spec().name, "': group '", group,
                                   "' is not late: appends fill it");
  }
  const Slot slot = state.trajectories().FindById(id);
  if (slot != kNoSlot) return static_cast<int64_t>(state.Filled(*found, slot));
  return Status::NotFound("table '", layout.spec().name, "' has no trajectory ", id);
}

Status Table::AddColumns(std::span<const Column> columns, std::span<const ColumnGroup> groups) {
  return engine::AddColumns(impl_->database.get(), impl_->table, columns, groups);
}

Status Table::DropColumns(std::span<const std::string_view> names) {
  return engine::DropColumns(impl_->database.get(), impl_->table, names);
}

Result<uint64_t> Table::CloseOrphans(int64_t older_than_ms) {
  return engine::CloseOrphans(impl_->database, impl_->table, older_than_ms);
}

Result<uint64_t> Table::RemoveExpired() {
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckTable(*impl_->table));
  return engine::RemoveExpired(impl_->database.get(), impl_->table);
}

namespace {

/// Adds the reason and name of what is known, from number `from` on.
void ListRemovals(const engine::TableState& state, uint64_t from, uint64_t removals_max,
                  Removals* found) {
  const engine::RemovalLog& log = state.removals();
  const uint64_t first = std::max(from, log.begin());
  found->missed = first - from;
  found->next = first + std::min(log.end() - first, removals_max);
  for (uint64_t number = first; number < found->next; ++number) {
    const engine::RemovalLog::Entry& entry = log.entry(number);
    found->removals.push_back({.id = entry.id, .reason = entry.cause.reason});
    if (entry.cause.reason != RemovalReason::kFilter) continue;
    if (entry.cause.priority_table >= state.priority_table_count()) continue;
    found->removals.back().priority_table = state.priority(entry.cause.priority_table).spec().name;
  }
}

}  // namespace

Result<Removals> Table::ReadRemovals(uint64_t from, const RemovalsOptions& options) const {
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckTable(*impl_->table));
  const std::string& name = impl_->table->layout().spec().name;
  if (options.removals_max == 0) {
    return Status::InvalidArgument("table '", name, "': removals_max is 0; expected at least 1");
  }
  engine::TableState& state = *impl_->table->state;
  const Deadline deadline = Deadline::AfterMs(options.timeout_ms);
  engine::ChangeWaiter waiter;
  const engine::WaitsForChange waits(&state.changed, &waiter);
  for (;;) {
    const uint64_t seen = waiter.count();
    Removals found;
    {
      MutexLock lock(&state.mutex);
      if (from > state.removals().end()) {
        return Status::InvalidArgument("table '", name, "': removals from number ", from,
                                       " on are asked for; so far there are ",
                                       state.removals().end());
      }
      ListRemovals(state, from, options.removals_max, &found);
    }
    if (!found.removals.empty() || found.missed > 0) return found;
    GEARDB_RETURN_IF_ERROR(impl_->database->CheckTable(*impl_->table));
    if (!waiter.WaitBeyond(seen, deadline)) return found;
  }
}

TableStats Table::Stats() const { return engine::StatsOf(*impl_->table->state); }

std::vector<GroupPlaces> Table::Places() const { return engine::PlacesOf(*impl_->table->state); }

}  // namespace geardb
