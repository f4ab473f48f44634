#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/crash_point.h"
#include "base/thread.h"
#include "engine/internal/sampler_impl.h"
#include "engine/internal/sampling.h"
#include "engine/internal/table_change.h"
#include "index/importance_weights.h"

namespace geardb {

namespace fb = engine::fb;

Sampler::Impl::Impl(std::shared_ptr<PriorityTable::Impl> priority_table,
                    const SamplerOptions& options, engine::ViewPlan plan)
    : priority_table_(std::move(priority_table)),
      options_(options),
      plan_(std::move(plan)),
      pool_(priority_table_->database->batch_pools.MakePool()) {
  if (options_.restart_draw && options_.observer) observer_draw_ = *options_.restart_draw;
  if (!options_.observer) {
    MutexLock lock(&priority_table_->table->state->mutex);
    ++priority_table_->state().samplers;
  }
}

Status Sampler::Impl::StartGatherer() {
  if (options_.prefetch == 0 || !priority_table_->database->options.background) {
    return Status::Ok();
  }
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
  if (options_.observer) return;
  CancelDraws();
  // Once no sampler is left, numbers drawn ahead above the last one handed over are drawn again.
  MutexLock lock(&priority_table_->table->state->mutex);
  engine::PriorityState& priority = priority_table_->state();
  if (--priority.samplers == 0) priority.next_ahead = priority.next_draw;
}

void Sampler::Impl::CancelDraws() {
  MutexLock lock(&priority_table_->table->state->mutex);
  MutexLock queue_lock(&mutex_);
  for (const auto& batch : queue_) {
    priority_table_->table->state->CancelDraw(priority_table_->number, &batch->reservation);
  }
}

void Sampler::Impl::CollectSampled(Drawn* batch) {
  // Each trajectory once, in the order of its first row: a small hash table of what was seen costs
  // a tenth of sorting the rows.
  const std::vector<engine::DrawnItem>& items = batch->builder->items();
  const engine::TableState& state = *priority_table_->table->state;
  const auto bits = static_cast<uint32_t>(std::bit_width(items.size())) + 1;
  const uint32_t mask = (uint32_t{1} << bits) - 1;
  seen_.assign(size_t{mask} + 1, 0);
  counted_.clear();
  for (const engine::DrawnItem& item : items) {
    uint32_t at = (item.slot * 0x9E3779B1u) >> (32 - bits);
    while (seen_[at] != 0 && counted_[seen_[at] - 1].first != item.slot) at = (at + 1) & mask;
    if (seen_[at] == 0) {
      counted_.emplace_back(item.slot, 0);
      seen_[at] = static_cast<uint32_t>(counted_.size());
    }
    ++counted_[seen_[at] - 1].second;
  }
  batch->sampled.clear();
  batch->sampled.reserve(counted_.size());
  for (const auto& [slot, count] : counted_) {
    batch->sampled.emplace_back(slot, state.trajectories().record(slot).generation, count);
  }
}

Status Sampler::Impl::DrawLocked(Drawn* batch) {
  engine::DatabaseCore& database = *priority_table_->database;
  const engine::TableState& state = *priority_table_->table->state;
  engine::PriorityState& priority = priority_table_->state();
  const auto n = static_cast<size_t>(RowsNext());
  Batch::Rep& rep = *batch->rep;
  GEARDB_RETURN_IF_ERROR(batch->builder->Charge(n, &rep));
  rep.draw_number = options_.observer ? observer_draw_ : priority.next_ahead;
  std::vector<uint64_t> leaves(n);
  rep.probabilities.resize(n);
  index::WeightRequest weights{.beta = options_.beta, .maximum = options_.weight_maximum};
  index::PrioritizedSelector* const selector = priority.prioritized();
  if (selector != nullptr) {  // As of before the draw, which may hide what it takes.
    const bool of_table = options_.weight_maximum == WeightMaximum::kTable;
    weights.drawable = selector->drawable();
    weights.smallest_probability = of_table ? selector->SmallestProbability() : 0;
  }
  DrawLeaves(leaves, batch);
  batch->guard = database.epochs.Enter();
  // The last record of this table may have been applied, and not yet be published.
  const Lsn applied_end = priority_table_->table->state->applied_end;
  rep.lsn = database.log ? std::max(database.log->published(), applied_end) : database.recovery.end;
  const Status built = batch->builder->Build(state, priority, leaves, &rep);
  if (!built.ok()) {
    priority_table_->table->state->CancelDraw(priority_table_->number, &batch->reservation);
    return built;
  }
  rep.weights.assign(n, 1.0f);
  if (selector != nullptr) index::ImportanceWeights(weights, rep.probabilities, rep.weights);
  if (options_.observer) {
    ++observer_draw_;
  } else {
    ++priority.next_ahead;
    CollectSampled(batch);
  }
  return Status::Ok();
}

Status Sampler::Impl::CheckHandOverFits() const {
  const engine::DatabaseCore& database = *priority_table_->database;
  if (options_.observer || !priority_table_->state().names_items()) return Status::Ok();
  constexpr uint64_t kRowBytes = sizeof(engine::fb::Handed) + sizeof(engine::fb::Sampled);
  const uint64_t rows_max = (database.log->record_bytes_max() - 4096) / kRowBytes;
  if (static_cast<uint64_t>(options_.batch) <= rows_max) return Status::Ok();
  return Status::InvalidArgument("priority table '", priority_table_->spec.name,
                                 "' counts which items are sampled: a batch of ", options_.batch,
                                 " does not fit a record of this log; at most ", rows_max,
                                 " do (a quarter of its ring)");
}

bool Sampler::Impl::MayDraw() const {
  const engine::PriorityState& priority = priority_table_->state();
  const uint64_t n = RowsNext();
  return n > 0 && priority.CanDraw(n) && (options_.observer || priority.limiter().CanSample(n));
}

void Sampler::Impl::DrawLeaves(std::span<uint64_t> leaves, Drawn* batch) {
  const engine::TableState& state = *priority_table_->table->state;
  engine::PriorityState& priority = priority_table_->state();
  Batch::Rep& rep = *batch->rep;
  const index::DrawRequest request{.seed = options_.observer ? options_.seed : priority.seed,
                                   .draw_number = rep.draw_number};
  if (options_.observer) {
    // The caller has seen that there is enough.
    GEARDB_CHECK(priority.selector().Draw(request, leaves, rep.probabilities) == leaves.size());
    return;
  }
  priority.DrawReserved(request, leaves, rep.probabilities);
  batch->reservation.rows = leaves.size();
  if (!priority.names_items()) return;
  if (priority.epoch() != nullptr) batch->reservation.mark = priority.epoch()->mark();
  batch->reservation.items.reserve(leaves.size());
  for (const uint64_t leaf : leaves) {
    uint32_t generation = 0;
    GEARDB_CHECK(state.GenerationOfLeaf(priority, leaf, &generation));
    batch->reservation.items.emplace_back(leaf, generation);
  }
}

Status Sampler::Impl::TryDraw(bool* drawn) {
  const Status status = TryDrawOnce(drawn);
  if (status.code() != StatusCode::kResourceExhausted) return status;
  priority_table_->database->batch_pools.Clear();
  return TryDrawOnce(drawn);
}

Status Sampler::Impl::TryDrawOnce(bool* drawn) {
  engine::DatabaseCore& database = *priority_table_->database;
  GEARDB_RETURN_IF_ERROR(database.CheckTable(*priority_table_->table));
  auto batch = std::make_unique<Drawn>();
  batch->rep = pool_->Take();
  {
    MutexLock lock(&mutex_);
    if (!spare_builders_.empty()) {
      batch->builder = std::move(spare_builders_.back());
      spare_builders_.pop_back();
    }
  }
  if (batch->builder == nullptr) {
    batch->builder = std::make_unique<engine::BatchBuilder>(
        &plan_, options_.layout,
        engine::BatchBudget{database.batch_bytes, database.options.budgets.batch_bytes});
  }
  Status status;
  {
    MutexLock lock(&priority_table_->table->state->mutex);
    status = CheckHandOverFits();
    *drawn = status.ok() && MayDraw();
    if (*drawn) status = DrawLocked(batch.get());
  }
  if (!*drawn || !status.ok()) {
    pool_->Give(std::move(batch->rep));
    return status;
  }
  if (!gatherer_.joinable()) Gather(batch.get());
  MutexLock lock(&mutex_);
  queue_.push_back(std::move(batch));
  changed_.NotifyAll();
  return Status::Ok();
}

void Sampler::Impl::Gather(Drawn* batch) {
  GatherCpu(batch->builder->Plan(), engine::BasesOf(*priority_table_->database->arena));
  batch->guard.Leave();
  MutexLock lock(&mutex_);
  batch->gathered = true;
  changed_.NotifyAll();
}

void Sampler::Impl::GatherAhead() {
  for (;;) {
    Drawn* batch = nullptr;
    {
      MutexLock lock(&mutex_);
      while (!stop_ && next_to_gather_ >= queue_.size()) {
        changed_.WaitUntil(&mutex_, Deadline::Infinite());
      }
      if (stop_) return;
      batch = queue_[next_to_gather_++].get();
    }
    Gather(batch);
  }
}

void Sampler::Impl::WaitGathered(Drawn* batch) {
  MutexLock lock(&mutex_);
  while (!batch->gathered) changed_.WaitUntil(&mutex_, Deadline::Infinite());
}

Status Sampler::Impl::WaitForItems(Deadline deadline) {
  engine::TableState& state = *priority_table_->table->state;
  MutexLock lock(&priority_table_->table->state->mutex);
  while (!MayDraw()) {
    GEARDB_RETURN_IF_ERROR(priority_table_->database->CheckTable(*priority_table_->table));
    GEARDB_RETURN_IF_ERROR(NeverAdmitted());
    GEARDB_RETURN_IF_ERROR(CheckEpoch());
    if (RestIsLeftOut()) return Status::Ok();
    engine::PriorityState& priority = priority_table_->state();
    ++priority.samplers_waiting;
    const bool woken = !deadline.passed() &&
                       state.changed.WaitUntil(&priority_table_->table->state->mutex, deadline);
    --priority.samplers_waiting;
    if (woken) continue;
    if (MayDraw()) break;
    return NotEnough();
  }
  return Status::Ok();
}

Status Sampler::Impl::NeverAdmitted() const {
  if (options_.observer) return Status::Ok();
  const index::LimiterBlock block =
      priority_table_->state().BlockedSample(static_cast<uint64_t>(options_.batch));
  if (block.reason != index::LimiterBlock::Reason::kNever) return Status::Ok();
  return Status::InvalidArgument("priority table '", priority_table_->spec.name, "' of table '",
                                 priority_table_->table->layout().spec().name, "': ", block.text);
}

Status Sampler::Impl::NotEnough() const {
  const engine::TableState& state = *priority_table_->table->state;
  const engine::PriorityState& priority = priority_table_->state();
  const index::Selector& selector = priority.selector();
  GEARDB_RETURN_IF_ERROR(WaitsForOthers());
  const index::LimiterBlock block = priority.BlockedSample(static_cast<uint64_t>(options_.batch));
  // That there is no item at all is said as ever.
  const bool of_limiter = priority.spec().limiter != RateLimit() || selector.count() > 0;
  if (!options_.observer && of_limiter && !block.text.empty()) {
    return Status::DeadlineExceeded("priority table '", priority_table_->spec.name, "' of table '",
                                    state.layout().spec().name, "' waits: ", block.text);
  }
  if ((selector.distinct() || priority.bounded()) && selector.drawable() > 0) {
    return Status::DeadlineExceeded("priority table '", priority_table_->spec.name, "' of table '",
                                    state.layout().spec().name, "' holds ", selector.drawable(),
                                    " items that can be drawn; the batch takes ", options_.batch,
                                    " distinct ones");
  }
  return Status::DeadlineExceeded("priority table '", priority_table_->spec.name, "' of table '",
                                  state.layout().spec().name, "' has nothing to draw: it holds ",
                                  selector.count(), " items, ", selector.drawable(),
                                  " of them with a priority above 0");
}

Status Sampler::Impl::HandOver(Drawn* batch) {
  engine::DatabaseCore& database = *priority_table_->database;
  auto table = priority_table_->table;
  const uint32_t number = priority_table_->number;
  engine::FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    engine::ApplyLock lock(table->state.get(), end);
    table->state->CancelDraw(number, &batch->reservation);
    table->state->Apply(*change.operation()->change_as_HandOver(), number);
  });
  const auto sampled = change.body.CreateVectorOfStructs(batch->sampled);
  // Nobody else changes them before the record is applied.
  const auto& handed = batch->reservation.items;
  const bool counted = !handed.empty();
  const auto items = !counted ? 0 : change.body.CreateVectorOfStructs(handed);
  change.FinishBody({.table = table->layout().id(), .priority_table = number}, fb::Change::HandOver,
                    fb::CreateHandOver(change.body, batch->rep->draw_number, sampled, items,
                                       batch->reservation.mark.epoch, batch->reservation.mark.pass)
                        .Union());
  GEARDB_ASSIGN_OR_RETURN(const Lsn end,
                          database.Commit(table.get(), &change, {.makes_room = true}));
  GEARDB_RETURN_IF_ERROR(database.Acknowledge(end, Ack::kLog));
  CrashPoint("handed_over");
  if (counted) engine::RemoveFinished(&database, table, batch->sampled);
  return Status::Ok();
}

Result<std::unique_ptr<Batch::Rep>> Sampler::Impl::Next(Deadline deadline) {
  GEARDB_RETURN_IF_ERROR(priority_table_->database->CheckTable(*priority_table_->table));
  if (!options_.observer) GEARDB_RETURN_IF_ERROR(priority_table_->database->CheckWritable());
  const auto queued = [this] {
    MutexLock lock(&mutex_);
    return queue_.size();
  };
  const auto depth = static_cast<size_t>(std::max<int64_t>(options_.prefetch, 1));
  // Draws that nothing could be drawn for take their places now, in order.
  while (queued() < depth && not_ahead_.ok()) {
    bool drawn = false;
    const Status status = TryDraw(&drawn);
    const bool ahead = queued() > 0;
    if (ahead && status.code() == StatusCode::kResourceExhausted) {
      not_ahead_ = status;
      break;
    }
    GEARDB_RETURN_IF_ERROR(status);
    if (drawn) continue;
    if (ahead) break;
    GEARDB_RETURN_IF_ERROR(LeaveOutRest());
    GEARDB_RETURN_IF_ERROR(WaitForItems(deadline));
  }
  if (queued() == 0) {
    return std::exchange(not_ahead_, Status::Ok())
        .WithContext("no batch was drawn ahead (prefetch " + std::to_string(options_.prefetch) +
                     ")");
  }
  Drawn* front = nullptr;
  {
    MutexLock lock(&mutex_);
    front = queue_.front().get();
  }
  WaitGathered(front);
  if (!options_.observer) GEARDB_RETURN_IF_ERROR(HandOver(front));
  std::unique_ptr<Batch::Rep> rep;
  {
    MutexLock lock(&mutex_);
    rep = std::move(front->rep);
    spare_builders_.push_back(std::move(front->builder));
    queue_.pop_front();
    if (gatherer_.joinable()) --next_to_gather_;
  }
  if (options_.prefetch > 0 && not_ahead_.ok()) {
    bool drawn = false;
    const Status status = TryDraw(&drawn);
    // Any other failure shows at the next call, which draws again.
    if (status.code() == StatusCode::kResourceExhausted) not_ahead_ = status;
  }
  return rep;
}

// ---- The public face.

namespace engine {
namespace {

Status CheckBeta(const PriorityTableSpec& spec, double beta) {
  if (beta >= 0 && std::isfinite(beta)) return Status::Ok();
  return Status::InvalidArgument("a sampler of priority table '", spec.name, "' has beta ", beta,
                                 "; expected a finite value of at least 0");
}

}  // namespace
}  // namespace engine

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::~Sampler() {
  // Its thread and its mutexes are those of the process that made it.
  if (impl_ != nullptr && impl_->forked()) (void)impl_.release();
}

Result<Batch> Sampler::Next(std::optional<Deadline> deadline) {
  const Deadline until = deadline.value_or(Deadline::AfterMs(impl_->options().timeout_ms));
  auto rep = impl_->Next(until);
  // Once the database is closed or the table dropped, no batch will ever be handed over.
  if (rep.status().code() == StatusCode::kCancelled) impl_->CancelDraws();
  GEARDB_RETURN_IF_ERROR(rep.status());
  return Batch(std::move(*rep));
}

Status Sampler::set_beta(double beta) {
  GEARDB_RETURN_IF_ERROR(engine::CheckBeta(impl_->spec(), beta));
  impl_->set_beta(beta);
  return Status::Ok();
}
const SamplerOptions& Sampler::options() const { return impl_->options(); }

namespace engine {

namespace {

constexpr int64_t kBatchMax = int64_t{1} << 24;
constexpr int64_t kPrefetchMax = 1024;
/// So that draw numbers never come to their end.
constexpr uint64_t kRestartDrawMax = uint64_t{1} << 62;

Status CheckOptions(const PriorityTableSpec& spec, const SamplerOptions& options) {
  if (options.batch < 1 || options.batch > kBatchMax) {
    return Status::InvalidArgument("a sampler of priority table '", spec.name, "' has batch ",
                                   options.batch, "; expected 1 to ", kBatchMax);
  }
  if (options.prefetch < 0 || options.prefetch > kPrefetchMax) {
    return Status::InvalidArgument("a sampler of priority table '", spec.name, "' has prefetch ",
                                   options.prefetch, "; expected 0 to ", kPrefetchMax);
  }
  if (options.layout != BatchLayout::kPadded && options.layout != BatchLayout::kPacked) {
    return Status::InvalidArgument("a sampler of priority table '", spec.name, "' has layout ",
                                   static_cast<int>(options.layout),
                                   "; expected 0 (padded) or 1 (packed)");
  }
  if (options.weight_maximum > WeightMaximum::kNone) {
    return Status::InvalidArgument(
        "a sampler of priority table '", spec.name, "' has weight_maximum ",
        static_cast<int>(options.weight_maximum), "; expected 0 (batch), 1 (table) or 2 (none)");
  }
  if (options.timeout_ms < 0) {
    return Status::InvalidArgument("a sampler of priority table '", spec.name, "' has timeout_ms ",
                                   options.timeout_ms, "; expected at least 0");
  }
  if (options.restart_draw && *options.restart_draw > kRestartDrawMax) {
    return Status::InvalidArgument("a sampler of priority table '", spec.name,
                                   "' restarts at draw ", *options.restart_draw, "; expected 0 to ",
                                   kRestartDrawMax);
  }
  return CheckBeta(spec, options.beta);
}

Status RestartDraws(const std::shared_ptr<PriorityTable::Impl>& priority_table,
                    const SamplerOptions& options) {
  auto table = priority_table->table;
  const uint32_t number = priority_table->number;
  FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    engine::ApplyLock lock(table->state.get(), end);
    table->state->Apply(*change.operation()->change_as_RestartDraws(), number);
  });
  change.FinishBody(
      {.table = table->layout().id(), .priority_table = number}, fb::Change::RestartDraws,
      fb::CreateRestartDraws(change.body, options.seed, *options.restart_draw).Union());
  GEARDB_ASSIGN_OR_RETURN(const Lsn end,
                          priority_table->database->Commit(table.get(), &change, {}));
  return priority_table->database->Acknowledge(end, Ack::kLog);
}

}  // namespace

Result<std::unique_ptr<Sampler::Impl>> MakeSampler(
    const std::shared_ptr<PriorityTable::Impl>& priority_table, const SamplerOptions& options) {
  GEARDB_RETURN_IF_ERROR(CheckOptions(priority_table->spec, options));
  GEARDB_RETURN_IF_ERROR(priority_table->database->CheckTable(*priority_table->table));
  GEARDB_ASSIGN_OR_RETURN(
      ViewPlan plan, CompileViews(priority_table->table->layout(), priority_table->spec, options));
  if (!options.observer) GEARDB_RETURN_IF_ERROR(priority_table->database->CheckWritable());
  auto sampler = std::make_unique<Sampler::Impl>(priority_table, options, std::move(plan));
  GEARDB_RETURN_IF_ERROR(sampler->StartGatherer());
  // Last: what is refused has logged nothing.
  if (!options.observer && options.restart_draw) {
    GEARDB_RETURN_IF_ERROR(RestartDraws(priority_table, options));
  }
  return sampler;
}

}  // namespace engine
}  // namespace geardb
