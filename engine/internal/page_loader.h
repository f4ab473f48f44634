// PageLoader: brings pages without a frame in, by threads that read them, for whoever waits.
//
// A page is asked for under its table's mutex, where it gets a frame to be read into, and waited
// for without it. So what a draw shows is settled when it draws, whatever happens to the page
// meanwhile; the epoch guard of whoever asked keeps the frame, and what the page is read from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/large_memory.h"
#include "base/mutex.h"
#include "base/page_view.h"
#include "engine/internal/arena.h"
#include "engine/internal/page_source.h"
#include "engine/internal/wait_count.h"

namespace geardb::engine {

class TableFrames;

/// Frees memory for a page, and takes it from the count of such bytes, if there is one.
struct FreePageMemory {
  std::shared_ptr<std::atomic<uint64_t>> count = nullptr;
  uint64_t bytes = 0;
  void operator()(std::byte* memory) const {
    GiveMemoryBack(memory, bytes);
    if (count != nullptr) count->fetch_sub(bytes, std::memory_order_relaxed);
  }
};
/// Memory for a page beside the frames.
using PageMemory = std::unique_ptr<std::byte[], FreePageMemory>;

inline PageMemory NewPageMemory(uint64_t bytes,
                                std::shared_ptr<std::atomic<uint64_t>> count = nullptr) {
  std::byte* const memory = TakeMemory(bytes);
  GEARDB_CHECK(memory != nullptr);
  if (count != nullptr) count->fetch_add(bytes, std::memory_order_relaxed);
  return PageMemory(memory, {std::move(count), bytes});
}

/// A page that found no frame: AsideReader reads it, when its rows are copied.
struct AsidePage {
  const TableFrames* frames = nullptr;
  PagePlace place;
};

/// A reference to a byte of page `number` of those that a PageWaits has aside.
inline constexpr int kAsideOffsetBits = 30;
/// Of a page in a group whose pages may lose their frames.
inline constexpr uint64_t kPageBytesMax = uint64_t{1} << kAsideOffsetBits;
inline FrameRef MakeAside(uint64_t number) {
  GEARDB_CHECK(number >> (56 - kAsideOffsetBits) == 0);
  return FrameRef::Make(kAside, number << kAsideOffsetBits);
}
inline bool IsAside(FrameRef frame) { return frame.arena() == kAside; }
inline uint64_t AsideNumber(FrameRef frame) { return frame.offset() >> kAsideOffsetBits; }
inline uint64_t AsideOffset(FrameRef frame) {
  return frame.offset() & ((uint64_t{1} << kAsideOffsetBits) - 1);
}

/// A page on its way into a frame.
struct PageLoad {
  PagePlace place;
  FrameRef frame;             ///< Of an arena, or of `memory`.
  std::byte* into = nullptr;  ///< Its bytes.
  PageMemory memory = {};     ///< Where no arena had a frame.

  TableFrames* owner = nullptr;  ///< Whom to tell; null: nobody.

  // The loader's, by its mutex; `status` is whoever's that has waited, once the load is ready.
  enum class State : uint8_t { kQueued, kReading, kReady };
  State state = State::kQueued;
  Status status;
  bool of_file = false;  ///< As PageSource::Read says of `status`.
};

/// Thread-safe.
class PageLoader {
 public:
  /// Of so many threads, begun with the first load; with none, whoever begins one reads. Beside the
  /// frames it has `beside_max` bytes, and what each call needs for one page.
  PageLoader(PageSource* source, uint32_t threads, uint64_t beside_max)
      : source_(source), threads_max_(threads), beside_max_(beside_max) {}
  /// Nobody waits any more. Reads what is queued.
  ~PageLoader();

  /// By a thread; where there is none, it is ready when this returns.
  void Begin(std::shared_ptr<PageLoad> load);
  /// Until the bytes are there, or the reason why not is; reads them in this thread where nobody
  /// else has begun to.
  void Wait(PageLoad* load);
  /// Until no thread has anything to do with loads of this owner, which all were begun or waited
  /// for: it may go then.
  void AwaitIdle(const TableFrames* owner);

  /// Nobody has to wait for it.
  bool IsReady(const PageLoad& load);

  /// Until something has changed about the loads that are under way, or the deadline. False: none
  /// is. No table's mutex is held.
  bool AwaitOne(Deadline deadline);
  /// Counts loads that threads have ended: their pages can lose their frames again.
  uint64_t ended() const { return ended_.load(); }

  PageMemory NewMemory(uint64_t bytes) {
    PageMemory memory = NewPageMemory(bytes, beside_);
    const uint64_t now = beside_bytes();
    uint64_t most = beside_most_.load(std::memory_order_relaxed);
    while (most < now && !beside_most_.compare_exchange_weak(most, now)) {
    }
    return memory;
  }
  /// Whether more pages may be read ahead into so many bytes.
  bool HasRoomBeside(uint64_t bytes) const { return beside_bytes() + bytes <= beside_max_; }
  /// Bytes of what NewMemory gave that is still there; the most that there ever were.
  uint64_t beside_bytes() const { return beside_->load(std::memory_order_relaxed); }
  uint64_t beside_most() const { return beside_most_.load(std::memory_order_relaxed); }

  PageSource& source() const { return *source_; }
  /// Of memory that threads keep between reads.
  uint64_t kept_bytes() const { return kept_bytes_.load(std::memory_order_relaxed); }
  /// Calls of Wait for what was not there yet.
  const WaitCounter& waits() const { return waits_; }

 private:
  void Run();
  void ReadOne(std::shared_ptr<PageLoad> load, wal::AlignedBuffer* scratch);
  void FinishOne(PageLoad* load);
  /// Whether there is a load to be finished: by one thread at a time. It may have to wait for the
  /// mutex of the load's table, whose holder may wait for pages that the others read.
  bool MayFinish() const GEARDB_REQUIRES(mutex_);
  void StartThreads() GEARDB_REQUIRES(mutex_);
  /// Whether the load is the caller's to read.
  bool Take(PageLoad* load) GEARDB_REQUIRES(mutex_);
  void Done(const TableFrames* owner);
  void Read(PageLoad* load, wal::AlignedBuffer* scratch);

  PageSource* const source_;
  const uint32_t threads_max_;
  const uint64_t beside_max_;
  std::atomic<uint64_t> beside_most_{0};
  // Who holds a load may outlive the loader.
  const std::shared_ptr<std::atomic<uint64_t>> beside_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::atomic<uint64_t> kept_bytes_{0};
  WaitCounter waits_;
  std::atomic<uint64_t> ended_{0};
  Mutex mutex_;
  CondVar queued_;
  CondVar ready_;
  std::deque<std::shared_ptr<PageLoad>> queue_ GEARDB_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<PageLoad>> read_ GEARDB_GUARDED_BY(mutex_);  // To be finished.
  bool finishing_ GEARDB_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ GEARDB_GUARDED_BY(mutex_);
  std::map<const TableFrames*, int> working_ GEARDB_GUARDED_BY(mutex_);  // Threads, by owner.
  uint64_t reading_ GEARDB_GUARDED_BY(mutex_) = 0;                       // By whomever.
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
};

/// Pages that somebody waits for. Their frames are good while it holds them.
class PageWaits {
 public:
  bool empty() const { return size() == 0; }
  size_t size() const { return loads_.size() + aside_.size(); }
  void Add(PageLoader* loader, std::shared_ptr<PageLoad> load) {
    loader_ = loader;
    loads_.push_back(std::move(load));
  }
  /// A page for which there is no frame, of `frames`. Its bytes are there for who copies rows by
  /// this reference (GatherRows, AsideReader), and for nobody else.
  FrameRef AddAside(const TableFrames* frames, const PagePlace& place);
  /// Of a page that was added.
  std::optional<FrameRef> FindAside(const TableFrames* frames, uint32_t group, Lpn lpn) const;
  const std::vector<AsidePage>& aside() const { return aside_; }
  /// One of these could not be read.
  void KeepFailed(std::shared_ptr<PageLoad> load) { failed_aside_ = std::move(load); }

  /// The cold store as it is when this is first called after a Clear, by the mutex of a table whose
  /// pages it has; null: there is none.
  std::shared_ptr<const ColdSnapshot> ColdNow(const PageLoader& loader) {
    if (as_of_ == nullptr) as_of_ = loader.source().ColdNow();
    return as_of_;
  }
  /// Until all are there that have frames. The first error, in the order in which they were asked
  /// for. No table's mutex is held.
  Status Wait();
  /// The same, while the mutexes of their tables are held.
  Status WaitHeld();
  void Clear() {
    loads_.clear();
    aside_.clear();
    aside_numbers_.clear();
    failed_aside_ = nullptr;
    as_of_ = nullptr;
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& load : loads_) visit(*load);
  }
  /// The first of those that are ready that could not be read; null: all could.
  const PageLoad* failed() const;
  /// All of these.
  std::vector<const PageLoad*> all_failed() const;

 private:
  void WaitForAll();
  Status StatusOfAll() const;

  PageLoader* loader_ = nullptr;
  std::vector<std::shared_ptr<PageLoad>> loads_;
  std::vector<AsidePage> aside_;
  std::map<std::tuple<const TableFrames*, uint32_t, Lpn>, uint64_t> aside_numbers_;
  std::shared_ptr<PageLoad> failed_aside_;
  std::shared_ptr<const ColdSnapshot> as_of_;
};

}  // namespace geardb::engine
