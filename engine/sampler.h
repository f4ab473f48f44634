// Sampler: draws batches from a priority table and delivers them as tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/batch.h"

namespace geardb {

/// The rows of a view, relative to the anchor (for a trajectory: to its first row).
struct ViewRows {
  /// `count` of this value: as many rows as the item's length part has.
  static constexpr int64_t kItemLength = -1;

  int64_t begin = 0;
  int64_t count = kItemLength;
  int64_t stride = 1;
  /// Rows added after `count` (a bootstrap observation: one more).
  int64_t plus = 0;
  /// Any rows, instead of the above, when not empty.
  std::vector<int64_t> list = {};
  /// The n-step bootstrap row instead of the above: one row, or one per step with `every_row`.
  bool bootstrap = false;
};

/// One output of a batch. Shape [n, L, (stack,) ...] padded, [Σ lengths, (stack,) ...] packed.
/// Padded, the L axis is left out when `rows` names exactly one row (a list of one, count 1, an
/// extent of length 1, or the bootstrap row without `every_row`) and the item is a window: n
/// entries, padding where the row is absent.
/// Packed, such a view has Σ lengths entries like any other: fewer than n where rows are absent.
struct View {
  /// Per step. A per-trajectory column yields [n, ...] in either layout and ignores `rows`; with
  /// `stack` or `masks` it is refused.
  std::string column = {};
  std::string name = {};  ///< Of the output; empty: the column's.
  ViewRows rows = {};
  /// k > 1: every entry shows rows r-k+1 … r on a new axis, r the row that the entry shows (also
  /// where that is the edge row again); rows left of the edge follow the left edge rule (clip and
  /// shift repeat).
  int64_t stack = 1;
  double pad_value = 0;  ///< Where there is no row.
  /// Delivered as f32 instead of the stored type (integers: their value; bool: 0 or 1).
  bool to_f32 = false;
  /// Also deliver, shaped [n, L] or [Σ lengths], as bool `<name>.valid`: entry shows a row (or a
  /// repetition); `<name>.learn`: a step of the length part at its own place; `<name>.is_first`:
  /// first row of its episode; and as u8 `<name>.end`: End of the row.
  bool masks = false;
};

/// n-step returns. For row i: sum over k < m of (product of discounts before k) * reward[i+k] in
/// f32 in step order, m = n or up to the end of the episode. Delivered as `nstep.return` f32,
/// `nstep.discount` f32 (the product of m discounts: γ^m), `nstep.bootstrap_row` i64, `nstep.mask`
/// f32 (0 where the episode terminated within, else 1). Sutton & Barto, 2nd ed., section 7.1.
struct NStep {
  std::string reward_column = {};
  int64_t n = 1;
  double gamma = 0.99;
  /// Per-step column of discounts that replaces γ; empty: γ.
  std::string discount_column = {};
  /// Per-step column, non-zero where a life was lost: counts as terminated there; empty: none.
  std::string life_loss_column = {};
  /// For every row of the length part: outputs have the L axis.
  bool every_row = false;
};

enum class BatchLayout : uint8_t {
  kPadded = 0,  ///< [n, L, ...] with lengths.
  kPacked = 1,  ///< [Σ lengths, ...] with cu_seqlens.
};

/// Checked by NewSampler: InvalidArgument for a value that is not allowed.
struct SamplerOptions {
  /// Items of a batch. Where the selector gives distinct ones (SelectorKind), a batch waits until
  /// as many can be drawn. Of an epoch the last batch of a pass has what is left.
  int64_t batch = 64;
  /// Of an epoch: a pass ends without what is left when that is less than `batch`. It counts as
  /// covered.
  bool drop_last = false;
  std::vector<View> views = {};
  std::optional<NStep> n_step = {};
  BatchLayout layout = BatchLayout::kPadded;
  /// Exponent β of the importance weights (n·P)^−β / max, P being the probability before the batch.
  /// Schaul et al., section 3.4. Where the selector has no weights they are 1.
  double beta = 0.4;
  /// That maximum. `kTable` may take a pass over the priority table after its smallest priority has
  /// gone.
  WeightMaximum weight_maximum = WeightMaximum::kBatch;
  /// Batches drawn ahead: batch i sees exactly the updates submitted before the hand-over of batch
  /// i − prefetch. 0: each batch is drawn by its own Next. Where there is nothing to draw in a
  /// batch's turn, the next call that finds something draws it. Where budgets.batch_bytes has no
  /// room for it then, the Next that would return it fails with ResourceExhausted, and the one
  /// after that draws as the first one did.
  int64_t prefetch = 0;
  /// An observer has its own seed, asks no limiter, and touches no counts and no log.
  bool observer = false;
  /// Observers: the key of its draws. Others: with `restart_draw`, sets the priority table's seed.
  uint64_t seed = 0;
  /// Begins again at this draw number, at most 2^62 (logged), not after the last one. (A batch that
  /// another sampler had drawn ahead takes it on behind its own number.)
  std::optional<uint64_t> restart_draw = {};
  /// How long Next waits for an item to draw, at least 0; 0: not at all. A call that shall wait
  /// without end is given a `Deadline::Infinite()` of its own.
  int64_t timeout_ms = 10'000;
};

/// Draws batches. A batch drawn ahead reserves its rows and items until it is handed over: others
/// do not draw what would be sampled too often then. A hand-over that the log refuses keeps the
/// batch for the next Next; what is reserved is free again when the sampler is destroyed, or finds
/// the database closed or the table dropped. Used by one thread at a time; several samplers may
/// draw from one priority table, whose draw numbers they then share, and its epoch.
class Sampler {
 public:
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// The next batch. Waits while nothing can be drawn, or the priority table's limiter does not
  /// admit as many rows (InvalidArgument: it never will); DeadlineExceeded, saying why, after
  /// `timeout_ms` (or `deadline`), which uses up no draw number. OutOfRange, at once: the epoch is
  /// exhausted, or none has begun. The hand-over is logged at
  /// Ack::kLog. Draw numbers go on after the largest one handed over when a store is opened, and
  /// when the last sampler of the priority table (observers aside) is destroyed: the numbers above
  /// it that were drawn ahead are drawn again then, from what there is by then. With one sampler
  /// that is every batch prefetched and not handed over. With several, numbers below one that
  /// another has handed over are passed over for good; and while another lives, those of a
  /// destroyed sampler are not drawn again.
  Result<Batch> Next(std::optional<Deadline> deadline = std::nullopt);

  /// Changes β for the batches drawn from now on. InvalidArgument unless it is finite and at least
  /// 0.
  Status set_beta(double beta);
  const SamplerOptions& options() const;

  class Impl;  ///< Defined in engine/internal.

 private:
  friend class PriorityTable;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace geardb
