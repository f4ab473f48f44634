// WriterThread: the background thread of a log's writer, started before there is a writer.
//
// An open takes it before it changes anything: where the system has no more threads, it is refused
// like an open that was never tried.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"

namespace geardb::wal {

/// Used by one thread.
class WriterThread {
 public:
  /// ResourceExhausted where the system has no more threads.
  static Result<std::unique_ptr<WriterThread>> Start(const std::string& log_directory);
  /// Waits until the work, if it was given any, is done.
  ~WriterThread();
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  /// Has the thread call `work`; once.
  void Do(std::function<void()> work);

 private:
  WriterThread() = default;
  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::function<void()> work_ GEARDB_GUARDED_BY(mutex_);
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace geardb::wal
