#include "engine/batch.h"

#include <gtest/gtest.h>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class BatchTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    TableSpec spec = StepSpec();
    spec.priority_tables = {WindowSpec("per")};
    Create(spec);
    AppendClosed(0, 8);
    auto sampler = priority("per")->NewSampler({.batch = 4, .views = {{.column = "action"}}});
    ASSERT_OK(sampler);
    sampler_ = std::move(*sampler);
  }
  void ExpectRows(const Batch& batch) {
    const auto view = batch["action"];
    const auto actions = view.values<int32_t>();
    ASSERT_EQ(actions.size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(actions[i], batch.anchors()[i]);
  }
  std::unique_ptr<Sampler> sampler_;
};

TEST_F(BatchTest, ABatchIsACopy) {
  auto batch = sampler_->Next();
  ASSERT_OK(batch);
  const TrajectoryId ids[] = {1};
  ASSERT_OK(table_->Remove(ids));
  AppendClosed(1000, 8);  // Into the same page.
  auto other = sampler_->Next();
  ASSERT_OK(other);
  ExpectRows(*batch);
}

TEST_F(BatchTest, ABatchOutlivesSamplerAndDatabase) {
  auto batch = sampler_->Next();
  ASSERT_OK(batch);
  sampler_.reset();
  Close();
  ExpectRows(*batch);
  batch->Release();
  EXPECT_EQ(batch->size(), 0);
}

TEST_F(BatchTest, AReleasedBatchIsEmpty) {
  auto batch = sampler_->Next();
  ASSERT_OK(batch);
  batch->Release();
  batch->Release();
  EXPECT_EQ(batch->size(), 0);
  EXPECT_TRUE(batch->handles().empty());
  EXPECT_TRUE(batch->OutputNames().empty());
  EXPECT_EQ((*batch)["action"].bytes, nullptr);
  EXPECT_STATUS(kFailedPrecondition, batch->Find("action"), "released");
}

TEST_F(BatchTest, BuffersAreUsedAgain) {
  const void* bytes = nullptr;
  {
    auto batch = sampler_->Next();
    ASSERT_OK(batch);
    bytes = (*batch)["action"].bytes;
  }
  const uint64_t used = database_->Stats().batches.used_bytes;
  EXPECT_GT(used, 0u);
  auto batch = sampler_->Next();
  ASSERT_OK(batch);
  EXPECT_EQ((*batch)["action"].bytes, bytes);
  EXPECT_EQ(database_->Stats().batches.used_bytes, used);
  ExpectRows(*batch);
}

TEST_F(BatchTest, MovedBatchesKeepTheirRows) {
  auto batch = sampler_->Next();
  ASSERT_OK(batch);
  Batch moved = std::move(*batch);
  ExpectRows(moved);
  auto other = sampler_->Next();
  ASSERT_OK(other);
  moved = std::move(*other);
  ExpectRows(moved);
}

TEST_F(BatchTest, MemoryComesBackWhenSamplerAndBatchesAreGone) {
  auto batch = sampler_->Next();
  ASSERT_OK(batch);
  EXPECT_GT(database_->Stats().batches.used_bytes, 0u);
  sampler_.reset();
  batch->Release();
  EXPECT_EQ(database_->Stats().batches.used_bytes, 0u);
}

}  // namespace
}  // namespace geardb
