// PlainTable: the model of a table, in maps and vectors, from what the public headers and the
// README's "Windows" say. It is slow, keeps nothing that could be computed, and shares no code with
// the engine but its plain structs.
//
// Ids come from the database, which may leave some out; so do the choice of a uniform remover, and
// what a page takes of the frames. All else follows from the calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/table.h"
#include "tests/differential/kinds.h"

namespace geardb::differential {

using Value = std::shared_ptr<const Bytes>;
/// Values by the number of their column. Numbers are the model's own: no two columns that a table
/// ever has are the same one.
using Values = std::map<uint64_t, Value>;

struct PlainColumn {
  uint64_t number = 0;
  Column column;
  bool late = false;
  bool is_volatile = false;
  Value unwritten = {};
  bool per_step() const { return IsPerStep(column.kind); }
  bool any_length() const { return AnyLength(column); }
};

struct PlainRow {
  int64_t number = 0;
  End end = End::kGo;
  bool final = false;  ///< No step.
  bool first = false;  ///< Of its episode.
  Values values = {};  ///< Absent: the column's default.
};

struct PlainTrajectory {
  TrajectoryId id = 0;
  TrajectoryState state = TrajectoryState::kOpen;
  End end = End::kGo;
  std::vector<PlainRow> rows = {};
  Values columns = {};                         ///< Per trajectory, those that were set.
  std::map<std::string, int64_t> filled = {};  ///< By late group.
  int64_t created_us = 0;
  int64_t left_us = 0;   ///< An orphan's, of when it became one.
  uint64_t touched = 0;  ///< When rows came, it was closed, or a writer took or left it.
  uint64_t times_sampled = 0;

  bool open() const { return state == TrajectoryState::kOpen; }
  bool closed() const { return state == TrajectoryState::kClosed; }
  int64_t first_row() const { return rows.front().number; }
  int64_t rows_end() const { return rows.back().number + 1; }
  int64_t steps_end() const { return rows_end() - (rows.back().final ? 1 : 0); }
  int64_t steps() const;  ///< Rows that are no final rows.
  const PlainRow& row(int64_t number) const {
    return rows[static_cast<size_t>(number - first_row())];
  }
};

/// An item of a priority table. Of a trajectory row 0, whatever its first row is; of a draw group
/// the trajectory that began it, also when that has left, and row 0.
using ItemKey = std::pair<TrajectoryId, int64_t>;
/// Where a window may stand.
using Anchor = std::pair<TrajectoryId, int64_t>;
/// When an item became drawable: a change, the lane in it, the row. {0, 0, 0}: it was there when
/// the priority table was created; in which order these come, the model does not know. Of a group
/// the lane is that of the member that made it ready, the row the trajectory that began it.
using ItemAge = std::tuple<uint64_t, int64_t, int64_t>;

struct PlainItem {
  float priority = 1;
  ItemAge age = {};
  uint32_t sampled = 0;
  uint32_t reserved = 0;
};

/// Of PriorityTableStats::limiter, and what E and W count from (rate_limit.h).
struct PlainCounts {
  int64_t inserts = 0, samples = 0, reserved = 0, deletes = 0, unsampled = 0;
  int64_t inserts_from = 0, samples_from = 0;
  int64_t size() const { return inserts - deletes; }
};

struct PlainEpoch {
  uint64_t epoch = 0;
  uint64_t pass = 0;
  std::set<ItemKey> cut = {};
  std::set<ItemKey> remaining = {};  ///< In this pass.
};

/// Why a group takes no more members.
enum class GroupStop : uint8_t { kNone, kComplete, kSealed, kDeadline, kUndrawable, kCut };

struct PlainGroup {
  int64_t key = 0;
  std::vector<TrajectoryId> members = {};  ///< In the order in which they joined; never empty.
  std::set<TrajectoryId> shown = {};       ///< Members that a batch has shown since they joined.
  TrajectoryId made_ready = 0;             ///< By whom; 0: it is not ready.
  GroupStop stop = GroupStop::kNone;
  int64_t first_us = 0;  ///< When its first came; after a reopen that of the reopen.
};

struct PlainPriority {
  PriorityTableSpec spec;                     ///< With the limits and the filter of now.
  std::map<ItemKey, PlainGroup> groups = {};  ///< By what they are as items, ready or not.
  std::map<ItemKey, PlainItem> items = {};
  std::set<ItemKey> deleted = {};
  float max_priority = 1;
  PlainCounts counts = {};
  bool counts_items = false;  ///< There was a maximum of times once.
  uint64_t next_draw = 0;
  uint64_t next_ahead = 0;
  PlainEpoch epoch = {};

  bool windows() const { return spec.item == ItemKind::kWindow; }
  bool draws_groups() const { return spec.item == ItemKind::kGroup; }
  bool ordered() const {
    return spec.selector >= SelectorKind::kFifo && spec.selector <= SelectorKind::kMaxHeap;
  }
  bool distinct() const { return spec.selector >= SelectorKind::kFifo; }
  uint32_t at_least() const {
    return spec.group.at_least == 0 ? spec.group.count : spec.group.at_least;
  }
  bool is_queue() const {
    return spec.limiter.kind == LimiterKind::kQueue || spec.limiter.kind == LimiterKind::kStack;
  }
  uint32_t times_max() const { return is_queue() ? 1 : spec.max_times_sampled; }
  bool removes_exhausted() const { return spec.remove_when_exhausted.value_or(is_queue()); }
  bool exhausted(const PlainItem& item) const {
    return times_max() > 0 && item.sampled >= times_max();
  }
  /// Groups that are ready may take others.
  bool takes_when_ready() const {
    return draws_groups() && spec.group.deadline_ms == 0 && at_least() < spec.group.count;
  }
  /// The item will be drawn no more: exhausted, or covered by an epoch that removes it.
  bool has_ended(const ItemKey& key) const {
    const auto item = items.find(key);
    if (item == items.end()) return false;
    const bool covered = spec.selector == SelectorKind::kEpoch && spec.epoch.remove_covered &&
                         epoch.pass >= spec.epoch.passes && epoch.cut.contains(key) &&
                         !epoch.remaining.contains(key);
    return covered || exhausted(item->second);
  }
  bool epoch_over() const {
    const bool last = epoch.pass >= spec.epoch.passes || epoch.cut.empty();
    return epoch.epoch == 0 || (last && epoch.remaining.empty());
  }

  // plain_groups.cc

  /// The trajectories of an item: one, but of groups, of which none is left when it has gone.
  std::vector<TrajectoryId> TrajectoriesOf(const ItemKey& key) const;
  /// The item, if it is one, that a row of a trajectory names: none, of groups that it is in none.
  std::optional<ItemKey> ItemOf(TrajectoryId id, int64_t row) const;
  /// All, in the order of PriorityTable::Items.
  std::vector<ItemKey> ItemsInOrder() const;
  /// What names an item: of groups one of the members.
  RowId NameOf(const ItemKey& key, uint64_t which = 0) const;
  GroupStats CountGroups() const;  ///< But `taking`.
  /// A batch that is handed over has shown it: noted in the group that it is a member of now.
  void Show(TrajectoryId id);
  /// Groups that may still be drawn.
  std::set<ItemKey> GroupsNotEnded() const;
};

/// A writer's open trajectories, and the columns that there were when it was made.
struct PlainWriter {
  bool there = false;
  uint64_t layout = 0;
  std::vector<PlainColumn> columns = {};
  std::vector<TrajectoryId> lanes = {};
};

/// Rows for a lane, of one call.
struct PlainLaneRows {
  uint32_t lane = 0;
  std::vector<Values> rows = {};
  End end = End::kGo;
  Values final = {};
  Values trajectory = {};
};
using GivenPriorities = std::map<size_t, std::vector<float>>;  ///< By priority table.

class PlainTable {
 public:
  PlainTable(const TableSpec& spec, int64_t now_us);

  // What there is.
  TableSpec spec;  ///< As it was created; columns, groups and priority tables are below.
  std::vector<PlainColumn> columns;
  std::vector<ColumnGroup> groups;
  std::map<TrajectoryId, PlainTrajectory> trajectories;
  std::vector<PlainPriority> priorities;
  std::vector<Removal> removals;
  std::vector<PlainWriter> writers;
  TrajectoryId last_id = 0;
  uint64_t moment = 0;  ///< Changes so far.
  uint64_t layout = 0;  ///< Changes of columns so far.
  int64_t now_us = 0;
  uint64_t page_bytes = 0;  ///< In all groups that there are (Table::Places).

  const PlainColumn* FindColumn(std::string_view name) const;
  size_t WriterOf(uint32_t lane) const { return lane < kLanesOfWriter[0] ? 0 : 1; }
  int64_t RowsTrimmed() const;  ///< From the heads of those that are there.
  bool Passes(const std::string& filter, const PlainTrajectory& trajectory) const;
  Value ValueOf(const PlainRow& row, const PlainColumn& column) const;
  Value ValueOf(const PlainTrajectory& trajectory, const PlainColumn& column) const;

  // Changes. Each is one record's: Settle, which every one ends with, does what follows from it.

  void MakeWriter(size_t writer);
  /// The trajectories of a writer become orphans.
  void Leave(size_t writer);
  /// Appends to lanes of a writer; ids are those of the database. False: what had to leave the full
  /// table is not what `victims` says (of a uniform remover), or there was nothing left.
  bool Append(size_t writer, const std::vector<PlainLaneRows>& calls, const GivenPriorities& given,
              const std::vector<TrajectoryId>& ids, const std::vector<TrajectoryId>& victims);
  /// Enough may leave for such a call, where the table is full.
  bool MayHold(size_t writer, const std::vector<PlainLaneRows>& calls) const;
  /// Items that such a call makes drawable, by priority table.
  std::vector<int64_t> NewItems(size_t writer, const std::vector<PlainLaneRows>& calls) const;
  /// A cut of a trajectory that would leave nothing of it.
  bool Vanishes(size_t writer, const PlainLaneRows& call) const;
  /// False: nothing was left of it.
  bool Cut(TrajectoryId id);
  void Remove(TrajectoryId id, RemovalReason reason, const std::string& priority_table = "");
  void Truncate(TrajectoryId id, int64_t first_row);
  void Orphan(TrajectoryId id);
  /// And what is removed by hand with it.
  void SetColumns(TrajectoryId id, const Values& values,
                  const std::vector<TrajectoryId>& removed = {});
  void Patch(TrajectoryId id, int64_t first, const std::vector<Values>& rows);
  void CreatePriority(const PriorityTableSpec& spec);
  void SetPriority(PlainPriority* priority, const ItemKey& key, float value);
  bool Delete(PlainPriority* priority, const ItemKey& key);
  /// False: no group of the key takes members.
  bool SealGroup(PlainPriority* priority, int64_t key);
  uint64_t SealOverdueGroups(PlainPriority* priority);
  /// These groups can be drawn no more: who was never shown of them joins anew. Returns how many.
  uint64_t Regroup(PlainPriority* priority, const std::set<ItemKey>& ended);
  void AddColumn(const Column& column);
  void DropColumn(std::string_view name);
  uint64_t CloseOrphans(int64_t older_than_ms);
  uint64_t RemoveExpired();
  /// A reopen: volatile groups are forgotten, what is open is an orphan. What nobody can draw
  /// leaves, but where it is for reading.
  void Reopen(bool read_only = false);
  /// Trajectories that nobody can draw any more leave (schema.h: remove_when_exhausted,
  /// remove_covered): of those shown, or deleted from; of all after an open.
  void Finish(const std::set<TrajectoryId>& ids);
  void FinishAll();
  /// Items come and leave by what the trajectories are now.
  void Settle(const std::map<TrajectoryId, int64_t>& lanes = {}, const GivenPriorities& given = {});

  // Windows (plain_windows.cc).

  struct Episode {
    int64_t begin = 0, steps_end = 0, rows_end = 0;
    bool head_missing = false;
    bool open = false;
  };
  struct Window {
    Episode episode;
    int64_t anchor = 0;
    int64_t steps = 0;
    int64_t length = 0;
  };
  std::vector<Episode> Episodes(const PriorityTableSpec& rule,
                                const PlainTrajectory& trajectory) const;
  /// All rows that are anchors; of items that are trajectories 0, if it is one. Whether ready or
  /// not.
  std::vector<int64_t> Anchors(const PriorityTableSpec& rule,
                               const PlainTrajectory& trajectory) const;
  Window Place(const PriorityTableSpec& rule, const PlainTrajectory& trajectory,
               int64_t anchor) const;
  bool IsReady(const PriorityTableSpec& rule, const PlainTrajectory& trajectory,
               int64_t anchor) const;
  bool NoStep(const PriorityTableSpec& rule, const PlainRow& row) const;
  /// Where windows of a rule may stand within the trajectories of an item, in order.
  std::vector<Anchor> AnchorsWithin(const PriorityTableSpec& rule, const PlainPriority& priority,
                                    const ItemKey& key) const;
  /// The rows that a view of these relative rows shows, -1 for padding; absent ones left out.
  struct Shown {
    std::vector<int64_t> rows = {};
    std::vector<uint8_t> learn = {};
    int64_t begin = 0;  ///< Of the episode: no stack has rows before it.
  };
  Shown Show(const PriorityTableSpec& rule, const PlainTrajectory& trajectory, int64_t anchor,
             const std::vector<int64_t>& relative) const;
  /// What NStep says of a row.
  struct NStepRow {
    float value = 0, discount = 0, mask = 0;
    int64_t steps = 0;  ///< Whose rewards are summed.
    int64_t bootstrap = 0;
  };
  /// Of the row where the window stands, or of every row of the length part.
  std::vector<NStepRow> NSteps(const PriorityTableSpec& rule, const PlainTrajectory& trajectory,
                               int64_t anchor, const NStep& asked) const;
  Shown ShowBootstraps(const PriorityTableSpec& rule, const PlainTrajectory& trajectory,
                       int64_t anchor, const NStep& asked) const;

 private:
  /// What a call adds.
  struct Growth {
    uint64_t trajectories = 0, rows = 0, pages = 0;
  };
  Growth GrowthOf(size_t writer, const std::vector<PlainLaneRows>& calls) const;
  uint64_t PagesTo(uint64_t rows_end) const;
  Growth Held() const;
  bool Fits(const Growth& held, const Growth& more) const;
  bool MakeRoom(const Growth& more, const std::vector<TrajectoryId>& victims);
  TrajectoryId NextToLeave(const std::vector<TrajectoryId>& victims, size_t* victim) const;
  bool LoseOldestPage();
  void AppendRows(TrajectoryId id, const PlainLaneRows& call, uint64_t touched);
  void SettlePriority(size_t number, const std::map<TrajectoryId, int64_t>& lanes,
                      const GivenPriorities& given);
  std::set<ItemKey> ItemsThere(const PlainPriority& priority) const;
  void SettleGroups(PlainPriority* priority, const std::map<TrajectoryId, int64_t>& lanes) const;
  void JoinGroup(PlainPriority* priority, const PlainTrajectory& newcomer) const;
  bool TakesMembers(const PlainPriority& priority, const ItemKey& key) const;
  int64_t GroupKey(const PlainPriority& priority, const PlainTrajectory& trajectory) const;
  void ItemLeaves(PlainPriority* priority, const ItemKey& key);
  bool EndsEpisode(const PlainRow& row) const;
  std::vector<Episode> EpisodesOf(const PriorityTableSpec& rule, const PlainTrajectory& trajectory,
                                  bool whole) const;
  NStepRow NStepOf(const Episode& own, const PlainTrajectory& trajectory, int64_t row,
                   const NStep& asked) const;
  bool IsFinished(const PlainTrajectory& trajectory) const;
  float WorthOf(TrajectoryId id) const;

  struct Page {
    TrajectoryId id;
    int64_t end;
  };
  std::vector<Page> pages_;  ///< Oldest first.
  uint64_t next_column_ = 0;
};

// Views (plain_windows.cc).

/// Relative to the anchor, of an item whose length part is so long.
std::vector<int64_t> RelativeRows(const ViewRows& rows, int64_t length);
/// The k rows up to the newest, -1 for padding.
std::vector<int64_t> Stack(const PriorityTableSpec& rule, int64_t begin, int64_t newest, int64_t k);
/// Views and n-step returns show rows that the extent promises.
bool Promises(const PlainTable& table, const PriorityTableSpec& rule,
              const SamplerOptions& options);

// Limits and draws (plain_draws.cc).

/// OK; DeadlineExceeded: so many items may come later; InvalidArgument: never.
StatusCode AdmitsItems(const PlainPriority& priority, int64_t items);
bool AdmitsRows(const PlainPriority& priority, int64_t rows);
/// May be drawn now.
bool IsDrawable(const PlainTable& table, const PlainPriority& priority, const ItemKey& key);
std::vector<ItemKey> DrawableItems(const PlainTable& table, const PlainPriority& priority);
/// Of each of these in the next draw; `scale` is PriorityTableStats::scale_shift.
std::map<ItemKey, double> Probabilities(const PlainPriority& priority,
                                        const std::vector<ItemKey>& drawable, int scale);
/// Where an item stands in the order of an ordered selector.
std::tuple<double, ItemAge> PlaceInOrder(const PlainPriority& priority, const ItemKey& key);
/// OK, or how Next refuses a batch of so many rows.
StatusCode RefusalOf(const PlainTable& table, const PlainPriority& priority, int64_t rows);
void Configure(PlainPriority* priority, const PriorityLimits& limits);
void BeginEpoch(PlainPriority* priority);
/// Takes out what an item's leaving, or a hand-over, takes; ends passes.
void Cover(PlainPriority* priority, const std::set<ItemKey>& keys);
void EndPass(PlainPriority* priority);

}  // namespace geardb::differential
