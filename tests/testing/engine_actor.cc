#include "tests/testing/engine_actor.h"

#include <utility>

namespace geardb::testing {
namespace {

// The arrays of a call, as the writer takes them.
struct CallColumns {
  CallColumns(const OracleRows& rows, uint32_t table, bool many) {
    const auto n = static_cast<size_t>(rows.rows);
    const Shape outer = many ? Shape({rows.rows}) : Shape();
    Shape obs = outer;
    obs.Append(4);
    Shape extra = outer;
    extra.Append(2);
    steps = {{"key", TensorView::Of(std::span(rows.keys).first(n), outer)},
             {"obs", TensorView::Of(std::span(rows.obs).first(n * 4), obs)},
             {"action", TensorView::Of(std::span(rows.actions).first(n), outer)},
             {"extra", TensorView::Of(std::span(rows.extras).first(n * 2), extra)}};
    if (table == 0)
      steps.push_back({"scratch", TensorView::Of(std::span(rows.actions).first(n), outer)});
    final = {{{"key", TensorView::Scalar(rows.keys[n])},
              {"obs", TensorView::Of(std::span(rows.obs).subspan(n * 4, 4), Shape({4}))}}};
  }
  std::vector<ColumnValue> steps;
  std::array<ColumnValue, 2> final;
};

bool HasFinal(End end) { return end == End::kTerminated || end == End::kTruncated; }

}  // namespace

Status MakeOracleTables(Database* database) {
  for (uint32_t table = 0; table < kOracleTables; ++table) {
    const TableSpec spec = OracleSpec(table);
    // A crash may have come between a table and its priority tables.
    TableSpec bare = spec;
    bare.priority_tables.clear();
    auto opened = database->OpenTable(spec.name);
    if (!opened.ok()) opened = database->CreateTable(bare);
    GEARDB_RETURN_IF_ERROR(opened.status());
    for (const PriorityTableSpec& priority : spec.priority_tables) {
      if ((*opened)->priority_table(priority.name) != nullptr) continue;
      GEARDB_RETURN_IF_ERROR((*opened)->CreatePriorityTable(priority).status());
    }
  }
  return Status::Ok();
}

Op* EngineActor::NewOp(OpKind kind, uint32_t table) {
  Op* op = &place_.log->ops[place_.log->started.load()];
  op->kind = kind;
  op->table = table;
  op->ack = kind == OpKind::kTag ? Ack::kSync : Ack::kLog;
  return op;
}

void EngineActor::Started() {
  const uint32_t at = place_.log->started.load();
  place_.log->ops[at].state.store(OpState::kPending, std::memory_order_release);
  place_.log->started.store(at + 1, std::memory_order_release);
}

void EngineActor::NoteLanes(Op* op) {
  for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
    op->ids[lane] = writers_[op->table]->open_trajectory(lane);
  }
}

// Completes the entry of a call.
bool EngineActor::Finish(const Status& status, Op* op) {
  op->code = status.code();
  if (!status.ok()) {
    const bool nothing_yet =
        status.code() == StatusCode::kDeadlineExceeded && op->kind == OpKind::kNext;
    const bool full = status.code() == StatusCode::kResourceExhausted ||
                      (status.code() == StatusCode::kDeadlineExceeded && !nothing_yet);
    const bool gone = status.code() == StatusCode::kNotFound &&
                      (op->kind <= OpKind::kCut || op->kind == OpKind::kResume);
    const bool refused = gone || nothing_yet || (full && may_be_full_);
    if (!refused) {
      failure_ = status;
      return false;
    }
    if (op->kind <= OpKind::kCut) NoteLanes(op);
    refused_ += full ? 1u : 0u;
  }
  op->state.store(status.ok() ? OpState::kDone : OpState::kRefused, std::memory_order_release);
  model_.Apply(place_.first_op + static_cast<uint64_t>(op - place_.log->ops.data()), *op);
  return true;
}

Status EngineActor::Begin() {
  for (uint32_t table = 0; table < kOracleTables; ++table) {
    GEARDB_ASSIGN_OR_RETURN(tables_[table], place_.database->OpenTable(OracleSpec(table).name));
    GEARDB_ASSIGN_OR_RETURN(writers_[table], tables_[table]->NewWriter({.lanes = kOracleLanes}));
    for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
      const ActorModel::Trajectory* open = model_.OpenOn(table, lane);
      if (open == nullptr) continue;
      Op* op = NewOp(OpKind::kResume, table);
      op->lane = lane;
      op->target = open->id;
      Started();
      if (!Finish(writers_[table]->Resume(open->id, lane), op)) return failure_;
    }
  }
  if (model_.actor() != 0) return Status::Ok();
  GEARDB_ASSIGN_OR_RETURN(sampler_, tables_[0]->priority_table("per")->NewSampler(
                                        {.batch = 4, .views = {{"obs"}}, .timeout_ms = 0}));
  return Status::Ok();
}

bool EngineActor::Step() {
  if (place_.log->started.load() >= OpLog::kCapacity) return false;
  const uint64_t choice = random_.Below(112);
  if (choice >= 100) return choice < 107 ? Patch() : PatchMany();
  if (choice < 40) return AppendRows(OpKind::kAppend);
  if (choice < 60) return AppendLanes();
  if (choice < 70) return AppendRows(OpKind::kAppendTrajectory);
  if (choice < 74) return Cut();
  if (choice < 80) return OnKept(OpKind::kRemove);
  if (choice < 82) return OnKept(OpKind::kTruncate);
  if (choice < 84) return SetMany();
  if (choice < 85 && alone_) return SetAll();
  if (choice < 92 || model_.actor() != 0) return OnKept(OpKind::kSet);
  return choice < 97 ? Next() : WriteTag();
}

bool EngineActor::AppendRows(OpKind kind) {
  const auto table = static_cast<uint32_t>(random_.Below(kOracleTables));
  Op* op = NewOp(kind, table);
  op->lane = static_cast<uint32_t>(random_.Below(kOracleLanes));
  op->ack = acks_[random_.Below(acks_.size())];
  op->rows = random_.OneIn(2) ? 1 : static_cast<uint32_t>(1 + random_.Below(9));
  if (large_rows_ > 0 && OracleSpec(table).steps_max == 0 && random_.OneIn(3)) {
    op->rows = large_rows_ / 2 + static_cast<uint32_t>(random_.Below(large_rows_ / 2));
  }
  const bool whole = kind == OpKind::kAppendTrajectory;
  const ActorModel::Trajectory* open = model_.OpenOn(table, op->lane);
  if (whole && open != nullptr && (table != 1 || open->segments.back().end == End::kGo)) {
    op->kind = kind = OpKind::kAppend;  // Its lane must be free, or between two episodes.
  }
  End end = End::kGo;
  if (kind == OpKind::kAppendTrajectory || random_.OneIn(6)) {
    end = random_.OneIn(2) ? End::kTerminated : End::kTruncated;
    // A cut must leave a row.
    if (table != 1 && op->rows > 1 && random_.OneIn(4)) end = End::kCut;
  }
  op->ends[0] = end;
  const uint64_t number = place_.first_op + place_.log->started.load();
  const OracleRows rows(model_.actor(), number, op->lane, op->rows);
  const bool single = op->rows == 1 && kind == OpKind::kAppend && random_.OneIn(2);
  const CallColumns columns(rows, table, !single);
  const ColumnValue opener[] = {{"opener", TensorView::Scalar(rows.keys[0])}};
  AppendOptions options{.lane = op->lane, .end = end, .ack = op->ack};
  if (OracleSpec(table).final_row && HasFinal(end)) options.final = columns.final;
  if (open == nullptr) options.trajectory = opener;
  Started();
  Writer* writer = writers_[table].get();
  auto appended = single ? writer->Append(columns.steps, options)
                  : kind == OpKind::kAppendTrajectory
                      ? writer->AppendTrajectory(columns.steps, options)
                      : writer->AppendSteps(columns.steps, options);
  if (appended.ok()) {
    op->ids[op->lane] = appended->id;
    op->end_lsn = appended->end_lsn;
  }
  return Finish(appended.status(), op);
}

bool EngineActor::AppendLanes() {
  const auto table = static_cast<uint32_t>(random_.Below(kOracleTables));
  Op* op = NewOp(OpKind::kAppendLanes, table);
  op->ack = acks_[random_.Below(acks_.size())];
  const uint64_t number = place_.first_op + place_.log->started.load();
  std::vector<uint64_t> keys, final_keys, openers;
  std::vector<float> obs, final_obs;
  std::vector<int32_t> actions;
  std::vector<uint32_t> extras;
  bool all_open = true;
  bool all_skip = true;
  for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
    const ActorModel::Trajectory* open = model_.OpenOn(table, lane);
    const End ends[] = {End::kGo,        End::kGo,  End::kGo,  End::kTerminated,
                        End::kTruncated, End::kCut, End::kSkip};
    End end = ends[random_.Below(7)];
    if (end == End::kCut && (open == nullptr || table == 1)) end = End::kGo;
    op->ends[lane] = end;
    all_skip = all_skip && end == End::kSkip;
    all_open = all_open && open != nullptr;
    const OracleRows rows(model_.actor(), number, lane, 1);
    keys.push_back(rows.keys[0]);
    final_keys.push_back(rows.keys[1]);
    obs.insert(obs.end(), rows.obs.begin(), rows.obs.begin() + 4);
    final_obs.insert(final_obs.end(), rows.obs.begin() + 4, rows.obs.end());
    actions.push_back(rows.actions[0]);
    extras.insert(extras.end(), rows.extras.begin(), rows.extras.begin() + 2);
    // The column is set for every lane: those that go on keep theirs.
    openers.push_back(open == nullptr ? rows.keys[0]
                                      : OracleRows::KeyOf(model_.actor(), open->segments[0].op,
                                                          open->segments[0].lane, 0));
  }
  if (all_skip) op->ends[0] = End::kGo;
  const Shape outer({kOracleLanes});
  const Shape wide({kOracleLanes, 4});
  const ColumnValue final[] = {
      {"key", TensorView::Of(std::span<const uint64_t>(final_keys), outer)},
      {"obs", TensorView::Of(std::span<const float>(final_obs), wide)}};
  const ColumnValue opener[] = {
      {"opener", TensorView::Of(std::span<const uint64_t>(openers), outer)}};
  AppendLanesOptions options{.ends = op->ends, .ack = op->ack};
  bool final_needed = false;
  for (const End end : op->ends) final_needed = final_needed || HasFinal(end);
  if (OracleSpec(table).final_row && final_needed) options.final = final;
  if (!all_open) options.trajectory = opener;
  std::vector<ColumnValue> steps = {
      {"key", TensorView::Of(std::span<const uint64_t>(keys), outer)},
      {"obs", TensorView::Of(std::span<const float>(obs), wide)},
      {"action", TensorView::Of(std::span<const int32_t>(actions), outer)},
      {"extra", TensorView::Of(std::span<const uint32_t>(extras), Shape({kOracleLanes, 2}))}};
  if (table == 0) {
    steps.push_back({"scratch", TensorView::Of(std::span<const int32_t>(actions), outer)});
  }
  Started();
  auto appended = writers_[table]->AppendLanes(steps, options);
  if (appended.ok()) {
    for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
      op->ids[lane] = (*appended)[lane].id;
      op->end_lsn = std::max(op->end_lsn, (*appended)[lane].end_lsn);
    }
  }
  return Finish(appended.status(), op);
}

bool EngineActor::Cut() {
  const auto table = static_cast<uint32_t>(random_.Below(kOracleTables));
  const auto lane = static_cast<uint32_t>(random_.Below(kOracleLanes));
  if (model_.OpenOn(table, lane) == nullptr) return AppendRows(OpKind::kAppend);
  Op* op = NewOp(OpKind::kCut, table);
  op->lane = lane;
  Started();
  auto cut = writers_[table]->Cut(lane);
  if (cut.ok()) {
    op->ids[lane] = cut->id;
    op->end_lsn = cut->end_lsn;
  }
  return Finish(cut.status(), op);
}

// Remove, Truncate, Set: on a trajectory of this actor in table "kept".
bool EngineActor::OnKept(OpKind kind) {
  std::vector<ActorModel::Trajectory*> there;
  for (auto& [key, trajectory] : model_.trajectories()) {
    if (trajectory.table == 0 && !trajectory.removed && !trajectory.absent) {
      there.push_back(&trajectory);
    }
  }
  if (there.empty()) return AppendRows(OpKind::kAppend);
  ActorModel::Trajectory& chosen = *there[random_.Below(there.size())];
  const int64_t steps_end = chosen.rows_end() - (chosen.has_final() ? 1 : 0);
  const int64_t anchors_end = chosen.open ? chosen.rows_end() - 1 : steps_end;
  const int64_t end = kind == OpKind::kSet ? anchors_end : steps_end;
  if (end <= chosen.first_row) return AppendRows(OpKind::kAppend);
  Op* op = NewOp(kind, 0);
  op->target = chosen.id;
  op->row = chosen.first_row +
            static_cast<int64_t>(random_.Below(static_cast<uint64_t>(end - chosen.first_row)));
  op->priority = static_cast<float>(random_.Below(1000)) / 16.0f;
  Started();
  if (kind == OpKind::kRemove) return Finish(tables_[0]->Remove({&op->target, 1}), op);
  if (kind == OpKind::kTruncate) return Finish(tables_[0]->Truncate(op->target, op->row), op);
  // A row whose append was acknowledged at `memory` may not be visible yet.
  const Lsn visible = place_.database->Stats().log_end;
  if (Status status = place_.database->Wait({visible}, Ack::kLog); !status.ok()) {
    return Finish(status, op);
  }
  const RowId row{op->target, op->row};
  return FinishSet(tables_[0]->priority_table("per")->Set({&row, 1}, {&op->priority, 1}), 1, op);
}

bool EngineActor::FinishSet(const Result<SetOutcome>& set, uint64_t items, Op* op) {
  if (set.ok() && (set->applied != items || set->stale != 0)) {
    return Finish(Status::Internal("a Set of ", items, " items has reached ", set->applied), op);
  }
  if (set.ok()) op->end_lsn = set->end_lsn;
  if (set.ok() && op->kind == OpKind::kSetMany && items >= kManyItems) ++large_sets_;
  return Finish(set.status(), op);
}

// Items of several trajectories in one call; half of the calls are too large for one record.
bool EngineActor::SetMany() {
  const uint64_t there = model_.Items().size();
  if (there == 0) return AppendRows(OpKind::kAppend);
  const uint64_t number = place_.first_op + place_.log->started.load();
  Op* op = NewOp(OpKind::kSetMany, 0);
  op->row = static_cast<int64_t>(random_.Below(there));
  op->rows = static_cast<uint32_t>(sets_large_ && random_.OneIn(2)
                                       ? kManyItems + random_.Below(4 * kManyItems)
                                       : 1 + random_.Below(40));
  std::vector<RowId> rows;
  std::vector<float> priorities;
  for (const ActorModel::Item& item : model_.ItemsOf(*op)) {
    const uint64_t id = item.trajectory->id;
    priorities.push_back(OraclePriority(number, id, item.row, rows.size()));
    rows.push_back({id, item.row});
  }
  Started();
  return FinishSet(tables_[0]->priority_table("per")->Set(rows, priorities), rows.size(), op);
}

bool EngineActor::SetAll() {
  const uint64_t there = model_.Items().size();
  if (there == 0) return AppendRows(OpKind::kAppend);
  const uint64_t number = place_.first_op + place_.log->started.load();
  const bool same = random_.OneIn(2);
  Op* op = NewOp(same ? OpKind::kSetAllSame : OpKind::kSetAll, 0);
  op->priority = static_cast<float>(random_.Below(1000)) / 16.0f;
  Started();
  // Rows whose append was acknowledged at `memory` are items by then.
  const Lsn visible = place_.database->Stats().log_end;
  if (Status status = place_.database->Wait({visible}, Ack::kLog); !status.ok()) {
    return Finish(status, op);
  }
  const auto per = tables_[0]->priority_table("per");
  std::vector<float> priorities;
  for (const RowId& item : per->Items()) {
    priorities.push_back(OraclePriority(number, item.id, item.row, 0));
  }
  if (same) priorities.assign(1, op->priority);
  return FinishSet(per->SetAll(priorities), there, op);
}

bool EngineActor::Next() {
  Op* op = NewOp(OpKind::kNext, 0);
  Started();
  auto batch = sampler_->Next();
  if (batch.ok() && batch->draw_number() != model_.next_draw()) {
    return Finish(
        Status::Internal("draw ", batch->draw_number(), " instead of ", model_.next_draw()), op);
  }
  return Finish(batch.status(), op);
}

bool EngineActor::WriteTag() {
  Op* op = NewOp(OpKind::kTag, 0);
  op->lane = static_cast<uint32_t>(random_.Below(kOracleTags));
  op->tag_bytes = static_cast<uint32_t>(random_.Below(random_.OneIn(4) ? 20'000 : 200));
  const uint64_t number = place_.first_op + place_.log->started.load();
  const auto blob = OracleBlob(model_.actor(), number, op->tag_bytes);
  Started();
  auto tag = place_.database->WriteTag("tag" + std::to_string(op->lane), blob);
  return Finish(tag.status(), op);
}

}  // namespace geardb::testing
