// Samplers over several priority tables: batches against plain draws of each part.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/philox.h"
#include "tests/engine/sampler_fixture.h"
#include "tests/testing/frequencies.h"

namespace geardb {
namespace {

using testing::SamplerFixture;
using testing::StepSpec;
using testing::WindowSpec;
using Item = std::pair<TrajectoryId, int64_t>;

/// Table "a" with "per" and "order", table "b" with "demos": of different seeds and columns.
class SamplerPartsTest : public SamplerFixture {
 protected:
  void SetUp() override {
    SamplerFixture::SetUp();
    Fill();
  }
  void Fill(const PriorityTableSpec& demos = Demos()) {
    TableSpec b = StepSpec();
    b.name = "b";
    // Another order of columns, and more of them.
    std::swap(b.columns[0], b.columns[2]);
    b.columns.push_back({.name = "extra", .dtype = DType::kU8});
    b.priority_tables = {demos};
    Create(b);
    b_ = table_;
    b_writer_ = std::move(writer_);
    TableSpec a = StepSpec(/*final_row=*/true);
    a.name = "a";
    PriorityTableSpec order = WindowSpec("order");
    order.selector = SelectorKind::kFifo;
    a.priority_tables = {WindowSpec("per"), order};
    Create(a);
    for (int64_t i = 0; i < 9; ++i) AppendClosed(100 * i, 1 + (i * 7) % 11);
    std::vector<float> priorities;
    for (const RowId& row : priority("per")->Items()) {
      priorities.push_back(static_cast<float>(1 + (row.id + static_cast<uint64_t>(row.row)) % 7));
    }
    ASSERT_OK(priority("per")->SetAll(priorities));
  }
  static PriorityTableSpec Demos() {
    PriorityTableSpec demos = WindowSpec("demos");
    demos.seed = 99;
    return demos;
  }
  void ReopenBoth() {
    b_.reset();
    b_writer_.reset();
    Reopen();
    OpenAgain("b");
    b_ = table_;
    b_writer_ = std::move(writer_);
    OpenAgain("a");
  }
  /// Demonstrations are numbered from 10,000.
  void AppendDemos(int64_t count) {
    const testing::Rows rows(10'000 + demos_, count);
    std::vector<uint8_t> extra(static_cast<size_t>(count), 1);
    std::vector<ColumnValue> values = rows.many();
    values.push_back({"extra", TensorView::Of<uint8_t>(extra)});
    ASSERT_OK(b_writer_->AppendSteps(values, {.end = End::kTerminated}));
    demos_ += count;
  }
  std::shared_ptr<PriorityTable> Of(const char* name) const {
    return std::string(name) == "demos" ? b_->priority_table(name) : table_->priority_table(name);
  }
  SamplerPart Fixed(const char* of, int64_t count) const {
    return {.priority_table = Of(of), .share = ShareKind::kFixed, .count = count};
  }
  SamplerPart UpTo(const char* of, int64_t count) const {
    return {.priority_table = Of(of), .share = ShareKind::kUpToAvailable, .count = count};
  }
  SamplerPart By(const char* of, double probability) const {
    return {.priority_table = Of(of), .share = ShareKind::kProbability, .probability = probability};
  }
  SamplerPart Rest(const char* of) const { return {.priority_table = Of(of)}; }
  std::unique_ptr<Sampler> Mix(const std::vector<SamplerPart>& parts, SamplerOptions options) {
    if (options.views.empty()) options.views = {{.column = "action"}, {.column = "obs"}};
    auto sampler = database_->NewSampler(parts, options);
    EXPECT_OK(sampler);
    return sampler.ok() ? std::move(*sampler) : nullptr;
  }
  /// What a sampler of this priority table alone draws as that draw.
  static std::vector<std::pair<Item, double>> Alone(const std::shared_ptr<PriorityTable>& of,
                                                    uint64_t seed, uint64_t draw, int64_t batch) {
    if (batch == 0) return {};
    auto sampler =
        of->NewSampler({.batch = batch, .observer = true, .seed = seed, .restart_draw = draw});
    EXPECT_OK(sampler);
    const auto drawn = (*sampler)->Next();
    EXPECT_OK(drawn);
    return ItemsOf(*drawn, 0);
  }
  static std::vector<std::pair<Item, double>> ItemsOf(const Batch& batch, uint32_t source) {
    std::vector<std::pair<Item, double>> items;
    for (size_t i = 0; i < batch.handles().size(); ++i) {
      if (batch.sources()[i] != source) continue;
      items.push_back({{batch.trajectory_ids()[i], batch.anchors()[i]}, batch.probabilities()[i]});
    }
    return items;
  }
  static std::vector<int64_t> CountsOf(const Batch& batch, size_t parts) {
    std::vector<int64_t> counts(parts);
    for (size_t i = 0; i < batch.sources().size(); ++i) {
      ++counts[batch.sources()[i]];
      EXPECT_GE(batch.sources()[i], batch.sources()[i == 0 ? 0 : i - 1]);
    }
    return counts;
  }
  /// Rows show what was appended to their trajectory there.
  void CheckViews(const Batch& batch, const std::vector<SamplerPart>& parts) {
    const auto actions = Values<int32_t>(batch, "action");
    const auto obs = Values<float>(batch, "obs");
    for (size_t i = 0; i < batch.handles().size(); ++i) {
      const bool demo = parts[batch.sources()[i]].priority_table->spec().name == "demos";
      const auto& table = demo ? b_ : table_;
      const int64_t row = batch.anchors()[i];
      const std::string_view columns[] = {"action"};
      const auto stored = table->Read(batch.trajectory_ids()[i], columns, {row, row + 1});
      ASSERT_OK(stored);
      ASSERT_EQ(actions[i], (*stored)[0].view().values<int32_t>()[0]);
      ASSERT_EQ(obs[2 * i], static_cast<float>(actions[i]));
      ASSERT_EQ(demo, actions[i] >= 10'000);
    }
  }

  std::shared_ptr<Table> b_;
  std::unique_ptr<Writer> b_writer_;
  int64_t demos_ = 0;
};

TEST_F(SamplerPartsTest, EachPartDrawsAsASamplerOfItsOwn) {
  AppendDemos(20);
  const std::vector<SamplerPart> parts = {Fixed("demos", 5), Rest("per"), Fixed("order", 3)};
  for (const BatchLayout layout : {BatchLayout::kPadded, BatchLayout::kPacked}) {
    SamplerOptions options{.batch = 16};
    options.layout = layout;
    options.prefetch = layout == BatchLayout::kPacked ? 2 : 0;
    const uint64_t first = Of("per")->Stats().draws;
    auto sampler = Mix(parts, options);
    for (uint64_t draw = first; draw < first + 5; ++draw) {
      const auto batch = sampler->Next();
      ASSERT_OK(batch);
      EXPECT_EQ(batch->draw_number(), draw);
      EXPECT_EQ(CountsOf(*batch, 3), (std::vector<int64_t>{5, 8, 3}));
      EXPECT_EQ(ItemsOf(*batch, 0), Alone(Of("demos"), 99, draw, 5));
      // Equal seeds would show equal places.
      EXPECT_EQ(ItemsOf(*batch, 1), Alone(Of("per"), 7 + testing::kPartSeeds, draw, 8));
      EXPECT_EQ(ItemsOf(*batch, 2), Alone(Of("order"), 7 + 2 * testing::kPartSeeds, draw, 3));
      CheckViews(*batch, parts);
    }
  }
}

TEST_F(SamplerPartsTest, AnObserversPartsHaveSeedsOfTheirOwn) {
  AppendDemos(20);
  SamplerOptions options{.batch = 16, .observer = true, .seed = 40, .restart_draw = 3};
  auto sampler = Mix({Fixed("demos", 6), Rest("per")}, options);
  for (uint64_t draw = 3; draw < 6; ++draw) {
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    EXPECT_EQ(ItemsOf(*batch, 0), Alone(Of("demos"), 40, draw, 6));
    EXPECT_EQ(ItemsOf(*batch, 1), Alone(Of("per"), 41, draw, 10));
  }
  EXPECT_EQ(Of("demos")->Stats().draws, 0u);
  EXPECT_EQ(Of("per")->Stats().draws, 0u);
}

TEST_F(SamplerPartsTest, SharesByProbabilityFollowARandomNumberOfEachRow) {
  AppendDemos(20);
  std::map<uint32_t, int64_t> counts;
  auto sampler = Mix({By("demos", 0.25), By("per", 0.25), Rest("order")}, {.batch = 40});
  for (uint64_t draw = 0; draw < 200; ++draw) {
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    std::vector<int64_t> expected(3);
    for (uint32_t row = 0; row < 40; ++row) {
      const uint64_t random = PhiloxRandom64(99, draw, row, PhiloxPurpose::kPart);
      ++expected[std::min<uint64_t>(random >> 62, 2)];
    }
    ASSERT_EQ(CountsOf(*batch, 3), expected);
    for (const uint32_t source : batch->sources()) ++counts[source];
  }
  testing::ExpectFrequencies({{0, 0.25}, {1, 0.25}, {2, 0.5}}, counts);
  // All of it, without a rest; a part may have none of a batch.
  auto all = Mix({By("demos", 1), By("per", 0)}, {.batch = 40});
  const auto batch = all->Next();
  ASSERT_OK(batch);
  EXPECT_EQ(CountsOf(*batch, 2), (std::vector<int64_t>{40, 0}));
  EXPECT_EQ(Of("per")->Stats().draws, Of("demos")->Stats().draws);
}

TEST_F(SamplerPartsTest, TheRestFillsWhatIsNotAvailable) {
  const std::vector<SamplerPart> parts = {UpTo("demos", 10), Rest("per")};
  auto sampler = Mix(parts, {.batch = 16});
  EXPECT_EQ(CountsOf(*sampler->Next(), 2), (std::vector<int64_t>{0, 16}));
  AppendDemos(1);  // Drawn with replacement.
  EXPECT_EQ(CountsOf(*sampler->Next(), 2), (std::vector<int64_t>{10, 6}));
  auto distinct = Mix({UpTo("order", 100), Rest("per")}, {.batch = 100});
  const auto items = static_cast<int64_t>(Of("order")->Count());
  ASSERT_LT(items, 100);
  EXPECT_EQ(CountsOf(*distinct->Next(), 2), (std::vector<int64_t>{items, 100 - items}));
}

TEST_F(SamplerPartsTest, AvailableIsWhatTheLimiterAdmits) {
  Close();
  OpenEmpty();
  PriorityTableSpec demos = Demos();
  demos.selector = SelectorKind::kFifo;
  demos.limiter = {.kind = LimiterKind::kQueue, .capacity = 50};
  Fill(demos);
  AppendDemos(13);
  auto sampler = Mix({UpTo("demos", 10), Rest("per")}, {.batch = 16});
  EXPECT_EQ(CountsOf(*sampler->Next(), 2), (std::vector<int64_t>{10, 6}));
  EXPECT_EQ(CountsOf(*sampler->Next(), 2), (std::vector<int64_t>{3, 13}));
  EXPECT_EQ(CountsOf(*sampler->Next(), 2), (std::vector<int64_t>{0, 16}));
  EXPECT_EQ(Of("demos")->Stats().limiter.samples, 13u);
  EXPECT_EQ(b_->Count(), 0u);  // Nobody can draw it any more: it was removed.
  AppendDemos(4);
  EXPECT_EQ(CountsOf(*sampler->Next(), 2), (std::vector<int64_t>{4, 12}));
  sampler.reset();
  const uint64_t sampled = Of("per")->Stats().limiter.samples;
  ReopenBoth();
  EXPECT_EQ(Of("demos")->Stats().limiter.samples, 17u);
  EXPECT_EQ(Of("per")->Stats().limiter.samples, sampled);
  EXPECT_EQ(Of("demos")->Stats().draws, 4u);
  EXPECT_EQ(b_->Count(), 0u);
}

TEST_F(SamplerPartsTest, WeightsHaveOneMaximumForAllParts) {
  AppendDemos(4);
  const float demo_priorities[] = {1, 8, 2, 1};
  ASSERT_OK(Of("demos")->SetAll(demo_priorities));
  for (const WeightMaximum maximum : {WeightMaximum::kBatch, WeightMaximum::kNone}) {
    SamplerOptions options{.batch = 60, .beta = 0.7, .weight_maximum = maximum};
    auto sampler = Mix({Fixed("demos", 20), Fixed("per", 20), Rest("order")}, options);
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    std::vector<double> expected;
    double largest = 0;
    for (size_t i = 0; i < 60; ++i) {
      const uint32_t source = batch->sources()[i];
      const double n = static_cast<double>(Of(source == 0 ? "demos" : "per")->DrawableCount());
      expected.push_back(source == 2 ? 1.0 : std::pow(n * batch->probabilities()[i], -0.7));
      largest = std::max(largest, expected.back());
    }
    ASSERT_GT(largest, 1.1);
    for (size_t i = 0; i < 60; ++i) {
      const double over = maximum == WeightMaximum::kBatch ? largest : 1;
      EXPECT_NEAR(batch->weights()[i], expected[i] / over, 1e-5);
    }
  }
}

TEST_F(SamplerPartsTest, NStepAndDrawnRowsAreThoseOfEachPart) {
  AppendDemos(12);
  Close();
  OpenEmpty();
  demos_ = 0;
  PriorityTableSpec demos = Demos();
  demos.window.extent = {0, 1, 2};
  Fill(demos);
  AppendDemos(12);
  PriorityTableSpec per = WindowSpec("per2", {0, 1, 2});
  ASSERT_OK(table_->CreatePriorityTable(per));
  SamplerOptions options{.batch = 24};
  options.views = {{.column = "action"},
                   {.column = "action", .name = "goal", .rows = {.draw = "g"}}};
  options.n_step = NStep{.reward_column = "reward", .n = 2, .gamma = 0.5};
  options.row_draws = {{.name = "g"}};
  auto sampler = Mix({Fixed("demos", 12), Rest("per2")}, options);
  SamplerOptions alone = options;
  alone.batch = 12;
  alone.observer = true;
  for (uint64_t draw = 0; draw < 3; ++draw) {
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    for (const size_t part : {size_t{0}, size_t{1}}) {
      alone.seed = part == 0 ? 99 : 7 + testing::kPartSeeds;
      alone.restart_draw = draw;
      const auto single = (*Of(part == 0 ? "demos" : "per2")->NewSampler(alone))->Next();
      ASSERT_OK(single);
      for (const std::string_view name : single->OutputNames()) {
        const TensorView whole = (*batch)[name];
        const TensorView half = (*single)[name];
        ASSERT_EQ(whole.byte_count(), 2 * half.byte_count());
        EXPECT_EQ(std::memcmp(static_cast<const std::byte*>(whole.bytes) + part * half.byte_count(),
                              half.bytes, half.byte_count()),
                  0)
            << name;
      }
    }
  }
}

TEST_F(SamplerPartsTest, ABatchIsDrawnInAllPartsOrInNone) {
  auto sampler = Mix({Fixed("per", 4), Fixed("demos", 4)}, {.batch = 8});
  EXPECT_STATUS(kDeadlineExceeded, sampler->Next(Deadline::Now()).status(),
                "priority table 'demos' of table 'b' has nothing to draw");
  EXPECT_EQ(Of("per")->Stats().limiter.reserved, 0u);
  EXPECT_EQ(Of("per")->Stats().draws, 0u);
  AppendDemos(4);
  const auto batch = sampler->Next(Deadline::Now());
  ASSERT_OK(batch);
  EXPECT_EQ(batch->draw_number(), 0u);
  EXPECT_EQ(Of("per")->Stats().draws, 1u);
  EXPECT_EQ(Of("demos")->Stats().draws, 1u);
}

TEST_F(SamplerPartsTest, AHandOverIsOneRecord) {
  AppendDemos(20);
  auto sampler = Mix({Fixed("demos", 5), Rest("per")}, {.batch = 12, .prefetch = 2});
  // Directories as a crash would leave them, after each hand-over.
  for (uint64_t batches = 1; batches <= 3; ++batches) {
    ASSERT_OK(sampler->Next());
    const auto copy = testing::CopyOpenStore(dir_->path());
    const auto crashed = Database::Open(copy->path(), testing::SmallOptions());
    ASSERT_OK(crashed);
    const auto demos = (*(*crashed)->OpenTable("b"))->priority_table("demos");
    const auto per = (*(*crashed)->OpenTable("a"))->priority_table("per");
    EXPECT_EQ(demos->Stats().draws, batches);
    EXPECT_EQ(per->Stats().draws, batches);
    EXPECT_EQ(demos->Stats().limiter.samples, 5 * batches);
    EXPECT_EQ(per->Stats().limiter.samples, 7 * batches);
    uint64_t times = 0;
    for (TrajectoryId id = 1; id <= 9; ++id)
      times += (*(*crashed)->OpenTable("a"))->Find(id)->times_sampled;
    EXPECT_EQ(times, 7 * batches);
  }
  EXPECT_GT(Of("demos")->Stats().limiter.reserved, 0u);
  sampler.reset();
  EXPECT_EQ(Of("demos")->Stats().limiter.reserved, 0u);
  EXPECT_EQ(Of("per")->Stats().limiter.reserved, 0u);
}

TEST_F(SamplerPartsTest, GoesOnAfterAReopen) {
  AppendDemos(20);
  for (uint64_t draw = 0; draw < 3; ++draw) {
    const std::vector<SamplerPart> parts = {Fixed("demos", 5), Rest("per")};
    auto sampler = Mix(parts, {.batch = 12, .prefetch = draw == 1 ? 3 : 0});
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    EXPECT_EQ(batch->draw_number(), draw);
    EXPECT_EQ(ItemsOf(*batch, 0), Alone(Of("demos"), 99, draw, 5));
    EXPECT_EQ(ItemsOf(*batch, 1), Alone(Of("per"), 7 + testing::kPartSeeds, draw, 7));
    sampler.reset();
    ReopenBoth();
  }
}

TEST_F(SamplerPartsTest, ATableThatIsDroppedEndsIt) {
  AppendDemos(20);
  auto sampler = Mix({Fixed("demos", 5), Rest("per")}, {.batch = 12, .prefetch = 2});
  ASSERT_OK(sampler->Next());
  ASSERT_OK(database_->DropTable("b"));
  EXPECT_STATUS(kCancelled, sampler->Next().status(), "b");
  EXPECT_EQ(Of("per")->Stats().limiter.reserved, 0u);
  EXPECT_EQ(Of("per")->Stats().draws, 1u);
}

TEST_F(SamplerPartsTest, WhatIsWrongIsNamed) {
  const auto refused = [&](const std::vector<SamplerPart>& parts, SamplerOptions options,
                           const char* text) {
    if (options.views.empty()) options.views = {{.column = "action"}};
    EXPECT_STATUS(kInvalidArgument, database_->NewSampler(parts, options).status(), text);
  };
  const SamplerOptions ten{.batch = 10};
  refused({}, ten, "a sampler has no parts");
  refused({Rest("per"), SamplerPart()}, ten, "part 1 of a sampler names no priority table");
  refused({Rest("per"), Fixed("per", 1)}, ten, "'per' has it as part 0 and as part 1");
  refused({Rest("per"), Rest("demos")}, ten, "has 2 parts that take the rest; expected one");
  refused({Fixed("per", 4), Fixed("demos", 7)}, ten,
          "has parts of 11 rows together; the batch has 10");
  refused({Fixed("per", 4), Fixed("demos", 4)}, ten,
          "has parts of 8 rows together; the batch has 10, and no part takes the rest");
  refused({Fixed("per", 4), UpTo("demos", 6)}, ten,
          "has parts of 4 rows together for certain; the batch has 10, and no part takes the rest");
  refused({Fixed("per", 0), Rest("demos")}, ten,
          "has count 0 in its part; expected 1 to the batch's 10");
  refused({By("per", 0.5), By("demos", 0.4)}, ten,
          "has parts with probability 0.9 together; expected 1, or a part that takes the rest");
  refused({By("per", 1.5), Rest("demos")}, ten, "has probability 1.5 in its part; expected 0 to 1");
  SamplerPart part = Rest("per");
  part.count = 3;
  refused({part, Fixed("demos", 1)}, ten, "has count 3 in its part; expected 0 where");
  part = Rest("per");
  part.share = static_cast<ShareKind>(4);
  refused({part, Fixed("demos", 1)}, ten, "has share 4; expected 0 (fixed)");
  SamplerOptions options = ten;
  options.tokens_max = 5;
  refused({Rest("per"), Fixed("demos", 1)}, options, "has parts and tokens_max");
  options = ten;
  options.weight_maximum = WeightMaximum::kTable;
  refused({Rest("per"), Fixed("demos", 1)}, options, "has parts and weight_maximum 1 (table)");
  options = ten;
  options.restart_draw = 0;
  refused({Rest("per"), Fixed("demos", 1)}, options, "has parts and restarts its draws");
  options = ten;
  options.views = {{.column = "extra"}};
  EXPECT_STATUS(
      kNotFound,
      database_->NewSampler(std::vector{Rest("per"), Fixed("demos", 1)}, options).status(),
      "extra");
  ASSERT_OK(table_->CreatePriorityTable(WindowSpec("wide", {0, 3, 0})));
  refused({Rest("wide"), Fixed("demos", 1)}, ten,
          "view 'action' is i32 [] of priority table 'wide' of table 'a' and i32 [], one row of "
          "priority table 'demos' of table 'b'");
  // Rows of a ragged column are found otherwise: another part's would be shown as bytes of rows.
  ASSERT_OK_AND_ASSIGN(const auto ragged,
                       database_->CreateTable(
                           {.name = "ragged",
                            .columns = {{.name = "obs", .shape = {3}, .kind = ColumnKind::kRagged}},
                            .priority_tables = {WindowSpec("some")}}));
  SamplerOptions obs = ten;
  obs.views = {{.column = "obs"}};
  const SamplerPart some{
      .priority_table = ragged->priority_table("some"), .share = ShareKind::kFixed, .count = 1};
  refused({Rest("per"), some}, obs, "any number of rows of priority table 'some'");
  testing::TempDir other_dir;
  auto other = Database::Open(other_dir.path(), testing::SmallOptions());
  ASSERT_OK(other);
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("far")};
  const auto far = (*other)->CreateTable(spec);
  ASSERT_OK(far);
  refused(
      {Rest("per"),
       {.priority_table = (*far)->priority_table("far"), .share = ShareKind::kFixed, .count = 1}},
      ten, "part 1 of a sampler, priority table 'far', is of another database than part 0");
}

TEST_F(SamplerPartsTest, WeightsThatNoFloatHoldsAreOverTheirLargest) {
  AppendDemos(8);
  for (const double beta : {25.0, 400.0, 4000.0}) {
    const auto sampler = Mix({Rest("per"), Fixed("demos", 3)}, {.batch = 10, .beta = beta});
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    float largest = 0;
    for (const float weight : batch.weights()) {
      EXPECT_TRUE(weight >= 0 && weight <= 1) << weight;
      largest = std::max(largest, weight);
    }
    EXPECT_EQ(largest, 1.0f);
  }
}

}  // namespace
}  // namespace geardb
