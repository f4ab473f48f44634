// Rows of pages with frames and of pages aside, gathered into one output.
#include "engine/internal/gather_rows.h"

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

class GatherRowsTest : public FramesTest {
 protected:
  engine::TableState& State() { return *testing::CoreOf(*database_)->AllTables()[0]->state; }
  /// Of every third row of a trajectory, of which every other page is aside: frames and rewards.
  void Plan(TrajectoryId id) GEARDB_REQUIRES(State().mutex) {
    const auto& record = State().trajectories().record(State().trajectories().FindById(id));
    for (const auto& [column, bytes] :
         {std::pair(0u, uint64_t{kFrameBytes}), std::pair(1u, uint64_t{4})}) {
      runs_.BeginOutput({.destination = out_[column].data()});
      runs_.Fill(out_[column].size() - 8, 8);  // The next output's begin behind it.
      uint64_t at = 0;
      for (int64_t row = 0; row < static_cast<int64_t>(record.rows_end); row += 3, at += bytes) {
        engine::RowCursor cursor(State(), record);
        const Lpn lpn = cursor.PageOf(row);
        const uint32_t offset = State().layout().OffsetInPage(row);
        if (row / kPageRows % 2 == 0) {
          CopyRows(&cursor, {column, bytes, row, row + 1}, {at, bytes}, &runs_, &waits_);
          continue;
        }
        auto aside = waits_.FindAside(&State().frames(), 0, lpn);
        if (!aside) aside = State().frames().PutAside(0, lpn, &waits_);
        runs_.Copy(AdvanceInFrame(*aside, State().layout().RowOffset(column, offset)), bytes, at,
                   bytes);
      }
    }
  }
  void ExpectOutputs(TrajectoryId id, int64_t rows) const {
    for (int64_t row = 0, at = 0; row < rows; row += 3, ++at) {
      ExpectRow(id, row, reinterpret_cast<const uint8_t*>(out_[0].data()) + at * kFrameBytes);
      float reward = 0;
      std::memcpy(&reward, out_[1].data() + at * 4, 4);
      EXPECT_EQ(reward, static_cast<float>(numbers_.at(id) * 100 + row));
    }
  }

  engine::RunBuilder runs_;
  engine::PageWaits waits_;
  std::vector<std::byte> out_[2] = {std::vector<std::byte>(1 << 20),
                                    std::vector<std::byte>(1 << 12)};
};

TEST_F(GatherRowsTest, RowsAsideAreCopiedToTheirPlaces) {
  const TrajectoryId id = Add(150, 150);
  const auto core = testing::CoreOf(*database_);
  DropAll();
  EpochRegistry::Guard guard;
  {
    MutexLock lock(&State().mutex);
    Plan(id);
    guard = core->epochs.Enter();
  }
  ASSERT_EQ(waits_.aside().size(), 18u);
  ASSERT_OK(engine::GatherRows(&runs_, &waits_, *core->arena));
  ExpectOutputs(id, 150);
}

TEST_F(GatherRowsTest, AlsoWhileTheMutexIsHeld) {
  const TrajectoryId id = Add(150, 150);
  DropAll();
  MutexLock lock(&State().mutex);
  Plan(id);
  ASSERT_OK(engine::GatherRowsHeld(&runs_, &waits_, *testing::CoreOf(*database_)->arena, 0));
  ExpectOutputs(id, 150);
}

TEST_F(GatherRowsTest, APageAsideThatCannotBeReadIsNamed) {
  const TrajectoryId id = Add(12, 12);
  engine::TableState& state = State();
  MutexLock lock(&state.mutex);
  const auto& record = state.trajectories().record(state.trajectories().FindById(id));
  engine::PagePlace place = state.frames().PlaceOf(0, record.tail_lpn);
  place.newest_lsn += 64;
  place.log_at = kNoLsn;
  runs_.BeginOutput({.destination = out_[0].data()});
  runs_.Copy(waits_.AddAside(&state.frames(), place), 8, 0, 8);
  EXPECT_STATUS(kCorruption,
                engine::GatherRowsHeld(&runs_, &waits_, *testing::CoreOf(*database_)->arena, 0),
                "page 2 of trajectory");
  ASSERT_NE(waits_.failed(), nullptr);
  EXPECT_EQ(waits_.failed()->place.trajectory, id);
  waits_.Clear();
  EXPECT_EQ(waits_.failed(), nullptr);
}

}  // namespace
}  // namespace geardb
