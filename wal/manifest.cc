#include "wal/manifest.h"

#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/crash_point.h"
#include "base/hash.h"

namespace geardb::wal {
namespace {

constexpr std::array<char, 8> kMagic = {'G', 'E', 'A', 'R', 'D', 'B', '\r', '\n'};

// The file. Bytes 0…23 keep their meaning in every format version.
struct ManifestBytes {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t bytes;     // Of the whole file.
  uint64_t checksum;  // XXH3-64, seed 0, of bytes 0…15 and 24….
  Uuid uuid;
  uint32_t term;
  uint32_t open;
  uint64_t start;
  uint64_t cut;
  uint64_t ring_bytes;
  uint64_t segment_bytes;
};
static_assert(sizeof(ManifestBytes) <= 512, "OverwriteManifest writes one sector");
static_assert(sizeof(ManifestBytes) == 80 && offsetof(ManifestBytes, uuid) == 24);

constexpr size_t kFrozenBytes = 24;
constexpr uint64_t kManifestBytesMax = 4096;
constexpr uint64_t kReserveBytes = 16384;

uint64_t Checksum(std::span<const std::byte> bytes) {
  Hasher64 hasher(0);
  hasher.Add(bytes.first(16));
  hasher.Add(bytes.subspan(kFrozenBytes));
  return hasher.Finish();
}

// Keeps a few blocks for the day when the disk is full, durable: power loss must not give them to
// somebody else. Not being able to is no error.
void KeepReserve(Env* env, const std::string& directory) {
  const std::string path = JoinPath(directory, kReserveName);
  auto file = env->OpenFile(path, {.mode = FileMode::kCreate});
  if (!file.ok()) return;
  const auto size = (*file)->Size();
  Status kept = (*file)->Allocate(kReserveBytes);  // A copy may have its length without its space.
  if (size.ok() && *size >= kReserveBytes) return;
  if (kept.ok()) kept = (*file)->Sync();
  if (kept.ok()) kept = env->SyncDirectory(directory);
  if (!kept.ok()) (void)env->Remove(path).ok();
}

// The last resort on a full disk: the file's own sector, which needs no space and is written whole
// or not at all. Never makes or lengthens a file, which would not be atomic.
Status OverwriteManifest(Env* env, const std::string& directory, std::span<const std::byte> bytes) {
  const std::string path = JoinPath(directory, kManifestName);
  {
    GEARDB_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, {.mode = FileMode::kReadWrite}));
    GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    if (size != bytes.size()) {
      return Status::FailedPrecondition(path, " has ", size, " bytes, not ", bytes.size());
    }
    GEARDB_RETURN_IF_ERROR(file->Write(0, bytes));
    GEARDB_RETURN_IF_ERROR(file->Sync());
  }
  return env->SyncDirectory(directory);
}

}  // namespace

uint64_t Manifest::Seed() const { return Hash64(uuid, 0); }

std::string UuidText(const Uuid& uuid) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::byte b : uuid) {
    text += kDigits[std::to_integer<int>(b) >> 4];
    text += kDigits[std::to_integer<int>(b) & 15];
  }
  return text;
}

std::string SegmentName(uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof(name), "%s%06llu", kSegmentPrefix,
                static_cast<unsigned long long>(number));
  return name;
}

bool ParseSegmentName(const std::string& name, uint64_t* number) {
  const std::string prefix = kSegmentPrefix;
  if (name.size() < prefix.size() + 6 || name.size() > prefix.size() + 12 ||
      name.compare(0, prefix.size(), prefix) != 0) {
    return false;
  }
  *number = 0;
  for (char c : std::string_view(name).substr(prefix.size())) {
    if (c < '0' || c > '9') return false;
    *number = *number * 10 + static_cast<uint64_t>(c - '0');
  }
  return true;
}

std::vector<std::byte> EncodeManifest(const Manifest& manifest) {
  ManifestBytes file = {.magic = kMagic,
                        .version = kFormatVersion,
                        .bytes = sizeof(ManifestBytes),
                        .checksum = 0,
                        .uuid = manifest.uuid,
                        .term = manifest.epoch.term,
                        .open = manifest.epoch.open,
                        .start = manifest.start,
                        .cut = manifest.cut,
                        .ring_bytes = manifest.ring_bytes,
                        .segment_bytes = manifest.segment_bytes};
  file.checksum = Checksum(std::as_bytes(std::span(&file, 1)));
  const auto bytes = std::as_bytes(std::span(&file, 1));
  return {bytes.begin(), bytes.end()};
}

Result<Manifest> DecodeManifest(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < kFrozenBytes || std::memcmp(bytes.data(), kMagic.data(), 8) != 0) {
    return Status::Corruption(file, " is no GearDB manifest");
  }
  ManifestBytes found = {};
  std::memcpy(&found, bytes.data(), std::min(bytes.size(), sizeof(found)));
  if (found.bytes != bytes.size() || found.checksum != Checksum(bytes)) {
    return Status::Corruption(file, " is damaged: its checksum does not fit its ", bytes.size(),
                              " bytes");
  }
  if (found.version != kFormatVersion) {
    return Status::Unsupported(file, " has format version ", found.version,
                               ", this program reads version ", kFormatVersion,
                               found.version > kFormatVersion ? ": written by a newer GearDB" : "");
  }
  const auto size_ok = [](uint64_t size) {
    return size >= 2 * kBlockBytes && size <= (uint64_t{1} << 31) && (size & (size - 1)) == 0;
  };
  if (bytes.size() != sizeof(found) || !size_ok(found.ring_bytes) ||
      !size_ok(found.segment_bytes) || found.start % kRecordAlignment != 0) {
    return Status::Corruption(file, " of ", bytes.size(), " bytes (", sizeof(found),
                              " expected): impossible sizes: ring ", found.ring_bytes, ", segment ",
                              found.segment_bytes, ", start ", found.start);
  }
  return Manifest{.uuid = found.uuid,
                  .epoch = {found.term, found.open},
                  .start = found.start,
                  .cut = found.cut,
                  .ring_bytes = found.ring_bytes,
                  .segment_bytes = found.segment_bytes};
}

Result<Manifest> ReadManifest(Env* env, const std::string& directory) {
  const std::string path = JoinPath(directory, kManifestName);
  GEARDB_ASSIGN_OR_RETURN(const auto bytes, ReadWholeFile(env, path, kManifestBytesMax));
  return DecodeManifest(bytes, path);
}

Status WriteManifest(Env* env, const std::string& directory, const Manifest& manifest) {
  CrashPoint("manifest");
  const std::string path = JoinPath(directory, kManifestName);
  const std::string reserve = JoinPath(directory, kReserveName);
  const auto bytes = EncodeManifest(manifest);
  Status status = ReplaceFile(env, path, bytes);
  if (status.code() == StatusCode::kResourceExhausted && env->Remove(reserve).ok()) {
    status = ReplaceFile(env, path, bytes);
  }
  // No reserve, or somebody else took its space.
  if (status.code() == StatusCode::kResourceExhausted) {
    const Status overwritten = OverwriteManifest(env, directory, bytes);
    if (overwritten.ok() || overwritten.code() == StatusCode::kIoError) status = overwritten;
  }
  if (status.ok()) KeepReserve(env, directory);
  return status;
}

}  // namespace geardb::wal
