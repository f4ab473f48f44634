#include "tests/conformance/window_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace geardb::conformance {
namespace {

template <typename T>
T As(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

float HalfAsFloat(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return static_cast<float>(mantissa != 0 ? NAN : sign * INFINITY);
  if (exponent == 0) return static_cast<float>(sign * std::ldexp(mantissa, -24));
  return static_cast<float>(sign * std::ldexp(1024 + mantissa, exponent - 25));
}

float BrainAsFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  return As<float>(reinterpret_cast<const std::byte*>(&wide));
}

bool IsZero(const Bytes& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

float ElementAsFloat(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::kU8:
      return static_cast<float>(As<uint8_t>(element));
    case DType::kI8:
      return static_cast<float>(As<int8_t>(element));
    case DType::kU16:
      return static_cast<float>(As<uint16_t>(element));
    case DType::kI16:
      return static_cast<float>(As<int16_t>(element));
    case DType::kU32:
      return static_cast<float>(As<uint32_t>(element));
    case DType::kI32:
      return static_cast<float>(As<int32_t>(element));
    case DType::kU64:
      return static_cast<float>(As<uint64_t>(element));
    case DType::kI64:
      return static_cast<float>(As<int64_t>(element));
    case DType::kF16:
      return HalfAsFloat(As<uint16_t>(element));
    case DType::kBf16:
      return BrainAsFloat(As<uint16_t>(element));
    case DType::kF32:
      return As<float>(element);
    case DType::kF64:
      return static_cast<float>(As<double>(element));
    case DType::kBool:
      return As<uint8_t>(element) != 0 ? 1.0f : 0.0f;
  }
  return 0;
}

int64_t ModelTrajectory::StepCount() const {
  return std::count_if(rows.begin(), rows.end(), [](const ModelRow& row) { return !row.final; });
}

// Changes.

void WindowModel::Append(TrajectoryId id, const std::vector<std::vector<Bytes>>& rows, End end,
                         const std::vector<Bytes>& final_row) {
  ModelTrajectory& trajectory = trajectories_[id];
  trajectory.state = ModelState::kOpen;
  const auto add = [&](const std::vector<Bytes>& columns) -> ModelRow& {
    ModelRow row;
    if (!trajectory.rows.empty()) row.number = trajectory.rows_end();
    row.first = trajectory.rows.empty() || EndsEpisode(trajectory.rows.back());
    row.columns = columns;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (table_.columns[c].late) row.columns[c] = table_.columns[c].unwritten;
    }
    trajectory.rows.push_back(row);
    return trajectory.rows.back();
  };
  for (const std::vector<Bytes>& columns : rows) add(columns);
  trajectory.rows.back().end = end;
  if (end == End::kGo) return;
  if (!table_.stream) {
    trajectory.state = ModelState::kClosed;
    trajectory.end = end;
  }
  if (!table_.final_row) return;
  if (end != End::kCut) {
    // Until it has an end of its own the row added is inside the episode: it is not a first one.
    std::vector<Bytes> columns = final_row;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (table_.columns[c].in_final_row) continue;
      columns[c] = table_.columns[c].unwritten;
    }
    ModelRow& row = add(columns);
    row.end = end;
  }
  trajectory.rows.back().final = true;
  if (!table_.stream && trajectory.StepCount() == 0) trajectories_.erase(id);
}

bool WindowModel::Cut(TrajectoryId id) {
  ModelTrajectory& trajectory = trajectories_.at(id);
  trajectory.state = ModelState::kClosed;
  trajectory.end = End::kCut;
  ModelRow& last = trajectory.rows.back();
  if (EndsEpisode(last)) return true;  // A stream is closed between two episodes.
  last.end = End::kCut;
  last.final = table_.final_row;
  if (!last.final || trajectory.rows.size() > 1) return true;
  trajectories_.erase(id);
  return false;
}

void WindowModel::ForgetVolatile() {
  for (auto& [id, trajectory] : trajectories_) {
    for (ModelRow& row : trajectory.rows) {
      for (size_t c = 0; c < row.columns.size(); ++c) {
        if (table_.columns[c].is_volatile) row.columns[c] = table_.columns[c].unwritten;
      }
    }
  }
}

void WindowModel::SetRow(TrajectoryId id, int64_t row, size_t column, const Bytes& value) {
  for (ModelRow& stored : trajectories_.at(id).rows) {
    if (stored.number == row) stored.columns[column] = value;
  }
}

void WindowModel::Trim(TrajectoryId id, int64_t first) {
  std::erase_if(trajectories_.at(id).rows,
                [first](const ModelRow& row) { return row.number < first; });
}

// Episodes and anchors.

/// Does the next row, if one comes, belong to another episode?
bool WindowModel::EndsEpisode(const ModelRow& row) const {
  if (row.end == End::kGo) return false;
  return !table_.final_row || row.final;
}

/// Final rows are no steps, nor are the rows that play their part.
bool WindowModel::NoStep(const ModelRule& rule, const ModelRow& row) const {
  if (row.final) return true;
  const bool no_next = row.end == End::kTruncated || row.end == End::kCut;
  return !table_.final_row && no_next && !rule.trajectories && rule.after >= 1;
}

std::vector<WindowModel::Episode> WindowModel::Episodes(const ModelRule& rule,
                                                        const ModelTrajectory& trajectory) const {
  const bool whole = rule.trajectories || rule.cross_ends;
  std::vector<Episode> episodes;
  for (const ModelRow& row : trajectory.rows) {
    if (episodes.empty() || (row.first && !whole)) {
      episodes.emplace_back();
      episodes.back().head_missing = whole ? row.number > 0 : !row.first;
    }
    episodes.back().rows.push_back(&row);
  }
  for (Episode& episode : episodes) {
    const ModelRow& last = *episode.rows.back();
    episode.steps_end = episode.rows.size() - (NoStep(rule, last) ? 1 : 0);
    const bool closed = trajectory.state == ModelState::kClosed;
    episode.open = whole ? !closed : !closed && !EndsEpisode(last);
  }
  return episodes;
}

bool WindowModel::RequiresLeft(const ModelRule& rule, const Episode& episode) const {
  return rule.left == Side::kRequire || episode.head_missing;
}

bool WindowModel::RequiresRight(const ModelRule& rule, const Episode& episode) const {
  return rule.right == Side::kRequire || episode.open;
}

bool WindowModel::LeftFits(const ModelRule& rule, int64_t stand) const {
  return stand - rule.before >= 0;
}

bool WindowModel::RightFits(const ModelRule& rule, const Episode& episode, int64_t stand) const {
  const auto rows = static_cast<int64_t>(episode.rows.size());
  const auto steps_end = static_cast<int64_t>(episode.steps_end);
  return stand + rule.length <= steps_end && stand + rule.length + rule.after <= rows;
}

/// Where the window of the row at index `at` fits, moved row by row by the sides that shift: it may
/// leave the episode for that. What is required stays where it is.
int64_t WindowModel::Stand(const ModelRule& rule, const Episode& episode, int64_t at) const {
  int64_t stand = at;
  if (rule.right == Side::kShift && !RequiresRight(rule, episode)) {
    while (!RightFits(rule, episode, stand)) --stand;
  }
  if (rule.left == Side::kShift && !RequiresLeft(rule, episode)) {
    while (!LeftFits(rule, stand)) ++stand;
  }
  return stand;
}

bool WindowModel::IsAnchor(const ModelRule& rule, const Episode& episode, int64_t at) const {
  const auto steps_end = static_cast<int64_t>(episode.steps_end);
  const ModelRow& row = *episode.rows[static_cast<size_t>(at)];
  if (at >= steps_end || NoStep(rule, row)) return false;
  if (rule.stride_from_end) {
    if (episode.open) return false;
    int64_t step = steps_end - 1;
    while (step > at) step -= rule.stride;
    if (step != at) return false;
  } else if (row.number % rule.stride != 0) {
    return false;
  }
  const int64_t stand = Stand(rule, episode, at);
  if (RequiresLeft(rule, episode) && !LeftFits(rule, stand)) return false;
  return !RequiresRight(rule, episode) || RightFits(rule, episode, stand);
}

std::vector<ModelItem> WindowModel::Items(const ModelRule& rule) const {
  std::vector<ModelItem> items;
  for (const auto& [id, trajectory] : trajectories_) {
    if (rule.trajectories) {
      const bool closed = trajectory.state == ModelState::kClosed;
      if (closed && trajectory.StepCount() > 0) {
        items.push_back(ModelItem{id, trajectory.first_row()});
        if (!IsReady(rule, items.back())) items.pop_back();
      }
      continue;
    }
    for (const Episode& episode : Episodes(rule, trajectory)) {
      for (size_t at = 0; at < episode.rows.size(); ++at) {
        if (!IsAnchor(rule, episode, static_cast<int64_t>(at))) continue;
        items.push_back(ModelItem{id, episode.rows[at]->number});
        if (!IsReady(rule, items.back())) items.pop_back();
      }
    }
  }
  return items;
}

bool WindowModel::IsReady(const ModelRule& rule, const ModelItem& item) const {
  if (rule.needs_mark && !marked_.contains(item.id)) return false;
  if (!rule.needs_filled) return true;
  const auto found = filled_.find(item.id);
  const ModelTrajectory& trajectory = trajectories_.at(item.id);
  const int64_t filled =
      std::max(found == filled_.end() ? 0 : found->second, trajectory.first_row());
  if (rule.trajectories) return filled >= trajectory.steps_end();
  const Window window = Place(rule, item);
  const int64_t shown_end = window.anchor + window.steps;
  auto end = std::min(shown_end + rule.after, static_cast<int64_t>(window.episode.steps_end));
  const auto last = [&] { return window.episode.rows[static_cast<size_t>(end) - 1]; };
  while (end > shown_end && NoStep(rule, *last())) --end;
  return filled > last()->number;
}

// What an item shows.

WindowModel::Window WindowModel::Place(const ModelRule& rule, const ModelItem& item) const {
  Window window;
  for (Episode& episode : Episodes(rule, trajectories_.at(item.id))) {
    for (size_t at = 0; at < episode.rows.size(); ++at) {
      if (episode.rows[at]->number != item.row) continue;
      window.anchor = static_cast<int64_t>(at);
      window.episode = episode;
    }
  }
  const auto steps_end = static_cast<int64_t>(window.episode.steps_end);
  window.length = rule.trajectories ? steps_end : rule.length;
  window.steps = window.length;
  if (rule.trajectories) return window;
  window.anchor = Stand(rule, window.episode, window.anchor);
  while (window.anchor < 0) ++window.anchor;
  while (window.anchor > steps_end - 1) --window.anchor;
  while (window.anchor + window.steps > steps_end) --window.steps;
  return window;
}

WindowModel::Situation WindowModel::SituationOf(const ModelRule& rule,
                                                const ModelItem& item) const {
  const Window window = Place(rule, item);
  const int64_t row = window.episode.rows[static_cast<size_t>(window.anchor)]->number;
  return Situation{window.episode.open, window.episode.head_missing, row != item.row};
}

int64_t WindowModel::Length(const ModelRule& rule, const ModelItem& item) const {
  return Place(rule, item).steps;
}

void WindowModel::AddRow(const ModelView& view, const ModelRow& row, Bytes* bytes) const {
  const ModelColumn& column = table_.columns[view.column];
  const Bytes& stored = row.columns[view.column];
  if (!view.to_f32) return Add(stored, bytes);
  for (size_t i = 0; i < column.elements; ++i) {
    const float value = ElementAsFloat(column.dtype, &stored[i * DTypeBytes(column.dtype)]);
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes->insert(bytes->end(), first, first + sizeof(value));
  }
}

void WindowModel::AddPadding(const ModelView& view, Bytes* bytes) const {
  for (size_t i = 0; i < table_.columns[view.column].elements; ++i) Add(view.pad, bytes);
}

/// The entry at index `at` of the episode, of which rows below index `end` may be shown.
void WindowModel::ShowEntry(const ModelRule& rule, const Window& window, const ModelView& view,
                            int64_t at, int64_t end, ShownView* shown) const {
  const Side left = rule.trajectories ? Side::kClip : rule.left;
  const Side right = rule.trajectories ? Side::kClip : rule.right;
  const Side side = at < 0 ? left : right;
  const bool there = at >= 0 && at < end;
  if (!there && side != Side::kPad && side != Side::kRepeat) return;
  ++shown->entries;
  if (!there && side == Side::kPad) {
    for (int64_t k = 0; k < view.stack; ++k) AddPadding(view, &shown->bytes);
    for (auto* mask : {&shown->valid, &shown->learn, &shown->is_first, &shown->end}) {
      mask->push_back(0);
    }
    return;
  }
  const int64_t shown_at = std::clamp<int64_t>(at, 0, end - 1);  // The edge row again.
  const auto row_at = [&](int64_t r) -> const ModelRow& {
    return *window.episode.rows[static_cast<size_t>(r)];
  };
  for (int64_t r = shown_at - view.stack + 1; r <= shown_at; ++r) {
    if (r < 0 && left == Side::kPad) {
      AddPadding(view, &shown->bytes);
    } else {
      AddRow(view, row_at(std::max<int64_t>(r, 0)), &shown->bytes);
    }
  }
  const ModelRow& row = row_at(shown_at);
  const bool in_length_part = at >= window.anchor && at < window.anchor + window.steps;
  shown->valid.push_back(1);
  shown->learn.push_back(there && in_length_part && !NoStep(rule, row) ? 1 : 0);
  shown->is_first.push_back(row.first ? 1 : 0);
  shown->end.push_back(static_cast<uint8_t>(row.end));
}

ShownView WindowModel::Show(const ModelRule& rule, const ModelItem& item, const ModelView& view,
                            const ModelNStep* n_step) const {
  const Window window = Place(rule, item);
  const auto rows = static_cast<int64_t>(window.episode.rows.size());
  ShownView shown;
  if (view.bootstrap) {
    const int64_t steps = n_step->every_row ? window.steps : 1;
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t at = Look(rule, window, window.anchor + i, *n_step).row;
      ShowEntry(rule, window, view, at, rows, &shown);
    }
    return shown;
  }
  std::vector<int64_t> relative = view.rows;
  if (view.item_length) {
    relative.clear();
    for (int64_t i = 0; i < window.length + view.plus; ++i) {
      relative.push_back(view.begin + i * view.stride);
    }
  }
  int64_t over = 0;
  for (const int64_t j : relative) over = std::max(over, j + 1 - window.length);
  const int64_t end = std::min(rows, window.anchor + window.steps + over);
  for (const int64_t j : relative) ShowEntry(rule, window, view, window.anchor + j, end, &shown);
  return shown;
}

// n-step.

/// From the row at index `at`, within that row's own episode: also a window that crosses ends does
/// not add up rewards of two episodes.
WindowModel::Episode WindowModel::Around(const ModelRule& rule, const ModelItem& item,
                                         int64_t* anchor) const {
  const Window window = Place(rule, item);
  *anchor = window.episode.rows[static_cast<size_t>(window.anchor)]->number;
  ModelRule within = rule;
  within.cross_ends = false;
  for (Episode& episode : Episodes(within, trajectories_.at(item.id))) {
    for (const ModelRow* row : episode.rows) {
      if (row->number == *anchor) return episode;
    }
  }
  return {};
}

WindowModel::RowsAround WindowModel::DrawnFrom(const ModelRule& rule, const ModelItem& item) const {
  RowsAround around;
  for (const ModelRow* row : Around(rule, item, &around.anchor).rows) {
    around.rows.push_back(row->number);
  }
  return around;
}

ShownView WindowModel::ShowDrawn(const ModelRule& rule, const ModelItem& item,
                                 const ModelView& view, const std::vector<int64_t>& rows) const {
  int64_t anchor = 0;
  Window window;  // Without a length part: nothing is at its own place.
  window.episode = Around(rule, item, &anchor);
  const auto end = static_cast<int64_t>(window.episode.rows.size());
  ShownView shown;
  for (const int64_t row : rows) {
    const int64_t at = row - window.episode.rows.front()->number;
    ShowEntry(rule, window, view, at, end, &shown);
  }
  return shown;
}

WindowModel::Bootstrap WindowModel::Look(const ModelRule& rule, const Window& window, int64_t at,
                                         const ModelNStep& n_step) const {
  const std::vector<const ModelRow*>& rows = window.episode.rows;
  const auto row_at = [&](int64_t index) -> const ModelRow& {
    return *rows[static_cast<size_t>(index)];
  };
  const auto value = [&](size_t column, const ModelRow& row) {
    return ElementAsFloat(table_.columns[column].dtype, row.columns[column].data());
  };
  Bootstrap result{0, 0, 0, at};
  if (NoStep(rule, row_at(at))) return result;
  result.discount = 1;
  result.mask = 1;
  for (int64_t counted = 0; counted < n_step.n; ++counted) {
    const ModelRow& row = row_at(result.row);
    if (NoStep(rule, row)) break;
    result.value = result.value + result.discount * value(n_step.reward, row);
    result.discount =
        result.discount * (n_step.discount ? value(*n_step.discount, row) : n_step.gamma);
    const bool lost = n_step.life_loss && !IsZero(row.columns[*n_step.life_loss]);
    if (row.end == End::kTerminated || lost) result.mask = 0;
    const bool last =
        result.row + 1 == static_cast<int64_t>(rows.size()) || row_at(result.row + 1).first;
    if (last) break;
    ++result.row;
    if (result.mask == 0) break;
  }
  return result;
}

ShownNStep WindowModel::ShowNStep(const ModelRule& rule, const ModelItem& item,
                                  const ModelNStep& n_step) const {
  const Window window = Place(rule, item);
  ShownNStep shown;
  for (int64_t i = 0; i < (n_step.every_row ? window.steps : 1); ++i) {
    const Bootstrap look = Look(rule, window, window.anchor + i, n_step);
    shown.returns.push_back(look.value);
    shown.discounts.push_back(look.discount);
    shown.masks.push_back(look.mask);
    shown.bootstrap_rows.push_back(window.episode.rows[static_cast<size_t>(look.row)]->number);
  }
  return shown;
}

}  // namespace geardb::conformance
