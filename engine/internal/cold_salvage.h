// Pages whose keys went with bad blocks of an SST file, or with the file, found again in the blob
// files: a value lies there with its key (cold_blobs.h), and names the LSN that tells it from the
// page's other versions.
//
// So what is lost costs only pages whose values it has itself (ColdStoreOptions::blob_bytes_min).
// What was deleted is found, too: only what the index says is there may be asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/internal/cold_blobs.h"
#include "engine/internal/cold_keys.h"

namespace geardb::engine {

struct LostFile;

/// Thread-safe.
class ColdSalvage {
 public:
  /// Of `db`, which outlives it.
  explicit ColdSalvage(const ColdDb* db) : db_(db) {}

  /// Looks for the pages that lay in bad blocks of these SST files, where that was not done yet:
  /// one read of each, and of the keys in all blob files of pages.
  void LookFor(std::span<const LostFile> files);
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
  using Versions = std::map<Lsn, BlobPlace>;

  /// All keys where the file cannot be opened.
  KeySpan BadBlocksOf(const LostFile& file) const;
  void LookInto(const BlobFile& file) GEARDB_REQUIRES(mutex_);
  bool IsLookedFor(const std::string& key) const GEARDB_REQUIRES(mutex_);
  /// Nothing where its checksum does not fit.
  std::optional<std::string> ReadValue(const BlobPlace& place) const;

  const ColdDb* const db_;
  mutable Mutex mutex_;
  std::set<uint64_t> files_ GEARDB_GUARDED_BY(mutex_);  // SST files that were looked at.
  std::vector<KeySpan> spans_ GEARDB_GUARDED_BY(mutex_);
  std::map<ColdPageKey, Versions> found_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
