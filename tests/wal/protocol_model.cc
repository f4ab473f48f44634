#include "tests/wal/protocol_model.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace geardb::wal::model {
namespace {

using testing::Random;

constexpr int kZero = 0;      // A cell that nobody wrote.
constexpr int kGarbage = -1;  // Half a cell.
constexpr int kFirstRecord = 10;
constexpr size_t kVersionsMax = 6;

int HeaderCell(int record) { return kFirstRecord + record; }

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
    const size_t forget = s.syncing == 1 ? 2 : 1;
    s.versions.erase(s.versions.begin() + static_cast<ptrdiff_t>(forget));
    if (forget < s.syncing) --s.syncing;
  }
  void Hurt(int sector) {
    for (auto& version : sectors_[Index(sector)].versions) version.assign(version.size(), kGarbage);
  }
  void BeginSync() {
    for (Sector& s : sectors_) s.syncing = s.versions.size() - 1;
  }
  void EndSync() {
    for (Sector& s : sectors_) {
      s.versions.erase(s.versions.begin(), s.versions.begin() + static_cast<ptrdiff_t>(s.syncing));
      s.syncing = 0;
    }
  }
  void LosePower(Random* random, int mode) {
    for (Sector& s : sectors_) {
      const size_t pick = mode == 0   ? 0
                          : mode == 1 ? s.versions.size() - 1
                                      : random->Below(s.versions.size());
      s.versions = {s.versions[pick]};
      s.syncing = 0;
    }
  }

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }
  struct Sector {
    std::vector<std::vector<int>> versions;
    size_t syncing = 0;  // The version that a running fdatasync covers.
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

struct Failure {
  std::string what;
};

class History final : private DiskView {
 public:
  History(const HistoryOptions& options, Counts* counts, std::vector<std::string>* trace)
      : rules_(options.rules),
        damage_(options.damage),
        recycling_(options.recycling),
        random_(options.seed),
        counts_(counts),
        trace_(trace) {
    geometry_.ring = (3 + Below(3)) * geometry_.block;
    if (recycling_) geometry_.ring = 3 * geometry_.block;
    const int files = recycling_ ? 3 : 4 + Below(3);
    for (int i = 0; i < files; ++i) files_.emplace_back(geometry_.segment, geometry_.sector);
    ring_.assign(Index(geometry_.ring), kZero);
    ring_versions_.emplace(geometry_.ring, geometry_.sector);
    writer_.geometry = geometry_;
    writer_.rules = rules_;
  }

  std::optional<std::string> Run(int steps) {
    for (int& weight : weights_) weight = 1 + Below(6);
    weights_[kCopy] += 4;
    weights_[kDrainWrite] += 2;
    if (Below(3) == 0) weights_[kSnapshot] = weights_[kChunkWrite] = weights_[kFlush] = Below(2);
    weights_[kFlush] = std::min(weights_[kFlush], 2);
    if (recycling_) {
      for (int action : {kCopy, kDrainWrite, kSyncEnd, kSyncBegin, kSnapshot, kChunkWrite}) {
        weights_[Index(action)] += 4;
      }
    }
    const int crash_every = recycling_ ? 150 : 8 + Below(60), power_bias = Below(4),
              open_crash_every = 3 + Below(20);
    for (int step = 0; step < steps && !failure_ && !over_; ++step) {
      ++counts_->steps;
      if (up_) {
        if (Below(crash_every) == 0) {
          Die(Below(4) <= power_bias);
        } else {
          Work();
        }
      } else if (Below(phase_ == Phase::kRead ? 6 : open_crash_every) == 0) {
        Die(Below(4) < power_bias + 1);
      } else {
        OpenStep();
      }
    }
    return failure_;
  }

 private:
  enum Action {
    kAppend,
    kCopy,
    kDrainBegin,
    kDrainWrite,
    kSyncBegin,
    kSyncEnd,
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
  __attribute__((format(printf, 2, 3))) void Trace(const char* format, ...) {
    if (trace_ == nullptr) return;
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    trace_->push_back(text);
  }

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

  void Die(bool power) {
    if (up_) {
      log_floor_ = writer_.published;
      sync_floor_ = std::max(sync_floor_, writer_.RecordFloor(writer_.synced));
      stable_end_ = -1;
      power_lost_ = false;
    }
    up_ = false;
    phase_ = Phase::kRead;
    flying_.clear();
    drain_writes_.clear();
    draining_ = syncing_ = false;
    snapshots_.clear();
    written_ = flushed_;
    ++(power ? counts_->power_losses : counts_->deaths);
    Trace(power ? "power loss" : "death");
    if (!power) return;
    if (!power_lost_) stable_end_ = -1;
    power_lost_ = true;
    const int mode = Below(4);
    for (Versions& file : files_) file.LosePower(&random_, mode);
    for (int s = 0; s < geometry_.ring / geometry_.sector; ++s) WriteBackSector(s);
    ring_versions_->LosePower(&random_, Below(4));
    for (int i = 0; i < geometry_.ring; ++i) ring_[Index(i)] = ring_versions_->Cell(i);
    manifests_ = {manifests_[Index(Below(static_cast<int>(manifests_.size())))]};
  }

  void WriteBackSector(int sector) {
    const auto begin = ring_.begin() + sector * geometry_.sector;
    const std::vector<int> now(begin, begin + geometry_.sector);
    std::vector<int> last;
    for (int i = 0; i < geometry_.sector; ++i) {
      last.push_back(ring_versions_->Cell(sector * geometry_.sector + i));
    }
    if (now != last) ring_versions_->Write(sector, now);
  }

  // Opening.

  void OpenStep() {
    switch (phase_) {
      case Phase::kRead:
        ReadStep();
        break;
      case Phase::kCut:
        CutStep();
        break;
      case Phase::kCutSync:
        manifests_ = {manifest()};
        phase_ = Phase::kDrain;
        break;
      case Phase::kDrain:
        RecoveryDrainStep();
        break;
      case Phase::kSync:
        if (rules_.drain_at_open) SyncAll();
        phase_ = Phase::kRaise;
        break;
      case Phase::kRaise: {
        Manifest next = manifest();
        next.epoch += rules_.raise_epoch ? 1 : 0;
        next.start = recovered_.end;
        next.cut = kNoCut;
        manifests_.push_back(next);
        Trace("manifest epoch %d start %d written", next.epoch, next.start);
        phase_ = Phase::kRaiseSync;
        break;
      }
      case Phase::kRaiseSync:
        if (rules_.sync_epoch) manifests_ = {manifest()};
        phase_ = Phase::kServe;
        break;
      case Phase::kServe:
        Serve();
        break;
    }
  }

  void ReadStep() {
    ++counts_->opens;
    const bool hurt = damage_ && Below(2) == 0 && Hurt();
    recovered_ = ReadLog({.disk = this,
                          .records = &records_,
                          .manifest = manifest(),
                          .geometry = geometry_,
                          .rules = rules_,
                          .from = flushed_.from()});
    Trace("open: epoch %d start %d, from %d, segments to %d, log to %d, verdict %d",
          manifest().epoch, manifest().start, flushed_.from(), recovered_.segments_end,
          recovered_.end, static_cast<int>(recovered_.verdict));
    if (hurt) {
      JudgeDamage();
      return;
    }
    if (recovered_.verdict != Verdict::kGood) {
      Fail("false damage at " + std::to_string(recovered_.end));
      return;
    }
    CheckPrefix(power_lost_ ? sync_floor_ : log_floor_);
    counts_->ring_tails += recovered_.ring_records > 0 ? 1 : 0;
    counts_->cuts += recovered_.end < lineage_end_ ? 1 : 0;
    stable_end_ = recovered_.end;
    PrepareRecovery();
    phase_ = Phase::kCut;
  }

  // What was recovered is a prefix of what was written, reaches the floor, and is what the last
  // open found if nothing was done since.
  void CheckPrefix(int floor) {
    const int end = recovered_.end;
    if (end < floor) {
      Fail("lost acknowledged bytes: recovered to " + std::to_string(end) + " of " +
           std::to_string(floor));
    }
    for (size_t chunk = 0; chunk < 2; ++chunk) {
      std::vector<int> have = flushed_.holds[chunk], want;
      for (int r : recovered_.chain) {
        if (Of(r).type == Type::kData && Of(r).chunk == static_cast<int>(chunk) &&
            Of(r).lsn >= flushed_.reach[chunk]) {
          have.push_back(r);
        }
      }
      for (int r : lineage_) {
        if (Of(r).type == Type::kData && Of(r).chunk == static_cast<int>(chunk) &&
            Of(r).lsn < end) {
          want.push_back(r);
        }
      }
      if (have != want) Fail("not a prefix: index chunk " + std::to_string(chunk));
    }
    for (int r : recovered_.chain) {
      if (std::find(lineage_.begin(), lineage_.end(), r) == lineage_.end()) {
        Fail("a record that was cut reappears: " + std::to_string(r));
      }
      if (!rules_.check_pieces && !TrulyGood(r)) Fail("a torn record is served");
    }
    if (stable_end_ >= 0 && end != stable_end_) {
      Fail("two opens differ: " + std::to_string(stable_end_) + ", then " + std::to_string(end));
    }
  }

  bool TrulyGood(int record) const {
    const auto it =
        recovered_.segments.find(Of(record).lsn / geometry_.segment * geometry_.segment);
    return RingPiecesGood(record) ||
           (it != recovered_.segments.end() && SegmentPiecesGood(it->second, record));
  }

  void PrepareRecovery() {
    segment_files_ = recovered_.segments;
    std::erase_if(segment_files_, [&](const auto& s) { return s.first >= recovered_.end; });
    tail_begin_ = geometry_.BlockFloor(recovered_.segments_end);
    tail_.clear();
    for (int lsn = tail_begin_; lsn < recovered_.end; ++lsn) {
      tail_.push_back(lsn < recovered_.segments_end ? CellInSegment(lsn)
                                                    : ring_[Index(lsn % geometry_.ring)]);
    }
    recovery_writes_.clear();
    if (!rules_.drain_at_open || recovered_.end == recovered_.segments_end) return;
    const int end = geometry_.BlockFloor(recovered_.end + geometry_.block - 1);
    for (int lsn = tail_begin_; lsn < end; lsn += geometry_.sector) {
      const int base = lsn / geometry_.segment * geometry_.segment;
      if (segment_files_.count(base) == 0) {
        const int file = FreeFile(flushed_.from());
        if (file < 0) {
          over_ = true;  // Rule 9 is about real files; the toy disk is simply too small.
          return;
        }
        segment_files_[base] = file;
      }
      recovery_writes_.push_back({segment_files_[base], (lsn - base) / geometry_.sector, lsn});
    }
  }

  // Zero where no file holds the segment: an index chunk may reach beyond the log when rule 8 is
  // off.
  int CellInSegment(int lsn) const {
    const int base = lsn / geometry_.segment * geometry_.segment;
    const auto it = segment_files_.find(base);
    return it == segment_files_.end() ? kZero : files_[Index(it->second)].Cell(lsn - base);
  }

  void CutStep() {
    phase_ = Phase::kDrain;
    const bool said = recovered_.end >= manifest().cut;
    const bool durable = manifests_.size() == 1 || !rules_.cut_even_if_there;
    if (!rules_.cut_before_drain || recovery_writes_.empty() || (said && durable)) return;
    Manifest next = manifest();
    next.cut = recovered_.end;
    manifests_.push_back(next);
    Trace("manifest cut %d written", next.cut);
    phase_ = Phase::kCutSync;
  }

  void RecoveryDrainStep() {
    if (recovery_writes_.empty()) {
      phase_ = Phase::kSync;
      return;
    }
    const SectorWrite write = TakeOne(&recovery_writes_);
    std::vector<int> cells;
    for (int lsn = write.lsn; lsn < write.lsn + geometry_.sector; ++lsn) {
      cells.push_back(lsn < recovered_.end ? tail_[Index(lsn - tail_begin_)] : kZero);
    }
    files_[Index(write.file)].Write(write.sector, cells);
    ++counts_->recovery_writes;
    Trace("recovery drains lsn %d", write.lsn);
  }

  void Serve() {
    const int end = recovered_.end;
    std::erase_if(lineage_, [&](int r) { return Of(r).lsn >= end; });
    lineage_end_ = end;
    writer_.Begin(end);
    if (!rules_.drain_at_open) {
      writer_.drained = recovered_.segments_end;
      writer_.synced = std::min(sync_floor_, end);
    }
    for (int lsn = geometry_.BlockFloor(writer_.drained); lsn < writer_.drained; ++lsn) {
      ring_[Index(lsn % geometry_.ring)] = tail_[Index(lsn - tail_begin_)];
    }
    log_floor_ = end;
    sync_floor_ = std::max(sync_floor_, end);
    power_lost_ = false;
    stable_end_ = -1;
    written_ = flushed_;
    up_ = true;
    Trace("serving epoch %d at %d", manifest().epoch, end);
  }

  // Damage: a synced record in a segment, below a surviving voucher, is hurt.
  bool Hurt() {
    const Reading whole = ReadLog({.disk = this,
                                   .records = &records_,
                                   .manifest = manifest(),
                                   .geometry = geometry_,
                                   .rules = {},
                                   .from = flushed_.from()});
    std::vector<int> candidates;
    for (size_t i = 0; i + whole.ring_records < whole.chain.size(); ++i) {
      candidates.push_back(whole.chain[i]);
    }
    if (candidates.empty() || whole.verdict != Verdict::kGood) return false;
    const Record& victim = Of(candidates[Index(Below(static_cast<int>(candidates.size())))]);
    const int offset = victim.type == Type::kPad ? 0 : Below(victim.length);
    const int base = victim.lsn / geometry_.segment * geometry_.segment;
    const int sector = (victim.lsn + offset - base) / geometry_.sector;
    if (sector == 0) return false;  // The file's identity: a lost segment, another test.
    Versions& file = files_[Index(whole.segments.at(base))];
    const Versions before = file;
    file.Hurt(sector);
    hurt_vouched_ = manifest().start;
    for (int f = 0; f < files(); ++f) {
      for (int i = 0; i < geometry_.segment; ++i) ConsiderVoucher(SegmentHeader(f, i));
    }
    for (int i = 0; i < geometry_.ring; ++i) ConsiderVoucher(RingHeader(i));
    if (victim.end() > hurt_vouched_) {
      file = before;
      return false;
    }
    hurt_end_ = victim.end();
    ++counts_->damages;
    Trace("damage at lsn %d, vouched %d", victim.lsn + offset, hurt_vouched_);
    return true;
  }

  void ConsiderVoucher(int record) {
    if (record < 0) return;
    const Record& r = Of(record);
    if (r.epoch == manifest().epoch && r.lsn >= manifest().start) {
      hurt_vouched_ = std::max(hurt_vouched_, r.synced);
    }
  }

  // The ring may have healed it; otherwise it must be reported. Either way the history is over.
  void JudgeDamage() {
    over_ = true;
    if (recovered_.verdict != Verdict::kGood) {
      ++counts_->reported;
    } else if (recovered_.end < hurt_end_) {
      Fail("damage below the vouched LSN " + std::to_string(hurt_vouched_) +
           " is taken for the end of the log at " + std::to_string(recovered_.end));
    }
  }

  // Working.

  void Work() {
    int all = 0;
    for (int weight : weights_) all += weight;
    int pick = Below(all), action = 0;
    while (pick >= weights_[Index(action)]) pick -= weights_[Index(action++)];
    switch (action) {
      case kAppend:
        if (flying_.size() < 3) {
          const bool seal = Below(8) == 0 && writer_.synced == writer_.next && flying_.empty();
          Append(1 + Below(5), seal ? Type::kSeal : Type::kData);
        }
        break;
      case kCopy:
        Copy();
        break;
      case kDrainBegin:
        DrainBegin();
        break;
      case kDrainWrite:
        DrainWrite();
        break;
      case kSyncBegin:
        if (!syncing_ && SyncTarget() > writer_.synced) {
          syncing_ = true;
          sync_target_ = SyncTarget();
          for (Versions& file : files_) file.BeginSync();
          Trace("fdatasync begins (%d)", sync_target_);
        }
        break;
      case kSyncEnd:
        SyncEnd();
        break;
      case kWriteBack: {
        const int sectors = geometry_.block / geometry_.sector;
        const int block = Below(geometry_.ring / geometry_.block);
        for (int i = 0; i < sectors; ++i) {
          if (Below(4) != 0) WriteBackSector(block * sectors + i);
        }
        break;
      }
      case kSnapshot:
        SnapshotChunk();
        break;
      case kChunkWrite:
        WriteChunk();
        break;
      case kFlush:
        flushed_ = written_;
        break;
      default:
        break;
    }
  }

  int NewRecord(int length, Type type) {
    const int record = static_cast<int>(records_.size());
    const int claim =
        rules_.header_says_synced ? writer_.synced : writer_.RecordFloor(writer_.drained);
    records_.push_back({.lsn = writer_.next,
                        .length = length,
                        .epoch = manifest().epoch,
                        .synced = claim,
                        .type = type,
                        .payload = 1 + Below(2),
                        .chunk = Below(2)});
    lineage_.push_back(record);
    writer_.next += length;
    lineage_end_ = writer_.next;
    writer_.ends.push_back(writer_.next);
    Flying flying{.record = record, .cells = {}};
    for (int i = 0; i < (type == Type::kPad ? 1 : length); ++i) flying.cells.push_back(i);
    flying_.push_back(std::move(flying));
    return record;
  }

  void Append(int length, Type type) {
    const WriterState::Place place = writer_.PlaceFor(length);
    if (!writer_.Admits(place)) return;
    if (place.new_segment) {
      const int base = writer_.next + place.pad;
      const int file = FreeFile(rules_.recycle_after_flush ? flushed_.from() : written_.from());
      if (file < 0) return;
      if (files_[Index(file)].Cell(0) >= kFirstRecord) ++counts_->recycled;
      segment_files_[base] = file;
    }
    if (place.pad > 0) NewRecord(place.pad, Type::kPad);
    if (place.new_segment) NewRecord(geometry_.segment_record, Type::kSegment);
    const int record = NewRecord(length, type);
    Trace("record %d at %d, length %d, synced %d", record, Of(record).lsn, length,
          Of(record).synced);
  }

  void Copy() {
    if (!flying_.empty()) {
      Flying& flying = flying_[Index(Below(static_cast<int>(flying_.size())))];
      const Record& r = Of(flying.record);
      for (int n = 1 + Below(3); n > 0 && !flying.cells.empty(); --n) {
        const int pick = Below(static_cast<int>(flying.cells.size()));
        const int i = flying.cells[Index(pick)];
        int& cell = ring_[Index((r.lsn + i) % geometry_.ring)];
        if (Below(4) == 0 && flying.half != i) {
          cell = kGarbage;
          flying.half = i;
        } else {
          cell = i == 0 ? HeaderCell(flying.record) : r.payload;
          flying.cells.erase(flying.cells.begin() + pick);
        }
      }
    }
    while (!flying_.empty() && flying_.front().cells.empty()) {
      writer_.published = Of(flying_.front().record).end();
      Trace("published to %d", writer_.published);
      flying_.pop_front();
    }
    if (rules_.publish_in_order) return;
    for (const Flying& flying : flying_) {
      if (flying.cells.empty()) {
        writer_.published = std::max(writer_.published, Of(flying.record).end());
      }
    }
  }

  void DrainBegin() {
    const int limit = rules_.drain_published_only ? writer_.published : writer_.next;
    if (draining_ || limit <= writer_.drained) return;
    const int begin = geometry_.BlockFloor(writer_.drained);
    const int base = begin / geometry_.segment * geometry_.segment;
    const int end = std::min({limit, begin + 2 * geometry_.block, base + geometry_.segment});
    if (segment_files_.count(base) == 0) return;
    const int blocks_end = geometry_.BlockFloor(end + geometry_.block - 1);
    for (int lsn = begin; lsn < blocks_end; lsn += geometry_.sector) {
      drain_writes_.push_back({segment_files_[base], (lsn - base) / geometry_.sector, lsn});
    }
    drain_target_ = end;
    drain_published_ = writer_.published;
    draining_ = true;
    Trace("drain begins [%d, %d)", begin, end);
  }

  void DrainWrite() {
    if (!draining_) return;
    for (int n = 1 + Below(3); n > 0 && !drain_writes_.empty(); --n) {
      const SectorWrite write = TakeOne(&drain_writes_);
      std::vector<int> cells;
      for (int lsn = write.lsn; lsn < write.lsn + geometry_.sector; ++lsn) {
        cells.push_back(lsn < drain_target_ ? ring_[Index(lsn % geometry_.ring)] : kZero);
      }
      files_[Index(write.file)].Write(write.sector, cells);
    }
    if (!drain_writes_.empty()) return;
    draining_ = false;
    const int done =
        rules_.drain_published_only ? drain_target_ : std::min(drain_target_, drain_published_);
    writer_.drained = std::max(writer_.drained, done);
    Trace("drained %d", writer_.drained);
  }

  int SyncTarget() const {
    return rules_.sync_at_record_end ? writer_.RecordFloor(writer_.drained) : writer_.drained;
  }

  void SyncEnd() {
    if (!syncing_) return;
    syncing_ = false;
    const int base = std::max(0, sync_target_ - 1) / geometry_.segment * geometry_.segment;
    for (int file = 0; file < files(); ++file) {
      if (rules_.sync_all_segments || segment_files_[base] == file) files_[Index(file)].EndSync();
    }
    writer_.synced =
        std::max(writer_.synced, rules_.sync_target_before ? sync_target_ : SyncTarget());
    Trace("fdatasync ends: synced %d", writer_.synced);
  }

  void SyncAll() {
    for (Versions& file : files_) {
      file.BeginSync();
      file.EndSync();
    }
  }

  void SnapshotChunk() {
    if (snapshots_.size() >= 2) return;
    ChunkSnapshot snapshot{.chunk = Index(Below(2)), .reach = writer_.published, .holds = {}};
    for (int r : lineage_) {
      if (Of(r).type == Type::kData && Index(Of(r).chunk) == snapshot.chunk &&
          Of(r).lsn < snapshot.reach) {
        snapshot.holds.push_back(r);
      }
    }
    snapshots_.push_back(std::move(snapshot));
  }

  void WriteChunk() {
    if (snapshots_.empty()) return;
    const ChunkSnapshot snapshot = snapshots_.front();
    if (rules_.chunks_after_sync && snapshot.reach > writer_.synced) return;
    snapshots_.pop_front();
    if (snapshot.reach < written_.reach[snapshot.chunk]) return;
    written_.reach[snapshot.chunk] = snapshot.reach;
    written_.holds[snapshot.chunk] = snapshot.holds;
    Trace("chunk %zu at %d written", snapshot.chunk, snapshot.reach);
  }

  int FreeFile(int from) {
    std::vector<bool> used(files_.size());
    for (const auto& [base, file] : segment_files_) {
      if (base + geometry_.segment > from) used[Index(file)] = true;
    }
    std::vector<int> free;
    for (int file = 0; file < files(); ++file) {
      if (!used[Index(file)]) free.push_back(file);
    }
    return free.empty() ? -1 : free[Index(Below(static_cast<int>(free.size())))];
  }

  SectorWrite TakeOne(std::vector<SectorWrite>* writes) {
    const int pick = Below(static_cast<int>(writes->size()));
    const SectorWrite write = (*writes)[Index(pick)];
    writes->erase(writes->begin() + pick);
    return write;
  }

  const Rules rules_;
  const bool damage_;
  const bool recycling_;
  Random random_;
  Counts* const counts_;
  std::vector<std::string>* const trace_;
  Geometry geometry_;
  std::array<int, kActions> weights_ = {};
  std::optional<std::string> failure_;
  bool over_ = false;

  // The disk.
  std::vector<Record> records_;
  std::vector<Versions> files_;
  std::vector<int> ring_;
  std::optional<Versions> ring_versions_;
  std::vector<Manifest> manifests_ = {Manifest()};  // The last is visible, the first durable.
  Chunks flushed_;

  // The process.
  bool up_ = false;
  Phase phase_ = Phase::kRead;
  WriterState writer_;
  std::map<int, int> segment_files_;
  std::deque<Flying> flying_;
  std::vector<SectorWrite> drain_writes_;
  int drain_target_ = 0, drain_published_ = 0, sync_target_ = 0;
  bool draining_ = false, syncing_ = false;
  std::deque<ChunkSnapshot> snapshots_;
  Chunks written_;  // In RocksDB, not flushed.
  Reading recovered_;
  int tail_begin_ = 0;
  std::vector<int> tail_;
  std::vector<SectorWrite> recovery_writes_;

  // The oracle.
  std::vector<int> lineage_;  // Records that were not cut, in order.
  int lineage_end_ = 0;
  int log_floor_ = 0, sync_floor_ = 0, stable_end_ = -1;
  bool power_lost_ = false;
  int hurt_vouched_ = 0, hurt_end_ = 0;
};

}  // namespace

void Counts::Add(const Counts& other) {
  steps += other.steps;
  deaths += other.deaths;
  power_losses += other.power_losses;
  opens += other.opens;
  cuts += other.cuts;
  ring_tails += other.ring_tails;
  recycled += other.recycled;
  recovery_writes += other.recovery_writes;
  damages += other.damages;
  reported += other.reported;
}

std::optional<std::string> RunHistory(const HistoryOptions& options, Counts* counts,
                                      std::vector<std::string>* trace) {
  return History(options, counts, trace).Run(options.steps);
}

}  // namespace geardb::wal::model
