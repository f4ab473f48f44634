#include "engine/internal/cold_tables.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/bad_sectors.h"
#include "base/concatenate.h"
#include "engine/internal/cold_db.h"
#include "engine/internal/cold_table_block.h"
#include "engine/internal/cold_table_keys.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kEndBytes = 53;
constexpr uint64_t kPlacesEnd = 41;
constexpr uint8_t kXxh3 = 4;
constexpr uint32_t kVersion = 5;
constexpr uint64_t kMagic = 0x88e241b785f4cff7;

constexpr std::string_view kPropertiesName = "rocksdb.properties";
constexpr std::string_view kRangeDeletionsName = "rocksdb.range_del";
constexpr std::string_view kDataBytes = "rocksdb.data.size";
constexpr std::string_view kEntries = "rocksdb.num.entries";
constexpr std::string_view kRangeDeletions = "rocksdb.num.range-deletions";
// How the index is written: with whole keys, and whole places.
constexpr std::string_view kUserKeys = "rocksdb.index.key.is.user.key";
constexpr std::string_view kDeltas = "rocksdb.index.value.is.delta.encoded";

constexpr uint8_t kGap = 7;  // RocksDB's for something that the store does not use.

template <typename Number>
void AppendNumber(Number number, std::string* to) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// What every file ends with.
std::string VersionAndMagic() {
  std::string bytes;
  AppendNumber(kVersion, &bytes);
  AppendNumber(kMagic, &bytes);
  return bytes;
}

bool IsOfRangeDeletions(const TableBlock& block) {
  return std::ranges::all_of(block.entries, [](const TableEntry& entry) {
    return TypeOfKey(entry.key) == TableKeyType::kRangeDeletion;
  });
}

bool IsOfProperties(const TableBlock& block) {
  return std::ranges::any_of(block.entries,
                             [](const TableEntry& entry) { return entry.key == kDataBytes; });
}

/// The first block from `from` on that is such a one.
std::optional<TableBlock> FindBlock(std::string_view file, uint64_t from,
                                    uint64_t entries_per_restart,
                                    const std::function<bool(const TableBlock&)>& is_it) {
  for (uint64_t at = from; at < file.size(); ++at) {
    auto block = ReadTableBlock(file, at, entries_per_restart);
    if (block && is_it(*block)) return block;
  }
  return std::nullopt;
}

/// Leads to the blocks of keys, and to what lies between them.
class IndexMaker {
 public:
  explicit IndexMaker(std::string_view file) : file_(file) {}

  /// Finds all of them.
  void Find() {
    KeyBlocks blocks(file_);
    while (const auto block = blocks.Next()) {
      // In fewer bytes no block lies.
      if (block->place.offset > end_ + kTableTrailerBytes) {
        // Of this key none comes before: all that is searched for there lies behind.
        std::string first(UserKeyOf(block->entries.front().key));
        AppendNumber(UINT64_MAX - UINT8_MAX + kGap, &first);
        AddPlace(first, {end_, block->place.offset - end_ - kTableTrailerBytes});
      }
      AddPlace(block->entries.back().key, block->place);
      entries_ += block->entries.size();
      end_ = block->place.end();
    }
  }
  /// Blocks of keys end there, though none was found behind end().
  void EndAt(uint64_t end) {
    if (end < end_ + kTableTrailerBytes) return;
    std::string last(64, '\xff');
    AppendNumber(uint64_t{kGap}, &last);
    AddPlace(last, {end_, end - end_ - kTableTrailerBytes});
    end_ = end;
  }

  uint64_t end() const { return end_; }
  uint64_t entries() const { return entries_; }
  std::string Finish() && { return std::move(index_).Finish(); }

 private:
  void AddPlace(std::string_view key, const TablePlace& place) {
    std::string value;
    AppendPlace(place, &value);
    index_.Add(key, value);
  }

  const std::string_view file_;
  TableBlockWriter index_{kEntriesPerRestart};
  uint64_t end_ = 0;
  uint64_t entries_ = 0;
};

std::string Varint(uint64_t number) {
  std::string bytes;
  AppendVarint(number, &bytes);
  return bytes;
}

using Properties = std::map<std::string, std::string, std::less<>>;

std::optional<uint64_t> NumberIn(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  if (found == properties.end()) return std::nullopt;
  std::string_view bytes = found->second;
  return TakeVarint(&bytes);
}

std::string BlockOf(const Properties& pairs, uint64_t entries_per_restart) {
  TableBlockWriter block(entries_per_restart);
  for (const auto& [key, value] : pairs) block.Add(key, value);
  return std::move(block).Finish();
}

/// Writes blocks one behind the other.
class TailWriter {
 public:
  explicit TailWriter(uint64_t from) : from_(from) {}

  TablePlace Add(std::string_view block) {
    const TablePlace place{from_ + bytes_.size(), block.size() - kTableTrailerBytes};
    bytes_ += block;
    return place;
  }
  /// Up to the end of the file; nothing where there is no room.
  std::optional<std::string> Finish(const TablePlace& meta, const TablePlace& index,
                                    uint64_t file_bytes) && {
    if (from_ + bytes_.size() + kEndBytes > file_bytes) return std::nullopt;
    bytes_.resize(file_bytes - from_ - kEndBytes, '\0');
    std::string end(1, static_cast<char>(kXxh3));
    AppendPlace(meta, &end);
    AppendPlace(index, &end);
    end.resize(kPlacesEnd, '\0');
    return bytes_ + end + VersionAndMagic();
  }

 private:
  const uint64_t from_;
  std::string bytes_;
};

/// A file from an offset on.
class FileEnd {
 public:
  FileEnd(uint64_t file_bytes, const std::function<std::string(uint64_t)>& read_from)
      : read_from_(read_from) {
    constexpr uint64_t kAtFirst = 4096;
    ReachBack(file_bytes - std::min(file_bytes, kAtFirst));
  }

  void ReachBack(uint64_t offset) {
    if (offset >= from_) return;
    from_ = offset;
    bytes_ = read_from_(offset);
  }
  std::string_view bytes() const { return bytes_; }
  /// Whether a block is there and good.
  bool Has(const TablePlace& place) {
    ReachBack(place.offset);
    return HasBlock(bytes_, {place.offset - from_, place.bytes});
  }
  std::optional<TableBlock> Read(const TablePlace& place) const {
    return ReadTableBlock(bytes_, place.offset - from_, kEntriesPerRestartOfTail);
  }

 private:
  const std::function<std::string(uint64_t)>& read_from_;
  uint64_t from_ = UINT64_MAX;
  std::string bytes_;
};

/// Of the index of the tail's blocks, and of the index; nothing where the end is bad.
std::optional<std::pair<TablePlace, TablePlace>> PlacesInEnd(std::string_view file_end) {
  if (file_end.size() < kEndBytes) return std::nullopt;
  const std::string_view end = file_end.substr(file_end.size() - kEndBytes);
  if (end[0] != static_cast<char>(kXxh3) || !end.ends_with(VersionAndMagic())) return std::nullopt;
  std::string_view places = end.substr(1, kPlacesEnd - 1);
  const auto meta = TakePlace(&places);
  const auto index = meta ? TakePlace(&places) : std::nullopt;
  if (!index) return std::nullopt;
  return std::pair(*meta, *index);
}

}  // namespace

bool HasGoodTail(uint64_t file_bytes, const std::function<std::string(uint64_t)>& read_from) {
  FileEnd file(file_bytes, read_from);
  const auto places = PlacesInEnd(file.bytes());
  if (!places || !file.Has(places->first)) return false;
  const auto meta = file.Read(places->first);
  if (!meta) return false;
  std::vector<TablePlace> blocks = {places->second};
  for (const TableEntry& entry : meta->entries) {
    std::string_view value = entry.value;
    const auto place = TakePlace(&value);
    if (!place) return false;
    blocks.push_back(*place);
  }
  file.ReachBack(std::ranges::min(blocks, {}, &TablePlace::offset).offset);
  return std::ranges::all_of(blocks, [&](const TablePlace& place) { return file.Has(place); });
}

std::optional<BrokenTable> MakeTail(std::string_view file) {
  IndexMaker index(file);
  index.Find();
  const auto deletions = FindBlock(file, index.end(), kEntriesPerRestartOfTail, IsOfRangeDeletions);
  if (index.entries() == 0 && !deletions) return std::nullopt;
  Properties properties;
  if (const auto found = FindBlock(file, index.end(), kAllEntries, IsOfProperties)) {
    for (const TableEntry& entry : found->entries) properties[entry.key] = entry.value;
  } else {
    properties["rocksdb.comparator"] = "leveldb.BytewiseComparator";
    properties[std::string(kEntries)] = Varint(index.entries());
    properties[std::string(kDataBytes)] = Varint(index.end());
  }
  index.EndAt(NumberIn(properties, kDataBytes).value_or(0));
  properties[std::string(kUserKeys)] = properties[std::string(kDeltas)] = Varint(0);

  BrokenTable table{.from = index.end()};
  TailWriter tail(table.from);
  Properties blocks;
  const auto add = [&](std::string_view name, std::string_view block) {
    std::string& value = blocks[std::string(name)];
    AppendPlace(tail.Add(block), &value);
  };
  if (deletions) {
    add(kRangeDeletionsName,
        file.substr(deletions->place.offset, deletions->place.bytes + kTableTrailerBytes));
  }
  table.lost_deletions = !deletions && NumberIn(properties, kRangeDeletions).value_or(0) > 0;
  add(kPropertiesName, BlockOf(properties, kAllEntries));
  const TablePlace index_place = tail.Add(std::move(index).Finish());
  const TablePlace meta = tail.Add(BlockOf(blocks, kEntriesPerRestartOfTail));
  auto bytes = std::move(tail).Finish(meta, index_place, file.size());
  if (!bytes) return std::nullopt;
  table.tail = std::move(*bytes);
  return table;
}

namespace {

/// Reads around bad sectors (base/bad_sectors.h).
class SectorFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  explicit SectorFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file)
      : FSRandomAccessFileOwnerWrapper(std::move(file)) {}

  rocksdb::IOStatus Read(uint64_t offset, size_t bytes, const rocksdb::IOOptions& options,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* debug) const override {
    const rocksdb::IOStatus read = target()->Read(offset, bytes, options, result, scratch, debug);
    if (!read.IsIOError()) return read;
    const auto around = ReadAroundBadSectors(
        offset, std::as_writable_bytes(std::span(scratch, bytes)),
        [&](uint64_t at, std::span<std::byte> part) -> std::optional<size_t> {
          char* const into = reinterpret_cast<char*>(part.data());
          (void)target()->InvalidateCache(at, part.size());
          if (!target()->Read(at, part.size(), options, result, into, debug).ok()) return {};
          if (result->data() != into) std::memmove(into, result->data(), result->size());
          return result->size();
        });
    if (!around) return read;
    *result = rocksdb::Slice(scratch, *around);
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count,
                              const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus read = target()->MultiRead(requests, count, options, debug);
    for (rocksdb::FSReadRequest& each : std::span(requests, count)) {
      if (!each.status.IsIOError()) continue;
      each.status = Read(each.offset, each.len, options, &each.result, each.scratch, debug);
    }
    return read;
  }
};

/// An SST file with another tail than it has.
class ShownTable : public rocksdb::FSRandomAccessFile {
 public:
  ShownTable(std::unique_ptr<rocksdb::FSRandomAccessFile> file, const BrokenTable* table)
      : file_(std::move(file)), table_(*table) {}

  rocksdb::IOStatus Read(uint64_t offset, size_t bytes, const rocksdb::IOOptions& options,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* debug) const override {
    const uint64_t in_file = table_.from - std::min(table_.from, offset);
    const size_t from_file = static_cast<size_t>(std::min<uint64_t>(bytes, in_file));
    size_t filled = 0;
    if (from_file > 0) {
      rocksdb::Slice read;
      const rocksdb::IOStatus status =
          file_->Read(offset, from_file, options, &read, scratch, debug);
      if (!status.ok()) return status;
      if (read.data() != scratch) std::memmove(scratch, read.data(), read.size());
      filled = read.size();
    }
    if (filled == from_file) {
      const uint64_t at = std::min<uint64_t>(offset + filled - table_.from, table_.tail.size());
      filled += table_.tail.copy(scratch + filled, bytes - filled, at);
    }
    *result = rocksdb::Slice(scratch, filled);
    return rocksdb::IOStatus::OK();
  }

 private:
  const std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  const BrokenTable& table_;
};

}  // namespace

TableFiles::TableFiles(std::shared_ptr<rocksdb::FileSystem> files)
    : FileSystemWrapper(std::move(files)) {}

std::optional<BrokenTable> TableFiles::Look(const std::string& path) const {
  const rocksdb::IOOptions plain;
  uint64_t bytes = 0;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  if (!target()->GetFileSize(path, plain, &bytes, nullptr).ok() ||
      !target()->NewRandomAccessFile(path, {}, &file, nullptr).ok()) {
    return std::nullopt;
  }
  bool failed = false;
  const auto read_from = [&](uint64_t offset) {
    std::string scratch(bytes - std::min(bytes, offset), '\0');
    rocksdb::Slice read;
    const bool done =
        file->Read(offset, scratch.size(), plain, &read, scratch.data(), nullptr).ok();
    failed = failed || !done || read.size() < scratch.size();
    return done ? read.ToString() : std::string();
  };
  if (HasGoodTail(bytes, read_from) || failed) return std::nullopt;
  auto table = MakeTail(read_from(0));
  if (!table || failed) return std::nullopt;
  table->path = path;
  table->why = Concatenate(path, " has a bad tail, from offset ", table->from, " on");
  if (table->lost_deletions) table->why += ", and has lost what it says was deleted";
  return table;
}

void TableFiles::LookAt(const std::string& directory) {
  std::vector<std::string> names;
  // What keeps it from being listed, RocksDB meets, too.
  (void)target()->GetChildren(directory, rocksdb::IOOptions(), &names, nullptr);
  for (const std::string& name : names) {
    if (!name.ends_with(".sst")) continue;
    if (auto table = Look(Concatenate(directory, "/", name))) {
      shown_.emplace(table->path, std::move(*table));
    }
  }
}

const BrokenTable* TableFiles::Find(const std::string& path) const {
  const auto found = shown_.find(path);
  return found == shown_.end() ? nullptr : &found->second;
}

const BrokenTable* TableFiles::Shown(const std::string& path, uint64_t bytes) const {
  const BrokenTable* const found = Find(path);
  return found != nullptr && found->bytes() == bytes ? found : nullptr;
}

Status TableFiles::Mend(const BrokenTable& table) {
  const rocksdb::IOOptions plain;
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  rocksdb::IOStatus done = target()->NewRandomRWFile(table.path, {}, &file, nullptr);
  if (done.ok()) done = file->Write(table.from, table.tail, plain, nullptr);
  if (done.ok()) done = file->Sync(plain, nullptr);
  if (done.ok()) done = file->Close(plain, nullptr);
  return FromRocks(done, table.path);
}

rocksdb::IOStatus TableFiles::NewRandomAccessFile(
    const std::string& path, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* file, rocksdb::IODebugContext* debug) {
  const rocksdb::IOStatus opened = target()->NewRandomAccessFile(path, options, file, debug);
  if (opened.ok()) *file = std::make_unique<SectorFile>(std::move(*file));
  const BrokenTable* const table = opened.ok() ? Find(path) : nullptr;
  if (table != nullptr) *file = std::make_unique<ShownTable>(std::move(*file), table);
  return opened;
}

}  // namespace geardb::engine
