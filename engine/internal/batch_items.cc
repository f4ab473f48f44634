#include "engine/internal/batch_items.h"

#include <algorithm>

namespace geardb::engine {
namespace {

int64_t RowOfLeaf(const TableLayout& layout, const index::PageRecord& page, uint64_t leaf) {
  return static_cast<int64_t>(uint64_t{page.page_number} * layout.steps_per_page() +
                              (leaf & (layout.steps_per_page() - 1)));
}

/// Calls `visit` with each part and where its rows begin and end: those of a part are side by side.
template <typename Visit>
void ForEachPart(std::span<const BatchPart> parts, std::span<const DrawnLeaf> leaves,
                 const Visit& visit) {
  if (parts.size() == 1) return visit(parts[0], 0, leaves.size());
  for (size_t begin = 0, end = 0; begin < leaves.size(); begin = end) {
    const uint32_t part = leaves[begin].part;
    while (end < leaves.size() && leaves[end].part == part) ++end;
    visit(parts[part], begin, end);
  }
}

}  // namespace

void BatchItems::FindPages(const BatchPart& part, std::span<const DrawnLeaf> leaves, size_t begin) {
  DrawnItem* item = items_.data() + begin;
  if (!part.leaves_are_rows()) {
    const bool is_member = part.groups != nullptr;
    for (const DrawnLeaf& leaf : leaves) {
      item->part = &part;
      item->lpn = kNoLpn;
      item->slot = is_member ? leaf.slot : static_cast<Slot>(leaf.leaf);
      item->row = leaf.row;
      ++item;
    }
    return;
  }
  const TableLayout& layout = part.state->layout();
  const index::PageTable& pages = part.state->pages();
  for (const DrawnLeaf& leaf : leaves) {
    item->part = &part;
    item->lpn = layout.LpnOfLeaf(leaf.leaf);
    __builtin_prefetch(&pages.page(item->lpn));
    ++item;
  }
}

void BatchItems::FindTrajectories(const BatchPart& part, std::span<const DrawnLeaf> leaves,
                                  size_t begin) {
  const TableLayout& layout = part.state->layout();
  const index::PageTable& pages = part.state->pages();
  const index::TrajectoryIndex& trajectories = part.state->trajectories();
  const bool by_page = part.leaves_are_rows();
  DrawnItem* item = items_.data() + begin;
  for (const DrawnLeaf& leaf : leaves) {
    if (by_page) {
      const index::PageRecord& page = pages.page(item->lpn);
      item->slot = page.slot;
      item->row = RowOfLeaf(layout, page, leaf.leaf);
      __builtin_prefetch(&pages.group_page(0, item->lpn));
    }
    const index::TrajectoryRecord& record = trajectories.record(item->slot);
    __builtin_prefetch(&record);
    __builtin_prefetch(&record.state);  // Mostly in the next line.
    ++item;
  }
}

void BatchItems::PlaceWindows(const BatchPart& part, size_t begin, size_t end) {
  const TableState& state = *part.state;
  const index::TrajectoryIndex& trajectories = state.trajectories();
  if (part.rule == nullptr) {
    for (size_t i = begin; i < end; ++i) {
      DrawnItem& item = items_[i];
      const index::TrajectoryRecord& record = trajectories.record(item.slot);
      item.row = static_cast<int64_t>(record.first_row);
      trajectory_rules_[i] = TrajectoryRule(state, record);
      item.rule = &trajectory_rules_[i];
      item.episode = TrajectoryEpisode(state, record);
      item.window = PlacedWindow{item.row, item.rule->extent.length};
    }
    return;
  }
  const WindowRule& rule = *part.rule;
  const Reach reach = PlacementReach(rule);
  const TableLayout& layout = state.layout();
  const bool stream = layout.spec().stream;
  for (size_t i = begin; i < end; ++i) {
    DrawnItem& item = items_[i];
    item.rule = &rule;
    // Placed from here, not from the item: what has just been copied there is not to be had yet.
    Episode episode;
    if (stream) {
      RowCursor cursor = item.cursor();
      episode = FindEpisode(&cursor, rule, item.row, reach);
    } else {
      episode = EpisodeOfAll(layout, trajectories.record(item.slot), rule);
    }
    item.window = PlaceWindow(rule, episode, item.row);
    item.episode = episode;
  }
}

void BatchItems::List(const BatchPart& part, std::span<const DrawnLeaf> leaves, size_t begin,
                      Batch::Rep* rep) const {
  const TableState& state = *part.state;
  const index::TrajectoryIndex& trajectories = state.trajectories();
  const index::PageTable& pages = state.pages();
  const bool by_page = part.leaves_are_rows();
  for (size_t j = 0; j < leaves.size(); ++j) {
    const size_t i = begin + j;
    const DrawnItem& item = items_[i];
    const uint64_t leaf = leaves[j].leaf;
    const index::TrajectoryRecord& record = trajectories.record(item.slot);
    const uint32_t generation = by_page                  ? pages.page(item.lpn).generation
                                : part.groups != nullptr ? part.groups->GenerationOf(leaf)
                                                         : record.generation;
    const auto length = part.groups != nullptr ? part.groups->CountOf(leaf)
                                               : static_cast<uint32_t>(item.window.steps);
    rep->handles[i] = {leaf, generation, length};
    rep->ids[i] = record.id;
    rep->anchors[i] = item.row;
    rep->lengths[i] = item.window.steps;
    rep->trajectory_lengths[i] = state.StepsEnd(record);
    rep->ends[i] = record.state == index::TrajectoryState::kClosed ? record.end : End::kGo;
    rep->times_sampled[i] = record.times_sampled;
    rep->sources[i] = leaves[j].part;
  }
}

void BatchItems::Resolve(std::span<const BatchPart> parts, std::span<const DrawnLeaf> leaves,
                         Batch::Rep* rep) {
  items_.resize(leaves.size());
  const bool trajectories =
      std::ranges::any_of(parts, [](const BatchPart& part) { return part.rule == nullptr; });
  if (trajectories) trajectory_rules_.resize(leaves.size());
  // One pass after the other, so that the misses of one overlap: pages, then records, then the
  // rest.
  ForEachPart(parts, leaves, [&](const BatchPart& part, size_t begin, size_t end) {
    FindPages(part, leaves.subspan(begin, end - begin), begin);
  });
  ForEachPart(parts, leaves, [&](const BatchPart& part, size_t begin, size_t end) {
    FindTrajectories(part, leaves.subspan(begin, end - begin), begin);
  });
  ForEachPart(parts, leaves, [&](const BatchPart& part, size_t begin, size_t end) {
    PlaceWindows(part, begin, end);
    List(part, leaves.subspan(begin, end - begin), begin, rep);
  });
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
  const int64_t row = RowOfLeaf(state.layout(), page, leaf);
  const Episode episode = FindEpisode(&cursor, *part.rule, row, PlacementReach(*part.rule));
  return PlaceWindow(*part.rule, episode, row).steps;
}

}  // namespace geardb::engine
