// What has left the tables leaves the cold store: what of it there is, when it is due, and the
// deletions.
#include <algorithm>
#include <bit>
#include <span>

#include "base/break.h"
#include "engine/internal/cleaner.h"
#include "engine/internal/core.h"

namespace geardb::engine {
namespace {

/// For how long it may be on the disk still, where no pass is made for the log.
constexpr int64_t kGoneUsMax = 60'000'000;

/// While it lives, what is written to the cold store may use its reserve.
class UsesReserve {
 public:
  explicit UsesReserve(ColdStore* store) : store_(store) { store_->UseReserve(true); }
  ~UsesReserve() { store_->UseReserve(false); }
  UsesReserve(const UsesReserve&) = delete;
  UsesReserve& operator=(const UsesReserve&) = delete;

 private:
  ColdStore* const store_;
};

}  // namespace

Cleaner::Gone Cleaner::CountGone() {
  Gone gone = CountNewlyGone();
  gone.Add(removing_);
  return gone;
}

Cleaner::Gone Cleaner::CountNewlyGone() {
  Gone gone{.tables = database_->HasDropped()};
  for (const auto& table : database_->AllTables()) {
    MutexLock lock(&table->state->mutex);
    const TableFrames& frames = table->state->frames();
    gone.bytes += frames.gone_bytes();
    gone.tables |= frames.has_dropped_groups();
  }
  gone.any = gone.tables || gone.bytes > 0;
  return gone;
}

bool Cleaner::RemovalMakesRoom() {
  const Gone gone = CountGone();
  const ColdStore* const store = cold_->if_open();
  return gone.tables || (store != nullptr && store->RemovalMakesRoom(gone.bytes));
}

Status Cleaner::MakeRoom(uint64_t* released) {
  GEARDB_ASSIGN_OR_RETURN(ColdStore* const store, cold_->Store());
  const UsesReserve reserve(store);
  GEARDB_RETURN_IF_ERROR(Pass(Aim::kRemovals, released));
  // What was removed here and there leaves the disk with a compaction. Where it has no room, what
  // left without one may be enough.
  const Status compacted = compactor_.MakeRoom();
  return compacted.code() == StatusCode::kResourceExhausted ? Status::Ok() : compacted;
}

bool Cleaner::LogTakesNoRemovals() const {
  return database_->log->BytesToBound(wal::Urgency::kReserve) == 0;
}

Status Cleaner::MakeRoomForRemovals(uint64_t* released) {
  GEARDB_ASSIGN_OR_RETURN(ColdStore* const store, cold_->Store());
  const UsesReserve reserve(store);
  return Pass(Aim::kOneByReserve, released);
}

void Cleaner::RemoveIfDue() {
  MutexLock one(&pass_mutex_);
  const ColdStore* const store = cold_->if_open();
  if (store == nullptr || store->read_only()) return;
  const Gone gone = CountGone();
  if (!gone.any) {
    gone_since_us_ = 0;
    // A compaction was ended by a close, or failed, and the next pass may be far. It is asked for
    // less and less often, where asking does not help.
    space_looks_ = store->NeedsCompaction() ? space_looks_ + 1 : 0;
    if (std::has_single_bit(space_looks_)) (void)compactor_.KeepSpace();
    return;
  }
  const int64_t now_us = database_->clock->SteadyTimeUs();
  if (gone_since_us_ == 0) gone_since_us_ = now_us;
  // Half of what may be garbage is left to what the store does not know of yet.
  const double share = (database_->options.space_amplification_max - 1) / 2;
  const bool much = gone.tables || static_cast<double>(gone.bytes) >
                                       share * static_cast<double>(store->stats().live_bytes);
  if (!much && now_us - gone_since_us_ < kGoneUsMax) return;
  gone_since_us_ = now_us;  // Where it fails, it is tried again as late as that.
  uint64_t released = 0;
  Status status = Pass(Aim::kRemovals, &released);
  if (status.code() == StatusCode::kResourceExhausted && RemovalMakesRoom()) {
    status = MakeRoom(&released);
  }
  MutexLock lock(&mutex_);
  ++(status.ok() ? stats_.passes : stats_.failed);
  stats_.last = status;
}

namespace {

/// A range costs the store more than a key: it is kept in memory, and said again in each batch,
/// until its files can be dropped, which those of a few keys never can.
constexpr size_t kRangeKeysLeast = 256;
/// A pass deletes no more keys by themselves: a batch of them is in memory.
constexpr uint64_t kKeysMost = uint64_t{1} << 20;

/// The pages at the front of `gone`, in their order, of trajectories that are not there and follow
/// one another. The state's mutex is held.
std::span<const GonePage> RunOf(const TableState& state, std::span<const GonePage> gone) {
  size_t count = 0;
  for (; count < gone.size(); ++count) {
    const TrajectoryId id = gone[count].trajectory;
    const TrajectoryId last = count == 0 ? id - 1 : gone[count - 1].trajectory;
    if (id == last) continue;
    if (id != last + 1 || state.trajectories().FindById(id) != kNoSlot) break;
  }
  return gone.first(count);
}

}  // namespace

Status Cleaner::DeleteGone(TableState* state, ColdBatch* batch) {
  const TableLayout& layout = state->layout();
  const auto delete_all = [&](uint32_t group, TrajectoryId first, TrajectoryId end) {
    return batch->DeleteTrajectoryPages(
        {.table = layout.id(), .group = static_cast<uint16_t>(group), .first = first, .end = end});
  };
  for (const uint32_t group : state->frames().TakeDroppedGroups()) {
    GEARDB_RETURN_IF_ERROR(delete_all(group, 0, kIdsEnd));
  }
  std::vector<GonePage> gone = state->frames().TakeGone();
  if (gone.empty() || kBreak.keep_removed) return Status::Ok();
  std::sort(gone.begin(), gone.end());
  // All trajectories before the oldest that is there go by one range.
  TrajectoryId oldest = gone.back().trajectory + 1;
  state->trajectories().ForEach(
      [&](Slot, const index::TrajectoryRecord& record) { oldest = std::min(oldest, record.id); });
  const auto kept = std::ranges::lower_bound(gone, GonePage{.trajectory = oldest});
  std::span<const GonePage> left(kept, gone.end());
  for (uint32_t g = 0; kept != gone.begin() && g < layout.group_count(); ++g) {
    GEARDB_RETURN_IF_ERROR(delete_all(g, gone.front().trajectory, oldest));
  }
  uint64_t keys = 0;
  while (!left.empty()) {
    auto run = RunOf(*state, left);
    const bool by_range = run.size() >= kRangeKeysLeast || (keys >= kKeysMost && !run.empty());
    if (run.empty()) run = left.first(1);  // Its trajectory is there.
    for (uint32_t g = 0; g < layout.group_count(); ++g) {
      if (by_range) {
        GEARDB_RETURN_IF_ERROR(delete_all(g, run.front().trajectory, run.back().trajectory + 1));
        continue;
      }
      keys += run.size();
      for (const GonePage& page : run) {
        batch->DeletePage({.table = layout.id(),
                           .group = static_cast<uint16_t>(g),
                           .trajectory = page.trajectory,
                           .page = page.page_number});
      }
    }
    left = left.subspan(run.size());
  }
  return Status::Ok();
}

Status Cleaner::WriteBatch(ColdBatch* batch) {
  return cold_->if_open()->Write(batch, cold_->head().log_from);
}

}  // namespace geardb::engine
