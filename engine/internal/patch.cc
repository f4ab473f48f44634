#include "engine/internal/patch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "base/break.h"
#include "base/crash_point.h"
#include "engine/internal/aside_pages.h"
#include "engine/internal/bulk_record.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/episode.h"
#include "engine/internal/frame_room.h"
#include "engine/internal/patch_rewrite.h"
#include "engine/internal/patch_values.h"
#include "engine/internal/ready_items.h"
#include "engine/internal/set_filter.h"

namespace geardb::engine {
namespace {

/// A page on its way: its copy, and what is put over it.
struct PageCopyWork {
  Slot slot = kNoSlot;
  uint32_t page_number = 0;
  PatchedPage page;           // `page.rows`: filled once the call is done.
  FrameRef old;               // That the copy was made of.
  uint32_t rows_before = 0;   // That the old frame had then.
  uint64_t patched_rows = 0;  // Values for it, each counted once.
  struct Overlay {
    uint32_t offset = 0;
    uint32_t count = 0;
    uint64_t value_row = 0;
  };
  std::vector<Overlay> overlays;
};

/// The record of a patch; it is on the stack of its call.
class PatchChange final : public Change {
 public:
  explicit PatchChange(TableCore* table) : table_(table) {}
  std::vector<PatchedGroup> groups;
  std::vector<PatchedPage> pages;
  bool logged = false;  // Else the groups are volatile, and there is no record.

  void ApplyNow(Lsn lsn) GEARDB_REQUIRES(table_->state->mutex) {
    const auto* patch = logged ? operation()->change_as_Patch() : nullptr;
    table_->state->ApplyPatch({groups, pages, patch ? patch->items() : nullptr}, lsn);
    if (table_->state->FollowUpDue()) table_->follow_up_due.store(true);
    table_->state->changed.NotifyAll();
  }

 private:
  void Apply(Lsn lsn, Lsn end) override {
    ApplyLock lock(table_->state.get(), end);
    ApplyNow(lsn);
  }
  TableCore* const table_;
};

class PatchCall {
 public:
  using EarlierValues = std::vector<PatchedValues::Earlier>;
  PatchCall(DatabaseCore* database, std::shared_ptr<TableCore> table, const PatchValues& values,
            Deadline deadline, EarlierValues* earlier)
      : database_(database),
        table_(std::move(table)),
        layout_(table_->layout()),
        values_(values),
        deadline_(deadline),
        ragged_(database, table_, deadline, earlier),
        hold_(&database->frame_queue),
        change_(table_.get()) {}
  ~PatchCall() { FreeFrames(); }

  Result<PatchOutcome> Run(const ResolvePatch& resolve, Ack ack);
  std::vector<PatchedValues::Grown> grown() const { return ragged_.grown(); }

 private:
  /// Step 1.
  Status Resolve(const ResolvePatch& resolve) GEARDB_REQUIRES(table_->state->mutex);
  void AddTarget(const PatchTarget& target) GEARDB_REQUIRES(table_->state->mutex);
  uint32_t RowsOf(const PageCopyWork& work) const GEARDB_REQUIRES(table_->state->mutex);
  /// Step 2.
  Status TakeFrames();
  Status MakeCopies(EpochRegistry::Guard* guard);
  void DropGone() GEARDB_REQUIRES(table_->state->mutex);
  void CopyOld(const PageCopyWork& work, const std::byte* from, uint32_t first, uint32_t end);
  void PutValues(const PageCopyWork& work);
  /// Step 3.
  Result<Lsn> Commit();
  Status CatchUpCopies() GEARDB_REQUIRES(database_->commit);
  Status CatchUpCopy(PageCopyWork* work) GEARDB_REQUIRES(table_->state->mutex);
  Status ReadAnew(PageCopyWork* work, uint32_t rows) GEARDB_REQUIRES(table_->state->mutex);
  void BuildBody() GEARDB_REQUIRES(database_->commit);
  void MoveTails(Lsn lsn) GEARDB_REQUIRES(database_->commit);
  void FreeFrames();

  DatabaseCore* const database_;
  const std::shared_ptr<TableCore> table_;
  const TableLayout& layout_;
  const PatchValues& values_;
  const Deadline deadline_;
  PatchedValues ragged_;
  std::vector<uint32_t> groups_;  // Of the columns given, ascending.
  // By slot, group and page number.
  std::map<std::tuple<Slot, uint32_t, uint32_t>, PageCopyWork> work_;
  FrameQueue::Hold hold_;
  FilledRows filled_;
  uint64_t applied_ = 0;
  uint64_t stale_ = 0;
  PatchChange change_;
  bool applied_change_ = false;
  // The pieces: which of change_.pages, and its runs.
  struct Piece {
    size_t page = 0;
    std::vector<std::span<const std::byte>> runs;
  };
  std::vector<Piece> pieces_;
};

// ---- Step 1.

Status PatchCall::Resolve(const ResolvePatch& resolve) {
  for (const PatchValues::Bound& bound : values_.columns) {
    groups_.push_back(layout_.step_columns()[bound.column].group);
  }
  std::sort(groups_.begin(), groups_.end());
  groups_.erase(std::unique(groups_.begin(), groups_.end()), groups_.end());
  PatchRows rows(*table_->state, values_);
  GEARDB_RETURN_IF_ERROR(resolve(*table_->state, &rows));
  GEARDB_RETURN_IF_ERROR(rows.CheckWhole());
  GEARDB_RETURN_IF_ERROR(CheckFilled(*table_->state, groups_, rows.targets(), &filled_));
  GEARDB_RETURN_IF_ERROR(ragged_.Find(values_, rows.targets()));
  stale_ = rows.stale();
  for (const PatchTarget& target : rows.targets()) AddTarget(target);
  return Status::Ok();
}

void PatchCall::AddTarget(const PatchTarget& target) {
  TableState& state = *table_->state;
  const index::TrajectoryRecord& record = state.trajectories().record(target.slot);
  RowCursor cursor(state, record);
  applied_ += static_cast<uint64_t>(target.rows);
  for (int64_t done = 0; done < target.rows;) {
    const int64_t row = target.first_row + done;
    const uint32_t offset = layout_.OffsetInPage(row);
    const auto count = static_cast<uint32_t>(
        std::min<int64_t>(target.rows - done, layout_.steps_per_page() - offset));
    const Lpn lpn = cursor.PageOf(row);
    for (const uint32_t g : groups_) {
      auto [found, fresh] = work_.try_emplace({target.slot, g, layout_.PageNumber(row)});
      PageCopyWork& work = found->second;
      if (fresh) {
        work.slot = target.slot;
        work.page_number = layout_.PageNumber(row);
        work.page = {.lpn = lpn, .generation = state.pages().page(lpn).generation, .group = g};
      }
      work.overlays.push_back({offset, count, target.value_row + static_cast<uint64_t>(done)});
      work.patched_rows += g == groups_[0] ? count : 0;
      work.page.rows = std::max(work.page.rows, offset + count);
    }
    done += count;
  }
}

/// Rows of a page that hold something in its group.
uint32_t PatchCall::RowsOf(const PageCopyWork& work) const {
  const TableState& state = *table_->state;
  const uint64_t end = layout_.group(work.page.group).late
                           ? state.Filled(work.page.group, work.slot)
                           : state.trajectories().record(work.slot).rows_end;
  const uint64_t begin = uint64_t{work.page_number} * layout_.steps_per_page();
  return static_cast<uint32_t>(std::clamp<uint64_t>(end, begin, begin + layout_.steps_per_page()) -
                               begin);
}

// ---- Step 2.

Status PatchCall::TakeFrames() {
  for (auto& [key, work] : work_) {
    GEARDB_ASSIGN_OR_RETURN(
        work.page.frame,
        database_->TakeFrame(table_->state->pool(work.page.group), work_.size(), deadline_));
  }
  return Status::Ok();
}

Status PatchCall::MakeCopies(EpochRegistry::Guard* guard) {
  // Before the guard: what others give back would wait for it.
  GEARDB_RETURN_IF_ERROR(
      TakeInTurn(database_, &hold_, deadline_,
                 {.take = [this] { return TakeFrames(); }, .give_back = [this] { FreeFrames(); }}));
  PageWaits waits;  // For pages as they were.
  {
    MutexLock lock(&table_->state->mutex);
    DropGone();
    for (auto& [key, work] : work_) {
      work.old = table_->state->frames().ToRead(work.page.group, work.page.lpn, &waits);
      work.rows_before = RowsOf(work);
      work.page.rows = std::max(work.page.rows, work.rows_before);
    }
    *guard = database_->epochs.Enter();
  }
  GEARDB_RETURN_IF_ERROR(waits.Wait());
  AsideReader aside(AllOf(waits.aside()));
  for (auto& [key, work] : work_) {
    GEARDB_ASSIGN_OR_RETURN(const std::byte* from, aside.BytesOf(work.old, *database_->arena));
    table_->state->CopyDefaults(work.page.group, work.page.frame);
    CopyOld(work, from, 0, work.rows_before);
    PutValues(work);
  }
  return Status::Ok();
}

/// Rows [first, end) as `from`, the page's frame, has them. A stream's flags come later: whoever
/// closes a stream may still write them.
void PatchCall::CopyOld(const PageCopyWork& work, const std::byte* from, uint32_t first,
                        uint32_t end) {
  const GroupLayout& group = layout_.group(work.page.group);
  std::byte* into = database_->arena->Resolve(work.page.frame);
  for (size_t c = 0; c < group.columns.size(); ++c) {
    const uint64_t offset = group.pages.FrameOffset(c, first);
    std::memcpy(into + offset, from + offset, group.pages.region(c).row_bytes * (end - first));
  }
}

void PatchCall::PutValues(const PageCopyWork& work) {
  std::byte* into = database_->arena->Resolve(work.page.frame);
  for (const PatchValues::Bound& bound : values_.columns) {
    const StepColumn& column = layout_.step_columns()[bound.column];
    if (column.group != work.page.group) continue;
    for (const PageCopyWork::Overlay& overlay : work.overlays) {
      CopyElements(
          column.dtype, into + layout_.RowOffset(bound.column, overlay.offset),
          {bound.rows + overlay.value_row * column.row_bytes, overlay.count * column.row_bytes});
    }
  }
}

// ---- Step 3.

/// Copies of pages that have left since.
void PatchCall::DropGone() {
  for (auto work = work_.begin(); work != work_.end();) {
    const PatchedPage& page = work->second.page;
    if (table_->state->pages().IsLive(page.lpn, page.generation)) {
      ++work;
      continue;
    }
    applied_ -= work->second.patched_rows;
    stale_ += work->second.patched_rows;
    database_->arena->Free(table_->state->pool(page.group), page.frame);
    work = work_.erase(work);
  }
}

/// Brings the copies up to what the log says of their pages by now.
Status PatchCall::CatchUpCopies() {
  MutexLock lock(&table_->state->mutex);
  DropGone();
  for (auto& [key, work] : work_) GEARDB_RETURN_IF_ERROR(CatchUpCopy(&work));
  return Status::Ok();
}

/// The copy is made of the page as it is now, which has no frame.
Status PatchCall::ReadAnew(PageCopyWork* work, uint32_t rows) {
  PageWaits waits;
  work->old = table_->state->frames().PutAside(work->page.group, work->page.lpn, &waits);
  AsideReader aside(AllOf(waits.aside()));
  GEARDB_ASSIGN_OR_RETURN(const std::byte* from, aside.BytesOf(work->old, *database_->arena));
  CopyOld(*work, from, 0, rows);
  PutValues(*work);
  return Status::Ok();
}

Status PatchCall::CatchUpCopy(PageCopyWork* work) {
  const TableState& state = *table_->state;
  const uint32_t rows_now = RowsOf(*work);
  const FrameRef now = state.FrameOf(work->page.group, work->page.lpn);
  if (!now.valid() && rows_now > work->rows_before) {
    // Dropped: read for what has come since.
    GEARDB_RETURN_IF_ERROR(ReadAnew(work, rows_now));
  } else if (now.valid() && now != work->old) {
    // An append has given the page its first frame, or it was brought in.
    work->old = now;
    CopyOld(*work, database_->arena->Resolve(now), 0, rows_now);
    PutValues(*work);
  } else if (rows_now > work->rows_before) {
    CopyOld(*work, database_->arena->Resolve(now), work->rows_before, rows_now);
  }
  work->rows_before = rows_now;
  work->page.rows = std::max(work->page.rows, rows_now);
  if (work->page.group != 0 || !layout_.flags_column()) return Status::Ok();
  std::memcpy(database_->arena->Resolve(work->page.frame) + layout_.FlagsOffset(0),
              state.pages().row_flags(work->page.lpn), rows_now);
  return Status::Ok();
}

void PatchCall::BuildBody() {
  change_.groups.clear();
  change_.pages.clear();
  change_.logged = false;
  pieces_.clear();
  std::vector<fb::Patched> patched;
  std::vector<fb::PieceRows> pieces;
  MutexLock lock(&table_->state->mutex);
  for (const auto& [key, work] : work_) {
    const GroupLayout& group = layout_.group(work.page.group);
    const auto& record = table_->state->trajectories().record(work.slot);
    const auto filled = filled_.find({work.slot, work.page.group});
    change_.pages.push_back(work.page);
    const bool first = change_.groups.empty() || change_.groups.back().slot != work.slot ||
                       change_.groups.back().group != work.page.group;
    if (first) {
      change_.groups.push_back({.slot = work.slot,
                                .generation = record.generation,
                                .group = work.page.group,
                                .filled = filled == filled_.end() ? 0 : filled->second});
    }
    if (!group.logged()) continue;
    change_.logged = true;
    if (first) {
      const uint64_t logged_filled = kBreak.forget_filled ? 0 : change_.groups.back().filled;
      patched.emplace_back(logged_filled, work.slot, record.generation,
                           static_cast<uint16_t>(work.page.group));
    }
    pieces.emplace_back(kNoLsn, work.page.lpn, work.page.generation, uint16_t{0},
                        static_cast<uint16_t>(work.page.rows),
                        static_cast<uint16_t>(work.page.group));
    auto& runs = pieces_.emplace_back(Piece{.page = change_.pages.size() - 1, .runs = {}}).runs;
    const std::byte* frame = database_->arena->Resolve(work.page.frame);
    for (size_t c = 0; c < group.pages.column_count(); ++c) {
      runs.emplace_back(frame + group.pages.FrameOffset(c, 0),
                        group.pages.region(c).row_bytes * work.page.rows);
    }
  }
  std::vector<Slot> slots;
  for (const fb::Patched& one : patched) slots.push_back(one.slot());
  change_.body.Clear();
  const auto items = BuildReadyItems(*table_, slots, {}, &change_.body);
  const auto items_offset = items.empty() ? 0 : change_.body.CreateVector(items);
  const auto patched_offset = change_.body.CreateVectorOfStructs(patched);
  const auto pieces_offset = change_.body.CreateVectorOfStructs(pieces);
  change_.FinishBody(
      {.table = layout_.id()}, fb::Change::Patch,
      fb::CreatePatch(change_.body, patched_offset, pieces_offset, items_offset).Union());
}

/// Writers that go on in a page which has another frame now.
void PatchCall::MoveTails(Lsn lsn) {
  for (const auto& [key, work] : work_) {
    Lane* lane = table_->plan->OpenLane(work.slot);
    if (lane == nullptr || lane->tail_lpn != work.page.lpn) continue;
    if (layout_.group(work.page.group).late) continue;
    lane->Move({.group = work.page.group, .tail = {work.page.frame, lsn}});
  }
}

Result<Lsn> PatchCall::Commit() {
  BulkRecord record(database_, &change_);
  {
    const CommitOptions how{.deadline = deadline_};
    ChangeScope scope(database_, table_.get(), how);
    GEARDB_RETURN_IF_ERROR(scope.status());
    GEARDB_RETURN_IF_ERROR(database_->CatchUp());
    GEARDB_RETURN_IF_ERROR(CatchUpCopies());
    BuildBody();
    if (change_.pages.empty()) return Lsn{0};
    if (!change_.logged) {
      MutexLock lock(&table_->state->mutex);
      MoveTails(kNoLsn);
      change_.ApplyNow(kNoLsn);
      applied_change_ = true;
      return Lsn{0};
    }
    for (const Piece& piece : pieces_) {
      record.AddPiece(piece.runs, &change_.pages[piece.page].place);
    }
    GEARDB_RETURN_IF_ERROR(
        record.CheckFits().WithContext("Patch of table '" + layout_.spec().name + "'"));
    GEARDB_RETURN_IF_ERROR(record.Reserve(&scope));
    CrashPoint("patch");
    applied_change_ = true;
    MoveTails(record.lsn());
    for (const PatchedGroup& group : change_.groups) table_->plan->Note(group.slot, record.end());
  }
  record.Finish();
  return record.end();
}

void PatchCall::FreeFrames() {
  if (applied_change_) return;
  for (auto& [key, work] : work_) {
    if (!work.page.frame.valid()) continue;
    database_->arena->Free(table_->state->pool(work.page.group), work.page.frame);
    work.page.frame = FrameRef{};
  }
}

Result<PatchOutcome> PatchCall::Run(const ResolvePatch& resolve, Ack ack) {
  GEARDB_RETURN_IF_ERROR(database_->CatchUp());
  {
    MutexLock lock(&table_->state->mutex);
    GEARDB_RETURN_IF_ERROR(Resolve(resolve));
  }
  uint64_t bytes = 0;
  for (const auto& [key, work] : work_) {
    bytes += layout_.group(work.page.group).pages.frame_bytes();
  }
  database_->MakeLogRoom(bytes, deadline_);
  if (!ragged_.empty()) {
    // What is refused for want of frames leaves no values behind.
    std::vector<FramePool*> pools;
    for (const auto& [key, work] : work_) {
      pools.push_back(table_->state->pool(work.page.group));
    }
    GEARDB_RETURN_IF_ERROR(MakeRoomForOneEach(database_, pools, deadline_));
    GEARDB_RETURN_IF_ERROR(ragged_.Write());
  }
  EpochRegistry::Guard guard;
  GEARDB_RETURN_IF_ERROR(MakeCopies(&guard));
  GEARDB_ASSIGN_OR_RETURN(const Lsn end, Commit());
  guard.Leave();
  hold_.End();
  if (end > 0) {
    // The change is on this stack: it must have been applied before it goes.
    GEARDB_RETURN_IF_ERROR(database_->Acknowledge(end, std::max(ack, Ack::kLog)));
  }
  ragged_.GiveBack();
  return PatchOutcome{.applied = applied_, .stale = stale_, .end_lsn = end};
}

/// Writes all values of trajectories' columns again that keep much of what nobody shows. What does
/// not go now goes with a later patch.
void Rewrite(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
             std::span<const PatchedValues::Grown> grown, Deadline deadline) {
  for (const PatchedValues::Grown& each : grown) {
    const auto found = FindRewrite(database, *table, each);
    if (!found.ok() || !*found) continue;
    const WholeColumn& whole = **found;
    const ColumnValue value = whole.value();
    const auto bound = BindPatchValues(table->layout(), {&value, 1});
    if (!bound.ok()) continue;
    const ResolvePatch resolve = [&](const TableState& state, PatchRows* rows) {
      return ResolveSpans(state, {&whole.span, 1}, rows);
    };
    PatchCall::EarlierValues none;
    (void)PatchCall(database, table, *bound, deadline, &none).Run(resolve, Ack::kLog);
  }
}

}  // namespace

Result<PatchOutcome> PatchTable(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                                const ResolvePatch& resolve, ColumnValues values,
                                const PatchOptions& options) {
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*table));
  const Ack ack = options.ack.value_or(database->options.ack);
  if (ack > Ack::kSync) {
    return Status::InvalidArgument("table '", table->layout().spec().name,
                                   "': unknown acknowledgement ", static_cast<int>(ack));
  }
  const Deadline deadline = Deadline::AfterMs(options.admission_timeout_ms);
  PatchCall::EarlierValues earlier;
  auto outcome = WithLogRoom(database, deadline, [&]() -> Result<PatchOutcome> {
    // One at a time: what a late group is filled up to, and whose copy a page gets, changes by
    // patches alone. Nor do columns come or leave meanwhile.
    const Turn::Taken one(&table->patches, deadline);
    if (!one.ok()) return table->PatchUnderWay();
    GEARDB_ASSIGN_OR_RETURN(const PatchValues bound, BindPatchValues(table->layout(), values));
    PatchCall call(database, table, bound, deadline, &earlier);
    auto done = call.Run(resolve, ack);
    if (done.ok()) Rewrite(database, table, call.grown(), deadline);
    return done;
  });
  if (table->follow_up_due.load()) FollowUp(database, table);
  return outcome;
}

}  // namespace geardb::engine
