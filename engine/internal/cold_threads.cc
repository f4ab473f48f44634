#include "engine/internal/cold_threads.h"

#include <utility>

#include "base/thread.h"

namespace geardb::engine {
namespace {

struct NoLock final : rocksdb::FileLock {};

std::shared_ptr<rocksdb::FileSystem> FilesOf(const ColdSystem& with) {
  return with.files != nullptr ? with.files : rocksdb::Env::Default()->GetFileSystem();
}

}  // namespace

rocksdb::Status ColdThreads::LockFile(const std::string& /*name*/, rocksdb::FileLock** lock) {
  *lock = new NoLock;
  return rocksdb::Status::OK();
}

rocksdb::Status ColdThreads::UnlockFile(rocksdb::FileLock* lock) {
  delete static_cast<NoLock*>(lock);
  return rocksdb::Status::OK();
}

ColdThreads::ColdThreads(const ColdSystem& with, uint32_t each)
    : EnvWrapper(rocksdb::NewCompositeEnv(FilesOf(with))), each_(each) {
  // RocksDB takes both from here, and deletes manifests through the wrapper's older calls.
  file_system_ = FilesOf(with);
  system_clock_ = with.clock != nullptr ? with.clock : rocksdb::Env::Default()->GetSystemClock();
}

Result<std::unique_ptr<ColdThreads>> ColdThreads::Start(const ColdSystem& with, uint32_t each) {
  std::unique_ptr<ColdThreads> threads(new ColdThreads(with, each));
  for (Pool* pool : {&threads->flushes_, &threads->compactions_}) {
    for (uint32_t i = 0; i < each; ++i) {
      GEARDB_ASSIGN_OR_RETURN(
          auto thread, geardb::StartThread("works for the cold store", [pool] { Run(pool); }));
      pool->threads.push_back(std::move(thread));
    }
  }
  return threads;
}

ColdThreads::~ColdThreads() {
  for (Pool* pool : {&flushes_, &compactions_}) {
    std::deque<Job> left;
    {
      MutexLock lock(&pool->mutex);
      pool->ending = true;
      left.swap(pool->jobs);
    }
    pool->changed.NotifyAll();
    for (std::thread& thread : pool->threads) thread.join();
    for (const Job& job : left) {
      if (job.dropped != nullptr) job.dropped(job.argument);
    }
  }
}

void ColdThreads::HoldCompactions() {
  MutexLock lock(&compactions_.mutex);
  while (!compactions_.idle()) {
    compactions_.changed.WaitUntil(&compactions_.mutex, Deadline::Infinite());
  }
  compactions_.held = true;
}

void ColdThreads::ReleaseCompactions() {
  {
    MutexLock lock(&compactions_.mutex);
    compactions_.held = false;
  }
  compactions_.changed.NotifyAll();
}

bool ColdThreads::FlushesIdle() const {
  MutexLock lock(&flushes_.mutex);
  return flushes_.idle();
}

bool ColdThreads::Idle() const {
  if (!FlushesIdle()) return false;
  MutexLock lock(&compactions_.mutex);
  return compactions_.idle();
}

void ColdThreads::Run(Pool* pool) {
  while (true) {
    Job job;
    {
      MutexLock lock(&pool->mutex);
      while ((pool->jobs.empty() || pool->held) && !pool->ending) {
        pool->changed.WaitUntil(&pool->mutex, Deadline::Infinite());
      }
      if (pool->jobs.empty()) return;
      job = pool->jobs.front();
      pool->jobs.pop_front();
      ++pool->running;
    }
    job.function(job.argument);
    MutexLock lock(&pool->mutex);
    --pool->running;
    pool->changed.NotifyAll();
  }
}

void ColdThreads::Schedule(void (*function)(void*), void* argument, Priority priority, void* tag,
                           void (*dropped)(void*)) {
  Pool* pool = PoolOf(priority);
  {
    MutexLock lock(&pool->mutex);
    pool->jobs.push_back(Job{function, argument, tag, dropped});
  }
  pool->changed.NotifyAll();
}

int ColdThreads::UnSchedule(void* tag, Priority priority) {
  Pool* pool = PoolOf(priority);
  std::vector<Job> dropped;
  {
    MutexLock lock(&pool->mutex);
    std::deque<Job> kept;
    for (const Job& job : pool->jobs) {
      if (job.tag == tag) {
        dropped.push_back(job);
      } else {
        kept.push_back(job);
      }
    }
    pool->jobs.swap(kept);
  }
  pool->changed.NotifyAll();
  for (const Job& job : dropped) {
    if (job.dropped != nullptr) job.dropped(job.argument);
  }
  return static_cast<int>(dropped.size());
}

unsigned int ColdThreads::GetThreadPoolQueueLen(Priority priority) const {
  Pool* pool = PoolOf(priority);
  MutexLock lock(&pool->mutex);
  return static_cast<unsigned int>(pool->jobs.size());
}

}  // namespace geardb::engine
