// Verification: reads all that lives in a database that is not running, and says what is wrong
// where. Values that a cold file keeps of pages that have left are not looked at.
//
// In this order: files and their sizes; every record of the log, its pieces and its operations;
// what lies beyond the log's end; a replay of the log, and every row of every table that it gives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tools/geardb/log_names.h"
#include "tools/geardb/open_store.h"

namespace geardb::cli {

/// Whether an error's text names the place, and not only one that begins or ends with the same.
bool NamesPlace(std::string_view text, std::string_view place);

/// Something that is damaged.
struct Problem {
  std::string place;  ///< "path at offset n", or a table's name.
  Lsn lsn = kNoLsn;   ///< kNoLsn where there is none.
  std::string text;
};

/// Valid records beyond the log's end, and where that is.
struct BeyondEnd {
  std::string place;
  Lsn lsn = 0;
  wal::RecordsBeyond records;
};

/// What was read.
struct Verified {
  uint64_t segment_files = 0;
  uint64_t records = 0;
  uint64_t ring_records = 0;
  uint64_t log_bytes = 0;
  uint64_t pieces = 0;
  uint64_t piece_bytes = 0;
  uint64_t tables = 0;
  uint64_t trajectories = 0;
  uint64_t rows = 0;
  Lsn log_end = 0;
  bool sealed = false;
};

/// One run. Not thread-safe.
class Verification {
 public:
  Verification(const StoreFiles* files, const Invocation* invocation)
      : files_(files), invocation_(invocation) {}

  /// Damage becomes problems(); an error is what prevents going on at all.
  Status Run();

  const std::vector<Problem>& problems() const { return problems_; }
  /// What the problems cost, in words: each says what of the database is gone.
  const std::vector<std::string>& losses() const { return losses_; }
  /// Records that an open for writing drops, though they may have been acknowledged.
  const std::optional<BeyondEnd>& beyond() const { return beyond_; }
  /// What is worth knowing and is no damage.
  const std::vector<std::string>& notes() const { return notes_; }
  const Verified& verified() const { return verified_; }
  /// ResourceExhausted when the log could not be replayed with the memory given: no damage, but
  /// rows and items were not looked at.
  const Status& memory() const { return memory_; }
  /// Unsupported when a newer GearDB has written what this one cannot read: no damage, but it was
  /// not looked at.
  const Status& newer() const { return newer_; }
  /// All was read, and all of it is good.
  bool good() const { return problems_.empty() && memory_.ok() && newer_.ok() && !beyond_; }

 private:
  /// A record that was read from the ring.
  struct RingRecord {
    Lsn lsn = 0;
    uint64_t bytes = 0;
    std::string what;
  };

  Status CheckFiles();
  Status CheckSegmentFile(const std::string& path);
  /// What is wrong with a file's size; empty: nothing.
  Result<std::string> WrongSize(const std::string& path, uint64_t expected) const;
  Status CheckLog();
  /// False where damage ends the reading before `open_from`: no open comes to it, and it is a note.
  Result<bool> ReadLog(const wal::ReadOptions& options, Lsn open_from);
  Status CheckEnd(wal::LogReader* reader);
  Status CheckBeyond(wal::LogReader* reader);
  /// Says what the record does.
  std::string CheckRecord(const wal::RecordView& record, const wal::LogReader& reader);
  void NoteRecord(const wal::RecordView& record, std::string what);
  void CheckPieces(const wal::RecordView& record, const wal::LogReader& reader,
                   const std::string& what);
  void CheckDrained(const wal::LogReader& reader);
  Status CompareWithRing(const RingRecord& record, const wal::LogReader& reader);
  Status CheckCold();
  Status CheckEndOf(const RecoveryReport& recovery);
  Status CheckReplay();
  /// What an open for writing says of the log, which it reads from here on.
  Status CheckAsWriter(Lsn from);
  Status CheckTable(Table* table);
  /// Which of the bad pieces are damage, once it is known what is lost.
  void SettlePieces();
  /// Likewise of the segments of odd sizes.
  void SettleSegments();
  void AddProblem(std::string place, Lsn lsn, std::string text);
  /// What prevents reading on: damage, or a newer GearDB's work. No problem of its own where one of
  /// a file that it names is known.
  void AddFailure(std::string place, Lsn lsn, const Status& failure, const std::string& what);
  /// Whether a problem says where the failure is already.
  bool IsKnown(const Status& failure) const;
  void AddLoss(std::string text);

  const StoreFiles* files_;
  const Invocation* invocation_;
  std::vector<Problem> problems_;
  /// Pieces of the log that do not fit their checksums: damage where something needs them.
  std::vector<Problem> bad_pieces_;
  /// Segments of another size than they should have: damage where something needs what is missing.
  std::vector<Problem> odd_segments_;
  size_t problems_before_log_ = 0;
  /// From here on a replay has applied the records; nothing: there was none.
  std::optional<Lsn> replayed_from_;
  bool replay_lost_ = false;  ///< It said so.
  bool rows_lost_ = false;    ///< A trajectory that is there could not be read.
  std::vector<std::string> losses_;
  std::vector<std::string> notes_;
  Verified verified_;
  std::optional<BeyondEnd> beyond_;
  Status memory_;
  Status newer_;
  LogNames names_;
  std::vector<RingRecord> ring_records_;
  /// Up to here the records say that everything was synced.
  Lsn vouched_ = 0;
  /// Where the piece areas of records in parts begin, by LSN.
  std::map<Lsn, Lsn> part_areas_;
};

}  // namespace geardb::cli
