// RocksDB's environment as the cold store gives it: files by a FileSystem, and background threads
// of the store's own, which end with it. (RocksDB's default threads are the process's, for good: a
// child of a fork finds them gone and waits for them for ever.) Nor does RocksDB lock the
// directory: whoever opens the store holds the database's lock, and the table that RocksDB keeps of
// what its process has locked would be a child's for good.
//
// Invariants: a job runs once or is unscheduled, never both; jobs of one priority begin in order.
// While compactions are held, none of their jobs runs.
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace geardb::engine {

/// What RocksDB stands on.
struct ColdSystem {
  std::shared_ptr<rocksdb::FileSystem> files;
  std::shared_ptr<rocksdb::SystemClock> clock;
};

/// Made before a RocksDB instance and destroyed after it. Thread-safe.
class ColdThreads : public rocksdb::EnvWrapper {
 public:
  /// What of `with` is null is RocksDB's own. `each` threads for flushes, as many for compactions.
  static Result<std::unique_ptr<ColdThreads>> Start(const ColdSystem& with, uint32_t each);
  /// Waits for the jobs that run; those that wait are dropped.
  ~ColdThreads() override;

  /// Waits for the compactions that run or wait; then none begins until they are released.
  void HoldCompactions();
  void ReleaseCompactions();
  /// Whether no flush runs or waits.
  bool FlushesIdle() const;
  /// Nor a compaction.
  bool Idle() const;

  const char* Name() const override { return "GearDbColdThreads"; }
  rocksdb::Status LockFile(const std::string& name, rocksdb::FileLock** lock) override;
  rocksdb::Status UnlockFile(rocksdb::FileLock* lock) override;
  void Schedule(void (*function)(void*), void* argument, Priority priority, void* tag,
                void (*dropped)(void*)) override;
  int UnSchedule(void* tag, Priority priority) override;
  unsigned int GetThreadPoolQueueLen(Priority priority) const override;
  void SetBackgroundThreads(int /*count*/, Priority /*priority*/) override {}
  void IncBackgroundThreadsIfNeeded(int /*count*/, Priority /*priority*/) override {}
  int GetBackgroundThreads(Priority /*priority*/) override { return static_cast<int>(each_); }
  void LowerThreadPoolIOPriority(Priority /*priority*/) override {}
  void LowerThreadPoolCPUPriority(Priority /*priority*/) override {}
  rocksdb::Status LowerThreadPoolCPUPriority(Priority /*priority*/,
                                             rocksdb::CpuPriority /*to*/) override {
    return rocksdb::Status::OK();
  }

 private:
  struct Job {
    void (*function)(void*);
    void* argument;
    void* tag;
    void (*dropped)(void*);
  };
  struct Pool {
    mutable Mutex mutex;
    CondVar changed;
    std::deque<Job> jobs GEARDB_GUARDED_BY(mutex);
    uint32_t running GEARDB_GUARDED_BY(mutex) = 0;
    bool held GEARDB_GUARDED_BY(mutex) = false;
    bool ending GEARDB_GUARDED_BY(mutex) = false;
    std::vector<std::thread> threads;  // Changed by Start and the destructor alone.

    /// Nothing runs or waits.
    bool idle() const GEARDB_REQUIRES(mutex) { return jobs.empty() && running == 0; }
  };

  ColdThreads(const ColdSystem& with, uint32_t each);
  Pool* PoolOf(Priority priority) const { return priority == HIGH ? &flushes_ : &compactions_; }
  static void Run(Pool* pool);

  const uint32_t each_;
  mutable Pool flushes_;
  mutable Pool compactions_;
};

}  // namespace geardb::engine
