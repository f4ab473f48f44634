// Pages that come and go under everybody's hands: a writer, samplers, readers, patches, somebody
// who drops all that can be dropped, and the cleaner, all at once.
// concurrent: engine/internal/table_frames.h engine/internal/page_loader.h
// concurrent: engine/internal/page_loader.cc engine/internal/page_source.h
// concurrent: engine/internal/evictor.h engine/internal/evictor.cc engine/internal/cleaner.h
// concurrent: engine/internal/cleaner.cc engine/internal/cold_tier.h wal/log_bytes.h
#include <atomic>
#include <thread>

#include "tests/engine/frames_fixture.h"
#include "wal/log_bytes.h"

namespace geardb {
namespace {

class TableFramesConcurrentTest : public FramesTest {
 protected:
  void SetUp() override {
    options_.log_bytes_max = 8 << 20;
    FramesTest::SetUp();
    for (int i = 0; i < 100; ++i) Add(2 + i % 9, 1 + i % 4);
  }

  /// Batches show what was stored, until `stop_`.
  void Draw(int64_t prefetch) {
    const auto priority = table_->OpenPriorityTable("all");
    ASSERT_OK(priority);
    const auto sampler = (*priority)->NewSampler(
        {.batch = 16, .views = {{.column = "frame"}, {.column = "reward"}}, .prefetch = prefetch});
    ASSERT_OK(sampler);
    while (!stop_.load()) {
      const auto batch = (*sampler)->Next();
      ASSERT_OK(batch);
      const auto bytes = (*batch)["frame"].values<uint8_t>();
      const auto rewards = (*batch)["reward"].values<float>();
      for (size_t item = 0; item < 16; ++item) {
        // The number of a trajectory is in its rewards.
        const int64_t row = batch->anchors()[item];
        const auto number = (static_cast<int64_t>(rewards[item * 2]) - row) / 100;
        for (int64_t at = 0; at < kFrameBytes; at += 97) {
          ASSERT_EQ(bytes[item * 2 * kFrameBytes + static_cast<size_t>(at)],
                    ByteOf(number, row, at));
        }
      }
      batches_.fetch_add(1);
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> batches_{0};
};

TEST_F(TableFramesConcurrentTest, EverybodySeesWhatWasStored) {
  std::vector<std::thread> threads;
  threads.emplace_back([this] { Draw(0); });
  threads.emplace_back([this] { Draw(3); });
  threads.emplace_back([this] {
    while (!stop_.load()) DropAll();
  });
  threads.emplace_back([this] {
    while (!stop_.load()) {
      const Status status = testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true);
      ASSERT_OK(status);
    }
  });
  // This thread appends, removes and reads.
  for (int round = 0; round < 60 || batches_.load() < 40; ++round) {
    const TrajectoryId id = Add(2 + round % 9, 1 + round % 5);
    const std::string_view column = "frame";
    const auto rows = table_->Read(id, {&column, 1}, {});
    ASSERT_OK(rows);
    ExpectRow(id, 0, (*rows)[0].view().values<uint8_t>().data());
    if (round % 3 == 0) {
      const TrajectoryId oldest = numbers_.begin()->first;
      numbers_.erase(oldest);
      ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{oldest}));
    }
  }
  stop_.store(true);
  for (std::thread& thread : threads) thread.join();
  ExpectAll();
  Again();
  ExpectAll();
}

TEST_F(TableFramesConcurrentTest, ATableGoesWhenTheThreadsAreDoneWithItsPages) {
  for (int round = 0; round < 100; ++round) {
    TableSpec spec = FrameSpec();
    spec.name = "short";
    spec.groups.clear();  // Frames of defaults want slabs of their own, which pages hold.
    spec.columns.pop_back();
    ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
    numbers_.clear();
    for (int i = 0; i < 4; ++i) Add(4, 4);
    DropAll();
    ExpectAll();
    writer_.reset();
    ASSERT_OK(database_->DropTable("short"));
    table_.reset();
  }
}

}  // namespace
}  // namespace geardb
