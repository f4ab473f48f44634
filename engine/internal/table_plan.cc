#include "engine/internal/table_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/break.h"
#include "engine/internal/remover_rule.h"
#include "engine/internal/table_capacity.h"
#include "index/lifo_remover.h"
#include "index/uniform_remover.h"

namespace geardb::engine {

Result<std::unique_ptr<TablePlan>> TablePlan::Create(index::IndexMemory* memory,
                                                     TableState* state) {
  std::unique_ptr<TablePlan> plan(new TablePlan(state));
  const std::string& name = state->layout().spec().name;
  const uint64_t slot_capacity = SlotCapacityOf(*memory);
  GEARDB_ASSIGN_OR_RETURN(
      plan->lpns_, index::LpnAllocator::Create(memory, name + " LPNs", LpnCapacityOf(*memory)));
  GEARDB_ASSIGN_OR_RETURN(plan->slots_,
                          index::LpnAllocator::Create(memory, name + " slots", slot_capacity));
  plan->pages_in_use_ = {memory, name + " pages in use"};
  plan->slots_in_use_ = {memory, name + " slots in use"};
  const TableSpec& spec = state->layout().spec();
  if (spec.trajectories_max == 0 && spec.steps_max == 0 && spec.bytes_max == 0) return plan;
  if (spec.remover == Remover::kLifo) {
    plan->remover_ = std::make_unique<index::LifoRemover>();
  } else if (spec.remover == Remover::kUniform) {
    GEARDB_ASSIGN_OR_RETURN(
        plan->remover_,
        index::UniformRemover::Create(memory, name + " remover",
                                      {.slot_capacity = slot_capacity, .seed = spec.remover_seed}));
  } else if (RemovesByPriority(spec.remover)) {
    auto heap = std::make_unique<index::HeapRemover>(
        spec.remover == Remover::kMinHeap ? index::HeapRemover::Order::kSmallestFirst
                                          : index::HeapRemover::Order::kLargestFirst);
    plan->heap_ = heap.get();
    plan->remover_ = std::move(heap);
  }
  return plan;
}

bool TablePlan::tracks_pages() const {
  const TableSpec& spec = state_->layout().spec();
  return spec.remover != Remover::kNone && (spec.steps_max > 0 || spec.bytes_max > 0);
}

Status TablePlan::TakeOver(bool created) {
  MutexLock lock(&state_->mutex);
  struct Birth {
    Lsn lsn;
    PageOfAge page;
  };
  const bool by_page = tracks_pages();
  std::vector<Birth> births;
  struct LeftSlot {
    Lsn age;
    uint32_t generation;
    Slot slot;
  };
  std::vector<LeftSlot> left;
  Status status;
  uint64_t last_generation = 0;
  TrajectoryId last_id = 0;
  GEARDB_RETURN_IF_ERROR(ReserveNumbers(1, 1));
  removed_ = state_->removals().end();
  if (heap_ != nullptr) {
    GEARDB_ASSIGN_OR_RETURN(heap_table_, FindRemoverTable(*state_));
    state_->FollowPriorities(heap_table_);
  }
  state_->trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    if (!slots_.AllocateSpecific(slot)) status = Status::Internal("slot ", slot, " taken twice");
    slots_in_use_[slot] = SlotInUse{.last_lsn = record.last_lsn,
                                    .generation = record.generation,
                                    .first_row = record.first_row,
                                    .age = record.last_lsn};
    last_generation = std::max<uint64_t>(last_generation, record.generation);
    last_id = std::max(last_id, record.id);
    rows_ += (kBreak.count_rows_twice ? 2 : 1) * (record.rows_end - record.first_row);
    if (record.state != index::TrajectoryState::kOpen) {
      left.push_back({record.last_lsn, record.generation, slot});
    }
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state_->pages().page(lpn).next) {
      const uint32_t generation = state_->pages().page(lpn).generation;
      if (!lpns_.AllocateSpecific(lpn)) status = Status::Internal("LPN ", lpn, " taken twice");
      pages_in_use_[lpn].generation = generation;
      last_generation = std::max<uint64_t>(last_generation, generation);
      if (!by_page) continue;
      births.push_back({state_->pages().group_page(0, lpn).birth_lsn, {lpn, generation}});
    }
  });
  GEARDB_RETURN_IF_ERROR(status);
  if (by_page) {
    std::sort(births.begin(), births.end(), [](const Birth& a, const Birth& b) {
      return std::tie(a.lsn, a.page.generation) < std::tie(b.lsn, b.page.generation);
    });
    for (const Birth& birth : births) pages_by_age_.push_back(birth.page);
  }
  std::sort(left.begin(), left.end(), [](const LeftSlot& a, const LeftSlot& b) {
    return std::tie(a.age, a.generation) < std::tie(b.age, b.generation);
  });
  for (const LeftSlot& one : left) NoteLeft(one.slot);
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
  const uint64_t most = state_->layout().spec().trajectories_max;
  return (most > 0 && slots_.used() + growth.trajectories > most) ||
         OverInRows({rows_, lpns_.used(), companion_bytes()}, growth);
}

void TablePlan::Promise(const Growth& growth, Growth* own) {
  if (state_->layout().spec().remover != Remover::kNone) return;
  *own = growth;
  promised_.Add(growth);
}

bool TablePlan::TakeBack(Growth* own) {
  promised_.Subtract(*own);
  return std::exchange(*own, {}) != Growth();
}

Growth TablePlan::WithPromised(const Growth& growth, const Growth& own) const {
  Growth all = promised_;
  all.Subtract(own);
  all.Add(growth);
  return all;
}

bool TablePlan::OverInRows(const Held& held, const Growth& growth) const {
  const TableSpec& spec = state_->layout().spec();
  const bool adds_bytes = growth.pages > 0 || growth.companion_bytes > 0;
  const uint64_t bytes = (held.pages + growth.pages) * state_->layout().page_bytes() +
                         held.companion_bytes + growth.companion_bytes;
  return (spec.steps_max > 0 && held.rows + growth.rows > spec.steps_max) ||
         (spec.bytes_max > 0 && adds_bytes && bytes > spec.bytes_max);
}

Status TablePlan::CheckFits(const Growth& growth) const {
  const TableSpec& spec = state_->layout().spec();
  const uint64_t page_bytes = state_->layout().page_bytes();
  const bool bytes_fit = spec.bytes_max == 0 ||
                         (growth.companion_bytes <= spec.bytes_max &&
                          growth.pages <= (spec.bytes_max - growth.companion_bytes) / page_bytes);
  const bool fits = (spec.steps_max == 0 || growth.rows <= spec.steps_max) && bytes_fit &&
                    (spec.trajectories_max == 0 || growth.trajectories <= spec.trajectories_max);
  if (fits) return Status::Ok();
  return Status::InvalidArgument("table '", spec.name, "': one call adds ", growth.rows, " rows, ",
                                 growth.pages, " pages of ", page_bytes, " bytes, ",
                                 growth.trajectories, " trajectories; the table may hold ",
                                 spec.steps_max, " rows, ", spec.bytes_max, " bytes, ",
                                 spec.trajectories_max, " trajectories (0 is no bound)");
}

Status TablePlan::FullStatus(const Growth& growth) const {
  const TableSpec& spec = state_->layout().spec();
  std::string why = "remover none";
  if (spec.remover != Remover::kNone) {
    why = "remover " + std::string(RemoverName(spec.remover)) + " finds nothing that may leave";
    if (!open_lanes_.empty()) {
      why += ", since " + std::to_string(open_lanes_.size()) +
             " trajectories are open and each keeps a row at least" +
             (companions_.empty() ? "" : ", with all values of the page that it is in");
    }
    const uint64_t least = open_lanes_.size() + growth.rows;
    if (spec.steps_max > 0 && spec.steps_max < least) {
      why += ": with this call steps_max must be " + std::to_string(least) + " or more";
    }
  }
  if (promised_ != Growth()) why += "; what appends in parts were promised counts";
  const auto bound = [](uint64_t most) {
    return most == 0 ? std::string() : " (at most " + std::to_string(most) + ")";
  };
  return Status::ResourceExhausted(
      "table '", spec.name, "' is full: it holds ", slots_.used(), " trajectories",
      bound(spec.trajectories_max), ", ", rows_, " rows", bound(spec.steps_max), ", ",
      lpns_.used() * state_->layout().page_bytes() + companion_bytes(), " bytes",
      bound(spec.bytes_max), ", and ", growth.trajectories, " trajectories, ", growth.rows,
      " rows, ", growth.pages, " pages more were asked for; ", why);
}

void TablePlan::Take(const Eviction& eviction) {
  for (const fb::Removed& removed : eviction.removed) Remove(removed.slot());
  for (const fb::Trimmed& trimmed : eviction.trimmed) Trim(trimmed.slot(), trimmed.first_row());
}

uint64_t TablePlan::FirstRow(Slot slot) const {
  return std::max(state_->trajectories().record(slot).first_row, slots_in_use_[slot].first_row);
}

void TablePlan::FreePage(Lpn lpn) {
  GEARDB_CHECK(lpns_.Free(lpn));
  pages_in_use_[lpn].generation = 0;
}

fb::Removed TablePlan::Remove(Slot slot) {
  for (size_t k = 0; k < companions_.size(); ++k) EmptyCompanion(k, slot);
  MutexLock lock(&state_->mutex);
  const index::TrajectoryRecord& record = state_->trajectories().record(slot);
  for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state_->pages().page(lpn).next) {
    // Pages below a trim that is not published yet are free already.
    if (pages_in_use_[lpn].generation == state_->pages().page(lpn).generation) FreePage(lpn);
  }
  rows_ -= record.rows_end - FirstRow(slot);
  ++removed_;
  if (remover_ != nullptr) remover_->Erase(slot);
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
  for (size_t k = 0; k < companions_.size(); ++k) TrimCompanion(k, slot, first_row);
  // A trim before it may not be published yet.
  rows_ -= first_row - FirstRow(slot);
  slots_in_use_[slot].first_row = first_row;
  return fb::Trimmed(first_row, slot, record.generation);
}

void TablePlan::UseCompanions(std::vector<TablePlan*> companions) {
  companions_ = std::move(companions);
  for (TablePlan* companion : companions_) {
    if (companion != nullptr) companion->owner_ = this;
  }
}

uint64_t TablePlan::companion_bytes() const {
  uint64_t bytes = 0;
  for (const TablePlan* companion : companions_) {
    if (companion == nullptr) continue;
    bytes += companion->lpns_.used() * companion->state_->layout().page_bytes();
  }
  return bytes;
}

void TablePlan::EmptyCompanion(size_t companion, Slot slot) {
  if (companions_[companion] == nullptr) return;
  TablePlan& plan = *companions_[companion];
  const bool there = slot < plan.slots_in_use_.size() && plan.slots_in_use_[slot].generation != 0;
  if (there) plan.Remove(slot);
}

void TablePlan::EmptyCompanion(size_t companion) {
  const uint64_t slots = companions_[companion]->slots_in_use_.size();
  for (uint64_t slot = 0; slot < slots; ++slot) EmptyCompanion(companion, static_cast<Slot>(slot));
}

void TablePlan::TrimCompanion(size_t number, Slot slot, uint64_t first_row) {
  if (companions_[number] == nullptr) return;
  TablePlan& plan = *companions_[number];
  const TableState& rows = *plan.state_;
  uint64_t pages = state_->RaggedPagesBelow(number, slot, first_row);
  if (pages == 0) return;
  Lpn lpn = rows.trajectories().record(slot).head_lpn;
  for (; pages > 0; --pages, lpn = rows.pages().page(lpn).next) {
    // Those of a trim before it, which may not be published yet, are free already.
    if (plan.pages_in_use_[lpn].generation == rows.pages().page(lpn).generation) plan.FreePage(lpn);
  }
  const uint64_t first =
      uint64_t{rows.pages().page(lpn).page_number} * rows.layout().steps_per_page();
  SlotInUse& in_use = plan.slots_in_use_[slot];
  if (first > in_use.first_row) {
    plan.rows_ -= first - std::max(in_use.first_row, rows.trajectories().record(slot).first_row);
    in_use.first_row = first;
  }
}

Slot TablePlan::TakeSlotOf(Slot owner, uint32_t generation) {
  GEARDB_CHECK(slots_.AllocateSpecific(owner));
  slots_in_use_[owner] = SlotInUse{.generation = generation};
  return owner;
}

Status TablePlan::AdmitNumbers(const Growth& growth) {
  if (growth.pages == 0 && growth.trajectories == 0) return Status::Ok();
  MutexLock lock(&state_->mutex);
  if (owner_ != nullptr) {
    return ReserveNumbers(lpns_.CountFor(growth.pages), owner_->slots_.reserved(), /*ahead=*/true);
  }
  return ReserveNumbers(lpns_.CountFor(growth.pages), slots_.CountFor(growth.trajectories),
                        /*ahead=*/true);
}

Status TablePlan::ReserveNumbers(uint64_t lpn_count, uint64_t slot_count, bool ahead) {
  if (lpn_count > lpns_.reserved()) GEARDB_RETURN_IF_ERROR(lpns_.Reserve(lpn_count));
  if (slot_count > slots_.reserved()) GEARDB_RETURN_IF_ERROR(slots_.Reserve(slot_count));
  if (remover_ != nullptr) GEARDB_RETURN_IF_ERROR(remover_->Reserve(slots_.reserved()));
  GEARDB_RETURN_IF_ERROR(pages_in_use_.Reserve(lpn_count));
  GEARDB_RETURN_IF_ERROR(slots_in_use_.Reserve(slot_count));
  return state_->Reserve(lpn_count, slot_count, ahead);
}

Slot TablePlan::TakeSlot(Lane* lane, uint32_t generation) {
  const Slot slot = slots_.Allocate();
  GEARDB_CHECK(slot != index::LpnAllocator::kNone);
  slots_in_use_[slot] = SlotInUse{.generation = generation};
  if (lane != nullptr) open_lanes_[slot] = lane;
  return slot;
}

Lpn TablePlan::TakePage(uint32_t generation) {
  const Lpn lpn = lpns_.Allocate();
  GEARDB_CHECK(lpn != index::LpnAllocator::kNone);
  pages_in_use_[lpn].generation = generation;
  if (tracks_pages()) {
    CompactPages();
    pages_by_age_.push_back({lpn, generation});
  }
  return lpn;
}

void TablePlan::CompactPages() {
  // The oldest page leaves first by fifo alone.
  constexpr size_t kFew = 1024;
  if (remover_ == nullptr || pages_by_age_.size() < 2 * lpns_.used() + kFew) return;
  std::erase_if(pages_by_age_, [this](const PageOfAge& page) {
    return pages_in_use_[page.lpn].generation != page.generation;
  });
}

void TablePlan::BeginChoice() {
  if (heap_ != nullptr) ReadPriorities();
  remover_->Begin(removed_);
}

void TablePlan::ReadPriorities() {
  MutexLock lock(&state_->mutex);
  state_->TakeChangedPriorities(&unread_);
  for (const Slot slot : unread_) {
    if (slots_in_use_[slot].left_age == 0) continue;  // A writer has it; or it has left.
    heap_->SetPriority(slot, state_->LargestPriority(heap_table_, slot));
  }
  unread_.clear();
}

void TablePlan::Note(Slot slot, Lsn end) { slots_in_use_[slot].last_lsn = end; }

void TablePlan::NoteUse(Slot slot, Lsn end) {
  slots_in_use_[slot].last_lsn = end;
  slots_in_use_[slot].age = end;
}

void TablePlan::NoteClosed(Slot slot) {
  open_lanes_.erase(slot);
  NoteLeft(slot);
}

void TablePlan::NoteLeft(Slot slot) {
  SlotInUse& left = slots_in_use_[slot];
  const Left entry{slot, left.generation, left.age};
  if (remover_ != nullptr) {
    left.left_age = left.age;
    remover_->Erase(slot);  // Orphaned, and closed now.
    remover_->Add({.slot = slot, .generation = left.generation, .age = left.age});
    if (heap_ != nullptr) unread_.push_back(slot);
    return;
  }
  if (state_->layout().spec().trajectories_max == 0) return;
  left.left_age = left.age;
  // Mostly the last: one record may close several, and one that could not be logged has its age
  // from before.
  auto place = left_by_age_.end();
  while (place != left_by_age_.begin() &&
         std::tie(entry.age, entry.generation) < std::tie(place[-1].age, place[-1].generation)) {
    --place;
  }
  left_by_age_.insert(place, entry);
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
    if (remover_ != nullptr) remover_->Erase(slot);
  }
}

}  // namespace geardb::engine
