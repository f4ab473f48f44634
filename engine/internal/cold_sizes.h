// What sizes the RocksDB of a cold store is given for its memory. Seen by engine/internal/cold_*.cc
// alone.
#pragma once

#include <cstdint>

#include "engine/internal/cold_store.h"

namespace geardb::engine {

/// An SST file's index and filter, about a twentieth of it, are read as a whole: they are to be
/// small in what holds blocks, or each read of a page reads them again.
uint64_t SstFileBytes(const ColdStoreOptions& options);

/// Blocks are held in so many parts, as a power of two. What is not flushed takes pieces of 256 KiB
/// of any: of parts that are not many times as large, those that two fall to have no room for a
/// block.
int CacheShardBits(uint64_t memory_bytes);

/// Of files that are written and of memtables; more where `unflushed_bytes`, which they may hold
/// together, is more.
uint64_t BufferBytes(uint64_t unflushed_bytes);

}  // namespace geardb::engine
