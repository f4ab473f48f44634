#include "engine/internal/table_plan.h"

#include <algorithm>

namespace geardb::engine {

Result<std::unique_ptr<TablePlan>> TablePlan::Create(index::IndexMemory* memory,
                                                     TableState* state) {
  std::unique_ptr<TablePlan> plan(new TablePlan(state));
  const std::string& name = state->layout().spec().name;
  GEARDB_ASSIGN_OR_RETURN(plan->lpns_,
                          index::LpnAllocator::Create(memory, name + " LPNs", UINT32_MAX - 1));
  GEARDB_ASSIGN_OR_RETURN(plan->slots_,
                          index::LpnAllocator::Create(memory, name + " slots", UINT32_MAX - 1));
  return plan;
}

bool TablePlan::tracks_pages() const {
  const TableSpec& spec = state_->layout().spec();
  return spec.remover == Remover::kFifo && (spec.steps_max > 0 || spec.bytes_max > 0);
}

Status TablePlan::TakeOver(bool created) {
  MutexLock lock(&state_->mutex);
  struct Birth {
    Lsn lsn;
    Aged page;
  };
  std::vector<Birth> births;
  std::vector<Birth> closings;
  Status status;
  uint64_t last_generation = 0;
  TrajectoryId last_id = 0;
  GEARDB_RETURN_IF_ERROR(ReserveNumbers(1, 1));
  state_->trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    if (!slots_.AllocateSpecific(slot)) status = Status::Internal("slot ", slot, " taken twice");
    slots_in_use_[slot] = SlotInUse{record.last_lsn, record.generation, record.first_row, 0};
    last_generation = std::max<uint64_t>(last_generation, record.generation);
    last_id = std::max(last_id, record.id);
    rows_ += record.rows_end - record.first_row;
    if (record.state != index::TrajectoryState::kOpen) {
      closings.push_back({record.last_lsn, {slot, record.generation}});
    }
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state_->pages().page(lpn).next) {
      const uint32_t generation = state_->pages().page(lpn).generation;
      if (!lpns_.AllocateSpecific(lpn)) status = Status::Internal("LPN ", lpn, " taken twice");
      pages_in_use_[lpn].generation = generation;
      last_generation = std::max<uint64_t>(last_generation, generation);
      births.push_back({state_->pages().group_page(0, lpn).birth_lsn, {lpn, generation}});
    }
  });
  GEARDB_RETURN_IF_ERROR(status);
  const auto older = [](const Birth& a, const Birth& b) {
    return a.lsn != b.lsn ? a.lsn < b.lsn : a.page.generation < b.page.generation;
  };
  if (tracks_pages()) {
    std::sort(births.begin(), births.end(), older);
    for (const Birth& birth : births) pages_by_age_.push_back(birth.page);
  }
  if (state_->layout().spec().trajectories_max > 0) {
    std::sort(closings.begin(), closings.end(), older);
    for (const Birth& closing : closings) NoteLeft(closing.page.number);
  }
  // What was removed, or lost with the end of the log, had ids and generations, too: only what was
  // promised is beyond all of them.
  next_id = std::max(next_id, last_id + 1);
  next_generation = std::max(next_generation, last_generation + 1);
  if (!created) {
    next_id = std::max(next_id, ids_end);
    next_generation = std::max(next_generation, generations_end);
  }
  max_priority.clear();
  for (size_t i = 0; i < state_->priority_table_count(); ++i) {
    max_priority.push_back(state_->priority(i).max_priority());
  }
  return Status::Ok();
}

bool TablePlan::Over(const Growth& growth) const {
  const TableSpec& spec = state_->layout().spec();
  const uint64_t frame_bytes = state_->layout().pages().frame_bytes();
  return (spec.steps_max > 0 && rows_ + growth.rows > spec.steps_max) ||
         (spec.bytes_max > 0 && (lpns_.used() + growth.pages) * frame_bytes > spec.bytes_max) ||
         (spec.trajectories_max > 0 && slots_.used() + growth.trajectories > spec.trajectories_max);
}

Status TablePlan::CheckFits(const Growth& growth) const {
  const TableSpec& spec = state_->layout().spec();
  const uint64_t bytes = growth.pages * state_->layout().pages().frame_bytes();
  const bool fits = (spec.steps_max == 0 || growth.rows <= spec.steps_max) &&
                    (spec.bytes_max == 0 || bytes <= spec.bytes_max) &&
                    (spec.trajectories_max == 0 || growth.trajectories <= spec.trajectories_max);
  if (fits) return Status::Ok();
  return Status::InvalidArgument(
      "table '", spec.name, "': one call adds ", growth.rows, " rows, ", bytes, " bytes, ",
      growth.trajectories, " trajectories; the table may hold ", spec.steps_max, " rows, ",
      spec.bytes_max, " bytes, ", spec.trajectories_max, " trajectories (0 is no bound)");
}

Status TablePlan::FullStatus(const Growth& growth) const {
  const TableSpec& spec = state_->layout().spec();
  std::string why = "remover none";
  if (spec.remover == Remover::kFifo) {
    why = "remover fifo finds nothing that may leave";
    if (!open_lanes_.empty()) {
      why += ", since " + std::to_string(open_lanes_.size()) +
             " trajectories are open and each keeps a row at least";
    }
    const uint64_t least = open_lanes_.size() + growth.rows;
    if (spec.steps_max > 0 && spec.steps_max < least) {
      why += ": with this call steps_max must be " + std::to_string(least) + " or more";
    }
  }
  return Status::ResourceExhausted(
      "table '", spec.name, "' is full: it holds ", slots_.used(), " trajectories (at most ",
      spec.trajectories_max, "), ", rows_, " rows (at most ", spec.steps_max, "), ",
      lpns_.used() * state_->layout().pages().frame_bytes(), " bytes (at most ", spec.bytes_max,
      "; 0 is no bound), and ", growth.trajectories, " trajectories, ", growth.rows, " rows, ",
      growth.pages, " pages more were asked for; ", why);
}

Status TablePlan::Evict(const Growth& growth, size_t entries_max, const WaitPublished& wait,
                        Eviction* eviction) {
  const TableSpec& spec = state_->layout().spec();
  size_t passed_over = 0;
  while (Over(growth) && eviction->size() < entries_max) {
    if (spec.remover == Remover::kNone) return FullStatus(growth);
    const bool too_many =
        spec.trajectories_max > 0 && slots_.used() + growth.trajectories > spec.trajectories_max;
    Status status = too_many ? EvictOldestClosed(wait, eviction)
                             : EvictOldestPage(wait, &passed_over, eviction);
    if (status.code() == StatusCode::kNotFound && !too_many) {
      status = TrimOpenHeads(growth, entries_max, wait, eviction);
    }
    if (status.code() == StatusCode::kNotFound) return FullStatus(growth);
    GEARDB_RETURN_IF_ERROR(status);
  }
  return Status::Ok();
}

Status TablePlan::EvictOldestClosed(const WaitPublished& wait, Eviction* eviction) {
  while (!left_by_age_.empty()) {
    const Aged oldest = left_by_age_.front();
    const SlotInUse& slot = slots_in_use_[oldest.number];
    const bool counts = slot.generation == oldest.generation && slot.left_age == oldest.age;
    // It stays in the list if this fails.
    if (counts) GEARDB_RETURN_IF_ERROR(wait(last_lsn(oldest.number)));
    left_by_age_.pop_front();
    if (!counts) continue;
    eviction->removed.push_back(Remove(oldest.number));
    return Status::Ok();
  }
  return Status::NotFound("nothing is left that no writer has");
}

Status TablePlan::EvictOldestPage(const WaitPublished& wait, size_t* passed_over,
                                  Eviction* eviction) {
  while (*passed_over < pages_by_age_.size()) {
    const auto at = pages_by_age_.begin() + static_cast<ptrdiff_t>(*passed_over);
    const Aged oldest = *at;
    if (pages_in_use_[oldest.number].generation != oldest.generation) {
      pages_by_age_.erase(at);
      continue;
    }
    bool published = false;
    {
      MutexLock lock(&state_->mutex);
      published = state_->pages().IsLive(oldest.number, oldest.generation);
    }
    if (!published) GEARDB_RETURN_IF_ERROR(wait(kNoLsn));
    Slot slot = kNoSlot;
    uint64_t next_row = 0;
    {
      MutexLock lock(&state_->mutex);
      const index::PageRecord& page = state_->pages().page(oldest.number);
      slot = page.slot;
      next_row = (uint64_t{page.page_number} + 1) * state_->layout().steps_per_page();
    }
    GEARDB_RETURN_IF_ERROR(wait(last_lsn(slot)));
    const Lane* lane = OpenLane(slot);
    if (lane == nullptr) {
      eviction->removed.push_back(Remove(slot));
      return Status::Ok();
    }
    if (static_cast<int64_t>(next_row) >= lane->rows_end) {
      // The page that is being written stays, and keeps its age.
      ++*passed_over;
      continue;
    }
    eviction->trimmed.push_back(Trim(slot, next_row));
    return Status::Ok();
  }
  return Status::NotFound("no page may leave");
}

Status TablePlan::TrimOpenHeads(const Growth& growth, size_t entries_max, const WaitPublished& wait,
                                Eviction* eviction) {
  const TableSpec& spec = state_->layout().spec();
  if (spec.steps_max == 0 || rows_ + growth.rows <= spec.steps_max) {
    return Status::NotFound("rows are not what the table has too many of");
  }
  uint64_t excess = rows_ + growth.rows - spec.steps_max;
  uint64_t share = (excess + open_lanes_.size() - 1) / std::max<uint64_t>(open_lanes_.size(), 1);
  const size_t before = eviction->size();
  for (const Aged& aged : pages_by_age_) {
    if (excess == 0 || eviction->size() >= entries_max) break;
    if (pages_in_use_[aged.number].generation != aged.generation) continue;
    Slot slot = kNoSlot;
    {
      MutexLock lock(&state_->mutex);
      slot = state_->pages().page(aged.number).slot;
    }
    const Lane* lane = OpenLane(slot);
    if (lane == nullptr) continue;
    GEARDB_RETURN_IF_ERROR(wait(last_lsn(slot)));
    uint64_t first_row = 0;
    {
      MutexLock lock(&state_->mutex);
      first_row = FirstRow(slot);
    }
    const uint64_t spare = static_cast<uint64_t>(lane->rows_end) - 1 - first_row;
    const uint64_t rows = std::min({spare, share, excess});
    if (rows == 0) continue;
    eviction->trimmed.push_back(Trim(slot, first_row + rows));
    excess -= rows;
  }
  if (eviction->size() == before) return Status::NotFound("no row may leave");
  return Status::Ok();
}

uint64_t TablePlan::FirstRow(Slot slot) const {
  return std::max(state_->trajectories().record(slot).first_row, slots_in_use_[slot].first_row);
}

void TablePlan::FreePage(Lpn lpn) {
  GEARDB_CHECK(lpns_.Free(lpn));
  pages_in_use_[lpn].generation = 0;
}

fb::Removed TablePlan::Remove(Slot slot) {
  MutexLock lock(&state_->mutex);
  const index::TrajectoryRecord& record = state_->trajectories().record(slot);
  for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state_->pages().page(lpn).next) {
    // Pages below a trim that is not published yet are free already.
    if (pages_in_use_[lpn].generation == state_->pages().page(lpn).generation) FreePage(lpn);
  }
  rows_ -= record.rows_end - FirstRow(slot);
  GEARDB_CHECK(slots_.Free(slot));
  slots_in_use_[slot] = SlotInUse{};
  if (Lane* lane = OpenLane(slot)) {
    lane->removed.store(true);
    open_lanes_.erase(slot);
  }
  return fb::Removed(record.id, slot, record.generation);
}

fb::Trimmed TablePlan::Trim(Slot slot, uint64_t first_row) {
  MutexLock lock(&state_->mutex);
  const index::TrajectoryRecord& record = state_->trajectories().record(slot);
  const uint32_t first_page = state_->layout().PageNumber(static_cast<int64_t>(first_row));
  for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state_->pages().page(lpn).next) {
    if (state_->pages().page(lpn).page_number >= first_page) break;
    if (pages_in_use_[lpn].generation == state_->pages().page(lpn).generation) FreePage(lpn);
  }
  // The same eviction may have trimmed it before.
  rows_ -= first_row - FirstRow(slot);
  slots_in_use_[slot].first_row = first_row;
  return fb::Trimmed(first_row, slot, record.generation);
}

Status TablePlan::AdmitNumbers(const Growth& growth) {
  if (growth.pages == 0 && growth.trajectories == 0) return Status::Ok();
  MutexLock lock(&state_->mutex);
  return ReserveNumbers(lpns_.CountFor(growth.pages), slots_.CountFor(growth.trajectories));
}

Status TablePlan::ReserveNumbers(uint64_t lpn_count, uint64_t slot_count) {
  if (lpn_count > lpns_.reserved()) GEARDB_RETURN_IF_ERROR(lpns_.Reserve(lpn_count));
  if (slot_count > slots_.reserved()) GEARDB_RETURN_IF_ERROR(slots_.Reserve(slot_count));
  if (lpn_count > pages_in_use_.size()) pages_in_use_.resize(lpn_count + lpn_count / 8);
  if (slot_count > slots_in_use_.size()) slots_in_use_.resize(slot_count + slot_count / 8);
  return state_->Reserve(lpn_count, slot_count);
}

Slot TablePlan::TakeSlot(Lane* lane, uint32_t generation) {
  const Slot slot = slots_.Allocate();
  GEARDB_CHECK(slot != index::LpnAllocator::kNone);
  slots_in_use_[slot] = SlotInUse{0, generation, 0, 0};
  if (lane != nullptr) open_lanes_[slot] = lane;
  return slot;
}

Lpn TablePlan::TakePage(uint32_t generation) {
  const Lpn lpn = lpns_.Allocate();
  GEARDB_CHECK(lpn != index::LpnAllocator::kNone);
  pages_in_use_[lpn].generation = generation;
  if (tracks_pages()) pages_by_age_.push_back({lpn, generation});
  return lpn;
}

void TablePlan::Note(Slot slot, Lsn lsn) { slots_in_use_[slot].last_lsn = lsn; }

void TablePlan::NoteClosed(Slot slot) {
  open_lanes_.erase(slot);
  NoteLeft(slot);
}

void TablePlan::NoteLeft(Slot slot) {
  if (state_->layout().spec().trajectories_max == 0) return;
  SlotInUse& left = slots_in_use_[slot];
  left.left_age = ++last_age_;
  left_by_age_.push_back({slot, left.generation, left.left_age});
}

Lane* TablePlan::OpenLane(Slot slot) const {
  const auto found = open_lanes_.find(slot);
  return found == open_lanes_.end() ? nullptr : found->second;
}

void TablePlan::SetOpenLane(Slot slot, Lane* lane) {
  if (lane == nullptr) {
    open_lanes_.erase(slot);
    NoteLeft(slot);
  } else {
    open_lanes_[slot] = lane;
    slots_in_use_[slot].left_age = 0;
  }
}

}  // namespace geardb::engine
