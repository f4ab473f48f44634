// A token budget carries an item into the next batch, which showed it though a standing filter did
// not let it through any more.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/engine/sampler_fixture.h"

namespace geardb {
namespace {

class CarriedFilterTest : public testing::SamplerFixture {
 protected:
  static constexpr int kTrajectories = 6;

  /// Trajectories of three steps; the last one's id.
  TrajectoryId AppendSome() {
    TrajectoryId last = 0;
    for (int i = 0; i < kTrajectories; ++i) last = AppendClosed(0, 3);
    return last;
  }
  void CreateFiltered(SelectorKind selector, const std::string& filter) {
    OpenEmpty();
    PriorityTableSpec per = testing::WindowSpec("per");
    per.item = ItemKind::kTrajectory;
    per.window = {};
    per.selector = selector;
    per.filter = filter;
    CreateWith(per);
  }
  uint64_t Reserved() { return priority("per")->Stats().limiter.reserved; }
  /// One that has handed over an item, and carries the next.
  std::unique_ptr<Sampler> SampleCarrying() {
    SamplerOptions options{.batch = 4};
    options.tokens_max = 5;
    options.views = {{.column = "action"}};
    auto sampler = Sample(options);
    EXPECT_OK(sampler->Next(Deadline::Now()));
    EXPECT_EQ(Reserved(), 1u) << "nothing is carried";
    return sampler;
  }
  /// Nothing up to this trajectory passes.
  void ExpectNextBeyond(TrajectoryId last, std::unique_ptr<Sampler> sampler) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next(Deadline::Now()));
    for (const TrajectoryId id : batch.trajectory_ids()) EXPECT_GT(id, last);
    sampler.reset();
    EXPECT_EQ(Reserved(), 0u);
  }
};

TEST_F(CarriedFilterTest, WhatFailsAFilterThatWasSetSinceIsNotShown) {
  for (const SelectorKind selector :
       {SelectorKind::kUniform, SelectorKind::kPrioritized, SelectorKind::kWithoutReplacement}) {
    SCOPED_TRACE(static_cast<int>(selector));
    CreateFiltered(selector, "");
    const TrajectoryId last = AppendSome();
    auto sampler = SampleCarrying();
    AppendSome();
    ASSERT_OK(priority("per")->SetFilter("id > " + std::to_string(last)));
    ExpectNextBeyond(last, std::move(sampler));
  }
}

TEST_F(CarriedFilterTest, NorWhatFailsItByItsColumnsSince) {
  CreateFiltered(SelectorKind::kUniform, "version == 0");
  const TrajectoryId last = AppendSome();
  auto sampler = SampleCarrying();
  AppendSome();
  const uint32_t version = 1;
  const ColumnValue fails[] = {{"version", TensorView::Scalar(version)}};
  for (TrajectoryId id = 1; id <= last; ++id) ASSERT_OK(table_->SetColumns(id, fails));
  ExpectNextBeyond(last, std::move(sampler));
}

}  // namespace
}  // namespace geardb
