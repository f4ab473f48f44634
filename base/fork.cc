#include "base/fork.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"

namespace geardb {
namespace {

std::atomic<uint64_t> forks{0};

struct Unshared {
  Mutex mutex;
  std::vector<int> descriptors GEARDB_GUARDED_BY(mutex);
};

Unshared& AllUnshared() {
  static Unshared* const all = new Unshared;  // Never deleted: who uses it may outlive it.
  return *all;
}

// The mutex is held over a fork, so that the child finds the list whole.
void BeforeFork() GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  AllUnshared().mutex.Lock();
}

void InParent() GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  AllUnshared().mutex.Unlock();
}

void InChild() GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  forks.fetch_add(1, std::memory_order_relaxed);
  Unshared& all = AllUnshared();
  for (const int fd : all.descriptors) ::close(fd);
  all.descriptors.clear();
  all.mutex.Unlock();
}

// Before anybody can fork: the child of a fork that came while the first mark was registering them
// would wait for ever for a thread that it does not have.
const int registered = ::pthread_atfork(BeforeFork, InParent, InChild);

}  // namespace

ForkMark::ForkMark() : pid_(::getpid()) {
  GEARDB_CHECK(registered == 0);
  count_ = Forks();
}

uint64_t ForkMark::Forks() { return forks.load(std::memory_order_relaxed); }

Result<std::unique_ptr<UnsharedDescriptor>> UnsharedDescriptor::Open(
    const std::function<Result<int>()>& open) {
  const ForkMark forks_are_watched;
  Unshared& all = AllUnshared();
  MutexLock lock(&all.mutex);
  GEARDB_ASSIGN_OR_RETURN(const int fd, open());
  all.descriptors.push_back(fd);
  return std::unique_ptr<UnsharedDescriptor>(new UnsharedDescriptor(fd));
}

UnsharedDescriptor::~UnsharedDescriptor() {
  if (process_.forked()) return;  // It was closed: the number may be another file's.
  Unshared& all = AllUnshared();
  MutexLock lock(&all.mutex);
  std::erase(all.descriptors, fd_);
  ::close(fd_);
}

}  // namespace geardb
