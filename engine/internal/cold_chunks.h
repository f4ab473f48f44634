// Index chunks in the RocksDB of a cold store: a chunk's value, and that each is kept twice. Seen
// by engine/internal/cold_*.cc alone.
//
// Nothing else has what an index chunk says, once the log is cut; so each is in two column
// families, "chunks" and "copies", and thus in two files: a bad block, a bad file or a missing one
// hits at most one copy. Every change is made in both by one batch. A read takes the first copy,
// and the second where that is damaged or not there.
//
// A family that has all chunks says so by a *mark*, a key before all others, which is put last when
// the family is made from the other. The mark leaves when damage is found in the family; the next
// open for writing drops such a family and makes it anew, so nothing stays of its bad files. Until
// then, chunks that a read has found damaged are written again by the next batch. What the store
// says of itself lies between the mark and the chunks, and goes with them (cold_own.h).
#pragma once

#include <rocksdb/db.h>

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/internal/cold_store.h"

namespace geardb::engine {

inline constexpr size_t kChunkCopies = 2;
/// Column families, by copy. On disk: frozen.
inline constexpr std::array<const char*, kChunkCopies> kChunkFamilies = {"chunks", "copies"};
/// The mark's key; it has no value. On disk: frozen.
inline constexpr std::string_view kWholeMark{"\0", 1};

/// What was found damaged, by copy. Thread-safe.
class WornCopies {
 public:
  struct Found {
    std::array<std::set<std::string>, kChunkCopies> keys;
    std::array<bool, kChunkCopies> family = {};  ///< Some of it, or all: nobody knows which keys.

    bool any(size_t copy) const { return family[copy] || !keys[copy].empty(); }
    bool any() const { return any(0) || any(1); }
  };

  void Note(size_t copy, const std::string& key);
  /// `name` may be of any column family.
  void NoteFamily(std::string_view name);
  /// Nothing is noted afterwards.
  Found Take();
  /// Notes it again.
  void GiveBack(const Found& found);

 private:
  Mutex mutex_;
  Found found_ GEARDB_GUARDED_BY(mutex_);
};

/// A chunk's value: u64 LSN, u64 checksum (XXH3, seeded by the LSN, of the key and the bytes), the
/// bytes. InvalidArgument where they are too many.
Status EncodeColdChunk(const ColdChunkKey& key, uint64_t lsn, std::span<const std::byte> bytes,
                       std::string* value);
/// Corruption that names the chunk.
Result<ColdChunk> DecodeColdChunk(const ColdChunkKey& key, std::string_view value);

/// OK where the copy's family has its mark, NotFound where it has none; Corruption, IoError.
Status FindMark(const ColdDb& db, size_t copy);
/// NotFound, also where the copy's whole family is not there; Corruption, IoError.
Result<ColdChunk> ReadChunkCopy(const ColdDb& db, const ColdChunkKey& key, size_t copy);
/// One of the copies. One that is damaged, where the other is not, is noted.
Result<ColdChunk> ReadEitherCopy(const ColdDb& db, const ColdChunkKey& key);
/// Calls `visit` for each key that one of the copies has, from `first` on, until it fails or says
/// false. Corruption where neither copy can be read any further.
Status ForEachChunkKey(const ColdDb& db, const ColdChunkKey& first,
                       const std::function<Result<bool>(const ColdChunkKey&)>& visit);

/// Writes what was noted again, from the other copy, and takes the marks of its families away.
Status WriteWornAgain(ColdDb* db);
/// Before anything else is done with a store that was opened for writing: each family without a
/// mark, or with something noted, is made anew, if the other one is whole. What could not be mended
/// is noted as damage; the store has then what it had. An error is one of writing.
Status KeepTwice(ColdDb* db);
/// OK where all of a copy's family can be read: also what no read of a chunk asks for.
Status CheckFamily(const ColdDb& db, size_t copy);
/// The copy whose family cannot be read to its end, where the other one is marked and can be;
/// kChunkCopies where there is no such.
size_t DamagedCopy(const ColdDb& db);

}  // namespace geardb::engine
