// Drain: moves published bytes from the ring to the segments, and syncs them for all who wait.
//
// Invariants (the rules are those of wal/FORMAT.md, "Writing"):
//   One drain write in flight; only published bytes are written; zeros follow them in the last
//   block (rule 5).
//   boundary() is the end of the last record that is wholly drained; ring bytes at or beyond its
//   block are kept (rule 3).
//   synced() is a boundary() that was read before an fdatasync of every segment written (rule 6).
//   Syncs overlap, take their files and end in the order in which they began: a later one relies on
//   the files that an earlier one took, and no earlier one on those of a later one.
//   The first error is kept; nothing is written after it.
//   While a sync may begin and somebody sleeps for it, one of the sleepers has been called to lead
//   it, or sleeps no longer than until it need not wait for more (wal/sync_pacing.h). Who was
//   called and is served by an earlier sync (whose target rose when it had drained), or leaves,
//   calls the next; so nobody sleeps for a sync that nobody begins.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "wal/aligned_buffer.h"
#include "wal/log_writer.h"
#include "wal/ring_file.h"
#include "wal/segment_file.h"
#include "wal/sync_pacing.h"

namespace geardb::wal {

/// Thread-safe except NoteRecordEnd.
class Drain {
 public:
  /// Everything below `start` is in the segments and synced; [AlignDown(start, 4 KiB), start) is in
  /// the ring.
  Drain(RingFile* ring, SegmentPool* pool, Lsn start);

  /// The publisher says that everything below `end`, the end of a record, is published. One thread
  /// at a time.
  void NoteRecordEnd(Lsn end);

  /// Writes published bytes to the segments: whole blocks, and with `partial` the last one too.
  Status Write(bool partial);
  /// Syncs what is drained, if that is more than what is synced.
  Status Sync();
  /// Waits until synced() >= end, draining and syncing for everybody if nobody does; who has begun
  /// that sees it through, whatever the deadline. `end` is published.
  Status WaitSynced(Lsn end, Deadline deadline);
  /// Writes up to 1 MiB of zeros ahead of the log, where the file was never written; false when
  /// there is nothing to do.
  bool ZeroAhead();

  /// Waits until boundary() > `seen`, an error, or Interrupt(); false when the deadline passed.
  bool WaitBoundary(Lsn seen, Deadline deadline);
  /// Wakes those in WaitBoundary.
  void Interrupt();

  Lsn published() const { return published_.load(std::memory_order_acquire); }
  Lsn drained() const { return drained_.load(std::memory_order_acquire); }
  Lsn boundary() const { return boundary_.load(std::memory_order_acquire); }
  Lsn synced() const { return synced_.load(std::memory_order_acquire); }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Status failure() const;
  /// Keeps `status` if it is the first error, and returns the first error.
  Status Fail(const Status& status);

  /// How many sleep until a sync is done, or may begin, and how many have begun. For tests.
  uint64_t sync_sleepers();
  uint64_t syncs_begun();

  /// Fills in what the drain counts.
  void AddStats(LogStats* stats) const;

 private:
  // Ends of records that were published and are not drained, thinned out: one for every
  // `mark_bytes_`. Written by the publisher, read by the drain.
  static constexpr uint64_t kMarks = 4096;

  Status WriteChunk(Lsn published, bool partial, bool* wrote) GEARDB_REQUIRES(write_mutex_);
  void AdvanceBoundary(Lsn published) GEARDB_REQUIRES(write_mutex_);
  /// Waits until synced() >= end, which is published, or drained if `drain_first` is false.
  Status Reach(Lsn end, bool drain_first, Deadline deadline);
  /// Begins a sync and carries it out; releases the mutex meanwhile. MayBegin() is true.
  void LeadSync(bool drain_first) GEARDB_REQUIRES(sync_mutex_);
  bool MayBegin() const GEARDB_REQUIRES(sync_mutex_);
  void WakeNextLeader() GEARDB_REQUIRES(sync_mutex_);
  /// Of one who slept for sync `slept_for` and will not lead it: calls another if it has not begun.
  void PassOnCall(uint64_t slept_for) GEARDB_REQUIRES(sync_mutex_);
  /// The sync under way that serves `end`, or the one after them.
  uint64_t SyncServing(Lsn end) const GEARDB_REQUIRES(sync_mutex_);
  /// Whether sync `number`, which may begin, is to wait for more first; not where it might then not
  /// be done by `deadline`.
  bool Gathers(uint64_t number, Deadline deadline) GEARDB_REQUIRES(sync_mutex_);
  /// Sleeps until sync `number` is done or may begin; false when the deadline passed.
  bool SleepFor(uint64_t number, Deadline deadline) GEARDB_REQUIRES(sync_mutex_);
  /// Where those sleep whom sync `number` serves, and those who may lead it; and how many.
  CondVar& Sleepers(uint64_t number) { return sleepers_[number % sleepers_.size()]; }
  uint64_t& Sleeping(uint64_t number) GEARDB_REQUIRES(sync_mutex_) {
    return sleeping_[number % sleeping_.size()];
  }
  Status SyncFiles(const std::vector<SegmentFile*>& dirty);
  Status SyncFile(SegmentFile* file);
  void NoteFsync(uint64_t us);

  RingFile* const ring_;
  SegmentPool* const pool_;
  const uint64_t mark_bytes_;

  std::atomic<Lsn> published_;
  std::atomic<Lsn> drained_;
  std::atomic<Lsn> boundary_;
  std::atomic<Lsn> synced_;

  std::unique_ptr<std::atomic<Lsn>[]> marks_;
  std::atomic<uint64_t> marks_made_{0};
  std::atomic<uint64_t> marks_used_{0};
  Lsn last_mark_;  // The publisher's.

  Mutex write_mutex_;           // Held over each drain write.
  const AlignedBuffer bounce_;  // What ends with a partial block.

  // A sync is a drain write and an fdatasync, by one of those who wait for it: its leader. It
  // serves all that was published when it began. While one is at its fdatasync the next may begin,
  // where pacing_ lets it.
  static constexpr uint64_t kSyncsMax = SyncPacing::kSyncsMax;
  Mutex sync_mutex_;  // Not held over writes and fdatasyncs.
  SyncPacing pacing_ GEARDB_GUARDED_BY(sync_mutex_);
  std::array<CondVar, kSyncsMax + 1> sleepers_;
  std::array<uint64_t, kSyncsMax + 1> sleeping_ GEARDB_GUARDED_BY(sync_mutex_) = {};
  uint64_t gatherer_of_ GEARDB_GUARDED_BY(sync_mutex_) = 0;  // Somebody sleeps until its time.
  uint64_t syncs_begun_ GEARDB_GUARDED_BY(sync_mutex_) = 0;  // The newest one's number.
  uint64_t syncs_ended_ GEARDB_GUARDED_BY(sync_mutex_) = 0;
  bool leader_drains_ GEARDB_GUARDED_BY(sync_mutex_) = false;  // The newest sync's.
  // By number: all below is durable when the sync has ended.
  std::array<Lsn, kSyncsMax + 1> targets_ GEARDB_GUARDED_BY(sync_mutex_) = {};
  // Of files with a page cache, one after the other: of two at once only one is told of an error.
  Mutex cached_sync_mutex_;

  Mutex room_mutex_;
  CondVar room_;
  std::atomic<int> room_waiters_{0};
  uint64_t interrupts_ GEARDB_GUARDED_BY(room_mutex_) = 0;

  mutable Mutex error_mutex_;
  Status first_error_ GEARDB_GUARDED_BY(error_mutex_);
  std::atomic<bool> failed_{false};

  std::atomic<uint64_t> writes_{0};
  std::atomic<uint64_t> write_bytes_{0};
  std::atomic<uint64_t> fsyncs_{0};
  std::atomic<uint64_t> fsync_max_us_{0};
  std::array<std::atomic<uint32_t>, 1024> fsync_us_{};
};

}  // namespace geardb::wal
