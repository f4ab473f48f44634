// Token budgets (SamplerOptions::tokens_max). What comes at random the model does not know, nor
// which item did not fit and waits for the next batch: it says what a batch may hold, and whether
// there is one.
#include <algorithm>

#include "tests/differential/runner.h"

namespace geardb::differential {
namespace {

/// What items take.
struct Tokens {
  int64_t items = 0, rows = 0, sum = 0, longest = 0;

  void Add(const Tokens& item) {
    items += item.items;
    rows += item.rows;
    sum += item.sum;
    longest = std::max(longest, item.longest);
  }
  int64_t count(const SamplerOptions& options) const {
    return options.layout == BatchLayout::kPacked ? sum : rows * longest;
  }
  /// Nothing more goes in, or it is not known yet.
  bool Fills(const SamplerOptions& options) const {
    return items >= options.batch || count(options) >= options.tokens_max;
  }
};

Tokens TokensOf(const SamplerOptions& options, const PlainTable& plain,
                const PlainPriority& priority, const ItemKey& key) {
  Tokens tokens;
  tokens.items = 1;
  for (const TrajectoryId id : priority.TrajectoriesOf(key)) {
    const PlainTable::Window window =
        plain.Place(priority.spec, plain.trajectories.at(id), key.second);
    const bool whole = options.layout == BatchLayout::kPadded && priority.windows();
    const int64_t steps = whole ? window.length : window.steps;
    tokens.Add({.rows = 1, .sum = steps, .longest = steps});
  }
  return tokens;
}

}  // namespace

std::set<StatusCode> Runner::CodesByTokens(const LiveSampler& sampler) const {
  const SamplerOptions& options = sampler.options;
  const LivePart& part = sampler.parts[0];
  const PlainTable& plain = part.table->plain;
  const PlainPriority& priority = plain.priorities[part.priority];
  if (!ColumnsAreThere(sampler)) return {StatusCode::kNotFound};
  if (!options.observer && !AdmitsRows(priority, 0)) return {StatusCode::kDeadlineExceeded};
  Tokens all;
  bool too_large = sampler.carries;
  const std::vector<ItemKey> drawable = DrawableItems(plain, priority);
  for (const ItemKey& key : drawable) {
    const Tokens item = TokensOf(options, plain, priority, key);
    too_large |= item.count(options) > options.tokens_max;
    all.Add(item);
  }
  const bool fills = priority.distinct() ? all.Fills(options) : !drawable.empty();
  std::set<StatusCode> codes;
  if (fills || sampler.carries) codes.insert(StatusCode::kOk);
  if (!fills) codes.insert(StatusCode::kDeadlineExceeded);
  if (too_large && options.oversized == Oversized::kFail) {
    codes.insert(StatusCode::kFailedPrecondition);
  }
  return codes;
}

bool Runner::NextByTokens(LiveSampler* sampler) {
  const LivePart& part = sampler->parts[0];
  PlainPriority& priority = part.table->plain.priorities[part.priority];
  PlainDraw drawn{.items = {0}, .numbers = {priority.next_ahead}};
  drawn.scales.push_back(part.table->priority_table(part.priority)->Stats().scale_shift);
  const std::set<StatusCode> expected = CodesByTokens(*sampler);
  auto batch = sampler->sampler->Next(Deadline::Now());
  const StatusCode code = batch.status().code();
  if (!SameCode("next", batch.status(), expected.contains(code) ? code : *expected.begin())) {
    return false;
  }
  int64_t* const reserved = &priority.counts.reserved;
  if (!batch.ok()) {
    // What has gone meanwhile waits no more.
    const auto stats = part.table->priority_table(part.priority)->Stats();
    const bool gone =
        sampler->carries && static_cast<int64_t>(stats.limiter.reserved) == *reserved - 1;
    if (gone && !sampler->options.observer) --*reserved;
    if (gone) sampler->carries = false;
    return false;
  }
  drawn.items[0] = priority.draws_groups() ? batch->group_count() : batch->size();
  const auto chances =
      Probabilities(priority, DrawableItems(part.table->plain, priority), drawn.scales[0]);
  const BatchRows rows = CompareBatch(*sampler, drawn, *batch);
  if (different()) return false;
  const bool carries = CompareTokens(*sampler, rows);
  if (!sampler->options.observer) {
    *reserved += drawn.items[0] - (sampler->carries ? 1 : 0) + (carries ? 1 : 0);
    ++priority.next_ahead;
  }
  sampler->carries = carries;
  sampler->carried_chances = chances;
  HandOver(sampler, drawn, rows, *batch);
  batch->Release();
  Remember();
  return !different();
}

/// As many items as fit. True: one more was drawn, and waits.
bool Runner::CompareTokens(const LiveSampler& sampler, const BatchRows& rows) {
  const SamplerOptions& options = sampler.options;
  const LivePart& part = sampler.parts[0];
  const PlainTable& plain = part.table->plain;
  const PlainPriority& priority = plain.priorities[part.priority];
  Tokens tokens;
  std::set<ItemKey> shown;
  for (const BatchRow& row : rows) {
    if (!row.begins_item) continue;
    tokens.Add(TokensOf(options, plain, priority, row.key));
    shown.insert(row.key);
  }
  Same("at most so many items", tokens.items <= options.batch, true);
  const bool alone = tokens.items == 1 && options.oversized == Oversized::kAlone;
  Same("at most so many tokens", alone || tokens.count(options) <= options.tokens_max, true);
  if (tokens.Fills(options)) return false;
  if (!priority.ordered()) return true;
  // The next one in the order, which no batch begins with for having been the next.
  std::vector<ItemKey> left = DrawableItems(plain, priority);
  std::erase_if(left, [&](const ItemKey& key) { return shown.contains(key); });
  const auto next = std::min_element(left.begin(), left.end(), [&](const auto& a, const auto& b) {
    return PlaceInOrder(priority, a) < PlaceInOrder(priority, b);
  });
  if (next == left.end()) {
    Differ("a batch that is not full", "has " + Printed(tokens.items) + " items");
    return false;
  }
  // Of those that came in one place of the order the model does not know which is the next.
  bool overflows = false;
  for (const ItemKey& key : left) {
    if (PlaceInOrder(priority, key) != PlaceInOrder(priority, *next)) continue;
    Tokens with = tokens;
    with.Add(TokensOf(options, plain, priority, key));
    overflows |= with.count(options) > options.tokens_max;
  }
  Same("the next item does not fit", overflows, true);
  return false;
}

}  // namespace geardb::differential
