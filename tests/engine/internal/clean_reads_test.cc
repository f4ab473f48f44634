// What the cleaner puts into the cold store: bytes of frames, of pages read when they are put or
// before, and of pages that have changed since they were read.
#include "engine/internal/clean_reads.h"

#include <optional>

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

using engine::ColdWork;

class CleanReadsTest : public FramesTest {
 protected:
  engine::TableState& State() { return *testing::CoreOf(*database_)->AllTables()[0]->state; }
  std::vector<ColdWork> WorkOf(TrajectoryId id) {
    MutexLock lock(&State().mutex);
    const auto& record = State().trajectories().record(State().trajectories().FindById(id));
    std::vector<ColdWork> work;
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = State().pages().page(lpn).next) {
      work.push_back({.lpn = lpn,
                      .frame = State().FrameOf(0, lpn),
                      .place = State().frames().PlaceOf(0, lpn)});
    }
    return work;
  }
  void ExpectBytes(engine::CleanReads* reads, TrajectoryId id, size_t pages) {
    for (size_t page = 0; page < pages; ++page) {
      ASSERT_OK_AND_ASSIGN(const std::byte* bytes, reads->Bytes(page));
      for (int64_t row = 0; row < kPageRows; ++row) {
        ExpectRow(id, static_cast<int64_t>(page) * kPageRows + row,
                  reinterpret_cast<const uint8_t*>(bytes) + row * kFrameBytes);
      }
    }
  }
  uint64_t Reads() const { return database_->Stats().log_page_reads; }
};

TEST_F(CleanReadsTest, FramesAreTakenAsTheyAre) {
  const TrajectoryId id = Add(16, 16);
  engine::CleanReads reads(testing::CoreOf(*database_).get(), State());
  const auto guard = testing::CoreOf(*database_)->epochs.Enter();
  const std::vector<ColdWork> work = WorkOf(id);
  reads.Begin(work);
  ExpectBytes(&reads, id, 4);
  EXPECT_EQ(Reads(), 0u);
}

TEST_F(CleanReadsTest, WhatWasReadAheadIsReadOnce) {
  const TrajectoryId first = Add(16, 16);
  const TrajectoryId second = Add(16, 16);
  DropAll();
  const auto guard = testing::CoreOf(*database_)->epochs.Enter();
  engine::CleanReads reads(testing::CoreOf(*database_).get(), State());
  const std::vector<ColdWork> now = WorkOf(first);
  const std::vector<ColdWork> next = WorkOf(second);
  reads.Begin(now);
  reads.BeginAhead(next);
  ExpectBytes(&reads, first, 4);
  reads.Begin(next);
  ExpectBytes(&reads, second, 4);
  EXPECT_EQ(Reads(), 8u);
}

TEST_F(CleanReadsTest, OfLargePagesOneIsReadAhead) {
  for (const uint64_t page : {uint64_t{256}, uint64_t{16} << 10, uint64_t{300} << 10}) {
    EXPECT_GE(engine::CleanPages(page), 1u);
    EXPECT_LE(engine::CleanPagesAhead(page) * page, uint64_t{480} << 10);
  }
  EXPECT_EQ(engine::CleanPages(uint64_t{16} << 20), 1u);
  EXPECT_EQ(engine::CleanPagesAhead(uint64_t{16} << 20), 1u);
}

TEST_F(CleanReadsTest, WhatHasChangedSinceIsReadAnew) {
  const TrajectoryId id = Add(16, 16);
  DropAll();
  const auto guard = testing::CoreOf(*database_)->epochs.Enter();
  std::optional<engine::CleanReads> reads;
  reads.emplace(testing::CoreOf(*database_).get(), State());
  reads->BeginAhead(WorkOf(id));
  // The first row of page 1 becomes that of another trajectory.
  std::vector<uint8_t> row(kFrameBytes);
  for (int64_t at = 0; at < kFrameBytes; ++at) row[static_cast<size_t>(at)] = ByteOf(900, 0, at);
  const RowSpan span{.id = id, .first_row = kPageRows, .rows = 1};
  ASSERT_OK(table_->Patch(
      {&span, 1}, std::vector<ColumnValue>{
                      {"frame", TensorView(row.data(), DType::kU8, Shape({1, kFrameBytes}))}}));
  DropAll();
  std::vector<ColdWork> work = WorkOf(id);
  ASSERT_FALSE(work[1].frame.valid());
  reads->Begin(work);
  ASSERT_OK_AND_ASSIGN(const std::byte* page, reads->Bytes(1));
  EXPECT_EQ(std::memcmp(page, row.data(), kFrameBytes), 0);
  ExpectRow(id, kPageRows + 1, reinterpret_cast<const uint8_t*>(page) + kFrameBytes);
  for (const size_t other : {0u, 2u, 3u}) ASSERT_OK(reads->Bytes(other));
  reads.reset();  // Nobody asked for page 1 as it was: its read may still be under way.
  EXPECT_EQ(Reads(), 4u + 1u + 1u);  // Ahead, by the patch, and anew.
}

}  // namespace
}  // namespace geardb
