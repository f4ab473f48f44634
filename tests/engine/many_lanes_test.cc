// Many lanes at once, with values of any length: each has its own, and comes once in a batch.
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "engine/write_batch.h"
#include "tests/engine/values_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class ManyLanesTest : public testing::StoreTest {
 protected:
  static constexpr uint32_t kLanes = 800;

  static testing::Bytes TextOf(uint32_t lane, int64_t step) {
    const auto length = static_cast<size_t>(lane % 5) * static_cast<size_t>(step + 1);
    return testing::Bytes(length, static_cast<uint8_t>(lane * 3 + static_cast<uint32_t>(step)));
  }
  /// A row for each lane; some texts are empty.
  class StepOfAll {
   public:
    explicit StepOfAll(int64_t step) : rows_(kLanes, step) {
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const testing::Bytes text = TextOf(lane, step);
        text_.insert(text_.end(), text.begin(), text.end());
        offsets_.push_back(text_.size());
      }
    }
    StepOfAll(const StepOfAll&) = delete;
    std::vector<ColumnValue> values() const {
      return {{"row", TensorView::Of(std::span<const int64_t>(rows_))},
              {"text", TensorView::Of(std::span<const uint8_t>(text_)), offsets_}};
    }

   private:
    std::vector<int64_t> rows_;
    testing::Bytes text_;
    std::vector<uint64_t> offsets_ = {0};
  };

  void SetUp() override {
    StoreTest::SetUp();
    Create(testing::TextSpec(), {.lanes = kLanes});
  }
  /// Texts of that many steps.
  void ExpectTexts(uint32_t lane, TrajectoryId id, int64_t steps) const {
    testing::Bytes texts;
    for (int64_t step = 0; step < steps; ++step) {
      const testing::Bytes text = TextOf(lane, step);
      texts.insert(texts.end(), text.begin(), text.end());
    }
    const std::string_view name = "text";
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, {&name, 1}, {}));
    const auto found = read[0].view().values<uint8_t>();
    ASSERT_EQ(testing::Bytes(found.begin(), found.end()), texts) << "lane " << lane;
    ASSERT_EQ(read[0].offsets.size(), static_cast<size_t>(steps + 1)) << "lane " << lane;
  }
};

TEST_F(ManyLanesTest, EachHasItsOwnValues) {
  constexpr int64_t kSteps = 6;
  std::vector<TrajectoryId> ids;
  for (int64_t step = 0; step < kSteps; ++step) {
    const StepOfAll rows(step);
    const std::vector<End> ends(kLanes, step + 1 == kSteps ? End::kTerminated : End::kGo);
    ASSERT_OK_AND_ASSIGN(const auto appended, writer_->AppendLanes(rows.values(), {.ends = ends}));
    ASSERT_EQ(appended.size(), size_t{kLanes});
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (step == 0) ids.push_back(appended[lane].id);
      ASSERT_EQ(appended[lane].id, ids[lane]);
    }
  }
  for (const bool again : {false, true}) {
    if (again) {
      Reopen();
      OpenAgain("values");
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane) ExpectTexts(lane, ids[lane], kSteps);
  }
}

TEST_F(ManyLanesTest, OneThatComesTwiceInABatchIsRefused) {
  const StepOfAll first(0);
  ASSERT_OK(writer_->AppendLanes(first.values(), {}));
  const StepOfAll all(1);
  const int64_t row = 1;
  const testing::Bytes text = {1, 2, 3};
  const std::vector<ColumnValue> one = {{"row", TensorView::Scalar(row)},
                                        {"text", TensorView::Of(std::span<const uint8_t>(text))}};
  WriteBatch batch;
  batch.AppendLanes(writer_.get(), all.values());
  batch.Append(writer_.get(), one, {.lane = 700});
  EXPECT_STATUS(kInvalidArgument, database_->Write(batch), "lane 700 comes twice in one batch");
  batch.Clear();
  batch.Append(writer_.get(), one, {.lane = 4});
  batch.Append(writer_.get(), one, {.lane = 3});
  batch.Append(writer_.get(), one, {.lane = 4});
  EXPECT_STATUS(kInvalidArgument, database_->Write(batch),
                "operation 2: table 'values': lane 4 comes twice in one batch");
  EXPECT_EQ(table_->StepCount(), uint64_t{kLanes});
  batch.Clear();
  batch.Append(writer_.get(), one, {.lane = 4});
  batch.Append(writer_.get(), one, {.lane = 3});
  EXPECT_OK(database_->Write(batch));
  EXPECT_EQ(table_->StepCount(), uint64_t{kLanes} + 2);
}

}  // namespace
}  // namespace geardb
