#include "engine/internal/priority_limits.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

/// What is read of what is stored.
Result<PriorityLimits> Read(flatbuffers::FlatBufferBuilder* builder,
                            flatbuffers::Offset<fb::Limits> stored) {
  builder->Finish(fb::CreateConfigure(*builder, stored));
  return DecodeLimits(flatbuffers::GetRoot<fb::Configure>(builder->GetBufferPointer())->limits());
}

TEST(PriorityLimitsTest, WhatIsStoredIsRead) {
  std::vector<PriorityLimits> all(1);
  for (const LimiterKind kind :
       {LimiterKind::kMinSize, LimiterKind::kRatio, LimiterKind::kQueue, LimiterKind::kStack}) {
    for (const std::optional<bool> removes : {std::optional<bool>(), {false}, {true}}) {
      all.push_back({.limiter = {.kind = kind,
                                 .min_size = uint64_t{1} << 40,
                                 .samples_per_insert = 0.1,
                                 .error_buffer = 1e300,
                                 .capacity = UINT64_MAX},
                     .max_times_sampled = UINT32_MAX,
                     .remove_when_exhausted = removes});
    }
  }
  for (const PriorityLimits& limits : all) {
    flatbuffers::FlatBufferBuilder builder;
    const auto stored = EncodeLimits(&builder, limits);
    const auto read = Read(&builder, stored);
    ASSERT_OK(read);
    EXPECT_TRUE(*read == limits);
  }
}

TEST(PriorityLimitsTest, DefaultsAreNotStored) {
  flatbuffers::FlatBufferBuilder builder;
  EXPECT_TRUE(EncodeLimits(&builder, {}).IsNull());
}

TEST(PriorityLimitsTest, BytesFromDiskAreNeverAssertedOn) {
  flatbuffers::FlatBufferBuilder builder;
  const auto kind = fb::CreateLimits(builder, 4);
  EXPECT_STATUS(kUnsupported, Read(&builder, kind), "a rate limiter of kind 4");
  builder.Clear();
  const auto removes = fb::CreateLimits(builder, 0, 1, 1, 0, 0, 0, 3);
  EXPECT_STATUS(kCorruption, Read(&builder, removes), "remove_when_exhausted is stored as 3");
}

TEST(PriorityLimitsTest, AQueueSamplesOnceAndRemoves) {
  PriorityLimits limits{.limiter = {.kind = LimiterKind::kQueue, .capacity = 4}};
  EXPECT_EQ(MaxTimes(limits), 1u);
  EXPECT_TRUE(RemovesExhausted(limits));
  EXPECT_EQ(Describe(limits),
            "queue of capacity 4, items sampled 1 times at most, removed when exhausted");
  limits.remove_when_exhausted = false;
  EXPECT_FALSE(RemovesExhausted(limits));
  EXPECT_EQ(MaxTimes({.max_times_sampled = 5}), 5u);
  EXPECT_FALSE(RemovesExhausted({.max_times_sampled = 5}));
  EXPECT_EQ(Describe({}), "min size 1, items sampled any number of times");
}

TEST(PriorityLimitsTest, NumbersThatAreNoneAreRefused) {
  PriorityTableSpec spec;
  spec.name = "per";
  EXPECT_OK(ValidateLimits(spec));
  // Ignored by a minimum of size, and stored all the same: a NaN would not equal itself.
  spec.limiter.error_buffer = std::numeric_limits<double>::quiet_NaN();
  EXPECT_STATUS(kInvalidArgument, ValidateLimits(spec), "that is no number");
  spec.limiter = {.kind = LimiterKind::kRatio, .samples_per_insert = 4, .error_buffer = 3};
  EXPECT_STATUS(kInvalidArgument, ValidateLimits(spec), "priority table 'per'");
}

}  // namespace
}  // namespace geardb::engine
