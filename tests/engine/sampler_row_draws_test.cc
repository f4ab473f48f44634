// Drawn rows in views (RowDraw), against the rows that a plain reference draws.

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "tests/engine/sampler_fixture.h"

namespace geardb {
namespace {

using testing::kWindowSeed;
using testing::SamplerFixture;
using testing::StepSpec;
using testing::WindowSpec;

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// What a draw is, in the words of its comment; `rows` are those of the episode.
std::pair<int64_t, bool> Reference(const RowDraw& draw, RowRange rows, int64_t anchor,
                                   const PhiloxBlock& random) {
  if (static_cast<double>(random.v[2]) >= draw.probability * 0x1p32) return {anchor, false};
  if (draw.kind == RowDrawKind::kLast) return {rows.end - 1, true};
  const int64_t from = draw.kind == RowDrawKind::kAny ? rows.begin : anchor + draw.nearest;
  if (from >= rows.end) return {anchor, false};
  const uint64_t bits = random.v[0] + (uint64_t{random.v[1]} << 32);
  const auto uniform = static_cast<long double>(bits) / 0x1p64L;
  if (draw.kind != RowDrawKind::kGeometric) {
    return {from + static_cast<int64_t>(uniform * static_cast<long double>(rows.end - from)), true};
  }
  long double sum = 0, sum_so_far = 0;
  for (int64_t row = from; row < rows.end; ++row) {
    sum += std::pow(static_cast<long double>(draw.gamma), static_cast<long double>(row - from));
  }
  for (int64_t row = from; row < rows.end; ++row) {
    sum_so_far +=
        std::pow(static_cast<long double>(draw.gamma), static_cast<long double>(row - from));
    if (sum_so_far > uniform * sum) return {row, true};
  }
  return {rows.end - 1, true};
}

class SamplerRowDrawsTest : public SamplerFixture {
 protected:
  /// Row r of trajectory t has obs {1000 · t + r, …}; rows are those of episodes of many lengths.
  void Fill(bool stream, bool final_row) {
    int64_t row = 0;
    for (int64_t i = 0; i < 14; ++i) {
      const TrajectoryId id = stream ? 1 : static_cast<TrajectoryId>(i + 1);
      if (!stream) row = 0;
      const int64_t steps = 1 + (i * 7) % 18;
      const bool open = i == 13;
      const End end = open ? End::kGo : i % 3 == 0 ? End::kTruncated : End::kTerminated;
      ASSERT_EQ(Append(1000 * static_cast<int64_t>(id) + row, steps, end).id, id);
      const int64_t rows = steps + (final_row && !open ? 1 : 0);
      episodes_.emplace_back(id, RowRange{row, row + rows});
      row += rows;
    }
  }
  RowRange EpisodeOf(TrajectoryId id, int64_t row) const {
    for (const auto& [of, rows] : episodes_) {
      if (of == id && row >= rows.begin && row < rows.end) return rows;
    }
    ADD_FAILURE() << id << ":" << row;
    return {};
  }

  const std::vector<RowDraw> draws_ = {
      {.name = "goal", .probability = 0.75},
      {.name = "near", .kind = RowDrawKind::kGeometric, .nearest = 2, .gamma = 0.8, .count = 3},
      {.name = "last", .kind = RowDrawKind::kLast},
      {.name = "any", .kind = RowDrawKind::kAny, .probability = 0.5, .count = 2},
  };
  SamplerOptions Options() const {
    SamplerOptions options{.batch = 48};
    options.row_draws = draws_;
    for (const RowDraw& draw : draws_) {
      options.views.push_back(
          {.column = "obs", .name = draw.name, .rows = {.draw = draw.name}, .masks = true});
      options.views.push_back(
          {.column = "obs", .name = draw.name + "2", .rows = {.draw = draw.name}, .stack = 2});
    }
    return options;
  }
  /// Every entry of every draw's outputs and views.
  void Check(const Batch& batch, uint64_t seed) {
    uint32_t stream = 0;
    for (const RowDraw& draw : draws_) {
      SCOPED_TRACE(draw.name);
      const auto rows = Values<int64_t>(batch, draw.name + ".row");
      const auto drawn = Values<bool>(batch, draw.name + ".drawn");
      const auto shown = Values<float>(batch, draw.name);
      const auto stacked = Values<float>(batch, draw.name + "2");
      const auto valid = Values<bool>(batch, draw.name + ".valid");
      const auto learn = Values<bool>(batch, draw.name + ".learn");
      const auto count = static_cast<size_t>(draw.count);
      const size_t n = batch.handles().size();
      ASSERT_EQ(rows.size(), n * count);
      ASSERT_EQ(drawn.size(), n * count);
      ASSERT_EQ(shown.size(), n * count * 2);
      ASSERT_EQ(stacked.size(), n * count * 4);
      for (size_t i = 0; i < n; ++i) {
        const int64_t anchor = batch.anchors()[i];
        const RowRange episode = EpisodeOf(batch.trajectory_ids()[i], anchor);
        const auto base = static_cast<float>(1000 * batch.trajectory_ids()[i]);
        for (size_t k = 0; k < count; ++k) {
          const size_t at = i * count + k;
          const auto expected = Reference(
              draw, episode, anchor,
              PhiloxRandom128(seed, batch.draw_number(), static_cast<uint32_t>(i),
                              PhiloxPurpose::kViewRow, stream + static_cast<uint32_t>(k)));
          ASSERT_EQ(rows[at], expected.first) << "item " << i << ", row " << k;
          ASSERT_EQ(drawn[at], expected.second);
          ASSERT_EQ(shown[at * 2], base + static_cast<float>(rows[at]));
          ASSERT_EQ(stacked[at * 4 + 2], base + static_cast<float>(rows[at]));
          ASSERT_EQ(stacked[at * 4],
                    base + static_cast<float>(std::max(rows[at] - 1, episode.begin)));
          ASSERT_TRUE(valid[at]);
          ASSERT_FALSE(learn[at]);
        }
      }
      stream += static_cast<uint32_t>(draw.count);
    }
  }
  std::vector<std::pair<TrajectoryId, RowRange>> episodes_;
};

TEST_F(SamplerRowDrawsTest, AreThoseOfTheReference) {
  for (int variant = 0; variant < 32; ++variant) {
    SCOPED_TRACE(variant);
    const bool stream = (variant & 1) != 0;
    const bool final_row = (variant & 2) != 0;
    const bool cross_ends = stream && (variant & 8) != 0;
    OpenEmpty();
    episodes_.clear();
    TableSpec spec = StepSpec(final_row);
    spec.stream = stream;
    spec.priority_tables = {WindowSpec("per", {1, 2, 1})};
    spec.priority_tables[0].window.left = (variant & 16) != 0 ? EdgeRule::kClip : EdgeRule::kRepeat;
    spec.priority_tables[0].window.cross_ends = cross_ends;
    Create(spec);
    Fill(stream, final_row);
    SamplerOptions options = Options();
    options.layout = (variant & 4) != 0 ? BatchLayout::kPacked : BatchLayout::kPadded;
    options.prefetch = (variant & 8) != 0 ? 2 : 0;
    auto sampler = Sample(options);
    for (int i = 0; i < 4; ++i) {
      const auto batch = sampler->Next();
      ASSERT_OK(batch);
      Check(*batch, kWindowSeed);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(SamplerRowDrawsTest, OfATrajectoryAreThoseOfTheWholeOfIt) {
  PriorityTableSpec spec = WindowSpec("per");
  spec.item = ItemKind::kTrajectory;
  spec.window = {};
  CreateWith(spec, /*final_row=*/true);
  Fill(false, true);
  for (const BatchLayout layout : {BatchLayout::kPadded, BatchLayout::kPacked}) {
    SamplerOptions options = Options();
    options.layout = layout;
    auto sampler = Sample(options);
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    Check(*batch, kWindowSeed);
  }
}

TEST_F(SamplerRowDrawsTest, StayBehindWhatWasTrimmed) {
  CreateWith(WindowSpec("per"));
  Fill(false, false);
  for (auto& [id, rows] : episodes_) {
    if (rows.end < 9) continue;
    ASSERT_OK(table_->Truncate(id, 6));
    rows.begin = 6;
  }
  auto sampler = Sample(Options());
  for (int i = 0; i < 4; ++i) {
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    Check(*batch, kWindowSeed);
  }
}

TEST_F(SamplerRowDrawsTest, AreTheSameAheadAfterAReopenAndForAnObserver) {
  CreateWith(WindowSpec("per"));
  Fill(false, false);
  const auto rows_of = [&](Sampler* sampler) {
    const auto batch = sampler->Next();
    EXPECT_OK(batch);
    return batch.ok() ? Values<int64_t>(*batch, "any.row") : std::vector<int64_t>();
  };
  std::vector<std::vector<int64_t>> plain;
  SamplerOptions options = Options();
  options.observer = true;
  options.seed = kWindowSeed;
  {
    auto sampler = Sample(options);
    for (int i = 0; i < 8; ++i) plain.push_back(rows_of(sampler.get()));
  }
  EXPECT_NE(plain[0], plain[1]);
  const std::string name = table_->spec().name;
  for (size_t i = 0; i < 8; i += 2) {
    SamplerOptions ahead = Options();
    ahead.prefetch = 3;
    auto sampler = Sample(ahead);  // Destroyed with batches that it drew ahead.
    EXPECT_EQ(rows_of(sampler.get()), plain[i]);
    EXPECT_EQ(rows_of(sampler.get()), plain[i + 1]);
    sampler.reset();
    Reopen();
    OpenAgain(name);
  }
}

TEST_F(SamplerRowDrawsTest, ShapesFollowTheCount) {
  CreateWith(WindowSpec("per"));
  Fill(false, false);
  SamplerOptions options = Options();
  auto batch = Sample(options)->Next();
  ASSERT_OK(batch);
  EXPECT_EQ((*batch)["goal.row"].shape, Shape({48}));
  EXPECT_EQ((*batch)["goal"].shape, Shape({48, 2}));
  EXPECT_EQ((*batch)["near.drawn"].shape, Shape({48, 3}));
  EXPECT_EQ((*batch)["near2"].shape, Shape({48, 3, 2, 2}));
  options.layout = BatchLayout::kPacked;
  batch = Sample(options)->Next();
  ASSERT_OK(batch);
  EXPECT_EQ((*batch)["goal.row"].shape, Shape({48}));
  EXPECT_EQ((*batch)["near.drawn"].shape, Shape({144}));
  EXPECT_EQ((*batch)["near2"].shape, Shape({144, 2, 2}));
  EXPECT_EQ((*batch->CuSeqlens("near.row"))[48], 144);
  EXPECT_EQ((*batch->CuSeqlens("near"))[48], 144);
  EXPECT_EQ((*batch->ViewLengths("near"))[0], 3);
}

TEST_F(SamplerRowDrawsTest, WhatIsWrongIsNamed) {
  CreateWith(WindowSpec("per"));
  const auto refused = [&](View view, std::vector<RowDraw> draws, const char* text) {
    SamplerOptions options;
    options.views = {std::move(view)};
    options.row_draws = std::move(draws);
    EXPECT_STATUS(kInvalidArgument, priority("per")->NewSampler(options).status(), text);
  };
  refused(
      {.column = "obs", .rows = {.draw = "goal"}}, {},
      "view 'obs' of priority table 'per' shows the rows of draw 'goal', which is not among the "
      "sampler's row_draws: there are none");
  refused({.column = "obs", .rows = {.draw = "goal"}}, {{.name = "a"}, {.name = "b"}}, "a, b");
  refused({.column = "obs", .rows = {.begin = 1, .draw = "a"}}, {{.name = "a"}},
          "shows the rows of draw 'a'; then it names no others");
  refused({.column = "version", .rows = {.draw = "a"}}, {{.name = "a"}}, "is per trajectory");
  refused({.column = "obs", .name = "a.row"}, {{.name = "a"}}, "two outputs are named 'a.row'");
  refused({.column = "obs"}, {{.name = "a", .count = 0}},
          "row draw 'a' of priority table 'per' has count 0");
}

}  // namespace
}  // namespace geardb
