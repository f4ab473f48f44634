// Recovery of appends: pieces into frames, and what leaves before them.

#include <algorithm>
#include <cstring>

#include "engine/internal/append_plan.h"
#include "engine/internal/episode.h"
#include "engine/internal/recovery.h"

namespace geardb::engine {

Status Recovery::TakePageFrames(const fb::Append& append, const wal::RecordView& record,
                                const AppendOf& of, std::vector<FrameRef>* frames,
                                std::vector<wal::PiecePlace>* places) {
  const auto groups = of.layout->appended_groups();
  uint32_t piece = 0;
  for (const fb::Rows* rows : *append.rows()) {
    uint64_t row = rows->first_row();
    for (const uint64_t end = row + rows->count(); row < end;) {
      const fb::PieceRows& first = *append.pieces()->Get(piece);
      const size_t page = frames->size();
      frames->resize(page + groups.size());
      places->resize(page + groups.size());
      // A page's pieces follow one another in the order of their groups, from group 0 on.
      for (size_t a = 0; piece < append.pieces()->size(); ++piece) {
        const fb::PieceRows& where = *append.pieces()->Get(piece);
        if (where.group() == 0 && &where != &first) break;
        while (groups[a] != where.group()) ++a;
        const wal::PieceView& read = record.pieces[piece];
        if (read.good) (*places)[page + a] = {read.at, read.checksum};
        GEARDB_RETURN_IF_ERROR(
            CopyPiece({.table = of.table, .rows = rows, .where = &where, .piece = &read},
                      &(*frames)[page + a]));
      }
      row += first.count();
    }
  }
  return Status::Ok();
}

Status Recovery::CopyPiece(const PieceOf& of, FrameRef* fresh) {
  const TableState& state = *of.table->state;
  const size_t g = of.where->group();
  const GroupLayout& group = state.layout().group(g);
  // In a replay all its pages show its defaults, and no writer goes on with them.
  if (group.dropped) return Status::Ok();
  FrameRef frame;
  // In a group that came later, rows that no writer knew it for may follow.
  if (of.where->first() == 0 && !group.added) {
    GEARDB_ASSIGN_OR_RETURN(*fresh, TakeFrame(of.table, g));
    frame = *fresh;
  } else if (of.where->first() == 0 || state.frames().ShowsDefaults(g, of.where->lpn())) {
    GEARDB_ASSIGN_OR_RETURN(*fresh, TakeUnwrittenFrame(of.table, g));
    frame = *fresh;
  } else {
    GEARDB_ASSIGN_OR_RETURN(frame, FrameThatGoesOn(of));
    of.table->state->frames().Hold(g, of.where->lpn(), true);
    going_on_.push_back(PageOf(*of.where));
  }
  if (of.piece->good) {
    CopyPieceIntoFrame({.layout = &state.layout(),
                        .group = of.where->group(),
                        .first = of.where->first(),
                        .count = of.where->count()},
                       of.piece->bytes, core_->arena->Resolve(frame));
    return Status::Ok();
  }
  NoteBadPage(state, PageOf(*of.where));
  std::byte* base = core_->arena->Resolve(frame);
  PieceColumns(group.pages, of.where->count()).ForEach([&](size_t place, uint64_t, uint64_t bytes) {
    std::memset(base + group.pages.FrameOffset(place, of.where->first()), 0, bytes);
  });
  return Status::Ok();
}

Result<FrameRef> Recovery::FrameThatGoesOn(const PieceOf& of) {
  TableState& state = *of.table->state;
  bool of_file = false;
  const auto read = [&] {
    return state.frames().ReadNow(of.where->group(), of.where->lpn(), &of_file, Kept::kTaken);
  };
  Result<FrameRef> frame = read();
  const auto lacks = [&] { return frame.status().code() == StatusCode::kResourceExhausted; };
  if (lacks() && !core_->options.resident) {
    MakeRoom(&state, of.where->group());
    frame = read();
  }
  if (lacks()) {
    MakeAllRoom(&state);
    frame = NoteLack(read());
  }
  // A repair can find out whether the page is good, where it can tell its versions apart.
  if (of_file && core_->cold->if_open()->pages_name_lsns()) return frame;
  if (frame.ok() || lacks() || frame.status().code() == StatusCode::kIoError) return frame;
  // Damaged since it was read first; or the image shows rows of it that no cold store has, since it
  // left, or was patched, before they were moved. Where it is there at the end, its trajectory
  // goes.
  NoteBadPage(state, PageOf(*of.where));
  GEARDB_ASSIGN_OR_RETURN(const FrameRef zeros, TakeFrame(of.table, of.where->group()));
  std::memset(core_->arena->Resolve(zeros), 0,
              state.layout().group(of.where->group()).pages.frame_bytes());
  state.frames().Give(of.where->group(), of.where->lpn(), zeros);
  return zeros;
}

Result<FrameRef> Recovery::TakeUnwrittenFrame(TableCore* table, size_t group) {
  GEARDB_ASSIGN_OR_RETURN(const FrameRef frame, TakeFrame(table, group));
  table->state->CopyDefaults(group, frame);
  return frame;
}

Result<FrameRef> Recovery::TakeFrame(TableCore* table, size_t group) {
  FramePool* pool = table->state->pool(group);
  const auto take = [&] { return core_->arena->Allocate(pool, Deadline::Now(), Kept::kTaken); };
  if (core_->options.resident) {
    Result<FrameRef> frame = take();
    if (frame.ok()) return frame;
  } else {
    if (const auto frame = core_->arena->TryAllocate(pool)) return *frame;
    MakeRoom(table->state.get(), group);
    Result<FrameRef> frame = take();
    if (frame.ok()) return frame;
  }
  MakeAllRoom(table->state.get());
  return NoteLack(take());
}

Result<FrameRef> Recovery::NoteLack(Result<FrameRef> frame) {
  if (frame.status().code() != StatusCode::kResourceExhausted || core_->options.resident) {
    return frame;
  }
  // After a power loss the ring may have more than a process that dies leaves in it alone. An open
  // for writing brings it to the segments (ReadLog).
  lacks_frames_ = true;
  if (!met_ring_) return frame;
  return Status::ResourceExhausted(
      frame.status().message(), "; pages that the log's ring alone has stay in memory while it is ",
      "read: budgets.frames_bytes larger by ring_bytes (", core_->manifest.ring_bytes,
      ") has room for them");
}

void Recovery::MakeRoom(TableState* state, size_t group) {
  core_->evictor->MakeRoom(state->pool(group), 1, state);
}

Result<std::shared_ptr<TableCore>> Recovery::MakeTable(const TableSpec& spec, TableId id,
                                                       const TableCore* owner) {
  const auto mutex = owner != nullptr ? owner->state->shared_mutex : nullptr;
  return WithAllRoom([&] { return core_->MakeTable(spec, id, Kept::kTaken, mutex); });
}

void Recovery::MakeAllRoom(const TableState* held) {
  if (!core_->options.resident) core_->evictor->DropAll(held);
  PackFrames();
}

void Recovery::PackFrames() {
  for (const auto& table : core_->AllTables()) table->state->frames().Pack();
}

Status Recovery::Append(const fb::Append& append, const wal::RecordView& record, TableCore* table)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {  // The caller has the state's mutex.
  TableState& state = *table->state;
  TablePlan& plan = *table->plan;
  if (append.column_changes() > state.layout().version()) {
    return BadRecord(record, "its columns are those after ", append.column_changes(),
                     " changes of them; there were ", state.layout().version());
  }
  const TableLayout& layout = state.LayoutAt(append.column_changes());
  GEARDB_RETURN_IF_ERROR(Fits(record, append_check_.Check({.state = &state,
                                                           .append = &append,
                                                           .layout = &layout,
                                                           .pieces = record.pieces,
                                                           .next_id = plan.next_id})));
  const uint64_t lpns_end = append_check_.lpns_end();
  GEARDB_RETURN_IF_ERROR(plan.ReserveNumbers(lpns_end, append_check_.slots_end()));
  if (append.pages()) {
    for (const fb::NewPage* page : *append.pages()) {
      plan.next_generation =
          std::max<uint64_t>(plan.next_generation, uint64_t{page->generation()} + 1);
    }
  }
  if (append.opened()) {
    for (const fb::Opened* opened : *append.opened()) {
      plan.next_id = std::max(plan.next_id, opened->id() + 1);
      plan.next_generation =
          std::max<uint64_t>(plan.next_generation, uint64_t{opened->generation()} + 1);
    }
  }
  // What leaves gives its frames back first: nobody reads during recovery.
  state.Leave(append);
  std::vector<FrameRef> frames;
  std::vector<wal::PiecePlace> places;
  GEARDB_RETURN_IF_ERROR(TakePageFrames(append, record, {table, &layout}, &frames, &places));
  state.Apply(append, record.lsn, {&layout, frames, places});
  for (const PageOfGroup& page : going_on_) state.frames().Hold(page.group, page.lpn, false);
  going_on_.clear();
  return Status::Ok();
}

}  // namespace geardb::engine
