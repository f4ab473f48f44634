// LogWriter::Core: what stands behind a LogWriter.
//
// Invariants:
//   next_ is changed under reserve_mutex_ only. Between a HasRoom that said yes and the Reserve
//   that follows, nothing but one seal can take an LSN, and HasRoom left room for it.
//   Lock order: reserve_mutex_ before the pool's; the background's and the spares' mutex are taken
//   with no other held.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "wal/drain.h"
#include "wal/log_writer.h"
#include "wal/manifest.h"
#include "wal/publish_queue.h"
#include "wal/ring_file.h"
#include "wal/segment_file.h"
#include "wal/writer_thread.h"

namespace geardb::wal {

/// What a writer is made of: the opened files, and where the log ends.
struct WriterParts {
  std::unique_ptr<RingFile> ring;
  std::unique_ptr<SegmentPool> pool;
  Manifest manifest;
  LogOptions options;
  Lsn end = 0;                                     ///< Everything below is drained and synced.
  bool sealed = false;                             ///< The last record is a seal.
  std::unique_ptr<WriterThread> thread = nullptr;  ///< Where the options ask for it.
};

/// See LogWriter for the contracts.
class LogWriter::Core final : private PublishObserver {
 public:
  /// A writer, whose background work the thread begins now.
  static std::unique_ptr<LogWriter> Make(WriterParts parts);

  explicit Core(WriterParts parts);
  ~Core();

  uint64_t record_bytes_max() const { return record_bytes_max_; }
  bool HasRoom(std::span<const RecordSize> sizes, Urgency urgency);
  Status WaitForRoom(std::span<const RecordSize> sizes, Urgency urgency, Deadline deadline);
  Status PrepareFor(std::span<const RecordSize> sizes, Urgency urgency);
  uint64_t SegmentsFor(std::span<const RecordSize> sizes) const { return PlaceAll(sizes).segments; }
  uint64_t BytesToBound(Urgency urgency) const;
  Reservation Reserve(const RecordRequest& request);
  void Fill(const Reservation& reservation, const RecordContent& content);
  void Publish(const Reservation& reservation, PublishCallback* callback);
  Status WaitPublished(Lsn end, Deadline deadline);
  Status WaitSynced(Lsn end, Deadline deadline);
  Lsn end() const { return next_.load(std::memory_order_acquire); }
  Lsn published() const { return queue_.published(); }
  const Drain& drain() const { return drain_; }
  void ReleaseBelow(Lsn flushed, std::string_view pinned_by);
  Status failure() const { return drain_.failure(); }
  LogStats Stats() const;
  Status Close();
  Status DrainOnce() { return drain_.Write(/*partial=*/true); }
  Status DrainBlocksOnce() { return drain_.Write(/*partial=*/false); }
  Status SyncOnce() { return drain_.Sync(); }
  Status SealOnce() { return Seal(/*begins_segment=*/false); }
  Status PrepareSpares();
  bool GiveUpSpares();
  void RestoreSpares();
  bool LacksRoomForSpares() const {
    return no_room_for_spares_.load(std::memory_order_relaxed) && LacksSpares();
  }

 private:
  // Why a record cannot be reserved now.
  enum class Obstacle : uint8_t { kNone, kRing, kSpareFile, kLogBound, kSlots };
  // Where a record goes.
  struct Place {
    uint64_t pad_bytes = 0;
    bool new_segment = false;
    Lsn lsn = 0;
    Lsn end = 0;
  };
  // What records take, one after the other.
  struct Extent {
    Lsn end = 0;
    uint64_t segments = 0;  // That they begin.
  };

  void OnAdvance(Lsn published) override;
  Status Seal(bool begins_segment);
  Place PlaceAt(Lsn at, uint64_t bytes) const;
  // From here, at most: a seal may come before each of them, but not after another seal.
  Extent PlaceAll(std::span<const RecordSize> sizes) const;
  // Of the bound and the files alone.
  Obstacle FindObstacle(uint64_t segments, Urgency urgency) const;
  Obstacle FindObstacle(std::span<const RecordSize> sizes, Urgency urgency) const;
  Status CheckSizes(std::span<const RecordSize> sizes) const;
  uint64_t SparesKept(uint64_t segments, Urgency urgency) const;
  Status MakeFiles(uint64_t segments, Urgency urgency);
  Status MakeSpares(uint64_t files);
  /// Has so many of the files that are taken next open.
  Status WakeSpares(uint64_t files);
  void RemoveSpares(uint64_t left);
  /// Spare files that the bound leaves no use for, as where it was larger before this open.
  void RemoveSurplus();
  /// Free files there should be.
  uint64_t SparesWanted() const;
  bool LacksSpares() const { return pool_->free_count() < SparesWanted(); }
  /// Of them, those that the background opens before somebody needs them.
  uint64_t ReadyWanted() const;
  Status WaitForRing(std::span<const RecordSize> sizes, Lsn boundary_seen, Deadline deadline);
  uint64_t SegmentsMax(Urgency urgency) const;
  std::string UsageText() const;
  Status BoundReached(Urgency urgency) const;
  Reservation ReserveLocked(const RecordRequest& request, uint64_t bytes)
      GEARDB_REQUIRES(reserve_mutex_);
  RecordHeader HeaderFor(RecordType type, Lsn lsn, uint64_t bytes) const;
  void Commit(Lsn lsn, uint64_t bytes);
  uint64_t CopyPieces(const Reservation& reservation, const RecordContent& content);
  Status UsableOrError() const;
  std::string PinnedBy() const;

  // The background thread.
  void Run();
  bool Work();
  void Wake();
  void StopThread();

  const std::unique_ptr<RingFile> ring_;
  const std::unique_ptr<SegmentPool> pool_;
  const Manifest manifest_;
  const LogOptions options_;
  const uint64_t seed_;
  const uint64_t segment_bytes_;
  const uint64_t record_bytes_max_;
  const uint64_t spare_target_;  // Free files kept after an append took what it needs.
  std::atomic<bool> no_room_for_spares_{false};  // The last one that was to be made.
  std::atomic<uint64_t> spares_given_up_{0};     // Of one more than these; see GiveUpSpares.
  const uint64_t segments_max_;                  // Live ones: log_bytes_max.
  const uint64_t reserve_segments_;              // Beyond it, for Urgency::kReserve.

  Drain drain_;
  PublishQueue queue_;

  Mutex reserve_mutex_;
  std::atomic<Lsn> next_;
  std::atomic<uint64_t> next_ticket_{0};
  std::atomic<Lsn> seal_end_;  // Of the last seal: the log ends with it where next_ is the same.
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> seals_{0};
  std::atomic<uint64_t> room_waits_{0};
  const Lsn start_;

  mutable Mutex pin_mutex_;
  std::string pinned_by_ GEARDB_GUARDED_BY(pin_mutex_) = "nothing releases segments of the log yet";
  Mutex spare_mutex_;  // Held while files are made.

  std::atomic<bool> closed_{false};
  Mutex close_mutex_;
  bool close_done_ GEARDB_GUARDED_BY(close_mutex_) = false;
  Status close_status_ GEARDB_GUARDED_BY(close_mutex_);

  // The background thread waits for `wake_`, unless there is work.
  Mutex work_mutex_;
  CondVar work_;
  bool stop_ GEARDB_GUARDED_BY(work_mutex_) = false;
  std::atomic<bool> wake_{false};
  std::atomic<bool> asleep_{false};  // Sleeps without a time limit: nothing is left to do.
  std::chrono::steady_clock::time_point last_drain_{}, last_sync_{}, last_append_{}, last_spare_{};
  Lsn seen_end_ = 0;
  std::unique_ptr<WriterThread> thread_;
};

}  // namespace geardb::wal
