#include "engine/internal/eviction.h"

#include <algorithm>

#include "base/break.h"
#include "base/check.h"
#include "engine/internal/table_plan.h"

namespace geardb::engine {
namespace {

template <typename Entry>
void Move(size_t count, size_t behind, std::vector<Entry>* from, std::vector<Entry>* to) {
  const size_t first = std::min(behind, from->size());
  const auto begin = from->begin() + static_cast<ptrdiff_t>(first);
  const auto end = begin + static_cast<ptrdiff_t>(std::min(count, from->size() - first));
  to->assign(begin, end);
  from->erase(begin, end);
}

}  // namespace

Eviction Eviction::Split(size_t count, size_t behind) {
  Eviction split;
  const size_t not_removed = behind - std::min(behind, removed.size());
  Move(count, behind, &removed, &split.removed);
  Move(count - split.removed.size(), not_removed, &trimmed, &split.trimmed);
  return split;
}

EvictionChoice::EvictionChoice(TablePlan* plan, const WaitPublished& wait)
    : plan_(*plan),
      wait_(wait),
      rows_(plan->rows_),
      pages_(plan->lpns_.used()),
      slots_(plan->slots_.used()),
      companion_bytes_(plan->companion_bytes()) {}

bool EvictionChoice::TooManyTrajectories(const Growth& growth) const {
  const uint64_t most = plan_.state_->layout().spec().trajectories_max;
  return most > 0 && slots_ + growth.trajectories > most;
}

bool EvictionChoice::Over(const Growth& growth) const {
  return TooManyTrajectories(growth) || plan_.OverInRows({rows_, pages_, companion_bytes_}, growth);
}

Status EvictionChoice::Choose(const Growth& growth, Eviction* eviction,
                              std::span<const Slot> leaving) {
  eviction_ = eviction;
  for (const Slot slot : leaving) Remove(slot);
  while (Over(growth)) {
    if (plan_.state_->layout().spec().remover == Remover::kNone) return plan_.FullStatus(growth);
    const bool too_many = TooManyTrajectories(growth);
    Status status = Status::NotFound("");
    if (plan_.remover_ != nullptr) {
      status = ChooseByRemover();
    } else if (too_many) {
      status = ChooseOldestLeft();
    }
    if (status.code() == StatusCode::kNotFound && !too_many) status = ChooseOldestPage();
    if (status.code() == StatusCode::kNotFound && !too_many) status = ChooseHeads(growth);
    if (status.code() == StatusCode::kNotFound) return plan_.FullStatus(growth);
    GEARDB_RETURN_IF_ERROR(status);
  }
  return Status::Ok();
}

EvictionChoice::~EvictionChoice() {
  if (began_) plan_.remover_->End();
}

Status EvictionChoice::ChooseByRemover() {
  if (!began_) {
    // Priorities are those of all that has an LSN.
    if (plan_.heap_ != nullptr) GEARDB_RETURN_IF_ERROR(wait_(kNoLsn));
    plan_.BeginChoice();
    began_ = true;
  }
  std::optional<Slot> slot = plan_.remover_->Next();
  while (slot && Removed(*slot)) slot = plan_.remover_->Next();
  if (!slot) return Status::NotFound("nothing is left that no writer has");
  GEARDB_RETURN_IF_ERROR(wait_(plan_.last_lsn(*slot)));
  Remove(*slot);
  return Status::Ok();
}

Status EvictionChoice::ChooseOldestLeft() {
  auto& left = plan_.left_by_age_;
  while (left_at_ < left.size()) {
    const TablePlan::Left oldest = left[kBreak.evict_newest ? left.size() - 1 : left_at_];
    const TablePlan::SlotInUse& slot = plan_.slots_in_use_[oldest.slot];
    if (slot.generation != oldest.generation || slot.left_age != oldest.age) {
      left.erase(left.begin() + static_cast<ptrdiff_t>(left_at_));
      continue;
    }
    ++left_at_;
    if (Removed(oldest.slot)) continue;
    GEARDB_RETURN_IF_ERROR(wait_(slot.last_lsn));
    Remove(oldest.slot);
    return Status::Ok();
  }
  return Status::NotFound("nothing is left that no writer has");
}

Status EvictionChoice::ChooseOldestPage() {
  TableState& state = *plan_.state_;
  auto& pages = plan_.pages_by_age_;
  while (page_at_ < pages.size()) {
    const TablePlan::PageOfAge oldest = pages[page_at_];
    if (plan_.pages_in_use_[oldest.lpn].generation != oldest.generation) {
      pages.erase(pages.begin() + static_cast<ptrdiff_t>(page_at_));
      continue;
    }
    bool published = false;
    {
      MutexLock lock(&state.mutex);
      published = state.pages().IsLive(oldest.lpn, oldest.generation);
    }
    if (!published) GEARDB_RETURN_IF_ERROR(wait_(kNoLsn));
    const auto [slot, next_row] = PlaceOf(oldest.lpn);
    ++page_at_;
    if (Removed(slot)) continue;
    GEARDB_RETURN_IF_ERROR(wait_(plan_.last_lsn(slot)));
    const Lane* lane = plan_.OpenLane(slot);
    if (lane == nullptr) {
      Remove(slot);
      return Status::Ok();
    }
    // The page that is being written stays, and keeps its age.
    if (static_cast<int64_t>(next_row) >= lane->rows_end || next_row <= FirstRow(slot)) continue;
    Trim(slot, next_row);
    return Status::Ok();
  }
  return Status::NotFound("no page may leave");
}

Status EvictionChoice::ChooseHeads(const Growth& growth) {
  const uint64_t most = plan_.state_->layout().spec().steps_max;
  if (most == 0 || rows_ + growth.rows <= most) {
    return Status::NotFound("rows are not what the table has too many of");
  }
  uint64_t excess = rows_ + growth.rows - most;
  const uint64_t open = std::max<uint64_t>(plan_.open_lanes_.size(), 1);
  const uint64_t share = (excess + open - 1) / open;
  const uint64_t before = rows_;
  for (const TablePlan::PageOfAge& aged : plan_.pages_by_age_) {
    if (excess == 0) break;
    if (plan_.pages_in_use_[aged.lpn].generation != aged.generation) continue;
    const auto [slot, next_row] = PlaceOf(aged.lpn);
    const Lane* lane = plan_.OpenLane(slot);
    if (lane == nullptr || Removed(slot)) continue;
    GEARDB_RETURN_IF_ERROR(wait_(plan_.last_lsn(slot)));
    const uint64_t first_row = FirstRow(slot);
    // Of each only the page that is being written is left: the others have been chosen.
    if (next_row <= first_row) continue;
    const uint64_t spare = static_cast<uint64_t>(lane->rows_end) - 1 - first_row;
    const uint64_t rows = std::min({spare, share, excess});
    if (rows == 0) continue;
    Trim(slot, first_row + rows);
    excess -= rows;
  }
  if (rows_ == before) return Status::NotFound("no row may leave");
  return Status::Ok();
}

EvictionChoice::PagePlace EvictionChoice::PlaceOf(Lpn lpn) const {
  const TableState& state = *plan_.state_;
  MutexLock lock(&plan_.state_->mutex);
  const index::PageRecord& page = state.pages().page(lpn);
  return {page.slot, (uint64_t{page.page_number} + 1) * state.layout().steps_per_page()};
}

uint64_t EvictionChoice::FirstRow(Slot slot) const {
  const auto touched = touched_.find(slot);
  if (touched != touched_.end()) return touched->second.first_row;
  MutexLock lock(&plan_.state_->mutex);
  return plan_.FirstRow(slot);
}

uint64_t EvictionChoice::CompanionBytes(Slot slot, uint64_t first_row) const {
  return plan_.companions_.empty() ? 0 : plan_.state_->CompanionBytesBelow(slot, first_row);
}

bool EvictionChoice::Removed(Slot slot) const {
  const auto touched = touched_.find(slot);
  return touched != touched_.end() && touched->second.removed;
}

uint64_t EvictionChoice::PagesFrom(uint64_t first_row, uint64_t rows_end) const {
  if (first_row == rows_end) return 0;
  const uint64_t steps = plan_.state_->layout().steps_per_page();
  return (rows_end - 1) / steps - first_row / steps + 1;
}

void EvictionChoice::Remove(Slot slot) {
  const uint64_t first_row = FirstRow(slot);
  fb::Removed removed;
  uint64_t rows_end = 0;
  {
    MutexLock lock(&plan_.state_->mutex);
    const index::TrajectoryRecord& record = plan_.state_->trajectories().record(slot);
    rows_end = record.rows_end;
    companion_bytes_ -= CompanionBytes(slot, UINT64_MAX) - CompanionBytes(slot, first_row);
    removed = fb::Removed(record.id, slot, record.generation);
  }
  rows_ -= rows_end - first_row;
  pages_ -= PagesFrom(first_row, rows_end);
  --slots_;
  touched_[slot] = {.removed = true, .first_row = rows_end};
  eviction_->removed.push_back(removed);
}

void EvictionChoice::Trim(Slot slot, uint64_t first_row) {
  GEARDB_CHECK(!Removed(slot));
  const uint64_t old_first_row = FirstRow(slot);
  const uint64_t steps = plan_.state_->layout().steps_per_page();
  if (!plan_.companions_.empty()) {
    MutexLock lock(&plan_.state_->mutex);
    companion_bytes_ -= CompanionBytes(slot, first_row) - CompanionBytes(slot, old_first_row);
  }
  rows_ -= first_row - old_first_row;
  pages_ -= first_row / steps - old_first_row / steps;
  const auto [touched, fresh] =
      touched_.try_emplace(slot, Touched{.trimmed_place = eviction_->trimmed.size()});
  touched->second.first_row = first_row;
  const fb::Trimmed trimmed(first_row, slot, plan_.slots_in_use_[slot].generation);
  if (fresh) {
    eviction_->trimmed.push_back(trimmed);
  } else {
    eviction_->trimmed[touched->second.trimmed_place] = trimmed;
  }
}

}  // namespace geardb::engine
