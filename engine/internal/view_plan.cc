#include "engine/internal/view_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/convert.h"

namespace geardb::engine {
namespace {

constexpr int64_t kRowsMax = int64_t{1} << 24;

bool IsNear(int64_t row) { return row >= -kRowsMax && row <= kRowsMax; }

/// "view 'obs' of priority table 'per'".
std::string Where(const PriorityTableSpec& spec, const View& view) {
  return "view '" + (view.name.empty() ? view.column : view.name) + "' of priority table '" +
         spec.name + "'";
}

Status CheckRows(const PriorityTableSpec& spec, const View& view, const CompiledView& compiled) {
  const bool sizes_good = view.stack >= 1 && view.stack <= kRowsMax && view.rows.plus >= 0 &&
                          view.rows.plus <= kRowsMax && view.rows.stride != 0 &&
                          IsNear(view.rows.stride) && IsNear(view.rows.begin) &&
                          (view.rows.count == ViewRows::kItemLength ||
                           (view.rows.count >= 1 && view.rows.count <= kRowsMax));
  if (!sizes_good) {
    return Status::InvalidArgument(
        Where(spec, view), " has begin ", view.rows.begin, ", count ", view.rows.count, ", stride ",
        view.rows.stride, ", plus ", view.rows.plus, ", stack ", view.stack,
        "; counts must be at least 1, the stride not 0, sizes below ", kRowsMax);
  }
  for (const int64_t row : view.rows.list) {
    if (IsNear(row)) continue;
    return Status::InvalidArgument(Where(spec, view), " shows row ", row,
                                   " relative to the anchor; at most ", kRowsMax,
                                   " either way are supported");
  }
  if (spec.item != ItemKind::kWindow || compiled.bootstrap || compiled.draw) return Status::Ok();
  const Extent& extent = spec.window.extent;
  for (int64_t k = 0; k < compiled.RowCount(extent.length); ++k) {
    const int64_t newest = compiled.Relative(k);
    const int64_t oldest = newest - (view.stack - 1);
    if (oldest < -extent.before || newest >= extent.length + extent.after) {
      return Status::InvalidArgument(Where(spec, view), " shows rows ", oldest, " to ", newest,
                                     " relative to the anchor; the extent {before ", extent.before,
                                     ", length ", extent.length, ", after ", extent.after,
                                     "} promises rows ", -extent.before, " to ",
                                     extent.length + extent.after - 1);
    }
    // A row that is repeated at the right edge may be the anchor, with a stack of its own.
    if (spec.window.right == EdgeRule::kRepeat && newest > 0 && view.stack - 1 > extent.before) {
      return Status::InvalidArgument(Where(spec, view), " stacks ", view.stack,
                                     " rows and repeats the last one, which may be the anchor; "
                                     "the extent promises ",
                                     extent.before, " rows before the anchor");
    }
  }
  return Status::Ok();
}

/// A padded batch of windows is as large whatever is drawn: no sampler can hand out one that no
/// memory holds. What fits that and not the budget, and all others, a draw refuses.
Status CheckBytes(const PriorityTableSpec& spec, const SamplerOptions& options, const View& view,
                  const CompiledView& compiled) {
  const bool as_large = spec.item == ItemKind::kWindow || compiled.draw;
  if (!as_large || options.layout != BatchLayout::kPadded) return Status::Ok();
  const int64_t rows = compiled.bootstrap ? 1 : compiled.RowCount(spec.window.extent.length);
  const auto entries = static_cast<uint64_t>(rows) * static_cast<uint64_t>(options.batch);
  if (entries <= kViewBytesMax / compiled.entry_bytes()) return Status::Ok();
  return Status::InvalidArgument(Where(spec, view), " shows ", options.batch, " items with ", rows,
                                 " entries of ", compiled.entry_bytes(),
                                 " bytes; expected at most ", kViewBytesMax, " bytes together");
}

bool NamesOneRow(const PriorityTableSpec& spec, const CompiledView& view, bool every_row) {
  if (view.bootstrap) return !every_row;
  if (view.draw) return view.count == 1;
  if (spec.item != ItemKind::kWindow) return false;
  return view.RowCount(spec.window.extent.length) == 1;
}

/// Makes the view show the rows of the draw that it names, if it names one.
Status NameDraw(const PriorityTableSpec& spec, std::span<const CompiledRowDraw> draws,
                const View& view, CompiledView* compiled) {
  const ViewRows& rows = view.rows;
  if (rows.draw.empty()) return Status::Ok();
  const ViewRows alone{.draw = rows.draw};
  if (compiled->per_trajectory || !(rows == alone)) {
    return Status::InvalidArgument(Where(spec, view), " shows the rows of draw '", rows.draw, "'; ",
                                   compiled->per_trajectory
                                       ? "its column is per trajectory, without rows to draw"
                                       : "then it names no others");
  }
  for (size_t i = 0; i < draws.size(); ++i) {
    if (draws[i].name != rows.draw) continue;
    compiled->draw = i;
    compiled->count = draws[i].count;
    return Status::Ok();
  }
  std::string names;
  for (const CompiledRowDraw& draw : draws) names += (names.empty() ? "" : ", ") + draw.name;
  return Status::InvalidArgument(
      Where(spec, view), " shows the rows of draw '", rows.draw,
      "', which is not among the sampler's row_draws: ", names.empty() ? "there are none" : names);
}

/// A view of a column that has a companion shows the rows there.
void ShowCompanion(const TableLayout& layout, std::optional<size_t> companion, CompiledView* view) {
  if (!companion) return;
  const CompanionColumn& column = layout.companions()[*companion];
  view->companion = companion;
  view->fixed = column.fixed();
  view->stored = column.dtype;
  view->row_shape = column.shape;
  view->row_bytes = column.row_bytes;
}

/// Which column the view shows, and what its rows are.
Status NameColumn(const TableLayout& layout, const PriorityTableSpec& spec, const View& view,
                  CompiledView* compiled) {
  if (const auto column = layout.FindTrajectoryColumn(view.column)) {
    const TrajectoryColumn& found = layout.trajectory_columns()[*column];
    compiled->per_trajectory = true;
    compiled->column = *column;
    compiled->stored = found.dtype;
    compiled->row_shape = found.shape;
    compiled->row_bytes = found.bytes;
    ShowCompanion(layout, found.companion, compiled);
    if (view.stack != 1 || view.masks) {
      return Status::InvalidArgument(Where(spec, view), " has stack ", view.stack, " and masks ",
                                     view.masks ? "on" : "off", "; column '", found.name,
                                     "' is per trajectory, without rows to stack or to mask");
    }
  } else if (const auto step = layout.FindStepColumn(view.column)) {
    const StepColumn& found = layout.step_columns()[*step];
    compiled->column = *step;
    compiled->stored = found.dtype;
    compiled->row_shape = found.shape;
    compiled->row_bytes = found.row_bytes;
    ShowCompanion(layout, found.companion, compiled);
    if (compiled->companion && view.stack != 1) {
      return Status::InvalidArgument(Where(spec, view), " has stack ", view.stack, "; column '",
                                     found.name, "' is ragged, and is not stacked");
    }
  } else {
    return layout.NoSuchColumn(view.column).WithContext(Where(spec, view));
  }
  return Status::Ok();
}

Result<CompiledView> CompileView(const TableLayout& layout, const PriorityTableSpec& spec,
                                 const SamplerOptions& options,
                                 std::span<const CompiledRowDraw> draws, const View& view) {
  CompiledView compiled;
  compiled.name = view.name.empty() ? view.column : view.name;
  compiled.masks = view.masks;
  compiled.stack = view.stack;
  GEARDB_RETURN_IF_ERROR(NameColumn(layout, spec, view, &compiled));
  compiled.delivered = view.to_f32 ? DType::kF32 : compiled.stored;
  compiled.convert =
      view.to_f32 && compiled.stored != DType::kF32 ? GatherConvert::kToF32 : GatherConvert::kCopy;
  compiled.out_row_bytes =
      static_cast<uint64_t>(compiled.row_shape.elements()) * DTypeBytes(compiled.delivered);
  compiled.pad_bits = ElementBits(compiled.delivered, view.pad_value);
  if (compiled.fixed) {  // Shown where none is set.
    compiled.pad_bits = layout.companions()[*compiled.companion].default_bits;
    float number = 0;
    if (compiled.convert == GatherConvert::kToF32) {
      ConvertToFloat(compiled.stored, reinterpret_cast<const std::byte*>(&compiled.pad_bits), 1,
                     &number);
      compiled.pad_bits = ElementBits(DType::kF32, double{number});
    }
  }
  if (compiled.row_shape.rank() + 3 > Shape::kRankMax) {
    return Status::Unsupported(Where(spec, view), " has rows of shape ",
                               compiled.row_shape.ToString(), "; at most ", Shape::kRankMax - 3,
                               " dimensions can be drawn");
  }
  if (compiled.per_trajectory) {
    GEARDB_RETURN_IF_ERROR(NameDraw(spec, draws, view, &compiled));
    return compiled;
  }

  compiled.bootstrap = view.rows.bootstrap;
  compiled.list = view.rows.list;
  compiled.begin = view.rows.begin;
  compiled.stride = view.rows.stride;
  compiled.count = view.rows.count;
  compiled.plus = view.rows.plus;
  GEARDB_RETURN_IF_ERROR(NameDraw(spec, draws, view, &compiled));
  if (compiled.bootstrap && !options.n_step) {
    return Status::InvalidArgument(Where(spec, view),
                                   " shows bootstrap rows, but the sampler has no n_step");
  }
  // A bootstrap row lies at the anchor or behind it.
  if (compiled.bootstrap && spec.item == ItemKind::kWindow &&
      view.stack - 1 > spec.window.extent.before) {
    return Status::InvalidArgument(Where(spec, view), " stacks ", view.stack,
                                   " rows; the extent promises ", spec.window.extent.before,
                                   " rows before the anchor");
  }
  GEARDB_RETURN_IF_ERROR(CheckRows(spec, view, compiled));
  GEARDB_RETURN_IF_ERROR(CheckBytes(spec, options, view, compiled));
  compiled.drop_axis = NamesOneRow(spec, compiled, options.n_step && options.n_step->every_row);
  return compiled;
}

Result<CompiledNStep> CompileNStep(const TableLayout& layout, const PriorityTableSpec& spec,
                                   const NStep& n_step) {
  CompiledNStep compiled;
  compiled.n = n_step.n;
  compiled.gamma = static_cast<float>(n_step.gamma);
  compiled.every_row = n_step.every_row;
  const auto scalar = [&](const std::string& name) -> Result<size_t> {
    const auto column = layout.FindStepColumn(name);
    if (!column && layout.FindTrajectoryColumn(name)) {
      return Status::InvalidArgument("n_step: column '", name, "' of table '", layout.spec().name,
                                     "' is per trajectory; a per-step column is needed");
    }
    if (!column) return layout.NoSuchColumn(name).WithContext("n_step");
    if (layout.step_columns()[*column].companion) {
      return Status::InvalidArgument("n_step: column '", name, "' of table '", layout.spec().name,
                                     "' is ragged; expected one value per step");
    }
    if (layout.step_columns()[*column].shape.elements() != 1) {
      return Status::InvalidArgument("n_step: column '", name, "' has shape ",
                                     layout.step_columns()[*column].shape.ToString(),
                                     "; expected one value per step");
    }
    return *column;
  };
  GEARDB_ASSIGN_OR_RETURN(compiled.reward, scalar(n_step.reward_column));
  if (!n_step.discount_column.empty()) {
    GEARDB_ASSIGN_OR_RETURN(compiled.discount, scalar(n_step.discount_column));
  }
  if (!n_step.life_loss_column.empty()) {
    GEARDB_ASSIGN_OR_RETURN(compiled.life_loss, scalar(n_step.life_loss_column));
  }
  if (n_step.n < 1 || n_step.n > kRowsMax || !std::isfinite(n_step.gamma)) {
    return Status::InvalidArgument("n_step has n ", n_step.n, " and gamma ", n_step.gamma,
                                   "; expected n from 1 to ", kRowsMax, " and a finite gamma");
  }
  const Extent& extent = spec.window.extent;
  const int64_t reach = n_step.every_row ? extent.after : extent.length - 1 + extent.after;
  if (spec.item == ItemKind::kWindow && n_step.n > reach) {
    return Status::InvalidArgument("n_step reads ", n_step.n, " rows beyond ",
                                   n_step.every_row ? "every row" : "the anchor",
                                   "; the extent {length ", extent.length, ", after ", extent.after,
                                   "} of priority table '", spec.name, "' promises ", reach);
  }
  return compiled;
}

}  // namespace

int64_t CompiledView::Over(int64_t item_length) const {
  int64_t newest = 0;
  if (list.empty()) {
    newest = std::max(Relative(0), Relative(RowCount(item_length) - 1));
  } else {
    newest = *std::max_element(list.begin(), list.end());
  }
  return std::max<int64_t>(0, newest + 1 - item_length);
}

std::vector<std::string> ViewPlan::OutputNames() const {
  std::vector<std::string> names;
  if (n_step) names.assign(std::begin(kNStepNames), std::end(kNStepNames));
  for (const CompiledRowDraw& draw : row_draws) {
    for (const char* suffix : kRowDrawSuffixes) names.push_back(draw.name + suffix);
  }
  for (const CompiledView& view : views) {
    names.push_back(view.name);
    if (!view.masks) continue;
    for (const char* suffix : kMaskSuffixes) names.push_back(view.name + suffix);
  }
  return names;
}

int64_t ViewPlan::DrawnStack() const {
  int64_t stack = 1;
  for (const CompiledView& view : views) {
    if (view.draw) stack = std::max(stack, view.stack);
  }
  return stack;
}

Status ViewPlan::CheckColumns(const TableLayout& now) const {
  const auto gone = [&](std::string_view shown_by, std::string_view column) {
    return Status::NotFound("table '", now.spec().name, "': column '", column, "', which ",
                            shown_by, " shows, was dropped");
  };
  for (const CompiledView& view : views) {
    const std::string shown_by = "view '" + view.name + "'";
    if (view.per_trajectory) {
      const TrajectoryColumn& column = now.trajectory_columns()[view.column];
      if (column.dropped) return gone(shown_by, column.name);
    } else if (const StepColumn& column = now.step_columns()[view.column]; column.dropped) {
      return gone(shown_by, column.name);
    }
  }
  if (!n_step) return Status::Ok();
  for (const auto& number : {std::optional(n_step->reward), n_step->discount, n_step->life_loss}) {
    if (!number || !now.step_columns()[*number].dropped) continue;
    return gone("n_step", now.step_columns()[*number].name);
  }
  return Status::Ok();
}

Result<ViewPlan> CompileViews(const TableLayout& layout, const PriorityTableSpec& spec,
                              const SamplerOptions& options) {
  ViewPlan plan;
  GEARDB_ASSIGN_OR_RETURN(plan.row_draws,
                          CompileRowDraws(options.row_draws, "priority table '" + spec.name + "'"));
  for (const View& view : options.views) {
    GEARDB_ASSIGN_OR_RETURN(CompiledView compiled,
                            CompileView(layout, spec, options, plan.row_draws, view));
    if (compiled.name.starts_with("nstep.")) {
      return Status::InvalidArgument(Where(spec, view), " has a name that belongs to n_step");
    }
    plan.views.push_back(std::move(compiled));
  }
  std::set<std::string> names;
  for (const std::string& name : plan.OutputNames()) {
    if (names.insert(name).second) continue;
    return Status::InvalidArgument("priority table '", spec.name, "': two outputs are named '",
                                   name, "'");
  }
  if (options.n_step) {
    GEARDB_ASSIGN_OR_RETURN(plan.n_step, CompileNStep(layout, spec, *options.n_step));
  }
  return plan;
}

}  // namespace geardb::engine
