#include "engine/internal/table_image.h"

#include <algorithm>
#include <bit>

#include "engine/internal/core.h"
#include "engine/internal/image_items.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kNumbersPerChunkMax = uint64_t{1} << 16;

uint64_t PerChunk(uint64_t bytes) {
  return std::clamp<uint64_t>(std::bit_floor(kImageChunkBytes / bytes), 1, kNumbersPerChunkMax);
}

/// The numbers from `begin` on, at most `count`, that lie below `end`.
struct NumberRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
NumberRange RangeOf(uint64_t chunk, uint64_t per_chunk, uint64_t end) {
  return {chunk * per_chunk, std::min((chunk + 1) * per_chunk, end)};
}

Status SaveHead(const TableState& state, const PlanNumbers& numbers, Lsn lsn,
                const ImageSink& sink) {
  const TableLayout& layout = state.layout();
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::PriorityTableHead>> priorities;
  for (size_t i = 0; i < state.priority_table_count(); ++i) {
    priorities.push_back(ItemsImage::SaveHead(&builder, state.priority(i)));
  }
  const auto priorities_offset = builder.CreateVector(priorities);
  const auto spec = EncodeTableSpec(&builder, layout.spec());
  builder.Finish(fb::CreateTableHead(
      builder, layout.id(), spec, state.trajectories().reserved(), state.pages().reserved(),
      state.trajectories().count(), state.page_count(), state.steps(), numbers.next_id,
      numbers.ids_end, numbers.next_generation, numbers.generations_end, priorities_offset));
  ChunkWriter writer({layout.id(), ImageKind::kTable, 0}, lsn);
  writer.PutBytes(
      {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()});
  return writer.GiveTo(sink);
}

Status SaveTrajectories(const TableState& state, uint64_t chunk, Lsn lsn, const ImageSink& sink) {
  const TableLayout& layout = state.layout();
  const index::TrajectoryIndex& trajectories = state.trajectories();
  const NumberRange range =
      RangeOf(chunk, ImageShape(layout).slots_per_chunk, trajectories.reserved());
  std::vector<Slot> slots;
  for (uint64_t slot = range.begin; slot < range.end; ++slot) {
    const index::TrajectoryRecord& record = trajectories.record(static_cast<Slot>(slot));
    if (record.state != index::TrajectoryState::kFree) slots.push_back(static_cast<Slot>(slot));
  }
  ChunkWriter writer({layout.id(), ImageKind::kTrajectories, chunk}, lsn);
  const size_t count = slots.size();
  const auto of = [&](size_t i) -> const index::TrajectoryRecord& {
    return trajectories.record(slots[i]);
  };
  writer.Put(static_cast<uint32_t>(count));
  writer.PutArray<uint32_t>(count, [&](size_t i) { return slots[i]; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return of(i).generation; });
  writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).id; });
  writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).first_row; });
  writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).rows_end; });
  writer.PutArray<int64_t>(count, [&](size_t i) { return of(i).created_us; });
  writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).times_sampled; });
  writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).columns_set; });
  writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).last_lsn; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return of(i).session; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return of(i).lane; });
  writer.PutArray<uint8_t>(count, [&](size_t i) { return static_cast<uint8_t>(of(i).state); });
  writer.PutArray<uint8_t>(count, [&](size_t i) { return static_cast<uint8_t>(of(i).end); });
  writer.PutArray<uint8_t>(count, [&](size_t i) { return of(i).flags; });
  for (size_t c = 0; c < layout.trajectory_columns().size(); ++c) {
    for (const Slot slot : slots) writer.PutBytes(trajectories.column(c, slot));
  }
  for (size_t g = 0; g < layout.group_count(); ++g) {
    if (!KeepsFilled(layout.group(g))) continue;
    for (const Slot slot : slots) {
      writer.PutBytes(trajectories.column(FilledColumn(layout, g), slot));
    }
  }
  return writer.GiveTo(sink);
}

/// The flags of the rows of a page that are there; 0 for the others.
void PutRowFlags(const TableState& state, Lpn lpn, ChunkWriter* writer) {
  const TableLayout& layout = state.layout();
  const index::PageRecord& page = state.pages().page(lpn);
  const index::TrajectoryRecord& record = state.trajectories().record(page.slot);
  const uint64_t first = uint64_t{page.page_number} << layout.steps_shift();
  const uint8_t* flags = state.pages().row_flags(lpn);
  writer->PutArray<uint8_t>(layout.steps_per_page(), [&](size_t offset) {
    const bool there = first + offset >= record.first_row && first + offset < record.rows_end;
    return there ? flags[offset] : uint8_t{0};
  });
}

Status SavePages(const TableState& state, uint64_t chunk, Lsn lsn, const ImageSink& sink) {
  const TableLayout& layout = state.layout();
  const index::PageTable& pages = state.pages();
  const NumberRange range = RangeOf(chunk, ImageShape(layout).lpns_per_chunk, pages.reserved());
  std::vector<Lpn> lpns;
  for (uint64_t lpn = range.begin; lpn < range.end; ++lpn) {
    if (pages.page(static_cast<Lpn>(lpn)).in_use != 0) lpns.push_back(static_cast<Lpn>(lpn));
  }
  ChunkWriter writer({layout.id(), ImageKind::kPages, chunk}, lsn);
  const size_t count = lpns.size();
  writer.Put(static_cast<uint32_t>(count));
  writer.PutArray<uint32_t>(count, [&](size_t i) { return lpns[i]; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return pages.page(lpns[i]).slot; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return pages.page(lpns[i]).generation; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return pages.page(lpns[i]).page_number; });
  for (size_t g = 0; g < layout.group_count(); ++g) {
    if (layout.group(g).late && !layout.group(g).logged()) continue;  // A reopen finds none of it.
    // All but the frame. A field that comes to this record comes here, to LoadGroup of
    // table_image_load.cc and to FORMAT.md.
    static_assert(sizeof(index::GroupPageRecord) == 40);
    const auto of = [&](size_t i) -> const index::GroupPageRecord& {
      return pages.group_page(g, lpns[i]);
    };
    writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).newest_lsn; });
    writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).birth_lsn; });
    writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).piece_at; });
    writer.PutArray<uint32_t>(count, [&](size_t i) { return of(i).piece_checksum; });
    writer.PutArray<uint16_t>(count, [&](size_t i) { return of(i).rows_filled; });
    writer.PutArray<uint8_t>(count, [&](size_t i) { return of(i).piece_count; });
    writer.PutArray<uint8_t>(
        count, [&](size_t i) { return static_cast<uint8_t>(of(i).flags & kPageFlagsSaved); });
  }
  if (layout.spec().stream) {
    for (const Lpn lpn : lpns) PutRowFlags(state, lpn, &writer);
  }
  return writer.GiveTo(sink);
}

}  // namespace

PlanNumbers NumbersOf(const TablePlan& plan) {
  return {.next_id = plan.next_id,
          .ids_end = std::max(plan.ids_end, plan.promised_ids_end),
          .next_generation = plan.next_generation,
          .generations_end = std::max(plan.generations_end, plan.promised_generations_end)};
}

ImageShape::ImageShape(const TableLayout& layout) {
  uint64_t slot_bytes = 75;
  for (const TrajectoryColumn& column : layout.trajectory_columns()) slot_bytes += column.bytes;
  uint64_t page_bytes = 16 + (layout.spec().stream ? layout.steps_per_page() : 0);
  for (const GroupLayout& group : layout.groups()) {
    page_bytes += 32;
    if (KeepsFilled(group)) slot_bytes += 8;
  }
  slots_per_chunk = PerChunk(slot_bytes);
  lpns_per_chunk = PerChunk(page_bytes);
}

size_t FilledColumn(const TableLayout& layout, size_t group) {
  size_t column = layout.trajectory_columns().size();
  for (size_t g = 0; g < group; ++g) column += layout.group(g).late ? 1 : 0;
  return column;
}

Status SaveTable(const TableState& state, const PlanNumbers& numbers, Lsn lsn,
                 const ImageSink& sink) {
  GEARDB_RETURN_IF_ERROR(SaveHead(state, numbers, lsn, sink));
  const ImageShape shape(state.layout());
  const uint64_t slots = ImageShape::Chunks(state.trajectories().reserved(), shape.slots_per_chunk);
  for (uint64_t chunk = 0; chunk < slots; ++chunk) {
    GEARDB_RETURN_IF_ERROR(SaveTrajectories(state, chunk, lsn, sink));
  }
  const uint64_t lpns = ImageShape::Chunks(state.pages().reserved(), shape.lpns_per_chunk);
  for (uint64_t chunk = 0; chunk < lpns; ++chunk) {
    GEARDB_RETURN_IF_ERROR(SavePages(state, chunk, lsn, sink));
  }
  for (size_t i = 0; i < state.priority_table_count(); ++i) {
    const ItemsImage items(state.layout().id(), static_cast<uint32_t>(i));
    const uint64_t chunks = ItemsImage::ChunkCount(state.priority(i));
    for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
      GEARDB_RETURN_IF_ERROR(items.SaveChunk(state.priority(i), chunk, lsn, sink));
    }
  }
  return Status::Ok();
}

}  // namespace geardb::engine
