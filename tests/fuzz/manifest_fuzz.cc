// Any bytes as a manifest: no crash, and what is accepted encodes to the same bytes. With an odd
// first byte the checksum is put right, so that the fields behind it are reached.
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "wal/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  using namespace geardb;
  if (size == 0) return 0;
  const auto all = std::as_bytes(std::span(input, size)).subspan(1);
  std::vector<std::byte> bytes(all.begin(), all.end());
  if (input[0] % 2 == 1 && bytes.size() >= 24) {
    const auto length = static_cast<uint32_t>(bytes.size());
    std::memcpy(bytes.data() + 12, &length, sizeof(length));
    Hasher64 hasher(0);
    hasher.Add(std::span(bytes).first(16));
    hasher.Add(std::span(bytes).subspan(24));
    const uint64_t checksum = hasher.Finish();
    std::memcpy(bytes.data() + 16, &checksum, sizeof(checksum));
  }
  const auto manifest = wal::DecodeManifest(bytes, "MANIFEST");
  if (manifest.ok()) GEARDB_CHECK(wal::EncodeManifest(*manifest) == bytes);
  return 0;
}
