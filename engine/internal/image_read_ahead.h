// ImageReadAhead: the chunks of an image, read and checked by threads before they are asked for.
// Half of what loading an image takes is reading it; who loads it asks for the chunks of a kind one
// after the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/internal/image_chunk.h"

namespace geardb::engine {

/// Read is called by one thread at a time.
class ImageReadAhead {
 public:
  /// Of each thread, chunks that nobody has asked for yet.
  static constexpr size_t kChunksPerThread = 8;

  /// `chunks` are all that the image has, in their order. `source`, which is thread-safe, is called
  /// by at most `threads` threads besides those that call Read. No more chunks are in memory than
  /// theirs. Where the system has no threads to give, it goes on without.
  ImageReadAhead(std::vector<ImageChunk> chunks, ImageSource source, uint32_t threads);
  /// Waits for reads that are under way.
  ~ImageReadAhead();
  ImageReadAhead(const ImageReadAhead&) = delete;
  ImageReadAhead& operator=(const ImageReadAhead&) = delete;

  /// What `source` says of the chunk; the chunks behind it are read meanwhile.
  Result<std::string> Read(const ImageChunk& chunk);

 private:
  void Run();
  /// The next one that a thread should read; the end where there is none now.
  size_t NextToRead() const GEARDB_REQUIRES(mutex_);
  bool IsWanted(size_t at) const GEARDB_REQUIRES(mutex_);

  const std::vector<ImageChunk> chunks_;
  const ImageSource source_;
  const size_t window_;
  Mutex mutex_;
  CondVar room_;     // For threads: half of the window is to be read, or they are to end.
  CondVar arrived_;  // For Read: the chunk that it waits for.
  size_t idle_ GEARDB_GUARDED_BY(mutex_) = 0;  // Threads that wait.
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  /// The window begins behind the chunk that was asked for last.
  size_t begin_ GEARDB_GUARDED_BY(mutex_) = 0;
  /// By place in `chunks_`. Without a value: a thread reads it.
  std::map<size_t, std::optional<Result<std::string>>> ahead_ GEARDB_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace geardb::engine
