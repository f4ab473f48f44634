#include "engine/internal/activity.h"

#include <utility>

#include "base/thread.h"
#include "engine/internal/activity_file.h"

namespace geardb::engine {
namespace {

/// How often the thread writes at most. A death loses as much.
constexpr int64_t kIntervalMs = 2000;
/// When it first does: who looks at once sees that the database is in use.
constexpr int64_t kFirstMs = 100;
/// So many times as long as it has taken to count the tables, they are not counted again.
constexpr int kRestPerCount = 50;

}  // namespace

DatabaseActivity ReadActivity(Env* env, const std::string& directory, uint64_t seed) {
  DatabaseActivity none;
  const std::string path = JoinPath(directory, kCountersName);
  const auto bytes = ReadWholeFile(env, path, kCountersBytesMax);
  if (bytes.status().code() == StatusCode::kNotFound) {
    none.note = "there is no file '" + path + "'";
    return none;
  }
  if (!bytes.ok()) {
    none.note = bytes.status().message();
    return none;
  }
  auto activity = DecodeActivity(*bytes, seed);
  if (activity.ok()) return std::move(*activity);
  none.note = "'" + path + "' cannot be used: " + std::string(activity.status().message());
  return none;
}

ActivityKeeper::ActivityKeeper(Place place)
    : place_(std::move(place)),
      found_(ReadActivity(place_.env.get(), place_.directory, place_.seed)) {}

void ActivityKeeper::Begin(Opening opening) {
  const bool background = opening.background;
  opened_us_ = place_.clock->WallTimeUs();
  opening_ = std::move(opening);
  if (!background) return;
  auto thread = StartThread("keeps the counters of what is done", [this] { Run(); });
  if (!thread.ok()) return;  // Close writes them.
  MutexLock lock(&mutex_);
  thread_ = std::move(thread).value();
}

DatabaseActivity ActivityKeeper::WithThis() const {
  const ActivityCounters done = opening_.collect();
  DatabaseActivity activity{.known = true,
                            .note = {},
                            .opening = opening_.number,
                            .since = found_.known ? found_.since : opening_.number,
                            .opened_us = opened_us_,
                            .written_us = 0,
                            .last = done,
                            .total = Sum(found_.total, done),
                            .stats = opening_.stats ? opening_.stats() : DatabaseStats()};
  MutexLock lock(&mutex_);
  activity.tables = tables_;
  return activity;
}

void ActivityKeeper::CountTables() {
  const auto begin = std::chrono::steady_clock::now();
  if (!opening_.tables || begin < tables_due_) return;
  TablesActivity counted{.tables = opening_.tables(), .seen_us = place_.clock->WallTimeUs()};
  const auto end = std::chrono::steady_clock::now();
  tables_due_ = end + kRestPerCount * (end - begin);
  MutexLock lock(&mutex_);
  tables_ = std::move(counted);
}

DatabaseActivity ActivityKeeper::activity() {
  if (opening_.number == 0) return found_;
  DatabaseActivity activity = WithThis();
  activity.written_us = place_.clock->WallTimeUs();
  return activity;
}

Status ActivityKeeper::Write() {
  if (opening_.number == 0) return Status::Ok();
  MutexLock one(&write_mutex_);
  CountTables();
  DatabaseActivity activity = WithThis();
  // Tables that are counted again and are as before are no change.
  const int64_t seen_us = std::exchange(activity.tables.seen_us, 0);
  std::vector<std::byte> now = EncodeActivity(activity, place_.seed);
  if (now == last_written_) return Status::Ok();
  activity.tables.seen_us = seen_us;
  activity.written_us = place_.clock->WallTimeUs();
  const std::string path = JoinPath(place_.directory, kCountersName);
  const std::string beside = path + ".new";
  {
    GEARDB_ASSIGN_OR_RETURN(const auto file,
                            place_.env->OpenFile(beside, {.mode = FileMode::kCreate}));
    GEARDB_RETURN_IF_ERROR(file->Write(0, EncodeActivity(activity, place_.seed)));
  }
  GEARDB_RETURN_IF_ERROR(place_.env->Rename(beside, path));
  last_written_ = std::move(now);
  return Status::Ok();
}

void ActivityKeeper::Run() {
  for (int64_t wait_ms = kFirstMs;; wait_ms = kIntervalMs) {
    {
      MutexLock lock(&mutex_);
      const Deadline next = Deadline::AfterMs(wait_ms);
      while (!stop_ && stopped_.WaitUntil(&mutex_, next)) {
      }
      if (stop_) return;
    }
    (void)Write();
  }
}

void ActivityKeeper::Stop() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    stopped_.NotifyAll();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

}  // namespace geardb::engine
