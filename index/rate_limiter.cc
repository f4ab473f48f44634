#include "index/rate_limiter.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/concatenate.h"

namespace geardb::index {
namespace {

/// The least integer from 1 that is not below `value`; 2^63 for larger ones.
uint64_t CeilOf(double value) {
  if (value <= 1) return 1;  // Also what was rounded away.
  return value >= 0x1p63 ? uint64_t{1} << 63 : static_cast<uint64_t>(std::ceil(value));
}

bool IsQueue(LimiterKind kind) {
  return kind == LimiterKind::kQueue || kind == LimiterKind::kStack;
}

std::string_view NameOf(LimiterKind kind) {
  return kind == LimiterKind::kQueue ? "queue" : "stack";
}

Status ValidateRatio(const RateLimiterSpec& spec) {
  if (!std::isfinite(spec.samples_per_insert) || spec.samples_per_insert <= 0) {
    return Status::InvalidArgument("samples_per_insert is ", spec.samples_per_insert,
                                   "; expected a finite number above 0");
  }
  const double least = std::max(1.0, spec.samples_per_insert);
  if (std::isfinite(spec.error_buffer) && spec.error_buffer >= least) return Status::Ok();
  return Status::InvalidArgument(
      "error_buffer is ", spec.error_buffer, " with samples_per_insert ", spec.samples_per_insert,
      "; expected a finite number of at least ", least,
      ": with less a single insert or sample may not fit, and each side waits for the other");
}

}  // namespace

Status ValidateRateLimiter(const RateLimiterSpec& spec) {
  switch (spec.kind) {
    case LimiterKind::kMinSize:
    case LimiterKind::kRatio:
      if (spec.min_size < 1) {
        return Status::InvalidArgument(
            "min_size is 0; expected at least 1: nothing can be sampled "
            "from nothing");
      }
      return spec.kind == LimiterKind::kRatio ? ValidateRatio(spec) : Status::Ok();
    case LimiterKind::kQueue:
    case LimiterKind::kStack:
      if (spec.capacity >= 1) return Status::Ok();
      return Status::InvalidArgument("the capacity of a ", NameOf(spec.kind),
                                     " is 0; expected at least 1: nothing could be inserted");
  }
  return Status::InvalidArgument("a rate limiter of the unknown kind ",
                                 static_cast<int>(spec.kind));
}

Status CheckLimiterBatches(const RateLimiterSpec& spec, const LimiterBatches& batches) {
  GEARDB_RETURN_IF_ERROR(ValidateRateLimiter(spec));
  const uint64_t items_max = batches.items_max == 0 ? UINT64_MAX : batches.items_max;
  if (IsQueue(spec.kind)) {
    const uint64_t samples_max = std::min(spec.capacity, items_max);
    if (batches.samples > samples_max) {
      return Status::InvalidArgument("a ", NameOf(spec.kind), " of capacity ", spec.capacity,
                                     batches.items_max == 0 ? "" : " over at most ",
                                     batches.items_max == 0 ? "" : std::to_string(items_max),
                                     batches.items_max == 0 ? "" : " items", " never has the ",
                                     batches.samples, " of one draw");
    }
    // An insert waits with more than capacity - inserts, a draw with less than samples.
    if (batches.inserts <= spec.capacity &&
        batches.samples <= spec.capacity - batches.inserts + 1) {
      return Status::Ok();
    }
    return Status::InvalidArgument(
        "a ", NameOf(spec.kind), " of capacity ", spec.capacity, " with inserts of ",
        batches.inserts, " and draws of ", batches.samples,
        ": each side may wait for the other; expected a capacity of at least ",
        batches.inserts + batches.samples - 1);
  }
  if (spec.min_size > items_max) {
    return Status::InvalidArgument("min_size is ", spec.min_size, ", and the table holds at most ",
                                   items_max, " items: nothing can ever be sampled");
  }
  if (spec.kind == LimiterKind::kMinSize) return Status::Ok();
  // An insert waits with an error above max_error - inserts · samples_per_insert, a draw with one
  // below min_error + samples.
  const double both = static_cast<double>(batches.inserts) * spec.samples_per_insert +
                      static_cast<double>(batches.samples);
  if (2 * spec.error_buffer >= both) return Status::Ok();
  return Status::InvalidArgument(
      "error_buffer is ", spec.error_buffer, " with samples_per_insert ", spec.samples_per_insert,
      ", inserts of ", batches.inserts, " and draws of ", batches.samples,
      ": each side may wait for the other; expected at least ", both / 2);
}

// ---- The conditions.

double RateLimiter::Error() const {
  return static_cast<double>(state_.inserts - state_.inserts_from) * spec_.samples_per_insert -
         static_cast<double>(state_.samples - state_.samples_from);
}

int64_t RateLimiter::Waiting() const {
  return static_cast<int64_t>((state_.inserts - state_.inserts_from) - state_.deleted_unsampled -
                              (state_.samples - state_.samples_from));
}

bool RateLimiter::CanInsert(uint64_t n) const {
  if (n == 0 || spec_.kind == LimiterKind::kMinSize) return true;
  if (is_queue()) {
    return n <= spec_.capacity && Waiting() <= static_cast<int64_t>(spec_.capacity - n);
  }
  if (size() < spec_.min_size) return true;
  return Error() + static_cast<double>(n) * spec_.samples_per_insert <= max_error();
}

bool RateLimiter::CanSample(uint64_t n) const {
  if (n == 0) return true;
  if (is_queue()) {
    const int64_t free = Waiting() - static_cast<int64_t>(state_.reserved);
    return free > 0 && n <= static_cast<uint64_t>(free);
  }
  if (size() < spec_.min_size) return false;
  if (spec_.kind == LimiterKind::kMinSize) return true;
  return Error() - static_cast<double>(state_.reserved) - static_cast<double>(n) >= min_error();
}

// ---- What happens.

void RateLimiter::Confirm(uint64_t n) {
  GEARDB_CHECK(n <= state_.reserved);
  state_.reserved -= n;
  state_.samples += n;
}

void RateLimiter::Cancel(uint64_t n) {
  GEARDB_CHECK(n <= state_.reserved);
  state_.reserved -= n;
}

void RateLimiter::Delete(const Deleted& deleted) {
  GEARDB_CHECK(deleted.items <= size());
  state_.deletes += deleted.items;
  state_.deleted_unsampled += deleted.unsampled;
}

Status RateLimiter::Configure(const RateLimiterSpec& spec) {
  GEARDB_RETURN_IF_ERROR(ValidateRateLimiter(spec));
  const bool queue = IsQueue(spec.kind);
  const bool goes_on = queue ? is_queue()
                             : spec_.kind == spec.kind && spec_.min_size == spec.min_size &&
                                   spec_.samples_per_insert == spec.samples_per_insert;
  if (!goes_on) {
    const uint64_t there =
        queue ? size() + state_.deleted_unsampled : std::min(size(), spec.min_size);
    state_.inserts_from = state_.inserts - there;
    state_.samples_from = state_.samples;
  }
  spec_ = spec;
  return Status::Ok();
}

// ---- Why not.

std::string RateLimiter::Describe() const {
  const std::string counts =
      Concatenate(": ", state_.inserts - state_.inserts_from, " inserts, ",
                  state_.samples - state_.samples_from, " samples",
                  state_.reserved > 0 ? Concatenate(", ", state_.reserved, " reserved") : "");
  if (is_queue()) {
    return Concatenate(
        NameOf(spec_.kind), " of capacity ", spec_.capacity, ": ", Waiting(), " items wait",
        state_.reserved > 0 ? ", of which " : "",
        state_.reserved > 0 ? std::to_string(state_.reserved) + " are reserved" : "");
  }
  if (spec_.kind == LimiterKind::kMinSize || size() < spec_.min_size) {
    return Concatenate("min size ", spec_.min_size, ": ", size(), " items");
  }
  return Concatenate("samples per insert ", spec_.samples_per_insert, " with error buffer ",
                     spec_.error_buffer, " from min size ", spec_.min_size, counts);
}

LimiterBlock RateLimiter::BlockedSample(uint64_t n) const {
  using Reason = LimiterBlock::Reason;
  if (!is_queue() && size() < spec_.min_size) {
    return {.reason = Reason::kMinSize, .needed = spec_.min_size - size()};
  }
  RateLimiter without = *this;
  without.state_.reserved = 0;
  const bool reserved = without.CanSample(n);
  if (is_queue()) {
    if (n > spec_.capacity) return {.reason = Reason::kNever};
    const int64_t free = Waiting() - static_cast<int64_t>(state_.reserved);
    return {.reason = reserved ? Reason::kManyReserved : Reason::kFewInserts,
            .needed = static_cast<uint64_t>(static_cast<int64_t>(n) - free)};
  }
  if (static_cast<double>(n) > 2 * spec_.error_buffer) return {.reason = Reason::kNever};
  const double lacking =
      min_error() + static_cast<double>(n) + static_cast<double>(state_.reserved) - Error();
  if (reserved) return {.reason = Reason::kManyReserved, .needed = CeilOf(lacking)};
  return {.reason = Reason::kFewInserts, .needed = CeilOf(lacking / spec_.samples_per_insert)};
}

LimiterBlock RateLimiter::BlockedInsert(uint64_t n) const {
  using Reason = LimiterBlock::Reason;
  if (is_queue()) {
    if (n > spec_.capacity) return {.reason = Reason::kNever};
    return {.reason = Reason::kFewSamples,
            .needed = static_cast<uint64_t>(Waiting() - static_cast<int64_t>(spec_.capacity - n))};
  }
  const double more = static_cast<double>(n) * spec_.samples_per_insert;
  if (more > 2 * spec_.error_buffer) return {.reason = Reason::kNever};
  return {.reason = Reason::kFewSamples, .needed = CeilOf(Error() + more - max_error())};
}

LimiterBlock RateLimiter::Blocked(LimiterSide side, uint64_t n) const {
  using Reason = LimiterBlock::Reason;
  const bool insert = side == LimiterSide::kInsert;
  if (insert ? CanInsert(n) : CanSample(n)) return {.wanted = n};
  LimiterBlock block = insert ? BlockedInsert(n) : BlockedSample(n);
  block.wanted = n;
  const std::string_view verb = insert ? " to insert " : " to sample ";
  const bool one = block.needed == 1;
  std::string_view what;
  switch (block.reason) {
    case Reason::kNone:
    case Reason::kNever:
      block.text = Concatenate(Describe(), "; ", n, insert ? " inserts" : " samples",
                               " at once are never allowed");
      return block;
    case Reason::kMinSize:
      what = one ? " more item is needed" : " more items are needed";
      break;
    case Reason::kFewInserts:
      what = one ? " more insert is needed" : " more inserts are needed";
      break;
    case Reason::kManyReserved:
      what = one ? " reserved sample less is needed" : " reserved samples less are needed";
      break;
    case Reason::kFewSamples:
      what = one ? " more sample is needed" : " more samples are needed";
      break;
  }
  block.text = Concatenate(Describe(), "; ", block.needed, what, verb, n);
  return block;
}

}  // namespace geardb::index
