// Recovery of patches: whole pages of column groups, in place of those that are there.

#include <algorithm>
#include <utility>

#include "engine/internal/recovery.h"

namespace geardb::engine {
namespace {

using PatchedVector = flatbuffers::Vector<const fb::Patched*>;

/// What a patch may say: Corruption otherwise. Takes time in the size of its record.
class PatchCheck {
 public:
  PatchCheck(const TableState& state, const fb::Patch& patch,
             std::span<const wal::PieceView> pieces)
      : state_(state), patch_(patch), pieces_(pieces) {}

  Status Check() {
    if (patch_.patched() == nullptr || patch_.pieces() == nullptr) {
      return Status::Corruption("a patch of nothing");
    }
    GEARDB_RETURN_IF_ERROR(CheckGroups());
    if (patch_.pieces()->size() != pieces_.size()) {
      return Status::Corruption("a patch names ", patch_.pieces()->size(), " pieces and has ",
                                pieces_.size());
    }
    std::vector<std::pair<Lpn, uint16_t>> pages;
    for (uint32_t i = 0; i < pieces_.size(); ++i) {
      GEARDB_RETURN_IF_ERROR(CheckPiece(i));
      pages.emplace_back(patch_.pieces()->Get(i)->lpn(), patch_.pieces()->Get(i)->group());
    }
    std::sort(pages.begin(), pages.end());
    if (std::adjacent_find(pages.begin(), pages.end()) != pages.end()) {
      return Status::Corruption("a patch writes a page twice");
    }
    GEARDB_RETURN_IF_ERROR(CheckNewItems(state_, patch_.items(), patch_.patched()->size()));
    return CheckPiecesApart(pieces_);
  }

 private:
  Status CheckGroups() const {
    const fb::Patched* last = nullptr;
    for (const fb::Patched* patched : *patch_.patched()) {
      const index::TrajectoryRecord* record =
          FindTrajectory(state_, patched->slot(), patched->generation());
      if (record == nullptr) {
        return Status::Corruption("a patch of a trajectory that is not there, in slot ",
                                  patched->slot());
      }
      if (patched->group() >= state_.layout().group_count() ||
          !state_.layout().group(patched->group()).logged()) {
        return Status::Corruption("a patch of column group ", patched->group());
      }
      if (patched->filled() > record->rows_end) {
        return Status::Corruption("group ", patched->group(), " of trajectory ", record->id,
                                  " is filled up to row ", patched->filled(), " of ",
                                  record->rows_end);
      }
      if (last != nullptr && PlaceOf(*last) >= PlaceOf(*patched)) {
        return Status::Corruption("the groups of a patch are not in order");
      }
      last = patched;
    }
    return Status::Ok();
  }

  static std::pair<Slot, uint16_t> PlaceOf(const fb::Patched& patched) {
    return {patched.slot(), patched.group()};
  }

  /// Rows of a page that hold something in a patched group, after the patch.
  uint64_t RowsOf(const fb::Patched& patched, const index::PageRecord& page) const {
    const uint64_t steps = state_.layout().steps_per_page();
    const uint64_t begin = uint64_t{page.page_number} * steps;
    uint64_t end = state_.trajectories().record(patched.slot()).rows_end;
    if (state_.layout().group(patched.group()).late) {
      end = std::max(patched.filled(), state_.Filled(patched.group(), patched.slot()));
    }
    return std::clamp(end, begin, begin + steps) - begin;
  }

  Status CheckPiece(uint32_t number) const {
    const fb::PieceRows& piece = *patch_.pieces()->Get(number);
    if (!state_.pages().IsLive(piece.lpn(), piece.generation())) {
      return Status::Corruption("a patch of page ", piece.lpn(), ", which is not there");
    }
    const index::PageRecord& page = state_.pages().page(piece.lpn());
    const std::pair<Slot, uint16_t> place(page.slot, piece.group());
    const PatchedVector& groups = *patch_.patched();
    const auto found = std::lower_bound(
        groups.begin(), groups.end(), place,
        [](const fb::Patched* patched, const auto& wanted) { return PlaceOf(*patched) < wanted; });
    if (found == groups.end() || PlaceOf(**found) != place) {
      return Status::Corruption("piece ", number, " of a patch is in group ", piece.group(),
                                " of slot ", page.slot, ", which it does not name");
    }
    const uint64_t rows = RowsOf(**found, page);
    if (piece.first() != 0 || piece.count() == 0 || piece.count() != rows) {
      return Status::Corruption("piece ", number, " of a patch has ", piece.count(), " rows from ",
                                piece.first(), " of a page that has ", rows);
    }
    const uint64_t wanted =
        PieceColumns(state_.layout().group(piece.group()).pages, piece.count()).bytes();
    if (!pieces_[number].good || pieces_[number].bytes.size() == wanted) return Status::Ok();
    return Status::Corruption("piece ", number, " of a patch has ", pieces_[number].bytes.size(),
                              " bytes; its ", piece.count(), " rows take ", wanted);
  }

  const TableState& state_;
  const fb::Patch& patch_;
  const std::span<const wal::PieceView> pieces_;
};

}  // namespace

Status Recovery::Patch(const fb::Patch& patch, const wal::RecordView& record, TableCore* table) {
  TableState& state = *table->state;
  GEARDB_RETURN_IF_ERROR(Fits(record, PatchCheck(state, patch, record.pieces).Check()));
  std::vector<PatchedGroup> groups;
  for (const fb::Patched* patched : *patch.patched()) {
    groups.push_back({.slot = patched->slot(),
                      .generation = patched->generation(),
                      .group = patched->group(),
                      .filled = patched->filled()});
  }
  std::vector<PatchedPage> pages;
  for (const fb::PieceRows* where : *patch.pieces()) {
    PatchedPage& page = pages.emplace_back(PatchedPage{.lpn = where->lpn(),
                                                       .generation = where->generation(),
                                                       .group = where->group(),
                                                       .rows = where->count()});
    const FrameRef own = state.FrameOf(page.group, page.lpn);
    if (own.valid() && own != state.default_frame(page.group)) {
      state.frames().Hold(page.group, page.lpn, true);
      continue;
    }
    GEARDB_ASSIGN_OR_RETURN(page.frame, TakeUnwrittenFrame(table, page.group));
  }
  // Taking a frame may move those that pages have: they are looked for once all are taken.
  for (size_t i = 0; i < pages.size(); ++i) {
    const wal::PieceView& piece = record.pieces[i];
    if (piece.good) pages[i].place = {piece.at, piece.checksum};
    if (!pages[i].frame.valid()) pages[i].frame = state.FrameOf(pages[i].group, pages[i].lpn);
    CopyPatchedPage(record.pieces[i], state, pages[i]);
    state.frames().Hold(pages[i].group, pages[i].lpn, false);
  }
  state.ApplyPatch({groups, pages, patch.items()}, record.lsn);
  return Status::Ok();
}

void Recovery::CopyPatchedPage(const wal::PieceView& piece, const TableState& state,
                               const PatchedPage& page) {
  const PageOfGroup of_group{page.lpn, page.generation, page.group};
  if (piece.good) {
    // Whatever it held is no longer asked for.
    bad_pages_[state.layout().id()].erase(of_group);
    CopyPieceIntoFrame({.layout = &state.layout(), .group = page.group, .count = page.rows},
                       piece.bytes, core_->arena->Resolve(page.frame));
    return;
  }
  NoteBadPage(state, of_group);
}

}  // namespace geardb::engine
