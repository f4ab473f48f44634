// Columns that come and leave in random programs, compared with a plain model: each row is a map
// from a column's number to the value that somebody gave, and what nobody gave is the column's
// default. Writers and samplers of all ages are used beside one another; pages are dropped from
// memory and moved to the cold store, and the database is opened again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tests/conformance/columns_model.h"
#include "tests/conformance/random_choice.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb::conformance {
namespace {

class ColumnsTwin : public testing::StoreTest {
 protected:
  void Begin(uint64_t seed) {
    choice_.emplace(seed);
    options_ = testing::SmallOptions();
    options_.segment_bytes = 64 << 10;
    options_.ring_bytes = 64 << 10;
    options_.budgets.frames_bytes = uint64_t{64} << 20;
    columns_.clear();
    trajectories_.clear();
    writers_.clear();
    samplers_.clear();
    version_ = 0;
    OpenEmpty();
    TableSpec spec;
    spec.name = "columns";
    spec.final_row = choice_->Percent(50);
    spec.steps_per_page = 4;
    final_row_ = spec.final_row;
    columns_.push_back({.spec = {.name = "id", .dtype = DType::kI32}});
    columns_.push_back(
        {.spec = {.name = "obs", .dtype = DType::kU8, .shape = {5}, .in_final_row = final_row_}});
    columns_.push_back(
        {.spec = {.name = "late", .dtype = DType::kI32, .group = "late", .default_value = 7},
         .late = true});
    columns_.push_back({.spec = {.name = "version",
                                 .dtype = DType::kI32,
                                 .kind = ColumnKind::kPerTrajectory,
                                 .default_value = 3}});
    for (const KnownColumn& column : columns_) spec.columns.push_back(column.spec);
    spec.groups = {{.name = "late", .late = true}};
    spec.priority_tables = {testing::WindowSpec("all")};
    spec.priority_tables[0].selector = SelectorKind::kUniform;
    ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
    NewWriter();
  }

  void Change() {
    switch (choice_->Below(20)) {
      case 0:
        return AddSome();
      case 1:
        return DropSome();
      case 2:
        return writers_.size() < 4 ? NewWriter() : DestroyWriter();
      case 3:
        return ResumeSome();
      case 4:
      case 5:
        return PatchSome();
      case 6:
        return SetSome();
      case 7:
        return RemoveSome();
      case 8:
        testing::DropFrames(*database_);
        return;
      case 9:
        if (choice_->Percent(30)) Clean();
        return;
      case 10:
        if (choice_->Percent(30)) ReopenAll();
        return;
      case 11:
        return NewSampler();
      case 12:
      case 13:
        return Draw();
      default:
        return AppendSome();
    }
  }

  // ---- Columns.

  std::vector<size_t> Live(bool per_step) const {
    std::vector<size_t> numbers;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].dropped && columns_[i].per_step() == per_step) numbers.push_back(i);
    }
    return numbers;
  }
  std::vector<size_t> Live() const {
    std::vector<size_t> numbers = Live(true);
    for (const size_t number : Live(false)) numbers.push_back(number);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
  bool IsTaken(std::string_view name) const {
    return std::any_of(columns_.begin(), columns_.end(), [&](const KnownColumn& column) {
      return !column.dropped && (column.spec.name == name || column.spec.group == name);
    });
  }

  void AddSome() {
    std::vector<KnownColumn> added;
    std::vector<ColumnGroup> groups;
    const bool in_one_group = choice_->Percent(50);
    bool refused = false;
    for (int64_t k = choice_->Between(1, 3); k > 0; --k) {
      KnownColumn column;
      // Names come again.
      column.spec.name = "c" + std::to_string(choice_->Below(8));
      column.spec.dtype = choice_->Of({DType::kI32, DType::kU8});
      if (choice_->Percent(50)) column.spec.shape = {choice_->Between(1, 7)};
      column.spec.default_value = static_cast<double>(choice_->Below(200));
      if (choice_->Percent(30)) {
        column.spec.kind = ColumnKind::kPerTrajectory;
      } else if (in_one_group) {
        column.spec.group = "g" + std::to_string(version_);
        if (groups.empty()) {
          groups.push_back({.name = column.spec.group,
                            .late = choice_->Percent(30),
                            .is_volatile = choice_->Percent(40)});
        }
        column.late = groups[0].late;
        column.is_volatile = groups[0].is_volatile;
      }
      column.spec.in_final_row =
          column.per_step() && final_row_ && !column.late && choice_->Percent(40);
      refused |= IsTaken(column.spec.name);
      for (const KnownColumn& other : added) refused |= other.spec.name == column.spec.name;
      added.push_back(std::move(column));
    }
    std::vector<Column> specs;
    for (const KnownColumn& column : added) specs.push_back(column.spec);
    const Status status = table_->AddColumns(specs, groups);
    if (refused) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
      return;
    }
    ASSERT_OK(status);
    ++version_;
    for (KnownColumn& column : added) {
      // In a group of its own, which has its name.
      if (column.per_step() && column.spec.group.empty()) column.spec.group = column.spec.name;
      columns_.push_back(std::move(column));
    }
  }

  void DropSome() {
    const std::vector<size_t> live = Live();
    std::vector<std::string_view> names;
    std::vector<size_t> numbers;
    for (int64_t k = choice_->Between(1, 2); k > 0; --k) {
      const size_t number = choice_->Of(live);
      if (std::find(numbers.begin(), numbers.end(), number) != numbers.end()) continue;
      numbers.push_back(number);
      names.push_back(columns_[number].spec.name);
    }
    const auto in_first = [&](size_t number) {
      return columns_[number].per_step() && columns_[number].spec.group.empty();
    };
    const auto first_left = std::count_if(live.begin(), live.end(), [&](size_t number) {
      return in_first(number) && std::find(numbers.begin(), numbers.end(), number) == numbers.end();
    });
    const Status status = table_->DropColumns(names);
    if (first_left == 0) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
      return;
    }
    ASSERT_OK(status);
    ++version_;
    for (const size_t number : numbers) columns_[number].dropped = true;
    EXPECT_STATUS(kNotFound, table_->DropColumns(names), "has no column");
  }

  // ---- Rows.

  Bytes RandomValue(const KnownColumn& column, uint64_t count = 1) {
    Bytes value(column.bytes() * count);
    for (std::byte& byte : value) byte = std::byte{static_cast<uint8_t>(choice_->Below(256))};
    return value;
  }

  void NewWriter() {
    KnownWriter made;
    ASSERT_OK_AND_ASSIGN(made.writer, table_->NewWriter({.lanes = 2}));
    made.columns = Live();
    made.version = version_;
    made.open.assign(2, 0);
    writers_.push_back(std::move(made));
  }
  void DestroyWriter() { writers_.erase(writers_.begin() + Index(writers_.size())); }
  ptrdiff_t Index(size_t count) { return static_cast<ptrdiff_t>(choice_->Below(count)); }

  void AppendSome() {
    if (writers_.empty()) return NewWriter();
    KnownWriter& writer = writers_[choice_->Below(writers_.size())];
    const auto lane = static_cast<uint32_t>(choice_->Below(2));
    const auto count = static_cast<uint64_t>(choice_->Between(1, 9));
    const End end = choice_->Of({End::kGo, End::kGo, End::kTerminated, End::kTruncated});
    const bool with_final = final_row_ && end != End::kGo;
    std::map<size_t, Bytes> rows, last, values;
    std::vector<ColumnValue> given, given_last, given_values;
    for (const size_t number : writer.columns) {
      const KnownColumn& column = columns_[number];
      const Shape& shape = column.spec.shape;
      const auto view = [&](const Bytes& bytes, const Shape& as) {
        return ColumnValue{column.spec.name, TensorView(bytes.data(), column.spec.dtype, as)};
      };
      if (!column.per_step()) {
        if (!choice_->Percent(30)) continue;
        values[number] = RandomValue(column);
        given_values.push_back(view(values[number], shape));
      } else if (!column.late) {
        rows[number] = RandomValue(column, count);
        given.push_back(view(rows[number], shape.WithOuter({static_cast<int64_t>(count)})));
        if (!with_final || !column.spec.in_final_row) continue;
        last[number] = RandomValue(column);
        given_last.push_back(view(last[number], shape));
      }
    }
    ASSERT_OK_AND_ASSIGN(
        const Appended appended,
        writer.writer->AppendSteps(
            given, {.lane = lane, .end = end, .final = given_last, .trajectory = given_values}));
    KnownTrajectory& trajectory = trajectories_[appended.id];
    for (uint64_t row = 0; row < count; ++row) {
      Values& into = trajectory.rows.emplace_back();
      for (const auto& [number, bytes] : rows) {
        const size_t each = columns_[number].bytes();
        into[number] = Bytes(bytes.begin() + static_cast<ptrdiff_t>(row * each),
                             bytes.begin() + static_cast<ptrdiff_t>((row + 1) * each));
      }
    }
    if (with_final) trajectory.rows.push_back(last);
    for (const auto& [number, bytes] : values) trajectory.values[number] = bytes;
    trajectory.open = end == End::kGo;
    writer.open[lane] = trajectory.open ? appended.id : 0;
  }

  bool HasWriter(TrajectoryId id) const {
    return std::any_of(writers_.begin(), writers_.end(), [&](const KnownWriter& writer) {
      return std::find(writer.open.begin(), writer.open.end(), id) != writer.open.end();
    });
  }

  void ResumeSome() {
    if (writers_.empty()) return;
    KnownWriter& writer = writers_[choice_->Below(writers_.size())];
    for (uint32_t lane = 0; lane < 2; ++lane) {
      if (writer.open[lane] != 0) {
        if (!choice_->Percent(50)) continue;
        ASSERT_OK(writer.writer->Detach(lane));
        writer.open[lane] = 0;
      }
      for (const auto& [id, trajectory] : trajectories_) {
        if (!trajectory.open || HasWriter(id)) continue;
        const Status status = writer.writer->Resume(id, lane);
        if (writer.version != version_) {
          EXPECT_STATUS(kFailedPrecondition, status, "made before the table's columns changed");
        } else {
          ASSERT_OK(status);
          writer.open[lane] = id;
        }
        break;
      }
    }
  }

  void PatchSome() {
    if (trajectories_.empty()) return;
    auto found = trajectories_.begin();
    std::advance(found, Index(trajectories_.size()));
    auto& [id, trajectory] = *found;
    const size_t number = choice_->Of(Live(true));
    const KnownColumn& column = columns_[number];
    const auto length = static_cast<int64_t>(trajectory.rows.size());
    int64_t first = choice_->Between(0, length - 1);
    if (column.late) first = 0;  // Without a gap.
    const int64_t count = choice_->Between(1, length - first);
    const Bytes bytes = RandomValue(column, static_cast<uint64_t>(count));
    const RowSpan span{id, first, count};
    const ColumnValue value{column.spec.name, TensorView(bytes.data(), column.spec.dtype,
                                                         column.spec.shape.WithOuter({count}))};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
    for (int64_t row = 0; row < count; ++row) {
      const auto each = static_cast<ptrdiff_t>(column.bytes());
      trajectory.rows[static_cast<size_t>(first + row)][number] =
          Bytes(bytes.begin() + row * each, bytes.begin() + (row + 1) * each);
    }
  }

  void SetSome() {
    const std::vector<size_t> live = Live(false);
    if (live.empty() || trajectories_.empty()) return;
    auto found = trajectories_.begin();
    std::advance(found, Index(trajectories_.size()));
    const size_t number = choice_->Of(live);
    const KnownColumn& column = columns_[number];
    const Bytes bytes = RandomValue(column);
    const ColumnValue value{column.spec.name,
                            TensorView(bytes.data(), column.spec.dtype, column.spec.shape)};
    ASSERT_OK(table_->SetColumns(found->first, {&value, 1}));
    found->second.values[number] = bytes;
  }

  void RemoveSome() {
    if (trajectories_.size() < 3) return;
    for (const auto& [id, trajectory] : trajectories_) {
      if (HasWriter(id) || !choice_->Percent(30)) continue;
      const TrajectoryId removed = id;
      ASSERT_OK(table_->Remove({&removed, 1}));
      trajectories_.erase(removed);
      return;
    }
  }

  // ---- All of it.

  /// An image is taken where the log has a whole segment.
  void Clean() {
    const std::string filling(12 << 10, 'f');
    for (int k = 0; k < 6; ++k) {
      ASSERT_OK(database_->WriteTag("filling", std::as_bytes(std::span(filling))));
    }
    ASSERT_OK(testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true));
  }

  void ReopenAll() {
    writers_.clear();
    samplers_.clear();
    Reopen();
    if (HasFailure()) return;
    images_opened_ += database_->recovery().image > 0 ? 1u : 0u;
    ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("columns"));
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].is_volatile) continue;
      for (auto& [id, trajectory] : trajectories_) {
        for (Values& row : trajectory.rows) row.erase(i);
      }
    }
    CheckSpec();
  }

  void CheckSpec() const {
    const TableSpec spec = table_->spec();
    const std::vector<size_t> live = Live();
    ASSERT_EQ(spec.columns.size(), live.size());
    for (size_t i = 0; i < live.size(); ++i) EXPECT_EQ(spec.columns[i], columns_[live[i]].spec);
  }

  Bytes Expected(const Values& values, size_t number) const {
    const auto found = values.find(number);
    return found == values.end() ? columns_[number].Default() : found->second;
  }

  void CheckAll() const {
    CheckSpec();
    ASSERT_EQ(table_->Count(), trajectories_.size());
    const std::vector<size_t> live = Live();
    std::vector<std::string_view> names;
    for (const size_t number : live) names.push_back(columns_[number].spec.name);
    for (const auto& [id, trajectory] : trajectories_) {
      ASSERT_OK_AND_ASSIGN(const auto outputs, table_->Read(id, names, {}));
      for (size_t i = 0; i < live.size(); ++i) {
        Bytes expected;
        if (columns_[live[i]].per_step()) {
          for (const Values& row : trajectory.rows) {
            const Bytes value = Expected(row, live[i]);
            expected.insert(expected.end(), value.begin(), value.end());
          }
        } else {
          expected = Expected(trajectory.values, live[i]);
        }
        ASSERT_EQ(outputs[i].bytes, expected)
            << "trajectory " << id << ", column " << names[i] << ", number " << live[i];
      }
    }
    for (const KnownColumn& column : columns_) {
      if (!column.dropped || IsTaken(column.spec.name)) continue;
      const std::string_view name = column.spec.name;
      if (!trajectories_.empty()) {
        EXPECT_STATUS(kNotFound, table_->Read(trajectories_.begin()->first, {&name, 1}, {}),
                      "has no column '" + column.spec.name + "'");
      }
    }
  }

  // ---- Draws.

  void NewSampler() {
    if (samplers_.size() > 3) samplers_.erase(samplers_.begin());
    ASSERT_OK_AND_ASSIGN(const auto all, table_->OpenPriorityTable("all"));
    KnownSampler made;
    std::vector<View> views;
    for (const size_t number : Live()) {
      if (!choice_->Percent(60)) continue;
      made.columns.push_back(number);
      views.push_back({.column = columns_[number].spec.name});
    }
    if (views.empty()) return;
    ASSERT_OK_AND_ASSIGN(made.sampler, all->NewSampler({.batch = 8, .views = views}));
    samplers_.push_back(std::move(made));
  }

  void Draw() {
    if (samplers_.empty()) return NewSampler();
    KnownSampler& source = samplers_[choice_->Below(samplers_.size())];
    const bool gone = std::any_of(source.columns.begin(), source.columns.end(),
                                  [&](size_t number) { return columns_[number].dropped; });
    const Result<Batch> batch = source.sampler->Next(Deadline::Now());
    if (batch.status().code() == StatusCode::kDeadlineExceeded) return;  // There is no row.
    if (gone) {
      EXPECT_STATUS(kNotFound, batch, "was dropped");
      return;
    }
    ASSERT_OK(batch);
    for (const size_t number : source.columns) {
      const KnownColumn& column = columns_[number];
      const TensorView values = (*batch)[column.spec.name];
      const auto* bytes = static_cast<const std::byte*>(values.bytes);
      for (size_t item = 0; item < 8; ++item) {
        const KnownTrajectory& trajectory = trajectories_.at(batch->trajectory_ids()[item]);
        const auto row = static_cast<size_t>(batch->anchors()[item]);
        const Bytes expected =
            Expected(column.per_step() ? trajectory.rows[row] : trajectory.values, number);
        const std::byte* from = bytes + item * column.bytes();
        ASSERT_EQ(Bytes(from, from + column.bytes()), expected)
            << "column " << column.spec.name << ", number " << number << ", row " << row;
      }
    }
  }

  std::optional<RandomChoice> choice_;
  bool final_row_ = false;
  std::vector<KnownColumn> columns_;
  std::map<TrajectoryId, KnownTrajectory> trajectories_;
  std::vector<KnownWriter> writers_;
  std::vector<KnownSampler> samplers_;
  size_t version_ = 0;
  uint64_t images_opened_ = 0;
};

class ColumnsConformanceTest : public ColumnsTwin {};

TEST_F(ColumnsConformanceTest, RandomProgramsReadAsTheModel) {
  const uint64_t programs = testing::ShareOf(40);
  for (uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Begin(seed);
    for (int change = 0; change < 160; ++change) {
      SCOPED_TRACE("change " + std::to_string(change));
      Change();
      if (HasFailure()) return;
      if (change % 8 == 7) CheckAll();
      if (HasFailure()) return;
    }
    ReopenAll();
    CheckAll();
    testing::DropFrames(*database_);
    CheckAll();
    if (HasFailure()) return;
    samplers_.clear();
    writers_.clear();
  }
  EXPECT_GT(images_opened_, 0u);
}

}  // namespace
}  // namespace geardb::conformance
