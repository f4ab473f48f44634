// Epochs of learners that die: children draw an epoch of several passes, and are killed with
// SIGKILL at random batches and at named points, with batches drawn ahead. Over all of them each
// item is shown once in each pass; a batch in hand, whose hand-over is in the log and which its
// learner did not live to see, counts once.
//
// GEARDB_EPOCHS sets the number of epochs (default 24), GEARDB_KILL_SEED what they do.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <random>
#include <set>

#include "tests/testing/killed_child.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::FromEnvironment;
using testing::Rows;

constexpr uint64_t kShownMax = 4096;
constexpr uint64_t kPasses = 3;

/// What parent and child share: what learners have seen.
struct SharedEpochs {
  std::atomic<uint64_t> shown{0};
  std::atomic<uint64_t> batches{0};
  uint64_t items[kShownMax] = {};  // Trajectory << 32 | row.
};

struct Learner {
  int64_t batch = 1;
  int64_t prefetch = 0;
  testing::Death death = {};  // No point: once it has seen `batches_max`.
  bool by_parent = false;     // Who kills it then, some time later.
  uint64_t batches_max = 1;
};

class EpochKillTest : public testing::StoreTest {
 protected:
  EpochKillTest() {
    options_.segment_bytes = 64 << 10;
    options_.ring_bytes = 32 << 10;
  }

  void CreateEpoch(uint64_t items) {
    OpenEmpty();
    TableSpec spec = testing::StepSpec();
    PriorityTableSpec epochs = testing::WindowSpec("epochs");
    epochs.selector = SelectorKind::kEpoch;
    epochs.epoch.passes = kPasses;
    spec.priority_tables = {epochs};
    Create(spec);
    for (uint64_t left = items; left > 0;) {
      const auto rows = static_cast<int64_t>(std::min<uint64_t>(left, 7));
      AppendClosed(0, rows);
      left -= static_cast<uint64_t>(rows);
    }
    ASSERT_OK(priority("epochs")->BeginEpoch());
    AppendClosed(0, 5);  // Not of this epoch.
    Close();
  }

  Status Learn(const Learner& learner) {
    GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(dir_->path(), options_));
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable("steps"));
    GEARDB_ASSIGN_OR_RETURN(const auto sampler,
                            table->priority_table("epochs")->NewSampler(
                                {.batch = learner.batch, .prefetch = learner.prefetch}));
    for (;;) {
      const auto batch = sampler->Next();
      if (batch.status().code() == StatusCode::kOutOfRange) return Status::Ok();
      GEARDB_RETURN_IF_ERROR(batch.status());
      const uint64_t at = shared_->shown.load();
      for (size_t i = 0; i < static_cast<size_t>(batch->size()); ++i) {
        shared_->items[at + i] =
            batch->trajectory_ids()[i] << 32 | static_cast<uint64_t>(batch->anchors()[i]);
      }
      shared_->shown.store(at + static_cast<uint64_t>(batch->size()));  // Seen whole, or not.
      const uint64_t batches = shared_->batches.fetch_add(1) + 1;
      if (learner.death.point == nullptr && !learner.by_parent && batches >= learner.batches_max) {
        ::kill(::getpid(), SIGKILL);
      }
    }
  }

  void RunLearner(const Learner& learner) {
    shared_->batches.store(0);
    const testing::ChildEnd end = testing::RunChild(
        learner.death, [&] { return Learn(learner); },
        [&] {
          return learner.death.point == nullptr && learner.by_parent &&
                 shared_->batches.load() >= learner.batches_max;
        });
    if (end != testing::ChildEnd::kReturned) ++deaths_;
  }

  /// Where the epoch stands on disk: rows handed over.
  uint64_t HandedOver(uint64_t items) {
    Open();
    table_ = database_->OpenTable("steps").value();
    const EpochStats stats = priority("epochs")->Stats().epoch;
    EXPECT_EQ(stats.epoch, 1u);
    EXPECT_EQ(stats.items, items);
    EXPECT_EQ(stats.reserved, 0u);
    exhausted_ = stats.exhausted;
    Close();
    return (stats.pass - 1) * items + items - stats.remaining;
  }

  void RunEpoch(uint64_t seed) {
    SCOPED_TRACE("GEARDB_KILL_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    shared_.Reset();
    const uint64_t items = 1 + random() % 300;
    CreateEpoch(items);
    std::multiset<uint64_t> pass_seen;  // Of the pass that is under way.
    uint64_t in_hand = 0;               // In this pass.
    uint64_t looked_at = 0;
    uint64_t counted = 0;  // Seen or in hand, of all passes.
    const auto end_of_pass = [&] {
      const std::set<uint64_t> distinct(pass_seen.begin(), pass_seen.end());
      EXPECT_EQ(distinct.size(), pass_seen.size()) << "an item was shown twice in a pass";
      EXPECT_EQ(pass_seen.size() + in_hand, items);
      pass_seen.clear();
      in_hand = 0;
    };
    exhausted_ = false;
    for (int life = 0; !exhausted_ && !HasFailure(); ++life) {
      constexpr const char* kPoints[] = {nullptr, nullptr, "handed_over", "handed_over", "drain"};
      const Learner learner{.batch = static_cast<int64_t>(1 + random() % 16),
                            .prefetch = static_cast<int64_t>(random() % 4),
                            .death = {kPoints[random() % std::size(kPoints)],
                                      static_cast<int64_t>(1 + random() % 12)},
                            .by_parent = random() % 2 == 0,
                            .batches_max = 1 + random() % 12};
      RunLearner(learner);
      if (HasFailure()) return;
      for (const uint64_t shown = shared_->shown.load(); looked_at < shown; ++looked_at) {
        pass_seen.insert(shared_->items[looked_at]);
        if (++counted % items == 0) end_of_pass();
      }
      const uint64_t handed_over = HandedOver(items);
      ASSERT_GE(handed_over, counted) << "what a learner has seen is in the log";
      ASSERT_LE(handed_over - counted, static_cast<uint64_t>(learner.batch)) << "one batch in hand";
      in_hand += handed_over - counted;
      in_hand_ever_ += handed_over - counted;
      if (handed_over > counted && handed_over % items == 0) end_of_pass();
      counted = handed_over;
    }
    EXPECT_EQ(counted, kPasses * items);
    EXPECT_TRUE(pass_seen.empty());
  }

  testing::SharedWithChildren<SharedEpochs> shared_;
  bool exhausted_ = false;
  uint64_t deaths_ = 0;
  uint64_t in_hand_ever_ = 0;
};

TEST_F(EpochKillTest, EachItemIsShownOnceInEachPass) {
  const uint64_t first = FromEnvironment("GEARDB_KILL_SEED", 1);
  const uint64_t epochs = FromEnvironment("GEARDB_EPOCHS", testing::ShareOf(24));
  for (uint64_t seed = first; seed < first + epochs && !HasFailure(); ++seed) RunEpoch(seed);
  std::printf("%8llu learners were killed\n", static_cast<unsigned long long>(deaths_));
  std::printf("%8llu rows were in hand\n", static_cast<unsigned long long>(in_hand_ever_));
  EXPECT_GT(deaths_, epochs);
  EXPECT_GT(in_hand_ever_, 0u);
}

}  // namespace
}  // namespace geardb
