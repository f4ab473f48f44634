// Writer: appends rows to open trajectories, one per lane.
//
// A lane is one environment (or one actor). Its first row opens a trajectory; an end other than
// `go` closes it, and the next row opens another (in a stream the same trajectory goes on).
// Every call is atomic: after a crash it is there wholly or not at all. A call that is refused has
// changed nothing; one of which nothing is left (skips, cuts of a first row) is checked like any.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/tensor.h"

namespace geardb {

struct Ticket;

struct WriterOptions {
  /// Trajectories that may be open at once: the number of environments of a vectorised simulator.
  uint32_t lanes = 1;
  /// Acknowledgement of this writer's calls that do not name their own; absent: the database's. Cut
  /// and Resume wait for kLog at least.
  std::optional<Ack> ack = {};
  /// How long a call may wait for admission: for room in the log's ring, for frames that are given
  /// back once a record is published or a reader has left, for room in a table from which nothing
  /// leaves by itself, and for the limiters of its priority tables (RateLimit). A call that waited
  /// for a limiter in vain is refused with DeadlineExceeded, "never admitted", and takes no effect
  /// later; one that brings more items than a limiter ever admits, with InvalidArgument. A full
  /// disk, or a log in which nothing makes room, is an error at once.
  int64_t admission_timeout_ms = 10'000;
};

/// Raw priorities, for one priority table, of the items that a call makes drawable, in order of
/// lane and row: one for each, or a single one for all. A number that does not fit is refused,
/// naming the number expected.
struct InitialPriorities {
  std::string_view priority_table = {};
  std::span<const float> values = {};
};

/// What may come with the rows of a call on one lane.
struct AppendOptions {
  uint32_t lane = 0;
  /// Of the last row.
  End end = End::kGo;
  /// The columns with `in_final_row`, one row without a leading dimension: required with
  /// terminated and truncated when the table has `final_row`, refused otherwise.
  ColumnValues final = {};
  /// Per-trajectory columns to set now (at any call of the trajectory; absent ones hold their
  /// default).
  ColumnValues trajectory = {};
  std::span<const InitialPriorities> priorities = {};
  std::optional<Ack> ack = {};
};

/// What may come with a row for each lane.
struct AppendLanesOptions {
  /// One per lane; empty: all go on. Rows of lanes that `skip` are ignored.
  std::span<const End> ends = {};
  /// The columns with `in_final_row`, shape [lanes, ...]; only the rows of lanes that terminate or
  /// truncate are read, so a simulator may pass what it returns every time. Required when there
  /// is one and the table has `final_row`.
  ColumnValues final = {};
  /// Per-trajectory columns, shape [lanes, ...], set for every lane that does not skip.
  ColumnValues trajectory = {};
  std::span<const InitialPriorities> priorities = {};
  std::optional<Ack> ack = {};
};

/// Where the rows went.
struct Appended {
  TrajectoryId id = 0;    ///< 0 for a lane that skipped, or whose cut left nothing.
  int64_t first_row = 0;  ///< Absolute row of the first row appended.
  int64_t rows = 0;       ///< Rows appended (a final row not counted).
  Lsn end_lsn = 0;        ///< Ticket{end_lsn} waits for a higher acknowledgement.
};

/// Appends to one table. Used by one thread at a time; a table takes many writers in parallel.
/// Destroying it leaves its open trajectories as orphans: drawable, and closed as cut or resumed
/// later. Their age, by which a full table lets go, is that of this moment, in the order of ids.
class Writer {
 public:
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Appends one row: every per-step column exactly once, with exactly its dtype and shape.
  /// InvalidArgument names the column otherwise; NotFound one that the table does not have.
  Result<Appended> Append(ColumnValues row, const AppendOptions& options = {});
  /// Appends many rows: values of shape [n, ...], the same n ≥ 1 for all columns.
  Result<Appended> AppendSteps(ColumnValues rows, const AppendOptions& options = {});
  /// Appends a whole trajectory and closes it: `options.end` must not be go (in a stream: an
  /// episode). The lane must have no open trajectory (in a stream: no open episode). One that was
  /// removed is none: unlike the other calls, which fail once with NotFound, this one says nothing
  /// of it and begins another.
  Result<Appended> AppendTrajectory(ColumnValues rows, const AppendOptions& options);
  /// Appends a row for each lane: values of shape [lanes, ...]. One atomic record.
  Result<std::vector<Appended>> AppendLanes(ColumnValues rows, const AppendLanesOptions& options);

  Result<Appended> Append(std::initializer_list<ColumnValue> row,
                          const AppendOptions& options = {}) {
    return Append(ColumnValues(row.begin(), row.size()), options);
  }
  Result<Appended> AppendSteps(std::initializer_list<ColumnValue> rows,
                               const AppendOptions& options = {}) {
    return AppendSteps(ColumnValues(rows.begin(), rows.size()), options);
  }
  Result<Appended> AppendTrajectory(std::initializer_list<ColumnValue> rows,
                                    const AppendOptions& options) {
    return AppendTrajectory(ColumnValues(rows.begin(), rows.size()), options);
  }
  Result<std::vector<Appended>> AppendLanes(std::initializer_list<ColumnValue> rows,
                                            const AppendLanesOptions& options) {
    return AppendLanes(ColumnValues(rows.begin(), rows.size()), options);
  }

  /// Ends a lane's open trajectory as cut: its last observation is not known. With `final_row` the
  /// last row becomes the final row; a trajectory of one row is removed then. FailedPrecondition
  /// when the lane has none open, NotFound, once, when it was removed. In a stream: ends the
  /// episode and closes the stream.
  Result<Appended> Cut(uint32_t lane = 0);

  /// Goes on with an orphaned trajectory on this lane. FailedPrecondition: it is no orphan.
  Status Resume(TrajectoryId id, uint32_t lane = 0);

  /// Leaves a lane's open trajectory as an orphan, for another writer's Resume, and returns its id.
  /// FailedPrecondition when the lane has none open, NotFound, once, when it was removed.
  Result<TrajectoryId> Detach(uint32_t lane = 0);

  /// The trajectory open on a lane; 0 when there is none.
  TrajectoryId open_trajectory(uint32_t lane = 0) const;

  class Impl;  ///< Defined in engine/internal.

 private:
  friend class Table;
  friend class WriteBatch;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace geardb
