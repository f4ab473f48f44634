#include "index/rate_limiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb::index {
namespace {

using testing::ShareOf;
using Reason = LimiterBlock::Reason;

/// The conditions as they are written down, on counts of its own. Reverb's for a ratio, where `n`
/// is one.
struct Conditions {
  RateLimiterSpec spec;
  double inserts = 0, samples = 0, reserved = 0, deletes = 0, unsampled = 0;

  double min_error() const {
    return spec.samples_per_insert * static_cast<double>(spec.min_size) - spec.error_buffer;
  }
  double max_error() const {
    return spec.samples_per_insert * static_cast<double>(spec.min_size) + spec.error_buffer;
  }
  bool Insert(double n) const {
    switch (spec.kind) {
      case LimiterKind::kMinSize:
        return true;
      case LimiterKind::kRatio:
        // Reverb: inserts + 1 - deletes <= min_size, or the error stays in the range.
        return inserts + 1 - deletes <= static_cast<double>(spec.min_size) ||
               (inserts + n) * spec.samples_per_insert - samples <= max_error();
      default:
        return inserts + n - unsampled - samples <= static_cast<double>(spec.capacity);
    }
  }
  bool Sample(double n) const {
    const bool enough = inserts - deletes >= static_cast<double>(spec.min_size);
    switch (spec.kind) {
      case LimiterKind::kMinSize:
        return enough;
      case LimiterKind::kRatio:
        return enough && inserts * spec.samples_per_insert - samples - reserved - n >= min_error();
      default:
        return inserts - unsampled - samples - reserved >= n;
    }
  }
};

/// Numbers of few binary digits, so that both sides are exact.
RateLimiterSpec RandomSpec(std::mt19937_64* random) {
  RateLimiterSpec spec;
  spec.kind = static_cast<LimiterKind>((*random)() % 4);
  spec.min_size = 1 + (*random)() % 20;
  spec.samples_per_insert = static_cast<double>(1 + (*random)() % 64) / 8;
  spec.error_buffer =
      std::max(1.0, spec.samples_per_insert) + static_cast<double>((*random)() % 100) / 4;
  spec.capacity = 1 + (*random)() % 30;
  return spec;
}

TEST(RateLimiterTest, RandomHistoriesFollowTheConditions) {
  std::mt19937_64 random(1);
  for (uint64_t round = 0; round < ShareOf(400); ++round) {
    const RateLimiterSpec spec = RandomSpec(&random);
    ASSERT_OK(ValidateRateLimiter(spec));
    RateLimiter limiter(spec);
    Conditions model{.spec = spec};
    for (int step = 0; step < 500; ++step) {
      for (const uint64_t n : {1u, 2u, 3u, 7u, 40u}) {
        const auto number = static_cast<double>(n);
        ASSERT_EQ(limiter.CanInsert(n), model.Insert(number));
        ASSERT_EQ(limiter.CanSample(n), model.Sample(number));
      }
      const uint64_t n = 1 + random() % 5;
      const auto number = static_cast<double>(n);
      const RateLimiterState& state = limiter.state();
      switch (random() % 6) {
        case 0:
        case 1:
          if (!limiter.CanInsert(n)) break;
          limiter.Insert(n);
          model.inserts += number;
          break;
        case 2:
          if (!limiter.CanSample(n)) break;
          limiter.Reserve(n);
          model.reserved += number;
          break;
        case 3:
        case 4: {
          const uint64_t some = random() % (state.reserved + 1);
          const bool cancel = random() % 4 == 0;
          if (cancel) {
            limiter.Cancel(some);
          } else {
            limiter.Confirm(some);
            model.samples += static_cast<double>(some);
          }
          model.reserved -= static_cast<double>(some);
          break;
        }
        default: {
          // Never more that wait, of a queue, than are not reserved.
          const uint64_t items = random() % (std::min<uint64_t>(limiter.size(), 3) + 1);
          const double waiting = model.inserts - model.unsampled - model.samples - model.reserved;
          const uint64_t unsampled = std::min(items, static_cast<uint64_t>(std::max(waiting, 0.0)));
          limiter.Delete({.items = items, .unsampled = unsampled});
          model.deletes += static_cast<double>(items);
          model.unsampled += static_cast<double>(unsampled);
        }
      }
      // A logged state goes on as the limiter that it was taken from.
      if (step % 50 == 0) limiter = RateLimiter(spec, limiter.state());
    }
  }
}

TEST(RateLimiterTest, WhatWasAllowedStaysInItsRange) {
  std::mt19937_64 random(2);
  for (uint64_t round = 0; round < ShareOf(200); ++round) {
    RateLimiterSpec spec = RandomSpec(&random);
    if (spec.kind == LimiterKind::kMinSize) continue;
    RateLimiter limiter(spec);
    const Conditions range{.spec = spec};
    for (int step = 0; step < 1000; ++step) {
      const uint64_t n = 1 + random() % 3;
      if (random() % 2 == 0 && limiter.CanInsert(n)) limiter.Insert(n);
      if (random() % 2 == 0 && limiter.CanSample(n)) limiter.Reserve(n);
      const uint64_t some = random() % (limiter.state().reserved + 1);
      if (random() % 3 == 0) {
        limiter.Cancel(some);
      } else {
        limiter.Confirm(some);
      }
      const RateLimiterState& state = limiter.state();
      if (spec.kind == LimiterKind::kRatio) {
        const double error = static_cast<double>(state.inserts) * spec.samples_per_insert -
                             static_cast<double>(state.samples);
        if (state.samples > 0) {
          ASSERT_GE(error - static_cast<double>(state.reserved), range.min_error());
        }
        if (state.inserts > spec.min_size + 2) {
          ASSERT_LE(error, range.max_error());
        }
      } else {
        ASSERT_LE(state.samples + state.reserved, state.inserts);
        ASSERT_LE(state.inserts - state.samples, spec.capacity);
      }
    }
  }
}

/// Whether some order of allowed moves of these sizes comes to a state where neither side may move.
/// Everything reserved is confirmed or cancelled at once.
bool CanGetStuck(const RateLimiterSpec& spec, const LimiterBatches& batches, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int history = 0; history < 30; ++history) {
    RateLimiter limiter(spec);
    for (int step = 0; step < 300; ++step) {
      const bool insert = limiter.CanInsert(batches.inserts);
      const bool sample = limiter.CanSample(batches.samples);
      if (!insert && !sample) return true;
      if (insert && (!sample || random() % 2 == 0)) {
        limiter.Insert(batches.inserts);
        // A full table: what is too much leaves first. Here it was all sampled before.
        if (batches.items_max > 0 && limiter.size() > batches.items_max) {
          limiter.Delete({.items = limiter.size() - batches.items_max, .unsampled = 0});
        }
      } else {
        limiter.Reserve(batches.samples);
        if (random() % 5 == 0) {
          limiter.Cancel(batches.samples);
        } else {
          limiter.Confirm(batches.samples);
        }
      }
    }
  }
  return false;
}

TEST(RateLimiterTest, NobodyWaitsForEverWithinWhatIsChecked) {
  std::mt19937_64 random(3);
  int checked = 0;
  for (uint64_t round = 0; round < ShareOf(3000); ++round) {
    const RateLimiterSpec spec = RandomSpec(&random);
    const LimiterBatches batches{.inserts = 1 + random() % 12, .samples = 1 + random() % 40};
    if (!CheckLimiterBatches(spec, batches).ok()) continue;
    ++checked;
    ASSERT_FALSE(CanGetStuck(spec, batches, round))
        << static_cast<int>(spec.kind) << ' ' << spec.min_size << ' ' << spec.samples_per_insert
        << ' ' << spec.error_buffer << ' ' << spec.capacity << ' ' << batches.inserts << ' '
        << batches.samples;
  }
  EXPECT_GT(checked, 100);
}

TEST(RateLimiterTest, EveryValidSpecMovesOneByOne) {
  std::mt19937_64 random(4);
  for (uint64_t round = 0; round < ShareOf(500); ++round) {
    const RateLimiterSpec spec = RandomSpec(&random);
    ASSERT_OK(CheckLimiterBatches(spec, {}));
    ASSERT_FALSE(CanGetStuck(spec, {}, round));
  }
}

TEST(RateLimiterTest, WhatIsRefusedGetsStuck) {
  // One below what is expected, each is a deadlock that a history finds.
  RateLimiterSpec queue{.kind = LimiterKind::kQueue, .capacity = 9};
  EXPECT_OK(CheckLimiterBatches(queue, {.inserts = 4, .samples = 6}));
  EXPECT_STATUS(kInvalidArgument, CheckLimiterBatches(queue, {.inserts = 5, .samples = 6}),
                "a queue of capacity 9 with inserts of 5 and draws of 6: each side may wait for "
                "the other; expected a capacity of at least 10");
  EXPECT_TRUE(CanGetStuck(queue, {.inserts = 5, .samples = 6}, 1));
  RateLimiterSpec ratio{
      .kind = LimiterKind::kRatio, .min_size = 10, .samples_per_insert = 2, .error_buffer = 8};
  EXPECT_OK(CheckLimiterBatches(ratio, {.inserts = 3, .samples = 10}));
  EXPECT_STATUS(kInvalidArgument, CheckLimiterBatches(ratio, {.inserts = 3, .samples = 13}),
                "error_buffer is 8 with samples_per_insert 2, inserts of 3 and draws of 13: each "
                "side may wait for the other; expected at least 9.5");
  EXPECT_TRUE(CanGetStuck(ratio, {.inserts = 3, .samples = 13}, 1));
  RateLimiterSpec large{.kind = LimiterKind::kMinSize, .min_size = 101};
  EXPECT_OK(CheckLimiterBatches(large, {.items_max = 101}));
  EXPECT_STATUS(kInvalidArgument, CheckLimiterBatches(large, {.items_max = 100}),
                "min_size is 101, and the table holds at most 100 items");
  EXPECT_STATUS(kInvalidArgument, CheckLimiterBatches(queue, {.samples = 6, .items_max = 5}),
                "over at most 5 items never has the 6 of one draw");
}

TEST(RateLimiterTest, WrongSpecsAreRefused) {
  const auto ratio = [](double samples, double buffer) {
    return ValidateRateLimiter(
        {.kind = LimiterKind::kRatio, .samples_per_insert = samples, .error_buffer = buffer});
  };
  EXPECT_STATUS(kInvalidArgument, ratio(0, 10), "samples_per_insert is 0");
  EXPECT_STATUS(kInvalidArgument, ratio(-1, 10), "samples_per_insert is -1");
  EXPECT_STATUS(kInvalidArgument, ratio(std::numeric_limits<double>::quiet_NaN(), 10), "finite");
  EXPECT_STATUS(kInvalidArgument, ratio(8, 7.5),
                "error_buffer is 7.5 with samples_per_insert 8; "
                "expected a finite number of at least 8");
  EXPECT_STATUS(kInvalidArgument, ratio(0.5, 0.9), "at least 1");
  EXPECT_STATUS(kInvalidArgument, ratio(1, std::numeric_limits<double>::infinity()), "finite");
  EXPECT_OK(ratio(8, 8));
  EXPECT_OK(ratio(0.5, 1));
  EXPECT_STATUS(kInvalidArgument, ValidateRateLimiter({.min_size = 0}), "min_size is 0");
  EXPECT_STATUS(kInvalidArgument, ValidateRateLimiter({.kind = LimiterKind::kStack}),
                "the capacity of a stack is 0");
  EXPECT_STATUS(kInvalidArgument, ValidateRateLimiter({.kind = static_cast<LimiterKind>(9)}),
                "unknown kind 9");
}

TEST(RateLimiterTest, ReasonsAreNumbersThatSuffice) {
  std::mt19937_64 random(5);
  int seen[6] = {};
  for (uint64_t round = 0; round < ShareOf(2000); ++round) {
    const RateLimiterSpec spec = RandomSpec(&random);
    RateLimiter limiter(spec);
    for (uint64_t steps = random() % 60; steps > 0; --steps) {
      const uint64_t n = 1 + random() % 6;
      if (random() % 2 == 0 && limiter.CanInsert(n)) limiter.Insert(n);
      if (random() % 2 == 0 && limiter.CanSample(n)) limiter.Reserve(n);
      if (random() % 3 == 0) limiter.Confirm(limiter.state().reserved);
    }
    const uint64_t n = 1 + random() % 50;
    for (const LimiterSide side : {LimiterSide::kInsert, LimiterSide::kSample}) {
      const auto allowed = [&](const RateLimiter& one) {
        return side == LimiterSide::kInsert ? one.CanInsert(n) : one.CanSample(n);
      };
      const LimiterBlock block = limiter.Blocked(side, n);
      ++seen[static_cast<int>(block.reason)];
      ASSERT_EQ(block.wanted, n);
      ASSERT_EQ(block.reason == Reason::kNone, allowed(limiter));
      ASSERT_EQ(block.reason == Reason::kNone, block.text.empty());
      // Exactly as much as it says, and no less, lets it move (past min_size a ratio may ask more).
      const auto after = [&](uint64_t moves) {
        RateLimiter later = limiter;
        if (block.reason == Reason::kManyReserved) {
          later.Cancel(moves);
        } else if (block.reason == Reason::kFewSamples) {
          later.Reserve(moves);
          RateLimiterState state = later.state();
          state.reserved -= moves;
          state.samples += moves;
          later = RateLimiter(spec, state);
        } else {
          later.Insert(moves);
        }
        return block.reason == Reason::kMinSize ? later.size() >= spec.min_size : allowed(later);
      };
      if (block.reason == Reason::kNone || block.reason == Reason::kNever) continue;
      ASSERT_TRUE(after(block.needed)) << block.text;
      ASSERT_FALSE(after(block.needed - 1)) << block.text;
    }
  }
  for (const int count : seen) EXPECT_GT(count, 10);
}

TEST(RateLimiterTest, ReasonsReadAsSentences) {
  RateLimiter limiter(
      {.kind = LimiterKind::kRatio, .min_size = 8, .samples_per_insert = 8, .error_buffer = 64});
  EXPECT_EQ(limiter.Blocked(LimiterSide::kSample, 16).text,
            "min size 8: 0 items; 8 more items are needed to sample 16");
  limiter.Insert(128);
  limiter.Reserve(1020);
  limiter.Confirm(1020);
  EXPECT_EQ(limiter.Blocked(LimiterSide::kSample, 16).text,
            "samples per insert 8 with error buffer 64 from min size 8: 128 inserts, 1020 samples; "
            "2 more inserts are needed to sample 16");
  limiter.Insert(20);
  EXPECT_EQ(limiter.Blocked(LimiterSide::kInsert, 1).text,
            "samples per insert 8 with error buffer 64 from min size 8: 148 inserts, 1020 samples; "
            "44 more samples are needed to insert 1");
  EXPECT_EQ(limiter.Blocked(LimiterSide::kSample, 200).reason, Reason::kNever);
  RateLimiter queue({.kind = LimiterKind::kQueue, .capacity = 4});
  queue.Insert(4);
  queue.Reserve(3);
  EXPECT_EQ(queue.Blocked(LimiterSide::kInsert, 2).text,
            "queue of capacity 4: 4 items wait, of which 3 are reserved; 2 more samples are needed "
            "to insert 2");
  EXPECT_EQ(queue.Blocked(LimiterSide::kSample, 2).reason, Reason::kManyReserved);
  EXPECT_EQ(queue.Blocked(LimiterSide::kSample, 5).text,
            "queue of capacity 4: 4 items wait, of which 3 are reserved; 5 samples at once are "
            "never allowed");
  EXPECT_EQ(queue.Blocked(LimiterSide::kSample, 0).reason, Reason::kNone);
}

TEST(RateLimiterTest, AnUnsampledDeleteGivesItsPlaceBack) {
  RateLimiter queue({.kind = LimiterKind::kQueue, .capacity = 2});
  queue.Insert(2);
  EXPECT_FALSE(queue.CanInsert(1));
  queue.Delete({.items = 1, .unsampled = 1});
  EXPECT_TRUE(queue.CanInsert(1));
  EXPECT_FALSE(queue.CanSample(2));
  queue.Insert(1);
  queue.Reserve(2);
  // One that is deleted while it is reserved, and then cancelled.
  queue.Delete({.items = 1, .unsampled = 0});
  queue.Cancel(1);
  queue.Delete({.items = 0, .unsampled = 1});
  EXPECT_TRUE(queue.CanInsert(1));
  queue.Confirm(1);
  EXPECT_TRUE(queue.CanInsert(2));
  EXPECT_FALSE(queue.CanSample(1));
}

TEST(RateLimiterTest, ConfigureBeginsFromWhatIsThere) {
  RateLimiter limiter(RateLimiterSpec{});
  limiter.Insert(1000);
  limiter.Reserve(50'000);
  limiter.Confirm(50'000);
  limiter.Delete({.items = 900, .unsampled = 0});
  EXPECT_STATUS(kInvalidArgument, limiter.Configure({.kind = LimiterKind::kQueue}), "capacity");
  EXPECT_EQ(limiter.spec().kind, LimiterKind::kMinSize);
  ASSERT_OK(limiter.Configure(
      {.kind = LimiterKind::kRatio, .min_size = 10, .samples_per_insert = 4, .error_buffer = 20}));
  // As a new one with 10 items: in the middle of its range.
  EXPECT_TRUE(limiter.CanSample(20));
  EXPECT_FALSE(limiter.CanSample(21));
  EXPECT_TRUE(limiter.CanInsert(5));
  EXPECT_FALSE(limiter.CanInsert(6));
  limiter.Insert(5);
  // A wider buffer alone goes on where the limiter was.
  ASSERT_OK(limiter.Configure(
      {.kind = LimiterKind::kRatio, .min_size = 10, .samples_per_insert = 4, .error_buffer = 28}));
  EXPECT_TRUE(limiter.CanInsert(2));
  EXPECT_FALSE(limiter.CanInsert(3));
  ASSERT_OK(limiter.Configure({.kind = LimiterKind::kQueue, .capacity = 200}));
  EXPECT_TRUE(limiter.CanSample(105));
  EXPECT_FALSE(limiter.CanSample(106));
  EXPECT_TRUE(limiter.CanInsert(95));
  EXPECT_FALSE(limiter.CanInsert(96));
  limiter.Reserve(5);
  limiter.Confirm(5);
  ASSERT_OK(limiter.Configure({.kind = LimiterKind::kStack, .capacity = 100}));
  EXPECT_FALSE(limiter.CanInsert(1));
  EXPECT_TRUE(limiter.CanSample(100));
  EXPECT_EQ(limiter.state().inserts, 1005u);
  EXPECT_EQ(limiter.state().samples, 50'005u);
}

TEST(RateLimiterTest, CountsBeyond32Bits) {
  RateLimiter queue({.kind = LimiterKind::kQueue, .capacity = uint64_t{1} << 40});
  queue.Insert(uint64_t{1} << 40);
  EXPECT_FALSE(queue.CanInsert(1));
  EXPECT_TRUE(queue.CanSample(uint64_t{1} << 40));
  EXPECT_FALSE(queue.CanSample((uint64_t{1} << 40) + 1));
  EXPECT_FALSE(queue.CanSample(UINT64_MAX));
  EXPECT_FALSE(queue.CanInsert(UINT64_MAX));
  RateLimiter ratio({.kind = LimiterKind::kRatio, .samples_per_insert = 1, .error_buffer = 1});
  ratio.Insert(uint64_t{1} << 40);
  ratio.Reserve((uint64_t{1} << 40) - 1);
  EXPECT_TRUE(ratio.CanSample(1));
  EXPECT_FALSE(ratio.CanSample(2));
}

}  // namespace
}  // namespace geardb::index
