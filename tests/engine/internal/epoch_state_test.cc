#include "engine/internal/epoch_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kLeaves = 600;

/// A selector and what stands beside it.
struct Stand {
  Stand(index::IndexMemory* memory, const EpochSpec& spec)
      : selector(index::EpochSelector::Create(memory, "epoch", kLeaves).value()),
        state(selector.get(), spec) {
    GEARDB_CHECK(selector->Reserve(kLeaves).ok());
  }
  void Erase(index::LeafRange range) {
    if (selector->Erase(range) > 0) state.Erased(range);
  }
  std::unique_ptr<index::EpochSelector> selector;
  EpochState state;
};

/// What is left of the cut as of when it was told that it may change: of leaf by leaf.
class Kept final : public index::ChangeWatch {
 public:
  explicit Kept(const Stand* stand) : stand_(stand), leaves_(kLeaves, kUnknown) {}
  void BeforeChange(uint64_t begin, uint64_t end) override {
    for (uint64_t leaf = begin; leaf < end; ++leaf) {
      if (leaves_[leaf] == kUnknown) leaves_[leaf] = Now(leaf);
    }
  }
  std::vector<int> All() {
    BeforeChange(0, kLeaves);
    return leaves_;
  }

 private:
  static constexpr int kUnknown = -1;
  int Now(uint64_t leaf) const {
    const bool left = stand_->state.Remains(leaf) || stand_->state.reserved_leaves().contains(leaf);
    return stand_->selector->InCut(leaf) ? 1 + (left ? 1 : 0) : 0;
  }
  const Stand* stand_;
  std::vector<int> leaves_;
};

/// As the header says, over plain sets.
struct Model {
  uint64_t passes = 1;
  std::set<uint64_t> members, cut, covered;
  EpochMark mark;

  void Advance() {
    if (mark.epoch == 0 || covered != cut || cut.empty() || mark.pass >= passes) return;
    ++mark.pass;
    covered.clear();
  }
  bool exhausted() const {
    return mark.epoch == 0 || (covered == cut && (mark.pass >= passes || cut.empty()));
  }
};

struct Drawn {
  EpochMark mark;
  std::vector<uint64_t> leaves;
};

/// Two stand side by side: one with draws that are handed over, given up or overtaken by an epoch,
/// and one that gets what the log would say alone, as a replay does.
class Program {
 public:
  Program(uint64_t seed, const EpochSpec& spec)
      : seed_(seed),
        random_(seed),
        spec_(spec),
        memory_(index::TestMemory()),
        live_(memory_.get(), spec),
        replay_(memory_.get(), spec) {
    model_.passes = spec.passes;
  }

  /// Some steps, beside which one keeps what was: as an image does.
  void StepsBesideAnImage() {
    const std::vector<int> before = Kept(&live_).All();
    Kept kept(&live_);
    kept_ = &kept;
    live_.state.Watch(&kept);
    for (uint64_t steps = random_() % 12; steps > 0; --steps) Step();
    live_.state.Watch(nullptr);
    kept_ = nullptr;
    ASSERT_EQ(kept.All(), before);
  }

  void Step() {
    const uint64_t what = random_() % 100;
    if (what < 12) {
      Insert(RandomRange());
    } else if (what < 18) {
      Erase(RandomRange());
    } else if (what < 22) {
      Begin();
    } else if (what < 24) {
      // Of a pass that is, or was.
      EndPass({model_.mark.epoch, model_.mark.pass - (random_() % 3 == 0 ? 1 : 0)});
    } else if (what < 60) {
      Draw();
    } else if (!ahead_.empty()) {
      EndDraw(/*hands_over=*/what >= 70);
    }
  }

  void Compare() const {
    ASSERT_EQ(live_.state.mark(), model_.mark);
    EpochStats stats = live_.state.Stats();
    ASSERT_EQ(stats.items, model_.cut.size());
    ASSERT_EQ(stats.remaining, model_.cut.size() - model_.covered.size());
    ASSERT_EQ(stats.exhausted, model_.exhausted());
    ASSERT_EQ(live_.selector->drawable() + stats.reserved, stats.remaining);
    stats.reserved = 0;
    ASSERT_EQ(replay_.state.Stats(), stats);
    for (const uint64_t leaf : model_.cut) {
      const bool covered = model_.covered.contains(leaf);
      ASSERT_EQ(replay_.state.Remains(leaf), !covered);
      ASSERT_EQ(live_.state.IsCovered(leaf), covered && model_.mark.pass >= spec_.passes);
    }
  }

 private:
  index::LeafRange RandomRange() {
    const uint64_t begin = random_() % kLeaves;
    return {begin, std::min(begin + random_() % 12, kLeaves)};
  }
  void Insert(index::LeafRange range) {
    live_.selector->Insert(range, 1);
    replay_.selector->Insert(range, 1);
    for (uint64_t leaf = range.begin; leaf < range.end; ++leaf) model_.members.insert(leaf);
  }
  void Erase(index::LeafRange range) {
    if (kept_ != nullptr) kept_->BeforeChange(range.begin, range.end);
    live_.Erase(range);
    replay_.Erase(range);
    for (uint64_t leaf = range.begin; leaf < range.end; ++leaf) {
      model_.members.erase(leaf);
      model_.cut.erase(leaf);
      model_.covered.erase(leaf);
    }
    model_.Advance();
  }
  void Begin() {
    live_.state.Begin();
    replay_.state.Begin();
    model_.cut = model_.members;
    model_.covered.clear();
    model_.mark = {model_.mark.epoch + 1, 1};
  }
  void EndPass(const EpochMark& ended) {
    live_.state.EndPass(ended);
    replay_.state.EndPass(ended);
    if (ended != model_.mark || ended.epoch == 0) return;
    model_.covered = model_.cut;
    model_.Advance();
  }
  void Draw() {
    std::vector<uint64_t> leaves(
        std::min<uint64_t>(1 + random_() % 20, live_.selector->drawable()));
    ASSERT_EQ(live_.selector->Draw({.seed = seed_, .draw_number = draw_++}, leaves, {}),
              leaves.size());
    live_.state.Reserve(leaves);
    ahead_.push_back({live_.state.mark(), leaves});
  }
  void EndDraw(bool hands_over) {
    const size_t which = random_() % ahead_.size();
    const Drawn drawn = ahead_[which];
    ahead_.erase(ahead_.begin() + static_cast<ptrdiff_t>(which));
    std::vector<uint64_t> there;  // As a hand-over finds them.
    for (const uint64_t leaf : drawn.leaves) {
      if (model_.members.contains(leaf)) there.push_back(leaf);
    }
    live_.state.Cancel(drawn.mark, there);
    if (!hands_over) return;
    live_.state.Cover(drawn.mark, there);
    replay_.state.Cover(drawn.mark, there);
    if (drawn.mark != model_.mark || drawn.mark.epoch == 0) return;
    for (const uint64_t leaf : there) {
      if (model_.cut.contains(leaf)) model_.covered.insert(leaf);
    }
    model_.Advance();
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const EpochSpec spec_;
  std::unique_ptr<index::IndexMemory> memory_;
  Stand live_;
  Stand replay_;
  Model model_;
  std::deque<Drawn> ahead_;
  uint64_t draw_ = 0;
  Kept* kept_ = nullptr;
};

TEST(EpochStateTest, RandomProgramsCoverWhatTheModelCoversAndAReplayTheSame) {
  const uint64_t programs = geardb::testing::ShareOf(60);
  for (uint64_t seed = 1; seed <= programs; ++seed) {
    Program program(seed, {.passes = static_cast<uint32_t>(1 + seed % 3)});
    for (int step = 0; step < 600 && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step));
      program.Step();
      program.Compare();
      if (step % 10 == 0) program.StepsBesideAnImage();
    }
  }
}

TEST(EpochStateTest, AnEpochOfNothingIsExhausted) {
  const auto memory = index::TestMemory();
  Stand stand(memory.get(), {.passes = 3});
  EXPECT_TRUE(stand.state.exhausted());
  EXPECT_EQ(stand.state.mark(), EpochMark());
  stand.state.Cover({}, std::vector<uint64_t>{1});
  stand.state.EndPass({});
  EXPECT_EQ(stand.state.mark(), EpochMark());
  stand.state.Begin();
  EXPECT_TRUE(stand.state.exhausted());
  EXPECT_EQ(stand.state.mark(), (EpochMark{1, 1}));
}

}  // namespace
}  // namespace geardb::engine
