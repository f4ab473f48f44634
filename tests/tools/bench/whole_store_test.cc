#include "tools/bench/whole_store.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"
#include "tools/bench/usage.h"

namespace geardb::bench {
namespace {

TEST(WholeStoreTest, BudgetsAreWhatAStoreTakes) {
  const DatabaseOptions large = WholeOptions({.log_bytes = 4 * kGiB, .frames_bytes = kGiB});
  EXPECT_EQ(large.segment_bytes, 64 * kMiB);
  EXPECT_EQ(large.log_bytes_max, 4 * kGiB);
  EXPECT_EQ(large.budgets.frames_bytes, kGiB);
  const DatabaseOptions odd = WholeOptions({.log_bytes = 100 * kMiB});
  EXPECT_EQ(odd.segment_bytes, 4 * kMiB);
  EXPECT_EQ(odd.log_bytes_max, 100 * kMiB);
  const DatabaseOptions small = WholeOptions({});
  EXPECT_GE(small.log_bytes_max, 16 * small.segment_bytes);
  const testing::TempDir directory;
  for (const DatabaseOptions& options : {odd, small}) {
    Settings settings = {.directory = directory.path(), .tiny = true};
    ASSERT_OK_AND_ASSIGN(const auto store,
                         MakeStore(settings, options, PlainTable(kStepBytes, 1024)));
    EXPECT_EQ(store->table->steps_per_page() * kStepBytes, kPageBytes);
  }
}

TEST(WholeStoreTest, SizesFollowTheSettings) {
  EXPECT_EQ(Scaled({}, kGiB), kGiB);
  EXPECT_EQ(Scaled({.scale = 4}, kGiB), 256 * kMiB);
  EXPECT_EQ(Scaled({.tiny = true}, kGiB), 8 * kMiB);
  EXPECT_EQ(SizeText(2 * kGiB), "2 GiB");
  EXPECT_EQ(SizeText(kGiB / 2), "512 MiB");
}

TEST(WholeStoreTest, EpisodesDifferAndAreWhatIsStored) {
  Episodes random(16, kStepBytes, Content::kRandom);
  Episodes half(16, kStepBytes, Content::kHalf);
  EXPECT_EQ(random.bytes(), 16 * kStepBytes);
  for (uint64_t number = 0; number < 3000; ++number) {
    ASSERT_EQ(half.Rows(number).size(), half.bytes());
    ASSERT_NE(std::memcmp(half.Rows(number).data(), half.Rows(number + 1).data(), half.bytes()), 0);
  }
  const auto zeros = [](std::span<const std::byte> rows) {
    return std::count(rows.begin(), rows.end(), std::byte{0});
  };
  EXPECT_LT(zeros(random.Rows(7)), 200);
  EXPECT_GE(zeros(half.Rows(7)), 8 * 1024);
  EXPECT_LT(zeros(half.Rows(7)), 8 * 1024 + 200);

  const testing::TempDir directory;
  ASSERT_OK_AND_ASSIGN(const auto store, MakeStore({.directory = directory.path(), .tiny = true},
                                                   WholeOptions({}), PlainTable(kStepBytes, 1024)));
  ASSERT_OK(half.AppendBytes(store.get(), 5 * half.bytes() - 1));
  EXPECT_EQ(store->table->Stats().trajectories, 5u);
  EXPECT_EQ(store->table->Stats().steps, 5u * 16);
}

TEST(WholeStoreTest, DisksWithoutRoomAreNamed) {
  const testing::TempDir directory;
  const Settings settings = {.directory = directory.path()};
  EXPECT_OK(CheckDiskRoom(settings, 1));
  EXPECT_STATUS(kResourceExhausted, CheckDiskRoom(settings, uint64_t{1} << 60), "MiB of disk");
}

}  // namespace
}  // namespace geardb::bench
