#include "engine/internal/number_array.h"

#include <gtest/gtest.h>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

struct OfNumber {
  uint64_t first;
  uint32_t second;
};

TEST(NumberArrayTest, ValuesStayWhereTheyAre) {
  const auto memory = index::TestMemory();
  NumberArray<OfNumber> values(memory.get(), "values");
  EXPECT_EQ(values.size(), 0u);
  ASSERT_OK(values.Reserve(1));
  OfNumber* const first = &values[0];
  uint64_t known = 0;
  for (uint64_t count = 1; count <= 30'000; count += 1 + count / 3) {
    ASSERT_OK(values.Reserve(count));
    ASSERT_GE(values.size(), count);
    for (; known < values.size(); ++known) {
      ASSERT_EQ(values[known].first, 0u) << known;
      values[known] = {known, static_cast<uint32_t>(known) + 1};
    }
  }
  EXPECT_EQ(&values[0], first);
  for (uint64_t number = 0; number < known; ++number) {
    ASSERT_EQ(values[number].first, number);
    ASSERT_EQ(values[number].second, number + 1);
  }
  ASSERT_OK(values.Reserve(5));
  EXPECT_EQ(values.size(), known);
}

TEST(NumberArrayTest, WhatIsReservedIsCharged) {
  const auto memory = index::TestMemory();
  const uint64_t before = memory->used_bytes();
  {
    NumberArray<OfNumber> values(memory.get(), "values");
    ASSERT_OK(values.Reserve(100'000));
    const uint64_t bytes = 100'000 * sizeof(OfNumber);
    EXPECT_GE(memory->used_bytes(), before + bytes);
    EXPECT_LE(memory->used_bytes(), before + bytes + NumberArray<OfNumber>::kPerChunk * 16);
  }
  EXPECT_EQ(memory->used_bytes(), before);
}

TEST(NumberArrayTest, TheBudgetBoundsIt) {
  const auto memory = index::TestMemory(uint64_t{1} << 20);
  NumberArray<OfNumber> values(memory.get(), "values");
  EXPECT_STATUS(kResourceExhausted, values.Reserve(100'000), "is too small for 'values'");
  ASSERT_GT(values.size(), 50'000u);
  values[values.size() - 1] = {1, 2};
  EXPECT_EQ(values[values.size() - 1].second, 2u);
}

}  // namespace
}  // namespace geardb::engine
