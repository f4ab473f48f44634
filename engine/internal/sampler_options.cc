#include "engine/internal/sampler_options.h"

#include <cmath>

namespace geardb::engine {
namespace {

constexpr int64_t kBatchMax = int64_t{1} << 24;
constexpr int64_t kPrefetchMax = 1024;
/// So that draw numbers never come to their end.
constexpr uint64_t kRestartDrawMax = uint64_t{1} << 62;
constexpr size_t kPartsMax = 256;

template <typename... Parts>
Status Wrong(const PriorityTableSpec& spec, const Parts&... what) {
  return Status::InvalidArgument("a sampler of priority table '", spec.name, "' ", what...);
}

Status CheckOptions(const PriorityTableSpec& spec, const SamplerOptions& options) {
  if (options.batch < 1 || options.batch > kBatchMax) {
    return Wrong(spec, "has batch ", options.batch, "; expected 1 to ", kBatchMax);
  }
  if (options.prefetch < 0 || options.prefetch > kPrefetchMax) {
    return Wrong(spec, "has prefetch ", options.prefetch, "; expected 0 to ", kPrefetchMax);
  }
  if (options.layout != BatchLayout::kPadded && options.layout != BatchLayout::kPacked) {
    return Wrong(spec, "has layout ", static_cast<int>(options.layout),
                 "; expected 0 (padded) or 1 (packed)");
  }
  if (options.weight_maximum > WeightMaximum::kNone) {
    return Wrong(spec, "has weight_maximum ", static_cast<int>(options.weight_maximum),
                 "; expected 0 (batch), 1 (table) or 2 (none)");
  }
  if (options.timeout_ms < 0) {
    return Wrong(spec, "has timeout_ms ", options.timeout_ms, "; expected at least 0");
  }
  if (options.restart_draw && *options.restart_draw > kRestartDrawMax) {
    return Wrong(spec, "restarts at draw ", *options.restart_draw, "; expected 0 to ",
                 kRestartDrawMax);
  }
  if (options.audit && options.observer) {
    return Wrong(spec, "is an observer and audited; its hand-overs have no record");
  }
  if (options.name.size() > kNameLengthMax) {
    return Wrong(spec, "has a name of ", options.name.size(), " characters; expected at most ",
                 kNameLengthMax);
  }
  return CheckBeta(spec, options.beta);
}

Status CheckTokens(const PriorityTableSpec& spec, const SamplerOptions& options) {
  if (options.tokens_max < 0) {
    return Wrong(spec, "has tokens_max ", options.tokens_max, "; expected at least 0");
  }
  if (options.oversized > Oversized::kFail) {
    return Wrong(spec, "has oversized ", static_cast<int>(options.oversized),
                 "; expected 0 (alone) or 1 (fail)");
  }
  if (options.tokens_max > 0 && options.within) {
    return Wrong(spec, "has tokens_max ", options.tokens_max,
                 " and windows within trajectories, which are as many in every batch; expected one "
                 "of the two");
  }
  return Status::Ok();
}

/// An epoch advances by the rows that a batch keeps alone, and its last batch is what it is.
Status CheckEpochs(const PriorityTableSpec& spec, const SamplerOptions& options) {
  if (spec.selector != SelectorKind::kEpoch) return Status::Ok();
  if (options.tokens_max > 0) {
    return Wrong(spec, "draws epochs and has tokens_max ", options.tokens_max,
                 "; expected 0: an item that a batch does not take would hold up the pass");
  }
  if (options.within) {
    return Wrong(spec,
                 "draws epochs and windows within trajectories; expected none: a trajectory "
                 "without a row for one would never be covered");
  }
  return Status::Ok();
}

/// Each row of a batch has a random number of its own.
Status CheckGroups(const PriorityTableSpec& spec, const SamplerOptions& options) {
  constexpr int64_t kGroupRowsMax = int64_t{1} << 30;
  if (spec.item != ItemKind::kGroup || options.batch <= kGroupRowsMax / spec.group.count) {
    return Status::Ok();
  }
  return Wrong(spec, "has batch ", options.batch, " of groups of up to ", spec.group.count,
               "; expected at most ", kGroupRowsMax, " members together");
}

/// The spec of the items that a batch shows.
Result<PriorityTableSpec> ItemsOf(const TableSpec& table, const PriorityTableSpec& spec,
                                  const SamplerOptions& options) {
  PriorityTableSpec items = spec;
  if (!options.within) return items;
  const WindowsWithin& within = *options.within;
  if (spec.item == ItemKind::kWindow) {
    return Wrong(spec,
                 "draws windows within trajectories; the priority table's items are windows "
                 "already");
  }
  if (within.count < 1 || within.count > kBatchMax / options.batch) {
    return Wrong(spec, "draws ", within.count, " windows within each of ", options.batch,
                 " trajectories; expected at least 1, and at most ", kBatchMax, " together");
  }
  if (options.weight_maximum != WeightMaximum::kBatch) {
    return Wrong(spec, "draws windows within trajectories and has weight_maximum ",
                 static_cast<int>(options.weight_maximum),
                 "; expected 0 (batch): nobody counts the windows of the table");
  }
  items.item = ItemKind::kWindow;
  items.group = {};
  items.window = within.window;
  const Status window = ValidatePriorityTableSpec(table, items);
  if (!window.ok()) return window.WithContext("windows within trajectories");
  return items;
}

// ---- Parts.

Status CheckShares(std::span<const SamplerSource> sources, const SamplerOptions& options) {
  int64_t fixed = 0;
  double sum = 0;
  size_t rests = 0;
  bool by_probability = false;
  bool up_to = false;
  for (const SamplerSource& source : sources) {
    const SamplerPart& part = source.share;
    const PriorityTableSpec& spec = source.priority_table->spec;
    const bool counted = part.share == ShareKind::kFixed || part.share == ShareKind::kUpToAvailable;
    if (part.share > ShareKind::kRest) {
      return Wrong(spec, "has share ", static_cast<int>(part.share),
                   "; expected 0 (fixed), 1 (probability), 2 (up to available) or 3 (rest)");
    }
    if (counted ? part.count < 1 || part.count > options.batch : part.count != 0) {
      return Wrong(spec, "has count ", part.count, " in its part; expected ",
                   counted ? "1 to the batch's " + std::to_string(options.batch)
                           : std::string("0 where the share is no count"));
    }
    by_probability |= part.share == ShareKind::kProbability;
    up_to |= part.share == ShareKind::kUpToAvailable;
    if (spec.selector == SelectorKind::kEpoch && part.share != ShareKind::kUpToAvailable) {
      return Wrong(spec, "draws epochs and has share ", static_cast<int>(part.share),
                   " in its part; expected 2 (up to available): a pass ends with what is left");
    }
    const bool probable = part.share == ShareKind::kProbability;
    if (probable ? !(part.probability >= 0 && part.probability <= 1) : part.probability != 0) {
      return Wrong(spec, "has probability ", part.probability, " in its part; expected ",
                   probable ? "0 to 1" : "0 where the share is no probability");
    }
    if (part.share == ShareKind::kFixed) fixed += part.count;
    if (part.share == ShareKind::kRest) ++rests;
    sum += part.probability;
  }
  const PriorityTableSpec& first = sources[0].priority_table->spec;
  if (rests > 1) return Wrong(first, "has ", rests, " parts that take the rest; expected one");
  if (fixed > options.batch) {
    return Wrong(first, "has parts of ", fixed, " rows together; the batch has ", options.batch);
  }
  if (rests == 1 ? sum > 1 + 1e-9 : by_probability && std::abs(sum - 1) > 1e-9) {
    return Wrong(first, "has parts with probability ", sum, " together; expected ",
                 rests == 1 ? "at most 1" : "1, or a part that takes the rest");
  }
  if (rests == 1 || by_probability || fixed == options.batch) return Status::Ok();
  return Wrong(first, "has parts of ", fixed, " rows together", up_to ? " for certain" : "",
               "; the batch has ", options.batch, ", and no part takes the rest");
}

Status CheckSameViews(const SamplerSource& first, const SamplerSource& other) {
  const auto wrong = [&](const std::string& name, const auto& a, const auto& b) {
    return Status::InvalidArgument("view '", name, "' is ", a, " of ", first.Name(), " and ", b,
                                   " of ", other.Name(), "; the parts of a sampler show the same");
  };
  for (size_t v = 0; v < first.plan.views.size(); ++v) {
    const CompiledView& a = first.plan.views[v];
    const CompiledView& b = other.plan.views[v];
    const auto words = [](const CompiledView& view) {
      return std::string(DTypeName(view.stored)) + " " + view.row_shape.ToString() +
             (view.per_trajectory ? " per trajectory"
              : view.drop_axis    ? ", one row"
                                  : "") +
             (view.companion && !view.fixed ? ", any number of rows" : "");
    };
    if (words(a) != words(b)) return wrong(a.name, words(a), words(b));
  }
  return Status::Ok();
}

Status CheckParts(std::span<const SamplerSource> sources, const SamplerOptions& options) {
  const PriorityTableSpec& first = sources[0].priority_table->spec;
  if (sources.size() > kPartsMax) {
    return Wrong(first, "has ", sources.size(), " parts; expected at most ", kPartsMax);
  }
  if (options.within) return Wrong(first, "has parts and windows within trajectories");
  if (options.tokens_max > 0) return Wrong(first, "has parts and tokens_max");
  if (options.drop_last) return Wrong(first, "has parts and drop_last");
  if (options.weight_maximum == WeightMaximum::kTable) {
    return Wrong(first, "has parts and weight_maximum 1 (table); expected 0 (batch) or 2 (none)");
  }
  if (options.restart_draw && !options.observer) {
    return Wrong(first,
                 "has parts and restarts its draws; samplers of the single priority tables "
                 "do that");
  }
  for (size_t p = 0; p < sources.size(); ++p) {
    const PriorityTableSpec& spec = sources[p].priority_table->spec;
    if ((spec.item == ItemKind::kGroup) != (first.item == ItemKind::kGroup)) {
      return Wrong(first, "has ", ItemKindName(first.item), "s and those of '", spec.name, "' ",
                   ItemKindName(spec.item), "s; groups are mixed with groups alone");
    }
    for (size_t other = 0; other < p; ++other) {
      const PriorityTable::Impl& a = *sources[p].priority_table;
      const PriorityTable::Impl& b = *sources[other].priority_table;
      if (a.table != b.table || a.number != b.number) continue;
      return Wrong(a.spec, "has it as part ", other, " and as part ", p);
    }
    GEARDB_RETURN_IF_ERROR(CheckSameViews(sources[0], sources[p]));
  }
  return CheckShares(sources, options);
}

}  // namespace

Status CheckBeta(const PriorityTableSpec& spec, double beta) {
  if (beta >= 0 && std::isfinite(beta)) return Status::Ok();
  return Wrong(spec, "has beta ", beta, "; expected a finite value of at least 0");
}

Result<std::vector<SamplerSource>> CheckSampler(
    std::span<const std::shared_ptr<PriorityTable::Impl>> tables,
    std::span<const SamplerPart> parts, const SamplerOptions& options) {
  std::vector<SamplerSource> sources;
  for (size_t p = 0; p < tables.size(); ++p) {
    const PriorityTable::Impl& of = *tables[p];
    GEARDB_RETURN_IF_ERROR(CheckOptions(of.spec, options));
    GEARDB_RETURN_IF_ERROR(CheckTokens(of.spec, options));
    GEARDB_RETURN_IF_ERROR(CheckEpochs(of.spec, options));
    GEARDB_RETURN_IF_ERROR(CheckGroups(of.spec, options));
    GEARDB_RETURN_IF_ERROR(of.database->CheckTable(*of.table));
    const TableLayout& layout = of.table->layout();
    GEARDB_ASSIGN_OR_RETURN(PriorityTableSpec items, ItemsOf(layout.spec(), of.spec, options));
    // Views are as large as all windows of the batch need.
    SamplerOptions whole = options;
    if (options.within) whole.batch *= options.within->count;
    GEARDB_ASSIGN_OR_RETURN(ViewPlan plan, CompileViews(layout, items, whole));
    sources.push_back({.priority_table = tables[p],
                       .items = std::move(items),
                       .plan = std::move(plan),
                       .layout = &layout,
                       .share = parts[p]});
    sources.back().share.priority_table.reset();
  }
  if (sources.size() > 1) GEARDB_RETURN_IF_ERROR(CheckParts(sources, options));
  return sources;
}

}  // namespace geardb::engine
