// Random programs of changes and draws: the store must agree with the brute-force model on every
// item, every row shown, every mask, return, weight and probability; and every item must come.
//
// GEARDB_CONFORMANCE_PROGRAMS sets how many programs run, GEARDB_CONFORMANCE_SEED the first one's
// seed: a failure names the seed of its program, which one of these runs alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "tests/conformance/batch_check.h"
#include "tests/conformance/read_check.h"
#include "tests/conformance/rule_coverage.h"
#include "tests/conformance/store_twin.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::conformance {
namespace {

/// Draws after which an item of the smallest probability was missed with a chance below e^-20.
double DrawsToSeeAll(const DrawnTable& drawn) {
  double smallest = std::numeric_limits<double>::max();
  double drawable = 0;
  for (const auto& [item, priority] : drawn.priorities) {
    const double weight = drawn.Weight(priority);
    if (weight == 0) continue;
    smallest = std::min(smallest, weight);
    ++drawable;
  }
  return (std::log(drawable) + 20) * drawn.TotalWeight() / smallest;
}

/// Items that were drawn, and their handles.
struct KnownItems {
  std::vector<ItemHandle> handles;
  std::vector<ModelItem> items;
};

/// Sets what was drawn just now, and what was drawn in an earlier round: of that, some is gone.
void SetPriorities(StoreTwin* twin, DrawnTable* drawn, const KnownItems& now, KnownItems* earlier) {
  if (!drawn->has_priorities()) return;
  twin->SetByHandle(drawn, earlier->handles, earlier->items);
  twin->SetByHandle(drawn, now.handles, now.items);
  *earlier = now;
}

/// Draws with one random sampler; in the last round until every drawable item has come, if it may.
void CheckDraws(StoreTwin* twin, DrawnTable* drawn, bool last_round, RandomChoice* choice,
                KnownItems* earlier) {
  SCOPED_TRACE(DescribePriorityTable(drawn->spec));
  const RandomSampler sampler = MakeRandomSampler(twin->random_table(), drawn->rule, choice);
  const auto priority_table = twin->priority_table(*drawn);
  ASSERT_OK_AND_ASSIGN(const auto draws, priority_table->NewSampler(sampler.options));
  size_t drawable = 0;
  for (const auto& [item, priority] : drawn->priorities) {
    drawable += drawn->Weight(priority) > 0 ? 1u : 0u;
  }
  const auto batch_items = static_cast<size_t>(sampler.options.batch);
  if (drawable == 0 || (drawn->distinct() && drawable < batch_items)) {
    EXPECT_STATUS(kDeadlineExceeded, draws->Next(Deadline::Now()), "");
    return;
  }
  const bool see_all = last_round && !drawn->ordered();
  BatchCheck check(twin, drawn, sampler);
  const double most =
      see_all ? DrawsToSeeAll(*drawn) : 3 * static_cast<double>(sampler.options.batch);
  KnownItems now;
  for (double drawn_items = 0; drawn_items < most;) {
    ASSERT_OK_AND_ASSIGN(Batch batch, draws->Next());
    check.Check(batch);
    if (::testing::Test::HasFailure()) return;
    drawn_items += static_cast<double>(batch.size());
    now.handles.assign(batch.handles().begin(), batch.handles().end());
    now.items = check.items();
    if (see_all && check.seen().size() == drawable) break;
  }
  ASSERT_TRUE(!see_all || check.seen().size() == drawable)
      << check.seen().size() << " of " << drawable << " items in " << most << " draws";
  SetPriorities(twin, drawn, now, earlier);
}

/// Most programs run on a file system in memory, every tenth on the machine's own.
void RunProgram(uint64_t seed) {
  RandomChoice choice(seed);
  testing::FaultEnv memory(seed);
  const bool in_memory = seed % 10 != 0;
  const testing::TempDir directory;
  StoreTwin twin(MakeRandomTable(&choice), directory.path(), in_memory ? &memory : nullptr,
                 &choice);
  SCOPED_TRACE(DescribeTable(twin.random_table()));
  std::map<std::string, KnownItems> known;
  const int64_t rounds = choice.Between(2, 4);
  for (int64_t round = 1; round <= rounds && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (int64_t i = choice.Between(5, 25); i > 0; --i) twin.Change();
    if (choice.Percent(30)) twin.Reopen();
    twin.CheckAll();
    if (::testing::Test::HasFailure()) return;
    CheckReads(&twin, &choice);
    for (DrawnTable& drawn : twin.drawn()) {
      CheckDraws(&twin, &drawn, round == rounds, &choice, &known[drawn.spec.name]);
      if (::testing::Test::HasFailure()) return;
    }
    twin.CheckAll();
  }
}

/// Items of all pairs of edge rules are compared after every few changes, and drawn at the end.
void RunProgramOfAllRules(uint64_t seed, RuleCoverage* coverage) {
  RandomChoice choice(seed);
  testing::FaultEnv memory(seed);
  const testing::TempDir directory;
  StoreTwin twin(MakeTableOfAllRules(&choice), directory.path(), &memory, &choice);
  SCOPED_TRACE(DescribeTable(twin.random_table()));
  for (int round = 0; round < 12 && !::testing::Test::HasFailure(); ++round) {
    for (int i = 0; i < 4; ++i) twin.Change();
    if (choice.Percent(10)) twin.Reopen();
    twin.CheckAll();
    for (const DrawnTable& drawn : twin.drawn()) coverage->Note(drawn.rule, twin.model());
  }
  std::map<std::string, KnownItems> known;
  for (DrawnTable& drawn : twin.drawn()) {
    if (::testing::Test::HasFailure()) return;
    CheckDraws(&twin, &drawn, false, &choice, &known[drawn.spec.name]);
  }
}

TEST(WindowConformanceTest, StoreAgreesWithTheModelForAllPairsOfEdgeRules) {
  constexpr uint64_t kAllPrograms = 150;
  const uint64_t programs = testing::ShareOf(kAllPrograms);
  RuleCoverage coverage;
  for (uint64_t seed = 1; seed <= programs && !HasFailure(); ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    RunProgramOfAllRules(seed, &coverage);
  }
  if (programs == kAllPrograms) {
    EXPECT_EQ(coverage.Missing(), "");
  }
}

TEST(WindowConformanceTest, StoreAgreesWithTheModel) {
  const uint64_t first = testing::FromEnvironment("GEARDB_CONFORMANCE_SEED", 1);
  const uint64_t programs =
      testing::FromEnvironment("GEARDB_CONFORMANCE_PROGRAMS", testing::ShareOf(500));
  for (uint64_t seed = first; seed < first + programs && !HasFailure(); ++seed) {
    SCOPED_TRACE("GEARDB_CONFORMANCE_SEED=" + std::to_string(seed) +
                 " GEARDB_CONFORMANCE_PROGRAMS=1");
    RunProgram(seed);
  }
}

}  // namespace
}  // namespace geardb::conformance
