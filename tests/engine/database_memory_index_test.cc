// The index of a live database, seen through its memfd at another address.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "index/prioritized_selector.h"
#include "index/uniform_selector.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class DatabaseMemoryIndexTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    TableSpec spec = StepSpec();
    PriorityTableSpec uniform = WindowSpec("uniform", {.before = 0, .length = 2, .after = 0});
    uniform.selector = SelectorKind::kUniform;
    spec.priority_tables = {WindowSpec("per"), uniform};
    Create(spec);
    for (int64_t t = 0; t < 50; ++t) AppendClosed(100 * t, 5 + t % 7);
    testing::Random random(1);
    for (const RowId& item : priority("per")->Items()) {
      const RowId rows[] = {item};
      const float values[] = {static_cast<float>(random.Below(50))};
      ASSERT_OK(priority("per")->Set(rows, values));
    }
    const TrajectoryId ids[] = {3, 17, 29};
    ASSERT_OK(table_->Remove(ids));
    core_ = testing::CoreOf(*database_);
    state_ = core_->FindTable("steps")->state.get();
    const index::IndexMemory& memory = *core_->index_memory;
    // Read-only, as another process has it.
    void* second = mmap(nullptr, memory.reserve_bytes(), PROT_READ, MAP_SHARED | MAP_NORESERVE,
                        memory.fd(), 0);
    ASSERT_NE(second, MAP_FAILED);
    ASSERT_NE(second, memory.base());
    second_ = static_cast<std::byte*>(second);
  }
  void TearDown() override {
    if (second_ != nullptr) munmap(second_, core_->index_memory->reserve_bytes());
    core_.reset();
    Close();
  }
  /// The leaves that an observer draws through the public face.
  std::vector<uint64_t> DrawByHandle(const std::string& name, uint64_t seed) {
    auto sampler = priority(name)->NewSampler({.batch = 200, .observer = true, .seed = seed});
    EXPECT_OK(sampler);
    const auto batch = (*sampler)->Next();
    EXPECT_OK(batch);
    std::vector<uint64_t> leaves;
    for (const ItemHandle& handle : batch->handles()) leaves.push_back(handle.leaf);
    return leaves;
  }

  std::shared_ptr<engine::DatabaseCore> core_;
  engine::TableState* state_ = nullptr;
  std::byte* second_ = nullptr;
};

TEST_F(DatabaseMemoryIndexTest, SecondAddressGivesTheSameDraws) {
  for (const uint64_t seed : {1u, 2u, 77u}) {
    std::vector<uint64_t> leaves(200);
    const index::PrioritizedView per(second_ + state_->priority(0).prioritized()->offset());
    ASSERT_TRUE(per.Draw({.seed = seed}, leaves, {}));
    EXPECT_EQ(leaves, DrawByHandle("per", seed));
    const auto& selector =
        dynamic_cast<const index::UniformSelector&>(state_->priority(1).selector());
    const index::UniformView uniform(second_ + selector.offset());
    ASSERT_TRUE(uniform.Draw({.seed = seed}, leaves, {}));
    EXPECT_EQ(leaves, DrawByHandle("uniform", seed));
  }
}

TEST_F(DatabaseMemoryIndexTest, SecondAddressResolvesItemsToRows) {
  const index::TrajectoryView trajectories(second_, state_->trajectories().offset());
  const index::PageView pages(second_, state_->pages().offset());
  auto sampler = priority("per")->NewSampler({.batch = 200, .observer = true});
  const auto batch = (*sampler)->Next();
  ASSERT_OK(batch);
  for (size_t i = 0; i < 200; ++i) {
    const ItemHandle& handle = batch->handles()[i];
    const index::PageRecord& page = pages.page(static_cast<Lpn>(handle.leaf / 4));
    EXPECT_EQ(page.generation, handle.generation);
    EXPECT_EQ(trajectories.record(page.slot).id, batch->trajectory_ids()[i]);
    EXPECT_EQ(page.page_number * 4 + handle.leaf % 4, static_cast<uint64_t>(batch->anchors()[i]));
    EXPECT_EQ(trajectories.FindById(batch->trajectory_ids()[i]), page.slot);
  }
}

TEST_F(DatabaseMemoryIndexTest, ChangesAreSeenAtTheSecondAddress) {
  const index::PrioritizedView per(second_ + state_->priority(0).prioritized()->offset());
  const uint64_t count = per.count();
  EXPECT_EQ(count, priority("per")->Count());
  AppendClosed(0, 5);
  EXPECT_EQ(per.count(), count + 5);
}

}  // namespace
}  // namespace geardb
