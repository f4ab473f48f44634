#include "engine/internal/append.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/break.h"
#include "base/crash_point.h"
#include "engine/internal/set_filter.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_fits.h"
#include "engine/internal/write_call.h"

namespace geardb {

using engine::AppendPlan;
using engine::CallPlan;
using engine::Lane;
using engine::LaneRows;
using engine::PageRows;

namespace {

/// How many times the bytes of all changes in parts must be left of the log for others to append
/// beside them.
constexpr uint64_t kPartsFarFromBound = 4;

/// A call takes its frames before it is decided what leaves for it: where there are none, somebody
/// has to make room.
Status NoFrames(const Status& refused, const engine::TableState& state, bool resident) {
  const TableSpec& spec = state.layout().spec();
  MutexLock lock(&state.mutex);
  const uint64_t held = state.frames().stats().resident_bytes;
  return Status::ResourceExhausted(
      refused.message(), "; table '", spec.name, "' holds ", held, " bytes of them (bytes_max ",
      spec.bytes_max, ", steps_max ", spec.steps_max,
      resident ? "), and nothing leaves for want of frames alone"
               : "), and what can leave memory was taken by others, or readers have it",
      ": open the database with a larger budgets.frames_bytes, or remove trajectories");
}

}  // namespace

void engine::AppendChange::Apply(Lsn lsn, Lsn end) {
  ApplyLock lock(table_->state.get(), end);
  table_->state->Apply(*operation()->change_as_Append(), lsn, {layout, new_frames, places});
  table_->state->Arrived(admitted);
  if (table_->state->FollowUpDue()) {
    // Who appended may have gone on without waiting for this.
    LeaveFollowUp(deletes_itself ? database_ : nullptr, table_.get(), Deadline::Now());
  }
  table_->state->changed.NotifyAll();
}

Writer::Impl::Impl(std::shared_ptr<engine::DatabaseCore> database,
                   std::shared_ptr<engine::TableCore> table, const WriterOptions& options)
    : database_(std::move(database)),
      table_(std::move(table)),
      layout_(&table_->layout()),
      options_(options) {
  for (uint32_t i = 0; i < options_.lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>());
    Lane& lane = *lanes_.back();
    lane.unset = layout().unset_trajectory();
    lane.columns.assign(lane.unset.begin(), lane.unset.end());
    lane.tail.resize(layout().appended_groups().size());
  }
  companions_.resize(layout().companions().size());
  const auto there = table_->CompanionsNow();
  for (size_t k = 0; k < companions_.size(); ++k) {
    if (there[k] != nullptr) companions_[k] = std::make_unique<Impl>(database_, there[k], options_);
  }
}

Writer::Impl::~Impl() { Orphan(); }

Ack Writer::Impl::AckOf(const std::optional<Ack>& wanted) const {
  return wanted.value_or(options_.ack.value_or(database_->options.ack));
}

Status Writer::Impl::AwaitOwn(Lsn end) const {
  return database_->Acknowledge(end, std::max(AckOf({}), Ack::kLog));
}

void Writer::Impl::ForgetRemoved(Lane* lane) {
  if (!lane->removed.load()) return;
  lane->Reset();
  lane->removed.store(false);
}

// ---- Step 2: rows into frames.

uint64_t Writer::Impl::CountRows(Calls calls, AppendPlan* plan) const {
  const uint64_t page_rows = layout().steps_per_page();
  uint64_t pieces = 0;
  for (const LaneRows& rows : calls) {
    const Lane& lane = *lanes_[rows.lane];
    CallPlan call;
    call.stored = rows.rows + (rows.final_columns.empty() ? 0 : 1);
    call.first_row = lane.rows_end;
    call.opens = lane.id == 0;
    const uint32_t in_tail = layout().OffsetInPage(lane.rows_end);
    const uint64_t pages = (in_tail + call.stored + page_rows - 1) / page_rows;
    pieces += pages * layout().logged_groups().size();
    plan->growth.rows += call.stored;
    plan->growth.trajectories += call.opens ? 1 : 0;
    plan->growth.pages += pages - (in_tail > 0 ? 1 : 0);
    plan->calls.push_back(call);
  }
  return pieces;
}

Status Writer::Impl::CheckFits(const AppendPlan& plan, uint64_t pieces) const {
  GEARDB_RETURN_IF_ERROR(table_->plan->CheckFits(plan.growth));
  const engine::HostArena& arena = *database_->arena;
  if (engine::RoomOfPages(plan.growth.pages, layout()) > arena.budget_bytes()) {
    return Status::ResourceExhausted(
        "table '", layout().spec().name, "': a call with ", plan.growth.rows, " rows in ",
        plan.growth.pages, " new pages of ", layout().page_bytes(), " bytes; the frame budget of ",
        arena.budget_bytes(), " bytes (budgets.frames_bytes) has ",
        engine::PagesMax(arena, layout()), " such frames");
  }
  for (const CallPlan& call : plan.calls) {
    const uint64_t end = static_cast<uint64_t>(call.first_row) + call.stored;
    if (call.stored <= UINT32_MAX && end / layout().steps_per_page() < UINT32_MAX) continue;
    return Status::InvalidArgument("table '", layout().spec().name, "': a call with ", call.stored,
                                   " rows of a trajectory, ",
                                   "or of one's values of any length, which then ends at row ", end,
                                   "; at most ", UINT32_MAX, " rows fit a call, and ", UINT32_MAX,
                                   " pages of ", layout().steps_per_page(), " rows a trajectory");
  }
  return CheckRecordFits(plan, pieces, LeastRecord(pieces));
}

void Writer::Impl::PlanPages(Calls calls, AppendPlan* plan) const {
  plan->pages.clear();
  for (size_t i = 0; i < calls.size(); ++i) {
    const CallPlan& call = plan->calls[i];
    for (uint64_t done = 0; done < call.stored;) {
      const uint32_t offset = layout().OffsetInPage(call.first_row + static_cast<int64_t>(done));
      const auto count = static_cast<uint32_t>(
          std::min<uint64_t>(call.stored - done, layout().steps_per_page() - offset));
      plan->pages.push_back({.call = i, .new_page = offset == 0, .offset = offset, .count = count});
      done += count;
    }
  }
}

Status Writer::Impl::TakeFrames(Calls calls, Deadline deadline, AppendPlan* plan) {
  const engine::TableState& state = *table_->state;
  const auto groups = layout().appended_groups();
  plan->frames.assign(plan->pages.size() * groups.size(), FrameRef{});
  plan->new_frames = plan->frames;
  size_t at = 0;
  for (const PageRows& page : plan->pages) {
    const Lane& lane = *lanes_[calls[page.call].lane];
    for (size_t a = 0; a < groups.size(); ++a, ++at) {
      const Lane::Tail there = page.new_page ? Lane::Tail{} : lane.tail[a];
      if (there.frame.valid() && !there.shows_defaults) {
        plan->frames[at] = there.frame;
        continue;
      }
      GEARDB_ASSIGN_OR_RETURN(
          plan->new_frames[at],
          database_->TakeFrame(state.pool(groups[a]), plan->pages.size(), deadline));
      plan->frames[at] = plan->new_frames[at];
      // The page has rows that nobody wrote in this group.
      if (there.frame.valid()) state.CopyDefaults(groups[a], plan->frames[at]);
    }
  }
  return Status::Ok();
}

Status Writer::Impl::CopyRows(Calls calls, Deadline deadline, AppendPlan* plan) {
  PlanPages(calls, plan);
  CrashPoint("take_frames");
  const Status taken = TakeFrames(calls, deadline, plan);
  if (taken.code() == StatusCode::kResourceExhausted) {
    return NoFrames(taken, *table_->state, database_->options.resident);
  }
  GEARDB_RETURN_IF_ERROR(taken);

  // Nobody reads rows beyond a trajectory's end yet. The guard keeps a tail page's frame from reuse
  // should its trajectory be removed meanwhile; later the order of the log does.
  const EpochRegistry::Guard guard = database_->epochs.Enter();
  // Of a column that was dropped others may have the frames by now; the call leaves its rows out.
  if (table_->is_companion && table_->dropped.load()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(CheckLanes(calls, plan));
  // Nor may rows go where the page was before a Patch: other pages may have that frame by now.
  for (size_t i = 0; i < plan->pages.size(); ++i) {
    if (!lanes_[calls[plan->pages[i].call].lane]->has_moved.load()) continue;
    MutexLock lock(&database_->commit);
    FollowTail(calls, i, plan);
  }
  CrashPoint("copy_rows");
  std::vector<uint64_t> done(calls.size(), 0);
  for (size_t i = 0; i < plan->pages.size(); ++i) {
    CopyPage(calls, *plan, i, done[plan->pages[i].call]);
    done[plan->pages[i].call] += plan->pages[i].count;
  }
  plan->DescribePieces(layout(), *database_->arena);
  return Status::Ok();
}

void Writer::Impl::CopyPage(Calls calls, const AppendPlan& plan, size_t page, uint64_t rows_done) {
  const PageRows& rows = plan.pages[page];
  std::array<std::byte*, kColumnGroupsMax> frames;
  const size_t groups = layout().appended_groups().size();
  for (size_t a = 0; a < groups; ++a) {
    frames[a] = database_->arena->Resolve(plan.frames[page * groups + a]);
  }
  engine::CopyRowsIntoPage({.layout = &layout(),
                            .call = &calls[rows.call],
                            .frames = std::span(frames).first(groups),
                            .page = &rows,
                            .rows_done = rows_done,
                            .begins_episode = lanes_[calls[rows.call].lane]->episode_ended});
}

bool Writer::Impl::FollowTail(Calls calls, size_t page, AppendPlan* plan) {
  const auto groups = layout().appended_groups();
  Lane& lane = *lanes_[calls[plan->pages[page].call].lane];
  if (plan->pages[page].new_page || lane.moved.empty()) return false;
  if constexpr (kBreak.stay_in_patched_page) return false;
  for (const Lane::MovedTail& moved : lane.moved) {
    const auto a =
        static_cast<size_t>(std::find(groups.begin(), groups.end(), moved.group) - groups.begin());
    if (a == groups.size()) continue;  // A group that this writer does not know.
    const size_t at = page * groups.size() + a;
    if (plan->new_frames[at].valid()) {
      database_->arena->Free(table_->state->pool(moved.group), plan->new_frames[at]);
      plan->new_frames[at] = FrameRef{};
    }
    plan->frames[at] = moved.tail.frame;
    lane.tail[a] = moved.tail;
  }
  lane.ClearMoved();
  return true;
}

void Writer::Impl::FollowPatches(Calls calls, AppendPlan* plan) {
  bool followed = false;
  for (size_t i = 0; i < plan->pages.size(); ++i) {
    if (!FollowTail(calls, i, plan)) continue;
    CopyPage(calls, *plan, i, 0);  // A call goes on with a page at its first rows alone.
    followed = true;
  }
  // What went ahead in parts says the same.
  if (followed && !plan->in_parts) plan->DescribePieces(layout(), *database_->arena);
}

void Writer::Impl::FreeFrames(AppendPlan* plan) {
  const auto groups = layout().appended_groups();
  for (size_t at = 0; at < plan->new_frames.size(); ++at) {
    if (!plan->new_frames[at].valid()) continue;
    database_->arena->Free(table_->state->pool(groups[at % groups.size()]), plan->new_frames[at]);
  }
  plan->new_frames.clear();
}

void Writer::Impl::ForgetRemoved(Calls calls, const Status& told) {
  if (told.code() != StatusCode::kNotFound) return;
  for (const LaneRows& call : calls) ForgetRemoved(lanes_[call.lane].get());
}

Status Writer::Impl::WritePart(const engine::PartOfPieces& part, engine::ChangeScope* scope,
                               AppendPlan* plan) {
  GEARDB_RETURN_IF_ERROR(scope->AwaitRoomHolding(part.size, {}));
  const wal::Reservation reservation = scope->Reserve({.type = wal::RecordType::kPart,
                                                       .size = part.size,
                                                       .part = plan->parts,
                                                       .group_lsn = plan->group_lsn});
  plan->group_lsn = reservation.group_lsn;
  if (plan->parts == 0) database_->open_groups.insert(plan->group_lsn);
  ++plan->parts;
  if (plan->alone) {
    FillPart(reservation, part, plan);
  } else {
    database_->commit.Unlock();
    FillPart(reservation, part, plan);
    database_->commit.Lock();
  }
  return Status::Ok();
}

void Writer::Impl::FillPart(const wal::Reservation& reservation, const engine::PartOfPieces& part,
                            AppendPlan* plan) {
  const auto pieces = std::span(plan->pieces).subspan(part.first, part.count);
  database_->Finish(reservation, pieces, nullptr);
  engine::NamePieces(reservation.lsn, database_->manifest.Seed(), pieces);
}

Status Writer::Impl::WriteParts(std::span<const wal::RecordSize> sizes, engine::ChangeScope* scope,
                                AppendPlan* plan) {
  const std::vector<engine::PartOfPieces> parts = plan->Parts(database_->log->record_bytes_max());
  uint64_t bytes = 0;
  for (const wal::RecordSize& size : sizes) bytes += size.total();
  // Several that are each admitted with the whole rest of the log would use it up together, and
  // none be finished: close to the bound nobody else appends until this one is.
  database_->bytes_in_parts += bytes;
  const uint64_t left = database_->log->BytesToBound(wal::Urgency::kAppend);
  plan->alone = left < kPartsFarFromBound * database_->bytes_in_parts;
  // Admitted; what is waited for from here on is the ring alone.
  Status status;
  for (const engine::PartOfPieces& part : parts) {
    if (status.ok()) status = WritePart(part, scope, plan);
  }
  if (status.ok() && plan->alone) status = scope->AwaitRoomHolding(sizes.back(), {});
  database_->bytes_in_parts -= bytes;
  return status;
}

// ---- Step 4.

void Writer::Impl::FinishLater(const wal::Reservation& reservation, AppendPlan* plan,
                               AppendChange* change) {
  const uint64_t bytes = plan->in_parts ? 0 : reservation.request.size.piece_area_bytes;
  if (database_->filler == nullptr || !database_->filler->Worthwhile(bytes)) {
    database_->Finish(reservation, plan->pieces, change);
    return;
  }
  database_->filler->Add({.reservation = reservation,
                          .runs = std::move(plan->runs),
                          .pieces = std::move(plan->pieces),
                          .change = change});
}

// ---- The whole way.

Status Writer::Impl::CheckCall(Calls calls, Ack ack) const {
  GEARDB_RETURN_IF_ERROR(database_->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database_->CheckTable(*table_));
  if (ack > Ack::kSync) {
    return Status::InvalidArgument("table '", layout().spec().name, "': unknown acknowledgement ",
                                   static_cast<int>(ack));
  }
  return CheckColumns(calls);
}

Status Writer::Impl::CheckNothing(Calls calls, Priorities priorities, Ack ack) const {
  GEARDB_RETURN_IF_ERROR(CheckCall(calls, ack));
  for (const InitialPriorities& given : priorities) {
    GEARDB_RETURN_IF_ERROR(CheckItemCount(given, 0));
  }
  return Status::Ok();
}

Result<std::vector<Appended>> Writer::Impl::Append(Calls calls, Priorities priorities, Ack ack) {
  GEARDB_RETURN_IF_ERROR(CheckCall(calls, ack));
  if (UsesCompanions(calls)) {
    const WriteOptions options{.ack = ack, .admission_timeout_ms = options_.admission_timeout_ms};
    return engine::AppendWithCompanions(this, calls, priorities, options);
  }
  const Deadline deadline = Deadline::AfterMs(options_.admission_timeout_ms);
  // What it lacks room for may be finished since long: the log had no room to remove it.
  if (table_->follow_up_due.load()) engine::RemoveFinishedNow(database_.get(), table_);
  auto appended = engine::WithLogRoom(database_.get(), deadline,
                                      [&] { return AppendOnce(calls, priorities, ack, deadline); });
  ForgetRemoved(calls, appended.status());
  const bool is_full = appended.status().code() == StatusCode::kResourceExhausted;
  if (is_full && table_->follow_up_due.load()) engine::RemoveFinishedNow(database_.get(), table_);
  return appended;
}

Result<std::vector<Appended>> Writer::Impl::AppendOnce(Calls calls, Priorities priorities, Ack ack,
                                                       Deadline deadline) {
  engine::FrameQueue::Hold hold(&database_->frame_queue);
  std::unique_ptr<AppendPlan> made =
      reused_plan_ ? std::move(reused_plan_) : std::make_unique<AppendPlan>();
  AppendPlan& plan = *made;
  plan.hold = &hold;
  const uint64_t pieces = CountRows(calls, &plan);
  GEARDB_RETURN_IF_ERROR(CheckFits(plan, pieces));
  Status status = engine::TakeInTurn(database_.get(), &hold, deadline,
                                     {.take = [&] { return CopyRows(calls, deadline, &plan); },
                                      .give_back = [&] { FreeFrames(&plan); }});
  if (!status.ok()) {
    FreeFrames(&plan);
    return status;
  }
  std::unique_ptr<AppendChange> change =
      reused_ ? std::move(reused_) : std::make_unique<AppendChange>(database_.get(), table_);
  auto reserved = Reserve(calls, priorities, deadline, &plan, change.get());
  if (!reserved.ok()) {
    FreeFrames(&plan);
    if (!plan.admitted.empty()) {
      ReleaseItems(&plan);
      MutexLock lock(&database_->commit);
      database_->room_made.NotifyAll();
    }
    if (plan.rescaled) engine::RescaleWhereDue(database_.get(), table_);
    return reserved.status();
  }
  const wal::Reservation reservation = *reserved;
  if (plan.eviction.size() > 0) CrashPoint("append_evicts");
  if (ack == Ack::kMemory) {
    // Nobody waits: the record goes when it has been applied.
    change->deletes_itself = true;
    FinishLater(reservation, &plan, change.release());
  } else {
    database_->Finish(reservation, plan.pieces, change.get());
  }
  hold.End();
  status = database_->Acknowledge(reservation.end, ack);
  if (change) reused_ = std::move(change);
  GEARDB_RETURN_IF_ERROR(status);
  if (table_->follow_up_due.load()) engine::FollowUp(database_.get(), table_);

  std::vector<Appended> appended;
  appended.reserve(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    appended.push_back({.id = plan.calls[i].id,
                        .first_row = plan.calls[i].first_row,
                        .rows = static_cast<int64_t>(calls[i].rows),
                        .end_lsn = reservation.end});
  }
  plan.Clear();
  reused_plan_ = std::move(made);
  return appended;
}

}  // namespace geardb
