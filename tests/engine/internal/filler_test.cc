// Filler: large appends at `memory` ack, whose calls return before their records are filled.
//
// concurrent: engine/internal/filler.h engine/internal/filler.cc

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

constexpr int64_t kRows = 20'000;  // 320 KB and more.

class FillerConcurrentTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.ring_bytes = 8 << 20;
    options_.segment_bytes = 8 << 20;
    Open();
    TableSpec spec = StepSpec();
    spec.steps_per_page = 256;
    spec.priority_tables = {WindowSpec("per")};
    Create(spec, {.lanes = 2});
  }

  /// Rows numbered first, first + 1, … at `memory` ack.
  Appended AppendLarge(int64_t first, End end = End::kTerminated, uint32_t lane = 0) {
    const Rows rows(first, kRows);
    const auto appended =
        writer_->AppendSteps(rows.many(), {.lane = lane, .end = end, .ack = Ack::kMemory});
    EXPECT_TRUE(appended.ok()) << appended.status().ToString();
    return appended.ok() ? *appended : Appended{};
  }

  void ExpectNumbers(TrajectoryId id, int64_t first, int64_t count) {
    EXPECT_EQ(Numbers(id), testing::Count(static_cast<int32_t>(first), static_cast<int32_t>(count)))
        << "trajectory " << id;
  }
};

TEST_F(FillerConcurrentTest, RowsAreThereOnceTheirTicketIsWaitedFor) {
  Appended last;
  for (int64_t i = 0; i < 20; ++i) last = AppendLarge(i * kRows);
  ASSERT_OK(database_->Wait(Ticket{last.end_lsn}, Ack::kLog));
  EXPECT_EQ(table_->Count(), 20u);
  EXPECT_EQ(priority("per")->Count(), static_cast<uint64_t>(20 * kRows));
  for (int64_t i = 0; i < 20; ++i)
    ExpectNumbers(static_cast<TrajectoryId>(i + 1), i * kRows, kRows);
}

TEST_F(FillerConcurrentTest, CloseLosesNothingThatWasAdmitted) {
  for (int64_t i = 0; i < 12; ++i) AppendLarge(i * kRows, i % 3 == 2 ? End::kTerminated : End::kGo);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    ExpectNumbers(static_cast<TrajectoryId>(i + 1), 3 * i * kRows, 3 * kRows);
  }
}

TEST_F(FillerConcurrentTest, TheirPrioritiesMayBeSetAtOnce) {
  for (int64_t i = 0; i < 20; ++i) {
    const Appended appended = AppendLarge(i * kRows);
    const RowId rows[] = {{appended.id, 5}, {appended.id, -1}};
    const float values[] = {3, 4};
    const auto outcome = priority("per")->Set(rows, values);
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->applied, 2u);
    EXPECT_EQ(outcome->stale, 0u);
    const auto last = priority("per")->Priority({appended.id, kRows - 1});
    ASSERT_OK(last);
    EXPECT_EQ(*last, 4.0f);
  }
}

TEST_F(FillerConcurrentTest, AllPrioritiesMayBeSetAtOnce) {
  for (int64_t i = 0; i < 10; ++i) {
    AppendLarge(i * kRows);
    const std::vector<float> values(static_cast<size_t>((i + 1) * kRows), 2.0f);
    const auto outcome = priority("per")->SetAll(values);
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->applied, values.size());
  }
}

TEST_F(FillerConcurrentTest, ALaterAcknowledgedRowIsNotAheadOfThem) {
  for (int64_t i = 0; i < 30; ++i) {
    AppendLarge(i * kRows);
    Append(-1 - i, 1, End::kTerminated, 1);  // At `log` ack.
    EXPECT_EQ(table_->Count(), static_cast<uint64_t>(2 * i + 2));
    EXPECT_EQ(table_->StepCount(), static_cast<uint64_t>((i + 1) * (kRows + 1)));
  }
}

TEST_F(FillerConcurrentTest, FramesOfRemovedTrajectoriesGoToOthersOnlyAfterTheirRecords) {
  for (int64_t i = 0; i < 40; ++i) {
    const Appended gone = AppendLarge(i * kRows, End::kGo, 1);
    const TrajectoryId ids[] = {gone.id};
    ASSERT_OK(table_->Remove(ids));
    EXPECT_STATUS(kNotFound, writer_->Cut(1), "was removed");
    AppendLarge(i * kRows);
  }
  Reopen();
  // A record filled from frames that somebody else has filled again would hold other rows.
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 40u);
  const std::vector<TrajectoryId> ids = [this] {
    std::vector<TrajectoryId> found;
    for (const TrajectoryRecord& record : table_->Scan({})) found.push_back(record.id);
    return found;
  }();
  ASSERT_EQ(ids.size(), 40u);
  for (size_t i = 0; i < ids.size(); ++i) {
    ExpectNumbers(ids[i], static_cast<int64_t>(i) * kRows, kRows);
  }
}

TEST_F(FillerConcurrentTest, ATableMayBeDroppedBehindThem) {
  for (int round = 0; round < 5; ++round) {
    for (int64_t i = 0; i < 6; ++i) AppendLarge(i * kRows);
    ASSERT_OK(database_->DropTable("steps"));
    TableSpec spec = StepSpec();
    spec.steps_per_page = 256;
    Create(spec, {.lanes = 2});
    EXPECT_EQ(table_->Count(), 0u);
  }
  AppendLarge(7);
  Reopen();
  OpenAgain("steps");
  ExpectNumbers(1, 7, kRows);
}

TEST_F(FillerConcurrentTest, WritersOfAllAcknowledgementsTogether) {
  constexpr int64_t kCalls = 12;
  const std::vector<Ack> acks = {Ack::kMemory, Ack::kMemory, Ack::kLog, Ack::kSync};
  std::vector<std::thread> threads;
  for (size_t w = 0; w < acks.size(); ++w) {
    threads.emplace_back([&, w] {
      auto writer = table_->NewWriter({});
      ASSERT_OK(writer);
      for (int64_t call = 0; call < kCalls; ++call) {
        const Rows rows((static_cast<int64_t>(w) * kCalls + call) * kRows, kRows);
        ASSERT_OK((*writer)->AppendSteps(rows.many(), {.end = End::kTerminated, .ack = acks[w]}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Reopen();
  OpenAgain("steps");
  std::vector<bool> found(acks.size() * kCalls, false);
  for (const TrajectoryRecord& record : table_->Scan({})) {
    const std::vector<int32_t> numbers = Numbers(record.id);
    ASSERT_EQ(numbers.size(), static_cast<size_t>(kRows));
    ExpectNumbers(record.id, numbers[0], kRows);
    found.at(static_cast<size_t>(numbers[0] / kRows)) = true;
  }
  EXPECT_EQ(std::count(found.begin(), found.end(), true), static_cast<ptrdiff_t>(found.size()));
}

}  // namespace
}  // namespace geardb
