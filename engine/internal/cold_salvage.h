// Pages whose keys went with bad blocks of an SST file, or with the file, found again: in the blob
// files, where a value lies with its key (cold_blobs.h), and small values in the good blocks of the
// file itself, which RocksDB does not read where it was cut. A value names the LSN that tells it
// from the page's other versions.
//
// So what is lost costs only pages whose values it had itself (ColdStoreOptions::blob_bytes_min),
// unless another file has them: those that a read of the page may pass through are looked at, too.
// What was deleted is found, too: only what the index says is there may be asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/internal/cold_blobs.h"
#include "engine/internal/cold_db.h"
#include "engine/internal/cold_keys.h"
#include "engine/internal/cold_table_keys.h"

namespace geardb::engine {

/// The keys of the values in an SST file's good blocks.
std::set<std::string> GoodKeysOf(const ColdDb& db, const LostFile& file);

/// Thread-safe.
class ColdSalvage {
 public:
  /// Of `db`, which outlives it.
  explicit ColdSalvage(const ColdDb* db) : db_(db) {}

  /// Looks for the pages that lay in these SST files and, of those in bad blocks, in the blob
  /// files, where that was not done yet: one read of each, and of the keys in all blob files of
  /// pages.
  void LookFor(std::span<const LostFile> files);
  /// Looks into an SST file that has no bad blocks, too, where that was not done yet. False where
  /// not all of it can be read: it is only away, perhaps, or has left meanwhile.
  bool LookBeside(const rocksdb::LiveFileMetaData& file);
  /// The value of the page's oldest version that is not older than `lsn`. Nothing where there is
  /// none among what was looked for, or where no version has an LSN.
  std::optional<std::string> Find(const ColdPageKey& key, Lsn lsn) const;
  /// The keys of all pages that were found, in their order.
  std::vector<ColdPageKey> keys() const;
  /// The value of a page's newest version.
  std::optional<std::string> FindNewest(const ColdPageKey& key) const;

 private:
  /// Keys of pages, the first and the last included: bad blocks lie between them.
  struct KeySpan {
    std::string first;
    std::string last;
  };
  /// Where a value lies: by itself, or in a block of an SST file.
  struct ValuePlace {
    std::string path;
    uint64_t offset = 0;  // Of the block's contents.
    uint64_t bytes = 0;   // Likewise.
    bool in_block = false;
  };
  using Versions = std::map<Lsn, ValuePlace>;

  /// Notes what the file's good blocks have, and the spans of its bad ones.
  void LookInto(const LostFile& file) GEARDB_REQUIRES(mutex_);
  void Note(const ColdPageKey& key, std::string_view value, const ValuePlace& place)
      GEARDB_REQUIRES(mutex_);
  void NoteValues(const std::string& path, const TableBlock& block) GEARDB_REQUIRES(mutex_);
  void LookInto(const BlobFile& file) GEARDB_REQUIRES(mutex_);
  bool IsLookedFor(const std::string& key) const GEARDB_REQUIRES(mutex_);
  /// Nothing where its checksum does not fit.
  std::optional<std::string> ReadValue(const ColdPageKey& key, const ValuePlace& place) const;
  std::optional<std::string> ReadBlobValue(const ValuePlace& place) const;

  const ColdDb* const db_;
  mutable Mutex mutex_;
  /// SST files that LookFor has read, and whether they could be read whole, but for bad blocks.
  std::map<uint64_t, bool> files_ GEARDB_GUARDED_BY(mutex_);
  std::set<uint64_t> beside_ GEARDB_GUARDED_BY(mutex_);  // That LookBeside has read.
  std::vector<KeySpan> spans_ GEARDB_GUARDED_BY(mutex_);
  std::map<ColdPageKey, Versions> found_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
