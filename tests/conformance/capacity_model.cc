#include "tests/conformance/capacity_model.h"

#include <algorithm>

namespace geardb::conformance {

bool CapacityModel::MakeRoom(const ModelGrowth& growth, WindowModel* model) {
  ++calls_;
  const auto trajectories = [model] { return static_cast<int64_t>(model->trajectories().size()); };
  const auto rows = [model] {
    int64_t sum = 0;
    for (const auto& [id, trajectory] : model->trajectories()) {
      sum += static_cast<int64_t>(trajectory.rows.size());
    }
    return sum;
  };
  if (capacity_.trajectories_max > 0) {
    while (trajectories() + growth.trajectories > capacity_.trajectories_max) {
      if (!RemoveClosed(model)) return false;
    }
  }
  if (capacity_.steps_max > 0) {
    while (rows() + growth.rows > capacity_.steps_max) {
      if (capacity_.lifo && RemoveClosed(model)) continue;
      if (!RemoveOldestPage(model)) return false;
    }
  }
  return true;
}

void CapacityModel::NoteRows(TrajectoryId id, int64_t first, int64_t end) {
  for (int64_t row = first; row < end; ++row) {
    if (row % capacity_.steps_per_page != 0) continue;
    pages_.push_back(Page{id, row + capacity_.steps_per_page});
  }
}

void CapacityModel::NoteClosed(TrajectoryId id, bool by_cut) {
  calls_ += by_cut ? 1 : 0;
  closed_[id] = calls_;
}

bool CapacityModel::RemoveClosed(WindowModel* model) {
  std::erase_if(closed_, [&](const auto& c) { return !model->trajectories().contains(c.first); });
  TrajectoryId next = 0;  // Ids ascend in the order in which trajectories were opened.
  for (const auto& [id, call] : closed_) {
    if (next == 0 || (capacity_.lifo ? call >= closed_[next] : call < closed_[next])) next = id;
  }
  if (next == 0) return false;
  model->Remove(next);
  return true;
}

// Of an open trajectory the page goes, of another the whole. The page that an open trajectory is
// writing, its last one, stays.
bool CapacityModel::RemoveOldestPage(WindowModel* model) {
  std::erase_if(pages_, [&](const Page& page) {
    const auto found = model->trajectories().find(page.id);
    return found == model->trajectories().end() || page.end <= found->second.first_row();
  });
  for (const Page& page : pages_) {
    const ModelTrajectory& trajectory = model->trajectories().at(page.id);
    if (trajectory.state != ModelState::kOpen) {
      model->Remove(page.id);
      return true;
    }
    if (page.end >= trajectory.rows_end()) continue;
    model->Trim(page.id, page.end);
    return true;
  }
  return false;
}

}  // namespace geardb::conformance
