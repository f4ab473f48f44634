#include "engine/priority_table.h"

#include <algorithm>

#include "engine/internal/change_scope.h"
#include "engine/internal/core.h"
#include "engine/internal/delete_items.h"
#include "engine/internal/epochs.h"
#include "engine/internal/group_draw.h"
#include "engine/internal/patch.h"
#include "engine/internal/priority_limits.h"
#include "engine/internal/sampler_impl.h"
#include "engine/internal/sampling.h"
#include "engine/internal/seal_groups.h"
#include "engine/internal/set_filter.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_change.h"
#include "engine/internal/table_stats.h"
#include "engine/table.h"

namespace geardb {
namespace {}  // namespace

PriorityTable::PriorityTable(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
PriorityTable::~PriorityTable() = default;

const PriorityTableSpec& PriorityTable::spec() const { return impl_->spec; }

Result<SetOutcome> PriorityTable::Set(std::span<const ItemHandle> handles,
                                      std::span<const float> priorities) {
  GEARDB_RETURN_IF_ERROR(engine::CheckSet(spec(), handles.size(), priorities));
  std::vector<engine::fb::Item> items;
  items.reserve(handles.size());
  for (size_t i = 0; i < handles.size(); ++i) {
    items.emplace_back(handles[i].leaf, handles[i].generation, priorities[i]);
  }
  return engine::WithLogRoom(impl_->database.get(), Deadline::AfterMs(engine::kAdmissionMs),
                             [&] { return engine::CommitSet(impl_.get(), items, 0); });
}

namespace {

/// Calls `visit(i, leaf, generation)` for each of the rows that is an item; returns how many are
/// none.
template <typename Visit>
Result<uint64_t> VisitItems(PriorityTable::Impl* impl, std::span<const RowId> rows, Visit visit) {
  GEARDB_RETURN_IF_ERROR(impl->database->CheckWritable());
  // Rows may be those of an append at Ack::kMemory, whose record is still being filled.
  GEARDB_RETURN_IF_ERROR(impl->database->CatchUp());
  uint64_t stale = 0;
  MutexLock lock(&impl->table->state->mutex);
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t leaf = engine::FindItem(*impl, rows[i]);
    uint32_t generation = 0;
    if (leaf == UINT64_MAX ||
        !impl->table->state->GenerationOfLeaf(impl->state(), leaf, &generation)) {
      ++stale;
      continue;
    }
    visit(i, leaf, generation);
  }
  return stale;
}

}  // namespace

Result<SetOutcome> PriorityTable::Set(std::span<const RowId> rows,
                                      std::span<const float> priorities) {
  GEARDB_RETURN_IF_ERROR(engine::CheckSet(spec(), rows.size(), priorities));
  std::vector<engine::fb::Item> items;
  GEARDB_ASSIGN_OR_RETURN(
      const uint64_t stale,
      VisitItems(impl_.get(), rows, [&](size_t i, uint64_t leaf, uint32_t generation) {
        items.emplace_back(leaf, generation, priorities[i]);
      }));
  return engine::WithLogRoom(impl_->database.get(), Deadline::AfterMs(engine::kAdmissionMs),
                             [&] { return engine::CommitSet(impl_.get(), items, stale); });
}

Result<SetOutcome> PriorityTable::Delete(std::span<const ItemHandle> handles) {
  std::vector<engine::fb::Handed> items;
  items.reserve(handles.size());
  for (const ItemHandle& handle : handles) items.emplace_back(handle.leaf, handle.generation);
  return engine::CommitDelete(impl_.get(), items, 0);
}

Result<SetOutcome> PriorityTable::Delete(std::span<const RowId> rows) {
  std::vector<engine::fb::Handed> items;
  GEARDB_ASSIGN_OR_RETURN(
      const uint64_t stale,
      VisitItems(impl_.get(), rows, [&](size_t, uint64_t leaf, uint32_t generation) {
        items.emplace_back(leaf, generation);
      }));
  return engine::CommitDelete(impl_.get(), items, stale);
}

Result<SetOutcome> PriorityTable::SetAll(std::span<const float> priorities) {
  GEARDB_RETURN_IF_ERROR(engine::CheckRawPriorities(spec(), priorities));
  return engine::WithLogRoom(impl_->database.get(), Deadline::AfterMs(engine::kAdmissionMs),
                             [&] { return engine::CommitSetAll(impl_.get(), priorities); });
}

Status PriorityTable::SealGroup(int64_t key) { return engine::SealGroup(impl_.get(), key); }

Result<uint64_t> PriorityTable::SealOverdueGroups() {
  return engine::SealOverdueGroups(impl_->database.get(), impl_->table, impl_->number);
}

Status PriorityTable::BeginEpoch() { return engine::BeginEpoch(impl_.get()); }

Result<PatchOutcome> PriorityTable::Patch(std::span<const ItemHandle> handles, ColumnValues values,
                                          const PatchOptions& options) {
  const engine::ResolvePatch resolve = [this, handles](const engine::TableState& state,
                                                       engine::PatchRows* rows) {
    return engine::ResolveHandles(state, impl_->state(), handles, rows);
  };
  return engine::PatchTable(impl_->database.get(), impl_->table, resolve, values, options);
}

uint64_t PriorityTable::Count() const {
  MutexLock lock(&impl_->table->state->mutex);
  return impl_->state().selector().count();
}

uint64_t PriorityTable::DrawableCount() const {
  MutexLock lock(&impl_->table->state->mutex);
  return impl_->state().selector().drawable();
}

std::vector<RowId> PriorityTable::Items() const {
  MutexLock lock(&impl_->table->state->mutex);
  std::vector<RowId> rows;
  for (const engine::ListedItem& item : engine::ListItems(*impl_)) rows.push_back(item.row);
  return rows;
}

Result<float> PriorityTable::Priority(const RowId& row) const {
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckProcess());
  MutexLock lock(&impl_->table->state->mutex);
  const uint64_t leaf = engine::FindItem(*impl_, row);
  if (leaf == UINT64_MAX) {
    return Status::NotFound("priority table '", spec().name, "': row ", row.row, " of trajectory ",
                            row.id, " is no item");
  }
  return impl_->state().raw_priority(leaf);
}

Result<double> PriorityTable::Probability(const RowId& row) const {
  GEARDB_RETURN_IF_ERROR(impl_->database->CheckProcess());
  MutexLock lock(&impl_->table->state->mutex);
  const uint64_t leaf = engine::FindItem(*impl_, row);
  if (leaf == UINT64_MAX) {
    return Status::NotFound("priority table '", spec().name, "': row ", row.row, " of trajectory ",
                            row.id, " is no item");
  }
  return impl_->state().ProbabilityOf(leaf);
}

float PriorityTable::MaxPriority() const {
  MutexLock lock(&impl_->table->state->mutex);
  return impl_->state().max_priority();
}

PriorityTableStats PriorityTable::Stats() const {
  MutexLock lock(&impl_->table->state->mutex);
  return engine::StatsOf(*impl_->table->state, impl_->state());
}

Status PriorityTable::Configure(const PriorityLimits& limits) {
  GEARDB_RETURN_IF_ERROR(engine::ConfigureLimits(impl_.get(), limits));
  engine::RemoveAllFinishedOf(impl_->database.get(), impl_->table);
  return Status::Ok();
}

Status PriorityTable::SetFilter(const std::string& filter, FilterAction action) {
  return engine::SetStandingFilter(impl_.get(), filter, action);
}

BlockReport PriorityTable::WhyBlocked() const {
  MutexLock lock(&impl_->table->state->mutex);
  return engine::WhyBlocked(*impl_->table->state, impl_->state());
}

Result<std::unique_ptr<Sampler>> PriorityTable::NewSampler(const SamplerOptions& options) {
  const SamplerPart whole;
  GEARDB_ASSIGN_OR_RETURN(auto impl, engine::MakeSampler({&impl_, 1}, {&whole, 1}, options));
  return std::unique_ptr<Sampler>(new Sampler(std::move(impl)));
}

}  // namespace geardb
