// Table: trajectories of one schema. Writers append to it, priority tables draw from it, and it can
// be read without drawing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/column_scan.h"
#include "engine/filter.h"
#include "engine/patch.h"
#include "engine/priority_table.h"
#include "engine/removals.h"
#include "engine/schema.h"
#include "engine/stats.h"
#include "engine/tensor.h"
#include "engine/writer.h"

namespace geardb {

/// A row of a trajectory. `row` is absolute; negative rows count from the end, as in NumPy.
struct RowId {
  TrajectoryId id = 0;
  int64_t row = 0;

  friend bool operator==(const RowId&, const RowId&) = default;
};

/// Rows [begin, end) with a step, as Python's slices: a negative bound counts from the end, bounds
/// beyond the trajectory are clamped, `step` may be negative but not 0. An absent bound is the
/// edge in the direction of the step.
struct RowRange {
  std::optional<int64_t> begin = {};
  std::optional<int64_t> end = {};
  int64_t step = 1;
};

/// Open, closed, or orphaned (open when its writer died; drawable, resumable).
enum class TrajectoryState : uint8_t { kOpen = 1, kClosed = 2, kOrphaned = 3 };

/// What is known of a trajectory.
struct TrajectoryRecord {
  TrajectoryId id = 0;
  TrajectoryState state = TrajectoryState::kOpen;
  End end = End::kGo;          ///< Of a closed trajectory.
  int64_t first_row = 0;       ///< Oldest row still there.
  int64_t rows_end = 0;        ///< One past the last stored row, final row included.
  int64_t steps_end = 0;       ///< One past the last step: rows_end, less a final row.
  int64_t created_us = 0;      ///< Since 1970-01-01 UTC.
  uint64_t times_sampled = 0;  ///< Rows of batches handed over that came from it.
};

/// Owned rows of one column: shape [rows, ...].
struct ColumnRows {
  std::string column = {};
  std::vector<std::byte> bytes = {};
  TensorView view() const { return TensorView(bytes.data(), dtype, shape); }
  DType dtype = DType::kF32;
  Shape shape = {};
  /// Of a ragged column, of shape [total, ...]: row i has [offsets[i], offsets[i + 1]) of these.
  std::vector<int64_t> offsets = {};
};

/// One column of a Gather, with its own rows.
struct GatherColumn {
  std::string_view column = {};
  /// Rows in any order, repeated or not. The output has shape [rows.size(), ...].
  std::span<const RowId> rows = {};
};

/// Trajectories with ids in [begin, end).
struct IdRange {
  IdRange(TrajectoryId begin_in, TrajectoryId end_in) : begin(begin_in), end(end_in) {}
  TrajectoryId begin;
  TrajectoryId end;
};

/// What Scan visits.
struct ScanOptions {
  TrajectoryId from_id = 0;                   ///< Trajectories with at least this id…
  TrajectoryId end_id = UINT64_MAX;           ///< …and below this one.
  std::optional<TrajectoryState> state = {};  ///< Only of this state.
  uint64_t limit = UINT64_MAX;                ///< At most so many.
};

/// An open table. Thread-safe.
class Table {
 public:
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  /// What the table is now: as it was created, with the `steps_per_page` that was chosen and all
  /// priority tables that there are, in order of creation. CreateTable of it under another name
  /// makes an equal, empty table (CreateTable takes at most kPriorityTablesMax priority tables). A
  /// copy, made by each call: keep it where you refer to parts of it.
  TableSpec spec() const;
  TableId id() const;
  /// S, the rows of a page.
  uint32_t steps_per_page() const;

  // Writing.

  /// A writer with `options.lanes` lanes, each of which has at most one open trajectory at a time.
  Result<std::unique_ptr<Writer>> NewWriter(const WriterOptions& options);
  /// Removes whole trajectories, open ones too (their writer's next append fails with NotFound, but
  /// for AppendTrajectory, which begins another). All or, with an unknown id, none. Logged; returns
  /// when published. InvalidArgument, naming the number, for more ids than fit one record: a
  /// quarter of the ring, 16 bytes each.
  Status Remove(std::span<const TrajectoryId> ids);
  /// Removes the trajectories that pass, open ones too, and returns how many. Which ones is decided
  /// once, and no other change comes between that and the last of them. As many as fit one record
  /// (see above) leave in one; more leave in several, of which a crash or an error of the log may
  /// keep the first alone: the same call again removes the rest.
  Result<uint64_t> Remove(const Filter& filter);
  /// Likewise those with ids in a range, however many of them there are.
  Result<uint64_t> Remove(const IdRange& ids);
  /// Drops the rows before `first_row` of a trajectory: whole pages leave memory, anchors whose
  /// extent then starts before `first_row` leave the priority tables. Never more than its steps.
  /// Late groups count as filled up to there (Filled), whoever filled them.
  Status Truncate(TrajectoryId id, int64_t first_row);
  /// Sets per-trajectory columns of a trajectory.
  Status SetColumns(TrajectoryId id, ColumnValues values);
  /// Gives stored rows new values: fills late groups, and rewrites columns of any group, other
  /// columns unchanged. Values of per-step columns, all of shape [Σ rows, ...] or all of shape
  /// [spans.size(), L, ...], of which span i takes its first spans[i].rows rows. Of a row that is
  /// named twice the last value wins. All of a call or nothing; readers see each trajectory's row
  /// before the call or after it. Rows that are gone, and trajectories, are counted as stale.
  /// InvalidArgument, before anything changes: a wrong column or shape, rows beyond a trajectory's
  /// end, rows that would leave a gap in a late group (Filled). ResourceExhausted: the copies of
  /// its pages do not fit the frames that are free. Logged as whole pages of the groups it names,
  /// so columns that are often rewritten are best in a group of their own; volatile groups are not
  /// logged. Values of a ragged column come with offsets, one value for each row, packed; each has
  /// any number of rows, whatever the one before it had. FailedPrecondition: a ragged column that
  /// writers append, of a trajectory that is not closed. A call that names all values of a
  /// trajectory's column gives the memory of those of before back; after others up to four times
  /// what is there is kept, and two pages, and now and then a call writes all of them again.
  Result<PatchOutcome> Patch(std::span<const RowSpan> spans, ColumnValues values,
                             const PatchOptions& options = {});
  /// The row up to which a late group of a trajectory is filled, its rows from there on holding
  /// defaults: at least its first row that is still there. NotFound for an unknown trajectory or
  /// group, InvalidArgument for one that is not late.
  Result<int64_t> Filled(TrajectoryId id, std::string_view group) const;

  // Columns that come and leave, while the table is used. Each call is one record: logged, and
  // synced when it returns. What is under way goes on with the columns that it found.

  /// Adds columns, all or none; rows and trajectories that are there read `default_value` (of a
  /// ragged column or a blob the empty value, no rows), and nothing is rewritten. Per-step columns
  /// come in column groups of their own: each names one of `groups`, which come with it, or none,
  /// and then has one by itself, of its own name. A writer appends the columns that there were when
  /// it was made: rows of one that was made before read the defaults, and it can Resume no
  /// trajectory any more. InvalidArgument: names that are taken, or a page that would be too large,
  /// as in CreateTable; also, where all pages stay in memory, a bound in bytes or steps that needs
  /// more frames then. (bytes_max counts the pages of new groups from here on, also those that show
  /// defaults.) ResourceExhausted: no index memory, or no frame for defaults within ten seconds, in
  /// which pages of others leave memory and readers let go of them.
  Status AddColumns(std::span<const Column> columns, std::span<const ColumnGroup> groups = {});
  /// Drops columns, all or none: no call finds them any more, and their names are free for others.
  /// Writers and samplers that were made before: a writer takes values for them as ever, to no end;
  /// a sampler that shows one says NotFound when it draws next, and so from then on. The memory and
  /// the log's bytes of a column group are given back with its last column; until then pages keep
  /// their size. The values of ragged columns, blobs and wide columns leave the frames at once, the
  /// log and the cold store as those of a dropped table do, and what is known of them leaves index
  /// memory at the next open. NotFound, naming what there is; InvalidArgument where no per-step
  /// column would be left in the first group; FailedPrecondition where a priority table requires a
  /// column, or a group of which it is the last, takes priorities from it, or names it in its
  /// filter.
  Status DropColumns(std::span<const std::string_view> names);

  // Time (TableSpec::ttl_ms, TableSpec::orphan_timeout_ms), by hand.

  /// Closes as cut the orphans that nobody has resumed for so long, since their writer left them or
  /// the database was opened; 0: all orphans. Returns how many; those of one row in a table with
  /// `final_row` are removed by it, and counted.
  Result<uint64_t> CloseOrphans(int64_t older_than_ms = 0);
  /// Removes the closed trajectories that are older than `ttl_ms`; none where that is 0. Returns
  /// how many.
  Result<uint64_t> RemoveExpired();

  // Drawing.

  /// Names of the priority tables, in order of creation.
  std::vector<std::string> PriorityTables() const;
  /// NotFound names the priority tables that there are.
  Result<std::shared_ptr<PriorityTable>> OpenPriorityTable(std::string_view name);
  /// As OpenPriorityTable; null where there is none of that name. Of a closed database (an exit may
  /// have closed it) the handle is there, and its calls say so. Each call makes a handle of its
  /// own: keep the shared_ptr.
  std::shared_ptr<PriorityTable> priority_table(std::string_view name);
  /// Adds a priority table; what is stored becomes drawable by it with its initial priorities.
  Result<std::shared_ptr<PriorityTable>> CreatePriorityTable(const PriorityTableSpec& spec);

  // Reading without drawing: no counts, no limiter, no log. What an append acknowledged in memory
  // has admitted and not yet published is not found by these calls (Set, SetColumns, Remove and
  // Truncate wait for it); Database::Wait(ticket, Ack::kLog) waits until it is.

  /// Number of trajectories; of steps (final rows not counted).
  uint64_t Count() const;
  uint64_t StepCount() const;
  /// NotFound when there is no such trajectory.
  Result<TrajectoryRecord> Find(TrajectoryId id) const;
  /// Records in order of id.
  std::vector<TrajectoryRecord> Scan(const ScanOptions& options) const;

  // By a filter (filter.h), of which these say NotFound or InvalidArgument when it names what the
  // table does not have. Each sees one moment of the table.

  /// Whether the filter is one for this table.
  Status Check(const Filter& filter) const;
  Result<uint64_t> Count(const Filter& filter) const;
  Result<std::vector<TrajectoryRecord>> Scan(const Filter& filter,
                                             const ScanOptions& options = {}) const;
  /// Of a column, as a filter names it: a per-trajectory column, an element of one (`score[2]`) or
  /// a field, of the trajectories that pass; or of a per-step column, or an element of one, in all
  /// their steps (final rows are none). Trajectories come in the order of their slots, which
  /// follows from the log. Of a ragged column or a blob each row of each value counts; these, and
  /// wide per-trajectory columns, are read one trajectory after the other, each as it is by then,
  /// and through the frames. Steps of others are those that were there when the scan began; of what
  /// is not in memory a thousand pages are read at a time (of what is, a GiB), each as it is by
  /// then, so steps that leave meanwhile may not count. Until these are read, no frame that is
  /// given up elsewhere comes free.
  Result<ColumnStatistics> Statistics(std::string_view column,
                                      const Filter& filter = Filter::All()) const;
  /// Likewise. InvalidArgument for bins that are none.
  Result<ColumnHistogram> Histogram(std::string_view column, const HistogramBins& bins,
                                    const Filter& filter = Filter::All()) const;

  /// Rows of some columns of a trajectory (all per-step columns when `columns` is empty), copied.
  /// A per-trajectory column yields its one value, shape [...], a blob [rows, ...]. NotFound,
  /// OutOfRange. Corruption names the trajectory and what is damaged, or away, of what is read;
  /// nothing is removed.
  Result<std::vector<ColumnRows>> Read(TrajectoryId id, std::span<const std::string_view> columns,
                                       const RowRange& range) const;
  /// Any rows of any trajectories: output i of a per-step column equals `column[id][row]` by
  /// NumPy's rules; of a ragged column value i is `column[id][row]`. InvalidArgument names the
  /// first row that is not there; nothing is returned then. Corruption as of Read.
  Result<std::vector<ColumnRows>> Gather(std::span<const GatherColumn> columns) const;

  /// The trajectories that have left from number `from` on, in the order of the log, whatever the
  /// reason. Numbers count all that ever left the table, also before a reopen; the last 65,536 of
  /// them are remembered, and after a reopen those that the log still says since the last image of
  /// the index: `missed` counts the others. With a timeout, waits until there is one.
  /// InvalidArgument where `from` lies beyond the end, 0 being always good, or `removals_max` is 0.
  Result<Removals> ReadRemovals(uint64_t from, const RemovalsOptions& options = {}) const;

  TableStats Stats() const;
  /// Where the table's pages are, by column group, 0 first, then those with the values of each
  /// ragged column, blob and wide per-trajectory column. Looks at every page, some thousands at
  /// a time: what changes meanwhile may be counted as before or after it.
  std::vector<GroupPlaces> Places() const;

  class Impl;  ///< Defined in engine/internal.

 private:
  friend class Database;
  friend class WriteBatch;
  explicit Table(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace geardb
