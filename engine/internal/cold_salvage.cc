#include "engine/internal/cold_salvage.h"

#include <rocksdb/file_system.h>
#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/concatenate.h"
#include "engine/internal/cold_checksum.h"
#include "engine/internal/cold_page.h"
#include "engine/internal/cold_table_keys.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kRecordHeaderBytes = 32;
constexpr uint64_t kRecordChecksummedBytes = 24;
constexpr uint64_t kRecordHeadBytes = kRecordHeaderBytes + kColdPageKeyBytes;
/// Enough of a value for ReadColdPageHeader.
constexpr uint64_t kPageHeadBytes = 48;

struct RecordHeader {
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  uint64_t expiration = 0;
  uint32_t checksum = 0;
  uint32_t value_checksum = 0;
};
static_assert(sizeof(RecordHeader) == kRecordHeaderBytes);

/// Up to so many bytes of a file; nothing where it cannot be read.
std::string ReadSome(const rocksdb::FSRandomAccessFile& file, uint64_t offset, uint64_t bytes) {
  std::string scratch(bytes, '\0');
  rocksdb::Slice read;
  const rocksdb::IOStatus status =
      file.Read(offset, bytes, rocksdb::IOOptions(), &read, scratch.data(), nullptr);
  return status.ok() ? read.ToString() : std::string();
}

std::string PathOf(const ColdDb& db, const rocksdb::LiveFileMetaData& file) {
  return Concatenate(db.directory, "/", file.relative_filename);
}

/// All that there is of an SST file.
std::string ReadTable(const ColdDb& db, const rocksdb::LiveFileMetaData& file) {
  const std::string path = PathOf(db, file);
  uint64_t bytes = 0;
  std::unique_ptr<rocksdb::FSRandomAccessFile> opened;
  if (!db.tables->GetFileSize(path, rocksdb::IOOptions(), &bytes, nullptr).ok() ||
      !db.tables->NewRandomAccessFile(path, {}, &opened, nullptr).ok()) {
    return {};
  }
  return ReadSome(*opened, 0, bytes);
}

/// A record's header and key; nothing where they are bad, or no page's.
std::optional<std::pair<RecordHeader, std::string>> ReadRecord(std::string_view bytes) {
  if (bytes.size() < kRecordHeadBytes) return std::nullopt;
  RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (StoredChecksum(bytes.substr(0, kRecordChecksummedBytes)) != header.checksum ||
      header.key_bytes != kColdPageKeyBytes || header.value_bytes > kColdValueBytesMax) {
    return std::nullopt;
  }
  return std::pair(header, std::string(bytes.substr(kRecordHeaderBytes, kColdPageKeyBytes)));
}

}  // namespace

// ---- Which files are lost.

std::string RangeText(const rocksdb::LiveFileMetaData& file) {
  const auto first = DecodeColdPageKey(file.smallestkey);
  const auto last = DecodeColdPageKey(file.largestkey);
  if (first && last) return Concatenate(ColdKeyText(*first), " to ", ColdKeyText(*last));
  const auto first_chunk = DecodeColdChunkKey(file.smallestkey);
  const auto last_chunk = DecodeColdChunkKey(file.largestkey);
  if (first_chunk && last_chunk) {
    return Concatenate(ColdKeyText(*first_chunk), " to ", ColdKeyText(*last_chunk));
  }
  return "what the store says of itself, or whole tables";
}

std::string WhyLost(const ColdDb& store, const rocksdb::LiveFileMetaData& table, LostPages which) {
  const std::string path = Concatenate(store.directory, "/", table.relative_filename);
  uint64_t size = 0;
  if (!store.manifests->GetFileSize(path, rocksdb::IOOptions(), &size, nullptr).ok()) {
    return path + " is missing";
  }
  if (size != table.size) {
    return Concatenate(path, " has ", size, " bytes, expected ", table.size);
  }
  rocksdb::Options options;
  options.env = store.threads.get();
  rocksdb::SstFileReader reader(options);
  rocksdb::Status read = reader.Open(path);
  if (read.ok() && which == LostPages::kDamaged) read = reader.VerifyChecksum();
  return read.IsCorruption() ? Concatenate(path, " cannot be read: ", read.ToString()) : "";
}

std::vector<rocksdb::LiveFileMetaData> FilesOfPages(const ColdDb& store, const ColdPageKey* key) {
  const std::string bytes = key == nullptr ? "" : EncodeColdKey(*key);
  std::vector<rocksdb::LiveFileMetaData> tables;
  store.db->GetLiveFilesMetaData(&tables);
  std::erase_if(tables, [&](const rocksdb::LiveFileMetaData& table) {
    return table.column_family_name != store.pages->GetName() ||
           (key != nullptr && (bytes < table.smallestkey || table.largestkey < bytes));
  });
  return tables;
}

std::vector<LostFile> FindLostPages(const ColdDb& store, LostPages which, const ColdPageKey* key,
                                    std::set<uint64_t>* looked) {
  std::vector<LostFile> lost;
  for (const rocksdb::LiveFileMetaData& table : FilesOfPages(store, key)) {
    if (looked != nullptr && !looked->insert(table.file_number).second) continue;
    const std::string why = WhyLost(store, table, which);
    if (why.empty()) continue;
    lost.push_back({.file = table, .why = Concatenate(why, ", with ", RangeText(table))});
  }
  if (lost.empty()) return lost;
  // A compaction has removed some since they were named.
  std::set<uint64_t> live;
  for (const rocksdb::LiveFileMetaData& table : FilesOfPages(store, key)) {
    live.insert(table.file_number);
  }
  std::erase_if(lost, [&](const LostFile& file) { return !live.contains(file.file.file_number); });
  return lost;
}

// ---- What is found of them.

std::set<std::string> GoodKeysOf(const ColdDb& db, const LostFile& file) {
  std::set<std::string> keys;
  const std::string bytes = ReadTable(db, file.file);
  KeyBlocks blocks(bytes);
  while (const auto block = blocks.Next()) {
    for (const TableEntry& entry : block->entries) {
      if (TypeOfKey(entry.key) == TableKeyType::kDeletion) continue;
      keys.emplace(UserKeyOf(entry.key));
    }
  }
  return keys;
}

void ColdSalvage::LookInto(const LostFile& file) {
  const std::string path = PathOf(*db_, file.file);
  KeySpan bad{.first = file.file.smallestkey, .last = file.file.largestkey};
  uint64_t end = 0;
  bool some_bad = false;
  const std::string bytes = ReadTable(*db_, file.file);
  const bool whole = bytes.size() == file.file.size;
  files_.insert_or_assign(file.file.file_number, whole);
  if (!whole) spans_.push_back(bad);  // RocksDB reads nothing of it.
  KeyBlocks blocks(bytes);
  while (const auto block = blocks.Next()) {
    if (block->place.offset > end) {
      bad.last = UserKeyOf(block->entries.front().key);
      spans_.push_back(bad);
      some_bad = true;
    }
    bad.first = UserKeyOf(block->entries.back().key);
    end = block->place.end();
    NoteValues(path, *block);
  }
  bad.last = file.file.largestkey;
  // Of a file with good blocks alone, bad is what leads to them.
  if (!some_bad && bad.first >= bad.last) bad.first = file.file.smallestkey;
  if (bad.first < bad.last || !some_bad) spans_.push_back(bad);
}

void ColdSalvage::Note(const ColdPageKey& key, std::string_view value, const ValuePlace& place) {
  const auto page = ReadColdPageHeader(value);
  if (page.ok() && page->lsn != kNoLsn) found_[key].insert_or_assign(page->lsn, place);
}

void ColdSalvage::NoteValues(const std::string& path, const TableBlock& block) {
  for (const TableEntry& entry : block.entries) {
    const auto page = DecodeColdPageKey(UserKeyOf(entry.key));
    if (!page || TypeOfKey(entry.key) != TableKeyType::kValue) continue;
    Note(*page, entry.value, {path, block.place.offset, block.place.bytes, /*in_block=*/true});
  }
}

bool ColdSalvage::LookBeside(const rocksdb::LiveFileMetaData& file) {
  MutexLock lock(&mutex_);
  if (const auto looked = files_.find(file.file_number); looked != files_.end()) {
    return looked->second;
  }
  if (beside_.contains(file.file_number)) return true;
  const std::string bytes = ReadTable(*db_, file);
  if (bytes.size() != file.size) return false;
  beside_.insert(file.file_number);
  const std::string path = PathOf(*db_, file);
  KeyBlocks blocks(bytes);
  while (const auto block = blocks.Next()) NoteValues(path, *block);
  return true;
}

bool ColdSalvage::IsLookedFor(const std::string& key) const {
  return std::ranges::any_of(
      spans_, [&](const KeySpan& span) { return span.first <= key && key <= span.last; });
}

void ColdSalvage::LookFor(std::span<const LostFile> files) {
  MutexLock lock(&mutex_);
  bool more = false;
  for (const LostFile& lost : files) {
    if (files_.contains(lost.file.file_number)) continue;
    db_->listener->AddDamage(lost.why);
    LookInto(lost);
    more = true;
  }
  if (!more) return;
  for (const BlobFile& file : LiveBlobFiles(*db_)) {
    if (file.family == db_->pages->GetID()) LookInto(file);
  }
}

void ColdSalvage::LookInto(const BlobFile& file) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> opened;
  if (!db_->blobs->NewRandomAccessFile(file.path, {}, &opened, nullptr).ok()) return;
  for (uint64_t at = kBlobHeaderBytes;;) {
    const std::string bytes = ReadSome(*opened, at, kRecordHeadBytes + kPageHeadBytes);
    const auto record = ReadRecord(bytes);
    if (!record) return;  // The end, or nothing says where the next one is.
    const auto& [header, key] = *record;
    const uint64_t value_at = at + kRecordHeadBytes;
    at = value_at + header.value_bytes;
    if (!IsLookedFor(key)) continue;
    Note(*DecodeColdPageKey(key), std::string_view(bytes).substr(kRecordHeadBytes),
         {file.path, value_at, header.value_bytes, /*in_block=*/false});
  }
}

std::optional<std::string> ColdSalvage::ReadBlobValue(const ValuePlace& place) const {
  std::unique_ptr<rocksdb::FSRandomAccessFile> opened;
  if (!db_->blobs->NewRandomAccessFile(place.path, {}, &opened, nullptr).ok()) return std::nullopt;
  const std::string record =
      ReadSome(*opened, place.offset - kRecordHeadBytes, kRecordHeadBytes + place.bytes);
  const auto head = ReadRecord(record);
  if (!head || record.size() != kRecordHeadBytes + place.bytes ||
      head->first.value_checksum !=
          StoredChecksum(std::string_view(record).substr(kRecordHeaderBytes))) {
    return std::nullopt;
  }
  return record.substr(kRecordHeadBytes);
}

std::optional<std::string> ColdSalvage::ReadValue(const ColdPageKey& key,
                                                  const ValuePlace& place) const {
  if (!place.in_block) return ReadBlobValue(place);
  std::unique_ptr<rocksdb::FSRandomAccessFile> opened;
  if (!db_->tables->NewRandomAccessFile(place.path, {}, &opened, nullptr).ok()) return std::nullopt;
  const std::string bytes = ReadSome(*opened, place.offset, place.bytes + kTableTrailerBytes);
  const auto block = ReadTableBlock(bytes, 0, kEntriesPerRestart);
  if (!block) return std::nullopt;
  const std::string wanted = EncodeColdKey(key);
  for (const TableEntry& entry : block->entries) {
    // The newest comes first.
    if (UserKeyOf(entry.key) != wanted || TypeOfKey(entry.key) != TableKeyType::kValue) continue;
    return std::string(entry.value);
  }
  return std::nullopt;
}

std::optional<std::string> ColdSalvage::Find(const ColdPageKey& key, Lsn lsn) const {
  MutexLock lock(&mutex_);
  const auto page = found_.find(key);
  if (page == found_.end()) return std::nullopt;
  const auto version = page->second.lower_bound(lsn);
  return version == page->second.end() ? std::nullopt : ReadValue(key, version->second);
}

std::optional<std::string> ColdSalvage::FindNewest(const ColdPageKey& key) const {
  MutexLock lock(&mutex_);
  const auto page = found_.find(key);
  return page == found_.end() ? std::nullopt : ReadValue(key, page->second.rbegin()->second);
}

std::vector<ColdPageKey> ColdSalvage::keys() const {
  MutexLock lock(&mutex_);
  std::vector<ColdPageKey> keys;
  for (const auto& [key, versions] : found_) keys.push_back(key);
  return keys;
}

}  // namespace geardb::engine
