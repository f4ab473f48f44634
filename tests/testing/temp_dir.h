// TempDir: a directory that no other test uses, removed with all that is in it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace geardb::testing {

/// Makes a new, empty directory under $TMPDIR (or the system's) and removes it when destroyed.
/// Where none can be made the process stops: a test cannot go on. With `GEARDB_KEEP_TEMP` set, it
/// stays and its path is printed.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  /// `path()/name`; nothing is created.
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

/// The files of an open database as they are now, as a crash of its process would leave them. Where
/// some came or left meanwhile all are copied again.
std::unique_ptr<TempDir> CopyOpenStore(const std::string& directory);

}  // namespace geardb::testing
