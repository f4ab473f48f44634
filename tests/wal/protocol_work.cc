// The model: what a running log does.
#include "tests/wal/protocol_history.h"

namespace geardb::wal::model {

void History::Work() {
  const bool read_only = sync_failed_ && rules_.error_is_of_all_after;
  int all = 0;
  for (int weight : weights_) all += weight;
  int pick = Below(all), action = 0;
  while (pick >= weights_[Index(action)]) pick -= weights_[Index(action++)];
  switch (action) {
    case kAppend:
      if (flying_.size() < 3 && !read_only) {
        const bool seal = Below(8) == 0 && writer_.synced == writer_.next && flying_.empty();
        Append(1 + Below(5), seal ? Type::kSeal : Type::kData);
      }
      break;
    case kCopy:
      Copy();
      break;
    case kDrainBegin:
      if (!read_only) DrainBegin();
      break;
    case kDrainWrite:
      if (!read_only) DrainWrite();
      break;
    case kSyncBegin:
      if (!read_only) SyncBegin();
      break;
    case kSyncStep:
      SyncStep();
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

int History::NewRecord(int length, Type type) {
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

void History::Append(int length, Type type) {
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
  Trace("record %d at %d, length %d, synced %d", record, Of(record).lsn, length, Of(record).synced);
}

void History::Copy() {
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

void History::DrainBegin() {
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
  drain_file_ = segment_files_[base];
  drain_target_ = end;
  drain_published_ = writer_.published;
  draining_ = true;
  Trace("drain begins [%d, %d)", begin, end);
}

void History::DrainWrite() {
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
  dirty_.insert(drain_file_);
  const int done =
      rules_.drain_published_only ? drain_target_ : std::min(drain_target_, drain_published_);
  writer_.drained = std::max(writer_.drained, done);
  Trace("drained %d", writer_.drained);
}

int History::SyncTarget() const {
  return rules_.sync_at_record_end ? writer_.RecordFloor(writer_.drained) : writer_.drained;
}

void History::SyncBegin() {
  const int reached =
      syncs_.empty() ? writer_.synced : std::max(writer_.synced, syncs_.back().target);
  if (syncs_.size() == kSyncsMax || SyncTarget() <= reached) return;
  size_t slot = 0;
  const auto taken = [&](const Sync& sync) { return sync.slot == slot; };
  while (std::any_of(syncs_.begin(), syncs_.end(), taken)) ++slot;
  syncs_.push_back({.slot = slot, .target = SyncTarget()});
  counts_->overlaps += syncs_.size() > 1 ? 1u : 0u;
  Trace("sync %zu begins (%d)", slot, syncs_.back().target);
  if (rules_.syncs_take_in_order) TakeFiles(&syncs_.back());
}

void History::TakeFiles(Sync* sync) {
  sync->took = true;
  const int base = std::max(0, sync->target - 1) / geometry_.segment * geometry_.segment;
  for (const int file : dirty_) {
    if (rules_.sync_all_segments || segment_files_[base] == file) sync->files.push_back(file);
  }
  for (const int file : sync->files) {
    files_[Index(file)].BeginSync(sync->slot);
    dirty_.erase(file);
  }
  Trace("sync %zu takes %zu files", sync->slot, sync->files.size());
}

// One of those under way goes on.
void History::SyncStep() {
  std::vector<size_t> running;
  for (size_t i = 0; i < syncs_.size(); ++i) {
    if (!syncs_[i].done) running.push_back(i);
  }
  if (running.empty()) return;
  const auto sync = syncs_.begin() +
                    static_cast<ptrdiff_t>(running[Index(Below(static_cast<int>(running.size())))]);
  if (!sync->took) return TakeFiles(&*sync);
  FdatasyncEnd(&*sync);
  if (!rules_.syncs_end_in_order) return SyncEnd(sync);
  while (!syncs_.empty() && syncs_.front().done) SyncEnd(syncs_.begin());
}

void History::FdatasyncEnd(Sync* sync) {
  sync->done = true;
  sync->failed = !sync->files.empty() && syncs_fail_ > 0 && Below(syncs_fail_) == 0;
  for (const int file : sync->files) {
    if (sync->failed) {
      files_[Index(file)].FailSync(sync->slot);
    } else {
      files_[Index(file)].EndSync(sync->slot);
    }
  }
  counts_->failed_syncs += sync->failed ? 1 : 0;
  sync_failed_ = sync_failed_ || sync->failed;
  Trace("fdatasync of sync %zu %s", sync->slot, sync->failed ? "fails" : "is done");
}

void History::SyncEnd(std::deque<Sync>::iterator sync) {
  const int target = rules_.sync_target_before ? sync->target : SyncTarget();
  const bool good = rules_.error_is_of_all_after ? !sync_failed_ : !sync->failed;
  if (good) writer_.synced = std::max(writer_.synced, target);
  Trace("sync %zu ends: synced %d", sync->slot, writer_.synced);
  syncs_.erase(sync);
}

void History::SnapshotChunk() {
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

void History::WriteChunk() {
  if (snapshots_.empty()) return;
  const ChunkSnapshot snapshot = snapshots_.front();
  if (rules_.chunks_after_sync && snapshot.reach > writer_.synced) return;
  snapshots_.pop_front();
  if (snapshot.reach < written_.reach[snapshot.chunk]) return;
  written_.reach[snapshot.chunk] = snapshot.reach;
  written_.holds[snapshot.chunk] = snapshot.holds;
  Trace("chunk %zu at %d written", snapshot.chunk, snapshot.reach);
}

void Counts::Add(const Counts& other) {
  steps += other.steps;
  deaths += other.deaths;
  power_losses += other.power_losses;
  opens += other.opens;
  cuts += other.cuts;
  ring_tails += other.ring_tails;
  recycled += other.recycled;
  overlaps += other.overlaps;
  failed_syncs += other.failed_syncs;
  old_manifests += other.old_manifests;
  recovery_writes += other.recovery_writes;
  damages += other.damages;
  reported += other.reported;
  repairs += other.repairs;
}

std::optional<std::string> RunHistory(const HistoryOptions& options, Counts* counts,
                                      std::vector<std::string>* trace) {
  return History(options, counts, trace).Run(options.steps);
}

}  // namespace geardb::wal::model
