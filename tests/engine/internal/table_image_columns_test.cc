// Column groups of every kind in images: made with the table or added to it, late or not, volatile
// or not, with rows that were patched before and after they were appended to.
#include "engine/internal/table_image.h"
#include "tests/engine/internal/store_images.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

struct GroupKind {
  bool added = false;
  bool late = false;
  bool is_volatile = false;
};

class TableImageColumnsTest : public testing::StoreTest, public ::testing::WithParamInterface<int> {
 protected:
  const GroupKind kind_{.added = (GetParam() & 1) != 0,
                        .late = (GetParam() & 2) != 0,
                        .is_volatile = (GetParam() & 4) != 0};
  const Column column_{.name = "value", .group = "g", .default_value = -1};
  const ColumnGroup group_{.name = "g", .late = kind_.late, .is_volatile = kind_.is_volatile};

  void Patch(TrajectoryId id, int64_t first, int64_t count) {
    const std::vector<float> values(static_cast<size_t>(count), 3);
    const ColumnValue value{"value", TensorView::Of(std::span<const float>(values))};
    const RowSpan span{id, first, count};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
    images_.Take(*database_);
  }
  /// Rows 1, 2, … of a trajectory by a writer that knows the group.
  TrajectoryId AppendWithGroup(Writer* writer, int64_t count, End end) {
    const testing::Rows rows(1, count);
    const std::vector<float> values(static_cast<size_t>(count), 2);
    std::vector<ColumnValue> given = rows.many();
    if (!kind_.late) given.push_back({"value", TensorView::Of(std::span<const float>(values))});
    const auto appended = writer->AppendSteps(given, {.end = end});
    EXPECT_OK(appended);
    images_.Take(*database_);
    return appended.ok() ? appended->id : 0;
  }
  std::vector<float> Values(TrajectoryId id) {
    const std::string_view name = "value";
    const auto read = table_->Read(id, {&name, 1}, {});
    EXPECT_OK(read);
    if (!read.ok()) return {};
    const auto view = (*read)[0].view().values<float>();
    return {view.begin(), view.end()};
  }

  testing::StoreImages images_;
};

TEST_P(TableImageColumnsTest, PatchedRowsAreWhatTheLogMakesOfThem) {
  TableSpec spec = testing::StepSpec();
  if (!kind_.added) {
    spec.columns.push_back(column_);
    spec.groups.push_back(group_);
  }
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  // Pages have 4 rows.
  const auto append = [&](int64_t count, End end) {
    if (!kind_.added) return AppendWithGroup(writer_.get(), count, end);
    return Append(1, count, end).id;
  };
  const TrajectoryId closed = append(5, End::kTerminated);
  const TrajectoryId untouched = append(5, End::kTerminated);
  const TrajectoryId open = append(6, End::kGo);
  if (kind_.added) {
    ASSERT_OK(table_->AddColumns({&column_, 1}, {&group_, 1}));
  }
  Patch(closed, 0, 5);
  Patch(open, 0, 3);
  append(1, End::kGo);  // Of an added group, the writer knows nothing.
  Patch(open, 3, 3);
  append(4, End::kGo);
  writer_.reset();
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  ASSERT_OK(writer_->Resume(open));
  EXPECT_EQ(AppendWithGroup(writer_.get(), 2, End::kTerminated), open);
  const TrajectoryId later = AppendWithGroup(writer_.get(), 5, End::kTerminated);
  Patch(later, 0, 2);
  Patch(open, 6, 1);
  const std::vector<TrajectoryId> ids = {closed, untouched, open, later};
  std::vector<std::vector<float>> before;
  for (const TrajectoryId id : ids) {
    const std::vector<float> values = Values(id);
    before.push_back(kind_.is_volatile ? std::vector<float>(values.size(), -1) : values);
  }
  EXPECT_EQ(Values(closed), std::vector<float>(5, 3));
  Close();
  images_.Check(dir_->path());
  Open();
  OpenAgain("steps");
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(Values(ids[i]), before[i]) << "of " << i;
}

class TableImageOldPatchTest : public testing::StoreTest {};

// As images were written once, of patches in a volatile group that came later.
TEST_F(TableImageOldPatchTest, RowsOfAPatchThatNoRecordSaysAreNotCounted) {
  Create(testing::StepSpec());
  AppendClosed(0, 5);
  const Column column{.name = "value", .group = "g"};
  const ColumnGroup group{.name = "g", .is_volatile = true};
  ASSERT_OK(table_->AddColumns({&column, 1}, {&group, 1}));
  {
    const auto core = testing::CoreOf(*database_);
    const engine::TableState& state = *core->TableById(1)->state;
    MutexLock lock(&state.mutex);
    const_cast<index::PageTable&>(state.pages()).group_page(1, 0).rows_filled = 4;
  }
  testing::StoreImages images;
  images.Take(*database_);
  Close();
  images.Check(dir_->path());
}

INSTANTIATE_TEST_SUITE_P(Kinds, TableImageColumnsTest, ::testing::Range(0, 8));

}  // namespace
}  // namespace geardb
