// What RocksDB is used for first.
#pragma once

namespace geardb::engine {

/// Makes a store in memory and drops it, once in a process (some 10 ms). RocksDB makes static
/// objects as it is used first. Where that was in the cleaner, an exit in another thread destroyed
/// those that were there while others were being made. For an open that may have the cleaner make a
/// store later; one that opens a store has used RocksDB before anybody can know of it. Thread-safe.
void UseColdStoreOnce();

}  // namespace geardb::engine
