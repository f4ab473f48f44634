// IndexMemory for the tests of this folder.
#pragma once

#include <memory>

#include "index/index_memory.h"

namespace geardb::index {

/// Plenty of address space, and a budget that a test may set.
inline std::unique_ptr<IndexMemory> TestMemory(uint64_t budget_bytes = uint64_t{512} << 20) {
  auto memory = IndexMemory::Create(
      {.budget_bytes = budget_bytes, .reserve_bytes = uint64_t{1} << 36, .name = "test index"});
  GEARDB_CHECK(memory.ok());
  return std::move(memory).value();
}

}  // namespace geardb::index
