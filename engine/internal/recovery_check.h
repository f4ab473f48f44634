// What a log record may say at recovery, apart from appends (recovery_append_check.h): each
// function compares one operation with the state before it and changes nothing. A checksum proves
// that bytes are those that were written, not that they make sense: what passes here can be applied
// without breaking an invariant, whatever it says. All take time in the size of the operation
// alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/internal/table_state.h"
#include "engine/operations_generated.h"
#include "wal/log_reader.h"

namespace geardb::engine {

// All of them: Corruption that says what does not fit.

/// Several operations are the creation of one table and of its priority tables, the hand-over of
/// one batch from several priority tables, or those of a WriteBatch: SetPriorities, DeleteItems,
/// then of each table one Remove or Append, then a WriteTag; with the record's `pieces`.
Status CheckOperations(const fb::Body& body, size_t pieces);
/// How many pieces an operation of a WriteBatch has.
uint32_t PiecesOf(const fb::Operation& operation);
/// Ids up to here can be promised.
Status CheckIdsEnd(uint64_t ids_end);
Status CheckClose(const TableState& state, const fb::Close& close);
Status CheckRemove(const TableState& state, const fb::Remove& remove);
Status CheckSetColumns(const TableState& state, const fb::SetColumns& set);
Status CheckSetPriorities(const fb::SetPriorities& set, std::span<const wal::PieceView> pieces);
Status CheckSetAll(const fb::SetAll& set, std::span<const wal::PieceView> pieces,
                   const PriorityState& priority);
Status CheckRescale(const fb::Rescale& rescale);
/// Items are as many as the rows, where they are said, and have had a place.
Status CheckHandOver(const fb::HandOver& hand_over, const PriorityState& priority);
/// It draws epochs: others have no records of them.
Status CheckHasEpochs(const PriorityState& priority);
Status CheckHasGroups(const PriorityState& priority);
Status CheckTag(const fb::WriteTag& tag, std::span<const wal::PieceView> pieces);

// Parts of operations.

/// Every column set names a column, and the values have exactly their bytes.
Status CheckColumnSets(const TableLayout& layout,
                       const flatbuffers::Vector<const fb::ColumnSet*>* sets,
                       const flatbuffers::Vector<uint8_t>* values);
/// Every entry names a priority table; priorities are finite and not negative; those per trajectory
/// are as many as `rows_count`.
Status CheckNewItems(const TableState& state,
                     const flatbuffers::Vector<flatbuffers::Offset<fb::NewItems>>* items,
                     uint64_t rows_count);
/// The pieces lie one behind the other: no byte of the log is named twice, so what they make is no
/// larger than the log.
Status CheckPiecesApart(std::span<const wal::PieceView> pieces);

/// The living trajectory in `slot` if it has this generation, else null.
const index::TrajectoryRecord* FindTrajectory(const TableState& state, Slot slot,
                                              uint32_t generation);

/// What leaves a table with a record, before anything else of the record happens.
class Leaving {
 public:
  using RemovedVector = flatbuffers::Vector<const fb::Removed*>;
  using TrimmedVector = flatbuffers::Vector<const fb::Trimmed*>;

  /// Takes the two lists up. Corruption for a trim that leaves a trajectory without rows, or an
  /// item without steps.
  Status Read(const TableState& state, const RemovedVector* removed, const TrimmedVector* trimmed);

  /// The trajectory that was in `slot` is gone.
  bool Removes(Slot slot) const;
  /// A page in use is free afterwards.
  bool Frees(const index::PageRecord& page) const;

 private:
  struct Trim {
    Slot slot;
    uint32_t first_page;  // Pages below are gone.
  };
  std::vector<Slot> removed_;  // Sorted.
  std::vector<Trim> trimmed_;  // Sorted by slot.
};

}  // namespace geardb::engine
