// More batches wait to be gathered than epochs have slots at once: who drew the next waited for one
// with the table's mutex, which all who gather need.
//
// concurrent: base/epoch.cc engine/internal/sampler_impl.cc
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/epoch.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

/// Whoever reads a file waits while this is set.
std::atomic<bool> g_reads_wait{false};

class WaitingFile final : public File {
 public:
  explicit WaitingFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  Result<size_t> Read(uint64_t offset, std::span<std::byte> into) override {
    while (g_reads_wait.load()) std::this_thread::yield();
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
};

/// Env::Posix(), but for reads of files.
class WaitingEnv final : public Env {
 public:
  Result<std::unique_ptr<File>> OpenFile(const std::string& path, FileOptions options) override {
    GEARDB_ASSIGN_OR_RETURN(std::unique_ptr<File> file, Posix()->OpenFile(path, options));
    return std::unique_ptr<File>(std::make_unique<WaitingFile>(std::move(file)));
  }
  Result<std::vector<std::string>> List(const std::string& directory) override {
    return Posix()->List(directory);
  }
  Result<bool> Exists(const std::string& path) override { return Posix()->Exists(path); }
  Status Remove(const std::string& path) override { return Posix()->Remove(path); }
  Status Rename(const std::string& from, const std::string& to) override {
    return Posix()->Rename(from, to);
  }
  Status CreateDirectory(const std::string& path) override {
    return Posix()->CreateDirectory(path);
  }
  Status SyncDirectory(const std::string& path) override { return Posix()->SyncDirectory(path); }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path, LockMode mode) override {
    return Posix()->Lock(path, mode);
  }
};

class ManyBatchesAheadConcurrentTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.env = &env_;
    StoreTest::SetUp();
  }
  void TearDown() override { Close(); }  // Its files go before the Env does.
  WaitingEnv env_;
};

TEST_F(ManyBatchesAheadConcurrentTest, AreAllGathered) {
  constexpr int64_t kAhead = 2 * EpochRegistry::kBlockReaders + 8;
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {testing::WindowSpec("all")};
  spec.priority_tables[0].selector = SelectorKind::kUniform;
  Create(spec);
  for (int i = 0; i < 1000; ++i) AppendClosed(4 * i, 4);
  ASSERT_GT(testing::DropFrames(*database_), 0u);
  ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      priority("all")->NewSampler({.batch = 1, .views = {{.column = "obs"}}, .prefetch = kAhead}));
  g_reads_wait = true;
  std::thread draws([&] {
    for (int i = 0; i < 3; ++i) EXPECT_OK(sampler->Next());
  });
  while (table_->Stats().frames.misses < kAhead) std::this_thread::yield();
  g_reads_wait = false;
  draws.join();
}

}  // namespace
}  // namespace geardb
