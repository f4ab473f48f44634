#include "index/trajectory_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/break.h"
#include "base/check.h"

namespace geardb::index {
namespace {

constexpr size_t kTrajectoryHeaderPart = 0;
constexpr size_t kTrajectoryRecordsPart = 1;
constexpr uint32_t kColumnBytesMax = 64;
constexpr uint64_t kHashCapacityMin = 1024;

}  // namespace

TrajectoryView::TrajectoryView(std::byte* base, uint64_t offset)
    : base_(base), header_(reinterpret_cast<TrajectoryIndexHeader*>(base + offset)) {}

uint64_t TrajectoryView::HomeOf(TrajectoryId id) const {
  // The finaliser of MurmurHash3: consecutive ids spread over the whole table.
  uint64_t h = id;
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCD;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53;
  return (h ^ (h >> 33)) & (header_->hash_capacity - 1);
}

Slot TrajectoryView::FindById(TrajectoryId id) const {
  if (header_->hash_capacity == 0) return kNoSlot;
  const uint64_t mask = header_->hash_capacity - 1;
  for (uint64_t i = HomeOf(id);; i = (i + 1) & mask) {
    const uint32_t entry = hash()[i];
    if (entry == 0) return kNoSlot;
    if (records()[entry - 1].id == id) return entry - 1;
  }
}

Result<std::unique_ptr<TrajectoryIndex>> TrajectoryIndex::Create(IndexMemory* memory,
                                                                 std::string_view name,
                                                                 const Options& options) {
  if (options.slot_capacity == 0 || options.slot_capacity >= kNoSlot) {
    return Status::InvalidArgument("trajectory index '", name, "' for ", options.slot_capacity,
                                   " slots: 1 to ", kNoSlot - 1, " are possible");
  }
  GEARDB_ASSIGN_OR_RETURN(
      Region region, memory->Reserve(name, {sizeof(TrajectoryIndexHeader),
                                            options.slot_capacity * sizeof(TrajectoryRecord)}));
  GEARDB_RETURN_IF_ERROR(region.Commit(kTrajectoryHeaderPart, sizeof(TrajectoryIndexHeader)));
  auto* header = reinterpret_cast<TrajectoryIndexHeader*>(region.base());
  header->records_offset = region.offset() + region.part_offset(kTrajectoryRecordsPart);
  std::unique_ptr<TrajectoryIndex> trajectories(
      new TrajectoryIndex(memory, std::move(region), options.slot_capacity));
  for (const uint32_t bytes : options.column_bytes) {
    GEARDB_RETURN_IF_ERROR(trajectories->AddColumn(bytes));
  }
  return trajectories;
}

TrajectoryIndex::TrajectoryIndex(IndexMemory* memory, Region region, uint64_t slot_capacity)
    : memory_(memory),
      slot_capacity_(slot_capacity),
      region_(std::move(region)),
      view_(memory->base(), region_.offset()) {}

Status TrajectoryIndex::AddColumn(uint32_t bytes) {
  if (bytes == 0 || bytes > kColumnBytesMax) {
    return Status::InvalidArgument("per-trajectory column ", column_count(), " of '",
                                   region_.name(), "' has ", bytes, " bytes: 1 to ",
                                   kColumnBytesMax, " are possible");
  }
  GEARDB_ASSIGN_OR_RETURN(Region values,
                          memory_->Reserve(region_.name(), {slot_capacity_ * bytes}));
  if (reserved() > 0) GEARDB_RETURN_IF_ERROR(values.Commit(0, reserved() * bytes));
  columns_.push_back(std::move(values));
  column_bytes_.push_back(bytes);
  return Status::Ok();
}

void TrajectoryIndex::RemoveLastColumn() {
  columns_.pop_back();
  column_bytes_.pop_back();
}

uint64_t TrajectoryIndex::committed_bytes() const {
  uint64_t bytes = region_.committed_bytes() + hash_region_.committed_bytes();
  for (const Region& column : columns_) bytes += column.committed_bytes();
  return bytes;
}

Status TrajectoryIndex::Reserve(uint64_t slot_count) {
  if (slot_count <= reserved()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(
      region_.Commit(kTrajectoryRecordsPart, slot_count * sizeof(TrajectoryRecord)));
  for (size_t column = 0; column < columns_.size(); ++column) {
    GEARDB_RETURN_IF_ERROR(columns_[column].Commit(0, slot_count * column_bytes_[column]));
  }
  GEARDB_RETURN_IF_ERROR(GrowHash(slot_count));
  view_.header_->reserved = slot_count;
  return Status::Ok();
}

Status TrajectoryIndex::GrowHash(uint64_t slot_count) {
  // At most half full, so that a search ends after few steps.
  const uint64_t wanted = std::max(kHashCapacityMin, std::bit_ceil(slot_count * 2));
  TrajectoryIndexHeader& header = *view_.header_;
  if (wanted <= header.hash_capacity) return Status::Ok();
  const uint64_t bytes = wanted * sizeof(uint32_t);
  GEARDB_ASSIGN_OR_RETURN(Region grown, memory_->Reserve(region_.name() + " hash", {bytes}));
  // It is made from the records: nobody needs the one before.
  GEARDB_RETURN_IF_ERROR(grown.CommitInPlaceOf(&hash_region_, 0, bytes));
  header.hash_offset = grown.offset();
  header.hash_capacity = wanted;
  hash_region_ = std::move(grown);
  ForEach([this](Slot slot, const TrajectoryRecord&) { HashInsert(slot); });
  return Status::Ok();
}

void TrajectoryIndex::HashInsert(Slot slot) {
  const uint64_t mask = view_.header_->hash_capacity - 1;
  uint32_t* hash = view_.hash();
  uint64_t i = view_.HomeOf(view_.record(slot).id);
  while (hash[i] != 0) i = (i + 1) & mask;
  hash[i] = slot + 1;
}

void TrajectoryIndex::HashErase(Slot slot) {
  const uint64_t mask = view_.header_->hash_capacity - 1;
  uint32_t* hash = view_.hash();
  uint64_t hole = view_.HomeOf(view_.record(slot).id);
  while (hash[hole] != slot + 1) hole = (hole + 1) & mask;
  // Move up what would no longer be found behind the hole (Knuth, TAOCP 3, 6.4, algorithm R).
  for (uint64_t i = (hole + 1) & mask; hash[i] != 0; i = (i + 1) & mask) {
    const uint64_t home = view_.HomeOf(view_.record(hash[i] - 1).id);
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    hash[hole] = hash[i];
    hole = i;
  }
  hash[hole] = 0;
}

TrajectoryRecord& TrajectoryIndex::Insert(const NewTrajectory& trajectory) {
  GEARDB_CHECK(trajectory.slot < reserved());
  TrajectoryRecord& fresh = record(trajectory.slot);
  GEARDB_CHECK(fresh.state == TrajectoryState::kFree);
  fresh = TrajectoryRecord{};
  fresh.id = trajectory.id;
  fresh.generation = trajectory.generation;
  fresh.state = TrajectoryState::kOpen;
  for (size_t c = 0; c < column_bytes_.size(); ++c) {
    std::memset(column(c, trajectory.slot).data(), 0, column_bytes_[c]);
  }
  HashInsert(trajectory.slot);
  ++view_.header_->count;
  return fresh;
}

void TrajectoryIndex::Erase(Slot slot) {
  GEARDB_CHECK(slot < reserved() && record(slot).state != TrajectoryState::kFree);
  HashErase(slot);
  record(slot).state = TrajectoryState::kFree;
  --view_.header_->count;
}

TrajectoryRecord* TrajectoryIndex::FindLive(Slot slot, uint32_t generation) {
  if (slot >= reserved()) return nullptr;
  TrajectoryRecord& found = record(slot);
  const bool same = kBreak.ignore_generation || found.generation == generation;
  return found.state != TrajectoryState::kFree && same ? &found : nullptr;
}

std::span<std::byte> TrajectoryIndex::column(size_t column, Slot slot) {
  WillChange(slot);
  const uint32_t bytes = column_bytes_[column];
  return {columns_[column].base() + uint64_t{slot} * bytes, bytes};
}

std::span<const std::byte> TrajectoryIndex::column(size_t column, Slot slot) const {
  const uint32_t bytes = column_bytes_[column];
  return {columns_[column].base() + uint64_t{slot} * bytes, bytes};
}

}  // namespace geardb::index
