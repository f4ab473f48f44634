// What a store says of itself: where its pages are, what it waited for, and what its processes did.
#include <filesystem>
#include <random>

#include "engine/internal/activity_file.h"
#include "engine/internal/cold_store.h"
#include "tests/engine/frames_fixture.h"
#include "tests/testing/files.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;

class DatabaseStatsTest : public FramesTest {
 protected:
  void SetUp() override {
    options_.log_bytes_max = 8 << 20;  // Eight segments.
    FramesTest::SetUp();
  }
  /// Pages of the trajectories that there are, by their rows alone.
  uint64_t PagesAdded() const {
    uint64_t pages = 0;
    for (const TrajectoryRecord& record : table_->Scan({})) {
      pages += static_cast<uint64_t>((record.rows_end + kPageRows - 1) / kPageRows);
    }
    return pages;
  }
  /// Opens it for reading only, when it is closed.
  std::unique_ptr<Database> OpenToRead(const std::string& directory) {
    DatabaseOptions options = options_;
    options.read_only = true;
    options.create_if_missing = false;
    options.background = false;
    auto opened = Database::Open(directory, options);
    EXPECT_OK(opened);
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  std::string counters() const { return dir_->File("COUNTERS"); }
};

/// Keys of a group's pages in the cold store of a database that is closed.
uint64_t PagesInCold(const std::string& directory, uint16_t group) {
  auto store = engine::ColdStore::Open(directory + "/cold", {.read_only = true});
  EXPECT_OK(store);
  uint64_t pages = 0;
  EXPECT_OK(
      (*store)->ForEachPage([&](const engine::ColdPageKey& key, const engine::ColdPageHeader&) {
        pages += key.group == group ? 1u : 0u;
        return Status::Ok();
      }));
  return pages;
}

void ExpectWhole(const GroupPlaces& places) {
  EXPECT_EQ(places.in_log + places.in_cold + places.only_framed, places.pages);
  EXPECT_LE(places.in_both, places.in_log);
  EXPECT_LE(places.framed, places.pages);
}

TEST_F(DatabaseStatsTest, EveryPageIsWhereItsPlaceSays) {
  options_.background = false;  // Nothing moves between two looks.
  Again();
  for (int i = 0; i < 700; ++i) Add(1 + i % 14, 1 + i % 16);
  const DatabaseStats live = database_->Stats();
  ASSERT_GT(live.cleaner.segments, 0u);
  EXPECT_GT(live.image_lsn, 0u);
  EXPECT_LE(live.log_released, live.log_start);
  EXPECT_LE(live.log_start, live.image_lsn);
  EXPECT_EQ(live.cleaner_lag_bytes(), live.log_published - live.image_lsn);
  EXPECT_EQ(live.log_segments_live, live.log_end / (1 << 20) - live.log_released / (1 << 20) + 1);
  const GroupPlaces now = table_->Places()[0];
  ExpectWhole(now);
  EXPECT_EQ(now.pages, PagesAdded());
  EXPECT_EQ(now.framed * now.frame_bytes, table_->Stats().frames.resident_bytes);
  EXPECT_GT(now.framed, 0u);
  // The image knows of every page that is in the cold store then.
  ASSERT_OK(testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true));
  EXPECT_EQ(table_->Places()[0].pages, PagesAdded());
  const uint64_t pages = PagesAdded();
  Close();
  const uint64_t cold_pages = PagesInCold(dir_->path(), 0);
  const uint64_t late_pages = PagesInCold(dir_->path(), 1);
  EXPECT_EQ(late_pages, 0u);

  const auto reader = OpenToRead(dir_->path());
  ASSERT_NE(reader, nullptr);
  ASSERT_OK_AND_ASSIGN(table_, reader->OpenTable("frames"));
  const std::vector<GroupPlaces> places = table_->Places();
  ASSERT_EQ(places.size(), 2u);
  ExpectWhole(places[0]);
  EXPECT_EQ(places[0].pages, pages);
  EXPECT_EQ(places[0].in_cold, cold_pages);
  EXPECT_EQ(places[0].in_both, 0u);
  EXPECT_EQ(places[1].pages, 0u);
  EXPECT_EQ(places[1].group, "late");
  const DatabaseStats stats = reader->Stats();
  EXPECT_EQ(stats.image_lsn, reader->recovery().image);
  EXPECT_EQ(stats.log_synced, reader->recovery().end);
  EXPECT_EQ(stats.log_lag_bytes(), 0u);
  uint64_t files = 0, disk = 0, reserve = 0;
  for (const auto& entry : fs::directory_iterator(dir_->File("log"))) {
    files += entry.path().filename().string().starts_with("segment-") ? 1u : 0u;
  }
  for (const auto& entry : fs::directory_iterator(dir_->File("cold"))) {
    const auto extension = entry.path().extension();
    if (extension == ".sst" || extension == ".blob") disk += entry.file_size();
    if (entry.path().filename().string().ends_with("RESERVE")) reserve += entry.file_size();
  }
  EXPECT_EQ(stats.log_segments_live + stats.log_segments_free, files);
  EXPECT_EQ(stats.cold.disk_bytes, disk);
  EXPECT_LE(stats.cold.live_bytes, disk);
  EXPECT_GT(reserve, 0u);
  EXPECT_EQ(stats.cold.reserve_bytes, reserve);
  table_.reset();
}

TEST_F(DatabaseStatsTest, FramesAreCountedAsTheyComeAndGo) {
  const TrajectoryId id = Add(13, 13);
  EXPECT_EQ(table_->Places()[0].framed, 4u);
  Again();
  DropAll();
  const GroupPlaces dropped = table_->Places()[0];
  EXPECT_EQ(dropped.framed, 0u);
  EXPECT_EQ(dropped.pages, 4u);
  EXPECT_EQ(dropped.in_log, 4u);
  const uint64_t waits = database_->Stats().waits.pages.waits;
  const std::string_view column = "frame";
  ASSERT_OK(table_->Read(id, {&column, 1}, {.begin = 0, .end = 5}));
  EXPECT_EQ(table_->Places()[0].framed, 2u);
  EXPECT_EQ(database_->Stats().log_page_reads, 2u);
  EXPECT_LE(database_->Stats().waits.pages.waits - waits, 2u);
  // Once for each page, as windows that are drawn.
  const FrameStats before = Frames();
  ASSERT_OK(table_->Read(id, {&column, 1}, {}));
  EXPECT_EQ(Frames().hits - before.hits, 2u);
  EXPECT_EQ(Frames().misses - before.misses, 2u);
}

TEST_F(DatabaseStatsTest, PagesOfVolatileGroupsAreNowhereElse) {
  options_.budgets.frames_bytes = 32 << 20;
  Again();
  TableSpec spec = FrameSpec();
  spec.name = "volatile";
  spec.groups.push_back({.name = "fleeting", .is_volatile = true});
  spec.groups.push_back({.name = "patched", .late = true, .is_volatile = true});
  spec.columns.push_back({.name = "seen", .group = "fleeting"});
  spec.columns.push_back({.name = "advantage", .group = "patched"});
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  std::vector<uint8_t> bytes(6 * kFrameBytes);
  std::vector<float> values(6, 1.0f);
  ASSERT_OK(writer_->AppendSteps(
      {{"frame", TensorView(bytes.data(), DType::kU8, Shape({6, kFrameBytes}))},
       {"reward", TensorView::Of(std::span<const float>(values))},
       {"seen", TensorView::Of(std::span<const float>(values))}},
      {.end = End::kTerminated}));
  const std::vector<GroupPlaces> places = table_->Places();
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[2].pages, 2u);
  EXPECT_EQ(places[2].only_framed, 2u);
  EXPECT_EQ(places[2].framed, 2u);
  EXPECT_EQ(places[0].only_framed, 0u);
  EXPECT_EQ(places[3].pages, 0u);
  const RowSpan span = {.id = 1, .first_row = 0, .rows = 5};
  const ColumnValue value = {"advantage", TensorView::Of(std::span<const float>(values).first(5))};
  ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  const GroupPlaces patched = table_->Places()[3];
  EXPECT_EQ(patched.pages, 2u);
  EXPECT_EQ(patched.framed, 2u);
  EXPECT_EQ(patched.only_framed, 2u);
}

TEST_F(DatabaseStatsTest, WhatAProcessDidIsThereWhenItHasClosed) {
  for (int i = 0; i < 700; ++i) Add(1 + i % 14, 1 + i % 16);
  ExpectAll();
  ExpectDraws(2, 20);
  // The cleaner and reads brought in early may go on: taken while nothing moved.
  DatabaseActivity live;
  DatabaseStats stats;
  FrameStats frames;
  do {
    live = database_->Activity();
    stats = database_->Stats();
    frames = Frames();
  } while (!(database_->Activity().last == live.last));
  EXPECT_TRUE(live.known);
  EXPECT_EQ(live.opening, 1u);
  EXPECT_EQ(live.since, 1u);
  EXPECT_EQ(live.last, live.total);
  EXPECT_EQ(live.last.frames_dropped, frames.dropped);
  EXPECT_EQ(live.last.frame_hits, frames.hits);
  EXPECT_EQ(live.last.frame_misses, frames.misses);
  EXPECT_EQ(live.last.log_page_reads, stats.log_page_reads);
  EXPECT_EQ(live.last.cold_page_reads, stats.cold_page_reads);
  EXPECT_EQ(live.last.cleaner_segments, stats.cleaner.segments);
  EXPECT_EQ(live.last.waits_for_pages, stats.waits.pages.waits);
  EXPECT_GT(live.last.frames_dropped, 0u);
  EXPECT_GT(live.last.log_page_reads, 0u);
  EXPECT_GT(live.last.cold_page_reads, 0u);
  EXPECT_GT(live.last.waits_for_frames, 0u);
  EXPECT_GT(live.last.waits_for_pages, 0u);
  Close();
  const DatabaseActivity first = OpenToRead(dir_->path())->Activity();
  EXPECT_EQ(first.opening, 1u);
  EXPECT_GE(first.last.cleaner_segments, live.last.cleaner_segments);
  EXPECT_GE(first.last.frames_dropped, live.last.frames_dropped);
  EXPECT_EQ(first.last.frame_misses, live.last.frame_misses);
  Again();
  const DatabaseActivity second = database_->Activity();
  EXPECT_EQ(second.opening, 2u);
  EXPECT_EQ(second.total.cleaner_segments - second.last.cleaner_segments,
            first.last.cleaner_segments);
  EXPECT_EQ(second.total.frames_dropped - second.last.frames_dropped, first.last.frames_dropped);
  DropAll();
  ExpectAll();
  const DatabaseActivity before = database_->Activity();
  EXPECT_GT(before.last.frame_misses, 0u);
  Close();
  const auto reader = OpenToRead(dir_->path());
  const DatabaseActivity found = reader->Activity();
  EXPECT_TRUE(found.known) << found.note;
  EXPECT_EQ(found.opening, 2u);
  EXPECT_EQ(found.last.frame_misses, before.last.frame_misses);
  EXPECT_EQ(found.total.frame_misses, live.last.frame_misses + before.last.frame_misses);
  EXPECT_EQ(found.total.frames_dropped, before.total.frames_dropped);
  EXPECT_EQ(found.total.cold_page_reads, before.total.cold_page_reads);
  EXPECT_EQ(found.total.log_page_reads, before.total.log_page_reads);
}

TEST_F(DatabaseStatsTest, WhatAProcessDidIsThereWhenItWasKilled) {
  for (int i = 0; i < 100; ++i) Add(1 + i % 14, 1 + i % 16);
  DropAll();
  ExpectAll();
  ASSERT_OK(testing::CoreOf(*database_)->activity->Write());
  const DatabaseActivity live = database_->Activity();
  const auto copy = testing::CopyOpenStore(dir_->path());
  const DatabaseActivity found = OpenToRead(copy->path())->Activity();
  EXPECT_TRUE(found.known) << found.note;
  EXPECT_EQ(found.last.frames_dropped, live.last.frames_dropped);
  EXPECT_EQ(found.last.log_page_reads, live.last.log_page_reads);
  EXPECT_GT(found.last.log_page_reads, 0u);
}

TEST_F(DatabaseStatsTest, FramesOfADroppedTableStayCounted) {
  for (int i = 0; i < 20; ++i) Add(8, 8);
  DropAll();
  ExpectAll();
  const ActivityCounters before = database_->Activity().last;
  EXPECT_GT(before.frame_misses, 0u);
  writer_.reset();
  ASSERT_OK(database_->DropTable("frames"));
  const ActivityCounters after = database_->Activity().last;
  EXPECT_EQ(after.frame_misses, before.frame_misses);
  EXPECT_EQ(after.frames_dropped, before.frames_dropped);
}

TEST_F(DatabaseStatsTest, NoBytesOfCountersStopAnOpen) {
  Add(5, 5);
  Close();
  const std::string good = testing::ReadBytes(counters());
  ASSERT_FALSE(good.empty());
  std::mt19937_64 random(11);
  for (int i = 0; i < 40; ++i) {
    std::string bytes = good.substr(0, random() % (good.size() + 1));
    for (uint64_t changes = random() % 5; changes > 0 && !bytes.empty(); --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    testing::WriteBytes(counters(), bytes);
    const auto reader = OpenToRead(dir_->path());
    ASSERT_NE(reader, nullptr);
    EXPECT_EQ(reader->Activity().known, bytes == good) << i;
    EXPECT_EQ(reader->Activity().note.empty(), bytes == good);
  }
  fs::remove(counters());
  EXPECT_FALSE(OpenToRead(dir_->path())->Activity().known);
  Open();
  Close();
  const DatabaseActivity again = OpenToRead(dir_->path())->Activity();
  EXPECT_TRUE(again.known);
  EXPECT_EQ(again.since, 2u);
}

TEST_F(DatabaseStatsTest, ACloseDoesNotFailByThem) {
  Add(5, 5);
  fs::remove(counters());
  fs::create_directory(counters() + ".new");
  writer_.reset();
  table_.reset();
  EXPECT_OK(database_->Close());
  database_.reset();
  EXPECT_TRUE(OpenToRead(dir_->path())->recovery().clean);
}

}  // namespace
}  // namespace geardb
