// The cleaner's side of TableFrames: which pages are to go into the cold store, and which are
// there.

#include "base/break.h"
#include "engine/internal/table_frames.h"

namespace geardb::engine {

bool TableFrames::IsInLog(const index::GroupPageRecord& record, Lsn log_start) {
  if (record.piece_at != kNoLsn) return record.piece_at >= log_start;
  return record.birth_lsn >= log_start && (record.flags & kPageFromPart) == 0;
}

namespace {

/// Calls `visit` for pages that are there.
template <typename Visit>
void ForEachPage(const index::PageTable& pages, uint64_t looks, Lpn* next, Visit visit) {
  const auto end = static_cast<Lpn>(pages.reserved());
  for (; looks > 0 && *next < end; --looks, ++*next) {
    if (pages.page(*next).in_use != 0 && !visit(*next)) return;
  }
  if (*next >= end) *next = kNoLpn;
}

/// Calls `visit` for pages of a group that hold something which is logged.
template <typename Visit>
void ForEachWritten(const index::PageTable& pages, size_t group, uint64_t looks, Lpn* next,
                    Visit visit) {
  ForEachPage(pages, looks, next, [&](Lpn lpn) {
    return pages.group_page(group, lpn).birth_lsn == kNoLsn || visit(lpn);
  });
}

}  // namespace

void TableFrames::CountInLog(size_t group, uint64_t looks, uint64_t segment_bytes, Lpn* next,
                             std::map<Lsn, uint64_t>* pages) const {
  if (layout_->group(group).dropped) {
    *next = kNoLpn;
    return;
  }
  ForEachWritten(*pages_, group, looks, next, [&](Lpn lpn) {
    const index::GroupPageRecord& record = pages_->residency(group, lpn);
    if ((record.flags & kPageInCold) != 0) return true;
    const Lsn first = record.piece_at != kNoLsn ? record.piece_at : record.birth_lsn;
    ++(*pages)[AlignDown(first, segment_bytes)];
    return true;
  });
}

void TableFrames::CountPlaces(size_t group, uint64_t looks, Lpn* next, GroupPlaces* places) const {
  if (!layout_->group(group).logged()) {
    // What is patched in is in no record.
    ForEachPage(*pages_, looks, next, [&](Lpn lpn) {
      const FrameRef frame = pages_->residency(group, lpn).frame;
      if (!frame.valid() || frame == default_frame(group)) return true;
      ++places->pages;
      ++places->framed;
      ++places->only_framed;
      return true;
    });
    return;
  }
  ForEachWritten(*pages_, group, looks, next, [&](Lpn lpn) {
    const index::GroupPageRecord& record = pages_->residency(group, lpn);
    ++places->pages;
    places->framed += record.frame.valid() ? 1u : 0u;
    if ((record.flags & kPageInCold) != 0) {
      ++places->in_cold;
    } else {
      ++places->in_log;
      places->in_both += (record.flags & kPageHasCold) != 0 ? 1u : 0u;
    }
    return true;
  });
}

void TableFrames::CollectForCold(const CollectRequest& request, Lpn* next,
                                 std::vector<ColdWork>* work) {
  if (!layout_->group(request.group).logged() || layout_->group(request.group).dropped) {
    *next = kNoLpn;
    return;
  }
  ForEachWritten(*pages_, request.group, request.looks, next, [&](Lpn lpn) {
    const index::GroupPageRecord& record = pages_->residency(request.group, lpn);
    if ((record.flags & kPageInCold) != 0) {
      // From where it is read from now on.
      if (record.piece_at < request.log_start) {
        pages_->group_page(request.group, lpn).piece_at = kNoLsn;
      }
      return true;
    }
    if (IsInLog(record, request.log_start)) return true;
    if (work->size() >= request.pages) return false;
    work->push_back({.lpn = lpn, .frame = record.frame, .place = PlaceOf(request.group, lpn)});
    return true;
  });
}

void TableFrames::MarkCold(const ColdWork& page) {
  index::GroupPageRecord& record = pages_->group_page(page.place.group, page.lpn);
  if (!pages_->IsLive(page.lpn, page.place.generation)) {
    gone_.push_back({page.place.trajectory, page.place.page_number});
    gone_bytes_ += layout_->group(page.place.group).pages.frame_bytes();
    return;
  }
  record.flags |= kPageHasCold;
  const bool is_same =
      record.newest_lsn == page.place.newest_lsn && record.rows_filled == page.place.rows;
  if (!is_same && !kBreak.move_as_it_was) return;
  record.flags |= kPageInCold;
  record.piece_at = kNoLsn;
}

void TableFrames::EndMayBeCold() {
  if (!std::exchange(may_be_cold_, false)) return;
  for (size_t g = 0; g < layout_->group_count(); ++g) {
    if (!layout_->group(g).logged() || layout_->group(g).dropped) continue;
    Lpn next = 0;
    ForEachWritten(*pages_, g, UINT64_MAX, &next, [&](Lpn lpn) {
      pages_->group_page(g, lpn).flags |= kPageHasCold;
      return true;
    });
  }
}

void TableFrames::ResolvePlaces(Lsn log_start) {
  for (size_t g = 0; g < layout_->group_count(); ++g) {
    Lpn next = 0;
    ForEachWritten(*pages_, g, UINT64_MAX, &next, [&](Lpn lpn) {
      index::GroupPageRecord& record = pages_->group_page(g, lpn);
      record.flags &= kPageFlagsSaved;
      if (!layout_->group(g).logged() || layout_->group(g).dropped) {
        record.frame = default_frame(g);
      } else if (!IsInLog(record, log_start)) {
        record.flags |= kPageInCold | kPageHasCold;
        record.piece_at = kNoLsn;
      }
      return true;
    });
  }
}

}  // namespace geardb::engine
