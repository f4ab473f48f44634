// Recovery of appends: pieces into frames, and what leaves before them.

#include <algorithm>
#include <cstring>

#include "engine/internal/append_plan.h"
#include "engine/internal/episode.h"
#include "engine/internal/recovery.h"

namespace geardb::engine {
namespace {

/// Writes the flags of `flags.size()` rows whose piece is damaged, from row `number` of `rows` on:
/// the record's metadata says what they were, and later records count on the items that follow.
void RestoreFlags(const TableState& state, const fb::Rows& rows, uint64_t number,
                  std::span<std::byte> flags) {
  StoredRows stored{.steps = rows.count() - (rows.has_final() ? 1u : 0u),
                    .end = static_cast<End>(rows.end()),
                    .begins_episode = rows.first_row() == 0};
  if (rows.first_row() > 0) {
    const index::TrajectoryRecord& record = state.trajectories().record(rows.slot());
    RowCursor cursor(state, record);
    if (record.first_row < rows.first_row()) {
      const auto before = static_cast<int64_t>(rows.first_row()) - 1;
      stored.begins_episode = (cursor.FlagsOf(before) & kRowEndMask) != 0;
    }
  }
  for (std::byte& byte : flags)
    byte = std::byte{FlagsOfStoredRow(state.layout(), stored, number++)};
}

}  // namespace

void Recovery::CopyPieces(const fb::Append& append, const wal::RecordView& record, TableCore* table,
                          std::span<const FrameRef> frames) {
  const TableState& state = *table->state;
  const PageLayout& pages = table->layout().pages();
  const auto columns = table->layout().step_columns();  // Behind them are a stream's flags.
  size_t taken = 0;
  size_t piece = 0;
  for (const fb::Rows* rows : *append.rows()) {
    uint64_t row = rows->first_row();
    for (const uint64_t end = row + rows->count(); row < end; ++piece) {
      const fb::PieceRows& where = *append.pieces()->Get(static_cast<uint32_t>(piece));
      const wal::PieceView& view = record.pieces[piece];
      FrameRef frame;
      if (where.first() == 0) {
        frame = frames[taken++];
      } else {
        frame =
            state.pages().group_page(0, state.trajectories().record(rows->slot()).tail_lpn).frame;
      }
      if (!view.good) {
        damaged_[table->layout().id()].emplace(rows->slot(), rows->generation());
        ++damaged_pages_;
      }
      std::byte* base = core_->arena->Resolve(frame);
      PieceColumns(pages, where.count())
          .ForEach([&](size_t column, uint64_t offset, uint64_t bytes) {
            std::byte* into = base + pages.FrameOffset(column, where.first());
            if (view.good) {
              CopyElements(columns.size() > column ? columns[column].dtype : DType::kU8, into,
                           view.bytes.subspan(offset, bytes));
            } else {
              std::memset(into, 0, bytes);
            }
          });
      if (const auto flags = table->layout().flags_column(); !view.good && flags) {
        RestoreFlags(state, *rows, row - rows->first_row(),
                     {base + pages.FrameOffset(*flags, where.first()), where.count()});
      }
      row += where.count();
    }
  }
}

Result<FrameRef> Recovery::TakeFrame(const TableState& state) {
  const auto take = [&] {
    return core_->arena->Allocate(state.pool(), Deadline::Now(), Kept::kTaken);
  };
  Result<FrameRef> frame = take();
  if (frame.ok()) return frame;
  PackFrames();
  return take();
}

void Recovery::PackFrames() {
  for (const auto& table : core_->AllTables()) table->state->PackFrames();
}

Status Recovery::Append(const fb::Append& append, const wal::RecordView& record, TableCore* table) {
  TableState& state = *table->state;
  TablePlan& plan = *table->plan;
  GEARDB_RETURN_IF_ERROR(Fits(
      record,
      append_check_.Check(
          {.state = &state, .append = &append, .pieces = record.pieces, .next_id = plan.next_id})));
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
  state.Leave(append.removed(), append.trimmed());
  std::vector<FrameRef> frames;
  for (size_t i = 0; i < (append.pages() ? append.pages()->size() : 0); ++i) {
    GEARDB_ASSIGN_OR_RETURN(const FrameRef frame, TakeFrame(state));
    frames.push_back(frame);
  }
  CopyPieces(append, record, table, frames);
  state.Apply(append, record.lsn, frames);
  return Status::Ok();
}

}  // namespace geardb::engine
