// Random programs of all public operations, against GearDB and against a plain model.
//
//   GEARDB_DIFFERENTIAL_SEEDS=1..1000    the programs of these seeds
//   GEARDB_DIFFERENTIAL_STEPS=400        of so many steps
//   GEARDB_DIFFERENTIAL_PROGRAM=file     the program in a file, as a difference prints it
//   GEARDB_DIFFERENTIAL_COUNTS=1         says what happened in them
#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "engine/schema.h"
#include "tests/differential/shrink.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb::differential {
namespace {

constexpr uint64_t kPrograms = 16;
constexpr uint64_t kSteps = 400;

struct Seeds {
  uint64_t first = 1;
  uint64_t last = 0;
};

/// "7" or "1..1000".
Seeds SeedsAsked() {
  const char* const text = std::getenv("GEARDB_DIFFERENTIAL_SEEDS");
  if (text == nullptr) return {1, testing::ShareOf(kPrograms)};
  const std::string_view asked(text);
  Seeds seeds;
  const auto first = std::from_chars(asked.data(), asked.data() + asked.size(), seeds.first);
  seeds.last = seeds.first;
  const size_t dots = asked.find("..");
  if (first.ec == std::errc() && dots != std::string_view::npos) {
    std::from_chars(asked.data() + dots + 2, asked.data() + asked.size(), seeds.last);
  }
  return seeds;
}

std::string Report(const Program& program, const Difference& difference) {
  return difference.text + "\nin step " + std::to_string(difference.step + 1) + " of\n" +
         ToText(program);
}

void Print(const RunCounts& counts) {
  for (const auto& [op, count] : counts.done) std::cout << NameOf(op) << " " << count << "\n";
  for (const auto& [op, count] : counts.refused) {
    std::cout << NameOf(op) << " refused " << count << "\n";
  }
  for (const auto& [name, count] : counts.drawn) {
    std::cout << "rows drawn by selector " << name << " " << count << "\n";
  }
  for (const auto& [name, count] : counts.shown) {
    std::cout << "rows of " << name << " " << count << "\n";
  }
  for (const auto& [name, count] : counts.removed) {
    std::cout << "removed: " << name << " " << count << "\n";
  }
  for (const auto& [name, count] : counts.crashes) {
    std::cout << "crashes " << name << " " << count << "\n";
  }
  std::cout << "rows compared " << counts.rows_compared << "\nframes dropped "
            << counts.frames_dropped << ", missed " << counts.frame_misses
            << "\npages read from the log " << counts.log_page_reads << ", cold "
            << counts.cold_page_reads << "\npasses of the cleaner " << counts.cleaner_passes
            << ", segments recycled " << counts.segments_recycled << ", opens from an image "
            << counts.images_opened << "\nrescales " << counts.rescales << std::endl;
}

/// The programs did not pass by what they are there for.
void ExpectEverythingHappened(const RunCounts& counts) {
  for (const OpRow& row : kOps) {
    const bool answers =
        row.op != Op::leave && row.op != Op::pass_time && row.op != Op::stop_sampling;
    const auto done = counts.done.find(row.op);
    EXPECT_TRUE(!answers || (done != counts.done.end() && done->second > 0)) << row.name;
  }
  EXPECT_EQ(counts.drawn.size(), static_cast<size_t>(kSelectorKindLast) + 1);
  for (const char* what :
       {"groups", "windows within", "token budgets", "beside values", "stacks", "padding in stacks",
        "n-step returns", "n-step returns of every row", "n-step returns up to an end",
        "bootstrap rows", "appends in memory", "synced appends", "batches of two tables",
        "columns set by batches", "batches of several lanes", "patched values"}) {
    EXPECT_TRUE(counts.shown.contains(what)) << what;
  }
  for (const char* reason : {"by hand", "capacity", "age", "exhausted", "filter",
                             "capacity in bytes", "trimmed for bytes"}) {
    EXPECT_TRUE(counts.removed.contains(reason)) << reason;
  }
  for (const char* crash : {"of the machine", "of the process", "that lost changes",
                            "before a change", "behind a change"}) {
    EXPECT_TRUE(counts.crashes.contains(crash)) << crash;
  }
  EXPECT_GT(counts.rows_compared, 10'000u);
  EXPECT_GT(counts.frames_dropped, 0u);
  EXPECT_GT(counts.frame_misses, 0u);
  EXPECT_GT(counts.log_page_reads, 0u);
  EXPECT_GT(counts.cold_page_reads, 0u);
  EXPECT_GT(counts.cleaner_passes, 0u);
  EXPECT_GT(counts.segments_recycled, 0u);
  EXPECT_GT(counts.images_opened, 0u);
}

TEST(DifferentialTest, EveryProgramIsWhatThePlainModelSays) {
  const Seeds seeds = SeedsAsked();
  const uint64_t steps = testing::FromEnvironment("GEARDB_DIFFERENTIAL_STEPS", kSteps);
  RunCounts counts;
  for (uint64_t seed = seeds.first; seed <= seeds.last && !HasFailure(); ++seed) {
    const Program program = RandomProgram(seed, steps);
    const RunResult result = RunProgram(program);
    counts.Add(result.counts);
    if (!result.difference) continue;
    std::cout << "seed " << seed << ", step " << result.difference->step + 1 << ": "
              << result.difference->text << "\nshrinking…" << std::endl;
    const Shrunk shrunk =
        Shrink(program, [](const Program& tried) { return RunProgram(tried).difference; });
    ADD_FAILURE() << "seed " << seed << " (" << shrunk.runs
                  << " runs to shrink it): " << Report(shrunk.program, shrunk.difference);
  }
  if (std::getenv("GEARDB_DIFFERENTIAL_COUNTS") != nullptr) Print(counts);
  const bool all = std::getenv("GEARDB_DIFFERENTIAL_SEEDS") == nullptr && steps == kSteps;
  if (all && seeds.last == kPrograms && !HasFailure()) ExpectEverythingHappened(counts);
}

// Each found something once.
TEST(DifferentialTest, ProgramsThatDifferedAreWhatThePlainModelSays) {
  for (const char* text : {
           // The removal of what a filter expires is lost in a crash: the open says why it goes.
           "create_table 268587692323\nset_filter 0 114\nappend_trajectory 0 62\n"
           "crash_within 0 1\nappend_steps\n",
       }) {
    const auto program = ParseProgram(text);
    ASSERT_OK(program);
    const RunResult result = RunProgram(*program);
    if (result.difference) FAIL() << Report(*program, *result.difference);
  }
}

TEST(DifferentialTest, AProgramInAFileIsWhatThePlainModelSays) {
  const char* const path = std::getenv("GEARDB_DIFFERENTIAL_PROGRAM");
  if (path == nullptr) GTEST_SKIP() << "GEARDB_DIFFERENTIAL_PROGRAM names no file";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  const auto program = ParseProgram(text.str());
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const RunResult result = RunProgram(*program);
  if (result.difference) FAIL() << Report(*program, *result.difference);
}

}  // namespace
}  // namespace geardb::differential
