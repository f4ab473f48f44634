// EngineActor: patches.
#include <algorithm>
#include <utility>

#include "engine/patch.h"
#include "tests/testing/engine_actor.h"

namespace geardb::testing {
namespace {

// Pages of all groups that a PatchMany may take: a record must have room to name them.
constexpr uint64_t kPatchPagesMax = 80;

}  // namespace

// Some rows of one trajectory: of "kept", whose late group they may fill, or of one that is open in
// another table, whose writer goes on behind them.
bool EngineActor::Patch() {
  const auto table = static_cast<uint32_t>(random_.OneIn(2) ? 0 : random_.Below(kOracleTables));
  std::vector<ActorModel::Trajectory*> there;
  for (auto& [key, trajectory] : model_.trajectories()) {
    if (trajectory.table != table || trajectory.removed || trajectory.absent) continue;
    if (table == 0 || trajectory.open) there.push_back(&trajectory);
  }
  if (there.empty()) return AppendRows(OpKind::kAppend);
  const ActorModel::Trajectory& chosen =
      random_.OneIn(3) ? *there.back() : *there[random_.Below(there.size())];
  Op* op = NewOp(OpKind::kPatch, table);
  op->target = chosen.id;
  op->ack = random_.OneIn(4) ? Ack::kSync : Ack::kLog;
  op->columns = 1 + static_cast<uint32_t>(random_.Below(table == 0 ? 15 : 3));
  const int64_t end = chosen.rows_end();
  // Half of them reach the last page; a late group has no gaps.
  int64_t first_max = end;
  if ((op->columns & kPatchTarget) != 0) {
    first_max = std::min(end, std::max(chosen.filled, chosen.first_row));
  }
  int64_t first_min = random_.OneIn(2) ? first_max - 6 : first_max - 40;
  first_min = std::max(first_min, chosen.first_row);
  op->row = first_min +
            static_cast<int64_t>(random_.Below(static_cast<uint64_t>(first_max - first_min) + 1));
  const auto rows_max = static_cast<uint64_t>(std::min<int64_t>(end - op->row, 48));
  op->rows = static_cast<uint32_t>(random_.OneIn(3) ? rows_max : random_.Below(rows_max + 1));
  return CallPatch(op);
}

// Rows of several trajectories in one call, from the first to the last; most calls are too large
// for one record once there are enough rows.
bool EngineActor::PatchMany() {
  Op* op = NewOp(OpKind::kPatchMany, 0);
  op->row = static_cast<int64_t>(random_.Below(1000));
  op->columns = 1 + static_cast<uint32_t>(random_.Below(15));
  if (random_.OneIn(2)) op->columns = kPatchTarget;
  uint64_t groups = 0;
  for (uint32_t bit = 1; bit <= kPatchScratch; bit *= 2) groups += (op->columns & bit) != 0 ? 1 : 0;
  op->rows = static_cast<uint32_t>(kPatchPagesMax / groups);
  if (model_.SpansOf(*op).empty()) return AppendRows(OpKind::kAppend);
  return CallPatch(op);
}

bool EngineActor::CallPatch(Op* op) {
  const uint64_t number = place_.first_op + place_.log->started.load();
  std::vector<RowSpan> spans;
  std::vector<int32_t> actions;
  std::vector<uint32_t> extras;
  std::vector<float> targets;
  for (const ActorModel::Span& span : model_.SpansOf(*op)) {
    spans.push_back({span.trajectory->id, span.first_row, span.rows});
    const ActorModel::Segment& first = span.trajectory->segments[0];
    const uint64_t opener = OracleRows::KeyOf(model_.actor(), first.op, first.lane, 0);
    for (int64_t i = 0; i < span.rows; ++i) {
      const OraclePatchRow values(number, opener, span.first_row + i);
      actions.push_back(values.action);
      extras.insert(extras.end(), values.extra.begin(), values.extra.end());
      targets.insert(targets.end(), values.target.begin(), values.target.end());
    }
  }
  const auto rows = static_cast<int64_t>(actions.size());
  std::vector<ColumnValue> values;
  if ((op->columns & kPatchTarget) != 0) {
    values.push_back({"target", TensorView::Of<float>(targets, {rows, kTargetFloats})});
  }
  if ((op->columns & kPatchAction) != 0) {
    values.push_back({"action", TensorView::Of<int32_t>(actions, {rows})});
  }
  if ((op->columns & kPatchExtra) != 0) {
    values.push_back({"extra", TensorView::Of<uint32_t>(extras, {rows, 2})});
  }
  if ((op->columns & kPatchScratch) != 0) {
    values.push_back({"scratch", TensorView::Of<int32_t>(actions, {rows})});
  }
  Started();
  auto patched = tables_[op->table]->Patch(spans, values, {.ack = op->ack});
  if (patched.ok()) {
    const uint64_t all = patched->applied + patched->stale;
    // What a capacity removes may be gone.
    if (all != static_cast<uint64_t>(rows) || (op->table == 0 && patched->stale != 0)) {
      return Finish(Status::Internal("a Patch of ", rows, " rows has reached ", patched->applied,
                                     ", and not ", patched->stale),
                    op);
    }
    op->end_lsn = patched->end_lsn;
    if (op->end_lsn == 0) op->ack = Ack::kMemory;  // Nothing was logged, or awaited.
    const bool late = (op->columns & kPatchTarget) != 0;
    if (late && targets.size() * sizeof(float) > kLargePatchBytes) ++large_patches_;
  }
  return Finish(patched.status(), op);
}

}  // namespace geardb::testing
