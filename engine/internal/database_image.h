// The image of a database as of one LSN: its tables (table_image.h), which numbers tables have had,
// and its tags.
#pragma once

#include "engine/internal/core.h"
#include "engine/internal/image_chunk.h"

namespace geardb::engine {

/// Gives all chunks to `sink`: as of `lsn`, the end of the log, up to which everything is published
/// (DatabaseCore::CatchUp, without releasing `commit` since). Holds each table's mutex while it is
/// saved. Ends with the first status of the sink's that is no OK. The same state gives the same
/// bytes.
Status SaveDatabase(DatabaseCore* core, Lsn lsn, const ImageSink& sink)
    GEARDB_REQUIRES(core->commit);

/// Puts all tables and tags into a database that has none, as in the middle of a recovery: the
/// records from `lsn` on are to be applied next, then Recovery::Finish. Errors as of LoadTable;
/// after one the database is of no use.
Status LoadDatabase(DatabaseCore* core, Lsn lsn, const ImageSource& source);

}  // namespace geardb::engine
