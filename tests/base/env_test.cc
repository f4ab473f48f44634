// What Env offers on top of any file system.
#include "base/env.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string_view>

#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb {
namespace {

std::span<const std::byte> TextBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(EnvTest, AParentIsTheDirectoryThatAPathIsIn) {
  EXPECT_EQ(ParentOf("a/b"), "a");
  EXPECT_EQ(ParentOf("a/b/"), "a");
  EXPECT_EQ(ParentOf("/a/b/c"), "/a/b");
  EXPECT_EQ(ParentOf("b"), ".");
  EXPECT_EQ(ParentOf("b/"), ".");
  EXPECT_EQ(ParentOf("/b"), "/");
  EXPECT_EQ(ParentOf("/"), "/");
}

TEST(EnvTest, JoinPathPutsOneSlashBetween) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST(EnvTest, ReadSparseTakesHolesAndWhatLiesBeyondTheEndForZeros) {
  testing::FaultEnv env(1);
  std::vector<std::byte> content(20000);
  content[9000] = content[9001] = std::byte{5};
  env.Put("d/f", content);
  ASSERT_OK_AND_ASSIGN(auto file, env.OpenFile("d/f", {.mode = FileMode::kRead}));
  for (uint64_t offset :
       {uint64_t{0}, uint64_t{8999}, uint64_t{9001}, uint64_t{19990}, uint64_t{30000}}) {
    std::vector<std::byte> bytes(15000, std::byte{7});
    ASSERT_OK(ReadSparse(file.get(), offset, bytes));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const std::byte expected = offset + i < content.size() ? content[offset + i] : std::byte{0};
      ASSERT_EQ(bytes[i], expected) << offset << " + " << i;
    }
  }
}

TEST(EnvTest, AFileLongerThanExpectedIsCorruption) {
  testing::FaultEnv env(1);
  env.Put("d/f", TextBytes("12345"));
  EXPECT_STATUS(kCorruption, ReadWholeFile(&env, "d/f", 4), "d/f has 5 bytes, at most 4");
  ASSERT_OK_AND_ASSIGN(const auto bytes, ReadWholeFile(&env, "d/f", 5));
  EXPECT_EQ(bytes.size(), 5u);
}

TEST(EnvTest, AReplacedFileIsTheOldOrTheNewAfterACrashAtAnyOperation) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    testing::FaultEnv env(seed);
    env.Put("d/f", TextBytes("old"));
    env.SetCrashAfter(1 + seed % 8);
    const bool replaced = ReplaceFile(&env, "d/f", TextBytes("the new content")).ok();
    env.Crash(testing::CrashKind::kPowerLoss);
    ASSERT_OK_AND_ASSIGN(const auto bytes, ReadWholeFile(&env, "d/f", 100));
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (replaced) {
      EXPECT_EQ(text, "the new content");
    }
    seen.insert(text);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old", "the new content"}));
}

}  // namespace
}  // namespace geardb
