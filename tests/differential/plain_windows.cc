// README, "Windows", word for word.
#include <algorithm>

#include "tests/differential/plain_table.h"

namespace geardb::differential {
namespace {

bool LeftRequired(const WindowRule& rule, const PlainTable::Episode& episode) {
  return rule.left == EdgeRule::kRequire || episode.head_missing;
}
bool RightRequired(const WindowRule& rule, const PlainTable::Episode& episode) {
  return rule.right == EdgeRule::kRequire || episode.open;
}

/// Where the window of row `a` stands.
int64_t Stand(const WindowRule& rule, const PlainTable::Episode& episode, int64_t a) {
  const Extent& extent = rule.extent;
  int64_t s = a;
  if (rule.right == EdgeRule::kShift && !RightRequired(rule, episode)) {
    s = std::min(
        {s, episode.steps_end - extent.length, episode.rows_end - extent.length - extent.after});
  }
  if (rule.left == EdgeRule::kShift && !LeftRequired(rule, episode)) {
    s = std::max(s, episode.begin + extent.before);
  }
  return s;
}

}  // namespace

int64_t PlainTrajectory::steps() const {
  return std::count_if(rows.begin(), rows.end(), [](const PlainRow& row) { return !row.final; });
}

bool PlainTable::EndsEpisode(const PlainRow& row) const {
  return row.end != End::kGo && (!spec.final_row || row.final);
}

bool PlainTable::NoStep(const PriorityTableSpec& rule, const PlainRow& row) const {
  if (row.final) return true;
  const bool no_next = row.end == End::kTruncated || row.end == End::kCut;
  return !spec.final_row && no_next && rule.item == ItemKind::kWindow &&
         rule.window.extent.after >= 1;
}

std::vector<PlainTable::Episode> PlainTable::Episodes(const PriorityTableSpec& rule,
                                                      const PlainTrajectory& trajectory) const {
  return EpisodesOf(rule, trajectory, rule.item != ItemKind::kWindow || rule.window.cross_ends);
}

std::vector<PlainTable::Episode> PlainTable::EpisodesOf(const PriorityTableSpec& rule,
                                                        const PlainTrajectory& trajectory,
                                                        bool whole) const {
  std::vector<Episode> episodes;
  for (const PlainRow& row : trajectory.rows) {
    if (episodes.empty() || (row.first && !whole)) {
      episodes.push_back(
          {.begin = row.number, .head_missing = whole ? row.number > 0 : !row.first});
    }
    Episode& episode = episodes.back();
    episode.rows_end = row.number + 1;
    episode.steps_end = episode.rows_end - (NoStep(rule, row) ? 1 : 0);
    episode.open = !trajectory.closed() && (whole || !EndsEpisode(row));
  }
  return episodes;
}

std::vector<int64_t> PlainTable::Anchors(const PriorityTableSpec& rule,
                                         const PlainTrajectory& trajectory) const {
  if (rule.item != ItemKind::kWindow) {
    if (trajectory.closed() && trajectory.steps() > 0) return {0};
    return {};
  }
  const WindowRule& window = rule.window;
  std::vector<int64_t> anchors;
  for (const Episode& episode : Episodes(rule, trajectory)) {
    for (int64_t a = episode.begin; a < episode.steps_end; ++a) {
      if (NoStep(rule, trajectory.row(a))) continue;
      const int64_t from = window.stride_from_end ? episode.steps_end - 1 - a : a;
      if (window.stride_from_end && episode.open) continue;
      if (from % window.stride != 0) continue;
      const int64_t s = Stand(window, episode, a);
      const Extent& extent = window.extent;
      if (LeftRequired(window, episode) && s - extent.before < episode.begin) continue;
      if (RightRequired(window, episode) && (s + extent.length > episode.steps_end ||
                                             s + extent.length + extent.after > episode.rows_end)) {
        continue;
      }
      anchors.push_back(a);
    }
  }
  return anchors;
}

std::vector<Anchor> PlainTable::AnchorsWithin(const PriorityTableSpec& rule,
                                              const PlainPriority& priority,
                                              const ItemKey& key) const {
  std::vector<Anchor> anchors;
  for (const TrajectoryId id : priority.TrajectoriesOf(key)) {
    for (const int64_t row : Anchors(rule, trajectories.at(id))) anchors.emplace_back(id, row);
  }
  return anchors;
}

PlainTable::Window PlainTable::Place(const PriorityTableSpec& rule,
                                     const PlainTrajectory& trajectory, int64_t anchor) const {
  Window placed;
  const bool windows = rule.item == ItemKind::kWindow;
  for (const Episode& episode : Episodes(rule, trajectory)) {
    if (windows && (anchor < episode.begin || anchor >= episode.rows_end)) continue;
    placed.episode = episode;
  }
  const Episode& episode = placed.episode;
  if (!windows) {
    placed.anchor = episode.begin;
    placed.length = placed.steps = episode.steps_end - episode.begin;
    return placed;
  }
  const int64_t s = Stand(rule.window, episode, anchor);
  placed.anchor = std::min(std::max(s, episode.begin), episode.steps_end - 1);
  placed.length = rule.window.extent.length;
  placed.steps = std::min(placed.length, episode.steps_end - placed.anchor);
  return placed;
}

bool PlainTable::IsReady(const PriorityTableSpec& rule, const PlainTrajectory& trajectory,
                         int64_t anchor) const {
  for (const std::string& name : rule.required) {
    const PlainColumn* const column = FindColumn(name);
    if (column != nullptr && !column->per_step()) {
      if (!trajectory.columns.contains(column->number)) return false;
      continue;
    }
    const auto found = trajectory.filled.find(name);
    const int64_t filled =
        std::max(found == trajectory.filled.end() ? 0 : found->second, trajectory.first_row());
    if (rule.item != ItemKind::kWindow) {
      if (filled < trajectory.steps_end()) return false;
      continue;
    }
    const Window window = Place(rule, trajectory, anchor);
    const int64_t shown_end = window.anchor + window.steps;
    int64_t end = std::min(shown_end + rule.window.extent.after, window.episode.steps_end);
    while (end > shown_end && NoStep(rule, trajectory.row(end - 1))) --end;
    if (filled < end) return false;
  }
  return true;
}

PlainTable::Shown PlainTable::Show(const PriorityTableSpec& rule, const PlainTrajectory& trajectory,
                                   int64_t anchor, const std::vector<int64_t>& relative) const {
  const Window window = Place(rule, trajectory, anchor);
  const Episode& episode = window.episode;
  const bool windows = rule.item == ItemKind::kWindow;
  const EdgeRule left = windows ? rule.window.left : EdgeRule::kClip;
  const EdgeRule right = windows ? rule.window.right : EdgeRule::kClip;
  int64_t over = 0;
  for (const int64_t j : relative) over = std::max(over, j + 1 - window.length);
  const int64_t end = std::min(episode.rows_end, window.anchor + window.steps + over);
  Shown shown{.begin = episode.begin};
  for (const int64_t j : relative) {
    const int64_t r = window.anchor + j;
    const bool there = r >= episode.begin && r < end;
    const EdgeRule side = r < episode.begin ? left : right;
    if (!there && side != EdgeRule::kPad && side != EdgeRule::kRepeat) continue;
    const int64_t row = there                    ? r
                        : side == EdgeRule::kPad ? -1
                        : r < episode.begin      ? episode.begin
                                                 : std::max(end - 1, episode.begin);
    const bool in_length = r >= window.anchor && r < window.anchor + window.steps;
    shown.rows.push_back(row);
    shown.learn.push_back(there && in_length && !NoStep(rule, trajectory.row(row)) ? 1 : 0);
  }
  return shown;
}

// Views.

std::vector<int64_t> RelativeRows(const ViewRows& rows, int64_t length) {
  if (!rows.list.empty()) return rows.list;
  const int64_t count = (rows.count == ViewRows::kItemLength ? length : rows.count) + rows.plus;
  std::vector<int64_t> relative;
  for (int64_t k = 0; k < count; ++k) relative.push_back(rows.begin + k * rows.stride);
  return relative;
}

std::vector<int64_t> Stack(const PriorityTableSpec& rule, int64_t begin, int64_t newest,
                           int64_t k) {
  const bool pads = rule.item == ItemKind::kWindow && rule.window.left == EdgeRule::kPad;
  std::vector<int64_t> rows;
  for (int64_t r = newest - k + 1; r <= newest; ++r) {
    if (newest < 0) {
      rows.push_back(-1);
    } else {
      rows.push_back(r >= begin ? r : pads ? -1 : begin);
    }
  }
  return rows;
}

bool Promises(const PlainTable& table, const PriorityTableSpec& rule,
              const SamplerOptions& options) {
  if (rule.item != ItemKind::kWindow) return true;
  const Extent& extent = rule.window.extent;
  for (const View& view : options.views) {
    if (!table.FindColumn(view.column)->per_step() || !view.rows.draw.empty()) continue;
    const bool anchor_stacks = view.stack - 1 <= extent.before;
    if (view.rows.bootstrap && !anchor_stacks) return false;
    if (view.rows.bootstrap) continue;
    for (const int64_t j : RelativeRows(view.rows, extent.length)) {
      if (j - view.stack + 1 < -extent.before || j >= extent.length + extent.after) return false;
      if (rule.window.right == EdgeRule::kRepeat && j > 0 && !anchor_stacks) return false;
    }
  }
  if (!options.n_step) return true;
  const int64_t length = options.n_step->every_row ? 1 : extent.length;
  return options.n_step->n <= length - 1 + extent.after;
}

// n-step.

PlainTable::NStepRow PlainTable::NStepOf(const Episode& own, const PlainTrajectory& trajectory,
                                         int64_t row, const NStep& asked) const {
  const auto number = [&](const std::string& name, int64_t at) {
    const PlainColumn& column = *FindColumn(name);
    return NumberAt(column.column.dtype, ValueOf(trajectory.row(at), column)->data());
  };
  if (row >= own.steps_end) return {.bootstrap = row};
  NStepRow sum{.discount = 1, .mask = 1};
  int64_t& m = sum.steps;
  for (; m < asked.n && row + m < own.steps_end && sum.mask > 0; ++m) {
    sum.value += sum.discount * number(asked.reward_column, row + m);
    sum.discount *= asked.discount_column.empty() ? static_cast<float>(asked.gamma)
                                                  : number(asked.discount_column, row + m);
    const bool lost =
        !asked.life_loss_column.empty() && number(asked.life_loss_column, row + m) != 0;
    if (lost || trajectory.row(row + m).end == End::kTerminated) sum.mask = 0;
  }
  sum.bootstrap = std::min(row + m, own.rows_end - 1);
  return sum;
}

std::vector<PlainTable::NStepRow> PlainTable::NSteps(const PriorityTableSpec& rule,
                                                     const PlainTrajectory& trajectory,
                                                     int64_t anchor, const NStep& asked) const {
  const Window window = Place(rule, trajectory, anchor);
  const int64_t end = window.anchor + (asked.every_row ? window.steps : 1);
  std::vector<NStepRow> rows;
  // A sum stays in the episode of its own row.
  for (const Episode& own : EpisodesOf(rule, trajectory, /*whole=*/false)) {
    for (int64_t row = std::max(own.begin, window.anchor); row < std::min(own.rows_end, end);
         ++row) {
      rows.push_back(NStepOf(own, trajectory, row, asked));
    }
  }
  return rows;
}

PlainTable::Shown PlainTable::ShowBootstraps(const PriorityTableSpec& rule,
                                             const PlainTrajectory& trajectory, int64_t anchor,
                                             const NStep& asked) const {
  const Window window = Place(rule, trajectory, anchor);
  Shown shown{.begin = window.episode.begin};
  for (const NStepRow& of_row : NSteps(rule, trajectory, anchor, asked)) {
    const int64_t row = of_row.bootstrap;
    const bool in_length = row >= window.anchor && row < window.anchor + window.steps;
    shown.rows.push_back(row);
    shown.learn.push_back(in_length && !NoStep(rule, trajectory.row(row)) ? 1 : 0);
  }
  return shown;
}

}  // namespace geardb::differential
