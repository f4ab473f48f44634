#include "tests/conformance/read_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/testing/matchers.h"

namespace geardb::conformance {
namespace {

const ModelRow* FindRow(const ModelTrajectory& trajectory, int64_t number) {
  for (const ModelRow& row : trajectory.rows) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

/// The rows of trajectory[begin:end:step], in the order of the slice: Python's rules, where rows
/// that were trimmed lie before the beginning.
std::vector<const ModelRow*> Slice(const ModelTrajectory& trajectory, const RowRange& range) {
  const int64_t first = trajectory.first_row();
  const int64_t rows_end = trajectory.rows_end();
  const bool forward = range.step > 0;
  const auto bound = [&](std::optional<int64_t> given, int64_t absent) {
    if (!given) return absent;
    const int64_t row = *given < 0 ? *given + rows_end : *given;
    return forward ? std::clamp(row, first, rows_end) : std::clamp(row, first - 1, rows_end - 1);
  };
  int64_t row = bound(range.begin, forward ? first : rows_end - 1);
  const int64_t end = bound(range.end, forward ? rows_end : first - 1);
  std::vector<const ModelRow*> rows;
  for (; forward ? row < end : row > end; row += range.step) {
    rows.push_back(FindRow(trajectory, row));
  }
  return rows;
}

std::optional<int64_t> RandomBound(const ModelTrajectory& trajectory, RandomChoice* choice) {
  if (choice->Percent(30)) return std::nullopt;
  return choice->Between(-trajectory.rows_end() - 3, trajectory.rows_end() + 3);
}

void ExpectColumn(const ColumnRows& got, const Column& column, const Bytes& bytes, Shape shape) {
  EXPECT_EQ(got.column, column.name);
  EXPECT_EQ(got.dtype, column.dtype);
  EXPECT_EQ(got.shape, shape) << got.shape.ToString() << ", expected " << shape.ToString();
  EXPECT_EQ(got.bytes, bytes) << column.name;
}

void CheckRead(const StoreTwin& twin, TrajectoryId id, RandomChoice* choice) {
  const ModelTrajectory& trajectory = twin.model().trajectories().at(id);
  const RandomTable& table = twin.random_table();
  RowRange range{RandomBound(trajectory, choice), RandomBound(trajectory, choice), 1};
  range.step =
      choice->Of({int64_t{1}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{-1}, int64_t{-2}});
  SCOPED_TRACE("read of " + std::to_string(id));
  const std::vector<const ModelRow*> rows = Slice(trajectory, range);
  std::vector<std::string_view> names;
  if (choice->Percent(50)) {
    for (const Column& column : table.spec.columns) {
      if (choice->Percent(50)) names.push_back(column.name);
    }
    choice->Shuffle(&names);
  }
  ASSERT_OK_AND_ASSIGN(const auto got, twin.table()->Read(id, names, range));
  if (names.empty()) {
    for (size_t i = 0; i < table.step_columns.size(); ++i)
      names.push_back(table.step_column(i).name);
  }
  ASSERT_EQ(got.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t c = 0; c < table.trajectory_columns.size(); ++c) {
      const Column& column = table.trajectory_column(c);
      if (column.name != names[i]) continue;
      ExpectColumn(got[i], column, twin.TrajectoryValue(id, c), column.shape);
    }
    for (size_t c = 0; c < table.step_columns.size(); ++c) {
      const Column& column = table.step_column(c);
      if (column.name != names[i]) continue;
      Bytes bytes;
      for (const ModelRow* row : rows) Add(row->columns[c], &bytes);
      ExpectColumn(got[i], column, bytes,
                   column.shape.WithOuter({static_cast<int64_t>(rows.size())}));
    }
  }
}

void CheckGather(const StoreTwin& twin, const std::vector<TrajectoryId>& ids,
                 RandomChoice* choice) {
  const RandomTable& table = twin.random_table();
  std::vector<std::vector<RowId>> rows;
  std::vector<size_t> columns;
  std::vector<Bytes> expected;
  for (int64_t i = choice->Between(1, 3); i > 0; --i) {
    columns.push_back(choice->Below(table.step_columns.size()));
    rows.emplace_back();
    expected.emplace_back();
    for (int64_t r = choice->Between(0, 20); r > 0; --r) {
      const TrajectoryId id = choice->Of(ids);
      const ModelTrajectory& trajectory = twin.model().trajectories().at(id);
      const int64_t row = choice->Between(trajectory.first_row(), trajectory.rows_end() - 1);
      Add(FindRow(trajectory, row)->columns[columns.back()], &expected.back());
      const bool from_end = choice->Percent(30);
      rows.back().push_back(RowId{id, from_end ? row - trajectory.rows_end() : row});
    }
  }
  std::vector<GatherColumn> wanted;
  for (size_t i = 0; i < columns.size(); ++i) {
    wanted.push_back(GatherColumn{table.step_column(columns[i]).name, rows[i]});
  }
  ASSERT_OK_AND_ASSIGN(const auto got, twin.table()->Gather(wanted));
  ASSERT_EQ(got.size(), columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = table.step_column(columns[i]);
    ExpectColumn(got[i], column, expected[i],
                 column.shape.WithOuter({static_cast<int64_t>(rows[i].size())}));
  }
  // The first row that is not there is named, and nothing is returned.
  const TrajectoryId id = choice->Of(ids);
  const ModelTrajectory& trajectory = twin.model().trajectories().at(id);
  const bool above = trajectory.first_row() == 0 || choice->Percent(50);
  const int64_t missing = above ? trajectory.rows_end() : trajectory.first_row() - 1;
  rows[0].push_back(RowId{id, missing});
  wanted[0].rows = rows[0];
  EXPECT_STATUS(kInvalidArgument, twin.table()->Gather(wanted), std::to_string(missing));
}

}  // namespace

void CheckReads(StoreTwin* twin, RandomChoice* choice) {
  std::vector<TrajectoryId> ids;
  for (const auto& [id, trajectory] : twin->model().trajectories()) ids.push_back(id);
  if (ids.empty() || ::testing::Test::HasFatalFailure()) return;
  for (int i = 0; i < 4; ++i) CheckRead(*twin, choice->Of(ids), choice);
  for (int i = 0; i < 2; ++i) CheckGather(*twin, ids, choice);
}

}  // namespace geardb::conformance
