#include "wal/log_writer.h"

#include <algorithm>

#include "base/break.h"
#include "wal/record_codec.h"
#include "wal/writer_core.h"

namespace geardb::wal {
namespace {

// What removals, closings and small tags may take beyond the bound.
uint64_t ReserveBytes(uint64_t log_bytes_max) {
  return std::max(uint64_t{1} << 20, log_bytes_max / 16);
}

}  // namespace

namespace {

/// Two records of so many bytes fit a segment, with all that may lie around them: of a change in
/// many records, the log would take twice its bytes else.
uint64_t HalfOfSegment(uint64_t segment_bytes) {
  return AlignDown((segment_bytes - kSegmentRecordBytes - 3 * kSealRecordBytes) / 2,
                   kRecordAlignment);
}

}  // namespace

std::unique_ptr<LogWriter> LogWriter::Core::Make(WriterParts parts) {
  return std::unique_ptr<LogWriter>(new LogWriter(std::make_unique<Core>(std::move(parts))));
}

LogWriter::Core::Core(WriterParts parts)
    : ring_(std::move(parts.ring)),
      pool_(std::move(parts.pool)),
      manifest_(parts.manifest),
      options_(parts.options),
      seed_(manifest_.Seed()),
      segment_bytes_(manifest_.segment_bytes),
      record_bytes_max_(std::min(ring_->bytes() / 4, HalfOfSegment(segment_bytes_))),
      spare_target_((ring_->bytes() + segment_bytes_ - 1) / segment_bytes_ + 1),
      segments_max_(options_.log_bytes_max / segment_bytes_),
      reserve_segments_((ReserveBytes(options_.log_bytes_max) + segment_bytes_ - 1) /
                        segment_bytes_),
      drain_(ring_.get(), pool_.get(), parts.end),
      queue_(parts.end, this),
      next_(parts.end),
      seal_end_(parts.sealed ? parts.end : kNoLsn),
      start_(parts.end),
      seen_end_(parts.end),
      thread_(std::move(parts.thread)) {
  last_drain_ = last_sync_ = last_append_ = std::chrono::steady_clock::now();
  RemoveSurplus();
  if (thread_ != nullptr) thread_->Do([this] { Run(); });
}

LogWriter::Core::~Core() { StopThread(); }

LogWriter::Core::Place LogWriter::Core::PlaceAt(Lsn at, uint64_t bytes) const {
  Place place{.lsn = at};
  const uint64_t left = segment_bytes_ - at % segment_bytes_;
  if (left == segment_bytes_) {
    place.new_segment = true;
  } else if (bytes > left) {
    place.new_segment = true;
    place.pad_bytes = left;
  }
  if (place.new_segment) place.lsn += place.pad_bytes + kSegmentRecordBytes;
  place.end = place.lsn + bytes;
  return place;
}

uint64_t LogWriter::Core::SegmentsMax(Urgency urgency) const {
  return segments_max_ + (urgency == Urgency::kReserve ? reserve_segments_ : 0);
}

uint64_t LogWriter::Core::SparesKept(uint64_t segments, Urgency urgency) const {
  // The first segment of a log is there before the spare files are.
  if (pool_->live_count() == 0 && segments <= 1) return 0;
  return spare_target_ - (urgency == Urgency::kReserve ? 1 : 0);
}

LogWriter::Core::Extent LogWriter::Core::PlaceAll(std::span<const RecordSize> sizes) const {
  Extent extent{.end = end()};
  bool sealed = seal_end_.load(std::memory_order_acquire) == extent.end;
  for (const RecordSize& size : sizes) {
    // Nothing that begins later ends earlier, so with these seals it is room enough without them.
    if (!sealed && extent.end % segment_bytes_ != 0) extent.end += kSealRecordBytes;
    sealed = false;
    const Place place = PlaceAt(extent.end, size.total());
    extent.segments += place.new_segment ? 1 : 0;
    extent.end = place.end;
  }
  return extent;
}

LogWriter::Core::Obstacle LogWriter::Core::FindObstacle(uint64_t segments, Urgency urgency) const {
  const uint64_t live = pool_->live_count();
  // Once the reserve is in use, what is left of its segments is not for appends either.
  if (live + segments > SegmentsMax(urgency)) return Obstacle::kLogBound;
  // Rule 9. Likewise for the segment that was made of the last spare file: appends wait until there
  // is another one, wherever they would go.
  if (urgency == Urgency::kReserve && segments == 0) return Obstacle::kNone;
  return pool_->free_count() < segments + SparesKept(segments, urgency) ? Obstacle::kSpareFile
                                                                        : Obstacle::kNone;
}

LogWriter::Core::Obstacle LogWriter::Core::FindObstacle(std::span<const RecordSize> sizes,
                                                        Urgency urgency) const {
  if (!queue_.SlotFree(next_ticket_.load(std::memory_order_relaxed) + sizes.size() + 1)) {
    return Obstacle::kSlots;
  }
  const Extent extent = PlaceAll(sizes);
  // Rule 3: what a record overwrites in the ring must be wholly drained, to the block.
  const Lsn kept_from = kBreak.reuse_ring_early ? drain_.drained() : drain_.boundary();
  if (extent.end > AlignDown(kept_from, kBlockBytes) + ring_->bytes()) return Obstacle::kRing;
  const Obstacle obstacle = FindObstacle(extent.segments, urgency);
  // What is reserved will be written: a drain that finds no descriptor would be the log's end.
  const bool ready = pool_->ready_count() >= extent.segments;
  return obstacle == Obstacle::kNone && !ready ? Obstacle::kSpareFile : obstacle;
}

bool LogWriter::Core::HasRoom(std::span<const RecordSize> sizes, Urgency urgency) {
  if (closed_.load(std::memory_order_acquire) || drain_.failed()) return false;
  if (FindObstacle(sizes, urgency) != Obstacle::kNone) return false;
  return CheckSizes(sizes).ok();
}

Status LogWriter::Core::CheckSizes(std::span<const RecordSize> sizes) const {
  uint64_t sum = 0;
  for (const RecordSize& size : sizes) {
    if (size.total() > record_bytes_max_) {
      return Status::InvalidArgument("a record of ", size.total(), " bytes: at most ",
                                     record_bytes_max_, " go into one record of this log");
    }
    sum += size.total();
  }
  if (sum > ring_->bytes() / 2) {
    return Status::InvalidArgument("records of ", sum, " bytes together: at most ",
                                   ring_->bytes() / 2, " can be reserved at once");
  }
  return Status::Ok();
}

Status LogWriter::Core::UsableOrError() const {
  if (drain_.failed()) return drain_.failure();
  if (closed_.load(std::memory_order_acquire)) return Status::Cancelled("the log is closed");
  return Status::Ok();
}

std::string LogWriter::Core::UsageText() const {
  const uint64_t live = pool_->live_count();
  return std::to_string(live * segment_bytes_) + " bytes used, " + std::to_string(live) +
         " segments of " + std::to_string(segment_bytes_) + " bytes; the oldest begins at LSN " +
         std::to_string(pool_->oldest_base()) + " and is pinned: " + PinnedBy();
}

Status LogWriter::Core::BoundReached(Urgency urgency) const {
  std::string reserve;
  if (urgency == Urgency::kReserve) {
    reserve = " and used up its reserve of " + std::to_string(reserve_segments_ * segment_bytes_) +
              " bytes beyond it";
  }
  return Status::ResourceExhausted("the log has reached log_bytes_max = ", options_.log_bytes_max,
                                   reserve, ": ", UsageText());
}

Status LogWriter::Core::PrepareFor(std::span<const RecordSize> sizes, Urgency urgency) {
  GEARDB_RETURN_IF_ERROR(UsableOrError());
  uint64_t bytes = 0;
  uint64_t largest = 0;
  for (const RecordSize& size : sizes) {
    bytes += size.total();
    largest = std::max(largest, size.total());
  }
  if (largest > record_bytes_max_) {
    return Status::InvalidArgument("a change of ", bytes, " bytes in ", sizes.size(),
                                   " records: one of them has ", largest, " bytes, and at most ",
                                   record_bytes_max_, " go into one record of this log");
  }
  const uint64_t segments = PlaceAll(sizes).segments;
  const Obstacle obstacle = FindObstacle(segments, urgency);
  if (obstacle == Obstacle::kNone) return Status::Ok();
  if (obstacle == Obstacle::kLogBound) {
    return Status::ResourceExhausted("a change of ", bytes, " bytes in ", sizes.size(),
                                     " records does not fit the log's log_bytes_max = ",
                                     options_.log_bytes_max, ": ", UsageText());
  }
  const uint64_t files = pool_->free_count();
  const Status made = MakeFiles(segments, urgency);
  // Nothing of it is done: what is too little for it goes back to the disk.
  if (!made.ok()) RemoveSpares(std::max(files, spare_target_ + 1));
  return made.WithContext("a change of " + std::to_string(bytes) + " bytes in " +
                          std::to_string(sizes.size()) + " records needs " +
                          std::to_string(segments) + " more segments");
}

uint64_t LogWriter::Core::BytesToBound(Urgency urgency) const {
  const uint64_t live = pool_->live_count();
  const uint64_t most = SegmentsMax(urgency);
  return live < most ? (most - live) * segment_bytes_ : 0;
}

Status LogWriter::Core::WaitForRing(std::span<const RecordSize> sizes, Lsn boundary_seen,
                                    Deadline deadline) {
  room_waits_.fetch_add(1, std::memory_order_relaxed);
  if (options_.background) {
    Wake();
  } else {
    GEARDB_RETURN_IF_ERROR(drain_.Write(/*partial=*/true));
  }
  if (drain_.boundary() != boundary_seen) return Status::Ok();
  if (drain_.WaitBoundary(boundary_seen, deadline)) return Status::Ok();
  if (drain_.boundary() != boundary_seen) return Status::Ok();
  return Status::DeadlineExceeded("never admitted: waited for ", sizes.front().total(),
                                  " bytes of the log's ring, drained up to LSN ", drain_.boundary(),
                                  " of ", end());
}

// As many files as the disk has room for: fewer than there should be may be enough.
Status LogWriter::Core::MakeFiles(uint64_t segments, Urgency urgency) {
  const uint64_t kept = SparesKept(segments, urgency);
  const bool given_up = spares_given_up_.load(std::memory_order_relaxed) > 0;
  Status made = MakeSpares(given_up ? SparesWanted() : std::max(segments + kept, SparesWanted()));
  if (made.ok() && !given_up) return made;
  if (FindObstacle(segments, urgency) != Obstacle::kSpareFile) return Status::Ok();
  if (made.ok()) made = Status::ResourceExhausted("the cold store flushes on a full disk");
  const bool append = urgency == Urgency::kAppend;
  return made.WithContext(
      "the log has " + std::to_string(pool_->free_count()) + " spare segment files and leaves " +
      std::to_string(kept) +
      (append ? " to removals, tags, closings and the next open" : " to the next open"));
}

Status LogWriter::Core::WaitForRoom(std::span<const RecordSize> sizes, Urgency urgency,
                                    Deadline deadline) {
  GEARDB_RETURN_IF_ERROR(CheckSizes(sizes));
  while (true) {
    GEARDB_RETURN_IF_ERROR(UsableOrError());
    // Before the look: what comes true behind it is not waited for.
    const Lsn boundary_seen = drain_.boundary();
    const Lsn published_seen = published();
    switch (FindObstacle(sizes, urgency)) {
      case Obstacle::kNone:
        return Status::Ok();
      case Obstacle::kLogBound:
        return BoundReached(urgency);
      case Obstacle::kSpareFile:
        GEARDB_RETURN_IF_ERROR(MakeFiles(PlaceAll(sizes).segments, urgency));
        GEARDB_RETURN_IF_ERROR(WakeSpares(PlaceAll(sizes).segments));
        break;
      case Obstacle::kSlots:
        if (!queue_.WaitPublished(published_seen + 1, deadline)) {
          return Status::DeadlineExceeded("never admitted: ", PublishQueue::kSlots,
                                          " records are not published yet");
        }
        break;
      case Obstacle::kRing:
        GEARDB_RETURN_IF_ERROR(WaitForRing(sizes, boundary_seen, deadline));
        break;
    }
  }
}

RecordHeader LogWriter::Core::HeaderFor(RecordType type, Lsn lsn, uint64_t bytes) const {
  return RecordHeader{.lsn = lsn,
                      .synced_lsn = drain_.synced(),
                      .term = manifest_.epoch.term,
                      .open = manifest_.epoch.open,
                      .length = static_cast<uint32_t>(bytes),
                      .type = static_cast<uint16_t>(type)};
}

void LogWriter::Core::Commit(Lsn lsn, uint64_t bytes) {
  const Status status = ring_->Commit(lsn, bytes);
  if (!status.ok()) (void)drain_.Fail(status);
}

Reservation LogWriter::Core::ReserveLocked(const RecordRequest& request, uint64_t bytes) {
  const Lsn at = next_.load(std::memory_order_relaxed);
  const Place place = PlaceAt(at, bytes);
  if (place.pad_bytes > 0) {
    WritePlainRecord(ring_->At(at), HeaderFor(RecordType::kPad, at, place.pad_bytes), {}, seed_);
    Commit(at, sizeof(RecordHeader));
    records_.fetch_add(1, std::memory_order_relaxed);
  }
  if (place.new_segment) {
    const Lsn base = at + place.pad_bytes;
    pool_->Bind(base);
    WritePlainRecord(ring_->At(base), HeaderFor(RecordType::kSegment, base, kSegmentRecordBytes),
                     manifest_.uuid, seed_);
    Commit(base, kSegmentRecordBytes);
    records_.fetch_add(1, std::memory_order_relaxed);
  }
  const bool begins_group = request.type == RecordType::kPart && request.part == 0;
  Reservation reservation{.lsn = place.lsn,
                          .end = place.end,
                          .group_lsn = begins_group ? place.lsn : request.group_lsn,
                          .ticket = next_ticket_.load(std::memory_order_relaxed),
                          .synced_lsn = drain_.synced(),
                          .request = request};
  next_ticket_.store(reservation.ticket + 1, std::memory_order_relaxed);
  records_.fetch_add(1, std::memory_order_relaxed);
  if (request.type == RecordType::kSeal) seal_end_.store(place.end, std::memory_order_release);
  next_.store(place.end, std::memory_order_seq_cst);
  return reservation;
}

Reservation LogWriter::Core::Reserve(const RecordRequest& request) {
  MutexLock lock(&reserve_mutex_);
  const Reservation reservation = ReserveLocked(request, request.size.total());
  if constexpr (kBreak.publish_before_logged) {
    queue_.Complete(reservation.ticket, reservation.lsn, reservation.end, nullptr);
  }
  return reservation;
}

void LogWriter::Core::Publish(const Reservation& reservation, PublishCallback* callback) {
  if constexpr (kBreak.publish_before_logged) {
    if (callback != nullptr) callback->OnPublished(reservation.lsn, reservation.end);
    return;
  }
  queue_.Complete(reservation.ticket, reservation.lsn, reservation.end, callback);
}

Status LogWriter::Core::WaitPublished(Lsn until, Deadline deadline) {
  // First the publication, whatever has failed: callbacks may live on the waiter's stack.
  if (!queue_.WaitPublished(until, deadline)) {
    return Status::DeadlineExceeded("admitted, not yet published: waited for LSN ", until,
                                    ", published up to ", published());
  }
  return drain_.failed() ? drain_.failure() : Status::Ok();
}

Status LogWriter::Core::WaitSynced(Lsn until, Deadline deadline) {
  GEARDB_RETURN_IF_ERROR(WaitPublished(until, deadline));
  return drain_.WaitSynced(until, deadline);
}

Status LogWriter::Core::Seal(bool begins_segment) {
  constexpr RecordSize kSize;
  static_assert(kSize.total() == kSealRecordBytes);
  Lsn sealed_end = 0;
  {
    MutexLock lock(&reserve_mutex_);
    GEARDB_RETURN_IF_ERROR(UsableOrError());
    const Lsn at = next_.load(std::memory_order_relaxed);
    // Rule 7. For an idle log it is not worth a file; nor is an empty log's.
    const bool new_segment = at % segment_bytes_ == 0;
    if (seal_end_.load(std::memory_order_relaxed) == at || drain_.synced() != at ||
        (new_segment && (!begins_segment || at == 0 ||
                         FindObstacle({&kSize, 1}, Urgency::kReserve) != Obstacle::kNone))) {
      return Status::Ok();
    }
    const Reservation seal =
        ReserveLocked({.type = RecordType::kSeal, .size = kSize}, kSealRecordBytes);
    WritePlainRecord(ring_->At(seal.lsn), HeaderFor(RecordType::kSeal, seal.lsn, kSealRecordBytes),
                     {}, seed_);
    Commit(seal.lsn, kSealRecordBytes);
    seals_.fetch_add(1, std::memory_order_relaxed);
    sealed_end = seal.end;
    queue_.Complete(seal.ticket, seal.lsn, seal.end, nullptr);
  }
  return WaitSynced(sealed_end, Deadline::Infinite());
}

void LogWriter::Core::ReleaseBelow(Lsn flushed, std::string_view pinned_by) {
  // Never what is not synced: the segment that holds synced() stays.
  pool_->ReleaseBelow(std::min(flushed, drain_.synced()));
  RemoveSurplus();
  {
    MutexLock lock(&pin_mutex_);
    pinned_by_ = pinned_by;
  }
  drain_.Interrupt();
}

std::string LogWriter::Core::PinnedBy() const {
  MutexLock lock(&pin_mutex_);
  return pinned_by_;
}

LogStats LogWriter::Core::Stats() const {
  LogStats stats;
  drain_.AddStats(&stats);
  stats.end = end();
  stats.published = published();
  stats.records = records_.load(std::memory_order_relaxed);
  stats.bytes = stats.end - start_;
  stats.room_waits = room_waits_.load(std::memory_order_relaxed);
  stats.seals = seals_.load(std::memory_order_relaxed);
  stats.segments_live = pool_->live_count();
  stats.segments_free = pool_->free_count();
  stats.write_path = pool_->write_path();
  stats.ring_path = ring_->path_name();
  return stats;
}

Status LogWriter::Core::Close() {
  MutexLock lock(&close_mutex_);
  if (close_done_) return close_status_;
  close_done_ = true;
  StopThread();
  close_status_ = [this]() -> Status {
    if (published() != end()) {
      return Status::FailedPrecondition("closed with unpublished records: published up to LSN ",
                                        published(), ", reserved up to ", end());
    }
    // The drain hears of a record just after its callback: until it has heard of the last one.
    GEARDB_RETURN_IF_ERROR(WaitSynced(end(), Deadline::Infinite()));
    return Seal(/*begins_segment=*/true);
  }();
  closed_.store(true, std::memory_order_release);
  drain_.Interrupt();
  return close_status_;
}

LogWriter::LogWriter(std::unique_ptr<Core> core) : core_(std::move(core)) {}
LogWriter::~LogWriter() { (void)core_->Close(); }

uint64_t LogWriter::record_bytes_max() const { return core_->record_bytes_max(); }
bool LogWriter::HasRoom(std::span<const RecordSize> sizes, Urgency urgency) {
  return core_->HasRoom(sizes, urgency);
}
Status LogWriter::WaitForRoom(std::span<const RecordSize> sizes, Urgency urgency,
                              Deadline deadline) {
  return core_->WaitForRoom(sizes, urgency, deadline);
}
Reservation LogWriter::Reserve(const RecordRequest& request) { return core_->Reserve(request); }
void LogWriter::Fill(const Reservation& reservation, const RecordContent& content) {
  core_->Fill(reservation, content);
}
void LogWriter::Publish(const Reservation& reservation, PublishCallback* callback) {
  core_->Publish(reservation, callback);
}
Status LogWriter::PrepareFor(std::span<const RecordSize> sizes, Urgency urgency) const {
  return core_->PrepareFor(sizes, urgency);
}
uint64_t LogWriter::SegmentsFor(std::span<const RecordSize> sizes) const {
  return core_->SegmentsFor(sizes);
}
uint64_t LogWriter::BytesToBound(Urgency urgency) const { return core_->BytesToBound(urgency); }
Status LogWriter::WaitPublished(Lsn end, Deadline deadline) const {
  return core_->WaitPublished(end, deadline);
}
Status LogWriter::WaitSynced(Lsn end, Deadline deadline) const {
  return core_->WaitSynced(end, deadline);
}
Lsn LogWriter::end() const { return core_->end(); }
Lsn LogWriter::published() const { return core_->published(); }
Lsn LogWriter::drained() const { return core_->drain().drained(); }
Lsn LogWriter::synced() const { return core_->drain().synced(); }
Lsn LogWriter::boundary() const { return core_->drain().boundary(); }
void LogWriter::ReleaseBelow(Lsn flushed, std::string_view pinned_by) {
  core_->ReleaseBelow(flushed, pinned_by);
}
Status LogWriter::failure() const { return core_->failure(); }
LogStats LogWriter::Stats() const { return core_->Stats(); }
Status LogWriter::Close() { return core_->Close(); }
Status LogWriter::DrainOnce() { return core_->DrainOnce(); }
Status LogWriter::DrainBlocksOnce() { return core_->DrainBlocksOnce(); }
Status LogWriter::SyncOnce() { return core_->SyncOnce(); }
Status LogWriter::SealOnce() { return core_->SealOnce(); }
Status LogWriter::PrepareSpares() { return core_->PrepareSpares(); }
bool LogWriter::GiveUpSpares() { return core_->GiveUpSpares(); }
void LogWriter::RestoreSpares() { core_->RestoreSpares(); }
bool LogWriter::LacksRoomForSpares() const { return core_->LacksRoomForSpares(); }

}  // namespace geardb::wal
