// ColdTier: the cold store of an open database (directory `<database>/cold`), which is made when
// something is first put there, and the image of the index in it.
//
// The store holds pages, the chunks of the current image, and those of the one that is being made
// beside it, as far as they differ (image_versions.h). The current image is named by a head, which
// changes in one batch. What an open finds is the batches up to some batch, so a head is found only
// with all chunks of its image and all pages that had been put by then.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"
#include "engine/internal/cold_store.h"
#include "engine/internal/image_chunk.h"
#include "engine/internal/image_versions.h"

namespace geardb::engine {

inline constexpr const char* kColdDirectory = "cold";

/// Which image is current.
struct ImageHead {
  uint64_t number = 0;  ///< Counts images, from 1; 0: there is none.
  Lsn lsn = 0;          ///< As of which it is: records from here on are to be applied to it.
  Lsn log_from = 0;     ///< Where reading has to begin: parts of these records may lie before.
  Lsn log_start = 0;    ///< Pages in pieces that begin at or beyond it are not in the store…
  uint64_t batch = 0;   ///< …where this, the head's own, was its last batch; 0: unknown.
};

/// An image that is being put beside the current one.
class NextImage {
 public:
  NextImage(const ImageVersions& current, Lsn lsn) : current_(current), lsn_(lsn) {}

  /// Puts the chunk, unless the current image has the same.
  Status Put(const ImageChunk& chunk, std::span<const std::byte> bytes, ColdBatch* batch);
  /// Bytes of the chunks that were put.
  uint64_t bytes_put() const { return bytes_put_; }

 private:
  friend class ColdTier;
  const ImageVersions& current_;
  const Lsn lsn_;
  ImageVersions versions_;
  uint64_t bytes_put_ = 0;
};

/// Thread-safe.
class ColdTier {
 public:
  /// `env` has the files that RocksDB finds under the same paths, and outlives the tier.
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
  /// Something was put since: pages that the image knows nothing of may be in the store. As the
  /// open found it.
  bool has_put_since() const { return has_put_since_; }
  /// The image that is written next.
  uint64_t next_image() const { return head_.number + 1; }
  /// Begins an image as of `lsn`. Until the next SetHead.
  NextImage BeginImage(Lsn lsn) const { return NextImage(versions_, lsn); }
  /// Reads chunks of the current image; thread-safe.
  ImageSource CurrentImage();
  /// All of them, in their order.
  std::vector<ImageChunk> ImageChunks() const;
  /// Makes `image`, all of whose chunks have been written, and its head current, with the rest of
  /// `batch`, and waits until they are durable. A batch that could not be written is as it was.
  Status SetHead(ColdBatch* batch, const ImageHead& head, NextImage image);

  /// Those of before, once it is closed.
  ColdStats stats();

  Status Close();

 private:
  Status ReadHead() GEARDB_REQUIRES(mutex_);
  Status ReadVersions(uint64_t parts) GEARDB_REQUIRES(mutex_);
  /// Puts the head, what it says of chunks, and that those of before leave.
  Status PutHead(const ImageHead& head, const ImageVersions& next, ColdBatch* batch) const;

  Env* const env_;
  const std::string directory_;
  const ColdStoreOptions options_;
  Mutex mutex_;
  std::unique_ptr<ColdStore> store_ GEARDB_GUARDED_BY(mutex_);
  ColdStats last_stats_ GEARDB_GUARDED_BY(mutex_);  // Since it is closed.
  bool closed_ GEARDB_GUARDED_BY(mutex_) = false;
  std::atomic<ColdStore*> open_{nullptr};
  ImageHead head_;
  bool has_put_since_ = false;
  ImageVersions versions_;  // Of the current image.
};

}  // namespace geardb::engine
