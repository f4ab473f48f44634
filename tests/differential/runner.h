// Runner: a database and the model of it, side by side. One function for each operation: it asks
// the model what is to be expected, makes the call, and compares. run.cc has the way of a program
// through it; the operations are in run_*.cc.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/differential/plain_table.h"
#include "tests/differential/run.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/temp_dir.h"

namespace geardb::differential {

class HandClock final : public Clock {
 public:
  int64_t WallTimeUs() const override { return now_us; }
  int64_t now_us = 1'000'000'000'000;
};

/// A table and its model.
struct LiveTable {
  explicit LiveTable(PlainTable plain_in) : plain(std::move(plain_in)) {}
  PlainTable plain;
  std::shared_ptr<Table> table = {};
  std::unique_ptr<Writer> writers[std::size(kLanesOfWriter)] = {};
  uint64_t removals_seen = 0;

  /// Of its columns of now, for the model.
  void TakePageBytes();
  std::shared_ptr<PriorityTable> priority_table(size_t number) const {
    return table->priority_table(plain.priorities[number].spec.name);
  }
};

/// A part of a sampler.
struct LivePart {
  LiveTable* table = nullptr;
  size_t priority = 0;
  ShareKind share = ShareKind::kRest;
  int64_t count = 0;
};

/// What was drawn: how many items of each part, and, ahead, the tables as they were then.
struct PlainDraw {
  std::vector<PlainTable> tables = {};
  std::vector<int64_t> items = {};
  std::vector<uint64_t> numbers = {};
  std::vector<int> scales = {};
};

struct LiveSampler {
  std::unique_ptr<Sampler> sampler = {};
  SamplerOptions options = {};
  std::vector<LivePart> parts = {};
  /// How rows are shown that an item of this spec yields.
  PriorityTableSpec RuleOf(const PriorityTableSpec& spec) const {
    PriorityTableSpec rule = spec;
    if (!options.within) return rule;
    rule.item = ItemKind::kWindow;
    rule.window = options.within->window;
    return rule;
  }
  std::vector<uint64_t> columns = {};  ///< Of its views, and of n-step, by number.
  std::deque<PlainDraw> ahead = {};
  // Of a token budget: an item that did not fit waits for the next batch. The model does not know
  // which one; as what it may have been drawn, by item.
  bool carries = false;
  std::map<ItemKey, double> carried_chances = {};
};

/// A row of a batch: of an item as many as it has trajectories, or windows within them.
struct BatchRow {
  size_t part = 0;
  bool begins_item = true;
  ItemKey key = {};
  TrajectoryId id = 0;
  int64_t anchor = 0;
};
using BatchRows = std::vector<BatchRow>;

/// A row of a batch, and what the model had of it at the draw.
struct BatchItem {
  const PlainTable* plain = nullptr;
  PriorityTableSpec rule = {};
  const PlainTrajectory* trajectory = nullptr;
  const BatchRow* row = nullptr;
  size_t at = 0;
};

/// What a view shows, by item: entries one behind the other, and their masks.
struct ShownView {
  std::vector<Bytes> bytes = {}, valid = {}, learn = {}, is_first = {}, end = {};
  std::vector<std::vector<Value>> values = {};
  std::vector<int64_t> lengths = {};
};

/// Handles that were given out, of one part.
struct KeptBatch {
  LiveTable* table = nullptr;
  size_t priority = 0;
  bool within = false;  ///< Its lengths are not those of the items.
  std::vector<ItemHandle> handles = {};
  std::vector<ItemKey> keys = {};
  std::vector<int64_t> lengths = {};
};

/// Rows of the values, one behind the other, of which value i has [i, i + 1).
template <typename Offset>
std::vector<Offset> OffsetsOf(const Column& column, const std::vector<Value>& values) {
  const size_t row_bytes = static_cast<size_t>(column.shape.elements()) * DTypeBytes(column.dtype);
  std::vector<Offset> offsets(1);
  for (const Value& value : values) {
    offsets.push_back(offsets.back() + static_cast<Offset>(value->size() / row_bytes));
  }
  return offsets;
}

/// Values of columns for a call, and the bytes behind them.
class CallValues {
 public:
  void Add(const Column& column, const std::vector<Value>& rows, std::optional<int64_t> outer);
  ColumnValues values();

 private:
  std::vector<std::string> names_;
  std::vector<Bytes> bytes_;
  std::vector<std::vector<uint64_t>> offsets_;
  std::vector<std::pair<DType, Shape>> types_;
  std::vector<ColumnValue> values_;
};

/// A call on some lanes of a writer, as the model and as the database want it.
struct AppendCall {
  LiveTable* live = nullptr;
  size_t writer = 0;
  std::vector<PlainLaneRows> lanes = {};
  std::vector<End> ends = {};  ///< Of all lanes, where there is one row for each.
  bool one_row = false;        ///< Values without a leading dimension.
  GivenPriorities given = {};
  std::optional<Ack> ack = {};
  bool wrong_count = false;
  CallValues rows = {}, final = {}, trajectory = {};
  std::vector<InitialPriorities> priorities = {};
  std::vector<std::string> priority_names = {};
};

/// Changes of one table that go into a batch beside an append to another.
struct OtherChanges {
  LiveTable* live = nullptr;
  PlainPriority* priority = nullptr;
  std::vector<ItemKey> set = {}, deleted = {};
  std::vector<float> values = {};  ///< Of `set`.
  std::vector<TrajectoryId> removed = {};
  size_t set_at = 0, deleted_at = 0;  ///< In the batch.
  TrajectoryId set_columns = 0;       ///< Whose columns it sets to `columns`; 0: none's.
  Values columns = {};
  CallValues call = {};  ///< The same, for the batch, which points into it.
};

/// An append that goes into a batch: one operation for each lane of a writer.
struct BatchedAppend {
  AppendCall whole = {};  ///< All lanes as one call, for the model.
  std::deque<AppendCall> parts = {};
  std::vector<size_t> at = {};  ///< Of `parts`, in the batch.
  std::optional<StatusCode> expected = {};
};

/// Everything, as of an end of the log.
struct PlainStore {
  Lsn end = 0;
  std::vector<PlainTable> tables = {};
  std::vector<std::pair<std::string, std::vector<std::byte>>> tags = {};
};

/// A crash at one of the named points (base/crash_point.h) that steps pass: the file system as it
/// leaves it.
struct PointCrash {
  testing::FaultEnv* env = nullptr;
  std::atomic<int64_t> points_left = 0;
  testing::CrashKind kind = testing::CrashKind::kProcess;
  uint64_t seed = 0;
  std::unique_ptr<testing::FaultEnv> left = {};
};
/// It runs on a file system in memory, without the cold store.
bool NeedsFaults(const Program& program);

/// Nobody else is there to make room: a call that waits for others waits in vain. A disk may let
/// one wait for a sync.
inline constexpr int64_t kNobodyHelpsMs = 60'000;
/// New ids wait for a sync before anything else is asked; a call without time is refused for that.
bool WaitsForIds(const Status& status);

class Runner {
 public:
  explicit Runner(PlantedBug bug) : bug_(bug) {}
  ~Runner();
  RunResult Run(const Program& program);

 private:
  // run.cc
  void Do(const Step& step);
  void DoMore(const Step& step);
  void Open(bool read_only = false);
  void OpenDatabase(bool read_only);
  void OpenTables();
  void Close();
  void Reopen();
  void Look();
  void CountStats();
  void DropFrames();
  bool different() const { return result_.difference.has_value(); }
  void Differ(const std::string& what, const std::string& text);
  template <typename A, typename B>
  bool Same(const std::string& what, const A& found, const B& expected) {
    if (different() || found == expected) return !different();
    std::ostringstream out;
    out << "found " << Printed(found) << ", expected " << Printed(expected);
    Differ(what, out.str());
    return false;
  }
  template <typename T>
  static std::string Printed(const T& value);
  /// The status is of this code; counts how the step was answered.
  bool SameCode(const std::string& what, const Status& found, StatusCode expected);

  // run_crashes.cc
  void DoWithCrash(const Step& step);
  void Remember();
  void GoBackTo(const PlainStore& then);
  void OpenAfterCrash(Lsn least);
  void CompareWith(const PlainStore& then, const PlainStore& before);
  void DropHandles();
  void Crash();
  void GoOnWith(std::unique_ptr<testing::FaultEnv> left);
  void LosePower(const Step& step);
  void CrashOnFaults(testing::CrashKind kind, uint64_t seed);
  void CrashWithin(const Step& step);

  // run_tables.cc
  LiveTable* TableAt(uint64_t number);
  PlainTrajectory* TrajectoryAt(LiveTable* live, uint64_t number);
  /// A priority table of any table: {nullptr, 0} when there is none.
  std::pair<LiveTable*, size_t> PriorityAt(uint64_t number);
  void CreateTable(const Step& step);
  void DropTable(const Step& step);
  void OpenTable(const Step& step);
  void CreatePriorityTable(const Step& step);
  void Remove(const Step& step);
  void RemoveRange(const Step& step);
  void RemovePassing(const Step& step);
  void RemoveAll(LiveTable* live, const std::vector<TrajectoryId>& ids, RemovalReason reason);
  void Truncate(const Step& step);
  void SetColumns(const Step& step);
  void Patch(const Step& step);
  void AddColumns(const Step& step);
  void DropColumns(const Step& step);
  void CloseOrphans(const Step& step);
  void RemoveExpired(const Step& step);
  void PassTime(const Step& step);
  void WriteTag(const Step& step);
  void Wait(const Step& step);

  // run_appends.cc
  void AppendOne(const Step& step);
  void AppendLanes(const Step& step);
  void Cut(const Step& step);
  void Detach(const Step& step);
  void Leave(const Step& step);
  void Resume(const Step& step);
  bool EnsureWriter(LiveTable* live, size_t writer);
  AppendCall MakeCall(LiveTable* live, size_t writer, const std::vector<uint32_t>& lanes,
                      const std::vector<End>& ends, int64_t count, uint64_t seed, uint64_t extras);
  void BindCall(AppendCall* call, bool of_lanes);
  void GivePriorities(AppendCall* call, Choices* choices);
  StatusCode ExpectedOf(const AppendCall& call, Op op);
  Result<std::vector<Appended>> Make(AppendCall* call, Op op, StatusCode expected);
  size_t AddTo(WriteBatch* batch, AppendCall* call, Op op);
  bool AckedAsAsked(const AppendCall& call, Lsn end);
  void TakeOver(AppendCall* call, const std::vector<Appended>& appended);

  // run_write_batches.cc
  void WriteBatches(const Step& step);
  /// What is known of it, added to a batch.
  OtherChanges AddOthers(LiveTable* live, const Step& step, Choices* choices, WriteBatch* batch);
  void TakeOver(const OtherChanges& changes, const WriteOutcome& outcome);
  BatchedAppend AddAppend(LiveTable* live, size_t writer, uint64_t number, uint64_t extras,
                          WriteBatch* batch);
  void TakeOver(BatchedAppend* added, const WriteOutcome& outcome);
  void LetLanesGo(const BatchedAppend& added);

  // run_priorities.cc
  void SetRows(const Step& step);
  void SetHandles(const Step& step);
  void SetAll(const Step& step);
  void DeleteRows(const Step& step);
  void DeleteHandles(const Step& step);
  void PatchItems(const Step& step);
  void Configure(const Step& step);
  void SetFilter(const Step& step);
  void BeginEpoch(const Step& step);
  void SealGroup(const Step& step);
  void SealOverdue(const Step& step);
  KeptBatch* BatchAt(uint64_t number);
  void ComparePriority(LiveTable* live, size_t number);
  void CompareCounts(LiveTable* live, size_t number);

  // run_draws.cc
  void Sample(const Step& step);
  void SampleMixed(const Step& step);
  void Next(const Step& step);
  /// False: it was refused.
  bool NextBatch(LiveSampler* sampler);
  void StopSampling(const Step& step);
  void SetBeta(const Step& step);
  void StopAll(const LiveTable* of);
  std::vector<int64_t> Shares(const LiveSampler& sampler) const;
  /// OK where the model draws a batch, too.
  StatusCode Draw(LiveSampler* sampler);
  StatusCode RefusalOfPart(const LiveSampler& sampler, size_t part, int64_t items) const;
  const PlainTable& TableOf(const LiveSampler& sampler, const PlainDraw& drawn, size_t part) const;
  void Cancel(LiveSampler* sampler);
  void LeaveOutRest(LiveSampler* sampler);
  void HandOver(LiveSampler* sampler, const PlainDraw& drawn, const BatchRows& rows,
                const Batch& batch);
  void CountRegrouped(uint64_t members) {
    if (members > 0) result_.counts.shown["members of the next group"] += members;
  }
  bool ColumnsAreThere(const LiveSampler& sampler) const;

  // run_tokens.cc
  bool NextByTokens(LiveSampler* sampler);
  std::set<StatusCode> CodesByTokens(const LiveSampler& sampler) const;
  bool CompareTokens(const LiveSampler& sampler, const BatchRows& rows);

  // run_batches.cc
  /// What its rows are.
  BatchRows CompareBatch(const LiveSampler& sampler, const PlainDraw& drawn, const Batch& batch);
  BatchRows RowsOf(const LiveSampler& sampler, const PlainDraw& drawn, const Batch& batch);
  void CompareProbability(const LiveSampler& sampler, const PlainPriority& priority, double found,
                          double expected);
  void CompareItem(const LiveSampler& sampler, const PlainTable& plain,
                   const PlainPriority& priority, const BatchRow& row, const Batch& batch,
                   size_t at);
  void CompareWithin(const WindowsWithin& within, const std::vector<Anchor>& anchors,
                     const BatchRow& row, size_t window);
  void CompareGroups(const LiveSampler& sampler, const PlainDraw& drawn, const BatchRows& rows,
                     const Batch& batch);
  void CompareOrder(const PlainPriority& priority, const std::vector<ItemKey>& drawable,
                    const std::vector<ItemKey>& keys);
  void CompareWeights(const LiveSampler& sampler, const PlainDraw& drawn, const BatchRows& rows,
                      const Batch& batch);

  // run_views.cc
  void AddView(const PlainTable& plain, View view, LiveSampler* sampler);
  void MakeViews(const LivePart& part, Choices choices, LiveSampler* sampler);
  void MakeNStep(const LivePart& part, Choices choices, LiveSampler* sampler);
  void CompareOutputs(const LiveSampler& sampler, const PlainDraw& drawn, const BatchRows& rows,
                      const Batch& batch);
  void CompareView(const LiveSampler& sampler, const std::vector<BatchItem>& items,
                   const Batch& batch, const View& view);
  void CompareShape(const LiveSampler& sampler, const View& view, const BatchItem& first,
                    const Batch& batch, const ShownView& shown);
  void CompareNStep(const LiveSampler& sampler, const std::vector<BatchItem>& items,
                    const Batch& batch);
  void ShowItem(const LiveSampler& sampler, const View& view, const BatchItem& item,
                const Batch& batch, ShownView* shown);
  PlainTable::Shown DrawnRows(const LiveSampler& sampler, const BatchItem& item,
                              const Batch& batch);
  void CompareValues(const LiveSampler& sampler, const Batch& batch, const std::string& name,
                     const Column& column, const std::vector<std::vector<Value>>& items);
  /// An output's bytes, item by item; padded, so many elements follow to its end.
  void CompareOutput(const LiveSampler& sampler, const Batch& batch, const std::string& name,
                     const Bytes& padding, const std::vector<Bytes>& items);

  // run_reads.cc
  void CompareAll();
  void CompareTable(LiveTable* live);
  void CompareRecord(LiveTable* live, const TrajectoryRecord& record);
  void CompareSlice(LiveTable* live, const PlainTrajectory& trajectory);
  void CompareRows(LiveTable* live, const PlainTrajectory& trajectory);
  void CompareRemovals(LiveTable* live);
  void CompareTags();
  void Gather(const Step& step);
  void Scan(const Step& step);
  void Statistics(const Step& step);

  const PlantedBug bug_;
  RunResult result_;
  size_t step_ = 0;
  Op op_ = Op::compare;
  DatabaseOptions options_;
  HandClock clock_;
  std::unique_ptr<testing::TempDir> directory_ = std::make_unique<testing::TempDir>();
  // Where there are faults: the file system, those that have crashed, and what the log may end
  // with.
  std::unique_ptr<testing::FaultEnv> env_;
  std::deque<PlainStore> history_;
  std::unique_ptr<PointCrash> crash_;  ///< That is to come.
  bool meets_crash_ = false;           ///< This step.
  std::unique_ptr<Database> database_;
  std::vector<std::unique_ptr<LiveTable>> tables_;
  std::vector<LiveSampler> samplers_;
  std::deque<KeptBatch> batches_;
  std::vector<std::pair<std::string, std::vector<std::byte>>> tags_;  ///< Of each name the newest.
  uint64_t tables_made_ = 0;
  uint64_t columns_made_ = 0;
  Lsn last_end_ = 0;  ///< Of the last append.
};

template <typename T>
std::string Runner::Printed(const T& value) {
  std::ostringstream out;
  if constexpr (requires { value.begin()->first; }) {
    for (const auto& [key, item] : value) out << Printed(key) << ":" << Printed(item) << " ";
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    out << "'" << std::string(value) << "'";
  } else if constexpr (requires { value.begin(); }) {
    out << "[";
    for (const auto& item : value) out << Printed(item) << " ";
    out << "]";
  } else if constexpr (requires { value.first; }) {
    out << Printed(value.first) << ":" << Printed(value.second);
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<int>(value);
  } else if constexpr (requires { out << +value; }) {
    out.precision(17);
    out << +value;
  } else {
    out << "(a value)";
  }
  return out.str();
}

}  // namespace geardb::differential
