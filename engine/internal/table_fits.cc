#include "engine/internal/table_fits.h"

#include <algorithm>
#include <optional>

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

/// The pages of as many steps, in one trajectory.
uint64_t PagesOfSteps(const TableLayout& layout) {
  return layout.spec().steps_max / layout.steps_per_page() +
         (layout.spec().steps_max % layout.steps_per_page() != 0 ? 1 : 0);
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

}  // namespace

uint64_t SlabsOfPages(uint64_t pages, const TableLayout& layout) {
  uint64_t slabs = 0;
  for (const GroupLayout& group : layout.groups()) {
    if (group.dropped) continue;
    slabs += SlabsFor(pages + (group.may_be_unwritten() ? 1 : 0), group.pages.frame_bytes());
  }
  return slabs;
}

uint64_t PagesIn(uint64_t slabs, const TableLayout& layout) {
  uint64_t most = UINT64_MAX;
  for (const GroupLayout& group : layout.groups()) {
    if (group.dropped) continue;
    most = std::min(most, FramesIn(slabs, group.pages.frame_bytes()));
  }
  uint64_t fit = 0;
  while (fit < most) {
    const uint64_t middle = fit + (most - fit + 1) / 2;
    if (SlabsOfPages(middle, layout) <= slabs) {
      fit = middle;
    } else {
      most = middle - 1;
    }
  }
  return fit;
}

uint64_t PagesKept(const TableLayout& layout) {
  const std::optional<uint64_t> pages = BoundInPages(layout);
  if (!pages) return 0;
  // The least that, less ForCalls of them, are as many as the pages.
  return *pages + std::max<uint64_t>((std::max<uint64_t>(*pages, 1) - 1) / (kCallsShare - 1), 1);
}

TableSpec WithChosenSteps(const DatabaseCore& database, const TableSpec& spec) {
  TableSpec chosen = spec;
  if (spec.steps_per_page != 0) return chosen;
  chosen.steps_per_page = ChooseStepsPerPage(spec);
  const uint64_t piece_max = database.log->record_bytes_max() - kRecordOverhead;
  while (chosen.steps_per_page > 1 && TableLayout(chosen, 0).piece_bytes_max() > piece_max) {
    chosen.steps_per_page /= 2;
  }
  return chosen;
}

Status CheckTableFits(const DatabaseCore& database, const TableLayout& layout) {
  const TableSpec& spec = layout.spec();
  const uint64_t record_max = database.log->record_bytes_max();
  const uint64_t piece = layout.piece_bytes_max();
  if (piece + kRecordOverhead > record_max) {
    return Status::InvalidArgument(
        "table '", spec.name, "': a page of ", layout.steps_per_page(), " steps has ", piece,
        " bytes; at most ", record_max - kRecordOverhead,
        " fit a record of the log (a quarter of the ring's ", database.manifest.ring_bytes,
        " bytes and half of a segment's ", database.manifest.segment_bytes, " bytes, less ",
        kRecordOverhead, "): use a larger ring_bytes or a smaller steps_per_page");
  }
  const uint64_t page_bytes = layout.page_bytes();
  const uint64_t pages_max = PagesMax(*database.arena, layout);
  const uint64_t for_calls = ForCalls(pages_max);
  if (pages_max == 0) {
    return Status::InvalidArgument("table '", spec.name, "': a page of ", layout.steps_per_page(),
                                   " steps takes ", page_bytes, " bytes; the frame budget of ",
                                   database.arena->budget_bytes(),
                                   " bytes (budgets.frames_bytes) has no such frame");
  }
  if (spec.bytes_max > 0 && spec.bytes_max < 2 * page_bytes) {
    return Status::InvalidArgument("table '", spec.name, "' may hold ", spec.bytes_max,
                                   " bytes, less than two pages of ", page_bytes);
  }
  if (!database.options.resident) return Status::Ok();
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
    GEARDB_RETURN_IF_ERROR(CheckTableFits(database, TableLayout(column.spec, 0))
                               .WithContext("column '" + column.name + "'"));
  }
  return Status::Ok();
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
