// Token budgets: batches against a plain reference that fills them from the rows of plain draws.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "tests/engine/sampler_fixture.h"

namespace geardb {
namespace {

using testing::kWindowSeed;
using testing::SamplerFixture;
using testing::StepSpec;
using testing::WindowSpec;

struct Row {
  TrajectoryId id = 0;
  int64_t anchor = 0;
  int64_t length = 0;
  double probability = 0;

  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> RowsOf(const Batch& batch) {
  std::vector<Row> rows;
  for (size_t i = 0; i < batch.handles().size(); ++i) {
    rows.push_back({batch.trajectory_ids()[i], batch.anchors()[i], batch.lengths()[i],
                    batch.probabilities()[i]});
  }
  return rows;
}

class SamplerTokensTest : public SamplerFixture {
 protected:
  /// "per" over trajectories of many lengths, or windows of four steps that an end clips.
  void Fill(ItemKind kind, SelectorKind selector, const RateLimit& limiter = {},
            uint32_t max_times = 0) {
    OpenEmpty();
    PriorityTableSpec per = WindowSpec("per", {.length = 4});
    per.item = kind;
    if (kind == ItemKind::kTrajectory) per.window = {};
    per.selector = selector;
    per.limiter = limiter;
    per.max_times_sampled = max_times;
    per.remove_when_exhausted = false;
    CreateWith(per);
    std::vector<float> priorities;
    for (int64_t i = 0; i < 30; ++i) AppendClosed(0, Length(i));
    for (const RowId& row : priority("per")->Items()) {
      priorities.push_back(static_cast<float>(1 + (row.id + static_cast<uint64_t>(row.row)) % 5));
    }
    if (HasPriorities(selector)) {
      ASSERT_OK(priority("per")->SetAll(priorities));
    }
  }
  static int64_t Length(int64_t i) { return 1 + (i * 11) % 23; }

  SamplerOptions Options(int64_t tokens_max, BatchLayout layout, int64_t batch = 256) const {
    SamplerOptions options{.batch = batch};
    options.layout = layout;
    options.tokens_max = tokens_max;
    options.views = {{.column = "action"}};
    return options;
  }
  /// The rows of draw `draw`.
  std::vector<Row> Draw(uint64_t draw) {
    const PriorityTableSpec& spec = priority("per")->spec();
    const bool distinct = spec.selector >= SelectorKind::kFifo;
    const auto batch =
        Sample({.batch = distinct ? static_cast<int64_t>(priority("per")->Count()) : int64_t{1024},
                .observer = true,
                .seed = kWindowSeed,
                .restart_draw = draw})
            ->Next();
    EXPECT_OK(batch);
    return RowsOf(*batch);
  }
  /// The batches of SamplerOptions::tokens_max, in its words.
  class Reference {
   public:
    Reference(SamplerTokensTest* test, const SamplerOptions& options)
        : test_(test), options_(options) {}
    std::vector<Row> Next() {
      const PriorityTableSpec& spec = test_->priority("per")->spec();
      const bool distinct = spec.selector >= SelectorKind::kFifo;
      std::vector<Row> batch;
      const std::optional<Row> opens = carried_;
      if (carried_) batch.push_back(*carried_);
      carried_.reset();
      for (const Row& row : test_->Draw(draw_++)) {
        if (Full(batch)) break;
        if (distinct && opens == row) continue;
        std::vector<Row> with = batch;
        with.push_back(row);
        if (!batch.empty() && Tokens(with) > options_.tokens_max) {
          const bool starts_over =
              spec.selector >= SelectorKind::kFifo && spec.selector <= SelectorKind::kMaxHeap;
          if (!starts_over) carried_ = row;
          break;
        }
        batch = with;
      }
      return batch;
    }
    bool carries() const { return carried_.has_value(); }

   private:
    int64_t Tokens(const std::vector<Row>& rows) const {
      const bool windows = test_->priority("per")->spec().item == ItemKind::kWindow;
      int64_t sum = 0, longest = 0;
      for (const Row& row : rows) {
        sum += row.length;
        longest = std::max(longest, windows ? 4 : row.length);
      }
      const bool packed = options_.layout == BatchLayout::kPacked;
      return packed ? sum : longest * static_cast<int64_t>(rows.size());
    }
    bool Full(const std::vector<Row>& rows) const {
      return static_cast<int64_t>(rows.size()) >= options_.batch ||
             Tokens(rows) >= options_.tokens_max;
    }
    SamplerTokensTest* test_;
    SamplerOptions options_;
    uint64_t draw_ = 0;
    std::optional<Row> carried_;
  };
};

TEST_F(SamplerTokensTest, BatchesAreThoseOfTheReference) {
  for (const ItemKind kind : {ItemKind::kTrajectory, ItemKind::kWindow}) {
    for (const SelectorKind selector :
         {SelectorKind::kUniform, SelectorKind::kPrioritized, SelectorKind::kWithoutReplacement,
          SelectorKind::kLifo, SelectorKind::kMaxHeap}) {
      Fill(kind, selector);
      for (const BatchLayout layout : {BatchLayout::kPadded, BatchLayout::kPacked}) {
        for (const int64_t tokens_max : {1, 17, 60}) {
          for (const int64_t batch : {5, 256}) {
            SCOPED_TRACE(::testing::Message()
                         << static_cast<int>(kind) << " " << static_cast<int>(selector) << " "
                         << static_cast<int>(layout) << " " << tokens_max << " " << batch);
            SamplerOptions options = Options(tokens_max, layout, batch);
            options.prefetch = batch == 5 ? 2 : 0;
            options.observer = true;
            options.seed = kWindowSeed;
            auto sampler = Sample(options);
            Reference reference(this, options);
            for (int i = 0; i < 6; ++i) {
              const auto drawn = sampler->Next();
              ASSERT_OK(drawn);
              ASSERT_EQ(RowsOf(*drawn), reference.Next()) << "batch " << i;
              // The views show the carried item, too.
              const auto shown = drawn->ViewLengths("action");
              ASSERT_EQ(shown->size(), drawn->handles().size());
            }
          }
        }
      }
    }
  }
}

TEST_F(SamplerTokensTest, EachItemIsCountedInTheBatchThatShowsIt) {
  Fill(ItemKind::kTrajectory, SelectorKind::kPrioritized);
  const SamplerOptions options = Options(60, BatchLayout::kPacked);
  Reference reference(this, options);
  std::map<TrajectoryId, uint64_t> times;
  uint64_t samples = 0;
  {
    SamplerOptions ahead = options;
    ahead.prefetch = 2;
    auto sampler = Sample(ahead);
    for (int i = 0; i < 12; ++i) {
      const auto batch = sampler->Next();
      ASSERT_OK(batch);
      const std::vector<Row> expected = reference.Next();
      ASSERT_EQ(RowsOf(*batch), expected);
      for (const Row& row : expected) ++times[row.id];
      samples += expected.size();
      EXPECT_EQ(priority("per")->Stats().limiter.samples, samples);
      for (const auto& [id, count] : times) EXPECT_EQ(table_->Find(id)->times_sampled, count);
    }
    EXPECT_GT(priority("per")->Stats().limiter.reserved, 0u);
  }
  EXPECT_EQ(priority("per")->Stats().limiter.reserved, 0u);
  const std::string name = table_->spec().name;
  Reopen();
  OpenAgain(name);
  EXPECT_EQ(priority("per")->Stats().limiter.samples, samples);
  // A sampler of its own begins without what the last one carried.
  const auto batch = Sample(options)->Next();
  ASSERT_OK(batch);
  EXPECT_EQ(batch->draw_number(), 12u);
  EXPECT_EQ(RowsOf(*batch)[0], Draw(12)[0]);
}

TEST_F(SamplerTokensTest, AQueueLosesNothing) {
  Fill(ItemKind::kTrajectory, SelectorKind::kFifo, {.kind = LimiterKind::kQueue, .capacity = 100});
  auto sampler = Sample(Options(40, BatchLayout::kPacked));
  std::vector<TrajectoryId> seen;
  int64_t left = 0;
  for (int64_t i = 0; i < 30; ++i) left += Length(i);
  while (left > 60) {
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    const auto ids = batch->trajectory_ids();
    seen.insert(seen.end(), ids.begin(), ids.end());
    const int64_t tokens =
        std::accumulate(batch->lengths().begin(), batch->lengths().end(), int64_t{0});
    EXPECT_LE(tokens, 40);
    EXPECT_GT(tokens, 40 - 23);
    left -= tokens;
  }
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i + 1);
  while (true) {
    const auto batch = sampler->Next(Deadline::Now());
    if (!batch.ok()) {
      EXPECT_STATUS(kDeadlineExceeded, batch.status(), "tokens; the batch takes 40, or 256 items");
      break;
    }
    const auto ids = batch->trajectory_ids();
    seen.insert(seen.end(), ids.begin(), ids.end());
  }
  // What is carried is still the sampler's: other samplers do not draw it until that is gone.
  AppendClosed(0, 40);
  const auto batch = sampler->Next();
  ASSERT_OK(batch);
  EXPECT_EQ(batch->trajectory_ids()[0], seen.size() + 1);
  sampler.reset();
  const auto rest = Sample(Options(40, BatchLayout::kPacked))->Next();
  ASSERT_OK(rest);
  EXPECT_EQ(rest->trajectory_ids()[0], 31u);
  EXPECT_EQ(rest->size(), 1);
}

TEST_F(SamplerTokensTest, ACarriedItemThatIsGoneIsLeftOut) {
  Fill(ItemKind::kTrajectory, SelectorKind::kPrioritized);
  const SamplerOptions options = Options(30, BatchLayout::kPacked);
  Reference reference(this, options);
  const std::vector<Row> first = reference.Next();
  ASSERT_TRUE(reference.carries());
  const std::vector<Row> with = reference.Next();
  auto sampler = Sample(options);
  EXPECT_EQ(RowsOf(*sampler->Next()), first);
  const TrajectoryId gone[] = {with[0].id};
  ASSERT_OK(table_->Remove(gone));
  const auto batch = sampler->Next();
  ASSERT_OK(batch);
  for (const TrajectoryId id : batch->trajectory_ids()) EXPECT_NE(id, with[0].id);
  EXPECT_EQ(RowsOf(*batch)[0], Draw(1)[0]);
  sampler.reset();
  EXPECT_EQ(priority("per")->Stats().limiter.reserved, 0u);
}

TEST_F(SamplerTokensTest, WhatIsLargerThanTheBudgetComesAloneOrFails) {
  Fill(ItemKind::kTrajectory, SelectorKind::kFifo, {.kind = LimiterKind::kQueue, .capacity = 100});
  auto alone = Sample(Options(10, BatchLayout::kPacked));
  std::vector<TrajectoryId> seen;
  for (int i = 0; i < 14; ++i) {
    const auto batch = alone->Next();
    ASSERT_OK(batch);
    const auto ids = batch->trajectory_ids();
    seen.insert(seen.end(), ids.begin(), ids.end());
    if (std::accumulate(batch->lengths().begin(), batch->lengths().end(), int64_t{0}) > 10) {
      EXPECT_EQ(batch->size(), 1);
    }
  }
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i + 1);
  alone.reset();

  Fill(ItemKind::kTrajectory, SelectorKind::kFifo, {.kind = LimiterKind::kQueue, .capacity = 100});
  SamplerOptions options = Options(11, BatchLayout::kPacked);
  options.oversized = Oversized::kFail;
  auto fails = Sample(options);
  // Lengths 1, 12, …: the first batch is not filled without the second item.
  EXPECT_STATUS(kFailedPrecondition, fails->Next().status(),
                "an item of trajectory 2 has 12 steps; the sampler's tokens_max is 11");
  EXPECT_EQ(priority("per")->Stats().limiter.reserved, 0u);
  const TrajectoryId large[] = {2, 3};
  ASSERT_OK(table_->Remove(large));
  // 1, 11, and then 22: 1 and 11 are too many together, and 11 fills a batch.
  for (const TrajectoryId id : {TrajectoryId{1}, TrajectoryId{4}}) {
    const auto batch = fails->Next();
    ASSERT_OK(batch);
    ASSERT_EQ(batch->size(), 1);
    EXPECT_EQ(batch->trajectory_ids()[0], id);
  }
  EXPECT_STATUS(kFailedPrecondition, fails->Next().status(), "trajectory 5 has 22 steps");
  fails.reset();

  // What may not be drawn yet is not too large yet: it may leave before it is drawn.
  Fill(ItemKind::kTrajectory, SelectorKind::kUniform, {.min_size = 1000});
  fails = Sample(options);
  EXPECT_STATUS(kDeadlineExceeded, fails->Next(Deadline::Now()).status(), "waits");
}

TEST_F(SamplerTokensTest, ARefusedBatchKeepsWhatIsCarried) {
  Fill(ItemKind::kTrajectory, SelectorKind::kPrioritized,
       {.kind = LimiterKind::kRatio, .min_size = 1, .samples_per_insert = 1, .error_buffer = 40});
  const SamplerOptions options = Options(30, BatchLayout::kPacked);
  Reference reference(this, options);
  auto sampler = Sample(options);
  uint64_t samples = 0;
  while (true) {
    const auto batch = sampler->Next(Deadline::Now());
    if (!batch.ok()) {
      EXPECT_STATUS(kDeadlineExceeded, batch.status(), "waits");
      break;
    }
    EXPECT_EQ(RowsOf(*batch), reference.Next());
    samples += static_cast<uint64_t>(batch->size());
    EXPECT_EQ(priority("per")->Stats().limiter.samples, samples);
  }
  EXPECT_GT(samples, 40u);
  EXPECT_LE(samples, 69u);
}

TEST_F(SamplerTokensTest, ACarriedItemThatFillsABatchWaitsForTheLimiter) {
  uint64_t waited = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    OpenEmpty();
    PriorityTableSpec per = WindowSpec("per");
    per.item = ItemKind::kTrajectory;
    per.window = {};
    per.selector = SelectorKind::kUniform;
    per.seed = seed;
    per.limiter = {.kind = LimiterKind::kRatio, .samples_per_insert = 1, .error_buffer = 1};
    CreateWith(per);
    AppendClosed(0, 1);
    AppendClosed(10, 5);
    ASSERT_OK(Sample({.batch = 1})->Next(Deadline::Now()));
    auto sampler = Sample(Options(5, BatchLayout::kPacked));
    const auto samples = [this] { return priority("per")->Stats().limiter.samples; };
    while (sampler->Next(Deadline::Now()).ok()) ASSERT_LE(samples(), 2u) << seed;
    EXPECT_LE(samples(), 2u) << seed;
    if (samples() < 2 || priority("per")->Stats().limiter.reserved == 0) continue;
    // One more item lets the carried one through.
    ++waited;
    AppendClosed(20, 5);
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next(Deadline::Now()));
    EXPECT_EQ(batch.lengths()[0], 5);
    EXPECT_EQ(samples(), 3u);
  }
  EXPECT_GT(waited, 0u);
}

// It has no reservation that would name the carried item.
TEST_F(SamplerTokensTest, AnObserverKeepsTheCarriedItemUnderAMaximum) {
  Fill(ItemKind::kTrajectory, SelectorKind::kUniform, {}, 1000);
  SamplerOptions options = Options(50, BatchLayout::kPacked);
  auto sampler = Sample(options);
  options.observer = true;
  options.seed = kWindowSeed;
  options.restart_draw = 0;
  auto observer = Sample(options);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    ASSERT_OK_AND_ASSIGN(const Batch seen, observer->Next());
    EXPECT_EQ(RowsOf(seen), RowsOf(batch)) << i;
  }
}

// An open refused a hand-over that named some of its items: the carried one was drawn before they
// were counted, or while they were.
TEST_F(SamplerTokensTest, OtherLimitsLeaveTheCarriedItem) {
  for (const auto& [before, after] : {std::pair{0u, 100u}, std::pair{100u, 0u}}) {
    Fill(ItemKind::kTrajectory, SelectorKind::kUniform, {}, before);
    auto sampler = Sample(Options(50, BatchLayout::kPacked));
    ASSERT_OK(sampler->Next(Deadline::Now()));
    ASSERT_OK(priority("per")->Configure({.max_times_sampled = after}));
    ASSERT_OK(sampler->Next(Deadline::Now()));
    const LimiterStats limiter = priority("per")->Stats().limiter;
    EXPECT_LE(limiter.reserved, 1u);
    sampler.reset();
    EXPECT_EQ(priority("per")->Stats().limiter.reserved, 0u);
    Reopen();
    OpenAgain("steps");
    EXPECT_EQ(priority("per")->Stats().limiter.samples, limiter.samples);
  }
}

TEST_F(SamplerTokensTest, WhatIsWrongIsNamed) {
  CreateWith(WindowSpec("per"));
  SamplerOptions options = Options(-1, BatchLayout::kPacked);
  EXPECT_STATUS(kInvalidArgument, priority("per")->NewSampler(options).status(),
                "has tokens_max -1; expected at least 0");
  options = Options(5, BatchLayout::kPacked);
  options.oversized = static_cast<Oversized>(2);
  EXPECT_STATUS(kInvalidArgument, priority("per")->NewSampler(options).status(),
                "has oversized 2; expected 0 (alone) or 1 (fail)");
  EXPECT_STATUS(kDeadlineExceeded,
                Sample(Options(5, BatchLayout::kPacked))->Next(Deadline::Now()).status(),
                "has nothing to draw");
}

}  // namespace
}  // namespace geardb
