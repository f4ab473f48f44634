// What a writer leaves or takes may pass a standing filter that it failed: who waited for an item
// was not told, and slept until its deadline.
//
// concurrent: engine/internal/trajectory_end.cc engine/internal/change_signal.h
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class AdoptWakesConcurrentTest : public testing::StoreTest {
 protected:
  void CreateWith(const std::string& filter) {
    TableSpec spec = testing::StepSpec();
    spec.priority_tables = {testing::WindowSpec("all")};
    spec.priority_tables[0].selector = SelectorKind::kUniform;
    spec.priority_tables[0].filter = filter;
    Create(spec);
  }
  /// Nothing passes before `change`: who waits is woken by that, and not by its deadline.
  void ExpectWokenBy(const std::function<void()>& change) {
    PriorityTable* const all = priority("all");
    ASSERT_OK_AND_ASSIGN(const auto sampler,
                         all->NewSampler({.batch = 1, .views = {{.column = "obs"}}}));
    const Deadline deadline = Deadline::AfterMs(60'000);
    std::atomic<bool> returned{false};
    std::thread waits([&] {
      EXPECT_OK(sampler->Next(deadline));
      returned = true;
    });
    while (!returned && all->WhyBlocked().samples.waiting == 0) std::this_thread::yield();
    EXPECT_FALSE(returned.load()) << "something passed before";
    change();
    waits.join();
    EXPECT_FALSE(deadline.passed());
  }
};

TEST_F(AdoptWakesConcurrentTest, WhatIsDetachedIsDrawn) {
  CreateWith("state == orphaned");
  Append(0, 3);
  ExpectWokenBy([&] { EXPECT_OK(writer_->Detach()); });
}

TEST_F(AdoptWakesConcurrentTest, WhatAWriterLeavesThatGoesIsDrawn) {
  CreateWith("state == orphaned");
  Append(0, 3);
  ExpectWokenBy([&] { writer_.reset(); });
}

TEST_F(AdoptWakesConcurrentTest, WhatIsResumedIsDrawn) {
  CreateWith("state == open");
  const TrajectoryId id = Append(0, 3).id;
  ASSERT_OK(writer_->Detach());
  ExpectWokenBy([&] { EXPECT_OK(writer_->Resume(id)); });
}

}  // namespace
}  // namespace geardb
