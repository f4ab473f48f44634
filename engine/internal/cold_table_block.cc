#include "engine/internal/cold_table_block.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/hash.h"

namespace geardb::engine {
namespace {

/// What each key ends with: u56 sequence number, u8 type. So no key is shorter, and bytes that are
/// all alike are no entries.
constexpr uint64_t kKeyBytesMin = 8;

void AppendU32(uint32_t number, std::string* to) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

uint32_t ReadU32(std::string_view bytes) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

std::string RestartsOf(const std::vector<uint32_t>& restarts) {
  std::string bytes;
  for (const uint32_t restart : restarts) AppendU32(restart, &bytes);
  AppendU32(static_cast<uint32_t>(restarts.size()), &bytes);
  return bytes;
}

/// Takes an entry, with its whole key, from the front. `shares`: it may share some of `before`.
std::optional<TableEntry> TakeEntry(std::string_view before, bool shares, std::string_view* from) {
  const auto shared = TakeVarint(from);
  const auto own = shared ? TakeVarint(from) : std::nullopt;
  const auto bytes = own ? TakeVarint(from) : std::nullopt;
  if (!bytes || *shared > (shares ? before.size() : 0)) return std::nullopt;
  if (*own > from->size() || *bytes > from->size() - *own || *shared + *own < kKeyBytesMin) {
    return std::nullopt;
  }
  TableEntry entry{.key = std::string(before.substr(0, *shared)),
                   .value = from->substr(*own, *bytes)};
  entry.key += from->substr(0, *own);
  from->remove_prefix(*own + *bytes);
  return entry;
}

}  // namespace

void AppendVarint(uint64_t number, std::string* to) {
  for (; number >= 0x80; number >>= 7) to->push_back(static_cast<char>(number | 0x80));
  to->push_back(static_cast<char>(number));
}

std::optional<uint64_t> TakeVarint(std::string_view* from) {
  constexpr int kBitsMax = 63;
  uint64_t number = 0;
  for (int bits = 0; !from->empty() && bits <= kBitsMax; bits += 7) {
    const auto byte = static_cast<uint8_t>(from->front());
    from->remove_prefix(1);
    number |= uint64_t{byte & 0x7Fu} << bits;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

void AppendPlace(const TablePlace& place, std::string* to) {
  AppendVarint(place.offset, to);
  AppendVarint(place.bytes, to);
}

std::optional<TablePlace> TakePlace(std::string_view* from) {
  const auto offset = TakeVarint(from);
  const auto bytes = offset ? TakeVarint(from) : std::nullopt;
  if (!bytes) return std::nullopt;
  return TablePlace{*offset, *bytes};
}

uint32_t TableChecksum(std::string_view contents, uint8_t compression) {
  constexpr uint32_t kPrime = 0x6b9083d9;
  const uint64_t hash = Hash64(std::as_bytes(std::span(contents.data(), contents.size())), 0);
  return static_cast<uint32_t>(hash) ^ compression * kPrime;
}

bool HasBlock(std::string_view file, const TablePlace& place) {
  if (file.size() < kTableTrailerBytes || place.offset > file.size() - kTableTrailerBytes ||
      place.bytes > file.size() - kTableTrailerBytes - place.offset) {
    return false;
  }
  const auto compression = static_cast<uint8_t>(file[place.offset + place.bytes]);
  return ReadU32(file.substr(place.offset + place.bytes + 1)) ==
         TableChecksum(file.substr(place.offset, place.bytes), compression);
}

std::optional<TableBlock> ReadTableBlock(std::string_view file, uint64_t offset,
                                         uint64_t entries_per_restart) {
  std::string_view left = file.substr(std::min<uint64_t>(offset, file.size()));
  const size_t all = left.size();
  TableBlock block;
  std::vector<uint32_t> restarts;
  for (;;) {
    // The first of them is 0, and no entry begins like that.
    if (!restarts.empty() && left.size() >= sizeof(uint32_t) && ReadU32(left) == 0) {
      const std::string end = RestartsOf(restarts);
      if (!left.starts_with(end)) return std::nullopt;
      block.place = {offset, all - left.size() + end.size()};
      if (!HasBlock(file, block.place) || file[offset + block.place.bytes] != 0) break;
      return block;
    }
    const bool whole = block.entries.size() % entries_per_restart == 0;
    if (whole) restarts.push_back(static_cast<uint32_t>(all - left.size()));
    const std::string_view before =
        block.entries.empty() ? std::string_view() : block.entries.back().key;
    auto entry = TakeEntry(before, !whole, &left);
    if (!entry) break;
    block.entries.push_back(std::move(*entry));
  }
  return std::nullopt;
}

void TableBlockWriter::Add(std::string_view key, std::string_view value) {
  uint64_t shared = 0;
  if (count_++ % entries_per_restart_ == 0) {
    restarts_.push_back(static_cast<uint32_t>(bytes_.size()));
  } else {
    const auto differ = std::ranges::mismatch(key, last_key_);
    shared = static_cast<uint64_t>(differ.in1 - key.begin());
  }
  for (const uint64_t number : {shared, key.size() - shared, value.size()}) {
    AppendVarint(number, &bytes_);
  }
  bytes_ += key.substr(shared);
  bytes_ += value;
  last_key_ = key;
}

std::string TableBlockWriter::Finish() && {
  if (restarts_.empty()) restarts_.push_back(0);
  bytes_ += RestartsOf(restarts_);
  const uint32_t checksum = TableChecksum(bytes_, 0);
  bytes_.push_back('\0');
  AppendU32(checksum, &bytes_);
  return std::move(bytes_);
}

}  // namespace geardb::engine
