// An image of one table: its index as of one LSN, in chunks that do not depend on where anything
// lies in memory. What is in it is what its records have made of it, and no more: nothing that is
// reserved or under way, no frames, and nothing of volatile groups, as if the log had been replayed
// up to that LSN. What follows from the rest (lists of pages, the hash of ids, sums, free numbers,
// what is hidden) is built anew by the load (table_image_load.h).
//
// **One cut.** An image is begun with the table's mutex held: its head is made, and from there on
// whatever changes a slot, a page or an item first has the chunk copied that it is in, unless that
// was done before (index/change_watch.h). Chunk after chunk is then taken: copied under the mutex,
// made and given without. So all of them are as of the beginning, and the mutex is held for a copy
// of about 64 KiB at a time. A change of many items in a table of many chunks copies as many of
// them at once, each one once an image.
//
// Every chunk is a function of what lies in its range alone, so the order does not matter.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/internal/image_copy.h"
#include "engine/internal/image_draw_groups.h"
#include "engine/internal/image_items.h"
#include "engine/internal/table_plan.h"
#include "engine/internal/table_state.h"
#include "index/change_watch.h"

namespace geardb::engine {

/// What a plan knows that its state does not.
struct PlanNumbers {
  uint64_t next_id = 1;
  uint64_t ids_end = 1;
  uint64_t next_generation = 1;
  uint64_t generations_end = 1;

  friend bool operator==(const PlanNumbers&, const PlanNumbers&) = default;
};
/// With the commit mutex held. They are those of an image as of the log's end, and only of that:
/// whoever saves has published all that has an LSN, without releasing the commit mutex since.
PlanNumbers NumbersOf(const TablePlan& plan);

/// Copies of the chunks of one structure, made before they change. Guarded by the table's mutex.
template <typename Copy>
class KeptChunks final : public index::ChangeWatch {
 public:
  using Make = std::function<Copy(uint64_t chunk)>;
  KeptChunks(uint64_t chunks, uint64_t per_chunk, Make make)
      : per_chunk_(per_chunk), make_(std::move(make)), done_(chunks) {}

  uint64_t chunks() const { return done_.size(); }
  void BeforeChange(uint64_t begin, uint64_t end) override {
    if (begin >= end) return;
    const uint64_t last = std::min((end - 1) / per_chunk_ + 1, chunks());
    for (uint64_t chunk = begin / per_chunk_; chunk < last; ++chunk) {
      if (done_[chunk]) continue;
      done_[chunk] = true;
      kept_.emplace(chunk, make_(chunk));
    }
  }
  /// The chunk as of the beginning: the one that was kept, or one made now. Once for each.
  Copy Take(uint64_t chunk) {
    BeforeChange(chunk * per_chunk_, chunk * per_chunk_ + 1);
    return std::move(kept_.extract(chunk).mapped());
  }
  uint64_t kept() const { return kept_.size(); }

 private:
  const uint64_t per_chunk_;
  const Make make_;
  std::vector<bool> done_;
  std::map<uint64_t, Copy> kept_;
};

/// One image being taken. Used by one thread, beside others that change the table. The table has
/// one at a time, and outlives it.
class TableImage {
 public:
  /// The image is as of now, which is `lsn`.
  TableImage(TableState* state, const PlanNumbers& numbers, Lsn lsn) GEARDB_REQUIRES(state->mutex);
  /// Whatever was not taken is given up. Takes the state's mutex.
  ~TableImage();
  TableImage(const TableImage&) = delete;
  TableImage& operator=(const TableImage&) = delete;

  bool done() const { return next_ == chunks_; }
  /// Gives the next chunk to `sink`; the head first. Takes the state's mutex for a copy of it.
  /// ResourceExhausted, once in 2^31 items of a heap: their places in the order were numbered anew
  /// meanwhile, and this image cannot be finished.
  Status GiveNext(const ImageSink& sink) GEARDB_EXCLUDES(state_->mutex);
  /// Chunks that were copied before they changed, and are not given yet.
  uint64_t kept() const GEARDB_REQUIRES(state_->mutex);

 private:
  struct Items {
    ItemsShape shape;
    ItemsImage image;
    std::unique_ptr<KeptChunks<ItemsCopy>> chunks;
    uint64_t next_sequence = 0;
  };
  struct Groups {
    GroupsImage image;
    std::unique_ptr<KeptChunks<GroupsCopy>> chunks;
  };
  Status GiveGroups(uint64_t number, const ImageSink& sink) GEARDB_EXCLUDES(state_->mutex);
  Status GiveItems(uint64_t number, const ImageSink& sink) GEARDB_EXCLUDES(state_->mutex);

  TableState* const state_;
  const TableLayout* const layout_;  // Of the beginning: columns that come or leave change nothing.
  const Lsn lsn_;
  ChunkWriter head_;
  std::unique_ptr<KeptChunks<TrajectoriesCopy>> trajectories_;
  std::unique_ptr<KeptChunks<PagesCopy>> pages_;
  std::vector<Items> items_;
  std::vector<Groups> groups_;  // Of the priority tables that draw groups.
  uint64_t chunks_ = 1;
  uint64_t next_ = 0;
};

/// Gives all chunks to `sink`, the head first; ends with the first status of its that is no OK.
/// The same state gives the same bytes.
Status SaveTable(TableState* state, const PlanNumbers& numbers, Lsn lsn, const ImageSink& sink)
    GEARDB_EXCLUDES(state->mutex);

}  // namespace geardb::engine
