// Philox4x32-10 against the vectors published with Random123 (kat_vectors), and what the draws rely
// on beyond them.
#include "base/philox.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace geardb {
namespace {

void ExpectBlock(const PhiloxBlock& block, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  EXPECT_EQ(block.v[0], a);
  EXPECT_EQ(block.v[1], b);
  EXPECT_EQ(block.v[2], c);
  EXPECT_EQ(block.v[3], d);
}

TEST(PhiloxTest, PublishedVectorsComeOut) {
  ExpectBlock(Philox4x32(0, {{0, 0, 0, 0}}), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  constexpr uint32_t kOnes = UINT32_MAX;
  ExpectBlock(Philox4x32(UINT64_MAX, {{kOnes, kOnes, kOnes, kOnes}}), 0x408f276d, 0x41c83b0e,
              0xa20bc7c6, 0x6d5451fd);
  // The digits of pi; key word 0 is the low half of the key.
  ExpectBlock(Philox4x32(0x299f31d0a4093822, {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}),
              0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(PhiloxTest, CounterIsDrawThenRowThenPurpose) {
  const PhiloxBlock block =
      Philox4x32(7, {{0x55667788, 0x11223344, 9, static_cast<uint32_t>(PhiloxPurpose::kViewRow)}});
  EXPECT_EQ(PhiloxRandom64(7, 0x1122334455667788, 9, PhiloxPurpose::kViewRow),
            block.v[0] | (uint64_t{block.v[1]} << 32));
}

TEST(PhiloxTest, EachPartOfTheCounterAndTheSeedChangesTheNumber) {
  const std::set<uint64_t> numbers = {
      PhiloxRandom64(1, 0, 0, PhiloxPurpose::kItem),
      PhiloxRandom64(2, 0, 0, PhiloxPurpose::kItem),
      PhiloxRandom64(1 | uint64_t{1} << 32, 0, 0, PhiloxPurpose::kItem),
      PhiloxRandom64(1, 1, 0, PhiloxPurpose::kItem),
      PhiloxRandom64(1, uint64_t{1} << 32, 0, PhiloxPurpose::kItem),
      PhiloxRandom64(1, 0, 1, PhiloxPurpose::kItem),
      PhiloxRandom64(1, 0, 0, PhiloxPurpose::kViewRow),
      PhiloxRandom64(1, 0, 0, PhiloxPurpose::kShuffle),
  };
  EXPECT_EQ(numbers.size(), 8u);
}

TEST(PhiloxTest, CanBeEvaluatedByTheCompiler) {
  static_assert(Philox4x32(0, {{0, 0, 0, 0}}).v[0] == 0x6627e8d5);
  static_assert(MulHi64(UINT64_MAX, 17) == 16);
}

TEST(PhiloxTest, MulHiIsTheUpperHalfOfTheProduct) {
  EXPECT_EQ(MulHi64(0, 17), 0u);
  EXPECT_EQ(MulHi64(UINT64_MAX, 17), 16u);
  EXPECT_EQ(MulHi64(uint64_t{1} << 63, 17), 8u);
  EXPECT_EQ(MulHi64(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
  EXPECT_EQ(MulHi64(UINT64_MAX, 1), 0u);
}

}  // namespace
}  // namespace geardb
