// Oracle: what the supervisor knows of acknowledged rows, by a way that does not touch the store.
//
// The process that learns tells it of every append over a pipe, before the call and after it has
// been acknowledged. What was written into a pipe survives the death of the writer.
//
// Invariants: a row that was acknowledged must be found with the same checksum; the row of a call
// that was not acknowledged may be found wholly or not at all; nothing else may be found.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/table.h"

namespace geardb::quickstart {

/// One message of the pipe. Shorter than PIPE_BUF, so it arrives whole or not at all.
struct AppendReport {
  enum class Kind : uint32_t { kPending = 1, kAcknowledged = 2 };

  Kind kind = Kind::kPending;
  uint32_t has_final = 0;
  TrajectoryId id = 0;  ///< Acknowledged only, like the row.
  int64_t row = 0;
  uint64_t checksum = 0;        ///< Of the row.
  uint64_t final_checksum = 0;  ///< Of the final row behind it, if there is one.
};

/// The writing end. Does nothing when made without a pipe. A pipe that nobody reads is IoError.
class AppendReporter {
 public:
  explicit AppendReporter(int pipe_fd = -1) : pipe_fd_(pipe_fd) {}
  Status Report(const AppendReport& report);

 private:
  int pipe_fd_;
};

/// What a look into the store found wrong.
struct OracleFindings {
  uint64_t acknowledged = 0;  ///< Rows that must be there…
  uint64_t final_rows = 0;    ///< …of which so many are the last observation of an episode.
  uint64_t found = 0;         ///< Of them, with the right bytes.
  uint64_t pending = 0;       ///< Found rows of the call that was not acknowledged.
  /// Rows by trajectory: not there, there with other bytes, there and never appended, and given to
  /// two appends.
  std::map<TrajectoryId, std::vector<int64_t>> missing, changed, unexpected, doubled;

  bool good() const {
    return missing.empty() && changed.empty() && unexpected.empty() && doubled.empty();
  }
  /// For people: every id with its rows, as "trajectory 12: rows 3…7, 9".
  std::string ToString() const;
};

/// The reading end, and the memory. Not thread-safe.
class Oracle {
 public:
  /// Reads reports until every writer of the pipe has gone.
  Status ReadAll(int pipe_fd);
  void Add(const AppendReport& report);

  uint64_t acknowledged_rows() const { return acknowledged_rows_; }
  /// Compares with what the table holds.
  Result<OracleFindings> Check(const Table& table) const;
  /// What is missing from a store that cannot be opened: everything.
  OracleFindings AllMissing() const;

 private:
  /// Acknowledged rows by trajectory; the index is the row.
  std::map<TrajectoryId, std::vector<uint64_t>> checksums_;
  std::map<TrajectoryId, std::vector<int64_t>> doubled_;
  std::optional<AppendReport> pending_;
  uint64_t acknowledged_rows_ = 0;
  uint64_t acknowledged_final_rows_ = 0;
};

/// The checksum of each row of a trajectory, over its columns in the order of the schema.
Result<std::vector<uint64_t>> RowChecksums(const Table& table, TrajectoryId id);

/// "3…7, 9" for rows (or ids) in ascending order.
template <typename Number>
std::string RangesText(const std::vector<Number>& numbers);

}  // namespace geardb::quickstart
