#include "tests/testing/store_fixture.h"

#include <numeric>

namespace geardb::testing {

DatabaseOptions SmallOptions() {
  DatabaseOptions options;
  options.budgets.frames_bytes = uint64_t{64} << 20;
  options.budgets.index_bytes = uint64_t{256} << 20;
  options.segment_bytes = uint64_t{1} << 20;
  options.ring_bytes = uint64_t{1} << 20;
  return options;
}

TableSpec StepSpec(bool final_row) {
  TableSpec spec;
  spec.name = "steps";
  spec.columns = {
      {.name = "obs", .dtype = DType::kF32, .shape = {2}, .in_final_row = final_row},
      {.name = "action", .dtype = DType::kI32},
      {.name = "reward", .dtype = DType::kF32},
      {.name = "version", .dtype = DType::kU32, .kind = ColumnKind::kPerTrajectory},
      {.name = "score", .dtype = DType::kF32, .kind = ColumnKind::kPerTrajectory},
  };
  spec.final_row = final_row;
  spec.steps_per_page = 4;
  return spec;
}

PriorityTableSpec WindowSpec(std::string name, Extent extent) {
  PriorityTableSpec spec;
  spec.name = std::move(name);
  spec.window.extent = extent;
  spec.alpha = 1;
  spec.seed = kWindowSeed;
  return spec;
}

Rows::Rows(int64_t first, int64_t count) {
  for (int64_t k = first; k < first + count; ++k) {
    obs_.push_back(static_cast<float>(k));
    obs_.push_back(static_cast<float>(k) + 0.5f);
    action_.push_back(static_cast<int32_t>(k));
    reward_.push_back(static_cast<float>(k) / 4);
  }
  const std::span<const float> obs(obs_);
  many_ = {{"obs", TensorView::Of(obs, Shape({count, 2}))},
           {"action", TensorView::Of(std::span<const int32_t>(action_))},
           {"reward", TensorView::Of(std::span<const float>(reward_))}};
  if (count < 1) return;
  one_ = {{"obs", TensorView::Of(obs.first(2))},
          {"action", TensorView::Scalar(action_[0])},
          {"reward", TensorView::Scalar(reward_[0])}};
  final_row_ = {one_[0]};
}

void StoreTest::Open() {
  auto opened = Database::Open(dir_->path(), options_);
  ASSERT_OK(opened);
  database_ = std::move(*opened);
}

void StoreTest::Close() {
  if (database_ == nullptr) return;
  ASSERT_OK(database_->Close());
  writer_.reset();
  priorities_.clear();
  table_.reset();
  database_.reset();
}

void StoreTest::Reopen() {
  Close();
  Open();
}

void StoreTest::OpenEmpty() {
  Close();
  dir_ = std::make_unique<TempDir>();
  Open();
}

void StoreTest::Create(const TableSpec& spec, const WriterOptions& options) {
  ASSERT_NE(database_, nullptr);
  auto table = database_->CreateTable(spec);
  ASSERT_OK(table);
  table_ = std::move(*table);
  auto writer = table_->NewWriter(options);
  ASSERT_OK(writer);
  writer_ = std::move(*writer);
}

void StoreTest::OpenAgain(const std::string& name, const WriterOptions& options) {
  ASSERT_NE(database_, nullptr);
  auto table = database_->OpenTable(name);
  ASSERT_OK(table);
  table_ = std::move(*table);
  auto writer = table_->NewWriter(options);
  ASSERT_OK(writer);
  writer_ = std::move(*writer);
}

Appended StoreTest::Append(int64_t first, int64_t count, End end, uint32_t lane) {
  const Rows rows(first, count);
  const Rows last(first + count, 1);
  AppendOptions options;
  options.lane = lane;
  options.end = end;
  if (table_->spec().final_row && (end == End::kTerminated || end == End::kTruncated)) {
    options.final = last.final_row();
  }
  const auto appended = writer_->AppendSteps(ColumnValues(rows.many()), options);
  EXPECT_OK(appended);
  return appended.ok() ? *appended : Appended();
}

std::vector<int32_t> StoreTest::Numbers(TrajectoryId id, const RowRange& range) const {
  const std::string_view columns[] = {"action"};
  const auto rows = table_->Read(id, columns, range);
  EXPECT_OK(rows);
  if (!rows.ok()) return {};
  const auto values = (*rows)[0].view().values<int32_t>();
  return {values.begin(), values.end()};
}

std::vector<float> StoreTest::Obs(TrajectoryId id) const {
  const std::string_view columns[] = {"obs"};
  const auto rows = table_->Read(id, columns, {});
  EXPECT_OK(rows);
  if (!rows.ok()) return {};
  std::vector<float> firsts;
  const auto view = (*rows)[0].view();
  const auto values = view.values<float>();
  for (size_t i = 0; i < values.size(); i += 2) firsts.push_back(values[i]);
  return firsts;
}

PriorityTable* StoreTest::priority(const std::string& name) {
  priorities_.push_back(table_->priority_table(name));
  EXPECT_NE(priorities_.back(), nullptr) << name;
  return priorities_.back().get();
}

std::vector<int32_t> Count(int32_t first, int32_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace geardb::testing
