// What the record of an append may say at recovery: checked against the state before it, in time in
// the size of the record, before anything of it is applied.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/internal/recovery_check.h"

namespace geardb::engine {

/// Checks appends, one after the other; keeps its memory from one to the next.
class AppendCheck {
 public:
  /// One append, with the record's pieces. `next_id`: all trajectories so far have lower ids.
  struct Input {
    const TableState* state = nullptr;
    const fb::Append* append = nullptr;
    const TableLayout* layout = nullptr;  ///< That its writer knew.
    std::span<const wal::PieceView> pieces;
    uint64_t next_id = 1;
  };

  /// Corruption that says what does not fit. After OK every slot and LPN that the append takes is
  /// free once what leaves with it is gone, each is taken once, all lie below Ends(), and its
  /// pieces are those of its rows.
  Status Check(const Input& input);

  /// One more than the largest LPN and slot that the append takes. Both are numbers that a table of
  /// that size can come to, for the lowest free one is always taken.
  uint64_t lpns_end() const { return lpns_end_; }
  uint64_t slots_end() const { return slots_end_; }

 private:
  struct Opening {
    Slot slot;
    uint32_t generation;
  };
  /// Where rows go: the trajectory's end, and its tail page.
  struct Tail {
    uint64_t rows_end = 0;
    Lpn lpn = kNoLpn;
    uint32_t generation = 0;
  };

  Status CheckOpened(const Input& input);
  Status CheckPages(const Input& input);
  Status CheckRows(const Input& input);
  Status CheckEnd(const TableSpec& spec, const fb::Rows& rows) const;
  Status FindTail(const TableState& state, const fb::Rows& rows, Tail* tail) const;
  /// The pieces and pages of one entry of rows, of which `*pieces` and `*pages` came before.
  Status CheckPieces(const Input& input, const fb::Rows& rows, Tail tail, uint32_t* pieces,
                     uint32_t* pages) const;
  /// What a piece has to say.
  struct PieceWanted {
    Lpn lpn = kNoLpn;
    uint32_t generation = 0;
    uint32_t first = 0;
    uint64_t count = 0;
    uint32_t group = 0;
  };
  Status CheckPiece(const Input& input, uint32_t number, const PieceWanted& wanted) const;
  Status CheckColumns(const Input& input) const;

  Leaving leaving_;
  std::vector<Opening> opened_;  // Sorted by slot.
  std::vector<Lpn> lpns_;        // Of new pages, sorted.
  std::vector<Slot> slots_;      // Of rows, sorted.
  uint64_t lpns_end_ = 0;
  uint64_t slots_end_ = 0;
};

}  // namespace geardb::engine
