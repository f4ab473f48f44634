// Evictor: which pages lose their frames when somebody needs some. A pool first gives up frames of
// its own; where it has little of the budget, the pools that have most give up whole slabs, and
// parts of shared ones. One that has given up as many frames as it has looks at the other tables
// first: those of which nearly nothing is read in the meantime give up slabs in its place. For
// frames that need slabs, where none can be had, all parts go that can.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "engine/internal/table_frames.h"

namespace geardb::engine {

class DatabaseCore;
class TableState;

/// Thread-safe.
class Evictor {
 public:
  explicit Evictor(DatabaseCore* database) : database_(database) {}

  /// Drops pages until the pool can have about so many frames: now, or once those who read what was
  /// dropped have left. Returns how many were dropped, of any pool. No table's mutex is held but
  /// that of `held`.
  uint64_t MakeRoom(FramePool* pool, uint64_t frames, TableState* held = nullptr);
  /// Drops all that may go. No table's mutex is held but that of `held`.
  void DropAll(const TableState* held);
  /// Of the pages that were to be read, how many frames they want of each pool.
  using Wanted = std::map<FramePool*, uint64_t>;
  static Wanted FramesOf(const PageWaits& waits);
  /// Room for so many times as many pages, but for no more at once than a quarter of what each pool
  /// has.
  void MakeRoomFor(const Wanted& wanted, uint64_t times);
  /// Whether they can be had now.
  bool HasRoomFor(const Wanted& wanted) const;

 private:
  struct Owner {
    TableState* state = nullptr;
    size_t group = 0;
    FramePool* pool = nullptr;
    uint64_t bytes = 0;  // Of slabs and of parts of shared ones.
  };
  struct Need {
    FramePool* pool = nullptr;
    uint64_t frames = 0;
    TableState* held = nullptr;
  };

  /// Drops frames of the pool itself.
  uint64_t DropOwn(const Owner& owner, const Need& need, bool* too_new);
  /// Drops slabs or parts of another.
  uint64_t DropOther(const Owner& owner, const Need& need, TableFrames::Lying lying, bool* too_new);
  /// Drops slabs or parts of a table that is hardly read, once in a turn of the pool's frames.
  uint64_t DropIdle(std::span<const Owner> owners, const Owner& own, const Need& need,
                    bool* too_new) GEARDB_REQUIRES(mutex_);
  uint64_t DropOnce(const Need& need, bool* too_new) GEARDB_REQUIRES(mutex_);

  DatabaseCore* const database_;
  Mutex mutex_;  // One at a time; taken before those of tables.
  /// What a pool has given up since it looked at the tables, and their reads of pages by then.
  struct Turn {
    uint64_t dropped = 0;
    std::map<const TableState*, uint64_t> reads = {};
  };
  std::map<const FramePool*, Turn> turns_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
