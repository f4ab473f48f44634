#include "tests/testing/index_dump.h"

#include <iomanip>
#include <sstream>

#include "engine/internal/priority_limits.h"

namespace geardb::testing {
namespace {

using engine::PriorityState;
using engine::TableState;

void PutBytes(std::span<const std::byte> bytes, std::ostream* out) {
  for (const std::byte byte : bytes) *out << ' ' << static_cast<int>(byte);
}

void DumpPage(const TableState& state, const index::TrajectoryRecord& record, Lpn lpn,
              std::ostream* out) {
  const engine::TableLayout& layout = state.layout();
  const index::PageRecord& page = state.pages().page(lpn);
  *out << "  page " << page.page_number << " lpn " << lpn << " generation " << page.generation
       << " in slot " << page.slot << " between " << page.prev << " and " << page.next
       << (page.in_use != 0 ? "" : " FREE");
  if (state.pages().Find(TableState::ListOf(record), page.page_number) != lpn) *out << " NOT FOUND";
  for (size_t g = 0; g < layout.group_count(); ++g) {
    const engine::GroupLayout& group = layout.group(g);
    if (group.late && group.is_volatile) continue;
    const index::GroupPageRecord& of = state.pages().group_page(g, lpn);
    *out << "; group " << g << ": " << of.newest_lsn << " since " << of.birth_lsn << ", "
         << of.rows_filled << " rows, " << int{of.piece_count} << " pieces, at " << of.piece_at
         << " checksum " << of.piece_checksum << ", " << (of.flags & engine::kPageFlagsSaved);
  }
  if (layout.spec().stream) {
    *out << "; flags";
    const uint64_t first = uint64_t{page.page_number} << layout.steps_shift();
    for (uint64_t i = 0; i < layout.steps_per_page(); ++i) {
      const bool there = first + i >= record.first_row && first + i < record.rows_end;
      if (there) *out << ' ' << static_cast<int>(state.pages().row_flags(lpn)[i]);
    }
  }
  *out << '\n';
}

void DumpTrajectory(const TableState& state, Slot slot, std::ostream* out) {
  const engine::TableLayout& layout = state.layout();
  const index::TrajectoryRecord& record = state.trajectories().record(slot);
  *out << " slot " << slot << " generation " << record.generation << " id " << record.id << " rows "
       << record.first_row << " to " << record.rows_end << " created " << record.created_us
       << " sampled " << record.times_sampled << " set " << record.columns_set << " last "
       << record.last_lsn << " session " << record.session << " lane " << record.lane << " pages "
       << record.head_lpn << " to " << record.tail_lpn << " state "
       << static_cast<int>(record.state) << " end " << static_cast<int>(record.end) << " flags "
       << static_cast<int>(record.flags) << " found in "
       << state.trajectories().FindById(record.id);
  for (size_t c = 0; c < layout.trajectory_columns().size(); ++c) {
    *out << ';';
    PutBytes(state.trajectories().column(c, slot), out);
  }
  for (size_t g = 0; g < layout.group_count(); ++g) {
    const engine::GroupLayout& group = layout.group(g);
    if (group.late && !group.is_volatile) *out << "; filled to " << state.Filled(g, slot);
  }
  *out << '\n';
  for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state.pages().page(lpn).next) {
    DumpPage(state, record, lpn, out);
  }
}

void DumpDraws(const PriorityState& priority, std::ostream* out) {
  const index::Selector& selector = priority.selector();
  for (uint64_t draw = priority.next_draw; draw < priority.next_draw + 3; ++draw) {
    std::vector<uint64_t> leaves(5);
    std::vector<double> probabilities(5);
    const uint64_t drawn =
        selector.Draw({.seed = priority.seed, .draw_number = draw}, leaves, probabilities);
    *out << "  draw " << draw << ':';
    for (size_t i = 0; i < drawn; ++i) *out << ' ' << leaves[i] << " by " << probabilities[i];
    *out << '\n';
  }
}

/// What is reserved is drawn, and remains.
void DumpEpoch(const PriorityState& priority, std::ostream* out) {
  const engine::EpochState& epoch = *priority.epoch();
  const EpochStats stats = epoch.Stats();
  *out << "  epoch " << stats.epoch << " pass " << stats.pass << " of " << stats.passes << ", "
       << stats.remaining << " left of " << stats.items << (stats.exhausted ? " exhausted" : "");
  const index::LeafRange all{0, priority.selector().reserved()};
  epoch.selector().cut_members().ForEach(all, [&](uint64_t leaf) {
    const bool left = epoch.Remains(leaf) || epoch.reserved_leaves().contains(leaf);
    *out << ' ' << leaf << (left ? "" : " covered") << (epoch.IsCovered(leaf) ? " for good" : "");
  });
  *out << '\n';
}

void DumpGroups(const engine::DrawGroups& groups, std::ostream* out) {
  for (uint64_t group = 0; group < groups.reserved(); ++group) {
    if (!groups.InUse(group)) continue;
    *out << "  draw group " << group << " of key " << groups.KeyOf(group) << " generation "
         << groups.GenerationOf(group) << (groups.IsReady(group) ? " ready" : " waiting")
         << (groups.TakesMembers(group) ? " takes members" : "") << " end "
         << static_cast<int>(groups.EndOf(group)) << " found "
         << groups.FindTaking(groups.KeyOf(group)) << ':';
    groups.ForEachMember(
        group, [&](Slot slot) { *out << ' ' << slot << (groups.WasShown(slot) ? " shown" : ""); });
    *out << '\n';
  }
  const GroupStats stats = groups.Stats();
  *out << "  draw groups: " << stats.waiting << " wait, " << stats.ready << " ready, "
       << stats.taking << ' ' << stats.complete << ' ' << stats.sealed_by_hand << ' '
       << stats.sealed_by_deadline << ", members " << stats.members << "; " << groups.WaitingText()
       << '\n';
}

void DumpPriorityTable(const PriorityState& priority, std::ostream* out) {
  const index::Selector& selector = priority.selector();
  const PriorityTableSpec& spec = priority.spec();
  const index::RateLimiterState& counts = priority.limiter().state();
  *out << " priority table " << spec.name << ' ' << engine::Describe(engine::LimitsOf(spec))
       << " item " << static_cast<int>(spec.item) << " selector " << static_cast<int>(spec.selector)
       << " alpha " << spec.alpha << " required " << priority.required.columns << " and "
       << priority.required.groups.size() << " seed " << priority.seed << " next draw "
       << priority.next_draw << " max " << priority.max_priority() << " count " << selector.count()
       << " drawable " << selector.drawable() << " total " << selector.total() << " exhausted "
       << priority.CountExhausted() << "; inserts " << counts.inserts << " from "
       << counts.inserts_from << " samples " << counts.samples << " from " << counts.samples_from
       << " deletes " << counts.deletes << " of which " << counts.deleted_unsampled << '\n';
  for (const uint64_t rows : {1u, 7u, 1000u}) {
    *out << "  sample " << rows << ": " << priority.BlockedSample(rows).text
         << "; insert: " << priority.BlockedInsert(rows).text << '\n';
  }
  if (const auto* weights = priority.prioritized()) {
    const auto scale = weights->scale();
    *out << "  shift " << scale.shift << (scale.saturated ? " saturated" : "") << " changed "
         << scale.changed << " bound " << weights->LargestWeightBound() << " advised "
         << weights->AdviseShift(0).value_or(-99) << '\n';
  }
  selector.ForEachMember({0, selector.reserved()}, [&](uint64_t leaf) {
    *out << "  leaf " << leaf << " priority " << priority.raw_priority(leaf) << " probability "
         << priority.ProbabilityOf(leaf) << (selector.IsHidden(leaf) ? " hidden" : "")
         << (priority.IsExhausted(leaf) ? " exhausted" : "") << '\n';
  });
  priority.ForEachDeleted([&](uint64_t leaf) { *out << "  deleted " << leaf << '\n'; });
  if (priority.epoch() != nullptr) DumpEpoch(priority, out);
  if (priority.groups() != nullptr) DumpGroups(*priority.groups(), out);
  DumpDraws(priority, out);
}

}  // namespace

std::string DumpTable(engine::TableState* state) {
  std::ostringstream out;
  out << std::setprecision(17);
  out << "table " << state->layout().id() << " '" << state->layout().spec().name << "' rows "
      << state->rows() << " steps " << state->steps() << " pages " << state->page_count()
      << " open " << state->open_count() << " trajectories " << state->trajectories().count()
      << " removed " << state->removals().end() << '\n';
  state->trajectories().ForEach(
      [&](Slot slot, const index::TrajectoryRecord&) { DumpTrajectory(*state, slot, &out); });
  for (size_t i = 0; i < state->priority_table_count(); ++i) {
    DumpPriorityTable(state->priority(i), &out);
  }
  for (const Slot slot : state->FinishedTrajectories()) out << " finished " << slot << '\n';
  return std::move(out).str();
}

std::string DumpIndex(const engine::DatabaseCore& core) {
  std::string dump = "next table " + std::to_string(core.NextTableId()) + '\n';
  for (const Tag& tag : core.Tags()) {
    dump += "tag '" + tag.name + "' at " + std::to_string(tag.lsn) + " of " +
            std::to_string(tag.created_us) + (tag.damaged ? " damaged" : "") + ": " +
            std::string(reinterpret_cast<const char*>(tag.blob.data()), tag.blob.size()) + '\n';
  }
  for (const auto& table : core.AllTables()) {
    MutexLock lock(&table->state->mutex);
    dump += DumpTable(table->state.get());
  }
  return dump;
}

}  // namespace geardb::testing
