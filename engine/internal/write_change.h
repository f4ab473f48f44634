// WriteChange: the record of a WriteBatch, and how it is applied: to all its tables at one moment.
//
// Invariant: from its first operation to its last the mutexes of all tables are held, taken in the
// order of the tables' ids; whoever holds those of two tables sees the batch in both or in neither.
#pragma once

#include <memory>
#include <vector>

#include "engine/internal/core.h"

namespace geardb::engine {

class WriteChange final : public Change {
 public:
  /// What an Append brings besides its operation.
  struct Appends {
    std::vector<FrameRef> new_frames;     ///< PageFrames of it, in `layout`.
    std::vector<wal::PiecePlace> places;  ///< Likewise.
    const TableLayout* layout = nullptr;
    std::vector<uint64_t> admitted;  ///< AppendPlan::admitted of it.
  };
  /// One for each operation of the body, in their order.
  struct Target {
    std::shared_ptr<TableCore> table;  ///< Null: of no table.
    Appends appends = {};
    // What it came to, once applied.
    PriorityOutcome set = {};
    DeleteOutcome deleted = {};
  };
  explicit WriteChange(DatabaseCore* database) : database_(database) {}

  std::vector<Target> targets;
  std::vector<std::byte> blob;  ///< Of its tag.

 private:
  void Apply(Lsn lsn, Lsn end) override;
  void ApplyTo(const fb::Operation& operation, Target* target, Lsn lsn);
  void AddTag(const fb::WriteTag& tag, Lsn lsn);

  DatabaseCore* const database_;
};

}  // namespace geardb::engine
