// What leaves a full table, and that the table then holds what its capacity says.
#include <gtest/gtest.h>

#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

using testing::TempDir;

// One append that takes the place of several pages of one open trajectory.
TEST(EvictionTest, PagesTrimmedTogetherAreCountedOnce) {
  TempDir dir;
  DatabaseOptions options;
  options.budgets.frames_bytes = 64 << 20;
  options.budgets.index_bytes = 64 << 20;
  auto db = Database::Open(dir.path(), options);
  ASSERT_OK(db);
  TableSpec spec;
  spec.name = "stream";
  spec.columns = {{.name = "value", .dtype = DType::kI64}};
  spec.stream = true;
  spec.steps_per_page = 4;
  spec.steps_max = 64;
  auto table = (*db)->CreateTable(spec);
  ASSERT_OK(table);
  auto writer = (*table)->NewWriter({});
  ASSERT_OK(writer);
  const std::vector<int64_t> rows(20);
  for (int call = 0; call < 50; ++call) {
    auto appended = (*writer)->AppendSteps({{"value", TensorView::Of(std::span(rows))}});
    ASSERT_OK(appended);
    ASSERT_LE((*table)->StepCount(), 64u) << "after call " << call;
    ASSERT_GT((*table)->StepCount(), call > 3 ? 64u - 8 : 0u) << "after call " << call;
  }
}

}  // namespace
}  // namespace geardb
