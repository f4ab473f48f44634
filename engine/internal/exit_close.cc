#include "engine/internal/exit_close.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
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
  bool ended GEARDB_GUARDED_BY(mutex) = false;  // Nothing is opened any more.
};

/// Never destroyed: threads may close databases to the end.
Open& AllOpen() {
  static Open* const open = new Open;
  return *open;
}

/// What is to be called next; nothing where all were. Notes what is another process's.
std::function<void()> TakeOne(bool* inherited) {
  Open& open = AllOpen();
  MutexLock lock(&open.mutex);
  while (!open.owners.empty()) {
    const auto first = open.owners.extract(open.owners.begin());
    // A child of a fork has not the threads that would have to end.
    if (first.mapped().owner.forked()) {
      *inherited = true;
      continue;
    }
    open.closing = first.key();
    return first.mapped().close;
  }
  return nullptr;
}

/// Unless something was opened meanwhile.
bool EndOpening() {
  Open& open = AllOpen();
  MutexLock lock(&open.mutex);
  open.ended = open.owners.empty();
  return open.ended;
}

/// What is closed stays so. As CloseAllForExit.
bool CloseForGood() {
  bool inherited = CloseAllForExit();
  while (!EndOpening()) inherited |= CloseAllForExit();
  return inherited;
}

void AtExit(int status, void* /*unused*/) {
  if (!CloseForGood()) return;
  (void)std::fflush(nullptr);
  ::_exit(status);
}

/// Made as the library is loaded, destroyed before what RocksDB has made then: for an exit before
/// anything was armed.
const struct LoadedLibrary {
  ~LoadedLibrary() { (void)CloseForGood(); }
} kLoaded;

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

// In the reverse order static objects are destroyed, too: those that RocksDB has made come later.
void ArmExit() { (void)::on_exit(AtExit, nullptr); }

OpeningBeforeExit::OpeningBeforeExit() {
  Open& open = AllOpen();
  MutexLock lock(&open.mutex);
  if (open.ended) {
    status_ = Status::Cancelled("the process exits: nothing is opened any more");
    return;
  }
  const auto await = [this] {
    MutexLock opening(&mutex_);
    while (!opened_) changed_.WaitUntil(&mutex_, Deadline::Infinite());
  };
  open.owners.insert_or_assign(this, Closing{await, ForkMark()});
}

OpeningBeforeExit::~OpeningBeforeExit() {
  {
    MutexLock lock(&mutex_);
    opened_ = true;
    changed_.NotifyAll();
  }
  ForgetAtExit(this);
}

bool CloseAllForExit() {
  bool inherited = false;
  while (const std::function<void()> close = TakeOne(&inherited)) {
    close();
    MutexLock lock(&AllOpen().mutex);
    AllOpen().closing = nullptr;
    AllOpen().changed.NotifyAll();
  }
  return inherited;
}

}  // namespace geardb::engine
