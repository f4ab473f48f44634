// Pages read beside the frames: in order, a bounded number of them ahead, and what is wrong with
// one.
#include "engine/internal/aside_pages.h"

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

using engine::AsideReader;

class AsidePagesTest : public FramesTest {
 protected:
  void SetUp() override {
    FramesTest::SetUp();
    id_ = Add(31, 7);
    const auto core = testing::CoreOf(*database_);
    ASSERT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
    engine::TableState& state = *core->AllTables()[0]->state;
    MutexLock lock(&state.mutex);
    const auto& record = state.trajectories().record(state.trajectories().FindById(id_));
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = state.pages().page(lpn).next) {
      pages_.push_back({&state.frames(), state.frames().PlaceOf(0, lpn)});
    }
  }
  void ExpectPage(AsideReader* reader, size_t number) const {
    ASSERT_OK_AND_ASSIGN(const std::byte* page, reader->Get(number));
    for (uint32_t row = 0; row < pages_[number].place.rows; ++row) {
      ExpectRow(id_, static_cast<int64_t>(number) * kPageRows + row,
                reinterpret_cast<const uint8_t*>(page) + row * kFrameBytes);
    }
  }

  TrajectoryId id_ = 0;
  std::vector<engine::AsidePage> pages_;
};

TEST_F(AsidePagesTest, EachIsThereUntilTheNextOneIsAskedFor) {
  ASSERT_EQ(pages_.size(), 8u);
  AsideReader reader(AllOf(pages_));
  for (const size_t number : {0u, 0u, 1u, 4u, 4u, 7u}) ExpectPage(&reader, number);
}

TEST_F(AsidePagesTest, TheFirstMayBeBeyondAllThatAreReadAhead) {
  AsideReader reader(AllOf(pages_));
  ExpectPage(&reader, 7);
}

TEST_F(AsidePagesTest, ThoseReadAheadFitASixteenthOfTheFrames) {
  // 384 KiB, and two readers that would have 512 KiB each.
  std::vector<const engine::AsidePage*> many;
  for (int round = 0; round < 20; ++round) {
    for (const engine::AsidePage& page : pages_) many.push_back(&page);
  }
  {
    AsideReader first(many);
    AsideReader second(many);
    for (size_t i = 0; i < many.size(); ++i) {
      ASSERT_OK(first.Get(i));
      ASSERT_OK(second.Get(i));
    }
  }
  const DatabaseStats stats = database_->Stats();
  const uint64_t most = options_.budgets.frames_bytes / 16;
  const uint64_t page = pages_[0].frames->AsideBytes(pages_[0].place.group);
  EXPECT_GT(stats.pages_beside_most_bytes, most / 2);
  // One that a reader has to have is taken whatever there is.
  EXPECT_LE(stats.pages_beside_most_bytes, most + page);
  AwaitNothingBeside();
}

// The memory of a small page is not enough for a large one.
TEST_F(AsidePagesTest, PagesOfSeveralSizesFitIt) {
  TableSpec spec = FrameSpec();
  spec.name = "small";
  spec.columns.erase(spec.columns.begin());
  ASSERT_OK_AND_ASSIGN(const auto small, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(const auto writer, small->NewWriter({}));
  const float reward[] = {5, 5, 5, 5};
  ASSERT_OK(writer->AppendSteps({{"reward", TensorView::Of(std::span<const float>(reward))}},
                                {.end = End::kTerminated}));
  const auto core = testing::CoreOf(*database_);
  ASSERT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
  engine::TableState& state = *core->FindTable("small")->state;
  engine::AsidePage page;
  {
    MutexLock lock(&state.mutex);
    page = {&state.frames(), state.frames().PlaceOf(0, 0)};
  }
  std::vector<const engine::AsidePage*> pages(40, &page);
  for (int round = 0; round < 20; ++round) {
    for (const engine::AsidePage& large : pages_) pages.push_back(&large);
  }
  AsideReader others(AllOf(pages_));
  ASSERT_OK(others.Get(0));  // 128 KiB.
  AsideReader more(AllOf(pages_));
  ASSERT_OK(more.Get(0));  // As much again: 128 KiB are left.
  AsideReader reader(pages);
  for (size_t i = 0; i < pages.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const std::byte* bytes, reader.Get(i));
    if (i < 40) {
      EXPECT_EQ(*reinterpret_cast<const float*>(bytes), 5) << i;
    }
    ASSERT_LE(database_->Stats().pages_beside_bytes, options_.budgets.frames_bytes / 16);
  }
}

TEST_F(AsidePagesTest, ADamagedOneIsNamed) {
  pages_[5].place.newest_lsn += 64;
  pages_[5].place.log_at = kNoLsn;
  AsideReader reader(AllOf(pages_));
  ExpectPage(&reader, 4);
  EXPECT_STATUS(kCorruption, reader.Get(5), "page 5 of trajectory");
  EXPECT_EQ(reader.last()->place.page_number, 5u);
  ExpectPage(&reader, 6);
}

}  // namespace
}  // namespace geardb
