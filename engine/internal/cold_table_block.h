// Blocks of RocksDB's SST files, read and made without RocksDB: to find the entries of a file where
// what leads to them is bad (cold_tables.h).
//
// A block ("block-based table" of RocksDB, its versions 2 to 5; all little-endian):
//   entries: varints of how many bytes the key shares with the one before, of how many follow, and
//            of the value's bytes; the rest of the key; the value
//   u32 each: where in the block an entry is that shares nothing; u32: how many such there are
//   u8 compression: 0, none   u32 checksum
// All sizes but the last five bytes are those of the block's contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace geardb::engine {

inline constexpr uint64_t kTableTrailerBytes = 5;
/// How many entries come from one that shares nothing up to the next: in a block of keys, in those
/// of the tail that lead to others or hold deletions, and in that of properties.
inline constexpr uint64_t kEntriesPerRestart = 16;
inline constexpr uint64_t kEntriesPerRestartOfTail = 1;
inline constexpr uint64_t kAllEntries = UINT64_MAX;

/// Where a block's contents lie in its file. RocksDB calls it a handle, and writes two varints.
struct TablePlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  uint64_t end() const { return offset + bytes + kTableTrailerBytes; }
};
void AppendVarint(uint64_t number, std::string* to);
/// Takes the number from the front; nothing where there is none.
std::optional<uint64_t> TakeVarint(std::string_view* from);
void AppendPlace(const TablePlace& place, std::string* to);
std::optional<TablePlace> TakePlace(std::string_view* from);

struct TableEntry {
  std::string key;
  std::string_view value;
};
struct TableBlock {
  TablePlace place;
  std::vector<TableEntry> entries;  ///< At least one.
};

/// The low half of XXH3-64, with the last byte mixed in as RocksDB does.
uint32_t TableChecksum(std::string_view contents, uint8_t compression);
/// Whether a block that fits its checksum lies there in the file's bytes.
bool HasBlock(std::string_view file, const TablePlace& place);
/// The block that begins at `offset` of the file's bytes, wherever it ends. Nothing where none
/// does whose checksum fits; that is found out quickly. Values point into `file`.
std::optional<TableBlock> ReadTableBlock(std::string_view file, uint64_t offset,
                                         uint64_t entries_per_restart);

/// Makes a block, its trailer included.
class TableBlockWriter {
 public:
  explicit TableBlockWriter(uint64_t entries_per_restart)
      : entries_per_restart_(entries_per_restart) {}

  /// Keys ascend.
  void Add(std::string_view key, std::string_view value);
  std::string Finish() &&;

 private:
  const uint64_t entries_per_restart_;
  uint64_t count_ = 0;
  std::string bytes_;
  std::string last_key_;
  std::vector<uint32_t> restarts_;
};

}  // namespace geardb::engine
