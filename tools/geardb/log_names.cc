#include "tools/geardb/log_names.h"

#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

namespace fb = engine::fb;

std::string TextOf(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

std::string Quoted(const std::string& name) { return "'" + Printable(name) + "'"; }

}  // namespace

void LogNames::Follow(const fb::TableHead& head) {
  if (head.spec() != nullptr) tables_[head.table_id()] = TextOf(head.spec()->name());
  for (uint32_t i = 0; head.priority_tables() != nullptr && i < head.priority_tables()->size();
       ++i) {
    const auto* const spec = head.priority_tables()->Get(i)->spec();
    if (spec != nullptr) priority_tables_[{head.table_id(), i}] = TextOf(spec->name());
  }
}

void LogNames::Follow(const fb::Operation& operation) {
  const TableId table = operation.table_id();
  if (const auto* create = operation.change_as_CreateTable()) {
    if (create->spec() == nullptr) return;
    tables_[table] = TextOf(create->spec()->name());
  } else if (const auto* priorities = operation.change_as_CreatePriorityTable()) {
    if (priorities->spec() == nullptr) return;
    priority_tables_[{table, operation.priority_table()}] = TextOf(priorities->spec()->name());
  } else if (const auto* append = operation.change_as_Append()) {
    if (append->opened() == nullptr) return;
    for (const fb::Opened* opened : *append->opened()) {
      trajectories_[{table, opened->slot()}] = opened->id();
    }
  }
}

const std::string* LogNames::TableName(TableId table) const {
  const auto found = tables_.find(table);
  return found == tables_.end() ? nullptr : &found->second;
}

const std::string* LogNames::PriorityTableName(TableId table, uint32_t number) const {
  const auto found = priority_tables_.find({table, number});
  return found == priority_tables_.end() ? nullptr : &found->second;
}

std::string LogNames::TableText(TableId table) const {
  const std::string* name = TableName(table);
  return name == nullptr ? "table " + std::to_string(table) : Quoted(*name);
}

std::string LogNames::PriorityTableText(TableId table, uint32_t number) const {
  const std::string* name = PriorityTableName(table, number);
  return name == nullptr ? "priority table " + std::to_string(number) : Quoted(*name);
}

std::string LogNames::TrajectoryText(TableId table, Slot slot) const {
  const auto found = trajectories_.find({table, slot});
  return found == trajectories_.end() ? "slot " + std::to_string(slot)
                                      : "trajectory " + std::to_string(found->second);
}

}  // namespace geardb::cli
