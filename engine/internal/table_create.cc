#include "engine/internal/table_create.h"

#include "engine/internal/change_scope.h"
#include "engine/internal/companion.h"
#include "engine/internal/held_frames.h"
#include "engine/internal/index_budget.h"
#include "engine/internal/remover_rule.h"
#include "engine/internal/stored_schema.h"
#include "engine/internal/table_change.h"
#include "engine/internal/table_fits.h"

namespace geardb::engine {

TableState::Memory DatabaseCore::MemoryOfTables(Kept kept, std::shared_ptr<Mutex> mutex) {
  std::function<void(FramePool*)> make_room;
  if (!options.resident) make_room = [this](FramePool* pool) { evictor->MakeRoom(pool, 1); };
  return {.index = index_memory.get(),
          .arena = arena.get(),
          .loader = page_loader.get(),
          .make_room = std::move(make_room),
          .kept = kept,
          .clock = clock,
          .mutex = std::move(mutex),
          .may_be_cold = may_be_cold};
}

Result<std::shared_ptr<TableCore>> DatabaseCore::MakeTable(const TableSpec& spec, TableId id,
                                                           Kept kept,
                                                           std::shared_ptr<Mutex> mutex) {
  // A dropped table's last handle gives frames back, which a fork shares.
  std::shared_ptr<TableCore> table(new TableCore, DeleteUnlessForked<TableCore>());
  GEARDB_ASSIGN_OR_RETURN(table->state,
                          TableState::Create(MemoryOfTables(kept, std::move(mutex)), spec, id));
  GEARDB_ASSIGN_OR_RETURN(table->plan, TablePlan::Create(index_memory.get(), table->state.get()));
  GEARDB_RETURN_IF_ERROR(MakeCompanions(table, kept));
  return table;
}

Status DatabaseCore::MakeCompanions(const std::shared_ptr<TableCore>& table, Kept kept) {
  std::vector<std::shared_ptr<TableCore>> companions;
  for (const CompanionColumn& column : table->layout().companions()) {
    GEARDB_ASSIGN_OR_RETURN(companions.emplace_back(),
                            MakeTable(column.spec, column.id, kept, table->state->shared_mutex));
  }
  UseCompanions(table, std::move(companions));
  return Status::Ok();
}

void DatabaseCore::UseCompanions(const std::shared_ptr<TableCore>& table,
                                 std::vector<std::shared_ptr<TableCore>> companions) {
  std::vector<TableState*> states;
  std::vector<TablePlan*> plans;
  for (const auto& companion : companions) {
    if (companion == nullptr) {
      states.push_back(nullptr);
      plans.push_back(nullptr);
      continue;
    }
    if (!std::exchange(companion->is_companion, true)) companion->owner = table;
    states.push_back(companion->state.get());
    plans.push_back(companion->plan.get());
  }
  table->state->UseCompanions(std::move(states));
  table->plan->UseCompanions(std::move(plans));
  table->companions = std::move(companions);
}

namespace {

/// One record for a table and its priority tables: a crash leaves all of them or none.
void BuildCreateTable(const TableSpec& spec, TableId id, Change* change) {
  auto& body = change->body;
  body.Clear();
  std::vector<flatbuffers::Offset<fb::Operation>> operations;
  const auto stored = EncodeTableSpec(&body, spec);
  const auto table = fb::CreateCreateTable(body, stored, kFirstRange, kFirstRange);
  operations.push_back(fb::CreateOperation(body, id, 0, fb::Change::CreateTable, table.Union()));
  for (const PriorityTableSpec& priority : spec.priority_tables) {
    const auto number = static_cast<uint32_t>(operations.size() - 1);
    const auto stored_priority = EncodePriorityTableSpec(&body, priority);
    const auto created =
        fb::CreateCreatePriorityTable(body, stored_priority, FirstPriority(priority));
    operations.push_back(
        fb::CreateOperation(body, id, number, fb::Change::CreatePriorityTable, created.Union()));
  }
  body.Finish(fb::CreateBody(body, body.CreateVector(operations)));
}

/// Adds the table, empty, with its priority tables; nothing is left of it after an error.
Result<std::shared_ptr<TableCore>> AddTable(DatabaseCore* core, TableSpec spec, TableId id) {
  const std::vector<PriorityTableSpec> priorities = std::move(spec.priority_tables);
  spec.priority_tables.clear();
  GEARDB_RETURN_IF_ERROR(CheckStorable(spec));
  GEARDB_ASSIGN_OR_RETURN(auto table, core->MakeTable(spec, id));
  table->plan->ids_end = kFirstRange;
  table->plan->generations_end = kFirstRange;
  {
    MutexLock lock(&table->state->mutex);
    for (const PriorityTableSpec& priority : priorities) {
      GEARDB_RETURN_IF_ERROR(CheckStandingFilter(priority, table->layout()));
      GEARDB_RETURN_IF_ERROR(
          table->state->AddPriorityTable(priority).WithContext("table '" + spec.name + "'"));
    }
  }
  GEARDB_RETURN_IF_ERROR(table->plan->TakeOver(/*created=*/true));
  for (const auto& companion : table->companions) {
    companion->plan->ids_end = kFirstRange;
    companion->plan->generations_end = kFirstRange;
    GEARDB_RETURN_IF_ERROR(companion->plan->TakeOver(/*created=*/true));
  }
  core->AddTable(table);
  return table;
}

/// As CreateTable, where there is memory now, that of `held` included (FrameAttempt).
Status TryCreate(DatabaseCore* database, const TableSpec& spec, Deadline deadline, HeldFrames* held,
                 std::vector<uint64_t>* lacking, std::shared_ptr<TableCore>* created) {
  FunctionChange change([](Lsn, Lsn) {});
  const CommitOptions how{.deadline = deadline};
  wal::Reservation reservation;
  {
    ChangeScope scope(database, nullptr, how);
    TableId id = 0;
    wal::RecordSize size;
    for (bool waited = true; waited;) {
      id = database->NextTableId();  // Another table may take it while this one waits.
      BuildCreateTable(spec, id, &change);
      size = wal::RecordSize::For(change.body_bytes().size(), {});
      GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, how, &waited));
    }
    if (database->FindTable(spec.name) != nullptr) {
      return Status::AlreadyExists("database '", database->directory, "' has a table '", spec.name,
                                   "'");
    }
    const TableLayout layout(spec, id);
    GEARDB_RETURN_IF_ERROR(CheckFitsBesideOthers(*database, layout));
    GEARDB_RETURN_IF_ERROR(CheckAllFit(*database, layout));
    held->Release();
    auto added = AddTable(database, spec, id);
    if (!added.ok()) {
      if (!IsOfIndexBudget(added.status())) *lacking = DefaultFrames(layout);
      return added.status();
    }
    *created = std::move(*added);
    reservation = scope.Reserve({.size = size});
  }
  database->Finish(reservation, {}, &change);
  // Ids may be handed out once the record that promises them is synced.
  return database->Acknowledge(reservation.end, Ack::kSync);
}

}  // namespace

Result<std::shared_ptr<TableCore>> CreateTable(DatabaseCore* database, const TableSpec& spec) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(ValidateTableSpec(spec));
  GEARDB_RETURN_IF_ERROR(CheckRemoverTable(spec));
  for (const PriorityTableSpec& priority : spec.priority_tables) {
    GEARDB_RETURN_IF_ERROR(CheckRequiredNames(spec, priority));
  }
  const TableSpec chosen = WithChosenSteps(*database, spec);
  GEARDB_RETURN_IF_ERROR(CheckTableFits(*database, TableLayout(chosen, 0)));
  GEARDB_RETURN_IF_ERROR(CheckCompanionsFit(*database, TableLayout(chosen, 0)));
  if (database->timekeeper != nullptr) {
    GEARDB_RETURN_IF_ERROR(database->timekeeper->Watch(chosen));
  }
  const Deadline deadline = Deadline::AfterMs(kAdmissionMs);
  std::shared_ptr<TableCore> created;
  const FrameAttempt attempt = [&](HeldFrames* held, std::vector<uint64_t>* lacking) {
    return TryCreate(database, chosen, deadline, held, lacking, &created);
  };
  const Status status = TryWhileTablesLeave(
      database, deadline, [&] { return TryWithFrames(database, deadline, attempt); });
  GEARDB_RETURN_IF_ERROR(NameIndexBudget(status, *database, chosen));
  return created;
}

}  // namespace geardb::engine
