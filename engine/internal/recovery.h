// Recovery: from a directory to the state at the end of its log. One pass over the records in LSN
// order: each is checked against the state, its pieces are copied into frames, then it is applied,
// by the same code as when it was live. engine/README.md, "Recovery".
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/internal/core.h"
#include "wal/log_reader.h"

namespace geardb::engine {

/// True when every column set names a column and a slot below `slots_end`, and the values have
/// exactly their bytes.
bool ColumnSetsFit(const TableLayout& layout, const flatbuffers::Vector<const fb::ColumnSet*>* sets,
                   const flatbuffers::Vector<uint8_t>* values, uint64_t slots_end);
/// True when all priorities are finite and not negative.
bool PrioritiesFit(const flatbuffers::Vector<flatbuffers::Offset<fb::NewItems>>* items);

class Recovery {
 public:
  explicit Recovery(DatabaseCore* core) : core_(core) {}

  /// Applies one record. Corruption, naming the LSN, for a body that does not fit the state.
  Status Visit(const wal::RecordView& record);
  /// After the last record: sums, orphans, plans.
  Status Finish();

  uint64_t orphaned() const { return orphaned_; }
  uint64_t damaged_pages() const { return damaged_pages_; }
  /// Trajectories that lost a page, by table: to be removed once the database can write.
  std::map<TableId, std::set<std::pair<Slot, uint32_t>>> damaged() const { return damaged_; }

 private:
  Status Apply(const fb::Operation& operation, const wal::RecordView& record);
  Status ApplyToPriorityTable(const fb::Operation& operation, const wal::RecordView& record,
                              TableCore* table);
  Status CreateTable(const fb::Operation& operation);
  Status CreatePriorityTable(const fb::Operation& operation, TableCore* table);
  Status Append(const fb::Append& append, const wal::RecordView& record, TableCore* table);
  Status CheckAppend(const fb::Append& append, const wal::RecordView& record,
                     const TableCore& table) const;
  Status CopyPieces(const fb::Append& append, const wal::RecordView& record, TableCore* table,
                    std::span<const FrameRef> frames);
  Status SetAll(const fb::Operation& operation, const wal::RecordView& record, TableCore* table);
  Status WriteTag(const fb::WriteTag& tag, const wal::RecordView& record);
  Status BadRecord(const wal::RecordView& record, std::string_view why) const;

  DatabaseCore* const core_;
  std::map<TableId, std::set<std::pair<Slot, uint32_t>>> damaged_;
  uint64_t orphaned_ = 0;
  uint64_t damaged_pages_ = 0;
};

}  // namespace geardb::engine
