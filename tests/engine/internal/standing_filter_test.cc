#include "engine/internal/standing_filter.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/internal/stored_schema.h"
#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

TEST(StandingFilterTest, NotesWhomItFails) {
  const auto memory = index::TestMemory();
  ASSERT_OK_AND_ASSIGN(const auto filter, StandingFilter::Create(memory.get(), "one",
                                                                 {.slots = 4096, .leaves = 4096}));
  ASSERT_OK(filter->ReserveSlots(600));
  ASSERT_OK(filter->ReserveLeaves(600));
  EXPECT_TRUE(filter->Passes(3));  // There is none yet.
  std::set<Slot> model;
  for (Slot slot = 0; slot < 600; slot += 7) {
    EXPECT_TRUE(filter->NoteFails(slot, true));
    EXPECT_FALSE(filter->NoteFails(slot, true));
    model.insert(slot);
  }
  for (Slot slot = 0; slot < 600; slot += 14) {
    EXPECT_TRUE(filter->NoteFails(slot, false));
    EXPECT_FALSE(filter->NoteFails(slot, false));
    model.erase(slot);
  }
  for (Slot slot = 0; slot < 600; ++slot) EXPECT_EQ(filter->Fails(slot), model.contains(slot));
  filter->Add(5);
  filter->Add(9);
  filter->Forget({0, 6});
  EXPECT_FALSE(filter->IsFiltered(5));
  EXPECT_TRUE(filter->IsFiltered(9));
  EXPECT_EQ(filter->filtered().count(), 1u);
  EXPECT_GT(filter->committed_bytes(), 0u);
}

TEST(StandingFilterTest, AStoredOneComesBack) {
  PriorityTableSpec spec = testing::WindowSpec("one");
  spec.filter = "version > 3";
  spec.filter_action = FilterAction::kExpire;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(EncodePriorityTableSpec(&builder, spec));
  const auto* stored = flatbuffers::GetRoot<fb::PriorityTableSpec>(builder.GetBufferPointer());
  ASSERT_OK_AND_ASSIGN(const PriorityTableSpec back, DecodePriorityTableSpec(stored));
  EXPECT_EQ(back, spec);
  PriorityTableSpec into;
  EXPECT_STATUS(kUnsupported, DecodeFilter(nullptr, 2, &into), "newer GearDB");
}

}  // namespace
}  // namespace geardb::engine
