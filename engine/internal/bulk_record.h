// BulkRecord: a record that carries any number of bytes in its pieces, in parts where they are too
// many for one record (a tag's blob, the items of a Set, the pages of a Patch).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/internal/change_scope.h"

namespace geardb::engine {

/// Pieces [first, first + count) of a large change, which go ahead of its record in one of `size`.
struct PartOfPieces {
  size_t first = 0;
  size_t count = 0;
  wal::RecordSize size;
};
/// Pieces of these sizes in as few parts as may be, none over `record_bytes_max`.
std::vector<PartOfPieces> SplitIntoParts(std::span<const uint64_t> piece_bytes,
                                         uint64_t record_bytes_max);

/// Makes pieces that lie in the part at `part_lsn`, one behind the other from its first, say where
/// they are there instead of what they hold. `seed` is that of the log's checksums.
void NamePieces(Lsn part_lsn, uint64_t seed, std::span<wal::PieceSource> pieces);

/// What the bytes are, for errors: each of `things` has `bytes`.
struct BulkUnit {
  std::string_view things = "bytes";
  uint64_t bytes = 1;
};

class BulkRecord {
 public:
  /// `change` has its body finished before Reserve; both outlive the record.
  BulkRecord(DatabaseCore* database, Change* change) : database_(database), change_(change) {}

  /// Adds a piece. `runs` are copied one behind the other, and must stay until Finish. It fits a
  /// record. `place`, if not null, says where they went before the change is applied.
  void AddPiece(std::span<const std::span<const std::byte>> runs, wal::PiecePlace* place = nullptr);
  /// Adds bytes, cut into pieces at multiples of 16 bytes; once. They must stay until Finish.
  void AddBytes(std::span<const std::byte> bytes);

  /// InvalidArgument for more bytes than the record can name pieces for, counted in `unit`s.
  Status CheckFits(size_t bytes, const BulkUnit& unit) const;
  /// The same of what was added.
  Status CheckFits() const;
  /// The records that what was added takes, in their order: the parts, then the record that names
  /// them; or that alone.
  std::vector<wal::RecordSize> Records() const;
  /// Writes the parts and takes the record's LSN. Waits for room without releasing the commit
  /// mutex, so that nothing comes between what the caller decided and the record.
  Status Reserve(ChangeScope* scope) GEARDB_REQUIRES(database_->commit);
  /// Fills and publishes.
  void Finish();
  Lsn lsn() const { return reservation_.lsn; }
  Lsn end() const { return reservation_.end; }

 private:
  wal::RecordSize Whole() const;
  wal::RecordSize NamingParts() const;
  Status WriteParts(ChangeScope* scope, CommitOptions* how) GEARDB_REQUIRES(database_->commit);

  DatabaseCore* const database_;
  Change* const change_;
  std::vector<std::span<const std::byte>> runs_;  // Of AddBytes.
  std::vector<wal::PieceSource> pieces_;
  std::vector<uint64_t> piece_bytes_;
  uint32_t parts_ = 0;
  Lsn group_lsn_ = 0;
  wal::Reservation reservation_;
};

}  // namespace geardb::engine
