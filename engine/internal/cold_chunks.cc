#include "engine/internal/cold_chunks.h"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/concatenate.h"
#include "base/hash.h"
#include "engine/internal/cold_db.h"

namespace geardb::engine {
namespace {

constexpr size_t kChunkHeaderBytes = 16;
/// What is copied at once.
constexpr size_t kCopyBytes = size_t{4} << 20;

uint64_t ChunkChecksum(const ColdChunkKey& key, uint64_t lsn, std::span<const std::byte> bytes) {
  const std::string key_bytes = EncodeColdKey(key);
  Hasher64 hasher(lsn);
  hasher.Add(std::as_bytes(std::span(key_bytes)));
  hasher.Add(bytes);
  return hasher.Finish();
}

std::string CopyText(size_t copy) { return copy == 0 ? "the first copy" : "the second copy"; }

rocksdb::ReadOptions ReadingAll() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  return options;
}

/// Calls `visit` for every key of the family with its value, the mark left out; the first error,
/// also of a value that is no chunk, nor what the store says of itself.
Status ReadFamily(
    const ColdDb& db, size_t copy,
    const std::function<Status(const rocksdb::Slice&, const rocksdb::Slice&)>& visit) {
  rocksdb::ColumnFamilyHandle* const family = db.chunks[copy];
  if (family == nullptr) return Status::NotFound(CopyText(copy), " of the index chunks");
  std::unique_ptr<rocksdb::Iterator> values(db.db->NewIterator(ReadingAll(), family));
  for (values->SeekToFirst(); values->Valid(); values->Next()) {
    if (ViewOf(values->key()) == kWholeMark) continue;
    if (ViewOf(values->key()) == kColdOwnKey) {
      GEARDB_RETURN_IF_ERROR(DecodeColdOwn(ViewOf(values->value())).status());
      GEARDB_RETURN_IF_ERROR(visit(values->key(), values->value()));
      continue;
    }
    const auto key = DecodeColdChunkKey(ViewOf(values->key()));
    if (!key) return Status::Corruption("a key in ", db.directory, " is no chunk's");
    GEARDB_RETURN_IF_ERROR(DecodeColdChunk(*key, ViewOf(values->value())).status());
    GEARDB_RETURN_IF_ERROR(visit(values->key(), values->value()));
  }
  return FromRocks(values->status(), db.directory);
}

/// But for what the store says of itself, which an open writes before anything else.
bool IsEmpty(const ColdDb& db, size_t copy) {
  std::unique_ptr<rocksdb::Iterator> keys(db.db->NewIterator(ReadingAll(), db.chunks[copy]));
  keys->SeekToFirst();
  if (keys->Valid() && ViewOf(keys->key()) == kColdOwnKey) keys->Next();
  return !keys->Valid() && keys->status().ok();
}

}  // namespace

// ---- What was noted.

void WornCopies::Note(size_t copy, const std::string& key) {
  MutexLock lock(&mutex_);
  found_.keys[copy].insert(key);
}

void WornCopies::NoteFamily(std::string_view name) {
  MutexLock lock(&mutex_);
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    if (name == kChunkFamilies[copy]) found_.family[copy] = true;
  }
}

WornCopies::Found WornCopies::Take() {
  MutexLock lock(&mutex_);
  return std::exchange(found_, Found{});
}

void WornCopies::GiveBack(const Found& found) {
  MutexLock lock(&mutex_);
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    found_.keys[copy].insert(found.keys[copy].begin(), found.keys[copy].end());
    found_.family[copy] = found_.family[copy] || found.family[copy];
  }
}

// ---- Values.

Status EncodeColdChunk(const ColdChunkKey& key, uint64_t lsn, std::span<const std::byte> bytes,
                       std::string* value) {
  if (bytes.size() > kColdValueBytesMax - kChunkHeaderBytes) {
    return Status::InvalidArgument(ColdKeyText(key), ": ", bytes.size(), " bytes, at most ",
                                   kColdValueBytesMax - kChunkHeaderBytes, " can be stored");
  }
  const uint64_t header[2] = {lsn, ChunkChecksum(key, lsn, bytes)};
  value->assign(reinterpret_cast<const char*>(header), kChunkHeaderBytes);
  if (!bytes.empty()) value->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Status::Ok();
}

Result<ColdChunk> DecodeColdChunk(const ColdChunkKey& key, std::string_view value) {
  uint64_t header[2] = {};
  if (value.size() < kChunkHeaderBytes) {
    return Status::Corruption(ColdKeyText(key), ": ", value.size(), " bytes are no chunk");
  }
  std::memcpy(header, value.data(), kChunkHeaderBytes);
  value.remove_prefix(kChunkHeaderBytes);
  const uint64_t found =
      ChunkChecksum(key, header[0], std::as_bytes(std::span(value.data(), value.size())));
  if (found != header[1]) {
    return Status::Corruption(ColdKeyText(key), ": the checksum is ", found, ", expected ",
                              header[1]);
  }
  return ColdChunk{header[0], std::string(value)};
}

// ---- Reading.

Status FindMark(const ColdDb& db, size_t copy) {
  if (db.chunks[copy] == nullptr) return Status::NotFound("no such copy");
  std::string value;
  return FromRocks(db.db->Get(rocksdb::ReadOptions(), db.chunks[copy], SliceOf(kWholeMark), &value),
                   db.directory);
}

Result<ColdChunk> ReadChunkCopy(const ColdDb& db, const ColdChunkKey& key, size_t copy) {
  rocksdb::ColumnFamilyHandle* const family = db.chunks[copy];
  rocksdb::PinnableSlice value;
  const rocksdb::Status read =
      family == nullptr ? rocksdb::Status::NotFound()
                        : db.db->Get(rocksdb::ReadOptions(), family, EncodeColdKey(key), &value);
  if (read.IsNotFound()) return Status::NotFound("no ", ColdKeyText(key), " in the cold store");
  GEARDB_RETURN_IF_ERROR(FromRocks(read, ColdKeyText(key)));
  return DecodeColdChunk(key, ViewOf(value));
}

Result<ColdChunk> ReadEitherCopy(const ColdDb& db, const ColdChunkKey& key) {
  Result<ColdChunk> first = ReadChunkCopy(db, key, 0);
  if (first.ok()) return first;
  Result<ColdChunk> second = ReadChunkCopy(db, key, 1);
  const bool absent = first.status().code() == StatusCode::kNotFound;
  if (second.ok()) {
    // Where it is not there, its family is being made anew.
    if (absent) return second;
    db.listener->worn.Note(0, EncodeColdKey(key));
    db.listener->AddDamage(
        Concatenate("the second copy of an index chunk was taken, since the "
                    "first is damaged: ",
                    first.status().message()));
    return second;
  }
  // A family with all chunks knows that it has not this one.
  if (second.status().code() == StatusCode::kNotFound) return FindMark(db, 1).ok() ? second : first;
  if (absent) return FindMark(db, 0).ok() ? first : second;
  // Files that were cut short may have one of them all the same.
  for (const BrokenBlob& blob : FindBrokenBlobs(db)) {
    db.blobs->Show(blob);
    db.listener->AddDamage(blob.why);
  }
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    Result<ColdChunk> left = ReadChunkCopy(db, key, copy);
    if (left.ok()) return left;
  }
  return Status(
      first.status().code(),
      Concatenate(first.status().message(), "; and its second copy: ", second.status().message()));
}

namespace {

/// Goes through the keys of one copy.
class KeysOfCopy {
 public:
  KeysOfCopy(const ColdDb& db, size_t copy) : db_(db) {
    rocksdb::ColumnFamilyHandle* const family = db.chunks[copy];
    if (family != nullptr) keys_.reset(db.db->NewIterator(ReadingAll(), family));
  }
  /// To the first key from this one on; also after damage was met.
  void Seek(const std::string& from) {
    if (keys_ != nullptr) keys_->Seek(from);
  }
  bool valid() const { return keys_ != nullptr && keys_->Valid(); }
  std::string key() const { return keys_->key().ToString(); }
  /// NotFound where the family is not there.
  Status status() const {
    if (keys_ == nullptr) return Status::NotFound("no such copy");
    return FromRocks(keys_->status(), db_.directory);
  }

 private:
  const ColdDb& db_;
  std::unique_ptr<rocksdb::Iterator> keys_;
};

}  // namespace

Status ForEachChunkKey(const ColdDb& db, const ColdChunkKey& first,
                       const std::function<Result<bool>(const ColdChunkKey&)>& visit) {
  KeysOfCopy copies[kChunkCopies] = {{db, 0}, {db, 1}};
  std::string from = EncodeColdKey(first);
  for (;;) {
    std::string next;
    for (KeysOfCopy& copy : copies) {
      copy.Seek(from);
      if (copy.valid() && (next.empty() || copy.key() < next)) next = copy.key();
    }
    if (next.empty()) {
      const Status ended[kChunkCopies] = {copies[0].status(), copies[1].status()};
      if (ended[0].ok() || ended[1].ok()) return Status::Ok();
      return ended[0].code() == StatusCode::kNotFound ? ended[1] : ended[0];
    }
    const auto key = DecodeColdChunkKey(next);
    if (!key) return Status::Corruption("a key in ", db.directory, " is no chunk's");
    GEARDB_ASSIGN_OR_RETURN(const bool more, visit(*key));
    if (!more) return Status::Ok();
    from = next + '\0';
  }
}

Status CheckFamily(const ColdDb& db, size_t copy) {
  return ReadFamily(db, copy, [](const auto&, const auto&) { return Status::Ok(); });
}

// ---- Mending.

namespace {

/// Which family has lost its mark by what is written again: none whose other one has none.
enum class Unmark { kNone, kWorn };

Status WriteAgain(ColdDb* db, const WornCopies::Found& worn, Unmark unmark) {
  rocksdb::WriteBatch batch;
  bool unmarked = false;
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    for (const std::string& key : worn.keys[copy]) {
      const auto name = DecodeColdChunkKey(key);
      GEARDB_CHECK(name);
      const auto good = ReadChunkCopy(*db, *name, 1 - copy);
      if (!good.ok()) continue;  // It has left since, or both copies are bad.
      std::string value;
      GEARDB_RETURN_IF_ERROR(
          EncodeColdChunk(*name, good->lsn, std::as_bytes(std::span(good->bytes)), &value));
      GEARDB_RETURN_IF_ERROR(FromRocks(batch.Put(db->chunks[copy], key, value), db->directory));
    }
    if (unmark == Unmark::kNone || unmarked || !worn.any(copy)) continue;
    unmarked = FindMark(*db, 1 - copy).ok();
    if (!unmarked) continue;
    GEARDB_RETURN_IF_ERROR(
        FromRocks(batch.Delete(db->chunks[copy], SliceOf(kWholeMark)), db->directory));
  }
  return db->Write(&batch);
}

}  // namespace

Status WriteWornAgain(ColdDb* db) {
  const WornCopies::Found worn = db->listener->worn.Take();
  if (!worn.any()) return Status::Ok();
  const Status written = WriteAgain(db, worn, Unmark::kWorn);
  if (!written.ok()) db->listener->worn.GiveBack(worn);
  return written;
}

namespace {

/// A family without anything in its place.
Status MakeFamilyAnew(ColdDb* db, size_t copy) {
  rocksdb::ColumnFamilyHandle*& family = db->chunks[copy];
  rocksdb::ColumnFamilyDescriptor described;
  GEARDB_RETURN_IF_ERROR(FromRocks(family->GetDescriptor(&described), db->directory));
  auto others = db->chunks;
  others[copy] = nullptr;
  db->listener->Watch(others);
  GEARDB_RETURN_IF_ERROR(FromRocks(db->db->DropColumnFamily(family), db->directory));
  GEARDB_RETURN_IF_ERROR(FromRocks(db->db->DestroyColumnFamilyHandle(family), db->directory));
  family = nullptr;
  const rocksdb::Status made =
      db->db->CreateColumnFamily(described.options, described.name, &family);
  db->listener->Watch(db->chunks);
  return FromRocks(made, db->directory);
}

/// Everything of the other copy, which is whole; marks behind it.
Status CopyFrom(ColdDb* db, size_t source) {
  const size_t target = 1 - source;
  rocksdb::WriteBatch batch;
  bool any = false;
  const Status copied = ReadFamily(*db, source, [&](const auto& key, const auto& value) {
    any = any || ViewOf(key) != kColdOwnKey;
    GEARDB_RETURN_IF_ERROR(FromRocks(batch.Put(db->chunks[target], key, value), db->directory));
    if (batch.GetDataSize() < kCopyBytes) return Status::Ok();
    GEARDB_RETURN_IF_ERROR(db->Write(&batch));
    batch.Clear();
    return Status::Ok();
  });
  GEARDB_RETURN_IF_ERROR(copied);
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    GEARDB_RETURN_IF_ERROR(
        FromRocks(batch.Put(db->chunks[copy], SliceOf(kWholeMark), {}), db->directory));
  }
  GEARDB_RETURN_IF_ERROR(db->Write(&batch));
  if (!any) return Status::Ok();
  return db->FlushWhole();
}

Result<std::vector<ColdChunkKey>> ChunkKeys(const ColdDb& db) {
  std::vector<ColdChunkKey> keys;
  GEARDB_RETURN_IF_ERROR(ForEachChunkKey(db, {}, [&](const ColdChunkKey& key) -> Result<bool> {
    keys.push_back(key);
    return true;
  }));
  return keys;
}

/// All chunks that one copy has into the other, which is empty, chunk by chunk: files of `source`
/// may hold bad blocks, over what was written again.
Status CopyEachFrom(ColdDb* db, size_t source) {
  rocksdb::ColumnFamilyHandle*& target = db->chunks[1 - source];  // Another one, once made anew.
  rocksdb::WriteBatch batch;
  const auto write = [&] {
    const Status written = db->Write(&batch);
    batch.Clear();
    return written;
  };
  const auto copy = [&](const ColdChunkKey& key) -> Status {
    GEARDB_ASSIGN_OR_RETURN(const ColdChunk chunk, ReadChunkCopy(*db, key, source));
    std::string value;
    GEARDB_RETURN_IF_ERROR(
        EncodeColdChunk(key, chunk.lsn, std::as_bytes(std::span(chunk.bytes)), &value));
    GEARDB_RETURN_IF_ERROR(FromRocks(batch.Put(target, EncodeColdKey(key), value), db->directory));
    return batch.GetDataSize() < kCopyBytes ? Status::Ok() : write();
  };
  GEARDB_ASSIGN_OR_RETURN(const std::vector<ColdChunkKey> keys, ChunkKeys(*db));
  GEARDB_ASSIGN_OR_RETURN(const ColdOwn own, ReadColdOwn(*db));
  GEARDB_RETURN_IF_ERROR(MakeFamilyAnew(db, 1 - source));
  for (const ColdChunkKey& key : keys) GEARDB_RETURN_IF_ERROR(copy(key));
  GEARDB_RETURN_IF_ERROR(FromRocks(PutColdOwn(*db, own, &batch), db->directory));
  GEARDB_RETURN_IF_ERROR(FromRocks(batch.Put(target, SliceOf(kWholeMark), {}), db->directory));
  GEARDB_RETURN_IF_ERROR(write());
  return db->FlushWhole();
}

/// Neither family is whole: what one has and the other has not is written there. Where one has all
/// then, none of the damaged files stays.
Status MendEach(ColdDb* db) {
  std::array<bool, kChunkCopies> has_all = {true, true};
  const Status ended = ForEachChunkKey(*db, {}, [&](const ColdChunkKey& key) -> Result<bool> {
    WornCopies::Found worn;
    for (size_t copy = 0; copy < kChunkCopies; ++copy) {
      if (!ReadChunkCopy(*db, key, copy).ok()) worn.keys[copy].insert(EncodeColdKey(key));
    }
    if (worn.any()) GEARDB_RETURN_IF_ERROR(WriteAgain(db, worn, Unmark::kNone));
    for (size_t copy = 0; copy < kChunkCopies; ++copy) {
      has_all[copy] = has_all[copy] && ReadChunkCopy(*db, key, copy).ok();
    }
    return true;
  });
  if (ended.code() == StatusCode::kCorruption) {
    db->listener->AddDamage(
        Concatenate("both copies of index chunks are damaged: ", ended.message()));
    return Status::Ok();
  }
  GEARDB_RETURN_IF_ERROR(ended);
  const bool damaged = CheckFamily(*db, 0).code() == StatusCode::kCorruption &&
                       CheckFamily(*db, 1).code() == StatusCode::kCorruption;
  if (!damaged || (!has_all[0] && !has_all[1])) return Status::Ok();
  // A flush first: what was written again would go with the family that leaves.
  GEARDB_RETURN_IF_ERROR(db->FlushWhole());
  const size_t source = has_all[0] ? 0 : 1;
  GEARDB_RETURN_IF_ERROR(CopyEachFrom(db, source));
  GEARDB_RETURN_IF_ERROR(MakeFamilyAnew(db, source));
  return CopyFrom(db, 1 - source);
}

}  // namespace

Status KeepTwice(ColdDb* db) {
  const WornCopies::Found worn = db->listener->worn.Take();
  const Status marks[kChunkCopies] = {FindMark(*db, 0), FindMark(*db, 1)};
  const bool good[kChunkCopies] = {marks[0].ok() && !worn.any(0), marks[1].ok() && !worn.any(1)};
  if (good[0] && good[1]) return Status::Ok();
  size_t source = good[1] ? 1 : 0;
  if (!good[0] && !good[1]) {
    // Without any mark it is a new store, or one that died before it had them.
    const bool unmarked =
        marks[0].code() == StatusCode::kNotFound && marks[1].code() == StatusCode::kNotFound;
    if (worn.any() || !unmarked) return MendEach(db);
    if (IsEmpty(*db, 0)) source = 1;
  }
  const Status whole = CheckFamily(*db, source);
  if (whole.code() == StatusCode::kCorruption || whole.code() == StatusCode::kIoError) {
    return MendEach(db);
  }
  GEARDB_RETURN_IF_ERROR(whole);
  if (!IsEmpty(*db, 1 - source)) GEARDB_RETURN_IF_ERROR(MakeFamilyAnew(db, 1 - source));
  return CopyFrom(db, source);
}

size_t DamagedCopy(const ColdDb& db) {
  const bool whole[kChunkCopies] = {CheckFamily(db, 0).ok(), CheckFamily(db, 1).ok()};
  if (whole[0] == whole[1]) return kChunkCopies;
  const size_t damaged = whole[0] ? 1 : 0;
  const bool there = db.chunks[damaged] != nullptr;
  return there && FindMark(db, 1 - damaged).ok() ? damaged : kChunkCopies;
}

}  // namespace geardb::engine
