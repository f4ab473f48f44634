#include "engine/internal/cold_reserve.h"

#include <memory>

namespace geardb::engine {

ColdReserve::ColdReserve(rocksdb::FileSystem* files, const std::string& directory, uint64_t bytes)
    : files_(files), path_(directory + "/" + kColdReserveName), bytes_(bytes) {}

Status ColdReserve::Keep() {
  MutexLock lock(&mutex_);
  held_ = held_ || IsWhole();
  if (held_) return Status::Ok();
  const rocksdb::IOStatus allocated = Allocate();
  held_ = allocated.ok() && IsWhole();
  if (held_) return Status::Ok();
  // A part of it would take from others what helps nobody.
  (void)files_->DeleteFile(path_, rocksdb::IOOptions(), nullptr);
  if (!allocated.IsNoSpace()) return Status::Ok();
  return Status::ResourceExhausted(path_, ": the disk is too full for ", bytes_,
                                   " bytes, which what frees space may need");
}

bool ColdReserve::GiveUp() {
  MutexLock lock(&mutex_);
  held_ = false;
  return files_->DeleteFile(path_, rocksdb::IOOptions(), nullptr).ok();
}

bool ColdReserve::IsWhole() {
  uint64_t size = 0;
  return files_->GetFileSize(path_, rocksdb::IOOptions(), &size, nullptr).ok() && size >= bytes_;
}

rocksdb::IOStatus ColdReserve::Allocate() {
  rocksdb::FileOptions options;
  options.allow_fallocate = true;
  options.fallocate_with_keep_size = false;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const rocksdb::IOStatus made = files_->NewWritableFile(path_, options, &file, nullptr);
  if (!made.ok()) return made;
  const rocksdb::IOStatus allocated = file->Allocate(0, bytes_, rocksdb::IOOptions(), nullptr);
  const rocksdb::IOStatus closed = file->Close(rocksdb::IOOptions(), nullptr);
  return allocated.ok() ? closed : allocated;
}

}  // namespace geardb::engine
