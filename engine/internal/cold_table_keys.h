// The keys of RocksDB's SST files, read without RocksDB, whose iterators go neither across a bad
// block nor into a file that was cut: all blocks that are good are found, wherever others are bad.
//
// A key of such a file ends with u64: sequence number << 8 | type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/internal/cold_table_block.h"

namespace geardb::engine {

/// What a key of a file says. The store writes no others.
enum class TableKeyType : uint8_t { kDeletion = 0, kValue = 1, kRangeDeletion = 0xF, kBlob = 0x11 };
inline constexpr size_t kTableKeyEndBytes = 8;

/// A key of a file without its end, and what the end says. At least kTableKeyEndBytes long.
std::string_view UserKeyOf(std::string_view key);
TableKeyType TypeOfKey(std::string_view key);

/// Finds the good blocks of keys in a file's bytes, one after the other.
class KeyBlocks {
 public:
  /// Of bytes that outlive it, and what it finds.
  explicit KeyBlocks(std::string_view file) : file_(file) {}

  /// Nothing where there is none left.
  std::optional<TableBlock> Next();

 private:
  const std::string_view file_;
  uint64_t at_ = 0;
  std::string last_key_;
};

}  // namespace geardb::engine
