// A model of the log's protocol (wal/FORMAT.md) on a toy disk: cells instead of bytes, two cells to
// a sector, two sectors to a block. It runs random histories of appends, drains, syncs, index
// chunks, deaths, power losses and opens that die half-way, and says what was lost or came back.
// With a rule switched off it must find a failure: that is how we know that the rule is needed.
//
// Fault model: after a death every write is there. After power loss each sector of a segment has
// any version since its last sync, each sector of the ring any version that was ever written back,
// and an unsynced manifest is the old or the new one. A failed fdatasync makes nothing durable, and
// no other of the same process covers what it should have covered, unless that is written again;
// those of a later process do, as without a page cache. (Behind one they do not: that f writes such
// bytes again, and that 6 syncs such files one at a time, is not in the model; fault_env_test.cc
// has the first.) Damage is a sector that is lost, or an older manifest put back.
//
// ReadLog, the reading half, is also run against the real log's bytes (conformance_test.cc).
#pragma once

#include <array>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/testing/fault_env.h"

namespace geardb::wal::model {

/// The rules that can be switched off. The numbers and letters are those of wal/FORMAT.md.
///
/// Three have no switch, since without them the model finds nothing (300,000 histories of each
/// kind, repairs included):
/// - 5 and e, the zeros behind the end in the last block. Whatever lies there instead is no record
///   at the next LSN, or one that is whole and pending, or, after an open, of an older epoch, which
///   11 keeps out. Those zeros are for whoever looks at a segment; conformance_test.cc checks them.
/// - 13, that a base from `start` on with another epoch is free. It gives a file back; 11 keeps its
///   records out, and the new file of that base has the higher epoch.
/// - 7, that a seal is written when all before it is synced. A reader that comes to a seal has come
///   through all before it, whether that was synced or not; and what the seal's header claims is
///   6's business. log_writer_test.cc checks when seals are written.
/// Nor has that nothing is written after a failed sync, part of 6: its error is that of all after
/// it, so nothing written then is ever taken for synced.
struct Rules {
  bool admit_by_block = true;         ///< 3: ring bytes of a block that is not wholly drained stay.
  bool admit_by_record = true;        ///< 3: … and those of a record that is not wholly drained.
  bool publish_in_order = true;       ///< 4
  bool drain_published_only = true;   ///< 5
  bool sync_target_before = true;     ///< 6: read before the fdatasync.
  bool sync_all_segments = true;      ///< 6: it covers every segment with unsynced writes.
  bool sync_at_record_end = true;     ///< 6: it is always a record's end.
  bool header_says_synced = true;     ///< 6: only what is synced enters a header.
  bool syncs_end_in_order = true;     ///< 6: in which they began.
  bool syncs_take_in_order = true;    ///< 6: each takes its files before the next one begins.
  bool error_is_of_all_after = true;  ///< 6: it is that of every sync that ends after it.
  bool chunks_after_sync = true;      ///< 8
  bool recycle_after_flush = true;    ///< 9
  bool equal_epoch_from_start = true;  ///< 11: at or beyond `start`, only the manifest's epoch.
  bool epochs_only_grow = true;        ///< 11: below `start`, not below that of the record before.
  bool end_at_cut = true;              ///< 11: no record at or beyond `cut`.
  bool check_pieces = true;            ///< 11: a record with a bad piece is not valid.
  bool bad_piece_is_no_end = true;     ///< 11, c: not below the vouched LSN, that is.
  bool scan_for_vouchers = true;       ///< 12
  bool start_vouches = true;           ///< 12
  bool only_epoch_vouches = true;      ///< 12: not records of older epochs.
  bool later_epoch_is_damage = true;   ///< 12: a record of one beyond the stop is Corruption.
  bool highest_epoch_wins = true;      ///< 13: of two files that claim one base.
  bool read_ring = true;               ///< b
  bool cut_before_drain = true;        ///< d
  bool cut_even_if_there = true;       ///< d: a manifest that was read may not be durable.
  bool drain_at_open = true;           ///< e
  bool sync_at_open = true;            ///< f
  bool sync_what_was_read = true;      ///< f: also segments that the open has not written.
  bool raise_epoch = true;             ///< g: open + 1.
  bool sync_epoch = true;              ///< g: synced before anything is appended.
  bool prepare_ring = true;            ///< h
};

/// A rule with its name, for tests that switch each off in turn.
struct RuleSwitch {
  const char* name;
  bool Rules::*member;
};
std::span<const RuleSwitch> AllRules();

/// Sizes, in cells.
struct Geometry {
  int sector = 2;
  int block = 4;
  int segment = 16;
  int ring = 16;
  int segment_record = 1;

  int BlockFloor(int lsn) const { return lsn / block * block; }
};

enum class Type : uint8_t { kData, kPad, kSegment, kSeal };

struct Record {
  int lsn = 0;
  int length = 0;
  int epoch = 0;
  int synced = 0;
  Type type = Type::kData;
  int payload = 0;  ///< What its cells behind the header hold; two records may have the same.
  int chunk = 0;    ///< The index chunk it changes.

  int end() const { return lsn + length; }
};

inline constexpr int kNoCut = std::numeric_limits<int>::max();

struct Manifest {
  int epoch = 0;
  int start = 0;
  int cut = kNoCut;
};

/// What a reader finds on a disk. Records are named by their index.
class DiskView {
 public:
  virtual ~DiskView() = default;
  virtual int files() const = 0;
  /// The record whose good header lies at `offset` of a segment file, or of the ring; -1 for none.
  virtual int SegmentHeader(int file, int offset) const = 0;
  virtual int RingHeader(int offset) const = 0;
  /// Do all pieces of the record, read from there, have their bytes?
  virtual bool SegmentPiecesGood(int file, int record) const = 0;
  virtual bool RingPiecesGood(int record) const = 0;
};

enum class Verdict : uint8_t { kGood, kCorruption, kPageDamage };

/// What steps a to c of an open find.
struct Reading {
  Verdict verdict = Verdict::kGood;
  int segments_end = 0;         ///< z
  int end = 0;                  ///< y
  std::vector<int> chain;       ///< Valid records from `from` on.
  size_t ring_records = 0;      ///< How many of them, at the end, are from the ring.
  std::map<int, int> segments;  ///< Base → file.
};

struct ReadInput {
  const DiskView* disk = nullptr;
  const std::vector<Record>* records = nullptr;
  Manifest manifest;
  Geometry geometry;
  Rules rules;
  int from = 0;
};

Reading ReadLog(const ReadInput& input);

/// The writer's four prefixes, and where the next record goes.
struct WriterState {
  Geometry geometry;
  Rules rules;
  int next = 0;
  int published = 0;
  int drained = 0;
  int synced = 0;
  std::vector<int> ends;  ///< Ends of records, ascending.

  struct Place {
    int pad = 0;
    bool new_segment = false;
    int lsn = 0;
    int end = 0;
  };
  Place PlaceFor(int length) const;
  /// The largest record's end at or below `lsn`.
  int RecordFloor(int lsn) const;
  /// Rule 3, without the segment file.
  bool Admits(const Place& place) const;
  void Begin(int end);
};

/// What a model run counted, so that a test can see that it reached what it is for.
struct Counts {
  uint64_t steps = 0, deaths = 0, power_losses = 0, opens = 0, cuts = 0, ring_tails = 0;
  uint64_t recycled = 0, recovery_writes = 0, damages = 0, reported = 0, repairs = 0;
  uint64_t overlaps = 0, failed_syncs = 0, old_manifests = 0;
  void Add(const Counts& other);
};

struct HistoryOptions {
  uint64_t seed = 1;
  int steps = 160;
  Rules rules;
  bool damage = false;     ///< Hurt what is synced at an open: it must be reported.
  bool repair = false;     ///< And then start an epoch where the log is cut off by it.
  bool recycling = false;  ///< Few files and few crashes, so that segments are used again.
};

/// Runs one history. What went wrong, or nothing. `trace`, if given, has a line for each step.
std::optional<std::string> RunHistory(const HistoryOptions& options, Counts* counts,
                                      std::vector<std::string>* trace = nullptr);

}  // namespace geardb::wal::model
