// Columns of values of any length that are added and dropped while a table is used: random programs
// against a plain model, with writers of all ages, reopens, dropped frames and a log that is moved
// to the cold store; and what becomes of their memory.
#include <set>

#include "tests/engine/values_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::Bytes;

constexpr size_t kGoalSize = 20;

enum class Kind { kText, kPairs, kBlob, kWide };

/// A column that came: values of steps, or one of the trajectory, as bytes.
struct ModelColumn {
  Kind kind = Kind::kText;
  std::string name;
  uint8_t fill = 0;  // Of a wide one: the default of its elements.
};
/// What was given of a column, by its number among all that ever came.
struct ModelRows {
  std::map<size_t, std::vector<Bytes>> steps;  // From the row on where the first was given.
  std::map<size_t, int64_t> begins;            // That row.
  std::map<size_t, Bytes> whole;
  int64_t rows_end = 0;
  int64_t first_row = 0;
};

class ValuesColumnsTest : public testing::RandomStoreTest<std::mt19937> {
 protected:
  static Column ColumnOf(const ModelColumn& model) {
    Column column{.name = model.name, .dtype = DType::kU8};
    switch (model.kind) {
      case Kind::kText:
        column.kind = ColumnKind::kRagged;
        column.expected_rows = 20;
        break;
      case Kind::kPairs:
        column.kind = ColumnKind::kRagged;
        column.shape = {2};
        break;
      case Kind::kBlob:
        column.kind = ColumnKind::kBlob;
        break;
      case Kind::kWide:
        column.kind = ColumnKind::kPerTrajectory;
        column.dtype = DType::kI32;
        column.shape = {kGoalSize};
        column.default_value = model.fill;
        break;
    }
    return column;
  }
  static bool IsStep(Kind kind) { return kind == Kind::kText || kind == Kind::kPairs; }

  Bytes RandomValue(Kind kind) {
    switch (kind) {
      case Kind::kText:
        return RandomBytes(Below(3) == 0 ? 0 : Below(60));
      case Kind::kPairs:
        return RandomBytes(2 * Below(5));
      case Kind::kBlob:
        return RandomBytes(Below(4) == 0 ? 0 : Below(40'000));
      case Kind::kWide:
        return RandomBytes(4 * kGoalSize);
    }
    return {};
  }
  static TensorView View(Kind kind, const Bytes& bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    if (kind == Kind::kPairs) return TensorView(bytes.data(), DType::kU8, {size / 2, 2});
    if (kind == Kind::kWide) return TensorView(bytes.data(), DType::kI32, {kGoalSize});
    return TensorView(bytes.data(), DType::kU8, {size});
  }

  // ---- What a program does.

  void AddSome() {
    if (there_.size() > 5) return DropOne();
    std::vector<Column> columns;
    for (uint64_t more = 1 + Below(2); more > 0; --more) {
      ModelColumn& model = columns_.emplace_back();
      model.kind = static_cast<Kind>(Below(4));
      model.fill = static_cast<uint8_t>(Below(9));
      // Names come again once they are free.
      for (int i = 0; model.name.empty(); ++i) {
        const std::string name = "c" + std::to_string(i);
        bool taken = false;
        for (const size_t there : there_) taken |= columns_[there].name == name;
        if (!taken) model.name = name;
      }
      there_.insert(columns_.size() - 1);
      columns.push_back(ColumnOf(model));
    }
    ASSERT_OK(table_->AddColumns(columns));
  }
  void DropOne() {
    if (there_.empty()) return;
    const size_t number = *std::next(there_.begin(), static_cast<ptrdiff_t>(Below(there_.size())));
    const std::string_view names[] = {columns_[number].name};
    ASSERT_OK(table_->DropColumns(names));
    there_.erase(number);
  }
  void NewWriter() {
    if (Below(2) == 0) {
      writer_.reset();  // Else it stays beside the new one.
    } else if (old_writer_ == nullptr) {
      old_writer_ = std::move(writer_);
      old_known_ = known_;
    }
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
    known_ = there_;
  }
  void AppendBy(Writer* writer, const std::set<size_t>& known) {
    const TrajectoryId open = writer->open_trajectory(0);
    const int64_t first = open == 0 ? 0 : model_.at(open).rows_end;
    const uint64_t count = 1 + Below(6);
    std::vector<int64_t> rows(count);
    for (uint64_t i = 0; i < count; ++i) rows[i] = first + static_cast<int64_t>(i);
    struct Given {
      std::vector<Bytes> values;
      Bytes joined;
      std::vector<uint64_t> offsets = {0};
    };
    std::map<size_t, Given> given;
    std::vector<ColumnValue> steps = {{"row", TensorView::Of(std::span<const int64_t>(rows))}};
    std::vector<ColumnValue> whole;
    for (const size_t number : known) {
      const ModelColumn& column = columns_[number];
      Given& to = given[number];
      if (!IsStep(column.kind)) {
        if (Below(2) == 0) {
          given.erase(number);
          continue;
        }
        to.joined = RandomValue(column.kind);
        whole.push_back({column.name, View(column.kind, to.joined)});
        continue;
      }
      for (uint64_t i = 0; i < count; ++i) {
        const Bytes& value = to.values.emplace_back(RandomValue(column.kind));
        to.joined.insert(to.joined.end(), value.begin(), value.end());
        to.offsets.push_back(to.joined.size() / (column.kind == Kind::kPairs ? 2 : 1));
      }
      ColumnValue value{column.name, View(column.kind, to.joined)};
      value.offsets = to.offsets;
      steps.push_back(value);
    }
    const End end = Below(3) == 0 ? End::kGo : End::kTerminated;
    ASSERT_OK_AND_ASSIGN(const Appended appended,
                         writer->AppendSteps(steps, {.end = end, .trajectory = whole}));
    ModelRows& model = model_[appended.id];
    for (const auto& [number, one] : given) {
      if (!IsStep(columns_[number].kind)) {
        model.whole[number] = one.joined;
        continue;
      }
      model.begins.try_emplace(number, first);
      auto& values = model.steps[number];
      values.insert(values.end(), one.values.begin(), one.values.end());
    }
    model.rows_end = first + static_cast<int64_t>(count);
  }
  void SetOne() {
    if (there_.empty() || model_.empty()) return;
    const size_t number = *std::next(there_.begin(), static_cast<ptrdiff_t>(Below(there_.size())));
    const ModelColumn& column = columns_[number];
    if (IsStep(column.kind)) return;
    const TrajectoryId id = Any();
    const Bytes value = RandomValue(column.kind);
    const ColumnValue given[] = {{column.name, View(column.kind, value)}};
    ASSERT_OK(table_->SetColumns(id, given));
    model_[id].whole[number] = value;
  }
  TrajectoryId Any() {
    return std::next(model_.begin(), static_cast<ptrdiff_t>(Below(model_.size())))->first;
  }
  void RemoveOne() {
    if (model_.size() < 6) return;
    const TrajectoryId id = Any();
    if (IsOpen(id)) return;
    ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{id}));
    model_.erase(id);
  }
  bool IsOpen(TrajectoryId id) const {
    return writer_->open_trajectory(0) == id ||
           (old_writer_ != nullptr && old_writer_->open_trajectory(0) == id);
  }
  void TrimOne() {
    if (model_.empty()) return;
    const TrajectoryId id = Any();
    ModelRows& model = model_[id];
    if (model.rows_end - model.first_row < 2) return;
    model.first_row += 1 + static_cast<int64_t>(
                               Below(static_cast<uint64_t>(model.rows_end - model.first_row - 1)));
    ASSERT_OK(table_->Truncate(id, model.first_row));
  }
  void ReopenAll() {
    writer_.reset();
    old_writer_.reset();
    Reopen();
    images_ += database_->recovery().image > 0 ? 1 : 0;
    OpenAgain("values");
    known_ = there_;
  }
  void Step() {
    switch (Below(16)) {
      case 0:
      case 1:
        return AddSome();
      case 2:
        return DropOne();
      case 3:
        return NewWriter();
      case 4:
        return SetOne();
      case 5:
        return RemoveOne();
      case 6:
        return TrimOne();
      case 7:
        if (Below(4) == 0) ReopenAll();
        return;
      case 8:
        testing::DropFrames(*database_);
        return;
      case 9: {  // Another table takes the next numbers.
        TableSpec other = Spec();
        other.name = "other" + std::to_string(others_++);
        other.columns.push_back(ColumnOf({.kind = Kind::kBlob, .name = "blob"}));
        ASSERT_OK(database_->CreateTable(other));
        return;
      }
      default:
        if (old_writer_ != nullptr && Below(3) == 0) {
          AppendBy(old_writer_.get(), old_known_);
        } else {
          AppendBy(writer_.get(), known_);
        }
    }
  }

  // ---- What is there.

  void CheckAll() {
    std::vector<std::string_view> names;
    for (const size_t number : there_) names.push_back(columns_[number].name);
    ASSERT_EQ(table_->spec().columns.size(), 1 + there_.size());
    ASSERT_EQ(table_->Count(), model_.size());
    if (names.empty()) return;
    for (const auto& [id, model] : model_) {
      ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, names, {}));
      size_t i = 0;
      for (const size_t number : there_) CheckColumn(number, model, read[i++]);
      if (HasFailure()) {
        ADD_FAILURE() << "trajectory " << id;
        return;
      }
    }
  }
  void CheckColumn(size_t number, const ModelRows& model, const ColumnRows& read) {
    const ModelColumn& column = columns_[number];
    const auto* bytes = static_cast<const uint8_t*>(read.view().bytes);
    const auto count = static_cast<size_t>(read.shape.elements()) * DTypeBytes(read.dtype);
    const Bytes found(bytes, bytes + count);
    if (!IsStep(column.kind)) {
      Bytes expected;
      if (const auto given = model.whole.find(number); given != model.whole.end()) {
        expected = given->second;
      } else if (column.kind == Kind::kWide) {
        const std::vector<int32_t> fill(kGoalSize, column.fill);
        const auto* raw = reinterpret_cast<const uint8_t*>(fill.data());
        expected.assign(raw, raw + 4 * kGoalSize);
      }
      EXPECT_EQ(found, expected) << column.name;
      return;
    }
    const size_t row_bytes = column.kind == Kind::kPairs ? 2 : 1;
    Bytes expected;
    std::vector<int64_t> offsets = {0};
    const auto given = model.steps.find(number);
    for (int64_t row = model.first_row; row < model.rows_end; ++row) {
      if (given != model.steps.end() && row >= model.begins.at(number)) {
        const auto at = static_cast<size_t>(row - model.begins.at(number));
        if (at < given->second.size()) {
          const Bytes& value = given->second[at];
          expected.insert(expected.end(), value.begin(), value.end());
        }
      }
      offsets.push_back(static_cast<int64_t>(expected.size() / row_bytes));
    }
    EXPECT_EQ(found, expected) << column.name;
    EXPECT_EQ(std::vector<int64_t>(read.offsets.begin(), read.offsets.end()), offsets)
        << column.name;
  }

  static TableSpec Spec() {
    TableSpec spec;
    spec.name = "values";
    spec.steps_per_page = 4;
    spec.expected_steps = 8;
    spec.columns = {{.name = "row", .dtype = DType::kI64}};
    return spec;
  }
  void Begin(uint32_t seed) {
    random_.seed(seed);
    columns_.clear();
    there_.clear();
    known_.clear();
    old_writer_.reset();
    model_.clear();
    others_ = 0;
    OpenEmpty();
    Create(Spec());
  }

  std::vector<ModelColumn> columns_;  // All that ever came.
  std::set<size_t> there_;            // Of these.
  std::set<size_t> known_;            // To the writer.
  std::unique_ptr<Writer> old_writer_;
  std::set<size_t> old_known_;
  std::map<TrajectoryId, ModelRows> model_;
  int others_ = 0;
  int images_ = 0;
};

TEST_F(ValuesColumnsTest, RandomPrograms) {
  const auto programs = static_cast<uint32_t>(testing::ShareOf(8));
  for (uint32_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    options_.segment_bytes = 128 << 10;
    options_.ring_bytes = 256 << 10;
    options_.log_bytes_max = seed % 2 == 0 ? 0 : 1 << 20;
    if (options_.log_bytes_max == 0) options_.log_bytes_max = DatabaseOptions().log_bytes_max;
    Begin(seed);
    for (int step = 0; step < 250 && !HasFatalFailure(); ++step) {
      Step();
      if (step % 10 == 9) CheckAll();
    }
    if (HasFailure()) return;
    ReopenAll();
    CheckAll();
    if (HasFailure()) return;
  }
  if (programs > 4) {
    EXPECT_GT(images_, 2);
  }
}

// What a dropped column had leaves memory at once, and the log and the cold store in time.
TEST_F(ValuesColumnsTest, ADroppedColumnGivesItsSpaceBack) {
  options_.segment_bytes = 128 << 10;
  options_.ring_bytes = 256 << 10;
  options_.log_bytes_max = 2 << 20;
  OpenEmpty();
  Create(Spec());
  const std::vector<Column> columns = {
      {.name = "big", .dtype = DType::kU8, .kind = ColumnKind::kBlob},
      {.name = "words", .dtype = DType::kU8, .kind = ColumnKind::kRagged}};
  ASSERT_OK(table_->AddColumns(columns));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  const Bytes big(60 << 10, 3);
  const std::vector<uint64_t> offsets = {0, big.size()};
  const int64_t row[] = {0};
  const auto append = [&](End end) {
    const ColumnValue whole[] = {{"big", TensorView::Of(std::span<const uint8_t>(big))}};
    const ColumnValue words{"words", TensorView::Of(std::span<const uint8_t>(big)), offsets};
    const std::vector<ColumnValue> steps = {{"row", TensorView::Of(std::span<const int64_t>(row))},
                                            words};
    ASSERT_OK(writer_->AppendSteps(steps, {.end = end, .trajectory = whole}));
  };
  for (int i = 0; i < 64; ++i) append(End::kTerminated);
  append(End::kGo);
  const auto core = testing::CoreOf(*database_);
  const size_t tables = core->AllTables().size();
  const uint64_t before = table_->Stats().frame_bytes;
  ASSERT_GT(before, 64 * 2 * big.size());
  ASSERT_OK(table_->DropColumns(std::vector<std::string_view>{"big"}));
  EXPECT_EQ(core->AllTables().size(), tables - 1);
  const uint64_t after = table_->Stats().frame_bytes;
  EXPECT_LT(after, before - 64 * big.size());
  append(End::kGo);  // By the writer that knew it; it still gives it.
  const uint64_t grown = table_->Stats().frame_bytes - after;
  EXPECT_LE(grown, big.size() + (8 << 10)) << "nothing is kept of it";
  ASSERT_OK(table_->DropColumns(std::vector<std::string_view>{"words"}));
  append(End::kTerminated);
  EXPECT_LT(table_->Stats().frame_bytes, uint64_t{64} << 10);
  const auto table = core->FindTable("values");
  {
    MutexLock lock(&table->state->mutex);
    EXPECT_EQ(table->plan->companion_bytes(), 0u);
  }
  const uint64_t left = table_->Stats().frame_bytes;
  writer_.reset();
  Reopen();
  OpenAgain("values");
  EXPECT_EQ(table_->Stats().frame_bytes, left);
  EXPECT_EQ(table_->Count(), 65u);
  ASSERT_OK(table_->AddColumns(std::vector<Column>{columns[0]}));
  const std::string_view name[] = {"big"};
  ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(1, name, {}));
  EXPECT_EQ(read[0].shape, Shape({0}));
}

TEST_F(ValuesColumnsTest, ASamplerShowsThemAndSaysWhenTheyLeave) {
  TableSpec spec = Spec();
  PriorityTableSpec windows = testing::WindowSpec("windows");
  windows.selector = SelectorKind::kFifo;
  spec.priority_tables = {windows};
  Create(spec);
  const int64_t row[] = {0};
  const std::vector<ColumnValue> steps = {{"row", TensorView::Of(std::span<const int64_t>(row))}};
  ASSERT_OK(writer_->AppendSteps(steps, {.end = End::kTerminated}));
  const std::vector<Column> columns = {
      {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged},
      {.name = "goal",
       .shape = {kGoalSize},
       .kind = ColumnKind::kPerTrajectory,
       .default_value = 2}};
  ASSERT_OK(table_->AddColumns(columns));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  const Bytes text = {5, 6, 7};
  std::vector<ColumnValue> with_text = steps;
  with_text.push_back({"text", TensorView::Of(std::span<const uint8_t>(text))});
  const std::vector<uint64_t> offsets = {0, 3};
  with_text.back().offsets = offsets;
  ASSERT_OK(writer_->AppendSteps(with_text, {.end = End::kTerminated}));
  SamplerOptions options{.batch = 2};
  options.views = {{.column = "text"}, {.column = "goal"}};
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("windows")->NewSampler(options));
  {
    ASSERT_OK_AND_ASSIGN(const auto batch, sampler->Next());
    const auto found = batch["text"].values<uint8_t>();
    EXPECT_EQ(Bytes(found.begin(), found.end()), text);
    ASSERT_OK_AND_ASSIGN(const auto entries, batch.Offsets("text"));
    EXPECT_EQ(std::vector<int64_t>(entries.begin(), entries.end()),
              (std::vector<int64_t>{0, 0, 3}));
    const auto goal = batch["goal"].values<float>();
    EXPECT_EQ(std::vector<float>(goal.begin(), goal.end()), std::vector<float>(2 * kGoalSize, 2));
  }
  ASSERT_OK(table_->DropColumns(std::vector<std::string_view>{"text"}));
  EXPECT_STATUS(kNotFound, sampler->Next(), "column 'text', which view 'text' shows, was dropped");
}

TEST_F(ValuesColumnsTest, WhatCannotBeIsRefusedAndChangesNothing) {
  Create(Spec());
  const auto add = [&](Column column) { return table_->AddColumns({&column, 1}); };
  const size_t tables = testing::CoreOf(*database_)->AllTables().size();
  EXPECT_STATUS(kInvalidArgument, add({.name = "b", .kind = ColumnKind::kBlob, .default_value = 1}),
                "default");
  EXPECT_STATUS(kInvalidArgument, add({.name = "row", .kind = ColumnKind::kBlob}), "'row'");
  EXPECT_STATUS(kInvalidArgument,
                add({.name = "huge", .shape = {64 << 20}, .kind = ColumnKind::kBlob}), "huge");
  EXPECT_EQ(testing::CoreOf(*database_)->AllTables().size(), tables);
  ASSERT_OK(add({.name = "b", .kind = ColumnKind::kBlob}));
  ASSERT_OK(table_->CreatePriorityTable([] {
    PriorityTableSpec spec = testing::WindowSpec("windows");
    spec.required = {"b"};
    return spec;
  }()));
  EXPECT_STATUS(kFailedPrecondition, table_->DropColumns(std::vector<std::string_view>{"b"}),
                "requires column 'b'");
  EXPECT_EQ(testing::CoreOf(*database_)->AllTables().size(), tables + 1);
}

}  // namespace
}  // namespace geardb
