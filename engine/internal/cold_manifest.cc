#include "engine/internal/cold_manifest.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/concatenate.h"
#include "base/crash_point.h"
#include "engine/internal/cold_check.h"
#include "engine/internal/cold_checksum.h"
#include "engine/internal/cold_db.h"

namespace geardb::engine {
namespace {

// ---- RocksDB's records (its "Write Ahead Log File Format", which manifests have, too): blocks of
// 32 KiB with parts of records, each with u32 checksum, u16 length and u8 type before it; a block
// with less than that left ends with zeros.

constexpr size_t kBlockBytes = size_t{32} << 10;
constexpr size_t kHeaderBytes = 7;
constexpr char kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4;  // Types; 0 is none.

/// Bytes of the part of a record that is at `at`, with its header; 0 where there is no good one.
size_t PartAt(std::string_view bytes, size_t at) {
  if (at >= bytes.size() || bytes.size() - at < kHeaderBytes) return 0;
  const std::string_view header = bytes.substr(at, kHeaderBytes);
  uint32_t expected = 0;
  std::memcpy(&expected, header.data(), sizeof(expected));
  uint16_t length = 0;
  std::memcpy(&length, header.data() + sizeof(expected), sizeof(length));
  const auto type = static_cast<uint8_t>(header[kHeaderBytes - 1]);
  const size_t whole = kHeaderBytes + length;
  if (type == 0 || type > kLast || whole > bytes.size() - at) return 0;
  if (whole > kBlockBytes - at % kBlockBytes) return 0;
  const size_t type_at = at + kHeaderBytes - 1;
  return StoredChecksum(bytes.substr(type_at, 1u + length)) == expected ? whole : 0;
}

/// What is left of a block that has no room for a header.
size_t PaddingAt(size_t at) {
  const size_t left = kBlockBytes - at % kBlockBytes;
  return left < kHeaderBytes ? left : 0;
}

// ---- Version edits, which the records are: tags, each with its value. Of those that come first,
// some are numbers, some bytes with their length before them.

std::optional<uint64_t> TakeNumber(std::string_view* edit) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !edit->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(edit->front());
    edit->remove_prefix(1);
    number |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

/// Adds bit `tag` for each number that the edit sets before it names files.
void AddTagsOf(std::string_view edit, uint64_t* tags) {
  constexpr uint64_t kNumbers = 1u << 2 | 1u << 3 | 1u << 4 | 1u << 9 | 1u << 10;
  constexpr uint64_t kComparator = 1, kMaxColumnFamily = 203, kIgnorable = uint64_t{1} << 13;
  for (auto tag = TakeNumber(&edit); tag; tag = TakeNumber(&edit)) {
    const bool is_number = *tag < 64 && (kNumbers >> *tag & 1) != 0;
    const bool has_length = *tag == kComparator || (*tag & kIgnorable) != 0;
    if (!is_number && !has_length && *tag != kMaxColumnFamily) return;
    const auto value = TakeNumber(&edit);
    if (!value) return;
    if (is_number) *tags |= uint64_t{1} << *tag;
    if (has_length) edit.remove_prefix(std::min<uint64_t>(*value, edit.size()));
  }
}

// ---- Names.

std::optional<uint64_t> NumberBehind(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::string NameOf(std::string_view prefix, uint64_t number) {
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%06llu", static_cast<unsigned long long>(number));
  return Concatenate(prefix, digits);
}

/// Of a manifest, by its path.
std::optional<uint64_t> ManifestNumber(const std::string& path) {
  return NumberBehind(kManifestPrefix, std::string_view(path).substr(path.rfind('/') + 1));
}

// ---- Files.

class MemorySequentialFile : public rocksdb::FSSequentialFile {
 public:
  explicit MemorySequentialFile(const std::string& bytes) : left_(bytes) {}
  rocksdb::IOStatus Read(size_t bytes, const rocksdb::IOOptions& /*options*/,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* /*debug*/) override {
    const size_t read = std::min(bytes, left_.size());
    std::memcpy(scratch, left_.data(), read);
    left_.remove_prefix(read);
    *result = rocksdb::Slice(scratch, read);
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus Skip(uint64_t bytes) override {
    left_.remove_prefix(std::min<size_t>(bytes, left_.size()));
    return rocksdb::IOStatus::OK();
  }

 private:
  std::string_view left_;
};

class MemoryRandomAccessFile : public rocksdb::FSRandomAccessFile {
 public:
  explicit MemoryRandomAccessFile(const std::string& bytes) : bytes_(bytes) {}
  rocksdb::IOStatus Read(uint64_t offset, size_t bytes, const rocksdb::IOOptions& /*options*/,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* /*debug*/) const override {
    const std::string_view part = bytes_.substr(std::min<size_t>(offset, bytes_.size()), bytes);
    std::memcpy(scratch, part.data(), part.size());
    *result = rocksdb::Slice(scratch, part.size());
    return rocksdb::IOStatus::OK();
  }

 private:
  const std::string_view bytes_;
};

/// A manifest that is being written, and its copy. As RocksDB uses it, by one thread at a time.
class MirroredFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  MirroredFile(rocksdb::FileSystem* files, std::string path, std::string copy_path,
               const rocksdb::FileOptions& how, std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)),
        files_(files),
        path_(std::move(path)),
        copy_path_(std::move(copy_path)),
        how_(how) {
    if (!files_->NewWritableFile(copy_path_, how_, &copy_, nullptr).ok()) Drop();
  }

  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus written = FSWritableFileOwnerWrapper::Append(bytes, options, debug);
    if (written.ok()) AppendToCopy(bytes, options);
    return written;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus written =
        FSWritableFileOwnerWrapper::Append(bytes, options, verification, debug);
    if (written.ok()) AppendToCopy(bytes, options);
    return written;
  }
  rocksdb::IOStatus Truncate(uint64_t size, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
    if (copy_ != nullptr && !copy_->Truncate(size, options, nullptr).ok()) Drop();
    return FSWritableFileOwnerWrapper::Truncate(size, options, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus synced = FSWritableFileOwnerWrapper::Sync(options, debug);
    if (synced.ok()) SyncCopy(options);
    return synced;
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus synced = FSWritableFileOwnerWrapper::Fsync(options, debug);
    if (synced.ok()) SyncCopy(options);
    return synced;
  }
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    if (copy_ != nullptr && !copy_->Close(options, nullptr).ok()) Drop();
    copy_.reset();
    return FSWritableFileOwnerWrapper::Close(options, debug);
  }

 private:
  void AppendToCopy(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options) {
    CrashPoint("cold_manifest_copy");
    if (copy_ != nullptr && !copy_->Append(bytes, options, nullptr).ok()) Drop();
  }
  void SyncCopy(const rocksdb::IOOptions& options) {
    if (copy_ == nullptr) {
      MakeAnew(options);
    } else if (!copy_->Sync(options, nullptr).ok()) {
      Drop();
    }
  }
  /// What is there of it may look whole and is not.
  void Drop() {
    copy_.reset();
    (void)files_->DeleteFile(copy_path_, rocksdb::IOOptions(), nullptr);
  }
  /// From what was written so far, all of which is in the file.
  void MakeAnew(const rocksdb::IOOptions& options) {
    std::string bytes;
    if (!rocksdb::ReadFileToString(files_, path_, &bytes).ok()) return;
    const std::string unfinished = copy_path_ + ".new";
    std::unique_ptr<rocksdb::FSWritableFile> copy;
    rocksdb::IOStatus made = files_->NewWritableFile(unfinished, how_, &copy, nullptr);
    if (made.ok()) made = copy->Append(bytes, options, nullptr);
    if (made.ok()) made = copy->Sync(options, nullptr);
    if (made.ok()) made = files_->RenameFile(unfinished, copy_path_, options, nullptr);
    if (made.ok()) {
      copy_ = std::move(copy);
    } else {
      copy.reset();
      (void)files_->DeleteFile(unfinished, options, nullptr);
    }
  }

  rocksdb::FileSystem* const files_;
  const std::string path_;
  const std::string copy_path_;
  const rocksdb::FileOptions how_;
  std::unique_ptr<rocksdb::FSWritableFile> copy_;  // Null: it could not be written.
};

}  // namespace

MergedManifest MergeManifests(std::string_view original, std::string_view copy) {
  MergedManifest merged;
  bool own = true, copied = true;
  for (;;) {
    const size_t at = merged.bytes.size();
    if (const size_t padding = PaddingAt(at); padding > 0) {
      if (std::max(original.size(), copy.size()) < at + padding) break;
      merged.bytes.append(padding, '\0');
      own = own && original.size() >= at + padding;
      copied = copied && copy.size() >= at + padding;
    } else {
      const size_t of_original = PartAt(original, at);
      const size_t of_copy = PartAt(copy, at);
      if (of_original == 0 && of_copy == 0) break;
      own = own && of_original > 0;
      copied = copied && of_copy > 0;
      merged.bytes.append(of_original > 0 ? original.substr(at, of_original)
                                          : copy.substr(at, of_copy));
    }
    if (own) merged.own_end = merged.bytes.size();
    if (copied) merged.copy_end = merged.bytes.size();
  }
  return merged;
}

bool IsCompleteManifest(std::string_view manifest) {
  // Log number, next file number and last sequence. The second comes behind all that a manifest
  // takes over from the one before.
  constexpr uint64_t kNeeded = 1u << 2 | 1u << 3 | 1u << 4;
  uint64_t tags = 0;
  std::string edit;
  for (size_t at = 0; (tags & kNeeded) != kNeeded;) {
    at += PaddingAt(at);
    const size_t bytes = PartAt(manifest, at);
    if (bytes == 0) return false;
    const char type = manifest[at + kHeaderBytes - 1];
    if (type == kWhole || type == kFirst) edit.clear();
    edit += manifest.substr(at + kHeaderBytes, bytes - kHeaderBytes);
    if (type == kWhole || type == kLast) AddTagsOf(edit, &tags);
    at += bytes;
  }
  return true;
}

void AppendDropped(const ManifestFile& file, std::string* manifest) {
  // Tags of RocksDB's version edits.
  constexpr uint64_t kDeletedFile = 6;
  constexpr uint64_t kColumnFamily = 200;
  std::string edit;
  for (uint64_t number :
       {kColumnFamily, uint64_t{file.family}, kDeletedFile, uint64_t{file.level}, file.number}) {
    for (; number >= 0x80; number >>= 7) edit.push_back(static_cast<char>(number | 0x80));
    edit.push_back(static_cast<char>(number));
  }
  for (bool first = true; first || !edit.empty(); first = false) {
    manifest->append(PaddingAt(manifest->size()), '\0');
    const size_t room = kBlockBytes - manifest->size() % kBlockBytes - kHeaderBytes;
    const auto length = static_cast<uint16_t>(std::min(room, edit.size()));
    const bool last = length == edit.size();
    const char type = first ? (last ? kWhole : kFirst) : (last ? kLast : kMiddle);
    const std::string part = type + edit.substr(0, length);
    const uint32_t checksum = StoredChecksum(part);
    manifest->append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
    manifest->append(reinterpret_cast<const char*>(&length), sizeof(length));
    manifest->append(part);
    edit.erase(0, length);
  }
}

ManifestFiles::ManifestFiles(std::shared_ptr<rocksdb::FileSystem> files, std::string directory)
    : FileSystemWrapper(std::move(files)), directory_(std::move(directory)) {}

// ---- What there is.

ManifestFiles::OnDisk ManifestFiles::Read(const std::string& name) const {
  OnDisk found{.path = Concatenate(directory_, "/", name), .bytes = {}, .read = {}};
  found.read = rocksdb::ReadFileToString(target(), found.path, &found.bytes);
  if (!found.read.ok()) found.bytes.clear();
  return found;
}

bool ManifestFiles::OnDisk::missing() const { return read.IsNotFound() || read.IsPathNotFound(); }

bool ManifestFiles::Take(uint64_t number) {
  const OnDisk original = Read(NameOf(kManifestPrefix, number));
  const OnDisk copy = Read(NameOf(kManifestCopyPrefix, number));
  MergedManifest merged = MergeManifests(original.bytes, copy.bytes);
  const size_t end = merged.bytes.size();
  const auto state = [](const OnDisk& file, uint64_t good) {
    if (file.missing()) return std::string(" is missing");
    if (!file.read.ok()) return Concatenate(" cannot be read: ", file.read.ToString());
    if (good == file.bytes.size()) return Concatenate(" ends at byte ", good);
    return Concatenate(" has no good record at byte ", good, " of ", file.bytes.size());
  };
  const std::string of_original = original.path + state(original, merged.own_end);
  const std::string of_copy = copy.path + state(copy, merged.copy_end);
  const bool whole = end > 0 && (end == original.bytes.size() || end == copy.bytes.size());
  doubt_.clear();
  if (end == 0 || end < original.bytes.size()) {
    doubt_ = Concatenate(of_original, ", and its copy ", of_copy);
  }
  notes_.clear();
  path_ = original.path;
  bytes_ = merged.bytes;
  if (merged.mended()) {
    damage_.push_back(
        Concatenate(of_original, "; what it lacks was read from its copy ", copy.path));
    served_[original.path] = std::move(merged.bytes);
  } else if (end > 0 && end < original.bytes.size()) {
    notes_.push_back(Concatenate(of_original, ": a crash has torn it, or it is damaged there"));
  }
  if (merged.copy_end < end) {
    notes_.push_back(Concatenate("the manifest's copy ", of_copy,
                                 "; the next open for writing makes a new one"));
  }
  return whole;
}

Status ManifestFiles::MakeCurrent(const std::string& why, const std::set<uint64_t>& manifests) {
  const std::string current = directory_ + "/CURRENT";
  // A death may have left an older one, or the begin of the one that was to be the next: the files
  // of the one before are all there until CURRENT names that.
  for (auto manifest = manifests.rbegin(); manifest != manifests.rend(); ++manifest) {
    damage_.clear();
    served_.clear();
    if (!Take(*manifest) || !IsCompleteManifest(bytes_)) continue;
    const std::string name = NameOf(kManifestPrefix, *manifest);
    served_[current] = name + "\n";
    damage_.insert(damage_.begin(), Concatenate(current, why, "; the newest manifest was taken, ",
                                                directory_, "/", name));
    return Status::Ok();
  }
  damage_.clear();
  served_.clear();
  return Status::Corruption(current, why, ", and no ", directory_, "/", kManifestPrefix,
                            "* is whole, nor a ", kManifestCopyPrefix, "* beside it");
}

Status ManifestFiles::Look() {
  std::vector<std::string> names;
  const rocksdb::IOStatus listed =
      target()->GetChildren(directory_, rocksdb::IOOptions(), &names, nullptr);
  if (listed.IsNotFound() || listed.IsPathNotFound()) {
    return Status::NotFound("there is no cold store in ", directory_);
  }
  GEARDB_RETURN_IF_ERROR(FromRocks(listed, directory_));
  if (!IsColdStore(names)) return Status::NotFound("there is no cold store in ", directory_);
  std::set<uint64_t> manifests;  // Of which one of the two is there.
  for (const std::string& name : names) {
    for (const std::string_view prefix : {kManifestPrefix, kManifestCopyPrefix}) {
      if (const auto number = NumberBehind(prefix, name)) manifests.insert(*number);
    }
  }
  const OnDisk current = Read("CURRENT");
  std::string why = " is missing";
  if (current.read.ok()) {
    const std::string_view text = current.bytes;
    const auto number = text.ends_with('\n')
                            ? NumberBehind(kManifestPrefix, text.substr(0, text.size() - 1))
                            : std::nullopt;
    if (number && manifests.contains(*number)) {
      (void)Take(*number);
      return Status::Ok();
    }
    why = number ? Concatenate(" names ", NameOf(kManifestPrefix, *number), ", which is not there")
                 : " names no manifest";
  } else if (!current.missing()) {
    why = Concatenate(" cannot be read: ", current.read.ToString());
  }
  const Status made = MakeCurrent(why, manifests);
  // Nothing need be wrong with a store that this process cannot read a file of.
  if (!made.ok() && !current.read.ok() && !current.missing())
    return FromRocks(current.read, directory_);
  return made;
}

void ManifestFiles::LeaveOut(const std::vector<ManifestFile>& files) {
  if (files.empty()) return;
  std::string& bytes = served_[path_] = bytes_;
  for (const ManifestFile& file : files) AppendDropped(file, &bytes);
}

Status ManifestFiles::DeleteStrays() {
  std::vector<std::string> names;
  const rocksdb::IOOptions plain;
  GEARDB_RETURN_IF_ERROR(
      FromRocks(target()->GetChildren(directory_, plain, &names, nullptr), directory_));
  for (const std::string& name : names) {
    if (!name.starts_with(kManifestCopyPrefix)) continue;
    const auto number = NumberBehind(kManifestCopyPrefix, name);
    if (number && std::ranges::count(names, NameOf(kManifestPrefix, *number)) > 0) continue;
    const std::string path = Concatenate(directory_, "/", name);
    const rocksdb::IOStatus deleted = target()->DeleteFile(path, plain, nullptr);
    if (!deleted.IsNotFound() && !deleted.IsPathNotFound()) {
      GEARDB_RETURN_IF_ERROR(FromRocks(deleted, path));
    }
  }
  return Status::Ok();
}

// ---- What RocksDB sees.

rocksdb::IOStatus ManifestFiles::NewSequentialFile(const std::string& path,
                                                   const rocksdb::FileOptions& options,
                                                   std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                                   rocksdb::IODebugContext* debug) {
  const auto served = served_.find(path);
  if (served == served_.end()) return target()->NewSequentialFile(path, options, file, debug);
  *file = std::make_unique<MemorySequentialFile>(served->second);
  return rocksdb::IOStatus::OK();
}

rocksdb::IOStatus ManifestFiles::NewRandomAccessFile(
    const std::string& path, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* file, rocksdb::IODebugContext* debug) {
  const auto served = served_.find(path);
  if (served == served_.end()) return target()->NewRandomAccessFile(path, options, file, debug);
  *file = std::make_unique<MemoryRandomAccessFile>(served->second);
  return rocksdb::IOStatus::OK();
}

rocksdb::IOStatus ManifestFiles::NewWritableFile(const std::string& path,
                                                 const rocksdb::FileOptions& options,
                                                 std::unique_ptr<rocksdb::FSWritableFile>* file,
                                                 rocksdb::IODebugContext* debug) {
  if (refuses_tables_ && (path.ends_with(".sst") || path.ends_with(".blob"))) {
    return rocksdb::IOStatus::NoSpace(path, "the disk was full, and nothing has resumed since");
  }
  const rocksdb::IOStatus made = target()->NewWritableFile(path, options, file, debug);
  const auto number = ManifestNumber(path);
  if (!made.ok() || !number) return made;
  const std::string copy =
      path.substr(0, path.rfind('/') + 1) + NameOf(kManifestCopyPrefix, *number);
  *file = std::make_unique<MirroredFile>(target(), path, copy, options, std::move(*file));
  return made;
}

rocksdb::IOStatus ManifestFiles::FileExists(const std::string& path,
                                            const rocksdb::IOOptions& options,
                                            rocksdb::IODebugContext* debug) {
  return served_.contains(path) ? rocksdb::IOStatus::OK()
                                : target()->FileExists(path, options, debug);
}

rocksdb::IOStatus ManifestFiles::GetFileSize(const std::string& path,
                                             const rocksdb::IOOptions& options, uint64_t* bytes,
                                             rocksdb::IODebugContext* debug) {
  const auto served = served_.find(path);
  if (served == served_.end()) return target()->GetFileSize(path, options, bytes, debug);
  *bytes = served->second.size();
  return rocksdb::IOStatus::OK();
}

rocksdb::IOStatus ManifestFiles::DeleteFile(const std::string& path,
                                            const rocksdb::IOOptions& options,
                                            rocksdb::IODebugContext* debug) {
  const rocksdb::IOStatus deleted = target()->DeleteFile(path, options, debug);
  if (const auto number = ManifestNumber(path)) {
    const std::string copy =
        path.substr(0, path.rfind('/') + 1) + NameOf(kManifestCopyPrefix, *number);
    (void)target()->DeleteFile(copy, options, nullptr);
  }
  return deleted;
}

}  // namespace geardb::engine
