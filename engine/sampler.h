// Sampler: draws batches from a priority table and delivers them as tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/types.h"
#include "base/window.h"
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
  /// The rows of the RowDraw of this name instead of the above.
  std::string draw = {};

  friend bool operator==(const ViewRows&, const ViewRows&) = default;
};

/// One output of a batch. Shape [n, L, (stack,) ...] padded, [Σ lengths, (stack,) ...] packed.
/// Padded, the L axis is left out when `rows` names exactly one row (a list of one, count 1, an
/// extent of length 1, or the bootstrap row without `every_row`) and the item is a window: n
/// entries, padding where the row is absent. So it is for a single drawn row of any item.
/// Packed, such a view has Σ lengths entries like any other: fewer than n where rows are absent.
struct View {
  /// Per step. A per-trajectory column yields [n, ...] in either layout and ignores `rows`; with
  /// `stack` or `masks` it is refused. A ragged column and a blob yield [total rows, ...] in either
  /// layout, with Batch::Offsets; they take no `stack`.
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

/// Which rows a RowDraw takes, of those of the episode around the item (of an item that is a
/// trajectory: of the whole of it): never beyond an end, in a stream, and of an episode that goes
/// on those that are there so far. A final row is one of them.
enum class RowDrawKind : uint8_t {
  /// One of those behind the anchor, each as likely: "future" of Andrychowicz et al., "Hindsight
  /// Experience Replay", 2017.
  kFuture = 0,
  /// One of those, at distance d with a probability in proportion to γ^d.
  kGeometric = 1,
  kLast = 2,  ///< The last one ("final" there).
  kAny = 3,   ///< Any of them, before the anchor, too ("episode" there).
};

/// Rows that are drawn for each item: goals in hindsight. A view shows them that has the name in
/// ViewRows::draw, and several that have it show the same ones. They lie outside of what the
/// extent promises: in a late column group they may not be filled, and show its default.
///
/// Delivered, shaped [n], or with more than one row for each item [n, count] padded and [n · count]
/// packed: `<name>.row` i64, the row that the views show, and `<name>.drawn` bool, whether it was
/// drawn. One that was not, since `probability` did not want it or there is none to take, is the
/// anchor's own row. (The anchor is where the item's window stands; of a trajectory its first row.)
///
/// Row c of item i is drawn by the item's own place in the order of draws alone: by the seed, the
/// draw number and i. The same ones come again wherever the same item does: ahead or not, after a
/// reopen, by an observer with that seed.
struct RowDraw {
  std::string name = {};
  RowDrawKind kind = RowDrawKind::kFuture;
  /// Of each row by itself, that it is drawn: 0…1.
  double probability = 1;
  /// Future and geometric: the first row that may be drawn, so many behind the anchor; 0 lets the
  /// anchor's own row be drawn, and the length of the item takes none of its rows.
  int64_t nearest = 1;
  double gamma = 0.99;  ///< Of geometric: 0 (always the nearest) or more, below 1.
  int64_t count = 1;    ///< Rows for each item, 1…65,536; one may come more than once.
};

/// Windows that are drawn in two stages: an item of a priority table over trajectories or groups,
/// by its selector, then `count` rows of that trajectory, or of all members of the group, of those
/// that may be anchors of `window` (as of a priority table over windows, with its edge rules). The
/// batch shows these windows, one item's behind each other: `batch` · `count` of them. Items that
/// have no such row are passed over: the next row of the draw takes their place. Not of an epoch:
/// a trajectory that is passed over would never be covered.
///
/// A handle names the item, whose priority may be set. A probability is that of the item (those
/// passed over included) times 1 / (anchors in it). Weights follow from it (of a uniform selector,
/// too, since it draws rows of long items less often; β 0 makes them 1), but where items come in
/// their order. Each item drawn is one sample, whatever it shows, of a group of each member: for
/// its limiter, its max_times_sampled and its times_sampled.
struct WindowsWithin {
  WindowRule window = {};
  int64_t count = 1;
  /// The anchors of an item, in order, are cut into `count` strata of equal size, and window j
  /// is uniform in the j-th. Over all j each anchor comes as often as without.
  bool stratified = false;
};

/// What becomes of an item that is larger than the token budget by itself.
enum class Oversized : uint8_t {
  kAlone = 0,  ///< It is a batch of its own.
  /// FailedPrecondition, naming it: until it is removed, or its priority 0. Nothing is drawn.
  kFail = 1,
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

/// How many rows of a batch a part has, in this order: fixed counts first, then those up to what is
/// available, and what is left is shared by probability, and else goes to the rest.
enum class ShareKind : uint8_t {
  kFixed = 0,  ///< `count` of each batch, which waits until they can be drawn.
  /// Each of the rows that are left is the part's with `probability`, by a random number of its
  /// own. Those of all parts are 1 together, or less where a part takes the rest.
  kProbability = 1,
  /// `count`, or as many as can be drawn: distinct items that there are, samples that the limiter
  /// admits, what is left of an epoch's pass; none of an empty priority table. With replacement,
  /// and without limits, always `count`, of however few items. The only share that an epoch may
  /// have, whose end no batch of several parts says. Batches that are drawn ahead at the end of a
  /// pass have no row of it: the next pass begins when the last of this one is handed over.
  kUpToAvailable = 2,
  kRest = 3,  ///< What is left; at most one part.
};

class PriorityTable;

/// One of the priority tables of a mixed sampler (Database::NewSampler).
struct SamplerPart {
  std::shared_ptr<PriorityTable> priority_table = {};
  ShareKind share = ShareKind::kRest;
  int64_t count = 0;       ///< Of fixed, and of up to available: 1…batch. Else 0.
  double probability = 0;  ///< Of probability: 0…1. Else 0.
};

/// Checked by NewSampler: InvalidArgument for a value that is not allowed.
struct SamplerOptions {
  /// Items of a batch: groups, too, and with `within` trajectories or groups. Where the selector
  /// gives distinct ones (SelectorKind), a batch waits until as many can be drawn. Of an epoch the
  /// last batch of a pass has what is left.
  int64_t batch = 64;
  /// Of an epoch: a pass ends without what is left when that is less than `batch`. It counts as
  /// covered. Not with several parts.
  bool drop_last = false;
  std::vector<View> views = {};
  std::optional<NStep> n_step = {};
  std::vector<RowDraw> row_draws = {};
  std::optional<WindowsWithin> within = {};
  /// Not 0: a batch has as many items as fit this many tokens, and at most `batch`. Tokens are the
  /// sum of the rows' lengths (Batch::lengths) packed, and padded the number of rows times the
  /// longest, where a window counts its extent's length. An item that does not fit opens the next
  /// batch: it stays reserved until then, and counts as drawn, and sampled, there. (Not so where
  /// the selector begins its order again with each batch, and counts no samples: fifo, lifo,
  /// heaps.) It is the sampler's own: one that is made later, after a reopen, too, begins without
  /// it. An item that is gone by then is left out. A batch that is not full waits for more: Next
  /// says after its deadline how much there is. Not of an epoch, nor with `within`: either is
  /// refused.
  int64_t tokens_max = 0;
  Oversized oversized = Oversized::kAlone;
  BatchLayout layout = BatchLayout::kPadded;
  /// Exponent β of the importance weights (n·P)^−β / max, P being the probability before the batch.
  /// Schaul et al., section 3.4. Where the selector has no weights they are 1.
  double beta = 0.4;
  /// That maximum. `kTable` may take a pass over the priority table after its smallest priority has
  /// gone. With `within` that of the batch alone: nobody counts the windows of the table.
  WeightMaximum weight_maximum = WeightMaximum::kBatch;
  /// Batches drawn ahead: batch i sees exactly the updates submitted before the hand-over of batch
  /// i − prefetch. 0: each batch is drawn by its own Next. Where there is nothing to draw in a
  /// batch's turn, the next call that finds something draws it. Where budgets.batch_bytes has no
  /// room for it then, the Next that would return it fails with ResourceExhausted, and the one
  /// after that draws as the first one did.
  int64_t prefetch = 0;
  /// An observer has its own seed, asks no limiter, and touches no counts, nor the log: but for the
  /// removal of a trajectory whose page it finds damaged.
  bool observer = false;
  /// Observers: the key of its draws (of part p of several: seed + p). Others: with `restart_draw`,
  /// sets the priority table's seed.
  uint64_t seed = 0;
  /// Begins again at this draw number, at most 2^62 (logged), not after the last one. (A batch that
  /// another sampler had drawn ahead takes it on behind its own number.)
  std::optional<uint64_t> restart_draw = {};
  /// The record of each hand-over also says what the batch shows: of every row trajectory, anchor,
  /// raw priority, probability and place in the draw, besides seed, draw number, the LSN that it
  /// was drawn at, and the time. `geardb log` shows it. What was drawn and not handed over is in no
  /// record. It costs 32 bytes of the log for each row; a batch for which one record does not take
  /// them is refused by Next. Not with `observer`, of which there is no record. Records are there
  /// as long as the log's segments: with the cold tier within about log_bytes_max of its end.
  bool audit = false;
  /// Says in these records whose they are, among several samplers: at most kNameLengthMax
  /// characters. Empty: it is not said.
  std::string name = {};
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
  /// exhausted, or none has begun. Corruption, once for each trajectory, naming it: a page that was
  /// drawn is damaged, and the trajectory was removed; or the file that has it is away, and the
  /// trajectory is not drawn until the next open. Others of the batch are dealt with, and named,
  /// too. The next call draws others. The hand-over is
  /// logged at Ack::kLog; where the log has no room for it by then, the call fails as an append
  /// does, and the batch waits for the next one. Draw numbers go on after the largest one handed
  /// over when a store is opened, and when the last sampler of the priority table (observers aside)
  /// is destroyed: the numbers above it that were drawn ahead are drawn again then, from what there
  /// is by then. With one sampler that is every batch prefetched and not handed over. With several,
  /// numbers below one that another has handed over are passed over for good; and while another
  /// lives, those of a destroyed sampler are not drawn again.
  Result<Batch> Next(std::optional<Deadline> deadline = std::nullopt);

  /// Changes β for the batches drawn from now on. InvalidArgument unless it is finite and at least
  /// 0.
  Status set_beta(double beta);
  const SamplerOptions& options() const;

  class Impl;  ///< Defined in engine/internal.

 private:
  friend class Database;
  friend class PriorityTable;
  explicit Sampler(std::unique_ptr<Impl> impl);
  /// See Database::NewSampler.
  static Result<std::unique_ptr<Sampler>> OfParts(std::span<const SamplerPart> parts,
                                                  const SamplerOptions& options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace geardb
