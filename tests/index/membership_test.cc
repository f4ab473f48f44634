#include "index/membership.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace geardb::index {
namespace {

constexpr uint64_t kMemberLeaves = 2000;

class MembershipTest : public ::testing::Test {
 protected:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(Membership::Bytes(kMemberLeaves));
  Membership members_{bytes_.data()};
};

TEST_F(MembershipTest, BytesAreWholeBuckets) {
  EXPECT_EQ(Membership::Bytes(0), 0u);
  EXPECT_EQ(Membership::Bytes(1), 32u);
  EXPECT_EQ(Membership::Bytes(256), 32u);
  EXPECT_EQ(Membership::Bytes(257), 64u);
}

TEST_F(MembershipTest, BitOrderIsFrozen) {
  members_.Set(0);
  members_.Set(13);
  members_.Set(64);
  EXPECT_EQ(bytes_[0], std::byte{1});
  EXPECT_EQ(bytes_[1], std::byte{0x20});
  EXPECT_EQ(bytes_[8], std::byte{1});
}

TEST_F(MembershipTest, RandomRangesMatchABoolArray) {
  std::mt19937_64 random(1);
  std::vector<bool> expected(kMemberLeaves);
  for (int step = 0; step < 2000; ++step) {
    const uint64_t begin = random() % kMemberLeaves;
    const uint64_t longest =
        random() % 3 == 0 ? kMemberLeaves - begin : std::min(kMemberLeaves - begin, 70ul);
    const LeafRange range{begin, begin + random() % (longest + 1)};
    const bool value = random() % 2 == 0;
    uint64_t changed = 0;
    uint64_t present = 0;
    for (uint64_t i = range.begin; i < range.end; ++i) {
      present += expected[i] ? 1u : 0u;
      changed += expected[i] != value ? 1u : 0u;
    }
    ASSERT_EQ(members_.Count(range), present);
    for (uint64_t i = range.begin; i < range.end; ++i) expected[i] = value;
    ASSERT_EQ(value ? members_.SetRange(range) : members_.ClearRange(range), changed);
    const uint64_t one = random() % kMemberLeaves;
    ASSERT_EQ(members_.Contains(one), expected[one]);
    ASSERT_EQ(value ? members_.Set(one) : members_.Clear(one), expected[one] != value);
    expected[one] = value;
  }
  std::vector<uint64_t> found;
  members_.ForEach(LeafRange{5, kMemberLeaves - 3}, [&](uint64_t leaf) { found.push_back(leaf); });
  std::vector<uint64_t> wanted;
  for (uint64_t i = 5; i < kMemberLeaves - 3; ++i) {
    if (expected[i]) wanted.push_back(i);
  }
  EXPECT_EQ(found, wanted);
}

TEST_F(MembershipTest, EmptyAndReversedRangesAreNothing) {
  EXPECT_EQ(members_.SetRange(LeafRange{64, 64}), 0u);
  EXPECT_EQ(members_.SetRange(LeafRange{70, 64}), 0u);
  EXPECT_EQ((LeafRange{70, 64}).size(), 0u);
  EXPECT_EQ(members_.Count(LeafRange{0, kMemberLeaves}), 0u);
}

TEST_F(MembershipTest, SelectFindsEveryRank) {
  std::mt19937_64 random(2);
  for (const uint64_t one_in : {1u, 2u, 9u, 100u}) {
    members_.ClearRange(LeafRange{0, kMemberLeaves});
    for (uint64_t leaf = 0; leaf < kMemberLeaves; ++leaf) {
      if (random() % one_in == 0) members_.Set(leaf);
    }
    for (uint64_t bucket = 0; bucket * kBucketLeaves < kMemberLeaves; ++bucket) {
      uint32_t rank = 0;
      for (uint64_t leaf = bucket * 256; leaf < std::min(kMemberLeaves, bucket * 256 + 256);
           ++leaf) {
        if (!members_.Contains(leaf)) continue;
        ASSERT_EQ(members_.SelectInBucket(bucket, rank), leaf);
        ++rank;
      }
      ASSERT_EQ(members_.CountBucket(bucket), rank);
    }
  }
}

}  // namespace
}  // namespace geardb::index
