// The image of a database as of one LSN: its tables (table_image.h), which numbers tables have had,
// and its tags.
#pragma once

#include <memory>
#include <vector>

#include "engine/internal/core.h"
#include "engine/internal/image_chunk.h"
#include "engine/internal/table_image.h"

namespace geardb::engine {

/// The image of a database being taken, all of it as of one LSN: begun with `commit` held, and
/// given chunk after chunk while the database changes (table_image.h, "One cut"). A table that is
/// dropped meanwhile is in it. A database has one at a time.
class DatabaseImage {
 public:
  /// As of `lsn`, the end of the log, up to which everything is published (DatabaseCore::CatchUp,
  /// without releasing `commit` since). Takes each table's mutex for a moment; copies the tags.
  DatabaseImage(DatabaseCore* core, Lsn lsn) GEARDB_REQUIRES(core->commit);

  bool done() const { return next_ > tables_.size(); }
  /// Gives the next chunk, or the head and all tags at once; the first status of the sink's that is
  /// no OK, or as of TableImage::GiveNext: the image cannot be finished then.
  Status GiveNext(const ImageSink& sink);

 private:
  struct OneTable {
    std::shared_ptr<TableCore> table;
    std::unique_ptr<TableImage> image;  // Null once it is done.
  };

  const Lsn lsn_;
  const TableId next_table_id_;
  const std::vector<Tag> tags_;
  std::vector<OneTable> tables_;
  size_t next_ = 0;  // The head, then tables.
};

/// All of it, `commit` held throughout. The same state gives the same bytes.
Status SaveDatabase(DatabaseCore* core, Lsn lsn, const ImageSink& sink)
    GEARDB_REQUIRES(core->commit);

/// Puts all tables and tags into a database that has none, as in the middle of a recovery: the
/// records from `lsn` on are to be applied next, then Recovery::Finish. Errors as of LoadTable;
/// after one the database is of no use. `items` as of LoadTable.
Status LoadDatabase(DatabaseCore* core, Lsn lsn, const ImageSource& source,
                    const ImageSource* items = nullptr);

}  // namespace geardb::engine
