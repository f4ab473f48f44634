// MemoryNeed: how much memory for pages a replay of the log takes, from its records alone.
//
// A replay into too little memory stops at the first page that does not fit, and cannot say how
// much would do. This counts the pages that are there after each record instead, without their
// bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/internal/record_body.h"
#include "tools/geardb/open_store.h"

namespace geardb::cli {

/// A plain value. Records are followed from the first one on.
class MemoryNeed {
 public:
  void Follow(const engine::fb::Operation& operation);

  /// Enough for a replay of what was followed: the most slabs of the memory for pages that the
  /// tables' pages took at a time, each table's in slabs of its own.
  uint64_t bytes() const;

 private:
  /// A trajectory that is there: its pages, by their number in it.
  struct Pages {
    uint32_t generation = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct TablePages {
    std::vector<uint64_t> frame_bytes;  // By column group.
    uint64_t steps_per_page = 1;
    uint64_t expected_steps = 0;
    uint64_t pages = 0;
    std::map<Slot, Pages> trajectories = {};
    std::vector<TableId> companions = {};  // Tables with its values of any length.
  };

  /// Column groups, numbered from `first`.
  struct Groups {
    uint32_t first = 0;
    size_t groups = 0;
    uint32_t steps = 0;  ///< Of a page.
    bool has_flags = false;
  };
  static std::vector<uint64_t> FrameBytes(const engine::fb::TableSpec& spec);
  static std::vector<uint64_t> FrameBytesOf(
      const flatbuffers::Vector<flatbuffers::Offset<engine::fb::Column>>* columns,
      const Groups& of);
  /// Tables for those of `columns` that have values of any length, with ids from `next` on, or
  /// those that the columns name.
  void AddCompanions(const flatbuffers::Vector<flatbuffers::Offset<engine::fb::Column>>* columns,
                     TableId next, TablePages* owner);
  uint64_t SlabsOf(const TablePages& table) const;
  void FollowAppend(const engine::fb::Append& append, TablePages* table);
  static void RemovePages(Slot slot, TablePages* table);
  void Remove(const flatbuffers::Vector<const engine::fb::Removed*>* removed, TablePages* table);
  static void Trim(const flatbuffers::Vector<const engine::fb::Trimmed*>* trimmed,
                   TablePages* table);
  void FollowChange(const engine::fb::Operation& operation, TablePages* table);

  std::map<TableId, TablePages> tables_;
  uint64_t slabs_ = 0;  ///< Of all tables.
  uint64_t most_slabs_ = 1;
};

/// The same for all of a database's log, as far as it can be read.
Result<uint64_t> MemoryNeedOf(const StoreFiles& files);

/// `failure`, ResourceExhausted, of an open with --memory as the invocation has it: says what the
/// database needs, and what to give. Other failures come back as they are.
Status ExplainMemory(const Invocation& invocation, const StoreFiles& files, const Status& failure);

}  // namespace geardb::cli
