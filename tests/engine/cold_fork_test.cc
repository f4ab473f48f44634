// A child of a fork opens what its parent has closed, with the cold store that was open at the
// fork.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/engine/frames_fixture.h"
#include "tests/testing/sanitizers.h"

namespace geardb {
namespace {

class ColdForkTest : public FramesTest {
 protected:
  void SetUp() override {
    options_.log_bytes_max = 8 << 20;  // Eight segments.
    FramesTest::SetUp();
  }
  void WaitUntilAtRest() {
    for (;;) {
      const DatabaseStats stats = database_->Stats();
      if (!stats.cleaner.running && !stats.cold.compacting) return;
      std::this_thread::yield();
    }
  }
};

TEST_F(ColdForkTest, AChildOpensWhatItsParentHasClosed) {
  for (int i = 0; i < 300; ++i) Add(8, 8);
  // A child of a fork has the sanitizer's allocator as it was, locked where another thread was in
  // it.
  if constexpr (testing::kSanitized) WaitUntilAtRest();
  ASSERT_NE(testing::CoreOf(*database_)->cold->if_open(), nullptr);
  int closed[2];
  ASSERT_EQ(::pipe(closed), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::close(closed[1]);
    char byte;
    EXPECT_EQ(::read(closed[0], &byte, 1), 0);  // Until the parent closes its end.
    const auto again = Database::Open(dir_->path(), options_);
    EXPECT_OK(again);
    if (again.ok()) {
      const auto table = (*again)->OpenTable("frames");
      EXPECT_TRUE(table.ok() && (*table)->Count() == numbers_.size());
    }
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  writer_.reset();
  table_.reset();
  database_.reset();
  ::close(closed[1]);
  ::close(closed[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace geardb
