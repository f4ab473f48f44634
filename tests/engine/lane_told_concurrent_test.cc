// A batch waits, and meanwhile the trajectory that it appends to leaves, and another that it names.
// It says so of the latter: the lane was free then, though nobody had been told, and the next
// append went into another trajectory.
//
// concurrent: engine/internal/write_call.cc engine/internal/append_limits.cc
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/write_batch.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;

/// A queue of two items, which the first row of each of two lanes fills.
class LaneToldConcurrentTest : public testing::StoreTest {
 protected:
  void CreateQueue(TableSpec spec) {
    spec.priority_tables = {testing::WindowSpec("queue")};
    spec.priority_tables[0].selector = SelectorKind::kFifo;
    spec.priority_tables[0].limiter = {.kind = LimiterKind::kQueue, .capacity = 2};
    Create(spec, {.lanes = 2});
  }
  void FillQueue() {
    CreateQueue(testing::StepSpec());
    appended_ = Append(0, 1, End::kGo, 0).id;
    named_ = Append(1, 1, End::kGo, 1).id;
  }
  /// The batch appends to `appended_`, and names `named_`: both leave while it waits.
  void ExpectToldOfNamed(const WriteBatch& batch) {
    PriorityTable* const queue = priority("queue");
    std::atomic<bool> returned{false};
    std::thread writes([&] {
      EXPECT_STATUS(kNotFound, database_->Write(batch, {.admission_timeout_ms = 60'000}),
                    "has no trajectory " + std::to_string(named_));
      returned = true;
    });
    while (!returned && queue->WhyBlocked().inserts.waiting == 0) std::this_thread::yield();
    const TrajectoryId both[] = {appended_, named_};
    EXPECT_OK(table_->Remove(both));
    writes.join();
  }
  std::string RemovedText() const {
    return "trajectory " + std::to_string(appended_) + " of table 'steps' was removed";
  }
  void ExpectLaneTold() {
    const Rows rows(5, 1);
    EXPECT_STATUS(kNotFound, writer_->AppendSteps(rows.many()), RemovedText());
    const Appended next = Append(6, 1);
    EXPECT_EQ(next.first_row, 0);
    EXPECT_EQ(Numbers(next.id), testing::Count(6, 1));
  }
  /// `row` with a value of any length.
  static std::vector<ColumnValue> WithText(const Rows& row, std::string_view text) {
    std::vector<ColumnValue> values = row.one();
    const Shape shape({static_cast<int64_t>(text.size())});
    values.push_back({"text", TensorView(text.data(), DType::kU8, shape)});
    return values;
  }
  Result<Appended> AppendText(std::string_view text, uint32_t lane = 0) {
    const Rows row(0, 1);
    return writer_->Append(WithText(row, text), {.lane = lane});
  }

  TrajectoryId appended_ = 0;  // On lane 0.
  TrajectoryId named_ = 0;     // On lane 1.
};

TEST_F(LaneToldConcurrentTest, BehindABatchThatRemovesAnother) {
  FillQueue();
  const Rows rows(2, 1);
  WriteBatch batch;
  batch.AppendSteps(writer_.get(), rows.many());
  batch.Remove(table_, {&named_, 1});
  ExpectToldOfNamed(batch);
  ExpectLaneTold();
}

TEST_F(LaneToldConcurrentTest, BehindABatchThatSetsColumnsOfAnother) {
  FillQueue();
  const Rows rows(2, 1);
  const uint32_t version = 4;
  const ColumnValue set[] = {{"version", TensorView::Scalar(version)}};
  WriteBatch batch;
  batch.AppendSteps(writer_.get(), rows.many());
  batch.SetColumns(table_, named_, set);
  ExpectToldOfNamed(batch);
  ExpectLaneTold();
}

TEST_F(LaneToldConcurrentTest, BehindABatchWithValuesOfAnyLength) {
  TableSpec spec = testing::StepSpec();
  spec.columns.push_back(
      {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged, .expected_rows = 30});
  CreateQueue(spec);
  ASSERT_OK_AND_ASSIGN(const Appended first, AppendText("first", 0));
  ASSERT_OK_AND_ASSIGN(const Appended second, AppendText("second", 1));
  appended_ = first.id;
  named_ = second.id;
  const Rows row(2, 1);
  const std::vector<ColumnValue> values = WithText(row, "third");
  WriteBatch batch;
  batch.Append(writer_.get(), values);
  batch.Remove(table_, {&named_, 1});
  ExpectToldOfNamed(batch);
  EXPECT_STATUS(kNotFound, AppendText("fourth"), RemovedText());
  ASSERT_OK_AND_ASSIGN(const Appended next, AppendText("fifth"));
  EXPECT_EQ(next.first_row, 0);
  ASSERT_OK(AppendText("sixth row"));
  const std::string_view column = "text";
  ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(next.id, {&column, 1}, {}));
  const auto bytes = read[0].view().values<uint8_t>();
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "fifthsixth row");
  EXPECT_EQ(read[0].offsets, (std::vector<int64_t>{0, 5, 14}));
}

}  // namespace
}  // namespace geardb
