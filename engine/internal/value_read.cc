#include "engine/internal/value_read.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/internal/episode.h"

namespace geardb::engine {
namespace {

/// The trajectory of a companion in a slot; null: there is none.
const index::TrajectoryRecord* Owned(const TableState& companion, Slot slot) {
  if (slot >= companion.trajectories().reserved()) return nullptr;
  const index::TrajectoryRecord& record = companion.trajectories().record(slot);
  return record.state == index::TrajectoryState::kFree ? nullptr : &record;
}

/// What was stored may have been anything, if not by this program.
Status CheckRange(const RaggedStep& step, const RaggedRange& range) {
  const StepColumn& column = step.state->layout().step_columns()[step.column];
  const TableState& companion = *step.state->companion(*column.companion);
  const index::TrajectoryRecord* record = Owned(companion, step.slot);
  const bool empty = range.begin == range.end;
  const bool there = record != nullptr && range.begin <= range.end &&
                     range.begin >= record->first_row && range.end <= record->rows_end;
  if (empty || there) return Status::Ok();
  return Status::Corruption(
      "table '", step.state->layout().spec().name, "': row ", step.row, " of trajectory ",
      step.state->trajectories().record(step.slot).id, " has rows ", range.begin, " to ", range.end,
      " of column '", column.name, "', of which there are ",
      record == nullptr ? 0 : record->first_row, " to ", record == nullptr ? 0 : record->rows_end);
}

}  // namespace

RaggedRange RangeOfBlob(const TableState& state, size_t companion, Slot slot) {
  const index::TrajectoryRecord* record = Owned(*state.companion(companion), slot);
  return record == nullptr ? RaggedRange() : RaggedRange{record->first_row, record->rows_end};
}

Result<std::vector<RaggedRange>> ReadRanges(std::span<const RaggedStep> steps, PageWaits* waits) {
  // What was brought in has its frame in what is waited for: it is asked for once.
  std::map<std::tuple<const TableState*, size_t, Lpn>, FrameRef> frames;
  std::vector<RaggedRange> ranges(steps.size());
  if (steps.empty()) return ranges;
  const size_t before = waits->size();
  RunBuilder runs;
  runs.BeginOutput({.destination = reinterpret_cast<std::byte*>(ranges.data())});
  uint64_t at = 0;
  for (const RaggedStep& step : steps) {
    const TableState& state = *step.state;
    RowCursor cursor(state, state.trajectories().record(step.slot));
    const Lpn lpn = cursor.PageOf(step.row);
    const auto [found, fresh] = frames.try_emplace({&state, step.column, lpn});
    if (fresh) found->second = state.RowToRead(step.column, lpn, 0, waits);
    const uint64_t offset = state.layout().OffsetInPage(step.row) * uint64_t{sizeof(RaggedRange)};
    runs.Copy(AdvanceInFrame(found->second, offset), sizeof(RaggedRange), at, sizeof(RaggedRange));
    at += sizeof(RaggedRange);
  }
  GEARDB_RETURN_IF_ERROR(GatherRowsHeld(&runs, waits, steps[0].state->arena(), before));
  for (size_t i = 0; i < steps.size(); ++i) GEARDB_RETURN_IF_ERROR(CheckRange(steps[i], ranges[i]));
  return ranges;
}

void CopyRange(const TableState& companion, Slot slot, const RaggedRange& range,
               const RowsOutput& output, RunBuilder* runs, PageWaits* waits) {
  RowCursor cursor(companion, companion.trajectories().record(slot));
  CopyRows(&cursor,
           {.row_bytes = companion.layout().step_columns()[0].row_bytes,
            .begin = static_cast<int64_t>(range.begin),
            .end = static_cast<int64_t>(range.end)},
           output, runs, waits);
}

}  // namespace geardb::engine
