// Whether a new table fits the log and the frame budget, alone and beside the others.
#pragma once

#include "base/status.h"
#include "engine/internal/core.h"
#include "engine/schema.h"

namespace geardb::engine {

/// The slabs of so many pages of a table, each with a frame in every column group, and of the
/// frames of defaults.
uint64_t SlabsOfPages(uint64_t pages, const TableLayout& layout);
/// How many pages of a table, each with a frame in every column group, so many slabs hold.
uint64_t PagesIn(uint64_t slabs, const TableLayout& layout);
/// The same in bytes, where pages may lie in parts of slabs (RoomFor).
uint64_t RoomOfPages(uint64_t pages, const TableLayout& layout);
/// How many pages there are at most, in all of the arena.
uint64_t PagesMax(const HostArena& arena, const TableLayout& layout);

/// The pages of a table at its bounds in bytes and steps, with a sixteenth for the calls under way,
/// whose frames are kept for each group that has to keep them; 0 where it has none of these bounds.
/// Beside values of any length, a bound in bytes keeps none.
uint64_t PagesKept(const TableLayout& layout);
/// The slabs of these frames.
uint64_t SlabsKept(const DatabaseCore& database, const TableLayout& layout);

/// The spec with its page's steps chosen: its own, or the default, or less where a page of these
/// would fit no record of the log.
TableSpec WithChosenSteps(const DatabaseCore& database, const TableSpec& spec);

/// InvalidArgument for a page that fits no record of the log, and, where all pages stay in memory,
/// for a bound in bytes or steps that leaves less than a sixteenth of the frames to the
/// calls under way.
Status CheckTableFits(const DatabaseCore& database, const TableLayout& layout);

/// CheckTableFits of its companions, naming their columns.
Status CheckCompanionsFit(const DatabaseCore& database, const TableLayout& layout);

/// InvalidArgument, saying how many bytes would do, where the frame budget has no room for what all
/// tables have to have in memory at once so that each can be appended to: of each column group two
/// pages (that of a trajectory's end and the next one) and its defaults, or what is kept for its
/// bound; likewise of their companions. With `layout`, a table that is to come or to change, and
/// the companions of that which are not there yet.
Status CheckAllFit(const DatabaseCore& database, const TableLayout& layout);
/// The same of those that there are, for their pages at once alone: what was kept for bounds when
/// the budget was larger is not kept in a smaller one.
Status CheckOpenFits(const DatabaseCore& database);

/// CheckTableFits of what the other tables leave of the frames, where all pages stay in memory:
/// each has whole slabs, for its bound in bytes or steps and a sixteenth beside it. What has no
/// such bound is not counted: nobody knows how much it will hold.
Status CheckFitsBesideOthers(const DatabaseCore& database, const TableLayout& layout);

}  // namespace geardb::engine
