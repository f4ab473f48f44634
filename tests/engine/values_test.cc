// Values of any length against a plain model: random programs of appends of all kinds, columns set
// and replaced, removals, trims, reopens and dropped frames; what is read and drawn is compared
// byte by byte.
#include "tests/engine/values_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::Bytes;
using testing::kBigRow;
using testing::kGoal;
using testing::ModelStep;
using testing::ModelTrajectory;
using testing::ValueRowsOf;
using testing::ValuesSpec;

constexpr uint32_t kLanes = 3;

class ValuesTest : public testing::RandomStoreTest<std::mt19937_64> {
 protected:
  void SetUp() override {
    options_.segment_bytes = 4 << 20;
    options_.ring_bytes = 4 << 20;
  }
  void Make(bool final_row, const TableSpec& spec) {
    final_row_ = final_row;
    Open();
    ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = kLanes}));
  }

  /// 0, 1 or many rows.
  uint64_t RandomCount(uint64_t many) {
    const uint64_t kind = Below(4);
    return kind < 2 ? kind : Below(many);
  }
  ModelStep RandomStep() {
    return {.text = RandomBytes(RandomCount(90)),
            .rgb = RandomBytes(3 * RandomCount(9)),
            .big = RandomBytes(Below(8) == 0 ? kBigRow * (1 + Below(2)) : 0)};
  }
  std::vector<ModelStep> RandomSteps(uint64_t count) {
    std::vector<ModelStep> steps;
    for (uint64_t i = 0; i < count; ++i) steps.push_back(RandomStep());
    return steps;
  }

  /// Per-trajectory values of a call, for the model too.
  struct Columns {
    std::optional<Bytes> prompt;
    std::optional<std::vector<float>> goal;
    std::vector<ColumnValue> values;
  };
  void RandomColumns(Columns* columns) {
    if (Below(2) == 0) {
      columns->prompt = RandomBytes(Below(5) == 0 ? 0 : Below(3000));
      columns->values.push_back(
          {"prompt", TensorView::Of(std::span<const uint8_t>(*columns->prompt))});
    }
    if (Below(2) == 0) {
      columns->goal = std::vector<float>(kGoal);
      for (float& value : *columns->goal) value = static_cast<float>(Below(1000));
      columns->values.push_back({"goal", TensorView::Of(std::span<const float>(*columns->goal))});
    }
  }
  static void Set(const Columns& columns, ModelTrajectory* trajectory) {
    if (columns.prompt) trajectory->prompt = columns.prompt;
    if (columns.goal) trajectory->goal = columns.goal;
  }

  /// Rows of a lane, in one call; adds them to the model.
  void AppendTo(uint32_t lane, uint64_t count, End end) {
    const TrajectoryId open = writer_->open_trajectory(lane);
    const auto first = open == 0 ? 0 : static_cast<int64_t>(model_.at(open).steps.size());
    const bool one = count == 1 && Below(2) == 0;
    const ValueRowsOf rows(RandomSteps(count), first, one);
    const bool has_final = final_row_ && (end == End::kTerminated || end == End::kTruncated);
    ModelStep last = RandomStep();
    last.text.clear();
    last.big.clear();
    const ValueRowsOf final({last}, first + static_cast<int64_t>(count), true, true);
    Columns columns;
    RandomColumns(&columns);
    AppendOptions options{.lane = lane, .end = end, .trajectory = columns.values};
    if (has_final) options.final = final.values();
    const auto appended = one ? writer_->Append(rows.values(), options)
                              : writer_->AppendSteps(rows.values(), options);
    ASSERT_OK(appended);
    if (appended->id == 0) return;  // The cut of a first row, in a table with final rows.
    ModelTrajectory& trajectory = model_[appended->id];
    trajectory.steps.insert(trajectory.steps.end(), rows.steps().begin(), rows.steps().end());
    if (has_final) trajectory.steps.push_back(last);
    trajectory.open = end == End::kGo;
    Set(columns, &trajectory);
  }
  void AppendLanes() {
    std::vector<ModelStep> steps = RandomSteps(kLanes);
    std::vector<int64_t> first;
    std::vector<Columns> columns(kLanes);
    // The rows of lanes that skip are given, and left.
    std::vector<End> ends(kLanes, End::kGo);
    ends[Below(kLanes)] = End::kSkip;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const TrajectoryId open = writer_->open_trajectory(lane);
      first.push_back(open == 0 ? 0 : static_cast<int64_t>(model_.at(open).steps.size()));
    }
    const ValueRowsOf rows(steps, 0, false);
    std::vector<ColumnValue> values = rows.values();
    values[0].value = TensorView::Of(std::span<const int64_t>(first));
    Bytes prompts;
    std::vector<uint64_t> offsets = {0};
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      columns[lane].prompt = RandomBytes(Below(300));
      prompts.insert(prompts.end(), columns[lane].prompt->begin(), columns[lane].prompt->end());
      offsets.push_back(prompts.size());
    }
    const std::vector<ColumnValue> trajectory = {
        {"prompt", TensorView::Of(std::span<const uint8_t>(prompts)), offsets}};
    const auto appended = writer_->AppendLanes(values, {.ends = ends, .trajectory = trajectory});
    ASSERT_OK(appended);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (ends[lane] == End::kSkip) continue;
      ModelTrajectory& added = model_[(*appended)[lane].id];
      added.steps.push_back(steps[lane]);
      added.open = true;
      Set(columns[lane], &added);
    }
  }
  void SetSome() {
    const TrajectoryId id = Any();
    if (id == 0) return;
    Columns columns;
    RandomColumns(&columns);
    ASSERT_OK(table_->SetColumns(id, columns.values));
    Set(columns, &model_[id]);
  }
  TrajectoryId Any() {
    if (model_.empty()) return 0;
    auto found = model_.begin();
    std::advance(found, static_cast<ptrdiff_t>(Below(model_.size())));
    return found->first;
  }
  void CutSome() {
    const auto lane = static_cast<uint32_t>(Below(kLanes));
    const TrajectoryId id = writer_->open_trajectory(lane);
    if (id == 0) return;
    ASSERT_OK_AND_ASSIGN(const Appended cut, writer_->Cut(lane));
    if (cut.id == 0) {
      model_.erase(id);
    } else {
      model_[id].open = false;
    }
  }
  void RemoveSome() {
    const TrajectoryId id = Any();
    if (id == 0) return;
    std::optional<uint32_t> writing;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (writer_->open_trajectory(lane) == id) writing = lane;
    }
    ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{id}));
    model_.erase(id);
    // Its writer is told once.
    if (!writing) return;
    EXPECT_STATUS(kNotFound, writer_->Detach(*writing), "was removed");
  }
  void TrimSome() {
    const TrajectoryId id = Any();
    if (id == 0) return;
    ASSERT_OK_AND_ASSIGN(const TrajectoryRecord record, table_->Find(id));
    if (record.steps_end - record.first_row < 2) return;
    const int64_t first =
        record.first_row +
        static_cast<int64_t>(Below(static_cast<uint64_t>(record.steps_end - record.first_row)));
    ASSERT_OK(table_->Truncate(id, first));
    model_[id].first_row = std::max(model_[id].first_row, first);
  }
  void Again() {
    writer_.reset();
    Reopen();
    OpenAgain("values", {.lanes = kLanes});
    // Some go on in any lane, the others stay orphans.
    uint32_t lane = 0;
    for (auto& [id, trajectory] : model_) {
      if (!trajectory.open) continue;
      if (lane < kLanes && Below(3) > 0) {
        ASSERT_OK(writer_->Resume(id, lane++));
      } else {
        trajectory.open = false;
      }
    }
  }
  /// What a capacity has removed, and trimmed, is so in the model.
  void FollowEvictions() {
    std::map<TrajectoryId, int64_t> there;
    for (const TrajectoryRecord& record : table_->Scan(ScanOptions{})) {
      there[record.id] = record.first_row;
    }
    std::erase_if(model_, [&](const auto& entry) { return !there.contains(entry.first); });
    for (auto& [id, trajectory] : model_) trajectory.first_row = there.at(id);
  }

  // What is there.

  template <typename T>
  static std::vector<T> Values(const ColumnRows& rows) {
    const auto values = rows.view().values<T>();
    return {values.begin(), values.end()};
  }
  static void ExpectRagged(const ColumnRows& rows, const ModelTrajectory& model,
                           Bytes ModelStep::*member, size_t row_bytes) {
    const size_t count = model.steps.size() - static_cast<size_t>(model.first_row);
    ASSERT_EQ(rows.offsets.size(), count + 1) << rows.column;
    for (size_t i = 0; i < count; ++i) {
      const Bytes& expected = model.steps[static_cast<size_t>(model.first_row) + i].*member;
      const auto* at = reinterpret_cast<const uint8_t*>(rows.bytes.data());
      const Bytes found(at + static_cast<size_t>(rows.offsets[i]) * row_bytes,
                        at + static_cast<size_t>(rows.offsets[i + 1]) * row_bytes);
      ASSERT_EQ(found, expected) << rows.column << " of row " << model.first_row << " + " << i;
    }
  }
  void ExpectAll() {
    ASSERT_EQ(table_->Count(), model_.size());
    const std::vector<std::string_view> columns = {"row", "text", "rgb", "big", "prompt", "goal"};
    for (const auto& [id, model] : model_) {
      SCOPED_TRACE("trajectory " + std::to_string(id));
      ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id, columns, {}));
      ASSERT_EQ(rows[0].shape[0], static_cast<int64_t>(model.steps.size()) - model.first_row);
      ExpectRagged(rows[1], model, &ModelStep::text, 1);
      ExpectRagged(rows[2], model, &ModelStep::rgb, 3);
      ExpectRagged(rows[3], model, &ModelStep::big, kBigRow);
      EXPECT_EQ(Values<uint8_t>(rows[4]), model.prompt.value_or(Bytes()));
      EXPECT_EQ(Values<float>(rows[5]), model.goal.value_or(std::vector<float>(kGoal, 1.5f)));
      EXPECT_EQ(rows[5].shape, Shape({kGoal}));
    }
  }
  /// Entries of a batch: "row" says which rows they show, -1 none.
  void ExpectEntries(const Batch& batch, std::string_view name, Bytes ModelStep::*member,
                     size_t row_bytes) {
    const auto shown = batch["row"].values<int64_t>();
    ASSERT_OK_AND_ASSIGN(const auto offsets, batch.Offsets(name));
    ASSERT_EQ(offsets.size(), shown.size() + 1) << name;
    ASSERT_OK_AND_ASSIGN(const auto cu, batch.CuSeqlens("row"));
    const size_t each = shown.size() / static_cast<size_t>(batch.size());
    const auto* bytes = static_cast<const uint8_t*>(batch[name].bytes);
    for (size_t e = 0; e < shown.size(); ++e) {
      size_t item = cu.empty() ? e / each : 0;
      while (!cu.empty() && static_cast<int64_t>(e) >= cu[item + 1]) ++item;
      const ModelTrajectory& model = model_.at(batch.trajectory_ids()[item]);
      const Bytes found(bytes + static_cast<size_t>(offsets[e]) * row_bytes,
                        bytes + static_cast<size_t>(offsets[e + 1]) * row_bytes);
      const Bytes expected =
          shown[e] < 0 ? Bytes() : model.steps[static_cast<size_t>(shown[e])].*member;
      ASSERT_EQ(found, expected) << name << ", entry " << e << ", row " << shown[e];
    }
    EXPECT_EQ(batch[name].shape[0], offsets.back());
  }
  void ExpectBatch(const std::string& priority_table, BatchLayout layout) {
    ASSERT_OK_AND_ASSIGN(const auto priority, table_->OpenPriorityTable(priority_table));
    if (priority->Stats().items == 0) return;
    const ViewRows rows =
        priority_table == "windows" ? ViewRows{.begin = -1, .plus = 1} : ViewRows{};
    ASSERT_OK_AND_ASSIGN(
        const auto sampler,
        priority->NewSampler({.batch = 5,
                              .views = {{.column = "row", .rows = rows, .pad_value = -1},
                                        {.column = "text", .rows = rows, .masks = true},
                                        {.column = "rgb", .rows = rows},
                                        {.column = "big", .rows = rows},
                                        {.column = "prompt"},
                                        {.column = "goal"}},
                              .layout = layout}));
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    ExpectEntries(batch, "text", &ModelStep::text, 1);
    ExpectEntries(batch, "rgb", &ModelStep::rgb, 3);
    ExpectEntries(batch, "big", &ModelStep::big, kBigRow);
    ASSERT_OK_AND_ASSIGN(const auto prompts, batch.Offsets("prompt"));
    const auto prompt = batch["prompt"].values<uint8_t>();
    const auto goal = batch["goal"].values<float>();
    EXPECT_EQ(batch["goal"].shape, Shape({batch.size(), kGoal}));
    ASSERT_EQ(prompts.size(), static_cast<size_t>(batch.size()) + 1);
    for (size_t i = 0; i < static_cast<size_t>(batch.size()); ++i) {
      const ModelTrajectory& model = model_.at(batch.trajectory_ids()[i]);
      EXPECT_EQ(Bytes(prompt.begin() + prompts[i], prompt.begin() + prompts[i + 1]),
                model.prompt.value_or(Bytes()));
      const auto first = goal.begin() + static_cast<ptrdiff_t>(i * kGoal);
      EXPECT_EQ(std::vector<float>(first, first + static_cast<ptrdiff_t>(kGoal)),
                model.goal.value_or(std::vector<float>(kGoal, 1.5f)));
    }
  }
  /// Whatever a companion holds is its owner's.
  void ExpectNothingIsLeft() {
    const auto core = testing::CoreOf(*database_)->FindTable("values");
    MutexLock lock(&core->state->mutex);
    for (const auto& companion : core->companions) {
      companion->state->trajectories().ForEach(
          [&](Slot slot, const index::TrajectoryRecord& record) {
            EXPECT_NE(core->state->trajectories().record(slot).state, index::TrajectoryState::kFree)
                << companion->layout().spec().name << " " << record.id;
          });
    }
    EXPECT_EQ(core->plan->companion_bytes(), core->state->companion_frame_bytes());
  }
  void ExpectTheSame() {
    ExpectAll();
    for (const BatchLayout layout : {BatchLayout::kPadded, BatchLayout::kPacked}) {
      ExpectBatch("windows", layout);
      ExpectBatch("whole", layout);
    }
    ExpectNothingIsLeft();
  }

  void Step() {
    const auto lane = static_cast<uint32_t>(Below(kLanes));
    constexpr End kEnds[] = {End::kGo, End::kGo, End::kTerminated, End::kTruncated, End::kCut};
    switch (Below(14)) {
      case 0:
      case 1:
      case 2:
        return AppendTo(lane, 1, End::kGo);
      case 3:
      case 4:
      case 5:
        return AppendTo(lane, 1 + Below(9), kEnds[Below(5)]);
      case 6:
      case 7:
        return AppendLanes();
      case 8:
        return SetSome();
      case 9:
        return CutSome();
      case 10:
        return RemoveSome();
      case 11:
        return TrimSome();
      case 12:
        (void)testing::DropFrames(*database_);
        return;
      default:
        if (Below(3) == 0) Again();
    }
  }
  void RunProgram(uint64_t seed, bool final_row, const TableSpec& spec, int steps) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    model_.clear();
    writer_.reset();
    table_.reset();
    database_.reset();
    dir_ = std::make_unique<testing::TempDir>();
    Make(final_row, spec);
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      Step();
      if (spec.steps_max + spec.bytes_max + spec.trajectories_max > 0) FollowEvictions();
      if (i % 8 == 7) ExpectTheSame();
    }
    if (HasFailure()) return;
    Again();
    ExpectTheSame();
    ASSERT_OK(table_->Remove(IdRange(0, UINT64_MAX)));
    const auto core = testing::CoreOf(*database_)->FindTable("values");
    MutexLock lock(&core->state->mutex);
    EXPECT_EQ(core->state->companion_frame_bytes(), 0u);
    EXPECT_EQ(core->plan->companion_bytes(), 0u);
  }

  bool final_row_ = false;
  std::map<TrajectoryId, ModelTrajectory> model_;
};

TEST_F(ValuesTest, RandomProgramsEqualTheModel) {
  for (uint64_t seed = 1; seed <= testing::ShareOf(12) && !HasFailure(); ++seed) {
    RunProgram(seed, seed % 2 == 0, ValuesSpec(seed % 2 == 0), 120);
  }
}

TEST_F(ValuesTest, WhatACapacityRemovesGoesWithItsValues) {
  for (uint64_t seed = 1; seed <= testing::ShareOf(9) && !HasFailure(); ++seed) {
    TableSpec spec = ValuesSpec(false);
    if (seed % 3 == 0) spec.steps_max = 40;
    if (seed % 3 == 1) spec.bytes_max = 3 << 20;
    if (seed % 3 == 2) spec.trajectories_max = 6;
    RunProgram(100 + seed, false, spec, 150);
    if (HasFailure() || spec.bytes_max == 0) continue;
    EXPECT_LE(table_->Stats().frame_bytes, spec.bytes_max);
  }
}

}  // namespace
}  // namespace geardb
