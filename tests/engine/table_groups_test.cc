// Column groups: stored apart, read as one table.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "tests/testing/drop_frames.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

/// "action" apart, "reward" volatile, and "target" f32 late, −1 where nobody filled it.
TableSpec GroupedSpec() {
  TableSpec spec = testing::StepSpec(true);
  spec.groups = {
      {.name = "apart"}, {.name = "scratch", .is_volatile = true}, {.name = "late", .late = true}};
  spec.columns[1].group = "apart";
  spec.columns[2].group = "scratch";
  spec.columns[2].default_value = 0.5;
  spec.columns.push_back({.name = "target", .group = "late", .default_value = -1});
  spec.columns.push_back(
      {.name = "weight", .kind = ColumnKind::kPerTrajectory, .default_value = std::nan("")});
  return spec;
}

class TableGroupsTest : public testing::StoreTest {
 protected:
  std::vector<float> Floats(TrajectoryId id, std::string_view column) const {
    const auto rows = table_->Read(id, {&column, 1}, {});
    EXPECT_OK(rows);
    if (!rows.ok()) return {};
    const auto values = (*rows)[0].view().values<float>();
    return {values.begin(), values.end()};
  }
};

TEST_F(TableGroupsTest, ColumnsOfAllGroupsAreOneTable) {
  Create(GroupedSpec());
  const TrajectoryId id = AppendClosed(10, 6);
  EXPECT_EQ(Numbers(id), (std::vector<int32_t>{10, 11, 12, 13, 14, 15, 0}));
  EXPECT_EQ(Obs(id), (std::vector<float>{10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(Floats(id, "reward"), (std::vector<float>{2.5, 2.75, 3, 3.25, 3.5, 3.75, 0.5}));
  EXPECT_EQ(Floats(id, "target"), std::vector<float>(7, -1));
  EXPECT_TRUE(std::isnan(Floats(id, "weight")[0])) << "a default of NaN";
}

TEST_F(TableGroupsTest, AReopenKeepsAllButWhatIsVolatile) {
  Create(GroupedSpec());
  const TrajectoryId id = AppendClosed(10, 6);
  const TrajectoryId open = Append(50, 5).id;
  Reopen();
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenOrCreateTable(GroupedSpec()));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  EXPECT_EQ(Numbers(id), (std::vector<int32_t>{10, 11, 12, 13, 14, 15, 0}));
  EXPECT_EQ(Floats(id, "reward"), std::vector<float>(7, 0.5));
  // An open trajectory goes on in a page of which the volatile group has nothing.
  ASSERT_OK(writer_->Resume(open));
  Append(55, 2);
  EXPECT_EQ(Numbers(open), testing::Count(50, 7));
  EXPECT_EQ(Floats(open, "reward"),
            (std::vector<float>{0.5, 0.5, 0.5, 0.5, 0.5, 55 / 4.0f, 56 / 4.0f}));
}

TEST_F(TableGroupsTest, WhatIsVolatileStaysInMemoryWhereItsOnlyCopyIs) {
  Create(GroupedSpec());
  const TrajectoryId id = AppendClosed(10, 6);
  EXPECT_GT(testing::DropFrames(*database_), 0u);
  EXPECT_EQ(Numbers(id), (std::vector<int32_t>{10, 11, 12, 13, 14, 15, 0}));
  EXPECT_EQ(Floats(id, "reward"), (std::vector<float>{2.5, 2.75, 3, 3.25, 3.5, 3.75, 0.5}));
}

TEST_F(TableGroupsTest, WhatIsVolatileIsNotInTheLog) {
  Create(GroupedSpec());
  Append(0, 1);
  const uint64_t before = database_->Stats().log_bytes;
  Append(1, 64);
  const uint64_t grouped = database_->Stats().log_bytes - before;
  OpenEmpty();
  Create(testing::StepSpec(true));
  Append(0, 1);
  const uint64_t plain_before = database_->Stats().log_bytes;
  Append(1, 64);
  // 64 rewards of 4 bytes are missing; a second piece for each page takes some entries.
  EXPECT_LT(grouped, database_->Stats().log_bytes - plain_before + 17 * 64);
}

TEST_F(TableGroupsTest, FramesAreTakenWhereRowsAreWritten) {
  Create(GroupedSpec());
  AppendClosed(0, 7);  // Two pages, in three of four groups.
  EXPECT_EQ(table_->Stats().pages, 2u);
  EXPECT_EQ(table_->Stats().frame_bytes, 2u * 3 * 128);
  EXPECT_EQ(table_->Stats().row_bytes, 8u * (8 + 4 + 4 + 4));
}

TEST_F(TableGroupsTest, ABoundInBytesCountsAllGroups) {
  TableSpec spec = GroupedSpec();
  spec.bytes_max = uint64_t{10} * 4 * 128;
  Create(spec);
  for (int i = 0; i < 30; ++i) AppendClosed(10 * i, 4);
  EXPECT_EQ(table_->Stats().pages, 10u);
  for (int i = 0; i < 200; ++i) AppendClosed(10 * i, 4);
  // A few more are on their way back.
  EXPECT_LE(database_->Stats().frames.used_bytes, 2 * spec.bytes_max);
}

TEST_F(TableGroupsTest, AWriterDoesNotGiveLateColumns) {
  Create(GroupedSpec());
  const testing::Rows rows(0, 1);
  std::vector<ColumnValue> values = rows.one();
  const float target = 3;
  values.push_back({"target", TensorView::Scalar(target)});
  EXPECT_STATUS(kInvalidArgument, writer_->Append(values), "late group 'late'; Patch fills it");
}

TEST_F(TableGroupsTest, ABadPieceOfAnyGroupCostsItsTrajectory) {
  Create(GroupedSpec());
  const TrajectoryId id = AppendClosed(0x71727374, 3);
  const TrajectoryId other = AppendClosed(40, 3);
  ASSERT_OK(database_->Sync());
  Close();
  // The action is in group "apart" alone; obs holds the same number as a float.
  const int32_t number = 0x71727375;
  int found = 0;
  std::map<std::string, std::string> files = testing::FilesOf(dir_->path());
  for (auto& [path, bytes] : files) {
    const std::string pattern(reinterpret_cast<const char*>(&number), sizeof(number));
    for (size_t at = bytes.find(pattern); at != std::string::npos; at = bytes.find(pattern, at)) {
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      ++found;
    }
    testing::WriteBytes(path, bytes);
  }
  ASSERT_GT(found, 0);
  Open();
  OpenAgain("steps");
  EXPECT_EQ(database_->recovery().damaged_pages, 1u);
  EXPECT_STATUS(kNotFound, table_->Find(id), "");
  EXPECT_EQ(Numbers(other), (std::vector<int32_t>{40, 41, 42, 0}));
}

}  // namespace
}  // namespace geardb
