// RocksDB's manifest, which alone says of what files a cold store consists, is kept twice: whatever
// RocksDB writes to `MANIFEST-N` is written to `MANIFEST_COPY-N` beside it, too.
//
// Both hold the same bytes, in records with a checksum each. So a record that is bad in one file is
// taken from the other; what both have not is where the manifest ends, as for RocksDB (after a
// crash the last record may be torn). `CURRENT`, which names the manifest, is made again from the
// names of the manifests: the newest that was begun and finished is meant.
//
// Nothing is written for it: RocksDB *reads* what was mended, from memory, and an open for writing
// makes a new manifest with a new copy anyway, and a new `CURRENT`. So an open for reading finds
// the same. A death before that leaves everything as it was.
//
// Invariants: a copy is never ahead of its original by more than what was lost with a torn tail. A
// copy that could not be written is deleted, and made anew as soon as it can be.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace geardb::engine {

/// On disk: frozen.
inline constexpr std::string_view kManifestPrefix = "MANIFEST-";
inline constexpr std::string_view kManifestCopyPrefix = "MANIFEST_COPY-";

/// What a manifest and its copy say together.
struct MergedManifest {
  std::string bytes = {};  ///< Up to the first record that neither has.
  uint64_t own_end = 0;    ///< Up to where the original by itself can be read.
  uint64_t copy_end = 0;   ///< Likewise the copy.

  bool mended() const { return bytes.size() > own_end; }
};
MergedManifest MergeManifests(std::string_view original, std::string_view copy);

/// Whether a manifest's bytes, as far as they can be read, say all that RocksDB asks of one: what
/// the begin of one that was never finished does not.
bool IsCompleteManifest(std::string_view manifest);

/// An SST file of a column family, as a manifest names it.
struct ManifestFile {
  uint32_t family = 0;
  uint32_t level = 0;
  uint64_t number = 0;
};
/// Adds to a manifest's bytes that the file is no part of the store any more.
void AppendDropped(const ManifestFile& file, std::string* manifest);

/// The files of a cold store as RocksDB is to see them. Look comes first, and nobody else is there
/// meanwhile; thread-safe from then on.
class ManifestFiles : public rocksdb::FileSystemWrapper {
 public:
  ManifestFiles(std::shared_ptr<rocksdb::FileSystem> files, std::string directory);
  static const char* kClassName() { return "ManifestFiles"; }
  const char* Name() const override { return kClassName(); }

  /// Finds the manifest. NotFound where there is no store; Corruption names both files where
  /// neither can be read.
  Status Look();
  /// What was mended, a line each.
  const std::vector<std::string>& damage() const { return damage_; }
  /// What is worth knowing and is no damage: a copy that is missing or short, a torn tail.
  const std::vector<std::string>& notes() const { return notes_; }
  /// What is known of a manifest that RocksDB refuses; empty: nothing is wrong with it.
  const std::string& doubt() const { return doubt_; }
  /// Of a manifest that was found: RocksDB reads that these files are no part of the store. After
  /// Look, before RocksDB.
  void LeaveOut(const std::vector<ManifestFile>& files);
  /// Copies of manifests that are gone leave.
  Status DeleteStrays();
  /// While it refuses, no SST or blob file can be made: NoSpace. Thread-safe.
  void RefuseTables(bool refuse) { refuses_tables_ = refuse; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus FileExists(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  /// One of the two, as it is on disk.
  struct OnDisk {
    std::string path;
    std::string bytes;
    rocksdb::IOStatus read;

    bool missing() const;
  };
  OnDisk Read(const std::string& name) const;
  /// Reads both files of this manifest, and serves what they say together. Whether that is all
  /// that one of them has.
  bool Take(uint64_t number);
  Status MakeCurrent(const std::string& why, const std::set<uint64_t>& manifests);

  const std::string directory_;
  std::atomic<bool> refuses_tables_{false};
  // Only Look changes these.
  std::map<std::string, std::string> served_;  // Bytes that are read in place of a file's, by path.
  std::vector<std::string> damage_;
  std::vector<std::string> notes_;
  std::string doubt_;
  std::string path_;   // Of the manifest that was found.
  std::string bytes_;  // Of it, as far as it can be read.
};

}  // namespace geardb::engine
