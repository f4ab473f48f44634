#include "engine/internal/cold_first_use.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/internal/cold_store.h"
#include "engine/internal/exit_close.h"

namespace geardb::engine {
namespace {

/// Files in memory; each call arms the exit anew. Handlers run in the reverse order: what RocksDB
/// has made before a call is destroyed after an exit that comes behind it has waited.
class ArmingFiles : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  static const char* kClassName() { return "GearDbArmingFiles"; }
  const char* Name() const override { return kClassName(); }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    ArmExit();
    return FileSystemWrapper::NewWritableFile(path, options, file, debug);
  }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override {
    ArmExit();
    return FileSystemWrapper::NewSequentialFile(path, options, file, debug);
  }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override {
    ArmExit();
    return FileSystemWrapper::NewRandomAccessFile(path, options, file, debug);
  }
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override {
    ArmExit();
    return FileSystemWrapper::NewDirectory(path, options, directory, debug);
  }
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* debug) override {
    ArmExit();
    return FileSystemWrapper::CreateDirIfMissing(path, options, debug);
  }
  rocksdb::IOStatus FileExists(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    ArmExit();
    return FileSystemWrapper::FileExists(path, options, debug);
  }
  rocksdb::IOStatus GetChildren(const std::string& directory, const rocksdb::IOOptions& options,
                                std::vector<std::string>* found,
                                rocksdb::IODebugContext* debug) override {
    ArmExit();
    return FileSystemWrapper::GetChildren(directory, options, found, debug);
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    ArmExit();
    return FileSystemWrapper::RenameFile(from, to, options, debug);
  }
};

/// All kinds of work: an open, a flush, a read, a close.
Status UseColdStore() {
  rocksdb::Env* const system = rocksdb::Env::Default();
  ArmExit();
  const std::unique_ptr<rocksdb::Env> memory(rocksdb::NewMemEnv(system));
  ArmExit();
  const ColdStoreOptions options{.memory_bytes = kColdMemoryBytesMin,
                                 .background_threads = 1,
                                 .files = std::make_shared<ArmingFiles>(memory->GetFileSystem())};
  GEARDB_ASSIGN_OR_RETURN(const auto store, ColdStore::Open("/first", options));
  ColdBatch batch(*store);
  const ColdChunkKey key;
  GEARDB_RETURN_IF_ERROR(batch.PutChunk(key, 1, std::as_bytes(std::span("chunk"))));
  GEARDB_RETURN_IF_ERROR(store->Write(&batch, 1));
  GEARDB_RETURN_IF_ERROR(store->Flush());
  GEARDB_RETURN_IF_ERROR(store->ReadChunk(key).status());
  return store->Close();
}

}  // namespace

void UseColdStoreOnce() {
  [[maybe_unused]] static const bool used = [] {
    // Handlers run in the reverse order: the first waits where nothing was made yet, the second
    // closes all before what was made is destroyed.
    ArmExit();
    const bool worked = UseColdStore().ok();
    ArmExit();
    return worked;
  }();
}

}  // namespace geardb::engine
