// Frames that pages were read into come free with the pages, whatever became of the call that asked
// for them.
#include <gtest/gtest.h>

#include "engine/internal/page_loader.h"
#include "tests/engine/frames_fixture.h"
#include "tests/engine/values_fixture.h"

namespace geardb {
namespace {

class FramesGivenBackTest : public testing::StoreTest {
 protected:
  /// Of all pools, once no thread reads any more.
  uint64_t BytesUsed() const {
    const auto core = testing::CoreOf(*database_);
    while (core->page_loader->AwaitOne(Deadline::AfterMs(10))) {
    }
    return core->arena->used_bytes();
  }
};

TEST_F(FramesGivenBackTest, OfAReadThatFails) {
  Create(testing::TextSpec());
  const uint64_t before = BytesUsed();
  const std::vector<int64_t> rows = {1, 2, 3, 4};
  const testing::Bytes text(80, 0xEE);
  const std::vector<uint64_t> offsets = {0, 20, 40, 60, 80};
  const std::vector<ColumnValue> values = {
      {"row", TensorView::Of(std::span<const int64_t>(rows))},
      {"text", TensorView::Of(std::span<const uint8_t>(text)), offsets}};
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK_AND_ASSIGN(const Appended appended,
                         writer_->AppendSteps(values, {.end = End::kTerminated}));
    ids.push_back(appended.id);
  }
  testing::DropFrames(*database_);
  const std::vector<std::string_view> columns = {"text", "nosuch"};
  for (const TrajectoryId id : ids) EXPECT_STATUS(kNotFound, table_->Read(id, columns, {}), "");
  ASSERT_OK(table_->Remove(ids));
  EXPECT_EQ(BytesUsed(), before);
}

TEST_F(FramesGivenBackTest, OfDrawsThatFindNoMemory) {
  options_.budgets.frames_bytes = 16 << 20;
  options_.budgets.batch_bytes = 64 << 10;
  options_.read_threads = 0;
  Reopen();
  TableSpec spec = FrameSpec();
  spec.priority_tables = {testing::WindowSpec("all", {.length = 2, .after = 1})};
  spec.priority_tables[0].selector = SelectorKind::kUniform;
  Create(spec);
  const uint64_t before = BytesUsed();
  SamplerOptions options{.batch = 32, .views = {{"frame"}}, .prefetch = 0};
  options.n_step = NStep{.reward_column = "reward", .n = 1};
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("all")->NewSampler(options));
  const testing::Bytes bytes(kPageRows * kFrameBytes, 3);
  const std::vector<float> rewards(kPageRows, 1.0f);
  const std::vector<ColumnValue> rows = {
      {"frame", TensorView(bytes.data(), DType::kU8, Shape({kPageRows, kFrameBytes}))},
      {"reward", TensorView::Of(std::span<const float>(rewards))}};
  for (int round = 0; round < 5; ++round) {
    std::vector<TrajectoryId> ids;
    for (int i = 0; i < 32; ++i) {
      ASSERT_OK_AND_ASSIGN(const Appended appended,
                           writer_->AppendSteps(rows, {.end = End::kTerminated}));
      ids.push_back(appended.id);
    }
    testing::DropFrames(*database_);
    EXPECT_STATUS(kResourceExhausted, sampler->Next(Deadline::Now()), "");
    ASSERT_OK(table_->Remove(ids));
    EXPECT_EQ(BytesUsed(), before);
  }
}

}  // namespace
}  // namespace geardb
