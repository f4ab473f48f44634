// TableState: columns that come and leave.

#include "engine/internal/table_state.h"

namespace geardb::engine {

const TableLayout& TableState::LayoutAt(uint32_t version) {
  GEARDB_CHECK(version < layouts_.size());
  std::unique_ptr<const TableLayout>& at = layouts_[version];
  if (at == nullptr) at = std::make_unique<TableLayout>(history_, version, layout().id());
  return *at;
}

Result<std::unique_ptr<TableState::ColumnChange>> TableState::PrepareColumns(TableHistory after) {
  auto change = std::make_unique<ColumnChange>(std::move(after));
  change->layout =
      std::make_unique<TableLayout>(change->after, change->after.version, layout().id());
  const TableLayout& layout = *change->layout;
  GEARDB_ASSIGN_OR_RETURN(change->groups, frames_->PrepareGroups(layout, memory_.kept));
  MutexLock lock(&mutex);
  // A group that is there too many, after an error, is the next one.
  Status status;
  while (status.ok() && pages_->group_count() < layout.group_count()) status = pages_->AddGroup();
  const size_t columns_before = trajectories_->column_count();
  while (status.ok() && trajectories_->column_count() < layout.place_bytes().size()) {
    status = trajectories_->AddColumn(layout.place_bytes()[trajectories_->column_count()]);
  }
  if (status.ok()) return change;
  while (trajectories_->column_count() > columns_before) trajectories_->RemoveLastColumn();
  frames_->GiveUpGroups(change->groups);
  return status;
}

void TableState::ApplyColumns(std::unique_ptr<ColumnChange> change, bool has_writers) {
  const TableLayout& before = layout();
  const TableLayout& after = *change->layout;
  const auto own_frames = [&](size_t group) {
    uint64_t pages = 0;
    trajectories().ForEach([&](Slot, const index::TrajectoryRecord& record) {
      for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) {
        pages += frames_->ShowsDefaults(group, lpn) ? 0u : 1u;
      }
    });
    return pages;
  };
  uint64_t bytes = 0;  // Of the frames of groups that leave.
  for (const uint32_t g : after.dropped_groups()) {
    if (!before.group(g).dropped) bytes += own_frames(g) * after.group(g).pages.frame_bytes();
  }
  frames_->ChangeLayout(&after, change->groups, has_writers);
  for (const uint32_t g : after.dropped_groups()) {
    if (!before.group(g).dropped) bytes -= own_frames(g) * after.group(g).pages.frame_bytes();
  }
  frame_bytes_ -= bytes;
  for (size_t c = before.trajectory_columns().size(); c < after.trajectory_columns().size(); ++c) {
    const TrajectoryColumn& column = after.trajectory_columns()[c];
    if (column.default_bits == 0) continue;
    trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord&) {
      FillElements(column.dtype, column.default_bits, trajectories_->column(column.place, slot));
    });
  }
  history_ = std::move(change->after);
  layouts_.push_back(std::move(change->layout));
  layout_.store(layouts_.back().get(), std::memory_order_release);
}

void TableState::ReleaseDropped(Lpn lpn) {
  if (lpn == kNoLpn) return;
  for (const uint32_t g : layout().dropped_groups()) {
    if (frames_->ShowsDefaults(g, lpn)) continue;
    frame_bytes_ -= layout().group(g).pages.frame_bytes();
    frames_->ShowDefaults(g, lpn);
  }
}

}  // namespace geardb::engine
