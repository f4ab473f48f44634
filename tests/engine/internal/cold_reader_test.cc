// concurrent: engine/internal/cold_reader.h engine/internal/cold_snapshot.h
#include "engine/internal/cold_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "engine/internal/cold_store.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::ColdFrameOf;
using testing::ColdLayout;
using testing::PutColdPage;
using testing::SmallColdOptions;
using testing::TempDir;

constexpr uint64_t kIds = 64;

class ColdReaderConcurrentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(store_, ColdStore::Open(dir_.File("cold"), SmallColdOptions()));
  }

  TempDir dir_;
  std::unique_ptr<ColdStore> store_;
};

TEST_F(ColdReaderConcurrentTest, ACloseWaitsForReadsAndRefusesThoseAfterIt) {
  ColdBatch batch(*store_);
  for (uint64_t id = 0; id < kIds; ++id) {
    ASSERT_OK(PutColdPage({1, 0, 0, id, 0}, {1, 8}, &batch));
  }
  ASSERT_OK(store_->Write(&batch, 1));
  std::atomic<uint64_t> read{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::byte> frame(ColdLayout().frame_bytes());
      for (uint64_t i = t;; ++i) {
        frame.assign(frame.size(), std::byte{0xEE});
        ColdRead one;
        one.key = {1, 0, 0, i % kIds, 0};
        one.layout = &ColdLayout();
        one.frame = frame;
        const Status status = store_->ReadPages({&one, 1});
        if (!status.ok()) {
          EXPECT_STATUS(kFailedPrecondition, status, "is closed");
          return;
        }
        EXPECT_EQ(frame, ColdFrameOf(one.key, one.header));
        read.fetch_add(1);
      }
    });
  }
  while (read.load() < 100) std::this_thread::yield();
  ASSERT_OK(store_->Close());
  for (std::thread& thread : threads) thread.join();
}

// The statuses of one list are its reads' own, in whatever order they lie.
TEST_F(ColdReaderConcurrentTest, EachReadOfAListHasItsOwnOutcome) {
  ColdBatch batch(*store_);
  for (uint64_t id = 0; id < kIds; id += 2) {
    ASSERT_OK(PutColdPage({1, 0, 0, id, 0}, {id, 8}, &batch));
  }
  ASSERT_OK(store_->Write(&batch, 1));
  ASSERT_OK(store_->Flush());
  const std::vector<uint64_t> other_rows = {4, 48, 1, 1000};
  const PageLayout other(other_rows, 8);
  std::vector<std::vector<std::byte>> frames(2 * kIds);
  std::vector<ColdRead> reads(2 * kIds);
  for (size_t i = 0; i < reads.size(); ++i) {
    const uint64_t id = (i * 37) % kIds;  // Each twice, the second time as another layout.
    reads[i].key = {1, 0, 0, id, 0};
    reads[i].layout = i < kIds ? &ColdLayout() : &other;
    frames[i].assign(reads[i].layout->frame_bytes(), std::byte{0xEE});
    reads[i].frame = frames[i];
  }
  EXPECT_STATUS(kNotFound, store_->ReadPages(reads), "number 37 ");
  for (size_t i = 0; i < reads.size(); ++i) {
    const std::string text = "page 0 of number " + std::to_string(reads[i].key.trajectory);
    if (reads[i].key.trajectory % 2 == 1) {
      EXPECT_STATUS(kNotFound, reads[i].status, text);
    } else if (i >= kIds) {
      EXPECT_STATUS(kCorruption, reads[i].status, text);
    } else {
      EXPECT_OK(reads[i].status);
      EXPECT_EQ(frames[i], ColdFrameOf(reads[i].key, reads[i].header));
    }
  }
  const ColdStats stats = store_->stats();
  EXPECT_EQ(stats.pages_read, 2 * kIds);
  EXPECT_EQ(stats.pages_missing, kIds);
  EXPECT_EQ(stats.pages_failed, kIds / 2);
}

TEST_F(ColdReaderConcurrentTest, SnapshotsAreTakenAndLeftBesideWritesAndAClose) {
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<std::byte> frame(ColdLayout().frame_bytes());
      std::shared_ptr<const ColdSnapshot> last;
      for (;;) {
        auto snapshot = store_->Snapshot();
        if (snapshot == nullptr) return;  // `last` goes after the close.
        last = std::move(snapshot);
        taken.fetch_add(1);
        // All pages of a batch are as of one generation.
        uint64_t generation = 0;
        for (const uint64_t id : {uint64_t{0}, kIds - 1}) {
          frame.assign(frame.size(), std::byte{0xEE});
          ColdRead one{.key = {1, 0, 0, id, 0}, .layout = &ColdLayout(), .frame = frame};
          one.as_of = last;
          if (!store_->ReadPages({&one, 1}).ok()) break;  // Not written yet, or closed.
          EXPECT_TRUE(generation == 0 || generation == one.header.generation);
          generation = one.header.generation;
          EXPECT_EQ(frame, ColdFrameOf(one.key, one.header));
        }
      }
    });
  }
  for (uint32_t generation = 1; generation <= 40 || taken.load() < 200; ++generation) {
    ColdBatch batch(*store_);
    for (uint64_t id = 0; id < kIds; ++id) {
      ASSERT_OK(PutColdPage({1, 0, 0, id, 0}, {generation, 8}, &batch));
    }
    ASSERT_OK(store_->Write(&batch, generation));
  }
  ASSERT_OK(store_->Close());
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace geardb::engine
