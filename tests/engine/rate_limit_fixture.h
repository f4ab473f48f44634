// A table of short trajectories with one limited priority table, and directories copied as a crash
// would leave them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/store_fixture.h"

namespace geardb::testing {

class RateLimitFixture : public StoreTest {
 protected:
  static PriorityTableSpec Limited(RateLimit limiter, SelectorKind selector,
                                   uint32_t max_times = 0) {
    PriorityTableSpec spec = WindowSpec("limited");
    spec.selector = selector;
    spec.limiter = limiter;
    spec.max_times_sampled = max_times;
    return spec;
  }
  static PriorityTableSpec Queue(uint64_t capacity) {
    return Limited({.kind = LimiterKind::kQueue, .capacity = capacity}, SelectorKind::kFifo);
  }
  /// Appends are refused at once where they would have to wait.
  void CreateLimited(const PriorityTableSpec& priority_spec) {
    TableSpec spec = StepSpec();
    spec.priority_tables = {priority_spec};
    Create(spec, {.admission_timeout_ms = 0});
  }
  Result<Appended> TryAppend(int64_t first, int64_t count, End end = End::kTerminated) {
    const Rows rows(first, count);
    return writer_->AppendSteps(rows.many(), {.end = end});
  }
  std::unique_ptr<Sampler> Sample(int64_t batch, int64_t prefetch = 0, bool observer = false) {
    auto sampler = priority("limited")->NewSampler(
        {.batch = batch, .prefetch = prefetch, .observer = observer});
    EXPECT_OK(sampler);
    return sampler.ok() ? std::move(*sampler) : nullptr;
  }
  using Item = std::pair<TrajectoryId, int64_t>;
  static std::vector<Item> ItemsOf(const Batch& batch) {
    std::vector<Item> items;
    for (size_t i = 0; i < static_cast<size_t>(batch.size()); ++i) {
      items.emplace_back(batch.trajectory_ids()[i], batch.anchors()[i]);
    }
    return items;
  }
  static Result<Batch> NextNow(Sampler* sampler) { return sampler->Next(Deadline::Now()); }
  LimiterStats Limits() { return priority("limited")->Stats().limiter; }
};

}  // namespace geardb::testing
