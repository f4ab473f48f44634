// What a cold store says of itself: its format, the LSN of the last batch, and which removed ranges
// are still to be reclaimed. Seen by engine/internal/cold_*.cc alone.
//
// It is one value, in both column families of index chunks (cold_chunks.h), under a key before all
// of theirs; every batch puts it into both anew. So it is in two files, like a chunk, and a family
// that is damaged is made anew from the other one with it. (Several keys could not lie before all
// chunks, where no range of chunks that is removed reaches them; families of their own would have
// to be looked at and mended by themselves.)
#pragma once

#include <rocksdb/db.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/internal/cold_chunks.h"
#include "engine/internal/cold_keys.h"

namespace geardb::engine {

/// On disk: frozen. In a version of the value that has another one, checksum and format stay where
/// they are.
inline constexpr std::string_view kColdOwnKey{"\0\0", 2};
inline constexpr uint32_t kColdFormat = 4;
/// Known, too: its pages do not name their LSNs (cold_page.h). A store keeps the format that it was
/// made with.
inline constexpr uint32_t kColdFormatWithoutLsns = 3;

/// How far a store has come.
struct ColdPosition {
  uint64_t lsn = 0;
  uint64_t batch = 0;  ///< Counts batches, from 1.
};

/// A range that a batch removes.
struct ColdRemoval {
  bool of_chunks = false;
  ColdKeyRange keys = {};
};

struct ColdOwn {
  ColdPosition position = {};
  std::vector<ColdRemoval> removals = {};  ///< Whose files are still to be dropped.
  uint32_t format = kColdFormat;
};

/// u64 checksum (XXH3, seed 0) of what follows; u32 format, u32 number of ranges, u64 LSN, u64
/// batch; for each range u32 whether of chunks, u32 and u32 lengths of its keys, begin, end.
std::string EncodeColdOwn(const ColdOwn& own);
/// Corruption; Unsupported for another format.
Result<ColdOwn> DecodeColdOwn(std::string_view bytes);

class ColdListener;
struct ColdDb;

/// The newest of the copies. NotFound where none has it; Corruption where nothing else is there.
/// One that is damaged, where the other is not, is noted. Null families are passed over.
Result<ColdOwn> ReadColdOwn(rocksdb::DB* db,
                            const std::array<rocksdb::ColumnFamilyHandle*, kChunkCopies>& copies,
                            const rocksdb::ReadOptions& options, ColdListener* listener);
/// Of an open store, also what is not flushed. Unsupported also where a format before 3 has it.
Result<ColdOwn> ReadColdOwn(const ColdDb& db);
/// Adds it to the batch, for both copies, in the store's format.
rocksdb::Status PutColdOwn(const ColdDb& db, const ColdOwn& own, rocksdb::WriteBatch* batch);

}  // namespace geardb::engine
