// Arguments at the edge of their types mean what they say.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using ExtremeArgumentsTest = testing::StoreTest;

// The sum of where to begin and how many to read wrapped around: none were read.
TEST_F(ExtremeArgumentsTest, AnyNumberOfRemovalsMayBeAskedFor) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  Create(testing::StepSpec());
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(AppendClosed(10 * i, 2));
  ASSERT_OK(table_->Remove(ids));
  for (uint64_t from = 0; from <= 3; ++from) {
    for (const uint64_t most : {kMost, kMost - 1}) {
      ASSERT_OK_AND_ASSIGN(const Removals found,
                           table_->ReadRemovals(from, {.removals_max = most}));
      EXPECT_EQ(found.removals.size(), 3 - from);
      EXPECT_EQ(found.next, 3u);
      EXPECT_EQ(found.missed, 0u);
      for (uint64_t i = 0; i < found.removals.size(); ++i) {
        EXPECT_EQ(found.removals[i].id, ids[from + i]);
      }
    }
  }
}

// The time wrapped around, and all were older.
TEST_F(ExtremeArgumentsTest, NoOrphanIsOlderThanTimeItself) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Create(testing::StepSpec());
  const TrajectoryId id = Append(0, 4).id;
  ASSERT_OK(writer_->Detach());
  for (const int64_t older_than_ms : {kMost, kMost / 1000 + 1, kMost / 1000}) {
    ASSERT_OK_AND_ASSIGN(const uint64_t closed, table_->CloseOrphans(older_than_ms));
    EXPECT_EQ(closed, 0u) << older_than_ms;
    EXPECT_EQ(table_->Find(id)->state, TrajectoryState::kOrphaned) << older_than_ms;
  }
  ASSERT_OK_AND_ASSIGN(const uint64_t closed, table_->CloseOrphans(0));
  EXPECT_EQ(closed, 1u);
}

}  // namespace
}  // namespace geardb
