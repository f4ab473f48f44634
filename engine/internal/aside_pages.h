// Pages that are read beside the frames, all of which are in use: some ahead of the one that is
// asked for, each into memory of its own, which goes again when a later one is asked for.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/internal/page_loader.h"
#include "engine/internal/table_frames.h"

namespace geardb::engine {

/// Not thread-safe. As long as it lives its caller has an epoch guard that is not newer than the
/// places of the pages, or the mutex of their tables since these were looked up.
class AsideReader {
 public:
  /// Of these, in their order, which outlive it.
  explicit AsideReader(std::vector<const AsidePage*> pages) : pages_(std::move(pages)) {}
  /// Waits for what it has begun to read: the guard may go then.
  ~AsideReader();
  AsideReader(const AsideReader&) = delete;
  AsideReader& operator=(const AsideReader&) = delete;

  /// The bytes of page `number`, which is that of the call before or a later one; until the next
  /// call. Corruption, IoError.
  Result<const std::byte*> Get(size_t number);
  /// The bytes of a page that has a frame of the arena or of the process, or of page `number` of
  /// these by its reference (AsideNumber), as Get.
  Result<const std::byte*> BytesOf(FrameRef page, const HostArena& arena) {
    if (IsAside(page)) return Get(AsideNumber(page));
    return arena.Resolve(page);
  }
  /// The page of the last call.
  std::shared_ptr<PageLoad> last() const { return loads_.front(); }

 private:
  /// Whether another page may be read ahead.
  bool HasRoom() const;

  const std::vector<const AsidePage*> pages_;
  size_t first_ = 0;  // Of `loads_`.
  std::deque<std::shared_ptr<PageLoad>> loads_;
  PageMemory spare_;  // Of a page that is not asked for any more.
};

/// All of these.
std::vector<const AsidePage*> AllOf(const std::vector<AsidePage>& pages);

}  // namespace geardb::engine
