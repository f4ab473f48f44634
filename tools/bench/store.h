// Store: a database in a directory of its own that goes with it, and tables to measure with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tools/bench/row.h"

namespace geardb::bench {

/// A new, empty directory, removed with all that is in it.
class ScratchDirectory {
 public:
  static Result<std::shared_ptr<ScratchDirectory>> Make(const Settings& settings);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// What is open of it. Members go in reverse order: the directory last.
struct Store {
  std::shared_ptr<ScratchDirectory> directory;
  std::unique_ptr<Database> db;
  std::shared_ptr<Table> table;
  std::unique_ptr<Writer> writer;  ///< With one lane.
};

/// Options that no measurement runs into: a log of up to 64 GiB, touched frames.
DatabaseOptions RoomyOptions(uint64_t frames_bytes, uint64_t index_bytes);

/// A new database with one table and a writer.
Result<std::shared_ptr<Store>> MakeStore(const Settings& settings, const DatabaseOptions& options,
                                         const TableSpec& spec);

/// The table "replay" with one column "obs" of `row_bytes` bytes a step (f32 when it is 4), no
/// priority table, and a hint that trajectories have `expected_steps`.
TableSpec PlainTable(uint64_t row_bytes, uint64_t expected_steps);

/// A priority table over windows of `length` steps.
PriorityTableSpec WindowsOf(int64_t length, SelectorKind selector);

/// "uniform" and "prioritized".
const char* SelectorName(SelectorKind selector);

/// Appends closed trajectories of `length` steps until there are `steps`, at memory ack, with one
/// raw priority per trajectory in (0, 1] for the priority table "prioritized" if there is one.
Status FillWithSteps(Store* store, int64_t steps, int64_t length);

/// The bytes of `count` rows of a table of PlainTable, as a tensor over `memory`.
TensorView RowsOver(const TableSpec& spec, const void* memory, int64_t count);

}  // namespace geardb::bench
