// What items begin with that become drawable since what their priority table requires has come: a
// late group was filled, a per-trajectory column set.
#pragma once

#include <span>
#include <vector>

#include "engine/internal/core.h"

namespace geardb::engine {

/// A per-trajectory column that the record sets before its items come.
struct ColumnGiven {
  size_t column = 0;
  const void* value = nullptr;
};

/// For each priority table that requires something, the raw priority of items of `slots`, one for
/// each: per_rows. The commit mutex and the state's are held, and all that has an LSN is published.
std::vector<flatbuffers::Offset<fb::NewItems>> BuildReadyItems(
    const TableCore& table, std::span<const Slot> slots, std::span<const ColumnGiven> given,
    flatbuffers::FlatBufferBuilder* builder);
/// Bytes of a body that they take at most.
uint64_t ReadyItemsBytes(const TableCore& table, size_t slots);

}  // namespace geardb::engine
