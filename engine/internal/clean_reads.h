// CleanReads: the bytes of pages that the cleaner puts into the cold store. Those without a frame
// are read by the threads that read pages, while others are being put.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/internal/core.h"

namespace geardb::engine {

/// What goes into the cold store at once, about, or one page. While pages are copied no frame comes
/// free: who appends may wait for that long. Malloc keeps twice as much for each thread
/// (image_chunk.h), and what is larger than 128 KiB it keeps for all.
inline constexpr uint64_t kCleanBatchBytes = uint64_t{96} << 10;
/// So many batches of pages are read ahead.
inline constexpr uint64_t kCleanBatchesAhead = 5;
/// Pages of so many bytes that are put at once, and that are read ahead meanwhile: by bytes, since
/// no budget has them.
constexpr uint64_t CleanPages(uint64_t page_bytes) {
  return std::max<uint64_t>(kCleanBatchBytes / page_bytes, 1);
}
constexpr uint64_t CleanPagesAhead(uint64_t page_bytes) {
  return std::max<uint64_t>(kCleanBatchBytes * kCleanBatchesAhead / page_bytes, 1);
}

/// Of one column group; used by the cleaner's thread alone. What is read ahead has no guard,
/// because who appends would wait for it while RocksDB stalls: nobody but the cleaner lets go of
/// the log.
class CleanReads {
 public:
  CleanReads(DatabaseCore* database, const TableState& state)
      : database_(database), state_(state) {}
  /// What they read from is there until now.
  ~CleanReads();
  CleanReads(const CleanReads&) = delete;
  CleanReads& operator=(const CleanReads&) = delete;

  /// These are put now; they stay where they are. The caller has a guard since they were collected.
  void Begin(std::span<const ColdWork> work);
  /// These will be put next, if they are then what they are now. The caller has a guard.
  void BeginAhead(std::span<const ColdWork> work);
  /// Of work[at], as given to Begin, until the next call: asked for once. Corruption where they are
  /// damaged.
  Result<const std::byte*> Bytes(size_t at);

 private:
  using Loads = std::vector<std::shared_ptr<PageLoad>>;

  std::shared_ptr<PageLoad> BeginLoad(const PagePlace& place);
  /// Nobody asks for its bytes any more.
  void Leave(std::shared_ptr<PageLoad> load);
  /// Null: it was not read ahead, or is another now.
  std::shared_ptr<PageLoad> TakeAhead(const PagePlace& place);
  void Wait(const Loads& loads) const;

  DatabaseCore* const database_;
  const TableState& state_;
  std::span<const ColdWork> work_;
  Loads loads_;  // Null: it has a frame, or was asked for.
  Loads ahead_;  // Null: it was taken.
  std::shared_ptr<PageLoad> last_;
  std::vector<PageMemory> spare_;  // Of what was left: mapping it anew takes as long as reading.
};

}  // namespace geardb::engine
