#include "engine/internal/cold_reserve.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace geardb::engine {
namespace {

// Of a reserve, what is for neither memory nor values: of a disk's room such a part, within these.
constexpr uint64_t kMoreRoomShare = 8;
constexpr uint64_t kMoreLeast = uint64_t{2} << 20;
constexpr uint64_t kMoreMost = ColdReserve::kRoomMost / kMoreRoomShare;

}  // namespace

uint64_t DiskRoom(rocksdb::FileSystem* files, const std::string& directory, uint64_t enough) {
  const rocksdb::IOOptions plain;
  uint64_t room = 0;
  const std::string beside = directory.substr(0, directory.rfind('/') + 1);
  if (!files->GetFreeSpace(beside.empty() ? "." : beside, plain, &room, nullptr).ok()) {
    return UINT64_MAX;
  }
  if (room >= enough) return room;
  std::vector<rocksdb::FileAttributes> own;
  (void)files->GetChildrenFileAttributes(directory, plain, &own, nullptr);  // If it is there.
  for (const rocksdb::FileAttributes& file : own) room += file.size_bytes;
  return room;
}

uint64_t ColdReserve::BytesFor(uint64_t unflushed_bytes, uint64_t room) {
  return 2 * unflushed_bytes + std::clamp(room / kMoreRoomShare, kMoreLeast, kMoreMost);
}

ColdReserve::ColdReserve(rocksdb::FileSystem* files, const std::string& directory, uint64_t bytes,
                         const char* name)
    : files_(files), path_(directory + "/" + name), bytes_(bytes) {}

Status ColdReserve::Keep(uint64_t more) { return KeepBytes(bytes_ + more); }

Status ColdReserve::KeepPart() {
  constexpr uint64_t kParts = 16;
  Status kept;
  for (uint64_t parts = kParts; parts > 1; --parts) {
    kept = KeepBytes(bytes_ / kParts * parts);
    if (kept.ok()) break;
  }
  return kept;
}

Status ColdReserve::KeepBytes(uint64_t wanted) {
  MutexLock lock(&mutex_);
  if (held_ < wanted) held_ = Size();  // As an open before has left it, or nobody has.
  if (held_ >= wanted || !Grow(wanted).IsNoSpace()) return Status::Ok();
  return Status::ResourceExhausted(path_, ": the disk is too full for ", wanted,
                                   " bytes, which what frees space may need");
}

rocksdb::IOStatus ColdReserve::Grow(uint64_t bytes) {
  const uint64_t before = held_;
  const rocksdb::IOStatus allocated = Allocate(before, bytes);
  held_ = allocated.ok() ? Size() : before;
  if (held_ >= bytes || before > 0) return allocated;
  // A part of it would take from others what helps nobody.
  (void)files_->DeleteFile(path_, rocksdb::IOOptions(), nullptr);
  held_ = 0;
  return allocated;
}

bool ColdReserve::GiveUp() {
  MutexLock lock(&mutex_);
  held_ = 0;
  return files_->DeleteFile(path_, rocksdb::IOOptions(), nullptr).ok();
}

uint64_t ColdReserve::Size() const {
  uint64_t size = 0;
  return files_->GetFileSize(path_, rocksdb::IOOptions(), &size, nullptr).ok() ? size : 0;
}

rocksdb::IOStatus ColdReserve::Allocate(uint64_t from, uint64_t to) {
  const rocksdb::IOOptions plain;
  rocksdb::FileOptions options;
  options.allow_fallocate = true;
  options.fallocate_with_keep_size = false;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const rocksdb::IOStatus opened = from == 0
                                       ? files_->NewWritableFile(path_, options, &file, nullptr)
                                       : files_->ReopenWritableFile(path_, options, &file, nullptr);
  if (!opened.ok()) return opened;
  const rocksdb::IOStatus allocated = file->Allocate(from, to - from, plain, nullptr);
  if (!allocated.ok()) (void)file->Truncate(from, plain, nullptr);
  const rocksdb::IOStatus closed = file->Close(plain, nullptr);
  return allocated.ok() ? closed : allocated;
}

}  // namespace geardb::engine
