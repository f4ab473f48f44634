#include "engine/internal/sampler_impl.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/break.h"
#include "base/concatenate.h"
#include "base/thread.h"
#include "engine/internal/table_change.h"

namespace geardb {

namespace {

/// Whether a draw that was made ahead has to say so once those before it were handed over: memory
/// that was too small, and pages that could not be read, which the next draw need not show again.
bool IsSaidLater(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted ||
         status.code() == StatusCode::kCorruption || status.code() == StatusCode::kIoError;
}

/// For the pages of so many batches room is made ahead.
constexpr int64_t kReadAheadMax = 3;
/// What takes no longer to copy than to wake a thread that does (some 5 to 10 us) is copied by who
/// draws it, ahead or not.
constexpr uint64_t kGatherAtOnceBytes = uint64_t{64} << 10;

/// Holds the mutexes of tables that are in the order of their ids: whoever takes several takes them
/// in that order.
class TableLocks {
 public:
  explicit TableLocks(std::span<engine::TableState* const> tables)
      GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis)
      : tables_(tables) {
    for (engine::TableState* table : tables_) table->mutex.Lock();
  }
  ~TableLocks() GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
    for (engine::TableState* table : tables_) table->mutex.Unlock();
  }
  TableLocks(const TableLocks&) = delete;
  TableLocks& operator=(const TableLocks&) = delete;

 private:
  const std::span<engine::TableState* const> tables_;
};

}  // namespace

Sampler::Impl::Impl(std::vector<engine::SamplerSource> sources, const SamplerOptions& options)
    : sources_(std::move(sources)),
      options_(options),
      tables_(TablesInOrder()),
      pool_(database()->batch_pools.MakePool()) {
  if (options_.restart_draw && options_.observer) observer_draw_ = *options_.restart_draw;
  for (const engine::SamplerSource& source : sources_) {
    const bool windows = source.items.item == ItemKind::kWindow;
    MutexLock lock(&source.state()->mutex);
    batch_parts_.push_back({.plan = &source.plan,
                            .state = source.state(),
                            .rule = windows ? &source.items.window : nullptr,
                            .within = options_.within.has_value(),
                            .groups = source.priority().groups()});
    if (!options_.observer) ++source.priority().samplers;
  }
  for (engine::TableState* table : tables_) table->changed.Add(&waiter_);
}

Status Sampler::Impl::StartGatherer() {
  if (options_.prefetch == 0 || !database()->options.background) return Status::Ok();
  GEARDB_ASSIGN_OR_RETURN(
      gatherer_, StartThread("prefetches for a sampler of priority table '" + spec().name + "'",
                             [this] { GatherAhead(); }));
  return Status::Ok();
}

Sampler::Impl::~Impl() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  if (gatherer_.joinable()) gatherer_.join();
  for (engine::TableState* table : tables_) table->changed.Remove(&waiter_);
  if (options_.observer) return;
  CancelDraws();
  // Once no sampler is left, numbers drawn ahead above the last one handed over are drawn again.
  for (const engine::SamplerSource& source : sources_) {
    MutexLock lock(&source.state()->mutex);
    engine::PriorityState& priority = source.priority();
    if (--priority.samplers == 0) priority.next_ahead = priority.next_draw;
  }
}

std::vector<engine::TableState*> Sampler::Impl::TablesInOrder() const {
  std::vector<engine::TableState*> tables;
  for (const engine::SamplerSource& source : sources_) tables.push_back(source.state());
  std::sort(tables.begin(), tables.end(),
            [](const auto* a, const auto* b) { return a->layout().id() < b->layout().id(); });
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  return tables;
}

Status Sampler::Impl::CheckTables() const {
  for (const engine::SamplerSource& source : sources_) {
    GEARDB_RETURN_IF_ERROR(database()->CheckTable(*source.priority_table->table));
  }
  return Status::Ok();
}

void Sampler::Impl::CancelParts(Drawn* batch) {
  for (size_t p = 0; p < batch->parts.size(); ++p) {
    sources_[p].state()->CancelDraw(sources_[p].priority_table->number,
                                    &batch->parts[p].reservation);
  }
}

void Sampler::Impl::CancelDraws() {
  TableLocks locks(tables_);
  MutexLock queue_lock(&mutex_);
  for (const auto& batch : queue_) CancelParts(batch.get());
  if (!carried_) return;
  sources_[0].state()->CancelDraw(sources_[0].priority_table->number, &carried_->reservation);
  carried_.reset();
}

void Sampler::Impl::AwaitPages() {
  for (size_t at = 0; !database()->evictor->HasRoomFor(wanted_); ++at) {
    Drawn* ahead = nullptr;
    {
      MutexLock lock(&mutex_);
      if (at >= queue_.size()) return;
      ahead = queue_[at].get();
    }
    WaitGathered(ahead);
  }
}

Status Sampler::Impl::TryDraw() {
  AwaitPages();
  const Status status = TryDrawOnce();
  if (status.code() != StatusCode::kResourceExhausted) return status;
  database()->batch_pools.Clear();
  return TryDrawOnce();
}

Status Sampler::Impl::TryDrawOnce() {
  GEARDB_RETURN_IF_ERROR(CheckTables());
  std::unique_ptr<Drawn> batch;
  {
    MutexLock lock(&mutex_);
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (batch == nullptr) batch = std::make_unique<Drawn>();
  batch->gathered = false;
  batch->rep = pool_->Take();
  if (batch->builder == nullptr) {
    batch->builder = std::make_unique<engine::BatchBuilder>(
        batch_parts_, options_.layout,
        engine::BatchBudget{database()->batch_bytes, database()->options.budgets.batch_bytes});
  }
  Status status;
  {
    TableLocks locks(tables_);
    status = DrawLocked(batch.get());
  }
  if (!status.ok()) {
    batch->guard.Leave();  // A removal may wait for a pass of the cleaner, which waits for readers.
    pool_->Give(std::move(batch->rep));
    return RemoveIfDamaged(*batch->builder, status);
  }
  // For those that come next: what they bring in is not there yet either. What is dropped now comes
  // free once all that was drawn is gathered, so one finds room while another is read.
  const engine::PageWaits& waits = batch->builder->waits();
  wanted_ = engine::Evictor::FramesOf(waits);
  const auto ahead =
      static_cast<uint64_t>(std::clamp<int64_t>(options_.prefetch, 0, kReadAheadMax));
  if (!waits.empty()) database()->evictor->MakeRoomFor(wanted_, 1 + ahead);
  const bool short_copy = waits.empty() && batch->builder->gather_bytes() <= kGatherAtOnceBytes;
  const bool at_once = short_copy || !gatherer_.joinable();
  if (at_once) Gather(batch.get());
  MutexLock lock(&mutex_);
  queue_.push_back(std::move(batch));
  if (!at_once) changed_.NotifyAll();
  return Status::Ok();
}

void Sampler::Impl::Gather(Drawn* batch) {
  Status status = batch->builder->Gather(*database()->arena);
  batch->guard.Leave();
  MutexLock lock(&mutex_);
  batch->status = std::move(status);
  batch->gathered = true;
}

Sampler::Impl::Drawn* Sampler::Impl::NextToGather() {
  const auto next =
      std::ranges::find_if(queue_, [](const auto& batch) { return !batch->gathered; });
  return next == queue_.end() ? nullptr : next->get();
}

void Sampler::Impl::GatherAhead() {
  for (;;) {
    Drawn* batch = nullptr;
    {
      MutexLock lock(&mutex_);
      while (!stop_ && (batch = NextToGather()) == nullptr) {
        changed_.WaitUntil(&mutex_, Deadline::Infinite());
      }
      if (stop_) return;
    }
    Gather(batch);
    changed_.NotifyAll();
  }
}

void Sampler::Impl::WaitGathered(Drawn* batch) {
  MutexLock lock(&mutex_);
  while (!batch->gathered) changed_.WaitUntil(&mutex_, Deadline::Infinite());
}

namespace {

struct DamagedTrajectory {
  std::shared_ptr<engine::TableCore> table;  // Null: it is not there any more.
  TrajectoryId trajectory = 0;
};

/// A trajectory of a table; of a companion, that of its owner.
DamagedTrajectory WithOwner(const std::shared_ptr<engine::TableCore>& table, TrajectoryId id) {
  if (!table->is_companion) return {table, id};
  const auto owner = table->owner.lock();
  return {owner, owner == nullptr ? 0 : engine::OwnerOf(*owner, *table, id)};
}

Status WithOthers(const Status& told, const std::vector<std::string>& others) {
  constexpr size_t kNamedMax = 64;
  std::string names;
  for (size_t i = 0; i < others.size() && i < kNamedMax; ++i) {
    names += (i == 0 ? "" : ", ") + others[i];
  }
  if (others.size() > kNamedMax) {
    names += " and " + std::to_string(others.size() - kNamedMax) + " more";
  }
  return Status::Corruption(told.message(), "; so it is with others of the batch: ", names);
}

}  // namespace

Status Sampler::Impl::GiveUp(Drawn* batch) {
  const Status status = batch->status;
  if (!options_.observer) {
    TableLocks locks(tables_);
    CancelParts(batch);
  }
  const std::unique_ptr<engine::BatchBuilder> builder = std::move(batch->builder);
  {
    MutexLock lock(&mutex_);
    pool_->Give(std::move(batch->rep));
    queue_.pop_front();
  }
  return RemoveIfDamaged(*builder, status);
}

Status Sampler::Impl::RemoveIfDamaged(const engine::BatchBuilder& builder, const Status& why) {
  if (why.code() != StatusCode::kCorruption) return why;
  std::set<std::pair<TableId, TrajectoryId>> seen;
  Status told;
  bool left = false;
  std::vector<std::string> more;  // A learner with many of them is told of a batch's at once.
  // For all of them; those that are left when it has passed are met again.
  const Deadline deadline = Deadline::AfterMs(engine::kAdmissionMs);
  const std::vector<const engine::PageLoad*> all = builder.waits().all_failed();
  for (const engine::PageLoad* failed : all) {
    if (failed->status.code() != StatusCode::kCorruption) continue;
    if (!told.ok() && deadline.passed()) break;
    const auto table = database()->TableById(failed->place.layout->id());
    DamagedTrajectory of;
    // What has left costs nothing that is there, and the next draw does without it.
    if (table != nullptr && !engine::HasLeft(*table, failed->place)) {
      of = WithOwner(table, failed->place.trajectory);
    }
    left |= of.table == nullptr;
    if (of.table == nullptr) continue;
    if (!seen.emplace(of.table->layout().id(), of.trajectory).second) continue;
    const Status& reason = failed == all[0] ? why : failed->status;
    const bool of_file = failed->of_file && !kBreak.remove_for_a_file;
    const Status become =
        of_file ? engine::HideUnreadable(of.table, of.trajectory, reason)
                : engine::RemoveDamaged(database(), of.table, of.trajectory, reason, deadline);
    if (become.ok()) continue;
    if (told.ok()) {
      told = become;
    } else {
      more.push_back("'" + of.table->layout().spec().name + "'/" + std::to_string(of.trajectory));
    }
  }
  if (seen.empty() && !left) return why;
  return more.empty() ? told : WithOthers(told, more);
}

bool Sampler::Impl::WaitForChange(uint64_t seen, Deadline deadline) {
  engine::PriorityState::WaitingBatch batch;
  if (options_.tokens_max > 0) {
    batch.own = Concatenate("a batch of up to ", options_.tokens_max, " tokens is not full");
  } else if (options_.within) {
    batch.own = "too few of the items that can be drawn have an anchor for windows within them";
  } else if (sources_.size() > 1) {
    batch.own = "another part of a mixed batch cannot be drawn";
  }
  {
    TableLocks locks(tables_);
    batch.rows = RowsAtOnce();
    for (const auto& source : sources_) source.priority().batches_waiting.push_back(batch);
  }
  const bool woken = waiter_.WaitBeyond(seen, deadline);
  TableLocks locks(tables_);
  for (const auto& source : sources_) {
    auto& waiting = source.priority().batches_waiting;
    waiting.erase(std::ranges::find(waiting, batch));
  }
  return woken;
}

Status Sampler::Impl::DrawUpToDepth(Deadline deadline) {
  const auto queued = [this] {
    MutexLock lock(&mutex_);
    return queue_.size();
  };
  const auto depth = static_cast<size_t>(std::max<int64_t>(options_.prefetch, 1));
  // Draws that nothing could be drawn for take their places now, in order.
  while (queued() < depth && not_ahead_.ok()) {
    const uint64_t seen = waiter_.count();
    const bool is_last = deadline.passed();
    explains_ = is_last && queued() == 0;
    const Status status = TryDraw();
    explains_ = false;
    if (status.ok()) continue;
    const bool ahead = queued() > 0;
    if (ahead && IsSaidLater(status)) not_ahead_ = status;
    if (ahead && status.code() != StatusCode::kCancelled) break;
    if (status.code() != StatusCode::kDeadlineExceeded) return status;
    GEARDB_ASSIGN_OR_RETURN(const bool left_out, LeaveOutRest(deadline));
    if (left_out) continue;
    if (is_last) return status;
    WaitForChange(seen, deadline);
  }
  if (queued() > 0) return Status::Ok();
  const Status status = std::exchange(not_ahead_, Status::Ok());
  if (status.code() != StatusCode::kResourceExhausted) return status;
  return status.WithContext("no batch was drawn ahead (prefetch " +
                            std::to_string(options_.prefetch) + ")");
}

Result<Sampler::Impl::Drawn*> Sampler::Impl::NextGathered(Deadline deadline) {
  for (;;) {
    GEARDB_RETURN_IF_ERROR(DrawUpToDepth(deadline));
    Drawn* front = nullptr;
    {
      MutexLock lock(&mutex_);
      front = queue_.front().get();
    }
    WaitGathered(front);
    if (front->status.ok()) return front;
    GEARDB_RETURN_IF_ERROR(GiveUp(front));
  }
}

Result<std::unique_ptr<Batch::Rep>> Sampler::Impl::Next(Deadline deadline) {
  GEARDB_RETURN_IF_ERROR(CheckTables());
  if (!options_.observer) GEARDB_RETURN_IF_ERROR(database()->CheckWritable());
  GEARDB_ASSIGN_OR_RETURN(Drawn* const front, NextGathered(deadline));
  if (!options_.observer) GEARDB_RETURN_IF_ERROR(HandOver(front, deadline));
  std::unique_ptr<Batch::Rep> rep;
  {
    MutexLock lock(&mutex_);
    rep = std::move(front->rep);
    spare_.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  if (options_.prefetch > 0 && not_ahead_.ok()) {
    const Status status = TryDraw();
    // Any other failure shows at the next call, which draws again.
    if (IsSaidLater(status)) not_ahead_ = status;
  }
  return rep;
}

}  // namespace geardb
