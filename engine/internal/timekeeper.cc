#include "engine/internal/timekeeper.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "engine/internal/append.h"
#include "engine/internal/core.h"
#include "engine/internal/priority_limits.h"
#include "engine/internal/seal_groups.h"
#include "engine/internal/set_filter.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {
namespace {

// How often it looks: an eighth of the time that there is, within these.
constexpr int64_t kIntervalMinMs = 2;
constexpr int64_t kIntervalMaxMs = 10'000;
/// What is closed and removed in the background does not wait for room in the log.
constexpr int64_t kBackgroundAdmissionMs = 10;
/// So many are looked at before others may change the table.
constexpr uint64_t kSlotsAtOnce = 4096;

/// The slots whose trajectories `wants`. Others change the table meanwhile.
template <typename Wants>
std::vector<Slot> SlotsOf(const TableCore& table, const Wants& wants) {
  std::vector<Slot> slots;
  for (uint64_t first = 0;; first += kSlotsAtOnce) {
    MutexLock lock(&table.state->mutex);
    const index::TrajectoryIndex& trajectories = table.state->trajectories();
    const uint64_t end = std::min(first + kSlotsAtOnce, trajectories.reserved());
    for (uint64_t slot = first; slot < end; ++slot) {
      if (wants(trajectories.record(static_cast<Slot>(slot)))) {
        slots.push_back(static_cast<Slot>(slot));
      }
    }
    if (end < first + kSlotsAtOnce) return slots;
  }
}

/// The orphans left until then, the oldest first: as they are closed, their items come.
std::vector<TrajectoryId> OrphansLeftUntil(DatabaseCore* database, const TableCore& table,
                                           int64_t until_us) {
  using State = index::TrajectoryState;
  const std::vector<Slot> open = SlotsOf(table, [](const index::TrajectoryRecord& record) {
    return record.state == State::kOpen || record.state == State::kOrphaned;
  });
  std::vector<TrajectoryId> ids;
  for (uint64_t first = 0; first < open.size(); first += kSlotsAtOnce) {
    // Who has them open is known to the plan.
    MutexLock commit(&database->commit);
    MutexLock lock(&table.state->mutex);
    for (const Slot slot :
         std::span(open).subspan(first, std::min(kSlotsAtOnce, open.size() - first))) {
      if (!IsOrphan(table, slot)) continue;
      if (OrphanedUs(*database, table, slot) > until_us) continue;
      ids.push_back(table.state->trajectories().record(slot).id);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool NeedsThread(const PriorityTableSpec& spec) {
  return spec.group.deadline_ms > 0 || spec.epoch.remove_covered ||
         (!spec.filter.empty() && spec.filter_action == FilterAction::kExpire) ||
         RemovesExhausted(LimitsOf(spec));
}

Deadline Earlier(Deadline a, Deadline b) { return a.at() < b.at() ? a : b; }

}  // namespace

Result<uint64_t> CloseOrphans(const std::shared_ptr<DatabaseCore>& database,
                              const std::shared_ptr<TableCore>& table, int64_t older_than_ms,
                              const GoesOn& goes_on) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  if (older_than_ms < 0) {
    return Status::InvalidArgument("table '", table->layout().spec().name, "': orphans older than ",
                                   older_than_ms, " ms; expected at least 0");
  }
  GEARDB_RETURN_IF_ERROR(database->CatchUp());
  const int64_t now_us = database->clock->SteadyTimeUs();
  if (older_than_ms > now_us / 1000) return uint64_t{0};
  const int64_t until_us = older_than_ms == 0 ? INT64_MAX : now_us - older_than_ms * 1000;
  // A writer of its own takes each, and cuts it: between the two it is an orphan at the next open.
  Writer::Impl writer(database, table,
                      {.lanes = 1, .admission_timeout_ms = kBackgroundAdmissionMs});
  uint64_t closed = 0;
  Status unreadable;  // The last page of one: the others are closed.
  for (const TrajectoryId id : OrphansLeftUntil(database.get(), *table, until_us)) {
    if (!goes_on()) break;
    const Status resumed = writer.Resume(id, 0, until_us);
    // Somebody else has resumed or removed it meanwhile; it may have been left again since.
    if (resumed.code() == StatusCode::kFailedPrecondition ||
        resumed.code() == StatusCode::kNotFound) {
      continue;
    }
    if (resumed.code() == StatusCode::kCorruption || resumed.code() == StatusCode::kIoError) {
      if (unreadable.ok()) unreadable = resumed;
      continue;
    }
    GEARDB_RETURN_IF_ERROR(resumed);
    const auto cut = writer.Cut(0);
    if (cut.status().code() == StatusCode::kNotFound) continue;
    GEARDB_RETURN_IF_ERROR(cut.status());
    ++closed;
  }
  GEARDB_RETURN_IF_ERROR(unreadable);
  return closed;
}

Result<uint64_t> RemoveExpired(DatabaseCore* database, const std::shared_ptr<TableCore>& table) {
  const int64_t ttl_ms = table->layout().spec().ttl_ms;
  if (ttl_ms == 0) return uint64_t{0};
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  GEARDB_RETURN_IF_ERROR(database->CatchUp());
  const int64_t before_us = database->clock->WallTimeUs() - ttl_ms * 1000;
  const auto is_expired = [before_us](const index::TrajectoryRecord& record) {
    return record.state == index::TrajectoryState::kClosed && record.created_us < before_us;
  };
  const std::vector<Slot> found = SlotsOf(*table, is_expired);
  if (found.empty()) return uint64_t{0};
  return RemoveChosen(database, table, {RemovalReason::kAge}, [&](const TableState& state) {
    std::vector<Slot> still;
    for (const Slot slot : found) {
      if (is_expired(state.trajectories().record(slot))) still.push_back(slot);
    }
    return Result<std::vector<Slot>>(std::move(still));
  });
}

Status Timekeeper::Watch(const TableSpec& spec) {
  const auto& priority_tables = spec.priority_tables;
  if (spec.ttl_ms == 0 && spec.orphan_timeout_ms == 0 &&
      std::none_of(priority_tables.begin(), priority_tables.end(), NeedsThread)) {
    return Status::Ok();
  }
  MutexLock lock(&mutex_);
  if (stop_ || thread_.joinable()) return Status::Ok();
  GEARDB_ASSIGN_OR_RETURN(
      thread_, StartThread("sees to the times of tables ('" + spec.name + "')", [this] { Run(); }));
  return Status::Ok();
}

void Timekeeper::LookAnew() {
  MutexLock lock(&mutex_);
  look_anew_ = true;
  changed_.NotifyAll();
}

void Timekeeper::FollowUpAt(Deadline at) {
  MutexLock lock(&mutex_);
  if (at.at() >= follow_up_at_.at()) return;
  follow_up_at_ = at;
  changed_.NotifyAll();
}

void Timekeeper::Stop() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.NotifyAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Timekeeper::Run() {
  Looks looks;
  for (;;) {
    Deadline next = Deadline::Infinite();
    for (const auto& [what, look] : looks) next = Earlier(next, look.due);
    bool anew = false;
    bool follow_up = false;
    {
      MutexLock lock(&mutex_);
      while (!stop_ && !look_anew_ && !next.passed() && !follow_up_at_.passed()) {
        changed_.WaitUntil(&mutex_, Earlier(next, follow_up_at_));
      }
      if (stop_) return;
      anew = std::exchange(look_anew_, false);
      follow_up = follow_up_at_.passed();
      if (follow_up) follow_up_at_ = Deadline::Infinite();
    }
    if (anew) AddLooks(&looks);
    if (follow_up) FollowUpAll();
    LookWhereDue(&looks);
  }
}

void Timekeeper::AddLooks(Looks* looks) const {
  for (const auto& table : database_->AllTables()) {
    const auto add = [&](Kind kind, uint32_t number, int64_t time_ms) {
      if (time_ms == 0) return;
      const int64_t ms = std::clamp(time_ms / 8, kIntervalMinMs, kIntervalMaxMs);
      looks->emplace(What{table->layout().id(), kind, number},
                     Look{.table = table, .interval_ms = ms, .due = Deadline::AfterMs(ms)});
    };
    add(Kind::kOrphans, 0, table->layout().spec().orphan_timeout_ms);
    add(Kind::kExpired, 0, table->layout().spec().ttl_ms);
    MutexLock lock(&table->state->mutex);
    for (uint32_t i = 0; i < table->state->priority_table_count(); ++i) {
      add(Kind::kOverdueGroups, i, table->state->priority(i).spec().group.deadline_ms);
    }
  }
}

void Timekeeper::LookWhereDue(Looks* looks) {
  for (auto at = looks->begin(); at != looks->end() && !stopped();) {
    auto& [what, look] = *at;
    const std::shared_ptr<TableCore> table = look.table.lock();
    if (table == nullptr || table->dropped.load()) {
      at = looks->erase(at);
      continue;
    }
    if (look.due.passed()) {
      LookAt(what, table);
      look.due = Deadline::AfterMs(look.interval_ms);
    }
    ++at;
  }
}

void Timekeeper::LookAt(const What& what, const std::shared_ptr<TableCore>& table) {
  const auto goes_on = [this] { return !stopped(); };
  switch (what.kind) {
    case Kind::kOrphans: {
      // The database stops this thread before it goes: no owner is needed here.
      const std::shared_ptr<DatabaseCore> database(database_, [](DatabaseCore*) {});
      const int64_t timeout_ms = table->layout().spec().orphan_timeout_ms;
      (void)CloseOrphans(database, table, timeout_ms, goes_on);
      return;
    }
    case Kind::kExpired:
      (void)RemoveExpired(database_, table);
      return;
    case Kind::kOverdueGroups:
      (void)SealOverdueGroups(database_, table, what.priority_table, goes_on);
      return;
  }
}

void Timekeeper::FollowUpAll() {
  for (const auto& table : database_->AllTables()) {
    if (stopped()) return;
    if (table->follow_up_due.load()) RemoveFinishedNow(database_, table);
  }
}

bool Timekeeper::stopped() {
  MutexLock lock(&mutex_);
  return stop_;
}

}  // namespace geardb::engine
