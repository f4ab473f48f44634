#include "engine/internal/cold_db.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/concatenate.h"
#include "base/thread.h"

namespace geardb::engine {
namespace {

// More than this many texts tell nobody more.
constexpr size_t kDamageTextsMax = 100;
// No key of the store's is this one, nor has it at its end.
constexpr std::string_view kNoKey{"\0\0\0", 3};
// How long is waited for a flush that RocksDB says is done: a minute, in looks.
constexpr int kFlushLooksMax = 600;
constexpr int64_t kFlushLookMs = 100;
// How often a write that RocksDB has stopped is tried again, and how often at most while nothing
// is under way that could let it go on.
constexpr int64_t kCompactionLookMs = 10;
constexpr int kIdleLooksMax = 100;
// Likewise a flush that was asked for, and has not begun.
constexpr int kFlushIdleLooksMax = 10;
// How long no flush job is left before others are asked for, and how many.
constexpr int64_t kNudgeMs = 20;
constexpr int kNudges = 4;
// More flushes than this do not fail late.
constexpr int kResumes = 8;

bool IsFull(const Status& status) { return status.code() == StatusCode::kResourceExhausted; }

}  // namespace

Status FromRocks(const rocksdb::Status& status, std::string_view context) {
  if (status.ok()) return Status::Ok();
  std::string text = Concatenate(context, ": ", status.ToString());
  std::replace(text.begin(), text.end(), '\n', ' ');
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

void ColdListener::Watch(const std::array<rocksdb::ColumnFamilyHandle*, kChunkCopies>& copies) {
  MutexLock lock(&watched_mutex_);
  watched_ = copies;
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
  MutexLock watching(&watched_mutex_);
  const auto own = ReadColdOwn(db, watched_, persisted, this);
  if (own.status().code() == StatusCode::kNotFound) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(own.status());
  const ColdPosition found = own->position;
  MutexLock lock(&mutex_);
  if (found.batch > flushed_.batch) flushed_ = found;
  changed_.NotifyAll();
  return Status::Ok();
}

Result<bool> ColdListener::WaitForFlush(rocksdb::DB* db, uint64_t batch) {
  GEARDB_RETURN_IF_ERROR(ReadFlushed(db));
  MutexLock lock(&mutex_);
  // Others' looks wake, too: without the deadline all of them would be over in no time.
  const Deadline deadline = Deadline::AfterMs(kFlushLookMs);
  while (flushed_.batch < batch && status_.ok() && changed_.WaitUntil(&mutex_, deadline)) {
  }
  GEARDB_RETURN_IF_ERROR(status_);
  return flushed_.batch >= batch;
}

void ColdListener::OnCompactionCompleted(rocksdb::DB* /*db*/,
                                         const rocksdb::CompactionJobInfo& compaction) {
  compactions_.Add();
  if (compaction.status.ok()) RoomWasMade();
  if (compaction.status.IsCorruption()) worn.NoteFamily(compaction.cf_name);
}

void ColdListener::OnBackgroundError(rocksdb::BackgroundErrorReason reason,
                                     rocksdb::Status* error) {
  if (reason == rocksdb::BackgroundErrorReason::kCompaction) {
    // Its files stay as they are, so nothing is lost by going on without it. On a full disk it is
    // tried again; otherwise its input is damaged, or its output could not be written.
    if (error->IsNoSpace()) {
      MutexLock lock(&mutex_);
      lacks_room_ = true;
      changed_.NotifyAll();
    } else {
      AddDamage(Concatenate("a compaction was given up: ", error->ToString()));
      compaction_failed_ = true;
    }
    *error = rocksdb::Status::OK();
    return;
  }
  MutexLock lock(&mutex_);
  if (status_.ok()) SetStatus(FromRocks(*error, directory_));
  changed_.NotifyAll();
}

void ColdListener::SetStatus(const Status& status) {
  status_ = status;
  files_->RefuseTables(IsFull(status));
}

void ColdListener::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                                        rocksdb::Status /*error*/, bool* recover) {
  *recover = false;  // The next Write or Flush does it, and sees the outcome.
}

bool ColdListener::WaitForCompaction() {
  MutexLock lock(&mutex_);
  changed_.WaitUntil(&mutex_, Deadline::AfterMs(kCompactionLookMs));
  return !lacks_room_;
}

void ColdListener::RoomWasMade() {
  MutexLock lock(&mutex_);
  lacks_room_ = false;
  changed_.NotifyAll();
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
  SetStatus(Status::Ok());
}

void ColdListener::NotResumed(const Status& why) {
  MutexLock lock(&mutex_);
  if (status_.ok()) SetStatus(why);
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

void ColdGate::Enter() {
  MutexLock lock(&mutex_);
  while (closed_) changed_.WaitUntil(&mutex_, Deadline::Infinite());
  ++inside_;
}

void ColdGate::Leave() {
  MutexLock lock(&mutex_);
  if (--inside_ == 0) changed_.NotifyAll();
}

void ColdGate::Close() {
  MutexLock lock(&mutex_);
  while (closed_) changed_.WaitUntil(&mutex_, Deadline::Infinite());
  closed_ = true;
  while (inside_ > 0) changed_.WaitUntil(&mutex_, Deadline::Infinite());
}

void ColdGate::Open() {
  MutexLock lock(&mutex_);
  closed_ = false;
  changed_.NotifyAll();
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

Status ColdDb::Resuming(const std::function<Status()>& attempt) {
  Status status = listener->status();
  for (int tries = 0; tries < kResumes; ++tries) {
    if (IsFull(status)) {
      (void)GiveUpReserve();
      status = Resume();
    }
    if (status.ok()) {
      status = NotResuming([&] {
        GEARDB_RETURN_IF_ERROR(StopFailingCompactions());
        return attempt();
      });
    }
    if (!IsFull(status)) break;
  }
  return status;
}

bool ColdDb::GiveUpReserve() {
  if (!may_use_reserve || !reserve->GiveUp()) return false;
  listener->RoomWasMade();
  return true;
}

Status ColdDb::Write(rocksdb::WriteBatch* batch, std::string_view newest_page) {
  const auto touch = [&](rocksdb::ColumnFamilyHandle* family, std::string_view key) {
    return family == nullptr ? rocksdb::Status::OK() : batch->Delete(family, SliceOf(key));
  };
  rocksdb::Status status;
  for (rocksdb::ColumnFamilyHandle* copy : chunks) {
    if (status.ok()) status = touch(copy, kNoKey);
  }
  {
    MutexLock lock(&newest_mutex_);
    if (!newest_page.empty()) {
      newest_page_ = newest_page;
    } else if (status.ok()) {
      status = touch(pages, newest_page_ + std::string(kNoKey));
    }
  }
  AwaitMemtables();
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  unlogged.no_slowdown = true;
  if (status.ok()) status = db->Write(unlogged, batch);
  // Stopped until flushes and compactions catch up. RocksDB's own wait for that is for ever where
  // these fail.
  for (int idle_looks = 0; status.IsIncomplete();) {
    GEARDB_RETURN_IF_ERROR(listener->status());
    // An open finds as many files as were written while compactions failed, and those fail again.
    GEARDB_RETURN_IF_ERROR(StopFailingCompactions());
    const bool compacts = listener->WaitForCompaction();
    const bool flushes = HasToFlush();
    if (!compacts && !flushes) {
      return Status::ResourceExhausted(directory, ": the disk is too full for the compactions ",
                                       "that writes wait for");
    }
    const bool idle = flushes ? threads->FlushesIdle() : threads->Idle();
    idle_looks = idle ? idle_looks + 1 : 0;
    if (idle_looks > kIdleLooksMax) {
      return Status::ResourceExhausted(directory, ": RocksDB has stopped writes for good");
    }
    if (idle) {
      // It forgets flushes also where nobody resumes it (FlushNudges).
      (void)FlushAll(/*wait=*/false);
    }
    status = db->Write(unlogged, batch);
  }
  return FromRocks(status, directory);
}

bool ColdDb::HasToFlush() const {
  return std::ranges::any_of(families(), [this](rocksdb::ColumnFamilyHandle* family) {
    return Property(family, rocksdb::DB::Properties::kNumImmutableMemTable) > 0;
  });
}

bool ColdDb::HasMemtables() const {
  const bool active = std::ranges::any_of(families(), [this](rocksdb::ColumnFamilyHandle* family) {
    return Property(family, rocksdb::DB::Properties::kNumEntriesActiveMemTable) > 0;
  });
  return active || HasToFlush();
}

// RocksDB itself goes on into other memtables, up to three in each family. Whether it has stopped,
// or why flushes fail, the write that follows sees.
void ColdDb::AwaitMemtables() const {
  int idle_looks = 0;
  while (memtables->memory_usage() >= unflushed_bytes && HasToFlush() && listener->status().ok() &&
         idle_looks <= kIdleLooksMax) {
    (void)listener->WaitForCompaction();
    idle_looks = threads->FlushesIdle() ? idle_looks + 1 : 0;
  }
}

Status ColdDb::StopFailingCompactions() {
  if (!listener->TakeCompactionFailed()) return Status::Ok();
  // They would be tried, and fail, once a second for ever.
  for (rocksdb::ColumnFamilyHandle* family : families()) {
    GEARDB_RETURN_IF_ERROR(
        FromRocks(db->SetOptions(family, {{"disable_auto_compactions", "true"}}), directory));
  }
  return Status::Ok();
}

Status ColdDb::Resume() {
  gate_.Close();
  // Another one may have resumed since, or met something worse.
  if (IsFull(listener->status())) ResumeAlone();
  const Status left = listener->status();
  gate_.Open();
  return left;
}

namespace {

/// Who resumes RocksDB waits there for a flush, which may never begin. A job that is scheduled as
/// one recovery fails finds no recovery under way when it begins, and ends without having taken a
/// request from RocksDB's queue. From then on there are more requests than jobs, each job takes one
/// that is older than its own, and the last waits for a job that nobody schedules. While this lives
/// and no job is left, others are asked for, which take what waits in the queue.
class FlushNudges {
 public:
  FlushNudges(rocksdb::DB* db, const ColdThreads& threads,
              std::vector<rocksdb::ColumnFamilyHandle*> families)
      : db_(db), threads_(threads), families_(std::move(families)) {
    auto thread = StartThread("asks for forgotten flushes", [this] { Run(); });
    if (thread.ok()) thread_ = std::move(*thread);
  }
  ~FlushNudges() {
    {
      MutexLock lock(&mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }
  FlushNudges(const FlushNudges&) = delete;
  FlushNudges& operator=(const FlushNudges&) = delete;

 private:
  void Run() {
    rocksdb::FlushOptions options;
    options.allow_write_stall = true;
    MutexLock lock(&mutex_);
    while (!ended_) {
      if (changed_.WaitUntil(&mutex_, Deadline::AfterMs(kNudgeMs)) || !threads_.FlushesIdle()) {
        continue;
      }
      // The job that finds all flushed takes the rest of the queue. None is waited for: RocksDB
      // counts as stopped until it has resumed.
      for (int i = 0; i < kNudges; ++i) (void)db_->Flush(options, families_);
    }
  }

  rocksdb::DB* const db_;
  const ColdThreads& threads_;
  const std::vector<rocksdb::ColumnFamilyHandle*> families_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ GEARDB_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

void ColdDb::ResumeAlone() {
  // What RocksDB has begun ends; after an error it begins nothing by itself before it resumes.
  rocksdb::Status resumed = db->PauseBackgroundWork();
  threads->HoldCompactions();
  if (resumed.ok()) resumed = db->ContinueBackgroundWork();
  listener->Resumed();
  if (resumed.ok()) {
    const FlushNudges nudges(db.get(), *threads, families());
    resumed = db->Resume();
  }
  if (!resumed.ok()) listener->NotResumed(FromRocks(resumed, directory));
  threads->ReleaseCompactions();
}

Status ColdDb::FlushAll(bool wait) {
  rocksdb::FlushOptions how;
  how.wait = wait;
  how.allow_write_stall = true;
  return FromRocks(db->Flush(how, families()), directory);
}

Status ColdDb::FlushWhole() {
  return Resuming([this] {
    // RocksDB's own wait is for ever where a flush fails in a store that was opened in spite of
    // damage: without paranoid checks it counts as none that was done, nor as an error.
    for (int idle_looks = 0; HasMemtables();) {
      GEARDB_RETURN_IF_ERROR(listener->status());
      if (threads->FlushesIdle()) {
        if (++idle_looks > kFlushIdleLooksMax) {
          return Status::ResourceExhausted(directory, ": RocksDB does not flush what it has in ",
                                           "memory; the disk is too full for it, or was");
        }
        // Refused where writes have to wait, which may be for this flush.
        (void)FlushAll(/*wait=*/false);
      }
      (void)listener->WaitForCompaction();
    }
    return listener->status();
  });
}

Status ColdDb::FlushUntil(uint64_t batch) {
  for (int looks = 0; looks < kFlushLooksMax; ++looks) {
    // After a full disk Flush may say that all is done while the flush has yet to begin, or was
    // dropped: then it has to be asked for again.
    GEARDB_RETURN_IF_ERROR(FlushAll());
    GEARDB_ASSIGN_OR_RETURN(const bool flushed, listener->WaitForFlush(db.get(), batch));
    if (flushed) return Status::Ok();
  }
  return Status::IoError(directory, ": RocksDB has not flushed batch ", batch,
                         ", though it said so");
}

Status ColdDb::Close() {
  closed = true;
  if (db == nullptr) return Status::Ok();
  listener->Watch({});
  Status first;
  for (rocksdb::ColumnFamilyHandle* family : families()) {
    const Status freed = FromRocks(db->DestroyColumnFamilyHandle(family), directory);
    if (first.ok()) first = freed;
  }
  empty = pages = nullptr;
  chunks = {};
  const Status closing = FromRocks(db->Close(), directory);
  if (first.ok()) first = closing;
  db.reset();
  reserve.reset();
  open_reserve.reset();
  threads.reset();
  return first;
}

std::vector<rocksdb::ColumnFamilyHandle*> ColdDb::families() const {
  std::vector<rocksdb::ColumnFamilyHandle*> all = {empty, pages, chunks[0], chunks[1]};
  std::erase(all, nullptr);
  return all;
}

uint64_t ColdDb::Property(rocksdb::ColumnFamilyHandle* family, const std::string& name) const {
  uint64_t number = 0;
  return family != nullptr && db->GetIntProperty(family, name, &number) ? number : 0;
}

}  // namespace geardb::engine
