// What happens to the companions of a table (companion.h) with what happens to the table: all of it
// follows from the records of the table and the state before them.

#include <algorithm>

#include "base/break.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

void TableState::UseCompanions(std::vector<TableState*> companions) {
  companions_ = std::move(companions);
  for (TableState* companion : companions_) {
    if (companion == nullptr) continue;
    companion->owner_ = this;
    companion->frames_->UseOwner(trajectories_);
  }
}

uint64_t TableState::companion_frame_bytes() const {
  uint64_t bytes = 0;
  for (const TableState* companion : companions_) {
    if (companion != nullptr) bytes += companion->frame_bytes();
  }
  return bytes;
}

uint64_t TableState::RaggedPagesBelow(size_t number, Slot slot, uint64_t first_row) const {
  if (companions_[number] == nullptr || !layout().companions()[number].ragged()) return 0;
  const TableState& companion = *companions_[number];
  if (slot >= companion.trajectories().reserved()) return 0;
  const index::TrajectoryRecord& rows = companion.trajectories().record(slot);
  if (rows.state == index::TrajectoryState::kFree) return 0;
  // A page that was written before the page of `first_row` was begun holds earlier steps alone. Of
  // one that was written with it nobody knows: it stays, and is not the last to.
  const index::TrajectoryRecord& record = trajectories().record(slot);
  const Lpn head =
      pages_->Find(ListOf(record), layout().PageNumber(static_cast<int64_t>(first_row)));
  if (head == kNoLpn) return 0;
  const Lsn begun = pages().group_page(0, head).birth_lsn;
  uint64_t count = 0;
  Lpn lpn = rows.head_lpn;
  while (lpn != rows.tail_lpn && companion.pages().group_page(0, lpn).newest_lsn < begun) {
    lpn = companion.pages().page(lpn).next;
    ++count;
  }
  return count;
}

uint64_t TableState::CompanionBytesBelow(Slot slot, uint64_t first_row) const {
  uint64_t bytes = 0;
  for (size_t k = 0; k < companions_.size(); ++k) {
    if (companions_[k] == nullptr) continue;
    const TableState& companion = *companions_[k];
    uint64_t pages = 0;
    if (first_row != UINT64_MAX) {
      pages = RaggedPagesBelow(k, slot, first_row);
    } else if (slot < companion.trajectories().reserved()) {
      const index::TrajectoryRecord& rows = companion.trajectories().record(slot);
      if (rows.state == index::TrajectoryState::kFree) continue;
      for (Lpn lpn = rows.head_lpn; lpn != kNoLpn; lpn = companion.pages().page(lpn).next) ++pages;
    }
    bytes += pages * companion.layout().page_bytes();
  }
  return bytes;
}

void TableState::EmptyCompanion(size_t number, Slot slot) {
  if (companions_[number] == nullptr || kBreak.keep_values) return;
  TableState& companion = *companions_[number];
  if (slot >= companion.trajectories().reserved()) return;
  const index::TrajectoryRecord& rows = std::as_const(*companion.trajectories_).record(slot);
  if (rows.state == index::TrajectoryState::kFree) return;
  companion.RemoveTrajectory(fb::Removed(rows.id, slot, rows.generation), {});
}

void TableState::EmptyCompanion(size_t number) {
  const Slot slots = static_cast<Slot>(companions_[number]->trajectories().reserved());
  for (Slot slot = 0; slot < slots; ++slot) EmptyCompanion(number, slot);
}

void TableState::TrimCompanions(const index::TrajectoryRecord& record, Slot slot) {
  for (size_t k = 0; k < companions_.size(); ++k) {
    const uint64_t pages = RaggedPagesBelow(k, slot, record.first_row);
    if (pages == 0) continue;
    TableState& companion = *companions_[k];
    const index::TrajectoryRecord& rows = std::as_const(*companion.trajectories_).record(slot);
    const uint64_t first_page = companion.pages().page(rows.head_lpn).page_number + pages;
    companion.Trim(
        fb::Trimmed(first_page * companion.layout().steps_per_page(), slot, rows.generation));
  }
}

void TableState::CloseCompanions(Slot slot, End end) {
  for (TableState* companion : companions_) {
    if (companion == nullptr || slot >= companion->trajectories().reserved()) continue;
    const auto state = std::as_const(*companion->trajectories_).record(slot).state;
    const bool there = state != index::TrajectoryState::kFree;
    if (there && state != index::TrajectoryState::kClosed) {
      companion->CloseTrajectory(slot, end, false);
    }
  }
}

void TableState::AdoptCompanions(const fb::Adopted& adopted, Lsn lsn) {
  for (TableState* companion : companions_) {
    if (companion == nullptr || adopted.slot() >= companion->trajectories().reserved()) continue;
    const index::TrajectoryRecord& rows =
        std::as_const(*companion->trajectories_).record(adopted.slot());
    if (rows.state == index::TrajectoryState::kFree) continue;
    const fb::Adopted same(adopted.slot(), rows.generation, adopted.session(), adopted.lane(),
                           adopted.orphaned());
    companion->AdoptOne(same, lsn);
  }
}

}  // namespace geardb::engine
