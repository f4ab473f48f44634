// Patches of ragged columns: late groups filled and filled anew, values of closed trajectories
// replaced, beside appends, trims, reopens, dropped frames and a log that moves to the cold store;
// all of it compared with a plain model.
#include "tests/engine/values_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::Bytes;
using Floats = std::vector<float>;

/// Of a trajectory: what each row from 0 on has.
struct ModelRow {
  Bytes text = {};
  Floats logps = {};
  float value = -1;
};
struct PatchedRows {
  std::vector<ModelRow> rows;
  int64_t first_row = 0;
  size_t filled = 0;
};

class ValuesPatchTest : public testing::RandomStoreTest<std::mt19937> {
 protected:
  /// "row" and ragged "text" are appended; ragged "logps" and "value" are in the late group "late".
  static TableSpec Spec() {
    TableSpec spec;
    spec.name = "values";
    spec.steps_per_page = 4;
    spec.expected_steps = 8;
    spec.groups = {{.name = "late", .late = true}};
    spec.columns = {
        {.name = "row", .dtype = DType::kI64},
        {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged, .expected_rows = 30},
        {.name = "logps", .kind = ColumnKind::kRagged, .group = "late", .expected_rows = 10},
        {.name = "value", .group = "late", .default_value = -1}};
    return spec;
  }

  Bytes RandomText() { return RandomBytes(Below(3) == 0 ? 0 : Below(70)); }
  Floats RandomLogps() {
    Floats values(Below(3) == 0 ? 0 : Below(80));
    for (float& value : values) value = static_cast<float>(Below(1000));
    return values;
  }
  template <typename T>
  struct Joined {
    std::vector<T> values = {};
    std::vector<uint64_t> offsets = {0};
    void Add(const std::vector<T>& value) {
      values.insert(values.end(), value.begin(), value.end());
      offsets.push_back(values.size());
    }
    ColumnValue Of(std::string_view name) const {
      return {name, TensorView::Of(std::span<const T>(values)), offsets};
    }
  };

  TrajectoryId Append(int64_t count, End end) {
    const TrajectoryId open = writer_->open_trajectory(0);
    PatchedRows model = open == 0 ? PatchedRows() : model_.at(open);
    std::vector<int64_t> rows;
    Joined<uint8_t> text;
    for (int64_t i = 0; i < count; ++i) {
      rows.push_back(static_cast<int64_t>(model.rows.size()));
      text.Add(model.rows.emplace_back(ModelRow{.text = RandomText()}).text);
    }
    const std::vector<ColumnValue> values = {
        {"row", TensorView::Of(std::span<const int64_t>(rows))}, text.Of("text")};
    const auto appended = writer_->AppendSteps(values, {.end = end});
    EXPECT_OK(appended);
    if (!appended.ok()) return 0;
    model_[appended->id] = model;
    return appended->id;
  }
  bool IsOpen(TrajectoryId id) const { return writer_->open_trajectory(0) == id; }
  TrajectoryId Any() {
    return std::next(model_.begin(), static_cast<ptrdiff_t>(Below(model_.size())))->first;
  }

  /// Of one call: rows of some trajectories, with values for the columns asked for.
  void PatchSome(bool late) {
    std::vector<RowSpan> spans;
    Joined<uint8_t> text;
    Joined<float> logps;
    Floats value;
    const bool with_value = late && Below(2) == 0;
    uint64_t stale = 0;
    for (uint64_t more = 1 + Below(3); more > 0; --more) {
      const TrajectoryId id = Any();
      PatchedRows& model = model_[id];
      if (!late && IsOpen(id)) continue;
      const size_t end = late ? std::min(model.filled + 1, model.rows.size()) : model.rows.size();
      const size_t first = Below(4) == 0 ? 0 : Below(end);
      const size_t count =
          first == 0 && Below(2) == 0 ? model.rows.size() : 1 + Below(model.rows.size() - first);
      spans.push_back({id, static_cast<int64_t>(first), static_cast<int64_t>(count)});
      for (size_t row = first; row < first + count; ++row) {
        ModelRow& to = model.rows[row];
        stale += static_cast<int64_t>(row) < model.first_row ? 1 : 0;
        if (late) {
          logps.Add(to.logps = RandomLogps());
          if (with_value) value.push_back(to.value = static_cast<float>(Below(100)));
        } else {
          text.Add(to.text = RandomText());
        }
      }
      if (late) model.filled = std::max(model.filled, first + count);
    }
    if (spans.empty()) return;
    std::vector<ColumnValue> values;
    if (with_value) values.push_back({"value", TensorView::Of(std::span<const float>(value))});
    values.push_back(late ? logps.Of("logps") : text.Of("text"));
    ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome, table_->Patch(spans, values));
    const size_t rows = (late ? logps.offsets : text.offsets).size() - 1;
    EXPECT_EQ(outcome.applied + outcome.stale, rows);
    EXPECT_EQ(outcome.stale, stale);
    ++patches_;
  }
  void ReopenAll() {
    const TrajectoryId open = writer_->open_trajectory(0);
    writer_.reset();
    Reopen();
    images_ += database_->recovery().image > 0 ? 1 : 0;
    OpenAgain("values");
    if (open == 0) return;
    ASSERT_OK(writer_->Resume(open));
  }
  void Step() {
    switch (Below(14)) {
      case 0:
        if (model_.size() > 5 && !IsOpen(model_.begin()->first)) {
          ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{model_.begin()->first}));
          model_.erase(model_.begin());
        }
        return;
      case 1: {
        if (model_.empty()) return;
        const TrajectoryId id = Any();
        PatchedRows& model = model_[id];
        const auto rows = static_cast<int64_t>(model.rows.size());
        if (rows - model.first_row < 2) return;
        model.first_row +=
            1 + static_cast<int64_t>(Below(static_cast<uint64_t>(rows - model.first_row - 1)));
        ASSERT_OK(table_->Truncate(id, model.first_row));
        return;
      }
      case 2:
        if (Below(5) == 0) ReopenAll();
        return;
      case 3:
        testing::DropFrames(*database_);
        return;
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
        if (!model_.empty()) PatchSome(true);
        return;
      case 9:
        if (!model_.empty()) PatchSome(false);
        return;
      default:
        Append(1 + static_cast<int64_t>(Below(7)), Below(2) == 0 ? End::kGo : End::kTerminated);
    }
  }
  void CheckAll() {
    const std::vector<std::string_view> names = {"text", "logps", "value"};
    ASSERT_EQ(table_->Count(), model_.size());
    for (const auto& [id, model] : model_) {
      SCOPED_TRACE("trajectory " + std::to_string(id));
      ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, names, {}));
      Joined<uint8_t> text;
      Joined<float> logps;
      Floats value;
      for (size_t row = static_cast<size_t>(model.first_row); row < model.rows.size(); ++row) {
        text.Add(model.rows[row].text);
        logps.Add(model.rows[row].logps);
        value.push_back(model.rows[row].value);
      }
      const auto found_text = read[0].view().values<uint8_t>();
      const auto found_logps = read[1].view().values<float>();
      const auto found_value = read[2].view().values<float>();
      ASSERT_EQ(Bytes(found_text.begin(), found_text.end()), text.values);
      ASSERT_EQ(Floats(found_logps.begin(), found_logps.end()), logps.values);
      ASSERT_EQ(Floats(found_value.begin(), found_value.end()), value);
      ASSERT_EQ(std::vector<uint64_t>(read[0].offsets.begin(), read[0].offsets.end()),
                text.offsets);
      ASSERT_EQ(std::vector<uint64_t>(read[1].offsets.begin(), read[1].offsets.end()),
                logps.offsets);
      EXPECT_EQ(*table_->Filled(id, "late"),
                std::max(static_cast<int64_t>(model.filled), model.first_row));
    }
    const auto core = testing::CoreOf(*database_)->FindTable("values");
    MutexLock lock(&core->state->mutex);
    EXPECT_EQ(core->plan->companion_bytes(), core->state->companion_frame_bytes());
  }

  std::map<TrajectoryId, PatchedRows> model_;
  int images_ = 0;
  int patches_ = 0;
};

TEST_F(ValuesPatchTest, RandomPrograms) {
  const auto programs = static_cast<uint32_t>(testing::ShareOf(8));
  for (uint32_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    options_ = testing::SmallOptions();
    options_.segment_bytes = 64 << 10;
    options_.ring_bytes = 64 << 10;
    if (seed % 2 == 1) options_.log_bytes_max = 256 << 10;
    OpenEmpty();
    Create(Spec());
    model_.clear();
    random_.seed(seed);
    for (int step = 0; step < 300 && !HasFatalFailure(); ++step) {
      Step();
      if (step % 10 == 9) CheckAll();
    }
    if (HasFailure()) return;
    ReopenAll();
    CheckAll();
    if (HasFailure()) return;
  }
  EXPECT_GT(patches_, 20 * static_cast<int>(programs));
  if (programs > 4) {
    EXPECT_GT(images_, 2);
  }
}

// Who sets all values of a column again and again keeps no more than a page beside the last ones.
TEST_F(ValuesPatchTest, ValuesThatNobodyShowsAreGivenBack) {
  Create(Spec());
  const TrajectoryId id = Append(20, End::kTerminated);
  const auto fill = [&] {
    Joined<float> logps;
    for (int row = 0; row < 20; ++row) logps.Add(Floats(10, 1));
    const RowSpan span{id, 0, 20};
    const ColumnValue value = logps.Of("logps");
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  };
  fill();
  fill();
  const uint64_t held = table_->Stats().frame_bytes;
  for (int i = 0; i < 40; ++i) fill();
  EXPECT_LE(table_->Stats().frame_bytes, held + 1024);
  writer_.reset();
  Reopen();
  OpenAgain("values");
  EXPECT_LE(table_->Stats().frame_bytes, held + 1024);
  const std::string_view name = "logps";
  ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, {&name, 1}, {}));
  EXPECT_EQ(read[0].shape, Shape({200}));
}

// Nor who sets one of them again and again, for ever.
TEST_F(ValuesPatchTest, ThoseBeforeOneValueThatIsSetOftenAreGivenBack) {
  Create(Spec());
  const TrajectoryId id = Append(4, End::kTerminated);
  std::vector<Floats> model;
  const auto set = [&](int64_t first, size_t rows, float number) {
    Joined<float> logps;
    for (size_t i = 0; i < rows; ++i) {
      const size_t row = static_cast<size_t>(first) + i;
      if (row == model.size()) model.emplace_back();
      logps.Add(model[row] = Floats(500 + row, number));
    }
    const RowSpan span{id, first, static_cast<int64_t>(rows)};
    const ColumnValue value = logps.Of("logps");
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  };
  // The last row is not filled.
  set(0, 3, 0);
  const uint64_t before = table_->Stats().frame_bytes;
  for (int i = 1; i <= 300; ++i) {
    set(1, 1, static_cast<float>(i));
    ASSERT_LE(table_->Stats().frame_bytes, 5 * before) << i;
  }
  set(3, 1, 301);
  for (const bool again : {false, true}) {
    if (again) {
      writer_.reset();
      Reopen();
      OpenAgain("values");
    }
    const std::string_view name = "logps";
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, {&name, 1}, {}));
    Floats expected;
    for (const Floats& row : model) expected.insert(expected.end(), row.begin(), row.end());
    const auto found = read[0].view().values<float>();
    EXPECT_EQ(Floats(found.begin(), found.end()), expected);
  }
}

TEST_F(ValuesPatchTest, WhatIsWrongIsRefusedAndChangesNothing) {
  Create(Spec());
  const TrajectoryId id = Append(4, End::kGo);
  const auto patch = [&](const RowSpan& span, std::vector<ColumnValue> values) {
    return table_->Patch({&span, 1}, values);
  };
  Joined<float> two;
  two.Add({1, 2});
  two.Add({3});
  Joined<uint8_t> text;
  text.Add({1});
  const uint64_t frames = table_->Stats().frame_bytes;
  EXPECT_STATUS(kInvalidArgument, patch({id, 1, 2}, {two.Of("logps")}), "would leave a gap");
  EXPECT_STATUS(kInvalidArgument, patch({id, 0, 3}, {two.Of("logps")}), "for more");
  EXPECT_STATUS(kInvalidArgument, patch({id, 3, 2}, {two.Of("logps")}), "ends at row 4");
  EXPECT_STATUS(kInvalidArgument, patch({id, 0, 2}, {two.Of("logps"), two.Of("logps")}), "twice");
  EXPECT_STATUS(kInvalidArgument, patch({id, 0, 1}, {text.Of("logps")}), "takes f32[rows]");
  const Floats three(3);
  EXPECT_STATUS(kInvalidArgument,
                patch({id, 0, 2},
                      {{"value", TensorView::Of(std::span<const float>(three))}, two.Of("logps")}),
                "with 2 values, the one before it with 3 rows");
  EXPECT_STATUS(kFailedPrecondition, patch({id, 0, 1}, {text.Of("text")}), "is not closed");
  EXPECT_EQ(table_->Stats().frame_bytes, frames);
  ASSERT_OK(patch({id, 0, 2}, {two.Of("logps")}));
  ASSERT_OK_AND_ASSIGN(const PatchOutcome gone, patch({id + 7, 0, 2}, {two.Of("logps")}));
  EXPECT_EQ(gone.stale, 2u);
  EXPECT_EQ(gone.applied, 0u);
}

// Items that require the group wait for its values, and batches show them.
TEST_F(ValuesPatchTest, ItemsWaitForThem) {
  TableSpec spec = Spec();
  PriorityTableSpec windows = testing::WindowSpec("windows");
  windows.selector = SelectorKind::kFifo;
  windows.required = {"late"};
  spec.priority_tables = {windows};
  Create(spec);
  const TrajectoryId id = Append(3, End::kTerminated);
  EXPECT_EQ(priority("windows")->Count(), 0u);
  Joined<float> logps;
  logps.Add({1, 2});
  logps.Add({});
  const RowSpan span{id, 0, 2};
  const ColumnValue value = logps.Of("logps");
  ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  EXPECT_EQ(priority("windows")->Count(), 2u);
  SamplerOptions options{.batch = 2};
  options.views = {{.column = "logps"}};
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("windows")->NewSampler(options));
  ASSERT_OK_AND_ASSIGN(const auto batch, sampler->Next());
  const auto found = batch["logps"].values<float>();
  EXPECT_EQ(Floats(found.begin(), found.end()), (Floats{1, 2}));
  ASSERT_OK_AND_ASSIGN(const auto offsets, batch.Offsets("logps"));
  EXPECT_EQ(std::vector<int64_t>(offsets.begin(), offsets.end()), (std::vector<int64_t>{0, 2, 2}));
}

}  // namespace
}  // namespace geardb
