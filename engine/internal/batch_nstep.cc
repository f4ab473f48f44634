// Outputs of a batch that sum rewards: n-step returns, and the rows that these bootstrap from.

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "engine/internal/batch_build.h"
#include "engine/internal/gather_rows.h"
#include "kernels/nstep.h"

namespace geardb::engine {

/// The rows whose rewards the items' returns sum, one item's behind another's.
struct BatchBuilder::NStepRows {
  enum Value : uint8_t { kReward, kDiscount, kLifeLoss, kValues };

  std::vector<uint64_t> firsts;  ///< Of each item, and the count of all.
  std::array<OutputBuffer, kValues> buffers;

  /// Of an item's first row; where there is no such column, not to be read.
  const float* Of(size_t item, Value value) const {
    return reinterpret_cast<const float*>(buffers[value].get()) + firsts[item];
  }
  uint64_t CountOf(size_t item) const { return firsts[item + 1] - firsts[item]; }
};

/// Where an item's results go.
struct BatchBuilder::NStepOutputs {
  float* returns;
  float* discounts;
  int64_t* bootstraps;
  float* masks;
};

namespace {

/// The rows whose rewards an item's returns sum.
std::pair<int64_t, int64_t> NStepRange(const DrawnItem& item) {
  const CompiledNStep& n_step = *item.part->plan->n_step;
  const int64_t begin = item.window.anchor;
  const int64_t wanted = n_step.every_row ? item.window.steps - 1 + n_step.n : n_step.n;
  return {begin, std::min(begin + wanted, item.episode.steps_end)};
}

}  // namespace

Status BatchBuilder::ReadNStepRows(NStepRows* rows) {
  rows->firsts.assign(1, 0);
  for (const DrawnItem& item : items_) {
    const auto [begin, end] = NStepRange(item);
    rows->firsts.push_back(rows->firsts.back() +
                           static_cast<uint64_t>(std::max<int64_t>(end - begin, 0)));
  }
  RunBuilder runs;
  const size_t before = waits_.size();
  for (size_t value = 0; value < NStepRows::kValues; ++value) {
    for (const BatchPart& part : parts_) {
      const CompiledNStep& n_step = *part.plan->n_step;
      const std::optional<size_t> columns[] = {n_step.reward, n_step.discount, n_step.life_loss};
      if (!columns[value]) continue;
      OutputBuffer& buffer = rows->buffers[value];
      GEARDB_RETURN_IF_ERROR(buffer.Resize(rows->firsts.back() * sizeof(float) + 8, budget_));
      const StepColumn& column = part.state->layout().step_columns()[*columns[value]];
      const bool is_float = column.dtype == DType::kF32;
      runs.BeginOutput({.destination = buffer.get(),
                        .convert = is_float ? GatherConvert::kCopy : GatherConvert::kToF32,
                        .stored = column.dtype});
      for (size_t i = 0; i < items_.size(); ++i) {
        if (items_[i].part != &part) continue;
        const auto [begin, end] = NStepRange(items_[i]);
        RowCursor cursor = items_[i].cursor();
        CopyRows(&cursor, {*columns[value], column.row_bytes, begin, end},
                 {rows->firsts[i] * sizeof(float), sizeof(float)}, &runs, &waits_);
      }
    }
  }
  if (runs.output_count() == 0) return Status::Ok();
  return GatherRowsHeld(&runs, &waits_, parts_[0].state->arena(), before);
}

Status BatchBuilder::BuildNStep(Batch::Rep* rep, size_t first_output) {
  const CompiledNStep& n_step = *plan().n_step;
  int64_t longest = 1;
  const bool packed = layout_ == BatchLayout::kPacked;
  std::vector<int64_t> lengths, cu_seqlens;
  int64_t total = 0;
  for (const DrawnItem& item : items_) {
    if (n_step.every_row) longest = std::max(longest, item.rule->extent.length);
    lengths.push_back(n_step.every_row ? item.window.steps : 1);
    if (packed) cu_seqlens.push_back(total);
    total += lengths.back();
  }
  if (packed) cu_seqlens.push_back(total);
  const auto n = static_cast<int64_t>(items_.size());
  const int64_t entries = packed ? total : n * longest;
  for (size_t o = 0; o < std::size(kNStepNames); ++o) {
    BatchOutput& output = rep->outputs[first_output + o];
    output.dtype = o == 2 ? DType::kI64 : DType::kF32;
    output.shape = packed || !n_step.every_row ? Shape({entries}) : Shape({n, longest});
    output.lengths = lengths;
    output.cu_seqlens = cu_seqlens;
    const uint64_t bytes = static_cast<uint64_t>(entries) * DTypeBytes(output.dtype);
    GEARDB_RETURN_IF_ERROR(output.buffer.Resize(bytes + 8, budget_));
    std::memset(output.buffer.get(), 0, bytes);
  }
  auto* returns = reinterpret_cast<float*>(rep->outputs[first_output].buffer.get());
  auto* discounts = reinterpret_cast<float*>(rep->outputs[first_output + 1].buffer.get());
  auto* bootstraps = reinterpret_cast<int64_t*>(rep->outputs[first_output + 2].buffer.get());
  auto* masks = reinterpret_cast<float*>(rep->outputs[first_output + 3].buffer.get());

  NStepRows rows;
  GEARDB_RETURN_IF_ERROR(ReadNStepRows(&rows));
  bootstrap_rows_.clear();
  bootstrap_first_.assign(1, 0);
  for (size_t i = 0; i < items_.size(); ++i) {
    const int64_t at = packed ? cu_seqlens[i] : static_cast<int64_t>(i) * longest;
    SumNSteps(rows, i, lengths[i], {returns + at, discounts + at, bootstraps + at, masks + at});
    bootstrap_first_.push_back(bootstrap_rows_.size());
  }
  return Status::Ok();
}

void BatchBuilder::SumNSteps(const NStepRows& rows, size_t i, int64_t sums,
                             const NStepOutputs& into) {
  const CompiledNStep& n_step = *plan().n_step;
  const DrawnItem& item = items_[i];
  RowCursor cursor = item.cursor();
  const auto count = static_cast<int64_t>(rows.CountOf(i));
  std::vector<uint8_t> terminals(rows.CountOf(i), 0);
  for (int64_t k = 0; k < count; ++k) {
    const bool lost = n_step.life_loss && rows.Of(i, NStepRows::kLifeLoss)[k] != 0;
    const End end = EndOfRow(&cursor, item.window.anchor + k);
    terminals[static_cast<size_t>(k)] = lost || end == End::kTerminated ? 1 : 0;
  }
  for (int64_t k = 0; k < sums; ++k) {
    const int64_t row = item.window.anchor + k;
    int64_t limit = std::min(n_step.n, count - k);
    int64_t last_row = item.episode.rows_end - 1;
    if (item.rule->cross_ends && item.part->state->layout().spec().stream) {
      // A row's sum stays in the row's own episode: up to the first row that is no step, or the
      // last before another episode's first.
      int64_t steps = 0;
      while (steps < limit && MayBeAnchor(&cursor, *item.rule, row + steps)) {
        ++steps;
        if (row + steps >= item.episode.rows_end || IsFirstRow(&cursor, row + steps)) {
          last_row = row + steps - 1;
          break;
        }
      }
      limit = steps;
    }
    const float* discounts = n_step.discount ? rows.Of(i, NStepRows::kDiscount) + k : nullptr;
    const NStepResult result =
        NStepReturn(rows.Of(i, NStepRows::kReward) + k, discounts, n_step.gamma,
                    terminals.data() + k, static_cast<uint64_t>(std::max<int64_t>(limit, 0)));
    into.returns[k] = result.value;
    into.discounts[k] = result.discount;
    into.masks[k] = result.mask;
    into.bootstraps[k] = std::min(row + static_cast<int64_t>(result.steps), last_row);
    bootstrap_rows_.push_back(into.bootstraps[k]);
  }
}

}  // namespace geardb::engine
