#include "tests/conformance/batch_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/testing/matchers.h"

namespace geardb::conformance {
namespace {

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  const auto* const first = reinterpret_cast<const std::byte*>(values.data());
  return Bytes(first, first + values.size() * sizeof(T));
}

Bytes Repeated(const Bytes& element, int64_t count) {
  Bytes bytes;
  for (int64_t i = 0; i < count; ++i) Add(element, &bytes);
  return bytes;
}

bool IsByte(DType dtype) { return dtype == DType::kBool || dtype == DType::kU8; }

}  // namespace

BatchCheck::BatchCheck(StoreTwin* twin, DrawnTable* drawn, RandomSampler sampler)
    : twin_(twin), drawn_(drawn), sampler_(std::move(sampler)) {
  // A batch is drawn ahead right after the hand-over of the one `prefetch` before it.
  const auto ahead = static_cast<size_t>(std::max<int64_t>(sampler_.options.prefetch, 1));
  times_sampled_.assign(ahead, twin->times_sampled());
}

std::string BatchCheck::NameOf(size_t view) const {
  const View& options = sampler_.options.views[view];
  return options.name.empty() ? options.column : options.name;
}

const BatchCheck::Expected& BatchCheck::ExpectedOf(const ModelItem& item) {
  const auto found = expected_.find(item);
  if (found != expected_.end()) return found->second;
  Expected& expected = expected_[item];
  const WindowModel& model = twin_->model();
  const ModelNStep* const n_step = sampler_.n_step ? &*sampler_.n_step : nullptr;
  expected.length = model.Length(drawn_->rule, item);
  for (const AskedView& asked : sampler_.views) {
    expected.views.emplace_back();
    if (asked.trajectory_column || asked.drawn) continue;
    expected.views.back() = model.Show(drawn_->rule, item, asked.view, n_step);
  }
  if (n_step != nullptr) expected.n_step = model.ShowNStep(drawn_->rule, item, *n_step);
  const auto probability = twin_->priority_table(*drawn_)->Probability(RowId{item.id, item.row});
  EXPECT_OK(probability);
  if (probability.ok()) expected.probability = *probability;
  return expected;
}

void BatchCheck::Check(const Batch& batch) {
  CheckItems(batch);
  if (::testing::Test::HasFatalFailure()) return;
  CheckOrder();
  CheckWeights(batch);
  if (!sampler_.options.row_draws.empty()) CheckRowDraw(batch);
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t view = 0; view < sampler_.views.size(); ++view) {
    SCOPED_TRACE("view " + NameOf(view));
    if (sampler_.views[view].trajectory_column) {
      CheckTrajectoryColumn(batch, view);
    } else {
      CheckView(batch, view);
    }
  }
  if (sampler_.n_step) CheckNStep(batch);
  EXPECT_STATUS(kNotFound, batch.Find("no such output"), NameOf(0));
  EXPECT_EQ(batch.draw_number(), last_draw_ ? *last_draw_ + 1 : batch.draw_number());
  last_draw_ = batch.draw_number();
  EXPECT_GT(batch.lsn(), 0u);
}

void BatchCheck::CheckItems(const Batch& batch) {
  const auto size = static_cast<size_t>(sampler_.options.batch);
  ASSERT_EQ(batch.size(), sampler_.options.batch);
  ASSERT_EQ(batch.handles().size(), size);
  ASSERT_EQ(batch.trajectory_ids().size(), size);
  ASSERT_EQ(batch.anchors().size(), size);
  ASSERT_EQ(batch.lengths().size(), size);
  items_.clear();
  for (size_t i = 0; i < size; ++i) {
    const ModelItem item{batch.trajectory_ids()[i], batch.anchors()[i]};
    SCOPED_TRACE("item " + std::to_string(item.id) + ":" + std::to_string(item.row));
    items_.push_back(item);
    seen_.insert(item);
    const auto priority = drawn_->priorities.find(item);
    ASSERT_TRUE(priority != drawn_->priorities.end()) << "it is none";
    ASSERT_GT(drawn_->Weight(priority->second), 0) << "it cannot be drawn";
    const Expected& expected = ExpectedOf(item);
    EXPECT_EQ(batch.lengths()[i], expected.length);
    EXPECT_EQ(batch.probabilities()[i], expected.probability);
    EXPECT_EQ(batch.sources()[i], 0u);
    const ModelTrajectory& trajectory = twin_->model().trajectories().at(item.id);
    EXPECT_EQ(batch.trajectory_lengths()[i], trajectory.steps_end());
    const bool closed = trajectory.state == ModelState::kClosed;
    EXPECT_EQ(batch.trajectory_ends()[i], closed ? trajectory.end : End::kGo);
    EXPECT_EQ(batch.times_sampled()[i], times_sampled_.front()[item.id]);
  }
  if (sampler_.options.observer) return;
  for (const ModelItem& item : items_) ++twin_->times_sampled()[item.id];
  times_sampled_.pop_front();
  times_sampled_.push_back(twin_->times_sampled());
}

/// Distinct items where the selector says so; where it has an order, the first ones of it.
void BatchCheck::CheckOrder() {
  if (!drawn_->distinct()) return;
  const std::set<ModelItem> different(items_.begin(), items_.end());
  EXPECT_EQ(different.size(), items_.size()) << "an item comes twice";
  if (!drawn_->ordered()) return;
  std::vector<std::tuple<double, int64_t, int64_t, int64_t>> places, first;
  for (const auto& [item, priority] : drawn_->priorities) first.push_back(drawn_->Place(item));
  std::sort(first.begin(), first.end());
  first.resize(items_.size());
  for (const ModelItem& item : items_) places.push_back(drawn_->Place(item));
  EXPECT_EQ(places, first) << "not the first items of the order";
}

/// (n·P)^-β, divided by the largest of the batch.
void BatchCheck::CheckWeights(const Batch& batch) {
  double n = 0;
  for (const auto& [item, priority] : drawn_->priorities) n += drawn_->Weight(priority) > 0 ? 1 : 0;
  std::vector<double> weights;
  for (const ModelItem& item : items_) {
    const double probability = ExpectedOf(item).probability;
    weights.push_back(drawn_->has_weights() ? std::pow(n * probability, -sampler_.options.beta)
                                            : 1);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  ASSERT_EQ(batch.weights().size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(batch.weights()[i]), weights[i] / largest, 1e-6);
  }
}

void BatchCheck::CheckOutput(const Batch& batch, const Output& output) {
  ASSERT_OK_AND_ASSIGN(const TensorView tensor, batch.Find(output.name));
  EXPECT_EQ(batch[output.name].bytes, tensor.bytes);
  ASSERT_EQ(tensor.dtype, output.dtype) << DTypeName(tensor.dtype);
  std::vector<int64_t> counts;
  int64_t sum = 0;
  int64_t longest = 0;
  for (const Bytes& item : output.items) {
    counts.push_back(static_cast<int64_t>(item.size() / output.entry_bytes));
    sum += counts.back();
    longest = std::max(longest, counts.back());
  }
  const auto n = static_cast<int64_t>(output.items.size());
  const bool packed = sampler_.options.layout == BatchLayout::kPacked;
  int64_t entries = longest;
  Shape shape;
  if (packed) {
    shape = output.inner.WithOuter({sum});
  } else if (output.single) {
    entries = 1;
    shape = output.inner.WithOuter({n});
  } else {
    // How much longer than its longest item a batch of trajectories is, is the sampler's choice.
    ASSERT_GE(tensor.shape.rank(), 2) << tensor.shape.ToString();
    if (!output.entries) entries = std::max(longest, tensor.shape[1]);
    if (output.entries) entries = *output.entries;
    shape = output.inner.WithOuter({n, entries});
  }
  ASSERT_EQ(tensor.shape, shape) << tensor.shape.ToString() << ", expected " << shape.ToString();
  Bytes expected;
  for (size_t i = 0; i < output.items.size(); ++i) {
    Add(output.items[i], &expected);
    if (!packed) Add(Repeated(output.pad, entries - counts[i]), &expected);
  }
  ASSERT_EQ(tensor.byte_count(), expected.size());
  if (expected.empty() || std::memcmp(tensor.bytes, expected.data(), expected.size()) == 0) return;
  const auto* const got = static_cast<const std::byte*>(tensor.bytes);
  size_t at = 0;
  while (got[at] == expected[at]) ++at;
  size_t entry = at / output.entry_bytes;
  size_t item = 0;
  if (!packed) {
    item = entry / static_cast<size_t>(entries);
    entry %= static_cast<size_t>(entries);
  } else {
    while (entry >= static_cast<size_t>(counts[item])) entry -= static_cast<size_t>(counts[item++]);
  }
  FAIL() << "output " << output.name << " differs first in entry " << entry << " of "
         << counts[item] << " of item " << items_[item].id << ":" << items_[item].row << ", byte "
         << at % output.entry_bytes << " of " << output.entry_bytes << ": "
         << static_cast<int>(got[at]) << ", expected " << static_cast<int>(expected[at]);
}

void BatchCheck::CheckView(const Batch& batch, size_t view) {
  const AskedView& asked = sampler_.views[view];
  const Column& column = twin_->random_table().step_column(asked.view.column);
  Output shown_rows{.name = NameOf(view),
                    .dtype = asked.dtype,
                    .inner = column.shape,
                    .pad = {},
                    .single = asked.single,
                    .entries = asked.entries,
                    .items = {}};
  if (asked.view.stack > 1) shown_rows.inner = column.shape.WithOuter({asked.view.stack});
  shown_rows.entry_bytes =
      static_cast<size_t>(shown_rows.inner.elements()) * DTypeBytes(asked.dtype);
  shown_rows.pad = Repeated(asked.view.pad, shown_rows.inner.elements());
  Output mask = shown_rows;
  mask.inner = Shape();
  mask.entry_bytes = 1;
  mask.pad = Bytes(1);
  Output valid = mask;
  Output learn = mask;
  Output is_first = mask;
  Output end = mask;
  std::vector<int64_t> counts;
  std::vector<int64_t> offsets = {0};
  for (size_t i = 0; i < items_.size(); ++i) {
    const ShownView shown =
        asked.drawn ? twin_->model().ShowDrawn(drawn_->rule, items_[i], asked.view, drawn_rows_[i])
                    : ExpectedOf(items_[i]).views[view];
    counts.push_back(shown.entries);
    offsets.push_back(offsets.back() + shown.entries);
    shown_rows.items.push_back(shown.bytes);
    valid.items.push_back(BytesOf(shown.valid));
    learn.items.push_back(BytesOf(shown.learn));
    is_first.items.push_back(BytesOf(shown.is_first));
    end.items.push_back(BytesOf(shown.end));
  }
  CheckOutput(batch, shown_rows);
  ASSERT_OK_AND_ASSIGN(const auto lengths, batch.ViewLengths(shown_rows.name));
  EXPECT_EQ(std::vector<int64_t>(lengths.begin(), lengths.end()), counts);
  if (sampler_.options.layout == BatchLayout::kPacked) {
    ASSERT_OK_AND_ASSIGN(const auto cu_seqlens, batch.CuSeqlens(shown_rows.name));
    EXPECT_EQ(std::vector<int64_t>(cu_seqlens.begin(), cu_seqlens.end()), offsets);
  }
  if (!sampler_.options.views[view].masks) return;
  for (auto [output, suffix] : {std::pair(&valid, ".valid"), std::pair(&learn, ".learn"),
                                std::pair(&is_first, ".is_first"), std::pair(&end, ".end")}) {
    output->name = shown_rows.name + suffix;
    const DType dtype = batch[output->name].dtype;
    output->dtype = output != &end && IsByte(dtype) ? dtype : DType::kU8;
    CheckOutput(batch, *output);
  }
}

void BatchCheck::CheckRowDraw(const Batch& batch) {
  const RowDraw& draw = sampler_.options.row_draws[0];
  ASSERT_OK_AND_ASSIGN(const TensorView rows, batch.Find(draw.name + ".row"));
  ASSERT_OK_AND_ASSIGN(const TensorView flags, batch.Find(draw.name + ".drawn"));
  const auto n = static_cast<int64_t>(items_.size());
  const bool flat = draw.count == 1 || sampler_.options.layout == BatchLayout::kPacked;
  ASSERT_EQ(rows.shape, flat ? Shape({n * draw.count}) : Shape({n, draw.count}));
  ASSERT_EQ(flags.shape, rows.shape);
  const auto row_values = rows.values<int64_t>();
  const auto drawn_values = flags.values<bool>();
  drawn_rows_.assign(items_.size(), {});
  for (size_t at = 0; at < row_values.size(); ++at) {
    const size_t i = at / static_cast<size_t>(draw.count);
    const int64_t row = row_values[at];
    drawn_rows_[i].push_back(row);
    const WindowModel::RowsAround around = twin_->model().DrawnFrom(drawn_->rule, items_[i]);
    SCOPED_TRACE(::testing::Message() << "row " << row << " around " << around.anchor << " of "
                                      << items_[i].id << ":" << items_[i].row);
    const int64_t last = around.rows.back();
    int64_t first = around.anchor + draw.nearest;
    if (draw.kind == RowDrawKind::kLast) first = last;
    if (draw.kind == RowDrawKind::kAny) first = around.rows.front();
    if (first > last || draw.probability == 0) {
      ASSERT_FALSE(drawn_values[at]);
    } else if (draw.probability == 1) {
      ASSERT_TRUE(drawn_values[at]);
    }
    if (drawn_values[at]) {
      ASSERT_TRUE(row >= first && row <= last);
    } else {
      ASSERT_EQ(row, around.anchor);
    }
  }
}

void BatchCheck::CheckTrajectoryColumn(const Batch& batch, size_t view) {
  const AskedView& asked = sampler_.views[view];
  const Column& column = twin_->random_table().trajectory_column(*asked.trajectory_column);
  ASSERT_OK_AND_ASSIGN(const TensorView tensor, batch.Find(NameOf(view)));
  ASSERT_EQ(tensor.dtype, asked.dtype);
  ASSERT_EQ(tensor.shape, column.shape.WithOuter({sampler_.options.batch}));
  Bytes expected;
  for (const ModelItem& item : items_) {
    const Bytes& stored = twin_->TrajectoryValue(item.id, *asked.trajectory_column);
    if (!asked.view.to_f32) {
      Add(stored, &expected);
      continue;
    }
    for (size_t at = 0; at < stored.size(); at += DTypeBytes(column.dtype)) {
      Add(BytesOf(std::vector<float>{ElementAsFloat(column.dtype, &stored[at])}), &expected);
    }
  }
  EXPECT_EQ(std::memcmp(tensor.bytes, expected.data(), expected.size()), 0);
}

void BatchCheck::CheckNStep(const Batch& batch) {
  const bool every_row = sampler_.n_step->every_row;
  Output output{.name = "",
                .inner = Shape(),
                .entry_bytes = sizeof(float),
                .pad = Bytes(sizeof(float)),
                .single = !every_row,
                .entries = {},
                .items = {}};
  if (!drawn_->rule.trajectories) output.entries = drawn_->rule.length;
  Output returns = output;
  returns.name = "nstep.return";
  Output discounts = output;
  discounts.name = "nstep.discount";
  Output masks = output;
  masks.name = "nstep.mask";
  Output rows = output;
  rows.name = "nstep.bootstrap_row";
  rows.dtype = DType::kI64;
  rows.entry_bytes = sizeof(int64_t);
  rows.pad = Bytes(sizeof(int64_t));
  for (const ModelItem& item : items_) {
    const ShownNStep& shown = ExpectedOf(item).n_step;
    returns.items.push_back(BytesOf(shown.returns));
    discounts.items.push_back(BytesOf(shown.discounts));
    masks.items.push_back(BytesOf(shown.masks));
    rows.items.push_back(BytesOf(shown.bootstrap_rows));
  }
  for (const Output* each : {&returns, &discounts, &masks, &rows}) CheckOutput(batch, *each);
}

}  // namespace geardb::conformance
