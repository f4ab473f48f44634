// HostArena: the memory behind frames, in one memfd.
//
// Frames come from 2 MiB slabs, each owned by one pool (one column group of one table) until it is
// empty; a frame larger than a slab takes a run of slabs, from the other end of the arena. Memory
// is the system's until it is first written. Slabs of pools with many of them are given a huge page
// when they are taken: 512 page faults less, and one entry of the TLB.
//
// Where there are few slabs for the pools that there are, a pool for which none are kept takes
// parts of slabs that it shares with others (slabs.h) in place of slabs; and any pool does where no
// slab is free. So each has some frames though there is no slab for each, and gives up little at a
// time. What follows holds for slabs; a shared one is nobody's until all of it is free.
//
// Slabs may be kept for a pool. Beyond its own ones another pool takes only what is free besides,
// and for its own ones it waits until those are there that were kept before them. So a table comes
// to its bound even if others, while readers held their frames, took more than they needed.
//
// Where enough slabs are free for a large frame, but not side by side, they are *lent*: their
// memory goes back to the system, and the frame takes as many from addresses behind the budget,
// which have memory only meanwhile.
//
// Invariants:
// - A slab is free (in `free_slabs_` or `behind_`), lent, shared, or owned by one pool; a part of a
//   shared one is free or owned by one pool. `used` counts the frames handed out of either. As many
//   behind the budget are owned as are lent.
// - No more slabs are missing (kept for a pool that does not own them) than are free, unless others
//   had them before or took them with Kept::kTaken, or more are kept than there are.
// - A retired frame is handed out again only when every reader that could have found it has left.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/epoch.h"
#include "base/huge_pages.h"
#include "base/mutex.h"
#include "base/page_view.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/internal/slabs.h"

namespace geardb::engine {

inline constexpr uint8_t kHostArena = 0;
/// Of frames that are in no arena: their offsets are addresses of this process.
inline constexpr uint8_t kProcessMemory = 254;
/// Of pages that have none: their offsets say which of a call's pages they are (AsideNumber).
inline constexpr uint8_t kAside = 253;

struct ArenaOptions {
  uint64_t budget_bytes = 0;
  bool prefault = false;
};

/// Frames of one size. Made by HostArena::NewPool and owned by its arena.
class FramePool {
 public:
  uint64_t frame_bytes() const { return frame_bytes_; }
  /// Else it takes whole slabs alone.
  bool takes_parts() const { return takes_parts_; }

 private:
  friend class HostArena;
  FramePool(uint64_t frame_bytes, std::string owner)
      : frame_bytes_(frame_bytes), takes_parts_(FitsParts(frame_bytes)), owner_(std::move(owner)) {}

  uint64_t missing() const { return kept_ > owned_ ? kept_ - owned_ : 0; }

  const uint64_t frame_bytes_;
  const bool takes_parts_;
  const std::string owner_;
  std::set<uint32_t> partial_;   // Slabs (their first part) and parts with a free frame, in order.
  std::vector<uint32_t> spare_;  // The first slabs of empty runs that it had and are kept for it.
  uint64_t owned_ = 0;           // Slabs, those of spare runs included.
  uint64_t parts_ = 0;           // Of shared slabs, beside them.
  uint64_t kept_ = 0;            // Slabs.
  uint64_t kept_since_ = 0;      // Which call of Keep that was: those before it come first.
  bool dropped_ = false;
};

/// Whether an allocation leaves the slabs alone that are kept for other pools.
enum class Kept : uint8_t {
  kLeft,
  kTaken,  ///< Not where nothing else is free: for what was allocated before they were kept.
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
  /// The pool goes, once the last of its frames is free. Only retired ones may be left.
  void DropPool(FramePool* pool);

  /// Keeps room for so many frames of the pool in all, those that it has included; 0 keeps none.
  /// What others have is kept once they give it back, first for those whose room was kept first.
  /// Nothing is kept for anybody while the pools' sum is more than the budget.
  void Keep(FramePool* pool, uint64_t frames);

  /// A frame of unspecified content. Waits for retired frames to become free until the deadline;
  /// ResourceExhausted, naming the budget and what holds it, when none will.
  Result<FrameRef> Allocate(FramePool* pool, Deadline deadline, Kept kept = Kept::kLeft);
  /// The same, at once or not at all.
  std::optional<FrameRef> TryAllocate(FramePool* pool);
  /// Slabs are kept that others have.
  bool LacksKept();
  /// Moves a frame that nobody reads into a lower slab of its pool, where one has a free frame: all
  /// of a pool moved so are in as few slabs as they need.
  void MoveDown(FramePool* pool, FrameRef* frame);
  /// Gives back a frame that nobody else has seen.
  void Free(FramePool* pool, FrameRef frame);
  /// Gives back a frame that was just unlinked; it is free once its readers have left.
  void Retire(FramePool* pool, FrameRef frame);

  std::byte* Resolve(FrameRef frame) const {
    if (frame.arena() == kHostArena) return base_ + frame.offset();
    return reinterpret_cast<std::byte*>(frame.offset());
  }
  std::byte* base() const { return base_; }
  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t slab_count() const { return budget_bytes_ / kSlabBytes; }
  /// Frames that the pool could have without anybody else's giving some up, retired ones included.
  uint64_t FramesAvailable(const FramePool* pool);
  /// The same without retired ones: those that may be had now.
  uint64_t FramesFree(const FramePool* pool);
  /// Slabs that the pool has, beside its parts of shared ones.
  uint64_t SlabsOwned(const FramePool* pool) const;
  /// Of slabs and of parts.
  uint64_t BytesOwned(const FramePool* pool) const;
  /// Those that are shared, by number.
  std::vector<uint32_t> SharedNow() const;
  /// Frames handed out of the slab (of a large frame: its first one) that begins with a part, or of
  /// that part, where it is one of a shared slab; retired ones included.
  uint64_t FramesUsed(uint32_t part) const;
  /// Bytes of frames handed out, those of retired ones included that may still be read.
  uint64_t used_bytes();
  /// Pools that are there; a dropped one is while it has frames.
  size_t pool_count() const;
  /// "huge (advised)", "huge (asked for)" or "4 KiB": what is behind the frames, or was last.
  std::string page_kind() const;

 private:
  /// A slab, or a part of one.
  struct Slab {
    FramePool* owner = nullptr;
    uint32_t used = 0;
    uint32_t frames = 0;              // That it holds; 0 for frames larger than a slab.
    std::vector<uint64_t> free_bits;  // One per frame; none for frames larger than a slab.
  };
  struct Retired {
    uint64_t version;
    FramePool* pool;
    FrameRef frame;
  };

  HostArena(int fd, std::byte* base, uint64_t budget_bytes, EpochRegistry* epochs);

  bool TakeFree(FramePool* pool, Kept kept, FrameRef* frame) GEARDB_REQUIRES(mutex_);
  bool TakeFreeRun(FramePool* pool, Kept kept, FrameRef* frame) GEARDB_REQUIRES(mutex_);
  // Slabs and parts by the number of their first part.
  /// A part of a shared slab, or of a free one that is shared from now on.
  std::optional<uint32_t> TakePart(FramePool* pool, bool of_free_slab) GEARDB_REQUIRES(mutex_);
  /// Somewhere for small frames of a pool that has none free.
  std::optional<uint32_t> TakeSmall(FramePool* pool, Kept kept) GEARDB_REQUIRES(mutex_);
  void FreeSmall(FramePool* pool, uint32_t part) GEARDB_REQUIRES(mutex_);
  bool IsWhole(uint32_t slab) const GEARDB_REQUIRES(mutex_) {
    return slabs_[slab].owner != nullptr;
  }
  /// What a frame lies in.
  uint32_t PartOf(FrameRef frame) const GEARDB_REQUIRES(mutex_);
  Slab& At(uint32_t part) GEARDB_REQUIRES(mutex_);
  const Slab& At(uint32_t part) const GEARDB_REQUIRES(mutex_);
  /// Slabs side by side for one more frame, or for small frames, of a pool that has none free.
  std::optional<uint32_t> TakeSlabs(FramePool* pool, Kept kept) GEARDB_REQUIRES(mutex_);
  /// Asks for huge pages behind slabs that have none yet.
  void TakeHugePages(uint32_t first, uint32_t count) GEARDB_REQUIRES(mutex_);
  /// Slabs behind the budget, for as many free ones that are lent for it.
  std::optional<uint32_t> BorrowRun(uint32_t run) GEARDB_REQUIRES(mutex_);
  /// Makes a run free that is kept for some pool; false where there is none.
  bool FreeSpareRun() GEARDB_REQUIRES(mutex_);
  /// Gives the memory of slabs back to the system.
  void Discard(uint32_t first, uint32_t count) GEARDB_REQUIRES(mutex_);
  void FreeRun(FramePool* pool, uint32_t first) GEARDB_REQUIRES(mutex_);
  /// Slabs that others lack, who come before what the pool takes next.
  uint64_t MissingBefore(const FramePool& pool) const GEARDB_REQUIRES(mutex_);
  void EraseIfGone(FramePool* pool) GEARDB_REQUIRES(mutex_);
  void Release(FramePool* pool, FrameRef frame) GEARDB_REQUIRES(mutex_);
  uint64_t FramesFreeLocked(const FramePool& pool) GEARDB_REQUIRES(mutex_);
  void ReclaimRetired() GEARDB_REQUIRES(mutex_);
  /// Where the budget is, for the error of an allocation.
  std::string UsageText(const FramePool& pool) const GEARDB_REQUIRES(mutex_);
  void Prefault();

  const int fd_;
  std::byte* const base_;
  const uint64_t budget_bytes_;
  EpochRegistry* const epochs_;
  const bool advised_;  // The kernel gives huge pages by itself.
  HugePages huge_pages_;

  mutable Mutex mutex_;
  CondVar freed_;
  std::vector<std::unique_ptr<FramePool>> pools_ GEARDB_GUARDED_BY(mutex_);
  std::vector<Slab> slabs_ GEARDB_GUARDED_BY(mutex_);
  std::vector<bool> asked_huge_ GEARDB_GUARDED_BY(mutex_);  // By slab; since it was discarded.
  SharedSlabs shared_ GEARDB_GUARDED_BY(mutex_);
  std::map<uint32_t, Slab> parts_ GEARDB_GUARDED_BY(mutex_);  // Of shared slabs.
  SlabSet free_slabs_ GEARDB_GUARDED_BY(mutex_);
  SlabSet behind_ GEARDB_GUARDED_BY(mutex_);  // Free ones behind the budget, numbered from it.
  /// By the first slab of a run behind the budget: what is lent for it.
  std::map<uint32_t, std::vector<uint32_t>> lent_ GEARDB_GUARDED_BY(mutex_);
  uint64_t wanted_slabs_ GEARDB_GUARDED_BY(mutex_) = 0;  // Of all pools: each for two frames.
  uint64_t kept_slabs_ GEARDB_GUARDED_BY(mutex_) = 0;    // Of all pools.
  uint64_t keeps_ GEARDB_GUARDED_BY(mutex_) = 0;         // Calls of Keep.
  std::deque<Retired> retired_ GEARDB_GUARDED_BY(mutex_);
  uint64_t used_bytes_ GEARDB_GUARDED_BY(mutex_) = 0;
};

/// A quarter of the memory that the cgroup allows, or of the machine's where there is no limit.
uint64_t DefaultFrameBudget();

}  // namespace geardb::engine
