// RocksDB's blob files, which hold the values of pages and of index chunks, where their first or
// last bytes are bad. RocksDB reads nothing of a file whose header or footer it cannot read: one
// that was cut short would cost all the values that it still has.
//
// Neither says anything of the values: where one lies and how long it is stands with its key in an
// SST file. So both can be made again (BrokenBlob). Until `geardb repair` has written them,
// RocksDB is shown the file as if it had them, once a read has failed. What lies beyond a cut is
// Corruption value by value then, and whatever is read has RocksDB's checksum and the page's own.
//
// In a file (RocksDB's "blob log format", all little-endian):
//   header: 0 u32 magic   4 u32 version 1   8 u32 column family   12 u8 flags   13 u8 compression
//           14 u64, u64 expiration
//   records: 0 u64 bytes of the key   8 u64 bytes of the value   16 u64 expiration   24 u32, u32
//           checksums   32 key   value
//   footer, at the end: 0 u32 magic   4 u64 records   12 u64, u64 expiration   28 u32 checksum
// Flags, compression and expirations are 0: the store uses none of them.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace rocksdb {
class ColumnFamilyHandle;
class PinnableSlice;
class Status;
}  // namespace rocksdb

namespace geardb::engine {

struct ColdDb;
struct ColdPageKey;

inline constexpr uint64_t kBlobHeaderBytes = 30;
inline constexpr uint64_t kBlobFooterBytes = 32;
std::string BlobHeader(uint32_t family);
std::string BlobFooter(uint64_t records);

/// A blob file as the manifest names it.
struct BlobFile {
  std::string path;
  uint64_t number = 0;
  uint32_t family = 0;
  std::string family_name;
  uint64_t records = 0;         ///< Values that were put into it.
  uint64_t records_left = 0;    ///< Of these, keys refer to so many.
  uint64_t expected_bytes = 0;  ///< When it was made.
};
/// Those that some key may refer to, whether they are there or not. Others may be named still.
std::vector<BlobFile> LiveBlobFiles(const ColdDb& store);

/// A blob file that is there without its header, its footer or both, and what these should be.
struct BrokenBlob {
  std::string path;
  uint64_t bytes = 0;       ///< Of the file.
  std::string header = {};  ///< Empty: it is good.
  std::string footer = {};  ///< Likewise. Its place is behind all that is there.
  bool cut = false;         ///< Bytes of values are missing.
  std::string why = {};     ///< What is wrong, with the file's path.

  /// Where the footer is to be.
  uint64_t end() const { return bytes < kBlobHeaderBytes ? kBlobHeaderBytes : bytes; }
};
std::vector<BrokenBlob> FindBrokenBlobs(const ColdDb& store);

/// The blob files of a cold store as RocksDB is to see them. Thread-safe.
class BlobFiles : public rocksdb::FileSystemWrapper {
 public:
  explicit BlobFiles(std::shared_ptr<rocksdb::FileSystem> files);
  static const char* kClassName() { return "BlobFiles"; }
  const char* Name() const override { return kClassName(); }

  /// What is wrong with a file that is there and can be read.
  std::optional<BrokenBlob> Look(const BlobFile& file) const;
  /// From now on RocksDB sees the file with header and footer, when it opens it.
  void Show(const BrokenBlob& blob);
  /// Writes the header and the footer, and syncs. A death meanwhile leaves a file that is broken,
  /// with all its values.
  Status Mend(const BrokenBlob& blob);

  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* debug) override;

 private:
  /// With another compression in its header RocksDB opens a file, for good, and reads no value: it
  /// is shown what all headers have but for the family.
  void WithGoodHeader(const std::string& path,
                      std::unique_ptr<rocksdb::FSRandomAccessFile>* file) const;
  std::optional<BrokenBlob> Shown(const std::string& path) const;

  mutable Mutex mutex_;
  std::map<std::string, BrokenBlob> shown_ GEARDB_GUARDED_BY(mutex_);  // By path.
};

/// RocksDB's Get, as of a snapshot, if there is one. Where it meets damage, blob files that lack
/// header or footer are shown with them, and it is tried again.
rocksdb::Status GetValue(const ColdDb& store, rocksdb::ColumnFamilyHandle* family,
                         std::string_view key, const rocksdb::Snapshot* as_of,
                         rocksdb::PinnableSlice* value);

/// Where the value of a page's newest version lies, if it is in a blob file.
struct BlobPlace {
  std::string path;
  uint64_t number = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
/// As RocksDB's keys have it; nothing where `value` is none of a blob file in `directory`.
std::optional<BlobPlace> DecodeBlobPlace(const std::string& directory, std::string_view value);
/// All SST files of pages must open (FindLostPages): RocksDB's iterators end the process else.
std::optional<BlobPlace> FindBlobPlace(const ColdDb& store, const ColdPageKey& key);

}  // namespace geardb::engine
