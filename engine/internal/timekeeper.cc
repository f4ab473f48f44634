#include "engine/internal/timekeeper.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/thread.h"
#include "engine/internal/append.h"
#include "engine/internal/core.h"
#include "engine/internal/seal_groups.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {
namespace {

// How often it looks: an eighth of the shortest time, within these.
constexpr int64_t kIntervalMinMs = 2;
constexpr int64_t kIntervalMaxMs = 10'000;
/// What is closed and removed in the background does not wait for room in the log.
constexpr int64_t kBackgroundAdmissionMs = 10;

/// The orphans left until then, the oldest first: as they are closed, their items come.
std::vector<TrajectoryId> OrphansLeftUntil(DatabaseCore* database, const TableCore& table,
                                           int64_t until_us) {
  std::vector<TrajectoryId> ids;
  MutexLock commit(&database->commit);
  MutexLock lock(&table.state->mutex);
  table.state->trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    if (!IsOrphan(table, slot)) return;
    if (OrphanedUs(*database, table, slot) <= until_us) ids.push_back(record.id);
  });
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// The priority tables over groups that have a deadline.
std::vector<uint32_t> WithDeadlines(const TableCore& table) {
  std::vector<uint32_t> numbers;
  MutexLock lock(&table.state->mutex);
  for (uint32_t i = 0; i < table.state->priority_table_count(); ++i) {
    if (table.state->priority(i).spec().group.deadline_ms > 0) numbers.push_back(i);
  }
  return numbers;
}

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
  const int64_t now_us = database->clock->WallTimeUs();
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
  const int64_t before_us = database->clock->WallTimeUs() - ttl_ms * 1000;
  GEARDB_ASSIGN_OR_RETURN(const Filter filter, Filter::Parse("state == closed && created_us < " +
                                                             std::to_string(before_us)));
  return RemoveMatching(database, table, filter, {RemovalReason::kAge});
}

Status Timekeeper::Watch(const TableSpec& spec) {
  int64_t shortest_ms = INT64_MAX;
  for (const int64_t ms : {spec.ttl_ms, spec.orphan_timeout_ms, ShortestDeadlineMs(spec)}) {
    if (ms > 0) shortest_ms = std::min(shortest_ms, ms);
  }
  if (shortest_ms == INT64_MAX) return Status::Ok();
  MutexLock lock(&mutex_);
  if (stop_) return Status::Ok();
  const int64_t wanted = std::clamp(shortest_ms / 8, kIntervalMinMs, kIntervalMaxMs);
  if (thread_.joinable()) {
    if (wanted >= interval_ms_) return Status::Ok();
    interval_ms_ = wanted;
    shorter_ = true;
    changed_.NotifyAll();
    return Status::Ok();
  }
  interval_ms_ = wanted;
  GEARDB_ASSIGN_OR_RETURN(
      thread_, StartThread("sees to the times of tables ('" + spec.name + "')", [this] { Run(); }));
  return Status::Ok();
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
  for (;;) {
    {
      MutexLock lock(&mutex_);
      const Deadline next = Deadline::AfterMs(interval_ms_);
      while (!stop_ && !shorter_ && changed_.WaitUntil(&mutex_, next)) {
      }
      if (stop_) return;
      shorter_ = false;
    }
    LookOnce();
  }
}

void Timekeeper::LookOnce() {
  const auto goes_on = [this] { return !stopped(); };
  // The database stops this thread before it goes: no owner is needed here.
  const std::shared_ptr<DatabaseCore> database(database_, [](DatabaseCore*) {});
  for (const auto& table : database_->AllTables()) {
    const TableSpec& spec = table->layout().spec();
    if (spec.orphan_timeout_ms > 0 && !stopped()) {
      (void)CloseOrphans(database, table, spec.orphan_timeout_ms, goes_on);
    }
    if (spec.ttl_ms > 0 && !stopped()) (void)RemoveExpired(database_, table);
    for (const uint32_t number : WithDeadlines(*table)) {
      if (!stopped()) (void)SealOverdueGroups(database_, table, number, goes_on);
    }
  }
}

bool Timekeeper::stopped() {
  MutexLock lock(&mutex_);
  return stop_;
}

}  // namespace geardb::engine
