// What RocksDB is used for first.
#pragma once

namespace geardb::engine {

/// Makes a store in memory and drops it, once in a process (some 10 ms), and has an exit close what
/// is open from then on (ArmExit). RocksDB makes static objects as it is used first. Where that was
/// in the cleaner, or while a store was opened, an exit in another thread destroyed those that were
/// there while others were being made. Behind an OpeningBeforeExit, for which an exit waits, but
/// for half a millisecond in which RocksDB makes the last of them. Thread-safe.
void UseColdStoreOnce();

}  // namespace geardb::engine
