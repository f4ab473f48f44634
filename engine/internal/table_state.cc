#include "engine/internal/table_state.h"

#include <algorithm>
#include <cstring>

#include "base/break.h"
#include "engine/internal/anchors.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kLpnGrowth = 64;
constexpr uint64_t kSlotGrowth = 64;
constexpr uint64_t kNumbersMax = UINT32_MAX - 1;

/// How many numbers an index budget could ever hold, at `bytes` each.
uint64_t CapacityOf(const index::IndexMemory& memory, uint64_t bytes) {
  return std::clamp<uint64_t>(memory.budget_bytes() / bytes, 1024, kNumbersMax);
}
uint64_t LpnCapacity(const index::IndexMemory& memory) {
  return CapacityOf(memory, sizeof(index::PageRecord) + sizeof(index::GroupPageRecord));
}
uint64_t SlotCapacity(const index::IndexMemory& memory) {
  return CapacityOf(memory, sizeof(index::TrajectoryRecord));
}

uint64_t LeafCapacity(const index::IndexMemory& memory, const TableLayout& layout,
                      const PriorityTableSpec& spec) {
  const uint64_t places = spec.item == ItemKind::kTrajectory
                              ? SlotCapacity(memory)
                              : LpnCapacity(memory) * layout.steps_per_page();
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

TableState::TableState(const Memory& memory, const TableSpec& spec, TableId id)
    : memory_(memory), layout_(spec, id), defaults_(layout_.group_count()) {
  for (const GroupLayout& group : layout_.groups()) {
    std::string owner = "table '" + spec.name + "'";
    if (!group.name.empty()) owner += ", group '" + group.name + "'";
    pools_.push_back(memory.arena->NewPool(group.pages.frame_bytes(), std::move(owner)));
  }
}

TableState::~TableState() {
  if (trajectories_ != nullptr && pages_ != nullptr) {  // Else Create failed.
    trajectories_->ForEach([this](Slot, const index::TrajectoryRecord& record) {
      for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) {
        RetireFrames(lpn);
      }
    });
  }
  for (size_t g = 0; g < pools_.size(); ++g) {
    if (defaults_[g].valid()) memory_.arena->Retire(pools_[g], defaults_[g]);
    memory_.arena->DropPool(pools_[g]);
  }
}

void TableState::RetireFrames(Lpn lpn) {
  for (size_t g = 0; g < pools_.size(); ++g) {
    const FrameRef frame = FrameOf(g, lpn);
    if (frame == defaults_[g]) continue;
    memory_.arena->Retire(pools_[g], frame);
    frame_bytes_ -= pools_[g]->frame_bytes();
  }
}

void TableState::PackFrames() {
  std::vector<FrameRef> moved = defaults_;
  for (size_t g = 0; g < pools_.size(); ++g) {
    if (moved[g].valid()) memory_.arena->MoveDown(pools_[g], &moved[g]);
  }
  trajectories_->ForEach([&](Slot, const index::TrajectoryRecord& record) {
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) {
      for (size_t g = 0; g < pools_.size(); ++g) {
        FrameRef& frame = pages_->group_page(g, lpn).frame;
        if (frame == defaults_[g]) {
          frame = moved[g];
        } else {
          memory_.arena->MoveDown(pools_[g], &frame);
        }
      }
    }
  });
  defaults_ = std::move(moved);
}

Status TableState::MakeDefaultFrame(size_t group) {
  GEARDB_ASSIGN_OR_RETURN(defaults_[group],
                          memory_.arena->Allocate(pools_[group], Deadline::Now(), memory_.kept));
  std::byte* frame = memory_.arena->Resolve(defaults_[group]);
  for (const size_t c : layout_.group(group).columns) {
    const StepColumn& column = layout_.step_columns()[c];
    FillElements(column.dtype, column.default_bits,
                 {frame + layout_.RowOffset(c, 0), column.row_bytes * layout_.steps_per_page()});
  }
  return Status::Ok();
}

void TableState::CopyDefaults(size_t group, FrameRef into) const {
  if (!defaults_[group].valid()) return;
  std::memcpy(memory_.arena->Resolve(into), memory_.arena->Resolve(defaults_[group]),
              pools_[group]->frame_bytes());
}

void TableState::CopyPiece(const PieceOfPage& piece, std::span<const std::byte> bytes) const {
  const GroupLayout& group = layout_.group(piece.group);
  std::byte* base = memory_.arena->Resolve(piece.frame);
  PieceColumns(group.pages, piece.count).ForEach([&](size_t place, uint64_t from, uint64_t count) {
    // Behind the columns of group 0 are a stream's flags.
    const DType dtype = place < group.columns.size()
                            ? layout_.step_columns()[group.columns[place]].dtype
                            : DType::kU8;
    CopyElements(dtype, base + group.pages.FrameOffset(place, piece.first),
                 bytes.subspan(from, count));
  });
}

Result<std::unique_ptr<TableState>> TableState::Create(const Memory& memory, const TableSpec& spec,
                                                       TableId id) {
  std::unique_ptr<TableState> state(new TableState(memory, spec, id));
  std::vector<uint32_t> column_bytes;
  for (const TrajectoryColumn& column : state->layout_.trajectory_columns()) {
    column_bytes.push_back(column.bytes);
  }
  for (const GroupLayout& group : state->layout_.groups()) {
    state->filled_.push_back(column_bytes.size());
    if (group.late) column_bytes.push_back(sizeof(uint64_t));
  }
  auto pages = index::PageTable::Create(
      memory.index, spec.name + " pages",
      {.lpn_capacity = LpnCapacity(*memory.index), .group_count = state->layout_.group_count()});
  auto trajectories = index::TrajectoryIndex::Create(
      memory.index, spec.name + " trajectories",
      {.slot_capacity = SlotCapacity(*memory.index), .column_bytes = column_bytes});
  // The destructor walks both.
  if (!pages.ok() || !trajectories.ok()) {
    return pages.ok() ? trajectories.status() : pages.status();
  }
  state->pages_ = std::move(*pages);
  state->trajectories_ = std::move(*trajectories);
  for (size_t g = 0; g < state->layout_.group_count(); ++g) {
    if (!state->layout_.group(g).may_be_unwritten()) continue;
    GEARDB_RETURN_IF_ERROR(state->MakeDefaultFrame(g));
  }
  return state;
}

Status TableState::AddPriorityTable(const PriorityTableSpec& spec) {
  GEARDB_ASSIGN_OR_RETURN(
      auto priority,
      PriorityState::Create(memory_.index, spec, LeafCapacity(*memory_.index, layout_, spec)));
  for (const std::string& name : spec.required) {
    if (const auto column = layout_.FindTrajectoryColumn(name)) {
      priority->required.columns |= uint64_t{1} << *column;
      continue;
    }
    for (uint32_t g = 1; g < layout_.group_count(); ++g) {
      if (layout_.group(g).name == name) priority->required.groups.push_back(g);
    }
  }
  const uint64_t leaves = priority->draws_windows() ? pages_->reserved() * layout_.steps_per_page()
                                                    : trajectories_->reserved();
  if (leaves > 0) GEARDB_RETURN_IF_ERROR(priority->Reserve(leaves));
  priorities_.push_back(std::move(priority));
  return Status::Ok();
}

Status TableState::Reserve(uint64_t lpn_count, uint64_t slot_count) {
  // Selectors before pages and trajectories: whatever fails in between, they hold all that these
  // say is reserved.
  if (lpn_count > pages_->reserved()) {
    // A little ahead where the budget allows it, else exactly what is asked.
    for (uint64_t extra : {kLpnGrowth + pages_->reserved() / 16, uint64_t{0}}) {
      Status status;
      for (const auto& priority : priorities_) {
        if (!status.ok()) break;
        if (!priority->draws_windows()) continue;
        status = priority->Reserve((lpn_count + extra) * layout_.steps_per_page());
      }
      if (status.ok()) status = pages_->Reserve(lpn_count + extra);
      if (status.ok()) break;
      if (extra == 0) return status.WithContext("table '" + layout_.spec().name + "'");
    }
  }
  if (slot_count > trajectories_->reserved()) {
    for (uint64_t extra : {kSlotGrowth + trajectories_->reserved() / 16, uint64_t{0}}) {
      Status status;
      for (const auto& priority : priorities_) {
        if (!status.ok()) break;
        if (priority->draws_windows()) continue;
        status = priority->Reserve(slot_count + extra);
      }
      if (status.ok()) status = trajectories_->Reserve(slot_count + extra);
      if (status.ok()) break;
      if (extra == 0) return status.WithContext("table '" + layout_.spec().name + "'");
    }
  }
  return Status::Ok();
}

TableSpec TableState::WholeSpec() const {
  TableSpec spec = layout_.spec();
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
  const TrajectoryColumn& given = layout_.trajectory_columns()[column];
  for (const auto& priority : priorities_) {
    const PriorityTableSpec& spec = priority->spec();
    if (spec.initial != InitialPriority::kColumn || spec.initial_priority_column != given.name) {
      continue;
    }
    float raw = 0;
    std::memcpy(&raw, value, sizeof(raw));
    if (index::ValidPriority(raw)) continue;
    return Status::InvalidArgument("table '", layout_.spec().name, "': column '", given.name,
                                   "' is the initial priority of '", spec.name, "' and is ", raw,
                                   "; expected a finite value of at least 0");
  }
  return Status::Ok();
}

bool TableState::IsTrajectoryItem(const index::TrajectoryRecord& record) const {
  if (record.state != index::TrajectoryState::kClosed) return false;
  const auto first = static_cast<int64_t>(record.first_row);
  int64_t last = StepsEnd(record) - 1;
  if (layout_.spec().stream && layout_.spec().final_row) {
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
  const Lpn lpn = pages_->Find(ListOf(record), layout_.PageNumber(row));
  return lpn == kNoLpn ? UINT64_MAX : layout_.Leaf(lpn, layout_.OffsetInPage(row));
}

uint64_t TableState::LeafOfItem(const PriorityState& priority, Slot slot, int64_t row) const {
  if (!priority.draws_windows()) return slot;
  return LeafOfRow(trajectories_->record(slot), row);
}

bool TableState::GenerationOfLeaf(const PriorityState& priority, uint64_t leaf,
                                  uint32_t* generation) const {
  if (priority.draws_windows()) {
    const Lpn lpn = layout_.LpnOfLeaf(leaf);
    if (leaf >> layout_.steps_shift() >= pages_->reserved()) return false;
    const index::PageRecord& page = pages_->page(lpn);
    *generation = page.generation;
    return page.in_use;
  }
  if (leaf >= trajectories_->reserved()) return false;
  const index::TrajectoryRecord& record = trajectories_->record(static_cast<Slot>(leaf));
  *generation = record.generation;
  return record.state != index::TrajectoryState::kFree;
}

uint64_t TableState::Filled(size_t group, Slot slot) const {
  uint64_t filled = 0;
  std::memcpy(&filled, trajectories_->column(filled_[group], slot).data(), sizeof(filled));
  return std::max(filled, trajectories_->record(slot).first_row);
}

int64_t TableState::ReadyEnd(const PriorityState& priority, Slot slot,
                             uint64_t with_columns) const {
  const Requirements& required = priority.required;
  const uint64_t set = trajectories_->record(slot).columns_set | with_columns;
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
  for (const auto& priority : priorities_) bytes += priority->committed_bytes();
  return bytes;
}

// ---- Rows.

void TableState::ReleaseHeadPage(index::TrajectoryRecord* record) {
  index::PageList list = ListOf(*record);
  const Lpn lpn = pages_->UnlinkHead(&list);
  record->head_lpn = list.head;
  record->tail_lpn = list.tail;
  const uint64_t steps = layout_.steps_per_page();
  for (const auto& priority : priorities_) {
    if (priority->draws_windows()) priority->Leave({lpn * steps, (lpn + 1) * steps});
  }
  RetireFrames(lpn);
  --page_count_;
}

void TableState::RemoveTrajectory(const fb::Removed& removed) {
  index::TrajectoryRecord* record = trajectories_->FindLive(removed.slot(), removed.generation());
  if (record == nullptr) return;
  rows_ -= record->rows_end - record->first_row;
  RowCursor cursor(*this, *record);
  uint64_t final_rows = (record->flags & index::kFinalRowStored) != 0 ? 1 : 0;
  if (layout_.spec().stream && layout_.spec().final_row) {
    final_rows = 0;
    for (uint64_t row = record->first_row; row < record->rows_end; ++row) {
      final_rows += IsFinalRow(&cursor, static_cast<int64_t>(row)) ? 1 : 0;
    }
  }
  steps_ -= record->rows_end - record->first_row - final_rows;
  while (record->head_lpn != kNoLpn) ReleaseHeadPage(record);
  for (const auto& priority : priorities_) {
    if (!priority->draws_windows()) {
      priority->Leave({removed.slot(), uint64_t{removed.slot()} + 1});
    }
  }
  if (record->state == index::TrajectoryState::kOpen) --open_count_;
  trajectories_->Erase(removed.slot());
  ++removed_trajectories_;
  ++removed_ever_;
}

void TableState::Trim(const fb::Trimmed& trimmed) {
  index::TrajectoryRecord* record = trajectories_->FindLive(trimmed.slot(), trimmed.generation());
  if (record == nullptr || trimmed.first_row() <= record->first_row ||
      trimmed.first_row() >= record->rows_end) {
    return;
  }
  const uint64_t old_first = record->first_row;
  uint64_t final_rows = 0;
  if (layout_.spec().stream) {
    RowCursor cursor(*this, *record);
    for (uint64_t row = old_first; row < trimmed.first_row(); ++row) {
      final_rows += IsFinalRow(&cursor, static_cast<int64_t>(row)) ? 1 : 0;
    }
  }
  rows_ -= trimmed.first_row() - old_first;
  steps_ -= trimmed.first_row() - old_first - final_rows;
  trimmed_rows_ += trimmed.first_row() - old_first;
  record->first_row = trimmed.first_row();
  const uint32_t first_page = layout_.PageNumber(static_cast<int64_t>(record->first_row));
  while (pages_->page(record->head_lpn).page_number < first_page) ReleaseHeadPage(record);
  // Rows of the head page that are gone, and anchors that now reach before `first_row`.
  const uint32_t offset = layout_.OffsetInPage(static_cast<int64_t>(record->first_row));
  const uint64_t page_leaf = layout_.Leaf(record->head_lpn, 0);
  for (size_t i = 0; i < priorities_.size(); ++i) {
    PriorityState& priority = *priorities_[i];
    NotePriorities(i, trimmed.slot());
    if (!priority.draws_windows()) {
      if (!IsTrajectoryItem(*record)) {
        priority.Erase({trimmed.slot(), uint64_t{trimmed.slot()} + 1});
      }
      continue;
    }
    priority.Erase({page_leaf, page_leaf + offset});
    AnchorUpdate update(this, i);
    const WindowRule& rule = priority.spec().window;
    const auto first = static_cast<int64_t>(record->first_row);
    int64_t end = first + rule.extent.before + 1;
    // What is left of an episode may be too short for windows that shift away from its right edge.
    if (rule.right == EdgeRule::kShift) end += rule.extent.length + rule.extent.after;
    update.AddRows(trimmed.slot(), first, end);
    update.Insert(priority.max_priority());
  }
}

void TableState::Open(const fb::Opened& opened, Lsn lsn) {
  index::TrajectoryRecord& record = trajectories_->Insert(
      {.slot = opened.slot(), .generation = opened.generation(), .id = opened.id()});
  record.created_us = opened.created_us();
  record.session = opened.session();
  record.lane = opened.lane();
  record.last_lsn = lsn;
  for (size_t c = 0; c < layout_.trajectory_columns().size(); ++c) {
    const TrajectoryColumn& column = layout_.trajectory_columns()[c];
    if (column.default_bits == 0) continue;
    FillElements(column.dtype, column.default_bits, trajectories_->column(c, opened.slot()));
  }
  ++open_count_;
}

void TableState::WriteGroups(Lpn lpn, Lsn lsn, uint32_t rows_filled, const PageFrames& frames,
                             size_t page) {
  const auto given = frames.OfPage(page);
  const auto groups = frames.layout->appended_groups();
  for (size_t a = 0; a < groups.size(); ++a) {
    index::GroupPageRecord& record = pages_->group_page(groups[a], lpn);
    if (given[a].valid()) {
      record.frame = given[a];
      frame_bytes_ += pools_[groups[a]]->frame_bytes();
    }
    if (record.birth_lsn == kNoLsn) record.birth_lsn = lsn;
    record.rows_filled = rows_filled;
    if (!layout_.group(groups[a]).logged()) continue;
    record.newest_lsn = lsn;
    if (record.piece_count < UINT16_MAX) ++record.piece_count;
  }
}

size_t TableState::ExtendRows(const fb::Rows& rows, Lsn lsn, const fb::NewPage* pages,
                              const PageFrames& frames, size_t* page) {
  index::TrajectoryRecord& record = trajectories_->record(rows.slot());
  size_t taken = 0;
  uint64_t row = record.rows_end;
  const uint64_t end = row + rows.count();
  while (row < end) {
    const uint32_t offset = layout_.OffsetInPage(static_cast<int64_t>(row));
    if (offset == 0) {
      index::PageList list = ListOf(record);
      pages_->Append({.lpn = pages[taken].lpn(),
                      .slot = rows.slot(),
                      .generation = pages[taken].generation(),
                      .page_number = layout_.PageNumber(static_cast<int64_t>(row))},
                     &list);
      record.head_lpn = list.head;
      record.tail_lpn = list.tail;
      for (size_t g = 0; g < pools_.size(); ++g) {
        pages_->group_page(g, record.tail_lpn).frame = defaults_[g];
      }
      ++taken;
      ++page_count_;
    }
    const uint64_t here = std::min<uint64_t>(end - row, layout_.steps_per_page() - offset);
    WriteGroups(record.tail_lpn, lsn, static_cast<uint32_t>(offset + here), frames, (*page)++);
    row += here;
  }
  record.rows_end = end;
  record.last_lsn = lsn;
  rows_ += rows.count();
  steps_ += rows.count() - (rows.has_final() ? 1 : 0);
  appended_rows_ += rows.count() - (rows.has_final() ? 1 : 0);
  return taken;
}

void TableState::CloseTrajectory(index::TrajectoryRecord* record, End end, bool last_row_is_final) {
  if (record->state == index::TrajectoryState::kOpen) --open_count_;
  record->state = index::TrajectoryState::kClosed;
  record->end = end;
  if (last_row_is_final) record->flags |= index::kFinalRowStored;
}

void TableState::SetRowFlags(const index::TrajectoryRecord& record, int64_t row, uint8_t flags) {
  RowCursor cursor(*this, record);
  const Lpn lpn = cursor.PageOf(row);
  std::byte* frame = memory_.arena->Resolve(FrameOf(0, lpn));
  frame[layout_.FlagsOffset(layout_.OffsetInPage(row))] = std::byte{flags};
}

void TableState::SetColumnValues(const flatbuffers::Vector<const fb::ColumnSet*>* sets,
                                 const flatbuffers::Vector<uint8_t>* values) {
  if (sets == nullptr || values == nullptr) return;
  const uint8_t* value = values->data();
  for (const fb::ColumnSet* set : *sets) {
    const std::span<std::byte> into = trajectories_->column(set->column(), set->slot());
    CopyElements(layout_.trajectory_columns()[set->column()].dtype, into.data(),
                 std::as_bytes(std::span(value, into.size())));
    // Of the first 64 columns it is known whether they are set: one may be required.
    if (set->column() < index::kColumnsSetBits) {
      trajectories_->record(set->slot()).columns_set |= uint64_t{1} << set->column();
    }
    value += into.size();
  }
}

}  // namespace geardb::engine
