// EngineOracle: what the operations of an actor write, and the model of one actor.
#include <algorithm>
#include <cstring>

#include "tests/testing/engine_oracle.h"

namespace geardb::testing {

TableSpec OracleSpec(uint32_t table) {
  static constexpr const char* kNames[kOracleTables] = {"kept", "ring", "few"};
  TableSpec spec;
  spec.name = kNames[table];
  spec.columns = {
      {.name = "key", .dtype = DType::kU64, .in_final_row = true},
      {.name = "obs", .dtype = DType::kF32, .shape = {4}, .in_final_row = true},
      {.name = "action", .dtype = DType::kI32},
      {.name = "opener", .dtype = DType::kU64, .kind = ColumnKind::kPerTrajectory},
      {.name = "extra", .dtype = DType::kU32, .shape = {2}, .group = "wide", .default_value = 9},
  };
  spec.groups = {{.name = "wide"}};
  if (table == 0) {
    spec.groups.push_back({.name = "later", .late = true});
    spec.groups.push_back({.name = "unlogged", .is_volatile = true});
    spec.columns.push_back(
        {.name = "target", .shape = {kTargetFloats}, .group = "later", .default_value = -1});
    spec.columns.push_back(
        {.name = "scratch", .dtype = DType::kI32, .group = "unlogged", .default_value = 3});
  }
  spec.steps_per_page = 4;
  spec.final_row = table != 2;
  for (Column& column : spec.columns) column.in_final_row = column.in_final_row && spec.final_row;
  spec.stream = table == 1;
  if (table == 1) spec.steps_max = 240;
  if (table == 2) spec.trajectories_max = 24;
  PriorityTableSpec per;
  per.name = "per";
  per.window.extent = {.before = 0, .length = 1, .after = 1};
  per.initial = InitialPriority::kConstant;
  per.seed = 5;
  PriorityTableSpec pairs;
  pairs.name = "pairs";
  pairs.selector = SelectorKind::kUniform;
  pairs.window.extent = {.before = 2, .length = 3, .after = 1};
  pairs.window.left = EdgeRule::kRequire;
  PriorityTableSpec whole;
  whole.name = "whole";
  whole.item = ItemKind::kTrajectory;
  spec.priority_tables = {per, pairs};
  if (!spec.stream) spec.priority_tables.push_back(whole);
  PriorityTableSpec ready;
  ready.name = "ready";
  ready.initial = InitialPriority::kConstant;
  ready.initial_priority_value = 2;
  ready.required = {"later"};
  if (table == 0) spec.priority_tables.push_back(ready);
  return spec;
}

// ---- What operations write.
uint64_t OracleRows::KeyOf(uint32_t actor, uint64_t op, uint32_t lane, int64_t row) {
  return (uint64_t{actor} << 56) | (op << 24) | (uint64_t{lane} << 16) | static_cast<uint64_t>(row);
}

void OracleRows::Fill(uint64_t key, float obs[4]) {
  uint64_t x = key * 0x9E3779B97F4A7C15ull;
  for (int i = 0; i < 4; ++i) {
    obs[i] = static_cast<float>(x >> 40);
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ull;
  }
}

std::array<uint32_t, 2> OracleRows::Extra(uint64_t key) {
  const uint64_t x = (key ^ (key >> 31)) * 0xD6E8FEB86659FD93ull;
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
}

OracleRows::OracleRows(uint32_t actor, uint64_t op, uint32_t lane, int64_t rows_in)
    : rows(rows_in) {
  for (int64_t row = 0; row <= rows; ++row) {
    keys.push_back(KeyOf(actor, op, lane, row));
    obs.resize(obs.size() + 4);
    Fill(keys.back(), obs.data() + obs.size() - 4);
    actions.push_back(static_cast<int32_t>(keys.back() & 0xFFFFFF));
    for (const uint32_t extra : Extra(keys.back())) extras.push_back(extra);
  }
}

OraclePatchRow::OraclePatchRow(uint64_t op, uint64_t opener, int64_t row) {
  uint64_t x =
      (op * 0x9E3779B97F4A7C15ull) ^ (opener * 0xD6E8FEB86659FD93ull) ^ static_cast<uint64_t>(row);
  const auto next = [&] {
    x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9ull + 1;
    return static_cast<uint32_t>(x >> 32);
  };
  action = static_cast<int32_t>(next() >> 1);
  for (uint32_t& value : extra) value = next();
  for (float& value : target) value = static_cast<float>(next() >> 8);
}

float OraclePriority(uint64_t op, uint64_t id, int64_t row, uint64_t at) {
  uint64_t x = (op * 0x9E3779B97F4A7C15ull) ^ (id << 40) ^ (static_cast<uint64_t>(row) << 20) ^ at;
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9ull;
  return static_cast<float>((x >> 33) % 1000) / 16.0f;
}

std::vector<std::byte> OracleBlob(uint32_t actor, uint64_t op, uint32_t bytes) {
  std::vector<std::byte> blob(bytes);
  uint64_t x = OracleRows::KeyOf(actor, op, 0, 0);
  for (std::byte& b : blob) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    b = static_cast<std::byte>(x >> 56);
  }
  return blob;
}

// ---- The model of one actor.

int64_t ActorModel::Trajectory::rows_end() const {
  if (segments.empty()) return 0;
  const Segment& last = segments.back();
  return last.first_row + last.rows + (last.has_final ? 1 : 0);
}
bool ActorModel::Trajectory::has_final() const {
  return cut_row_is_final || (!segments.empty() && segments.back().has_final);
}

ActorModel::Trajectory* ActorModel::OpenOn(uint32_t table, uint32_t lane) {
  const auto& key = lanes_[table][lane];
  return key ? &trajectories_.at(*key) : nullptr;
}

ActorModel::Trajectory* ActorModel::FindById(uint32_t table, uint64_t id) {
  for (auto& [key, trajectory] : trajectories_) {
    if (trajectory.table == table && trajectory.id == id && id != 0) return &trajectory;
  }
  return nullptr;
}

std::vector<ActorModel::Item> ActorModel::Items() {
  std::vector<Item> items;
  for (auto& [key, trajectory] : trajectories_) {
    if (trajectory.table != 0 || trajectory.removed || trajectory.absent) continue;
    // The last row of an open one, and a final row, are none.
    const bool last_is_none = trajectory.open || trajectory.has_final();
    const int64_t end = trajectory.rows_end() - (last_is_none ? 1 : 0);
    for (int64_t row = trajectory.first_row; row < end; ++row) items.push_back({&trajectory, row});
  }
  return items;
}

std::vector<ActorModel::Item> ActorModel::ItemsOf(const Op& op) {
  const std::vector<Item> all = Items();
  std::vector<Item> items;
  for (uint64_t i = 0; i < op.rows; ++i) {
    items.push_back(all[(static_cast<uint64_t>(op.row) + i) % all.size()]);
  }
  return items;
}

std::vector<ActorModel::Span> ActorModel::SpansOf(const Op& op) {
  if (op.kind == OpKind::kPatch) {
    return {{FindById(op.table, op.target), op.row, int64_t{op.rows}}};
  }
  std::vector<Trajectory*> kept;
  for (auto& [key, trajectory] : trajectories_) {
    if (trajectory.table == 0 && !trajectory.removed && !trajectory.absent) {
      kept.push_back(&trajectory);
    }
  }
  const int64_t page_rows = OracleSpec(0).steps_per_page;
  int64_t pages = op.rows;
  std::vector<Span> spans;
  for (uint64_t i = 0; i < kept.size() && pages > 0; ++i) {
    Trajectory* trajectory = kept[(static_cast<uint64_t>(op.row) + i) % kept.size()];
    const int64_t first_page = trajectory->first_row / page_rows;
    const int64_t end = std::min(trajectory->rows_end(), (first_page + pages) * page_rows);
    if (end <= trajectory->first_row) continue;
    pages -= (end - 1) / page_rows - first_page + 1;
    spans.push_back({trajectory, trajectory->first_row, end - trajectory->first_row});
  }
  return spans;
}

void ActorModel::PatchRows(uint64_t number, const Op& op) {
  for (const Span& span : SpansOf(op)) {
    for (const uint32_t column : {kPatchAction, kPatchExtra, kPatchTarget}) {
      if ((op.columns & column) == 0) continue;
      for (int64_t i = 0; i < span.rows; ++i) {
        span.trajectory->patched[{column, span.first_row + i}] = number;
      }
    }
    if ((op.columns & kPatchTarget) == 0 || span.rows == 0) continue;
    span.trajectory->filled = std::max(span.trajectory->filled, span.first_row + span.rows);
  }
}

void ActorModel::AppendTo(uint64_t number, const Op& op, uint32_t lane, uint32_t rows, End end) {
  const TableSpec spec = OracleSpec(op.table);
  auto& key = lanes_[op.table][lane];
  if (!key) {
    key = Key{number, lane};
    trajectories_[*key].table = op.table;
  }
  Trajectory& trajectory = trajectories_.at(*key);
  if (op.ids[lane] != 0) trajectory.id = op.ids[lane];
  const bool has_final = spec.final_row && (end == End::kTerminated || end == End::kTruncated);
  trajectory.segments.push_back(
      {number, lane, trajectory.rows_end(), rows, has_final, end, op.end_lsn});
  if (end == End::kGo || spec.stream) return;
  trajectory.open = false;
  trajectory.end = end;
  trajectory.cut_row_is_final = spec.final_row && end == End::kCut;
  trajectory.closed_lsn = op.end_lsn;
  key.reset();
}

void ActorModel::SetItems(uint64_t number, const Op& op) {
  const bool many = op.kind == OpKind::kSetMany;
  uint64_t at = 0;
  for (const Item& item : many ? ItemsOf(op) : Items()) {
    const float own = OraclePriority(number, item.trajectory->id, item.row, at);
    item.trajectory->priorities[item.row] = op.kind == OpKind::kSetAllSame ? op.priority : own;
    at += many ? 1 : 0;
  }
}

void ActorModel::Apply(uint64_t number, const Op& op) {
  if (op.state == OpState::kRefused) {
    // A refused append says that a lane's trajectory is gone.
    if (op.code != StatusCode::kNotFound) return;
    if (op.kind == OpKind::kResume) {
      if (Trajectory* lost = OpenOn(op.table, op.lane)) lost->absent = true;
      ForgetLane(op.table, op.lane);
    } else if (op.kind <= OpKind::kCut) {
      for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
        if (op.ids[lane] != 0 || (op.kind != OpKind::kAppendLanes && lane != op.lane)) continue;
        ForgetLane(op.table, lane);
      }
    }
    return;
  }
  switch (op.kind) {
    case OpKind::kAppend:
    case OpKind::kAppendTrajectory:
      return AppendTo(number, op, op.lane, op.rows, op.ends[0]);
    case OpKind::kAppendLanes:
      for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
        if (op.ends[lane] != End::kSkip) AppendTo(number, op, lane, 1, op.ends[lane]);
      }
      return;
    case OpKind::kCut: {
      Trajectory& trajectory = *OpenOn(op.table, op.lane);
      ForgetLane(op.table, op.lane);
      trajectory.open = false;
      trajectory.end = End::kCut;
      trajectory.closed_lsn = op.end_lsn;
      // The last row becomes the final row; where it was the only one, nothing is left.
      const TableSpec spec = OracleSpec(op.table);
      const bool between = spec.stream && trajectory.segments.back().end != End::kGo;
      if (!spec.final_row || between) return;
      const bool one_row = trajectory.rows_end() - trajectory.first_row == 1;
      // Once it is done, the call has said so: a capacity may have trimmed it.
      trajectory.removed = op.state == OpState::kDone ? op.ids[op.lane] == 0 : one_row;
      trajectory.cut_row_is_final = true;
      return;
    }
    case OpKind::kRemove:
      FindById(op.table, op.target)->removed = true;
      return;
    case OpKind::kTruncate:
      FindById(op.table, op.target)->first_row =
          std::max(FindById(op.table, op.target)->first_row, op.row);
      return;
    case OpKind::kSet:
      FindById(op.table, op.target)->priorities[op.row] = op.priority;
      return;
    case OpKind::kSetMany:
    case OpKind::kSetAll:
    case OpKind::kSetAllSame:
      return SetItems(number, op);
    case OpKind::kPatch:
    case OpKind::kPatchMany:
      return PatchRows(number, op);
    case OpKind::kResume:
      return;
    case OpKind::kNext:
      ++next_draw_;
      return;
    case OpKind::kTag:
      tags_[op.lane] = {number, op.tag_bytes};
      return;
  }
}

}  // namespace geardb::testing
