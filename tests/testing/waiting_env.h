// An Env whose reads a test holds up, and a store whose files are of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/forwarding_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb::testing {

/// Env::Posix(), but for reads of files.
class WaitingEnv final : public ForwardingEnv {
 public:
  /// So many reads are done from now on; the others wait until more may be. Any thread.
  void LetRead(int64_t count) { left_.store(count); }
  void LetAllRead() { left_.store(std::numeric_limits<int64_t>::max()); }
  /// Whether one waits, or has waited since the last LetRead.
  bool HeldUp() const { return left_.load() < 0; }

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, FileOptions options) override {
    GEARDB_ASSIGN_OR_RETURN(std::unique_ptr<File> file, Posix()->OpenFile(path, options));
    return std::unique_ptr<File>(std::make_unique<WaitingFile>(std::move(file), &left_));
  }

 private:
  class WaitingFile final : public File {
   public:
    WaitingFile(std::unique_ptr<File> file, std::atomic<int64_t>* left)
        : file_(std::move(file)), left_(*left) {}
    Result<size_t> Read(uint64_t offset, std::span<std::byte> into) override {
      left_.fetch_sub(1);
      while (left_.load() < 0) std::this_thread::yield();
      return file_->Read(offset, into);
    }
    Status Write(uint64_t offset, std::span<const std::byte> from) override {
      return file_->Write(offset, from);
    }
    Status Sync() override { return file_->Sync(); }
    Result<uint64_t> Size() override { return file_->Size(); }
    Status Allocate(uint64_t bytes) override { return file_->Allocate(bytes); }
    Result<FileExtent> NextWritten(uint64_t offset) override { return file_->NextWritten(offset); }
    void Prefetch(const FileExtent& extent) override { file_->Prefetch(extent); }
    Result<std::unique_ptr<Mapping>> Map() override { return file_->Map(); }
    bool direct() const override { return file_->direct(); }
    std::string_view direct_note() const override { return file_->direct_note(); }
    const std::string& path() const override { return file_->path(); }

   private:
    const std::unique_ptr<File> file_;
    std::atomic<int64_t>& left_;
  };

  std::atomic<int64_t> left_{std::numeric_limits<int64_t>::max()};
};

class WaitingStoreTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.env = &env_;
    StoreTest::SetUp();
  }
  void TearDown() override { Close(); }  // Its files go before the Env does.

  WaitingEnv env_;
};

}  // namespace geardb::testing
