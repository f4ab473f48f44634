// Filler: fills and publishes the records of large appends at `memory` ack behind their calls.
//
// Such a call has its place in the order of the log and its rows in frames; nothing that can fail
// is left, so the copy into the ring, its checksums and the change of the index need not be waited
// for.
//
// Invariants:
//   Whatever lets go of a job's frames (a removal, a trim, a dropped table) has a later LSN, so it
//   is applied after the job's record is published: the log's order keeps the frames. A job needs
//   neither the commit mutex nor room in the log: whoever waits for its publication may hold the
//   one and lack the other. The ring bounds what waits here.
#pragma once

#include <deque>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "wal/log_writer.h"

namespace geardb::engine {

class Change;

/// A reserved record.
struct FillJob {
  wal::Reservation reservation;
  std::vector<std::span<const std::byte>> runs;  ///< What `pieces` point into.
  std::vector<wal::PieceSource> pieces;
  Change* change = nullptr;  ///< Its body is the record's; deletes itself when it is applied.
};

/// Add and FillBelow: any thread.
class Filler {
 public:
  explicit Filler(wal::LogWriter* log);
  /// Fills what is left first.
  ~Filler();

  /// Is copying pieces of so many bytes together more work than handing it over?
  bool Worthwhile(uint64_t piece_bytes) const { return piece_bytes >= worthwhile_bytes_; }
  /// The first call starts the thread.
  void Add(FillJob job);
  /// Fills in this thread, instead of waiting for the other, the jobs before `end` that nobody has
  /// begun.
  void FillBelow(Lsn end);

 private:
  void Run();
  void Fill(const FillJob& job);

  wal::LogWriter* const log_;
  const uint64_t worthwhile_bytes_;
  Mutex mutex_;
  CondVar added_;
  std::deque<FillJob> jobs_ GEARDB_GUARDED_BY(mutex_);
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  bool started_ GEARDB_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace geardb::engine
