#include "engine/internal/stored_schema.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

/// The spec as a reader of the log has it.
Result<TableSpec> Again(const TableSpec& spec) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(EncodeTableSpec(&builder, spec));
  return DecodeTableSpec(flatbuffers::GetRoot<fb::TableSpec>(builder.GetBufferPointer()));
}
Result<PriorityTableSpec> Again(const PriorityTableSpec& spec) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(EncodePriorityTableSpec(&builder, spec));
  return DecodePriorityTableSpec(
      flatbuffers::GetRoot<fb::PriorityTableSpec>(builder.GetBufferPointer()));
}

TEST(StoredSchemaTest, EveryFieldOfATableComesBack) {
  TableSpec spec = testing::StepSpec(/*final_row=*/true);
  ASSERT_OK_AND_ASSIGN(const TableSpec plain, Again(spec));
  EXPECT_EQ(plain, spec);
  spec.groups = {{.name = "late", .late = true}, {.name = "cache", .is_volatile = true}};
  spec.columns.push_back({.name = "target", .shape = {2, 3}, .group = "late"});
  spec.columns.push_back({.name = "seen", .group = "cache", .default_value = -1.5});
  spec.stream = true;
  spec.steps_per_page = 8;
  spec.expected_steps = 77;
  spec.trajectories_max = 5;
  spec.steps_max = uint64_t{1} << 40;
  spec.bytes_max = 7;
  spec.ttl_ms = 11;
  spec.orphan_timeout_ms = 13;
  spec.remover_seed = UINT64_MAX;
  spec.remover_priority_table = "per";
  for (int remover = 0; remover <= static_cast<int>(kRemoverLast); ++remover) {
    spec.remover = static_cast<Remover>(remover);
    ASSERT_OK_AND_ASSIGN(const TableSpec read, Again(spec));
    EXPECT_EQ(read, spec);
  }
  spec.remover = static_cast<Remover>(static_cast<int>(kRemoverLast) + 1);
  EXPECT_STATUS(kUnsupported, Again(spec), "written by a newer GearDB: table 'steps' has remover");
  spec.remover = Remover::kMinHeap;
  spec.remover_priority_table = std::string(300, 'x');
  EXPECT_STATUS(kCorruption, Again(spec), "more than 256 characters");
}

// FlatBuffers leaves out what equals the default of a field, and -0.0 equals 0.0.
TEST(StoredSchemaTest, ANegativeZeroComesBack) {
  TableSpec spec = testing::StepSpec();
  spec.columns.push_back({.name = "gain", .default_value = -0.0});
  spec.columns.push_back({.name = "loss", .default_value = 0.0});
  ASSERT_OK_AND_ASSIGN(const TableSpec read, Again(spec));
  EXPECT_EQ(read, spec);
  const size_t last = spec.columns.size() - 1;
  EXPECT_TRUE(std::signbit(read.columns[last - 1].default_value));
  EXPECT_FALSE(std::signbit(read.columns[last].default_value));
}

TEST(StoredSchemaTest, EveryFieldOfAPriorityTableComesBack) {
  PriorityTableSpec spec = testing::WindowSpec("per", {.before = 1, .length = 2, .after = 3});
  spec.item = ItemKind::kTrajectory;
  spec.window.stride = 4;
  spec.window.stride_from_end = true;
  spec.window.left = EdgeRule::kPad;
  spec.window.right = EdgeRule::kShift;
  spec.window.cross_ends = true;
  spec.alpha = 0.25;
  spec.initial = InitialPriority::kColumn;
  spec.initial_priority_value = 0.5f;
  spec.initial_priority_column = "score";
  spec.required = {"late", "version"};
  spec.limiter = {.kind = LimiterKind::kRatio, .min_size = 9, .error_buffer = 3};
  spec.max_times_sampled = 4;
  spec.remove_when_exhausted = true;
  spec.epoch = {.passes = 6, .remove_covered = true};
  for (int selector = 0; selector <= static_cast<int>(kSelectorKindLast); ++selector) {
    spec.selector = static_cast<SelectorKind>(selector);
    ASSERT_OK_AND_ASSIGN(const PriorityTableSpec read, Again(spec));
    EXPECT_EQ(read, spec);
  }
}

// The next open refused the whole database.
TEST(StoredSchemaTest, WhatNoOpenWouldReadIsRefused) {
  PriorityTableSpec priority{.name = "per"};
  EXPECT_OK(CheckStorable(priority));
  priority.initial_priority_column = std::string(300, 'c');  // Unused.
  EXPECT_STATUS(kInvalidArgument, CheckStorable(priority), "priority table 'per' cannot be stored");
  EXPECT_OK(Again(priority)) << "there are stores that have it";
  TableSpec table{.name = "steps", .columns = {{.name = "x"}}};
  EXPECT_OK(CheckStorable(table));
  table.remover_priority_table = std::string(300, 'r');
  EXPECT_STATUS(kInvalidArgument, CheckStorable(table), "table 'steps' cannot be stored");
}

TEST(StoredSchemaTest, WhatIsMissingIsCorruption) {
  EXPECT_STATUS(kCorruption, DecodeTableSpec(nullptr), "without its name");
  EXPECT_STATUS(kCorruption, DecodePriorityTableSpec(nullptr), "without its name");
}

}  // namespace
}  // namespace geardb::engine
