// What a call has found stays as it was, whatever the cleaner puts over it before it is read.
#include "engine/internal/cold_snapshot.h"

#include "engine/internal/aside_pages.h"
#include "tests/engine/internal/cleaner_fixture.h"

namespace geardb {
namespace {

class ColdSnapshotTest : public CleanerStoreTest {
 protected:
  /// What has been appended so far is in segments that the log does not go on in.
  void GoOn() {
    for (int i = 0; i < 70; ++i) Add(kPageRows, kPageRows);
  }
  void Patch(TrajectoryId id, int64_t rows, uint8_t value) {
    const std::vector<uint8_t> bytes(static_cast<size_t>(rows * kFrameBytes), value);
    const RowSpan span{.id = id, .first_row = 0, .rows = rows};
    const std::vector<ColumnValue> values = {
        {"frame", TensorView(bytes.data(), DType::kU8, Shape({rows, kFrameBytes}))}};
    ASSERT_OK(table_->Patch({&span, 1}, values));
  }
};

TEST_F(ColdSnapshotTest, APatchThatTheColdStoreHasIsNotShownToWhoCameBefore) {
  const TrajectoryId id = Add(kPageRows, kPageRows);
  GoOn();
  ASSERT_OK(CleanAll());
  DropAll();
  const auto core = testing::CoreOf(*database_);
  engine::TableState& state = *core->AllTables()[0]->state;
  engine::PageWaits waits;
  {
    MutexLock lock(&state.mutex);
    const auto& record = state.trajectories().record(state.trajectories().FindById(id));
    ASSERT_TRUE(state.frames().PlaceOf(0, record.head_lpn).in_cold);
    (void)state.frames().PutAside(0, record.head_lpn, &waits);
  }
  // There is no guard, for which a pass would wait before its end; nothing is removed.
  Patch(id, kPageRows, 7);
  GoOn();
  ASSERT_OK(CleanAll());
  ASSERT_GE(Cleaned().passes, 2u);
  {
    engine::AsideReader aside(engine::AllOf(waits.aside()));
    ASSERT_OK_AND_ASSIGN(const std::byte* page, aside.Get(0));
    for (int64_t row = 0; row < kPageRows; ++row) {
      ExpectRow(id, row, reinterpret_cast<const uint8_t*>(page) + row * kFrameBytes);
    }
  }
  // Who comes now sees it.
  waits.Clear();
  DropAll();
  const std::string_view column = "frame";
  ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id, {&column, 1}, {}));
  for (const uint8_t byte : rows[0].view().values<uint8_t>()) ASSERT_EQ(byte, 7);
}

TEST_F(ColdSnapshotTest, ACloseLetsGoOfWhatIsHeldStill) {
  const TrajectoryId id = Add(kPageRows, kPageRows);
  GoOn();
  ASSERT_OK(CleanAll());
  DropAll();
  const auto held = testing::CoreOf(*database_)->page_source->ColdNow();
  ASSERT_NE(held, nullptr);
  const auto core = testing::CoreOf(*database_);
  engine::TableState& state = *core->AllTables()[0]->state;
  engine::PageWaits waits;
  {
    MutexLock lock(&state.mutex);
    const auto& record = state.trajectories().record(state.trajectories().FindById(id));
    (void)state.frames().PutAside(0, record.head_lpn, &waits);
  }
  ASSERT_OK(database_->Close());
  EXPECT_EQ(core->page_source->ColdNow(), nullptr);
  // As of all calls that a close has come before.
  engine::AsideReader aside(engine::AllOf(waits.aside()));
  EXPECT_STATUS(kCancelled, aside.Get(0), "is closed");
}

}  // namespace
}  // namespace geardb
