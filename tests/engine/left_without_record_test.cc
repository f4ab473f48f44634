// Trajectories that a writer left while the log had no room for the record that says so: they stay
// open for whoever looks, and are orphans for whoever takes them. They were nobody's until the next
// open.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/internal/change_scope.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/hand_clock.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class LeftWithoutRecordTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.background = false;
    options_.clock = &clock_;
    options_.ring_bytes = 256 << 10;
    options_.segment_bytes = 256 << 10;
    Open();
  }
  void TearDown() override {  // The clock goes first.
    writer_.reset();
    Close();
  }
  void PassMs(int64_t ms) { clock_.now_us += ms * 1000; }
  /// Reserves all of the log's ring, and fills none of it.
  void TakeRing() {
    const auto core = testing::CoreOf(*database_);
    const auto table = core->TableById(table_->id());
    const engine::CommitOptions now{.urgency = wal::Urgency::kReserve, .deadline = Deadline::Now()};
    for (;;) {
      auto change = std::make_unique<engine::FunctionChange>([](Lsn, Lsn) {});
      engine::ChangeScope scope(core.get(), table.get(), now);
      change->FinishBody(
          {.table = table->layout().id()}, engine::fb::Change::Ranges,
          engine::fb::CreateRanges(change->body, table->plan->promised_ids_end,
                                   static_cast<uint32_t>(table->plan->promised_generations_end))
              .Union());
      const wal::RecordSize size = wal::RecordSize::For(change->body_bytes().size(), {});
      bool waited = false;
      if (!scope.AwaitRoom({&size, 1}, now, &waited).ok()) return;
      held_.emplace_back(scope.Reserve({.size = size}), std::move(change));
    }
  }
  void GiveRingBack() {
    const auto core = testing::CoreOf(*database_);
    for (const auto& [reservation, change] : held_) core->Finish(reservation, {}, change.get());
    ASSERT_OK(core->CatchUp());
    held_.clear();
  }
  /// The writer goes, and nothing says that it left anything.
  void LeaveUnsaid() {
    TakeRing();
    writer_.reset();
    GiveRingBack();
  }
  void MakeWriter() { ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({})); }
  TrajectoryState StateOf(TrajectoryId id) { return table_->Find(id)->state; }

  testing::HandClock clock_;
  std::vector<std::pair<wal::Reservation, std::unique_ptr<engine::FunctionChange>>> held_;
};

TEST_F(LeftWithoutRecordTest, IsResumed) {
  Create(testing::StepSpec(), {.admission_timeout_ms = 0});
  const TrajectoryId id = Append(0, 5).id;
  LeaveUnsaid();
  EXPECT_EQ(StateOf(id), TrajectoryState::kOpen);
  MakeWriter();
  ASSERT_OK(writer_->Resume(id));
  EXPECT_EQ(table_->Stats().open_trajectories, 1u);
  ASSERT_OK_AND_ASSIGN(const auto other, table_->NewWriter({}));
  EXPECT_STATUS(kFailedPrecondition, other->Resume(id), "another writer has it");
  Append(5, 4, End::kTerminated);
  EXPECT_EQ(table_->Stats().open_trajectories, 0u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(id), testing::Count(0, 9));
  EXPECT_EQ(StateOf(id), TrajectoryState::kClosed);
}

TEST_F(LeftWithoutRecordTest, IsClosedWhenItsTimeHasCome) {
  Create(testing::StepSpec(), {.lanes = 2, .admission_timeout_ms = 0});
  const TrajectoryId id = Append(0, 5).id;
  PassMs(5000);
  LeaveUnsaid();
  MakeWriter();
  const TrajectoryId open = Append(20, 1).id;
  EXPECT_EQ(*table_->CloseOrphans(1000), 0u) << "its writer has just left";
  PassMs(1000);
  EXPECT_EQ(*table_->CloseOrphans(1000), 1u);
  EXPECT_EQ(StateOf(id), TrajectoryState::kClosed);
  EXPECT_EQ(StateOf(open), TrajectoryState::kOpen);
}

TEST_F(LeftWithoutRecordTest, GoesOnWithItsValuesOfAnyLength) {
  TableSpec spec = testing::StepSpec();
  spec.columns.push_back({.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged});
  Create(spec, {.admission_timeout_ms = 0});
  TrajectoryId id = 0;
  const auto append = [&](int64_t row) {
    const testing::Rows rows(row, 1);
    const std::vector<uint8_t> text(static_cast<size_t>(3 + row), static_cast<uint8_t>(row));
    std::vector<ColumnValue> values = rows.one();
    values.push_back({"text", TensorView::Of(std::span<const uint8_t>(text))});
    ASSERT_OK_AND_ASSIGN(const Appended appended, writer_->Append(values));
    id = appended.id;
  };
  for (int64_t row = 0; row < 6; ++row) append(row);
  LeaveUnsaid();
  MakeWriter();
  ASSERT_OK(writer_->Resume(id));
  for (int64_t row = 6; row < 12; ++row) append(row);
  for (int open = 0; open < 2; ++open) {
    EXPECT_EQ(Numbers(id), testing::Count(0, 12));
    const std::string_view text = "text";
    ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(id, {&text, 1}, {}));
    const std::vector<std::byte>& bytes = rows[0].bytes;
    size_t at = 0;
    for (uint8_t row = 0; row < 12; ++row) {
      for (int i = 0; i < 3 + row; ++i) EXPECT_EQ(bytes.at(at++), std::byte{row});
    }
    EXPECT_EQ(at, bytes.size());
    Reopen();
    OpenAgain("steps");
  }
}

// The old writer went on in the frame of the column that left; who takes over does not.
TEST_F(LeftWithoutRecordTest, GivesBackTheFrameOfAColumnThatLeft) {
  Create(testing::StepSpec(), {.admission_timeout_ms = 0});
  Column late{.name = "late", .dtype = DType::kF32, .shape = {64}};
  ASSERT_OK(table_->AddColumns({&late, 1}));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.admission_timeout_ms = 0}));
  const testing::Rows rows(0, 2);
  const std::vector<float> values(2 * 64, 1.0f);
  std::vector<ColumnValue> all = rows.many();
  all.push_back({"late", TensorView(values.data(), DType::kF32, {2, 64})});
  ASSERT_OK_AND_ASSIGN(const Appended appended, writer_->AppendSteps(all));
  const auto frame_bytes = [&] {
    const auto core = testing::CoreOf(*database_);
    const auto table = core->TableById(table_->id());
    MutexLock lock(&table->state->mutex);
    return table->state->frame_bytes();
  };
  const std::string_view name = "late";
  ASSERT_OK(table_->DropColumns({&name, 1}));
  const uint64_t held = frame_bytes();
  LeaveUnsaid();
  MakeWriter();
  ASSERT_OK(writer_->Resume(appended.id));
  EXPECT_LT(frame_bytes(), held);
}

}  // namespace
}  // namespace geardb
