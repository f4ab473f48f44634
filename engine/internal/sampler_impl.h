// Sampler::Impl: draws batches in the order of Next, some ahead, and hands them over.
//
// A batch is drawn under the mutexes of its tables by the thread that calls Next: that is its place
// in the apply sequence. Its bytes are copied afterwards, by a thread of the sampler's when batches
// are drawn ahead. The hand-over is one log record, with an operation for each part.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "engine/internal/batch_build.h"
#include "engine/internal/change_signal.h"
#include "engine/internal/core.h"
#include "engine/internal/evictor.h"
#include "engine/internal/part_draw.h"

namespace geardb {

class Sampler::Impl {
 public:
  Impl(std::vector<engine::SamplerSource> sources, const SamplerOptions& options);
  ~Impl();
  /// Called once, before anything else, so that NewSampler can fail.
  Status StartGatherer();

  Result<std::unique_ptr<Batch::Rep>> Next(Deadline deadline);
  /// Gives back what the batches drawn ahead have reserved: they will never be handed over.
  void CancelDraws();
  void set_beta(double beta) { options_.beta = beta; }
  const SamplerOptions& options() const { return options_; }
  bool forked() const { return database()->owner.forked(); }
  const PriorityTableSpec& spec() const { return sources_[0].priority_table->spec; }

 private:
  /// A batch that was drawn. `builder` and `guard` belong to whoever gathers until `gathered`. Once
  /// it was handed over, another one takes what it has but for `rep`.
  struct Drawn {
    std::unique_ptr<Batch::Rep> rep;
    std::unique_ptr<engine::BatchBuilder> builder;
    EpochRegistry::Guard guard;
    std::vector<engine::PartRows> parts;  ///< Reservations: guarded by their tables' mutexes.
    bool gathered = false;
    Status status = {};  ///< Once gathered: whether its pages could be read.
  };

  engine::DatabaseCore* database() const { return sources_[0].priority_table->database.get(); }
  /// Cancelled: closed, or a table was dropped.
  Status CheckTables() const;
  /// In the order of their ids, each once.
  std::vector<engine::TableState*> TablesInOrder() const;

  /// Before another batch is drawn: until it finds frames, or all before it are gathered.
  void AwaitPages();
  /// Draws the next batch; none, where it met what RemoveIfDamaged passes over. DeadlineExceeded
  /// where there is not enough for one, OutOfRange at the end of an epoch. ResourceExhausted where
  /// the batch budget has no room for it, even without the buffers of released batches.
  Status TryDraw();
  Status TryDrawOnce();
  // With the mutexes of all tables: DrawLocked and what it calls.
  Status DrawLocked(Drawn* batch);
  /// The draw has its numbers: the next has others.
  void TakeNumbers();
  Status DrawParts(Drawn* batch);
  /// How many rows each part has of a batch.
  Status ShareRows(std::vector<uint64_t>* rows) const;
  void DivideRows(uint64_t rows, std::vector<uint64_t>* shares) const;
  /// Rows of the next batch of the only part; of an epoch what is left, down to 0.
  uint64_t RowsNext() const;
  /// Forgets the carried item if it is gone, or the next hand-over cannot have it.
  void CheckCarried();
  Status BuildBatch(Drawn* batch);
  void WeighBatch(Drawn* batch) const;
  void WeighByLogarithms(Drawn* batch) const;
  void CollectSampled(Drawn* batch, size_t part, size_t begin, size_t end);
  /// What the record of the hand-over will say of a part, whose rows begin there in the batch.
  void AuditPart(Drawn* batch, size_t part, size_t begin) const;
  /// InvalidArgument for a batch whose hand-over, which names its items, is too large for the log.
  Status CheckHandOverFits() const;
  engine::DrawKey KeyOf(size_t part) const;
  void CancelParts(Drawn* batch);

  // Of an epoch; engine/internal/sampler_epoch.cc.

  /// With the table's mutex: the pass ends without what is left, once somebody says so.
  bool RestIsLeftOut() const;
  /// Says so where it does; whether it did.
  Result<bool> LeaveOutRest(Deadline deadline);

  /// Until so many batches are drawn as are to be, or at least one is and no other can be now.
  Status DrawUpToDepth(Deadline deadline);
  /// The front batch, once it is drawn and gathered.
  Result<Drawn*> NextGathered(Deadline deadline);
  /// How many rows it takes of a part that there have to be at once. With the tables' mutexes.
  uint64_t RowsAtOnce() const;
  /// Until something has changed since `seen`; false when the deadline has passed.
  bool WaitForChange(uint64_t seen, Deadline deadline);
  void Gather(Drawn* batch);
  /// What the gatherer does: batch after batch, those that were drawn without being gathered.
  void GatherAhead();
  Drawn* NextToGather() GEARDB_REQUIRES(mutex_);
  void WaitGathered(Drawn* batch);
  /// Until the deadline the record waits for room in the log.
  Status HandOver(Drawn* batch, Deadline deadline);
  Result<Lsn> CommitHandOver(engine::Change* change, Deadline deadline);
  /// The front batch could not be read: it goes, and what is damaged with it. As RemoveIfDamaged.
  Status GiveUp(Drawn* batch);
  /// Removes the trajectory of a page that was found damaged, if `why` says that one was; hides it,
  /// where a file is at fault through which reads of others pass, too. Returns why, and what has
  /// become of it. OK: that was done already, and batches that were drawn before have it, too; or
  /// the page has left by itself.
  Status RemoveIfDamaged(const engine::BatchBuilder& builder, const Status& why);

  const std::vector<engine::SamplerSource> sources_;
  SamplerOptions options_;
  std::vector<engine::BatchPart> batch_parts_;
  const std::vector<engine::TableState*> tables_;
  const std::shared_ptr<engine::BatchPool> pool_;
  uint64_t observer_draw_ = 0;
  engine::Evictor::Wanted wanted_;  // What the last batch read, as the next one will.
  std::optional<engine::CarriedItem> carried_;
  bool explains_ = false;        // What keeps a batch from being drawn: a pass over the items.
  engine::ChangeWaiter waiter_;  // Of all tables.
  // That the next batch could not be drawn ahead. It is told where that batch would have been: one
  // that is drawn later sees other updates.
  Status not_ahead_;
  // Of CollectSampled: places in counted_ plus one by hash of the slot, and (slot, rows).
  std::vector<uint32_t> seen_;
  std::vector<std::pair<Slot, uint32_t>> counted_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::unique_ptr<Drawn>> queue_ GEARDB_GUARDED_BY(mutex_);
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Drawn>> spare_ GEARDB_GUARDED_BY(mutex_);  // Handed over.
  std::thread gatherer_;
};

}  // namespace geardb
