// LogReader::Core: follows the valid records of a log through segments and ring, and finds its end.
//
// Invariants:
//   Everything below position() is valid, or page damage below the vouched LSN.
//   Once a record has come from the ring, all that follow do.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wal/log_reader.h"
#include "wal/record_codec.h"
#include "wal/ring_file.h"
#include "wal/segment_map.h"
#include "wal/segment_stream.h"
#include "wal/vouch_scan.h"

namespace geardb::wal {

/// See LogReader; the rest is for the open.
class LogReader::Core {
 public:
  /// `ring` may be null (no ring) and must outlive the scan.
  Core(Env* env, std::string log_directory, const Manifest& manifest, const ReadOptions& options,
       SegmentMap map, RingFile* ring);

  Result<std::optional<RecordView>> Next();
  const ReadReport& report() const { return report_; }
  const SegmentMap& map() const { return map_; }
  std::string PlaceOf(Lsn lsn) const { return stream_.PlaceOf(lsn); }

  /// See LogReader.
  Result<RecordsBeyond> FindBeyond();

  /// After the end: [AlignDown(z, 4 KiB), y), the bytes that the open drains and that the ring
  /// needs.
  Result<std::vector<std::byte>> Tail();

  /// Owns the ring when the reader was opened by itself.
  std::unique_ptr<RingFile> own_ring;

 private:
  // What is at a position.
  enum class Found : uint8_t { kValid, kBadPiece, kNothing };
  // Where a part's piece area is, kept until its group's final record: a group may have as many
  // bytes as there is memory, and those of calls that were given up never get a final record.
  struct Part {
    Lsn group_lsn = 0;
    Lsn area = 0;  // Where it begins.
    uint64_t area_bytes = 0;
    bool in_ring = false;
    std::span<const std::byte> bytes = {};  // Once they are wanted.
  };

  bool EpochFits(const RecordHeader& header) const;
  Result<Found> LookInSegment(Lsn lsn, ParsedRecord* record);
  Found LookInRing(Lsn lsn, ParsedRecord* record);
  Result<bool> FindNext(ParsedRecord* record);
  Result<bool> AtStop(Found in_segment, ParsedRecord* record);
  Result<bool> EndOrDamage(const Status& damage);
  Status DamageAt(Lsn lsn, Lsn synced) const;
  ScannedLog Files() const;
  Followed Place() const;
  void Accept(const ParsedRecord& record, bool damaged);
  void KeepPart(const ParsedRecord& record);
  /// Nothing will name those that are kept.
  void LeaveParts();
  Status ResolvePieces(const ParsedRecord& record);
  Status ReadParts(Lsn group_lsn);
  PieceView ResolvePiece(const ParsedRecord& record, const PieceEntry& entry);
  Result<bool> Wanted(const ParsedRecord& record) const;

  Env* const env_;
  const std::string log_directory_;
  const Manifest manifest_;
  const uint64_t seed_;
  const ReadOptions options_;
  const SegmentMap map_;
  RingFile* const ring_;
  SegmentStream stream_;

  Lsn position_;
  Epoch last_epoch_;
  bool in_ring_ = false;
  bool vouch_known_ = false;
  bool damaged_record_ = false;  // The record just found has a bad piece.
  bool done_ = false;
  ReadReport report_;
  ParsedRecord record_;
  std::vector<PieceView> pieces_;
  std::map<Lsn, Part> parts_;
  std::vector<std::vector<std::byte>> part_bytes_;  // Of the record just returned, from segments.
};

}  // namespace geardb::wal
