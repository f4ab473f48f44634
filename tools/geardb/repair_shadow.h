// Shadow: a database as a repair would leave it, to be opened for reading: a directory elsewhere
// with links to the database's files and, in their place, those that the plan writes.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tools/geardb/repair_plan.h"

namespace geardb::cli {

/// A directory of this process's own, gone with it; those of processes that were killed go with the
/// next one that is made.
class Shadow {
 public:
  Shadow() = default;
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// Links to the files of the plan's database, and what the plan writes in the place of others.
  Status Make(const RepairPlan& plan, const wal::Manifest& manifest);
  /// Opens it for reading; `memory_bytes` as of RepairOptions.
  Result<std::unique_ptr<Database>> Open(uint64_t memory_bytes) const;
  const std::string& path() const { return path_; }
  /// A text about files of the shadow, as if they were the database's.
  std::string InPlace(std::string text, const std::string& directory) const;

 private:
  /// A new directory for temporary files, that this process has locked.
  Status MakeDirectory();
  void RemoveOwn();

  std::string path_;
  int lock_ = -1;
};

}  // namespace geardb::cli
