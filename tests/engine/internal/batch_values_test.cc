// Views of values of any length: what is refused, converted and bounded. What they show is compared
// with a model in tests/engine/values_test.cc.
#include <gtest/gtest.h>

#include "tests/engine/values_fixture.h"

namespace geardb {
namespace {

using testing::Bytes;
using testing::ModelStep;
using testing::ValueRowsOf;
using testing::ValuesSpec;

class BatchValuesTest : public testing::StoreTest {
 protected:
  void Fill() {
    Create(ValuesSpec(false));
    const ValueRowsOf rows({{.text = {1, 2, 255}}, {}, {.text = {7}}}, 0, false);
    ASSERT_OK(writer_->AppendSteps(rows.values(), {.end = End::kTerminated}));
  }
  Result<std::unique_ptr<Sampler>> With(View view) {
    return priority("whole")->NewSampler({.batch = 2, .views = {std::move(view)}});
  }
};

TEST_F(BatchValuesTest, WhatIsNotShownIsNamed) {
  Fill();
  EXPECT_STATUS(kInvalidArgument, With({.column = "text", .stack = 2}), "is ragged");
  EXPECT_STATUS(kInvalidArgument, With({.column = "prompt", .stack = 2}), "per trajectory");
  EXPECT_STATUS(kInvalidArgument, With({.column = "goal", .masks = true}), "per trajectory");
  SamplerOptions options{.batch = 2, .views = {{.column = "row"}}};
  options.n_step = NStep{.reward_column = "text"};
  EXPECT_STATUS(kInvalidArgument, priority("whole")->NewSampler(options), "is ragged");
}

TEST_F(BatchValuesTest, ValuesAreConverted) {
  Fill();
  ASSERT_OK_AND_ASSIGN(const auto sampler, With({.column = "text", .to_f32 = true}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  const auto text = batch["text"].values<float>();
  EXPECT_EQ(std::vector<float>(text.begin(), text.end()),
            (std::vector<float>{1, 2, 255, 7, 1, 2, 255, 7}));
  ASSERT_OK_AND_ASSIGN(const auto offsets, batch.Offsets("text"));
  EXPECT_EQ(std::vector<int64_t>(offsets.begin(), offsets.end()),
            (std::vector<int64_t>{0, 3, 3, 4, 7, 7, 8}));
  ASSERT_OK_AND_ASSIGN(const auto lengths, batch.ViewLengths("text"));
  EXPECT_EQ(std::vector<int64_t>(lengths.begin(), lengths.end()), (std::vector<int64_t>{3, 3}));
}

TEST_F(BatchValuesTest, OtherOutputsHaveNoOffsets) {
  Fill();
  ASSERT_OK_AND_ASSIGN(const auto sampler, With({.column = "row"}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  ASSERT_OK_AND_ASSIGN(const auto offsets, batch.Offsets("row"));
  EXPECT_TRUE(offsets.empty());
  EXPECT_STATUS(kNotFound, batch.Offsets("text"), "it has row");
}

TEST_F(BatchValuesTest, TheBatchBudgetBoundsThem) {
  options_.budgets.batch_bytes = 100'000;
  OpenEmpty();
  Create(ValuesSpec(false));
  const ValueRowsOf rows({{.text = Bytes(90'000, 1)}}, 0, true);
  ASSERT_OK(writer_->Append(rows.values(), {.end = End::kTerminated}));
  ASSERT_OK_AND_ASSIGN(const auto sampler, With({.column = "text"}));
  EXPECT_STATUS(kResourceExhausted, sampler->Next(),
                "view 'text': 180000 rows of 1 bytes do not fit the batch budget of 100000");
}

}  // namespace
}  // namespace geardb
