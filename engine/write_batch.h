// WriteBatch: changes of several tables that are made together: all of them or none.
//
//   WriteBatch batch;
//   batch.AppendTrajectory(writer.get(), {{"obs", obs}}, {.end = End::kTerminated});
//   batch.Remove(levels, {old_level});
//   batch.Set(per, handles, priorities);
//   batch.WriteTag("step-1000", state);
//   WriteOutcome outcome = db->Write(batch).value();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "engine/priority_table.h"
#include "engine/table.h"
#include "engine/writer.h"

namespace geardb {

struct WriteOptions {
  /// Absent: the database's. At least kLog; with a tag, kSync.
  std::optional<Ack> ack = {};
  /// As WriterOptions::admission_timeout_ms, of the whole batch. Those of its writers do not count.
  int64_t admission_timeout_ms = 10'000;
};

/// What became of one operation.
struct OperationOutcome {
  /// Of an append: as it returns. AppendLanes has one for each lane, the others one.
  std::vector<Appended> appended = {};
  // Of Set and Delete: as SetOutcome.
  uint64_t applied = 0;
  uint64_t stale = 0;
};

struct WriteOutcome {
  Lsn end_lsn = 0;  ///< Ticket{end_lsn} waits for an acknowledgement; 0: nothing was logged.
  std::vector<OperationOutcome> operations = {};  ///< By index.
};

/// Collects operations for Database::Write, which may be called with one batch again and again: an
/// operation is looked at there, not before (InvalidArgument: no writer, table or priority table
/// was given). Each call here returns the operation's index, from 0,
/// by which errors name it. Names, ids, handles and priorities are copied; the bytes of columns and
/// of a tag's blob, and writers, are the caller's until the last Write has returned. Used by one
/// thread at a time; while it is written, so are its writers.
class WriteBatch {
 public:
  WriteBatch();
  WriteBatch(WriteBatch&&) noexcept;
  WriteBatch& operator=(WriteBatch&&) noexcept;
  ~WriteBatch();

  // As the calls of Writer (`options.ack` is ignored). What a batch appends to one table comes from
  // one writer, each of its lanes in one operation.
  size_t Append(Writer* writer, ColumnValues row, const AppendOptions& options = {});
  size_t AppendSteps(Writer* writer, ColumnValues rows, const AppendOptions& options = {});
  size_t AppendTrajectory(Writer* writer, ColumnValues rows, const AppendOptions& options);
  size_t AppendLanes(Writer* writer, ColumnValues rows, const AppendLanesOptions& options = {});

  /// As PriorityTable::Set, of what was there before the batch.
  size_t Set(std::shared_ptr<PriorityTable> table, std::span<const ItemHandle> handles,
             std::span<const float> priorities);
  size_t Set(std::shared_ptr<PriorityTable> table, std::span<const RowId> rows,
             std::span<const float> priorities);
  /// As PriorityTable::Delete, of what was there before the batch.
  size_t Delete(std::shared_ptr<PriorityTable> table, std::span<const ItemHandle> handles);
  size_t Delete(std::shared_ptr<PriorityTable> table, std::span<const RowId> rows);
  /// As Table::Remove: all of them are there, or the batch is refused. None that it appends to.
  size_t Remove(std::shared_ptr<Table> table, std::span<const TrajectoryId> ids);
  /// As Table::SetColumns, of columns that are no blobs and not wide: each trajectory is there
  /// before the batch, which neither removes it nor appends to it, and comes once.
  size_t SetColumns(std::shared_ptr<Table> table, TrajectoryId id, ColumnValues values);
  /// As Database::WriteTag: the tag is the batch's cut. At most once, with a blob that fits beside
  /// the rest into one record.
  size_t WriteTag(std::string_view name, std::span<const std::byte> blob);

  size_t Append(Writer* writer, std::initializer_list<ColumnValue> row,
                const AppendOptions& options = {}) {
    return Append(writer, ColumnValues(row.begin(), row.size()), options);
  }
  size_t AppendSteps(Writer* writer, std::initializer_list<ColumnValue> rows,
                     const AppendOptions& options = {}) {
    return AppendSteps(writer, ColumnValues(rows.begin(), rows.size()), options);
  }
  size_t AppendTrajectory(Writer* writer, std::initializer_list<ColumnValue> rows,
                          const AppendOptions& options) {
    return AppendTrajectory(writer, ColumnValues(rows.begin(), rows.size()), options);
  }
  size_t AppendLanes(Writer* writer, std::initializer_list<ColumnValue> rows,
                     const AppendLanesOptions& options = {}) {
    return AppendLanes(writer, ColumnValues(rows.begin(), rows.size()), options);
  }

  size_t SetColumns(std::shared_ptr<Table> table, TrajectoryId id,
                    std::initializer_list<ColumnValue> values) {
    return SetColumns(std::move(table), id, ColumnValues(values.begin(), values.size()));
  }

  size_t size() const;
  void Clear();

  class Impl;  ///< Defined in engine/internal.

 private:
  friend class Database;
  std::unique_ptr<Impl> impl_;
};

}  // namespace geardb
