#include "engine/internal/cold_page.h"

#include <bit>
#include <cstring>

#include "base/break.h"
#include "base/hash.h"

namespace geardb::engine {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint16_t kWithoutLsn = 1;
constexpr uint16_t kWithLsn = 2;

struct FixedHeader {
  uint16_t version = kWithoutLsn;
  uint16_t zero = 0;
  uint32_t rows = 0;
  uint64_t generation = 0;
  uint64_t raw_bytes = 0;
  uint64_t checksum = 0;
  uint32_t columns = 0;
  uint32_t zero_too = 0;
};
static_assert(sizeof(FixedHeader) == 40);
constexpr size_t kHashedBytes = 24;

/// The header as it is in memory, of either version.
struct PageHead {
  FixedHeader fixed;
  Lsn lsn = kNoLsn;

  bool has_lsn() const { return fixed.version == kWithLsn; }
  size_t bytes() const { return sizeof(fixed) + (has_lsn() ? sizeof(lsn) : 0); }
  ColdPageHeader header() const {
    return {.generation = fixed.generation, .rows = fixed.rows, .lsn = lsn};
  }
};

struct ColumnEntry {
  uint8_t codec = 0;
  int8_t level = 0;
  uint8_t zero[6] = {};
  uint64_t stored_bytes = 0;
};
static_assert(sizeof(ColumnEntry) == 16);

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The checksum of a page in its frame.
uint64_t Checksum(const ColdPageKey& key, const PageHead& head, const PageLayout& layout,
                  std::span<const std::byte> frame) {
  Hasher64 hasher(Hash64(BytesOf(EncodeColdKey(key)), 0));
  hasher.Add(std::as_bytes(std::span(&head.fixed, 1)).first(kHashedBytes));
  if (head.has_lsn()) hasher.Add(std::as_bytes(std::span(&head.lsn, 1)));
  for (const ColumnRegion& region : layout.regions()) {
    hasher.Add(frame.subspan(region.offset, region.row_bytes * head.fixed.rows));
  }
  return hasher.Finish();
}

const ColumnCodecSpec& CodecOf(std::span<const ColumnCodecSpec> codecs, size_t column) {
  static constexpr ColumnCodecSpec kDefault;
  if (codecs.empty()) return kDefault;
  return codecs.size() == 1 ? codecs[0] : codecs[column];
}

Status CheckSource(const ColdPageSource& page) {
  const PageLayout& layout = *page.layout;
  if (page.frame.size() < layout.frame_bytes()) {
    return Status::InvalidArgument("a frame of ", page.frame.size(), " bytes, expected ",
                                   layout.frame_bytes());
  }
  if (page.header.rows > layout.steps_per_page()) {
    return Status::InvalidArgument(page.header.rows, " rows in a page of ",
                                   layout.steps_per_page());
  }
  if (page.codecs.size() > 1 && page.codecs.size() != layout.column_count()) {
    return Status::InvalidArgument(page.codecs.size(), " codecs for ", layout.column_count(),
                                   " columns");
  }
  for (const ColumnCodecSpec& codec : page.codecs) GEARDB_RETURN_IF_ERROR(CheckColumnCodec(codec));
  return Status::Ok();
}

Result<PageHead> TakeHeader(std::string_view* value) {
  PageHead head;
  FixedHeader& fixed = head.fixed;
  const size_t all = value->size();
  if (all >= sizeof(fixed)) std::memcpy(&fixed, value->data(), sizeof(fixed));
  if (all < head.bytes()) return Status::Corruption("a value of ", all, " bytes holds no page");
  const bool known = fixed.version == kWithoutLsn || fixed.version == kWithLsn;
  if (!known || fixed.zero != 0 || fixed.zero_too != 0) {
    return Status::Corruption("a page of version ", fixed.version, ", known is ", kWithLsn);
  }
  if (head.has_lsn()) std::memcpy(&head.lsn, value->data() + sizeof(fixed), sizeof(head.lsn));
  value->remove_prefix(head.bytes());
  return head;
}

Status CheckHeader(const FixedHeader& header, const PageLayout& layout) {
  if (header.columns != layout.column_count() || header.rows > layout.steps_per_page() ||
      header.raw_bytes != PieceColumns(layout, header.rows).bytes()) {
    return Status::Corruption("a page of ", header.rows, " rows of ", header.columns,
                              " columns in ", header.raw_bytes, " bytes; expected ",
                              layout.column_count(), " columns, at most ", layout.steps_per_page(),
                              " rows of ", layout.bytes_per_step(), " bytes");
  }
  return Status::Ok();
}

}  // namespace

Status EncodeColdPage(const ColdPageKey& key, const ColdPageSource& page, std::string* value) {
  GEARDB_RETURN_IF_ERROR(CheckSource(page));
  const PageLayout& layout = *page.layout;
  PageHead head{.fixed = {}, .lsn = page.header.lsn};
  FixedHeader& header = head.fixed;
  if (head.lsn != kNoLsn) header.version = kWithLsn;
  header.rows = page.header.rows;
  header.generation = page.header.generation;
  header.raw_bytes = PieceColumns(layout, header.rows).bytes();
  header.columns = static_cast<uint32_t>(layout.column_count());
  header.checksum = Checksum(key, head, layout, page.frame);

  value->clear();
  value->append(reinterpret_cast<const char*>(&header), sizeof(header));
  if (head.has_lsn()) value->append(reinterpret_cast<const char*>(&head.lsn), sizeof(head.lsn));
  value->resize(head.bytes() + layout.column_count() * sizeof(ColumnEntry));
  for (size_t column = 0; column < layout.column_count(); ++column) {
    const ColumnRegion& region = layout.region(column);
    const ColumnCodecSpec& codec = CodecOf(page.codecs, column);
    const size_t start = value->size();
    ColumnEntry entry;
    entry.codec = static_cast<uint8_t>(EncodeColumn(
        codec,
        {region.row_bytes, page.frame.subspan(region.offset, region.row_bytes * header.rows)},
        value));
    entry.level = codec.level;
    entry.stored_bytes = value->size() - start;
    std::memcpy(value->data() + head.bytes() + column * sizeof(entry), &entry, sizeof(entry));
  }
  if (value->size() > kColdValueBytesMax) {
    return Status::InvalidArgument(ColdKeyText(key), ": ", value->size(),
                                   " bytes compressed, at most ", kColdValueBytesMax,
                                   " can be stored");
  }
  return Status::Ok();
}

Result<ColdPageHeader> DecodeColdPage(const ColdPageKey& key, std::string_view value,
                                      const PageLayout& layout, std::span<std::byte> frame) {
  if (frame.size() < layout.frame_bytes()) {
    return Status::InvalidArgument("a frame of ", frame.size(), " bytes, expected ",
                                   layout.frame_bytes());
  }
  GEARDB_ASSIGN_OR_RETURN(const PageHead head, TakeHeader(&value));
  const FixedHeader& header = head.fixed;
  GEARDB_RETURN_IF_ERROR(CheckHeader(header, layout));
  const size_t entry_bytes = layout.column_count() * sizeof(ColumnEntry);
  if (value.size() < entry_bytes) {
    return Status::Corruption("the entries of ", layout.column_count(), " columns are cut short");
  }
  std::string_view entries = value.substr(0, entry_bytes);
  std::string_view stored = value.substr(entry_bytes);
  for (const ColumnRegion& region : layout.regions()) {
    ColumnEntry entry;
    std::memcpy(&entry, entries.data(), sizeof(entry));
    entries.remove_prefix(sizeof(entry));
    if (entry.stored_bytes > stored.size()) {
      return Status::Corruption("a column of ", entry.stored_bytes, " bytes, where ", stored.size(),
                                " are left");
    }
    GEARDB_RETURN_IF_ERROR(
        DecodeColumn({static_cast<ColumnCodec>(entry.codec), region.row_bytes,
                      BytesOf(stored.substr(0, entry.stored_bytes))},
                     frame.subspan(region.offset, region.row_bytes * header.rows)));
    stored.remove_prefix(entry.stored_bytes);
  }
  if (!stored.empty()) return Status::Corruption(stored.size(), " bytes behind the last column");
  const uint64_t found = Checksum(key, head, layout, frame);
  if (found != header.checksum && !kBreak.skip_cold_checksum) {
    return Status::Corruption("the checksum is ", found, ", expected ", header.checksum);
  }
  return head.header();
}

Result<ColdPageHeader> ReadColdPageHeader(std::string_view value) {
  GEARDB_ASSIGN_OR_RETURN(const PageHead head, TakeHeader(&value));
  return head.header();
}

}  // namespace geardb::engine
