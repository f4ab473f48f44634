// Images that are taken while others append, draw, set priorities and remove.
// concurrent: engine/internal/table_image.h engine/internal/table_image.cc
// concurrent: engine/internal/database_image.h engine/internal/database_image.cc
// concurrent: engine/internal/image_copy.h
#include <atomic>
#include <thread>

#include "tests/engine/internal/image_fixture.h"

namespace geardb::engine {
namespace {

using testing::ImageChunks;
using testing::ImageCore;

class TableImageConcurrentTest : public ImageFixture {
 protected:
  void Append() {
    auto writer = table_->NewWriter({.admission_timeout_ms = 60'000});
    ASSERT_OK(writer);
    for (int64_t k = 0; !stop_.load(); k += 3) {
      const testing::Rows rows(k, 3);
      ASSERT_OK((*writer)->AppendTrajectory(rows.many(), {.end = End::kTerminated}));
      ++changes_;
    }
  }
  void Draw() {
    auto sampler = priority("per")->NewSampler({.batch = 2, .views = {{.column = "obs"}}});
    ASSERT_OK(sampler);
    while (!stop_.load()) {
      const auto batch = (*sampler)->Next();
      ASSERT_OK(batch);
      const std::vector<float> values(batch->handles().size(), 2.5f);
      ASSERT_OK(priority("per")->Set(batch->handles(), values));
      ++changes_;
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> changes_{0};
};

TEST_F(TableImageConcurrentTest, EachIsOfOneMoment) {
  TableSpec spec = testing::StepSpec();
  spec.trajectories_max = 300;
  PriorityTableSpec per = testing::WindowSpec("per");
  per.max_times_sampled = 100;
  spec.priority_tables = {per};
  spec.priority_tables[0].remove_when_exhausted = false;
  Create(spec);
  AppendClosed(0, 5);
  priority("per");  // Opened before the threads ask for it.
  std::vector<std::thread> threads;
  threads.emplace_back([this] { Append(); });
  threads.emplace_back([this] { Draw(); });
  for (int i = 0; i < 15; ++i) {
    // Something has changed since the last one.
    const uint64_t seen = changes_.load();
    while (changes_.load() == seen && !HasFailure()) std::this_thread::yield();
    const auto core = testing::CoreOf(*database_);
    std::unique_ptr<DatabaseImage> image;
    {
      MutexLock lock(&core->commit);
      EXPECT_OK(core->CatchUp());
      lsn_ = core->log->end();
      image = std::make_unique<DatabaseImage>(core.get(), lsn_);
    }
    ImageChunks chunks;
    while (!image->done()) EXPECT_OK(image->GiveNext(chunks.sink()));
    ImageCore loaded;
    EXPECT_OK(loaded.Load(chunks, lsn_));
    ImageChunks again;
    EXPECT_OK(loaded.Save(lsn_, &again));
    EXPECT_EQ(again.chunks, chunks.chunks);
    if (HasFailure()) break;
  }
  stop_.store(true);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace geardb::engine
