#include "engine/internal/change_scope.h"

#include <string_view>

#include "base/check.h"

namespace geardb::engine {

namespace {

/// What wants room in a log in which no pass of the cleaner has made any is refused for closing, or
/// for what has failed.
Status OrClosing(DatabaseCore* database, const Status& refused) {
  const bool full = refused.code() == StatusCode::kResourceExhausted;
  if (!full || database->cleaner == nullptr) return refused;
  if (database->cleaner->stopped()) {
    return Status::Cancelled("database '", database->directory, "' is being closed");
  }
  // It was refused before the pass that has failed.
  const Status last = database->cleaner->stats().last;
  const bool said = refused.message().find(last.message()) != std::string_view::npos;
  if (last.ok() || said) return refused;
  return Status::ResourceExhausted(refused.message(),
                                   "; the cleaner makes no room, it failed: ", last.message());
}

/// A call whose time is over while the cleaner may yet make room in the log was not refused for
/// good.
Status OrInTime(DatabaseCore* database, Deadline deadline, const Status& refused) {
  Cleaner* const cleaner = database->cleaner.get();
  const bool of_log = refused.code() == StatusCode::kResourceExhausted &&
                      refused.message().find("log_bytes_max") != std::string_view::npos;
  if (!of_log || cleaner == nullptr || !deadline.passed()) return refused;
  if (!cleaner->stats().last.ok() || cleaner->IsFruitless()) return refused;
  if (!cleaner->Wanted(cleaner->segments_released())) return refused;
  return Status::DeadlineExceeded(refused.message(),
                                  "; the cleaner, which may make room, has not ended its pass yet");
}

}  // namespace

uint64_t SegmentsReleased(DatabaseCore* database) {
  return database->cleaner == nullptr ? 0 : database->cleaner->segments_released();
}

Status AwaitLogRoom(DatabaseCore* database, uint64_t released, bool again, Deadline deadline,
                    const Status& refused) {
  Cleaner* const cleaner = database->cleaner.get();
  // It was refused for something else, which no pass makes better.
  if (cleaner == nullptr || !cleaner->Wanted(released)) return refused;
  if (deadline.passed()) {
    cleaner->WantBeside(0);  // PrepareFor has said how much.
    return OrInTime(database, deadline, refused);
  }
  const WaitTimer timer(&database->waits.log_room);
  if (again) cleaner->Want(database->options.log_bytes_max);
  if (cleaner->AwaitWanted(released, deadline)) return Status::Ok();
  return OrInTime(database, deadline, OrClosing(database, refused));
}

ChangeScope::ChangeScope(DatabaseCore* database, const TableCore* table, const CommitOptions& how)
    : database_(database), table_(table), how_(how) {
  database_->commit.Lock();
  refused_ = database_->CheckWritable();
  if (refused_.ok()) ++database_->changes_under_way_;
}

ChangeScope::~ChangeScope() {
  if (refused_.ok() && --database_->changes_under_way_ == 0 && database_->closed.load()) {
    database_->changes_done_.NotifyAll();
  }
  database_->commit.Unlock();
}

Status ChangeScope::status() const {
  if (!refused_.ok()) return refused_;
  return table_ == nullptr ? Status::Ok() : database_->CheckNotDropped(*table_);
}

Status ChangeScope::AwaitRoom(std::span<const wal::RecordSize> sizes, const CommitOptions& how,
                              bool* waited) GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  *waited = false;
  GEARDB_RETURN_IF_ERROR(status());
  while (!database_->log_writer_->HasRoom(sizes, how.urgency)) {
    *waited = true;
    const WaitTimer timer(&database_->waits.log_room);
    database_->commit.Unlock();
    const Status room = database_->log_writer_->WaitForRoom(sizes, how.urgency, how.deadline);
    // The log may be full of what can be moved.
    const bool full = room.code() == StatusCode::kResourceExhausted;
    uint64_t bytes = 0;
    for (const wal::RecordSize& size : sizes) bytes += size.total();
    Cleaner* const cleaner = full ? database_->cleaner.get() : nullptr;
    const bool waits = cleaner != nullptr && !how.deadline.passed();
    // Who does not wait may try again.
    if (cleaner != nullptr && !waits) cleaner->WantBeside(bytes);
    const bool cleaned = waits && cleaner->WaitForPass(bytes, how.deadline);
    database_->commit.Lock();
    // Others may have taken what was given back: then it is asked again.
    if (full && !cleaned && !database_->log_writer_->HasRoom(sizes, how.urgency)) {
      const Status refused = OrClosing(database_, room);
      const bool of_user = how.urgency == wal::Urgency::kAppend;
      return of_user ? OrInTime(database_, how.deadline, refused) : refused;
    }
    if (!full) GEARDB_RETURN_IF_ERROR(room);
    GEARDB_RETURN_IF_ERROR(status());
  }
  return Status::Ok();
}

Status ChangeScope::AwaitRoomHolding(const wal::RecordSize& size, const CommitOptions& how) {
  GEARDB_RETURN_IF_ERROR(status());
  while (!database_->log_writer_->HasRoom(size, how.urgency)) {
    const WaitTimer timer(&database_->waits.log_room);
    GEARDB_RETURN_IF_ERROR(database_->log_writer_->WaitForRoom(size, how.urgency, how.deadline));
  }
  return Status::Ok();
}

Status ChangeScope::PrepareFor(std::span<const wal::RecordSize> sizes, wal::Urgency urgency) {
  const Status prepared = database_->log->PrepareFor(sizes, urgency);
  const bool full = prepared.code() == StatusCode::kResourceExhausted;
  if (!full || database_->cleaner == nullptr) return prepared;
  const uint64_t bytes = database_->log->SegmentsFor(sizes) * database_->manifest.segment_bytes;
  const uint64_t most = database_->options.log_bytes_max;
  if (bytes + database_->manifest.segment_bytes > most && urgency == wal::Urgency::kAppend) {
    return Status::ResourceExhausted(prepared.message(), "; it takes ", bytes,
                                     " bytes of segments from where the log stands, and the one ",
                                     "that is written stays: a larger log_bytes_max has room");
  }
  database_->cleaner->Want(bytes);
  return prepared;
}

wal::Reservation ChangeScope::Reserve(const wal::RecordRequest& request) {
  GEARDB_CHECK(status().ok());
  const wal::Reservation reservation = database_->log_writer_->Reserve(request);
  if (database_->cleaner != nullptr) database_->cleaner->Note(reservation.end);
  return reservation;
}

}  // namespace geardb::engine
