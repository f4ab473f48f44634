// PriorityTable: weights over items of a table, and the samplers that draw them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/patch.h"
#include "engine/rate_limit.h"
#include "engine/sampler.h"
#include "engine/schema.h"
#include "engine/stats.h"

namespace geardb {

struct RowId;

/// What became of the updates of a Set, or of the items of a Delete.
struct SetOutcome {
  /// Reached their item; each of several updates of one item counts, of a Delete the first.
  uint64_t applied = 0;
  uint64_t stale = 0;  ///< Their item is gone, or its place holds another: ignored.
  Lsn end_lsn = 0;     ///< Ticket{end_lsn} waits for an acknowledgement.
};

/// A priority table. Thread-safe; draws and updates happen one at a time, in the order of the
/// calls: that order is the apply sequence, and it is what the log holds.
///
/// Where the selector has weights (SelectorKind), items are drawn in proportion to
/// w = priority^alpha, in fixed point of 32 bits: in units of
/// 2^-s, rounded, at least one for w > 0. The scale s (PriorityTableStats::scale_shift) follows the
/// weights of the items that are there, however they came. When a call has returned that appends,
/// cuts, removes or sets, or creates the priority table, no weight is cut, and the unit is at most
/// about 2^-8 of the mean weight, or 2^-20 of the largest. s ends at 40 and at -32: weights below
/// 2^-40 are drawn as 2^-40, and weights above 2^64 as 2^64. What a writer's full table lets go
/// counts as its append, and an append at Ack::kMemory that is not applied when it returns is seen
/// to by the next of these calls on the table. So is a scale for which the log has no room, or
/// before which the process died. A refused call (but an append whose wait for the log runs out)
/// leaves the scale as it was, and so does a priority that reaches no item. Another scale is a pass
/// over all items: with more than 4,096, after one that made the unit finer the next such waits for
/// a sixteenth as many to come, go or be set (under a maximum far above the rest, as kMax takes
/// it).
class PriorityTable {
 public:
  ~PriorityTable();
  PriorityTable(const PriorityTable&) = delete;
  PriorityTable& operator=(const PriorityTable&) = delete;

  const PriorityTableSpec& spec() const;

  /// Sets raw priorities of items by the handles of a batch. NaN, infinite or negative priorities
  /// are refused before anything changes, naming the first. Of duplicates the last wins. 0 makes
  /// an item undrawable until it is set again, but in a heap. Returns when applied; durable at
  /// Ack::kLog. All of a call or nothing: a refused one has changed nothing (but see Database on
  /// IoError), and a crash leaves no part of one. Uniform, fifo and lifo selectors have no
  /// priorities: they count what their items would have got, and draw as before. InvalidArgument,
  /// naming how many fit, for more items of 16 bytes each than go into the log at once
  /// (DatabaseOptions::ring_bytes).
  Result<SetOutcome> Set(std::span<const ItemHandle> handles, std::span<const float> priorities);
  /// By (id, row) of the anchor; for trajectories the row is ignored, for groups it is any member
  /// that names them. Waits for what was admitted
  /// before, at Ack::kMemory too: the rows of an append that has returned are there, and row -1 is
  /// its last.
  Result<SetOutcome> Set(std::span<const RowId> rows, std::span<const float> priorities);
  /// All items at once: in order of (id, row), of groups that of their first members that are
  /// there, or a single value for all. FailedPrecondition naming
  /// both numbers when the table has another number of items, which are those of everything
  /// admitted before. None is right for none, and logs nothing. InvalidArgument, as of Set, for
  /// more values of 4 bytes each than go into the log at once.
  Result<SetOutcome> SetAll(std::span<const float> priorities);

  /// Takes items out of this priority table alone, by the handles of a batch: their trajectories
  /// stay, and so do the items of other priority tables. What was deleted does not come back while
  /// its row is there (of trajectories: while the trajectory is). The limiter counts items that
  /// leave; one that was never sampled gives its place in a queue back, also while it is drawn and
  /// not handed over. Trajectories that nobody can draw any more are removed where
  /// `remove_when_exhausted` says so. All of a call or nothing; returns when applied, durable at
  /// Ack::kLog. InvalidArgument, naming how many fit, for more items of 16 bytes each than one
  /// record takes (a quarter of the ring); ResourceExhausted where the index budget cannot hold
  /// which items were deleted: a bit for each leaf, from the first Delete on.
  Result<SetOutcome> Delete(std::span<const ItemHandle> handles);
  /// By (id, row) of the anchor, as of Set.
  Result<SetOutcome> Delete(std::span<const RowId> rows);

  /// Table::Patch of the rows of items by the handles of a batch: of each its length part, as many
  /// rows as Batch::lengths says. An item that is gone is stale. Not of groups (InvalidArgument),
  /// whose handles name several trajectories: Table::Patch has their ids.
  Result<PatchOutcome> Patch(std::span<const ItemHandle> handles, ColumnValues values,
                             const PatchOptions& options = {});

  /// SelectorKind::kEpoch only: the items that there are, of what was admitted before, become the
  /// cut of a new epoch, in which samplers draw each of them once in each of `spec().epoch.passes`
  /// passes. A pass begins when all of the one before has been handed over; items that leave leave
  /// the epoch, and newer ones wait for the next. No epoch begins by itself, and one that is not
  /// exhausted is given up: a batch of it that is drawn ahead is still handed over, and covers
  /// nothing. Logged at Ack::kLog: a reopen goes on with exactly what was not handed over, so a
  /// learner that opens a store begins an epoch when Next says OutOfRange, and not before.
  Status BeginEpoch();

  /// ItemKind::kGroup only: the group of this key that takes members, of what was admitted before,
  /// is ready with those it has, however few, and takes no others. Logged at Ack::kLog. NotFound
  /// where no group of the key takes members.
  Status SealGroup(int64_t key);
  /// Seals the groups whose GroupSpec::deadline_ms has passed and that have as many members as that
  /// takes; returns how many. By hand what the background does.
  Result<uint64_t> SealOverdueGroups();

  /// Number of items, undrawable ones (priority 0) included; number that can be drawn.
  uint64_t Count() const;
  uint64_t DrawableCount() const;
  /// All items as (id, row), in that order: the order of SetAll.
  std::vector<RowId> Items() const;
  /// The raw priority of an item: NotFound when it is none.
  Result<float> Priority(const RowId& row) const;
  /// Its exact probability in the next draw: q / total, that of the first row where rows are drawn
  /// without replacement; 1 where items come in their order.
  Result<double> Probability(const RowId& row) const;
  /// The largest raw priority ever applied, from 1.
  float MaxPriority() const;

  /// A sampler over this priority table. InvalidArgument names the view that leaves the extent, or
  /// a batch beyond any memory (that it fits batch_bytes, Next sees); NotFound an unknown column;
  /// ResourceExhausted that the system has no thread for the prefetching.
  Result<std::unique_ptr<Sampler>> NewSampler(const SamplerOptions& options);

  /// Other limits from now on, in the apply sequence, logged at Ack::kLog. A ratio with another
  /// min_size or samples_per_insert begins as if up to min_size of what is there had just been
  /// inserted, and with another error_buffer alone goes on counting; a queue or stack, where there
  /// was none, begins as if nothing of what is there had been sampled. An item that was sampled
  /// before there ever was a maximum begins at 0; times that were counted under one are kept, and
  /// count under the next. What is drawn and not handed over stays so. Returns when what nobody can
  /// draw any more has been removed (PriorityTableSpec::remove_when_exhausted).
  /// InvalidArgument, with no change, for limits that cannot be; ResourceExhausted where the index
  /// budget cannot hold what they count. Handles, this one too, and their spec() stay as they are;
  /// the next open compares with the new limits.
  Status Configure(const PriorityLimits& limits);
  /// Another standing filter from now on (PriorityTableSpec::filter; empty: none), in the apply
  /// sequence, logged at Ack::kLog: a pass over all trajectories. Returns when what it expires has
  /// been removed. An open compares no filter with the stored one, which goes on to hold; handles,
  /// this one too, and their spec() stay as they are. InvalidArgument or NotFound, with no change,
  /// as of a filter in a spec; ResourceExhausted where the index budget cannot hold whom it fails:
  /// a bit for each trajectory and for each leaf, from the first filter on.
  Status SetFilter(const std::string& filter, FilterAction action = FilterAction::kHide);
  /// What samples and inserts wait for, and how many calls wait.
  BlockReport WhyBlocked() const;

  PriorityTableStats Stats() const;

  class Impl;  ///< Defined in engine/internal.

 private:
  friend class Sampler;
  friend class Table;
  friend class WriteBatch;
  explicit PriorityTable(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace geardb
