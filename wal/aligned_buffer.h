// AlignedBuffer: memory for direct I/O.
#pragma once

#include <memory>
#include <span>

#include "base/check.h"
#include "base/env.h"
#include "base/large_memory.h"
#include "base/types.h"

namespace geardb::wal {

/// `bytes` of memory, 4 KiB aligned, not initialised. Empty when default-made.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(uint64_t bytes)
      : memory_(TakeMemory(bytes + kDirectAlignment), {bytes + kDirectAlignment}), bytes_(bytes) {
    GEARDB_CHECK(memory_ != nullptr);
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    data_ = memory_.get() + (AlignUp(address, kDirectAlignment) - address);
  }

  std::byte* data() const { return data_; }
  std::span<std::byte> span() const { return {data_, bytes_}; }
  bool empty() const { return data_ == nullptr; }

 private:
  std::unique_ptr<std::byte[], GiveBackMemory> memory_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace geardb::wal
