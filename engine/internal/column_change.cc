#include "engine/internal/column_change.h"

#include <algorithm>

#include "base/crash_point.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/companion.h"
#include "engine/internal/held_frames.h"
#include "engine/internal/index_budget.h"
#include "engine/internal/stored_schema.h"
#include "engine/internal/table_fits.h"

namespace geardb::engine {
namespace {

/// What the columns are to be, and the operation that says so; its body is made before the columns
/// are looked at.
using Decide = std::function<Result<TableHistory>(const TableHistory& before)>;
using Say = std::function<void(const TableHistory& after, Change* change)>;

/// Companions (companion.h) of columns that come, and which of those there are leave.
struct CompanionChange {
  std::vector<std::shared_ptr<TableCore>> come;
  std::vector<size_t> leave;  ///< By number.
};

/// Nothing has changed yet.
Result<CompanionChange> PrepareCompanions(DatabaseCore* database, const TableCore& table,
                                          const TableHistory& after) {
  const TableLayout layout(after, after.version, table.layout().id());
  CompanionChange change;
  for (size_t k = 0; k < layout.companions().size(); ++k) {
    const CompanionColumn& column = layout.companions()[k];
    if (k < table.companions.size()) {
      if (column.dropped && table.companions[k] != nullptr) change.leave.push_back(k);
      continue;
    }
    GEARDB_RETURN_IF_ERROR(CheckTableFits(*database, TableLayout(column.spec, column.id)));
    auto made = database->MakeTable(column.spec, column.id, Kept::kLeft, table.state->shared_mutex);
    GEARDB_RETURN_IF_ERROR(made.status());
    const auto& companion = change.come.emplace_back(std::move(*made));
    companion->plan->ids_end = kFirstRange;
    companion->plan->generations_end = kFirstRange;
    GEARDB_RETURN_IF_ERROR(companion->plan->TakeOver(/*created=*/true));
  }
  return change;
}

/// Whether the frames and the log take pages with columns that come, and what is kept for a bound
/// that has more pages without those that leave.
Status CheckFits(const DatabaseCore& database, const TableCore& table, const TableHistory& after) {
  const TableLayout layout(after, after.version, table.layout().id());
  if (layout.group_count() == table.layout().group_count() &&
      layout.companions().size() == table.layout().companions().size() &&
      SlabsKept(database, layout) <= SlabsKept(database, table.layout())) {
    return Status::Ok();
  }
  GEARDB_RETURN_IF_ERROR(CheckTableFits(database, layout));
  GEARDB_RETURN_IF_ERROR(CheckFitsBesideOthers(database, layout));
  return CheckAllFit(database, layout);
}

/// As ChangeColumns, where there is memory now, that of `held` included. `*lacking`: for want of it
/// nothing has changed; the frames that are needed.
Status TryChangeColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                        const Decide& decide, const Say& say, Deadline deadline, HeldFrames* held,
                        std::vector<uint64_t>* lacking) {
  FunctionChange change(nullptr);
  const CommitOptions how{.deadline = deadline};
  wal::Reservation reservation;
  {
    ChangeScope scope(database, table.get(), how);
    std::optional<TableHistory> after;
    wal::RecordSize size;
    for (bool waited = true; waited;) {
      GEARDB_RETURN_IF_ERROR(database->CatchUp());
      GEARDB_ASSIGN_OR_RETURN(after, decide(table->state->HistoryNow()));
      NumberCompanions(&*after, database->NextTableId());
      say(*after, &change);
      size = wal::RecordSize::For(change.body_bytes().size(), {});
      GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, how, &waited));
    }
    {
      MutexLock lock(&table->state->mutex);
      GEARDB_RETURN_IF_ERROR(CheckDroppable(*table->state, *after));
      for (size_t i = 0; i < table->state->priority_table_count(); ++i) {
        const PriorityTableSpec& spec = table->state->priority(i).spec();
        const bool is_clear = CheckRequiredNames(table->layout().spec(), spec).ok();
        if (is_clear) GEARDB_RETURN_IF_ERROR(CheckRequiredNames(after->spec(), spec));
      }
    }
    GEARDB_RETURN_IF_ERROR(CheckFits(*database, *table, *after));
    const TableLayout& now = table->layout();
    *lacking = DefaultFrames(TableLayout(*after, after->version, now.id()), now.group_count(),
                             now.companions().size());
    held->Release();
    GEARDB_ASSIGN_OR_RETURN(const CompanionChange companions,
                            PrepareCompanions(database, *table, *after));
    GEARDB_ASSIGN_OR_RETURN(auto prepared, table->state->PrepareColumns(std::move(*after)));
    lacking->clear();
    change.set_apply([&](Lsn, Lsn end) {
      ApplyLock lock(table->state.get(), end);
      table->state->ApplyColumns(std::move(prepared));
      for (const size_t k : companions.leave) table->state->EmptyCompanion(k);
      ChangeCompanions(table, companions.come, companions.leave);
      table->state->changed.NotifyAll();  // Samplers that wait may show what has left.
    });
    CrashPoint("columns");
    reservation = scope.Reserve({.size = size});
    const std::vector<std::shared_ptr<TableCore>> before = table->companions;
    for (const size_t k : companions.leave) {
      before[k]->dropped.store(true);  // Before its frames are retired: see Writer::Impl::CopyRows.
      table->plan->EmptyCompanion(k);
    }
    database->Finish(reservation, {}, &change);
    // Nobody has an LSN in between: it is published, and what comes next finds it.
    GEARDB_RETURN_IF_ERROR(database->log->WaitPublished(reservation.end, Deadline::Infinite()));
    database->KeepFrames(table->state.get(), PagesKept(table->layout()));
    for (const auto& companion : companions.come) database->AddTable(companion);
    for (const size_t k : companions.leave) {
      database->ForgetTable(before[k]->layout().id());
      table->former_companions.push_back(before[k]);
    }
    database->room_made.NotifyAll();  // A page takes fewer bytes of a bound, perhaps.
  }
  return database->Acknowledge(reservation.end, Ack::kSync);
}

Status ChangeColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                     const Decide& decide, const Say& say) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  const Deadline deadline = Deadline::AfterMs(kAdmissionMs);
  const Turn::Taken no_patch(&table->patches, deadline);
  if (!no_patch.ok()) return table->PatchUnderWay();
  // What is refused is refused without waiting for room; it may be another's turn before ours.
  GEARDB_RETURN_IF_ERROR(decide(table->state->HistoryNow()).status());
  const FrameAttempt attempt = [&](HeldFrames* held, std::vector<uint64_t>* lacking) {
    return TryChangeColumns(database, table, decide, say, deadline, held, lacking);
  };
  return TryWhileTablesLeave(database, deadline,
                             [&] { return TryWithFrames(database, deadline, attempt); });
}

}  // namespace

void ChangeCompanions(const std::shared_ptr<TableCore>& table,
                      std::span<const std::shared_ptr<TableCore>> come,
                      std::span<const size_t> leave) {
  std::vector<std::shared_ptr<TableCore>> companions = table->companions;
  for (const size_t k : leave) companions[k] = nullptr;
  companions.insert(companions.end(), come.begin(), come.end());
  DatabaseCore::UseCompanions(table, std::move(companions));
}

Status CheckDroppable(const TableState& state, const TableHistory& after) {
  const TableLayout& before = state.layout();
  const TableSpec spec = after.spec();
  const auto has_column = [&](std::string_view name) {
    return std::any_of(spec.columns.begin(), spec.columns.end(),
                       [&](const Column& column) { return column.name == name; });
  };
  const auto has_group = [&](std::string_view name) {
    return std::any_of(spec.groups.begin(), spec.groups.end(),
                       [&](const ColumnGroup& group) { return group.name == name; });
  };
  for (size_t i = 0; i < state.priority_table_count(); ++i) {
    const PriorityTableSpec& of = state.priority(i).spec();
    for (const std::string& name : of.required) {
      const bool is_group = FindRequirableGroup(before, name).has_value();
      if (is_group ? has_group(name) : has_column(name)) continue;
      return Status::FailedPrecondition("table '", spec.name, "': priority table '", of.name,
                                        "' requires ", is_group ? "group" : "column", " '", name,
                                        "', which would have been dropped");
    }
    for (const std::string& name : ColumnsOfFilter(of.filter)) {
      if (has_column(name)) continue;
      return Status::FailedPrecondition("table '", spec.name, "': the filter of priority table '",
                                        of.name, "' names column '", name,
                                        "', which would have been dropped");
    }
    if (of.item == ItemKind::kGroup && !has_column(of.group.key)) {
      return Status::FailedPrecondition("table '", spec.name, "': priority table '", of.name,
                                        "' groups by column '", of.group.key,
                                        "', which would have been dropped");
    }
    if (of.initial != InitialPriority::kColumn || has_column(of.initial_priority_column)) continue;
    return Status::FailedPrecondition(
        "table '", spec.name, "': priority table '", of.name, "' takes priorities from column '",
        of.initial_priority_column, "', which would have been dropped");
  }
  return Status::Ok();
}

Status AddColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                  std::span<const Column> columns, std::span<const ColumnGroup> groups) {
  return ChangeColumns(
      database, table,
      [&](const TableHistory& before) { return WithColumns(before, columns, groups); },
      [&](const TableHistory& after, Change* change) {
        change->body.Clear();
        const auto added = EncodeAddColumns(&change->body, after);
        change->FinishBody({.table = table->layout().id()}, fb::Change::AddColumns, added.Union());
      });
}

Status DropColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                   std::span<const std::string_view> names) {
  return ChangeColumns(
      database, table, [&](const TableHistory& before) { return WithoutColumns(before, names); },
      [&](const TableHistory&, Change* change) {
        auto& body = change->body;
        body.Clear();
        std::vector<flatbuffers::Offset<flatbuffers::String>> stored;
        for (const std::string_view name : names) {
          stored.push_back(body.CreateString(name.data(), name.size()));
        }
        change->FinishBody({.table = table->layout().id()}, fb::Change::DropColumns,
                           fb::CreateDropColumns(body, body.CreateVector(stored)).Union());
      });
}

}  // namespace geardb::engine
