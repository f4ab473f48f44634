#include "base/forwarding_env.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

/// Refuses to remove anything.
class KeepingEnv final : public ForwardingEnv {
 public:
  Status Remove(const std::string& path) override { return Status::IoError("kept: ", path); }
};

TEST(ForwardingEnvTest, DoesWithTheSystemsFilesWhatIsNotOverridden) {
  const testing::TempDir dir;
  KeepingEnv env;
  ASSERT_OK(env.CreateDirectory(dir.File("in")));
  const std::string path = dir.File("in/a");
  {
    ASSERT_OK_AND_ASSIGN(const auto file, env.OpenFile(path, {.mode = FileMode::kCreate}));
    ASSERT_OK_AND_ASSIGN(const auto lock, env.Lock(dir.File("in/lock"), LockMode::kExclusive));
  }
  ASSERT_OK(env.Rename(path, dir.File("in/b")));
  ASSERT_OK(env.SyncDirectory(dir.File("in")));
  EXPECT_EQ(*Env::Posix()->Exists(path), false);
  EXPECT_EQ(*env.Exists(dir.File("in/b")), true);
  ASSERT_OK_AND_ASSIGN(const auto names, env.List(dir.File("in")));
  EXPECT_EQ(names.size(), 2u);
  EXPECT_STATUS(kIoError, env.Remove(dir.File("in/b")), "kept: ");
  EXPECT_EQ(*env.Exists(dir.File("in/b")), true);
}

}  // namespace
}  // namespace geardb
