#include "engine/database.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

using testing::TempDir;

TableSpec ReplaySpec() {
  TableSpec spec;
  spec.name = "replay";
  spec.columns = {
      {.name = "obs", .dtype = DType::kF32, .shape = {4}, .in_final_row = true},
      {.name = "action", .dtype = DType::kI32},
      {.name = "reward", .dtype = DType::kF32},
      {.name = "version", .dtype = DType::kU32, .kind = ColumnKind::kPerTrajectory},
  };
  spec.final_row = true;
  spec.steps_per_page = 4;
  PriorityTableSpec per;
  per.name = "per";
  per.window.extent = {.before = 0, .length = 1, .after = 1};
  per.seed = 17;
  PriorityTableSpec uniform;
  uniform.name = "uniform";
  uniform.selector = SelectorKind::kUniform;
  uniform.window.extent = {.before = 1, .length = 2, .after = 1};
  PriorityTableSpec whole;
  whole.name = "whole";
  whole.item = ItemKind::kTrajectory;
  spec.priority_tables = {per, uniform, whole};
  return spec;
}

DatabaseOptions SmallOptions() {
  DatabaseOptions options;
  options.budgets.frames_bytes = 64 << 20;
  options.budgets.index_bytes = 64 << 20;
  options.segment_bytes = 1 << 20;
  options.ring_bytes = 1 << 20;
  return options;
}

/// Row r of trajectory t in a table of ReplaySpec.
struct Row {
  float obs[4];
  int32_t action;
  float reward;
};
Row MakeRow(int trajectory, int row) {
  const auto base = static_cast<float>(trajectory * 1000 + row);
  return Row{{base, base + 0.25f, base + 0.5f, base + 0.75f}, trajectory * 1000 + row, base / 2};
}

void AppendTrajectory(Writer* writer, int trajectory, int rows) {
  for (int r = 0; r < rows; ++r) {
    const Row row = MakeRow(trajectory, r);
    const Row last = MakeRow(trajectory, r + 1);
    AppendOptions options;
    const ColumnValue final_obs[] = {{"obs", TensorView::Of(std::span<const float>(last.obs))}};
    if (r + 1 == rows) {
      options.end = End::kTerminated;
      options.final = final_obs;
    }
    ASSERT_OK(writer->Append({{"obs", TensorView::Of(std::span<const float>(row.obs))},
                              {"action", TensorView::Scalar(row.action)},
                              {"reward", TensorView::Scalar(row.reward)}},
                             options));
  }
}

TEST(DatabaseTest, RowsComeBackAfterAReopen) {
  TempDir dir;
  {
    auto db = Database::Open(dir.path(), SmallOptions());
    ASSERT_OK(db);
    auto table = (*db)->CreateTable(ReplaySpec());
    ASSERT_OK(table);
    auto writer = (*table)->NewWriter({});
    ASSERT_OK(writer);
    for (int t = 0; t < 5; ++t) AppendTrajectory(writer->get(), t, 3 + 4 * t);
    EXPECT_EQ((*table)->Count(), 5u);
    EXPECT_EQ((*table)->StepCount(), 3u + 7 + 11 + 15 + 19);
    EXPECT_EQ((*table)->priority_table("per")->Count(), 55u);
    EXPECT_EQ((*table)->priority_table("whole")->Count(), 5u);
    EXPECT_OK((*db)->Close());
  }
  for (int open = 0; open < 2; ++open) {
    auto db = Database::Open(dir.path(), SmallOptions());
    ASSERT_OK(db);
    EXPECT_TRUE((*db)->recovery().clean);
    auto table = (*db)->OpenOrCreateTable(ReplaySpec());
    ASSERT_OK(table);
    EXPECT_EQ((*table)->Count(), 5u);
    const auto records = (*table)->Scan({});
    ASSERT_EQ(records.size(), 5u);
    for (int t = 0; t < 5; ++t) {
      const TrajectoryRecord& record = records[static_cast<size_t>(t)];
      EXPECT_EQ(record.rows_end, 3 + 4 * t + 1);
      EXPECT_EQ(record.end, End::kTerminated);
      auto rows = (*table)->Read(record.id, {}, {});
      ASSERT_OK(rows);
      const auto obs = (*rows)[0].view().values<float>();
      for (int r = 0; r < record.rows_end; ++r) {
        EXPECT_EQ(obs[static_cast<size_t>(r) * 4 + 3], MakeRow(t, r).obs[3]);
      }
      EXPECT_EQ((*rows)[1].view().values<int32_t>()[1], t * 1000 + 1);
    }
  }
}

TEST(DatabaseTest, DrawsGoOnAfterAReopen) {
  // One run without a reopen, one with: the same items.
  std::vector<std::vector<int64_t>> runs;
  for (const bool reopen : {false, true}) {
    TempDir dir;
    std::vector<int64_t> drawn;
    auto db = Database::Open(dir.path(), SmallOptions());
    ASSERT_OK(db);
    auto table = (*db)->CreateTable(ReplaySpec());
    ASSERT_OK(table);
    {
      auto writer = (*table)->NewWriter({});
      for (int t = 0; t < 5; ++t) AppendTrajectory(writer->get(), t, 10);
    }
    for (int batch = 0; batch < 20; ++batch) {
      if (reopen && batch == 7) {
        ASSERT_OK((*db)->Close());
        table = std::shared_ptr<Table>();
        db = Database::Open(dir.path(), SmallOptions());
        ASSERT_OK(db);
        table = (*db)->OpenTable("replay");
        ASSERT_OK(table);
      }
      auto per = (*table)->priority_table("per");
      auto sampler = per->NewSampler(
          {.batch = 8,
           .views = {{.column = "obs"}, {.column = "obs", .name = "next", .rows = {.begin = 1}}}});
      ASSERT_OK(sampler);
      auto next = (*sampler)->Next();
      ASSERT_OK(next);
      EXPECT_EQ(next->draw_number(), static_cast<uint64_t>(batch));
      std::vector<float> priorities;
      for (int64_t i = 0; i < next->size(); ++i) {
        const auto at = static_cast<size_t>(i);
        drawn.push_back(static_cast<int64_t>(next->trajectory_ids()[at]) * 100 +
                        next->anchors()[at]);
        priorities.push_back(static_cast<float>(next->anchors()[at] + 1));
        const float expected = MakeRow(static_cast<int>(next->trajectory_ids()[at]) - 1,
                                       static_cast<int>(next->anchors()[at]))
                                   .obs[0];
        EXPECT_EQ((*next)["obs"].values<float>()[at * 4], expected);
        EXPECT_EQ((*next)["next"].values<float>()[at * 4], expected + 1);
      }
      auto set = per->Set(next->handles(), priorities);
      ASSERT_OK(set);
      EXPECT_EQ(set->applied, 8u);
    }
    runs.push_back(drawn);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(DatabaseTest, ATicketThatWasNeverGivenOutIsRefusedAtOnce) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto db, Database::Open(dir.path(), SmallOptions()));
  ASSERT_OK_AND_ASSIGN(const Tag tag, db->WriteTag("a", {}));
  const Lsn end = db->Stats().log_end;
  for (const Ack level : {Ack::kMemory, Ack::kLog, Ack::kSync}) {
    EXPECT_OK(db->Wait({}, level));
    EXPECT_OK(db->Wait({end}, level));
    // Without a deadline.
    EXPECT_STATUS(kInvalidArgument, db->Wait({end + 1}, level),
                  "a ticket for LSN " + std::to_string(end + 1));
    EXPECT_STATUS(kInvalidArgument, db->Wait({UINT64_MAX}, level),
                  "its log ends at LSN " + std::to_string(end));
  }
}

TEST(DatabaseTest, SecondOwnerIsRefused) {
  TempDir dir;
  auto db = Database::Open(dir.path(), SmallOptions());
  ASSERT_OK(db);
  EXPECT_STATUS(kFailedPrecondition, Database::Open(dir.path(), SmallOptions()), "");
}

}  // namespace
}  // namespace geardb
