// The model: histories, crashes and opens.
#include <cstdarg>
#include <cstdio>

#include "tests/wal/protocol_history.h"

namespace geardb::wal::model {

History::History(const HistoryOptions& options, Counts* counts, std::vector<std::string>* trace)
    : rules_(options.rules),
      damage_(options.damage),
      repair_(options.repair),
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

std::optional<std::string> History::Run(int steps) {
  for (int& weight : weights_) weight = 1 + Below(6);
  weights_[kCopy] += 4;
  weights_[kDrainWrite] += 2;
  if (Below(3) == 0) weights_[kSnapshot] = weights_[kChunkWrite] = weights_[kFlush] = Below(2);
  weights_[kFlush] = std::min(weights_[kFlush], 2);
  if (recycling_) {
    for (int action : {kCopy, kDrainWrite, kSyncStep, kSyncBegin, kSnapshot, kChunkWrite}) {
      weights_[Index(action)] += 4;
    }
  }
  if (Below(4) == 0) syncs_fail_ = 2 + Below(20);
  if (Below(3) == 0) {  // Slow syncs: they overlap.
    weights_[kSyncStep] = 1;
    for (int action : {kAppend, kCopy, kDrainBegin, kDrainWrite, kSyncBegin}) {
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

void History::Trace(const char* format, ...) {
  if (trace_ == nullptr) return;
  char text[300];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  trace_->push_back(text);
}

void History::Die(bool power) {
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
  draining_ = sync_failed_ = false;
  syncs_.clear();
  dirty_.clear();
  for (Versions& file : files_) file.ForgetSyncs();
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

void History::WriteBackSector(int sector) {
  const auto begin = ring_.begin() + sector * geometry_.sector;
  const std::vector<int> now(begin, begin + geometry_.sector);
  std::vector<int> last;
  for (int i = 0; i < geometry_.sector; ++i) {
    last.push_back(ring_versions_->Cell(sector * geometry_.sector + i));
  }
  if (now != last) ring_versions_->Write(sector, now);
}

void History::OpenStep() {
  switch (phase_) {
    case Phase::kRead:
      ReadStep();
      break;
    case Phase::kCut:
      CutStep();
      break;
    case Phase::kCutSync:
      SyncManifest();
      phase_ = Phase::kDrain;
      break;
    case Phase::kDrain:
      RecoveryDrainStep();
      break;
    case Phase::kSync:
      if (rules_.sync_at_open) SyncAtOpen();
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
      if (rules_.sync_epoch) SyncManifest();
      phase_ = Phase::kServe;
      break;
    case Phase::kServe:
      Serve();
      break;
  }
}

void History::SyncManifest() {
  manifests_ = {manifest()};
  if (damage_) old_manifests_.push_back(manifest());
}

void History::ReadStep() {
  ++counts_->opens;
  const bool unhurt = damage_ && hurt_end_ == 0 && !hurt_manifest_;
  const bool hurt = unhurt && Below(2) == 0 && (Below(16) == 0 ? PutManifestBack() : Hurt());
  recovered_ = ReadLog({.disk = this,
                        .records = &records_,
                        .manifest = manifest(),
                        .geometry = geometry_,
                        .rules = rules_,
                        .from = flushed_.from()});
  Trace("open: epoch %d start %d, from %d, segments to %d, log to %d, verdict %d", manifest().epoch,
        manifest().start, flushed_.from(), recovered_.segments_end, recovered_.end,
        static_cast<int>(recovered_.verdict));
  if (hurt) JudgeDamage();
  if (over_) return;
  if (repairing_) {  // What is behind the damage is given up.
    log_floor_ = std::min(log_floor_, recovered_.end);
    sync_floor_ = std::min(sync_floor_, recovered_.end);
    stable_end_ = -1;
  } else if (recovered_.verdict != Verdict::kGood) {
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
void History::CheckPrefix(int floor) {
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
      if (Of(r).type == Type::kData && Of(r).chunk == static_cast<int>(chunk) && Of(r).lsn < end) {
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

bool History::TrulyGood(int record) const {
  const auto it = recovered_.segments.find(Of(record).lsn / geometry_.segment * geometry_.segment);
  return RingPiecesGood(record) ||
         (it != recovered_.segments.end() && SegmentPiecesGood(it->second, record));
}

void History::PrepareRecovery() {
  segment_files_ = recovered_.segments;
  std::erase_if(segment_files_, [&](const auto& s) { return s.first >= recovered_.end; });
  tail_begin_ = geometry_.BlockFloor(recovered_.segments_end);
  tail_.clear();
  for (int lsn = tail_begin_; lsn < recovered_.end; ++lsn) {
    tail_.push_back(lsn < recovered_.segments_end ? CellInSegment(lsn)
                                                  : ring_[Index(lsn % geometry_.ring)]);
  }
  recovery_writes_.clear();
  recovery_wrote_.clear();
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
int History::CellInSegment(int lsn) const {
  const int base = lsn / geometry_.segment * geometry_.segment;
  const auto it = segment_files_.find(base);
  return it == segment_files_.end() ? kZero : files_[Index(it->second)].Cell(lsn - base);
}

void History::CutStep() {
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

void History::RecoveryDrainStep() {
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
  recovery_wrote_.insert(write.file);
  ++counts_->recovery_writes;
  Trace("recovery drains lsn %d", write.lsn);
}

void History::Serve() {
  const int end = recovered_.end;
  std::erase_if(lineage_, [&](int r) { return Of(r).lsn >= end; });
  lineage_end_ = end;
  writer_.Begin(end);
  if (!rules_.drain_at_open) {
    writer_.drained = recovered_.segments_end;
    writer_.synced = std::min(sync_floor_, end);
  }
  const int copied = rules_.prepare_ring ? writer_.drained : 0;
  for (int lsn = geometry_.BlockFloor(writer_.drained); lsn < copied; ++lsn) {
    ring_[Index(lsn % geometry_.ring)] = tail_[Index(lsn - tail_begin_)];
  }
  log_floor_ = end;
  sync_floor_ = std::max(sync_floor_, end);
  power_lost_ = false;
  stable_end_ = -1;
  written_ = flushed_;
  repairing_ = false;
  up_ = true;
  Trace("serving epoch %d at %d", manifest().epoch, end);
}

// Damage: a synced record in a segment, below a surviving voucher, is hurt.
bool History::Hurt() {
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
  // The file's identity: another file may claim the base. That this is damage, the record before
  // the segment says, by its epoch; so the reading must come through it, and the epoch be the same.
  if (sector == 0) {
    const auto first = std::find_if(whole.chain.begin(), whole.chain.end(),
                                    [&](int r) { return Of(r).lsn == base; });
    if (first == whole.chain.begin() || first == whole.chain.end()) return false;
    if (Of(*std::prev(first)).epoch != Of(*first).epoch) return false;
  }
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

// A manifest that was durable once is put back in the place of the one that is.
bool History::PutManifestBack() {
  if (old_manifests_.size() < 2) return false;
  const Manifest old = old_manifests_[Index(Below(static_cast<int>(old_manifests_.size() - 1)))];
  if (old.epoch == manifest().epoch) return false;
  manifests_ = {old};
  hurt_manifest_ = true;
  ++counts_->old_manifests;
  Trace("the manifest of epoch %d start %d cut %d is put back", old.epoch, old.start, old.cut);
  return true;
}

void History::ConsiderVoucher(int record) {
  if (record < 0) return;
  const Record& r = Of(record);
  if (r.epoch == manifest().epoch && r.lsn >= manifest().start) {
    hurt_vouched_ = std::max(hurt_vouched_, r.synced);
  }
}

// The ring may have healed it; otherwise it must be reported. Either way the history is over, but
// for a repair, which needs index chunks that reach no further than the log.
void History::JudgeDamage() {
  if (hurt_manifest_) {
    over_ = true;
    // A ring that still holds what the old epoch lost may lead past the records of later ones.
    if (recovered_.ring_records > 0) return;
    const int floor = power_lost_ ? sync_floor_ : log_floor_;
    if (recovered_.verdict == Verdict::kGood && recovered_.end < floor) {
      Fail("with an older manifest the log ends at " + std::to_string(recovered_.end) + " of " +
           std::to_string(floor));
    }
    return;
  }
  const bool reaches_chunks = recovered_.end >= std::max(flushed_.reach[0], flushed_.reach[1]);
  const bool repairable = recovered_.verdict == Verdict::kCorruption && reaches_chunks;
  repairing_ = repair_ && repairable;
  counts_->repairs += repairing_ ? 1 : 0;
  over_ = !repairing_;
  if (recovered_.verdict != Verdict::kGood) {
    ++counts_->reported;
    return;
  }
  stable_end_ = -1;
  // Index chunks that reach beyond the log's end say themselves that it is damaged.
  if (reaches_chunks) CheckPrefix(/*floor=*/0);
  if (recovered_.end < hurt_end_) {
    Fail("damage below the vouched LSN " + std::to_string(hurt_vouched_) +
         " is taken for the end of the log at " + std::to_string(recovered_.end));
  }
}

// What ends at or below `start` was synced before `start` was first written.
void History::SyncAtOpen() {
  if (recovered_.end <= manifest().start) return;
  for (const auto& [base, file] : segment_files_) {
    if (base + geometry_.segment <= manifest().start) continue;
    if (!rules_.sync_what_was_read && recovery_wrote_.count(file) == 0) continue;
    files_[Index(file)].BeginSync(0);
    files_[Index(file)].EndSync(0);
  }
}

int History::FreeFile(int from) {
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

History::SectorWrite History::TakeOne(std::vector<SectorWrite>* writes) {
  const int pick = Below(static_cast<int>(writes->size()));
  const SectorWrite write = (*writes)[Index(pick)];
  writes->erase(writes->begin() + pick);
  return write;
}

}  // namespace geardb::wal::model
