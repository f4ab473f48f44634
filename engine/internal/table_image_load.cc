#include "engine/internal/table_image_load.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/dtype.h"
#include "base/thread.h"
#include "engine/internal/core.h"
#include "engine/internal/image_check.h"
#include "engine/internal/image_draw_groups.h"
#include "engine/internal/image_items.h"
#include "engine/internal/record_body.h"
#include "engine/internal/recovery_check.h"

namespace geardb::engine {
namespace {

/// Numbers of trajectories and pages are counted in 64 bits and stored in 32; more never come.
constexpr uint64_t kGenerationsEnd = uint64_t{1} << 62;
/// Each id is looked for in a hash larger than any cache; so many are fetched meanwhile.
constexpr size_t kIdsAhead = 16;

/// Of fewer items a thread of their own would save nothing.
constexpr uint64_t kItemsBeside = 100'000;

/// The arrays of a chunk of trajectories, in their order.
struct TrajectoryArrays {
  TrajectoryArrays(ChunkReader* reader, size_t count)
      : slot(reader->Array<uint32_t>(count)),
        generation(reader->Array<uint32_t>(count)),
        id(reader->Array<uint64_t>(count)),
        first_row(reader->Array<uint64_t>(count)),
        rows_end(reader->Array<uint64_t>(count)),
        created_us(reader->Array<int64_t>(count)),
        times_sampled(reader->Array<uint64_t>(count)),
        columns_set(reader->Array<uint64_t>(count)),
        last_lsn(reader->Array<uint64_t>(count)),
        session(reader->Array<uint32_t>(count)),
        lane(reader->Array<uint32_t>(count)),
        state(reader->Array<uint8_t>(count)),
        end(reader->Array<uint8_t>(count)),
        flags(reader->Array<uint8_t>(count)) {}

  index::TrajectoryRecord Record(size_t i) const {
    index::TrajectoryRecord record;
    record.id = id[i];
    record.first_row = first_row[i];
    record.rows_end = rows_end[i];
    record.created_us = created_us[i];
    record.times_sampled = times_sampled[i];
    record.columns_set = columns_set[i];
    record.last_lsn = last_lsn[i];
    record.generation = generation[i];
    record.session = session[i];
    record.lane = lane[i];
    record.state = static_cast<index::TrajectoryState>(state[i]);
    record.end = static_cast<End>(end[i]);
    record.flags = flags[i];
    return record;
  }

  ChunkArray<uint32_t> slot, generation;
  ChunkArray<uint64_t> id, first_row, rows_end;
  ChunkArray<int64_t> created_us;
  ChunkArray<uint64_t> times_sampled, columns_set, last_lsn;
  ChunkArray<uint32_t> session, lane;
  ChunkArray<uint8_t> state, end, flags;
};

/// Numbers of a chunk ascend, and lie in its range; the first that does not, or nothing.
std::optional<uint32_t> FindMisplaced(const ChunkArray<uint32_t>& numbers, uint64_t begin,
                                      uint64_t end) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool ascends = i == 0 || numbers[i] > numbers[i - 1];
    if (!ascends || numbers[i] < begin || numbers[i] >= end) return numbers[i];
  }
  return std::nullopt;
}

}  // namespace

Result<LoadedTable> LoadTable(const TableState::Memory& memory, TableId id, Lsn lsn,
                              const ImageSource& source, const TableSpec* companion,
                              const ImageSource* items) {
  return TableImageLoad(id, lsn, source, companion, items).Load(memory);
}

Result<LoadedTable> TableImageLoad::Load(const TableState::Memory& memory) {
  GEARDB_RETURN_IF_ERROR(ReadHead());
  LoadedTable table;
  GEARDB_RETURN_IF_ERROR(Create(memory, &table));
  MutexLock lock(&state_->mutex);
  GEARDB_RETURN_IF_ERROR(state_->pages_->Reserve(head_->lpns()));
  GEARDB_RETURN_IF_ERROR(state_->trajectories_->Reserve(head_->slots()));
  GEARDB_RETURN_IF_ERROR(MakePriorityTables());
  std::vector<PriorityState*> priorities;
  uint64_t items = 0;
  uint32_t beside = 0;  // Whose items need nothing else, from the first on.
  bool alone = true;
  for (size_t i = 0; i < state_->priority_table_count(); ++i) {
    priorities.push_back(&state_->priority(i));
    alone &= priorities.back()->groups() == nullptr;
    if (!alone) continue;
    items += head_->priority_tables()->Get(static_cast<uint32_t>(i))->items();
    ++beside;
  }
  if (items_ == nullptr || items < kItemsBeside) beside = 0;
  Status of_items;
  {
    const BesideThread thread(
        "loads items of the index image", [&] { of_items = LoadItems(0, beside, priorities); },
        beside > 0);
    GEARDB_RETURN_IF_ERROR(LoadRows());
  }
  GEARDB_RETURN_IF_ERROR(of_items);
  GEARDB_RETURN_IF_ERROR(LoadItems(beside, static_cast<uint32_t>(priorities.size()), priorities));
  GEARDB_RETURN_IF_ERROR(CheckPriorityTables());
  uint64_t slots = 1;
  state_->trajectories().ForEach(
      [&](Slot slot, const index::TrajectoryRecord&) { slots = uint64_t{slot} + 1; });
  uint64_t lpns = 1;
  for (const Lpn lpn : lpn_at_) lpns = std::max(lpns, uint64_t{lpn} + 1);
  GEARDB_RETURN_IF_ERROR(table.plan->ReserveNumbers(lpns, slots));
  return table;
}

Status TableImageLoad::LoadRows() {
  const ImageShape shape(state_->layout(), chunk_bytes_);
  const uint64_t slot_chunks = ImageShape::Chunks(head_->slots(), shape.slots_per_chunk);
  for (uint64_t chunk = 0; chunk < slot_chunks; ++chunk) {
    GEARDB_RETURN_IF_ERROR(LoadTrajectories(chunk));
  }
  GEARDB_RETURN_IF_ERROR(CountPages());
  const uint64_t lpn_chunks = ImageShape::Chunks(head_->lpns(), shape.lpns_per_chunk);
  for (uint64_t chunk = 0; chunk < lpn_chunks; ++chunk) {
    GEARDB_RETURN_IF_ERROR(LoadPages(chunk));
  }
  GEARDB_RETURN_IF_ERROR(LinkPages());
  return CountRows();
}

// ---- The head.

Status TableImageLoad::ReadHead() {
  GEARDB_ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::Open(source_, head_chunk_, lsn_));
  chunk_bytes_ = reader.chunk_bytes();
  GEARDB_ASSIGN_OR_RETURN(head_, reader.FlatBuffer<fb::TableHead>(&head_bytes_));
  if (!ShapesAligned(head_->spec())) return BadChunk(head_chunk_, "a shape is not aligned");
  if (head_->table_id() != id_) return BadChunk(head_chunk_, "it is of table ", head_->table_id());
  const bool places_fit = head_->slots() < kNoSlot && head_->lpns() < kNoLpn &&
                          head_->trajectories() <= head_->slots() &&
                          head_->pages() <= head_->lpns();
  if (!places_fit) {
    return BadChunk(head_chunk_, head_->trajectories(), " trajectories in ", head_->slots(),
                    " slots, ", head_->pages(), " pages in ", head_->lpns(), " places");
  }
  if (head_->next_id() == 0 || head_->next_id() > kIdsEnd || head_->next_generation() == 0 ||
      head_->next_generation() > kGenerationsEnd || head_->generations_end() > kGenerationsEnd) {
    return BadChunk(head_chunk_, "the next id is ", head_->next_id(), ", the next generation ",
                    head_->next_generation(), " of ", head_->generations_end());
  }
  const Status ids = CheckIdsEnd(head_->ids_end());
  return ids.ok() ? ids : BadChunk(head_chunk_, ids.message());
}

Status TableImageLoad::Create(const TableState::Memory& memory, LoadedTable* table) {
  Result<TableHistory> history = companion_ != nullptr
                                     ? Result<TableHistory>(TableHistory(*companion_))
                                     : DecodeTableHistory(head_->spec());
  if (history.status().code() == StatusCode::kUnsupported) return history.status();
  if (!history.ok()) return BadChunk(head_chunk_, history.status().message());
  const Status valid = companion_ != nullptr ? Status::Ok() : ValidateHistory(*history);
  if (!valid.ok()) return BadChunk(head_chunk_, valid.message());
  if (companion_ != nullptr && head_->priority_tables() != nullptr &&
      head_->priority_tables()->size() > 0) {
    return BadChunk(head_chunk_, "a table that another one owns has priority tables");
  }
  if (history->options.steps_per_page == 0) return BadChunk(head_chunk_, "pages have no size");
  GEARDB_ASSIGN_OR_RETURN(table->state, TableState::Create(memory, std::move(*history), id_));
  GEARDB_ASSIGN_OR_RETURN(table->plan, TablePlan::Create(memory.index, table->state.get()));
  state_ = table->state.get();
  state_->removals_.Restore(head_->removed_ever());
  table->plan->next_id = head_->next_id();
  table->plan->ids_end = head_->ids_end();
  table->plan->next_generation = head_->next_generation();
  table->plan->generations_end = head_->generations_end();
  return Status::Ok();
}

Status TableImageLoad::MakePriorityTables() {
  const auto* heads = head_->priority_tables();
  for (uint32_t i = 0; heads != nullptr && i < heads->size(); ++i) {
    const fb::PriorityTableHead& head = *heads->Get(i);
    const Result<PriorityTableSpec> spec = DecodePriorityTableSpec(head.spec());
    if (spec.status().code() == StatusCode::kUnsupported) return spec.status();
    if (!spec.ok()) return BadChunk(head_chunk_, spec.status().message());
    const Status valid = ValidatePriorityTableSpec(state_->layout().spec(), *spec);
    if (!valid.ok()) return BadChunk(head_chunk_, valid.message());
    const Status filter = CheckStandingFilter(*spec, state_->layout());
    if (!filter.ok()) return BadChunk(head_chunk_, filter.message());
    const Status numbers = CheckRequiredNumbers(state_->layout(), *spec);
    if (!numbers.ok()) return BadChunk(head_chunk_, numbers.message());
    for (size_t other = 0; other < i; ++other) {
      if (state_->priority(other).spec().name != spec->name) continue;
      return BadChunk(head_chunk_, "two priority tables are called '", spec->name, "'");
    }
    GEARDB_RETURN_IF_ERROR(state_->AddPriorityTable(*spec));
    state_->priority(i).selector().BeginBulk();
  }
  return Status::Ok();
}

Status TableImageLoad::LoadItems(uint32_t first, uint32_t end,
                                 std::span<PriorityState* const> priorities) const {
  for (uint32_t i = first; i < end; ++i) {
    const fb::PriorityTableHead& head = *head_->priority_tables()->Get(i);
    PriorityState* const priority = priorities[i];
    if (priority->groups() != nullptr) {
      GEARDB_RETURN_IF_ERROR(
          GroupsImage(id_, i, chunk_bytes_).Load(head, lsn_, source_, *state_, priority->groups()));
    }
    const ImageSource& source = items_ != nullptr ? *items_ : source_;
    GEARDB_RETURN_IF_ERROR(ItemsImage(id_, i, chunk_bytes_).Load(head, lsn_, source, priority));
  }
  return Status::Ok();
}

Status TableImageLoad::CheckPriorityTables() {
  for (uint32_t i = 0; i < state_->priority_table_count(); ++i) {
    GEARDB_RETURN_IF_ERROR(CheckItems(*state_, i, chunk_bytes_));
    state_->UseFilter(i);
  }
  return Status::Ok();
}

// ---- Trajectories.

Status TableImageLoad::LoadTrajectories(uint64_t chunk) {
  const ImageChunk name{id_, ImageKind::kTrajectories, chunk};
  GEARDB_ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::Open(source_, name, lsn_));
  const TableLayout& layout = state_->layout();
  const auto count = reader.Get<uint32_t>();
  const TrajectoryArrays arrays(&reader, count);
  std::vector<std::pair<const TrajectoryColumn*, std::span<const std::byte>>> columns;
  for (const TrajectoryColumn& column : layout.trajectory_columns()) {
    if (!column.dropped) columns.emplace_back(&column, reader.Bytes(column.bytes, count));
  }
  std::vector<std::pair<size_t, ChunkArray<uint64_t>>> filled;
  for (size_t g = 0; g < layout.group_count(); ++g) {
    if (!KeepsFilled(layout.group(g))) continue;
    filled.emplace_back(layout.group(g).filled_place, reader.Array<uint64_t>(count));
  }
  GEARDB_RETURN_IF_ERROR(reader.CheckEnd());
  const uint64_t each = ImageShape(layout, chunk_bytes_).slots_per_chunk;
  const uint64_t slots_end = std::min((chunk + 1) * each, head_->slots());
  if (const auto slot = FindMisplaced(arrays.slot, chunk * each, slots_end)) {
    return BadChunk(name, "slot ", *slot, " is out of place");
  }
  const index::TrajectoryView& view = state_->trajectories().view();
  for (size_t i = 0; i < count; ++i) {
    if (i + kIdsAhead < count) view.PrefetchId(arrays.id[i + kIdsAhead]);
    const index::TrajectoryRecord record = arrays.Record(i);
    const Slot slot = arrays.slot[i];
    std::string why = CheckTrajectory(layout, record, lsn_);
    if (why.empty() && record.id >= head_->next_id()) why = "its id was never handed out";
    if (why.empty() && state_->trajectories().FindById(record.id) != kNoSlot) {
      why = "its id is another's";
    }
    for (const auto& [column, ends] : filled) {
      if (why.empty() && ends[i] > record.rows_end) why = "a group is filled beyond its end";
    }
    if (!why.empty()) return BadChunk(name, "trajectory ", record.id, " in slot ", slot, ": ", why);
    state_->trajectories_->Insert(
        {.slot = slot, .generation = record.generation, .id = record.id}) = record;
    for (const auto& [column, values] : columns) {
      const std::span<std::byte> into = state_->trajectories_->column(column->place, slot);
      CopyElements(column->dtype, into.data(), values.subspan(i * into.size(), into.size()));
    }
    for (const auto& [column, ends] : filled) {
      const uint64_t end = ends[i];
      std::memcpy(state_->trajectories_->column(column, slot).data(), &end, sizeof(end));
    }
  }
  return Status::Ok();
}

Status TableImageLoad::CountPages() {
  const index::TrajectoryIndex& trajectories = state_->trajectories();
  if (trajectories.count() != head_->trajectories()) {
    return BadChunk(head_chunk_, "it says ", head_->trajectories(), " trajectories; there are ",
                    trajectories.count());
  }
  const TableLayout& layout = state_->layout();
  first_place_.assign(head_->slots() + 1, 0);
  trajectories.ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    first_place_[slot + 1] = layout.PageNumber(static_cast<int64_t>(record.rows_end - 1)) -
                             layout.PageNumber(static_cast<int64_t>(record.first_row)) +
                             uint64_t{1};
  });
  for (size_t slot = 0; slot < head_->slots(); ++slot) first_place_[slot + 1] += first_place_[slot];
  if (first_place_.back() != head_->pages()) {
    return BadChunk(head_chunk_, "it says ", head_->pages(), " pages; the trajectories' rows take ",
                    first_place_.back());
  }
  lpn_at_.assign(head_->pages(), kNoLpn);
  generation_at_.assign(head_->pages(), 0);
  return Status::Ok();
}

// ---- Pages.

Status TableImageLoad::LoadPages(uint64_t chunk) {
  const ImageChunk name{id_, ImageKind::kPages, chunk};
  GEARDB_ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::Open(source_, name, lsn_));
  const TableLayout& layout = state_->layout();
  const auto count = reader.Get<uint32_t>();
  const auto numbers = reader.Array<uint32_t>(count);
  const auto slots = reader.Array<uint32_t>(count);
  const auto generations = reader.Array<uint32_t>(count);
  const auto page_numbers = reader.Array<uint32_t>(count);
  const uint64_t each = ImageShape(layout, chunk_bytes_).lpns_per_chunk;
  const uint64_t lpns_end = std::min((chunk + 1) * each, head_->lpns());
  if (const auto lpn = FindMisplaced(numbers, chunk * each, lpns_end)) {
    return BadChunk(name, "LPN ", *lpn, " is out of place");
  }
  NewPages pages;
  for (size_t i = 0; i < page_numbers.size(); ++i) {
    pages.push_back({.lpn = numbers[i],
                     .slot = slots[i],
                     .generation = generations[i],
                     .page_number = page_numbers[i]});
    GEARDB_RETURN_IF_ERROR(TakePage(name, pages.back()));
  }
  for (size_t g = 0; g < layout.group_count(); ++g) {
    if (!IsInImage(layout.group(g))) continue;
    GEARDB_RETURN_IF_ERROR(LoadGroup(&reader, g, pages));
  }
  if (layout.spec().stream) {
    for (const auto& page : pages) {
      const auto flags = reader.Array<uint8_t>(layout.steps_per_page());
      uint8_t* into = state_->pages_->row_flags(page.lpn);
      for (size_t i = 0; i < flags.size(); ++i) into[i] = flags[i];
    }
  }
  return reader.CheckEnd();
}

Status TableImageLoad::TakePage(const ImageChunk& chunk, const index::PageTable::NewPage& page) {
  const TableLayout& layout = state_->layout();
  const bool there =
      page.slot < head_->slots() && page.generation != 0 &&
      state_->trajectories().record(page.slot).state != index::TrajectoryState::kFree;
  if (!there) {
    return BadChunk(chunk, "LPN ", page.lpn, " of generation ", page.generation, " is in slot ",
                    page.slot, ", which is free");
  }
  const index::TrajectoryRecord& record = state_->trajectories().record(page.slot);
  const uint32_t first = layout.PageNumber(static_cast<int64_t>(record.first_row));
  const uint64_t place = first_place_[page.slot] + (page.page_number - uint64_t{first});
  if (page.page_number < first || place >= first_place_[page.slot + 1] ||
      lpn_at_[place] != kNoLpn) {
    return BadChunk(chunk, "LPN ", page.lpn, " is page ", page.page_number, " of trajectory ",
                    record.id, ", which has another or none");
  }
  lpn_at_[place] = page.lpn;
  generation_at_[place] = page.generation;
  return Status::Ok();
}

Status TableImageLoad::LoadGroup(ChunkReader* reader, size_t group, const NewPages& pages) {
  const TableLayout& layout = state_->layout();
  const size_t count = pages.size();
  const auto newest = reader->Array<uint64_t>(count);
  const auto birth = reader->Array<uint64_t>(count);
  const auto piece_at = reader->Array<uint64_t>(count);
  const auto piece_checksum = reader->Array<uint32_t>(count);
  const auto rows_filled = reader->Array<uint16_t>(count);
  const auto pieces = reader->Array<uint8_t>(count);
  const auto flags = reader->Array<uint8_t>(count);
  for (size_t i = 0; i < flags.size(); ++i) {
    index::GroupPageRecord& record = state_->pages_->group_page(group, pages[i].lpn);
    record = index::GroupPageRecord{};
    record.newest_lsn = newest[i];
    record.birth_lsn = birth[i];
    record.piece_at = piece_at[i];
    record.piece_checksum = piece_checksum[i];
    record.rows_filled = rows_filled[i];
    record.piece_count = pieces[i];
    record.flags = flags[i];
    // There are images that count the rows of a patch, of which a reopen has nothing.
    if (!layout.group(group).logged() && record.birth_lsn == kNoLsn) record.rows_filled = 0;
    const index::PageTable::NewPage& page = pages[i];
    const index::TrajectoryRecord& trajectory = state_->trajectories().record(page.slot);
    PageOfTrajectory of{.first = uint64_t{page.page_number} << layout.steps_shift()};
    of.rows = std::min<uint64_t>(layout.steps_per_page(), trajectory.rows_end - of.first);
    if (layout.group(group).late) {
      std::memcpy(&of.filled,
                  state_->trajectories_->column(layout.group(group).filled_place, page.slot).data(),
                  sizeof(of.filled));
    }
    const std::string why = CheckGroupPage(layout.group(group), record, of, lsn_);
    if (!why.empty()) {
      return BadChunk(reader->chunk(), "LPN ", page.lpn, " in group ", group, ": ", why);
    }
  }
  return Status::Ok();
}

Status TableImageLoad::LinkPages() {
  const TableLayout& layout = state_->layout();
  const size_t groups = layout.group_count();
  std::array<index::GroupPageRecord, index::kPageGroupsMax> kept;
  for (size_t place = 0; place < lpn_at_.size(); ++place) {
    if (lpn_at_[place] != kNoLpn) continue;
    return BadChunk({id_, ImageKind::kPages, 0}, "it, or one behind it, lacks ",
                    std::count(lpn_at_.begin(), lpn_at_.end(), kNoLpn), " of ", lpn_at_.size(),
                    " pages");
  }
  state_->trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& found) {
    index::PageList list;
    uint32_t page_number = layout.PageNumber(static_cast<int64_t>(found.first_row));
    for (uint64_t place = first_place_[slot]; place < first_place_[slot + 1]; ++place) {
      const Lpn lpn = lpn_at_[place];
      for (size_t g = 0; g < groups; ++g) kept[g] = state_->pages_->group_page(g, lpn);
      state_->pages_->Append({.lpn = lpn,
                              .slot = slot,
                              .generation = generation_at_[place],
                              .page_number = page_number++},
                             &list);
      for (size_t g = 0; g < groups; ++g) {
        const GroupLayout& group = layout.group(g);
        index::GroupPageRecord& record = state_->pages_->group_page(g, lpn);
        if (IsInImage(group)) record = kept[g];
        const bool unwritten = (group.late || group.added) && record.birth_lsn == kNoLsn;
        const bool defaults = unwritten || !group.logged() || group.dropped;
        record.frame = defaults ? state_->default_frame(g) : FrameRef{};
        if (!defaults) state_->frame_bytes_ += group.pages.frame_bytes();
      }
    }
    index::TrajectoryRecord& record = state_->trajectories_->record(slot);
    record.head_lpn = list.head;
    record.tail_lpn = list.tail;
  });
  state_->page_count_ = lpn_at_.size();
  return Status::Ok();
}

Status TableImageLoad::CountRows() {
  const TableLayout& layout = state_->layout();
  const ImageShape shape(layout, chunk_bytes_);
  uint64_t rows = 0;
  uint64_t final_rows = 0;
  Status status;
  state_->trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    rows += record.rows_end - record.first_row;
    if (record.state == index::TrajectoryState::kOpen) ++state_->open_count_;
    if (!layout.spec().stream) {
      final_rows += (record.flags & index::kFinalRowStored) != 0 ? 1 : 0;
      return;
    }
    uint64_t here = 0;
    const std::string why = CheckRowFlags(*state_, record, &here);
    final_rows += here;
    if (why.empty() || !status.ok()) return;
    const ImageChunk chunk{id_, ImageKind::kTrajectories, slot / shape.slots_per_chunk};
    status = BadChunk(chunk, "trajectory ", record.id, " in slot ", slot, ": ", why);
  });
  GEARDB_RETURN_IF_ERROR(status);
  state_->rows_ = rows;
  state_->steps_ = rows - final_rows;
  if (state_->steps_ == head_->steps()) return Status::Ok();
  return BadChunk(head_chunk_, "it says ", head_->steps(), " steps; the trajectories have ",
                  state_->steps_);
}

}  // namespace geardb::engine
