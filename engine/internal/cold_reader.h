// The threads that read pages from the cold store: lists of reads, cut into jobs, each one
// MultiGet.
//
// Invariants: a list's `done` is called once, after the last of its reads has its status; when
// Close has returned, no job is left.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "engine/internal/cold_store.h"

namespace geardb::engine {

/// Thread-safe.
class ColdReader {
 public:
  /// Reads from `db`, which outlives it.
  static Result<std::unique_ptr<ColdReader>> Start(const ColdDb* db, uint32_t threads);
  ~ColdReader() { Close(); }

  /// As ColdStore::Submit. After Close every read is FailedPrecondition, and `done` is called here.
  void Submit(std::span<ColdRead> reads, std::function<void()> done);
  /// Finishes what was submitted, and ends the threads.
  void Close();
  /// Adds what was read to the numbers.
  void AddTo(ColdStats* stats) const;

 private:
  struct List;
  struct Job {
    std::shared_ptr<List> list;
    std::span<ColdRead> reads;
  };

  explicit ColdReader(const ColdDb* db) : db_(db) {}
  void Run();
  void ReadJob(std::span<ColdRead> reads);
  void FinishRead(std::string_view value, Status status, ColdRead* read);

  const ColdDb* const db_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ GEARDB_GUARDED_BY(mutex_);
  bool closed_ GEARDB_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // Changed by Start and Close alone.
  Counter pages_;
  Counter missing_;
  Counter failed_;
  Counter bytes_;
};

}  // namespace geardb::engine
