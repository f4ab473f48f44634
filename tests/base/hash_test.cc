// Hash64 is XXH3-64 and nothing else: the vectors are those of xxHash's own sanity check.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace geardb {
namespace {

constexpr uint64_t kPrime = 11400714785074694797u;

// The buffer that xxHash's sanity check defines.
std::vector<std::byte> SanityBuffer(size_t size) {
  std::vector<std::byte> buffer(size);
  uint64_t state = 2654435761u;
  for (std::byte& byte : buffer) {
    byte = static_cast<std::byte>(state >> 56);
    state *= kPrime;
  }
  return buffer;
}

struct Vector {
  size_t size;
  uint64_t unseeded;
  uint64_t seeded;  // With kPrime.
};
// One for each branch of the algorithm: 0, 1–3, 4–8, 9–16, 17–128, 129–240, longer, blocks.
constexpr Vector kVectors[] = {
    {0, 0x2d06800538d394c2, 0xa8a6b918b2f0364a},    {1, 0xc44bdff4074eecdb, 0x032be332dd766ef8},
    {6, 0x27b56a84cd2d7325, 0x84589c116ab59ab9},    {12, 0xa713daf0dfbb77e7, 0xe7303e1b2336de0e},
    {24, 0xa3fe70bf9d3510eb, 0x850e80fc35bdd690},   {48, 0x397da259ecba1f11, 0xadc2cbaa44acc616},
    {80, 0xbcdefbbb2c47c90a, 0xc6dd0cb699532e73},   {195, 0xcd94217ee362ec3a, 0xba68003d370cb3d9},
    {403, 0xcdeb804d65c6dea4, 0x6259f6ecfd6443fd},  {512, 0x617e49599013cb6b, 0x3ce457de14c27708},
    {2048, 0xdd59e2c3a5f038e0, 0x66f81670669ababc}, {2240, 0x6e73a90539cf2948, 0x757ba8487d1b5247},
    {2367, 0xcb37aeb9e5d361ed, 0xd2db3415b942b42a},
};

TEST(HashTest, PublishedVectorsComeOut) {
  const std::vector<std::byte> buffer = SanityBuffer(2367);
  for (const Vector& vector : kVectors) {
    const auto bytes = std::span(buffer).first(vector.size);
    EXPECT_EQ(Hash64(bytes, 0), vector.unseeded) << vector.size << " bytes";
    EXPECT_EQ(Hash64(bytes, kPrime), vector.seeded) << vector.size << " bytes";
  }
}

TEST(HashTest, PartsHashLikeTheirConcatenation) {
  const std::vector<std::byte> buffer = SanityBuffer(5000);
  for (const size_t split : {0u, 1u, 63u, 64u, 240u, 1023u, 1024u, 4999u, 5000u}) {
    Hasher64 hasher(kPrime);
    hasher.Add(std::span(buffer).first(split));
    hasher.Add({});
    hasher.Add(std::span(buffer).subspan(split));
    EXPECT_EQ(hasher.Finish(), Hash64(buffer, kPrime)) << "split at " << split;
  }
}

TEST(HashTest, FinishLeavesTheHasherAsItWas) {
  const std::vector<std::byte> buffer = SanityBuffer(600);
  Hasher64 hasher(3);
  hasher.Add(std::span(buffer).first(300));
  EXPECT_EQ(hasher.Finish(), Hash64(std::span(buffer).first(300), 3));
  hasher.Add(std::span(buffer).subspan(300));
  EXPECT_EQ(hasher.Finish(), Hash64(buffer, 3));
}

TEST(HashTest, ResetForgetsBytesAndSeed) {
  const std::vector<std::byte> buffer = SanityBuffer(600);
  Hasher64 hasher(3);
  hasher.Add(buffer);
  hasher.Reset(4);
  hasher.Add(buffer);
  EXPECT_EQ(hasher.Finish(), Hash64(buffer, 4));
  EXPECT_NE(hasher.Finish(), Hash64(buffer, 3));
}

}  // namespace
}  // namespace geardb
