#include "tools/geardb/log_salvage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/internal/record_body.h"
#include "wal/record_codec.h"
#include "wal/segment_check.h"

namespace geardb::cli {
namespace {

/// Names of the files that may be segments.
std::vector<std::string> SegmentNames(Env* env, const std::string& log_directory) {
  std::vector<std::string> segments;
  const auto names = env->List(log_directory);
  if (!names.ok()) return segments;
  for (const std::string& name : *names) {
    uint64_t number = 0;
    if (wal::ParseSegmentName(name, &number)) segments.push_back(name);
  }
  return segments;
}

void NoteOperations(std::span<const std::byte> bytes, SalvagedRecord* record) {
  const auto body = engine::ReadBody(bytes);
  if (!body.ok() || (*body)->operations() == nullptr) return;
  for (const engine::fb::Operation* operation : *(*body)->operations()) {
    const TableId table = operation->table_id();
    if (!record->first_table) record->first_table = table;
    switch (operation->change_type()) {
      case engine::fb::Change::Append: {
        const auto* opened = operation->change_as_Append()->opened();
        for (uint32_t i = 0; opened != nullptr && i < opened->size(); ++i) {
          record->opened[table].push_back(opened->Get(i)->id());
        }
        break;
      }
      case engine::fb::Change::CreateTable: {
        const auto* spec = operation->change_as_CreateTable()->spec();
        const bool named = spec != nullptr && spec->name() != nullptr;
        record->created[table] = named ? spec->name()->str() : "?";
        break;
      }
      case engine::fb::Change::WriteTag: {
        const auto* name = operation->change_as_WriteTag()->name();
        record->tags.push_back(name == nullptr ? "?" : name->str());
        break;
      }
      default:
        break;
    }
  }
}

using Found = std::map<Lsn, SalvagedRecord>;

/// Looks at every aligned position of `bytes`, of which [0, count) may begin a record; `modulus` is
/// what LSNs are taken by to give the position.
struct Place {
  std::string file;
  uint64_t modulus = 0;
  uint64_t seed = 0;
};
void SalvageBytes(const Place& place, std::span<const std::byte> bytes, uint64_t count,
                  Found* found) {
  wal::ParsedRecord parsed;
  for (uint64_t at = 0; at + sizeof(wal::RecordHeader) <= count;) {
    Lsn lsn = 0;
    std::memcpy(&lsn, bytes.data() + at + offsetof(wal::RecordHeader, lsn), sizeof(lsn));
    const auto rest = bytes.subspan(at, std::min(bytes.size() - at, place.modulus));
    if (lsn % place.modulus != at || !wal::ParseRecord(rest, lsn, place.seed, &parsed)) {
      at += wal::kRecordAlignment;
      continue;
    }
    SalvagedRecord record{.lsn = lsn,
                          .end = lsn + parsed.header.length,
                          .epoch = parsed.header.epoch(),
                          .type = static_cast<wal::RecordType>(parsed.header.type),
                          .file = place.file};
    if (record.type == wal::RecordType::kData || record.type == wal::RecordType::kTag) {
      NoteOperations(parsed.body, &record);
    }
    at += std::max<uint64_t>(AlignDown(parsed.header.length, wal::kRecordAlignment),
                             wal::kRecordAlignment);
    const auto known = found->find(lsn);
    if (known != found->end() && known->second.epoch >= record.epoch) continue;
    found->insert_or_assign(lsn, std::move(record));
  }
}

Result<std::vector<std::byte>> ReadFile(Env* env, const std::string& path, uint64_t room) {
  GEARDB_ASSIGN_OR_RETURN(const auto file, env->OpenFile(path, {.mode = FileMode::kRead}));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::vector<std::byte> bytes(std::min(size, room));
  GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes));
  bytes.resize(read);
  return bytes;
}

Result<uint64_t> SizeOf(Env* env, const std::string& path) {
  GEARDB_ASSIGN_OR_RETURN(const auto file, env->OpenFile(path, {.mode = FileMode::kRead}));
  return file->Size();
}

}  // namespace

std::optional<wal::Uuid> FindUuid(Env* env, const std::string& log_directory) {
  std::map<wal::Uuid, size_t> owners;
  for (const std::string& name : SegmentNames(env, log_directory)) {
    const auto bytes = ReadFile(env, JoinPath(log_directory, name), wal::kSegmentRecordBytes);
    if (!bytes.ok()) continue;
    if (const auto owner = wal::SegmentOwner(*bytes)) ++owners[*owner];
  }
  std::optional<wal::Uuid> best;
  for (const auto& [uuid, count] : owners) {
    if (!best || count > owners[*best]) best = uuid;
  }
  return best;
}

Result<std::vector<SalvagedRecord>> SalvageLog(Env* env, const std::string& log_directory,
                                               const wal::Manifest& manifest) {
  Found found;
  const uint64_t seed = manifest.Seed();
  for (const std::string& name : SegmentNames(env, log_directory)) {
    const auto bytes = ReadFile(env, JoinPath(log_directory, name), manifest.segment_bytes);
    if (!bytes.ok()) continue;  // Said by whoever looks at the file itself.
    SalvageBytes({.file = name, .modulus = manifest.segment_bytes, .seed = seed}, *bytes,
                 bytes->size(), &found);
  }
  auto ring = ReadFile(env, JoinPath(log_directory, wal::kRingName), manifest.ring_bytes);
  if (ring.ok() && ring->size() == manifest.ring_bytes) {
    // Records go on from the ring's end to its begin.
    ring->resize(2 * manifest.ring_bytes);
    std::copy_n(ring->begin(), manifest.ring_bytes,
                ring->begin() + static_cast<ptrdiff_t>(manifest.ring_bytes));
    SalvageBytes({.file = wal::kRingName, .modulus = manifest.ring_bytes, .seed = seed}, *ring,
                 manifest.ring_bytes, &found);
  }
  std::vector<SalvagedRecord> records;
  for (auto& [lsn, record] : found) records.push_back(std::move(record));
  return records;
}

Result<std::vector<SalvagedRecord>> SalvageFile(Env* env, const std::string& path,
                                                const wal::Manifest& manifest) {
  Found found;
  const auto bytes = ReadFile(env, path, manifest.segment_bytes);
  if (bytes.status().code() == StatusCode::kCorruption) return std::vector<SalvagedRecord>();
  if (!bytes.ok()) return bytes.status();
  SalvageBytes({.file = path, .modulus = manifest.segment_bytes, .seed = manifest.Seed()}, *bytes,
               bytes->size(), &found);
  std::vector<SalvagedRecord> records;
  for (auto& [lsn, record] : found) records.push_back(std::move(record));
  return records;
}

bool IsLive(const SalvagedRecord& record, const wal::Manifest& manifest) {
  return record.lsn >= manifest.start ? record.epoch == manifest.epoch
                                      : record.epoch <= manifest.epoch;
}

std::optional<SalvagedRecord> FirstOfSegment(const std::vector<SalvagedRecord>& records,
                                             const wal::Manifest& manifest) {
  const auto last =
      std::find_if(records.rbegin(), records.rend(),
                   [&](const SalvagedRecord& record) { return IsLive(record, manifest); });
  if (last == records.rend()) return std::nullopt;
  const Lsn base = AlignDown(last->lsn, manifest.segment_bytes);
  return *std::ranges::find_if(records, [&](const SalvagedRecord& record) {
    return record.lsn >= base && IsLive(record, manifest);
  });
}

Result<wal::Manifest> RebuildManifest(Env* env, const std::string& directory) {
  const std::string log_directory = JoinPath(directory, wal::kLogDirectoryName);
  wal::Manifest manifest;
  const auto uuid = FindUuid(env, log_directory);
  if (!uuid) {
    return Status::Corruption("no file of '", log_directory, "' begins as a segment of a database");
  }
  manifest.uuid = *uuid;
  std::map<uint64_t, size_t> sizes;
  for (const std::string& name : SegmentNames(env, log_directory)) {
    const auto size = SizeOf(env, JoinPath(log_directory, name));
    if (size.ok() && std::has_single_bit(*size)) ++sizes[*size];
  }
  for (const auto& [size, count] : sizes) {
    if (manifest.segment_bytes == 0 || count >= sizes[manifest.segment_bytes]) {
      manifest.segment_bytes = size;
    }
  }
  if (manifest.segment_bytes == 0) {
    return Status::Corruption("no segment in '", log_directory, "' has the size of one");
  }
  const auto ring = SizeOf(env, JoinPath(log_directory, wal::kRingName));
  manifest.ring_bytes = ring.ok() && std::has_single_bit(*ring) ? *ring : manifest.segment_bytes;
  GEARDB_ASSIGN_OR_RETURN(const auto records, SalvageLog(env, log_directory, manifest));
  for (const SalvagedRecord& record : records) {
    if (record.epoch > manifest.epoch) manifest.epoch = record.epoch;
  }
  // In order of LSN: the first of the newest epoch.
  const auto first = std::ranges::find(records, manifest.epoch, &SalvagedRecord::epoch);
  if (first != records.end()) manifest.start = first->lsn;
  return manifest;
}

Result<SegmentsEnd> EndOfSegments(Env* env, const std::string& directory,
                                  const wal::Manifest& manifest, Lsn from) {
  const wal::ReadOptions options{.from = from, .all_types = true};
  GEARDB_ASSIGN_OR_RETURN(const auto reader,
                          wal::LogReader::Open(env, directory, manifest, options));
  SegmentsEnd end;
  while (true) {
    GEARDB_ASSIGN_OR_RETURN(const auto record, reader->Next());
    if (!record.has_value()) break;
    end.synced = std::max(end.synced, record->header.synced_lsn);
  }
  end.lsn = reader->report().segments_end_lsn;
  end.ring_has_more = reader->report().ring_records > 0;
  return end;
}

Result<Lsn> EndOfDamagedLog(Env* env, const std::string& directory, const wal::Manifest& manifest,
                            Lsn from) {
  const wal::ReadOptions options{.from = from, .allow_damaged_prefix = true};
  const auto reader = wal::LogReader::Open(env, directory, manifest, options);
  if (!reader.ok()) return Lsn{0};
  while (true) {
    GEARDB_ASSIGN_OR_RETURN(const auto record, (*reader)->Next());
    if (!record.has_value()) return (*reader)->report().end_lsn;
  }
}

}  // namespace geardb::cli
