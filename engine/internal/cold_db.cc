#include "engine/internal/cold_db.h"

#include <cstring>

#include "base/concatenate.h"

namespace geardb::engine {
namespace {

// More than this many texts tell nobody more.
constexpr size_t kDamageTextsMax = 100;
// How long is waited for a flush that RocksDB says is done: a minute, in looks.
constexpr int kFlushLooksMax = 600;
constexpr int64_t kFlushLookMs = 100;

}  // namespace

std::string EncodeColdPosition(const ColdPosition& position) {
  std::string bytes(sizeof(position), '\0');
  std::memcpy(bytes.data(), &position, sizeof(position));
  return bytes;
}

Result<ColdPosition> DecodeColdPosition(std::string_view bytes) {
  ColdPosition position;
  if (bytes.size() != sizeof(position)) {
    return Status::Corruption("an LSN of ", bytes.size(), " bytes");
  }
  std::memcpy(&position, bytes.data(), sizeof(position));
  return position;
}

Status FromRocks(const rocksdb::Status& status, std::string_view context) {
  if (status.ok()) return Status::Ok();
  const std::string text = Concatenate(context, ": ", status.ToString());
  if (status.IsNotFound()) return Status(StatusCode::kNotFound, text);
  if (status.IsNoSpace()) return Status(StatusCode::kResourceExhausted, text);
  if (status.IsCorruption() || status.IsPathNotFound())
    return Status(StatusCode::kCorruption, text);
  // What we ask is right: column families are missing, which are made with the store.
  if (status.IsInvalidArgument()) return Status(StatusCode::kCorruption, text);
  if (status.IsNotSupported()) return Status(StatusCode::kUnsupported, text);
  if (status.IsMemoryLimit()) return Status(StatusCode::kResourceExhausted, text);
  return Status(StatusCode::kIoError, text);
}

void ColdListener::OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& /*flush*/) {
  flushes_.Add();
  // An error here is one of reading back: the LSN stays where it was, which is safe.
  (void)ReadFlushed(db);
}

Status ColdListener::ReadFlushed(rocksdb::DB* db) {
  // What is in memory is skipped: this is what an open would find.
  rocksdb::ReadOptions persisted;
  persisted.read_tier = rocksdb::kPersistedTier;
  std::string value;
  const rocksdb::Status read =
      db->Get(persisted, db->DefaultColumnFamily(), SliceOf(kColdLsnKey), &value);
  if (read.IsNotFound()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(FromRocks(read, directory_));
  GEARDB_ASSIGN_OR_RETURN(const ColdPosition found, DecodeColdPosition(value));
  MutexLock lock(&mutex_);
  if (found.batch > flushed_.batch) flushed_ = found;
  changed_.NotifyAll();
  return Status::Ok();
}

Status ColdListener::WaitUntilFlushed(rocksdb::DB* db, uint64_t batch) {
  for (int looks = 0; looks < kFlushLooksMax; ++looks) {
    GEARDB_RETURN_IF_ERROR(ReadFlushed(db));
    MutexLock lock(&mutex_);
    if (flushed_.batch >= batch || !status_.ok()) return status_;
    changed_.WaitUntil(&mutex_, Deadline::AfterMs(kFlushLookMs));
    if (flushed_.batch >= batch || !status_.ok()) return status_;
  }
  return Status::IoError(directory_, ": RocksDB has not flushed batch ", batch,
                         ", though it said so");
}

void ColdListener::OnBackgroundError(rocksdb::BackgroundErrorReason reason,
                                     rocksdb::Status* error) {
  if (reason == rocksdb::BackgroundErrorReason::kCompaction) {
    // Its files stay as they are, so nothing is lost by going on without it. On a full disk it is
    // tried again; otherwise its input is damaged, or its output could not be written.
    if (!error->IsNoSpace()) {
      AddDamage(Concatenate("a compaction was given up: ", error->ToString()));
      compaction_failed_ = true;
    }
    *error = rocksdb::Status::OK();
    return;
  }
  MutexLock lock(&mutex_);
  if (status_.ok()) status_ = FromRocks(*error, directory_);
  changed_.NotifyAll();
}

void ColdListener::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                                        rocksdb::Status /*error*/, bool* recover) {
  *recover = false;  // The next Write or Flush does it, and sees the outcome.
}

ColdPosition ColdListener::flushed() const {
  MutexLock lock(&mutex_);
  return flushed_;
}

Status ColdListener::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void ColdListener::Resumed() {
  MutexLock lock(&mutex_);
  status_ = Status::Ok();
}

void ColdListener::AddDamage(std::string what) {
  MutexLock lock(&mutex_);
  for (const std::string& known : damage_) {
    if (known == what) return;
  }
  if (damage_.size() < kDamageTextsMax) damage_.push_back(std::move(what));
}

std::vector<std::string> ColdListener::damage() const {
  MutexLock lock(&mutex_);
  return damage_;
}

ColdDb::~ColdDb() { (void)Close(); }

Status ColdDb::Writable() const {
  if (closed.load()) return Status::FailedPrecondition("the cold store ", directory, " is closed");
  if (!degraded.empty()) {
    return Status::FailedPrecondition("the cold store ", directory,
                                      " is damaged and open for reading only: ", degraded);
  }
  if (read_only) {
    return Status::FailedPrecondition("the cold store ", directory, " is open for reading only");
  }
  return Status::Ok();
}

Status ColdDb::Resume() {
  if (listener->TakeCompactionFailed()) {
    // It would be tried, and fail, once a second for ever.
    for (rocksdb::ColumnFamilyHandle* family : {meta, pages, chunks}) {
      GEARDB_RETURN_IF_ERROR(
          FromRocks(db->SetOptions(family, {{"disable_auto_compactions", "true"}}), directory));
    }
  }
  Status error = listener->status();
  // Twice: the first may meet the error of a flush that began while the disk was full.
  for (int tries = 0; tries < 2 && error.code() == StatusCode::kResourceExhausted; ++tries) {
    listener->Resumed();
    const rocksdb::Status resumed = db->Resume();
    error = listener->status();
    if (error.ok()) error = FromRocks(resumed, directory);
  }
  return error;
}

Status ColdDb::ResumeNow() {
  listener->Resumed();
  const rocksdb::Status resumed = db->Resume();
  const Status error = listener->status();
  return error.ok() ? FromRocks(resumed, directory) : error;
}

Status ColdDb::Close() {
  closed = true;
  if (db == nullptr) return Status::Ok();
  Status first;
  for (rocksdb::ColumnFamilyHandle* family : {meta, pages, chunks}) {
    if (family == nullptr) continue;
    const Status freed = FromRocks(db->DestroyColumnFamilyHandle(family), directory);
    if (first.ok()) first = freed;
  }
  meta = pages = chunks = nullptr;
  const Status closing = FromRocks(db->Close(), directory);
  if (first.ok()) first = closing;
  db.reset();
  threads.reset();
  return first;
}

uint64_t ColdDb::Property(rocksdb::ColumnFamilyHandle* family, const std::string& name) const {
  uint64_t number = 0;
  return db->GetIntProperty(family, name, &number) ? number : 0;
}

}  // namespace geardb::engine
