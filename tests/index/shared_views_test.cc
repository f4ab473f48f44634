// Everything in index memory is reached by offsets: the same bytes serve at a second address, and
// as a copy in a process that no longer maps the first.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "index/page_table.h"
#include "index/prioritized_selector.h"
#include "index/trajectory_index.h"
#include "index/uniform_selector.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

constexpr uint64_t kBytes = uint64_t{16} << 20;
constexpr size_t kRows = 500;
constexpr uint32_t kPages = 400;

/// What a reader sees, in one flat block that goes through a pipe.
struct Seen {
  uint64_t uniform[kRows];
  uint64_t prioritized[kRows];
  double probability[kRows];
  Lpn pages[kPages];
  Slot slots[100];
  uint64_t rows_end[100];
};

class IndexSharedViewsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto memory = IndexMemory::Create({.budget_bytes = kBytes, .reserve_bytes = kBytes});
    ASSERT_OK(memory);
    memory_ = std::move(memory).value();
    ASSERT_OK_AND_ASSIGN(uniform_, UniformSelector::Create(memory_.get(), "u", 50'000));
    ASSERT_OK_AND_ASSIGN(
        prioritized_,
        PrioritizedSelector::Create(memory_.get(), "p", {.leaf_capacity = 50'000, .alpha = 0.6}));
    ASSERT_OK_AND_ASSIGN(trajectories_,
                         TrajectoryIndex::Create(memory_.get(), "t", {.slot_capacity = 10'000}));
    ASSERT_OK_AND_ASSIGN(pages_,
                         PageTable::Create(memory_.get(), "pages", {.lpn_capacity = 10'000}));
    ASSERT_OK(uniform_->Reserve(40'000));
    ASSERT_OK(prioritized_->Reserve(40'000));
    ASSERT_OK(trajectories_->Reserve(50));
    ASSERT_OK(trajectories_->Reserve(5'000));  // The hash has moved.
    ASSERT_OK(pages_->Reserve(1000));
    std::mt19937_64 random(1);
    for (uint64_t leaf = 0; leaf < 40'000; ++leaf) {
      if (random() % 2 == 0) continue;
      uniform_->Insert(LeafRange{leaf, leaf + 1}, 1);
      prioritized_->Insert(LeafRange{leaf, leaf + 1}, static_cast<float>(random() % 100));
    }
    for (Slot slot = 0; slot < 100; ++slot) {
      trajectories_->Insert({.slot = slot * 7, .generation = 1, .id = slot + 1000}).rows_end = slot;
    }
    for (uint32_t k = 0; k < kPages; ++k) {
      pages_->Append({.lpn = (k * 7) % 1000, .slot = 3, .generation = k, .page_number = k}, &list_);
    }
    for (int i = 0; i < 30; ++i) pages_->UnlinkHead(&list_);
  }

  /// Reads everything through views alone; `base` is where the index lies.
  Seen Look(std::byte* base) const {
    Seen seen = {};
    const UniformView uniform(base + uniform_->offset());
    const PrioritizedView prioritized(base + prioritized_->offset());
    const TrajectoryView trajectories(base, trajectories_->offset());
    const PageView pages(base, pages_->offset());
    uniform.Draw({.seed = 1}, seen.uniform, {});
    prioritized.Draw({.seed = 2}, seen.prioritized, seen.probability);
    for (uint32_t k = 0; k < kPages; ++k) seen.pages[k] = pages.Find(list_, k);
    for (uint64_t i = 0; i < 100; ++i) {
      seen.slots[i] = trajectories.FindById(1000 + i);
      seen.rows_end[i] = trajectories.record(seen.slots[i]).rows_end;
    }
    return seen;
  }

  std::unique_ptr<IndexMemory> memory_;
  std::unique_ptr<UniformSelector> uniform_;
  std::unique_ptr<PrioritizedSelector> prioritized_;
  std::unique_ptr<TrajectoryIndex> trajectories_;
  std::unique_ptr<PageTable> pages_;
  PageList list_;
};

TEST_F(IndexSharedViewsTest, OwnersAndViewsAgree) {
  const Seen seen = Look(memory_->base());
  std::vector<uint64_t> leaves(kRows);
  ASSERT_TRUE(prioritized_->Draw({.seed = 2}, leaves, {}));
  EXPECT_EQ(std::memcmp(leaves.data(), seen.prioritized, sizeof(seen.prioritized)), 0);
  ASSERT_TRUE(uniform_->Draw({.seed = 1}, leaves, {}));
  EXPECT_EQ(std::memcmp(leaves.data(), seen.uniform, sizeof(seen.uniform)), 0);
  for (uint32_t k = 0; k < kPages; ++k) {
    EXPECT_EQ(seen.pages[k], k < 30 ? kNoLpn : (k * 7) % 1000) << k;
  }
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(seen.slots[i], i * 7);
    EXPECT_EQ(seen.rows_end[i], i);
  }
}

TEST_F(IndexSharedViewsTest, SecondAddressGivesTheSameDraws) {
  void* second = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, memory_->fd(), 0);
  ASSERT_NE(second, MAP_FAILED);
  ASSERT_NE(second, memory_->base());
  const Seen at_first = Look(memory_->base());
  const Seen at_second = Look(static_cast<std::byte*>(second));
  EXPECT_EQ(std::memcmp(&at_first, &at_second, sizeof(Seen)), 0);
  // A change is seen by a view made before it.
  const UniformView uniform(static_cast<std::byte*>(second) + uniform_->offset());
  const uint64_t before = uniform.total();
  uniform_->Erase(LeafRange{0, 1000});
  EXPECT_LT(uniform.total(), before);
  EXPECT_EQ(uniform.total(), uniform_->total());
  munmap(second, kBytes);
}

TEST_F(IndexSharedViewsTest, CopyInAChildThatUnmappedTheOriginalGivesTheSameDraws) {
  const Seen expected = Look(memory_->base());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    void* copy = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) _exit(1);
    if (pread(memory_->fd(), copy, kBytes, 0) != static_cast<ssize_t>(kBytes)) _exit(2);
    if (munmap(memory_->base(), kBytes) != 0) _exit(3);
    const Seen seen = Look(static_cast<std::byte*>(copy));
    const std::byte* bytes = reinterpret_cast<const std::byte*>(&seen);
    for (size_t sent = 0; sent < sizeof(seen);) {
      const ssize_t n = write(ends[1], bytes + sent, sizeof(seen) - sent);
      if (n <= 0) _exit(4);
      sent += static_cast<size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  Seen seen = {};
  size_t received = 0;
  while (received < sizeof(seen)) {
    const ssize_t n =
        read(ends[0], reinterpret_cast<std::byte*>(&seen) + received, sizeof(seen) - received);
    if (n <= 0) break;
    received += static_cast<size_t>(n);
  }
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_EQ(received, sizeof(seen));
  EXPECT_EQ(std::memcmp(&seen, &expected, sizeof(Seen)), 0);
}

}  // namespace
}  // namespace geardb::index
