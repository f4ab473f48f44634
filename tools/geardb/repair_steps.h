// The steps of a repair, each of which may be the last: whoever runs it again goes on from there.
//
//   1. what leaves or will be written over is copied into `<database>/repair-<n>`, synced
//   2. the cold store moves there, if it leaves
//   3. segments get their first records, and a segment and a ring are made
//   4. the manifest is replaced, in one step: what the log says from here on is decided
//   5. files that are none of the log's leave it
//   6. the cold store goes on without files of pages that are lost
//   7. the database is opened for writing, and trajectories leave that cannot be read; what only
//      the ring has of the log goes into segments again
//
// Where pages do not name the LSNs of their versions (a cold store of format 3), 7 comes before 6:
// nobody may ask then for what could come up as an older version.
//
// The log is not copied into a new one: an epoch that begins where the damage does makes all behind
// it void at once, by a manifest that is the old one or the new one whatever happens.
#pragma once

#include <string>

#include "base/status.h"
#include "tools/geardb/repair_plan.h"

namespace geardb::cli {

/// What was done.
struct Repaired {
  std::string kept_in = {};  ///< The directory with what left; empty where nothing did.
};

/// The caller holds the directory's lock exclusively; `*lock` is given up for the last step, which
/// takes it by itself.
Result<Repaired> TakeRepairSteps(const RepairPlan& plan, const RepairOptions& options,
                                 std::unique_ptr<FileLock>* lock);

}  // namespace geardb::cli
