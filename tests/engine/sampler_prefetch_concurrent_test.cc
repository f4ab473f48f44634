// Batches that are drawn ahead: short ones are copied by who draws them, others by a thread; they
// come in the order of their draws, with the rows that they name.
//
// concurrent: engine/internal/sampler_impl.h engine/internal/sampler_impl.cc
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

constexpr int64_t kRowFloats = 4096;  // Four rows are 64 KiB.

class SamplerPrefetchConcurrentTest : public testing::StoreTest {
 protected:
  void CreateTrajectories() {
    TableSpec spec;
    spec.name = "long";
    spec.columns = {{.name = "x", .shape = {kRowFloats}}};
    spec.priority_tables = {{.name = "whole", .item = ItemKind::kTrajectory}};
    Create(spec);
  }
  /// Trajectories of 1 to 8 rows, each row with the number that its trajectory and it have.
  static float ValueOf(TrajectoryId id, int64_t row) {
    return static_cast<float>(id * 16 + static_cast<uint64_t>(row));
  }
  void AppendNumbered(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const TrajectoryId id = ++last_;
      const auto rows = static_cast<int64_t>(1 + id % 8);
      std::vector<float> values;
      for (int64_t row = 0; row < rows; ++row) {
        values.insert(values.end(), kRowFloats, ValueOf(id, row));
      }
      const auto appended = writer_->AppendTrajectory(
          {{"x", TensorView::Of<float>(values, {rows, kRowFloats})}}, {.end = End::kTerminated});
      ASSERT_OK(appended);
      ASSERT_EQ(appended->id, id);
    }
  }
  static void ExpectRows(const Batch& batch) {
    const auto values = batch["x"].values<float>();
    const auto begins = batch.CuSeqlens("x").value();
    for (size_t i = 0; i < batch.trajectory_ids().size(); ++i) {
      for (int64_t at = begins[i]; at < begins[i + 1]; ++at) {
        const float expected = ValueOf(batch.trajectory_ids()[i], at - begins[i]);
        ASSERT_EQ(values[static_cast<size_t>(at * kRowFloats)], expected);
        ASSERT_EQ(values[static_cast<size_t>((at + 1) * kRowFloats - 1)], expected);
      }
    }
  }

  TrajectoryId last_ = 0;
};

TEST_F(SamplerPrefetchConcurrentTest, BatchesOfAllSizesComeInTheirOrder) {
  CreateTrajectories();
  AppendNumbered(32);
  std::thread appends([this] { AppendNumbered(64); });
  for (const int64_t prefetch : {1, 4}) {
    auto sampler = priority("whole")->NewSampler({.batch = 1,
                                                  .views = {{.column = "x"}},
                                                  .layout = BatchLayout::kPacked,
                                                  .prefetch = prefetch,
                                                  .observer = true,
                                                  .seed = 11});
    ASSERT_OK(sampler);
    for (uint64_t draw = 0; draw < 200; ++draw) {
      const auto batch = (*sampler)->Next();
      ASSERT_OK(batch);
      ASSERT_EQ(batch->draw_number(), draw);
      ExpectRows(*batch);
    }
  }
  appends.join();
}

TEST_F(SamplerPrefetchConcurrentTest, ASamplerMayGoWhileItsBatchesAreCopied) {
  CreateTrajectories();
  AppendNumbered(32);
  for (int round = 0; round < 50; ++round) {
    auto sampler = priority("whole")->NewSampler({.batch = 4,
                                                  .views = {{.column = "x"}},
                                                  .layout = BatchLayout::kPacked,
                                                  .prefetch = 1 + round % 4});
    ASSERT_OK(sampler);
    for (int draw = 0; draw < round % 3; ++draw) ASSERT_OK((*sampler)->Next());
  }
}

}  // namespace
}  // namespace geardb
