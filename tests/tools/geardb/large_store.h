// LargeStore: a store of more bytes than its frames and its log hold, so that pages have been
// dropped, read from the log, moved to the cold store and read from there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/database.h"

namespace geardb::testing {

/// What was made: one table "frames", of closed trajectories with ids from 1 on.
struct LargeStore {
  uint64_t trajectories = 0;
  uint64_t pages = 0;
  FrameStats frames;    ///< As the table said before the store was closed.
  DatabaseStats stats;  ///< Likewise.
};

/// Budgets of 6 MiB of frames and a log of eight segments of 1 MiB; no thread in the background.
DatabaseOptions LargeStoreOptions();

/// Makes the store, reads all of it and closes it. Ends the process where a call is refused.
LargeStore MakeLargeStore(const std::string& directory);

/// The bytes of all rows of a trajectory: those of a row are alike.
std::vector<uint8_t> LargeStoreBytes(TrajectoryId id);

/// Whether it has these bytes, all at once: a loop over them takes seconds in tests.
bool HasBytes(const TensorView& tensor, const std::vector<uint8_t>& bytes);

}  // namespace geardb::testing
