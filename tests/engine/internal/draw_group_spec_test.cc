// What a schema may say of draw groups, and that it is kept.

#include <gtest/gtest.h>

#include "engine/internal/draw_groups.h"
#include "engine/internal/stored_schema.h"
#include "tests/engine/internal/draw_groups_fixture.h"

namespace geardb {
namespace {

class DrawGroupSpecTest : public testing::DrawGroupsFixture {
 protected:
  static Status Check(const GroupSpec& group, ItemKind item = ItemKind::kGroup) {
    PriorityTableSpec spec = GroupsSpec(group);
    spec.item = item;
    return ValidatePriorityTableSpec(TableOf(spec), spec);
  }
};

TEST_F(DrawGroupSpecTest, WhatCannotBeIsNamed) {
  EXPECT_OK(Check(Four()));
  EXPECT_OK(Check({.key = "prompt", .count = 1, .at_least = 1}));
  EXPECT_OK(Check({.key = "prompt", .count = kGroupCountMax, .at_least = 1, .deadline_ms = 1}));
  EXPECT_STATUS(kInvalidArgument, Check({.key = "prompt"}), "groups of 0 members");
  EXPECT_STATUS(kInvalidArgument, Check({.key = "prompt", .count = kGroupCountMax + 1}),
                "groups of 65537 members; expected 1 to 65536");
  EXPECT_STATUS(kInvalidArgument, Check({.key = "prompt", .count = 4, .at_least = 5}),
                "groups of 4 that need at least 5; expected 1 to 4");
  EXPECT_STATUS(kInvalidArgument, Check({.key = "prompt", .count = 4, .deadline_ms = 5}),
                "deadline_ms 5 that need all 4 members");
  EXPECT_STATUS(kInvalidArgument,
                Check({.key = "prompt", .count = 4, .at_least = 2, .deadline_ms = -1}),
                "deadline_ms -1");
  EXPECT_STATUS(kInvalidArgument, Check({.key = "level", .count = 4}),
                "groups by column 'level', which table 'steps' does not have");
  EXPECT_STATUS(kInvalidArgument, Check({.key = "score", .count = 4}),
                "'score', which is no per-trajectory scalar of integers");
  EXPECT_STATUS(kInvalidArgument, Check({.key = "action", .count = 4}),
                "'action', which is no per-trajectory scalar of integers");
  EXPECT_STATUS(kInvalidArgument, Check(Four(), ItemKind::kTrajectory),
                "draws no groups (item trajectory) and says how they are: of 4 by 'prompt'");
}

TEST_F(DrawGroupSpecTest, EveryIntegerIsAKey) {
  const auto key_of = [](DType dtype, auto value) {
    return engine::KeyOfBytes(dtype, std::as_bytes(std::span(&value, 1)));
  };
  EXPECT_EQ(key_of(DType::kU8, uint8_t{255}), 255);
  EXPECT_EQ(key_of(DType::kI8, int8_t{-1}), -1);
  EXPECT_EQ(key_of(DType::kU16, uint16_t{65535}), 65535);
  EXPECT_EQ(key_of(DType::kI16, int16_t{-300}), -300);
  EXPECT_EQ(key_of(DType::kU32, uint32_t{4294967295u}), 4294967295);
  EXPECT_EQ(key_of(DType::kI32, int32_t{-70000}), -70000);
  EXPECT_EQ(key_of(DType::kI64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(key_of(DType::kU64, UINT64_MAX), -1) << "the bits of it";
}

TEST_F(DrawGroupSpecTest, ASpecIsStored) {
  const PriorityTableSpec spec =
      GroupsSpec({.key = "prompt", .count = 4, .at_least = 2, .deadline_ms = 500});
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(engine::EncodePriorityTableSpec(&builder, spec));
  const auto* stored =
      flatbuffers::GetRoot<engine::fb::PriorityTableSpec>(builder.GetBufferPointer());
  ASSERT_OK_AND_ASSIGN(const PriorityTableSpec decoded, engine::DecodePriorityTableSpec(stored));
  EXPECT_EQ(decoded, spec);
  EXPECT_EQ(engine::DescribeItem(spec), "group of 4 by 'prompt', ready with 2 after 500 ms");
}

TEST_F(DrawGroupSpecTest, AnotherSpecDoesNotOpenTheTable) {
  Create(TableOf(GroupsSpec(Four())));
  EXPECT_OK(database_->OpenOrCreateTable(TableOf(GroupsSpec(Four()))));
  EXPECT_STATUS(kFailedPrecondition,
                database_->OpenOrCreateTable(TableOf(GroupsSpec({.key = "prompt", .count = 5}))),
                "item group of 4 by 'prompt', not group of 5 by 'prompt'");
}

TEST_F(DrawGroupSpecTest, TheKeyIsNotDropped) {
  TableSpec spec = TableOf(GroupsSpec(Four()));
  Create(spec);
  const std::string_view names[] = {"prompt"};
  EXPECT_STATUS(kFailedPrecondition, table_->DropColumns(names),
                "priority table 'groups' groups by column 'prompt'");
}

}  // namespace
}  // namespace geardb
