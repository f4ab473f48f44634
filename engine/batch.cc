#include "engine/batch.h"

#include "engine/internal/batch_rep.h"

namespace geardb {

std::unique_ptr<Batch::Rep> engine::BatchPool::Take() {
  std::unique_ptr<Batch::Rep> rep;
  {
    MutexLock lock(&mutex_);
    if (!free_.empty()) {
      rep = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (rep == nullptr) rep = std::make_unique<Batch::Rep>();
  rep->pool = shared_from_this();
  return rep;
}

void engine::BatchPool::Give(std::unique_ptr<Batch::Rep> rep) {
  // The pool must not keep itself alive.
  const std::shared_ptr<BatchPool> self = std::move(rep->pool);
  MutexLock lock(&mutex_);
  free_.push_back(std::move(rep));
}

void engine::BatchPool::Clear() {
  std::vector<std::unique_ptr<Batch::Rep>> cleared;
  MutexLock lock(&mutex_);
  cleared.swap(free_);
}

std::shared_ptr<engine::BatchPool> engine::BatchPools::MakePool() {
  auto pool = std::make_shared<BatchPool>();
  MutexLock lock(&mutex_);
  std::erase_if(pools_, [](const std::weak_ptr<BatchPool>& other) { return other.expired(); });
  pools_.push_back(pool);
  return pool;
}

void engine::BatchPools::Clear() {
  MutexLock lock(&mutex_);
  for (const std::weak_ptr<BatchPool>& weak : pools_) {
    if (const auto pool = weak.lock()) pool->Clear();
  }
}

Batch::Batch(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&& other) noexcept {
  if (this != &other) {
    Release();
    rep_ = std::move(other.rep_);
  }
  return *this;
}
Batch::~Batch() { Release(); }

void Batch::Release() {
  if (rep_ == nullptr) return;
  engine::BatchPool* pool = rep_->pool.get();
  if (pool->forked()) {
    (void)rep_.release();
    return;
  }
  pool->Give(std::move(rep_));
}

int64_t Batch::size() const { return rep_ ? static_cast<int64_t>(rep_->handles.size()) : 0; }

int64_t Batch::group_count() const {
  return rep_ ? static_cast<int64_t>(rep_->group_keys.size()) : 0;
}

// A released batch has empty arrays.
#define GEARDB_BATCH_ARRAY(Type, name, member)                                   \
  std::span<const Type> Batch::name() const {                                    \
    return rep_ ? std::span<const Type>(rep_->member) : std::span<const Type>(); \
  }
GEARDB_BATCH_ARRAY(ItemHandle, handles, handles)
GEARDB_BATCH_ARRAY(TrajectoryId, trajectory_ids, ids)
GEARDB_BATCH_ARRAY(int64_t, anchors, anchors)
GEARDB_BATCH_ARRAY(int64_t, lengths, lengths)
GEARDB_BATCH_ARRAY(int64_t, trajectory_lengths, trajectory_lengths)
GEARDB_BATCH_ARRAY(End, trajectory_ends, ends)
GEARDB_BATCH_ARRAY(uint64_t, times_sampled, times_sampled)
GEARDB_BATCH_ARRAY(double, probabilities, probabilities)
GEARDB_BATCH_ARRAY(float, weights, weights)
GEARDB_BATCH_ARRAY(uint32_t, sources, sources)
GEARDB_BATCH_ARRAY(int64_t, groups, groups)
GEARDB_BATCH_ARRAY(int64_t, group_offsets, group_offsets)
GEARDB_BATCH_ARRAY(int64_t, group_keys, group_keys)
#undef GEARDB_BATCH_ARRAY

Lsn Batch::lsn() const { return rep_ ? rep_->lsn : 0; }
uint64_t Batch::draw_number() const { return rep_ ? rep_->draw_number : 0; }

namespace {

Result<engine::BatchOutput*> FindOutput(Batch::Rep* rep, std::string_view name) {
  if (rep == nullptr) return Status::FailedPrecondition("the batch was released");
  engine::BatchOutput* output = rep->FindOutput(name);
  if (output != nullptr) return output;
  std::string names;
  for (const engine::BatchOutput& other : rep->outputs) {
    names += (names.empty() ? "" : ", ") + other.name;
  }
  return Status::NotFound("the batch has no output '", name, "'; it has ", names);
}

}  // namespace

Result<TensorView> Batch::Find(std::string_view name) const {
  GEARDB_ASSIGN_OR_RETURN(const engine::BatchOutput* output, FindOutput(rep_.get(), name));
  return output->view();
}

TensorView Batch::operator[](std::string_view name) const {
  const auto output = FindOutput(rep_.get(), name);
  return output.ok() ? (*output)->view() : TensorView();
}

Result<std::span<const int64_t>> Batch::ViewLengths(std::string_view name) const {
  GEARDB_ASSIGN_OR_RETURN(const engine::BatchOutput* output, FindOutput(rep_.get(), name));
  return std::span<const int64_t>(output->lengths);
}

Result<std::span<const int64_t>> Batch::CuSeqlens(std::string_view name) const {
  GEARDB_ASSIGN_OR_RETURN(const engine::BatchOutput* output, FindOutput(rep_.get(), name));
  return std::span<const int64_t>(output->cu_seqlens);
}

Result<std::span<const int64_t>> Batch::Offsets(std::string_view name) const {
  GEARDB_ASSIGN_OR_RETURN(const engine::BatchOutput* output, FindOutput(rep_.get(), name));
  return std::span<const int64_t>(output->offsets);
}

std::vector<std::string_view> Batch::OutputNames() const {
  std::vector<std::string_view> names;
  if (rep_ == nullptr) return names;
  for (const engine::BatchOutput& output : rep_->outputs) names.push_back(output.name);
  return names;
}

}  // namespace geardb
