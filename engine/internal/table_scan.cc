#include "engine/internal/table_scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "engine/internal/aside_pages.h"
#include "engine/internal/episode.h"
#include "engine/internal/filter_bind.h"
#include "engine/internal/table_read.h"
#include "kernels/scan.h"

namespace geardb::engine {
namespace {

using index::FilterColumn;
using index::FilterProgram;
using index::FilterRun;

/// Takes values as they are scanned.
using TakeRun = std::function<void(const ScanRun&)>;

// ---- Per-trajectory columns and fields.

/// Gives `take` the values of a column in the slots that pass, a block at a time.
void ScanSlots(const FilterProgram& program, const FilterColumn& column, uint64_t slot_count,
               const TakeRun& take) {
  constexpr uint32_t kBlock = FilterProgram::kBlockSlots;
  FilterRun run(program);
  std::vector<uint64_t> stored(kBlock);
  std::vector<double> values(kBlock);
  for (uint64_t first = 0; first < slot_count; first += kBlock) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(slot_count - first, kBlock));
    const std::span<const uint8_t> mask = run.Block(first, count);
    if (FilterRun::CountSet(mask) == 0) continue;
    auto* bytes = reinterpret_cast<std::byte*>(stored.data());
    index::CollectValues(column, {.first = first, .count = count}, bytes);
    ConvertToDouble({.dtype = column.dtype,
                     .values = bytes,
                     .stride = DTypeBytes(column.dtype),
                     .count = count},
                    values.data());
    // What passes moves to the front, without a branch on what cannot be guessed.
    uint64_t kept = 0;
    for (uint32_t i = 0; i < count; ++i) {
      values[kept] = values[i];
      kept += mask[i];
    }
    take({.dtype = DType::kF64, .values = values.data(), .stride = sizeof(double), .count = kept});
  }
}

// ---- Per-step columns.

/// What a scan looks at under one guard, at most: pages in memory, which are read at its speed, and
/// pages that have to be read first. As long as it is there no frame and no segment that was given
/// up meanwhile comes free, so a scan of a table larger than memory takes many of them.
constexpr uint64_t kGuardedBytes = uint64_t{1} << 30;
constexpr size_t kGuardedReads = 1024;

/// Rows of one page.
struct PageRows {
  FrameRef frame = {};  // Or aside, where it has none.
  uint32_t first = 0;   // In the page.
  uint32_t count = 0;
};

/// The pages of some steps that pass, which stay where they are as long as the guard.
struct PagesOfSteps {
  std::vector<PageRows> rows;
  uint64_t frame_bytes = 0;  // Of the pages that have frames.
  PageWaits waits;
  EpochRegistry::Guard guard;

  bool full() const {
    return frame_bytes >= kGuardedBytes || waits.aside().size() >= kGuardedReads;
  }
};

/// A per-step column, or an element of one.
struct StepSource {
  DType dtype = DType::kF32;
  uint32_t group = 0;
  uint64_t offset = 0;  // Of the first row of a frame of it.
  uint64_t stride = 0;
};

Result<StepSource> BindStepColumn(const FilterOperand& operand, const TableLayout& layout,
                                  size_t number) {
  const StepColumn& column = layout.step_columns()[number];
  GEARDB_ASSIGN_OR_RETURN(const size_t element, ElementOf(operand, layout, column.shape));
  return StepSource{.dtype = column.dtype,
                    .group = column.group,
                    .offset = layout.RowOffset(number, 0) + element * DTypeBytes(column.dtype),
                    .stride = column.row_bytes};
}

/// The steps that passed a filter when the scan began, as many at a time as one guard is for.
class StepScan {
 public:
  /// Of the trajectories that pass; of the pages of the column's group.
  StepScan(DatabaseCore* database, const TableCore& table, const Filter& filter, size_t number)
      : database_(database), table_(table), filter_(filter), number_(number) {}

  /// The next ones, with rows as they are by now: of trajectories that have left, none. Without
  /// rows and done() at the end.
  Result<PagesOfSteps> Next();
  bool done() const { return begun_ && next_ == left_.size(); }

 private:
  /// The rows of a trajectory when the scan began.
  struct Steps {
    Slot slot = kNoSlot;
    uint32_t generation = 0;
    int64_t end = 0;
  };

  Status Begin(const TableState& state) GEARDB_REQUIRES(state.mutex);
  /// Adds steps of trajectory next_, all its rows but final ones, until there are enough. Returns
  /// whether these are all.
  bool AddSteps(const TableState& state, PagesOfSteps* found) GEARDB_REQUIRES(state.mutex);
  /// One past the last row from `row` on that is in the same page, and no final row, below `end`.
  int64_t EndOfRun(RowCursor* cursor, int64_t row, int64_t end) const;

  DatabaseCore* const database_;
  const TableCore& table_;
  const Filter& filter_;
  const size_t number_;
  bool begun_ = false;
  std::vector<Steps> left_;
  size_t next_ = 0;       // Of these.
  int64_t next_row_ = 0;  // Of that one.
};

Status StepScan::Begin(const TableState& state) {
  begun_ = true;
  GEARDB_ASSIGN_OR_RETURN(const std::vector<Slot> slots, MatchingSlots(state, filter_));
  left_.reserve(slots.size());
  for (const Slot slot : slots) {
    const index::TrajectoryRecord& record = state.trajectories().record(slot);
    left_.push_back({slot, record.generation, state.StepsEnd(record)});
  }
  return Status::Ok();
}

int64_t StepScan::EndOfRun(RowCursor* cursor, int64_t row, int64_t end) const {
  const TableLayout& layout = cursor->state().layout();
  const int64_t page_end = (row / layout.steps_per_page() + 1) * int64_t{layout.steps_per_page()};
  end = std::min(page_end, end);
  if (!layout.flags_column()) return end;
  // In a stream final rows lie between the episodes.
  while (row < end && !IsFinalRow(cursor, row)) ++row;
  return row;
}

bool StepScan::AddSteps(const TableState& state, PagesOfSteps* found) {
  const Steps& steps = left_[next_];
  const index::TrajectoryRecord& record = state.trajectories().record(steps.slot);
  if (record.state == index::TrajectoryState::kFree || record.generation != steps.generation) {
    return true;
  }
  const TableLayout& layout = state.layout();
  const uint32_t group = layout.step_columns()[number_].group;
  const int64_t steps_end = std::min(steps.end, state.StepsEnd(record));
  RowCursor cursor(state, record);
  Lpn last = kNoLpn;
  FrameRef frame;  // Of that page.
  for (int64_t row = std::max(next_row_, static_cast<int64_t>(record.first_row));
       row < steps_end;) {
    const Lpn lpn = cursor.PageOf(row);
    if (lpn != last) {
      if (found->full()) {
        next_row_ = row;
        return false;
      }
      last = lpn;
      frame = state.FrameOf(group, lpn);
      if (frame.valid()) {
        found->frame_bytes += layout.group(group).pages.frame_bytes();
      } else {
        frame = state.frames().PutAside(group, lpn, &found->waits);
      }
    }
    const int64_t end = EndOfRun(&cursor, row, steps_end);
    if (end > row) {
      found->rows.push_back({.frame = frame,
                             .first = layout.OffsetInPage(row),
                             .count = static_cast<uint32_t>(end - row)});
    }
    row = std::max(end, row + 1);
  }
  return true;
}

Result<PagesOfSteps> StepScan::Next() {
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(table_));
  PagesOfSteps found;
  const TableState& state = *table_.state;
  MutexLock lock(&state.mutex);
  const StepColumn& column = state.layout().step_columns()[number_];
  if (column.dropped) return state.layout().NoSuchColumn(column.name);
  if (!begun_) GEARDB_RETURN_IF_ERROR(Begin(state));
  while (next_ < left_.size() && AddSteps(state, &found)) {
    ++next_;
    next_row_ = 0;
  }
  found.guard = database_->epochs.Enter();
  return found;
}

Status ScanSteps(const TableCore& table, const StepSource& source, StepScan scan,
                 const TakeRun& take) {
  while (!scan.done()) {
    GEARDB_ASSIGN_OR_RETURN(const PagesOfSteps steps, scan.Next());
    // They are read a few at a time, each for this scan alone: a scan leaves in memory what draws
    // have brought there.
    AsideReader missing(AllOf(steps.waits.aside()));
    for (const PageRows& page : steps.rows) {
      GEARDB_ASSIGN_OR_RETURN(const std::byte* frame,
                              missing.BytesOf(page.frame, table.state->arena()));
      take({.dtype = source.dtype,
            .values = frame + source.offset + page.first * source.stride,
            .stride = source.stride,
            .count = page.count});
    }
  }
  return Status::Ok();
}

// ---- Values of any length.

struct ValuesOf {
  const FilterOperand& operand;
  const CompanionColumn& column;
  size_t number = 0;  ///< Of a ragged one among the step columns, else among the trajectories'.
};

/// One trajectory after the other, in the order of their slots: each is whole in memory.
Status ScanValues(DatabaseCore* database, const TableCore& table, const ColumnQuery& query,
                  const ValuesOf& of, const TakeRun& take) {
  GEARDB_ASSIGN_OR_RETURN(const size_t element,
                          ElementOf(of.operand, table.layout(), of.column.shape));
  std::vector<TrajectoryId> ids;
  {
    MutexLock lock(&table.state->mutex);
    GEARDB_ASSIGN_OR_RETURN(const std::vector<Slot> slots,
                            MatchingSlots(*table.state, query.filter));
    for (const Slot slot : slots) ids.push_back(table.state->trajectories().record(slot).id);
  }
  const std::string_view name = of.column.name;
  for (const TrajectoryId id : ids) {
    ColumnRows values;
    if (of.column.ragged()) {
      GEARDB_ASSIGN_OR_RETURN(values, ReadStepValues(database, table, id, of.number));
    } else {
      auto read = ReadRows(database, table, id, {&name, 1}, {});
      // What was read by then may be of a column that has its name now.
      const TableLayout& now = table.layout();
      if (now.trajectory_columns()[of.number].dropped) return now.NoSuchColumn(name);
      // Of trajectories that have left, nothing counts.
      if (read.status().code() == StatusCode::kNotFound) continue;
      GEARDB_RETURN_IF_ERROR(read.status());
      values = std::move(read->front());
    }
    const uint64_t rows = values.view().byte_count() / of.column.row_bytes;
    if (rows == 0) continue;
    take({.dtype = of.column.dtype,
          .values = values.bytes.data() + element * DTypeBytes(of.column.dtype),
          .stride = of.column.row_bytes,
          .count = rows});
  }
  return Status::Ok();
}

// ---- Either.

Status ScanColumn(DatabaseCore* database, const TableCore& table, const ColumnQuery& query,
                  const TakeRun& take) {
  GEARDB_RETURN_IF_ERROR(database->CheckTable(table));
  const TableLayout& layout = table.layout();
  const Result<FilterOperand> operand = ParseOperand(query.column);
  if (!operand.ok()) return operand.status().WithContext("a column to scan");
  if (operand->field == FilterField::kState || operand->field == FilterField::kEnd) {
    return Status::InvalidArgument("table '", layout.spec().name, "': ", query.column,
                                   " has words, no numbers; count them with a filter");
  }
  if (const auto number = layout.FindStepColumn(operand->column)) {
    if (const auto companion = layout.step_columns()[*number].companion) {
      return ScanValues(database, table, query,
                        {*operand, layout.companions()[*companion], *number}, take);
    }
    GEARDB_ASSIGN_OR_RETURN(const StepSource source, BindStepColumn(*operand, layout, *number));
    return ScanSteps(table, source, StepScan(database, table, query.filter, *number), take);
  }
  if (const auto number = layout.FindTrajectoryColumn(operand->column)) {
    if (const auto companion = layout.trajectory_columns()[*number].companion) {
      return ScanValues(database, table, query,
                        {*operand, layout.companions()[*companion], *number}, take);
    }
  }
  MutexLock lock(&table.state->mutex);
  const index::TrajectoryIndex& trajectories = table.state->trajectories();
  GEARDB_ASSIGN_OR_RETURN(const FilterColumn source, BindOperand(*operand, layout, trajectories));
  GEARDB_ASSIGN_OR_RETURN(const FilterProgram program,
                          BindFilter(query.filter, layout, trajectories));
  ScanSlots(program, source, trajectories.reserved(), take);
  return Status::Ok();
}

/// The edges that were asked for; InvalidArgument says what is wrong with them.
Result<std::vector<double>> EdgesOf(const HistogramBins& bins) {
  std::vector<double> edges = bins.edges;
  const uint64_t count = edges.empty() ? bins.count : edges.size() - 1;
  if (count < 1 || count > kHistogramBinsMax) {
    return Status::InvalidArgument("a histogram of ", count, " bins; expected 1 to ",
                                   kHistogramBinsMax);
  }
  if (!bins.edges.empty() && bins.count != 0) {
    return Status::InvalidArgument("a histogram has both edges and a count of bins");
  }
  if (edges.empty()) {
    const double width = bins.high - bins.low;
    for (uint64_t i = 0; i < count; ++i) {
      edges.push_back(bins.low + width * (static_cast<double>(i) / static_cast<double>(count)));
    }
    edges.push_back(bins.high);
    if (!std::isfinite(width)) {
      return Status::InvalidArgument("a histogram from ", bins.low, " to ", bins.high,
                                     ", which is no finite range");
    }
  }
  for (size_t i = 0; i < edges.size(); ++i) {
    if (std::isfinite(edges[i]) && (i == 0 || edges[i - 1] < edges[i])) continue;
    return Status::InvalidArgument("edge ", i, " of a histogram is ", edges[i],
                                   i == 0 ? "" : ", which does not rise", "; edges are finite");
  }
  return edges;
}

}  // namespace

Result<std::vector<Slot>> MatchingSlots(const TableState& state, const Filter& filter) {
  const index::TrajectoryIndex& trajectories = state.trajectories();
  GEARDB_ASSIGN_OR_RETURN(const FilterProgram program,
                          BindFilter(filter, state.layout(), trajectories));
  std::vector<Slot> slots;
  FilterRun(program).ForEach(trajectories.reserved(), [&](Slot slot) { slots.push_back(slot); });
  return slots;
}

namespace {

bool HasSmallerId(const TrajectoryRecord& a, const TrajectoryRecord& b) { return a.id < b.id; }

}  // namespace

void FirstRecords::Look(const TableState& state, const index::TrajectoryRecord& record,
                        const ScanOptions& options) {
  if (record.id < options.from_id || record.id >= options.end_id || !Wants(record.id)) return;
  const TrajectoryRecord described = DescribeTrajectory(state, record);
  if (!options.state || described.state == *options.state) Add(described);
}

void FirstRecords::LookAtAll(const TableState& state, const ScanOptions& options) {
  const index::TrajectoryIndex& trajectories = state.trajectories();
  for (uint64_t slot = 0; slot < trajectories.reserved(); ++slot) {
    const index::TrajectoryRecord& record = trajectories.record(static_cast<Slot>(slot));
    if (record.state != index::TrajectoryState::kFree) Look(state, record, options);
  }
}

void FirstRecords::Add(const TrajectoryRecord& record) {
  if (!Wants(record.id)) return;
  const bool full = records_.size() == limit_;
  if (full) {
    std::ranges::pop_heap(records_, HasSmallerId);
    records_.pop_back();
  }
  records_.push_back(record);
  if (full) {
    std::ranges::push_heap(records_, HasSmallerId);
  } else if (records_.size() == limit_) {
    std::ranges::make_heap(records_, HasSmallerId);
  }
}

std::vector<TrajectoryRecord> FirstRecords::Finish() && {
  std::ranges::sort(records_, HasSmallerId);
  return std::move(records_);
}

Result<std::vector<TrajectoryRecord>> ScanRecords(DatabaseCore* database, const TableCore& table,
                                                  const Filter& filter,
                                                  const ScanOptions& options) {
  GEARDB_RETURN_IF_ERROR(database->CheckTable(table));
  FirstRecords records(options.limit);
  {
    MutexLock lock(&table.state->mutex);
    const TableState& state = *table.state;
    GEARDB_ASSIGN_OR_RETURN(const std::vector<Slot> slots, MatchingSlots(*table.state, filter));
    for (const Slot slot : slots) {
      records.Look(state, state.trajectories().record(slot), options);
    }
  }
  return std::move(records).Finish();
}

Result<uint64_t> CountMatching(DatabaseCore* database, const TableCore& table,
                               const Filter& filter) {
  GEARDB_RETURN_IF_ERROR(database->CheckTable(table));
  MutexLock lock(&table.state->mutex);
  const index::TrajectoryIndex& trajectories = table.state->trajectories();
  GEARDB_ASSIGN_OR_RETURN(const FilterProgram program,
                          BindFilter(filter, table.layout(), trajectories));
  return FilterRun(program).Count(trajectories.reserved());
}

Result<ColumnStatistics> ColumnStatisticsOf(DatabaseCore* database, const TableCore& table,
                                            const ColumnQuery& query) {
  ScanSums sums;
  GEARDB_RETURN_IF_ERROR(
      ScanColumn(database, table, query, [&](const ScanRun& run) { sums.Add(run); }));
  const ScanSums::Totals totals = sums.Finish();
  const double none = std::numeric_limits<double>::quiet_NaN();
  ColumnStatistics result{.count = totals.count,
                          .nans = totals.nans,
                          .mean = none,
                          .std = none,
                          .min = none,
                          .max = none};
  if (totals.count == 0) return result;
  result.mean = totals.mean;
  result.std = std::sqrt(totals.squares / static_cast<double>(totals.count));
  result.min = totals.min;
  result.max = totals.max;
  return result;
}

Result<ColumnHistogram> ColumnHistogramOf(DatabaseCore* database, const TableCore& table,
                                          const ColumnQuery& query, const HistogramBins& bins) {
  ColumnHistogram result;
  GEARDB_ASSIGN_OR_RETURN(result.edges, EdgesOf(bins));
  ScanHistogram histogram(result.edges, bins.edges.empty());
  GEARDB_RETURN_IF_ERROR(
      ScanColumn(database, table, query, [&](const ScanRun& run) { histogram.Add(run); }));
  result.counts.assign(histogram.counts().begin(), histogram.counts().end());
  result.below = histogram.below();
  result.above = histogram.above();
  result.nans = histogram.nans();
  return result;
}

}  // namespace geardb::engine
