// Loads of pages: by threads, or by whoever waits.
#include "engine/internal/page_loader.h"

#include "engine/internal/table_frames.h"
#include "kernels/gather.h"
#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

using engine::PageLoad;
using engine::PageLoader;

class PageLoaderTest : public FramesTest {
 protected:
  /// Loads of all pages of a trajectory, as of now.
  std::vector<engine::PagePlace> PlacesOf(TrajectoryId id) {
    const auto core = testing::CoreOf(*database_);
    EXPECT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
    engine::TableState& state = *core->AllTables()[0]->state;
    MutexLock lock(&state.mutex);
    const auto& record = state.trajectories().record(state.trajectories().FindById(id));
    std::vector<engine::PagePlace> places;
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state.pages().page(lpn).next) {
      places.push_back(state.frames().PlaceOf(0, lpn));
    }
    return places;
  }
  std::shared_ptr<PageLoad> LoadOf(const engine::PagePlace& place) {
    auto load = std::make_shared<PageLoad>();
    load->place = place;
    const uint64_t bytes = place.layout->group(0).pages.frame_bytes();
    load->memory = engine::NewPageMemory(bytes, std::make_shared<std::atomic<uint64_t>>(0));
    load->into = load->memory.get();
    return load;
  }
  void ReadWith(uint32_t threads) {
    const TrajectoryId id = Add(31, 7);
    PageLoader loader(testing::CoreOf(*database_)->page_source.get(), threads, 0);
    engine::PageWaits waits;
    std::vector<std::shared_ptr<PageLoad>> loads;
    for (const engine::PagePlace& place : PlacesOf(id)) {
      loads.push_back(LoadOf(place));
      loader.Begin(loads.back());
      waits.Add(&loader, loads.back());
    }
    ASSERT_EQ(waits.size(), 8u);
    ASSERT_OK(waits.Wait());
    for (size_t page = 0; page < loads.size(); ++page) {
      for (uint32_t row = 0; row < loads[page]->place.rows; ++row) {
        ExpectRow(id, static_cast<int64_t>(page) * kPageRows + row,
                  reinterpret_cast<const uint8_t*>(loads[page]->into) + row * kFrameBytes);
      }
    }
    EXPECT_EQ(waits.failed(), nullptr);
  }
};

TEST_F(PageLoaderTest, ThreadsRead) { ReadWith(3); }

TEST_F(PageLoaderTest, AThreadKeepsNoMemoryOfALargePage) {
  constexpr int64_t kBytes = 2 << 20;
  options_.budgets.frames_bytes = 24 << 20;
  options_.ring_bytes = 16 << 20;
  options_.segment_bytes = 8 << 20;
  options_.log_bytes_max = 64 << 20;
  OpenEmpty();
  TableSpec spec{.name = "large"};
  spec.columns = {{.name = "frame", .dtype = DType::kU8, .shape = {kBytes}}};
  spec.steps_per_page = 1;
  ASSERT_OK_AND_ASSIGN(const auto table, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
  const std::vector<uint8_t> bytes(kBytes, 7);
  ASSERT_OK_AND_ASSIGN(
      const Appended added,
      writer->AppendTrajectory({{"frame", TensorView::Of<uint8_t>(bytes, {1, kBytes})}},
                               {.end = End::kTerminated}));
  PageLoader loader(testing::CoreOf(*database_)->page_source.get(), 1, 0);
  const auto load = LoadOf(PlacesOf(added.id).at(0));
  loader.Begin(load);
  // The thread has ended it, and not only read it.
  while (loader.ended() == 0) loader.AwaitOne(Deadline::Infinite());
  ASSERT_OK(load->status);
  EXPECT_EQ(std::to_integer<int>(load->into[kBytes - 1]), 7);
  EXPECT_LE(loader.kept_bytes(), uint64_t{1} << 20);
}

// Offsets of pages above 16 MiB were carried into the number of the page.
TEST_F(PageLoaderTest, APageAsideMayBeLarge) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{20} << 20, engine::kPageBytesMax - 1}) {
    const FrameRef row = AdvanceInFrame(engine::MakeAside(5), offset);
    EXPECT_TRUE(engine::IsAside(row));
    EXPECT_EQ(engine::AsideNumber(row), 5u);
    EXPECT_EQ(engine::AsideOffset(row), offset);
  }
}

TEST_F(PageLoaderTest, WhoeverNeedsFramesWaitsForWhatIsUnderWay) {
  const TrajectoryId id = Add(31, 7);
  PageLoader loader(testing::CoreOf(*database_)->page_source.get(), 2, 0);
  EXPECT_FALSE(loader.AwaitOne(Deadline::Infinite()));
  std::vector<std::shared_ptr<PageLoad>> loads;
  for (const engine::PagePlace& place : PlacesOf(id)) {
    loads.push_back(LoadOf(place));
    loader.Begin(loads.back());
  }
  loader.Wait(loads.back().get());  // Perhaps before a thread has come to it.
  while (loader.AwaitOne(Deadline::Infinite())) {
  }
  for (size_t page = 0; page < loads.size(); ++page) {
    ExpectRow(id, static_cast<int64_t>(page) * kPageRows,
              reinterpret_cast<const uint8_t*>(loads[page]->into));
  }
}

TEST_F(PageLoaderTest, WithoutThreadsWhoeverWaitsReads) { ReadWith(0); }

TEST_F(PageLoaderTest, TheFirstErrorIsTold) {
  const TrajectoryId id = Add(12, 4);
  std::vector<engine::PagePlace> places = PlacesOf(id);
  places[1].log_checksum ^= 1;
  places[2].log_at = uint64_t{1} << 40;
  for (const uint32_t threads : {0u, 2u}) {
    PageLoader loader(testing::CoreOf(*database_)->page_source.get(), threads, 0);
    engine::PageWaits waits;
    for (const engine::PagePlace& place : places) {
      auto load = LoadOf(place);
      loader.Begin(load);
      waits.Add(&loader, load);
    }
    EXPECT_STATUS(kCorruption, waits.Wait(), "does not fit its checksum");
    ASSERT_NE(waits.failed(), nullptr);
    EXPECT_EQ(waits.failed()->place.page_number, 1u);
  }
}

TEST_F(PageLoaderTest, WhatNobodyWaitsForIsReadBeforeItGoes) {
  const TrajectoryId id = Add(12, 4);
  const uint64_t before = database_->Stats().log_page_reads;
  {
    PageLoader loader(testing::CoreOf(*database_)->page_source.get(), 2, 0);
    for (const engine::PagePlace& place : PlacesOf(id)) loader.Begin(LoadOf(place));
  }
  EXPECT_EQ(database_->Stats().log_page_reads, before + 3);
}

}  // namespace
}  // namespace geardb
