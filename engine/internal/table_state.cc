#include "engine/internal/table_state.h"

#include <algorithm>
#include <cstring>

#include "base/break.h"
#include "engine/internal/anchors.h"
#include "engine/internal/append_plan.h"
#include "engine/internal/stored_schema.h"
#include "engine/internal/table_capacity.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kLpnGrowth = 64;
constexpr uint64_t kSlotGrowth = 64;

uint64_t LeafCapacity(const index::IndexMemory& memory, const TableLayout& layout,
                      const PriorityTableSpec& spec) {
  const uint64_t places = spec.item == ItemKind::kWindow
                              ? LpnCapacityOf(memory) * layout.steps_per_page()
                              : SlotCapacityOf(memory);
  // A uniform leaf takes a bit and its share of a count, any other 8 bytes and a bit.
  uint64_t affordable = spec.selector == SelectorKind::kUniform ? memory.budget_bytes() * 8
                                                                : memory.budget_bytes() / 8;
  if (spec.selector == SelectorKind::kEpoch) affordable = memory.budget_bytes() * 2;  // 3 bits.
  if (const auto order = OrderOf(spec.selector)) {
    affordable = std::min(affordable, index::OrderedSelector::LeafCapacityMax(*order));
  }
  return std::max<uint64_t>(std::min(places, affordable), 1024);
}

}  // namespace

TableState::TableState(const Memory& memory, TableHistory history, TableId id)
    : shared_mutex(memory.mutex != nullptr ? memory.mutex : std::make_shared<Mutex>()),
      mutex(*shared_mutex),
      memory_(memory),
      history_(std::move(history)),
      layouts_(history_.version + 1),
      frames_(std::make_unique<TableFrames>(TableFrames::Memory{.arena = memory.arena,
                                                                .loader = memory.loader,
                                                                .mutex = &mutex,
                                                                .make_room = memory.make_room,
                                                                .may_be_cold = memory.may_be_cold},
                                            FirstLayout(id))) {}

TableState::~TableState() = default;

const TableLayout* TableState::FirstLayout(TableId id) {
  layouts_.back() = std::make_unique<TableLayout>(history_, history_.version, id);
  layout_.store(layouts_.back().get());
  return layouts_.back().get();
}

void TableState::RetireFrames(Lpn lpn) {
  for (size_t g = 0; g < layout().group_count(); ++g) {
    if (!frames_->ShowsDefaults(g, lpn)) frame_bytes_ -= layout().group(g).pages.frame_bytes();
  }
  frames_->Retire(lpn);
}

Result<std::unique_ptr<TableState>> TableState::Create(const Memory& memory, const TableSpec& spec,
                                                       TableId id) {
  return Create(memory, TableHistory(spec), id);
}

Result<std::unique_ptr<TableState>> TableState::Create(const Memory& memory, TableHistory history,
                                                       TableId id) {
  std::unique_ptr<TableState> state(new TableState(memory, std::move(history), id));
  const TableLayout& layout = state->layout();
  const TableSpec& spec = layout.spec();
  auto pages = index::PageTable::Create(memory.index, spec.name + " pages",
                                        {.lpn_capacity = LpnCapacityOf(*memory.index),
                                         .group_count = layout.group_count(),
                                         .row_flags = spec.stream ? layout.steps_per_page() : 0});
  auto trajectories = index::TrajectoryIndex::Create(
      memory.index, spec.name + " trajectories",
      {.slot_capacity = SlotCapacityOf(*memory.index), .column_bytes = layout.place_bytes()});
  if (!pages.ok() || !trajectories.ok()) {
    return pages.ok() ? trajectories.status() : pages.status();
  }
  state->pages_ = std::move(*pages);
  state->trajectories_ = std::move(*trajectories);
  state->frames_->Attach(state->pages_.get(), state->trajectories_.get());
  GEARDB_RETURN_IF_ERROR(state->frames_->MakeDefaults(memory.kept));
  return state;
}

Status TableState::AddPriorityTable(const PriorityTableSpec& spec) {
  GEARDB_RETURN_IF_ERROR(CheckStorable(spec));
  GEARDB_ASSIGN_OR_RETURN(
      auto priority,
      PriorityState::Create(memory_.index, spec, LeafCapacity(*memory_.index, layout(), spec)));
  GEARDB_RETURN_IF_ERROR(CheckRequiredNumbers(layout(), spec));
  for (const std::string& name : spec.required) {
    const auto column = layout().FindTrajectoryColumn(name);
    if (const auto group = FindRequirableGroup(layout(), name)) {
      priority->required.groups.push_back(*group);
    } else if (column) {
      priority->required.columns |= uint64_t{1} << *column;
    }
  }
  if (spec.item == ItemKind::kGroup) {
    // Whoever asks has seen that there is such a column.
    GEARDB_RETURN_IF_ERROR(priority->PrepareGroups(*layout().FindTrajectoryColumn(spec.group.key),
                                                   SlotCapacityOf(*memory_.index)));
  }
  const uint64_t leaves = priority->draws_windows() ? pages_->reserved() * layout().steps_per_page()
                                                    : trajectories_->reserved();
  if (leaves > 0) GEARDB_RETURN_IF_ERROR(priority->Reserve(leaves));
  priorities_.push_back(std::move(priority));
  if (spec.filter.empty() && unreadable_ == nullptr) return Status::Ok();
  const Status prepared = PrepareFilter(priorities_.size() - 1);
  if (!prepared.ok()) {
    priorities_.pop_back();
    return prepared;
  }
  priorities_.back()->filter()->Use(spec.filter, layout(), *trajectories_);
  return Status::Ok();
}

Status TableState::PrepareFilter(size_t priority_table) {
  return priorities_[priority_table]->PrepareFilter(SlotCapacityOf(*memory_.index),
                                                    trajectories_->reserved());
}

Status TableState::Reserve(uint64_t lpn_count, uint64_t slot_count, bool ahead) {
  // Selectors before pages and trajectories: whatever fails in between, they hold all that these
  // say is reserved.
  const auto reserve_pages = [this](uint64_t count) {
    for (const auto& priority : priorities_) {
      if (!priority->draws_windows()) continue;
      GEARDB_RETURN_IF_ERROR(priority->Reserve(count * layout().steps_per_page()));
    }
    return pages_->Reserve(count);
  };
  const auto reserve_slots = [this](uint64_t count) {
    if (unreadable_ != nullptr) GEARDB_RETURN_IF_ERROR(unreadable_->Reserve(count));
    for (const auto& priority : priorities_) {
      if (priority->filter() != nullptr) {
        GEARDB_RETURN_IF_ERROR(priority->filter()->ReserveSlots(count));
      }
      if (!priority->draws_windows()) GEARDB_RETURN_IF_ERROR(priority->Reserve(count));
    }
    return trajectories_->Reserve(count);
  };
  // As many more where the budget allows them, else exactly what is asked.
  const auto reserve = [&](const auto& numbers, uint64_t count, uint64_t more) {
    if (ahead && numbers(count + more).ok()) return Status::Ok();
    return numbers(count).WithContext("table '" + layout().spec().name + "'");
  };
  const uint64_t pages = pages_->reserved();
  if (lpn_count > pages) {
    GEARDB_RETURN_IF_ERROR(reserve(reserve_pages, lpn_count, kLpnGrowth + pages / 16));
  }
  const uint64_t slots = trajectories_->reserved();
  if (slot_count > slots) {
    GEARDB_RETURN_IF_ERROR(reserve(reserve_slots, slot_count, kSlotGrowth + slots / 16));
  }
  return Status::Ok();
}

TableSpec TableState::WholeSpec() const {
  TableSpec spec = layout().spec();
  for (const auto& priority : priorities_) spec.priority_tables.push_back(priority->spec());
  return spec;
}

bool TableState::ScaleDue() const {
  for (const auto& priority : priorities_) {
    if (priority->prioritized() && priority->prioritized()->AdviseShift(0)) return true;
  }
  return false;
}

Status TableState::CheckColumnValue(size_t column, const void* value) const {
  const TrajectoryColumn& given = layout().trajectory_columns()[column];
  for (const auto& priority : priorities_) {
    const PriorityTableSpec& spec = priority->spec();
    if (spec.initial != InitialPriority::kColumn || given.dropped ||
        spec.initial_priority_column != given.name) {
      continue;
    }
    float raw = 0;
    std::memcpy(&raw, value, sizeof(raw));
    if (index::ValidPriority(raw)) continue;
    return Status::InvalidArgument("table '", layout().spec().name, "': column '", given.name,
                                   "' is the initial priority of '", spec.name, "' and is ", raw,
                                   "; expected a finite value of at least 0");
  }
  return Status::Ok();
}

bool TableState::IsTrajectoryItem(const index::TrajectoryRecord& record) const {
  if (record.state != index::TrajectoryState::kClosed) return false;
  const auto first = static_cast<int64_t>(record.first_row);
  int64_t last = StepsEnd(record) - 1;
  if (layout().spec().stream && layout().spec().final_row) {
    // Cut episodes of one row leave final rows alone: any number of them may end a stream.
    RowCursor cursor(*this, record);
    while (last >= first && IsFinalRow(&cursor, last)) --last;
  }
  return last >= first;
}

uint64_t TableState::LeafOfRow(const index::TrajectoryRecord& record, int64_t row) const {
  if (row < static_cast<int64_t>(record.first_row) ||
      row >= static_cast<int64_t>(record.rows_end)) {
    return UINT64_MAX;
  }
  const Lpn lpn = pages_->Find(ListOf(record), layout().PageNumber(row));
  return lpn == kNoLpn ? UINT64_MAX : layout().Leaf(lpn, layout().OffsetInPage(row));
}

uint64_t TableState::LeafOfItem(const PriorityState& priority, Slot slot, int64_t row) const {
  if (priority.groups() != nullptr) return priority.groups()->GroupOf(slot);
  if (!priority.draws_windows()) return slot;
  return LeafOfRow(trajectories().record(slot), row);
}

bool TableState::GenerationOfLeaf(const PriorityState& priority, uint64_t leaf,
                                  uint32_t* generation) const {
  if (priority.draws_windows()) {
    const Lpn lpn = layout().LpnOfLeaf(leaf);
    if (leaf >> layout().steps_shift() >= pages_->reserved()) return false;
    const index::PageRecord& page = pages_->page(lpn);
    *generation = page.generation;
    return page.in_use;
  }
  if (const DrawGroups* const groups = priority.groups()) {
    if (leaf >= groups->reserved()) return false;
    *generation = groups->GenerationOf(leaf);
    return groups->InUse(leaf);
  }
  if (leaf >= trajectories_->reserved()) return false;
  const index::TrajectoryRecord& record = trajectories().record(static_cast<Slot>(leaf));
  *generation = record.generation;
  return record.state != index::TrajectoryState::kFree;
}

uint64_t TableState::Filled(size_t group, Slot slot) const {
  uint64_t filled = 0;
  std::memcpy(&filled, trajectories().column(layout().group(group).filled_place, slot).data(),
              sizeof(filled));
  return std::max(filled, trajectories().record(slot).first_row);
}

int64_t TableState::ReadyEnd(const PriorityState& priority, Slot slot,
                             uint64_t with_columns) const {
  const Requirements& required = priority.required;
  const uint64_t set = trajectories().record(slot).columns_set | with_columns;
  if ((required.columns & ~set) != 0) return 0;
  int64_t end = INT64_MAX;
  for (const uint32_t group : required.groups) {
    if constexpr (kBreak.draw_before_filled) break;
    end = std::min(end, static_cast<int64_t>(Filled(group, slot)));
  }
  return end;
}

uint64_t TableState::index_bytes() const {
  uint64_t bytes = pages_->committed_bytes() + trajectories_->committed_bytes();
  if (unreadable_ != nullptr) bytes += unreadable_->committed_bytes();
  for (const auto& priority : priorities_) bytes += priority->committed_bytes();
  return bytes;
}

// ---- Rows.

void TableState::ReleaseHeadPage(index::TrajectoryRecord* record) {
  index::PageList list = ListOf(*record);
  const Lpn lpn = pages_->UnlinkHead(&list);
  record->head_lpn = list.head;
  record->tail_lpn = list.tail;
  const uint64_t steps = layout().steps_per_page();
  for (const auto& priority : priorities_) {
    if (priority->draws_windows()) priority->Leave({lpn * steps, (lpn + 1) * steps});
  }
  RetireFrames(lpn);
  --page_count_;
}

void TableState::RemoveTrajectory(const fb::Removed& removed, const RemovalCause& cause) {
  index::TrajectoryRecord* record = trajectories_->FindLive(removed.slot(), removed.generation());
  if (record == nullptr) return;
  rows_ -= record->rows_end - record->first_row;
  RowCursor cursor(*this, *record);
  uint64_t final_rows = (record->flags & index::kFinalRowStored) != 0 ? 1 : 0;
  if (layout().spec().stream && layout().spec().final_row) {
    final_rows = 0;
    for (uint64_t row = record->first_row; row < record->rows_end; ++row) {
      final_rows += IsFinalRow(&cursor, static_cast<int64_t>(row)) ? 1u : 0u;
    }
  }
  steps_ -= record->rows_end - record->first_row - final_rows;
  while (record->head_lpn != kNoLpn) ReleaseHeadPage(record);
  if (IsUnreadable(removed.slot())) {
    unreadable_->Forget({removed.slot(), uint64_t{removed.slot()} + 1});
  }
  for (size_t i = 0; i < priorities_.size(); ++i) {
    PriorityState& priority = *priorities_[i];
    if (priority.filter() != nullptr) priority.filter()->NoteFails(removed.slot(), false);
    if (priority.groups() != nullptr) {
      LeaveGroup(i, removed.slot());
    } else if (!priority.draws_windows()) {
      priority.Leave({removed.slot(), uint64_t{removed.slot()} + 1});
    }
  }
  if (record->state == index::TrajectoryState::kOpen) --open_count_;
  for (size_t k = 0; k < companions_.size(); ++k) EmptyCompanion(k, removed.slot());
  trajectories_->Erase(removed.slot());
  removals_.Add(removed.id(), cause);
}

void TableState::Trim(const fb::Trimmed& trimmed) {
  index::TrajectoryRecord* record = trajectories_->FindLive(trimmed.slot(), trimmed.generation());
  if (record == nullptr || trimmed.first_row() <= record->first_row ||
      trimmed.first_row() >= record->rows_end) {
    return;
  }
  const uint64_t old_first = record->first_row;
  uint64_t final_rows = 0;
  if (layout().spec().stream) {
    RowCursor cursor(*this, *record);
    for (uint64_t row = old_first; row < trimmed.first_row(); ++row) {
      final_rows += IsFinalRow(&cursor, static_cast<int64_t>(row)) ? 1u : 0u;
    }
  }
  rows_ -= trimmed.first_row() - old_first;
  steps_ -= trimmed.first_row() - old_first - final_rows;
  trimmed_rows_ += trimmed.first_row() - old_first;
  record->first_row = trimmed.first_row();
  const uint32_t first_page = layout().PageNumber(static_cast<int64_t>(record->first_row));
  while (pages_->page(record->head_lpn).page_number < first_page) ReleaseHeadPage(record);
  TrimCompanions(*record, trimmed.slot());
  // Rows of the head page that are gone, and anchors that now reach before `first_row`.
  const uint32_t offset = layout().OffsetInPage(static_cast<int64_t>(record->first_row));
  const uint64_t page_leaf = layout().Leaf(record->head_lpn, 0);
  Refilter(trimmed.slot());
  for (size_t i = 0; i < priorities_.size(); ++i) {
    PriorityState& priority = *priorities_[i];
    NotePriorities(i, trimmed.slot());
    if (!priority.draws_windows()) {
      if (IsTrajectoryItem(*record)) continue;
      if (priority.groups() != nullptr) {
        LeaveGroup(i, trimmed.slot());
      } else {
        priority.Erase({trimmed.slot(), uint64_t{trimmed.slot()} + 1});
      }
      continue;
    }
    priority.Leave({page_leaf, page_leaf + offset});
    AnchorUpdate update(this, i);
    const WindowRule& rule = priority.spec().window;
    const auto first = static_cast<int64_t>(record->first_row);
    int64_t end = first + rule.extent.before + 1;
    // What is left of an episode may be too short for windows that shift away from its right edge.
    if (rule.right == EdgeRule::kShift) end += rule.extent.length + rule.extent.after;
    update.AddRows(trimmed.slot(), first, end);
    update.Insert(priority.max_priority());
  }
  NoteFinished(trimmed.slot());
}

void TableState::Open(const fb::Opened& opened, Lsn lsn) {
  index::TrajectoryRecord& record = trajectories_->Insert(
      {.slot = opened.slot(), .generation = opened.generation(), .id = opened.id()});
  record.created_us = opened.created_us();
  record.session = opened.session();
  record.lane = opened.lane();
  record.last_lsn = lsn;
  for (size_t c = 0; c < layout().trajectory_columns().size(); ++c) {
    const TrajectoryColumn& column = layout().trajectory_columns()[c];
    if (column.default_bits == 0) continue;
    FillElements(column.dtype, column.default_bits,
                 trajectories_->column(column.place, opened.slot()));
  }
  ++open_count_;
}

void TableState::WriteGroups(const WrittenRows& rows, Lsn lsn, const PageFrames& frames,
                             size_t page) {
  const Lpn lpn = rows.lpn;
  const auto groups = frames.layout->appended_groups();
  for (size_t a = 0; a < groups.size(); ++a) {
    index::GroupPageRecord& record = pages_->group_page(groups[a], lpn);
    if (const FrameRef given = frames.FrameOf(page, a); given.valid()) {
      frames_->Give(groups[a], lpn, given);
      frame_bytes_ += layout().group(groups[a]).pages.frame_bytes();
    }
    record.flags = static_cast<uint8_t>(record.flags & ~kPageInCold);
    if (record.birth_lsn == kNoLsn) record.birth_lsn = lsn;
    record.rows_filled = static_cast<uint16_t>(rows.end);
    if (!layout().group(groups[a]).logged()) continue;
    record.newest_lsn = lsn;
    const wal::PiecePlace place = frames.PieceOf(page, a);
    if (place.at < record.birth_lsn) record.flags |= kPageFromPart;
    // Before the first row of a group that came later, the page may have rows without it.
    const bool is_whole = record.piece_count == 0 && rows.first == 0;
    const wal::PiecePlace whole = is_whole ? place : wal::PiecePlace{};
    record.piece_at = whole.at;
    record.piece_checksum = static_cast<uint32_t>(whole.checksum);
    if (record.piece_count < UINT8_MAX) ++record.piece_count;
  }
}

bool TableState::BeginsEpisode(const index::TrajectoryRecord& record) const {
  if (record.rows_end == record.first_row) return record.rows_end == 0;
  RowCursor cursor(*this, record, record.tail_lpn);
  return (cursor.FlagsOf(static_cast<int64_t>(record.rows_end) - 1) & kRowEndMask) != 0;
}

size_t TableState::ExtendRows(const fb::Rows& rows, Lsn lsn, const fb::NewPage* pages,
                              const PageFrames& frames, size_t* page) {
  index::TrajectoryRecord& record = trajectories_->record(rows.slot());
  StoredRows stored{.steps = rows.count() - (rows.has_final() ? 1u : 0u),
                    .end = static_cast<End>(rows.end())};
  if (layout().spec().stream) stored.begins_episode = BeginsEpisode(record);
  size_t taken = 0;
  uint64_t row = record.rows_end;
  const uint64_t end = row + rows.count();
  while (row < end) {
    const uint32_t offset = layout().OffsetInPage(static_cast<int64_t>(row));
    if (offset == 0) {
      ReleaseDropped(record.tail_lpn);
      index::PageList list = ListOf(record);
      pages_->Append({.lpn = pages[taken].lpn(),
                      .slot = rows.slot(),
                      .generation = pages[taken].generation(),
                      .page_number = layout().PageNumber(static_cast<int64_t>(row))},
                     &list);
      record.head_lpn = list.head;
      record.tail_lpn = list.tail;
      for (size_t g = 0; g < layout().group_count(); ++g) {
        pages_->group_page(g, record.tail_lpn).frame = default_frame(g);
      }
      ++taken;
      ++page_count_;
    }
    const uint64_t here = std::min<uint64_t>(end - row, layout().steps_per_page() - offset);
    WriteGroups({record.tail_lpn, offset, static_cast<uint32_t>(offset + here)}, lsn, frames,
                (*page)++);
    if (layout().spec().stream) {
      uint8_t* flags = pages_->row_flags(record.tail_lpn) + offset;
      const uint64_t first = row - record.rows_end;
      for (uint64_t k = 0; k < here; ++k) flags[k] = FlagsOfStoredRow(layout(), stored, first + k);
    }
    row += here;
  }
  record.rows_end = end;
  record.last_lsn = lsn;
  rows_ += rows.count();
  steps_ += rows.count() - (rows.has_final() ? 1 : 0);
  appended_rows_ += rows.count() - (rows.has_final() ? 1 : 0);
  return taken;
}

void TableState::CloseTrajectory(Slot slot, End end, bool last_row_is_final) {
  index::TrajectoryRecord* record = &trajectories_->record(slot);
  if (record->state == index::TrajectoryState::kOpen) --open_count_;
  record->state = index::TrajectoryState::kClosed;
  record->end = end;
  if (last_row_is_final) record->flags |= index::kFinalRowStored;
  ReleaseDropped(record->tail_lpn);
  CloseCompanions(slot, end);
}

void TableState::SetRowFlags(const index::TrajectoryRecord& record, int64_t row, uint8_t flags) {
  RowCursor cursor(*this, record);
  pages_->row_flags(cursor.PageOf(row))[layout().OffsetInPage(row)] = flags;
}

void TableState::SetColumnValues(const flatbuffers::Vector<const fb::ColumnSet*>* sets,
                                 const flatbuffers::Vector<uint8_t>* values) {
  if (sets == nullptr || values == nullptr) return;
  const uint8_t* value = values->data();
  for (const fb::ColumnSet* set : *sets) {
    const TrajectoryColumn& column = layout().trajectory_columns()[set->column()];
    const std::span<std::byte> into = trajectories_->column(column.place, set->slot());
    CopyElements(column.dtype, into.data(), std::as_bytes(std::span(value, into.size())));
    if (column.companion) EmptyCompanion(*column.companion, set->slot());
    // Of the first 64 columns it is known whether they are set: one may be required.
    if (set->column() < index::kColumnsSetBits) {
      trajectories_->record(set->slot()).columns_set |= uint64_t{1} << set->column();
    }
    value += into.size();
  }
}

}  // namespace geardb::engine
