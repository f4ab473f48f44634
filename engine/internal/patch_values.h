// Ragged columns in a patch. Their new rows are appended to the companion first (companion.h), by a
// record of its own and behind whatever the trajectory has there; the patch then is one of the
// ranges that steps have in the table, like that of any other column, and shows them. Until it is
// applied nobody sees the rows: a crash in between leaves bytes that no step names.
//
// Invariants: nobody else appends to these trajectories of companions. Late groups have no writer;
// of other columns the trajectory is closed. Patches of a table come one after the other.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/internal/core.h"
#include "engine/internal/patch_rows.h"

namespace geardb::engine {

class PatchedValues {
 public:
  /// Rows that a call has put already, and whose patch was refused then.
  struct Earlier {
    size_t companion = 0;
    Slot slot = kNoSlot;
    uint32_t generation = 0;  ///< Of the owner.
    uint64_t begin = 0;
    uint64_t count = 0;
    std::vector<PatchTarget> targets = {};
  };
  /// `earlier`: of this call, with the same values, when it was tried before.
  PatchedValues(DatabaseCore* database, const std::shared_ptr<TableCore>& table, Deadline deadline,
                std::vector<Earlier>* earlier)
      : database_(database), table_(table), deadline_(deadline), earlier_(*earlier) {}

  /// Where the values for `targets` will be: sets PatchValues::Ragged::ranges. FailedPrecondition:
  /// of a column that writers append, a trajectory that is not closed.
  Status Find(const PatchValues& values, std::span<const PatchTarget> targets)
      GEARDB_REQUIRES(table_->state->mutex);
  /// There is nothing to write.
  bool empty() const { return written_.empty(); }
  /// Puts them there; returns once they are published. What has left since is passed over. Errors
  /// as of an append.
  Status Write();
  /// Once the patch is published: where it named all values of a trajectory's column, those of
  /// before leave, but for what shares a page with the new ones. A log without room keeps them.
  void GiveBack();
  /// Of a trajectory and a column: more rows are kept than before, so it is worth a look how many
  /// of these are shown (patch_rewrite.h).
  struct Grown {
    size_t column = 0;  ///< Among the step columns.
    size_t companion = 0;
    Slot slot = kNoSlot;
    uint32_t generation = 0;  ///< Of the owner.
  };
  std::vector<Grown> grown() const;

 private:
  /// The new rows of one trajectory in one companion.
  struct OfTrajectory {
    size_t companion = 0;
    Slot slot = kNoSlot;
    uint32_t generation = 0;  ///< Of the owner.
    bool whole = false;       ///< All values of the column get others.
    size_t column = 0;
    uint64_t kept = 0;   ///< Rows that are kept, before.
    uint64_t begin = 0;  ///< The first new row.
    bool there = false;  ///< They were put when the call was tried before.
    std::vector<PatchTarget> targets = {};
    const std::byte* rows = nullptr;
    uint64_t count = 0;
    std::vector<std::byte> joined = {};  ///< What `rows` points to, where it is not the caller's.
  };
  Status AddColumn(const PatchValues::Ragged& ragged, std::span<const PatchTarget> targets)
      GEARDB_REQUIRES(table_->state->mutex);
  bool IsWhole(const PatchValues::Ragged& ragged, const OfTrajectory& of) const
      GEARDB_REQUIRES(table_->state->mutex);
  /// Those that are there still, if some are.
  const Earlier* FindEarlier(const OfTrajectory& of) const GEARDB_REQUIRES(table_->state->mutex);
  Status Trim(const OfTrajectory& of);

  DatabaseCore* const database_;
  const std::shared_ptr<TableCore> table_;
  const Deadline deadline_;
  std::vector<Earlier>& earlier_;
  std::vector<OfTrajectory> written_;
};

/// Checks the values of a ragged column: their offsets say how many there are. They become those of
/// a column of ranges, which Write sets.
Status BindRaggedPatch(const TableLayout& layout, const ColumnValue& given, size_t column,
                       PatchValues* bound);

}  // namespace geardb::engine
