#include "tools/geardb/segment_head.h"

#include <cstring>
#include <filesystem>

#include "base/env.h"
#include "wal/record_codec.h"

namespace geardb::cli {

namespace fs = std::filesystem;

Result<std::optional<Lsn>> ReadSegmentBase(Env* env, const std::string& path,
                                           const wal::Manifest& manifest) {
  const auto file = env->OpenFile(path, {.mode = FileMode::kRead});
  if (!file.ok()) return std::optional<Lsn>();
  std::vector<std::byte> head(wal::kSegmentRecordBytes);
  GEARDB_ASSIGN_OR_RETURN(const size_t read, (*file)->Read(0, head));
  Lsn base = 0;
  std::memcpy(&base, head.data() + offsetof(wal::RecordHeader, lsn), sizeof(base));
  wal::ParsedRecord record;
  const bool good = read == head.size() && wal::ParseRecord(head, base, manifest.Seed(), &record);
  return good ? std::optional<Lsn>(base) : std::nullopt;
}

std::vector<std::byte> SegmentHead(const wal::Manifest& manifest, Lsn base, wal::Epoch epoch) {
  std::vector<std::byte> bytes(wal::kSegmentRecordBytes);
  wal::RecordHeader header;
  header.lsn = header.synced_lsn = base;
  header.term = epoch.term;
  header.open = epoch.open;
  header.length = wal::kSegmentRecordBytes;
  header.type = static_cast<uint16_t>(wal::RecordType::kSegment);
  wal::WritePlainRecord(bytes.data(), header, manifest.uuid, manifest.Seed());
  return bytes;
}

std::string FreeSegmentName(const std::string& log_directory) {
  for (uint64_t number = 1;; ++number) {
    std::string name = wal::SegmentName(number);
    if (!fs::exists(JoinPath(log_directory, name))) return name;
  }
}

}  // namespace geardb::cli
