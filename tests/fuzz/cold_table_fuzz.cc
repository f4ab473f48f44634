// Any bytes as an SST file: with a tail that is made for them it has a good one, and the same
// blocks of keys. Since nothing gets past a checksum by chance, the bytes are entries, too: of a
// block that is written, and is found again with what is around it.
//
// Bytes: where the entries end, u16; entries, each u8 bytes of the key, u8 of the value; the file.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/internal/cold_table_block.h"
#include "engine/internal/cold_tables.h"

namespace geardb::engine {
namespace {

bool HasGoodTailIn(const std::string& file) {
  return HasGoodTail(file.size(), [&](uint64_t from) { return file.substr(from); });
}

void MakeTailOf(const std::string& file) {
  (void)HasGoodTailIn(file);
  const auto made = MakeTail(file);
  if (!made) return;
  const std::string whole = file.substr(0, made->from) + made->tail;
  GEARDB_CHECK(whole.size() == file.size());
  GEARDB_CHECK(HasGoodTailIn(whole));
  const auto again = MakeTail(whole);
  GEARDB_CHECK(again && again->from == made->from && again->tail == made->tail);
}

std::string BlockOf(std::string_view entries) {
  std::map<std::string, std::string_view> sorted;
  while (entries.size() >= 2) {
    const size_t key_bytes = static_cast<uint8_t>(entries[0]);
    const size_t value_bytes = static_cast<uint8_t>(entries[1]);
    entries.remove_prefix(2);
    std::string key(entries.substr(0, key_bytes));
    entries.remove_prefix(std::min(key_bytes, entries.size()));
    key.resize(std::max<size_t>(key.size(), 8), '\1');
    sorted[key] = entries.substr(0, value_bytes);
    entries.remove_prefix(std::min(value_bytes, entries.size()));
  }
  TableBlockWriter block(kEntriesPerRestart);
  for (const auto& [key, value] : sorted) block.Add(key, value);
  std::string bytes = std::move(block).Finish();
  const auto read = ReadTableBlock(bytes, 0, kEntriesPerRestart);
  GEARDB_CHECK(read.has_value() == !sorted.empty());
  GEARDB_CHECK(!read || read->entries.size() == sorted.size());
  return bytes;
}

}  // namespace
}  // namespace geardb::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(input), size);
  geardb::engine::MakeTailOf(bytes);
  uint16_t entries = 0;
  if (size < sizeof(entries)) return 0;
  std::memcpy(&entries, input, sizeof(entries));
  const std::string_view left = std::string_view(bytes).substr(sizeof(entries));
  const std::string block = geardb::engine::BlockOf(left.substr(0, entries));
  const std::string_view rest = left.substr(std::min<size_t>(entries, left.size()));
  geardb::engine::MakeTailOf(block + std::string(rest));
  return 0;
}
