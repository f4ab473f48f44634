#include "wal/segment_map.h"

#include <algorithm>
#include <cstring>

#include "base/break.h"
#include "wal/record_codec.h"
#include "wal/segment_check.h"

namespace geardb::wal {

Lsn SegmentMap::FirstInRow(uint64_t segment_bytes) const {
  Lsn first = 0;
  for (auto at = names.rbegin(); at != names.rend(); ++at) {
    if (at != names.rbegin() && at->first + segment_bytes != first) break;
    first = at->first;
  }
  return first;
}

Result<SegmentMap> SegmentMap::Read(Env* env, const std::string& log_directory,
                                    const Manifest& manifest, Lsn from) {
  SegmentMap map;
  std::map<Lsn, Epoch> epochs;
  const auto names = env->List(log_directory);
  if (names.status().code() == StatusCode::kNotFound) {
    return Status::Corruption(log_directory, " is missing: the database has lost its log");
  }
  if (!names.ok()) return names.status();
  ParsedRecord record;
  for (const std::string& name : *names) {
    uint64_t number = 0;
    if (!ParseSegmentName(name, &number)) {
      if (name != kRingName) map.ignored.push_back(name);
      continue;
    }
    const std::string path = JoinPath(log_directory, name);
    auto opened = env->OpenFile(path, {.mode = FileMode::kRead});
    if (opened.status().code() == StatusCode::kCorruption) {
      map.no_files.push_back(name);
      continue;
    }
    // A spare one goes whenever the disk needs its room.
    if (opened.status().code() == StatusCode::kNotFound) continue;
    GEARDB_ASSIGN_OR_RETURN(const auto file, std::move(opened));
    map.all.push_back(name);
    std::array<std::byte, kSegmentRecordBytes> bytes = {};
    GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes));
    const std::optional<Uuid> owner = SegmentOwner(std::span(bytes).first(read));
    if (!owner) {
      const auto zero = [](std::byte byte) { return byte == std::byte{0}; };
      if (!std::all_of(bytes.begin(), bytes.end(), zero)) map.unreadable.push_back(name);
      continue;
    }
    if (*owner != manifest.uuid) {
      return Status::Corruption(path, " belongs to database ", UuidText(*owner), ", this is ",
                                UuidText(manifest.uuid));
    }
    Lsn base;
    std::memcpy(&base, bytes.data() + offsetof(RecordHeader, lsn), sizeof(base));
    if (!ParseRecord(bytes, base, manifest.Seed(), &record)) continue;
    const Epoch epoch = record.header.epoch();
    if (base % manifest.segment_bytes != 0 || base + manifest.segment_bytes <= from) continue;
    if (epoch > manifest.epoch) continue;
    if (base >= manifest.start && epoch != manifest.epoch && !kBreak.keep_stale_tail) continue;
    const auto known = epochs.find(base);
    if (known != epochs.end() && known->second >= epoch) continue;
    epochs[base] = epoch;
    map.names[base] = name;
  }
  return map;
}

}  // namespace geardb::wal
