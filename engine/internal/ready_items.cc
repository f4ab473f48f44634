#include "engine/internal/ready_items.h"

#include <cstring>

namespace geardb::engine {
namespace {

float ColumnValue(const TableState& state, size_t column, Slot slot,
                  std::span<const ColumnGiven> given) {
  const void* from = state.ValueOf(column, slot).data();
  for (const ColumnGiven& one : given) {
    if (one.column == column) from = one.value;
  }
  float value = 0;
  std::memcpy(&value, from, sizeof(value));
  return index::ValidPriority(value) ? value : 0.0f;
}

}  // namespace

std::vector<flatbuffers::Offset<fb::NewItems>> BuildReadyItems(
    const TableCore& table, std::span<const Slot> slots, std::span<const ColumnGiven> given,
    flatbuffers::FlatBufferBuilder* builder) {
  const TableState& state = *table.state;
  std::vector<flatbuffers::Offset<fb::NewItems>> items;
  for (uint32_t i = 0; i < state.priority_table_count(); ++i) {
    const PriorityState& priority = state.priority(i);
    if (priority.required.empty()) continue;
    const PriorityTableSpec& spec = priority.spec();
    if (spec.initial != InitialPriority::kColumn) {
      const float value = spec.initial == InitialPriority::kConstant ? spec.initial_priority_value
                                                                     : table.plan->max_priority[i];
      items.push_back(fb::CreateNewItems(*builder, i, value));
      continue;
    }
    const size_t column = *state.layout().FindTrajectoryColumn(spec.initial_priority_column);
    std::vector<float> each;
    for (const Slot slot : slots) each.push_back(ColumnValue(state, column, slot, given));
    const auto values = builder->CreateVector(each);
    items.push_back(fb::CreateNewItems(*builder, i, 0, values, /*per_rows=*/true));
  }
  return items;
}

uint64_t ReadyItemsBytes(const TableCore& table, size_t slots) {
  return table.state->priority_table_count() * (64 + slots * sizeof(float));
}

}  // namespace geardb::engine
