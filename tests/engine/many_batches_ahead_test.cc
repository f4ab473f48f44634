// More batches wait to be gathered than epochs have slots at once: who drew the next waited for one
// with the table's mutex, which all who gather need.
//
// concurrent: base/epoch.cc engine/internal/sampler_impl.cc
#include <gtest/gtest.h>

#include <thread>

#include "base/epoch.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"
#include "tests/testing/waiting_env.h"

namespace geardb {
namespace {

using ManyBatchesAheadConcurrentTest = testing::WaitingStoreTest;

TEST_F(ManyBatchesAheadConcurrentTest, AreAllGathered) {
  constexpr int64_t kAhead = 2 * EpochRegistry::kBlockReaders + 8;
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {testing::WindowSpec("all")};
  spec.priority_tables[0].selector = SelectorKind::kUniform;
  Create(spec);
  for (int i = 0; i < 1000; ++i) AppendClosed(4 * i, 4);
  ASSERT_GT(testing::DropFrames(*database_), 0u);
  ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      priority("all")->NewSampler({.batch = 1, .views = {{.column = "obs"}}, .prefetch = kAhead}));
  env_.LetRead(0);
  std::thread draws([&] {
    for (int i = 0; i < 3; ++i) EXPECT_OK(sampler->Next());
  });
  while (table_->Stats().frames.misses < kAhead) std::this_thread::yield();
  env_.LetAllRead();
  draws.join();
}

}  // namespace
}  // namespace geardb
