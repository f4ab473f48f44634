#include "wal/writer_thread.h"

#include "base/thread.h"

namespace geardb::wal {

Result<std::unique_ptr<WriterThread>> WriterThread::Start(const std::string& log_directory) {
  std::unique_ptr<WriterThread> made(new WriterThread());
  GEARDB_ASSIGN_OR_RETURN(made->thread_, StartThread("drains and syncs " + log_directory,
                                                     [thread = made.get()] { thread->Run(); }));
  return made;
}

WriterThread::~WriterThread() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.NotifyOne();
  }
  thread_.join();
}

void WriterThread::Do(std::function<void()> work) {
  MutexLock lock(&mutex_);
  work_ = std::move(work);
  changed_.NotifyOne();
}

void WriterThread::Run() {
  std::function<void()> work;
  {
    MutexLock lock(&mutex_);
    while (!work_ && !stop_) changed_.WaitUntil(&mutex_, Deadline::Infinite());
    work = std::move(work_);
  }
  if (work) work();
}

}  // namespace geardb::wal
