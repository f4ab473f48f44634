// An append that would complete a group waits for a place in a queue; once the group is sealed it
// begins another, and needs none: nobody told it, and it waited for its whole time.
//
// concurrent: engine/internal/seal_groups.cc engine/internal/append_limits.cc
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/engine/internal/draw_groups_fixture.h"

namespace geardb {
namespace {

class SealWakesConcurrentTest : public testing::DrawGroupsFixture {
 protected:
  /// A queue of one group, which is there; group 2 waits for one member more.
  void CreateFull(const GroupSpec& group) {
    PriorityTableSpec spec = GroupsSpec(group, SelectorKind::kFifo);
    spec.limiter = {.kind = LimiterKind::kQueue, .capacity = 1};
    Create(TableOf(spec), {.admission_timeout_ms = 60'000});
    Complete(2);
    CompleteSome(1, 2);
  }
  /// A member of group 2 waits until `seal` has sealed that.
  void ExpectAdmittedBy(const std::function<void()>& seal) {
    const Deadline deadline = Deadline::AfterMs(60'000);
    std::atomic<bool> returned{false};
    std::thread appends([&] {
      Complete(2);
      returned = true;
    });
    while (!returned && groups()->WhyBlocked().inserts.waiting == 0) std::this_thread::yield();
    EXPECT_FALSE(returned.load()) << "it had a place";
    seal();
    appends.join();
    EXPECT_FALSE(deadline.passed());
    EXPECT_EQ(Groups().waiting, 1u);
  }
};

TEST_F(SealWakesConcurrentTest, WhoWouldHaveCompletedAGroupBeginsAnother) {
  CreateFull({.key = "prompt", .count = 2});
  ExpectAdmittedBy([&] { EXPECT_OK(groups()->SealGroup(2)); });
}

TEST_F(SealWakesConcurrentTest, LikewiseWhenItsDeadlineHasPassed) {
  CreateFull({.key = "prompt", .count = 2, .at_least = 1, .deadline_ms = 100});
  ExpectAdmittedBy([&] {
    PassMs(100);
    EXPECT_OK(groups()->SealOverdueGroups());
  });
}

}  // namespace
}  // namespace geardb
