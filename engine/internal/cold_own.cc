#include "engine/internal/cold_own.h"

#include <rocksdb/write_batch.h>

#include <cstring>
#include <span>

#include "base/concatenate.h"
#include "base/hash.h"
#include "engine/internal/cold_db.h"

namespace geardb::engine {
namespace {

/// Where formats 1 and 2 had theirs: in the default family, which is empty since.
constexpr std::string_view kFormatKeyBefore = "format";

struct Head {
  uint32_t format;
  uint32_t removals;
  uint64_t lsn;
  uint64_t batch;
};
struct RemovalHead {
  uint32_t of_chunks;
  uint32_t begin_bytes;
  uint32_t end_bytes;
};

template <typename Part>
void Append(const Part& part, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&part), sizeof(part));
}

/// False where there are not as many bytes left.
template <typename Part>
bool Take(std::string_view* bytes, Part* part) {
  if (bytes->size() < sizeof(*part)) return false;
  std::memcpy(part, bytes->data(), sizeof(*part));
  bytes->remove_prefix(sizeof(*part));
  return true;
}

uint64_t ChecksumOf(std::string_view bytes) { return Hash64(std::as_bytes(std::span(bytes)), 0); }

}  // namespace

std::string EncodeColdOwn(const ColdOwn& own) {
  std::string body;
  Append(Head{own.format, static_cast<uint32_t>(own.removals.size()), own.position.lsn,
              own.position.batch},
         &body);
  for (const ColdRemoval& removal : own.removals) {
    const ColdKeyRange& keys = removal.keys;
    Append(RemovalHead{removal.of_chunks ? 1u : 0u, static_cast<uint32_t>(keys.begin.size()),
                       static_cast<uint32_t>(keys.end.size())},
           &body);
    body += keys.begin + keys.end;
  }
  std::string bytes;
  Append(ChecksumOf(body), &bytes);
  return bytes + body;
}

Result<ColdOwn> DecodeColdOwn(std::string_view bytes) {
  uint64_t checksum = 0;
  Head head = {};
  std::string_view body = bytes;
  if (!Take(&body, &checksum) || checksum != ChecksumOf(body)) {
    return Status::Corruption("the store's own keys, ", bytes.size(), " bytes, are damaged");
  }
  if (body.size() >= sizeof(head.format)) {
    std::memcpy(&head.format, body.data(), sizeof(head.format));
    if (head.format != kColdFormat && head.format != kColdFormatWithoutLsns) {
      return Status::Unsupported("the cold store has format ", head.format, ", known is ",
                                 kColdFormat);
    }
  }
  ColdOwn own;
  bool fits = Take(&body, &head);
  for (uint32_t i = 0; fits && i < head.removals; ++i) {
    RemovalHead removal = {};
    fits = Take(&body, &removal) && body.size() >= removal.begin_bytes &&
           body.size() - removal.begin_bytes >= removal.end_bytes;
    if (!fits) break;
    own.removals.push_back(
        {.of_chunks = removal.of_chunks != 0,
         .keys = {std::string(body.substr(0, removal.begin_bytes)),
                  std::string(body.substr(removal.begin_bytes, removal.end_bytes))}});
    body.remove_prefix(size_t{removal.begin_bytes} + removal.end_bytes);
  }
  if (!fits || !body.empty()) {
    return Status::Corruption("the store's own keys make no sense: ", head.removals, " ranges in ",
                              bytes.size(), " bytes");
  }
  own.position = {head.lsn, head.batch};
  own.format = head.format;
  return own;
}

Result<ColdOwn> ReadColdOwn(rocksdb::DB* db,
                            const std::array<rocksdb::ColumnFamilyHandle*, kChunkCopies>& copies,
                            const rocksdb::ReadOptions& options, ColdListener* listener) {
  Result<ColdOwn> newest = Status::NotFound("the store says nothing of itself yet");
  Status failures[kChunkCopies];
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    if (copies[copy] == nullptr) continue;
    rocksdb::PinnableSlice value;
    const rocksdb::Status read = db->Get(options, copies[copy], SliceOf(kColdOwnKey), &value);
    if (read.IsNotFound()) continue;
    Result<ColdOwn> own = read.ok() ? DecodeColdOwn(ViewOf(value))
                                    : Result<ColdOwn>(FromRocks(read, "the store's own keys"));
    if (own.status().code() == StatusCode::kUnsupported) return own;
    failures[copy] = own.status();
    const bool newer = own.ok() && (!newest.ok() || own->position.batch > newest->position.batch);
    if (newer) newest = std::move(own);
  }
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    if (failures[copy].ok()) continue;
    if (!newest.ok()) return failures[copy];
    if (failures[copy].code() != StatusCode::kCorruption) continue;
    listener->worn.NoteFamily(kChunkFamilies[copy]);
    listener->AddDamage(Concatenate("of the cold store's own keys the ",
                                    copy == 0 ? "second" : "first",
                                    " copy was taken: ", failures[copy].message()));
  }
  return newest;
}

Result<ColdOwn> ReadColdOwn(const ColdDb& db) {
  auto own = ReadColdOwn(db.db.get(), db.chunks, rocksdb::ReadOptions(), db.listener.get());
  if (own.status().code() != StatusCode::kNotFound) return own;
  std::string before;
  const rocksdb::Status read =
      db.db->Get(rocksdb::ReadOptions(), db.empty, SliceOf(kFormatKeyBefore), &before);
  if (read.IsNotFound()) return own;
  GEARDB_RETURN_IF_ERROR(FromRocks(read, "the format of an older store"));
  uint32_t format = 0;
  std::memcpy(&format, before.data(), std::min(sizeof(format), before.size()));
  return Status::Unsupported("the cold store has format ", format, ", known is ", kColdFormat);
}

rocksdb::Status PutColdOwn(const ColdDb& db, const ColdOwn& own, rocksdb::WriteBatch* batch) {
  ColdOwn in_format = own;
  in_format.format = db.format;
  const std::string bytes = EncodeColdOwn(in_format);
  rocksdb::Status status;
  for (rocksdb::ColumnFamilyHandle* const family : db.chunks) {
    if (status.ok()) status = batch->Put(family, SliceOf(kColdOwnKey), bytes);
  }
  return status;
}

}  // namespace geardb::engine
