#include "engine/internal/cold_reserve.h"

#include <algorithm>
#include <memory>

namespace geardb::engine {

ColdReserve::ColdReserve(rocksdb::FileSystem* files, const std::string& directory, uint64_t bytes)
    : files_(files), path_(directory + "/" + kColdReserveName), bytes_(bytes) {}

Status ColdReserve::Keep(uint64_t enough) {
  MutexLock lock(&mutex_);
  if (held_ == 0) held_ = Size();
  if (held_ >= bytes_) return Status::Ok();
  enough = std::min(enough, bytes_);
  for (const uint64_t wanted : {bytes_, enough}) {
    if (held_ > 0) (void)files_->DeleteFile(path_, rocksdb::IOOptions(), nullptr);
    const rocksdb::IOStatus allocated = Allocate(wanted);
    held_ = allocated.ok() ? Size() : 0;
    if (held_ >= wanted) return Status::Ok();
    // A part of it would take from others what helps nobody.
    (void)files_->DeleteFile(path_, rocksdb::IOOptions(), nullptr);
    held_ = 0;
    if (!allocated.IsNoSpace()) return Status::Ok();
  }
  return Status::ResourceExhausted(path_, ": the disk is too full for ", enough,
                                   " bytes, which what frees space may need");
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

rocksdb::IOStatus ColdReserve::Allocate(uint64_t bytes) {
  rocksdb::FileOptions options;
  options.allow_fallocate = true;
  options.fallocate_with_keep_size = false;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const rocksdb::IOStatus made = files_->NewWritableFile(path_, options, &file, nullptr);
  if (!made.ok()) return made;
  const rocksdb::IOStatus allocated = file->Allocate(0, bytes, rocksdb::IOOptions(), nullptr);
  const rocksdb::IOStatus closed = file->Close(rocksdb::IOOptions(), nullptr);
  return allocated.ok() ? closed : allocated;
}

}  // namespace geardb::engine
