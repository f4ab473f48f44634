#include "tools/geardb/record_words.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/dtype.h"
#include "engine/internal/record_body.h"
#include "engine/removals.h"
#include "engine/schema.h"
#include "tools/geardb/text_table.h"
#include "tools/geardb/words.h"

namespace geardb::cli {
namespace {

namespace fb = engine::fb;

/// Trajectories, rows and so on that are named one by one; of more only the number.
constexpr uint32_t kNamedMax = 3;

/// Elements of a vector that may be missing.
template <typename Vector>
uint32_t Size(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

/// Joins clauses with "; ".
class Clauses {
 public:
  void Add(const std::string& clause) { text_ += (text_.empty() ? "" : "; ") + clause; }
  std::string Take() { return text_.empty() ? "nothing" : text_; }

 private:
  std::string text_;
};

std::string Quoted(const flatbuffers::String* text) {
  return "'" + (text == nullptr ? std::string() : Printable(text->string_view())) + "'";
}

/// What an operation is about.
struct Place {
  const LogNames* names;
  TableId table;

  std::string Trajectory(Slot slot) const { return names->TrajectoryText(table, slot); }
};

std::string RowsText(const fb::Rows& rows, const Place& place) {
  const uint64_t last = rows.first_row() + rows.count() - 1;
  std::string text = rows.count() == 1 ? "row " : "rows ";
  text += std::to_string(rows.first_row());
  if (rows.count() > 1) text += "…" + std::to_string(last);
  text += " of " + place.Trajectory(rows.slot());
  const End end = static_cast<End>(rows.end());
  if (end != End::kGo) text += ", " + std::string(Word(end));
  if (rows.has_final()) text += " with a final row";
  if (rows.closes()) text += ", closed";
  return text;
}

template <typename Removed>
void AddRemovals(const Removed* removed, const flatbuffers::Vector<const fb::Trimmed*>* trimmed,
                 const Place& place, Clauses* clauses) {
  if (Size(removed) > 0 && Size(removed) <= kNamedMax) {
    for (const fb::Removed* one : *removed) {
      clauses->Add("removes trajectory " + std::to_string(one->id()));
    }
  } else if (Size(removed) > 0) {
    clauses->Add("removes " + Counted(Size(removed), "trajectory"));
  }
  if (Size(trimmed) > 0 && Size(trimmed) <= kNamedMax) {
    for (const fb::Trimmed* one : *trimmed) {
      clauses->Add("drops the rows of " + place.Trajectory(one->slot()) + " before row " +
                   std::to_string(one->first_row()));
    }
  } else if (Size(trimmed) > 0) {
    clauses->Add("trims " + Counted(Size(trimmed), "trajectory"));
  }
}

std::string ColumnsText(const flatbuffers::Vector<flatbuffers::Offset<fb::Column>>* columns) {
  std::string text;
  for (uint32_t i = 0; i < Size(columns); ++i) {
    const fb::Column* column = columns->Get(i);
    text += i == 0 ? "" : ", ";
    text += column->name() == nullptr ? "" : Printable(column->name()->string_view());
    text += column->dtype() < kDTypeCount
                ? " " + std::string(DTypeName(static_cast<DType>(column->dtype())))
                : " dtype " + std::to_string(column->dtype());
  }
  return text;
}

std::string Describe(const fb::CreateTable& create) {
  const fb::TableSpec* spec = create.spec();
  if (spec == nullptr) return "a table without a schema";
  const std::string columns = ColumnsText(spec->columns());
  return Quoted(spec->name()) + (columns.empty() ? "" : ": " + columns);
}

std::string Describe(const fb::AddColumns& add) { return ColumnsText(add.columns()); }

std::string Describe(const fb::DropColumns& drop) {
  std::string text;
  for (uint32_t i = 0; i < Size(drop.names()); ++i) {
    text += (i == 0 ? "" : ", ") + Printable(drop.names()->Get(i)->string_view());
  }
  return text;
}

std::string Describe(const fb::CreatePriorityTable& create) {
  return create.spec() == nullptr ? "a priority table without a specification"
                                  : Quoted(create.spec()->name());
}

std::string Describe(const fb::Ranges& ranges) {
  return "ids below " + Grouped(ranges.ids_end()) + " and generations below " +
         Grouped(ranges.generations_end()) + " may be used";
}

std::string Describe(const fb::Append& append, const Place& place) {
  Clauses clauses;
  if (Size(append.opened()) > 0 && Size(append.opened()) <= kNamedMax) {
    for (const fb::Opened* opened : *append.opened()) {
      clauses.Add("trajectory " + std::to_string(opened->id()) + " begins in slot " +
                  std::to_string(opened->slot()));
    }
  } else if (Size(append.opened()) > 0) {
    clauses.Add(Counted(Size(append.opened()), "trajectory") + " begin");
  }
  if (Size(append.rows()) > 0 && Size(append.rows()) <= kNamedMax) {
    for (const fb::Rows* rows : *append.rows()) clauses.Add(RowsText(*rows, place));
  } else if (Size(append.rows()) > 0) {
    uint64_t count = 0;
    for (const fb::Rows* rows : *append.rows()) count += rows->count();
    clauses.Add(Counted(count, "row") + " in " + Counted(Size(append.rows()), "trajectory"));
  }
  if (Size(append.pages()) > 0) clauses.Add(Counted(Size(append.pages()), "new page"));
  if (Size(append.column_sets()) > 0) {
    clauses.Add("sets " + Counted(Size(append.column_sets()), "column value"));
  }
  AddRemovals(append.removed(), append.trimmed(), place, &clauses);
  return clauses.Take();
}

std::string Describe(const fb::Close& close, const Place& place) {
  Clauses clauses;
  for (uint32_t i = 0; i < std::min(Size(close.ended()), kNamedMax); ++i) {
    const fb::Ended* ended = close.ended()->Get(i);
    clauses.Add(place.Trajectory(ended->slot()) + " ends, " +
                std::string(Word(static_cast<End>(ended->end()))));
  }
  if (Size(close.ended()) > kNamedMax) {
    clauses.Add(Counted(Size(close.ended()) - kNamedMax, "more trajectory") + " end");
  }
  AddRemovals(close.removed(), nullptr, place, &clauses);
  return clauses.Take();
}

std::string Describe(const fb::Adopt& adopt, const Place& place) {
  Clauses clauses;
  for (uint32_t i = 0; i < std::min(Size(adopt.adopted()), kNamedMax); ++i) {
    const fb::Adopted* adopted = adopt.adopted()->Get(i);
    clauses.Add(place.Trajectory(adopted->slot()) +
                (adopted->orphaned() ? " has lost its writer" : " has a new writer"));
  }
  if (Size(adopt.adopted()) > kNamedMax) {
    clauses.Add("and " + Grouped(Size(adopt.adopted()) - kNamedMax) + " more");
  }
  return clauses.Take();
}

std::string Describe(const fb::Remove& remove, const Place& place) {
  Clauses clauses;
  AddRemovals(remove.removed(), remove.trimmed(), place, &clauses);
  if (remove.reason() != 0 && remove.reason() <= static_cast<uint8_t>(kRemovalReasonLast)) {
    clauses.Add(std::string("reason: ") +
                RemovalReasonName(static_cast<RemovalReason>(remove.reason())));
  }
  return clauses.Take();
}

std::string Describe(const fb::SetColumns& set) {
  return Counted(Size(set.column_sets()), "column value");
}

std::string Describe(const fb::SetPriorities& set) {
  if (set.in_pieces()) return Counted(set.count(), "priority") + ", each its own";
  const uint32_t count = Size(set.items());
  if (count == 0) return "no priority";
  float least = set.items()->Get(0)->priority();
  float most = least;
  for (const fb::Item* item : *set.items()) {
    least = std::min(least, item->priority());
    most = std::max(most, item->priority());
  }
  return Counted(count, "priority") + " from " + NumberText(static_cast<double>(least), 3) +
         " to " + NumberText(static_cast<double>(most), 3);
}

std::string Describe(const fb::SetAll& set) {
  const std::string all = "all " + Counted(set.count(), "item");
  const bool each = set.in_pieces() || Size(set.values()) > 0;
  return each ? all + ", each its own"
              : all + " to " + NumberText(static_cast<double>(set.value()));
}

std::string Describe(const fb::Rescale& rescale) {
  return "weights are stored times 2^" + std::to_string(rescale.shift());
}

std::string Describe(const fb::Audit& audit) {
  std::string text = "drawn at LSN " + std::to_string(audit.drawn_lsn());
  if (audit.sampler() != nullptr) text += " by " + Quoted(audit.sampler());
  text +=
      " with seed " + std::to_string(audit.seed()) + ", handed over " + TimeText(audit.handed_us());
  for (uint32_t i = 0; i < std::min(Size(audit.rows()), kNamedMax); ++i) {
    const fb::AuditedRow& row = *audit.rows()->Get(i);
    text += std::string(i == 0 ? ": " : ", ") + "row " + std::to_string(row.anchor()) +
            " of trajectory " + std::to_string(row.trajectory()) + " by priority " +
            NumberText(static_cast<double>(row.priority()), 3) + " with probability " +
            NumberText(row.probability(), 3);
  }
  if (Size(audit.rows()) <= kNamedMax) return text;
  return text + ", and " + Grouped(Size(audit.rows()) - kNamedMax) + " more (--json)";
}

std::string Describe(const fb::HandOver& hand_over) {
  uint64_t rows = 0;
  for (uint32_t i = 0; i < Size(hand_over.sampled()); ++i) {
    rows += hand_over.sampled()->Get(i)->count();
  }
  std::string pass;
  if (hand_over.epoch() > 0) {
    pass = ", of epoch " + Grouped(hand_over.epoch()) + ", pass " + Grouped(hand_over.pass());
  }
  const std::string text = "draw " + Grouped(hand_over.draw_number()) + ": " +
                           Counted(rows, "item") + " from " +
                           Counted(Size(hand_over.sampled()), "trajectory") + pass;
  return hand_over.audit() == nullptr ? text : text + "; " + Describe(*hand_over.audit());
}

std::optional<AuditWords> AuditOf(const fb::HandOver* hand_over) {
  if (hand_over == nullptr || hand_over->audit() == nullptr) return std::nullopt;
  const fb::Audit& audit = *hand_over->audit();
  AuditWords words{.draw = hand_over->draw_number(),
                   .seed = audit.seed(),
                   .first_draw = audit.first_draw(),
                   .drawn_lsn = audit.drawn_lsn(),
                   .handed_us = audit.handed_us()};
  if (audit.sampler() != nullptr) words.sampler = audit.sampler()->str();
  for (uint32_t i = 0; i < Size(audit.rows()); ++i) {
    const fb::AuditedRow& row = *audit.rows()->Get(i);
    words.rows.push_back(
        {row.trajectory(), row.anchor(), row.priority(), row.probability(), row.draw_row()});
  }
  return words;
}

std::string Describe(const fb::Configure& configure) {
  const fb::Limits* limits = configure.limits();
  if (limits == nullptr) return "the default limits";
  constexpr const char* kKinds[] = {"min size", "samples per insert", "queue", "stack"};
  const bool known = limits->kind() < std::size(kKinds);
  std::string text = known ? kKinds[limits->kind()] : "limiter " + std::to_string(limits->kind());
  if (limits->kind() == 0) text += " " + Grouped(limits->min_size());
  if (limits->kind() == 1) {
    text += " " + NumberText(limits->samples_per_insert()) + " with error buffer " +
            NumberText(limits->error_buffer()) + " from min size " + Grouped(limits->min_size());
  }
  if (limits->kind() > 1) text += " of capacity " + Grouped(limits->capacity());
  if (limits->max_times_sampled() == 0) return text;
  return text + ", items sampled at most " + Grouped(limits->max_times_sampled()) + " times";
}

std::string Describe(const fb::DeleteItems& deleted) {
  return Counted(Size(deleted.items()), "item");
}

std::string Describe(const fb::SealGroups& seal) {
  return Counted(Size(seal.groups()), "group") + (seal.by_deadline() ? " by deadline" : " by hand");
}

std::string Describe(const fb::SetFilter& set) {
  if (set.filter() == nullptr) return "none";
  const bool expires = set.action() == static_cast<uint8_t>(FilterAction::kExpire);
  return std::string(expires ? "expires" : "hides") + " what fails: " + set.filter()->str();
}

std::string Describe(const fb::BeginEpoch&) { return "of what is there"; }

std::string Describe(const fb::EndPass& end) {
  return "of epoch " + Grouped(end.epoch()) + ", pass " + Grouped(end.pass()) +
         ": what is left is not shown";
}

std::string Describe(const fb::RestartDraws& restart) {
  return "seed " + std::to_string(restart.seed()) + ", next draw " + Grouped(restart.draw_number());
}

std::string Describe(const fb::WriteTag& tag) {
  const std::string blob =
      tag.blob_in_pieces() ? "a blob in pieces" : "a blob of " + BytesText(Size(tag.blob()));
  return Quoted(tag.name()) + " with " + blob + ", written " + TimeText(tag.created_us());
}

std::string Describe(const fb::Patch& patch) {
  std::set<uint32_t> slots;
  std::set<uint16_t> groups;
  for (uint32_t i = 0; i < Size(patch.patched()); ++i) {
    slots.insert(patch.patched()->Get(i)->slot());
    groups.insert(patch.patched()->Get(i)->group());
  }
  return Counted(Size(patch.pieces()), "page") + " of " + Counted(slots.size(), "trajectory") +
         " written anew, in " + Counted(groups.size(), "column group");
}

std::string Describe(const fb::DropTable&) { return "with all it holds"; }

/// Names and words of one operation. `Operation::change_as` is typed by its argument.
template <typename T>
OperationWords Words(std::string_view name, const T* change) {
  return OperationWords{.name = name, .text = Describe(*change)};
}
template <typename T>
OperationWords Words(std::string_view name, const T* change, const Place& place) {
  return OperationWords{.name = name, .text = Describe(*change, place)};
}

OperationWords NameChange(const fb::Operation& operation, const Place& place) {
  switch (operation.change_type()) {
    case fb::Change::CreateTable:
      return Words("create_table", operation.change_as_CreateTable());
    case fb::Change::DropTable:
      return Words("drop_table", operation.change_as_DropTable());
    case fb::Change::CreatePriorityTable:
      return Words("create_priority_table", operation.change_as_CreatePriorityTable());
    case fb::Change::Ranges:
      return Words("ranges", operation.change_as_Ranges());
    case fb::Change::Append:
      return Words("append", operation.change_as_Append(), place);
    case fb::Change::Close:
      return Words("close", operation.change_as_Close(), place);
    case fb::Change::Adopt:
      return Words("adopt", operation.change_as_Adopt(), place);
    case fb::Change::Remove:
      return Words("remove", operation.change_as_Remove(), place);
    case fb::Change::SetColumns:
      return Words("set_columns", operation.change_as_SetColumns());
    case fb::Change::SetPriorities:
      return Words("set_priorities", operation.change_as_SetPriorities());
    case fb::Change::SetAll:
      return Words("set_all", operation.change_as_SetAll());
    case fb::Change::Rescale:
      return Words("rescale", operation.change_as_Rescale());
    case fb::Change::HandOver:
      return Words("hand_over", operation.change_as_HandOver());
    case fb::Change::RestartDraws:
      return Words("restart_draws", operation.change_as_RestartDraws());
    case fb::Change::WriteTag:
      return Words("tag", operation.change_as_WriteTag());
    case fb::Change::Patch:
      return Words("patch", operation.change_as_Patch());
    case fb::Change::Configure:
      return Words("configure", operation.change_as_Configure());
    case fb::Change::DeleteItems:
      return Words("delete_items", operation.change_as_DeleteItems());
    case fb::Change::BeginEpoch:
      return Words("begin_epoch", operation.change_as_BeginEpoch());
    case fb::Change::EndPass:
      return Words("end_pass", operation.change_as_EndPass());
    case fb::Change::SetFilter:
      return Words("set_filter", operation.change_as_SetFilter());
    case fb::Change::AddColumns:
      return Words("add_columns", operation.change_as_AddColumns());
    case fb::Change::DropColumns:
      return Words("drop_columns", operation.change_as_DropColumns());
    case fb::Change::SealGroups:
      return Words("seal_groups", operation.change_as_SealGroups());
    case fb::Change::NONE:
      break;
  }
  return OperationWords{
      .name = "unknown",
      .text = "change " + std::to_string(static_cast<int>(operation.change_type()))};
}

bool IsOfPriorityTable(fb::Change change) {
  constexpr fb::Change kChanges[] = {
      fb::Change::SetPriorities, fb::Change::SetAll,       fb::Change::Rescale,
      fb::Change::HandOver,      fb::Change::RestartDraws, fb::Change::Configure,
      fb::Change::DeleteItems,   fb::Change::BeginEpoch,   fb::Change::EndPass,
      fb::Change::SetFilter,     fb::Change::SealGroups};
  return std::find(std::begin(kChanges), std::end(kChanges), change) != std::end(kChanges);
}

}  // namespace

std::string RecordTypeWord(wal::RecordType type) {
  switch (type) {
    case wal::RecordType::kData:
      return "data";
    case wal::RecordType::kPad:
      return "pad";
    case wal::RecordType::kSegment:
      return "segment";
    case wal::RecordType::kSeal:
      return "seal";
    case wal::RecordType::kCommit:
      return "commit";
    case wal::RecordType::kTag:
      return "tag";
    case wal::RecordType::kPart:
      return "part";
  }
  return "type " + std::to_string(static_cast<int>(type));
}

Result<std::vector<OperationWords>> DescribeOperations(std::span<const std::byte> body,
                                                       LogNames* names) {
  const Result<const fb::Body*> read = engine::ReadBody(body);
  if (!read.ok()) return read.status();
  std::vector<OperationWords> all;
  const auto* operations = (*read)->operations();
  for (uint32_t i = 0; i < Size(operations); ++i) {
    const fb::Operation& operation = *operations->Get(i);
    names->Follow(operation);
    const TableId table = operation.table_id();
    OperationWords words = NameChange(operation, {names, table});
    words.subject = words.name;
    words.audit = AuditOf(operation.change_as_HandOver());
    if (operation.change_type() != fb::Change::WriteTag) {
      words.table = table;
      // A table's own record says its name by itself.
      words.subject += operation.change_type() == fb::Change::CreateTable
                           ? " " + std::to_string(table)
                           : " " + names->TableText(table);
    }
    if (IsOfPriorityTable(operation.change_type())) {
      words.priority_table = operation.priority_table();
      words.subject += "/" + names->PriorityTableText(table, operation.priority_table());
    }
    all.push_back(std::move(words));
  }
  return all;
}

std::string DescribeRecord(const wal::RecordView& record, LogNames* names) {
  switch (record.type) {
    case wal::RecordType::kPad:
      return "fills the segment";
    case wal::RecordType::kSegment:
      return "begins a segment";
    case wal::RecordType::kSeal:
      return "everything before it is synced";
    case wal::RecordType::kPart:
      return "part " + std::to_string(record.header.part) + " of the group at LSN " +
             Grouped(record.header.group_lsn);
    default:
      break;
  }
  const auto operations = DescribeOperations(record.body, names);
  return operations.ok() ? JoinWords(*operations) : std::string(operations.status().message());
}

std::string JoinWords(const std::vector<OperationWords>& operations) {
  std::string text;
  for (const OperationWords& words : operations) {
    text += (text.empty() ? "" : " | ") + words.subject + ": " + words.text;
  }
  return text;
}

}  // namespace geardb::cli
