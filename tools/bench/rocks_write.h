// RocksDB's own bulk write: what the cleaner's work is measured beside.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace geardb::bench {

/// A RocksDB opened as the cold store opens its own, and written as it is: the same families,
/// memtables, files and threads, no log, batches of 8 MiB, atomic flushes.
class RocksWrites {
 public:
  /// How pages get there.
  enum class Pages : uint8_t {
    kRaw,      ///< As they are in memory; RocksDB compresses them with LZ4.
    kEncoded,  ///< As the cleaner gives them: compressed and with a checksum, beforehand.
  };
  static Result<std::unique_ptr<RocksWrites>> Make(const std::string& directory, Pages pages);
  ~RocksWrites();
  RocksWrites(const RocksWrites&) = delete;
  RocksWrites& operator=(const RocksWrites&) = delete;

  /// Writes pages under the keys that the cleaner would use, and flushes. Bytes of pages, as they
  /// are in memory, per second.
  Result<double> Write(std::span<const std::span<const std::byte>> pages);

 private:
  struct Rep;
  RocksWrites(Pages pages, std::unique_ptr<Rep> rep);
  Result<std::string> Encoded(uint64_t number, std::span<const std::byte> page) const;

  const Pages pages_;
  const std::unique_ptr<Rep> rep_;
  uint64_t next_ = 0;
};

}  // namespace geardb::bench
