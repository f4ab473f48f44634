#include "tools/bench/slow_sync_env.h"

#include <algorithm>
#include <utility>

namespace geardb::bench {

class SlowSyncEnv::SlowFile final : public File {
 public:
  SlowFile(SlowSyncEnv* env, std::unique_ptr<File> file) : env_(env), file_(std::move(file)) {}

  Result<size_t> Read(uint64_t offset, std::span<std::byte> into) override {
    return file_->Read(offset, into);
  }
  Status Write(uint64_t offset, std::span<const std::byte> from) override {
    return file_->Write(offset, from);
  }
  Status Sync() override { return env_->Sync(file_.get()); }
  Result<uint64_t> Size() override { return file_->Size(); }
  Status Allocate(uint64_t bytes) override { return file_->Allocate(bytes); }
  Result<FileExtent> NextWritten(uint64_t offset) override { return file_->NextWritten(offset); }
  void Prefetch(const FileExtent& extent) override { file_->Prefetch(extent); }
  Result<std::unique_ptr<Mapping>> Map() override { return file_->Map(); }
  bool direct() const override { return file_->direct(); }
  std::string_view direct_note() const override { return file_->direct_note(); }
  const std::string& path() const override { return file_->path(); }

 private:
  SlowSyncEnv* const env_;
  const std::unique_ptr<File> file_;
};

Status SlowSyncEnv::Sync(File* file) {
  GEARDB_RETURN_IF_ERROR(file->Sync());
  MutexLock lock(&mutex_);
  const auto begins = std::max(free_, std::chrono::steady_clock::now());
  const Deadline done(begins + extra_);
  free_ = done.at();
  while (!done.passed()) time_passes_.WaitUntil(&mutex_, done);
  return Status::Ok();
}

Result<std::unique_ptr<File>> SlowSyncEnv::OpenFile(const std::string& path, FileOptions options) {
  GEARDB_ASSIGN_OR_RETURN(auto file, Posix()->OpenFile(path, options));
  return std::unique_ptr<File>(new SlowFile(this, std::move(file)));
}

}  // namespace geardb::bench
