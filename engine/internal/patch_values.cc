#include "engine/internal/patch_values.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>

#include "base/crash_point.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/value_read.h"
#include "engine/internal/write_call.h"

namespace geardb::engine {
namespace {

constexpr int64_t kForeverMs = int64_t{1} << 40;

int64_t LeftMs(Deadline deadline) {
  if (deadline.infinite()) return kForeverMs;
  const auto left = deadline.at() - std::chrono::steady_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  return std::clamp<int64_t>(ms, 0, kForeverMs);
}

}  // namespace

Status BindRaggedPatch(const TableLayout& layout, const ColumnValue& given, size_t column,
                       PatchValues* bound) {
  const size_t companion = *layout.step_columns()[column].companion;
  const ValueCount any{.values = std::nullopt, .alone = true};
  PatchValues::Ragged& ragged = bound->ragged.emplace_back();
  ragged.column = column;
  ragged.companion = companion;
  GEARDB_ASSIGN_OR_RETURN(
      ragged.values, BindValues(layout.spec().name, layout.companions()[companion], given, any));
  const uint64_t entries = ragged.values.size();
  if (!bound->columns.empty() && (entries != bound->entries || bound->padded != 0)) {
    return Status::InvalidArgument(
        "table '", layout.spec().name, "': column '", given.column, "' is given with ", entries,
        " values, the one before it with ", bound->entries,
        bound->padded == 0 ? " rows" : " entries of several rows, which ragged ones cannot have");
  }
  bound->entries = entries;
  ragged.ranges = std::make_shared<std::vector<RaggedRange>>(entries);
  bound->columns.push_back({column, reinterpret_cast<const std::byte*>(ragged.ranges->data())});
  return Status::Ok();
}

// ---- Which rows go where.

bool PatchedValues::IsWhole(const PatchValues::Ragged& ragged, const OfTrajectory& of) const {
  const TableState& state = *table_->state;
  const index::TrajectoryRecord& record = state.trajectories().record(of.slot);
  const uint32_t group = state.layout().step_columns()[ragged.column].group;
  std::vector<PatchTarget> in_order = of.targets;
  std::sort(in_order.begin(), in_order.end(),
            [](const auto& a, const auto& b) { return a.first_row < b.first_row; });
  auto covered = static_cast<int64_t>(record.first_row);
  for (const PatchTarget& target : in_order) {
    if (target.first_row <= covered) covered = std::max(covered, target.first_row + target.rows);
  }
  const uint64_t end =
      state.layout().group(group).late ? state.Filled(group, of.slot) : record.rows_end;
  return covered >= static_cast<int64_t>(end) && covered >= in_order.back().first_row;
}

Status PatchedValues::AddColumn(const PatchValues::Ragged& ragged,
                                std::span<const PatchTarget> targets) {
  const TableState& state = *table_->state;
  const TableLayout& layout = state.layout();
  const StepColumn& column = layout.step_columns()[ragged.column];
  const uint64_t row_bytes = layout.companions()[ragged.companion].row_bytes;
  std::map<Slot, OfTrajectory> by_slot;
  for (const PatchTarget& target : targets) by_slot[target.slot].targets.push_back(target);
  for (auto& [slot, of] : by_slot) {
    const index::TrajectoryRecord& record = state.trajectories().record(slot);
    if (!layout.group(column.group).late && record.state != index::TrajectoryState::kClosed) {
      return Status::FailedPrecondition("table '", layout.spec().name, "': column '", column.name,
                                        "' is ragged, and trajectory ", record.id,
                                        " is not closed: its values can be patched once it is");
    }
    of.companion = ragged.companion;
    of.slot = slot;
    of.generation = record.generation;
    of.whole = IsWhole(ragged, of);
    of.column = ragged.column;
    const RaggedRange before = RangeOfBlob(state, ragged.companion, slot);
    of.begin = before.end;
    if (const Earlier* const earlier = FindEarlier(of)) {
      of.there = true;
      of.begin = earlier->begin;
    }
    of.kept = of.begin - before.begin;
    const auto& offsets = ragged.values.offsets;
    for (const PatchTarget& target : of.targets) {
      const uint64_t first = target.value_row;
      const uint64_t end = first + static_cast<uint64_t>(target.rows);
      for (uint64_t i = first; i < end; ++i) {
        const uint64_t begin = of.begin + of.count + offsets[i] - offsets[first];
        (*ragged.ranges)[i] = {begin, begin + offsets[i + 1] - offsets[i]};
      }
      const std::byte* rows = ragged.values.rows + offsets[first] * row_bytes;
      const uint64_t count = offsets[end] - offsets[first];
      of.count += count;
      if (of.targets.size() == 1) {
        of.rows = rows;
      } else if (count > 0) {
        of.joined.insert(of.joined.end(), rows, rows + count * row_bytes);
      }
    }
    if (of.targets.size() > 1) of.rows = of.joined.data();
    written_.push_back(std::move(of));
  }
  return Status::Ok();
}

const PatchedValues::Earlier* PatchedValues::FindEarlier(const OfTrajectory& of) const {
  const RaggedRange now = RangeOfBlob(*table_->state, of.companion, of.slot);
  const auto found = std::ranges::find_if(earlier_, [&](const Earlier& earlier) {
    return earlier.companion == of.companion && earlier.slot == of.slot &&
           earlier.generation == of.generation && earlier.targets == of.targets &&
           now.begin <= earlier.begin && now.end == earlier.begin + earlier.count;
  });
  return found == earlier_.end() ? nullptr : &*found;
}

Status PatchedValues::Find(const PatchValues& values, std::span<const PatchTarget> targets) {
  written_.clear();
  for (const PatchValues::Ragged& ragged : values.ragged) {
    GEARDB_RETURN_IF_ERROR(AddColumn(ragged, targets));
  }
  return Status::Ok();
}

Status PatchedValues::Write() {
  std::vector<OwnedRows> rows;
  for (const OfTrajectory& of : written_) {
    if (of.count == 0 || of.there) continue;
    rows.push_back({of.companion, of.slot, of.generation, of.rows, of.count});
  }
  if (rows.empty()) return Status::Ok();
  const WriteBatch::Impl none;
  const WriteOptions options{.ack = Ack::kLog, .admission_timeout_ms = LeftMs(deadline_)};
  GEARDB_RETURN_IF_ERROR(WriteCall(database_, none, options).AppendOwned(table_, rows));
  for (const OfTrajectory& of : written_) {
    if (of.count == 0 || of.there) continue;
    earlier_.push_back({of.companion, of.slot, of.generation, of.begin, of.count, of.targets});
  }
  CrashPoint("patch_values");
  return Status::Ok();
}

// ---- What nobody shows any more.

void PatchedValues::GiveBack() {
  for (const OfTrajectory& of : written_) {
    if (of.whole && of.begin > 0 && !Trim(of).ok()) return;
  }
}

std::vector<PatchedValues::Grown> PatchedValues::grown() const {
  std::vector<Grown> grown;
  for (const OfTrajectory& of : written_) {
    const auto companion = table_->CompanionsNow()[of.companion];
    const uint64_t after = of.kept + of.count;
    if (of.whole || companion == nullptr || after < 2 * companion->layout().steps_per_page() ||
        std::bit_width(after) == std::bit_width(of.kept)) {
      continue;
    }
    grown.push_back({of.column, of.companion, of.slot, of.generation});
  }
  return grown;
}

Status PatchedValues::Trim(const OfTrajectory& of) {
  const auto companion = table_->CompanionsNow()[of.companion];
  if (companion == nullptr) return Status::Ok();
  const CommitOptions how{.urgency = wal::Urgency::kReserve, .deadline = Deadline::Now()};
  const wal::RecordSize size = DatabaseCore::RemovalSize(1);
  ChangeScope scope(database_, companion.get(), how);
  bool waited = false;
  GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, how, &waited));
  GEARDB_RETURN_IF_ERROR(database_->CatchUp());
  uint64_t first_row = 0;
  {
    MutexLock lock(&table_->state->mutex);
    const index::TrajectoryRecord& owner = table_->state->trajectories().record(of.slot);
    const RaggedRange range = RangeOfBlob(*table_->state, of.companion, of.slot);
    if (owner.generation != of.generation || range.end == 0) return Status::Ok();
    const uint64_t begin = std::min(of.begin, range.end - 1);
    first_row = begin - begin % companion->layout().steps_per_page();
    if (first_row <= range.begin) return Status::Ok();
  }
  Eviction eviction;
  eviction.trimmed.push_back(companion->plan->Trim(of.slot, first_row));
  const Lsn end = database_->LogRemoval(&scope, companion, eviction, {});
  return database_->log->WaitPublished(end, Deadline::Infinite());
}

}  // namespace geardb::engine
