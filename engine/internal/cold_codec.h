// Compression of one column of a page, before it goes to the cold store.
//
// A column is `rows · row_bytes` bytes, row after row. Codecs and their numbers are on disk:
// frozen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace geardb::engine {

enum class ColumnCodec : uint8_t {
  kNone = 0,    ///< The bytes themselves.
  kLz4 = 1,     ///< One LZ4 block.
  kZstd = 2,    ///< One Zstandard frame.
  kXorLz4 = 3,  ///< Each row xor the one before it, then LZ4: for frames that change little.
};
inline constexpr uint8_t kColumnCodecLast = static_cast<uint8_t>(ColumnCodec::kXorLz4);

/// How a column is to be compressed. `level` is Zstandard's, 1…19; the others have none.
struct ColumnCodecSpec {
  ColumnCodec codec = ColumnCodec::kLz4;
  int8_t level = 1;
};

/// A column's bytes; `raw.size()` is a multiple of `row_bytes`.
struct RawColumn {
  uint64_t row_bytes = 0;
  std::span<const std::byte> raw;
};

/// InvalidArgument for a codec that is none, or a level out of range.
Status CheckColumnCodec(const ColumnCodecSpec& spec);

/// Appends the compressed column to `out`, and says by what: `spec.codec`, or kNone where that
/// would not be smaller (or the column is larger than the codec takes). `spec` has passed the
/// check.
ColumnCodec EncodeColumn(const ColumnCodecSpec& spec, const RawColumn& column, std::string* out);

/// What EncodeColumn has stored.
struct StoredColumn {
  ColumnCodec codec = ColumnCodec::kNone;
  uint64_t row_bytes = 0;
  std::span<const std::byte> stored;
};

/// Fills `raw` from any bytes: Corruption unless they decode to exactly that many, in which case
/// what `raw` holds means nothing. Reads and writes nothing beyond the spans.
Status DecodeColumn(const StoredColumn& column, std::span<std::byte> raw);

}  // namespace geardb::engine
