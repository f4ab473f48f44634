#include "engine/internal/table_create.h"

#include <string>
#include <vector>

#include "engine/internal/index_budget.h"
#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

class TableCreateTest : public FramesTest {
 protected:
  static TableSpec Late(const std::string& name, int64_t values = 1) {
    TableSpec spec{.name = name};
    spec.groups = {{.name = "late", .late = true}};
    spec.columns = {{.name = "x"}, {.name = "target", .shape = {values}, .group = "late"}};
    spec.steps_per_page = 4;
    return spec;
  }
};

TEST_F(TableCreateTest, PagesOfOthersAreDroppedForItsDefaults) {
  for (int i = 0; i < 400; ++i) Add(4, 4);
  ASSERT_OK(database_->Sync());
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(database_->CreateTable(Late("late" + std::to_string(i), 512)));
  }
  ExpectAll();
}

// The index budget was blamed for it.
TEST_F(TableCreateTest, WantOfFramesIsSaidToBeThat) {
  const auto core = testing::CoreOf(*database_);
  std::vector<FrameRef> taken;
  engine::FramePool* const pool = core->arena->NewPool(4096, "a test");
  while (const auto frame = core->arena->TryAllocate(pool)) taken.push_back(*frame);
  const Status refused = database_->CreateTable(Late("late")).status();
  EXPECT_STATUS(kResourceExhausted, refused, "the frame budget of ");
  EXPECT_FALSE(engine::IsOfIndexBudget(refused));
  for (const FrameRef frame : taken) core->arena->Free(pool, frame);
  core->arena->DropPool(pool);
  EXPECT_OK(database_->CreateTable(Late("late")));
}

TEST_F(TableCreateTest, ItIsThereForEachAfterwards) {
  ASSERT_OK_AND_ASSIGN(const auto made,
                       engine::CreateTable(testing::CoreOf(*database_).get(), Late("late")));
  EXPECT_EQ(made->layout().spec().name, "late");
  EXPECT_STATUS(kAlreadyExists, database_->CreateTable(Late("late")), "has a table 'late'");
  EXPECT_OK(database_->OpenTable("late"));
}

}  // namespace
}  // namespace geardb
