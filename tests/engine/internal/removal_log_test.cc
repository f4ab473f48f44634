#include "engine/internal/removal_log.h"

#include <gtest/gtest.h>

namespace geardb::engine {
namespace {

TEST(RemovalLogTest, RemembersTheLastOnes) {
  RemovalLog log;
  log.Restore(100);
  EXPECT_EQ(log.begin(), 100u);
  EXPECT_EQ(log.end(), 100u);
  for (uint64_t id = 0; id < RemovalLog::kMax + 10; ++id) {
    log.Add(id, {.reason = id % 2 == 0 ? RemovalReason::kAge : RemovalReason::kFilter,
                 .priority_table = static_cast<uint32_t>(id % 3)});
  }
  EXPECT_EQ(log.begin(), 110u);
  EXPECT_EQ(log.end(), 110u + RemovalLog::kMax);
  for (uint64_t number = log.begin(); number < log.end(); number += 1001) {
    EXPECT_EQ(log.entry(number).id, number - 100);
    EXPECT_EQ(log.entry(number).cause.priority_table, (number - 100) % 3);
  }
  EXPECT_EQ(log.counts()[static_cast<size_t>(RemovalReason::kAge)], RemovalLog::kMax / 2 + 5);
  log.ResetCounters();
  EXPECT_EQ(log.counts()[static_cast<size_t>(RemovalReason::kAge)], 0u);
}

}  // namespace
}  // namespace geardb::engine
