// Shared by the engine's tests: a database in a directory of its own, a table of rows whose values
// follow from a number, and short ways to append and to look at what is there.
//
// Row number k holds obs = {k, k + 0.5}, action = k, reward = k / 4. The final row after row k of a
// terminated or truncated episode holds obs of k + 1.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::testing {

/// Budgets and a log that a test can fill: 64 MiB of frames, 1 MiB segments and ring.
DatabaseOptions SmallOptions();

/// Columns obs f32[2], action i32, reward f32, and per trajectory version u32 and score f32. Pages
/// of 4 rows; no priority table. With `final_row`, obs is in the final row.
TableSpec StepSpec(bool final_row = false);

/// A prioritized priority table over windows of one step, α = 1, with this seed.
inline constexpr uint64_t kWindowSeed = 7;
PriorityTableSpec WindowSpec(std::string name, Extent extent = {});

/// Rows numbered first … first + count - 1, to be given to a writer.
class Rows {
 public:
  Rows(int64_t first, int64_t count);
  /// Shapes [count, ...].
  const std::vector<ColumnValue>& many() const { return many_; }
  /// The only row, without a leading dimension.
  const std::vector<ColumnValue>& one() const { return one_; }
  /// obs alone, without a leading dimension: the final row of that number.
  const std::vector<ColumnValue>& final_row() const { return final_row_; }
  Rows(const Rows&) = delete;

 private:
  std::vector<float> obs_;
  std::vector<int32_t> action_;
  std::vector<float> reward_;
  std::vector<ColumnValue> many_, one_, final_row_;
};

/// A database that a test may close and open again.
class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open();
  /// Closes, and opens again with `options_`.
  void Reopen();
  /// Trajectories that are open stay so: at the next open they are orphans.
  void Close();
  /// Closes, and opens a new database with `options_`.
  void OpenEmpty();

  /// Creates the table and its writer.
  void Create(const TableSpec& spec, const WriterOptions& options = {});
  /// The table of that name and a new writer, after a reopen.
  void OpenAgain(const std::string& name, const WriterOptions& options = {});

  /// Appends rows numbered from `first` on a lane; ends as told, with a final row where the table
  /// has them. Fails the test when refused.
  Appended Append(int64_t first, int64_t count, End end = End::kGo, uint32_t lane = 0);
  /// A closed trajectory; its id.
  TrajectoryId AppendClosed(int64_t first, int64_t count, End end = End::kTerminated) {
    return Append(first, count, end).id;
  }
  /// The "action" column of a trajectory: the numbers of its rows.
  std::vector<int32_t> Numbers(TrajectoryId id, const RowRange& range = {}) const;
  /// The first element of each row's obs.
  std::vector<float> Obs(TrajectoryId id) const;
  PriorityTable* priority(const std::string& name);

  std::unique_ptr<TempDir> dir_ = std::make_unique<TempDir>();
  DatabaseOptions options_ = SmallOptions();
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
  std::unique_ptr<Writer> writer_;

 private:
  std::vector<std::shared_ptr<PriorityTable>> priorities_;
};

/// first, first + 1, … of `count` values.
std::vector<int32_t> Count(int32_t first, int32_t count);

}  // namespace geardb::testing
