// What CreateTable accepts has room.
#include "engine/internal/table_fits.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::StoreTest;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class TableFitsTest : public StoreTest {
 protected:
  static TableSpec Spec(const std::string& name, int64_t row_bytes) {
    TableSpec spec;
    spec.name = name;
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {row_bytes}}};
    spec.steps_per_page = 1;
    return spec;
  }
};

// Whatever bounds the table has, or none.
TEST_F(TableFitsTest, APageLargerThanTheFrameBudgetIsRefused) {
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  for (const uint64_t frames_mib : {2, 4, 6}) {
    SCOPED_TRACE(frames_mib);
    options_.budgets.frames_bytes = frames_mib * kMiB;
    OpenEmpty();
    TableSpec spec = Spec("page", 5 * kMiB);
    const auto check = [&] {
      const Status status = database_->CreateTable(spec).status();
      if (frames_mib == 6) {
        EXPECT_OK(status);
      } else {
        EXPECT_STATUS(kInvalidArgument, status, "a page of 1 steps takes 5242880 bytes");
        EXPECT_TRUE(database_->Tables().empty());
      }
    };
    check();
    spec.name = "bounded";
    spec.trajectories_max = 1;
    check();
  }
}

}  // namespace
}  // namespace geardb
