#include "engine/internal/batch_items.h"

namespace geardb::engine {
namespace {

int64_t RowOfLeaf(const TableState& state, const index::PageRecord& page, uint64_t leaf) {
  const TableLayout& layout = state.layout();
  return static_cast<int64_t>(uint64_t{page.page_number} * layout.steps_per_page() +
                              (leaf & (layout.steps_per_page() - 1)));
}

}  // namespace

uint32_t BatchItems::ResolveOne(size_t i, const Reach& reach) {
  DrawnItem& item = items_[i];
  const TableState& state = *item.part->state;
  const index::TrajectoryRecord& record = state.trajectories().record(item.slot);
  if (item.part->rule == nullptr) {
    item.row = static_cast<int64_t>(record.first_row);
    trajectory_rules_[i] = TrajectoryRule(state, record);
    item.rule = &trajectory_rules_[i];
    item.episode = TrajectoryEpisode(state, record);
    item.window = PlacedWindow{item.row, item.rule->extent.length};
    return record.generation;
  }
  item.rule = item.part->rule;
  RowCursor cursor = item.cursor();
  // Placed from here, not from the item: what has just been copied there is not to be had yet.
  const Episode episode = FindEpisode(&cursor, *item.rule, item.row, reach);
  item.window = PlaceWindow(*item.rule, episode, item.row);
  item.episode = episode;
  return item.part->within ? record.generation : state.pages().page(item.lpn).generation;
}

void BatchItems::Resolve(std::span<const BatchPart> parts, std::span<const DrawnLeaf> leaves,
                         Batch::Rep* rep) {
  const size_t n = leaves.size();
  items_.resize(n);
  // Three passes, so that the misses of one overlap: pages, then records, then the rest.
  for (size_t i = 0; i < n; ++i) {
    DrawnItem& item = items_[i];
    item.part = &parts[leaves[i].part];
    if (item.part->leaves_are_rows()) {
      item.lpn = item.part->state->layout().LpnOfLeaf(leaves[i].leaf);
      __builtin_prefetch(&item.part->state->pages().page(item.lpn));
    } else {
      item.lpn = kNoLpn;
      const bool is_member = item.part->groups != nullptr;
      item.slot = is_member ? leaves[i].slot : static_cast<Slot>(leaves[i].leaf);
      item.row = leaves[i].row;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    DrawnItem& item = items_[i];
    const TableState& state = *item.part->state;
    if (item.part->leaves_are_rows()) {
      const index::PageRecord& page = state.pages().page(item.lpn);
      item.slot = page.slot;
      item.row = RowOfLeaf(state, page, leaves[i].leaf);
      __builtin_prefetch(&state.pages().group_page(0, item.lpn));
    }
    const index::TrajectoryRecord& record = state.trajectories().record(item.slot);
    __builtin_prefetch(&record);
    __builtin_prefetch(&record.state);  // Mostly in the next line.
  }
  std::vector<Reach> reaches;
  bool trajectories = false;
  for (const BatchPart& part : parts) {
    reaches.push_back(part.rule != nullptr ? PlacementReach(*part.rule) : Reach());
    trajectories |= part.rule == nullptr;
  }
  if (trajectories) trajectory_rules_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const DrawnItem& item = items_[i];
    uint32_t generation = ResolveOne(i, reaches[leaves[i].part]);
    auto length = static_cast<uint32_t>(item.window.steps);
    if (const DrawGroups* const groups = item.part->groups) {
      generation = groups->GenerationOf(leaves[i].leaf);
      length = groups->CountOf(leaves[i].leaf);
    }
    const TableState& state = *item.part->state;
    const index::TrajectoryRecord& record = state.trajectories().record(item.slot);
    rep->handles[i] = {leaves[i].leaf, generation, length};
    rep->ids[i] = record.id;
    rep->anchors[i] = item.row;
    rep->lengths[i] = item.window.steps;
    rep->trajectory_lengths[i] = state.StepsEnd(record);
    rep->ends[i] = record.state == index::TrajectoryState::kClosed ? record.end : End::kGo;
    rep->times_sampled[i] = record.times_sampled;
    rep->sources[i] = leaves[i].part;
  }
  ListGroups(parts, leaves, rep);
}

void BatchItems::ListGroups(std::span<const BatchPart> parts, std::span<const DrawnLeaf> leaves,
                            Batch::Rep* rep) {
  rep->groups.clear();
  rep->group_offsets.clear();
  rep->group_keys.clear();
  if (parts[0].groups == nullptr) return;
  for (const DrawnLeaf& leaf : leaves) {
    if (leaf.begins_group) {
      rep->group_offsets.push_back(static_cast<int64_t>(rep->groups.size()));
      rep->group_keys.push_back(parts[leaf.part].groups->KeyOf(leaf.leaf));
    }
    rep->groups.push_back(static_cast<int64_t>(rep->group_keys.size()) - 1);
  }
  rep->group_offsets.push_back(static_cast<int64_t>(leaves.size()));
}

TrajectoryId TrajectoryOf(const BatchPart& part, uint64_t leaf) {
  const TableState& state = *part.state;
  Slot slot = static_cast<Slot>(leaf);
  if (part.groups != nullptr) slot = part.groups->FirstOf(leaf);
  if (part.leaves_are_rows()) slot = state.pages().page(state.layout().LpnOfLeaf(leaf)).slot;
  return state.trajectories().record(slot).id;
}

int64_t StepsOf(const BatchPart& part, uint64_t leaf) {
  const TableState& state = *part.state;
  if (!part.leaves_are_rows()) {
    return TrajectoryRule(state, state.trajectories().record(static_cast<Slot>(leaf)))
        .extent.length;
  }
  const Lpn lpn = state.layout().LpnOfLeaf(leaf);
  const index::PageRecord& page = state.pages().page(lpn);
  RowCursor cursor(state, state.trajectories().record(page.slot), lpn);
  const int64_t row = RowOfLeaf(state, page, leaf);
  const Episode episode = FindEpisode(&cursor, *part.rule, row, PlacementReach(*part.rule));
  return PlaceWindow(*part.rule, episode, row).steps;
}

}  // namespace geardb::engine
