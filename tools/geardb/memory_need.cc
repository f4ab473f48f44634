#include "tools/geardb/memory_need.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/dtype.h"
#include "base/errno_status.h"
#include "base/page_view.h"
#include "engine/internal/companion.h"
#include "engine/internal/slabs.h"
#include "tools/geardb/text_table.h"
#include "wal/log_reader.h"

namespace geardb::cli {
namespace {

namespace fb = engine::fb;

/// A row of more bytes is in no database: no record could hold it.
constexpr uint64_t kRowBytesMax = uint64_t{1} << 31;

/// As --memory takes it.
std::string MemoryText(uint64_t bytes) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  if (bytes % kMiB != 0) return std::to_string(bytes);
  return std::to_string(bytes / kMiB) + "MiB";
}

}  // namespace

// None where the record is none of a table: what it holds was never checked.
std::vector<uint64_t> MemoryNeed::FrameBytes(const fb::TableSpec& spec) {
  const size_t groups = 1 + (spec.groups() == nullptr ? 0 : spec.groups()->size());
  return FrameBytesOf(
      spec.columns(),
      {.groups = groups, .steps = spec.steps_per_page(), .has_flags = spec.stream()});
}

std::vector<uint64_t> MemoryNeed::FrameBytesOf(
    const flatbuffers::Vector<flatbuffers::Offset<fb::Column>>* columns, const Groups& of) {
  if (!std::has_single_bit(of.steps) || of.steps > kStepsPerPageMax || columns == nullptr) {
    return {};
  }
  std::vector<std::vector<uint64_t>> row_bytes(of.groups);
  for (const fb::Column* column : *columns) {
    if (!IsPerStep(static_cast<ColumnKind>(column->kind()))) continue;  // It is in no page.
    if (column->dtype() >= kDTypeCount || column->group() < of.first ||
        column->group() - of.first >= of.groups) {
      return {};
    }
    uint64_t bytes = DTypeBytes(static_cast<DType>(column->dtype()));
    for (size_t i = 0; column->shape() != nullptr && i < column->shape()->size(); ++i) {
      const int64_t dim = column->shape()->Get(static_cast<uint32_t>(i));
      if (dim < 1 || static_cast<uint64_t>(dim) > kRowBytesMax / bytes) return {};
      bytes *= static_cast<uint64_t>(dim);
    }
    // Of a ragged column, which of its rows a step has.
    if (static_cast<ColumnKind>(column->kind()) == ColumnKind::kRagged) bytes = 16;
    row_bytes[column->group() - of.first].push_back(bytes);
  }
  if (of.has_flags) row_bytes[0].push_back(1);
  std::vector<uint64_t> frame_bytes;
  for (const auto& group : row_bytes) {
    if (group.empty()) return {};
    frame_bytes.push_back(PageLayout(group, of.steps).frame_bytes());
  }
  return frame_bytes;
}

void MemoryNeed::Follow(const fb::Operation& operation) {
  const TableId id = operation.table_id();
  if (const auto* create = operation.change_as_CreateTable()) {
    if (create->spec() == nullptr) return;
    std::vector<uint64_t> frame_bytes = FrameBytes(*create->spec());
    if (frame_bytes.empty()) return;
    TablePages table{.frame_bytes = std::move(frame_bytes),
                     .steps_per_page = create->spec()->steps_per_page(),
                     .expected_steps = create->spec()->expected_steps()};
    AddCompanions(create->spec()->columns(), id + 1, &table);
    tables_[id] = std::move(table);
    return;
  }
  const auto found = tables_.find(id);
  if (found == tables_.end()) return;
  TablePages& table = found->second;
  slabs_ -= SlabsOf(table);
  if (operation.change_as_DropTable() != nullptr) {
    for (const TableId companion : table.companions) tables_.erase(companion);
    tables_.erase(found);
    return;
  }
  FollowChange(operation, &table);
  slabs_ += SlabsOf(table);
  most_slabs_ = std::max(most_slabs_, slabs_);
}

uint64_t MemoryNeed::SlabsOf(const TablePages& table) const {
  uint64_t slabs = 0;
  for (const uint64_t bytes : table.frame_bytes) slabs += engine::SlabsFor(table.pages, bytes);
  for (const TableId id : table.companions) {
    if (const auto found = tables_.find(id); found != tables_.end())
      slabs += SlabsOf(found->second);
  }
  return slabs;
}

void MemoryNeed::AddCompanions(const flatbuffers::Vector<flatbuffers::Offset<fb::Column>>* columns,
                               TableId next, TablePages* owner) {
  for (uint32_t i = 0; columns != nullptr && i < columns->size(); ++i) {
    const fb::Column& stored = *columns->Get(i);
    if (stored.dtype() >= kDTypeCount || stored.kind() > static_cast<uint8_t>(kColumnKindLast)) {
      continue;
    }
    Column column{.dtype = static_cast<DType>(stored.dtype()),
                  .kind = static_cast<ColumnKind>(stored.kind()),
                  .expected_rows = stored.expected_rows()};
    for (uint32_t axis = 0; stored.shape() != nullptr && axis < stored.shape()->size(); ++axis) {
      if (axis < static_cast<uint32_t>(kColumnRankMax)) {
        column.shape.Append(stored.shape()->Get(axis));
      }
    }
    if (!engine::HasCompanion(column)) continue;
    const TableId id = stored.companion() != 0 ? stored.companion() : next++;
    const uint64_t row_bytes = engine::RowBytes(column);
    if (row_bytes == 0 || column.expected_rows > kValueRowsMax) continue;
    TableSpec of_owner;
    of_owner.expected_steps = owner->expected_steps;
    const uint32_t steps = engine::CompanionSpec(of_owner, column).steps_per_page;
    const PageLayout layout(std::array<uint64_t, 1>{row_bytes}, steps);
    tables_[id] = TablePages{.frame_bytes = {layout.frame_bytes()}, .steps_per_page = steps};
    owner->companions.push_back(id);
  }
}

// What leaves in a record gives its pages back before those of the record are taken.
void MemoryNeed::FollowChange(const fb::Operation& operation, TablePages* table) {
  if (const auto* append = operation.change_as_Append()) {
    FollowAppend(*append, table);
  } else if (const auto* close = operation.change_as_Close()) {
    Remove(close->removed(), table);
  } else if (const auto* remove = operation.change_as_Remove()) {
    Remove(remove->removed(), table);
    Trim(remove->trimmed(), table);
  } else if (const auto* add = operation.change_as_AddColumns()) {
    // What columns leave need is counted on: their groups may have others.
    const std::vector<uint64_t> added = FrameBytesOf(
        add->columns(), {.first = static_cast<uint32_t>(table->frame_bytes.size()),
                         .groups = add->groups() == nullptr ? 0 : add->groups()->size(),
                         .steps = static_cast<uint32_t>(table->steps_per_page)});
    table->frame_bytes.insert(table->frame_bytes.end(), added.begin(), added.end());
    AddCompanions(add->columns(), 0, table);
  }
}

void MemoryNeed::FollowAppend(const fb::Append& append, TablePages* table) {
  Remove(append.removed(), table);
  Trim(append.trimmed(), table);
  if (append.opened() != nullptr) {
    for (const fb::Opened* opened : *append.opened()) {
      RemovePages(opened->slot(), table);  // Of a companion, the value of before.
      table->trajectories[opened->slot()] = Pages{.generation = opened->generation()};
    }
  }
  if (append.rows() == nullptr) return;
  for (const fb::Rows* rows : *append.rows()) {
    Pages& pages = table->trajectories[rows->slot()];
    const uint64_t rows_end = rows->first_row() + rows->count();
    const uint64_t end = (rows_end + table->steps_per_page - 1) / table->steps_per_page;
    if (end <= pages.end) continue;
    table->pages += end - pages.end;
    pages.end = end;
  }
}

void MemoryNeed::Remove(const flatbuffers::Vector<const fb::Removed*>* removed, TablePages* table) {
  if (removed == nullptr) return;
  for (const fb::Removed* one : *removed) {
    const auto found = table->trajectories.find(one->slot());
    if (found == table->trajectories.end()) continue;
    if (found->second.generation != one->generation()) continue;
    RemovePages(one->slot(), table);
    for (const TableId id : table->companions) {
      const auto companion = tables_.find(id);
      if (companion != tables_.end()) RemovePages(one->slot(), &companion->second);
    }
  }
}

void MemoryNeed::RemovePages(Slot slot, TablePages* table) {
  const auto found = table->trajectories.find(slot);
  if (found == table->trajectories.end()) return;
  table->pages -= found->second.end - found->second.begin;
  table->trajectories.erase(found);
}

void MemoryNeed::Trim(const flatbuffers::Vector<const fb::Trimmed*>* trimmed, TablePages* table) {
  if (trimmed == nullptr) return;
  for (const fb::Trimmed* one : *trimmed) {
    const auto found = table->trajectories.find(one->slot());
    if (found == table->trajectories.end()) continue;
    Pages& pages = found->second;
    if (pages.generation != one->generation()) continue;
    const uint64_t begin = std::min(one->first_row() / table->steps_per_page, pages.end);
    if (begin <= pages.begin) continue;
    table->pages -= begin - pages.begin;
    pages.begin = begin;
  }
}

uint64_t MemoryNeed::bytes() const { return most_slabs_ * kSlabBytes; }

Result<uint64_t> MemoryNeedOf(const StoreFiles& files) {
  GEARDB_ASSIGN_OR_RETURN(const auto reader,
                          wal::LogReader::Open(Env::Posix(), files.directory, files.manifest,
                                               {.allow_damaged_prefix = true}));
  MemoryNeed need;
  while (true) {
    GEARDB_ASSIGN_OR_RETURN(const auto record, reader->Next());
    if (!record.has_value()) return need.bytes();
    const auto body = engine::ReadBody(record->body);
    if (!body.ok() || (*body)->operations() == nullptr) continue;
    for (const fb::Operation* operation : *(*body)->operations()) need.Follow(*operation);
  }
}

Status ExplainMemory(const Invocation& invocation, const StoreFiles& files, const Status& failure) {
  if (failure.code() != StatusCode::kResourceExhausted || IsSystemLack(failure)) return failure;
  const std::string given =
      invocation.arguments.Has("memory")
          ? "--memory " + MemoryText(invocation.arguments.Count("memory"))
          : std::string("a quarter of the machine's memory, the default of --memory");
  // Frames of pages and the index have a budget each.
  if (failure.message().find("the frame budget") == std::string::npos) {
    return Status::ResourceExhausted(
        "the database in '", files.directory, "' does not fit ", given,
        ": give a larger --memory, which bounds the index, too: ", failure.message());
  }
  GEARDB_ASSIGN_OR_RETURN(const uint64_t counted, MemoryNeedOf(files));
  // What the log does not say is not counted: rows of defaults, pages that an image has.
  const uint64_t bytes = std::max(counted, invocation.arguments.Has("memory")
                                               ? invocation.arguments.Count("memory") + kSlabBytes
                                               : counted);
  return Status::ResourceExhausted("the pages of the database in '", files.directory, "' take ",
                                   BytesText(bytes), " and do not fit ", given, ": give --memory ",
                                   MemoryText(bytes), ": ", failure.message());
}

}  // namespace geardb::cli
