// The value of a page in the cold store: a header, one entry a column, the compressed columns.
//
// All numbers are little-endian; frozen, since they are on disk.
//   0 u16 version (2)   2 u16 zero   4 u32 rows   8 u64 generation   16 u64 raw bytes
//   24 u64 checksum: XXH3, seeded by the hash of the key's bytes, over bytes 0…23, the LSN and the
//   raw bytes
//   32 u32 columns   36 u32 zero   40 u64 LSN   48 columns × {u8 codec, i8 level, 6 zero bytes, u64
//   stored bytes}
// Version 1 has no LSN, and its columns are at 40: stores of format 3 (cold_own.h) have no other.
//
// Under one key the LSN tells versions of a page apart: each append and each patch makes it larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/page_view.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/internal/cold_codec.h"
#include "engine/internal/cold_keys.h"

namespace geardb::engine {

/// What is stored beside a page's bytes.
struct ColdPageHeader {
  uint64_t generation = 0;
  uint32_t rows = 0;  ///< Rows filled, from the page's first on.
  /// Of the record that changed the page last; kNoLsn: it is not said, in version 1.
  Lsn lsn = kNoLsn;
};

/// A page in a frame. `codecs` is one a column, or one for all, or none: LZ4.
struct ColdPageSource {
  const PageLayout* layout = nullptr;
  std::span<const std::byte> frame;  ///< layout->frame_bytes() or more.
  ColdPageHeader header;
  std::span<const ColumnCodecSpec> codecs;
};

/// Largest value that is stored: RocksDB's lengths have 32 bits.
inline constexpr uint64_t kColdValueBytesMax = (uint64_t{1} << 32) - (uint64_t{64} << 10);

/// Replaces `value`. InvalidArgument for a frame too small, too many rows, or codecs that do not
/// fit the columns.
Status EncodeColdPage(const ColdPageKey& key, const ColdPageSource& page, std::string* value);

/// Decodes any bytes into the rows of a frame, and checks the checksum. What the frame holds beyond
/// the rows stays. Corruption where the bytes are no such page of this key and layout: then the
/// frame's rows mean nothing. InvalidArgument for a frame that is too small.
Result<ColdPageHeader> DecodeColdPage(const ColdPageKey& key, std::string_view value,
                                      const PageLayout& layout, std::span<std::byte> frame);

/// The header alone; nothing but its form is checked.
Result<ColdPageHeader> ReadColdPageHeader(std::string_view value);

}  // namespace geardb::engine
