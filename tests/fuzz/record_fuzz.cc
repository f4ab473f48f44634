// Any bytes as a record: no crash, and every span of what is accepted lies inside. With an odd
// first byte LSN and checksum are put right, so that what lies behind them is reached.
#include <cstring>

#include "base/check.h"
#include "wal/record_codec.h"

namespace {

bool Inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  using geardb::AlignDown;
  using geardb::Lsn;
  using namespace geardb::wal;
  constexpr uint64_t kSeed = 7;
  constexpr Lsn kLsn = 640;
  if (size == 0) return 0;
  const auto all = std::as_bytes(std::span(input, size)).subspan(1);
  std::vector<std::byte> bytes(all.begin(), all.end());
  if (input[0] % 2 == 1 && bytes.size() >= sizeof(RecordHeader)) {
    RecordHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    header.lsn = kLsn;
    header.zero = 0;
    header.length = static_cast<uint32_t>(AlignDown(bytes.size(), kRecordAlignment));
    header.metadata_length %= static_cast<uint32_t>(bytes.size() - sizeof(header) + 1);
    FinishHeader(bytes.data(), header, kSeed);
  }
  ParsedRecord record;
  if (!ParseRecord(bytes, kLsn, kSeed, &record)) return 0;
  GEARDB_CHECK(record.header.length <= bytes.size());
  GEARDB_CHECK(Inside(record.body, bytes) && Inside(record.piece_area, bytes));
  for (const PieceEntry& entry : record.pieces) {
    if (entry.lsn == 0) GEARDB_CHECK(Inside(PieceBytes(record, entry), bytes));
  }
  (void)PiecesGood(record, kSeed);
  return 0;
}
