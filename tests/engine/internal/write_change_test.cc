// A batch shows in all its tables at one moment.
#include "engine/internal/write_change.h"

#include <atomic>
#include <thread>

#include "tests/engine/write_batch_fixture.h"

namespace geardb {
namespace {

using WriteChangeConcurrentTest = WriteBatchTest;

TEST_F(WriteChangeConcurrentTest, WhoHoldsTwoTablesSeesABatchInBothOrInNeither) {
  constexpr uint64_t kBatches = 200;
  constexpr uint64_t kLooks = 20;
  const auto core = testing::CoreOf(*database_);
  // In the order of their ids: "b" was created first.
  engine::TableState* const b = core->FindTable("b")->state.get();
  engine::TableState* const a = core->FindTable("a")->state.get();
  ASSERT_LT(b->layout().id(), a->layout().id());
  std::atomic<bool> done{false};
  std::atomic<uint64_t> looks{0};
  std::thread reader([&] {
    for (bool last = false; !last; ++looks) {
      last = done.load();
      uint64_t rows_of_a = 0;
      {
        // One after the other: the second shows at least what the first did.
        MutexLock lock(&a->mutex);
        rows_of_a = a->rows();
      }
      MutexLock lock_b(&b->mutex);
      EXPECT_GE(b->rows(), rows_of_a);
      MutexLock lock_a(&a->mutex);
      EXPECT_EQ(b->rows(), a->rows());
      EXPECT_EQ(b->applied_end, a->applied_end);
    }
  });
  const testing::Rows rows(0, 3);
  uint64_t batches = 0;
  for (; batches < kBatches || looks.load() < kLooks; ++batches) {
    WriteBatch batch;
    batch.AppendTrajectory(writer_.get(), rows.many(), {.end = End::kCut});
    batch.AppendTrajectory(b_writer_.get(), rows.many(), {.end = End::kCut});
    ASSERT_OK(database_->Write(batch));
  }
  done.store(true);
  reader.join();
  EXPECT_EQ(table_->Count(), batches);
}

}  // namespace
}  // namespace geardb
