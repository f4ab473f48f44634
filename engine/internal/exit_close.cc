#include "engine/internal/exit_close.h"

#include <map>
#include <utility>

#include "base/fork.h"
#include "base/mutex.h"

namespace geardb::engine {
namespace {

struct Closing {
  std::function<void()> close;
  ForkMark owner;
};
struct Open {
  Mutex mutex;
  CondVar changed;
  std::map<const void*, Closing> owners GEARDB_GUARDED_BY(mutex);
  const void* closing GEARDB_GUARDED_BY(mutex) = nullptr;
};

/// Never destroyed: threads may close databases to the end.
Open& AllOpen() {
  static Open* const open = new Open;
  return *open;
}

/// What is to be called next; nothing where all were.
std::function<void()> TakeOne() {
  Open& open = AllOpen();
  MutexLock lock(&open.mutex);
  while (!open.owners.empty()) {
    const auto first = open.owners.extract(open.owners.begin());
    // A child of a fork has not the threads that would have to end.
    if (first.mapped().owner.forked()) continue;
    open.closing = first.key();
    return first.mapped().close;
  }
  return nullptr;
}

struct AtExit {
  ~AtExit() { CloseAllForExit(); }
};

}  // namespace

void CloseAtExit(const void* owner, std::function<void()> close) {
  MutexLock lock(&AllOpen().mutex);
  AllOpen().owners.insert_or_assign(owner, Closing{std::move(close), ForkMark()});
}

void ForgetAtExit(const void* owner) {
  Open& open = AllOpen();
  MutexLock lock(&open.mutex);
  open.owners.erase(owner);
  while (open.closing == owner) open.changed.WaitUntil(&open.mutex, Deadline::Infinite());
}

// Static objects are destroyed in the reverse order: this one before those that RocksDB has made.
void ArmExit() { static const AtExit at_exit; }

void CloseAllForExit() {
  while (const std::function<void()> close = TakeOne()) {
    close();
    MutexLock lock(&AllOpen().mutex);
    AllOpen().closing = nullptr;
    AllOpen().changed.NotifyAll();
  }
}

}  // namespace geardb::engine
