// One history of the model: a toy disk, a process on it, and the oracle that judges them. Opening
// and crashing are in protocol_open.cc, appending, draining and syncing in protocol_work.cc.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/wal/protocol_model.h"

namespace geardb::wal::model {

using testing::Random;

inline constexpr int kZero = 0;      // A cell that nobody wrote.
inline constexpr int kGarbage = -1;  // Half a cell.
inline constexpr int kFirstRecord = 10;
inline constexpr size_t kVersionsMax = 6;

inline int HeaderCell(int record) { return kFirstRecord + record; }

inline constexpr size_t kSyncsMax = 4;  // Under way at once.

// Sectors with all versions that power loss may leave. The last version is the visible one.
class Versions {
 public:
  Versions(int cells, int sector) : sector_(sector), sectors_(Index(cells / sector)) {
    for (Sector& s : sectors_) s.versions.assign(1, std::vector<int>(Index(sector), kZero));
  }

  int Cell(int offset) const {
    return sectors_[Index(offset / sector_)].versions.back()[Index(offset % sector_)];
  }
  void Write(int sector, const std::vector<int>& cells) {
    Sector& s = sectors_[Index(sector)];
    s.versions.push_back(cells);
    if (s.versions.size() <= kVersionsMax) return;
    // Forget one in the middle: neither the durable one nor what a running sync covers.
    size_t forget = 1;
    while (std::find(s.covered.begin(), s.covered.end(), forget) != s.covered.end()) ++forget;
    s.versions.erase(s.versions.begin() + static_cast<ptrdiff_t>(forget));
    for (size_t& covered : s.covered) covered -= covered > forget ? 1 : 0;
    s.lost -= s.lost >= forget ? 1 : 0;
  }
  void Hurt(int sector) {
    for (auto& version : sectors_[Index(sector)].versions) version.assign(version.size(), kGarbage);
  }
  // An fdatasync; several may run, each with a `slot` of its own.
  void BeginSync(size_t slot) {
    for (Sector& s : sectors_) s.covered[slot] = s.versions.size() - 1;
  }
  void EndSync(size_t slot) {
    for (Sector& s : sectors_) {
      const size_t durable = std::exchange(s.covered[slot], 0);
      if (durable == 0 || durable == s.lost) continue;
      s.versions.erase(s.versions.begin(), s.versions.begin() + static_cast<ptrdiff_t>(durable));
      for (size_t& covered : s.covered) covered -= std::min(covered, durable);
      s.lost -= std::min(s.lost, durable);
    }
  }
  void FailSync(size_t slot) {
    for (Sector& s : sectors_) s.lost = std::max(s.lost, std::exchange(s.covered[slot], 0));
  }
  // The process that ran them is dead.
  void ForgetSyncs() {
    for (Sector& s : sectors_) {
      s.covered = {};
      s.lost = 0;
    }
  }
  void LosePower(Random* random, int mode) {
    for (Sector& s : sectors_) {
      const size_t pick = mode == 0   ? 0
                          : mode == 1 ? s.versions.size() - 1
                                      : random->Below(s.versions.size());
      s.versions = {s.versions[pick]};
    }
  }

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }
  // Versions by number, of which the first is durable; 0 stands for none.
  struct Sector {
    std::vector<std::vector<int>> versions;
    std::array<size_t, kSyncsMax> covered = {};  // The newest that a running fdatasync covers.
    size_t lost = 0;                             // The newest that a failed one should have.
  };
  int sector_;
  std::vector<Sector> sectors_;
};

// The index chunks: for each, the LSN that it reaches and the records that it holds.
struct Chunks {
  std::array<int, 2> reach = {0, 0};
  std::array<std::vector<int>, 2> holds;
  int from() const { return std::min(reach[0], reach[1]); }
};

class History final : private DiskView {
 public:
  History(const HistoryOptions& options, Counts* counts, std::vector<std::string>* trace);
  std::optional<std::string> Run(int steps);

 private:
  enum Action {
    kAppend,
    kCopy,
    kDrainBegin,
    kDrainWrite,
    kSyncBegin,
    kSyncStep,
    kWriteBack,
    kSnapshot,
    kChunkWrite,
    kFlush,
    kActions
  };
  enum class Phase : uint8_t { kRead, kCut, kCutSync, kDrain, kSync, kRaise, kRaiseSync, kServe };
  // A record that is being copied into the ring: cells still to come.
  struct Flying {
    int record;
    std::vector<int> cells;
    int half = -1;  // A cell of which one half was written.
  };
  struct SectorWrite {
    int file;
    int sector;
    int lsn;
  };
  // From the beginning until it has ended.
  struct Sync {
    size_t slot;
    int target;
    bool took = false;  // Its files, the fdatasync of which has begun.
    bool done = false;  // The fdatasync is.
    bool failed = false;
    std::vector<int> files = {};
  };
  struct ChunkSnapshot {
    size_t chunk;
    int reach;
    std::vector<int> holds;
  };

  static size_t Index(int i) { return static_cast<size_t>(i); }
  int Below(int n) {
    return n <= 1 ? 0 : static_cast<int>(random_.Below(static_cast<uint64_t>(n)));
  }
  Record& Of(int record) { return records_[Index(record)]; }
  const Record& Of(int record) const { return records_[Index(record)]; }
  Manifest manifest() const { return manifests_.back(); }
  void Fail(std::string what) {
    if (!failure_) failure_ = std::move(what);
  }
  __attribute__((format(printf, 2, 3))) void Trace(const char* format, ...);

  // DiskView.
  int files() const override { return static_cast<int>(files_.size()); }
  int HeaderIn(int cell, int offset, int modulus) const {
    const int record = cell - kFirstRecord;
    return record >= 0 && Of(record).lsn % modulus == offset ? record : -1;
  }
  int SegmentHeader(int file, int offset) const override {
    return HeaderIn(files_[Index(file)].Cell(offset), offset, geometry_.segment);
  }
  int RingHeader(int offset) const override {
    return HeaderIn(ring_[Index(offset)], offset, geometry_.ring);
  }
  bool SegmentPiecesGood(int file, int record) const override {
    const Record& r = Of(record);
    if (r.type == Type::kPad) return true;
    for (int i = 1; i < r.length; ++i) {
      if (files_[Index(file)].Cell((r.lsn + i) % geometry_.segment) != r.payload) return false;
    }
    return true;
  }
  bool RingPiecesGood(int record) const override {
    const Record& r = Of(record);
    if (r.type == Type::kPad) return true;
    for (int i = 1; i < r.length; ++i) {
      if (ring_[Index((r.lsn + i) % geometry_.ring)] != r.payload) return false;
    }
    return true;
  }

  // Crashes.
  void Die(bool power);
  void WriteBackSector(int sector);

  // Opening.
  void OpenStep();
  void SyncManifest();
  void ReadStep();
  void CheckPrefix(int floor);
  bool TrulyGood(int record) const;
  void PrepareRecovery();
  int CellInSegment(int lsn) const;
  void CutStep();
  void RecoveryDrainStep();
  void Serve();
  bool Hurt();
  bool PutManifestBack();
  void ConsiderVoucher(int record);
  void JudgeDamage();

  // Working.
  void Work();
  int NewRecord(int length, Type type);
  void Append(int length, Type type);
  void Copy();
  void DrainBegin();
  void DrainWrite();

  int SyncTarget() const;
  void SyncBegin();
  void SyncStep();
  void TakeFiles(Sync* sync);
  void FdatasyncEnd(Sync* sync);
  void SyncEnd(std::deque<Sync>::iterator sync);
  void SyncAtOpen();
  void SnapshotChunk();
  void WriteChunk();
  int FreeFile(int from);
  SectorWrite TakeOne(std::vector<SectorWrite>* writes);

  const Rules rules_;
  const bool damage_;
  const bool repair_;
  const bool recycling_;
  Random random_;
  Counts* const counts_;
  std::vector<std::string>* const trace_;
  Geometry geometry_;
  std::array<int, kActions> weights_ = {};
  std::optional<std::string> failure_;
  int syncs_fail_ = 0;  // One in so many; 0: none.
  bool over_ = false;

  // The disk.
  std::vector<Record> records_;
  std::vector<Versions> files_;
  std::vector<int> ring_;
  std::optional<Versions> ring_versions_;
  std::vector<Manifest> manifests_ = {Manifest()};  // The last is visible, the first durable.
  Chunks flushed_;
  std::vector<Manifest> old_manifests_;  // That were durable.

  // The process.
  bool up_ = false;
  Phase phase_ = Phase::kRead;
  WriterState writer_;
  std::map<int, int> segment_files_;
  std::deque<Flying> flying_;
  std::vector<SectorWrite> drain_writes_;
  int drain_target_ = 0, drain_published_ = 0, drain_file_ = 0;
  bool draining_ = false;
  std::deque<Sync> syncs_;  // Under way, in the order in which they began.
  std::set<int> dirty_;     // Files with writes that no sync has taken.
  bool sync_failed_ = false;
  std::deque<ChunkSnapshot> snapshots_;
  Chunks written_;          // In RocksDB, not flushed.
  bool repairing_ = false;  // From a damaged open until one serves.
  Reading recovered_;
  int tail_begin_ = 0;
  std::vector<int> tail_;
  std::vector<SectorWrite> recovery_writes_;
  std::set<int> recovery_wrote_;  // Files.

  // The oracle.
  std::vector<int> lineage_;  // Records that were not cut, in order.
  int lineage_end_ = 0;
  int log_floor_ = 0, sync_floor_ = 0, stable_end_ = -1;
  bool power_lost_ = false;
  int hurt_vouched_ = 0, hurt_end_ = 0;
  bool hurt_manifest_ = false;
};

}  // namespace geardb::wal::model
