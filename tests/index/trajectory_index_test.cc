#include "index/trajectory_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

std::unique_ptr<TrajectoryIndex> MakeTrajectories(IndexMemory* memory, uint64_t capacity,
                                                  std::vector<uint32_t> columns = {}) {
  auto created = TrajectoryIndex::Create(memory, "trajectories",
                                         {.slot_capacity = capacity, .column_bytes = columns});
  GEARDB_CHECK(created.ok());
  return std::move(created).value();
}

TEST(TrajectoryIndexTest, EmptyFindsNothing) {
  const auto memory = TestMemory();
  const auto index = MakeTrajectories(memory.get(), 100);
  EXPECT_EQ(index->FindById(1), kNoSlot);
  ASSERT_OK(index->Reserve(10));
  EXPECT_EQ(index->FindById(1), kNoSlot);
  EXPECT_EQ(index->FindLive(3, 0), nullptr);
  EXPECT_EQ(index->count(), 0u);
}

TEST(TrajectoryIndexTest, FreshRecordIsClean) {
  const auto memory = TestMemory();
  const auto index = MakeTrajectories(memory.get(), 100, {8, 3});
  ASSERT_OK(index->Reserve(10));
  for (int round = 0; round < 2; ++round) {
    TrajectoryRecord& record = index->Insert({.slot = 4, .generation = 9, .id = 77});
    EXPECT_EQ(record.id, 77u);
    EXPECT_EQ(record.generation, 9u);
    EXPECT_EQ(record.state, TrajectoryState::kOpen);
    EXPECT_EQ(record.end, End::kGo);
    EXPECT_EQ(record.rows_end, 0u);
    EXPECT_EQ(record.times_sampled, 0u);
    EXPECT_EQ(record.head_lpn, kNoLpn);
    EXPECT_EQ(record.tail_lpn, kNoLpn);
    ASSERT_EQ(index->column(0, 4).size(), 8u);
    ASSERT_EQ(index->column(1, 4).size(), 3u);
    for (const std::byte byte : index->column(1, 4)) EXPECT_EQ(byte, std::byte{0});
    record.rows_end = 5;
    record.times_sampled = 3;
    std::memset(index->column(1, 4).data(), 0xAB, 3);
    index->Erase(4);
    EXPECT_EQ(record.state, TrajectoryState::kFree);
  }
}

TEST(TrajectoryIndexTest, ColumnsOfSlotsDoNotOverlap) {
  const auto memory = TestMemory();
  const auto index = MakeTrajectories(memory.get(), 5000, {1, 64, 12});
  ASSERT_OK(index->Reserve(5000));
  for (Slot slot = 0; slot < 5000; ++slot) {
    for (size_t c = 0; c < 3; ++c) {
      std::memset(index->column(c, slot).data(), static_cast<int>((slot + c) & 0xFF),
                  index->column(c, slot).size());
    }
  }
  const TrajectoryIndex& same = *index;
  for (Slot slot = 0; slot < 5000; ++slot) {
    for (size_t c = 0; c < 3; ++c) {
      for (const std::byte byte : same.column(c, slot)) {
        ASSERT_EQ(byte, std::byte((slot + c) & 0xFF)) << "slot " << slot << " column " << c;
      }
    }
  }
}

TEST(TrajectoryIndexTest, LateGenerationIsNotLive) {
  const auto memory = TestMemory();
  const auto index = MakeTrajectories(memory.get(), 10);
  ASSERT_OK(index->Reserve(10));
  index->Insert({.slot = 2, .generation = 5, .id = 50});
  EXPECT_NE(index->FindLive(2, 5), nullptr);
  EXPECT_EQ(index->FindLive(2, 4), nullptr);
  EXPECT_EQ(index->FindLive(10, 5), nullptr);
  EXPECT_EQ(index->FindLive(kNoSlot, 5), nullptr);
  index->Erase(2);
  EXPECT_EQ(index->FindLive(2, 5), nullptr);
  index->Insert({.slot = 2, .generation = 6, .id = 51});
  EXPECT_EQ(index->FindLive(2, 5), nullptr);
  EXPECT_EQ(index->FindLive(2, 6)->id, 51u);
}

TEST(TrajectoryIndexTest, RandomUseMatchesAMap) {
  const auto memory = TestMemory();
  const auto index = MakeTrajectories(memory.get(), 1 << 20);
  std::mt19937_64 random(6);
  std::map<TrajectoryId, Slot> living;
  std::vector<Slot> free;
  uint64_t reserved = 0;
  TrajectoryId next_id = 1;
  std::vector<TrajectoryId> erased = {0, 999'999'999};
  for (int step = 0; step < 30'000; ++step) {
    if (step % 7'000 == 0) {
      // Growth moves the hash; everything must be found behind it.
      const uint64_t before = reserved;
      reserved = reserved * 3 + 300;
      ASSERT_OK(index->Reserve(reserved));
      for (uint64_t slot = before; slot < reserved; ++slot) free.push_back(static_cast<Slot>(slot));
    }
    if (!free.empty() && random() % 100 < 55) {
      const size_t pick = random() % free.size();
      const Slot slot = free[pick];
      free[pick] = free.back();
      free.pop_back();
      next_id += 1 + random() % 3;
      index->Insert({.slot = slot, .generation = 1, .id = next_id});
      living[next_id] = slot;
    } else if (!living.empty()) {
      auto victim = living.lower_bound(random() % (next_id + 1));
      if (victim == living.end()) victim = living.begin();
      index->Erase(victim->second);
      free.push_back(victim->second);
      erased.push_back(victim->first);
      living.erase(victim);
    }
    ASSERT_EQ(index->count(), living.size());
    ASSERT_EQ(index->FindById(erased[random() % erased.size()]), kNoSlot);
    if (step % 3'000 != 0) continue;
    for (const auto& [id, slot] : living) ASSERT_EQ(index->FindById(id), slot) << "id " << id;
  }
  for (const auto& [id, slot] : living) ASSERT_EQ(index->FindById(id), slot);
  for (const TrajectoryId id : erased) ASSERT_EQ(index->FindById(id), kNoSlot);
  std::map<TrajectoryId, Slot> walked;
  index->ForEach([&](Slot slot, const TrajectoryRecord& record) { walked[record.id] = slot; });
  EXPECT_EQ(walked, living);
}

TEST(TrajectoryIndexTest, FailedReserveLeavesTheIndexAsItWas) {
  const auto memory = TestMemory(uint64_t{1} << 20);
  const auto index = MakeTrajectories(memory.get(), 1 << 20);
  ASSERT_OK(index->Reserve(100));
  index->Insert({.slot = 99, .generation = 1, .id = 5});
  EXPECT_STATUS(kResourceExhausted, index->Reserve(1 << 20), "'trajectories'");
  EXPECT_EQ(index->reserved(), 100u);
  EXPECT_EQ(index->FindById(5), 99u);
}

TEST(TrajectoryIndexTest, WrongOptionsAreNamed) {
  const auto memory = TestMemory();
  const std::vector<uint32_t> wide = {4, 65};
  EXPECT_STATUS(kInvalidArgument, TrajectoryIndex::Create(memory.get(), "t", {.slot_capacity = 0}),
                "0 slots");
  EXPECT_STATUS(
      kInvalidArgument,
      TrajectoryIndex::Create(memory.get(), "t", {.slot_capacity = 1, .column_bytes = wide}),
      "column 1 of 't' has 65 bytes");
}

TEST(TrajectoryIndexTest, DroppedIndexGivesItsBudgetBack) {
  const auto memory = TestMemory();
  auto index = MakeTrajectories(memory.get(), 1 << 20, {16});
  ASSERT_OK(index->Reserve(10'000));
  EXPECT_GT(memory->used_bytes(), 10'000u * 96);
  index.reset();
  EXPECT_EQ(memory->used_bytes(), 0u);
}

}  // namespace
}  // namespace geardb::index
