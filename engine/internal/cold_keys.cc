#include "engine/internal/cold_keys.h"

#include "base/concatenate.h"

namespace geardb::engine {
namespace {

constexpr size_t kChunkKeyBytes = 16;

template <typename Number>
void AppendBigEndian(Number number, std::string* out) {
  for (size_t i = sizeof(Number); i-- > 0;) {
    out->push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i) & 0xff));
  }
}

template <typename Number>
Number TakeBigEndian(std::string_view* bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    number = number << 8 | static_cast<uint8_t>((*bytes)[i]);
  }
  bytes->remove_prefix(sizeof(Number));
  return static_cast<Number>(number);
}

}  // namespace

std::string EncodeColdKey(const ColdPageKey& key) {
  std::string bytes;
  bytes.reserve(kColdPageKeyBytes);
  AppendBigEndian(key.table, &bytes);
  AppendBigEndian(key.partition, &bytes);
  AppendBigEndian(key.group, &bytes);
  AppendBigEndian(key.trajectory, &bytes);
  AppendBigEndian(key.page, &bytes);
  return bytes;
}

std::string EncodeColdKey(const ColdChunkKey& key) {
  std::string bytes;
  bytes.reserve(kChunkKeyBytes);
  AppendBigEndian(key.table, &bytes);
  AppendBigEndian(key.partition, &bytes);
  AppendBigEndian(key.kind, &bytes);
  AppendBigEndian(key.chunk, &bytes);
  return bytes;
}

std::optional<ColdPageKey> DecodeColdPageKey(std::string_view bytes) {
  if (bytes.size() != kColdPageKeyBytes) return std::nullopt;
  ColdPageKey key;
  key.table = TakeBigEndian<uint32_t>(&bytes);
  key.partition = TakeBigEndian<uint16_t>(&bytes);
  key.group = TakeBigEndian<uint16_t>(&bytes);
  key.trajectory = TakeBigEndian<uint64_t>(&bytes);
  key.page = TakeBigEndian<uint64_t>(&bytes);
  return key;
}

std::optional<ColdChunkKey> DecodeColdChunkKey(std::string_view bytes) {
  if (bytes.size() != kChunkKeyBytes) return std::nullopt;
  ColdChunkKey key;
  key.table = TakeBigEndian<uint32_t>(&bytes);
  key.partition = TakeBigEndian<uint16_t>(&bytes);
  key.kind = TakeBigEndian<uint16_t>(&bytes);
  key.chunk = TakeBigEndian<uint64_t>(&bytes);
  return key;
}

ColdKeyRange ColdKeysOf(const ColdTrajectoryRange& range) {
  const ColdPageKey begin = {range.table, range.partition, range.group, range.first, 0};
  const ColdPageKey end = {range.table, range.partition, range.group, range.end, 0};
  return {EncodeColdKey(begin), EncodeColdKey(end)};
}

ColdKeyRange ColdKeysOfTable(uint32_t table) {
  ColdKeyRange range;
  AppendBigEndian(table, &range.begin);
  if (table == UINT32_MAX) {
    range.end.assign(kColdPageKeyBytes + 1, '\xff');  // Behind every key.
  } else {
    AppendBigEndian(table + 1, &range.end);
  }
  return range;
}

std::string ColdKeyText(const ColdPageKey& key) {
  return Concatenate("page ", key.page, " of number ", key.trajectory, " (table ", key.table,
                     ", partition ", key.partition, ", group ", key.group, ")");
}

std::string ColdKeyText(const ColdChunkKey& key) {
  return Concatenate("chunk ", key.chunk, " of kind ", key.kind, " (table ", key.table,
                     ", partition ", key.partition, ")");
}

}  // namespace geardb::engine
