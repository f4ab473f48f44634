// EngineOracle: what a capacity may have removed. The rules are those of engine/README.md,
// "Capacity and removal": first in, first out, and eviction stops as soon as the newcomers fit.
#include <algorithm>
#include <sstream>

#include "tests/testing/engine_oracle.h"

namespace geardb::testing {
namespace {

template <typename... Parts>
std::string Say(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

using Segment = ActorModel::Segment;
using Trajectory = ActorModel::Trajectory;

int64_t EndOf(const Segment& segment) {
  return segment.first_row + segment.rows + (segment.has_final ? 1 : 0);
}

// Where the record ends that wrote `row`; 0 where that is not known.
Lsn WrittenBy(const Trajectory& trajectory, int64_t row) {
  for (const Segment& segment : trajectory.segments) {
    if (row >= segment.first_row && row < EndOf(segment)) return segment.end_lsn;
  }
  return 0;
}

// Rows from `first_row` on that may have been written after `lsn`.
int64_t RowsSince(const Trajectory& trajectory, int64_t first_row, Lsn lsn) {
  int64_t rows = 0;
  for (const Segment& segment : trajectory.segments) {
    if (segment.end_lsn != 0 && segment.end_lsn <= lsn) continue;
    rows += std::max<int64_t>(0, EndOf(segment) - std::max(segment.first_row, first_row));
  }
  return rows;
}

}  // namespace

// Fifo: what was closed before something else that a capacity removed began (or closed, where
// trajectories are counted) is gone, too.
std::string EngineOracle::CheckAges() const {
  if (damage_) return "";
  for (const uint32_t table : {1u, 2u}) {
    Lsn newest_gone = 0;
    const auto visit = [&](auto&& see) {
      for (const ActorModel& model : models_) {
        for (const auto& [key, trajectory] : model.trajectories()) {
          if (trajectory.table == table && !trajectory.removed) see(trajectory);
        }
      }
    };
    visit([&](const ActorModel::Trajectory& trajectory) {
      if (!trajectory.absent && trajectory.first_row == 0) return;
      const Lsn age = table == 1 ? trajectory.segments[0].end_lsn : trajectory.closed_lsn;
      newest_gone = std::max(newest_gone, age);
    });
    std::string wrong;
    visit([&](const ActorModel::Trajectory& trajectory) {
      if (trajectory.absent || trajectory.open || trajectory.closed_lsn == 0) return;
      if (trajectory.closed_lsn >= newest_gone) return;
      wrong = Say("table ", OracleSpec(table).name, ": trajectory ", trajectory.id,
                  ", closed at LSN ", trajectory.closed_lsn,
                  ", is there, but a younger one of LSN ", newest_gone, " is not");
    });
    if (!wrong.empty()) return wrong;
  }
  return "";
}

struct EngineOracle::Evicted {
  bool certain = false;   // Something was.
  bool possible = false;  // Something is missing that may never have been there.
  int64_t last_rows = 0;  // At most so many rows left with the last that did.
  int64_t rows_cut = 0;   // At most so many left otherwise, each with a cut.
};

// What leaves last is a page, or a trajectory of which nobody appends any more. When the youngest
// page left of which we know, the trajectory's pages were younger, but for one that was still
// being written: else the trajectory would have left first.
EngineOracle::Evicted EngineOracle::FindEvicted(const std::vector<ActorModel>& before,
                                                uint32_t table) const {
  const int64_t page_rows = OracleSpec(table).steps_per_page;
  Evicted evicted{.last_rows = page_rows};
  struct Missing {
    const Trajectory* trajectory;
    int64_t first_row;
  };
  std::vector<Missing> missing;
  Lsn youngest_page = 0;
  for (uint32_t actor = 0; actor < actors(); ++actor) {
    for (const auto& [key, trajectory] : models_[actor].trajectories()) {
      if (trajectory.table != table) continue;
      const auto known = before[actor].trajectories().find(key);
      const bool is_new = known == before[actor].trajectories().end();
      const int64_t first_row = is_new ? 0 : known->second.first_row;
      if (!is_new && (known->second.absent || known->second.removed)) continue;
      if (trajectory.absent || trajectory.removed) {
        missing.push_back({&trajectory, first_row});
        const bool was_there = trajectory.seen || trajectory.segments[0].end_lsn != 0;
        evicted.rows_cut += trajectory.removed ? 1 : 0;
        (was_there && trajectory.absent ? evicted.certain : evicted.possible) = true;
      } else if (trajectory.first_row > first_row) {
        evicted.certain = true;
        const Lsn written = WrittenBy(trajectory, trajectory.first_row - page_rows);
        youngest_page = std::max(youngest_page, written);
      }
    }
  }
  for (const Missing& gone : missing) {
    const int64_t since = RowsSince(*gone.trajectory, gone.first_row, youngest_page);
    evicted.last_rows = std::max(evicted.last_rows, page_rows + since);
  }
  return evicted;
}

std::string EngineOracle::CheckHeld(const std::vector<ActorModel>& before,
                                    const OracleHeld (&held)[kOracleTables]) {
  if (damage_) return "";
  for (uint32_t table = 0; table < kOracleTables; ++table) {
    const TableSpec spec = OracleSpec(table);
    if (spec.trajectories_max > 0) {
      uint64_t appended = 0;
      for (const ActorModel& model : models_) {
        for (const auto& [key, trajectory] : model.trajectories()) {
          const bool was_there = trajectory.seen || trajectory.segments[0].end_lsn != 0;
          appended += trajectory.table == table && !trajectory.removed && was_there ? 1 : 0;
        }
      }
      // Each that came to a full table took the place of one.
      if (held[table].trajectories < std::min(appended, spec.trajectories_max)) {
        return Say("table ", spec.name, " holds ", held[table].trajectories, " trajectories of ",
                   appended, " that were appended; it may hold ", spec.trajectories_max);
      }
    }
    if (spec.steps_max == 0) continue;
    const Evicted evicted = FindEvicted(before, table);
    const int64_t rows = held[table].rows + evicted.rows_cut;
    const auto steps_max = static_cast<int64_t>(spec.steps_max);
    if (evicted.certain && rows + evicted.last_rows <= steps_max) {
      return Say("table ", spec.name, " holds ", held[table].rows, " rows; with the last ",
                 evicted.last_rows, " that left it would hold no more than ", steps_max);
    }
    if (!evicted.certain && !evicted.possible && rows < rows_before_) {
      return Say("table ", spec.name, " holds ", held[table].rows, " rows of ", rows_before_,
                 ", and nothing has left it");
    }
    rows_before_ = held[table].rows;
  }
  return "";
}

}  // namespace geardb::testing
