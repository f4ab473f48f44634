// n-step returns of rewards of other types than floats, of batches whose parts are different tables
// and of rows whose pages have no frames. What they sum is compared with a model in
// tests/differential and tests/kernels/nstep_test.cc.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

constexpr int64_t kSummed = 20;

class BatchNStepTest : public testing::StoreTest {
 protected:
  /// A trajectory whose row k has the reward `first` + k.
  template <typename T>
  std::shared_ptr<Table> Fill(const std::string& name, DType dtype, int first) {
    TableSpec spec;
    spec.name = name;
    spec.columns = {{.name = "reward", .dtype = dtype}, {.name = "lost", .dtype = DType::kU8}};
    spec.steps_per_page = 8;
    spec.priority_tables = {testing::WindowSpec("all", {.length = 1, .after = 3})};
    auto table = database_->CreateTable(spec);
    EXPECT_OK(table);
    auto writer = (*table)->NewWriter({});
    EXPECT_OK(writer);
    std::vector<T> rewards;
    std::vector<uint8_t> lost;
    for (int row = 0; row < kSummed; ++row) {
      rewards.push_back(static_cast<T>(first + row));
      lost.push_back(row == 9 ? 1 : 0);
    }
    const std::vector<ColumnValue> values = {
        {"reward", TensorView(rewards.data(), dtype, Shape({kSummed}))},
        {"lost", TensorView(lost.data(), DType::kU8, Shape({kSummed}))}};
    EXPECT_OK((*writer)->AppendSteps(values, {.end = End::kTerminated}));
    return *table;
  }
  static SamplerOptions Sums() {
    SamplerOptions options{.batch = 64, .views = {{.column = "reward", .to_f32 = true}}};
    options.n_step =
        NStep{.reward_column = "reward", .n = 3, .gamma = 0.5, .life_loss_column = "lost"};
    return options;
  }
  /// With rewards from `first` on, of an item that stands at row `anchor`.
  static float SumOf(int first, int64_t anchor) {
    float sum = 0;
    float scale = 1;
    for (int64_t row = anchor; row < std::min(anchor + 3, kSummed); ++row, scale /= 2) {
      sum += scale * static_cast<float>(first + row);
      if (row == 9) break;
    }
    return sum;
  }
};

TEST_F(BatchNStepTest, RewardsOfOtherTypesAreSummedAsFloats) {
  const auto doubles = Fill<double>("doubles", DType::kF64, 100);
  const auto bytes = Fill<uint8_t>("bytes", DType::kU8, 200);
  ASSERT_GT(testing::DropFrames(*database_), 0u);
  for (const auto& [table, first] : {std::pair(doubles, 100), std::pair(bytes, 200)}) {
    ASSERT_OK_AND_ASSIGN(const auto all, table->OpenPriorityTable("all"));
    ASSERT_OK_AND_ASSIGN(const auto sampler, all->NewSampler(Sums()));
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    const auto returns = batch["nstep.return"].values<float>();
    for (size_t item = 0; item < 64; ++item) {
      EXPECT_EQ(returns[item], SumOf(first, batch.anchors()[item])) << batch.anchors()[item];
    }
  }
}

TEST_F(BatchNStepTest, EachPartSumsTheRewardsOfItsTable) {
  const auto doubles = Fill<double>("doubles", DType::kF64, 100);
  const auto bytes = Fill<uint8_t>("bytes", DType::kU8, 200);
  ASSERT_OK_AND_ASSIGN(const auto first, doubles->OpenPriorityTable("all"));
  ASSERT_OK_AND_ASSIGN(const auto second, bytes->OpenPriorityTable("all"));
  const SamplerPart parts[] = {{.priority_table = first, .share = ShareKind::kFixed, .count = 24},
                               {.priority_table = second}};
  SamplerOptions options = Sums();
  options.views = {};
  ASSERT_OK_AND_ASSIGN(const auto sampler, database_->NewSampler(parts, options));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  const auto returns = batch["nstep.return"].values<float>();
  bool both[2] = {};
  for (size_t item = 0; item < 64; ++item) {
    const uint32_t source = batch.sources()[item];
    both[source] = true;
    EXPECT_EQ(returns[item], SumOf(source == 0 ? 100 : 200, batch.anchors()[item]));
  }
  EXPECT_TRUE(both[0] && both[1]);
}

TEST_F(BatchNStepTest, TheBatchBudgetBoundsTheRowsThatAreSummed) {
  SamplerOptions options = Sums();
  options.batch = 1200;
  options.views = {};
  const auto draw = [&]() -> Result<uint64_t> {
    const auto table = Fill<uint8_t>("bytes", DType::kU8, 0);
    GEARDB_ASSIGN_OR_RETURN(const auto all, table->OpenPriorityTable("all"));
    GEARDB_ASSIGN_OR_RETURN(const auto sampler, all->NewSampler(options));
    GEARDB_ASSIGN_OR_RETURN(const Batch batch, sampler->Next());
    return database_->Stats().batches.used_bytes;
  };
  ASSERT_OK_AND_ASSIGN(const uint64_t used, draw());
  // While it sums them a batch has up to six floats more for each item.
  options_.budgets.batch_bytes = used + 1200;
  OpenEmpty();
  EXPECT_STATUS(kResourceExhausted, draw(), "budgets.batch_bytes");
  options_.budgets.batch_bytes = used + 1200 * 6 * sizeof(float) + 16;
  OpenEmpty();
  EXPECT_OK(draw());
}

}  // namespace
}  // namespace geardb
