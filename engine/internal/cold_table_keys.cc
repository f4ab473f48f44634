#include "engine/internal/cold_table_keys.h"

#include <algorithm>
#include <cstring>

namespace geardb::engine {
namespace {

uint64_t KeyEnd(std::string_view key) {
  uint64_t end = 0;
  std::memcpy(&end, key.data() + key.size() - kTableKeyEndBytes, kTableKeyEndBytes);
  return end;
}

/// Newer versions of the same come first.
bool ComesBefore(std::string_view key, std::string_view other) {
  const int order = UserKeyOf(key).compare(UserKeyOf(other));
  return order < 0 || (order == 0 && KeyEnd(key) > KeyEnd(other));
}

bool IsOfKeys(const TableBlock& block) {
  return std::ranges::all_of(block.entries, [](const TableEntry& entry) {
    const TableKeyType type = TypeOfKey(entry.key);
    return type == TableKeyType::kDeletion || type == TableKeyType::kValue ||
           type == TableKeyType::kBlob;
  });
}

}  // namespace

std::string_view UserKeyOf(std::string_view key) {
  return key.substr(0, key.size() - kTableKeyEndBytes);
}

TableKeyType TypeOfKey(std::string_view key) {
  return static_cast<TableKeyType>(key[key.size() - kTableKeyEndBytes]);
}

std::optional<TableBlock> KeyBlocks::Next() {
  for (; at_ < file_.size(); ++at_) {
    auto block = ReadTableBlock(file_, at_, kEntriesPerRestart);
    if (!block || !IsOfKeys(*block)) continue;
    // A value may look like a block; the keys of one that leads to others come again.
    if (!last_key_.empty() && !ComesBefore(last_key_, block->entries.front().key)) continue;
    last_key_ = block->entries.back().key;
    at_ = block->place.end();
    return block;
  }
  return std::nullopt;
}

}  // namespace geardb::engine
