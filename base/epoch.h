// Epochs: when memory that was unlinked may be used again.
//
// A reader announces the version at which it began and withdraws when it has ended. What is
// retired at version v may be reused when every reader that began at v or before has ended.
//
// Invariants:
// - A slot holds 0 (free), or version + 1 of a reader that is inside.
// - `version_` grows by one at every Retire, after the thing was unlinked, so a reader that begins
//   later cannot find it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace geardb {

/// Announces readers, any number at once. Thread-safe, lock-free.
class EpochRegistry {
 public:
  EpochRegistry() = default;
  ~EpochRegistry();
  EpochRegistry(const EpochRegistry&) = delete;
  EpochRegistry& operator=(const EpochRegistry&) = delete;

  /// Slots that are looked through before there are more of them.
  static constexpr size_t kBlockReaders = 256;

  /// A reader inside: what it can find stays until the guard goes. Movable, held for short times.
  class Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept : slot_(other.slot_) { other.slot_ = nullptr; }
    Guard& operator=(Guard&& other) noexcept {
      if (this != &other) {
        Leave();
        slot_ = other.slot_;
        other.slot_ = nullptr;
      }
      return *this;
    }
    ~Guard() { Leave(); }
    /// Ends the reader early.
    void Leave() {
      if (slot_ != nullptr) slot_->store(0, std::memory_order_release);
      slot_ = nullptr;
    }

   private:
    friend class EpochRegistry;
    explicit Guard(std::atomic<uint64_t>* slot) : slot_(slot) {}
    std::atomic<uint64_t>* slot_ = nullptr;
  };

  /// Begins a reader.
  Guard Enter();
  /// To be called after something was unlinked: the version that it is retired at.
  uint64_t Retire() { return version_.fetch_add(1, std::memory_order_seq_cst); }
  /// What was retired below this version may be reused: the smallest version at which a reader
  /// that is still inside began.
  uint64_t SafeVersion() const;

 private:
  struct alignas(64) ReaderSlot {
    std::atomic<uint64_t> began{0};
  };
  /// More blocks follow where as many readers were inside at once; they stay.
  struct Block {
    std::array<ReaderSlot, kBlockReaders> slots;
    std::atomic<Block*> next{nullptr};
  };
  /// The block behind one, made where there is none.
  static Block* Next(Block* block);

  std::atomic<uint64_t> version_{1};
  Block first_;
};

}  // namespace geardb
