// StoreTwin: a table of a real database and the model of it, changed together at random.
//
// Invariants: after every change the model holds the same trajectories as the table, and
// `DrawnTable::priorities` the same items with the same raw priorities.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/env.h"
#include "engine/database.h"
#include "tests/conformance/capacity_model.h"
#include "tests/conformance/random_choice.h"
#include "tests/conformance/random_table.h"
#include "tests/conformance/window_model.h"

namespace geardb::conformance {

/// When an item became drawable: the change, the place of its trajectory in it, its row. Where the
/// model does not know how the changes of one call follow each other, both are 0.
using ItemAge = std::tuple<int64_t, int64_t, int64_t>;

/// A priority table as it must be.
struct DrawnTable {
  PriorityTableSpec spec;
  ModelRule rule;
  std::map<ModelItem, float> priorities;  ///< Of all items; ignored where there are none.
  std::map<ModelItem, ItemAge> ages;      ///< Of the same items.
  std::set<ModelItem> deleted = {};       ///< By hand; of trajectories row 0.
  float max_priority = 1;

  /// It was deleted, and stays away.
  bool IsDeleted(const ModelItem& item) const {
    return deleted.contains(rule.trajectories ? ModelItem{item.id, 0} : item);
  }
  /// The raw priority of an item, or null; of a trajectory whatever its row.
  float* Find(const ModelItem& item);
  bool has_priorities() const { return HasPriorities(spec.selector); }
  bool has_weights() const { return HasWeights(spec.selector); }
  /// A batch has each item once.
  bool distinct() const { return spec.selector >= SelectorKind::kFifo; }
  /// Items come in an order: always the first ones.
  bool ordered() const { return distinct() && !has_weights(); }
  /// w of an item, and the sum over all.
  double Weight(float priority) const;
  double TotalWeight() const;
  /// What Probability says of an item.
  double Probability(float priority) const;
  /// Where an item stands in the order: items of the same place may come in any.
  std::tuple<double, int64_t, int64_t, int64_t> Place(const ModelItem& item) const;
};

class StoreTwin {
 public:
  /// Creates the table in a new database in `directory` of `env` (null: of the machine's own file
  /// system). Failures are GoogleTest failures.
  StoreTwin(RandomTable table, std::string directory, Env* env, RandomChoice* choice);

  /// One random change to both.
  void Change();
  /// Closes the database and opens it again.
  void Reopen();
  /// The table's records, its counts, and the items of every priority table with their priorities
  /// and probabilities are those of the model.
  void CheckAll();

  const RandomTable& random_table() const { return random_table_; }
  Database* database() const { return database_.get(); }
  Table* table() const { return table_.get(); }
  const WindowModel& model() const { return model_; }
  std::vector<DrawnTable>& drawn() { return drawn_; }
  std::shared_ptr<PriorityTable> priority_table(const DrawnTable& drawn) const;
  const Bytes& TrajectoryValue(TrajectoryId id, size_t column) const;
  /// Rows of batches handed over that came from each trajectory.
  std::map<TrajectoryId, uint64_t>& times_sampled() { return times_sampled_; }
  /// Sets priorities by the handles of `items` in both. They may have duplicates, and be of items
  /// that are gone.
  void SetByHandle(DrawnTable* drawn, std::span<const ItemHandle> handles,
                   const std::vector<ModelItem>& items);

 private:
  struct Lane {
    size_t writer = 0;
    uint32_t number = 0;
    TrajectoryId id = 0;
  };
  /// Rows to append to one lane, as the model and as the store want them.
  struct Rows {
    std::vector<std::vector<Bytes>> rows;
    std::vector<Bytes> final_row;
    std::map<size_t, Bytes> trajectory;  ///< By index among the per-trajectory columns.
    End end = End::kGo;
  };

  struct Call;
  using GivenPriorities = std::map<const DrawnTable*, std::vector<float>>;

  void OpenDatabase();
  void OpenWriters();
  Rows RandomRows(const Lane& lane, int64_t count, End end);
  End RandomEnd();
  int64_t RandomCount();
  bool EpisodeHasEnded(const Lane& lane) const;
  void AppendToLane(Lane* lane);
  void GivePriorities(const Lane& lane, const Rows& rows, GivenPriorities* given,
                      std::vector<float>* values);
  std::vector<Rows> RandomRowsOfLanes(const std::vector<Lane*>& lanes, std::vector<End>* ends);
  void AppendToLanes(size_t writer);
  /// Applies what the store did with `rows` to the model.
  void TakeOver(Lane* lane, const Rows& rows, const Appended& appended);
  /// How many items of `drawn` this append would make drawable.
  size_t CountNewItems(const DrawnTable& drawn, const Lane& lane, const Rows& rows) const;
  Result<Appended> AppendOneRow(const Lane& lane);
  void CutLane(Lane* lane);
  void TrimSome();
  void RemoveSome();
  void OrphanWriter(size_t writer);
  void ResumeSome();
  /// Resumes all orphans, or removes them: they take room that no capacity can free.
  void AdoptOrphans();
  void SetTrajectoryColumns();
  /// New values for some columns of some rows.
  void PatchSome();
  void SetPriorities();
  /// Items leave a priority table for good.
  void DeleteSome();
  void SetAllPriorities(DrawnTable* drawn);
  /// Takes out of the model what a capacity removes before `rows` come to `lanes`.
  void MakeRoom(const std::vector<Lane*>& lanes, const std::vector<const Rows*>& rows);
  /// What the capacity left is what the model says.
  void CheckCapacity();
  /// New items get their initial priorities, those that are gone leave.
  void Settle(const GivenPriorities& given = {});
  void CheckItems(DrawnTable* drawn);
  float RandomPriority();
  bool has_capacity() const;
  /// Nothing is appended: a cut of a new trajectory's only row, which would be its final row.
  bool Vanishes(const Lane& lane, const Rows& rows) const;

  RandomTable random_table_;
  std::string directory_;
  Env* env_;
  RandomChoice* choice_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Lane> lanes_;
  WindowModel model_;
  CapacityModel capacity_;
  std::vector<DrawnTable> drawn_;
  std::map<TrajectoryId, std::vector<Bytes>> trajectory_values_;
  std::map<TrajectoryId, uint64_t> times_sampled_;
  std::map<TrajectoryId, int64_t> filled_;  ///< Of the late group.
  TrajectoryId last_id_ = 0;
  int64_t changes_ = 0;
  /// Places of the trajectories of the change that is to be settled, where they are known.
  std::map<TrajectoryId, int64_t> places_;
};

}  // namespace geardb::conformance
