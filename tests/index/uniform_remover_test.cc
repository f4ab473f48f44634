#include "index/uniform_remover.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "base/philox.h"
#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

std::unique_ptr<UniformRemover> MakeRemover(IndexMemory* memory, uint64_t seed) {
  auto made = UniformRemover::Create(memory, "remover", {.slot_capacity = 5000, .seed = seed});
  GEARDB_CHECK(made.ok());
  return std::move(made).value();
}

// The rule of the header, over a plain sorted set.
TEST(UniformRemoverTest, RandomProgramsGiveWhatTheRuleSays) {
  const auto memory = TestMemory();
  std::mt19937_64 random(11);
  const uint64_t seed = random();
  const auto remover = MakeRemover(memory.get(), seed);
  ASSERT_OK(remover->Reserve(5000));
  std::set<Slot> members;
  uint64_t removal = uint64_t{1} << 33;
  for (int step = 0; step < 400; ++step) {
    for (int i = 0; i < 10; ++i) {
      const auto slot = static_cast<Slot>(random() % 5000);
      if (members.insert(slot).second) remover->Add({.slot = slot});
    }
    std::set<Slot> left = members;
    const uint64_t wanted = random() % 12;
    std::vector<Slot> given;
    remover->Begin(removal);
    for (uint64_t k = 0; k < wanted && !left.empty(); ++k) {
      const uint64_t rank =
          MulHi64(PhiloxRandom64(seed, removal + k, 0, PhiloxPurpose::kRemover), left.size());
      const Slot expected = *std::next(left.begin(), static_cast<ptrdiff_t>(rank));
      ASSERT_EQ(remover->Next(), expected);
      left.erase(expected);
      given.push_back(expected);
    }
    remover->End();
    if (random() % 2 == 0) continue;  // A call that was refused: nothing has left.
    for (const Slot slot : given) remover->Erase(slot);
    members = left;
    removal += given.size();
    ASSERT_EQ(remover->count(), members.size());
  }
}

// Of 64 members each leaves next as often: over 64,000 removals the sum of (seen - 1000)² / 1000
// has mean 63 and variance 126; it is within five of its deviations.
TEST(UniformRemoverTest, EachIsAsLikely) {
  const auto memory = TestMemory();
  const auto remover = MakeRemover(memory.get(), 1);
  ASSERT_OK(remover->Reserve(64 * 70));
  for (Slot i = 0; i < 64; ++i) remover->Add({.slot = i * 70});
  std::vector<int> seen(64, 0);
  for (uint64_t k = 0; k < 64'000; ++k) {
    remover->Begin(k);
    ++seen[*remover->Next() / 70];
    remover->End();
  }
  double sum = 0;
  for (const int count : seen) sum += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_NEAR(sum, 63, 5 * 11.3);
}

TEST(UniformRemoverTest, AllOfThemAreGivenOnce) {
  const auto memory = TestMemory();
  const auto remover = MakeRemover(memory.get(), 1);
  ASSERT_OK(remover->Reserve(1000));
  for (Slot slot = 0; slot < 1000; ++slot) remover->Add({.slot = slot});
  std::set<Slot> given;
  remover->Begin(0);
  while (const auto slot = remover->Next()) given.insert(*slot);
  EXPECT_EQ(given.size(), 1000u);
  remover->End();
  EXPECT_EQ(remover->count(), 1000u);
}

TEST(UniformRemoverTest, WhatDoesNotFitTheBudgetIsRefused) {
  const auto memory = TestMemory(uint64_t{512} << 10);
  auto made = UniformRemover::Create(memory.get(), "remover", {.slot_capacity = uint64_t{1} << 32});
  ASSERT_OK(made);
  ASSERT_OK((*made)->Reserve(1000));
  (*made)->Add({.slot = 7});
  EXPECT_STATUS(kResourceExhausted, (*made)->Reserve(uint64_t{1} << 30), "'remover'");
  (*made)->Begin(0);
  EXPECT_EQ((*made)->Next(), 7u);
  (*made)->End();
}

}  // namespace
}  // namespace geardb::index
