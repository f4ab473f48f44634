// The frames of column groups that come and leave.

#include <cstring>

#include "base/types.h"
#include "engine/internal/table_frames.h"

namespace geardb::engine {
namespace {

/// The defaults of a group, in every row of a frame.
void FillDefaults(const TableLayout& layout, size_t group, std::byte* frame) {
  for (const size_t c : layout.group(group).columns) {
    const StepColumn& column = layout.step_columns()[c];
    FillElements(column.dtype, column.default_bits,
                 {frame + layout.RowOffset(c, 0), column.row_bytes * layout.steps_per_page()});
  }
}

}  // namespace

FramePool* TableFrames::NewPool(const TableLayout& layout, size_t group) const {
  const GroupLayout& of = layout.group(group);
  std::string owner = "table '" + layout.spec().name + "'";
  if (!of.name.empty()) owner += ", group '" + of.name + "'";
  return memory_.arena->NewPool(of.pages.frame_bytes(), std::move(owner));
}

Result<FrameRef> TableFrames::NewDefaults(const TableLayout& layout, size_t group, FramePool* pool,
                                          Kept kept) const {
  auto taken = memory_.arena->Allocate(pool, Deadline::Now(), kept);
  if (taken.status().code() == StatusCode::kResourceExhausted && memory_.make_room != nullptr) {
    memory_.make_room(pool);
    taken = memory_.arena->Allocate(pool, Deadline::Now(), kept);
  }
  GEARDB_RETURN_IF_ERROR(taken.status());
  FillDefaults(layout, group, memory_.arena->Resolve(*taken));
  return *taken;
}

FrameRef TableFrames::MakeDroppedDefaults(size_t group) {
  const uint64_t bytes = pools_[group]->frame_bytes() + kFrameAlignment + kArenaSpareBytes;
  dropped_defaults_.emplace_back(new std::byte[bytes]());
  const auto address =
      AlignUp(reinterpret_cast<uintptr_t>(dropped_defaults_.back().get()), kFrameAlignment);
  FillDefaults(*layout_, group, reinterpret_cast<std::byte*>(address));
  return FrameRef::Make(kProcessMemory, address);
}

Result<std::vector<TableFrames::NewGroup>> TableFrames::PrepareGroups(const TableLayout& layout,
                                                                      Kept kept) {
  std::vector<NewGroup> groups;
  for (size_t g = pools_.size(); g < layout.group_count(); ++g) {
    NewGroup& group = groups.emplace_back(NewGroup{.pool = NewPool(layout, g), .defaults = {}});
    const Result<FrameRef> defaults = NewDefaults(layout, g, group.pool, kept);
    if (!defaults.ok()) {
      GiveUpGroups(groups);
      return defaults.status();
    }
    group.defaults = *defaults;
  }
  return groups;
}

void TableFrames::GiveUpGroups(std::span<const NewGroup> groups) {
  for (const NewGroup& group : groups) {
    if (group.defaults.valid()) memory_.arena->Free(group.pool, group.defaults);
    memory_.arena->DropPool(group.pool);
  }
}

void TableFrames::ChangeLayout(const TableLayout* layout, std::span<const NewGroup> groups,
                               bool has_writers) {
  const TableLayout* const before = layout_;
  layout_ = layout;
  const size_t group_count = pools_.size();
  for (const NewGroup& group : groups) {
    SetDefaults(pools_.size(), group.defaults);
    pools_.push_back(group.pool);
    hands_.push_back(0);
  }
  std::vector<FrameRef> old_defaults(pools_.size());  // Of groups that leave now.
  std::vector<size_t> leaving;
  for (const uint32_t g : layout->dropped_groups()) {
    if (before->group(g).dropped) continue;
    leaving.push_back(g);
    old_defaults[g] = default_frame(g);
    SetDefaults(g, MakeDroppedDefaults(g));
    if (layout->group(g).logged()) dropped_groups_.push_back(g);
  }
  trajectories_->ForEach([&](Slot, const index::TrajectoryRecord& record) {
    const bool goes_on = has_writers && record.state == index::TrajectoryState::kOpen;
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) {
      for (size_t g = group_count; g < pools_.size(); ++g) {
        pages_->residency(g, lpn).frame = default_frame(g);
      }
      for (const size_t g : leaving) {
        FrameRef& frame = pages_->residency(g, lpn).frame;
        if (!frame.valid() || frame == old_defaults[g]) {
          frame = default_frame(g);
        } else if (!goes_on || lpn != record.tail_lpn) {
          ShowDefaults(g, lpn);
        }
      }
    }
  });
  for (const size_t g : leaving) {
    if (IsArenaFrame(old_defaults[g])) memory_.arena->Retire(pools_[g], old_defaults[g]);
  }
}

void TableFrames::ShowDefaults(size_t group, Lpn lpn) {
  index::GroupPageRecord& record = pages_->residency(group, lpn);
  if (record.frame == default_frame(group)) return;
  if (record.frame.valid()) DropFrame(group, lpn);
  record.frame = default_frame(group);
}

}  // namespace geardb::engine
