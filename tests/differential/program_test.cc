#include "tests/differential/program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "tests/testing/matchers.h"

namespace geardb::differential {
namespace {

TEST(DifferentialProgramTest, ItsTextIsTheProgram) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Program program = RandomProgram(seed, 100);
    ASSERT_EQ(program.size(), 100u);
    ASSERT_OK_AND_ASSIGN(const Program back, ParseProgram(ToText(program)));
    EXPECT_EQ(back, program);
    EXPECT_EQ(RandomProgram(seed, 100), program);
    EXPECT_NE(RandomProgram(seed + 1, 100), program);
  }
  EXPECT_EQ(ToText({{Op::cut, {1, 0, 7, 0}}, {Op::reopen, {}}}), "cut 1 0 7\nreopen\n");
  EXPECT_EQ(ToText({}), "");
}

TEST(DifferentialProgramTest, WhatIsNoProgramIsRefusedByLine) {
  ASSERT_OK_AND_ASSIGN(const Program program, ParseProgram("\n  cut 1 # a lane\n\r\nreopen"));
  EXPECT_EQ(program, (Program{{Op::cut, {1}}, {Op::reopen, {}}}));
  EXPECT_STATUS(kInvalidArgument, ParseProgram("reopen\ncuts 1"), "line 2: no operation");
  EXPECT_STATUS(kInvalidArgument, ParseProgram("cut x"), "line 1: 'x' is no number");
  EXPECT_STATUS(kInvalidArgument, ParseProgram("cut 1 2 3 4 5"), "more than four");
  EXPECT_STATUS(kInvalidArgument, ParseProgram("cut 99999999999999999999"), "is no number");
}

TEST(DifferentialProgramTest, EveryOperationComesInRandomPrograms) {
  std::map<Op, uint64_t> counts;
  for (const Step& step : RandomProgram(3, 10'000)) ++counts[step.op];
  for (const OpRow& row : kOps) EXPECT_GT(counts[row.op], 20u) << row.name;
}

TEST(DifferentialProgramTest, ZeroTakesTheFirstChoices) {
  Choices zero(0);
  EXPECT_EQ(zero.Below(7), 0u);
  EXPECT_FALSE(zero.OneIn(2));
  Choices some(5 + 7 * 3);
  EXPECT_EQ(some.Below(7), 5u);
  EXPECT_EQ(some.rest(), 3u);
}

// What of the public headers a program calls, and in which step. A method that is added to a class
// below is missing here until a step calls it, or a reason says why none does.

struct Covered {
  const char* method;
  const char* steps;  ///< Names of operations; or a reason in parentheses.
};
constexpr Covered kCovered[] = {
    {"Database::Open", "reopen crash lose_power crash_within look"},
    {"Database::CreateTable", "create_table"},
    {"Database::OpenTable", "reopen drop_table"},
    {"Database::OpenOrCreateTable", "create_table open_table"},
    {"Database::Tables", "reopen"},
    {"Database::DropTable", "drop_table"},
    {"Database::NewSampler", "sample_mixed"},
    {"Database::Write", "write_batch"},
    {"Database::WriteTag", "tag"},
    {"Database::LastTag", "tag compare"},
    {"Database::Tags", "tag compare"},
    {"Database::Wait", "wait"},
    {"Database::Sync", "wait drop_frames"},
    {"Database::Close", "reopen look"},
    {"Database::directory", "(a name that was given)"},
    {"Database::recovery", "reopen crash"},
    {"Database::Stats", "wait"},
    {"Database::Activity", "(counters of work done, which no model knows)"},
    {"Database::ActivityOf", "(the same)"},
    {"Table::spec", "open_table compare"},
    {"Table::id", "open_table"},
    {"Table::steps_per_page", "(TableKind says it)"},
    {"Table::NewWriter", "append"},
    {"Table::Remove", "remove remove_range remove_passing"},
    {"Table::Truncate", "truncate"},
    {"Table::SetColumns", "set_columns"},
    {"Table::Patch", "patch"},
    {"Table::Filled", "compare"},
    {"Table::AddColumns", "add_columns"},
    {"Table::DropColumns", "drop_columns"},
    {"Table::CloseOrphans", "close_orphans"},
    {"Table::RemoveExpired", "remove_expired"},
    {"Table::PriorityTables", "compare open_table"},
    {"Table::OpenPriorityTable", "open_table"},
    {"Table::priority_table", "compare"},
    {"Table::CreatePriorityTable", "create_priority_table"},
    {"Table::Count", "compare scan"},
    {"Table::StepCount", "compare"},
    {"Table::Find", "compare"},
    {"Table::Scan", "compare scan"},
    {"Table::Check", "scan remove_passing"},
    {"Table::Statistics", "statistics"},
    {"Table::Histogram", "statistics"},
    {"Table::Read", "compare"},
    {"Table::Gather", "gather"},
    {"Table::ReadRemovals", "compare"},
    {"Table::Stats", "compare"},
    {"Table::Places", "compare"},
    {"Writer::Append", "append"},
    {"Writer::AppendSteps", "append_steps"},
    {"Writer::AppendTrajectory", "append_trajectory"},
    {"Writer::AppendLanes", "append_lanes"},
    {"Writer::Cut", "cut"},
    {"Writer::Resume", "resume"},
    {"Writer::Detach", "detach"},
    {"Writer::open_trajectory", "append append_lanes"},
    {"WriteBatch::Append", "append"},
    {"WriteBatch::AppendSteps", "write_batch append_steps"},
    {"WriteBatch::AppendTrajectory", "append_trajectory"},
    {"WriteBatch::AppendLanes", "append_lanes"},
    {"WriteBatch::Set", "write_batch"},
    {"WriteBatch::Delete", "write_batch"},
    {"WriteBatch::Remove", "write_batch"},
    {"WriteBatch::SetColumns", "write_batch"},
    {"WriteBatch::WriteTag", "write_batch"},
    {"WriteBatch::size", "(no state of a store)"},
    {"WriteBatch::Clear", "(no state of a store)"},
    {"PriorityTable::spec", "(of the handle)"},
    {"PriorityTable::Set", "set_rows set_handles"},
    {"PriorityTable::SetAll", "set_all"},
    {"PriorityTable::Delete", "delete_rows delete_handles"},
    {"PriorityTable::Patch", "patch_items"},
    {"PriorityTable::BeginEpoch", "begin_epoch"},
    {"PriorityTable::Count", "compare"},
    {"PriorityTable::DrawableCount", "compare"},
    {"PriorityTable::Items", "compare"},
    {"PriorityTable::Priority", "compare"},
    {"PriorityTable::Probability", "compare"},
    {"PriorityTable::MaxPriority", "compare"},
    {"PriorityTable::NewSampler", "sample"},
    {"PriorityTable::Configure", "configure"},
    {"PriorityTable::SetFilter", "set_filter"},
    {"PriorityTable::SealGroup", "seal_group"},
    {"PriorityTable::SealOverdueGroups", "seal_overdue"},
    {"PriorityTable::WhyBlocked", "compare"},
    {"PriorityTable::Stats", "compare"},
    {"Sampler::Next", "next"},
    {"Sampler::set_beta", "set_beta"},
    {"Sampler::options", "(what was given)"},
    {"Sampler::OfParts", "(private: Database::NewSampler)"},
    {"Batch::size", "next"},
    {"Batch::handles", "next set_handles delete_handles patch_items"},
    {"Batch::trajectory_ids", "next"},
    {"Batch::anchors", "next"},
    {"Batch::lengths", "next"},
    {"Batch::trajectory_lengths", "next"},
    {"Batch::trajectory_ends", "next"},
    {"Batch::times_sampled", "next"},
    {"Batch::probabilities", "next"},
    {"Batch::weights", "next"},
    {"Batch::sources", "next"},
    {"Batch::lsn", "(the model has no log)"},
    {"Batch::draw_number", "next"},
    {"Batch::Find", "next"},
    {"Batch::ViewLengths", "next"},
    {"Batch::CuSeqlens", "(sums of ViewLengths; tests/conformance compares them)"},
    {"Batch::OutputNames", "(tests/engine/batch_test.cc)"},
    {"Batch::Offsets", "next"},
    {"Batch::group_count", "next"},
    {"Batch::groups", "next"},
    {"Batch::group_offsets", "next"},
    {"Batch::group_keys", "next"},
    {"Batch::Release", "next"},
};

/// "Class::Method" of every method that a public header declares.
std::set<std::string> PublicMethods() {
  const std::regex method(R"(^  (?:static )?(?:[A-Za-z0-9_:<>*&, ]+ )?[&*]?(\w+)\(.*)");
  std::set<std::string> found;
  const std::filesystem::path folder =
      std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "engine";
  for (const char* name : {"database.h", "table.h", "writer.h", "write_batch.h", "priority_table.h",
                           "sampler.h", "batch.h"}) {
    std::ifstream file(std::filesystem::exists(folder / name)
                           ? folder / name
                           : std::filesystem::path("engine") / name);
    EXPECT_TRUE(file) << name;
    std::string class_name;
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (std::regex_match(line, match, std::regex(R"(^class (\w+) \{.*)"))) class_name = match[1];
      if (line == "};") class_name.clear();
      if (class_name.empty() || !std::regex_match(line, match, method)) continue;
      const std::string called = match[1];
      if (called != class_name && called != "defined") found.insert(class_name + "::" + called);
    }
  }
  return found;
}

TEST(DifferentialProgramTest, EveryPublicMethodIsCalledOrSaysWhyNot) {
  std::set<std::string> listed, names;
  for (const OpRow& row : kOps) names.insert(std::string(row.name));
  for (const Covered& covered : kCovered) {
    listed.insert(covered.method);
    if (covered.steps[0] == '(') continue;
    std::istringstream steps(covered.steps);
    for (std::string step; steps >> step;) {
      EXPECT_TRUE(names.contains(step)) << covered.method << ": no operation is called " << step;
    }
  }
  const std::set<std::string> methods = PublicMethods();
  EXPECT_GT(methods.size(), 80u);
  for (const std::string& method : methods) {
    EXPECT_TRUE(listed.contains(method)) << method << " is in no step (kCovered)";
  }
  for (const std::string& method : listed) {
    EXPECT_TRUE(methods.contains(method)) << method << " is no public method any more";
  }
}

}  // namespace
}  // namespace geardb::differential
