#include "base/fork.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "base/check.h"

namespace geardb {
namespace {

std::atomic<uint64_t> forks{0};

void CountFork() { forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

ForkMark::ForkMark() : pid_(::getpid()) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, CountFork);
  GEARDB_CHECK(registered == 0);
  count_ = Forks();
}

uint64_t ForkMark::Forks() { return forks.load(std::memory_order_relaxed); }

}  // namespace geardb
