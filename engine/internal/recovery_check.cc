#include "engine/internal/recovery_check.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "engine/internal/audit.h"
#include "engine/internal/table_plan.h"

namespace geardb::engine {
namespace {

constexpr size_t kTagNameMax = 256;

Status BadPriority(float priority) {
  return Status::Corruption("a priority is ", priority, ": negative or not finite");
}

/// A batch of a mixed sampler: of each priority table once.
Status CheckHandOvers(const flatbuffers::Vector<flatbuffers::Offset<fb::Operation>>& operations) {
  std::set<std::pair<TableId, uint32_t>> seen;
  for (uint32_t i = 0; i < operations.size(); ++i) {
    const fb::Operation& operation = *operations.Get(i);
    if (operation.change_type() != fb::Change::HandOver) {
      return Status::Corruption("operation ", i, " of ", operations.size(),
                                " is no hand-over, as the first one is");
    }
    if (seen.emplace(operation.table_id(), operation.priority_table()).second) continue;
    return Status::Corruption("operation ", i, " of ", operations.size(),
                              " hands over of priority table ", operation.priority_table(),
                              " of table ", operation.table_id(), " again");
  }
  return Status::Ok();
}

/// The place of an operation in a WriteBatch; none for what is in no batch.
std::optional<int> RankInBatch(const fb::Operation& operation) {
  switch (operation.change_type()) {
    case fb::Change::SetPriorities:
      if (operation.change_as_SetPriorities()->in_pieces()) return std::nullopt;
      return 0;
    case fb::Change::DeleteItems:
      return 1;
    case fb::Change::Remove:
    case fb::Change::SetColumns:
    case fb::Change::Append:
      return 2;
    case fb::Change::WriteTag:
      if (operation.change_as_WriteTag()->blob_in_pieces()) return std::nullopt;
      return 3;
    default:
      return std::nullopt;
  }
}

Status CheckWriteBatch(const flatbuffers::Vector<flatbuffers::Offset<fb::Operation>>& operations,
                       size_t pieces) {
  std::set<TableId> tables;  // That something leaves or comes to.
  int last = 0;
  uint64_t named = 0;
  bool tagged = false;
  for (uint32_t i = 0; i < operations.size(); ++i) {
    const fb::Operation& operation = *operations.Get(i);
    const std::optional<int> rank = RankInBatch(operation);
    const bool follows = rank && *rank >= last && !tagged;
    // Columns are set of one trajectory after the other.
    const bool once = rank == 2 && operation.change_type() != fb::Change::SetColumns;
    if (!follows || (once && !tables.insert(operation.table_id()).second)) {
      return Status::Corruption("operation ", i, " of ", operations.size(), ", ",
                                fb::EnumNameChange(operation.change_type()),
                                ", is none that follows the others of a batch");
    }
    last = *rank;
    tagged = *rank == 3;
    named += PiecesOf(operation);
  }
  if (named == pieces) return Status::Ok();
  return Status::Corruption("the operations of a batch name ", named, " pieces of ", pieces);
}

}  // namespace

uint32_t PiecesOf(const fb::Operation& operation) {
  const auto* append = operation.change_as_Append();
  return append != nullptr && append->pieces() != nullptr ? append->pieces()->size() : 0;
}

Status CheckOperations(const fb::Body& body, size_t pieces) {
  const auto& operations = *body.operations();
  const fb::Operation& first = *operations.Get(0);
  if (first.change_type() == fb::Change::HandOver) return CheckHandOvers(operations);
  if (operations.size() > 1 && RankInBatch(first)) return CheckWriteBatch(operations, pieces);
  for (uint32_t i = 1; i < operations.size(); ++i) {
    const fb::Operation& operation = *operations.Get(i);
    const bool belongs = first.change_type() == fb::Change::CreateTable &&
                         operation.change_type() == fb::Change::CreatePriorityTable &&
                         operation.table_id() == first.table_id();
    if (!belongs) {
      return Status::Corruption("operation ", i, " of ", operations.size(),
                                " is no priority table of the table that the first one creates");
    }
  }
  return Status::Ok();
}

Status CheckIdsEnd(uint64_t ids_end) {
  if (ids_end <= kIdsEnd) return Status::Ok();
  return Status::Corruption("ids up to ", ids_end, " are promised; they end at ", kIdsEnd);
}

// ---- Parts of operations.

Status CheckColumnSets(const TableLayout& layout,
                       const flatbuffers::Vector<const fb::ColumnSet*>* sets,
                       const flatbuffers::Vector<uint8_t>* values) {
  const auto columns = layout.trajectory_columns();
  uint64_t bytes = 0;
  for (uint32_t i = 0; sets != nullptr && i < sets->size(); ++i) {
    const uint32_t column = sets->Get(i)->column();
    if (column >= columns.size()) {
      return Status::Corruption("per-trajectory column ", column, " of ", columns.size(),
                                " is set");
    }
    bytes += columns[column].bytes;
  }
  const uint64_t given = values != nullptr ? values->size() : 0;
  if (given != bytes) {
    return Status::Corruption("per-trajectory columns of ", bytes, " bytes are set with ", given);
  }
  return Status::Ok();
}

Status CheckNewItems(const TableState& state,
                     const flatbuffers::Vector<flatbuffers::Offset<fb::NewItems>>* items,
                     uint64_t rows_count) {
  if (items == nullptr) return Status::Ok();
  // Entries may share their values: without this bound, a small record could take long.
  const size_t tables = state.priority_table_count();
  if (items->size() > tables) {
    return Status::Corruption("priorities for ", items->size(), " priority tables of ", tables);
  }
  for (const fb::NewItems* entry : *items) {
    if (entry->priority_table() >= tables) {
      return Status::Corruption("priorities for priority table ", entry->priority_table(), " of ",
                                tables);
    }
    if (!index::ValidPriority(entry->value())) return BadPriority(entry->value());
    const uint64_t given = entry->values() != nullptr ? entry->values()->size() : 0;
    if (entry->per_rows() && given != rows_count) {
      return Status::Corruption(given, " priorities for ", rows_count, " trajectories");
    }
    for (uint32_t i = 0; i < given; ++i) {
      const float value = entry->values()->Get(i);
      if (!index::ValidPriority(value)) return BadPriority(value);
    }
  }
  return Status::Ok();
}

Status CheckPiecesApart(std::span<const wal::PieceView> pieces) {
  for (size_t i = 1; i < pieces.size(); ++i) {
    const wal::PieceView& last = pieces[i - 1];
    const bool behind =
        pieces[i].lsn > last.lsn ||
        (pieces[i].lsn == last.lsn && pieces[i].offset >= last.offset + last.bytes.size());
    if (!behind) return Status::Corruption("piece ", i, " does not lie behind the one before it");
  }
  return Status::Ok();
}

const index::TrajectoryRecord* FindTrajectory(const TableState& state, Slot slot,
                                              uint32_t generation) {
  if (slot >= state.trajectories().reserved()) return nullptr;
  const index::TrajectoryRecord& record = state.trajectories().record(slot);
  const bool there =
      record.state != index::TrajectoryState::kFree && record.generation == generation;
  return there ? &record : nullptr;
}

// ---- What leaves.

Status Leaving::Read(const TableState& state, const RemovedVector* removed,
                     const TrimmedVector* trimmed) {
  removed_.clear();
  trimmed_.clear();
  for (uint32_t i = 0; removed != nullptr && i < removed->size(); ++i) {
    const fb::Removed& gone = *removed->Get(i);
    if (FindTrajectory(state, gone.slot(), gone.generation())) removed_.push_back(gone.slot());
  }
  for (uint32_t i = 0; trimmed != nullptr && i < trimmed->size(); ++i) {
    const fb::Trimmed& trim = *trimmed->Get(i);
    const index::TrajectoryRecord* record = FindTrajectory(state, trim.slot(), trim.generation());
    if (record == nullptr) continue;
    // The final row alone is no item; an open trajectory goes on behind it.
    const bool closed = record->state == index::TrajectoryState::kClosed;
    const uint64_t end = closed ? static_cast<uint64_t>(state.StepsEnd(*record)) : record->rows_end;
    if (trim.first_row() >= end) {
      return Status::Corruption("the trajectory in slot ", trim.slot(), " with rows up to ", end,
                                " is trimmed to row ", trim.first_row());
    }
    const uint32_t first_page = state.layout().PageNumber(static_cast<int64_t>(trim.first_row()));
    trimmed_.push_back({trim.slot(), first_page});
  }
  std::sort(removed_.begin(), removed_.end());
  std::sort(trimmed_.begin(), trimmed_.end(),
            [](const Trim& a, const Trim& b) { return a.slot < b.slot; });
  return Status::Ok();
}

bool Leaving::Removes(Slot slot) const {
  return std::binary_search(removed_.begin(), removed_.end(), slot);
}

bool Leaving::Frees(const index::PageRecord& page) const {
  if (Removes(page.slot)) return true;
  auto trim = std::lower_bound(trimmed_.begin(), trimmed_.end(), page.slot,
                               [](const Trim& a, Slot slot) { return a.slot < slot; });
  for (; trim != trimmed_.end() && trim->slot == page.slot; ++trim) {
    if (page.page_number < trim->first_page) return true;
  }
  return false;
}

// ---- Operations.

Status CheckClose(const TableState& state, const fb::Close& close) {
  for (uint32_t i = 0; close.ended() != nullptr && i < close.ended()->size(); ++i) {
    const fb::Ended& ended = *close.ended()->Get(i);
    if (ended.end() != static_cast<uint8_t>(End::kCut)) {
      return Status::Corruption("the trajectory in slot ", ended.slot(),
                                " ends without rows, but not as cut: ", int{ended.end()});
    }
  }
  return CheckNewItems(state, close.items(), 0);
}

Status CheckRemove(const TableState& state, const fb::Remove& remove) {
  if (remove.reason() > static_cast<uint8_t>(kRemovalReasonLast)) {
    return Status::Corruption("trajectories are removed for reason ",
                              static_cast<int>(remove.reason()));
  }
  return Leaving().Read(state, remove.removed(), remove.trimmed());
}

Status CheckSetColumns(const TableState& state, const fb::SetColumns& set) {
  for (uint32_t i = 0; set.column_sets() != nullptr && i < set.column_sets()->size(); ++i) {
    const Slot slot = set.column_sets()->Get(i)->slot();
    const bool there = slot < state.trajectories().reserved() &&
                       state.trajectories().record(slot).state != index::TrajectoryState::kFree;
    if (!there) return Status::Corruption("a column is set in slot ", slot, ", which is free");
  }
  GEARDB_RETURN_IF_ERROR(CheckNewItems(state, set.items(), 1));
  return CheckColumnSets(state.layout(), set.column_sets(), set.column_values());
}

namespace {

/// Whether pieces hold whole entries, `count` of them, each with a good priority in its last bytes.
Status CheckPriorityPieces(std::span<const wal::PieceView> pieces, size_t entry_bytes,
                           uint64_t count) {
  GEARDB_RETURN_IF_ERROR(CheckPiecesApart(pieces));
  uint64_t bytes = 0;
  for (const wal::PieceView& piece : pieces) {
    if (piece.bytes.size() % entry_bytes != 0) {
      return Status::Corruption("a piece of ", piece.bytes.size(),
                                " bytes is no whole number of priorities");
    }
    bytes += piece.bytes.size();
    if (!piece.good) continue;
    for (size_t end = entry_bytes; end <= piece.bytes.size(); end += entry_bytes) {
      float value = 0;
      std::memcpy(&value, piece.bytes.data() + end - sizeof(value), sizeof(value));
      if (!index::ValidPriority(value)) return BadPriority(value);
    }
  }
  if (bytes / entry_bytes == count) return Status::Ok();
  return Status::Corruption("its pieces hold ", bytes / entry_bytes, " priorities for ", count,
                            " items");
}

}  // namespace

Status CheckSetPriorities(const fb::SetPriorities& set, std::span<const wal::PieceView> pieces) {
  for (uint32_t i = 0; set.items() != nullptr && i < set.items()->size(); ++i) {
    const float priority = set.items()->Get(i)->priority();
    if (!index::ValidPriority(priority)) return BadPriority(priority);
  }
  if (!set.in_pieces()) return Status::Ok();
  // An item ends with its priority.
  return CheckPriorityPieces(pieces, sizeof(fb::Item), set.count());
}

Status CheckSetAll(const fb::SetAll& set, std::span<const wal::PieceView> pieces,
                   const PriorityState& priority) {
  if (!index::ValidPriority(set.value())) return BadPriority(set.value());
  for (uint32_t i = 0; set.values() != nullptr && i < set.values()->size(); ++i) {
    const float value = set.values()->Get(i);
    if (!index::ValidPriority(value)) return BadPriority(value);
  }
  if (!set.in_pieces()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(CheckPriorityPieces(pieces, sizeof(float), set.count()));
  const uint64_t most = priority.selector().reserved();
  if (set.count() <= most) return Status::Ok();
  return Status::Corruption("it sets ", set.count(), " items; at most ", most, " are possible");
}

Status CheckRescale(const fb::Rescale& rescale) {
  if (rescale.shift() >= index::kShiftMin && rescale.shift() <= index::kShiftMax) {
    return Status::Ok();
  }
  return Status::Corruption("the shift of weights is ", rescale.shift(), "; expected ",
                            index::kShiftMin, " to ", index::kShiftMax);
}

Status CheckHandOver(const fb::HandOver& hand_over, const PriorityState& priority) {
  GEARDB_RETURN_IF_ERROR(CheckAudit(hand_over));
  if (hand_over.items() == nullptr || hand_over.items()->size() == 0) return Status::Ok();
  uint64_t rows = 0;
  for (uint32_t i = 0; hand_over.sampled() != nullptr && i < hand_over.sampled()->size(); ++i) {
    rows += hand_over.sampled()->Get(i)->count();
  }
  // A group has a row, or more, of each of its members.
  const uint64_t items = hand_over.items()->size();
  if (priority.groups() != nullptr ? items > rows : items != rows) {
    return Status::Corruption("a batch of ", rows, " rows shows ", hand_over.items()->size(),
                              " items");
  }
  for (const fb::Handed* item : *hand_over.items()) {
    if (item->leaf() < priority.selector().reserved()) continue;
    return Status::Corruption("a batch shows the item of leaf ", item->leaf(), " of ",
                              priority.selector().reserved());
  }
  return Status::Ok();
}

Status CheckHasEpochs(const PriorityState& priority) {
  if (priority.epoch() != nullptr) return Status::Ok();
  return Status::Corruption("it is of an epoch of priority table '", priority.spec().name,
                            "', which has none");
}

Status CheckHasGroups(const PriorityState& priority) {
  if (priority.groups() != nullptr) return Status::Ok();
  return Status::Corruption("it seals groups of priority table '", priority.spec().name,
                            "', which has none");
}

Status CheckTag(const fb::WriteTag& tag, std::span<const wal::PieceView> pieces) {
  const size_t length = tag.name() != nullptr ? tag.name()->size() : 0;
  if (length == 0 || length > kTagNameMax) {
    return Status::Corruption("a tag's name has ", length, " characters; expected 1 to ",
                              kTagNameMax);
  }
  return tag.blob_in_pieces() ? CheckPiecesApart(pieces) : Status::Ok();
}

}  // namespace geardb::engine
