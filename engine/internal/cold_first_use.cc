#include "engine/internal/cold_first_use.h"

#include <rocksdb/env.h>

#include <memory>
#include <span>

#include "engine/internal/cold_store.h"

namespace geardb::engine {
namespace {

/// All kinds of work: an open, a flush, a read, a close.
Status UseColdStore() {
  const std::unique_ptr<rocksdb::Env> memory(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  const ColdStoreOptions options{.memory_bytes = kColdMemoryBytesMin,
                                 .background_threads = 1,
                                 .files = memory->GetFileSystem()};
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
  // Whatever came of it, it was used.
  [[maybe_unused]] static const bool used = UseColdStore().ok();
}

}  // namespace geardb::engine
