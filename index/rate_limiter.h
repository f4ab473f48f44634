// RateLimiter: when items may be inserted into a priority table, and when they may be sampled.
// A state machine over counts: no clock, no thread, no memory of its own.
//
// Its terms: an *insert* is an item becoming drawable, a *sample* a delivered row. A draw reserves
// samples, the hand-over confirms them, and what is never handed over is cancelled. Reserved
// samples count as taken for whoever else wants to sample, and not for inserts: an insert waits for
// what was delivered.
//
// By the state's inserts I, samples S (confirmed), reserved R, deletes D, of which U were of items
// that nobody had sampled; the size is I - D:
//   min size      sample(n):  I - D ≥ min_size
//   ratio         with the error E = I · samples_per_insert - S:
//                 sample(n):  I - D ≥ min_size and E - R - n ≥ min_error
//                 insert(n):  I - D < min_size or E + n · samples_per_insert ≤ max_error
//                 where min_error and max_error are min_size · samples_per_insert ∓ error_buffer.
//                 For n = 1 these are the conditions of Reverb's SampleToInsertRatio (Cassirer et
//                 al., "Reverb: a framework for experience replay", 2021). An insert of many that
//                 begins below min_size is admitted whole.
//   queue, stack  with the items waiting W = I - U - S:
//                 sample(n):  W - R ≥ n
//                 insert(n):  W + n ≤ capacity
//                 They differ in the selector beside them. An item is sampled once; one that is
//                 deleted before gives its place back.
// E is computed in f64: exact below 2^53, for a samples_per_insert with few binary digits.
//
// Invariants: what a side did when allowed leaves E - R ≥ min_error, W ≥ R and W ≤ capacity,
// whatever is confirmed or cancelled afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "base/status.h"

namespace geardb::index {

/// In stored schemas: frozen.
enum class LimiterKind : uint8_t { kMinSize = 0, kRatio = 1, kQueue = 2, kStack = 3 };

struct RateLimiterSpec {
  LimiterKind kind = LimiterKind::kMinSize;
  uint64_t min_size = 1;          ///< kMinSize, kRatio: items that must be there to sample; ≥ 1.
  double samples_per_insert = 1;  ///< kRatio: finite, > 0.
  /// kRatio: how far E may be from min_size · samples_per_insert; at least max(1,
  /// samples_per_insert), or one side could wait for the other for ever.
  double error_buffer = 0;
  uint64_t capacity = 0;  ///< kQueue, kStack: items that may wait; ≥ 1.

  friend bool operator==(const RateLimiterSpec&, const RateLimiterSpec&) = default;
};

/// InvalidArgument says which number is wrong, and why nothing would move with it.
Status ValidateRateLimiter(const RateLimiterSpec& spec);

/// What a spec must let through beside each other.
struct LimiterBatches {
  uint64_t inserts = 1;    ///< Items that one insert brings, at most.
  uint64_t samples = 1;    ///< Rows that one draw delivers, at most.
  uint64_t items_max = 0;  ///< Items that the table can hold; 0: any number.
};
/// InvalidArgument where inserts and draws of these sizes could end up waiting for each other, or
/// for what cannot be: a min_size above items_max, a batch larger than the capacity or than twice
/// the error_buffer leaves room for. With an OK, some side may always move that only does so when
/// allowed, if all that is reserved is confirmed or cancelled in the end.
Status CheckLimiterBatches(const RateLimiterSpec& spec, const LimiterBatches& batches);

/// All that a limiter remembers. Fixed layout: it is logged.
struct RateLimiterState {
  uint64_t inserts = 0;
  uint64_t samples = 0;   ///< Confirmed.
  uint64_t reserved = 0;  ///< Drawn, not yet confirmed or cancelled.
  uint64_t deletes = 0;
  uint64_t deleted_unsampled = 0;  ///< Of those, items that had never been sampled.
  // E and W count from here: 0, and moved by Configure.
  uint64_t inserts_from = 0;
  uint64_t samples_from = 0;

  friend bool operator==(const RateLimiterState&, const RateLimiterState&) = default;
};
static_assert(sizeof(RateLimiterState) == 56 && std::is_trivially_copyable_v<RateLimiterState>);

/// Which side waits.
enum class LimiterSide : uint8_t { kInsert, kSample };

/// Why a side may not move by `wanted`, and what would let it.
struct LimiterBlock {
  enum class Reason : uint8_t {
    kNone,          ///< It may.
    kMinSize,       ///< Samples wait for `needed` more items.
    kFewInserts,    ///< Samples wait for `needed` more inserts.
    kManyReserved,  ///< Samples wait for `needed` cancels, or for inserts in their place.
    kFewSamples,    ///< Inserts wait for `needed` more samples.
    kNever,         ///< Nothing that the other side may do is enough: `wanted` is too large.
  };
  Reason reason = Reason::kNone;
  uint64_t wanted = 0;
  uint64_t needed = 0;
  std::string text = {};  ///< "" where the reason is kNone.
};

/// Copied by value. Not thread-safe: the owner orders it.
class RateLimiter {
 public:
  RateLimiter() = default;
  /// `spec` is valid.
  explicit RateLimiter(const RateLimiterSpec& spec, const RateLimiterState& state = {})
      : spec_(spec), state_(state) {}

  const RateLimiterSpec& spec() const { return spec_; }
  const RateLimiterState& state() const { return state_; }
  /// Items that are there.
  uint64_t size() const { return state_.inserts - state_.deletes; }

  /// Whether n ≥ 1 items may be inserted, n rows sampled, now. Of none: always.
  bool CanInsert(uint64_t n) const;
  bool CanSample(uint64_t n) const;

  // What happened. None asks whether it was allowed: a replay follows the log.

  void Insert(uint64_t n) { state_.inserts += n; }
  void Reserve(uint64_t n) { state_.reserved += n; }
  /// n ≤ reserved.
  void Confirm(uint64_t n);
  void Cancel(uint64_t n);
  /// Items leave, at most size() of them; `unsampled` of them had never been sampled. One that is
  /// reserved is not counted there yet: a cancel of it is followed by a Delete of {0, 1}.
  struct Deleted {
    uint64_t items = 0;
    uint64_t unsampled = 0;
  };
  void Delete(const Deleted& deleted);

  /// Other limits from now on; what is reserved stays so. A ratio with another samples_per_insert
  /// or min_size, or where there was none, begins as if what is there, up to min_size, had just
  /// been inserted; a queue where there was none, as if nothing of what is there had been sampled
  /// (so Delete counts those as unsampled, too). InvalidArgument, with no change, for a spec that
  /// is not valid.
  Status Configure(const RateLimiterSpec& spec);

  /// Why `side` may not move by `n`.
  LimiterBlock Blocked(LimiterSide side, uint64_t n) const;

 private:
  bool is_queue() const {
    return spec_.kind == LimiterKind::kQueue || spec_.kind == LimiterKind::kStack;
  }
  double min_error() const { return Centre() - spec_.error_buffer; }
  double max_error() const { return Centre() + spec_.error_buffer; }
  double Centre() const { return spec_.samples_per_insert * static_cast<double>(spec_.min_size); }
  double Error() const;
  /// Items that wait in a queue, reserved ones included.
  int64_t Waiting() const;

  LimiterBlock BlockedSample(uint64_t n) const;
  LimiterBlock BlockedInsert(uint64_t n) const;
  std::string Describe() const;

  RateLimiterSpec spec_;
  RateLimiterState state_;
};
static_assert(std::is_trivially_copyable_v<RateLimiter>);

}  // namespace geardb::index
