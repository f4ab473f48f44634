// NumberArray: a value for each LPN, or each slot, of a table, in index memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "index/index_memory.h"

namespace geardb::engine {

/// Values by number, in chunks that never move. What is reserved is charged to the index budget,
/// and all its bytes are zero at first.
template <typename T>
class NumberArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  static constexpr uint64_t kPerChunk = 4096;

  NumberArray() = default;
  /// `memory` must outlive it. `name` is in errors.
  NumberArray(index::IndexMemory* memory, std::string name)
      : memory_(memory), name_(std::move(name)) {}

  /// Numbers below `count` have values from here on, and keep those that they have. As of
  /// Region::Commit, where it fails; fewer numbers may have come then.
  Status Reserve(uint64_t count) {
    while (size_ < count) {
      if (size_ == chunks_.size() * kPerChunk) {
        GEARDB_ASSIGN_OR_RETURN(index::Region region,
                                memory_->Reserve(name_, {kPerChunk * sizeof(T)}));
        chunks_.push_back(std::move(region));
        values_.push_back(reinterpret_cast<T*>(chunks_.back().base()));
      }
      index::Region& chunk = chunks_.back();
      const uint64_t begin = (chunks_.size() - 1) * kPerChunk;
      const uint64_t wanted = std::min(count - begin, kPerChunk);
      const Status committed = chunk.Commit(0, wanted * sizeof(T));
      size_ = begin + std::min(chunk.committed_bytes(0) / sizeof(T), kPerChunk);
      if (!committed.ok()) return CommittedOrGone(committed);
    }
    return Status::Ok();
  }
  uint64_t size() const { return size_; }
  T& operator[](uint64_t number) { return values_[number / kPerChunk][number % kPerChunk]; }
  const T& operator[](uint64_t number) const {
    return values_[number / kPerChunk][number % kPerChunk];
  }

 private:
  /// A chunk of which nothing is there would be taken for a whole one.
  Status CommittedOrGone(const Status& committed) {
    if (chunks_.back().committed_bytes(0) == 0) {
      chunks_.pop_back();
      values_.pop_back();
    }
    return committed;
  }

  index::IndexMemory* memory_ = nullptr;
  std::string name_;
  uint64_t size_ = 0;
  std::vector<index::Region> chunks_;
  std::vector<T*> values_;
};

}  // namespace geardb::engine
