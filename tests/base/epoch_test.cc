// concurrent: base/epoch.h
#include "base/epoch.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace geardb {
namespace {

TEST(EpochTest, WithoutReadersWhatIsRetiredIsSafe) {
  EpochRegistry epochs;
  const uint64_t version = epochs.Retire();
  EXPECT_LT(version, epochs.SafeVersion());
}

TEST(EpochTest, AReaderKeepsWhatIsRetiredAfterItBegan) {
  EpochRegistry epochs;
  const uint64_t before = epochs.Retire();
  auto reader = epochs.Enter();
  const uint64_t after = epochs.Retire();
  EXPECT_LT(before, epochs.SafeVersion());
  EXPECT_GE(after, epochs.SafeVersion());
  reader.Leave();
  EXPECT_LT(after, epochs.SafeVersion());
}

TEST(EpochTest, TheOldestReaderCounts) {
  EpochRegistry epochs;
  auto old_reader = epochs.Enter();
  const uint64_t first = epochs.Retire();
  auto young_reader = epochs.Enter();
  const uint64_t second = epochs.Retire();
  young_reader.Leave();
  EXPECT_GE(first, epochs.SafeVersion());
  young_reader = epochs.Enter();
  old_reader.Leave();
  EXPECT_LT(second, epochs.SafeVersion());
}

TEST(EpochTest, GuardsMove) {
  EpochRegistry epochs;
  auto first = epochs.Enter();
  const uint64_t version = epochs.Retire();
  {
    EpochRegistry::Guard second = std::move(first);
    first.Leave();  // Has nothing to end.
    EXPECT_GE(version, epochs.SafeVersion());
  }
  EXPECT_LT(version, epochs.SafeVersion());
  auto third = epochs.Enter();
  const uint64_t later = epochs.Retire();
  third = EpochRegistry::Guard();
  EXPECT_LT(later, epochs.SafeVersion());
}

TEST(EpochTest, ManyReadersHaveSlotsOfTheirOwn) {
  EpochRegistry epochs;
  std::vector<EpochRegistry::Guard> readers;
  for (size_t i = 0; i < EpochRegistry::kBlockReaders; ++i) readers.push_back(epochs.Enter());
  const uint64_t version = epochs.Retire();
  for (auto& reader : readers) {
    EXPECT_GE(version, epochs.SafeVersion());
    reader.Leave();
  }
  EXPECT_LT(version, epochs.SafeVersion());
}

TEST(EpochConcurrentTest, WhatAReaderFindsIsNotReused) {
  // A cell is replaced again and again; one that was retired is overwritten only when it is safe.
  struct Cell {
    uint64_t value = 1;
  };
  EpochRegistry epochs;
  std::atomic<Cell*> current{new Cell};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto guard = epochs.Enter();
        const Cell* cell = current.load(std::memory_order_acquire);
        EXPECT_EQ(cell->value, 1u);
        ++reads;
      }
    });
  }
  std::vector<std::pair<uint64_t, Cell*>> retired;
  for (int round = 0; round < 3000 || reads < 1000; ++round) {
    Cell* old = current.exchange(new Cell, std::memory_order_acq_rel);
    retired.emplace_back(epochs.Retire(), old);
    const uint64_t safe = epochs.SafeVersion();
    std::erase_if(retired, [&](const auto& entry) {
      if (entry.first >= safe) return false;
      entry.second->value = 2;
      delete entry.second;
      return true;
    });
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_LT(retired.empty() ? 0 : retired.back().first, epochs.SafeVersion());
  for (const auto& entry : retired) delete entry.second;
  delete current.load();
}

// One more waited until another left, which might need what it held.
TEST(EpochConcurrentTest, AnyNumberOfReadersAreInsideAtOnce) {
  EpochRegistry epochs;
  const uint64_t before = epochs.Retire();
  std::vector<std::vector<EpochRegistry::Guard>> readers(3);
  std::vector<std::thread> threads;
  for (auto& mine : readers) {
    threads.emplace_back([&epochs, &mine] {
      for (size_t i = 0; i < 2 * EpochRegistry::kBlockReaders; ++i) mine.push_back(epochs.Enter());
    });
  }
  for (auto& thread : threads) thread.join();
  const uint64_t version = epochs.Retire();
  EXPECT_LT(before, epochs.SafeVersion());
  for (auto& mine : readers) {
    for (auto& reader : mine) {
      EXPECT_GE(version, epochs.SafeVersion());
      reader.Leave();
    }
  }
  EXPECT_LT(version, epochs.SafeVersion());
}

}  // namespace
}  // namespace geardb
