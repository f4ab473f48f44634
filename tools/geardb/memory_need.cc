#include "tools/geardb/memory_need.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/dtype.h"
#include "base/errno_status.h"
#include "base/page_view.h"
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
    tables_[id] = TablePages{.frame_bytes = std::move(frame_bytes),
                             .steps_per_page = create->spec()->steps_per_page()};
    return;
  }
  const auto found = tables_.find(id);
  if (found == tables_.end()) return;
  TablePages& table = found->second;
  const auto slabs = [&table] {
    uint64_t count = 0;
    for (const uint64_t bytes : table.frame_bytes) count += engine::SlabsFor(table.pages, bytes);
    return count;
  };
  slabs_ -= slabs();
  if (operation.change_as_DropTable() != nullptr) {
    tables_.erase(found);
    return;
  }
  FollowChange(operation, &table);
  slabs_ += slabs();
  most_slabs_ = std::max(most_slabs_, slabs_);
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
  }
}

void MemoryNeed::FollowAppend(const fb::Append& append, TablePages* table) {
  Remove(append.removed(), table);
  Trim(append.trimmed(), table);
  if (append.opened() != nullptr) {
    for (const fb::Opened* opened : *append.opened()) {
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
    table->pages -= found->second.end - found->second.begin;
    table->trajectories.erase(found);
  }
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
  GEARDB_ASSIGN_OR_RETURN(const uint64_t bytes, MemoryNeedOf(files));
  return Status::ResourceExhausted("the pages of the database in '", files.directory, "' take ",
                                   BytesText(bytes), " and do not fit ", given, ": give --memory ",
                                   MemoryText(bytes), ": ", failure.message());
}

}  // namespace geardb::cli
