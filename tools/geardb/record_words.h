// The records of the log in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "tools/geardb/log_names.h"
#include "wal/log_reader.h"

namespace geardb::cli {

/// "data", "seal", …; "type 9" for one that this program does not know.
std::string RecordTypeWord(wal::RecordType type);

/// What the hand-over of an audited sampler says of a batch (SamplerOptions::audit).
struct AuditWords {
  struct Row {
    TrajectoryId trajectory = 0;
    int64_t anchor = 0;
    float priority = 0;
    double probability = 0;
    uint32_t draw_row = 0;
  };
  std::string sampler = {};  ///< Empty: it has no name.
  uint64_t draw = 0;
  uint64_t seed = 0;
  uint64_t first_draw = 0;  ///< Of the first row; the others are of `draw`.
  Lsn drawn_lsn = 0;
  int64_t handed_us = 0;
  std::vector<Row> rows = {};
};

/// One operation of a record.
struct OperationWords {
  std::string_view name = {};  ///< "append", "set_priorities", …: stable, for programs.
  std::optional<TableId> table = {};
  std::optional<uint32_t> priority_table = {};  ///< Its number in the table.
  std::string subject = {};  ///< "append 'replay'", "hand_over 'replay'/'per'": for people.
  std::string text = {};     ///< What it does, for people.
  std::optional<AuditWords> audit = {};
};

/// The operations of a data or tag record. `names` knows those of the records before, and learns
/// those of this one. Corruption when the body is none.
Result<std::vector<OperationWords>> DescribeOperations(std::span<const std::byte> body,
                                                       LogNames* names);
/// One line of them.
std::string JoinWords(const std::vector<OperationWords>& operations);

/// One line on what a record does: its operations, or what its type says.
std::string DescribeRecord(const wal::RecordView& record, LogNames* names);

}  // namespace geardb::cli
