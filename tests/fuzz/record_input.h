// The input of the engine's fuzzers: log records, as the engine reads them, one after the other.
//
//   u8 flags, u8 number of pieces, u16 bytes of the body, u16 bytes of each piece, the body.
//
// Flags: 1 its pieces are damaged; the rest is the byte that its pieces are full of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace geardb::fuzzing {

struct InputRecord {
  uint8_t flags = 0;
  std::vector<uint16_t> piece_bytes;
  std::vector<uint64_t> body_words;  ///< 8-byte aligned, as in the log.
  size_t body_bytes = 0;

  bool pieces_damaged() const { return (flags & 1) != 0; }
  std::byte piece_fill() const { return std::byte{static_cast<uint8_t>(flags >> 1)}; }
  std::span<const std::byte> body() const {
    return {reinterpret_cast<const std::byte*>(body_words.data()), body_bytes};
  }
};

/// At most `records_max` of them; ends where the input does.
inline std::vector<InputRecord> ParseRecords(std::span<const uint8_t> input, size_t records_max) {
  std::vector<InputRecord> records;
  while (records.size() < records_max && input.size() >= 4) {
    InputRecord record;
    record.flags = input[0];
    const size_t pieces = input[1];
    uint16_t body_bytes = 0;
    std::memcpy(&body_bytes, input.data() + 2, sizeof(body_bytes));
    input = input.subspan(4);
    if (input.size() < pieces * 2 + body_bytes) break;
    record.piece_bytes.resize(pieces);
    if (pieces > 0) std::memcpy(record.piece_bytes.data(), input.data(), pieces * 2);
    input = input.subspan(pieces * 2);
    record.body_bytes = body_bytes;
    record.body_words.resize((size_t{body_bytes} + 7) / 8);
    if (body_bytes > 0) std::memcpy(record.body_words.data(), input.data(), body_bytes);
    input = input.subspan(body_bytes);
    records.push_back(std::move(record));
  }
  return records;
}

inline void WriteRecords(const std::vector<InputRecord>& records, std::vector<uint8_t>* out) {
  const auto put = [out](const void* from, size_t bytes) {
    const auto* at = static_cast<const uint8_t*>(from);
    out->insert(out->end(), at, at + bytes);
  };
  for (const InputRecord& record : records) {
    const auto body_bytes = static_cast<uint16_t>(record.body_bytes);
    out->push_back(record.flags);
    out->push_back(static_cast<uint8_t>(record.piece_bytes.size()));
    put(&body_bytes, sizeof(body_bytes));
    put(record.piece_bytes.data(), record.piece_bytes.size() * 2);
    put(record.body_words.data(), record.body_bytes);
  }
}

/// Changes a number in one body, or which records there are: what mutators that know nothing of
/// FlatBuffers rarely do without breaking them. Returns the new size, at most `size_max`.
inline size_t MutateRecords(uint8_t* input, size_t size, size_t size_max, uint64_t seed) {
  std::vector<InputRecord> records = ParseRecords({input, size}, 1000);
  const auto random = [&seed](uint64_t below) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % below;
  };
  if (records.empty()) return size;
  const size_t at = random(records.size());
  const uint64_t choice = random(16);
  if (choice == 0) {
    records.erase(records.begin() + static_cast<ptrdiff_t>(at));
  } else if (choice <= 2) {
    const InputRecord copy = records[at];
    const size_t to = random(records.size() + 1);
    records.insert(records.begin() + static_cast<ptrdiff_t>(to), copy);
  } else if (choice == 3) {
    records[at].flags = static_cast<uint8_t>(random(4) == 0 ? 1 : random(128) << 1);
  } else if (records[at].body_bytes >= 8) {
    auto* bytes = reinterpret_cast<uint8_t*>(records[at].body_words.data());
    const size_t words = records[at].body_bytes / 4;
    for (uint64_t changes = 1 + random(3); changes > 0; --changes) {
      uint8_t* word = bytes + 4 * random(words);
      uint32_t value = 0;
      std::memcpy(&value, word, 4);
      const uint32_t values[] = {static_cast<uint32_t>(random(8)),
                                 value + 1,
                                 value - 1,
                                 UINT32_MAX - static_cast<uint32_t>(random(3)),
                                 uint32_t{1} << random(32),
                                 value ^ (1u << random(32))};
      value = values[random(6)];
      if (random(3) == 0) std::memcpy(&value, bytes + 4 * random(words), 4);
      std::memcpy(word, &value, 4);
    }
  }
  std::vector<uint8_t> out;
  WriteRecords(records, &out);
  if (out.empty() || out.size() > size_max) return size;
  std::memcpy(input, out.data(), out.size());
  return out.size();
}

}  // namespace geardb::fuzzing
