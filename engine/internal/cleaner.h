// Cleaner: moves what still lives in the oldest segments of the log to the cold store, so that they
// can be written again. It waits for nobody who appends; who finds the log full waits for it.
//
// A pass, which one thread makes:
//   1. chooses the log's new start: segments in which no page lives go first
//   2. puts the pages that need it into the cold store: those whose rows are not all in pieces at
//      or beyond the new start, as they are by then
//   3. takes the image of the index as of the log's end X, and puts those pages again that have
//      changed since
//   4. once all who may read what has left the tables by then have left, makes the image the
//      current one, in one batch with its removal, and flushes
//   5. once all who may read from the old segments have left, lets the log recycle them
// A pass for removals is the same, but leaves the log's start where it is: nothing is moved, and
// what has left the tables leaves the disk. One is made where the log does not grow, so that no
// other pass comes; and on a full disk, where enough was removed to make room, before the pass that
// it has stopped is tried again: it, and the compaction behind it, may use the cold store's
// reserve. Until that is whole again no page is moved, since the next removal will need it: a pass
// gives back the segments in which nothing lives, and no others. Where the cold store needs a
// compaction to keep within its space, the compactor makes it beside the passes that follow. A
// crash before 4 leaves the image of before, whose log is all there. Pages in the store are of
// their time or newer: what they hold beyond the image, the log says again.
//
// Nothing is put there before the log is synced up to it: a page never says what a recovery after a
// power loss does not know.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/internal/cold_tier.h"
#include "engine/internal/compactor.h"
#include "engine/internal/table_frames.h"
#include "engine/stats.h"

namespace geardb::engine {

class CleanReads;
class DatabaseCore;
class TableState;
struct TableCore;

using geardb::CleanerStats;

/// Thread-safe.
class Cleaner {
 public:
  Cleaner(DatabaseCore* database, ColdTier* cold);
  ~Cleaner() { Stop(); }
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;

  /// The log's end has moved: begins a pass, where so much of it lives that one is due.
  void Note(Lsn end) {
    if (end >= due_at_.load(std::memory_order_relaxed)) Wake();
  }
  /// Until a pass has given segments back, or one that begins from now on, and makes room for so
  /// many bytes where it can, has ended. True: some were. The commit mutex is not held, nor an
  /// epoch guard.
  bool WaitForPass(uint64_t bytes, Deadline deadline);
  /// A change was refused that takes so many bytes of whole segments: the next pass makes room for
  /// it, where it can. Waits for nothing.
  void Want(uint64_t bytes);
  /// The same for a change that does not wait. Where there is no thread that makes passes, or they
  /// are fruitless, nothing comes of it.
  void WantBeside(uint64_t bytes);
  /// Whether such a pass has not ended yet, or segments were given back beyond the first
  /// `released`.
  bool Wanted(uint64_t released);
  /// The last pass has given nothing back, and nothing was logged since: another will not either.
  bool IsFruitless();
  /// What held the log back has gone, by no record.
  void ForgetFruitless() {
    MutexLock lock(&mutex_);
    fruitless_at_ = kNoLsn;
    held_back_ = false;
  }
  /// Likewise, and waits until it has. True: some were given back.
  bool AwaitWanted(uint64_t released, Deadline deadline);
  /// A pass in this thread, of as many segments as can go where `all`.
  Status CleanNow(bool all);
  /// Ends the thread, and the compactor's.
  void Stop();
  /// Stop was called, the first that Close does: no pass makes room any more.
  bool stopped() {
    MutexLock lock(&mutex_);
    return stop_;
  }
  CleanerStats stats();
  /// CleanerStats::segments, for whoever asks often.
  uint64_t segments_released() const { return segments_released_.load(std::memory_order_relaxed); }
  Compactor& compactor() { return compactor_; }

 private:
  /// What a pass is for.
  enum class Aim : uint8_t { kMargin, kOneSegment, kOneByReserve, kAllSegments, kRemovals };
  struct Choice {
    Lsn start = 0;
    uint64_t segments = 0;    // That go.
    uint64_t live_bytes = 0;  // Of pages in them, which are to be moved.
    Lsn dead_start = 0;       // Before it no page lives.
    uint64_t dead_segments = 0;

    /// Without those in which pages live. Whether any are left.
    bool KeepToDead() {
      *this = {.start = dead_start, .segments = dead_segments};
      return segments > 0;
    }
  };
  /// What has left the tables, but not the cold store.
  struct Gone {
    bool any = false;
    bool tables = false;  // Some were dropped, or groups of some.
    uint64_t bytes = 0;   // Of frames; not of what was dropped.

    void Add(const Gone& more) {
      any |= more.any;
      tables |= more.tables;
      bytes += more.bytes;
    }
  };

  /// Until a pass has given segments back beyond the first `released`, or that pass has ended.
  bool AwaitPass(uint64_t pass, uint64_t released, Deadline deadline);
  void WantLocked(uint64_t bytes) GEARDB_REQUIRES(mutex_);
  /// False: there is no thread that could make a pass, nor can be one.
  bool Wake();
  Status StartLocked() GEARDB_REQUIRES(mutex_);
  void Run();
  /// After a full disk: whoever waits for room would have it tried again at once, for ever.
  void Pause();
  Gone CountGone() GEARDB_REQUIRES(pass_mutex_);
  /// The same, without what is in `removing_`.
  Gone CountNewlyGone() GEARDB_REQUIRES(pass_mutex_);
  /// Whether enough has left to make room on a full disk.
  bool RemovalMakesRoom() GEARDB_REQUIRES(pass_mutex_);
  /// After a pass that a full disk has stopped: removes what has left the tables, and compacts. OK
  /// where it may be tried again.
  Status MakeRoom(uint64_t* released) GEARDB_REQUIRES(pass_mutex_);
  /// Whether the log has used up what it keeps for removals.
  bool LogTakesNoRemovals() const;
  /// Then nothing would ever make room: the reserve goes to the pages of a segment.
  Status MakeRoomForRemovals(uint64_t* released) GEARDB_REQUIRES(pass_mutex_);
  /// A pass for removals, where there is more to remove than the bound on the store's space allows
  /// for, or something has been for long. Once, where nothing is to be removed, the compaction that
  /// an earlier process has not ended.
  void RemoveIfDue();
  /// When the next pass is due: not before the log's end is at `from`.
  void SetDue(Lsn from);
  uint64_t SegmentsMax() const;
  /// How many are to be free when a pass begins: what is appended during one fits, and half of it
  /// more.
  uint64_t MarginSegments() const;
  Status Pass(Aim aim, uint64_t* released) GEARDB_REQUIRES(pass_mutex_);
  Choice ChooseStart(Aim aim) GEARDB_REQUIRES(pass_mutex_);
  Status PutPages(Lsn log_start);
  Status PutPagesOf(const std::shared_ptr<TableCore>& table, Lsn log_start);
  /// `read` has begun these; `guard` keeps the frames of those that have some.
  Status PutSome(const std::shared_ptr<TableCore>& table, std::vector<ColdWork>* work,
                 CleanReads* read, EpochRegistry::Guard guard);
  /// An image that becomes current.
  struct TakenImage {
    ImageHead head;
    NextImage image;
  };
  /// Step 3.
  Result<TakenImage> TakeImage(Lsn log_start) GEARDB_REQUIRES(pass_mutex_);
  /// Of the pages that have left a table, in the cold store.
  Status DeleteGone(TableState* state, ColdBatch* batch);
  /// Cancelled: the database is being closed.
  Status AwaitReaders();
  Status WriteBatch(ColdBatch* batch);

  DatabaseCore* const database_;
  ColdTier* const cold_;
  Compactor compactor_;
  std::atomic<Lsn> due_at_{kNoLsn};
  /// Bytes of the log that were appended during a pass, the most of late.
  std::atomic<uint64_t> appended_ = 0;
  std::atomic<uint64_t> segments_released_ = 0;  // As in `stats_`.

  Mutex pass_mutex_;  // One pass at a time.
  /// What has left the tables, kept until the cold store has it: a pass that fails leaves it to the
  /// next.
  std::unique_ptr<ColdBatch> last_ GEARDB_GUARDED_BY(pass_mutex_);
  /// What `last_` removes, or has removed and is not flushed yet.
  Gone removing_ GEARDB_GUARDED_BY(pass_mutex_);
  int64_t gone_since_us_ GEARDB_GUARDED_BY(pass_mutex_) = 0;  // 0: nothing was at the last look.
  // In a row, at which the cold store needed a compaction.
  uint32_t space_looks_ GEARDB_GUARDED_BY(pass_mutex_) = 0;

  Mutex mutex_;
  CondVar changed_;
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  bool wanted_ GEARDB_GUARDED_BY(mutex_) = false;
  uint64_t bytes_wanted_ GEARDB_GUARDED_BY(mutex_) = 0;          // By who waits for the next pass.
  uint64_t segments_wanted_ GEARDB_GUARDED_BY(pass_mutex_) = 0;  // By who waits for this one.
  uint64_t begun_ GEARDB_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ GEARDB_GUARDED_BY(mutex_) = 0;
  uint64_t wanted_pass_ GEARDB_GUARDED_BY(mutex_) = 0;   // The last that somebody has wanted.
  Lsn fruitless_at_ GEARDB_GUARDED_BY(mutex_) = kNoLsn;  // What such a pass has looked at.
  bool held_back_ GEARDB_GUARDED_BY(mutex_) = true;      // Since a pass began: see ForgetFruitless.
  CleanerStats stats_ GEARDB_GUARDED_BY(mutex_);
  std::thread thread_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
