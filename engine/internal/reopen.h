// What an open finds beside the records of the log: an image of the index, and damage.
#pragma once

#include <optional>

#include "engine/internal/core.h"
#include "engine/internal/recovery.h"
#include "wal/open_log.h"

namespace geardb::engine {

/// Opens the cold store, if there is one, and takes the tables from its image, whose head goes to
/// `image`. `env` holds the directory.
Status LoadImage(DatabaseCore* core, Env* env, ImageHead* image);

/// Pages that lost a piece cost their trajectories, and nothing else. Adds them to the recovery's
/// report.
Status RemoveDamaged(DatabaseCore* core, const Recovery& recovery);

/// Opens the log in `directory` and shows `recovery` what the image does not have. Where an open
/// for writing finds no frames for pages that the ring alone has (after a power loss there may be
/// more of these than frames), it is refused, but has brought all to the segments, and
/// `written_out` says so: one that begins anew can drop such pages.
Result<wal::OpenedLog> ReadLog(Env* directory, const wal::OpenOptions& options,
                               const ImageHead& image, DatabaseCore* core, Recovery* recovery,
                               std::optional<wal::OpenReport>* written_out);

/// Keeps what the files of the log are, for DatabaseStats.
void NoteLog(const wal::ReadReport& read, DatabaseCore* core);

/// Says in the report what was read of the log, and what it came to. `before` is of an open that
/// had to be begun anew, if any.
void NoteRecovery(const wal::OpenReport& opened, const std::optional<wal::OpenReport>& before,
                  const Recovery& recovery, RecoveryReport* into);

/// Says in the report what damaged pieces have cost.
void NoteDamage(const DatabaseCore& core, RecoveryReport* into);

}  // namespace geardb::engine
