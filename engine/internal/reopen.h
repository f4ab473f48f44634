// What an open finds beside the records of the log: an image of the index, and damage.
#pragma once

#include <string>

#include "engine/internal/core.h"
#include "engine/internal/recovery.h"

namespace geardb::engine {

/// Opens the cold store, if there is one, and takes the tables from its image, whose head goes to
/// `image`. `env` holds the directory.
Status LoadImage(DatabaseCore* core, Env* env, ImageHead* image);

/// Pages that lost a piece cost their trajectories, and nothing else. Adds them to the recovery's
/// report.
Status RemoveDamaged(DatabaseCore* core, const Recovery& recovery);

/// Corruption where the log ends before the image: what was in it has been lost.
Status CheckReaches(const wal::ReadReport& read, const ImageHead& image);

/// Keeps what the files of the log are, for DatabaseStats.
void NoteLog(const wal::ReadReport& read, DatabaseCore* core);

/// Says in the report what was read of the log, and what it came to.
void NoteRecovery(const wal::OpenReport& opened, const Recovery& recovery, RecoveryReport* into);

/// Says in the report what damaged pieces have cost.
void NoteDamage(const DatabaseCore& core, RecoveryReport* into);

}  // namespace geardb::engine
