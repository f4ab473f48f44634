// ColdTier: the cold store of an open database (directory `<database>/cold`), which is made when
// something is first put there, and the image of the index in it.
//
// The store holds pages and chunks of two images, by turns: the current one is named by a head,
// which changes in one batch. What an open finds is the batches up to some batch, so a head is
// found only with all chunks of its image and all pages that had been put by then.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/env.h"
#include "base/mutex.h"
#include "engine/internal/cold_store.h"
#include "engine/internal/image_chunk.h"

namespace geardb::engine {

inline constexpr const char* kColdDirectory = "cold";

/// Which image is current.
struct ImageHead {
  uint64_t number = 0;  ///< Counts images, from 1; 0: there is none.
  Lsn lsn = 0;          ///< As of which it is: records from here on are to be applied to it.
  Lsn log_from = 0;     ///< Where reading has to begin: parts of these records may lie before.
  Lsn log_start = 0;    ///< Pages in pieces that begin at or beyond it are not in the store.
};

/// Thread-safe.
class ColdTier {
 public:
  /// `env` has the files that RocksDB finds under the same paths; needed until the open alone.
  ColdTier(Env* env, const std::string& database_directory, ColdStoreOptions options)
      : env_(env),
        directory_(JoinPath(database_directory, kColdDirectory)),
        options_(std::move(options)) {}

  /// Opens what is there, if anything is: with the current image's head. `log_start` is the base of
  /// the log's oldest segment, 0 where it has them all: a log that does not begin at 0 needs a
  /// store. Corruption, Unsupported, IoError.
  Status OpenExisting(uint64_t log_start);
  /// The store; made where there is none. FailedPrecondition where the database is read-only.
  Result<ColdStore*> Store();
  /// Null: there is none yet.
  ColdStore* if_open() const { return open_.load(std::memory_order_acquire); }

  /// Of the current image. Changed by SetHead alone, which one thread calls at a time.
  const ImageHead& head() const { return head_; }
  /// The image that is written next.
  uint64_t next_image() const { return head_.number + 1; }
  /// The key of a chunk of image `number`.
  static ColdChunkKey KeyOf(const ImageChunk& chunk, uint64_t number);
  /// Reads chunks of the current image.
  ImageSource CurrentImage();
  /// Makes a head current, with the rest of `batch` (which it is put into), and waits until it is
  /// durable.
  Status SetHead(ColdBatch* batch, const ImageHead& head);

  /// Those of before, once it is closed.
  ColdStats stats();

  Status Close();

 private:
  Status ReadHead() GEARDB_REQUIRES(mutex_);

  Env* const env_;
  const std::string directory_;
  const ColdStoreOptions options_;
  Mutex mutex_;
  std::unique_ptr<ColdStore> store_ GEARDB_GUARDED_BY(mutex_);
  ColdStats last_stats_ GEARDB_GUARDED_BY(mutex_);  // Since it is closed.
  bool closed_ GEARDB_GUARDED_BY(mutex_) = false;
  std::atomic<ColdStore*> open_{nullptr};
  ImageHead head_;
};

}  // namespace geardb::engine
