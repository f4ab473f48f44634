// Shadow: a database as a repair would leave it, to be opened for reading: a directory elsewhere
// with links to the database's files and, in their place, those that the plan writes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "tools/geardb/repair_plan.h"

namespace geardb::cli {

/// A directory of this process's own, gone with it.
class Shadow {
 public:
  Shadow() = default;
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// Links to the files of the plan's database, and what the plan writes in the place of others.
  /// Of the cold store, files of pages that are lost are no part, as far as `without` says.
  Status Make(const RepairPlan& plan, const wal::Manifest& manifest,
              std::optional<engine::LostPages> without);
  /// Opens it for reading; `memory_bytes` as of RepairOptions.
  Result<std::unique_ptr<Database>> Open(uint64_t memory_bytes) const;
  const std::string& path() const { return path_; }
  /// A text about files of the shadow, as if they were the database's.
  std::string InPlace(std::string text, const std::string& directory) const;

 private:
  std::string path_;
};

/// What comes up behind files of pages that have bad blocks, once they are dropped: a bad block is
/// in the way of pages that it does not have, too.
class BehindBadBlocks {
 public:
  /// Of a plan and what it writes as the manifest; they outlive it.
  BehindBadBlocks(const RepairPlan& plan, const wal::Manifest& manifest, uint64_t memory_bytes)
      : plan_(plan), manifest_(manifest), memory_bytes_(memory_bytes) {}

  /// Whether all of a trajectory of this table can be read there. It is opened with the first call.
  Result<bool> Has(const std::string& table, const TrajectoryRecord& trajectory);

 private:
  const RepairPlan& plan_;
  const wal::Manifest& manifest_;
  const uint64_t memory_bytes_;
  Shadow shadow_;
  std::unique_ptr<Database> database_;
};

}  // namespace geardb::cli
