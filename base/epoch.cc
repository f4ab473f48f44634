#include "base/epoch.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>

namespace geardb {

EpochRegistry::~EpochRegistry() {
  for (Block* block = first_.next.load(); block != nullptr;) {
    const std::unique_ptr<Block> ended(block);
    block = ended->next.load();
  }
}

EpochRegistry::Block* EpochRegistry::Next(Block* block) {
  Block* next = block->next.load(std::memory_order_seq_cst);
  if (next != nullptr) return next;
  auto made = std::make_unique<Block>();
  const bool ours = block->next.compare_exchange_strong(next, made.get());
  return ours ? made.release() : next;
}

EpochRegistry::Guard EpochRegistry::Enter() {
  // Threads begin their search at different slots, so that they rarely meet.
  static thread_local size_t start =
      std::hash<std::thread::id>{}(std::this_thread::get_id()) % kBlockReaders;
  // Who waited for a slot instead might hold what the readers inside need to leave.
  for (Block* block = &first_;; block = Next(block)) {
    for (size_t i = 0; i < kBlockReaders; ++i) {
      std::atomic<uint64_t>& slot = block->slots[(start + i) % kBlockReaders].began;
      uint64_t expected = 0;
      if (slot.load(std::memory_order_relaxed) != 0) continue;
      const uint64_t began = version_.load(std::memory_order_seq_cst);
      if (slot.compare_exchange_strong(expected, began + 1, std::memory_order_seq_cst)) {
        // Whatever was retired between the load and the store had been unlinked before this reader
        // looks at anything; announcing an older version only keeps memory a little longer.
        return Guard(&slot);
      }
    }
  }
}

uint64_t EpochRegistry::SafeVersion() const {
  uint64_t safe = version_.load(std::memory_order_seq_cst);
  for (const Block* block = &first_; block != nullptr; block = block->next.load()) {
    for (const ReaderSlot& slot : block->slots) {
      const uint64_t began = slot.began.load(std::memory_order_seq_cst);
      if (began != 0) safe = std::min(safe, began - 1);
    }
  }
  return safe;
}

}  // namespace geardb
