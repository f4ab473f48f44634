// Sampler::Impl: what a batch is, drawn and weighed under the mutexes of its tables.

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/internal/audit.h"
#include "engine/internal/group_draw.h"
#include "engine/internal/sampler_impl.h"
#include "index/importance_weights.h"

namespace geardb {

namespace fb = engine::fb;

namespace {

/// Nothing of the table has changed since it was reserved, and nobody is told: whoever waits would
/// find what it found before.
void GiveBack(const engine::SamplerSource& source, engine::DrawReservation* reservation) {
  if (reservation->rows == 0) return;
  std::vector<uint64_t> leaves;
  for (const fb::Handed& item : reservation->items) leaves.push_back(item.leaf());
  source.priority().CancelReserved(reservation->rows, leaves, reservation->mark);
  *reservation = {};
}

// Frozen: what a part draws follows from it. 2^64 over the golden ratio.
constexpr uint64_t kPartSeeds = 0x9E37'79B9'7F4A'7C15;

}  // namespace

engine::DrawKey Sampler::Impl::KeyOf(size_t part) const {
  if (options_.observer) return {options_.seed + part, observer_draw_};
  const engine::PriorityState& priority = sources_[part].priority();
  // Parts whose priority tables have the same seed, or seeds that follow one another, would show
  // the same places.
  return {priority.seed + part * kPartSeeds, priority.next_ahead};
}

Status Sampler::Impl::CheckHandOverFits() const {
  if (options_.observer) return Status::Ok();
  const auto windows = static_cast<uint64_t>(options_.within ? options_.within->count : 1);
  const uint64_t besides = 4096 + (options_.audit ? sources_.size() * engine::AuditBytesMax(0) : 0);
  uint64_t each_once = besides;  // Without items the record has each trajectory once.
  for (const engine::SamplerSource& source : sources_) {
    each_once += source.state()->trajectories().count() * sizeof(fb::Sampled);
  }
  for (const engine::SamplerSource& source : sources_) {
    const bool named = source.priority().names_items();
    const engine::DrawGroups* const groups = source.priority().groups();
    const bool is_short = each_once <= database()->log->record_bytes_max();
    if (!named && !options_.audit && is_short) continue;
    const uint64_t trajectories = groups != nullptr ? groups->spec().count : 1;
    const uint64_t rows = options_.within ? windows : trajectories;
    const uint64_t row_bytes = trajectories * sizeof(fb::Sampled) +
                               (named ? sizeof(fb::Handed) : 0) +
                               (options_.audit ? rows * sizeof(fb::AuditedRow) : 0);
    const uint64_t record_max = database()->log->record_bytes_max();
    const uint64_t rows_max = record_max > besides ? (record_max - besides) / row_bytes : 0;
    if (static_cast<uint64_t>(options_.batch) <= rows_max) continue;
    return Status::InvalidArgument("priority table '", source.priority_table->spec.name, "' ",
                                   named            ? "counts which items are sampled"
                                   : options_.audit ? "is audited"
                                                    : "counts how often trajectories are sampled",
                                   ": a batch of ", options_.batch,
                                   " does not fit a record of this log; at most ", rows_max,
                                   " do (a quarter of its ring)");
  }
  return Status::Ok();
}

void Sampler::Impl::DivideRows(uint64_t rows, std::vector<uint64_t>* shares) const {
  // By thresholds of 64 random bits, one part after the other; what is left is the rest's.
  std::vector<std::pair<uint64_t, size_t>> below;
  double sum = 0;
  size_t rest = sources_.size();
  for (size_t p = 0; p < sources_.size(); ++p) {
    const SamplerPart& share = sources_[p].share;
    if (share.share == ShareKind::kRest) rest = p;
    if (share.share != ShareKind::kProbability) continue;
    sum += share.probability;
    const double scaled = std::ldexp(sum, 64);
    below.emplace_back(scaled < 0x1p64 ? static_cast<uint64_t>(scaled) : UINT64_MAX, p);
  }
  // Without a rest the probabilities are 1 together.
  if (rest == sources_.size() && !below.empty()) rest = below.back().second;
  if (below.empty()) {
    if (rest < sources_.size()) (*shares)[rest] += rows;
    return;
  }
  const engine::DrawKey key = KeyOf(0);
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t random =
        PhiloxRandom64(key.seed, key.draw_number, static_cast<uint32_t>(row), PhiloxPurpose::kPart);
    const auto found = std::find_if(below.begin(), below.end(),
                                    [random](const auto& part) { return random < part.first; });
    ++(*shares)[found != below.end() ? found->second : rest];
  }
}

Status Sampler::Impl::ShareRows(std::vector<uint64_t>* rows) const {
  const auto batch = static_cast<uint64_t>(options_.batch);
  rows->assign(sources_.size(), 0);
  if (sources_.size() == 1) {
    (*rows)[0] = RowsNext();
    if ((*rows)[0] > 0) return Status::Ok();
    return engine::NotEnough(sources_[0],
                             {.rows = batch, .observer = options_.observer, .explain = explains_});
  }
  uint64_t left = batch;
  for (size_t p = 0; p < sources_.size(); ++p) {
    if (sources_[p].share.share != ShareKind::kFixed) continue;
    (*rows)[p] = static_cast<uint64_t>(sources_[p].share.count);
    left -= (*rows)[p];  // NewSampler has seen that they fit.
  }
  for (size_t p = 0; p < sources_.size(); ++p) {
    const SamplerPart& share = sources_[p].share;
    if (share.share != ShareKind::kUpToAvailable) continue;
    const uint64_t most = std::min(left, static_cast<uint64_t>(share.count));
    (*rows)[p] = engine::AvailableRows(sources_[p], options_.observer, most);
    left -= (*rows)[p];
  }
  DivideRows(left, rows);
  return Status::Ok();
}

void Sampler::Impl::CheckCarried() {
  if (!carried_) return;
  engine::TableState& state = *sources_[0].state();
  const engine::PriorityState& priority = sources_[0].priority();
  const uint64_t leaf = carried_->leaf.leaf;
  uint32_t generation = 0;
  const index::PrioritizedSelector* const weights = priority.prioritized();
  const bool there = state.GenerationOfLeaf(priority, leaf, &generation) &&
                     generation == carried_->generation && priority.selector().Contains(leaf) &&
                     (priority.filter() == nullptr || !priority.filter()->IsFiltered(leaf)) &&
                     (weights == nullptr || weights->WeightOf(weights->raw_priority(leaf)) > 0) &&
                     !state.IsUnreadableItem(priority, leaf);
  // A hand-over names all items of its batch, or none: other limits may be in force by now.
  const engine::DrawReservation& held = carried_->reservation;
  const bool is_named = !held.items.empty() || !held.uncounted.empty();
  if (there && (options_.observer || is_named == priority.names_items())) return;
  state.CancelDraw(sources_[0].priority_table->number, &carried_->reservation);
  carried_.reset();
}

Status Sampler::Impl::DrawParts(Drawn* batch) {
  std::vector<uint64_t> rows;
  GEARDB_RETURN_IF_ERROR(ShareRows(&rows));
  batch->parts.resize(sources_.size());
  for (engine::PartRows& part : batch->parts) part.Clear();
  for (size_t p = 0; p < sources_.size(); ++p) {
    const engine::PartRequest request{.source = &sources_[p],
                                      .part = &batch_parts_[p],
                                      .number = static_cast<uint32_t>(p),
                                      .options = &options_,
                                      .key = KeyOf(p),
                                      .rows = rows[p],
                                      .explain = explains_,
                                      .carried = carried_ ? &*carried_ : nullptr};
    GEARDB_RETURN_IF_ERROR(engine::DrawPart(request, &batch->parts[p]));
  }
  return Status::Ok();
}

Status Sampler::Impl::BuildBatch(Drawn* batch) GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  engine::DatabaseCore& database = *this->database();
  Batch::Rep& rep = *batch->rep;
  std::vector<engine::DrawnLeaf> joined;
  std::span<const engine::DrawnLeaf> leaves = batch->parts[0].leaves;
  if (batch->parts.size() == 1) {
    rep.probabilities.swap(batch->parts[0].probabilities);
  } else {
    rep.probabilities.clear();
    for (const engine::PartRows& part : batch->parts) {
      rep.probabilities.insert(rep.probabilities.end(), part.probabilities.begin(),
                               part.probabilities.end());
      joined.insert(joined.end(), part.leaves.begin(), part.leaves.end());
    }
    leaves = joined;
  }
  GEARDB_RETURN_IF_ERROR(batch->builder->Charge(leaves.size(), &rep));
  rep.draw_number = batch->parts[0].draw_number;
  batch->guard = database.epochs.Enter();
  rep.lsn = database.recovery.end;
  if (database.log) {
    // The last record of a table may have been applied, and not yet be published.
    rep.lsn = database.log->published();
    for (const engine::TableState* table : tables_) rep.lsn = std::max(rep.lsn, table->applied_end);
  }
  return batch->builder->Build(leaves, &rep);
}

void Sampler::Impl::WeighBatch(Drawn* batch) const {
  Batch::Rep& rep = *batch->rep;
  rep.weights.assign(rep.probabilities.size(), 1.0f);
  const bool mixed = sources_.size() > 1;
  size_t begin = 0;
  for (size_t p = 0; p < sources_.size(); ++p) {
    const engine::PartRows& part = batch->parts[p];
    const size_t count = part.leaves.size();
    const SelectorKind selector = sources_[p].items.selector;
    const bool weighs =
        HasWeights(selector) || (options_.within && selector == SelectorKind::kUniform);
    if (weighs) {
      index::ImportanceWeights({.beta = options_.beta,
                                .maximum = mixed ? WeightMaximum::kNone : options_.weight_maximum,
                                .drawable = part.drawable,
                                .smallest_probability = part.smallest_probability},
                               std::span(rep.probabilities).subspan(begin, count),
                               std::span(rep.weights).subspan(begin, count));
    }
    begin += count;
  }
  if (!mixed || options_.weight_maximum == WeightMaximum::kNone) return;
  const float largest = *std::max_element(rep.weights.begin(), rep.weights.end());
  const bool fits = std::isfinite(largest) && largest > 0;
  if (!fits) return WeighByLogarithms(batch);
  for (float& weight : rep.weights) weight /= largest;
}

// Of weights (n p)^-beta that no f32 holds: over the largest of them.
void Sampler::Impl::WeighByLogarithms(Drawn* batch) const {
  Batch::Rep& rep = *batch->rep;
  std::vector<double> logarithms;
  for (size_t p = 0; p < sources_.size(); ++p) {
    const bool weighs = HasWeights(sources_[p].items.selector);
    for (size_t i = 0; i < batch->parts[p].leaves.size(); ++i) {
      const double probability = rep.probabilities[logarithms.size()];
      const double product = static_cast<double>(batch->parts[p].drawable) * probability;
      logarithms.push_back(weighs ? -options_.beta * std::log(product) : 0.0);
    }
  }
  const double largest = *std::max_element(logarithms.begin(), logarithms.end());
  for (size_t i = 0; i < logarithms.size(); ++i) {
    rep.weights[i] = static_cast<float>(std::exp(logarithms[i] - largest));
  }
}

void Sampler::Impl::CollectSampled(Drawn* batch, size_t part, size_t begin, size_t end) {
  // Each trajectory once, in the order of its first row: a small hash table of what was seen costs
  // a tenth of sorting the rows.
  const std::span items = std::span(batch->builder->items()).subspan(begin, end - begin);
  const engine::DrawGroups* const groups = sources_[part].priority().groups();
  std::vector<Slot> members;
  if (groups != nullptr) members = engine::MembersOf(*groups, batch->parts[part].leaves);
  const size_t counted_max = std::max(items.size(), members.size());
  const auto bits = static_cast<uint32_t>(std::bit_width(counted_max)) + 1;
  const uint32_t mask = (uint32_t{1} << bits) - 1;
  seen_.assign(size_t{mask} + 1, 0);
  counted_.clear();
  // A drawn group is one sample of each of its members, whatever it shows; the windows of a drawn
  // trajectory are one sample of it.
  const size_t stride = options_.within ? static_cast<size_t>(options_.within->count) : 1;
  const size_t drawn = groups != nullptr ? members.size() : (items.size() + stride - 1) / stride;
  for (size_t i = 0; i < drawn; ++i) {
    const Slot slot = groups != nullptr ? members[i] : items[i * stride].slot;
    uint32_t at = (slot * 0x9E3779B1u) >> (32 - bits);
    while (seen_[at] != 0 && counted_[seen_[at] - 1].first != slot) at = (at + 1) & mask;
    if (seen_[at] == 0) {
      counted_.emplace_back(slot, 0);
      seen_[at] = static_cast<uint32_t>(counted_.size());
    }
    ++counted_[seen_[at] - 1].second;
  }
  std::vector<fb::Sampled>& sampled = batch->parts[part].sampled;
  sampled.reserve(counted_.size());
  const engine::TableState& state = *sources_[part].state();
  for (const auto& [slot, count] : counted_) {
    sampled.emplace_back(slot, state.trajectories().record(slot).generation, count);
  }
}

void Sampler::Impl::AuditPart(Drawn* batch, size_t part, size_t begin) const {
  engine::PartRows& rows = batch->parts[part];
  const Batch::Rep& rep = *batch->rep;
  const size_t count = rows.leaves.size();
  rows.audit =
      engine::AuditDraw({.source = &sources_[part],
                         .leaves = rows.leaves,
                         .ids = std::span(rep.ids).subspan(begin, count),
                         .anchors = std::span(rep.anchors).subspan(begin, count),
                         .probabilities = std::span(rep.probabilities).subspan(begin, count)});
}

void Sampler::Impl::TakeNumbers() GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {
  if (options_.observer) {
    ++observer_draw_;
    return;
  }
  for (const engine::SamplerSource& source : sources_) ++source.priority().next_ahead;
}

Status Sampler::Impl::DrawLocked(Drawn* batch) {
  for (const engine::SamplerSource& source : sources_) {
    const engine::TableLayout& now = source.state()->layout();
    if (&now != source.layout) GEARDB_RETURN_IF_ERROR(source.plan.CheckColumns(now));
  }
  GEARDB_RETURN_IF_ERROR(CheckHandOverFits());
  // By tokens, and of groups, the batch is known by what is drawn.
  if (options_.tokens_max == 0 && sources_[0].priority().groups() == nullptr) {
    const auto windows = static_cast<size_t>(options_.within ? options_.within->count : 1);
    GEARDB_RETURN_IF_ERROR(batch->builder->Charge(RowsNext() * windows, batch->rep.get()));
  }
  CheckCarried();
  Status status = DrawParts(batch);
  const bool drawn = status.ok();
  if (drawn) status = BuildBatch(batch);
  if (!status.ok()) {
    // As with a page that cannot be gathered, the next is another draw, which need not show it.
    const bool is_read =
        status.code() == StatusCode::kCorruption || status.code() == StatusCode::kIoError;
    if (drawn && is_read && batch->builder->waits().failed() != nullptr) TakeNumbers();
    for (size_t p = 0; p < batch->parts.size(); ++p) {
      GiveBack(sources_[p], &batch->parts[p].reservation);
      auto& carried = batch->parts[p].carried;
      if (carried) GiveBack(sources_[p], &carried->reservation);
    }
    return status;
  }
  WeighBatch(batch);
  if (carried_) {
    engine::DrawReservation& all = batch->parts[0].reservation;
    all.rows += carried_->reservation.rows;
    const engine::DrawReservation& carried = carried_->reservation;
    all.items.insert(all.items.end(), carried.items.begin(), carried.items.end());
    all.uncounted.insert(all.uncounted.end(), carried.uncounted.begin(), carried.uncounted.end());
  }
  carried_ = std::exchange(batch->parts[0].carried, std::nullopt);
  TakeNumbers();
  if (options_.observer) return Status::Ok();
  size_t begin = 0;
  for (size_t p = 0; p < sources_.size(); ++p) {
    const size_t end = begin + batch->parts[p].leaves.size();
    CollectSampled(batch, p, begin, end);
    if (options_.audit) AuditPart(batch, p, begin);
    begin = end;
  }
  return Status::Ok();
}

}  // namespace geardb
