// SampleStore: the database that the tests of the shell tool look into. It has something of all
// that a log can hold, in segments and a ring so small that there are several segments.
//
// Two openings for writing. In the first, table "arcade" (episodes with a final row, one column of
// each small dtype) and "walkers" (streams) are filled and trimmed, one trajectory is removed, a
// table comes and goes, batches are drawn, priorities set, tags written. In the second an orphan is
// resumed, and trajectories are left open. What stays is said by the constants below.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/database.h"

namespace geardb::testing {

/// Trajectories of the table "arcade". Row k of any of them holds frame = {k, k+1, …, k+5} as u8,
/// half = k / 2, brain = -k, alive = (k is even), reward = k / 8 and count = -k - 2^40.
struct ArcadeIds {
  TrajectoryId terminated = 0;  ///< 6 steps and a final row; level 7, weights {0.5, -1}.
  TrajectoryId truncated = 0;   ///< 3 steps and a final row.
  TrajectoryId trimmed = 0;     ///< 12 steps and a final row, of which rows 0…4 are gone.
  TrajectoryId removed = 0;     ///< No longer there.
  TrajectoryId cut = 0;         ///< 4 rows, the last of them final.
  TrajectoryId orphaned = 0;    ///< 2 steps, open when the first process closed.
  TrajectoryId resumed = 0;     ///< 2 + 2 steps, resumed by the second process and left open.
};

/// What was made.
struct SampleStore {
  ArcadeIds arcade;
  TrajectoryId walker = 0;  ///< A stream of 400 rows of x f32[64], with ends at rows 9, 19, …
  std::string odd_tag;      ///< A name with a quote, a backslash and bytes that are no UTF-8.
  // What the store said of itself before it was closed.
  std::map<std::string, TableStats> tables;
  std::map<std::string, PriorityTableStats> priority_tables;  ///< By "table/name".
};

/// Segments of 64 KiB and a ring of 32 KiB; no thread in the background.
DatabaseOptions SampleOptions();

/// Makes the database. Ends the process where a call is refused: no test can go on then.
SampleStore MakeSampleStore(const std::string& directory);

/// Opens the database in a process of its own, appends steps to the table "arcade", one at a time,
/// and dies by SIGKILL. The record of one step is in the ring alone; some hundreds are more than
/// the ring holds: the older ones are in segments alone, and were never synced.
void DieAppending(const std::string& directory, int steps = 1);

/// Adds the table "groups": each of its column groups has a frame that stays, so that no 2 MiB hold
/// the database.
void AddTableOfGroups(const std::string& directory);

/// A database without tables.
void MakeEmptyStore(const std::string& directory);

}  // namespace geardb::testing
