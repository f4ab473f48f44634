// Changes of columns beside everybody else, and what a crash leaves of them.
#include "engine/internal/column_change.h"

#include <thread>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class ColumnChangeTest : public testing::StoreTest {};

TEST_F(ColumnChangeTest, OneRecordIsOneChange) {
  Create(testing::StepSpec());
  AppendClosed(0, 3);
  for (int k = 0; k < 40; ++k) {
    const Column column[] = {{.name = "x", .default_value = static_cast<double>(k)}};
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
    ASSERT_OK(table_->AddColumns(column));
    Append(k, 1);
    if (k % 7 == 3) {
      Reopen();
      OpenAgain("steps");
    }
    const std::string_view name[] = {"x"};
    const auto read = table_->Read(1, name, {});
    ASSERT_OK(read);
    EXPECT_EQ((*read)[0].view().values<float>()[2], static_cast<float>(k));
    ASSERT_OK(table_->DropColumns(name));
    if (k % 7 == 5) {
      Reopen();
      OpenAgain("steps");
    }
  }
  EXPECT_EQ(table_->spec(), testing::StepSpec());
}

TEST_F(ColumnChangeTest, ReadOnlyAndDroppedTablesRefuseThem) {
  Create(testing::StepSpec());
  const Column column[] = {{.name = "x"}};
  const std::string_view name[] = {"reward"};
  std::shared_ptr<Table> dropped = table_;
  ASSERT_OK(database_->DropTable("steps"));
  EXPECT_STATUS(kCancelled, dropped->AddColumns(column), "was dropped");
  EXPECT_STATUS(kCancelled, dropped->DropColumns(name), "was dropped");
  dropped.reset();
  Create(testing::StepSpec());
  Close();
  options_.read_only = true;
  Open();
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("steps"));
  EXPECT_STATUS(kFailedPrecondition, table_->AddColumns(column), "read-only");
  EXPECT_STATUS(kFailedPrecondition, table_->DropColumns(name), "read-only");
}

}  // namespace
}  // namespace geardb
