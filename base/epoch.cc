#include "base/epoch.h"

#include <algorithm>
#include <functional>
#include <thread>

namespace geardb {

EpochRegistry::Guard EpochRegistry::Enter() {
  // Threads begin their search at different slots, so that they rarely meet.
  static thread_local size_t start =
      std::hash<std::thread::id>{}(std::this_thread::get_id()) % kReadersMax;
  for (;;) {
    for (size_t i = 0; i < kReadersMax; ++i) {
      std::atomic<uint64_t>& slot = slots_[(start + i) % kReadersMax].began;
      uint64_t expected = 0;
      if (slot.load(std::memory_order_relaxed) != 0) continue;
      const uint64_t began = version_.load(std::memory_order_seq_cst);
      if (slot.compare_exchange_strong(expected, began + 1, std::memory_order_seq_cst)) {
        // Whatever was retired between the load and the store had been unlinked before this reader
        // looks at anything; announcing an older version only keeps memory a little longer.
        return Guard(&slot);
      }
    }
    std::this_thread::yield();
  }
}

uint64_t EpochRegistry::SafeVersion() const {
  uint64_t safe = version_.load(std::memory_order_seq_cst);
  for (const ReaderSlot& slot : slots_) {
    const uint64_t began = slot.began.load(std::memory_order_seq_cst);
    if (began != 0) safe = std::min(safe, began - 1);
  }
  return safe;
}

}  // namespace geardb
