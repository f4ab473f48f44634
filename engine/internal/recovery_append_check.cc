#include "engine/internal/recovery_append_check.h"

#include <algorithm>

#include "engine/internal/table_plan.h"

namespace geardb::engine {
namespace {

template <typename Element>
uint32_t CountOf(const flatbuffers::Vector<Element>* vector) {
  return vector != nullptr ? vector->size() : 0;
}

/// Sorts numbers and says whether one of them is there twice.
template <typename Number>
bool SortAndFindTwice(std::vector<Number>* numbers) {
  std::sort(numbers->begin(), numbers->end());
  return std::adjacent_find(numbers->begin(), numbers->end()) != numbers->end();
}

}  // namespace

Status AppendCheck::Check(const Input& input) {
  const fb::Append& append = *input.append;
  if (CountOf(append.rows()) == 0) return Status::Corruption("an append without rows");
  if (append.by_hand() > CountOf(append.removed())) {
    return Status::Corruption("an append removes ", CountOf(append.removed()), " trajectories, ",
                              append.by_hand(), " of them by hand");
  }
  GEARDB_RETURN_IF_ERROR(leaving_.Read(*input.state, append.removed(), append.trimmed()));
  GEARDB_RETURN_IF_ERROR(CheckOpened(input));
  GEARDB_RETURN_IF_ERROR(CheckPages(input));
  GEARDB_RETURN_IF_ERROR(CheckRows(input));
  GEARDB_RETURN_IF_ERROR(CheckColumns(input));
  return CheckNewItems(*input.state, append.items(), append.rows()->size());
}

Status AppendCheck::CheckOpened(const Input& input) {
  const index::TrajectoryIndex& trajectories = input.state->trajectories();
  const auto* opened = input.append->opened();
  const uint64_t slots_max = trajectories.count() + CountOf(opened);
  uint64_t next_id = input.next_id;
  slots_end_ = 0;
  opened_.clear();
  for (uint32_t i = 0; i < CountOf(opened); ++i) {
    const fb::Opened& opening = *opened->Get(i);
    const Slot slot = opening.slot();
    if (const TableState* owner = input.state->owner(); owner != nullptr) {
      const bool owned = slot < owner->trajectories().reserved() &&
                         owner->trajectories().record(slot).state != index::TrajectoryState::kFree;
      if (!owned) {
        return Status::Corruption("rows begin for slot ", slot,
                                  ", where the table that owns them has no trajectory");
      }
    } else if (slot >= slots_max) {
      return Status::Corruption("a trajectory begins in slot ", slot, "; ", slots_max,
                                " slots are enough for all");
    }
    const bool free = slot >= trajectories.reserved() || leaving_.Removes(slot) ||
                      trajectories.record(slot).state == index::TrajectoryState::kFree;
    if (!free) {
      return Status::Corruption("a trajectory begins in slot ", slot, ", which is taken");
    }
    if (opening.generation() == 0) {
      return Status::Corruption("the trajectory in slot ", slot, " has no generation");
    }
    if (opening.id() < next_id || opening.id() >= kIdsEnd) {
      return Status::Corruption("a trajectory begins with id ", opening.id(), "; ids from ",
                                next_id, " to ", kIdsEnd - 1, " are left");
    }
    next_id = opening.id() + 1;
    opened_.push_back({slot, opening.generation()});
    slots_end_ = std::max<uint64_t>(slots_end_, uint64_t{slot} + 1);
  }
  std::sort(opened_.begin(), opened_.end(),
            [](const Opening& a, const Opening& b) { return a.slot < b.slot; });
  const auto twice =
      std::adjacent_find(opened_.begin(), opened_.end(),
                         [](const Opening& a, const Opening& b) { return a.slot == b.slot; });
  if (twice == opened_.end()) return Status::Ok();
  return Status::Corruption("two trajectories begin in slot ", twice->slot);
}

Status AppendCheck::CheckPages(const Input& input) {
  const index::PageTable& pages = input.state->pages();
  const auto* fresh = input.append->pages();
  const uint64_t lpns_max = input.state->page_count() + CountOf(fresh);
  lpns_end_ = 0;
  lpns_.clear();
  for (uint32_t i = 0; i < CountOf(fresh); ++i) {
    const Lpn lpn = fresh->Get(i)->lpn();
    if (lpn >= lpns_max) {
      return Status::Corruption("a page begins with LPN ", lpn, "; ", lpns_max,
                                " LPNs are enough for all");
    }
    const bool free =
        lpn >= pages.reserved() || !pages.page(lpn).in_use || leaving_.Frees(pages.page(lpn));
    if (!free) return Status::Corruption("a page takes LPN ", lpn, ", which is in use");
    if (fresh->Get(i)->generation() == 0) {
      return Status::Corruption("the page with LPN ", lpn, " has no generation");
    }
    lpns_.push_back(lpn);
    lpns_end_ = std::max<uint64_t>(lpns_end_, uint64_t{lpn} + 1);
  }
  if (SortAndFindTwice(&lpns_)) return Status::Corruption("two of its pages take one LPN");
  return Status::Ok();
}

Status AppendCheck::CheckRows(const Input& input) {
  const fb::Append& append = *input.append;
  uint32_t pieces = 0;
  uint32_t pages = 0;
  size_t openings = 0;
  slots_.clear();
  for (const fb::Rows* rows : *append.rows()) {
    Tail tail;
    GEARDB_RETURN_IF_ERROR(CheckEnd(input.state->layout().spec(), *rows));
    GEARDB_RETURN_IF_ERROR(FindTail(*input.state, *rows, &tail));
    if (rows->first_row() != tail.rows_end) {
      return Status::Corruption("rows from ", rows->first_row(), " for the trajectory in slot ",
                                rows->slot(), ", which ends at row ", tail.rows_end);
    }
    GEARDB_RETURN_IF_ERROR(CheckPieces(input, *rows, tail, &pieces, &pages));
    slots_.push_back(rows->slot());
    openings += tail.rows_end == 0 ? 1 : 0;
  }
  if (SortAndFindTwice(&slots_)) return Status::Corruption("rows come twice for one trajectory");
  if (openings != opened_.size()) {
    return Status::Corruption(opened_.size(), " trajectories begin, ", openings, " of them with ",
                              "rows");
  }
  if (pages != CountOf(append.pages()) || pieces != CountOf(append.pieces()) ||
      pieces != input.pieces.size()) {
    return Status::Corruption("its rows make ", pages, " pages and ", pieces, " pieces; it names ",
                              CountOf(append.pages()), " and ", CountOf(append.pieces()),
                              " and has ", input.pieces.size(), " pieces");
  }
  return Status::Ok();
}

Status AppendCheck::CheckEnd(const TableSpec& spec, const fb::Rows& rows) const {
  const auto end = static_cast<End>(rows.end());
  const bool ended = end == End::kTerminated || end == End::kTruncated || end == End::kCut;
  if (!ended && end != End::kGo) {
    return Status::Corruption("rows of slot ", rows.slot(), " end as ", int{rows.end()},
                              ", which is no end");
  }
  const bool has_final = spec.final_row && ended && end != End::kCut;
  if (rows.has_final() != has_final || rows.closes() != (ended && !spec.stream)) {
    return Status::Corruption("rows of slot ", rows.slot(), " that end as ", int{rows.end()},
                              rows.has_final() ? " with" : " without", " a final row",
                              rows.closes() ? " close" : " do not close",
                              " their trajectory: table '", spec.name, "' has no such ends");
  }
  if (rows.count() < (has_final ? 2u : 1u)) {
    return Status::Corruption(rows.count(), " rows of slot ", rows.slot(), " have no step");
  }
  return Status::Ok();
}

Status AppendCheck::FindTail(const TableState& state, const fb::Rows& rows, Tail* tail) const {
  const auto opening = std::lower_bound(opened_.begin(), opened_.end(), rows.slot(),
                                        [](const Opening& a, Slot slot) { return a.slot < slot; });
  if (opening != opened_.end() && opening->slot == rows.slot()) {
    if (opening->generation == rows.generation()) return Status::Ok();
    return Status::Corruption("rows of generation ", rows.generation(), " for slot ", rows.slot(),
                              ", which has ", opening->generation);
  }
  const index::TrajectoryRecord* record = FindTrajectory(state, rows.slot(), rows.generation());
  if (record == nullptr || leaving_.Removes(rows.slot())) {
    return Status::Corruption("rows for a trajectory that is not there, in slot ", rows.slot());
  }
  // What the owner's record before it has closed gets its last rows.
  const bool closes_again = state.owner() != nullptr && rows.closes();
  if (record->state != index::TrajectoryState::kOpen && !closes_again) {
    return Status::Corruption("rows for trajectory ", record->id, ", which no writer has open");
  }
  *tail = {record->rows_end, record->tail_lpn, state.pages().page(record->tail_lpn).generation};
  return Status::Ok();
}

Status AppendCheck::CheckPieces(const Input& input, const fb::Rows& rows, Tail tail,
                                uint32_t* pieces, uint32_t* pages) const {
  const fb::Append& append = *input.append;
  const TableLayout& layout = *input.layout;
  const uint64_t end = tail.rows_end + rows.count();
  for (uint64_t row = tail.rows_end; row < end;) {
    const uint32_t offset = layout.OffsetInPage(static_cast<int64_t>(row));
    const uint64_t here = std::min<uint64_t>(end - row, layout.steps_per_page() - offset);
    if (offset == 0) {
      if (*pages >= CountOf(append.pages())) {
        return Status::Corruption("rows of slot ", rows.slot(), " without their pages");
      }
      const fb::NewPage& page = *append.pages()->Get((*pages)++);
      tail.lpn = page.lpn();
      tail.generation = page.generation();
    }
    for (const uint32_t group : layout.logged_groups()) {
      const PieceWanted wanted{.lpn = tail.lpn,
                               .generation = tail.generation,
                               .first = offset,
                               .count = here,
                               .group = group};
      GEARDB_RETURN_IF_ERROR(CheckPiece(input, (*pieces)++, wanted));
    }
    row += here;
  }
  return Status::Ok();
}

Status AppendCheck::CheckPiece(const Input& input, uint32_t number,
                               const PieceWanted& wanted) const {
  if (number >= CountOf(input.append->pieces()) || number >= input.pieces.size()) {
    return Status::Corruption("rows without their pieces: there are ", input.pieces.size());
  }
  const fb::PieceRows& piece = *input.append->pieces()->Get(number);
  const bool fits = piece.first() == wanted.first && piece.count() == wanted.count &&
                    piece.group() == wanted.group && piece.lpn() == wanted.lpn &&
                    piece.generation() == wanted.generation;
  if (!fits) {
    return Status::Corruption("piece ", number, " is for ", piece.count(), " rows from ",
                              piece.first(), " of the page with LPN ", piece.lpn(), " in group ",
                              piece.group(), "; the record's rows put ", wanted.count, " from ",
                              wanted.first, " into LPN ", wanted.lpn, ", group ", wanted.group);
  }
  const wal::PieceView& bytes = input.pieces[number];
  const PageLayout& pages = input.layout->group(wanted.group).pages;
  const uint64_t bytes_wanted = PieceColumns(pages, wanted.count).bytes();
  if (!bytes.good || bytes.bytes.size() == bytes_wanted) return Status::Ok();
  return Status::Corruption("piece ", number, " has ", bytes.bytes.size(), " bytes; its ",
                            wanted.count, " rows take ", bytes_wanted);
}

Status AppendCheck::CheckColumns(const Input& input) const {
  const auto* sets = input.append->column_sets();
  for (uint32_t i = 0; i < CountOf(sets); ++i) {
    if (std::binary_search(slots_.begin(), slots_.end(), sets->Get(i)->slot())) continue;
    return Status::Corruption("a column is set in slot ", sets->Get(i)->slot(),
                              ", to which no rows are added");
  }
  return CheckColumnSets(input.state->layout(), sets, input.append->column_values());
}

}  // namespace geardb::engine
