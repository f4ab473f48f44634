// Windows within drawn trajectories: against plain draws of the trajectories, and the windows that
// a priority table over windows shows.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/philox.h"
#include "tests/engine/sampler_fixture.h"
#include "tests/testing/frequencies.h"

namespace geardb {
namespace {

using testing::kWindowSeed;
using testing::SamplerFixture;
using testing::StepSpec;
using testing::WindowSpec;
using Item = std::pair<TrajectoryId, int64_t>;

class SamplerWithinTest : public SamplerFixture {
 protected:
  /// "per" over trajectories and "windows" of `rule` over the same, of many lengths.
  void Fill(const WindowRule& rule, bool stream, SelectorKind selector = SelectorKind::kPrioritized,
            uint32_t max_times = 0) {
    OpenEmpty();
    TableSpec spec = StepSpec(/*final_row=*/true);
    spec.stream = stream;
    PriorityTableSpec per = WindowSpec("per");
    per.item = ItemKind::kTrajectory;
    per.window = {};
    per.selector = selector;
    per.max_times_sampled = max_times;
    PriorityTableSpec windows = WindowSpec("windows");
    windows.window = rule;
    windows.selector = SelectorKind::kUniform;
    spec.priority_tables = {per, windows};
    Create(spec);
    std::vector<RowId> rows;
    std::vector<float> priorities;
    for (int64_t i = 0; i < 12; ++i) {
      const int64_t steps = 1 + (i * 5) % 17;
      TrajectoryId id = 0;
      if (stream) {
        id = Append(100 * i, steps, End::kTerminated).id;
        Append(100 * i + 50, 3);
        ASSERT_OK(writer_->Cut());
      } else {
        id = AppendClosed(100 * i, steps);
      }
      rows.push_back({id, 0});
      priorities.push_back(static_cast<float>(1 + i % 4));
    }
    if (HasPriorities(selector)) {
      ASSERT_OK(priority("per")->Set(rows, priorities));
    }
    anchors_.clear();
    for (const RowId& row : priority("windows")->Items()) anchors_[row.id].push_back(row.row);
    rule_ = rule;
  }
  SamplerOptions Options(int64_t batch, int64_t count, bool stratified) const {
    SamplerOptions options{.batch = batch};
    options.within = WindowsWithin{.window = rule_, .count = count, .stratified = stratified};
    options.views = Views();
    return options;
  }
  std::vector<View> Views() const {
    return {{.column = "obs", .masks = true}, {.column = "action"}, {.column = "score"}};
  }
  /// Bytes that each item's entries have in the outputs of a batch.
  using Shown = std::map<Item, std::map<std::string, std::vector<std::byte>>>;
  static Shown ShownBy(const Batch& batch) {
    Shown shown;
    for (const std::string_view name : batch.OutputNames()) {
      const TensorView view = batch[name];
      const auto n = static_cast<size_t>(batch.size());
      const size_t bytes = view.byte_count() / n;  // Padded.
      for (size_t i = 0; i < n; ++i) {
        const auto* from = static_cast<const std::byte*>(view.bytes) + i * bytes;
        shown[{batch.trajectory_ids()[i], batch.anchors()[i]}][std::string(name)].assign(
            from, from + bytes);
      }
    }
    return shown;
  }
  /// What the priority table over windows shows of all its items.
  Shown ShownWindows() {
    Shown shown;
    auto sampler = priority("windows")->NewSampler(
        {.batch = 4096, .views = Views(), .observer = true, .seed = 1});
    EXPECT_OK(sampler);
    for (int i = 0; i < 3; ++i) shown.merge(ShownBy(*(*sampler)->Next()));
    EXPECT_EQ(shown.size(), priority("windows")->Count());
    return shown;
  }
  /// The items of a batch and their probabilities, by the words of WindowsWithin.
  struct Expected {
    std::vector<Item> items;
    std::vector<double> probabilities;
    std::vector<TrajectoryId> trajectories;
  };
  Expected Reference(uint64_t draw, int64_t batch, int64_t count, bool stratified) {
    SamplerOptions plain{
        .batch = 1024, .observer = true, .seed = kWindowSeed, .restart_draw = draw};
    const auto drawn = Sample(plain)->Next();
    EXPECT_OK(drawn);
    Expected expected;
    for (size_t row = 0; static_cast<int64_t>(expected.trajectories.size()) < batch; ++row) {
      const TrajectoryId id = drawn->trajectory_ids()[row];
      const std::vector<int64_t>& anchors = anchors_[id];
      if (anchors.empty()) continue;
      expected.trajectories.push_back(id);
      const auto m = static_cast<unsigned __int128>(anchors.size());
      for (int64_t j = 0; j < count; ++j) {
        const auto place = static_cast<uint32_t>(static_cast<int64_t>(row) * count + j);
        const auto random = static_cast<unsigned __int128>(
            PhiloxRandom64(kWindowSeed, draw, place, PhiloxPurpose::kAnchor));
        // The point random / 2^64 of stratum j, or of the whole.
        const auto whole = static_cast<unsigned __int128>(1) << 64;
        const auto at = stratified ? (static_cast<unsigned __int128>(j) * whole + random) * m /
                                         (whole * static_cast<unsigned __int128>(count))
                                   : random * m / whole;
        expected.items.emplace_back(id, anchors[static_cast<size_t>(at)]);
        expected.probabilities.push_back(drawn->probabilities()[row] /
                                         static_cast<double>(anchors.size()));
      }
    }
    return expected;
  }
  static std::vector<Item> ItemsOf(const Batch& batch) {
    std::vector<Item> items;
    for (size_t i = 0; i < batch.handles().size(); ++i) {
      items.emplace_back(batch.trajectory_ids()[i], batch.anchors()[i]);
    }
    return items;
  }

  WindowRule rule_;
  std::map<TrajectoryId, std::vector<int64_t>> anchors_;
};

TEST_F(SamplerWithinTest, ShowsTheWindowsOfTheReference) {
  const WindowRule rules[] = {
      {.extent = {1, 3, 1}},
      {.extent = {2, 4, 0}, .left = EdgeRule::kRequire, .right = EdgeRule::kRequire},
      {.extent = {2, 3, 2}, .left = EdgeRule::kPad, .right = EdgeRule::kPad},
      {.extent = {0, 4, 1}, .stride = 3, .stride_from_end = true, .right = EdgeRule::kShift},
  };
  for (const WindowRule& rule : rules) {
    for (const bool stream : {false, true}) {
      for (const bool stratified : {false, true}) {
        Fill(rule, stream);
        const Shown windows = ShownWindows();
        SamplerOptions options = Options(6, 5, stratified);
        options.prefetch = stratified ? 2 : 0;
        auto sampler = Sample(options);
        for (uint64_t draw = 0; draw < 6; ++draw) {
          const auto batch = sampler->Next();
          ASSERT_OK(batch);
          const Expected expected = Reference(draw, 6, 5, stratified);
          ASSERT_EQ(ItemsOf(*batch), expected.items);
          for (auto& [item, outputs] : ShownBy(*batch)) {
            ASSERT_EQ(outputs, windows.at(item)) << item.first << ":" << item.second;
          }
          double smallest = 1;
          for (size_t i = 0; i < 30; ++i) {
            EXPECT_DOUBLE_EQ(batch->probabilities()[i], expected.probabilities[i]);
            smallest = std::min(smallest, expected.probabilities[i]);
          }
          for (size_t i = 0; i < 30; ++i) {
            EXPECT_NEAR(batch->weights()[i],
                        std::pow(expected.probabilities[i] / smallest, -options.beta), 1e-6);
          }
        }
      }
    }
  }
}

TEST_F(SamplerWithinTest, FrequenciesFollowTheProbabilities) {
  for (const bool stratified : {false, true}) {
    Fill({.extent = {0, 4, 0}, .right = EdgeRule::kRequire}, false);
    std::map<Item, double> distribution;
    double sum = 0;
    for (const auto& [id, rows] : anchors_) {
      sum += rows.empty() ? 0 : *priority("per")->Probability({id, 0});
    }
    for (const auto& [id, rows] : anchors_) {
      for (const int64_t row : rows) {
        distribution[{id, row}] =
            *priority("per")->Probability({id, 0}) / sum / static_cast<double>(rows.size());
      }
    }
    ASSERT_GT(distribution.size(), 50u);
    std::map<Item, int64_t> counts;
    // Strata of one trajectory are more even than chance: one window each shows none of that.
    auto sampler = Sample(Options(512, stratified ? 1 : 2, stratified));
    for (int i = 0; i < 60; ++i) {
      const auto batch = sampler->Next();
      ASSERT_OK(batch);
      for (const Item& item : ItemsOf(*batch)) ++counts[item];
    }
    testing::ExpectFrequencies(distribution, counts);
  }
}

TEST_F(SamplerWithinTest, AHandleNamesTheTrajectory) {
  Fill({.extent = {0, 2, 0}}, false);
  auto sampler = Sample(Options(8, 3, false));
  const auto batch = sampler->Next();
  ASSERT_OK(batch);
  std::vector<float> priorities(24);
  for (size_t i = 0; i < 24; ++i) priorities[i] = static_cast<float>(i + 1);
  const auto outcome = priority("per")->Set(batch->handles(), priorities);
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, 24u);
  for (size_t i = 0; i < 24; ++i) {
    size_t last = i;
    for (size_t j = i; j < 24; ++j) {
      if (batch->trajectory_ids()[j] == batch->trajectory_ids()[i]) last = j;
    }
    EXPECT_EQ(*priority("per")->Priority({batch->trajectory_ids()[i], 0}), priorities[last]);
    EXPECT_EQ(batch->handles()[i].length, batch->lengths()[i]);
  }
}

TEST_F(SamplerWithinTest, ATrajectoryDrawnIsOneSample) {
  Fill({.extent = {0, 3, 0}, .right = EdgeRule::kRequire}, false, SelectorKind::kFifo, 2);
  // Those without an anchor are passed over and never sampled.
  std::vector<TrajectoryId> drawable;
  for (const auto& record : anchors_) {
    if (!record.second.empty()) drawable.push_back(record.first);
  }
  ASSERT_LT(drawable.size(), 12u);
  auto sampler = Sample(Options(2, 5, true));
  std::map<TrajectoryId, uint64_t> times;
  for (size_t i = 0; i < drawable.size(); ++i) {
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    EXPECT_EQ(batch->size(), 10);
    EXPECT_EQ(batch->trajectory_ids()[0], batch->trajectory_ids()[4]);
    ++times[batch->trajectory_ids()[0]];
    ++times[batch->trajectory_ids()[5]];
    EXPECT_EQ(batch->weights()[0], 1.0f);
  }
  for (const TrajectoryId id : drawable) {
    EXPECT_EQ(times[id], 2u);
    EXPECT_EQ(table_->Find(id)->times_sampled, 2u);
  }
  EXPECT_EQ(priority("per")->Stats().limiter.samples, 2 * drawable.size());
  EXPECT_EQ(priority("per")->Stats().limiter.reserved, 0u);
  EXPECT_EQ(priority("per")->Stats().limiter.exhausted, drawable.size());
  EXPECT_STATUS(kDeadlineExceeded, sampler->Next(Deadline::Now()).status(),
                "trajectories drawn for a batch of 2 only 0 have a row");
  sampler.reset();
  const std::string name = table_->spec().name;
  const auto before = priority("per")->Stats().limiter;
  Reopen();
  OpenAgain(name);
  EXPECT_EQ(priority("per")->Stats().limiter.samples, before.samples);
  EXPECT_EQ(priority("per")->Stats().limiter.exhausted, before.exhausted);
}

TEST_F(SamplerWithinTest, UnderAMaximumOneWithAnAnchorIsFoundAmongOthers) {
  for (const SelectorKind selector : {SelectorKind::kUniform, SelectorKind::kPrioritized}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      OpenEmpty();
      PriorityTableSpec per = WindowSpec("per");
      per.item = ItemKind::kTrajectory;
      per.window = {};
      per.selector = selector;
      per.max_times_sampled = 3;
      per.seed = seed;
      CreateWith(per);
      for (int i = 0; i < 5; ++i) AppendClosed(0, 1);
      const TrajectoryId only = AppendClosed(10, 4);
      rule_ = {.extent = {0, 3, 0}, .right = EdgeRule::kRequire};
      SamplerOptions options = Options(1, 1, false);
      options.views = {{.column = "action"}};
      auto sampler = Sample(options);
      for (int i = 0; i < 3; ++i) {
        ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next(Deadline::Now()));
        EXPECT_EQ(batch.trajectory_ids()[0], only);
      }
      EXPECT_STATUS(kDeadlineExceeded, sampler->Next(Deadline::Now()).status(), "only 0 have");
      EXPECT_EQ(priority("per")->Stats().limiter.reserved, 0u);
      options.observer = true;
      options.seed = seed;
      EXPECT_STATUS(kDeadlineExceeded, Sample(options)->Next(Deadline::Now()).status(),
                    "only 0 have");
    }
  }
}

TEST_F(SamplerWithinTest, NoTrajectoryWithAnAnchorIsNothingToDraw) {
  Fill({.extent = {0, 40, 0}, .right = EdgeRule::kRequire}, false);
  SamplerOptions options = Options(4, 2, false);
  options.views = {};
  auto sampler = Sample(options);
  EXPECT_STATUS(kDeadlineExceeded, sampler->Next(Deadline::Now()).status(),
                "trajectories drawn for a batch of 4 only 0 have a row that a window within may "
                "stand at");
  AppendClosed(0, 50);
  // One of 13 has anchors: 11 of them.
  const auto batch = sampler->Next();
  ASSERT_OK(batch);
  EXPECT_EQ(batch->draw_number(), 0u);
  for (const int64_t anchor : batch->anchors()) EXPECT_LT(anchor, 11);
}

TEST_F(SamplerWithinTest, IsTheSameAfterAReopenAndForAnObserver) {
  Fill({.extent = {1, 3, 1}}, false);
  SamplerOptions observer = Options(6, 4, true);
  observer.observer = true;
  observer.seed = kWindowSeed;
  auto looks = Sample(observer);
  std::vector<std::vector<Item>> plain;
  for (int i = 0; i < 6; ++i) plain.push_back(ItemsOf(*looks->Next()));
  looks.reset();
  const std::string name = table_->spec().name;
  for (size_t i = 0; i < 6; i += 2) {
    SamplerOptions options = Options(6, 4, true);
    options.prefetch = 3;
    auto sampler = Sample(options);
    EXPECT_EQ(ItemsOf(*sampler->Next()), plain[i]);
    EXPECT_EQ(ItemsOf(*sampler->Next()), plain[i + 1]);
    sampler.reset();
    Reopen();
    OpenAgain(name);
  }
}

TEST_F(SamplerWithinTest, WhatIsWrongIsNamed) {
  Fill({.extent = {0, 2, 0}}, false);
  const auto refused = [&](const SamplerOptions& options, const char* text,
                           const char* of = "per") {
    EXPECT_STATUS(kInvalidArgument, priority(of)->NewSampler(options).status(), text);
  };
  SamplerOptions options = Options(4, 2, false);
  refused(options, "the priority table's items are windows already", "windows");
  options.within->count = 0;
  refused(options, "draws 0 windows within each of 4 trajectories; expected at least 1");
  options.within->count = int64_t{1} << 23;
  refused(options, "and at most 16777216 together");
  options = Options(4, 2, false);
  options.within->window.extent.length = 0;
  refused(options, "windows within trajectories: priority table 'per' has extent");
  options = Options(4, 2, false);
  options.weight_maximum = WeightMaximum::kTable;
  refused(options, "has weight_maximum 1; expected 0 (batch)");
  options = Options(4, 2, false);
  options.tokens_max = 10;
  refused(options, "has tokens_max 10 and windows within trajectories");
  options = Options(4, 2, false);
  options.views[0].rows.begin = 5;
  refused(options, "view 'obs' of priority table 'per' shows rows");
}

// Its rows were taken for the last of the trajectory.
TEST_F(SamplerWithinTest, AHandleOfAWindowWithinNamesNoRowsToPatch) {
  PriorityTableSpec whole = WindowSpec("whole");
  whole.item = ItemKind::kTrajectory;
  TableSpec spec = testing::StepSpec();
  spec.name = "patched";
  spec.priority_tables = {whole};
  Create(spec);
  AppendClosed(0, 10);
  SamplerOptions options{.batch = 1, .views = {{.column = "action"}}};
  options.within = WindowsWithin{.window = {.extent = {.length = 2}}};
  ASSERT_OK_AND_ASSIGN(const Batch batch, (*priority("whole")->NewSampler(options))->Next());
  ASSERT_EQ(batch.lengths()[0], 2);
  const std::vector<float> values = {1, 1};
  const ColumnValue value{"reward", TensorView::Of(std::span<const float>(values))};
  EXPECT_STATUS(kInvalidArgument, priority("whole")->Patch(batch.handles(), {&value, 1}),
                "a handle of 2 rows of trajectory 1, which has 10: of a window within");
}

}  // namespace
}  // namespace geardb
