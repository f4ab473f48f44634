// BulkRecord: a record that carries any number of bytes in its pieces, in parts where they are too
// many for one record (a tag's blob, the items of a Set, a priority for every item).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/internal/change_scope.h"

namespace geardb::engine {

/// What the bytes are, for errors: each of `things` has `bytes`.
struct BulkUnit {
  std::string_view things = "bytes";
  uint64_t bytes = 1;
};

class BulkRecord {
 public:
  /// `change` has its body finished before Reserve; both outlive the record.
  BulkRecord(DatabaseCore* database, Change* change) : database_(database), change_(change) {}

  /// InvalidArgument for more bytes than the record can name pieces for, counted in `unit`s.
  Status CheckFits(size_t bytes, const BulkUnit& unit) const;
  /// The records that so many bytes take, in their order: the parts, then the record that names
  /// them; or that alone.
  std::vector<wal::RecordSize> Records(size_t bytes) const;
  /// Writes the parts and takes the record's LSN. Waits for room without releasing the commit
  /// mutex, so that nothing comes between what the caller decided and the record. `bytes` must
  /// stay until Finish, and pass CheckFits. They are cut into pieces at multiples of 16 bytes.
  Status Reserve(ChangeScope* scope, std::span<const std::byte> bytes)
      GEARDB_REQUIRES(database_->commit);
  /// Fills and publishes.
  void Finish();
  Lsn lsn() const { return reservation_.lsn; }
  Lsn end() const { return reservation_.end; }

 private:
  DatabaseCore* const database_;
  Change* const change_;
  std::vector<std::span<const std::byte>> runs_;
  std::vector<wal::PieceSource> pieces_;
  wal::Reservation reservation_;
};

}  // namespace geardb::engine
