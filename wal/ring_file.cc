#include "wal/ring_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace geardb::wal {

void RingFile::Freer::operator()(std::byte* memory) const { std::free(memory); }

RingFile::~RingFile() = default;

Status RingFile::Create(Env* env, const std::string& path, uint64_t bytes) {
  GEARDB_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, {.mode = FileMode::kCreate}));
  GEARDB_RETURN_IF_ERROR(file->Allocate(bytes));
  return file->Sync();
}

Result<std::unique_ptr<RingFile>> RingFile::Open(Env* env, const std::string& path, uint64_t bytes,
                                                 RingAccess access) {
  const FileMode mode = access == RingAccess::kReadOnly ? FileMode::kRead : FileMode::kReadWrite;
  auto opened = env->OpenFile(path, {.mode = mode});
  if (opened.status().code() == StatusCode::kNotFound) {
    return Status::Corruption(path,
                              " is missing: it held the newest bytes of the log; put it back, ",
                              "or ", bytes, " zeros to do without what only it held");
  }
  if (!opened.ok()) return opened.status();
  std::unique_ptr<File> file = std::move(opened).value();
  GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size != bytes) {
    return Status::Corruption(path, " has ", size, " bytes, the manifest says ", bytes);
  }
  // A store into a hole of a mapped file on a full disk would be a SIGBUS.
  if (access != RingAccess::kReadOnly) GEARDB_RETURN_IF_ERROR(file->Allocate(bytes));
  std::unique_ptr<RingFile> ring(new RingFile(std::move(file), bytes));
  // An open looks at all of it, by faults of single pages where it is mapped.
  GEARDB_ASSIGN_OR_RETURN(const auto extents, ring->WrittenExtents());
  for (const FileExtent& extent : extents) ring->file_->Prefetch(extent);
  if (access == RingAccess::kMapped) {
    auto mapping = ring->file_->Map();
    if (mapping.ok()) {
      ring->mapping_ = std::move(mapping).value();
      ring->memory_ = ring->mapping_->data();
      return ring;
    }
    ring->path_name_ = "written (" + std::string(mapping.status().message()) + ")";
  } else {
    ring->path_name_ = access == RingAccess::kReadOnly ? "read only" : "written (by choice)";
  }
  GEARDB_RETURN_IF_ERROR(ring->Load());
  return ring;
}

Status RingFile::Load() {
  // calloc: what is never written stays untouched.
  private_memory_.reset(static_cast<std::byte*>(std::calloc(2 * bytes_, 1)));
  if (private_memory_ == nullptr) {
    return Status::ResourceExhausted("no memory for ", 2 * bytes_, " bytes of ", file_->path());
  }
  memory_ = private_memory_.get();
  GEARDB_ASSIGN_OR_RETURN(const auto extents, WrittenExtents());
  for (const FileExtent& extent : extents) {
    const std::span<std::byte> into(memory_ + extent.begin, extent.end - extent.begin);
    GEARDB_ASSIGN_OR_RETURN(const size_t read, file_->Read(extent.begin, into));
    if (read != into.size()) {
      return Status::Corruption(file_->path(), " ends at ", extent.begin + read, " while read");
    }
    std::memcpy(memory_ + bytes_ + extent.begin, into.data(), into.size());
  }
  return Status::Ok();
}

Status RingFile::WriteThrough(Lsn lsn, uint64_t bytes) {
  const uint64_t begin = lsn & (bytes_ - 1);
  const uint64_t before_seam = std::min(bytes, bytes_ - begin);
  const uint64_t after_seam = bytes - before_seam;
  // Keep the two halves of the memory equal, as the double map does.
  std::memcpy(memory_ + bytes_ + begin, memory_ + begin, before_seam);
  if (after_seam > 0) std::memcpy(memory_, memory_ + bytes_, after_seam);
  GEARDB_RETURN_IF_ERROR(file_->Write(begin, {memory_ + begin, before_seam}));
  if (after_seam == 0) return Status::Ok();
  return file_->Write(0, {memory_, after_seam});
}

Result<std::vector<FileExtent>> RingFile::WrittenExtents() {
  std::vector<FileExtent> extents;
  uint64_t at = 0;
  while (at < bytes_) {
    GEARDB_ASSIGN_OR_RETURN(FileExtent extent, file_->NextWritten(at));
    extent.end = std::min(extent.end, bytes_);
    if (extent.begin >= extent.end) break;
    extents.push_back(extent);
    at = extent.end;
  }
  return extents;
}

}  // namespace geardb::wal
