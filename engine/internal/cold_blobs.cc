#include "engine/internal/cold_blobs.h"

#include <rocksdb/db.h>
#include <rocksdb/utilities/debug.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/concatenate.h"
#include "engine/internal/cold_checksum.h"
#include "engine/internal/cold_db.h"

namespace geardb::engine {
namespace {

constexpr uint32_t kMagic = 0x00248F37;
constexpr uint32_t kVersion = 1;

template <typename Number>
void Append(Number number, std::string* to) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// Without the number of records, which nothing reads, any other footer is as good.
bool IsFooter(std::string_view bytes) {
  uint64_t records = 0;
  std::memcpy(&records, bytes.data() + sizeof(kMagic), sizeof(records));
  return bytes == BlobFooter(records);
}

/// A blob file with a header and a footer that are not in it, or not good there.
class ShownBlob : public rocksdb::FSRandomAccessFile {
 public:
  ShownBlob(std::unique_ptr<rocksdb::FSRandomAccessFile> file, BrokenBlob blob)
      : file_(std::move(file)), blob_(std::move(blob)) {}

  rocksdb::IOStatus Read(uint64_t offset, size_t bytes, const rocksdb::IOOptions& options,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* debug) const override {
    const uint64_t all = blob_.end() + blob_.footer.size();
    const size_t wanted =
        static_cast<size_t>(std::min<uint64_t>(bytes, all - std::min(all, offset)));
    const uint64_t in_file = blob_.bytes - std::min(blob_.bytes, offset);
    const size_t from_file = static_cast<size_t>(std::min<uint64_t>(wanted, in_file));
    std::memset(scratch, 0, wanted);
    if (from_file > 0) {
      rocksdb::Slice read;
      const rocksdb::IOStatus status =
          file_->Read(offset, from_file, options, &read, scratch, debug);
      if (!status.ok()) return status;
      if (read.data() != scratch) std::memmove(scratch, read.data(), read.size());
    }
    Lay(0, blob_.header, offset, {scratch, wanted});
    Lay(blob_.end(), blob_.footer, offset, {scratch, wanted});
    *result = rocksdb::Slice(scratch, wanted);
    return rocksdb::IOStatus::OK();
  }

 private:
  /// Copies what of `part`, which begins at `at` in the file, falls into the bytes from `offset`
  /// on.
  static void Lay(uint64_t at, std::string_view part, uint64_t offset, std::span<char> into) {
    const uint64_t first = std::max(at, offset);
    const uint64_t last = std::min<uint64_t>(at + part.size(), offset + into.size());
    if (first >= last) return;
    std::memcpy(into.data() + (first - offset), part.data() + (first - at), last - first);
  }

  const std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  const BrokenBlob blob_;
};

}  // namespace

std::string BlobHeader(uint32_t family) {
  std::string bytes;
  for (const uint32_t number : {kMagic, kVersion, family}) Append(number, &bytes);
  bytes.resize(kBlobHeaderBytes, '\0');
  return bytes;
}

std::string BlobFooter(uint64_t records) {
  std::string bytes;
  Append(kMagic, &bytes);
  Append(records, &bytes);
  bytes.resize(kBlobFooterBytes - sizeof(uint32_t), '\0');
  Append(StoredChecksum(bytes), &bytes);
  return bytes;
}

std::vector<BlobFile> LiveBlobFiles(const ColdDb& store) {
  std::vector<BlobFile> live;
  std::vector<rocksdb::LiveFileMetaData> tables;
  store.db->GetLiveFilesMetaData(&tables);
  for (rocksdb::ColumnFamilyHandle* family : store.families()) {
    rocksdb::ColumnFamilyMetaData meta;
    store.db->GetColumnFamilyMetaData(family, &meta);
    // Blob files older than any that is referred to may be named still, though they are gone.
    uint64_t oldest = UINT64_MAX;
    for (const rocksdb::LiveFileMetaData& table : tables) {
      const uint64_t refers_to = table.oldest_blob_file_number;
      if (table.column_family_name == meta.name && refers_to != 0) {
        oldest = std::min(oldest, refers_to);
      }
    }
    for (const rocksdb::BlobMetaData& blob : meta.blob_files) {
      if (blob.blob_file_number < oldest) continue;
      const std::string& name = blob.blob_file_name;
      live.push_back({.path = Concatenate(store.directory, "/", name.substr(name.rfind('/') + 1)),
                      .number = blob.blob_file_number,
                      .family = family->GetID(),
                      .family_name = meta.name,
                      .records = blob.total_blob_count,
                      .records_left = blob.total_blob_count - blob.garbage_blob_count,
                      .expected_bytes = blob.blob_file_size});
    }
  }
  return live;
}

std::vector<BrokenBlob> FindBrokenBlobs(const ColdDb& store) {
  std::vector<BrokenBlob> broken;
  for (const BlobFile& file : LiveBlobFiles(store)) {
    if (auto found = store.blobs->Look(file)) broken.push_back(std::move(*found));
  }
  return broken;
}

BlobFiles::BlobFiles(std::shared_ptr<rocksdb::FileSystem> files)
    : FileSystemWrapper(std::move(files)) {}

std::optional<BrokenBlob> BlobFiles::Look(const BlobFile& file) const {
  const rocksdb::IOOptions plain;
  BrokenBlob blob{.path = file.path};
  std::unique_ptr<rocksdb::FSRandomAccessFile> opened;
  if (!target()->GetFileSize(file.path, plain, &blob.bytes, nullptr).ok() ||
      !target()->NewRandomAccessFile(file.path, {}, &opened, nullptr).ok()) {
    return std::nullopt;
  }
  char scratch[kBlobFooterBytes];
  bool failed = false;
  const auto read = [&](uint64_t at, uint64_t bytes) {
    rocksdb::Slice result;
    failed = failed || !opened->Read(at, bytes, plain, &result, scratch, nullptr).ok();
    return failed ? std::string() : result.ToString();
  };
  const std::string header = BlobHeader(file.family);
  std::string what;
  if (blob.bytes < kBlobHeaderBytes || read(0, kBlobHeaderBytes) != header) {
    blob.header = header;
    what = " has no good header";
  }
  const bool has_room = blob.bytes >= kBlobHeaderBytes + kBlobFooterBytes;
  if (!has_room || !IsFooter(read(blob.bytes - kBlobFooterBytes, kBlobFooterBytes))) {
    blob.footer = BlobFooter(file.records);
    what += what.empty() ? " has no good footer" : " and no good footer";
  }
  if (failed || what.empty()) return std::nullopt;
  blob.why = Concatenate(file.path, what);
  blob.cut = blob.bytes + kBlobFooterBytes < file.expected_bytes;
  if (blob.bytes != file.expected_bytes) {
    blob.why += Concatenate(": it has ", blob.bytes, " bytes, expected ", file.expected_bytes);
  }
  return blob;
}

void BlobFiles::Show(const BrokenBlob& blob) {
  MutexLock lock(&mutex_);
  shown_.emplace(blob.path, blob);
}

std::optional<BrokenBlob> BlobFiles::Shown(const std::string& path) const {
  if (!path.ends_with(".blob")) return std::nullopt;
  MutexLock lock(&mutex_);
  const auto found = shown_.find(path);
  if (found == shown_.end()) return std::nullopt;
  return found->second;
}

Status BlobFiles::Mend(const BrokenBlob& blob) {
  const rocksdb::IOOptions plain;
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  rocksdb::IOStatus done = target()->NewRandomRWFile(blob.path, {}, &file, nullptr);
  if (done.ok() && !blob.header.empty()) done = file->Write(0, blob.header, plain, nullptr);
  if (done.ok() && !blob.footer.empty()) {
    done = file->Write(blob.end(), blob.footer, plain, nullptr);
  }
  if (done.ok()) done = file->Sync(plain, nullptr);
  if (done.ok()) done = file->Close(plain, nullptr);
  return FromRocks(done, blob.path);
}

void BlobFiles::WithGoodHeader(const std::string& path,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file) const {
  const rocksdb::IOOptions plain;
  char scratch[kBlobHeaderBytes];
  rocksdb::Slice header;
  if (!(*file)->Read(0, kBlobHeaderBytes, plain, &header, scratch, nullptr).ok() ||
      header.size() < kBlobHeaderBytes) {
    return;
  }
  uint32_t family = 0;
  std::memcpy(&family, header.data() + 2 * sizeof(uint32_t), sizeof(family));
  BrokenBlob blob{.path = path, .header = BlobHeader(family)};
  if (ViewOf(header) == blob.header) return;
  if (!target()->GetFileSize(path, plain, &blob.bytes, nullptr).ok()) return;
  *file = std::make_unique<ShownBlob>(std::move(*file), std::move(blob));
}

rocksdb::IOStatus BlobFiles::NewRandomAccessFile(const std::string& path,
                                                 const rocksdb::FileOptions& options,
                                                 std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                                 rocksdb::IODebugContext* debug) {
  const rocksdb::IOStatus opened = target()->NewRandomAccessFile(path, options, file, debug);
  if (!opened.ok()) return opened;
  if (auto blob = Shown(path)) {
    *file = std::make_unique<ShownBlob>(std::move(*file), std::move(*blob));
  } else if (path.ends_with(".blob")) {
    WithGoodHeader(path, file);
  }
  return opened;
}

rocksdb::IOStatus BlobFiles::GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                         uint64_t* bytes, rocksdb::IODebugContext* debug) {
  const rocksdb::IOStatus found = target()->GetFileSize(path, options, bytes, debug);
  if (!found.ok()) return found;
  if (const auto blob = Shown(path)) *bytes = blob->end() + blob->footer.size();
  return found;
}

rocksdb::Status GetValue(const ColdDb& store, rocksdb::ColumnFamilyHandle* family,
                         std::string_view key, const rocksdb::Snapshot* as_of,
                         rocksdb::PinnableSlice* value) {
  rocksdb::ReadOptions options;
  options.snapshot = as_of;
  rocksdb::Status read = store.db->Get(options, family, SliceOf(key), value);
  if (!read.IsCorruption()) return read;
  // Another reader may have shown them since this one has failed.
  const std::vector<BrokenBlob> broken = FindBrokenBlobs(store);
  if (broken.empty()) return read;
  for (const BrokenBlob& blob : broken) store.blobs->Show(blob);
  value->Reset();
  return store.db->Get(options, family, SliceOf(key), value);
}

std::optional<BlobPlace> DecodeBlobPlace(const std::string& directory, std::string_view value) {
  constexpr char kInFile = 1;
  constexpr int kBitsMax = 63;
  if (value.empty() || value[0] != kInFile) return std::nullopt;
  uint64_t numbers[3] = {};  // File, offset, bytes.
  size_t at = 1;
  for (uint64_t& number : numbers) {
    for (int bits = 0;; bits += 7, ++at) {
      if (at == value.size() || bits > kBitsMax) return std::nullopt;
      const auto byte = static_cast<uint8_t>(value[at]);
      number |= uint64_t{byte & 0x7Fu} << bits;
      if (byte < 0x80) break;
    }
    ++at;
  }
  std::string digits = std::to_string(numbers[0]);
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return BlobPlace{.path = Concatenate(directory, "/", digits, ".blob"),
                   .number = numbers[0],
                   .offset = numbers[1],
                   .bytes = numbers[2]};
}

std::optional<BlobPlace> FindBlobPlace(const ColdDb& store, const ColdPageKey& key) {
  constexpr int kBlobIndex = 0x11;
  const std::string bytes = EncodeColdKey(key);
  std::vector<rocksdb::KeyVersion> versions;
  // The newest comes first.
  const rocksdb::Status found =
      rocksdb::GetAllKeyVersions(store.db.get(), store.pages, bytes, bytes, 1, &versions);
  if (!found.ok() || versions.empty() || versions[0].type != kBlobIndex) return std::nullopt;
  return DecodeBlobPlace(store.directory, versions[0].value);
}

}  // namespace geardb::engine
