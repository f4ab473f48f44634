// Sampler::Impl: draws batches in the order of Next, some ahead, and hands them over.
//
// A batch is drawn under the table's mutex by the thread that calls Next: that is its place in the
// apply sequence. Its bytes are copied afterwards, by a thread of the sampler's when batches are
// drawn ahead. The hand-over is a log record.
#pragma once

#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/internal/batch_build.h"
#include "engine/internal/core.h"

namespace geardb {

class Sampler::Impl {
 public:
  Impl(std::shared_ptr<PriorityTable::Impl> priority_table, const SamplerOptions& options,
       engine::ViewPlan plan);
  ~Impl();
  /// Called once, before anything else, so that NewSampler can fail.
  Status StartGatherer();

  Result<std::unique_ptr<Batch::Rep>> Next(Deadline deadline);
  /// Gives back what the batches drawn ahead have reserved: they will never be handed over.
  void CancelDraws();
  void set_beta(double beta) { options_.beta = beta; }
  const SamplerOptions& options() const { return options_; }
  bool forked() const { return priority_table_->database->owner.forked(); }
  const PriorityTableSpec& spec() const { return priority_table_->spec; }

 private:
  /// A batch that was drawn. `builder` and `guard` belong to whoever gathers until `gathered`.
  struct Drawn {
    std::unique_ptr<Batch::Rep> rep;
    std::unique_ptr<engine::BatchBuilder> builder;
    EpochRegistry::Guard guard;
    std::vector<engine::fb::Sampled> sampled;
    engine::DrawReservation reservation;  ///< Guarded by the table's mutex.
    bool gathered = false;
  };

  /// Draws the next batch if anything can be drawn; `*drawn` says whether. ResourceExhausted where
  /// the batch budget has no room for it, even without the buffers of released batches.
  Status TryDraw(bool* drawn);
  Status TryDrawOnce(bool* drawn);
  Status DrawLocked(Drawn* batch) GEARDB_REQUIRES(priority_table_->table->state->mutex);
  void CollectSampled(Drawn* batch);
  Status WaitForItems(Deadline deadline);

  // Of an epoch; engine/internal/sampler_epoch.cc.

  /// Rows of the next batch; of an epoch what is left, down to 0.
  uint64_t RowsNext() const GEARDB_REQUIRES(priority_table_->table->state->mutex);
  /// OutOfRange: it is exhausted, or none has begun.
  Status CheckEpoch() const GEARDB_REQUIRES(priority_table_->table->state->mutex);
  /// DeadlineExceeded where the rest of a pass is with other samplers.
  Status WaitsForOthers() const GEARDB_REQUIRES(priority_table_->table->state->mutex);
  /// The pass ends without what is left, once somebody says so: LeaveOutRest.
  bool RestIsLeftOut() const GEARDB_REQUIRES(priority_table_->table->state->mutex);
  Status LeaveOutRest();

  /// InvalidArgument for a batch whose hand-over, which names its items, is too large for the log.
  Status CheckHandOverFits() const GEARDB_REQUIRES(priority_table_->table->state->mutex);
  /// There are items for a batch, and the limiter admits it; observers ask no limiter.
  bool MayDraw() const GEARDB_REQUIRES(priority_table_->table->state->mutex);
  /// Draws, and reserves what is drawn.
  void DrawLeaves(std::span<uint64_t> leaves, Drawn* batch)
      GEARDB_REQUIRES(priority_table_->table->state->mutex);
  /// What there is to draw, or what the limiter waits for, when that is not enough for a batch.
  /// Under the state's mutex.
  Status NotEnough() const GEARDB_REQUIRES(priority_table_->table->state->mutex);
  /// InvalidArgument for a batch that the limiter will never admit.
  Status NeverAdmitted() const GEARDB_REQUIRES(priority_table_->table->state->mutex);
  void Gather(Drawn* batch);
  void GatherAhead();
  void WaitGathered(Drawn* batch);
  Status HandOver(Drawn* batch);

  const std::shared_ptr<PriorityTable::Impl> priority_table_;
  SamplerOptions options_;
  const engine::ViewPlan plan_;
  const std::shared_ptr<engine::BatchPool> pool_;
  uint64_t observer_draw_ = 0;
  // That the next batch could not be drawn ahead. It is told where that batch would have been: one
  // that is drawn later sees other updates.
  Status not_ahead_;
  // Of CollectSampled: places in counted_ plus one by hash of the slot, and (slot, rows).
  std::vector<uint32_t> seen_;
  std::vector<std::pair<Slot, uint32_t>> counted_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::unique_ptr<Drawn>> queue_ GEARDB_GUARDED_BY(mutex_);
  size_t next_to_gather_ GEARDB_GUARDED_BY(mutex_) = 0;
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<engine::BatchBuilder>> spare_builders_ GEARDB_GUARDED_BY(mutex_);
  std::thread gatherer_;
};

}  // namespace geardb
