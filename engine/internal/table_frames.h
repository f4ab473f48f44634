// TableFrames: the frames of a table's pages. A page whose bytes are in the log or in the cold
// store can lose its frame, and gets one again when it is asked for.
//
// Invariants:
// - The page of an open trajectory's end has a frame in every group that is appended, where writers
//   may put rows there: not while a log is recovered. So has a page of a volatile group.
// - A frame leaves through the arena's retirement: who found it under the mutex, and holds an epoch
//   guard from then on, can read it.
// - In a group that was dropped, pages show its defaults, but for the last page of a trajectory
// that
//   is open: its writer may not know yet. These defaults are in memory of the process.
// - A page is in `loading_` at most once, and the load is of what the page holds, or is replaced.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/internal/arena.h"
#include "engine/internal/page_loader.h"
#include "engine/internal/table_layout.h"
#include "engine/stats.h"
#include "index/page_table.h"
#include "index/trajectory_index.h"

namespace geardb::engine {

/// Bits of GroupPageRecord::flags.
inline constexpr uint8_t kPageUsed = 1;    ///< Since the last look for pages to drop.
inline constexpr uint8_t kPageInCold = 4;  ///< The cold store has all its rows, as they are.
inline constexpr uint8_t kPageHeld = 8;    ///< Its frame stays.
/// A piece of it is in a part of a record, before the LSN that birth_lsn says.
inline constexpr uint8_t kPageFromPart = 16;

/// Some version of it is in the cold store.
inline constexpr uint8_t kPageHasCold = 32;
/// What of them an image says; the rest is of this process.
inline constexpr uint8_t kPageFlagsSaved = kPageFromPart | kPageHasCold;

/// A page that is to go into the cold store, as it is.
struct ColdWork {
  Lpn lpn = kNoLpn;
  FrameRef frame;  ///< Not valid: read it from `place`.
  PagePlace place;
};

/// A page that has left, and of which the cold store has some version in some group.
struct GonePage {
  TrajectoryId trajectory = 0;
  uint32_t page_number = 0;
  auto operator<=>(const GonePage&) const = default;
};

/// What of the log can be read from its segments.
struct ReadableLog {
  Lsn bytes = 0;    ///< Bytes below.
  Lsn records = 0;  ///< Records that begin below.
  /// The last pages of open trajectories have writers, who know their frames: not while a log is
  /// recovered, nor where a database is read-only.
  bool has_writers = true;
};

/// All calls but Finish need the mutex of the table's state held.
class TableFrames {
 public:
  struct Memory {
    HostArena* arena = nullptr;
    PageLoader* loader = nullptr;
    Mutex* mutex = nullptr;  ///< The state's.
    /// Where a pool has no frame left, and there is nobody to wait for; may be empty.
    std::function<void(FramePool*)> make_room = nullptr;
    /// Until EndMayBeCold the cold store may have each page, though nothing says so.
    bool may_be_cold = false;
  };
  TableFrames(const Memory& memory, const TableLayout* layout);
  /// Waits for the loads under way, and lets go of all frames. Without the mutex.
  ~TableFrames();
  TableFrames(const TableFrames&) = delete;
  TableFrames& operator=(const TableFrames&) = delete;

  /// The index of the pages; both outlive this.
  void Attach(index::PageTable* pages, index::TrajectoryIndex* trajectories) {
    pages_ = pages;
    trajectories_ = trajectories;
  }
  /// Of a companion: the trajectories of its owner, whose ids users know. With the mutex.
  void UseOwner(std::shared_ptr<const index::TrajectoryIndex> trajectories) {
    owners_ = std::move(trajectories);
  }
  /// The frames that show the defaults. ResourceExhausted.
  Status MakeDefaults(Kept kept);

  // Columns that come and leave.

  /// What a group needs before its pages are there.
  struct NewGroup {
    FramePool* pool = nullptr;
    FrameRef defaults;
  };
  /// Of the groups that `layout` has and this has not. ResourceExhausted, with nothing left behind.
  Result<std::vector<NewGroup>> PrepareGroups(const TableLayout& layout, Kept kept);
  void GiveUpGroups(std::span<const NewGroup> groups);
  /// Uses `layout` from here on. Pages that are there show the defaults of the groups that come
  /// and, but for the last ones of open trajectories that have writers, of those that leave.
  void ChangeLayout(const TableLayout* layout, std::span<const NewGroup> groups, bool has_writers);
  /// The page of a group that was dropped shows its defaults from here on, if it did not.
  void ShowDefaults(size_t group, Lpn lpn);

  /// Any thread may ask, of a group of a layout that it has seen.
  FramePool* pool(size_t group) const { return pools_[group]; }
  HostArena& arena() const { return *memory_.arena; }
  PageLoader& loader() const { return *memory_.loader; }
  /// See TableState::default_frame.
  FrameRef default_frame(size_t group) const {
    return FrameRef{defaults_[group].load(std::memory_order_acquire)};
  }
  /// Nobody has written in the page in that group.
  bool ShowsDefaults(size_t group, Lpn lpn) const {
    const FrameRef defaults = default_frame(group);
    return defaults.valid() && FrameOf(group, lpn) == defaults;
  }
  /// Not valid: it was dropped.
  FrameRef FrameOf(size_t group, Lpn lpn) const { return pages_->residency(group, lpn).frame; }

  /// The frame to read a page from, or a reference to a page that `waits` has aside. The caller
  /// holds an epoch guard, or enters it before it lets go of the mutex, and waits for `waits`
  /// before it reads, where the page is among these then.
  FrameRef ToRead(size_t group, Lpn lpn, PageWaits* waits) {
    index::GroupPageRecord& record = pages_->residency(group, lpn);
    if ((record.flags & kPageUsed) == 0) record.flags |= kPageUsed;
    ++stats_.hits;
    return record.frame.valid() ? record.frame : BringIn(group, lpn, waits);
  }
  /// A page that has no frame, to be read aside, by whatever guard ToRead wants.
  FrameRef PutAside(size_t group, Lpn lpn, PageWaits* waits) const;
  /// The frame to read from while the mutex is held. A page that had no frame has one of the arena
  /// then: ResourceExhausted where none is free; Corruption, with `of_file` as of PageSource::Read;
  /// IoError.
  Result<FrameRef> ReadNow(size_t group, Lpn lpn, bool* of_file = nullptr, Kept kept = Kept::kLeft);
  /// Where the bytes of a page that has no frame are.
  PagePlace PlaceOf(size_t group, Lpn lpn) const;
  /// Likewise, for who reads it without the mutex.
  PagePlace PlaceToShow(size_t group, Lpn lpn, PageWaits* waits) const;
  /// Of the memory that a page of the group is read into aside.
  uint64_t AsideBytes(size_t group) const {
    return pools_[group]->frame_bytes() + kFrameAlignment + kArenaSpareBytes;
  }
  /// A load of a page by itself, which leaves the page as it is: into `memory`, or other memory
  /// where that is none or too small. By an epoch guard that is older than `place`; the mutex need
  /// not be held.
  std::shared_ptr<PageLoad> LoadAside(const PagePlace& place, PageMemory memory = {}) const;
  /// A load is ready: its page gets the frame, if it still is what was asked for. Takes the mutex.
  void Finish(PageLoad* load);
  /// The same, with the mutex held.
  void FinishHeld(PageLoad* load);

  /// The page gets a frame that it did not have.
  void Give(size_t group, Lpn lpn, FrameRef frame);
  /// The same; the one that it had, if that was its own, is retired.
  void Replace(size_t group, Lpn lpn, FrameRef frame);
  /// All frames of a page that is about to be unlinked are retired.
  void Retire(Lpn lpn);
  /// Frees slabs that are partly used: for recovery, when nobody reads.
  void Pack();
  /// A page keeps its frame in a group, or need not any more.
  void Hold(size_t group, Lpn lpn, bool held) {
    uint8_t& flags = pages_->residency(group, lpn).flags;
    flags = static_cast<uint8_t>(held ? flags | kPageHeld : flags & ~kPageHeld);
  }
  /// The same in all groups; nothing for kNoLpn.
  void HoldAll(Lpn lpn, bool held) {
    for (size_t g = 0; lpn != kNoLpn && g < pools_.size(); ++g) Hold(g, lpn, held);
  }

  /// Pages whose frames may go: what makes room, see Evictor.
  struct DropRequest {
    size_t group = 0;
    uint64_t frames = 0;  ///< How many.
    ReadableLog log = {};
    uint64_t looks_max = 0;  ///< At pages, at most.
  };
  struct DropOutcome {
    uint64_t dropped = 0;
    uint64_t looks = 0;
    uint64_t too_new = 0;  ///< Passed over: not readable yet.
  };
  /// Drops frames of pages that nobody asked for since the last look, round and round.
  DropOutcome Drop(const DropRequest& request);
  /// Where frames lie that are dropped together.
  enum class Lying : uint8_t {
    kAnywhere,
    kInOwnSlabs,     ///< Slabs of the pool alone come free.
    kInSharedSlabs,  ///< All that can go of the parts, however many are asked for.
  };
  /// Drops all frames of a slab or part (or of several) of which all can go; see DropRequest for
  /// `frames`: about so many.
  DropOutcome DropSlabs(const DropRequest& request, Lying lying);

  // For the cleaner. Calls that walk over pages look at some from `*next` on, which is kNoLpn after
  // the last.

  /// Adds the pages of which the log has pieces, by the segment of the first.
  void CountInLog(size_t group, uint64_t looks, uint64_t segment_bytes, Lpn* next,
                  std::map<Lsn, uint64_t>* pages) const;
  /// Adds pages by where they are.
  void CountPlaces(size_t group, uint64_t looks, Lpn* next, GroupPlaces* places) const;
  struct CollectRequest {
    size_t group = 0;
    Lsn log_start = 0;
    uint64_t looks = 0;
    uint64_t pages = 0;  ///< At most.
  };
  /// Adds the pages whose rows are not all in pieces at or beyond `log_start`, and not in the cold
  /// store. The caller holds an epoch guard.
  void CollectForCold(const CollectRequest& request, Lpn* next, std::vector<ColdWork>* work);
  /// The cold store has the page as it was collected.
  void MarkCold(const ColdWork& page);
  /// What has left since the last call.
  std::vector<GonePage> TakeGone() {
    gone_bytes_ = 0;
    return std::exchange(gone_, {});
  }
  /// Bytes of the frames, in groups that the cold store had, of what has left since then.
  uint64_t gone_bytes() const { return gone_bytes_; }
  /// Recovery is over: what comes from here on is not in the cold store.
  void EndMayBeCold();
  bool has_dropped_groups() const { return !dropped_groups_.empty(); }
  /// Groups that were dropped since the last call, of which the cold store may have pages. An image
  /// that says so came with their deletion.
  std::vector<uint32_t> TakeDroppedGroups() { return std::exchange(dropped_groups_, {}); }
  /// Pages come from an image, and have no frames: what is not in the log from `log_start` on is in
  /// the cold store.
  void ResolvePlaces(Lsn log_start);

  /// Copies the frame of defaults, where there is one, into one that nobody reads.
  void CopyDefaults(size_t group, std::byte* into) const;

  const FrameStats& stats() const { return stats_; }

 private:
  using Key = std::pair<uint32_t, Lpn>;  // Group, page.
  enum class Fate : uint8_t { kGo, kStay, kTooNew };

  FrameRef BringIn(size_t group, Lpn lpn, PageWaits* waits);
  /// The load of the page that is under way, if one is.
  std::shared_ptr<PageLoad> UnderWay(size_t group, Lpn lpn) const;
  std::shared_ptr<PageLoad> Begin(const PagePlace& place, std::optional<FrameRef> frame);
  void GiveMemory(PageLoad* load, PageMemory memory) const;
  /// The page still holds what was to be loaded.
  bool Holds(const PagePlace& place) const;
  Fate FateOf(size_t group, Lpn lpn, const ReadableLog& log) const;
  void DropFrame(size_t group, Lpn lpn);
  /// Its rows are in pieces of the log at or beyond `log_start`.
  static bool IsInLog(const index::GroupPageRecord& record, Lsn log_start);

  FramePool* NewPool(const TableLayout& layout, size_t group) const;
  /// The frame of defaults of a group that may have pages in which nobody has written.
  Result<FrameRef> NewDefaults(const TableLayout& layout, size_t group, FramePool* pool,
                               Kept kept) const;
  /// Those of a group that is dropped, in memory of the process.
  FrameRef MakeDroppedDefaults(size_t group);
  void SetDefaults(size_t group, FrameRef frame) {
    defaults_[group].store(frame.bits, std::memory_order_release);
  }
  /// It is of the arena.
  static bool IsArenaFrame(FrameRef frame) {
    return frame.valid() && frame.arena() != kProcessMemory;
  }

  const Memory memory_;
  const TableLayout* layout_;
  std::vector<FramePool*> pools_;  // By group. Its elements never move.
  std::array<std::atomic<uint64_t>, kColumnGroupNumbersMax> defaults_;  // FrameRefs, likewise.
  std::vector<Lpn> hands_;  // By group: where the last look ended.
  std::vector<std::unique_ptr<std::byte[]>> dropped_defaults_;
  index::PageTable* pages_ = nullptr;
  index::TrajectoryIndex* trajectories_ = nullptr;
  std::shared_ptr<const index::TrajectoryIndex> owners_;  // Null: it is no companion.
  std::map<Key, std::shared_ptr<PageLoad>> loading_;
  std::map<PageLoad*, std::shared_ptr<PageLoad>> unfinished_;
  std::vector<GonePage> gone_;
  uint64_t gone_bytes_ = 0;
  bool may_be_cold_ = false;
  std::vector<uint32_t> dropped_groups_;
  FrameStats stats_;
};

}  // namespace geardb::engine
