// PageSource: the bytes of pages that have no frame. A page's rows are in the log, in one piece or
// several, or in the cold store; either way they are checked before anybody sees them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/env.h"
#include "engine/internal/cold_store.h"
#include "engine/internal/table_layout.h"
#include "wal/log_bytes.h"

namespace geardb::engine {

/// Where the rows of a page are, besides a frame. What it names stays readable for whoever was in
/// an epoch guard when it was made.
struct PagePlace {
  const TableLayout* layout = nullptr;
  uint32_t group = 0;
  TrajectoryId trajectory = 0;
  uint32_t page_number = 0;
  uint32_t rows = 0;  ///< From the page's first on.
  // Of the log, where one piece has them.
  Lsn log_at = kNoLsn;
  uint32_t log_checksum = 0;                            ///< The low half of the piece's.
  bool in_cold = false;                                 ///< The cold store has them.
  std::shared_ptr<const ColdSnapshot> as_of = nullptr;  ///< Of it; null: as it is.
  // Else they are in pieces, each of which names the record of the one before; where these are gone
  // with their segments, the cold store has them.
  Lsn newest_lsn = kNoLsn;  ///< Of the record of the newest.
  Lpn lpn = kNoLpn;
  uint32_t generation = 0;
  /// Of a companion's page: the trajectory that users know, whose values these are. 0: of no
  /// companion, or not known.
  TrajectoryId owner = 0;
  /// It is read among its neighbours in the log, which are wanted, too.
  bool in_order = false;
};

/// Rows [first, first + count) of a page of a group, as a piece has them.
struct PieceRowsOfPage {
  const TableLayout* layout = nullptr;
  uint32_t group = 0;
  uint32_t first = 0;
  uint32_t count = 0;
};
/// Copies a piece into a frame that nobody reads these rows in.
void CopyPieceIntoFrame(const PieceRowsOfPage& rows, std::span<const std::byte> piece,
                        std::byte* frame);

/// Thread-safe.
class PageSource {
 public:
  /// Of the database in `directory`.
  PageSource(std::shared_ptr<Env> env, const std::string& directory, const wal::Manifest& manifest)
      : log_(std::move(env), directory, manifest, /*direct=*/true), seed_(manifest.Seed()) {}

  /// Copies the rows into a frame of the group, which keeps what it has beyond them. Corruption,
  /// naming table, trajectory and page, where they are damaged or not to be found; IoError. With
  /// `of_file` a file of the cold store through which reads pass is missing or cut, and the page
  /// itself may be good: nothing may be removed for it.
  Status Read(const PagePlace& place, wal::AlignedBuffer* scratch, std::byte* frame,
              bool* of_file = nullptr);

  void UseManifest(const wal::Manifest& manifest) { log_.UseManifest(manifest); }
  /// From here on there is a cold store; it outlives the source's readers.
  void UseColdStore(ColdStore* cold) { cold_.store(cold, std::memory_order_release); }
  /// For places that are read after their table's mutex was released; null: there is no cold store.
  std::shared_ptr<const ColdSnapshot> ColdNow() const {
    const ColdStore* cold = cold_.load(std::memory_order_acquire);
    return cold == nullptr ? nullptr : cold->Snapshot();
  }
  /// All of the log below `lsn` is in its files.
  void NoteLogDrained(Lsn lsn) { log_.NoteDrained(lsn); }
  /// Segments that end at or below `lsn` are gone, and nobody reads from them.
  void ForgetLogBelow(Lsn lsn) { log_.ForgetBelow(lsn); }

  /// Pages of the log that were read, and reads of its files for them.
  uint64_t log_reads() const { return log_reads_.load(std::memory_order_relaxed); }
  uint64_t log_file_reads() const { return log_.file_reads(); }
  uint64_t cold_reads() const { return cold_reads_.load(std::memory_order_relaxed); }

 private:
  Status ReadLog(const PagePlace& place, wal::AlignedBuffer* scratch, std::byte* frame);
  Status ReadPieces(const PagePlace& place, wal::AlignedBuffer* scratch, std::byte* frame,
                    bool* of_file);
  /// Those of records behind LSN `behind` (0: all), the newest first. `missing` says up to which
  /// row the next one would be, and in which record, also where it is not to be had.
  Status CopyPieces(const PagePlace& place, Lsn behind, wal::AlignedBuffer* scratch,
                    std::byte* frame, PagePlace* missing);
  Status ReadCold(const PagePlace& place, std::byte* frame, bool* of_file,
                  ColdPageHeader* header = nullptr);

  wal::LogBytes log_;
  const uint64_t seed_;
  std::atomic<ColdStore*> cold_{nullptr};
  std::atomic<uint64_t> log_reads_{0};
  std::atomic<uint64_t> cold_reads_{0};
};

/// The key of a page in the cold store.
inline ColdPageKey ColdKeyOf(const PagePlace& place) {
  return {.table = place.layout->id(),
          .group = static_cast<uint16_t>(place.group),
          .trajectory = place.trajectory,
          .page = place.page_number};
}

}  // namespace geardb::engine
