// Samplers over several tables in many threads: locks in one order, waits that any table ends.
//
// concurrent: engine/internal/change_signal.h engine/internal/sampler_impl.h
// concurrent: engine/internal/sampler_impl.cc engine/internal/hand_over.cc
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::StepSpec;
using testing::WindowSpec;

class SamplerPartsConcurrentTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    CreateBoth();
  }
  void OpenEmptyTables() {
    tables_.clear();
    writers_.clear();
    OpenEmpty();
    CreateBoth();
  }
  void CreateBoth() {
    for (const char* name : {"a", "b"}) {
      TableSpec spec = StepSpec();
      spec.name = name;
      spec.priority_tables = {WindowSpec("per")};
      Create(spec);
      tables_.push_back(table_);
      writers_.push_back(std::move(writer_));
    }
  }
  std::unique_ptr<Sampler> Mix(size_t first, int64_t prefetch = 0) {
    const std::vector<SamplerPart> parts = {
        {.priority_table = tables_[first]->priority_table("per"),
         .share = ShareKind::kFixed,
         .count = 3},
        {.priority_table = tables_[1 - first]->priority_table("per")}};
    auto sampler = database_->NewSampler(
        parts, {.batch = 8, .views = {{.column = "action"}}, .prefetch = prefetch});
    EXPECT_OK(sampler);
    return std::move(*sampler);
  }
  void AppendTo(size_t table) {
    const testing::Rows rows(0, 5);
    EXPECT_OK(writers_[table]->AppendSteps(rows.many(), {.end = End::kTerminated}));
  }
  /// Until a sampler waits.
  void AwaitWaiting() {
    const auto per = tables_[0]->priority_table("per");
    while (per->WhyBlocked().samples.waiting == 0) std::this_thread::yield();
  }
  LimiterStats Limits(size_t table) {
    return tables_[table]->priority_table("per")->Stats().limiter;
  }

  std::vector<std::shared_ptr<Table>> tables_;
  std::vector<std::unique_ptr<Writer>> writers_;
};

TEST_F(SamplerPartsConcurrentTest, ItemsOfTheLastPartEndAWait) {
  for (const size_t last : {size_t{0}, size_t{1}}) {
    OpenEmptyTables();
    AppendTo(1 - last);
    auto sampler = Mix(0);
    Result<Batch> batch = Status::NotFound("");
    std::thread waits([&] { batch = sampler->Next(Deadline::Infinite()); });
    AwaitWaiting();
    AppendTo(last);
    waits.join();
    ASSERT_OK(batch);
    EXPECT_EQ(batch->size(), 8);
    EXPECT_EQ(tables_[0]->priority_table("per")->WhyBlocked().samples.waiting, 0u);
  }
}

TEST_F(SamplerPartsConcurrentTest, ACloseEndsAWait) {
  AppendTo(0);
  auto sampler = Mix(0);
  Status status;
  std::thread waits([&] { status = sampler->Next(Deadline::Infinite()).status(); });
  AwaitWaiting();
  ASSERT_OK(database_->Close());
  waits.join();
  EXPECT_STATUS(kCancelled, status, "closed");
}

TEST_F(SamplerPartsConcurrentTest, SamplersOfOneTableInEitherOrderCountEveryRow) {
  AppendTo(0);
  AppendTo(1);
  constexpr int kBatches = 150;
  std::vector<std::thread> threads;
  for (const size_t first : {size_t{0}, size_t{1}}) {
    threads.emplace_back([&, first] {
      auto sampler = Mix(first, 2);
      for (int i = 0; i < kBatches; ++i) {
        const auto batch = sampler->Next();
        ASSERT_OK(batch);
        ASSERT_EQ(batch->size(), 8);
      }
    });
  }
  std::atomic<bool> done{false};
  threads.emplace_back([&] {
    for (int i = 0; i < 500 && !done; ++i) {  // They fit the frames.
      AppendTo(0);
      AppendTo(1);
      std::this_thread::yield();
    }
  });
  threads[0].join();
  threads[1].join();
  done = true;
  threads[2].join();
  for (const size_t table : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(Limits(table).samples, kBatches * 8u);  // 3 of one order and 5 of the other.
    EXPECT_EQ(Limits(table).reserved, 0u);
  }
}

}  // namespace
}  // namespace geardb
