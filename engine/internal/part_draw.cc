#include "engine/internal/part_draw.h"

#include <algorithm>

#include "engine/internal/group_draw.h"
#include "engine/internal/table_stats.h"
#include "engine/internal/within.h"

namespace geardb::engine {
namespace {

/// Rows of a draw, until it is known which of them are wanted. In buffers of `rows`.
class DrawAttempt {
 public:
  DrawAttempt(const PartRequest& request, PartRows* rows)
      : request_(request),
        priority_(&request.source->priority()),
        leaves_(rows->drawn_leaves),
        probabilities_(rows->drawn_probabilities) {}

  const std::vector<uint64_t>& leaves() const { return leaves_; }
  double probability(size_t i) const { return probabilities_[i]; }

  /// The first `rows` rows of the draw; there are as many (CanDraw).
  void Draw(uint64_t rows) {
    leaves_.resize(rows);
    probabilities_.resize(rows);
    const index::DrawRequest request{.seed = request_.key.seed,
                                     .draw_number = request_.key.draw_number};
    if (request_.options->observer) {
      GEARDB_CHECK(priority_->selector().Draw(request, leaves_, probabilities_) == rows);
    } else {
      priority_->DrawReserved(request, leaves_, probabilities_);
    }
  }
  /// Gives back what row i has reserved.
  void Cancel(size_t i) {
    if (request_.options->observer) return;
    const size_t held = priority_->reserves_items() ? 1 : 0;
    priority_->CancelReserved(1, {&leaves_[i], held}, priority_->epoch_mark());
  }
  void CancelAll() {
    for (size_t i = 0; i < leaves_.size(); ++i) Cancel(i);
  }
  /// Hands over what row i has reserved.
  void Keep(size_t i, DrawReservation* reservation) const {
    if (request_.options->observer) return;
    ++reservation->rows;
    if (!priority_->names_items()) return;
    const bool held = priority_->reserves_items();
    (held ? reservation->items : reservation->uncounted).emplace_back(leaves_[i], GenerationOf(i));
    reservation->mark = priority_->epoch_mark();
  }
  /// Hands over what all rows have reserved.
  void KeepAll(DrawReservation* reservation) const {
    if (priority_->names_items()) {
      for (size_t i = 0; i < leaves_.size(); ++i) Keep(i, reservation);
    } else if (!request_.options->observer) {
      reservation->rows += leaves_.size();
    }
  }
  uint32_t GenerationOf(size_t i) const {
    uint32_t generation = 0;
    GEARDB_CHECK(request_.part->state->GenerationOfLeaf(*priority_, leaves_[i], &generation));
    return generation;
  }
  DrawnLeaf LeafAt(size_t i) const {
    DrawnLeaf leaf{.leaf = leaves_[i], .part = request_.number, .key = request_.key};
    leaf.key.row = static_cast<uint32_t>(i);
    return leaf;
  }

 private:
  const PartRequest& request_;
  PriorityState* const priority_;
  std::vector<uint64_t>& leaves_;
  std::vector<double>& probabilities_;
};

/// Rows that the selector can give.
uint64_t RowsThere(const PriorityState& priority, uint64_t most) {
  const index::Selector& selector = priority.selector();
  if (selector.distinct() || priority.bounded()) return std::min(most, selector.drawable());
  return selector.total() > 0 ? most : 0;
}

bool Admits(const PartRequest& request, const index::RateLimiter& limiter, uint64_t rows) {
  return request.options->observer || limiter.CanSample(rows);
}

Status NotEnoughFor(const PartRequest& request, uint64_t rows) {
  return NotEnough(
      *request.source,
      {.rows = rows, .observer = request.options->observer, .explain = request.explain});
}

/// As many rows as are asked for, all of which are wanted.
Status DrawPlain(const PartRequest& request, PartRows* rows) {
  PriorityState& priority = request.source->priority();
  if (!priority.CanDraw(request.rows) || !Admits(request, priority.limiter(), request.rows)) {
    return NotEnoughFor(request, request.rows);
  }
  DrawAttempt attempt(request, rows);
  attempt.Draw(request.rows);
  attempt.KeepAll(&rows->reservation);
  if (request.part->groups != nullptr) {
    for (size_t i = 0; i < request.rows; ++i) {
      AddItem(*request.part, attempt.LeafAt(i), attempt.probability(i), rows);
    }
    return Status::Ok();
  }
  // What all have alike at once: a row that is written in parts and copied as a whole waits for
  // these parts.
  rows->leaves.assign(request.rows, {.part = request.number, .key = request.key});
  for (size_t i = 0; i < request.rows; ++i) {
    rows->leaves[i].leaf = attempt.leaves()[i];
    rows->leaves[i].key.row = static_cast<uint32_t>(i);
  }
  rows->probabilities.swap(rows->drawn_probabilities);
  return Status::Ok();
}

// ---- Windows within trajectories and groups.

/// Rows of a draw are looked at until `rows` of them have an anchor, or this many were.
uint64_t TriesMax(uint64_t rows) { return std::max<uint64_t>(64 * rows, 65'536); }

Status DrawWithin(const PartRequest& request, PartRows* rows) {
  PriorityState& priority = request.source->priority();
  const WindowsWithin& within = *request.options->within;
  const index::RateLimiter limiter = priority.limiter();
  if (!Admits(request, limiter, request.rows)) return NotEnoughFor(request, request.rows);
  const uint64_t there = RowsThere(priority, TriesMax(request.rows));
  uint64_t most = there;
  DrawAttempt attempt(request, rows);
  std::vector<ItemAnchors> anchors;
  std::vector<size_t> kept;
  for (uint64_t tries = request.rows;; tries *= 2) {
    tries = std::min(tries, most);
    if (tries < request.rows) return NotEnoughFor(request, request.rows);
    attempt.Draw(tries);
    anchors.clear();
    kept.clear();
    for (size_t i = 0; i < tries && kept.size() < request.rows; ++i) {
      ItemAnchors found(*request.part, attempt.leaves()[i]);
      if (found.count() == 0) continue;
      anchors.push_back(std::move(found));
      kept.push_back(i);
    }
    if (kept.size() == request.rows) break;
    attempt.CancelAll();
    // With replacement the first rows may miss one of few items, as often as these have places.
    const bool again = most == there && priority.bounded() && !priority.selector().distinct();
    if (tries == most && again) {
      const uint64_t tries_max = TriesMax(request.rows);
      most = request.options->observer ? tries_max : priority.PlacesLeft(tries_max);
    }
    if (tries < most) continue;
    return Status::DeadlineExceeded(request.source->Name(), ": of ", tries,
                                    request.part->groups != nullptr ? " groups" : " trajectories",
                                    " drawn for a batch of ", request.rows, " only ", kept.size(),
                                    " have a row that a window within may stand at");
  }
  size_t next = 0;
  for (size_t i = 0; i < attempt.leaves().size(); ++i) {
    if (next == kept.size() || kept[next] != i) {
      attempt.Cancel(i);
      continue;
    }
    attempt.Keep(i, &rows->reservation);
    const ItemAnchors& found = anchors[next++];
    for (int64_t j = 0; j < within.count; ++j) {
      DrawnLeaf leaf = attempt.LeafAt(i);
      leaf.key.row = static_cast<uint32_t>(static_cast<int64_t>(i) * within.count + j);
      const int64_t at = DrawAnchor(leaf.key, found.count(), j, within.count, within.stratified);
      std::tie(leaf.slot, leaf.row) = found.at(at);
      leaf.begins_group = j == 0;
      rows->leaves.push_back(leaf);
      rows->probabilities.push_back(attempt.probability(i) / static_cast<double>(found.count()));
    }
  }
  return Status::Ok();
}

// ---- Token budgets.

/// What a batch holds so far.
class TokenCount {
 public:
  explicit TokenCount(const SamplerOptions* options) : options_(options) {}

  uint64_t items() const { return items_; }
  int64_t tokens() const { return tokens_; }
  /// With one more item.
  int64_t TokensWith(const ItemTokens& item) const {
    if (options_->layout == BatchLayout::kPacked) return tokens_ + item.sum;
    return std::max(longest_, item.longest) * (rows_ + item.rows);
  }
  void Add(const ItemTokens& item) {
    tokens_ = TokensWith(item);
    longest_ = std::max(longest_, item.longest);
    rows_ += item.rows;
    ++items_;
  }
  bool Fits(const ItemTokens& item) const {
    return items_ == 0 || TokensWith(item) <= options_->tokens_max;
  }
  bool full() const {
    return tokens_ >= options_->tokens_max || items_ >= static_cast<uint64_t>(options_->batch);
  }

 private:
  const SamplerOptions* options_;
  uint64_t items_ = 0;
  int64_t rows_ = 0;
  int64_t tokens_ = 0;
  int64_t longest_ = 0;
};

/// What an item takes of the budget: padded windows take their extent's length each.
ItemTokens TokensOf(const PartRequest& request, uint64_t leaf) {
  if (request.part->groups != nullptr) return GroupTokens(*request.part, leaf);
  const bool padded = request.options->layout == BatchLayout::kPadded;
  const int64_t tokens = padded && request.part->rule != nullptr ? request.part->rule->extent.length
                                                                 : StepsOf(*request.part, leaf);
  return {.rows = 1, .sum = tokens, .longest = tokens};
}

Status CheckOversized(const PartRequest& request, uint64_t leaf, const ItemTokens& item) {
  const SamplerOptions& options = *request.options;
  const int64_t tokens = TokenCount(&options).TokensWith(item);
  if (tokens <= options.tokens_max || options.oversized != Oversized::kFail) return Status::Ok();
  return Status::FailedPrecondition(
      request.source->Name(), ": an item of trajectory ", TrajectoryOf(*request.part, leaf),
      request.part->groups != nullptr ? " (a group)" : "", " has ", tokens,
      " steps; the sampler's tokens_max is ", options.tokens_max,
      " (remove it, set its priority to 0, or let oversized be kAlone)");
}

/// What becomes of the rows of an attempt.
struct TokenCut {
  std::vector<size_t> kept = {};
  std::optional<size_t> overflow = {};
  bool filled = false;
};

Status CutAtBudget(const PartRequest& request, const DrawAttempt& attempt, TokenCount* count,
                   TokenCut* cut) {
  const bool distinct = request.source->priority().selector().distinct();
  for (size_t i = 0; i < attempt.leaves().size() && !count->full(); ++i) {
    const uint64_t leaf = attempt.leaves()[i];
    if (distinct && request.carried != nullptr && request.carried->leaf.leaf == leaf) continue;
    const ItemTokens item = TokensOf(request, leaf);
    GEARDB_RETURN_IF_ERROR(CheckOversized(request, leaf, item));
    if (!count->Fits(item)) {
      cut->overflow = i;
      cut->filled = true;
      return Status::Ok();
    }
    count->Add(item);
    cut->kept.push_back(i);
  }
  cut->filled = count->full();
  return Status::Ok();
}

Status DrawTokens(const PartRequest& request, PartRows* rows) {
  PriorityState& priority = request.source->priority();
  const SamplerOptions& options = *request.options;
  index::RateLimiter limiter = priority.limiter();  // As if nothing had been carried over.
  TokenCount begun(&options);
  if (request.carried != nullptr) {
    const uint64_t leaf = request.carried->leaf.leaf;
    const ItemTokens item = TokensOf(request, leaf);
    GEARDB_RETURN_IF_ERROR(CheckOversized(request, leaf, item));  // A group may have grown.
    limiter.Cancel(request.carried->reservation.rows);
    begun.Add(item);
  }
  // No item is too large before one may be drawn: it may have left by then.
  const auto fewest = std::max<decltype(begun.items())>(begun.items(), 1);
  if (!Admits(request, limiter, fewest)) return NotEnoughFor(request, 1);
  // One more: the carried item may come again, and is passed over.
  const uint64_t most = RowsThere(priority, request.rows + 1);
  DrawAttempt attempt(request, rows);
  TokenCount count = begun;
  TokenCut cut{.filled = begun.full()};
  for (uint64_t tries = 16; !cut.filled; tries *= 2) {
    tries = std::min(tries, most);
    attempt.Draw(tries);
    count = begun;
    cut = {};
    const Status status = CutAtBudget(request, attempt, &count, &cut);
    if (status.ok() && cut.filled && Admits(request, limiter, count.items())) break;
    attempt.CancelAll();
    GEARDB_RETURN_IF_ERROR(status);
    if (cut.filled) return NotEnoughFor(request, std::max<size_t>(cut.kept.size(), 1));
    if (tries < most) continue;
    if (count.items() == 0) return NotEnoughFor(request, 1);
    std::string why;
    if (request.explain) why = WhyUndrawable(*request.source->state(), priority);
    return Status::DeadlineExceeded(request.source->Name(), " holds ", count.items(),
                                    " items that can be drawn, of ", count.tokens(),
                                    " tokens; the batch takes ", options.tokens_max, ", or ",
                                    options.batch, " items", why.empty() ? "" : ": ", why);
  }
  if (request.carried != nullptr) {
    AddItem(*request.part, request.carried->leaf, request.carried->probability, rows);
  }
  // An order that begins again with each batch has nothing to carry over.
  const bool starts_over = OrderOf(request.source->items.selector) && !priority.bounded();
  size_t next = 0;
  for (size_t i = 0; i < attempt.leaves().size(); ++i) {
    if (next < cut.kept.size() && cut.kept[next] == i) {
      ++next;
      attempt.Keep(i, &rows->reservation);
      AddItem(*request.part, attempt.LeafAt(i), attempt.probability(i), rows);
    } else if (cut.overflow == i && !starts_over) {
      rows->carried = CarriedItem{.leaf = attempt.LeafAt(i),
                                  .generation = attempt.GenerationOf(i),
                                  .probability = attempt.probability(i)};
      attempt.Keep(i, &rows->carried->reservation);
    } else {
      attempt.Cancel(i);
    }
  }
  return Status::Ok();
}

}  // namespace

void PartRows::Clear() {
  draw_number = 0;
  leaves.clear();
  probabilities.clear();
  reservation.rows = 0;
  reservation.items.clear();
  reservation.uncounted.clear();
  reservation.mark = {};
  sampled.clear();
  carried.reset();
  audit = {};
  drawable = 0;
  smallest_probability = 0;
  drawn_leaves.clear();
  drawn_probabilities.clear();
}

std::string SamplerSource::Name() const {
  return "priority table '" + priority_table->spec.name + "' of table '" +
         priority_table->table->layout().spec().name + "'";
}

Status DrawPart(const PartRequest& request, PartRows* rows) {
  index::PrioritizedSelector* const selector = request.source->priority().prioritized();
  if (selector != nullptr) {  // As of before the draw, which may hide what it takes.
    const bool of_table = request.options->weight_maximum == WeightMaximum::kTable;
    rows->drawable = selector->drawable();
    rows->smallest_probability = of_table ? selector->SmallestProbability() : 0;
  }
  rows->draw_number = request.key.draw_number;
  if (request.options->tokens_max > 0) return DrawTokens(request, rows);
  if (request.rows == 0) return Status::Ok();
  return request.part->within ? DrawWithin(request, rows) : DrawPlain(request, rows);
}

uint64_t AvailableRows(const SamplerSource& source, bool observer, uint64_t most) {
  const PriorityState& priority = source.priority();
  uint64_t low = 0;
  uint64_t high = RowsThere(priority, most);
  if (observer) return high;
  // What admits some rows admits fewer.
  while (low < high) {
    const uint64_t middle = high - (high - low) / 2;
    if (priority.limiter().CanSample(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

Status NotEnough(const SamplerSource& source, const RowsWanted& wanted) {
  const PriorityState& priority = source.priority();
  const index::Selector& selector = priority.selector();
  const index::LimiterBlock block = priority.BlockedSample(wanted.rows);
  if (!wanted.observer && block.reason == index::LimiterBlock::Reason::kNever) {
    return Status::InvalidArgument(source.Name(), ": ", block.text);
  }
  GEARDB_RETURN_IF_ERROR(EpochStatus(source));
  std::string why;
  if (!wanted.observer && NamesLimiter(priority) && !block.text.empty()) {
    if (wanted.explain) why = WhyNoItems(*source.state(), priority);
    return Status::DeadlineExceeded(source.Name(), " waits: ", block.text, why,
                                    WaitingGroups(priority));
  }
  if (wanted.explain) why = WhyUndrawable(*source.state(), priority);
  if (!why.empty()) why = ": " + why;
  why += WaitingGroups(priority);
  if ((selector.distinct() || priority.bounded()) && selector.drawable() > 0) {
    return Status::DeadlineExceeded(source.Name(), " holds ", selector.drawable(),
                                    " items that can be drawn; the batch takes ", wanted.rows,
                                    " distinct ones", why);
  }
  return Status::DeadlineExceeded(source.Name(), " has nothing to draw", why);
}

}  // namespace geardb::engine
