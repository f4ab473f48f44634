// Named bugs: `tools/dev test --break NAME` builds the tree with one of them and runs the tests
// that must notice. All of them live in the table below; a build has none unless it asks for one.
//
// A row is X(name, tests, what goes wrong); `tests` is a regular expression over the names of the
// tests (`ctest -R`). In code: `if constexpr (!kBreak.skip_sync) GEARDB_RETURN_IF_ERROR(Sync());`.
// Public headers must not include this file.
#pragma once

#include <string_view>

// Written by CMake (GEARDB_BREAK); a file compiled by hand has no bug.
#if __has_include("geardb_break_choice.h")
#include "geardb_break_choice.h"
#endif

// clang-format off
#define GEARDB_BREAK_TABLE(X) \
  X(skip_log, "Engine|Crash|Database", "an append is acknowledged and its record never written") \
  X(skip_sync, "Wal|Log|Crash", "a sync ack is given without fdatasync") \
  X(publish_before_logged, "Wal|Log|Crash", "a record is published before its bytes are complete") \
  X(keep_stale_tail, "Wal|Log|Recovery", "records of an older epoch beyond the cut are replayed") \
  X(ignore_ring_at_recovery, "Wal|Log|Crash", "an open reads the segments and not the ring") \
  X(skip_piece_checksum, "Wal|Log|Recovery", "a piece with a wrong checksum is taken for good") \
  X(read_sync_target_late, "Drain", "a sync claims what came during it") \
  X(skip_cut, "OpenLog", "an open drains before the cut is written") \
  X(drain_unpublished_tail, "Drain", "a drain writes unpublished bytes") \
  X(reuse_ring_early, "LogWriter|Conformance|Crash", "ring bytes of a partly drained record go") \
  X(count_rows_twice, "Conformance|Capacity|Fault|Crash", "an open counts a table's rows twice") \
  X(ignore_generation, "Engine|Index|PriorityTable", "a late update reaches what took the slot") \
  X(swap_update_order, "PriorityTable|Index|WeightTree", "the first of duplicate updates wins") \
  X(reuse_lpn_twice, "Engine|Index|Slot|Page", "one freed LPN is given to two pages") \
  X(window_one_too_long, "Window|Sampler|Conformance", "a window's right end is one row too far") \
  X(stay_in_patched_page, "FaultEnv|Kill", "a writer goes on where its page was before a patch") \
  X(forget_filled, "FaultEnv|Kill", "a patch's record lacks how far its late groups are filled") \
  X(draw_before_filled, "FaultEnv|Kill", "items do not wait for a late group that is required") \
  X(split_batch, "WriteBatch|Kill|Conformance", "a batch of several operations is two records") \
  X(recycle_unmoved, "Cleaner|Cold|Kill", "the log goes on over pages that were not moved") \
  X(recycle_unflushed, "Cold|KillTest", "segments go before what replaced them is flushed") \
  X(move_as_it_was, "Cleaner|Cold|Kill", "a page that grew while it was moved is read as it was") \
  X(image_in_place, "Image|Cold|Kill", "an image is written over the current one's chunks") \
  X(image_forgets_parts, "Cleaner|Cold|Image|Kill", "a change in parts is cut off by an image") \
  X(keep_removed, "Cleaner|Cold", "what has left the tables stays in the cold store") \
  X(never_compact, "Cold|Compact", "the space of what was removed is never given back") \
  X(skip_cold_checksum, "Cold", "a cold page with a wrong checksum is taken for good") \
  X(serve_stale_page, "RepairCold", "an older version that a repair brings up is served") \
  X(remove_for_a_file, "RepairCold", "a draw removes what only lies behind a bad file") \
  X(read_newest_piece, "PageSource|Eviction|Cold", "a page in the log lacks its older pieces") \
  X(drop_only_frame, "Eviction|Frames|Groups", "a page that is nowhere else loses its frame") \
  X(read_beside_budget, "MemoryBeside", "pages without frames take memory without a bound") \
  X(evict_newest, "Capacity|Conformance", "a full table gives up its newest trajectory") \
  X(admit_at_deadline, "RateLimit|Limit", "an append that was refused takes effect") \
  X(keep_reserved, "RateLimit|Sampler|Limit", "what was drawn and never handed over counts") \
  X(give_place_twice, "RateLimit|Limit|Removals", "what left a queue gives its place back twice") \
  X(cover_nothing, "Epoch", "what an epoch handed over is handed over again") \
  X(group_too_small, "Group", "a draw group is complete with a member less") \
  X(filter_new_items_alone, "Filter|Removals", "what begins to fail a filter is still drawn") \
  X(goal_from_past, "RowDraw|Differential", "goals of the future come from the past, too") \
  X(keep_values, "Value|Companion", "what was removed leaves its values of any length behind") \
  X(audit_first_row, "Audit|Sampler|Log", "an audit has the first row's probability for all")
// clang-format on

#ifndef GEARDB_BREAK_NAME
#define GEARDB_BREAK_NAME ""
#endif

namespace geardb {

/// One `bool` per named bug: true in the build that has it.
struct Break {
#define GEARDB_BREAK_MEMBER(name, tests, what) \
  bool name = std::string_view(GEARDB_BREAK_NAME) == #name;
  GEARDB_BREAK_TABLE(GEARDB_BREAK_MEMBER)
#undef GEARDB_BREAK_MEMBER
};

inline constexpr Break kBreak;

/// The name of the bug in this build; "" when there is none.
inline constexpr std::string_view kBreakName = GEARDB_BREAK_NAME;

}  // namespace geardb
