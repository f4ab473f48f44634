// What was dropped counts as leaving while a handle keeps its memory: calls that find none wait for
// such.
#include <gtest/gtest.h>

#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class ColumnsThatLeftTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    TableSpec spec;
    spec.name = "values";
    spec.columns = {{.name = "row", .dtype = DType::kI64},
                    {.name = "ragged", .dtype = DType::kU8, .kind = ColumnKind::kRagged},
                    {.name = "blob", .dtype = DType::kU8, .kind = ColumnKind::kBlob},
                    {.name = "wide", .shape = {kWide}, .kind = ColumnKind::kPerTrajectory}};
    spec.steps_per_page = 4;
    Create(spec);
    const int64_t row = 7;
    const std::vector<uint8_t> bytes(1000, 7);
    const std::vector<float> wide(kWide, 7);
    const TensorView value = TensorView::Of(std::span<const uint8_t>(bytes));
    const std::vector<ColumnValue> whole = {{"blob", value},
                                            {"wide", TensorView::Of(std::span<const float>(wide))}};
    ASSERT_OK(writer_->Append({{"row", TensorView::Scalar(row)}, {"ragged", value}},
                              {.end = End::kTerminated, .trajectory = whole}));
  }
  bool HasLeaving() const { return testing::CoreOf(*database_)->HasLeaving(); }
  void Drop(std::string_view column) { ASSERT_OK(table_->DropColumns({&column, 1})); }

  static constexpr int64_t kWide = 20;
};

// They counted for as long as the database was open: who found no memory waited in vain.
TEST_F(ColumnsThatLeftTest, AreNotWaitedFor) {
  for (const std::string_view column : {"ragged", "blob", "wide"}) {
    Drop(column);
    EXPECT_FALSE(HasLeaving()) << column;
  }
  const int64_t row = 8;
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  EXPECT_OK(writer_->Append({{"row", TensorView::Scalar(row)}}));
  EXPECT_FALSE(HasLeaving());
}

TEST_F(ColumnsThatLeftTest, ATableIsUntilItsHandlesGo) {
  Drop("blob");
  ASSERT_OK(database_->DropTable("values"));
  EXPECT_TRUE(HasLeaving());
  writer_.reset();
  EXPECT_TRUE(HasLeaving());
  table_.reset();
  // Somebody may look at all tables just now.
  const Deadline deadline = Deadline::AfterMs(60'000);
  while (HasLeaving() && !deadline.passed()) std::this_thread::yield();
  EXPECT_FALSE(HasLeaving());
}

}  // namespace
}  // namespace geardb
