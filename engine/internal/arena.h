// HostArena: the memory behind frames, in one memfd.
//
// Frames come from 2 MiB slabs, each owned by one pool (one column group of one table) until it is
// empty; a frame larger than a slab takes a run of slabs. The arena grows by 64 MiB of touched
// memory at a time, up to its budget.
//
// Invariants:
// - A slab is free (in `free_slabs_`) or owned by one pool; `used` counts its frames handed out.
// - A retired frame is handed out again only when every reader that could have found it has left.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/epoch.h"
#include "base/mutex.h"
#include "base/page_view.h"
#include "base/status.h"
#include "base/types.h"

namespace geardb::engine {

inline constexpr uint8_t kHostArena = 0;

struct ArenaOptions {
  uint64_t budget_bytes = 0;
  bool prefault = false;
};

/// Frames of one size. Made by HostArena::NewPool and owned by its arena.
class FramePool {
 public:
  uint64_t frame_bytes() const { return frame_bytes_; }

 private:
  friend class HostArena;
  FramePool(uint64_t frame_bytes, std::string owner)
      : frame_bytes_(frame_bytes), owner_(std::move(owner)) {}

  const uint64_t frame_bytes_;
  const std::string owner_;
  std::set<uint32_t> partial_;  // Slabs with a free frame, lowest first.
};

/// Thread-safe. `epochs` must outlive the arena.
class HostArena {
 public:
  static Result<std::unique_ptr<HostArena>> Create(const ArenaOptions& options,
                                                   EpochRegistry* epochs);
  ~HostArena();
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  /// A pool for frames of `frame_bytes`, a multiple of 128; `owner` is named in errors.
  FramePool* NewPool(uint64_t frame_bytes, std::string owner);

  /// A frame of unspecified content. Waits for retired frames to become free until the deadline;
  /// ResourceExhausted, naming the budget and what holds it, when none will.
  Result<FrameRef> Allocate(FramePool* pool, Deadline deadline);
  /// Gives back a frame that nobody else has seen.
  void Free(FramePool* pool, FrameRef frame);
  /// Gives back a frame that was just unlinked; it is free once its readers have left.
  void Retire(FramePool* pool, FrameRef frame);

  std::byte* Resolve(FrameRef frame) const { return base_ + frame.offset(); }
  std::byte* base() const { return base_; }
  uint64_t budget_bytes() const { return budget_bytes_; }
  /// How many frames of that size there are when all slabs hold such.
  uint64_t FramesMax(uint64_t frame_bytes) const;
  /// Bytes of frames handed out, retired ones included.
  uint64_t used_bytes() const;
  /// "huge (advised)" or "4 KiB": what is behind the frames.
  const std::string& page_kind() const { return page_kind_; }

 private:
  struct Slab {
    FramePool* owner = nullptr;
    uint32_t used = 0;
    uint32_t run = 0;                 // Slabs of a frame larger than one; 0 for small frames.
    std::vector<uint64_t> free_bits;  // One per frame; empty for large frames.
  };
  struct Retired {
    uint64_t version;
    FramePool* pool;
    FrameRef frame;
  };

  HostArena(int fd, std::byte* base, uint64_t budget_bytes, EpochRegistry* epochs);

  bool TryAllocate(FramePool* pool, FrameRef* frame) GEARDB_REQUIRES(mutex_);
  bool TryAllocateRun(FramePool* pool, FrameRef* frame) GEARDB_REQUIRES(mutex_);
  void Release(FramePool* pool, FrameRef frame) GEARDB_REQUIRES(mutex_);
  void ReclaimRetired() GEARDB_REQUIRES(mutex_);
  /// Where the budget is, for the error of an allocation.
  std::string UsageText() const GEARDB_REQUIRES(mutex_);
  void Prefault();

  const int fd_;
  std::byte* const base_;
  const uint64_t budget_bytes_;
  EpochRegistry* const epochs_;
  std::string page_kind_;

  mutable Mutex mutex_;
  CondVar freed_;
  std::vector<std::unique_ptr<FramePool>> pools_ GEARDB_GUARDED_BY(mutex_);
  std::vector<Slab> slabs_ GEARDB_GUARDED_BY(mutex_);
  std::set<uint32_t> free_slabs_ GEARDB_GUARDED_BY(mutex_);
  std::deque<Retired> retired_ GEARDB_GUARDED_BY(mutex_);
  uint64_t used_bytes_ GEARDB_GUARDED_BY(mutex_) = 0;
};

/// A quarter of the memory that the cgroup allows, or of the machine's where there is no limit.
uint64_t DefaultFrameBudget();

}  // namespace geardb::engine
