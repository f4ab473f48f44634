#include "engine/internal/table_fits.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "engine/internal/page_loader.h"

namespace geardb::engine {
namespace {

/// Bytes of a record that its header, metadata and body may take beside the pieces of one page.
constexpr uint64_t kRecordOverhead = 4096;
/// One of so many frames stays free of a table that is bounded in bytes or steps.
constexpr uint64_t kCallsShare = 16;

/// Of so many frames, those for calls under way: a call takes its frames before it is decided what
/// leaves for it.
uint64_t ForCalls(uint64_t frames) {
  return std::min(std::max<uint64_t>(frames / kCallsShare, 1), frames);
}

/// A bound in bytes has so many pages at least, with their values, where nobody chose their size.
constexpr uint64_t kPagesOfBound = 64;

/// Of each group: the last page of an open trajectory, which stays, and the page after it.
constexpr uint64_t kPagesAtOnce = 2;

/// What frames have to have at once, of several pools.
struct FrameNeed {
  uint64_t slabs = 0;  ///< Of pools that take only whole ones.
  uint64_t parts = 0;  ///< Of pools that may share some.

  uint64_t bytes() const {
    return (slabs + (parts + kPartsPerSlab - 1) / kPartsPerSlab) * kSlabBytes;
  }
};

/// Pages that can lose their frames need none kept.
bool KeepsFrames(const DatabaseCore& database, const GroupLayout& group) {
  return !group.dropped && (database.options.resident || !group.logged());
}

/// Adds those of a table, with what is kept for its bound. `state`: of one that is there.
void AddNeed(const DatabaseCore& database, const TableLayout& layout, const TableState* state,
             FrameNeed* need) {
  for (size_t g = 0; g < layout.group_count(); ++g) {
    const GroupLayout& group = layout.group(g);
    if (group.dropped) continue;
    const uint64_t kept = KeepsFrames(database, group) ? PagesKept(layout) : 0;
    const uint64_t defaults = group.may_be_unwritten() ? 1 : 0;
    const uint64_t frame_bytes = group.pages.frame_bytes();
    if (kept > 0 || !FitsParts(frame_bytes)) {
      need->slabs += SlabsFor(std::max(kept, kPagesAtOnce) + defaults, frame_bytes);
      continue;
    }
    // Each may lie in a part of its own, or in a slab that the pool took when there were enough.
    const uint64_t at_once = kPagesAtOnce + defaults;
    const uint64_t slabs = state == nullptr || g >= state->layout().group_count()
                               ? 0
                               : database.arena->SlabsOwned(state->pool(g));
    need->slabs += std::min(slabs, at_once);
    need->parts += at_once - std::min(slabs, at_once);
  }
}

Status CheckNeed(const DatabaseCore& database, const FrameNeed& need) {
  const uint64_t budget_bytes = database.arena->budget_bytes();
  if (need.bytes() <= budget_bytes) return Status::Ok();
  return Status::InvalidArgument(
      "the frame budget of ", budget_bytes,
      " bytes (budgets.frames_bytes) is less than what all tables have to have in memory at once, "
      "two pages of each column group and of each column of values, and what is kept for bounds: "
      "use at least ",
      need.bytes());
}

/// The pages of as many steps, in one trajectory.
uint64_t PagesOfSteps(const TableLayout& layout) {
  return layout.spec().steps_max / layout.steps_per_page() +
         (layout.spec().steps_max % layout.steps_per_page() != 0 ? 1 : 0);
}

/// Of rows of any length, by what the schema expects.
uint64_t ValueBytesOfStep(const TableSpec& spec) {
  uint64_t bytes = 0;
  for (const Column& column : spec.columns) {
    if (column.kind != ColumnKind::kRagged) continue;
    const uint64_t row_bytes =
        static_cast<uint64_t>(column.shape.elements()) * DTypeBytes(column.dtype);
    bytes += std::min(column.expected_rows, kPageBytesMax / row_bytes) * row_bytes;
  }
  return bytes;
}

/// Some of its columns have values of any length, or wide ones.
bool HasValues(const TableLayout& layout) {
  const auto has_some = [](const auto& column) { return !column.dropped && column.companion; };
  return std::ranges::any_of(layout.step_columns(), has_some) ||
         std::ranges::any_of(layout.trajectory_columns(), has_some);
}

/// The pages that a table's bounds in bytes and steps allow it, where it has any.
std::optional<uint64_t> BoundInPages(const TableLayout& layout) {
  const TableSpec& spec = layout.spec();
  std::optional<uint64_t> pages;
  if (spec.bytes_max > 0) pages = spec.bytes_max / layout.page_bytes();
  if (spec.steps_max > 0) {
    pages = std::min(pages.value_or(PagesOfSteps(layout)), PagesOfSteps(layout));
  }
  return pages;
}

/// As many, and those that calls under way take: the least that, less ForCalls of them, are as
/// many.
uint64_t WithCalls(std::optional<uint64_t> pages) {
  if (!pages) return 0;
  return *pages + std::max<uint64_t>((std::max<uint64_t>(*pages, 1) - 1) / (kCallsShare - 1), 1);
}

}  // namespace

uint64_t SlabsOfPages(uint64_t pages, const TableLayout& layout) {
  uint64_t slabs = 0;
  for (const GroupLayout& group : layout.groups()) {
    if (group.dropped) continue;
    slabs += SlabsFor(pages + (group.may_be_unwritten() ? 1 : 0), group.pages.frame_bytes());
  }
  return slabs;
}

uint64_t RoomOfPages(uint64_t pages, const TableLayout& layout) {
  uint64_t bytes = 0;
  for (const GroupLayout& group : layout.groups()) {
    if (group.dropped) continue;
    bytes += RoomFor(pages + (group.may_be_unwritten() ? 1 : 0), group.pages.frame_bytes());
  }
  return bytes;
}

namespace {

/// The most pages, of as many as so many slabs have frames for, that `fits` says fit.
template <typename Fits>
uint64_t MostPages(uint64_t slabs, const TableLayout& layout, const Fits& fits) {
  uint64_t most = UINT64_MAX;
  for (const GroupLayout& group : layout.groups()) {
    if (group.dropped) continue;
    most = std::min(most, FramesIn(slabs, group.pages.frame_bytes()));
  }
  uint64_t fit = 0;
  while (fit < most) {
    const uint64_t middle = fit + (most - fit + 1) / 2;
    if (fits(middle)) {
      fit = middle;
    } else {
      most = middle - 1;
    }
  }
  return fit;
}

}  // namespace

uint64_t PagesIn(uint64_t slabs, const TableLayout& layout) {
  return MostPages(slabs, layout,
                   [&](uint64_t pages) { return SlabsOfPages(pages, layout) <= slabs; });
}

uint64_t PagesMax(const HostArena& arena, const TableLayout& layout) {
  return MostPages(arena.slab_count(), layout, [&](uint64_t pages) {
    return RoomOfPages(pages, layout) <= arena.budget_bytes();
  });
}

uint64_t PagesKept(const TableLayout& layout) {
  if (layout.spec().bytes_max == 0 || !HasValues(layout)) return WithCalls(BoundInPages(layout));
  // What values of any length take of it nobody knows: most of it, as a rule.
  return layout.spec().steps_max > 0 ? WithCalls(PagesOfSteps(layout)) : 0;
}

uint64_t SlabsKept(const DatabaseCore& database, const TableLayout& layout) {
  const uint64_t pages = PagesKept(layout);
  uint64_t slabs = 0;
  for (const GroupLayout& group : layout.groups()) {
    if (KeepsFrames(database, group)) slabs += SlabsFor(pages, group.pages.frame_bytes());
  }
  return slabs;
}

TableSpec WithChosenSteps(const DatabaseCore& database, const TableSpec& spec) {
  TableSpec chosen = spec;
  if (spec.steps_per_page != 0) return chosen;
  chosen.steps_per_page = ChooseStepsPerPage(spec);
  const uint64_t piece_max = database.log->record_bytes_max() - kRecordOverhead;
  while (chosen.steps_per_page > 1 && TableLayout(chosen, 0).piece_bytes_max() > piece_max) {
    chosen.steps_per_page /= 2;
  }
  const uint64_t value_bytes = ValueBytesOfStep(spec);
  while (chosen.steps_per_page > 1 && spec.bytes_max > 0 &&
         value_bytes > spec.bytes_max / kPagesOfBound / chosen.steps_per_page) {
    chosen.steps_per_page /= 2;
  }
  return chosen;
}

namespace {

/// A page goes into a record of the log; `advice` says what else would do.
Status CheckPageFits(const DatabaseCore& database, const TableLayout& layout,
                     std::string_view advice) {
  for (size_t g = 0; g < layout.group_count(); ++g) {
    const uint64_t bytes = layout.group(g).pages.frame_bytes();
    if (layout.group(g).dropped || bytes < kPageBytesMax) continue;
    return Status::InvalidArgument("table '", layout.spec().name, "': a page of ",
                                   layout.steps_per_page(), " steps has ", bytes,
                                   " bytes in one column group; less than ", kPageBytesMax,
                                   " are supported: use a smaller steps_per_page");
  }
  const uint64_t record_max = database.log->record_bytes_max();
  const uint64_t piece = layout.piece_bytes_max();
  if (piece + kRecordOverhead <= record_max) return Status::Ok();
  return Status::InvalidArgument(
      "table '", layout.spec().name, "': a page of ", layout.steps_per_page(), " steps has ", piece,
      " bytes; at most ", record_max - kRecordOverhead,
      " fit a record of the log (a quarter of the ring's ", database.manifest.ring_bytes,
      " bytes and half of a segment's ", database.manifest.segment_bytes, " bytes, less ",
      kRecordOverhead, "): use a larger ", advice);
}

}  // namespace

Status CheckTableFits(const DatabaseCore& database, const TableLayout& layout) {
  const TableSpec& spec = layout.spec();
  GEARDB_RETURN_IF_ERROR(CheckPageFits(database, layout, "ring_bytes or a smaller steps_per_page"));
  const uint64_t page_bytes = layout.page_bytes();
  if (spec.bytes_max > 0 && spec.bytes_max < 2 * page_bytes) {
    return Status::InvalidArgument("table '", spec.name, "' may hold ", spec.bytes_max,
                                   " bytes, less than two pages of ", page_bytes);
  }
  if (!database.options.resident) return Status::Ok();
  const uint64_t pages_max = PagesIn(database.arena->slab_count(), layout);
  const uint64_t for_calls = ForCalls(pages_max);
  const uint64_t most = (pages_max - for_calls) * page_bytes;
  if (spec.bytes_max > most) {
    return Status::InvalidArgument("table '", spec.name, "' may hold ", spec.bytes_max,
                                   " bytes: at most ", most, " of the frame budget of ",
                                   database.arena->budget_bytes(), " bytes, whose ", pages_max,
                                   " frames leave ", for_calls, " to the calls under way");
  }
  if (PagesOfSteps(layout) > most / page_bytes) {
    return Status::InvalidArgument("table '", spec.name, "' may hold ", spec.steps_max,
                                   " steps in ", PagesOfSteps(layout), " pages: at most ",
                                   most / page_bytes, " fit the frame budget");
  }
  return Status::Ok();
}

Status CheckCompanionsFit(const DatabaseCore& database, const TableLayout& layout) {
  for (const CompanionColumn& column : layout.companions()) {
    const TableLayout companion(column.spec, 0);
    // How many of its rows a page has, nobody chooses.
    Status fits = CheckPageFits(database, companion, "ring_bytes and segment_bytes");
    if (fits.ok()) fits = CheckTableFits(database, companion);
    GEARDB_RETURN_IF_ERROR(fits.WithContext("column '" + column.name + "'"));
  }
  return Status::Ok();
}

Status CheckAllFit(const DatabaseCore& database, const TableLayout& layout) {
  FrameNeed need;
  auto there = database.AllTables();
  for (const CompanionColumn& column : layout.companions()) {
    const auto leaves = [&](const auto& table) { return table->layout().id() == column.id; };
    if (column.dropped) std::erase_if(there, leaves);
  }
  const auto find = [&](TableId id) -> const TableState* {
    for (const auto& table : there) {
      if (table->layout().id() == id) return table->state.get();
    }
    return nullptr;
  };
  AddNeed(database, layout, find(layout.id()), &need);
  for (const CompanionColumn& column : layout.companions()) {
    if (column.dropped || find(column.id) != nullptr) continue;
    AddNeed(database, TableLayout(column.spec, column.id), nullptr, &need);
  }
  for (const auto& table : there) {
    if (table->layout().id() == layout.id()) continue;
    AddNeed(database, table->layout(), table->state.get(), &need);
  }
  return CheckNeed(database, need).WithContext("table '" + layout.spec().name + "'");
}

Status CheckOpenFits(const DatabaseCore& database) {
  FrameNeed need;
  for (const auto& table : database.AllTables()) {
    for (const GroupLayout& group : table->layout().groups()) {
      if (group.dropped) continue;
      const uint64_t frames = kPagesAtOnce + (group.may_be_unwritten() ? 1 : 0);
      const bool in_parts = FitsParts(group.pages.frame_bytes());
      (in_parts ? need.parts : need.slabs) +=
          in_parts ? frames : SlabsFor(frames, group.pages.frame_bytes());
    }
  }
  return CheckNeed(database, need).WithContext("database '" + database.directory + "'");
}

Status CheckFitsBesideOthers(const DatabaseCore& database, const TableLayout& layout) {
  if (!database.options.resident) return Status::Ok();
  const TableSpec& spec = layout.spec();
  const std::optional<uint64_t> pages = BoundInPages(layout);
  if (!pages) return Status::Ok();
  const uint64_t budget_bytes = database.arena->budget_bytes();
  uint64_t others_bytes = 0;
  for (const auto& table : database.AllTables()) {
    const TableLayout& other = table->layout();
    if (other.id() == layout.id()) continue;
    const uint64_t kept = PagesKept(other);
    if (kept > 0) others_bytes += SlabsOfPages(kept, other) * kSlabBytes;
  }
  const uint64_t left_bytes = budget_bytes - std::min(budget_bytes, others_bytes);
  const uint64_t frames = PagesIn(left_bytes / kSlabBytes, layout);
  const uint64_t for_calls = ForCalls(frames);
  if (others_bytes == 0 || *pages <= frames - for_calls) return Status::Ok();
  return Status::InvalidArgument(
      "table '", spec.name, "' may hold ", *pages, " pages of ", layout.page_bytes(),
      " bytes: at most ", frames - for_calls, ", since other tables may hold ", others_bytes,
      " bytes, in whole slabs of ", kSlabBytes, ", of the frame budget of ", budget_bytes,
      " bytes (budgets.frames_bytes), and of the ", frames, " frames left ", for_calls,
      " are for the calls under way");
}

}  // namespace geardb::engine
