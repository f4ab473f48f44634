// Columns that are added and dropped while a table is used: what becomes of what refers to them,
// and of their memory. Random programs are in tests/conformance/columns_conformance_test.cc.
#include <gtest/gtest.h>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

class TableColumnsTest : public testing::StoreTest {
 protected:
  Status Add(std::vector<Column> columns, std::vector<ColumnGroup> groups = {}) {
    return table_->AddColumns(columns, groups);
  }
  Status Drop(std::vector<std::string_view> names) { return table_->DropColumns(names); }

  std::vector<float> Floats(TrajectoryId id, std::string_view column) const {
    const auto rows = table_->Read(id, {&column, 1}, {});
    EXPECT_OK(rows);
    if (!rows.ok()) return {};
    const auto values = (*rows)[0].view().values<float>();
    return {values.begin(), values.end()};
  }
  /// Rows with "extra" = number / 2, by a writer that knows it.
  Result<Appended> AppendExtra(Writer* writer, int64_t first, int64_t count,
                               AppendOptions options = {}) {
    const Rows rows(first, count);
    std::vector<float> extra;
    for (int64_t k = first; k < first + count; ++k) extra.push_back(static_cast<float>(k) / 2);
    std::vector<ColumnValue> values = rows.many();
    values.push_back({"extra", TensorView::Of(std::span<const float>(extra))});
    return writer->AppendSteps(values, options);
  }
};

TEST_F(TableColumnsTest, WhatIsThereReadsTheDefaultAndNothingIsRewritten) {
  Create(StepSpec());
  const TrajectoryId id = AppendClosed(0, 6);
  const uint64_t before = database_->Stats().log_bytes;
  ASSERT_OK(Add({{.name = "extra", .default_value = -1},
                 {.name = "tag", .kind = ColumnKind::kPerTrajectory, .default_value = 2.5}}));
  EXPECT_LT(database_->Stats().log_bytes, before + 1024);
  EXPECT_EQ(Floats(id, "extra"), std::vector<float>(6, -1));
  EXPECT_EQ(Floats(id, "tag"), std::vector<float>(1, 2.5));
  const TableSpec spec = table_->spec();
  ASSERT_EQ(spec.groups.size(), 1u);
  EXPECT_EQ(spec.groups[0].name, "extra");
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->spec(), spec);
  ASSERT_OK(database_->OpenOrCreateTable(spec));
  EXPECT_STATUS(kFailedPrecondition, database_->OpenOrCreateTable(StepSpec()), "columns: 7, not 5");
  EXPECT_EQ(Floats(id, "extra"), std::vector<float>(6, -1));
}

TEST_F(TableColumnsTest, AnOldWriterGoesOnAndANewOneKnowsThem) {
  Create(StepSpec());
  const TrajectoryId open = Append(0, 3).id;
  ASSERT_OK(Add({{.name = "extra", .default_value = -1}}));
  Append(3, 3);
  EXPECT_EQ(Floats(open, "extra"), std::vector<float>(6, -1));
  EXPECT_STATUS(kNotFound, AppendExtra(writer_.get(), 6, 1), "has no column 'extra'");
  ASSERT_OK(writer_->Detach());
  EXPECT_STATUS(kFailedPrecondition, writer_->Resume(open), "before the table's columns changed");
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(Rows(0, 1).many()),
                "column 'extra' is missing");
  ASSERT_OK(writer_->Resume(open));
  ASSERT_OK(AppendExtra(writer_.get(), 6, 4));
  const std::vector<float> all = {-1, -1, -1, -1, -1, -1, 3, 3.5, 4, 4.5};
  EXPECT_EQ(Floats(open, "extra"), all);
  EXPECT_EQ(Numbers(open), testing::Count(0, 10));
  testing::DropFrames(*database_);
  EXPECT_EQ(Floats(open, "extra"), all);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Floats(open, "extra"), all);
  testing::DropFrames(*database_);
  EXPECT_EQ(Floats(open, "extra"), all);
}

TEST_F(TableColumnsTest, ADroppedGroupGivesItsFramesBack) {
  TableSpec spec = StepSpec();
  spec.columns.push_back({.name = "wide", .dtype = DType::kU8, .shape = {4096}, .group = "wide"});
  spec.columns.push_back({.name = "beside", .dtype = DType::kU8, .group = "wide"});
  spec.groups = {{.name = "wide"}};
  Create(spec);
  const std::vector<uint8_t> bytes(40 * 4096, 5);
  const std::vector<uint8_t> beside(40, 6);
  const auto append = [&](End end) {
    const Rows rows(0, 40);
    std::vector<ColumnValue> values = rows.many();
    values.push_back({"wide", TensorView::Of<uint8_t>(bytes, {40, 4096})});
    values.push_back({"beside", TensorView::Of<uint8_t>(beside)});
    EXPECT_OK(writer_->AppendSteps(values, {.end = end}));
  };
  append(End::kTerminated);
  append(End::kGo);
  const uint64_t wide_frame = 4 * 4097 + 124;  // 128-byte frames.
  const uint64_t before = table_->Stats().frame_bytes;
  ASSERT_GT(before, 20 * wide_frame);
  ASSERT_OK(Drop({"wide"}));
  EXPECT_EQ(table_->Stats().frame_bytes, before) << "something of the group is left";
  ASSERT_OK(Drop({"beside"}));
  // The open trajectory's last page: its writer goes on there.
  const uint64_t after = table_->Stats().frame_bytes;
  EXPECT_LT(after, before - 19 * (wide_frame - 128));
  EXPECT_GT(after, 4 * 4096u);
  const uint64_t resident = table_->Stats().frames.resident_bytes;
  append(End::kTerminated);  // It still gives them.
  EXPECT_LT(table_->Stats().frame_bytes, after) << "the trajectory has ended";
  EXPECT_LT(table_->Stats().frames.resident_bytes, resident);
  EXPECT_EQ(Numbers(2), [] {
    std::vector<int32_t> twice = testing::Count(0, 40);
    twice.insert(twice.end(), twice.begin(), twice.begin() + 40);
    return twice;
  }());
  const uint64_t log_bytes = database_->Stats().log_bytes;
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  AppendClosed(0, 40);
  EXPECT_LT(database_->Stats().log_bytes, log_bytes + 40 * 1024) << "nothing of it is logged";
  const uint64_t live = table_->Stats().frame_bytes;
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Stats().frame_bytes, live);
}

TEST_F(TableColumnsTest, ANameComesAgainAsAnotherColumn) {
  Create(StepSpec());
  ASSERT_OK(Add({{.name = "extra", .default_value = 1}}));
  ASSERT_OK_AND_ASSIGN(auto old, table_->NewWriter({}));
  ASSERT_OK_AND_ASSIGN(const Appended appended, AppendExtra(old.get(), 0, 3));
  ASSERT_OK(Drop({"extra"}));
  const std::string_view extra[] = {"extra"};
  EXPECT_STATUS(kNotFound, table_->Read(appended.id, extra, {}), "has no column 'extra'");
  EXPECT_STATUS(kNotFound, table_->Statistics("extra"), "has no column 'extra'");
  ASSERT_OK(Add({{.name = "extra", .default_value = 2}}));
  ASSERT_OK(AppendExtra(old.get(), 3, 3));  // What it gives is the first one's.
  EXPECT_EQ(Floats(appended.id, "extra"), std::vector<float>(6, 2));
  ASSERT_OK(Drop({"extra"}));
  ASSERT_OK(Add({{.name = "extra", .kind = ColumnKind::kPerTrajectory, .default_value = 3}}));
  EXPECT_EQ(Floats(appended.id, "extra"), std::vector<float>(1, 3));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Floats(appended.id, "extra"), std::vector<float>(1, 3));
}

TEST_F(TableColumnsTest, WhatAPriorityTableNeedsIsNotDropped) {
  TableSpec spec = StepSpec();
  spec.columns.push_back({.name = "target", .group = "late"});
  spec.columns.push_back({.name = "other", .group = "late"});
  spec.groups = {{.name = "late", .late = true}};
  spec.priority_tables = {WindowSpec("per"), WindowSpec("by_score")};
  spec.priority_tables[0].required = {"late", "version"};
  spec.priority_tables[1].initial = InitialPriority::kColumn;
  spec.priority_tables[1].initial_priority_column = "score";
  Create(spec);
  EXPECT_STATUS(kFailedPrecondition, Drop({"version"}), "'per' requires column 'version'");
  EXPECT_STATUS(kFailedPrecondition, Drop({"score"}), "'by_score' takes priorities from column");
  EXPECT_STATUS(kFailedPrecondition, Drop({"target", "other"}), "'per' requires group 'late'");
  ASSERT_OK(Drop({"other"}));
  EXPECT_EQ(table_->spec().columns.size(), 6u) << "of those refused, nothing has left";
  EXPECT_STATUS(kFailedPrecondition, Drop({"target"}), "'per' requires group 'late'");
}

TEST_F(TableColumnsTest, APriorityTableTakesWhatWasAdded) {
  Create(StepSpec());
  const TrajectoryId id = Append(0, 4).id;
  ASSERT_OK(Add({{.name = "extra", .group = "late"},
                 {.name = "rank", .kind = ColumnKind::kPerTrajectory, .default_value = 8}},
                {{.name = "late", .late = true}}));
  PriorityTableSpec spec = WindowSpec("per");
  spec.required = {"late"};
  spec.initial = InitialPriority::kColumn;
  spec.initial_priority_column = "rank";
  ASSERT_OK(table_->CreatePriorityTable(spec));
  PriorityTableSpec by_rank = WindowSpec("by_rank");
  by_rank.initial = InitialPriority::kColumn;
  by_rank.initial_priority_column = "rank";
  ASSERT_OK(table_->CreatePriorityTable(by_rank));
  EXPECT_EQ(priority("per")->Items().size(), 0u);
  Append(4, 4);  // By a writer that knows neither.
  EXPECT_EQ(priority("by_rank")->Items().size(), 8u);
  EXPECT_EQ(*priority("by_rank")->Priority({id, 6}), 8);
  const float values[] = {1, 2, 3, 4, 5};
  const ColumnValue extra[] = {{"extra", TensorView::Of(std::span<const float>(values))}};
  const RowSpan span[] = {{id, 0, 5}};
  ASSERT_OK(table_->Patch(span, extra));
  EXPECT_EQ(priority("per")->Items().size(), 5u);
  // A value that the writer's own copy of its columns has no place for.
  const float rank = 3;
  const ColumnValue set[] = {{"rank", TensorView::Scalar(rank)}};
  ASSERT_OK(table_->SetColumns(id, set));
  EXPECT_EQ(Floats(id, "rank"), std::vector<float>(1, 3));
  EXPECT_EQ(*table_->Filled(id, "late"), 5);
}

TEST_F(TableColumnsTest, ASamplerThatShowsADroppedColumnSaysSo) {
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("per", {0, 1, 2})};
  Create(spec);
  AppendClosed(0, 20);
  ASSERT_OK(Add({{.name = "extra", .default_value = 4}}));
  const auto sampler = [&](SamplerOptions options) {
    options.batch = 4;
    options.timeout_ms = 0;
    auto made = priority("per")->NewSampler(options);
    EXPECT_OK(made);
    return std::move(*made);
  };
  auto shows = sampler({.views = {{.column = "obs"}, {.column = "extra", .name = "e"}}});
  auto sums =
      sampler({.views = {{.column = "obs"}}, .n_step = NStep{.reward_column = "extra", .n = 2}});
  auto neither = sampler({.views = {{.column = "obs"}}});
  auto of_trajectory = sampler({.views = {{.column = "version"}}});
  ASSERT_OK_AND_ASSIGN(const Batch batch, shows->Next());
  for (const float value : batch["e"].values<float>()) EXPECT_EQ(value, 4);
  for (const auto* each : {&sums, &neither, &of_trajectory}) ASSERT_OK((*each)->Next());
  ASSERT_OK(Drop({"extra", "version"}));
  EXPECT_STATUS(kNotFound, shows->Next(), "column 'extra', which view 'e' shows, was dropped");
  EXPECT_STATUS(kNotFound, shows->Next(), "was dropped");
  EXPECT_STATUS(kNotFound, sums->Next(), "column 'extra', which n_step shows, was dropped");
  EXPECT_STATUS(kNotFound, of_trajectory->Next(), "column 'version'");
  ASSERT_OK(neither->Next());
  EXPECT_STATUS(kNotFound, priority("per")->NewSampler({.views = {{.column = "extra"}}}),
                "no column 'extra'");
}

TEST_F(TableColumnsTest, BatchesThatWereDrawnAheadAreDelivered) {
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  AppendClosed(0, 20);
  ASSERT_OK(Add({{.name = "extra", .default_value = 4}}));
  ASSERT_OK_AND_ASSIGN(
      auto sampler,
      priority("per")->NewSampler(
          {.batch = 4, .views = {{.column = "extra"}}, .prefetch = 2, .timeout_ms = 0}));
  ASSERT_OK(sampler->Next());
  ASSERT_OK(Drop({"extra"}));
  Status status;
  int delivered = 0;
  for (; status.ok() && delivered < 5; ++delivered) {
    auto batch = sampler->Next();
    status = batch.status();
    if (!batch.ok()) break;
    for (const float value : (*batch)["extra"].values<float>()) EXPECT_EQ(value, 4);
  }
  EXPECT_LE(delivered, 2);
  EXPECT_EQ(status.code(), StatusCode::kNotFound) << status;
}

TEST_F(TableColumnsTest, TheColdStoreForgetsADroppedGroup) {
  options_.segment_bytes = 64 << 10;
  options_.ring_bytes = 64 << 10;
  OpenEmpty();
  Create(StepSpec());
  ASSERT_OK(Add({{.name = "extra", .default_value = -1}}));
  ASSERT_OK_AND_ASSIGN(auto writer, table_->NewWriter({}));
  for (int t = 0; t < 30; ++t) {
    ASSERT_OK(AppendExtra(writer.get(), 100 * t, 100, {.end = End::kTerminated}));
  }
  const auto clean = [&] { return testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true); };
  const auto pages_of = [&](uint16_t group) {
    uint64_t pages = 0;
    EXPECT_OK(testing::CoreOf(*database_)
                  ->cold->if_open()
                  ->ForEachPage([&](const engine::ColdPageKey& key, const auto&) {
                    pages += key.group == group ? 1 : 0;
                    return Status::Ok();
                  }));
    return pages;
  };
  ASSERT_OK(clean());
  EXPECT_GT(pages_of(1), 100u);
  ASSERT_OK(Drop({"extra"}));
  for (int t = 0; t < 30; ++t) {
    ASSERT_OK(AppendExtra(writer.get(), 100 * t, 100, {.end = End::kTerminated}));
  }
  ASSERT_OK(clean());
  EXPECT_EQ(pages_of(1), 0u);
  EXPECT_GT(pages_of(0), 100u);
  writer.reset();
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(31), testing::Count(0, 100));
  ASSERT_OK(Add({{.name = "extra", .default_value = 5}}));
  EXPECT_EQ(Floats(3, "extra"), std::vector<float>(100, 5));
}

TEST_F(TableColumnsTest, WhatDoesNotFitIsRefusedAndLeavesNothing) {
  TableSpec spec = StepSpec();
  spec.steps_per_page = 256;
  Create(spec);
  AppendClosed(0, 6);
  EXPECT_STATUS(kInvalidArgument, Add({{.name = "huge", .dtype = DType::kU8, .shape = {1 << 12}}}),
                "fit a record of the log");
  EXPECT_STATUS(kInvalidArgument, Add({{.name = "action"}}), "two columns named 'action'");
  EXPECT_EQ(table_->spec().columns.size(), 5u);
  ASSERT_OK(Add({{.name = "small", .default_value = 6}}));
  EXPECT_EQ(Floats(1, "small"), std::vector<float>(6, 6));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->spec().columns.size(), 6u);
}

TEST_F(TableColumnsTest, ABudgetWithoutRoomRefusesThem) {
  options_.budgets.index_bytes = 4 << 20;
  OpenEmpty();
  Create(StepSpec());
  Status status;
  int added = 0;
  while (status.ok() && added < 200) {
    status = Add({{.name = "a" + std::to_string(added), .kind = ColumnKind::kPerTrajectory},
                  {.name = "b" + std::to_string(added), .kind = ColumnKind::kPerTrajectory}});
    if (status.ok()) {
      ++added;
    } else {
      break;
    }
    AppendClosed(added, 1);
  }
  ASSERT_EQ(status.code(),
            added == 125 ? StatusCode::kInvalidArgument : StatusCode::kResourceExhausted)
      << status;
  EXPECT_EQ(table_->spec().columns.size(), 5u + 2 * static_cast<size_t>(added));
  AppendClosed(7, 3);
  const auto spec = table_->spec();
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->spec(), spec);
}

TEST_F(TableColumnsTest, AStreamAndATableInMemoryChangeThemToo) {
  options_.resident = true;
  OpenEmpty();
  TableSpec spec = StepSpec(true);
  spec.stream = true;
  spec.steps_max = 40;
  Create(spec);
  Append(0, 10, End::kTerminated);
  ASSERT_OK(Add({{.name = "extra", .in_final_row = true, .default_value = -1}}));
  Append(20, 5);
  const TrajectoryId id = writer_->open_trajectory();
  ASSERT_OK(writer_->Detach());
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  ASSERT_OK(writer_->Resume(id));
  const Rows last(28, 1);
  const float extra_last = 14;
  std::vector<ColumnValue> final = last.final_row();
  final.push_back({"extra", TensorView::Scalar(extra_last)});
  ASSERT_OK(AppendExtra(writer_.get(), 25, 3, {.end = End::kTruncated, .final = final}));
  std::vector<float> expected(16, -1);
  for (const float value : {12.5f, 13.0f, 13.5f, 14.0f}) expected.push_back(value);
  EXPECT_EQ(Floats(id, "extra"), expected);
  for (int k = 0; k < 10; ++k) {
    ASSERT_OK(AppendExtra(writer_.get(), 100 + 8 * k, 8));
    ASSERT_LE(table_->StepCount(), 40u);
  }
  ASSERT_OK(Drop({"extra"}));
  const std::vector<int32_t> numbers = Numbers(id);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(id), numbers);
}

}  // namespace
}  // namespace geardb
