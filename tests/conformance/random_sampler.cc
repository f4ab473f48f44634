#include "tests/conformance/random_sampler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace geardb::conformance {
namespace {

struct Padding {
  double value = 0;
  Bytes element;
};

template <typename T>
Bytes Element(T value) {
  Bytes bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// 0, 1, or a negative number where there are any.
Padding RandomPadding(DType dtype, RandomChoice* choice) {
  const int64_t which = choice->Between(0, 2);
  const double one = which == 0 ? 0 : 1;
  const double whole = which == 2 ? -2 : one;
  const double fraction = which == 2 ? -2.5 : one;
  switch (dtype) {
    case DType::kU8:
      return {one, Element(static_cast<uint8_t>(one))};
    case DType::kI8:
      return {whole, Element(static_cast<int8_t>(whole))};
    case DType::kU16:
      return {one, Element(static_cast<uint16_t>(one))};
    case DType::kI16:
      return {whole, Element(static_cast<int16_t>(whole))};
    case DType::kU32:
      return {one, Element(static_cast<uint32_t>(one))};
    case DType::kI32:
      return {whole, Element(static_cast<int32_t>(whole))};
    case DType::kU64:
      return {one, Element(static_cast<uint64_t>(one))};
    case DType::kI64:
      return {whole, Element(static_cast<int64_t>(whole))};
    case DType::kF16:
      return {fraction, Element(static_cast<uint16_t>(which == 0   ? 0
                                                      : which == 1 ? 0x3C00
                                                                   : 0xC100))};
    case DType::kBf16:
      return {fraction, Element(static_cast<uint16_t>(which == 0   ? 0
                                                      : which == 1 ? 0x3F80
                                                                   : 0xC020))};
    case DType::kF32:
      return {fraction, Element(static_cast<float>(fraction))};
    case DType::kF64:
      return {fraction, Element(fraction)};
    case DType::kBool:
      return {one, Element(static_cast<uint8_t>(one))};
  }
  return {};
}

/// Rows relative to the anchor that a view may name, [first, end), once `stack` rows fit.
struct Reach {
  int64_t first = 0;
  int64_t end = 0;
};

Reach ReachOf(const ModelRule& rule, int64_t stack) {
  // Of a trajectory older rows are its first one again.
  if (rule.trajectories) return Reach{0, 9};
  const int64_t end = rule.length + rule.after;
  // Rows behind the anchor may be the anchor's again, with its stack.
  const bool anchor_again = rule.right == Side::kRepeat && stack - 1 > rule.before;
  return Reach{-rule.before + stack - 1, anchor_again ? std::min<int64_t>(end, 1) : end};
}

void NameRows(View* view, AskedView* asked, std::vector<int64_t> rows) {
  asked->view.rows = rows;
  asked->entries = static_cast<int64_t>(rows.size());
  view->rows.list = std::move(rows);
}

/// begin, count (or the length part), stride and plus.
void NameRange(const ModelRule& rule, Reach reach, RandomChoice* choice, View* view,
               AskedView* asked) {
  const int64_t begin = choice->Between(reach.first, reach.end - 1);
  const int64_t stride =
      choice->Percent(60)
          ? 1
          : choice->Of({int64_t{1}, int64_t{2}, int64_t{3}, int64_t{-1}, int64_t{-2}});
  const int64_t most =
      (stride > 0 ? reach.end - 1 - begin : begin - reach.first) / std::abs(stride) + 1;
  const int64_t count = choice->Between(1, most);
  const int64_t plus = choice->Percent(60) ? 0 : choice->Between(0, most - count);
  view->rows.begin = asked->view.begin = begin;
  view->rows.stride = asked->view.stride = stride;
  view->rows.count = count;
  view->rows.plus = plus;
  asked->entries = count + plus;
  const bool length_fits = rule.trajectories ? stride > 0 : rule.length <= most;
  if (!length_fits || choice->Percent(40)) {
    for (int64_t i = 0; i < count + plus; ++i) asked->view.rows.push_back(begin + i * stride);
    return;
  }
  // As many as the item's length part has.
  view->rows.count = ViewRows::kItemLength;
  view->rows.plus = choice->Between(0, rule.trajectories ? 2 : most - rule.length);
  asked->view.plus = view->rows.plus;
  asked->view.item_length = true;
  asked->entries = std::nullopt;
  if (!rule.trajectories) asked->entries = rule.length + view->rows.plus;
}

void ChooseRows(const ModelRule& rule, const RandomSampler& sampler, RandomChoice* choice,
                View* view, AskedView* asked) {
  int64_t stack = choice->Percent(65) ? 1 : choice->Between(2, 3);
  if (!sampler.options.row_draws.empty() && choice->Percent(40)) {
    const RowDraw& draw = sampler.options.row_draws[0];
    view->rows.draw = draw.name;
    view->stack = asked->view.stack = stack;
    asked->drawn = true;
    asked->entries = draw.count;
    asked->single = draw.count == 1;
    return;
  }
  if (ReachOf(rule, stack).first >= ReachOf(rule, stack).end) stack = 1;
  const bool stack_before = rule.trajectories || rule.before >= stack - 1;
  if (sampler.n_step && stack_before && choice->Percent(30)) {
    view->rows.bootstrap = asked->view.bootstrap = true;
    const bool every_row = sampler.n_step->every_row;
    asked->entries = every_row ? rule.length : 1;
    if (every_row && rule.trajectories) asked->entries = std::nullopt;
    asked->single = !every_row;
  } else {
    const Reach reach = ReachOf(rule, stack);
    if (choice->Percent(70)) {
      NameRange(rule, reach, choice, view, asked);
    } else {
      std::vector<int64_t> rows;
      for (int64_t i = choice->Between(1, 4); i > 0; --i) {
        rows.push_back(choice->Between(reach.first, reach.end - 1));
      }
      NameRows(view, asked, std::move(rows));
    }
    asked->single = !rule.trajectories && asked->entries == 1;
  }
  view->stack = asked->view.stack = stack;
}

void AddView(const RandomTable& table, const ModelRule& rule, RandomChoice* choice,
             RandomSampler* sampler) {
  View view;
  AskedView asked;
  const bool per_trajectory = choice->Percent(15);
  const size_t place =
      choice->Below(per_trajectory ? table.trajectory_columns.size() : table.step_columns.size());
  const Column& column = per_trajectory ? table.trajectory_column(place) : table.step_column(place);
  view.column = column.name;
  const bool taken =
      std::any_of(sampler->options.views.begin(), sampler->options.views.end(),
                  [&view](const View& other) { return other.column == view.column; });
  if (taken || choice->Percent(50)) view.name = "v" + std::to_string(sampler->views.size());
  view.to_f32 = asked.view.to_f32 = choice->Percent(30);
  asked.dtype = view.to_f32 ? DType::kF32 : column.dtype;
  asked.view.column = place;
  if (per_trajectory) {
    asked.trajectory_column = place;
  } else {
    ChooseRows(rule, *sampler, choice, &view, &asked);
    view.masks = choice->Percent(60);
  }
  const Padding padding = RandomPadding(asked.dtype, choice);
  view.pad_value = padding.value;
  asked.view.pad = padding.element;
  sampler->options.views.push_back(std::move(view));
  sampler->views.push_back(std::move(asked));
}

void AddRowDraw(RandomChoice* choice, RandomSampler* sampler) {
  RowDraw draw;
  draw.name = "goal";
  draw.kind = static_cast<RowDrawKind>(choice->Between(0, 3));
  draw.probability = choice->Of({0.0, 0.5, 1.0});
  draw.nearest = choice->Between(0, 3);
  draw.gamma = choice->Of({0.0, 0.5, 0.99});
  draw.count = choice->Between(1, 3);
  sampler->options.row_draws.push_back(draw);
}

void AddNStep(const RandomTable& table, const ModelRule& rule, RandomChoice* choice,
              RandomSampler* sampler) {
  const bool every_row = choice->Percent(50) && (rule.trajectories || rule.after >= 1);
  const int64_t most = rule.trajectories ? 4
                       : every_row       ? rule.after
                                         : rule.length - 1 + rule.after;
  if (most < 1) return;
  NStep n_step;
  n_step.reward_column = "reward";
  n_step.n = choice->Between(1, most);
  n_step.gamma = choice->Of({0.99, 0.5, 1.0});
  n_step.every_row = every_row;
  ModelNStep asked;
  asked.reward = table.StepColumn("reward");
  asked.n = n_step.n;
  asked.gamma = static_cast<float>(n_step.gamma);
  asked.every_row = every_row;
  if (choice->Percent(50)) {
    n_step.discount_column = "discount";
    asked.discount = table.StepColumn("discount");
  }
  if (choice->Percent(50)) {
    n_step.life_loss_column = "life";
    asked.life_loss = table.StepColumn("life");
  }
  sampler->options.n_step = n_step;
  sampler->n_step = asked;
}

}  // namespace

RandomSampler MakeRandomSampler(const RandomTable& table, const ModelRule& rule,
                                RandomChoice* choice) {
  RandomSampler sampler;
  SamplerOptions& options = sampler.options;
  options.batch = choice->Between(1, 24);
  options.layout = choice->Of({BatchLayout::kPadded, BatchLayout::kPacked});
  options.beta = choice->Of({0.0, 0.4, 1.0});
  options.prefetch = choice->Percent(70) ? 0 : choice->Between(1, 3);
  options.observer = choice->Percent(25);
  options.seed = options.observer ? choice->Bits() : 0;
  if (choice->Percent(60)) AddNStep(table, rule, choice, &sampler);
  if (choice->Percent(50)) AddRowDraw(choice, &sampler);
  for (int64_t i = choice->Between(1, 4); i > 0; --i) AddView(table, rule, choice, &sampler);
  return sampler;
}

}  // namespace geardb::conformance
