// Loads a table from its image (table_image.h). Every byte is checked before it is trusted: a chunk
// that is damaged, hostile or of another image is Corruption that names it, in time and memory in
// the size of what the chunks hold and of the index memory that the table had (the head says how
// much; the budget bounds it).
//
// Lists of pages are not stored: each page says which one it is of which trajectory, and the lists
// are linked from that. So there is no list to be wrong, only pages that lack or come twice.
#pragma once

#include <memory>
#include <vector>

#include "engine/image_generated.h"
#include "engine/internal/table_image.h"

namespace geardb::engine {

/// A table as of the image's LSN, ready for the records behind it. Its selectors are in a bulk
/// (TableState::EndBulk), its plan has taken over nothing yet (TablePlan::TakeOver): as a table in
/// the middle of a recovery. Open trajectories are open. Pages of logged groups have no frame, but
/// those of late groups in which nobody has written, and those of volatile groups, which show the
/// defaults.
struct LoadedTable {
  std::unique_ptr<TableState> state;
  std::unique_ptr<TablePlan> plan;
};

/// Corruption naming the chunk; Unsupported for what a newer GearDB has written;
/// ResourceExhausted where index memory or frames do not suffice; what the source says otherwise.
/// `companion`, where it is not null, is the spec of what is loaded, whatever the image says of
/// that: the table is a companion, whose owner was loaded before (companion.h). `items`, where it
/// is not null, has the chunks of items, beside `source`: many are loaded by a thread of their own.
Result<LoadedTable> LoadTable(const TableState::Memory& memory, TableId id, Lsn lsn,
                              const ImageSource& source, const TableSpec* companion = nullptr,
                              const ImageSource* items = nullptr);

/// One load.
class TableImageLoad {
 public:
  TableImageLoad(TableId id, Lsn lsn, const ImageSource& source, const TableSpec* companion,
                 const ImageSource* items)
      : id_(id),
        lsn_(lsn),
        source_(source),
        items_(items),
        companion_(companion),
        head_chunk_{id, ImageKind::kTable, 0} {}

  Result<LoadedTable> Load(const TableState::Memory& memory);

 private:
  using NewPages = std::vector<index::PageTable::NewPage>;

  Status ReadHead();
  Status Create(const TableState::Memory& memory, LoadedTable* table);
  /// As the head says they are, without items.
  Status MakePriorityTables() GEARDB_REQUIRES(state_->mutex);
  /// Trajectories and their pages.
  Status LoadRows() GEARDB_REQUIRES(state_->mutex);
  /// Of priority tables [first, end).
  Status LoadItems(uint32_t first, uint32_t end, std::span<PriorityState* const> priorities) const;
  Status CheckPriorityTables() GEARDB_REQUIRES(state_->mutex);
  Status LoadTrajectories(uint64_t chunk);
  /// Where the pages of each trajectory have their places.
  Status CountPages();
  Status LoadPages(uint64_t chunk);
  Status TakePage(const ImageChunk& chunk, const index::PageTable::NewPage& page);
  Status LoadGroup(ChunkReader* reader, size_t group, const NewPages& pages);
  Status LinkPages();
  Status CountRows();

  const TableId id_;
  const Lsn lsn_;
  const ImageSource& source_;
  const ImageSource* const items_;
  const TableSpec* const companion_;
  const ImageChunk head_chunk_;
  uint64_t chunk_bytes_ = 0;
  std::vector<uint64_t> head_bytes_;  // Aligned.
  const fb::TableHead* head_ = nullptr;
  TableState* state_ = nullptr;
  std::vector<uint64_t> first_place_;  // Of each slot, in the two below; one more at the end.
  std::vector<Lpn> lpn_at_;            // kNoLpn: not seen yet.
  std::vector<uint32_t> generation_at_;
};

}  // namespace geardb::engine
