#include "engine/internal/activity.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "base/hash.h"
#include "engine/internal/activity_file.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

class ActivityTest : public ::testing::Test {
 protected:
  std::unique_ptr<ActivityKeeper> Keeper(uint64_t seed = 5) const {
    return std::make_unique<ActivityKeeper>(
        ActivityKeeper::Place{.env = std::shared_ptr<Env>(std::shared_ptr<Env>(), Env::Posix()),
                              .directory = dir_.path(),
                              .seed = seed,
                              .clock = Clock::System()});
  }
  /// An opening that has done what `done_` says.
  std::unique_ptr<ActivityKeeper> Opened(uint32_t number) {
    auto keeper = Keeper();
    keeper->Begin({.number = number, .collect = [this] { return done_; }});
    return keeper;
  }
  std::string path() const { return dir_.File("COUNTERS"); }

  testing::TempDir dir_;
  ActivityCounters done_;
};

TEST_F(ActivityTest, NothingIsKnownWhereNobodyWrote) {
  const DatabaseActivity activity = Keeper()->activity();
  EXPECT_FALSE(activity.known);
  EXPECT_NE(activity.note.find("COUNTERS"), std::string::npos) << activity.note;
  EXPECT_EQ(activity.total, ActivityCounters());
}

TEST_F(ActivityTest, WhatAnOpeningDidIsAddedToAllBefore) {
  uint64_t total = 0;
  for (uint32_t opening = 1; opening <= 5; ++opening) {
    const auto keeper = Opened(opening);
    done_.frames_dropped = 10 * opening;
    ASSERT_OK(keeper->Write());
    done_.frames_dropped = 10 * opening + 1;
    ASSERT_OK(keeper->Write());
    total += done_.frames_dropped;
    const DatabaseActivity found = Keeper()->activity();
    EXPECT_TRUE(found.known);
    EXPECT_EQ(found.opening, opening);
    EXPECT_EQ(found.since, 1u);
    EXPECT_EQ(found.last, done_);
    EXPECT_EQ(found.total.frames_dropped, total);
    EXPECT_LE(found.opened_us, found.written_us);
  }
}

TEST_F(ActivityTest, NothingIsWrittenWhereNothingHasChanged) {
  const auto keeper = Opened(1);
  ASSERT_OK(keeper->Write());
  std::filesystem::remove(path());
  ASSERT_OK(keeper->Write());
  EXPECT_FALSE(std::filesystem::exists(path()));
  ++done_.log_records;
  ASSERT_OK(keeper->Write());
  EXPECT_TRUE(std::filesystem::exists(path()));
  EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
}

TEST_F(ActivityTest, TablesThatAreCountedAgainAndAreAsBeforeAreNotWritten) {
  const auto keeper = Keeper();
  uint64_t counts = 0;
  uint64_t steps = 8;
  keeper->Begin({.number = 1,
                 .collect = [this] { return done_; },
                 .tables =
                     [&] {
                       ++counts;
                       return std::vector<TableActivity>{{.id = 1, .name = "t", .steps = steps}};
                     }});
  ASSERT_OK(keeper->Write());
  EXPECT_GT(Keeper()->activity().tables.seen_us, 0);
  std::filesystem::remove(path());
  for (const uint64_t before = counts; counts < before + 3;) ASSERT_OK(keeper->Write());
  EXPECT_FALSE(std::filesystem::exists(path()));
  ++steps;
  for (const uint64_t before = counts; counts < before + 1;) ASSERT_OK(keeper->Write());
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(ActivityTest, TablesAreCountedAgainOnceThatTakesLittleOfTheTime) {
  const auto keeper = Keeper();
  int counts = 0;
  keeper->Begin({.number = 1,
                 .collect = [this] { return done_; },
                 .tables =
                     [&] {
                       ++counts;
                       // A count that takes long: the next waits for 50 times as much.
                       const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
                       while (counts == 2 && std::chrono::steady_clock::now() < end) {
                       }
                       return std::vector<TableActivity>{{.id = 1, .name = "t", .steps = 8}};
                     }});
  EXPECT_EQ(keeper->activity().tables.seen_us, 0);
  ASSERT_OK(keeper->Write());
  EXPECT_EQ(counts, 1);
  const DatabaseActivity found = Keeper()->activity();
  ASSERT_EQ(found.tables.tables.size(), 1u);
  EXPECT_EQ(found.tables.tables[0].steps, 8u);
  EXPECT_GT(found.tables.seen_us, 0);
  while (counts < 2) ASSERT_OK(keeper->Write());
  ASSERT_OK(keeper->Write());
  EXPECT_EQ(counts, 2);
}

TEST_F(ActivityTest, HowThingsStandIsWrittenToo) {
  DatabaseStats now;
  const auto keeper = Keeper();
  keeper->Begin(
      {.number = 1, .collect = [this] { return done_; }, .stats = [&now] { return now; }});
  now.log_published = 70;
  now.log_synced = 50;
  now.image_lsn = 20;
  now.cold.disk_bytes = 9;
  now.cold.reserve_bytes = 8;
  now.cold_memory = {.limit_bytes = 5, .used_bytes = 4};
  ASSERT_OK(keeper->Write());
  const DatabaseActivity found = ReadActivity(Env::Posix(), dir_.path(), 5);
  EXPECT_TRUE(found.known) << found.note;
  EXPECT_EQ(found.stats.log_lag_bytes(), 20u);
  EXPECT_EQ(found.stats.cleaner_lag_bytes(), 50u);
  EXPECT_EQ(found.stats.cold.disk_bytes, 9u);
  EXPECT_EQ(found.stats.cold.reserve_bytes, 8u);
  EXPECT_EQ(found.stats.cold_memory.limit_bytes, 5u);
  EXPECT_EQ(found.stats.cold_memory.used_bytes, 4u);
  now.log_synced = 70;
  ASSERT_OK(keeper->Write());
  EXPECT_EQ(ReadActivity(Env::Posix(), dir_.path(), 5).stats.log_lag_bytes(), 0u);
}

TEST_F(ActivityTest, AFileWithoutLevelsIsRead) {
  done_.log_records = 7;
  DatabaseActivity written{.known = true, .opening = 3, .since = 1, .last = done_, .total = done_};
  std::vector<std::byte> bytes = EncodeActivity(written, 5);
  constexpr size_t kEnd = 48 + 2 * sizeof(ActivityCounters);
  constexpr uint32_t kVersion = 1, kLength = kEnd + 8;
  std::memcpy(bytes.data() + 8, &kVersion, sizeof(kVersion));
  std::memcpy(bytes.data() + 12, &kLength, sizeof(kLength));
  const uint64_t checksum = Hash64(std::span(bytes).first(kEnd), 5);
  std::memcpy(bytes.data() + kEnd, &checksum, sizeof(checksum));
  bytes.resize(kLength);
  ASSERT_OK_AND_ASSIGN(const DatabaseActivity found, DecodeActivity(bytes, 5));
  EXPECT_EQ(found.opening, 3u);
  EXPECT_EQ(found.last, done_);
  EXPECT_EQ(found.stats.frames.limit_bytes, 0u);
}

TEST_F(ActivityTest, ADamagedFileIsUnknownAndCountingBeginsAnew) {
  done_.log_records = 7;
  ASSERT_OK(Opened(4)->Write());
  const std::string bytes = testing::ReadBytes(path());
  std::string damaged = bytes;
  damaged[100] ^= 1;
  for (const std::string& wrong :
       {damaged, std::string(), bytes.substr(0, 60), std::string(100'000, 'x')}) {
    testing::WriteBytes(path(), wrong);
    EXPECT_FALSE(Keeper()->activity().known);
    EXPECT_NE(Keeper()->activity().note.find("COUNTERS"), std::string::npos);
  }
  ASSERT_OK(Opened(5)->Write());
  const DatabaseActivity found = Keeper()->activity();
  EXPECT_EQ(found.since, 5u);
  EXPECT_EQ(found.total.log_records, 7u);
  // Of another database.
  EXPECT_FALSE(Keeper(6)->activity().known);
}

TEST_F(ActivityTest, WhatCannotBeWrittenIsAnErrorAndTriedAgain) {
  std::filesystem::create_directory(path() + ".new");
  const auto keeper = Opened(1);
  EXPECT_FALSE(keeper->Write().ok());
  std::filesystem::remove(path() + ".new");
  ASSERT_OK(keeper->Write());
  EXPECT_TRUE(Keeper()->activity().known);
}

}  // namespace
}  // namespace geardb::engine
