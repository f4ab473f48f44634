#include "engine/internal/ready_items.h"

#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class ReadyItemsTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    Open();
    TableSpec spec = testing::StepSpec();
    for (const char* name : {"plain", "constant", "column"}) {
      spec.priority_tables.push_back(testing::WindowSpec(name));
      spec.priority_tables.back().required = {"version"};
    }
    spec.priority_tables[0].required.clear();
    spec.priority_tables[1].initial = InitialPriority::kConstant;
    spec.priority_tables[1].initial_priority_value = 7;
    spec.priority_tables[2].initial = InitialPriority::kColumn;
    spec.priority_tables[2].initial_priority_column = "score";
    Create(spec);
    AppendClosed(0, 1);
    AppendClosed(1, 1);
    core_ = testing::CoreOf(*database_);
  }
  void TearDown() override {
    core_.reset();
    Close();
  }
  std::shared_ptr<DatabaseCore> core_;
};

TEST_F(ReadyItemsTest, OnlyPriorityTablesThatWaitAreNamed) {
  const float score = 4;
  const ColumnValue column{"score", TensorView::Scalar(score)};
  ASSERT_OK(table_->SetColumns(2, {&column, 1}));
  const auto table = core_->FindTable("steps");
  flatbuffers::FlatBufferBuilder builder;
  const Slot slots[] = {0, 1};
  MutexLock commit(&core_->commit);
  MutexLock lock(&table->state->mutex);
  const auto built = BuildReadyItems(*table, slots, {}, &builder);
  ASSERT_EQ(built.size(), 2u);
  const uint32_t before = builder.GetSize();
  EXPECT_LE(before, ReadyItemsBytes(*table, 2));
  builder.Finish(fb::CreateSetColumns(builder, 0, 0, builder.CreateVector(built)));
  const auto& items = *flatbuffers::GetRoot<fb::SetColumns>(builder.GetBufferPointer())->items();
  EXPECT_EQ(items.Get(0)->priority_table(), 1u);
  EXPECT_EQ(items.Get(0)->value(), 7);
  EXPECT_EQ(items.Get(1)->priority_table(), 2u);
  ASSERT_TRUE(items.Get(1)->per_rows());
  EXPECT_EQ(items.Get(1)->values()->Get(0), 0);
  EXPECT_EQ(items.Get(1)->values()->Get(1), 4);
}

TEST_F(ReadyItemsTest, WhatTheRecordSetsCountsAlready) {
  const auto table = core_->FindTable("steps");
  flatbuffers::FlatBufferBuilder builder;
  const float score = 6;
  const ColumnGiven given{*table->layout().FindTrajectoryColumn("score"), &score};
  const Slot slot = 0;
  MutexLock commit(&core_->commit);
  MutexLock lock(&table->state->mutex);
  const auto built = BuildReadyItems(*table, {&slot, 1}, {&given, 1}, &builder);
  builder.Finish(fb::CreateSetColumns(builder, 0, 0, builder.CreateVector(built)));
  const auto& items = *flatbuffers::GetRoot<fb::SetColumns>(builder.GetBufferPointer())->items();
  EXPECT_EQ(items.Get(1)->values()->Get(0), 6);
}

}  // namespace
}  // namespace geardb::engine
