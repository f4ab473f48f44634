// What is removed from a table leaves the cold store and the disk: beside appends and without them,
// and where the disk is full.
#include <thread>

#include "tests/engine/internal/cleaner_fixture.h"
#include "tests/testing/hand_clock.h"

namespace geardb {
namespace {

using CleanerRemovalsTest = CleanerStoreTest;

TEST_F(CleanerRemovalsTest, WhatIsRemovedFromAFullDiskMakesRoom) {
  const auto files = UseFaultFiles();
  files->DeletesMakeSpace();
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  ASSERT_GT(BytesIn("cold"), 6u << 20);
  for (const bool every_one : {false, true, false, true}) {
    SCOPED_TRACE(every_one);
    files->SetSpace(0);
    for (int i = 0; i < 60; ++i) Add(8, 8);
    EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
    EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
    ExpectAll();
    if (every_one) {
      RemoveAll();
    } else {
      RemoveNumbers([](int64_t number) { return number % 3 != 0; });
    }
    ASSERT_OK(CleanAll());  // Nobody else has made room.
    ExpectAll();
    if (every_one) {
      RemoveAll();
    } else {
      RemoveNumbers([](int64_t number) { return number % 3 != 0; });
    }
    // Nobody else makes room.
    for (Status cleaned = CleanAll(); !cleaned.ok(); cleaned = CleanAll()) {
      ASSERT_STATUS(kResourceExhausted, cleaned, "full");
      ASSERT_FALSE(every_one);
      // Two of three are gone: that the rest is moved takes room that they leave step by step.
      files->SetSpace(files->space() + (64 << 10));
    }
    ExpectAll();
    while (BytesIn("cold") > (every_one ? 2u << 20 : 6u << 20)) std::this_thread::yield();
    files->SetSpace(int64_t{1} << 40);
    for (int i = 0; i < 300; ++i) Add(8, 8);
    ASSERT_OK(CleanAll());
    ExpectAll();
  }
  Again();
  ExpectAll();
}

// What is in memory has to be flushed first, and the reserve is gone.
TEST_F(CleanerRemovalsTest, TheLogsSpareFilesAreRoomForAFlush) {
  const auto files = UseFaultFiles();
  files->DeletesMakeSpace();
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  files->SetSpace(0);
  for (int i = 0; i < 20; ++i) Add(8, 8);
  std::filesystem::remove(dir_->path() + "/cold/" + engine::kColdReserveName);
  const auto free_files = [&] { return database_->Stats().log_segments_free; };
  const uint64_t spare_files = options_.ring_bytes / options_.segment_bytes + 2;
  EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
  RemoveAll();
  EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
  while (free_files() < spare_files) std::this_thread::yield();  // They come back.
  files->MakeSpaceOf(dir_->path() + "/log");
  ASSERT_OK(CleanAll());
  ExpectAll();
  files->SetSpace(int64_t{1} << 40);
  for (int i = 0; i < 60; ++i) Add(8, 8);
  Again();
  ExpectAll();
}

// Each would spend it, and none makes room.
TEST_F(CleanerRemovalsTest, RemovalsTooFewToMakeRoomLeaveTheReserveToThoseThatDo) {
  const auto files = UseFaultFiles();
  files->DeletesMakeSpace();
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  files->SetSpace(0);
  for (int i = 0; i < 60; ++i) Add(8, 8);
  EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
  const std::string reserve = dir_->path() + "/cold/" + engine::kColdReserveName;
  const auto held = std::filesystem::file_size(reserve);
  const auto remove = [&](size_t count) {
    std::vector<TrajectoryId> gone;
    for (; gone.size() < count; numbers_.erase(numbers_.begin())) {
      gone.push_back(numbers_.begin()->first);
    }
    ASSERT_OK(table_->Remove(gone));
  };
  for (int i = 0; i < 5; ++i) {
    remove(1);
    EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
    EXPECT_EQ(std::filesystem::file_size(reserve), held);
  }
  ExpectAll();
  remove(200);
  ASSERT_OK(CleanAll());
  ExpectAll();
  Again();
  ExpectAll();
}

// Here and there, so that it takes a compaction; of no more than the bound on space allows for.
TEST_F(CleanerRemovalsTest, WhatIsGarbageWithinTheBoundMakesRoomOnAFullDisk) {
  const auto files = UseFaultFiles();
  files->DeletesMakeSpace();
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  files->SetSpace(0);
  for (int i = 0; i < 20; ++i) Add(8, 8);
  EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
  RemoveNumbers([](int64_t number) { return number % 6 == 0; });
  ASSERT_OK(CleanAll());
  EXPECT_GT(files->space(), 0);
  ExpectAll();
  Again();
  ExpectAll();
}

TEST_F(CleanerRemovalsTest, WhatWasRemovedWhileTheDiskWasFullLeavesOnceItIsNot) {
  const auto files = UseFaultFiles();
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  files->SetSpace(0);
  for (int i = 0; i < 60; ++i) Add(8, 8);
  // Somebody else takes what the reserve leaves.
  std::filesystem::remove(dir_->path() + "/cold/" + engine::kColdReserveName);
  EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
  RemoveAll();
  EXPECT_STATUS(kResourceExhausted, CleanAll(), "full");
  files->SetSpace(int64_t{1} << 60);
  ASSERT_OK(CleanAll());
  ASSERT_OK(testing::CoreOf(*database_)->cold->if_open()->CompactForSpace());
  Again();  // A close waits for RocksDB to delete the files that it has replaced.
  EXPECT_LT(BytesIn("cold"), 1u << 20);
  for (int i = 0; i < 30; ++i) Add(8, 8);
  Again();
  ExpectAll();
}

// On a small disk there is never room for as much as may be in memory.
TEST_F(CleanerRemovalsTest, ADiskWithoutRoomForTheReserveTakesWhatIsLittle) {
  const auto files = UseFaultFiles();
  files->DeletesMakeSpace();
  for (const int space : {2, 12}) {
    SCOPED_TRACE(space);
    files->SetSpace(int64_t{space} << 20);
    const uint64_t segments = Cleaned().segments;
    for (int i = 0; i < 60; ++i) Add(8, 8);
    if (space == 2) {
      // Nothing can be moved. But nothing has to be, either, where all is gone.
      EXPECT_STATUS(kResourceExhausted, CleanAll(), "RESERVE: the disk is too full for");
      EXPECT_EQ(Cleaned().segments, segments);
      RemoveAll();
    }
    ASSERT_OK(CleanAll());
    EXPECT_GT(Cleaned().segments, segments);
    ExpectAll();
  }
  for (int i = 0; i < 30; ++i) Add(8, 8);
  Again();
  ExpectAll();
}

TEST_F(CleanerRemovalsTest, WhatIsRemovedLeavesTheDiskThoughNobodyAppends) {
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  Again();  // Whose thread has not cleaned anything yet.
  const uint64_t filled = BytesIn("cold");
  ASSERT_GT(filled, 6u << 20);
  RemoveNumbers([](int64_t number) { return number % 4 != 0; });
  while (BytesIn("cold") > filled / 2) std::this_thread::yield();
  ExpectAll();
  writer_.reset();
  table_.reset();
  ASSERT_OK(database_->DropTable("frames"));
  while (BytesIn("cold") > filled / 16) std::this_thread::yield();
}

// As by appends that are refused and tried again.
TEST_F(CleanerRemovalsTest, WhatIsRemovedLeavesThoughPassesAreWantedAllTheTime) {
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  Again();
  const uint64_t filled = BytesIn("cold");
  RemoveAll();
  while (BytesIn("cold") > filled / 2) {
    (void)testing::CoreOf(*database_)->cleaner->WaitForPass(1, Deadline::AfterMs(10));
  }
  ExpectAll();
}

TEST_F(CleanerRemovalsTest, WhatIsRemovedLeavesTheColdStoreInTimeHoweverLittleItIs) {
  testing::HandClock clock;
  options_.clock = &clock;
  for (int i = 0; i < 100; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  Again();
  const auto pages = [&] {
    uint64_t count = 0;
    const auto visit = [&](const engine::ColdPageKey&, const engine::ColdPageHeader&) {
      ++count;
      return Status::Ok();
    };
    EXPECT_OK(testing::CoreOf(*database_)->cold->if_open()->ForEachPage(visit));
    return count;
  };
  const uint64_t before = pages();
  const uint64_t passes = Cleaned().passes;
  const TrajectoryId one = numbers_.begin()->first;  // The last ones are in the log.
  ASSERT_OK(table_->Remove({&one, 1}));
  numbers_.erase(one);
  EXPECT_EQ(Cleaned().passes, passes);
  // It is seen at a look that comes, and is due some time later.
  while (pages() == before) {
    EXPECT_LE(Cleaned().passes, passes + 1);
    clock.now_us += 10'000'000;
    std::this_thread::yield();
  }
  ExpectAll();
  Close();
}

TEST_F(CleanerRemovalsTest, ADroppedTableLeaves) {
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  ASSERT_GT(BytesIn("cold"), 1u << 20);
  writer_.reset();
  table_.reset();
  ASSERT_OK(database_->DropTable("frames"));
  Make();
  numbers_.clear();
  for (int i = 0; i < 120; ++i) Add(8, 8);
  ASSERT_OK(CleanAll());
  ExpectAll();
  ASSERT_OK(testing::CoreOf(*database_)->cold->if_open()->CompactForSpace());
  EXPECT_LT(BytesIn("cold"), 2 * table_->Stats().frame_bytes);
  Again();
  ExpectAll();
}

TEST_F(CleanerRemovalsTest, WhatWasRemovedLeavesTheDisk) {
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 200; ++i) Add(8, 8);
    std::vector<TrajectoryId> all;
    for (const auto& [id, number] : numbers_) all.push_back(id);
    // All but one in fifty.
    std::vector<TrajectoryId> gone;
    for (const TrajectoryId id : all) {
      if (id % 50 != 0) gone.push_back(id);
    }
    for (const TrajectoryId id : gone) numbers_.erase(id);
    ASSERT_OK(table_->Remove(gone));
  }
  ASSERT_OK(CleanAll());
  ASSERT_OK(testing::CoreOf(*database_)->cold->if_open()->CompactForSpace());
  EXPECT_LT(BytesIn("cold"), 2 * table_->Stats().frame_bytes + (2 << 20));
  ExpectAll();
  Again();
  ExpectAll();
}

// Each was a range, which the store said again in every batch, and held in memory.
TEST_F(CleanerRemovalsTest, WhatIsRemovedHereAndThereCostsAKeyEach) {
  for (int i = 0; i < 1000; ++i) Add(1, 1);
  ASSERT_OK(CleanAll());
  const auto core = testing::CoreOf(*database_);
  const auto bytes_put = [&] {
    return core->cold->if_open()->stats().bytes_written - Cleaned().image_bytes;
  };
  const uint64_t before = bytes_put();
  RemoveNumbers([](int64_t number) { return number % 2 == 0; });
  ASSERT_OK(CleanAll());
  EXPECT_LT(bytes_put() - before, 500u * 100u);
  Again();
  ExpectAll();
}

}  // namespace
}  // namespace geardb
