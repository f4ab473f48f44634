// Looks at both copies of all index chunks of a cold store that nobody has open (cold_chunks.h),
// and makes whole what is not: for the tools. An open itself reads second copies only where it
// needs them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/status.h"

namespace rocksdb {
class FileSystem;
}

namespace geardb::engine {

/// Whether files of these names are those of a cold store: one whose CURRENT was lost has others.
bool IsColdStore(std::span<const std::string> names);
/// Whether there is one in `directory`.
Result<bool> HoldsColdStore(Env* env, const std::string& directory);

struct ColdCheck {
  uint64_t chunks = 0;  ///< That at least one of the copies has.
  /// What is wrong, a line each: files that are missing, of pages too, and copies that are damaged,
  /// by chunk.
  std::vector<std::string> files = {};
  std::vector<std::string> copies = {};
  /// What is wrong with blob files that lack their header or footer (cold_blobs.h), by path.
  std::map<std::string, std::string> blobs = {};
  /// What is wrong with SST files that have a bad tail (cold_tables.h), by path.
  std::map<std::string, std::string> tables = {};
  /// What of RocksDB's manifest was read from its copy (cold_manifest.h).
  std::vector<std::string> manifest = {};
  /// What is no damage.
  std::vector<std::string> notes = {};
  /// Of `blobs`, some lack bytes of values.
  bool blobs_cut = false;
  /// Of `files`, some are of pages (MendColdPages).
  bool pages = false;
  uint64_t files_of_pages = 0;  ///< So many SST files of pages are damaged.
  /// Of each page it is known which version it is: an older one that comes up is not taken for it.
  bool pages_name_lsns = false;
  /// Something of that is one of the copies', and the other may have it.
  bool mendable = false;
  /// The same blocks of both copies are bad: nobody can say which chunks these had.
  bool both_bad = false;

  std::vector<std::string> damage() const;
};

/// `directory` is the cold store's own. Nothing is written. Errors as of ColdStore::Open;
/// Corruption also where neither copy can be read to its end.
Result<ColdCheck> CheckColdChunks(const std::string& directory);

/// Writes copies that are damaged or missing again, from the others, after MendColdFiles; the
/// manifest, too. What
/// neither copy has stays as it is. `log_start` as in ColdStoreOptions. FailedPrecondition where
/// damage to something else leaves the store for reading only.
Status MendColdChunks(const std::string& directory, uint64_t log_start);

/// Gives blob files their headers and footers again, and SST files their tails; what they still
/// have is read then. Corruption where `log_start` is ahead of the store.
Status MendColdFiles(const std::string& directory, uint64_t log_start);

/// Drops files of pages that are missing or damaged from what the store consists of, after what can
/// be read of them was written again, and the pages whose values were in them, or in what blob
/// files that were cut short (after MendColdFiles) have lost. Older versions of
/// pages may come up. Where pages do not name their LSNs, nothing that is still asked for may be
/// there that cannot be read: it could be one of these. Errors as of MendColdChunks. `files`: as of
/// ColdStoreOptions.
Status MendColdPages(const std::string& directory, uint64_t log_start,
                     std::shared_ptr<rocksdb::FileSystem> files = nullptr);

}  // namespace geardb::engine
