#include "engine/internal/image_copy.h"

#include <algorithm>
#include <bit>

namespace geardb::engine {
namespace {

constexpr uint64_t kNumbersPerChunkMax = uint64_t{1} << 16;

uint64_t PerChunk(uint64_t chunk_bytes, uint64_t bytes) {
  return std::clamp<uint64_t>(std::bit_floor(chunk_bytes / bytes), 1, kNumbersPerChunkMax);
}

/// Numbers of a chunk.
struct Numbers {
  Numbers(const ChunkOf& of, uint64_t per_chunk)
      : first(static_cast<uint32_t>(of.chunk * per_chunk)),
        count(std::min((of.chunk + 1) * per_chunk, of.numbers_end) - of.chunk * per_chunk) {}
  uint32_t first;
  size_t count;
};

}  // namespace

ImageShape::ImageShape(const TableLayout& layout, uint64_t chunk_bytes) {
  uint64_t slot_bytes = 75;
  for (const TrajectoryColumn& column : layout.trajectory_columns()) {
    slot_bytes += column.dropped ? 0 : column.bytes;
  }
  uint64_t page_bytes = 16 + (layout.spec().stream ? layout.steps_per_page() : 0);
  for (const GroupLayout& group : layout.groups()) {
    page_bytes += group.dropped ? 0 : 32;
    if (KeepsFilled(group)) slot_bytes += 8;
  }
  slots_per_chunk = PerChunk(chunk_bytes, slot_bytes);
  lpns_per_chunk = PerChunk(chunk_bytes, page_bytes);
}

// ---- Trajectories.

TrajectoriesCopy::TrajectoriesCopy(const TableState& state, const TableLayout& layout,
                                   const ChunkOf& of)
    : chunk(of.chunk) {
  const index::TrajectoryIndex& trajectories = state.trajectories();
  const Numbers slots(of, ImageShape(layout).slots_per_chunk);
  first = slots.first;
  const index::TrajectoryRecord* begin = &trajectories.record(first);
  records.assign(begin, begin + slots.count);
  const auto copy = [&](size_t place) {
    const std::span<const std::byte> value = trajectories.column(place, first);
    columns.emplace_back(value.data(), value.data() + value.size() * slots.count);
  };
  for (const TrajectoryColumn& column : layout.trajectory_columns()) {
    if (!column.dropped) copy(column.place);
  }
  for (const GroupLayout& group : layout.groups()) {
    if (KeepsFilled(group)) copy(group.filled_place);
  }
}

Status TrajectoriesCopy::Give(const TableLayout& layout, Lsn lsn, const ImageSink& sink) const {
  std::vector<uint32_t> live;  // Places in `records`.
  for (uint32_t i = 0; i < records.size(); ++i) {
    if (records[i].state != index::TrajectoryState::kFree) live.push_back(i);
  }
  ChunkWriter writer({layout.id(), ImageKind::kTrajectories, chunk}, lsn);
  const size_t count = live.size();
  const auto of = [&](size_t i) -> const index::TrajectoryRecord& { return records[live[i]]; };
  writer.Put(static_cast<uint32_t>(count));
  writer.PutArray<uint32_t>(count, [&](size_t i) { return first + live[i]; });
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
  for (const std::vector<std::byte>& column : columns) {
    const size_t bytes = column.size() / records.size();
    for (const uint32_t i : live) writer.PutBytes(std::span(column).subspan(i * bytes, bytes));
  }
  return writer.GiveTo(sink);
}

// ---- Pages.

PagesCopy::PagesCopy(const TableState& state, const TableLayout& layout, const ChunkOf& of)
    : chunk(of.chunk) {
  const index::PageTable& table = state.pages();
  const Numbers lpns(of, ImageShape(layout).lpns_per_chunk);
  first = lpns.first;
  const index::PageRecord* begin = &table.page(first);
  pages.assign(begin, begin + lpns.count);
  for (size_t g = 0; g < layout.group_count(); ++g) {
    if (!IsInImage(layout.group(g))) continue;
    const index::GroupPageRecord* records = &table.group_page(g, first);
    groups.emplace_back(records, records + lpns.count);
  }
  if (!layout.spec().stream) return;
  const uint8_t* of_rows = table.row_flags(first);
  flags.assign(of_rows, of_rows + lpns.count * layout.steps_per_page());
}

Status PagesCopy::Give(const TableLayout& layout, Lsn lsn, const ImageSink& sink) const {
  std::vector<uint32_t> used;  // Places in `pages`.
  for (uint32_t i = 0; i < pages.size(); ++i) {
    if (pages[i].in_use != 0) used.push_back(i);
  }
  ChunkWriter writer({layout.id(), ImageKind::kPages, chunk}, lsn);
  const size_t count = used.size();
  writer.Put(static_cast<uint32_t>(count));
  writer.PutArray<uint32_t>(count, [&](size_t i) { return first + used[i]; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return pages[used[i]].slot; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return pages[used[i]].generation; });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return pages[used[i]].page_number; });
  for (const std::vector<index::GroupPageRecord>& group : groups) {
    // All but the frame. A field that comes to this record comes here, to LoadGroup of
    // table_image_load.cc and to FORMAT.md.
    static_assert(sizeof(index::GroupPageRecord) == 40);
    const auto of = [&](size_t i) -> const index::GroupPageRecord& { return group[used[i]]; };
    writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).newest_lsn; });
    writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).birth_lsn; });
    writer.PutArray<uint64_t>(count, [&](size_t i) { return of(i).piece_at; });
    writer.PutArray<uint32_t>(count, [&](size_t i) { return of(i).piece_checksum; });
    writer.PutArray<uint16_t>(count, [&](size_t i) { return of(i).rows_filled; });
    writer.PutArray<uint8_t>(count, [&](size_t i) { return of(i).piece_count; });
    writer.PutArray<uint8_t>(
        count, [&](size_t i) { return static_cast<uint8_t>(of(i).flags & kPageFlagsSaved); });
  }
  if (!layout.spec().stream) return writer.GiveTo(sink);
  const size_t rows = layout.steps_per_page();
  for (const uint32_t i : used) {
    // Behind the last row is what another page had there.
    const size_t filled = groups[0][i].rows_filled;
    writer.PutArray<uint8_t>(
        rows, [&](size_t row) { return row < filled ? flags[i * rows + row] : uint8_t{0}; });
  }
  return writer.GiveTo(sink);
}

}  // namespace geardb::engine
