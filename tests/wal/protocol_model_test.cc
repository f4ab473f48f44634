// The model of the log's protocol finds no failure with all rules, and one with each rule off.
// GEARDB_MODEL_SECONDS (10) says about how long the first is looked for.
#include "tests/wal/protocol_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace geardb::wal::model {
namespace {

double SecondsToRun() {
  const char* const text = std::getenv("GEARDB_MODEL_SECONDS");
  return text == nullptr ? 10.0 : std::strtod(text, nullptr);
}

struct Mode {
  const char* name;
  bool damage;
  bool repair;
  bool recycling;
  int steps;
  double share;  // Of the seconds.
};

class ProtocolModelTest : public ::testing::TestWithParam<Mode> {};

TEST_P(ProtocolModelTest, FindsNoFailureWithAllRules) {
  const Mode& mode = GetParam();
  const Deadline deadline =
      Deadline::AfterMs(static_cast<int64_t>(SecondsToRun() * 1000 * mode.share));
  Counts counts;
  uint64_t seed = 0;
  // At least a thousand histories, however slow the machine.
  while (++seed <= 1000 || !deadline.passed()) {
    const HistoryOptions options{.seed = seed,
                                 .steps = mode.steps,
                                 .rules = {},
                                 .damage = mode.damage,
                                 .repair = mode.repair,
                                 .recycling = mode.recycling};
    const auto failure = RunHistory(options, &counts);
    ASSERT_FALSE(failure.has_value()) << "seed " << seed << ": " << *failure;
  }
  std::printf("%llu histories, %llu steps, %llu deaths, %llu power losses, %llu opens\n",
              static_cast<unsigned long long>(seed), static_cast<unsigned long long>(counts.steps),
              static_cast<unsigned long long>(counts.deaths),
              static_cast<unsigned long long>(counts.power_losses),
              static_cast<unsigned long long>(counts.opens));
  EXPECT_GT(counts.overlaps, 0u);
  EXPECT_GT(counts.failed_syncs, 0u);
  EXPECT_GT(counts.cuts, 0u);
  EXPECT_GT(counts.ring_tails, 0u);
  EXPECT_GT(counts.recovery_writes, 0u);
  if (mode.recycling) {
    EXPECT_GT(counts.recycled, 0u);
  }
  if (mode.damage) {
    EXPECT_GT(counts.reported, 0u);
    EXPECT_GE(counts.damages + counts.old_manifests, counts.reported);
    EXPECT_GT(counts.old_manifests, 0u);
  }
  if (mode.repair) {
    EXPECT_GT(counts.repairs, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ProtocolModelTest,
                         ::testing::Values(Mode{"crashes", false, false, false, 160, 0.27},
                                           Mode{"damage", true, false, false, 160, 0.27},
                                           Mode{"repair", true, true, false, 160, 0.27},
                                           Mode{"recycling", false, false, true, 600, 0.27},
                                           Mode{"damage_recycling", true, false, true, 600, 0.07}),
                         [](const auto& mode) { return std::string(mode.param.name); });

// A history that fails without a rule: found by search, and the same on every machine.
struct KnownFailure {
  const char* rule;
  uint64_t seed;
  bool damage = false;
  bool recycling = false;
  bool repair = false;
};

constexpr KnownFailure kKnownFailures[] = {
    {"admit_by_block", 54},
    {"admit_by_record", 2477},
    {"publish_in_order", 4},
    {"drain_published_only", 1376},
    {"sync_target_before", 146},
    {"sync_all_segments", 1397},
    {"sync_at_record_end", 1767},
    {"header_says_synced", 66},
    {"syncs_end_in_order", 1234},
    {"syncs_take_in_order", 15829},
    {"error_is_of_all_after", 661},
    {"chunks_after_sync", 40},
    {"recycle_after_flush", 83, false, true},
    {"equal_epoch_from_start", 50},
    {"epochs_only_grow", 28714, true, true},
    {"end_at_cut", 2394},
    {"check_pieces", 4},
    {"bad_piece_is_no_end", 3, true},
    {"scan_for_vouchers", 3, true},
    {"start_vouches", 11, true},
    {"only_epoch_vouches", 267, true, false, true},
    {"later_epoch_is_damage", 45, true},
    {"highest_epoch_wins", 146, false, true},
    {"read_ring", 2},
    {"cut_before_drain", 3627},
    {"cut_even_if_there", 508735},
    {"drain_at_open", 3},
    {"sync_at_open", 9},
    {"sync_what_was_read", 71},
    {"raise_epoch", 50},
    {"sync_epoch", 4},
    {"prepare_ring", 65},
};

class ProtocolRuleTest : public ::testing::TestWithParam<KnownFailure> {};

TEST_P(ProtocolRuleTest, IsNeeded) {
  const KnownFailure& known = GetParam();
  HistoryOptions options{.seed = known.seed,
                         .steps = known.recycling ? 600 : 200,
                         .rules = {},
                         .damage = known.damage,
                         .repair = known.repair,
                         .recycling = known.recycling};
  Counts counts;
  const auto with = RunHistory(options, &counts);
  EXPECT_FALSE(with.has_value()) << *with;
  bool found = false;
  for (const RuleSwitch& rule : AllRules()) {
    if (std::string_view(rule.name) != known.rule) continue;
    options.rules.*rule.member = false;
    found = true;
  }
  ASSERT_TRUE(found) << known.rule;
  std::vector<std::string> trace;
  const auto without = RunHistory(options, &counts, &trace);
  ASSERT_TRUE(without.has_value()) << "seed " << known.seed << " no longer fails";
  EXPECT_FALSE(trace.empty());
}

INSTANTIATE_TEST_SUITE_P(Rules, ProtocolRuleTest, ::testing::ValuesIn(kKnownFailures),
                         [](const auto& known) { return std::string(known.param.rule); });

TEST(ProtocolRulesTest, EveryRuleHasAKnownFailure) {
  for (const RuleSwitch& rule : AllRules()) {
    const bool known = std::any_of(
        std::begin(kKnownFailures), std::end(kKnownFailures),
        [&](const KnownFailure& failure) { return std::string_view(failure.rule) == rule.name; });
    EXPECT_TRUE(known) << rule.name;
  }
}

}  // namespace
}  // namespace geardb::wal::model
