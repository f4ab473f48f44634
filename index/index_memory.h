// IndexMemory: the bytes behind everything in index/. One sparse memfd, mapped once, from which
// structures take ranges of address space (regions) and commit them step by step against one hard
// budget. Another process maps fd() anywhere and reads the same structures: they hold offsets only.
//
// Invariants: used_bytes() is the sum of what living regions have committed and never exceeds
// budget_bytes(); committed bytes that nobody has written are zero; ranges of regions never
// overlap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/huge_pages.h"
#include "base/mutex.h"
#include "base/status.h"

namespace geardb::index {

class IndexMemory;

/// A range of an IndexMemory, divided into parts that are committed from their beginnings, each by
/// itself. Move-only; its destruction punches a hole and gives the budget back, so nobody may still
/// read it then. The IndexMemory must outlive it. Not thread-safe, but different regions may be
/// used from different threads.
class Region {
 public:
  Region() = default;
  ~Region();
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;

  /// Makes the first `bytes` bytes of part `part` usable. Charged in steps of 4 KiB up to 64 KiB,
  /// of 64 KiB below 1 MiB and of 1 MiB above; less than is committed already is OK.
  /// ResourceExhausted, with no change, when the budget or the part's reserved size does not allow
  /// it.
  Status Commit(size_t part, uint64_t bytes);
  /// Commit, and in the same step `old`, of the same memory, gives back all that it has: the budget
  /// need not have room for both. `old` is as a new Region then; after an error nothing has
  /// changed.
  Status CommitInPlaceOf(Region* old, size_t part, uint64_t bytes);

  bool valid() const { return memory_ != nullptr; }
  /// First byte; page-aligned.
  std::byte* base() const { return base_; }
  /// First byte, from IndexMemory::base().
  uint64_t offset() const { return offset_; }
  /// First byte of a part, from base(); a multiple of 4096.
  uint64_t part_offset(size_t part) const { return parts_[part].offset; }
  std::byte* part_base(size_t part) const { return base_ + parts_[part].offset; }
  uint64_t committed_bytes(size_t part) const { return parts_[part].committed_bytes; }
  /// Of all parts.
  uint64_t committed_bytes() const;
  size_t part_count() const { return parts_.size(); }
  /// As given to Reserve; it appears in errors.
  const std::string& name() const { return name_; }

 private:
  friend class IndexMemory;
  struct Part {
    uint64_t offset = 0;
    uint64_t reserved_bytes = 0;
    uint64_t committed_bytes = 0;
  };

  /// Commit, where so many bytes are charged already.
  Status CommitBeyond(size_t part, uint64_t bytes, uint64_t charged);
  /// Gives back the range, and all that is committed but for so many bytes.
  void Release(uint64_t kept_charged = 0);

  IndexMemory* memory_ = nullptr;
  std::byte* base_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t reserved_bytes_ = 0;
  std::vector<Part> parts_;
  std::string name_;
};

/// One sparse shared mapping with a budget. Thread-safe. Owns the memfd and the mapping.
class IndexMemory {
 public:
  struct Options {
    uint64_t budget_bytes = uint64_t{64} << 20;
    /// Address space; it costs nothing until committed. 0: 1024 times the budget, at most 2^45.
    uint64_t reserve_bytes = 0;
    std::string name = "index";  ///< Of the memfd, and in errors.
    /// What sets the budget, as users know it; in errors.
    std::string budget_name = "budget_bytes";
  };

  /// InvalidArgument for a budget of zero; IoError when the kernel refuses.
  static Result<std::unique_ptr<IndexMemory>> Create(const Options& options);
  ~IndexMemory();
  IndexMemory(const IndexMemory&) = delete;
  IndexMemory& operator=(const IndexMemory&) = delete;

  /// A range with parts of at least these sizes, one after the other, nothing committed.
  /// ResourceExhausted when no range of address space is left.
  Result<Region> Reserve(std::string_view name, std::span<const uint64_t> part_bytes);
  Result<Region> Reserve(std::string_view name, std::initializer_list<uint64_t> part_bytes) {
    return Reserve(name, std::span<const uint64_t>(part_bytes.begin(), part_bytes.size()));
  }

  /// The memfd; owned by this object. Map it shared, reserve_bytes() long.
  int fd() const { return fd_; }
  std::byte* base() const { return base_; }
  uint64_t reserve_bytes() const { return reserve_bytes_; }
  uint64_t budget_bytes() const { return budget_bytes_; }
  /// Committed bytes of all regions.
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class Region;
  IndexMemory() = default;

  /// Adds `bytes` to the used bytes, or says why not.
  Status Charge(uint64_t bytes, std::string_view for_name);
  /// A budget with more address space than that.
  uint64_t BudgetFor(uint64_t reserve_bytes) const;
  struct Returned {
    uint64_t offset = 0;
    uint64_t reserved_bytes = 0;
    uint64_t committed_bytes = 0;
    uint64_t kept_charged = 0;  ///< Of the committed bytes: others have them.
  };
  void GiveBack(const Returned& range);

  int fd_ = -1;
  std::byte* base_ = nullptr;
  uint64_t reserve_bytes_ = 0;
  uint64_t budget_bytes_ = 0;
  std::string name_;
  std::string budget_name_;
  std::atomic<uint64_t> used_bytes_{0};
  HugePages huge_pages_;
  Mutex mutex_;
  std::map<uint64_t, uint64_t> free_ranges_ GEARDB_GUARDED_BY(mutex_);  // offset -> bytes
};

}  // namespace geardb::index
