// Epochs of a store: random programs against a plain model of what each pass has covered, live and
// after reopens and crashes; and draws that go on after a crash as if there had been none.
#include "engine/internal/epochs.h"

#include <algorithm>
#include <random>
#include <set>

#include "tests/engine/rate_limit_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

using Item = std::pair<TrajectoryId, int64_t>;

struct Model {
  EpochSpec spec;
  std::set<Item> items, cut, covered;
  uint64_t epoch = 0;
  uint64_t pass = 0;

  bool exhausted() const {
    return epoch == 0 || (covered == cut && (pass >= spec.passes || cut.empty()));
  }
  uint64_t remaining() const { return cut.size() - covered.size(); }
  void Advance() {
    if (epoch == 0 || covered != cut || cut.empty() || pass >= spec.passes) return;
    ++pass;
    covered.clear();
  }
  void Begin() {
    ++epoch;
    pass = 1;
    cut = items;
    covered.clear();
  }
  void Leave(const Item& item) {
    items.erase(item);
    cut.erase(item);
    covered.erase(item);
  }
  void RemoveTrajectory(TrajectoryId id) {
    for (const Item& item : std::set<Item>(items)) {
      if (item.first == id) Leave(item);
    }
    Advance();
  }
  bool IsCovered(TrajectoryId id) const {
    bool any = false;
    for (const Item& item : items) {
      if (item.first != id) continue;
      any = true;
      if (!covered.contains(item)) return false;
    }
    return any && epoch > 0 && pass >= spec.passes;
  }
};

class EpochsTest : public testing::RateLimitFixture {
 protected:
  uint64_t Roll(uint64_t below) { return random_() % below; }

  PriorityTableSpec EpochTable(const EpochSpec& epoch, bool trajectories = false) {
    PriorityTableSpec spec = Limited({}, SelectorKind::kEpoch);
    spec.epoch = epoch;
    if (trajectories) spec.item = ItemKind::kTrajectory;
    return spec;
  }
  EpochStats Epoch() { return priority("limited")->Stats().epoch; }
  std::unique_ptr<Sampler> SampleEpoch(int64_t batch, int64_t prefetch, bool drop_last = false) {
    auto sampler = priority("limited")->NewSampler(
        {.batch = batch, .drop_last = drop_last, .prefetch = prefetch, .timeout_ms = 0});
    EXPECT_OK(sampler);
    return sampler.ok() ? std::move(*sampler) : nullptr;
  }
  std::set<Item> ItemsNow() {
    std::set<Item> items;
    for (const RowId& row : priority("limited")->Items()) items.emplace(row.id, row.row);
    return items;
  }

  // ---- Random programs.

  void AppendSome() {
    const auto count = static_cast<int64_t>(1 + Roll(5));
    ASSERT_OK_AND_ASSIGN(const Appended appended, TryAppend(0, count));
    const int64_t items = trajectories_ ? 1 : count;
    for (int64_t row = 0; row < items; ++row) model_.items.emplace(appended.id, row);
  }

  void Begin() {
    // What is drawn ahead is of the epoch before: it is still delivered, and covers nothing.
    stale_rows_ = Limits().reserved;
    ASSERT_OK(priority("limited")->BeginEpoch());
    model_.Begin();
  }

  /// What the model loses behind a hand-over.
  void RemoveCovered(const std::set<TrajectoryId>& touched) {
    if (!model_.spec.remove_covered) return;
    std::set<TrajectoryId> gone;
    for (const TrajectoryId id : touched) {
      if (model_.IsCovered(id)) gone.insert(id);
    }
    for (const TrajectoryId id : gone) model_.RemoveTrajectory(id);
  }
  std::set<TrajectoryId> AllIds() const {
    std::set<TrajectoryId> ids;
    for (const Item& item : model_.items) ids.insert(item.first);
    return ids;
  }

  void Next() {
    if (sampler_ == nullptr) {
      batch_ = 1 + Roll(7);
      prefetch_ = static_cast<int64_t>(Roll(4));
      drop_last_ = Roll(4) == 0;
      if (drop_last_) prefetch_ = 0;
      sampler_ = SampleEpoch(static_cast<int64_t>(batch_), prefetch_, drop_last_);
      stale_rows_ = 0;
    }
    while (drop_last_ && !model_.exhausted() && model_.remaining() < batch_) {
      model_.covered = model_.cut;
      model_.Advance();
      RemoveCovered(AllIds());
    }
    const auto batch = NextNow(sampler_.get());
    if (model_.exhausted() && stale_rows_ == 0 && !batch.ok()) {
      ASSERT_EQ(batch.status().code(), StatusCode::kOutOfRange) << batch.status().ToString();
      return;
    }
    ASSERT_OK(batch);
    const std::vector<Item> shown = ItemsOf(*batch);
    ASSERT_EQ(std::set<Item>(shown.begin(), shown.end()).size(), shown.size());
    if (stale_rows_ > 0) {
      ASSERT_LE(shown.size(), stale_rows_);
      stale_rows_ -= shown.size();
      return;
    }
    if (prefetch_ == 0) {
      ASSERT_EQ(shown.size(), std::min<uint64_t>(batch_, model_.remaining()));
    }
    std::set<TrajectoryId> touched;
    for (const Item& item : shown) {
      if (!model_.items.contains(item)) continue;  // Gone since it was drawn.
      ASSERT_TRUE(model_.cut.contains(item)) << item.first << ", " << item.second;
      ASSERT_TRUE(model_.covered.insert(item).second) << "shown twice in a pass";
      touched.insert(item.first);
    }
    model_.Advance();
    RemoveCovered(touched);
  }

  void DropSampler() {
    sampler_.reset();
    stale_rows_ = 0;
  }

  void RemoveOne() {
    if (model_.items.empty()) return;
    const auto chosen =
        std::next(model_.items.begin(), static_cast<ptrdiff_t>(Roll(model_.items.size())));
    const Item item = *chosen;
    if (Roll(2) == 0) {
      ASSERT_OK(table_->Remove({&item.first, 1}));
      model_.RemoveTrajectory(item.first);
      return;
    }
    const RowId row{item.first, item.second};
    ASSERT_OK(priority("limited")->Delete({&row, 1}));
    model_.Leave(item);
    model_.Advance();
    RemoveCovered({item.first});
  }

  void OpenAtRest(bool crash) {
    std::unique_ptr<testing::TempDir> copy;
    if (crash) copy = testing::CopyOpenStore(dir_->path());
    DropSampler();
    Close();
    if (crash) dir_ = std::move(copy);
    Open();
    OpenAgain("steps");
    RemoveCovered(AllIds());
  }

  void Compare() {
    const EpochStats stats = Epoch();
    EXPECT_EQ(stats.epoch, model_.epoch);
    EXPECT_EQ(stats.pass, model_.pass);
    EXPECT_EQ(stats.passes, model_.spec.passes);
    EXPECT_EQ(stats.items, model_.cut.size());
    EXPECT_EQ(stats.remaining, model_.remaining());
    // What was drawn ahead of an epoch that was given up is reserved by the limiter alone.
    EXPECT_LE(stats.reserved, stats.remaining);
    EXPECT_EQ(stats.exhausted, model_.exhausted());
    EXPECT_EQ(ItemsNow(), model_.items);
  }

  void Run(uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    model_ = Model();
    model_.spec = {.passes = static_cast<uint32_t>(1 + Roll(3)), .remove_covered = Roll(3) == 0};
    trajectories_ = Roll(4) == 0;
    DropSampler();
    OpenEmpty();
    CreateLimited(EpochTable(model_.spec, trajectories_));
    for (int step = 0; step < 150 && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const uint64_t what = Roll(100);
      if (what < 20) {
        AppendSome();
      } else if (what < (model_.exhausted() ? 35 : 22)) {
        Begin();
      } else if (what < 84) {
        Next();
      } else if (what < 88) {
        DropSampler();
      } else if (what < 94) {
        RemoveOne();
      } else {
        OpenAtRest(what >= 97);
      }
      if (!HasFatalFailure()) Compare();
    }
    sampler_.reset();
  }

  std::mt19937_64 random_;
  Model model_;
  std::unique_ptr<Sampler> sampler_;
  uint64_t batch_ = 1;
  uint64_t stale_rows_ = 0;  ///< Drawn ahead in an epoch that was given up.
  int64_t prefetch_ = 0;
  bool drop_last_ = false;
  bool trajectories_ = false;
};

TEST_F(EpochsTest, RandomProgramsCoverWhatTheModelCovers) {
  const uint64_t programs = testing::ShareOf(100);
  for (uint64_t seed = 1; seed <= programs && !HasFailure(); ++seed) Run(seed);
}

// With one sampler the batches are those of a run without crashes, whatever was drawn ahead.
TEST_F(EpochsTest, ACrashChangesNoBatch) {
  const auto run = [&](uint64_t seed, bool crashes) {
    random_.seed(seed);
    std::vector<std::vector<Item>> batches;
    OpenEmpty();
    CreateLimited(EpochTable({.passes = 2}));
    for (int t = 0; t < 9; ++t) EXPECT_OK(TryAppend(0, 7));
    EXPECT_OK(priority("limited")->BeginEpoch());
    for (bool more = true; more;) {
      auto sampler = SampleEpoch(5, crashes ? 3 : 0);
      for (uint64_t n = crashes ? Roll(6) : 1000; n > 0 && more; --n) {
        const auto batch = NextNow(sampler.get());
        more = batch.ok();
        if (more) batches.push_back(ItemsOf(*batch));
        EXPECT_TRUE(more || batch.status().code() == StatusCode::kOutOfRange);
      }
      std::unique_ptr<testing::TempDir> copy = testing::CopyOpenStore(dir_->path());
      sampler.reset();
      Close();
      dir_ = std::move(copy);
      Open();
      OpenAgain("steps", {.admission_timeout_ms = 0});
    }
    return batches;
  };
  const auto whole = run(1, false);
  ASSERT_EQ(whole.size(), 26u);  // Of 63 items 12 batches and a short one, twice.
  EXPECT_EQ(whole[12].size(), 3u);
  for (uint64_t seed = 1; seed <= 5; ++seed) EXPECT_EQ(run(seed, true), whole);
}

TEST_F(EpochsTest, SeveralSamplersShareAnEpoch) {
  CreateLimited(EpochTable({.passes = 2}));
  for (int t = 0; t < 5; ++t) ASSERT_OK(TryAppend(0, 8));
  ASSERT_OK(priority("limited")->BeginEpoch());
  std::vector<std::unique_ptr<Sampler>> samplers;
  for (const int64_t batch : {3, 4, 7}) samplers.push_back(SampleEpoch(batch, batch % 2));
  std::map<Item, int> seen;
  size_t ended = 0;
  for (uint64_t turn = 0; ended < samplers.size(); ++turn) {
    const auto batch = NextNow(samplers[turn % 3].get());
    if (batch.ok()) {
      for (const Item& item : ItemsOf(*batch)) ++seen[item];
      ended = 0;
      continue;
    }
    // Who finds all that is left with others waits for them.
    if (batch.status().code() == StatusCode::kDeadlineExceeded) {
      EXPECT_STATUS(kDeadlineExceeded, batch, "drawn by other samplers and not handed over");
      ended = 0;
      continue;
    }
    EXPECT_STATUS(kOutOfRange, batch, "epoch 1 is exhausted after pass 2");
    ++ended;
  }
  EXPECT_EQ(seen.size(), 40u);
  for (const auto& [item, times] : seen) EXPECT_EQ(times, 2);
  EXPECT_EQ(Epoch().reserved, 0u);
}

TEST_F(EpochsTest, CoveredTrajectoriesThatWereOpenLeaveWithTheirEnd) {
  TableSpec spec = StepSpec();
  PriorityTableSpec epochs = EpochTable({.passes = 1, .remove_covered = true});
  spec.priority_tables = {epochs, WindowSpec("other")};
  Create(spec, {.lanes = 2});
  AppendClosed(0, 3);
  Append(10, 2, End::kGo, 1);
  ASSERT_OK(priority("limited")->BeginEpoch());
  auto sampler = SampleEpoch(5, 0);
  ASSERT_OK(NextNow(sampler.get()));
  EXPECT_EQ(table_->Count(), 1u) << "the open one stays, whatever else could draw the other";
  EXPECT_TRUE(Epoch().exhausted);
  ASSERT_OK(writer_->Cut(1));
  EXPECT_EQ(table_->Count(), 0u);
}

TEST_F(EpochsTest, OnlyEpochTablesHaveEpochsAndTheyHaveNoMaximum) {
  CreateLimited(Limited({}, SelectorKind::kUniform));
  EXPECT_STATUS(kInvalidArgument, priority("limited")->BeginEpoch(), "has no epochs");
  const auto refused = [&](auto change, const char* says) {
    PriorityTableSpec spec = EpochTable({});
    spec.name = "epochs";
    change(&spec);
    EXPECT_STATUS(kInvalidArgument, table_->CreatePriorityTable(spec), says);
  };
  refused([](auto* s) { s->epoch.passes = 0; }, "epochs of 0 passes");
  refused([](auto* s) { s->max_times_sampled = 2; }, "has no max_times_sampled");
  refused([](auto* s) { s->limiter = {.kind = LimiterKind::kQueue, .capacity = 2}; },
          "no queue or stack");
  ASSERT_OK_AND_ASSIGN(auto epochs, [&] {
    PriorityTableSpec spec = EpochTable({});
    spec.name = "epochs";
    return table_->CreatePriorityTable(spec);
  }());
  EXPECT_STATUS(kInvalidArgument, epochs->Configure({.max_times_sampled = 3}),
                "has no max_times_sampled");
}

}  // namespace
}  // namespace geardb
