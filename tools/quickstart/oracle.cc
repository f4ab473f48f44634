#include "tools/quickstart/oracle.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

#include "base/hash.h"

namespace geardb::quickstart {
namespace {

/// Trajectories that are named with their rows; of all others only the ids.
constexpr size_t kNamedWithRowsMax = 8;

std::string ErrnoText() { return std::generic_category().message(errno); }

void AppendFindings(const char* what, const std::map<TrajectoryId, std::vector<int64_t>>& findings,
                    std::string* out) {
  if (findings.empty()) return;
  uint64_t rows = 0;
  std::vector<TrajectoryId> ids;
  for (const auto& [id, numbers] : findings) {
    rows += numbers.size();
    ids.push_back(id);
  }
  *out += std::to_string(rows) + (rows == 1 ? " row " : " rows ") + what + ", of " +
          (ids.size() == 1 ? "trajectory " : "trajectories ") + RangesText(ids) + "\n";
  size_t named = 0;
  for (const auto& [id, numbers] : findings) {
    if (++named > kNamedWithRowsMax) {
      *out += "  …\n";
      break;
    }
    *out += "  trajectory " + std::to_string(id) + ": rows " + RangesText(numbers) + "\n";
  }
}

}  // namespace

template <typename Number>
std::string RangesText(const std::vector<Number>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) text += (last == i + 1 ? ", " : "…") + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}
template std::string RangesText(const std::vector<int64_t>&);
template std::string RangesText(const std::vector<uint64_t>&);

Status AppendReporter::Report(const AppendReport& report) {
  if (pipe_fd_ < 0) return Status::Ok();
  ssize_t written;
  do {
    written = ::write(pipe_fd_, &report, sizeof(report));
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(sizeof(report))) {
    return Status::IoError("cannot report to the supervisor: ", ErrnoText());
  }
  return Status::Ok();
}

std::string OracleFindings::ToString() const {
  std::string text;
  AppendFindings("missing", missing, &text);
  AppendFindings("with other bytes", changed, &text);
  AppendFindings("never appended", unexpected, &text);
  AppendFindings("given to two appends", doubled, &text);
  return text;
}

Status Oracle::ReadAll(int pipe_fd) {
  std::array<std::byte, 64 * sizeof(AppendReport)> buffer;
  size_t held = 0;
  while (true) {
    const ssize_t got = ::read(pipe_fd, buffer.data() + held, buffer.size() - held);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::IoError("cannot read from the learner's pipe: ", ErrnoText());
    if (got == 0) return Status::Ok();
    held += static_cast<size_t>(got);
    size_t used = 0;
    for (; held - used >= sizeof(AppendReport); used += sizeof(AppendReport)) {
      AppendReport report;
      std::memcpy(&report, buffer.data() + used, sizeof(report));
      Add(report);
    }
    std::memmove(buffer.data(), buffer.data() + used, held - used);
    held -= used;
  }
}

void Oracle::Add(const AppendReport& report) {
  if (report.kind == AppendReport::Kind::kPending) {
    pending_ = report;
    return;
  }
  pending_.reset();
  std::vector<uint64_t>& rows = checksums_[report.id];
  if (static_cast<size_t>(report.row) < rows.size()) doubled_[report.id].push_back(report.row);
  rows.resize(static_cast<size_t>(report.row));
  rows.push_back(report.checksum);
  if (report.has_final != 0) rows.push_back(report.final_checksum);
  acknowledged_rows_ += report.has_final != 0 ? 2 : 1;
  acknowledged_final_rows_ += report.has_final != 0 ? 1 : 0;
}

Result<std::vector<uint64_t>> RowChecksums(const Table& table, TrajectoryId id) {
  GEARDB_ASSIGN_OR_RETURN(const std::vector<ColumnRows> columns, table.Read(id, {}, RowRange{}));
  const size_t rows = columns.empty() ? 0 : static_cast<size_t>(columns[0].shape[0]);
  std::vector<uint64_t> checksums(rows);
  Hasher64 hasher(0);
  for (size_t row = 0; row < rows; ++row) {
    hasher.Reset(0);
    for (const ColumnRows& column : columns) {
      const size_t row_bytes = column.bytes.size() / rows;
      hasher.Add(std::span(column.bytes).subspan(row * row_bytes, row_bytes));
    }
    checksums[row] = hasher.Finish();
  }
  return checksums;
}

Result<OracleFindings> Oracle::Check(const Table& table) const {
  OracleFindings findings;
  findings.acknowledged = acknowledged_rows_;
  findings.final_rows = acknowledged_final_rows_;
  findings.doubled = doubled_;
  std::map<TrajectoryId, std::vector<uint64_t>> stored;
  for (const TrajectoryRecord& record : table.Scan({})) {
    GEARDB_ASSIGN_OR_RETURN(stored[record.id], RowChecksums(table, record.id));
  }
  for (const auto& [id, wanted] : checksums_) {
    const std::vector<uint64_t>& rows = stored[id];
    for (size_t row = 0; row < wanted.size(); ++row) {
      if (row >= rows.size()) {
        findings.missing[id].push_back(static_cast<int64_t>(row));
      } else if (rows[row] != wanted[row]) {
        findings.changed[id].push_back(static_cast<int64_t>(row));
      } else {
        ++findings.found;
      }
    }
  }
  // What is there beyond the acknowledged rows can only be the call that was under way: all of it.
  for (const auto& [id, rows] : stored) {
    const auto wanted = checksums_.find(id);
    const size_t known = wanted == checksums_.end() ? 0 : wanted->second.size();
    if (rows.size() <= known) continue;
    std::vector<uint64_t> whole;
    if (pending_) whole.push_back(pending_->checksum);
    if (pending_ && pending_->has_final != 0) whole.push_back(pending_->final_checksum);
    const std::span extra = std::span(rows).subspan(known);
    if (findings.pending == 0 &&
        std::equal(extra.begin(), extra.end(), whole.begin(), whole.end())) {
      findings.pending = extra.size();
      continue;
    }
    for (size_t row = known; row < rows.size(); ++row) {
      findings.unexpected[id].push_back(static_cast<int64_t>(row));
    }
  }
  return findings;
}

OracleFindings Oracle::AllMissing() const {
  OracleFindings findings;
  findings.acknowledged = acknowledged_rows_;
  findings.final_rows = acknowledged_final_rows_;
  for (const auto& [id, rows] : checksums_) {
    for (size_t row = 0; row < rows.size(); ++row) {
      findings.missing[id].push_back(static_cast<int64_t>(row));
    }
  }
  return findings;
}

}  // namespace geardb::quickstart
