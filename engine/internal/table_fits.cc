#include "engine/internal/table_fits.h"

#include <algorithm>

namespace geardb::engine {
namespace {

/// Bytes of a record that its header, metadata and body may take beside the pieces of one page.
constexpr uint64_t kRecordOverhead = 4096;
/// One of so many frames stays free of a table that is bounded in bytes or steps.
constexpr uint64_t kCallsShare = 16;

/// The frames of pages of one size that the budget has.
struct Frames {
  uint64_t frame_bytes = 0;
  uint64_t max = 0;
  uint64_t for_calls = 0;  ///< A call takes its frames before it is decided what leaves for it.
};

Frames FramesFor(const DatabaseCore& database, const TableLayout& layout) {
  Frames frames{.frame_bytes = layout.pages().frame_bytes()};
  frames.max = database.arena->FramesMax(frames.frame_bytes);
  frames.for_calls = std::min(std::max<uint64_t>(frames.max / kCallsShare, 1), frames.max);
  return frames;
}

}  // namespace

Status CheckTableFits(const DatabaseCore& database, const TableSpec& spec) {
  const TableLayout layout(spec, 0);
  const uint64_t record_max = database.log->record_bytes_max();
  const uint64_t piece = layout.pages().bytes_per_step() * layout.steps_per_page();
  if (piece + kRecordOverhead > record_max) {
    return Status::InvalidArgument(
        "table '", spec.name, "': a page of ", layout.steps_per_page(), " steps has ", piece,
        " bytes; at most ", record_max - kRecordOverhead,
        " fit a record of the log (a quarter of the ring's ", database.manifest.ring_bytes,
        " bytes and half of a segment's ", database.manifest.segment_bytes, " bytes, less ",
        kRecordOverhead, "): use a larger ring_bytes or a smaller steps_per_page");
  }
  const auto [frame_bytes, frames_max, for_calls] = FramesFor(database, layout);
  if (frames_max == 0) {
    return Status::InvalidArgument("table '", spec.name, "': a page of ", layout.steps_per_page(),
                                   " steps takes ", frame_bytes, " bytes; the frame budget of ",
                                   database.arena->budget_bytes(),
                                   " bytes (budgets.frames_bytes) has no such frame");
  }
  const uint64_t most = (frames_max - for_calls) * frame_bytes;
  if (spec.bytes_max > most) {
    return Status::InvalidArgument("table '", spec.name, "' may hold ", spec.bytes_max,
                                   " bytes: at most ", most, " of the frame budget of ",
                                   database.arena->budget_bytes(), " bytes, whose ", frames_max,
                                   " frames leave ", for_calls, " to the calls under way");
  }
  if (spec.bytes_max > 0 && spec.bytes_max < 2 * frame_bytes) {
    return Status::InvalidArgument("table '", spec.name, "' may hold ", spec.bytes_max,
                                   " bytes, less than two pages of ", frame_bytes);
  }
  const uint64_t pages_of_steps = spec.steps_max / layout.steps_per_page();
  if (pages_of_steps > most / frame_bytes) {
    return Status::InvalidArgument("table '", spec.name, "' may hold ", spec.steps_max,
                                   " steps in ", pages_of_steps, " pages: at most ",
                                   most / frame_bytes, " fit the frame budget");
  }
  return Status::Ok();
}

}  // namespace geardb::engine
