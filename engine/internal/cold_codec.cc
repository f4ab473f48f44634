#include "engine/internal/cold_codec.h"

#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace geardb::engine {
namespace {

constexpr int8_t kZstdLevelMax = 19;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Made once a thread: a context is 100 KiB and more.
ZSTD_CCtx* CompressContext() {
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  return context.get();
}
ZSTD_DCtx* DecompressContext() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  return context.get();
}

char* CharsOf(std::byte* bytes) { return reinterpret_cast<char*>(bytes); }
const char* CharsOf(const std::byte* bytes) { return reinterpret_cast<const char*>(bytes); }

// Appends what LZ4 makes of `raw`, if that is smaller.
bool AppendLz4(std::span<const std::byte> raw, std::string* out) {
  if (raw.size() < 2 || raw.size() > LZ4_MAX_INPUT_SIZE) return false;
  const size_t start = out->size();
  out->resize(start + raw.size() - 1);  // One byte less: more would be no gain.
  const int bytes =
      LZ4_compress_default(CharsOf(raw.data()), out->data() + start, static_cast<int>(raw.size()),
                           static_cast<int>(raw.size() - 1));
  out->resize(start + static_cast<size_t>(bytes > 0 ? bytes : 0));
  return bytes > 0;
}

bool AppendZstd(std::span<const std::byte> raw, int level, std::string* out) {
  ZSTD_CCtx* context = CompressContext();
  if (raw.size() < 2 || context == nullptr) return false;
  const size_t start = out->size();
  out->resize(start + raw.size() - 1);
  const size_t bytes = ZSTD_compressCCtx(context, out->data() + start, raw.size() - 1, raw.data(),
                                         raw.size(), level);
  const bool fits = ZSTD_isError(bytes) == 0;
  out->resize(start + (fits ? bytes : 0));
  return fits;
}

bool AppendXorLz4(const RawColumn& column, std::string* out) {
  if (column.row_bytes == 0 || column.raw.size() > LZ4_MAX_INPUT_SIZE) return false;
  std::vector<std::byte> changes(column.raw.begin(), column.raw.end());
  for (size_t i = column.row_bytes; i < changes.size(); ++i) {
    changes[i] = column.raw[i] ^ column.raw[i - column.row_bytes];
  }
  return AppendLz4(changes, out);
}

Status DecodeLz4(std::span<const std::byte> stored, std::span<std::byte> raw) {
  constexpr size_t kMax = std::numeric_limits<int>::max();
  if (stored.size() > kMax || raw.size() > kMax) {
    return Status::Corruption("an LZ4 column of ", stored.size(), " bytes for ", raw.size());
  }
  const int bytes =
      LZ4_decompress_safe(CharsOf(stored.data()), CharsOf(raw.data()),
                          static_cast<int>(stored.size()), static_cast<int>(raw.size()));
  if (bytes < 0 || static_cast<size_t>(bytes) != raw.size()) {
    return Status::Corruption("an LZ4 column of ", stored.size(), " bytes does not decode to ",
                              raw.size());
  }
  return Status::Ok();
}

Status DecodeZstd(std::span<const std::byte> stored, std::span<std::byte> raw) {
  ZSTD_DCtx* context = DecompressContext();
  if (context == nullptr) return Status::ResourceExhausted("no memory for a Zstandard context");
  const size_t bytes =
      ZSTD_decompressDCtx(context, raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(bytes) != 0 || bytes != raw.size()) {
    return Status::Corruption("a Zstandard column of ", stored.size(), " bytes does not decode to ",
                              raw.size());
  }
  return Status::Ok();
}

}  // namespace

Status CheckColumnCodec(const ColumnCodecSpec& spec) {
  if (static_cast<uint8_t>(spec.codec) > kColumnCodecLast) {
    return Status::InvalidArgument("column codec ", static_cast<int>(spec.codec), " is none");
  }
  if (spec.codec == ColumnCodec::kZstd && (spec.level < 1 || spec.level > kZstdLevelMax)) {
    return Status::InvalidArgument("Zstandard level ", static_cast<int>(spec.level),
                                   " is not in 1…", static_cast<int>(kZstdLevelMax));
  }
  return Status::Ok();
}

ColumnCodec EncodeColumn(const ColumnCodecSpec& spec, const RawColumn& column, std::string* out) {
  bool smaller = false;
  switch (spec.codec) {
    case ColumnCodec::kNone:
      break;
    case ColumnCodec::kLz4:
      smaller = AppendLz4(column.raw, out);
      break;
    case ColumnCodec::kZstd:
      smaller = AppendZstd(column.raw, spec.level, out);
      break;
    case ColumnCodec::kXorLz4:
      smaller = AppendXorLz4(column, out);
      break;
  }
  if (smaller) return spec.codec;
  if (!column.raw.empty()) out->append(CharsOf(column.raw.data()), column.raw.size());
  return ColumnCodec::kNone;
}

Status DecodeColumn(const StoredColumn& column, std::span<std::byte> raw) {
  switch (column.codec) {
    case ColumnCodec::kNone:
      if (column.stored.size() != raw.size()) {
        return Status::Corruption("a column of ", column.stored.size(), " bytes, expected ",
                                  raw.size());
      }
      if (!raw.empty()) std::memcpy(raw.data(), column.stored.data(), raw.size());
      return Status::Ok();
    case ColumnCodec::kLz4:
      return DecodeLz4(column.stored, raw);
    case ColumnCodec::kZstd:
      return DecodeZstd(column.stored, raw);
    case ColumnCodec::kXorLz4: {
      if (column.row_bytes == 0) return Status::Corruption("rows of 0 bytes as differences");
      GEARDB_RETURN_IF_ERROR(DecodeLz4(column.stored, raw));
      for (size_t i = column.row_bytes; i < raw.size(); ++i) raw[i] ^= raw[i - column.row_bytes];
      return Status::Ok();
    }
  }
  return Status::Corruption("unknown column codec ", static_cast<int>(column.codec));
}

}  // namespace geardb::engine
