// Batch::Rep: the arrays and tensors of one batch, in buffers that go back to their sampler's pool.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fork.h"
#include "base/large_memory.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/batch.h"

namespace geardb::engine {

/// Bytes used of a budget, and its limit.
struct BatchBudget {
  std::shared_ptr<std::atomic<uint64_t>> used;
  uint64_t limit = 0;
};

/// Bytes that are charged to the batch budget, and given back by the destructor.
class BatchCharge {
 public:
  BatchCharge() = default;
  BatchCharge(BatchCharge&& other) noexcept { *this = std::move(other); }
  BatchCharge& operator=(BatchCharge&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(budget_, other.budget_);
    return *this;
  }
  ~BatchCharge() { GiveBack(); }

  /// Charges `bytes` in all, if that is more than now. ResourceExhausted naming the budget; nothing
  /// is charged then.
  Status Raise(uint64_t bytes, const BatchBudget& budget) {
    if (bytes <= bytes_) return Status::Ok();
    GiveBack();
    const uint64_t used = budget.used->fetch_add(bytes) + bytes;
    if (used > budget.limit) {
      budget.used->fetch_sub(bytes);
      return Status::ResourceExhausted("a batch needs ", bytes, " bytes more; the batch budget of ",
                                       budget.limit, " bytes (budgets.batch_bytes) has ",
                                       used - bytes, " in use");
    }
    budget_ = budget;
    bytes_ = bytes;
    return Status::Ok();
  }
  uint64_t bytes() const { return bytes_; }
  void GiveBack() {
    if (bytes_ > 0) budget_.used->fetch_sub(bytes_);
    bytes_ = 0;
  }

 private:
  uint64_t bytes_ = 0;
  BatchBudget budget_;
};

/// Memory that grows, aligned to 64 bytes, charged to the batch budget.
class OutputBuffer {
 public:
  OutputBuffer() = default;
  OutputBuffer(OutputBuffer&& other) noexcept { *this = std::move(other); }
  OutputBuffer& operator=(OutputBuffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(charge_, other.charge_);
    return *this;
  }
  ~OutputBuffer() { Free(); }

  /// Content is lost when it grows. ResourceExhausted naming the budget.
  Status Resize(uint64_t bytes, const BatchBudget& budget) {
    if (bytes <= charge_.bytes()) return Status::Ok();
    Free();
    GEARDB_RETURN_IF_ERROR(charge_.Raise(bytes, budget));
    bytes_ = TakeMemory(bytes);
    if (bytes_ != nullptr) return Status::Ok();
    charge_.GiveBack();
    return Status::ResourceExhausted("the system has no ", bytes, " bytes for a batch");
  }
  std::byte* get() const { return bytes_; }

 private:
  void Free() {
    GiveMemoryBack(bytes_, charge_.bytes());
    bytes_ = nullptr;
    charge_.GiveBack();
  }

  std::byte* bytes_ = nullptr;
  BatchCharge charge_;
};

/// A named tensor of a batch.
struct BatchOutput {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  OutputBuffer buffer;
  std::vector<int64_t> lengths;
  std::vector<int64_t> cu_seqlens;
  std::vector<int64_t> offsets;  ///< Of values of any length.

  TensorView view() const { return TensorView(buffer.get(), dtype, shape); }
};

class BatchPool;

}  // namespace geardb::engine

namespace geardb {

struct Batch::Rep {
  std::vector<ItemHandle> handles;
  std::vector<TrajectoryId> ids;
  std::vector<int64_t> anchors;
  std::vector<int64_t> lengths;
  std::vector<int64_t> trajectory_lengths;
  std::vector<End> ends;
  std::vector<uint64_t> times_sampled;
  std::vector<double> probabilities;
  std::vector<float> weights;
  std::vector<uint32_t> sources;
  std::vector<int64_t> groups;  ///< This and the next two of draw groups.
  std::vector<int64_t> group_offsets;
  std::vector<int64_t> group_keys;
  Lsn lsn = 0;
  uint64_t draw_number = 0;
  std::vector<engine::BatchOutput> outputs;
  std::shared_ptr<engine::BatchPool> pool;
  engine::BatchCharge items;  ///< For the arrays above, which have an element for each item.

  /// Bytes of those for one item, and of what the outputs say of it.
  static uint64_t ItemBytes(size_t output_count) {
    return sizeof(ItemHandle) + sizeof(TrajectoryId) + 3 * sizeof(int64_t) + sizeof(End) +
           sizeof(uint64_t) + sizeof(double) + sizeof(float) + sizeof(uint32_t) +
           (3 + 2 * output_count) * sizeof(int64_t);
  }

  engine::BatchOutput* FindOutput(std::string_view name) {
    for (engine::BatchOutput& output : outputs) {
      if (output.name == name) return &output;
    }
    return nullptr;
  }
};

}  // namespace geardb

namespace geardb::engine {

/// Reps that are not in use. Thread-safe.
class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  std::unique_ptr<Batch::Rep> Take();
  void Give(std::unique_ptr<Batch::Rep> rep);
  /// Frees what is in the pool now.
  void Clear();
  /// In a fork a sampler's thread, which is not there, may hold the mutex.
  bool forked() const { return process_.forked(); }

 private:
  const ForkMark process_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Batch::Rep>> free_ GEARDB_GUARDED_BY(mutex_);
};

/// The pools of all samplers of a database, which share a budget. Thread-safe.
class BatchPools {
 public:
  std::shared_ptr<BatchPool> MakePool();
  /// Frees the buffers of all batches that were released.
  void Clear();

 private:
  Mutex mutex_;
  std::vector<std::weak_ptr<BatchPool>> pools_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
