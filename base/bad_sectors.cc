#include "base/bad_sectors.h"

#include <algorithm>

namespace geardb {
namespace {

/// A disk may read at the second try.
constexpr int kTries = 3;

bool HasGoodNeighbour(uint64_t block, const ReadFromDisk& read) {
  alignas(kSectorBlockBytes) std::byte scratch[kSectorBlockBytes];
  const auto is_good = [&](uint64_t offset) { return read(offset, scratch).value_or(0) > 0; };
  return is_good(block + kSectorBlockBytes) ||
         (block >= kSectorBlockBytes && is_good(block - kSectorBlockBytes));
}

}  // namespace

std::optional<size_t> ReadAroundBadSectors(uint64_t offset, std::span<std::byte> into,
                                           const ReadFromDisk& read) {
  size_t done = 0;
  while (done < into.size()) {
    const uint64_t at = offset + done;
    const uint64_t left = kSectorBlockBytes - at % kSectorBlockBytes;
    const auto part = into.subspan(done, std::min<uint64_t>(left, into.size() - done));
    std::optional<size_t> bytes;
    for (int tries = 0; !bytes && tries < kTries; ++tries) bytes = read(at, part);
    if (!bytes) {
      if (!HasGoodNeighbour(at - at % kSectorBlockBytes, read)) return std::nullopt;
      std::ranges::fill(part, kUnreadableByte);
      bytes = part.size();
    }
    done += *bytes;
    if (*bytes < part.size()) break;  // The end of the file.
  }
  return done;
}

}  // namespace geardb
