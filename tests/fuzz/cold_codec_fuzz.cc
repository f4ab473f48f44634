// Any bytes as what the cold store holds: as a column of every codec, and as a page. No crash,
// nothing read or written beyond the spans; and whatever the bytes are, as a column to be stored
// they come back. (A page's columns are decoded before its checksum is looked at.)
//
// Bytes: codec, row size, u16 size of the column, then the column or page.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/page_view.h"
#include "engine/internal/cold_codec.h"
#include "engine/internal/cold_page.h"

namespace geardb::engine {
namespace {

void DecodeAnything(ColumnCodec codec, uint64_t row_bytes, size_t size,
                    std::span<const std::byte> stored) {
  std::vector<std::byte> raw(size);
  const Status status = DecodeColumn({codec, row_bytes, stored}, raw);
  GEARDB_CHECK(status.ok() || status.code() == StatusCode::kCorruption);
}

void StoreAnything(ColumnCodecSpec spec, uint64_t row_bytes, std::span<const std::byte> raw) {
  if (!CheckColumnCodec(spec).ok()) return;
  std::string stored;
  const ColumnCodec used = EncodeColumn(spec, {row_bytes, raw}, &stored);
  std::vector<std::byte> again(raw.size());
  GEARDB_CHECK(DecodeColumn({used, row_bytes, std::as_bytes(std::span(stored))}, again).ok());
  GEARDB_CHECK(std::equal(raw.begin(), raw.end(), again.begin(), again.end()));
}

void DecodePage(std::span<const std::byte> bytes) {
  const std::vector<uint64_t> rows = {4, 24, 1};
  const PageLayout layout(rows, 8);
  const ColdPageKey key = {1, 0, 0, 5, 6};
  std::string value(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::byte> frame(layout.frame_bytes());
  auto decoded = DecodeColdPage(key, value, layout, frame);
  GEARDB_CHECK(decoded.ok() || decoded.status().code() == StatusCode::kCorruption);
  if (decoded.ok()) {
    // What is accepted is, stored again, the same page.
    std::string again;
    GEARDB_CHECK(EncodeColdPage(key, {&layout, frame, *decoded, {}}, &again).ok());
    std::vector<std::byte> second(layout.frame_bytes());
    GEARDB_CHECK(DecodeColdPage(key, again, layout, second).ok());
    GEARDB_CHECK(second == frame);
  }
  (void)ReadColdPageHeader(value);
}

void Decode(const uint8_t* input, size_t size) {
  const auto bytes = std::as_bytes(std::span(input, size)).subspan(4);
  uint16_t column_bytes = 0;
  std::memcpy(&column_bytes, input + 2, sizeof(column_bytes));
  const uint64_t row_bytes = input[1];
  DecodeAnything(static_cast<ColumnCodec>(input[0] % 6), row_bytes, column_bytes, bytes);
  StoreAnything({static_cast<ColumnCodec>(input[0] % 4), static_cast<int8_t>(1 + input[0] % 19)},
                row_bytes, bytes.first(row_bytes == 0 ? 0 : bytes.size() / row_bytes * row_bytes));
  DecodePage(bytes);
}

}  // namespace
}  // namespace geardb::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  if (size >= 4) geardb::engine::Decode(input, size);
  return 0;
}
