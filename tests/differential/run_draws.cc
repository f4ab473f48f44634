// Samplers: what they may draw, and what a hand-over does.
#include <algorithm>

#include "tests/differential/runner.h"

namespace geardb::differential {
namespace {

constexpr size_t kSamplersMax = 4;
constexpr size_t kBatchesKept = 6;

}  // namespace

void Runner::Sample(const Step& step) {
  const auto [live, number] = PriorityAt(step.numbers[0]);
  if (live == nullptr) return;
  if (samplers_.size() >= kSamplersMax) {
    Cancel(&samplers_.front());
    samplers_.erase(samplers_.begin());
  }
  const PlainPriority& priority = live->plain.priorities[number];
  LiveSampler sampler{.parts = {{live, number, ShareKind::kRest, 0}}};
  SamplerOptions& options = sampler.options;
  Choices choices(step.numbers[1]);
  const bool epoch = priority.spec.selector == SelectorKind::kEpoch;
  options.batch = 1 + static_cast<int64_t>(choices.Below(4));
  options.layout = static_cast<BatchLayout>(choices.Below(2));
  options.drop_last = choices.OneIn(3) && epoch && !priority.spec.epoch.remove_covered;
  options.observer = choices.OneIn(6) && !epoch;
  options.seed = choices.Below(100);
  const auto ahead = static_cast<int64_t>(choices.Below(3));
  // Which items are drawn ahead at random, the model does not know: where it matters, none are.
  if (!epoch && priority.times_max() == 0 && !options.observer) options.prefetch = ahead;
  options.audit = choices.OneIn(5) && !options.observer;
  options.timeout_ms = 0;
  if (!priority.windows() && !epoch && choices.OneIn(3)) {
    WindowsWithin& within = options.within.emplace();
    within.window = WindowKind(live->plain.spec.stream, &choices);
    within.count = 1 + static_cast<int64_t>(choices.Below(3));
    within.stratified = choices.OneIn(2);
  }
  const bool counts = priority.times_max() > 0 || epoch;
  const bool plain = !options.within && options.prefetch == 0;
  if (plain && !counts && priority.spec.limiter.kind == LimiterKind::kMinSize && choices.OneIn(3)) {
    options.batch *= 2;
    options.tokens_max = 1 + static_cast<int64_t>(choices.Below(12));
    options.oversized = static_cast<Oversized>(choices.OneIn(4));
  } else if (plain) {
    options.weight_maximum = static_cast<WeightMaximum>(choices.Below(3));
  }
  MakeViews(sampler.parts[0], Choices(step.numbers[2]), &sampler);
  MakeNStep(sampler.parts[0], Choices(step.numbers[3]), &sampler);
  const bool promised = Promises(live->plain, sampler.RuleOf(priority.spec), options);
  auto made = live->priority_table(number)->NewSampler(options);
  SameCode("sampler", made.status(), promised ? StatusCode::kOk : StatusCode::kInvalidArgument);
  if (different() || !promised) return;
  sampler.sampler = std::move(*made);
  samplers_.push_back(std::move(sampler));
}

void Runner::SampleMixed(const Step& step) {
  const auto [first, first_number] = PriorityAt(step.numbers[0]);
  const auto [second, second_number] = PriorityAt(step.numbers[1]);
  if (first == nullptr || (first == second && first_number == second_number)) return;
  Choices choices(step.numbers[2]);
  LiveSampler sampler;
  const ShareKind share = choices.OneIn(2) ? ShareKind::kUpToAvailable : ShareKind::kFixed;
  sampler.parts = {{first, first_number, share, 1 + static_cast<int64_t>(choices.Below(3))},
                   {second, second_number, ShareKind::kRest, 0}};
  const auto [third, third_number] = PriorityAt(step.numbers[3]);
  const bool is_other = (third != first || third_number != first_number) &&
                        (third != second || third_number != second_number);
  if (choices.OneIn(2) && is_other) {
    sampler.parts.insert(sampler.parts.begin() + 1, {third, third_number, ShareKind::kFixed, 1});
  }
  for (const LivePart& part : sampler.parts) {
    const PlainPriority& priority = part.table->plain.priorities[part.priority];
    const PlainColumn* const column = part.table->plain.FindColumn("act");
    // The rows of one part are those of a mixed batch; an epoch takes no other share.
    if (priority.spec.selector == SelectorKind::kEpoch || column == nullptr) return;
    if (priority.spec.item != ItemKind::kWindow) return;
    sampler.columns.push_back(column->number);
  }
  sampler.options.batch = 5;
  sampler.options.layout = BatchLayout::kPacked;
  sampler.options.timeout_ms = 0;
  sampler.options.views = {{.column = "act", .rows = {.count = 1}}};
  std::vector<SamplerPart> parts;
  for (const LivePart& part : sampler.parts) {
    parts.push_back({.priority_table = part.table->priority_table(part.priority),
                     .share = part.share,
                     .count = part.count});
  }
  if (samplers_.size() >= kSamplersMax) {
    Cancel(&samplers_.front());
    samplers_.erase(samplers_.begin());
  }
  auto made = database_->NewSampler(parts, sampler.options);
  if (!SameCode("sampler", made.status(), StatusCode::kOk)) return;
  sampler.sampler = std::move(*made);
  samplers_.push_back(std::move(sampler));
}

void Runner::StopSampling(const Step& step) {
  if (samplers_.empty()) return;
  const size_t at = step.numbers[0] % samplers_.size();
  Cancel(&samplers_[at]);
  samplers_.erase(samplers_.begin() + static_cast<ptrdiff_t>(at));
}

/// What it has drawn ahead is free again; once no sampler is left, its numbers are, too.
void Runner::Cancel(LiveSampler* sampler) {
  for (const PlainDraw& drawn : sampler->ahead) {
    for (size_t p = 0; p < sampler->parts.size(); ++p) {
      const LivePart& part = sampler->parts[p];
      part.table->plain.priorities[part.priority].counts.reserved -= drawn.items[p];
    }
  }
  sampler->ahead.clear();
  if (sampler->options.observer) return;
  if (sampler->carries) {
    --sampler->parts[0].table->plain.priorities[sampler->parts[0].priority].counts.reserved;
  }
  for (const LivePart& part : sampler->parts) {
    bool other = false;
    for (const LiveSampler& living : samplers_) {
      for (const LivePart& of : living.parts) {
        other |= &living != sampler && !living.options.observer && of.table == part.table &&
                 of.priority == part.priority;
      }
    }
    PlainPriority& priority = part.table->plain.priorities[part.priority];
    if (!other) priority.next_ahead = priority.next_draw;
  }
}

/// All samplers (of a table).
void Runner::StopAll(const LiveTable* of) {
  for (size_t i = samplers_.size(); i-- > 0;) {
    const bool uses = std::any_of(samplers_[i].parts.begin(), samplers_[i].parts.end(),
                                  [&](const LivePart& part) { return part.table == of; });
    if (of != nullptr && !uses) continue;
    Cancel(&samplers_[i]);
    samplers_.erase(samplers_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void Runner::SetBeta(const Step& step) {
  if (samplers_.empty()) return;
  LiveSampler& sampler = samplers_[step.numbers[0] % samplers_.size()];
  SameCode("negative", sampler.sampler->set_beta(-1), StatusCode::kInvalidArgument);
  if (!sampler.ahead.empty()) return;
  const double beta = static_cast<double>(step.numbers[1] % 5) / 4;
  SameCode("beta", sampler.sampler->set_beta(beta), StatusCode::kOk);
  sampler.options.beta = beta;
}

/// A view's column that was dropped is not found, also where another one has its name now.
bool Runner::ColumnsAreThere(const LiveSampler& sampler) const {
  for (size_t i = 0; i < sampler.columns.size(); ++i) {
    bool found = false;
    const size_t part = sampler.parts.size() > 1 ? i : 0;
    for (const PlainColumn& column : sampler.parts[part].table->plain.columns) {
      found |= column.number == sampler.columns[i];
    }
    if (!found) return false;
  }
  return true;
}

const PlainTable& Runner::TableOf(const LiveSampler& sampler, const PlainDraw& drawn,
                                  size_t part) const {
  return drawn.tables.empty() ? sampler.parts[part].table->plain : drawn.tables[part];
}

/// How many rows each part has of the next batch.
std::vector<int64_t> Runner::Shares(const LiveSampler& sampler) const {
  int64_t left = sampler.options.batch;
  std::vector<int64_t> rows;
  for (size_t p = 0; p < sampler.parts.size(); ++p) {
    const LivePart& part = sampler.parts[p];
    const PlainPriority& priority = part.table->plain.priorities[part.priority];
    int64_t count = part.share == ShareKind::kRest ? left : part.count;
    if (part.share == ShareKind::kUpToAvailable) {
      while (count > 0 && RefusalOfPart(sampler, p, count) != StatusCode::kOk) --count;
    }
    if (sampler.parts.size() == 1 && priority.spec.selector == SelectorKind::kEpoch &&
        !sampler.options.drop_last) {
      count = std::min(count, static_cast<int64_t>(priority.epoch.remaining.size()));
    }
    rows.push_back(count);
    left -= count;
  }
  return rows;
}

/// A rest that is smaller than a batch counts as covered, where the sampler says so.
void Runner::LeaveOutRest(LiveSampler* sampler) {
  if (!sampler->options.drop_last) return;
  PlainPriority& priority = sampler->parts[0].table->plain.priorities[sampler->parts[0].priority];
  const auto batch = static_cast<size_t>(sampler->options.batch);
  while (!priority.epoch_over() && priority.epoch.remaining.size() < batch) {
    const uint64_t pass = priority.epoch.pass;
    EndPass(&priority);
    if (priority.epoch.pass == pass) return;
  }
}

/// OK, or how a batch of so many items of a part is refused.
StatusCode Runner::RefusalOfPart(const LiveSampler& sampler, size_t number, int64_t items) const {
  const LivePart& part = sampler.parts[number];
  const PlainTable& plain = part.table->plain;
  PlainPriority priority = plain.priorities[part.priority];
  if (sampler.options.observer) {  // It asks no limiter; a queue's items still come once.
    priority.spec.max_times_sampled = priority.times_max();
    priority.spec.limiter = {.min_size = 0};
  }
  if (items == 0 && sampler.parts.size() > 1) return StatusCode::kOk;
  const StatusCode code = RefusalOf(plain, priority, items);
  if (code != StatusCode::kOk || !sampler.options.within) return code;
  const PriorityTableSpec rule = sampler.RuleOf(priority.spec);
  const bool counts = priority.times_max() > 0 && !sampler.options.observer;
  int64_t rows = 0;  // That those with an anchor may be in.
  for (const ItemKey& key : DrawableItems(plain, priority)) {
    if (plain.AnchorsWithin(rule, priority, key).empty()) continue;
    const PlainItem& item = priority.items.at(key);
    const int64_t left = int64_t{priority.times_max()} - item.sampled - item.reserved;
    rows += priority.distinct() ? 1 : counts ? left : items;
  }
  return rows >= items ? StatusCode::kOk : StatusCode::kDeadlineExceeded;
}

StatusCode Runner::Draw(LiveSampler* sampler) {
  PlainDraw drawn{.items = Shares(*sampler)};
  for (size_t p = 0; p < sampler->parts.size(); ++p) {
    const StatusCode code = RefusalOfPart(*sampler, p, drawn.items[p]);
    if (code != StatusCode::kOk) return code;
  }
  for (size_t p = 0; p < sampler->parts.size(); ++p) {
    const LivePart& part = sampler->parts[p];
    PlainPriority& priority = part.table->plain.priorities[part.priority];
    drawn.scales.push_back(part.table->priority_table(part.priority)->Stats().scale_shift);
    drawn.numbers.push_back(priority.next_ahead);
    if (sampler->options.observer) continue;
    priority.counts.reserved += drawn.items[p];
    ++priority.next_ahead;
  }
  if (sampler->options.prefetch > 0) {
    for (const LivePart& part : sampler->parts) drawn.tables.push_back(part.table->plain);
  }
  sampler->ahead.push_back(std::move(drawn));
  return StatusCode::kOk;
}

void Runner::Next(const Step& step) {
  if (samplers_.empty()) return;
  LiveSampler& sampler = samplers_[step.numbers[0] % samplers_.size()];
  for (uint64_t more = step.numbers[1] % 4; NextBatch(&sampler) && more > 0; --more) {
  }
}

bool Runner::NextBatch(LiveSampler* sampler) {
  if (sampler->options.tokens_max > 0) return NextByTokens(sampler);
  StatusCode expected = StatusCode::kOk;
  const bool there = ColumnsAreThere(*sampler);
  if (there) LeaveOutRest(sampler);
  const auto depth = static_cast<size_t>(std::max<int64_t>(sampler->options.prefetch, 1));
  while (there && sampler->ahead.size() < depth && expected == StatusCode::kOk) {
    expected = Draw(sampler);
  }
  auto batch = sampler->sampler->Next(Deadline::Now());
  if (!there) expected = StatusCode::kNotFound;
  if (sampler->ahead.empty()) {
    SameCode("next", batch.status(), expected);
    return false;
  }
  if (!SameCode("next", batch.status(), StatusCode::kOk)) return false;
  const PlainDraw drawn = std::move(sampler->ahead.front());
  sampler->ahead.pop_front();
  const BatchRows rows = CompareBatch(*sampler, drawn, *batch);
  if (different()) return false;
  HandOver(sampler, drawn, rows, *batch);
  if (sampler->options.prefetch > 0 && there) Draw(sampler);
  batch->Release();
  Remember();
  return true;
}

void Runner::HandOver(LiveSampler* sampler, const PlainDraw& drawn, const BatchRows& rows,
                      const Batch& batch) {
  std::map<LiveTable*, std::set<TrajectoryId>> shown;
  std::map<size_t, std::set<ItemKey>> drawable;  // Groups that were, by part.
  for (size_t p = 0; p < sampler->parts.size(); ++p) {
    const LivePart& part = sampler->parts[p];
    PlainTable& plain = part.table->plain;
    PlainPriority& priority = plain.priorities[part.priority];
    const PlainPriority& of_draw = TableOf(*sampler, drawn, p).priorities[part.priority];
    KeptBatch kept{.table = part.table, .priority = part.priority};
    kept.within = sampler->options.within.has_value();
    for (size_t at = 0; at < rows.size(); ++at) {
      if (rows[at].part != p) continue;
      kept.handles.push_back(batch.handles()[at]);
      kept.keys.push_back(rows[at].key);
      kept.lengths.push_back(batch.lengths()[at]);
      ++result_.counts.drawn[std::to_string(static_cast<int>(priority.spec.selector))];
      if (sampler->options.observer || !rows[at].begins_item) continue;
      if (priority.takes_when_ready() && !priority.has_ended(rows[at].key)) {
        drawable[p].insert(rows[at].key);
      }
      for (const TrajectoryId id : of_draw.TrajectoriesOf(rows[at].key)) {
        priority.Show(id);
        const auto trajectory = plain.trajectories.find(id);
        if (trajectory != plain.trajectories.end()) ++trajectory->second.times_sampled;
      }
      const auto item = priority.items.find(rows[at].key);
      const bool counts = priority.times_max() > 0 && item != priority.items.end();
      if (counts) ++item->second.sampled;
      for (const TrajectoryId id : priority.TrajectoriesOf(rows[at].key)) {
        shown[part.table].insert(id);
      }
    }
    if (!sampler->options.observer) {
      priority.counts.reserved -= drawn.items[p];
      priority.counts.samples += drawn.items[p];
      if (drawn.items[p] > 0 || p == 0) {
        priority.next_draw = std::max(priority.next_draw, drawn.numbers[p] + 1);
      }
      if (priority.spec.selector == SelectorKind::kEpoch) {
        Cover(&priority, {kept.keys.begin(), kept.keys.end()});
      }
    }
    if (kept.keys.empty()) continue;
    const auto count_as = [&](const char* what) { result_.counts.shown[what] += kept.keys.size(); };
    if (priority.draws_groups()) count_as("groups");
    if (kept.within) count_as("windows within");
    if (sampler->options.tokens_max > 0) count_as("token budgets");
    if (plain.FindColumn("text") != nullptr) count_as("beside values");
    batches_.push_back(std::move(kept));
    if (batches_.size() > kBatchesKept) batches_.pop_front();
  }
  for (auto& [p, groups] : drawable) {
    PlainTable& plain = sampler->parts[p].table->plain;
    PlainPriority& priority = plain.priorities[sampler->parts[p].priority];
    std::erase_if(groups, [&](const ItemKey& key) { return !priority.has_ended(key); });
    CountRegrouped(plain.Regroup(&priority, groups));
  }
  for (const auto& [live, ids] : shown) live->plain.Finish(ids);
}

}  // namespace geardb::differential
