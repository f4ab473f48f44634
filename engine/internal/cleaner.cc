#include "engine/internal/cleaner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "base/break.h"
#include "base/crash_point.h"
#include "base/thread.h"
#include "engine/internal/clean_reads.h"
#include "engine/internal/column_compression.h"
#include "engine/internal/core.h"
#include "engine/internal/database_image.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {
namespace {

/// Pages that are looked at while a table's mutex is held once.
constexpr uint64_t kLooks = 4096;
/// How often readers are looked for that may still read from the log.
constexpr int64_t kReadersPollMs = 1;
/// How often it is looked whether something has left the tables.
constexpr int64_t kGoneLookMs = 1000;
/// Between two passes on a full disk.
constexpr int64_t kFullPauseMs = 100;
/// What a pass on a full disk may do: go on, have the log give up a spare file, and another one.
constexpr int kFullTries = 3;
/// Of the log's segments, one of so many at least, and at most, is free when a pass begins.
constexpr uint64_t kMarginShareLeast = 8;
constexpr uint64_t kMarginShareMost = 3;

}  // namespace

Cleaner::Cleaner(DatabaseCore* database, ColdTier* cold)
    : database_(database), cold_(cold), compactor_(cold, database->options.background) {
  SetDue(0);
  // Something may be removed before the log grows; if the thread cannot start now, it does then.
  MutexLock lock(&mutex_);
  if (cold->if_open() != nullptr) (void)StartLocked();
}

uint64_t Cleaner::SegmentsMax() const {
  return std::max<uint64_t>(database_->options.log_bytes_max / database_->manifest.segment_bytes,
                            1);
}

uint64_t Cleaner::MarginSegments() const {
  const uint64_t most = SegmentsMax();
  const uint64_t segment = database_->manifest.segment_bytes;
  const uint64_t wanted = (appended_ + appended_ / 2 + segment - 1) / segment;
  return std::clamp(wanted, std::max<uint64_t>(most / kMarginShareLeast, 1),
                    std::max<uint64_t>(most / kMarginShareMost, 1));
}

void Cleaner::SetDue(Lsn from) {
  const uint64_t most = SegmentsMax();
  const uint64_t margin = MarginSegments();
  const Lsn begin = AlignDown(database_->log_released.load(), database_->manifest.segment_bytes);
  const uint64_t full = most > margin ? most - margin : 1;
  due_at_.store(std::max(begin + full * database_->manifest.segment_bytes, from));
}

bool Cleaner::Wake() {
  MutexLock lock(&mutex_);
  if (stop_) return true;  // Who waits looks at it.
  if (!database_->options.background) return false;
  wanted_ = true;
  if (!StartLocked().ok()) return false;  // Tried again with the next record.
  due_at_.store(kNoLsn);                  // Until this pass has ended.
  changed_.NotifyAll();
  return true;
}

Status Cleaner::StartLocked() {
  if (thread_.joinable() || stop_ || !database_->options.background) return Status::Ok();
  GEARDB_ASSIGN_OR_RETURN(thread_, StartThread("cleans the log", [this] { Run(); }));
  return Status::Ok();
}

void Cleaner::Stop() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    due_at_.store(kNoLsn);
    changed_.NotifyAll();
    thread.swap(thread_);
  }
  // First: a pass may wait for it.
  compactor_.Stop();
  if (thread.joinable()) thread.join();
  // A pass in a thread of the user's looks at `stop_`, too.
  const MutexLock one(&pass_mutex_);
}

CleanerStats Cleaner::stats() {
  const Status compacted = compactor_.last();
  MutexLock lock(&mutex_);
  CleanerStats stats = stats_;
  stats.running = wanted_ || ended_ < begun_;
  if (stats.last.ok()) stats.last = compacted;
  return stats;
}

void Cleaner::Run() {
  Deadline look = Deadline::AfterMs(kGoneLookMs);
  for (;;) {
    bool wanted = false;
    {
      MutexLock lock(&mutex_);
      while (!wanted_ && !stop_ && changed_.WaitUntil(&mutex_, look)) {
      }
      if (stop_) return;
      wanted = std::exchange(wanted_, false);
    }
    if (wanted) {
      const Status cleaned = CleanNow(/*all=*/false);
      if (cleaned.code() == StatusCode::kResourceExhausted) Pause();
    }
    // However often passes are wanted.
    if (!look.passed()) continue;
    RemoveIfDue();
    look = Deadline::AfterMs(kGoneLookMs);
  }
}

void Cleaner::Pause() {
  MutexLock lock(&mutex_);
  const Deadline end = Deadline::AfterMs(kFullPauseMs);
  while (!stop_ && changed_.WaitUntil(&mutex_, end)) {
  }
}

bool Cleaner::WaitForPass(uint64_t bytes, Deadline deadline) {
  uint64_t pass = 0;
  uint64_t released = 0;
  {
    MutexLock lock(&mutex_);
    WantLocked(bytes);
    pass = wanted_pass_;
    released = stats_.segments;
  }
  return AwaitPass(pass, released, deadline);
}

void Cleaner::Want(uint64_t bytes) {
  MutexLock lock(&mutex_);
  WantLocked(bytes);
}

void Cleaner::WantBeside(uint64_t bytes) {
  if (!database_->options.background || IsFruitless()) return;
  Want(bytes);
  Wake();
}

bool Cleaner::IsFruitless() {
  MutexLock lock(&mutex_);
  return fruitless_at_ == database_->log->end();
}

void Cleaner::WantLocked(uint64_t bytes) {
  bytes_wanted_ = std::max(bytes_wanted_, bytes);
  wanted_pass_ = begun_ + 1;
}

bool Cleaner::Wanted(uint64_t released) {
  MutexLock lock(&mutex_);
  return ended_ < wanted_pass_ || stats_.segments > released;
}

bool Cleaner::AwaitWanted(uint64_t released, Deadline deadline) {
  uint64_t pass = 0;
  {
    MutexLock lock(&mutex_);
    pass = wanted_pass_;
  }
  return AwaitPass(pass, released, deadline);
}

bool Cleaner::AwaitPass(uint64_t pass, uint64_t released, Deadline deadline) {
  bool begins = false;
  {
    MutexLock lock(&mutex_);
    begins = begun_ < pass && stats_.segments == released;
  }
  if (begins && !Wake()) (void)CleanNow(/*all=*/false);
  MutexLock lock(&mutex_);
  while (ended_ < pass && stats_.segments == released && !stop_) {
    if (!changed_.WaitUntil(&mutex_, deadline)) break;
  }
  return stats_.segments > released;
}

Status Cleaner::CleanNow(bool all) {
  MutexLock one(&pass_mutex_);
  {
    MutexLock lock(&mutex_);
    if (stop_) return Status::Cancelled("the database is being closed");
    ++begun_;
    held_back_ = true;
    // Records do not fill every segment to its end.
    segments_wanted_ =
        bytes_wanted_ == 0 ? 0 : bytes_wanted_ / database_->manifest.segment_bytes + 2;
    bytes_wanted_ = 0;
  }
  uint64_t released = 0;
  const auto begin = std::chrono::steady_clock::now();
  const Lsn end_before = database_->log->end();
  const Lsn published_before = database_->log->published();  // What it looks at.
  const Aim aim = all ? Aim::kAllSegments : Aim::kMargin;
  Status status = Pass(aim, &released);
  // Nothing has to move, and yet the log has no room on the disk: what was removed has it.
  const bool in_the_way = status.ok() && released == 0 && database_->log->LacksRoomForSpares();
  if (in_the_way && RemovalMakesRoom()) status = MakeRoom(&released);
  for (int tries = 0; tries < kFullTries && status.code() == StatusCode::kResourceExhausted;
       ++tries) {
    // What the store has in memory may be more than all that is free. Appends are refused
    // meanwhile, so it is for what then comes free.
    const bool makes_room = RemovalMakesRoom();
    if (tries > 0 && !(makes_room && database_->GiveUpLogSpares())) break;
    if (makes_room) status = MakeRoom(&released);
    const bool again = status.ok() || (!all && status.code() == StatusCode::kResourceExhausted);
    // What is free may hold what lives in one, and not what does in more.
    if (again) status = Pass(all ? aim : Aim::kOneSegment, &released);
    if (status.code() == StatusCode::kResourceExhausted && LogTakesNoRemovals()) {
      status = MakeRoomForRemovals(&released);
    }
  }
  // Of one that failed, too: another removal may be what makes room.
  database_->RestoreLogSpares();
  appended_ = std::max(database_->log->end() - end_before, appended_ - appended_ / 8);
  const auto busy = std::chrono::steady_clock::now() - begin;
  if (!status.ok()) {
    database_->ReleaseLog(database_->log_released.load(),
                          "the cleaner, which failed: " + std::string(status.message()));
  }
  MutexLock lock(&mutex_);
  // One that could do nothing is not made again with every record: who needs room asks for it.
  const Lsn end = database_->log->published();
  if (!stop_) SetDue(released > 0 ? 0 : end + database_->manifest.segment_bytes);
  ++(status.ok() ? stats_.passes : stats_.failed);
  stats_.segments += released;
  segments_released_.store(stats_.segments, std::memory_order_relaxed);
  stats_.busy_us +=
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(busy).count());
  stats_.last = status;
  fruitless_at_ = status.ok() && released == 0 && held_back_ ? published_before : kNoLsn;
  ended_ = begun_;
  changed_.NotifyAll();
  return status;
}

Status Cleaner::Pass(Aim aim, uint64_t* released) {
  Choice choice = ChooseStart(aim);
  if (choice.segments == 0 && aim != Aim::kRemovals) return Status::Ok();
  GEARDB_ASSIGN_OR_RETURN(ColdStore* const store, cold_->Store());
  if (aim != Aim::kRemovals) {
    const Status kept = store->KeepReserve();
    if (!kept.ok() && aim != Aim::kOneByReserve && !choice.KeepToDead()) return kept;
  }
  const uint64_t segment = database_->manifest.segment_bytes;
  const Lsn begin = AlignDown(database_->log_released.load(), segment);
  database_->page_source->UseColdStore(store);
  database_->log_start.store(choice.start);
  CrashPoint("clean");
  GEARDB_RETURN_IF_ERROR(PutPages(choice.start));
  CrashPoint("index_chunk");
  GEARDB_ASSIGN_OR_RETURN(TakenImage taken, TakeImage(choice.start));
  ImageHead head = taken.head;
  CrashPoint("image_taken");
  const uint64_t batch = store->last_batch();
  GEARDB_RETURN_IF_ERROR(PutPages(choice.start));
  // Pages that were put now may be younger than the image.
  head.batch = store->last_batch() == batch ? batch + 1 : 0;
  Lsn end = 0;
  {
    // A table that was dropped meanwhile stays so: the record of it may not be published yet.
    MutexLock commit(&database_->commit);
    GEARDB_RETURN_IF_ERROR(database_->CatchUp());
    end = database_->log->end();
  }
  GEARDB_RETURN_IF_ERROR(database_->Acknowledge(end, Ack::kSync));
  CrashPoint("flush");
  // What has left the tables may still be read by who saw it there.
  GEARDB_RETURN_IF_ERROR(AwaitReaders());
  GEARDB_RETURN_IF_ERROR(cold_->SetHead(last_.get(), head, std::move(taken.image)));
  removing_ = {};
  database_->image_lsn.store(head.lsn);
  CrashPoint("recycle");
  GEARDB_RETURN_IF_ERROR(AwaitReaders());
  const Lsn gone = std::min(choice.start, head.log_from);
  database_->page_source->ForgetLogBelow(gone);
  database_->ReleaseLog(gone, gone < choice.start ? "a change in parts that was under way"
                                                  : "what the cleaner has not moved yet");
  // Not what `log_from` keeps: else who waits for room asks for pass after pass.
  *released = (std::max(AlignDown(gone, segment), begin) - begin) / segment;
  return compactor_.KeepSpace();
}

Cleaner::Choice Cleaner::ChooseStart(Aim aim) {
  const uint64_t segment = database_->manifest.segment_bytes;
  const Lsn begin = AlignDown(database_->log_released.load(), segment);
  if (aim == Aim::kRemovals) return {.start = cold_->head().log_start};
  // The segment that the log goes on in stays.
  const Lsn limit = AlignDown(database_->log->published(), segment);
  std::map<Lsn, uint64_t> live;  // Bytes of pages, by segment.
  for (const auto& table : database_->AllTables()) {
    for (size_t g = 0; g < table->layout().group_count(); ++g) {
      std::map<Lsn, uint64_t> pages;
      for (Lpn next = 0; next != kNoLpn;) {
        MutexLock lock(&table->state->mutex);
        table->state->frames().CountInLog(g, kLooks, segment, &next, &pages);
      }
      const uint64_t each = table->layout().group(g).pages.frame_bytes();
      for (const auto& [base, count] : pages) live[base] += count * each;
    }
  }
  const uint64_t most = SegmentsMax();
  const uint64_t margin = MarginSegments() + std::max<uint64_t>(most / 16, 1);
  // Records that are not published yet take their segments, too.
  const uint64_t now = (AlignDown(database_->log->end(), segment) - begin) / segment + 1;
  uint64_t keep = 0;
  if (aim == Aim::kOneSegment || aim == Aim::kOneByReserve) keep = now - 1;
  if (aim == Aim::kMargin) keep = most - std::min(most, std::max(margin, segments_wanted_));
  Choice choice{.start = begin, .dead_start = begin};
  while (choice.start < limit &&
         (live[choice.start] == 0 || now - choice.segments > std::max<uint64_t>(keep, 1))) {
    choice.live_bytes += live[choice.start];
    choice.start += segment;
    ++choice.segments;
    if (choice.live_bytes > 0) continue;
    choice.dead_start = choice.start;
    choice.dead_segments = choice.segments;
  }
  return choice;
}

Status Cleaner::PutPages(Lsn log_start) {
  if constexpr (kBreak.recycle_unmoved) return Status::Ok();
  database_->page_source->NoteLogDrained(database_->log->drained());
  // One that is dropped meanwhile gives its memory back once nobody has it: this has one at a time.
  std::vector<TableId> tables;
  for (const auto& table : database_->AllTables()) tables.push_back(table->layout().id());
  for (const TableId id : tables) {
    const auto table = database_->TableById(id);
    if (table != nullptr) GEARDB_RETURN_IF_ERROR(PutPagesOf(table, log_start));
  }
  return Status::Ok();
}

Status Cleaner::PutPagesOf(const std::shared_ptr<TableCore>& table, Lsn log_start) {
  TableFrames& frames = table->state->frames();
  for (size_t g = 0; g < table->layout().group_count(); ++g) {
    const uint64_t each = table->layout().group(g).pages.frame_bytes();
    const TableFrames::CollectRequest request{
        .group = g, .log_start = log_start, .looks = kLooks, .pages = CleanPages(each)};
    TableFrames::CollectRequest ahead = request;
    ahead.pages = CleanPagesAhead(each);
    CleanReads read(database_, *table->state);
    for (Lpn next = 0; next != kNoLpn;) {
      {
        MutexLock lock(&mutex_);
        if (stop_) return Status::Cancelled("the database is being closed");
      }
      if (table->dropped.load()) return Status::Ok();
      std::vector<ColdWork> work;
      std::vector<ColdWork> after;
      EpochRegistry::Guard guard;
      {
        MutexLock lock(&table->state->mutex);
        guard = database_->epochs.Enter();
        frames.CollectForCold(request, &next, &work);
        Lpn behind = next;
        if (!work.empty() && next != kNoLpn) frames.CollectForCold(ahead, &behind, &after);
      }
      if (work.empty()) continue;
      read.Begin(work);
      read.BeginAhead(after);
      GEARDB_RETURN_IF_ERROR(PutSome(table, &work, &read, std::move(guard)));
    }
  }
  return Status::Ok();
}

Status Cleaner::PutSome(const std::shared_ptr<TableCore>& table, std::vector<ColdWork>* work,
                        CleanReads* read, EpochRegistry::Guard guard) {
  ColdBatch batch(*cold_->if_open());
  std::vector<const PagePlace*> damaged;
  Lsn newest = 0;
  uint64_t bytes = 0;
  std::map<uint32_t, std::vector<ColumnCodecSpec>> codecs;  // By column group.
  for (size_t at = 0; at < work->size(); ++at) {
    ColdWork& page = (*work)[at];
    if (!codecs.contains(page.place.group)) {
      codecs[page.place.group] = PageCodecs(*page.place.layout, page.place.group);
    }
    const PageLayout& pages = page.place.layout->group(page.place.group).pages;
    const auto frame = read->Bytes(at);
    if (frame.status().code() == StatusCode::kCorruption) {
      damaged.push_back(&page.place);
      page.lpn = kNoLpn;
      continue;
    }
    GEARDB_RETURN_IF_ERROR(frame.status());
    GEARDB_RETURN_IF_ERROR(
        batch.PutPage(ColdKeyOf(page.place), {.layout = &pages,
                                              .frame = {*frame, pages.frame_bytes()},
                                              .header = {.generation = page.place.generation,
                                                         .rows = page.place.rows,
                                                         .lsn = page.place.newest_lsn},
                                              .codecs = codecs[page.place.group]}));
    newest = std::max(newest, page.place.newest_lsn);
    bytes += pages.frame_bytes();
  }
  // The batch has copies. Until here frames that others give up did not come free.
  guard.Leave();
  if (database_->log->synced() <= newest) {
    GEARDB_RETURN_IF_ERROR(database_->Acknowledge(database_->log->published(), Ack::kSync));
  }
  GEARDB_RETURN_IF_ERROR(WriteBatch(&batch));
  {
    MutexLock lock(&table->state->mutex);
    for (const ColdWork& page : *work) {
      if (page.lpn != kNoLpn) table->state->frames().MarkCold(page);
    }
  }
  for (const PagePlace* place : damaged) {
    if (HasLeft(*table, *place)) continue;
    // Where the log has no room for that, the next pass finds it again: this one would wait for
    // itself.
    (void)RemoveDamaged(database_, table, place->trajectory,
                        Status::Corruption("found by the cleaner"), Deadline::Now());
  }
  MutexLock lock(&mutex_);
  stats_.pages += work->size() - damaged.size();
  stats_.page_bytes += bytes;
  return Status::Ok();
}

Result<Cleaner::TakenImage> Cleaner::TakeImage(Lsn log_start) {
  if (last_ == nullptr) last_ = std::make_unique<ColdBatch>(*cold_->if_open());
  ImageHead head{.number = cold_->next_image(), .log_start = log_start};
  std::unique_ptr<DatabaseImage> image;
  {
    MutexLock commit(&database_->commit);
    GEARDB_RETURN_IF_ERROR(database_->CatchUp());
    head.lsn = head.log_from = database_->log->end();
    const auto& groups = database_->open_groups;
    if (!groups.empty() && !kBreak.image_forgets_parts)
      head.log_from = std::min(head.lsn, *groups.begin());
    image = std::make_unique<DatabaseImage>(database_, head.lsn);
    // What has left by then is not in the image.
    const Gone gone = CountNewlyGone();
    removing_.Add(gone);
    last_->AddRemovedBytes(gone.bytes);
    for (const TableId id : database_->TakeDropped()) last_->DeleteTable(id);
    for (const auto& table : database_->AllTables()) {
      MutexLock lock(&table->state->mutex);
      GEARDB_RETURN_IF_ERROR(DeleteGone(table->state.get(), last_.get()));
    }
  }
  NextImage next = cold_->BeginImage(head.lsn);
  ColdBatch chunks(*cold_->if_open());
  const ImageSink sink = [&](const ImageChunk& chunk, std::span<const std::byte> content) {
    GEARDB_RETURN_IF_ERROR(next.Put(chunk, content, &chunks));
    return chunks.bytes() < kCleanBatchBytes ? Status::Ok() : WriteBatch(&chunks);
  };
  while (!image->done()) GEARDB_RETURN_IF_ERROR(image->GiveNext(sink));
  GEARDB_RETURN_IF_ERROR(WriteBatch(&chunks));
  MutexLock lock(&mutex_);
  stats_.image_bytes += next.bytes_put();
  return TakenImage{head, std::move(next)};
}

Status Cleaner::AwaitReaders() {
  const uint64_t version = database_->epochs.Retire();
  MutexLock lock(&mutex_);
  while (database_->epochs.SafeVersion() <= version) {
    if (stop_) return Status::Cancelled("the database is being closed");
    // Readers do not announce that they leave.
    changed_.WaitUntil(&mutex_, Deadline::AfterMs(kReadersPollMs));
  }
  return Status::Ok();
}

}  // namespace geardb::engine
