// RocksDB's SST files, which hold the keys of a cold store, and small values, where the *tail* of
// one is bad: what lies behind its blocks of keys, and leads to them. RocksDB reads nothing of such
// a file, though all keys are there; and where a bad block of the tail holds deletions of ranges,
// it says nothing and does without.
//
// The tail can be made again from the blocks of keys, which say by themselves where they end
// (cold_table_block.h). So every open looks at all tails, a few percent of the files, and RocksDB
// is shown those that are bad as they should be, until `geardb repair` has written them. A bad
// block of keys in such a file stays what it is: Corruption for the keys that may be in it.
//
// In a file: blocks of keys; then the tail: a filter, an index, deletions of ranges, properties,
// an index of these; and at the very end
//   u8 kind of checksum: 4, XXH3   places of the index of the tail's blocks and of the index, then
//   zeros up to 41   u32 version: 5   u64 magic
// How keys end says cold_table_keys.h. The filter is not made again: reads do without.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace geardb::engine {

/// Whether all of a file's tail fits its checksums. `read_from` gives what the file has from an
/// offset on; it is called up to three times.
bool HasGoodTail(uint64_t file_bytes, const std::function<std::string(uint64_t)>& read_from);

/// An SST file with a bad tail, and what it should be.
struct BrokenTable {
  std::string path = {};
  uint64_t from = 0;  ///< Where the tail begins.
  std::string tail = {};
  uint64_t bytes() const { return from + tail.size(); }  ///< Of the file.
  bool lost_deletions = false;  ///< Deletions of ranges were in it that nothing says any more.
  std::string why = {};         ///< What is wrong, with the file's path.
};
/// Of a file's bytes, without path and words. Nothing where neither keys nor deletions are found,
/// or no room for a tail behind them.
std::optional<BrokenTable> MakeTail(std::string_view file);

/// The SST files of a cold store as RocksDB is to see them. LookAt comes first, and nobody else is
/// there meanwhile; thread-safe from then on.
class TableFiles : public rocksdb::FileSystemWrapper {
 public:
  explicit TableFiles(std::shared_ptr<rocksdb::FileSystem> files);
  static const char* kClassName() { return "TableFiles"; }
  const char* Name() const override { return kClassName(); }

  /// From now on RocksDB sees all SST files in the directory with good tails, as far as that can
  /// be.
  void LookAt(const std::string& directory);
  /// What is wrong with a file that should have so many bytes, where RocksDB is shown another tail;
  /// null: nothing, or it has not as many.
  const BrokenTable* Shown(const std::string& path, uint64_t bytes) const;
  /// Writes the tail, and syncs. A death meanwhile leaves a file that is broken, with all its
  /// keys.
  Status Mend(const BrokenTable& table);

  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;

 private:
  std::optional<BrokenTable> Look(const std::string& path) const;
  const BrokenTable* Find(const std::string& path) const;

  std::map<std::string, BrokenTable> shown_;  // By path. Only LookAt changes it.
};

}  // namespace geardb::engine
