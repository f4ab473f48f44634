// Scans over values of any length whose column is dropped meanwhile, and comes again as another one
// of that name.
//
// concurrent: engine/internal/table_scan.cc engine/internal/table_read.cc
#include <gtest/gtest.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"
#include "tests/testing/waiting_env.h"

namespace geardb {
namespace {

constexpr int64_t kScannedWidth = 20;  // More than a small column of a trajectory has.
constexpr std::string_view kScanned = "value[3]";

Column ScannedColumn(ColumnKind kind) {
  return {.name = "value", .shape = {kScannedWidth}, .kind = kind};
}

TableSpec RowsAlone() {
  TableSpec spec;
  spec.name = "rows";
  spec.columns = {{.name = "row", .dtype = DType::kI64}};
  spec.steps_per_page = 4;
  return spec;
}

Status ScanValue(const Table& table, bool histogram) {
  if (!histogram) return table.Statistics(kScanned).status();
  return table.Histogram(kScanned, {.count = 4, .low = 0, .high = 8}).status();
}

/// A column of one kind, which comes again as another.
struct ScannedKinds {
  ColumnKind before;
  ColumnKind after;
  bool histogram;
};

class ScanOfDroppedConcurrentTest : public testing::WaitingStoreTest,
                                    public ::testing::WithParamInterface<ScannedKinds> {
 protected:
  void AppendValue(ColumnKind kind) {
    const std::vector<float> value(kScannedWidth, 5);
    const bool wide = kind == ColumnKind::kPerTrajectory;
    const Shape shape = wide ? Shape({kScannedWidth}) : Shape({1, kScannedWidth});
    const ColumnValue given{"value", TensorView(value.data(), DType::kF32, shape)};
    const int64_t number = 7;
    std::vector<ColumnValue> row = {{"row", TensorView::Scalar(number)}};
    std::vector<ColumnValue> whole;
    (kind == ColumnKind::kRagged ? row : whole).push_back(given);
    ASSERT_OK(writer_->Append(row, {.end = End::kTerminated, .trajectory = whole}));
  }
  /// Their pages have to be read; those of the steps do not.
  uint64_t DropPagesOfValues() {
    const auto core = testing::CoreOf(*database_);
    EXPECT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
    uint64_t dropped = 0;
    for (const auto& table : core->AllTables()) {
      if (!table->is_companion) continue;
      MutexLock lock(&table->state->mutex);
      const uint64_t pages = table->state->pages().reserved();
      dropped += table->state->frames()
                     .Drop({.frames = pages, .log = core->readable_log(), .looks_max = 2 * pages})
                     .dropped;
    }
    return dropped;
  }
  Status ComeAgain(ColumnKind kind) {
    const std::string_view name = "value";
    GEARDB_RETURN_IF_ERROR(table_->DropColumns({&name, 1}));
    const Column column = ScannedColumn(kind);
    return table_->AddColumns({&column, 1});
  }
};

// It went on by the name, and read rows of the other column as if they were values of its own.
TEST_P(ScanOfDroppedConcurrentTest, SaysThatItIsGone) {
  TableSpec spec = RowsAlone();
  spec.columns.push_back(ScannedColumn(GetParam().before));
  Create(spec);
  for (int i = 0; i < 3; ++i) AppendValue(GetParam().before);
  ASSERT_OK(ScanValue(*table_, GetParam().histogram));
  ASSERT_GE(DropPagesOfValues(), 3u);
  env_.LetRead(0);
  Status scanned;
  std::thread scan([&] { scanned = ScanValue(*table_, GetParam().histogram); });
  const Deadline deadline = Deadline::AfterMs(60'000);
  while (!env_.HeldUp() && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(env_.HeldUp());
  EXPECT_OK(ComeAgain(GetParam().after));
  env_.LetAllRead();
  scan.join();
  EXPECT_STATUS(kNotFound, scanned, "value");
  EXPECT_OK(ScanValue(*table_, GetParam().histogram));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ScanOfDroppedConcurrentTest,
    ::testing::Values(ScannedKinds{ColumnKind::kRagged, ColumnKind::kPerStep, false},
                      ScannedKinds{ColumnKind::kRagged, ColumnKind::kPerStep, true},
                      ScannedKinds{ColumnKind::kBlob, ColumnKind::kPerTrajectory, false},
                      ScannedKinds{ColumnKind::kPerTrajectory, ColumnKind::kBlob, true}));

using ScanBesideChangesConcurrentTest = testing::StoreTest;

// It crashed, in most runs of a few seconds.
TEST_F(ScanBesideChangesConcurrentTest, FindsFiguresOrNoColumn) {
  constexpr ColumnKind kKinds[] = {ColumnKind::kRagged, ColumnKind::kPerStep, ColumnKind::kBlob,
                                   ColumnKind::kPerTrajectory};
  Create(RowsAlone());
  const std::vector<int64_t> rows(4, 7);
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK(writer_->AppendTrajectory({{"row", TensorView::Of(std::span<const int64_t>(rows))}},
                                        {.end = End::kTerminated}));
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> scans;
  for (const bool histogram : {false, true}) {
    scans.emplace_back([&, histogram] {
      while (!stop.load()) {
        const StatusCode code = ScanValue(*table_, histogram).code();
        EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kNotFound)
            << static_cast<int>(code);
      }
    });
  }
  const std::string_view name = "value";
  for (size_t round = 0; round < 32; ++round) {
    const Column column = ScannedColumn(kKinds[round % 4]);
    EXPECT_OK(table_->AddColumns({&column, 1}));
    EXPECT_OK(table_->DropColumns({&name, 1}));
  }
  stop.store(true);
  for (std::thread& scan : scans) scan.join();
}

}  // namespace
}  // namespace geardb
