// Views and n-step returns: which ones a sampler has, and what they show.
#include <algorithm>
#include <cstring>

#include "tests/differential/runner.h"

namespace geardb::differential {
namespace {

const std::string& NameOf(const View& view) { return view.name.empty() ? view.column : view.name; }

/// The elements of a row as a view delivers them.
Bytes Delivered(const View& view, const Column& column, const Bytes& row) {
  if (!view.to_f32) return row;
  Bytes floats;
  for (size_t at = 0; at < row.size(); at += DTypeBytes(column.dtype)) {
    const float number = NumberAt(column.dtype, row.data() + at);
    const auto* const first = reinterpret_cast<const std::byte*>(&number);
    floats.insert(floats.end(), first, first + sizeof(number));
  }
  return floats;
}

Column DeliveredAs(const View& view, const Column& column) {
  Column delivered = column;
  if (view.to_f32) delivered.dtype = DType::kF32;
  return delivered;
}

}  // namespace

void Runner::AddView(const PlainTable& plain, View view, LiveSampler* sampler) {
  const PlainColumn* const column = plain.FindColumn(view.column);
  if (column == nullptr) return;
  sampler->columns.push_back(column->number);
  sampler->options.views.push_back(std::move(view));
}

void Runner::MakeViews(const LivePart& part, Choices choices, LiveSampler* sampler) {
  const PlainTable& plain = part.table->plain;
  const PriorityTableSpec spec = sampler->RuleOf(plain.priorities[part.priority].spec);
  const auto add = [&](View view) { AddView(plain, std::move(view), sampler); };
  add({.column = "act", .masks = choices.OneIn(2)});
  if (choices.OneIn(2) && spec.item == ItemKind::kWindow) {
    View view{.column = "obs", .masks = choices.OneIn(2)};
    const Extent& extent = spec.window.extent;
    for (int64_t j = -extent.before; j < extent.length + extent.after; ++j) {
      view.rows.list.push_back(j);
    }
    add(view);
  }
  if (choices.OneIn(2)) add({.column = "goal", .to_f32 = choices.OneIn(2)});
  if (choices.OneIn(3)) add({.column = "frame"});
  if (choices.OneIn(3)) add({.column = "ret", .rows = {.count = 1}});
  for (const char* name : {"text", "agents", "level", "map"}) {
    if (choices.OneIn(2)) add({.column = name, .to_f32 = choices.OneIn(4)});
  }
  if (choices.OneIn(3) && plain.FindColumn("obs") != nullptr) {
    sampler->options.row_draws = {{.name = "later",
                                   .kind = static_cast<RowDrawKind>(choices.Below(4)),
                                   .count = 1 + static_cast<int64_t>(choices.Below(2))}};
    add({.column = "obs",
         .name = "goals",
         .rows = {.draw = "later"},
         .stack = 1 + static_cast<int64_t>(choices.Below(3)),
         .masks = choices.OneIn(2)});
  }
}

/// n-step returns, the rows behind them, and views of any rows with stacks of any size; now and
/// then more than the extent promises.
void Runner::MakeNStep(const LivePart& part, Choices choices, LiveSampler* sampler) {
  const PlainTable& plain = part.table->plain;
  SamplerOptions& options = sampler->options;
  const PriorityTableSpec rule = sampler->RuleOf(plain.priorities[part.priority].spec);
  const bool window = rule.item == ItemKind::kWindow;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(choices.Below(static_cast<uint64_t>(n)));
  };
  if (choices.OneIn(2)) {
    constexpr const char* kNumbers[] = {"act", "ret", "discount", "aux"};
    constexpr double kGammas[] = {0.5, 0.99, 1};
    NStep n_step{.reward_column = kNumbers[below(4)], .gamma = kGammas[below(3)]};
    const int64_t discount = below(3);
    if (discount > 0) n_step.discount_column = kNumbers[discount];
    if (choices.OneIn(2)) n_step.life_loss_column = "lost";
    const Extent& extent = rule.window.extent;
    n_step.every_row = choices.OneIn(2) && (!window || extent.after > 0);
    const int64_t reach = n_step.every_row ? extent.after : extent.length - 1 + extent.after;
    const bool too_far = window && (reach == 0 || choices.OneIn(12));
    n_step.n = too_far ? reach + 1 : 1 + below(window ? reach : 4);
    if (plain.FindColumn(n_step.reward_column) == nullptr) n_step.reward_column = "act";
    for (std::string* name : {&n_step.discount_column, &n_step.life_loss_column}) {
      if (plain.FindColumn(*name) == nullptr) name->clear();
    }
    const bool there = plain.FindColumn(n_step.reward_column) != nullptr;
    if (there && !(too_far && choices.OneIn(2))) options.n_step = n_step;
  }
  if (options.n_step) {
    for (const std::string& name : {options.n_step->reward_column, options.n_step->discount_column,
                                    options.n_step->life_loss_column}) {
      if (!name.empty()) sampler->columns.push_back(plain.FindColumn(name)->number);
    }
  }
  constexpr const char* kShown[] = {"obs", "act", "frame"};
  for (const char* name : {"rows", "more rows"}) {
    if (!choices.OneIn(2)) continue;
    View view{.column = kShown[below(3)], .name = name};
    view.rows.bootstrap = options.n_step && choices.OneIn(2);
    if (!view.rows.bootstrap) view.rows = RowsKind(rule, &choices);
    view.stack = 1 + below(window ? rule.window.extent.before + 1 : 4);
    if (choices.OneIn(12)) ++view.stack;
    view.pad_value = static_cast<double>(below(3));
    view.to_f32 = choices.OneIn(3);
    view.masks = choices.OneIn(2);
    AddView(plain, view, sampler);
  }
}

void Runner::CompareOutput(const LiveSampler& sampler, const Batch& batch, const std::string& name,
                           const Bytes& padding, const std::vector<Bytes>& items) {
  const auto tensor = batch.Find(name);
  if (!tensor.ok()) return Differ("output", tensor.status().ToString());
  const bool packed = sampler.options.layout == BatchLayout::kPacked;
  const size_t stride = items.empty() ? 0 : tensor->byte_count() / items.size();
  const auto* const found = static_cast<const std::byte*>(tensor->bytes);
  size_t packed_at = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t first = packed ? packed_at : i * stride;
    const size_t room = packed ? items[i].size() : stride;
    if (first + room > tensor->byte_count() || items[i].size() > room) {
      return Differ("shape", name + " has " + tensor->shape.ToString());
    }
    Bytes expected = items[i];
    while (expected.size() < room) {
      expected.insert(expected.end(), padding.begin(), padding.end());
    }
    if (room > 0 && std::memcmp(found + first, expected.data(), room) != 0) {
      size_t at = 0;
      while (found[first + at] == expected[at]) ++at;
      return Differ("bytes", name + ", item " + std::to_string(i) + ", entry " +
                                 std::to_string(at / padding.size()) + ", byte " +
                                 std::to_string(at % padding.size()));
    }
    packed_at += items[i].size();
  }
  if (packed && packed_at != tensor->byte_count()) Differ("shape", name + " is longer");
}

/// Values of any length: entries of an item, and in padded batches empty ones to the longest.
void Runner::CompareValues(const LiveSampler& sampler, const Batch& batch, const std::string& name,
                           const Column& column, const std::vector<std::vector<Value>>& items) {
  const auto tensor = batch.Find(name);
  if (!tensor.ok()) return Differ("output", tensor.status().ToString());
  const auto offsets = batch.Offsets(name);
  if (!offsets.ok()) return Differ("offsets", offsets.status().ToString());
  size_t longest = 0;
  for (const auto& item : items) longest = std::max(longest, item.size());
  const bool padded = sampler.options.layout == BatchLayout::kPadded;
  if (padded && !items.empty()) longest = std::max(longest, (offsets->size() - 1) / items.size());
  Bytes bytes;
  std::vector<Value> entries;
  for (const auto& item : items) {
    for (const Value& value : item) {
      entries.push_back(value);
      bytes.insert(bytes.end(), value->begin(), value->end());
    }
    const size_t absent = padded ? longest - item.size() : 0;
    entries.insert(entries.end(), absent, std::make_shared<const Bytes>());
  }
  Same("offsets", std::vector<int64_t>(offsets->begin(), offsets->end()),
       OffsetsOf<int64_t>(column, entries));
  if (!Same("bytes of values", tensor->byte_count(), bytes.size()) || bytes.empty()) return;
  if (std::memcmp(tensor->bytes, bytes.data(), bytes.size()) != 0) Differ("bytes", name);
}

/// The rows that were drawn for an item: where they may be.
PlainTable::Shown Runner::DrawnRows(const LiveSampler& sampler, const BatchItem& item,
                                    const Batch& batch) {
  const RowDraw& draw = sampler.options.row_draws[0];
  const int64_t anchor = item.plain->Place(item.rule, *item.trajectory, item.row->anchor).anchor;
  PriorityTableSpec around = item.rule;
  around.window.cross_ends = false;
  int64_t first = 0, last = 0;
  PlainTable::Shown rows;
  for (const PlainTable::Episode& episode : item.plain->Episodes(around, *item.trajectory)) {
    if (anchor < episode.begin || anchor >= episode.rows_end) continue;
    rows.begin = episode.begin;
    last = episode.rows_end - 1;
    first = draw.kind == RowDrawKind::kAny    ? episode.begin
            : draw.kind == RowDrawKind::kLast ? last
                                              : anchor + draw.nearest;
  }
  const auto found = batch[draw.name + ".row"].values<int64_t>();
  const auto flags = batch[draw.name + ".drawn"].values<bool>();
  for (size_t k = 0; k < static_cast<size_t>(draw.count); ++k) {
    const size_t place = item.at * static_cast<size_t>(draw.count) + k;
    rows.rows.push_back(found[place]);
    rows.learn.push_back(0);
    if (!Same("a row is drawn", flags[place], first <= last)) return rows;
    const int64_t row = rows.rows.back();
    const bool good = flags[place] ? row >= first && row <= last : row == anchor;
    if (!good) Differ("drawn row", Printed(row) + " of " + Printed(item.row->key));
  }
  return rows;
}

/// What a view shows of an item.
void Runner::ShowItem(const LiveSampler& sampler, const View& view, const BatchItem& item,
                      const Batch& batch, ShownView* shown) {
  const PlainTrajectory& trajectory = *item.trajectory;
  const PlainColumn& column = *item.plain->FindColumn(view.column);
  const auto delivered = [&](const Value& row) {
    return std::make_shared<const Bytes>(Delivered(view, column.column, *row));
  };
  std::vector<Value>& values = shown->values.emplace_back();
  Bytes& bytes = shown->bytes.emplace_back();
  if (!column.per_step()) {
    values.push_back(delivered(item.plain->ValueOf(trajectory, column)));
    bytes = *values.back();
    return;
  }
  const int64_t anchor = item.row->anchor;
  const int64_t length = item.plain->Place(item.rule, trajectory, anchor).length;
  PlainTable::Shown rows;
  if (!view.rows.draw.empty()) {
    rows = DrawnRows(sampler, item, batch);
  } else if (view.rows.bootstrap) {
    rows = item.plain->ShowBootstraps(item.rule, trajectory, anchor, *sampler.options.n_step);
  } else {
    rows = item.plain->Show(item.rule, trajectory, anchor, RelativeRows(view.rows, length));
  }
  if (different()) return;
  const Column type = DeliveredAs(view, column.column);
  const Value padding = std::make_shared<const Bytes>(RowOfNumber(type, view.pad_value));
  const auto mask = [](std::vector<Bytes>* masks) -> Bytes& { return masks->emplace_back(); };
  Bytes& valid = mask(&shown->valid);
  Bytes& learn = mask(&shown->learn);
  Bytes& is_first = mask(&shown->is_first);
  Bytes& end = mask(&shown->end);
  PriorityTableSpec rule = item.rule;
  if (bug_ == PlantedBug::kStacksTheEdge) rule.window.left = EdgeRule::kRepeat;
  for (size_t k = 0; k < rows.rows.size(); ++k) {
    for (const int64_t row : Stack(rule, rows.begin, rows.rows[k], view.stack)) {
      const Value value =
          row < 0 ? padding : delivered(item.plain->ValueOf(trajectory.row(row), column));
      values.push_back(value);
      bytes.insert(bytes.end(), value->begin(), value->end());
      if (view.stack > 1 && row < 0) ++result_.counts.shown["padding in stacks"];
    }
    const bool pad = rows.rows[k] < 0;
    const PlainRow* const row = pad ? nullptr : &trajectory.row(rows.rows[k]);
    valid.push_back(static_cast<std::byte>(pad ? 0 : 1));
    learn.push_back(static_cast<std::byte>(rows.learn[k]));
    is_first.push_back(static_cast<std::byte>(!pad && row->first ? 1 : 0));
    end.push_back(pad ? std::byte{0} : static_cast<std::byte>(row->end));
  }
  shown->lengths.push_back(static_cast<int64_t>(rows.rows.size()));
  if (view.stack > 1) result_.counts.shown["stacks"] += rows.rows.size();
  if (view.rows.bootstrap) result_.counts.shown["bootstrap rows"] += rows.rows.size();
}

/// [n, L, stack, …] or [Σ lengths, stack, …]: without L where a window's view names one row.
void Runner::CompareShape(const LiveSampler& sampler, const View& view, const BatchItem& first,
                          const Batch& batch, const ShownView& shown) {
  const SamplerOptions& options = sampler.options;
  const Column& column = first.plain->FindColumn(view.column)->column;
  const Shape& found = batch[NameOf(view)].shape;
  Shape shape = column.shape;
  if (view.stack > 1) shape = shape.WithOuter({view.stack});
  int64_t one_row = 0;
  if (!view.rows.draw.empty()) {
    one_row = options.row_draws[0].count;
  } else if (view.rows.bootstrap) {
    one_row = options.n_step->every_row ? 0 : 1;
  } else if (first.rule.item == ItemKind::kWindow) {
    const int64_t length = first.rule.window.extent.length;
    one_row = static_cast<int64_t>(RelativeRows(view.rows, length).size());
  }
  const auto items = static_cast<int64_t>(shown.lengths.size());
  if (options.layout == BatchLayout::kPacked) {
    int64_t total = 0;
    for (const int64_t length : shown.lengths) total += length;
    shape = shape.WithOuter({total});
  } else {
    shape = one_row == 1       ? shape.WithOuter({items})
            : found.rank() > 1 ? shape.WithOuter({items, found.dims()[1]})
                               : shape;
  }
  if (found != shape) Differ("shape", NameOf(view) + " has " + found.ToString());
}

void Runner::CompareView(const LiveSampler& sampler, const std::vector<BatchItem>& items,
                         const Batch& batch, const View& view) {
  const std::string& name = NameOf(view);
  ShownView shown;
  for (const BatchItem& item : items) {
    ShowItem(sampler, view, item, batch, &shown);
    if (different()) return;
  }
  const PlainColumn& column = *items[0].plain->FindColumn(view.column);
  const Column type = DeliveredAs(view, column.column);
  if (column.any_length()) {
    CompareValues(sampler, batch, name, type, shown.values);
  } else {
    CompareOutput(sampler, batch, name, RowOfNumber(type, view.pad_value), shown.bytes);
  }
  if (!column.per_step() || different()) return;
  if (!column.any_length()) CompareShape(sampler, view, items[0], batch, shown);
  const auto found = batch.ViewLengths(name);
  if (!found.ok()) return Differ("view lengths", found.status().ToString());
  Same("view lengths", std::vector<int64_t>(found->begin(), found->end()), shown.lengths);
  if (!view.masks || different()) return;
  const Bytes none(1);
  CompareOutput(sampler, batch, name + ".valid", none, shown.valid);
  CompareOutput(sampler, batch, name + ".learn", none, shown.learn);
  CompareOutput(sampler, batch, name + ".is_first", none, shown.is_first);
  CompareOutput(sampler, batch, name + ".end", none, shown.end);
}

void Runner::CompareNStep(const LiveSampler& sampler, const std::vector<BatchItem>& items,
                          const Batch& batch) {
  NStep asked = *sampler.options.n_step;
  if (bug_ == PlantedBug::kSumsOneMore) ++asked.n;
  std::vector<Bytes> returns, discounts, bootstraps, masks;
  std::vector<int64_t> lengths;
  const auto put = [](const auto& value, Bytes* bytes) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes->insert(bytes->end(), first, first + sizeof(value));
  };
  auto& counts = result_.counts.shown;
  for (const BatchItem& item : items) {
    for (std::vector<Bytes>* output : {&returns, &discounts, &bootstraps, &masks}) {
      output->emplace_back();
    }
    const auto rows = item.plain->NSteps(item.rule, *item.trajectory, item.row->anchor, asked);
    for (const PlainTable::NStepRow& row : rows) {
      put(row.value, &returns.back());
      put(row.discount, &discounts.back());
      put(row.bootstrap, &bootstraps.back());
      put(row.mask, &masks.back());
      ++counts[asked.every_row ? "n-step returns of every row" : "n-step returns"];
      if (row.steps == 0) ++counts["n-step returns of final rows"];
      if (row.steps > 0 && row.mask == 0) ++counts["n-step returns up to an end"];
    }
    lengths.push_back(static_cast<int64_t>(rows.size()));
  }
  const auto found = batch.ViewLengths("nstep.return");
  if (!found.ok()) return Differ("n-step lengths", found.status().ToString());
  Same("n-step lengths", std::vector<int64_t>(found->begin(), found->end()), lengths);
  CompareOutput(sampler, batch, "nstep.return", Bytes(sizeof(float)), returns);
  CompareOutput(sampler, batch, "nstep.discount", Bytes(sizeof(float)), discounts);
  CompareOutput(sampler, batch, "nstep.bootstrap_row", Bytes(sizeof(int64_t)), bootstraps);
  CompareOutput(sampler, batch, "nstep.mask", Bytes(sizeof(float)), masks);
}

/// All outputs but those of the items themselves.
void Runner::CompareOutputs(const LiveSampler& sampler, const PlainDraw& drawn,
                            const BatchRows& rows, const Batch& batch) {
  std::vector<BatchItem> items;
  for (size_t at = 0; at < rows.size(); ++at) {
    const PlainTable& plain = TableOf(sampler, drawn, rows[at].part);
    const PlainPriority& priority = plain.priorities[sampler.parts[rows[at].part].priority];
    items.push_back({&plain, sampler.RuleOf(priority.spec), &plain.trajectories.at(rows[at].id),
                     &rows[at], at});
  }
  if (items.empty()) return;
  for (const View& view : sampler.options.views) {
    if (!different()) CompareView(sampler, items, batch, view);
  }
  if (sampler.options.n_step && !different()) CompareNStep(sampler, items, batch);
}

}  // namespace geardb::differential
