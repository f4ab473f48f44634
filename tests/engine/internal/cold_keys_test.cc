#include "engine/internal/cold_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/testing/fault_env.h"

namespace geardb::engine {
namespace {

using testing::Random;

/// Few values, also the ends of a type's range, so that members are often equal.
uint64_t Edge(Random* random, uint64_t max) {
  const uint64_t values[] = {0, 1, 255, 256, max / 2, max - 1, max};
  return values[random->Below(7)] & max;
}

TEST(ColdKeysTest, BytesOfPagesAreOrderedAsTheirMembers) {
  Random random(1);
  std::vector<ColdPageKey> keys;
  for (int i = 0; i < 400; ++i) {
    keys.push_back({static_cast<uint32_t>(Edge(&random, UINT32_MAX)),
                    static_cast<uint16_t>(Edge(&random, UINT16_MAX)),
                    static_cast<uint16_t>(Edge(&random, UINT16_MAX)), Edge(&random, UINT64_MAX),
                    Edge(&random, UINT64_MAX)});
  }
  for (const ColdPageKey& a : keys) {
    EXPECT_EQ(EncodeColdKey(a).size(), 24u);
    EXPECT_EQ(DecodeColdPageKey(EncodeColdKey(a)), a);
    for (const ColdPageKey& b : keys) {
      ASSERT_EQ(a < b, EncodeColdKey(a) < EncodeColdKey(b))
          << ColdKeyText(a) << ", " << ColdKeyText(b);
    }
  }
}

TEST(ColdKeysTest, BytesOfChunksAreOrderedAsTheirMembers) {
  Random random(2);
  std::vector<ColdChunkKey> keys;
  for (int i = 0; i < 400; ++i) {
    keys.push_back({static_cast<uint32_t>(Edge(&random, UINT32_MAX)),
                    static_cast<uint16_t>(Edge(&random, UINT16_MAX)),
                    static_cast<uint16_t>(Edge(&random, UINT16_MAX)), Edge(&random, UINT64_MAX)});
  }
  for (const ColdChunkKey& a : keys) {
    EXPECT_EQ(EncodeColdKey(a).size(), 16u);
    EXPECT_EQ(DecodeColdChunkKey(EncodeColdKey(a)), a);
    for (const ColdChunkKey& b : keys) ASSERT_EQ(a < b, EncodeColdKey(a) < EncodeColdKey(b));
  }
}

TEST(ColdKeysTest, OnDiskBytesAreFrozen) {
  const ColdPageKey key = {0x01020304, 0x0506, 0x0708, 0x090A0B0C0D0E0F10, 0x1112131415161718};
  const std::string bytes = EncodeColdKey(key);
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], static_cast<char>(i + 1));
}

TEST(ColdKeysTest, OtherLengthsAreNoKeys) {
  for (size_t size = 0; size < 40; ++size) {
    EXPECT_EQ(DecodeColdPageKey(std::string(size, 'x')).has_value(), size == 24);
    EXPECT_EQ(DecodeColdChunkKey(std::string(size, 'x')).has_value(), size == 16);
  }
}

TEST(ColdKeysTest, RangesHoldExactlyTheirKeys) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    ColdTrajectoryRange range = {static_cast<uint32_t>(Edge(&random, UINT32_MAX)),
                                 static_cast<uint16_t>(Edge(&random, UINT16_MAX)),
                                 static_cast<uint16_t>(Edge(&random, UINT16_MAX)),
                                 Edge(&random, UINT64_MAX), Edge(&random, UINT64_MAX)};
    if (range.end < range.first) std::swap(range.first, range.end);
    const ColdPageKey key = {random.OneIn(3) ? range.table : range.table + 1,
                             random.OneIn(3) ? range.partition : uint16_t{0},
                             random.OneIn(3) ? range.group : uint16_t{1}, Edge(&random, UINT64_MAX),
                             Edge(&random, UINT64_MAX)};
    const bool inside = key.table == range.table && key.partition == range.partition &&
                        key.group == range.group && key.trajectory >= range.first &&
                        key.trajectory < range.end;
    const ColdKeyRange keys = ColdKeysOf(range);
    const std::string bytes = EncodeColdKey(key);
    ASSERT_EQ(bytes >= keys.begin && bytes < keys.end, inside) << ColdKeyText(key);
    const ColdKeyRange table = ColdKeysOfTable(range.table);
    ASSERT_EQ(bytes >= table.begin && bytes < table.end, key.table == range.table);
  }
}

TEST(ColdKeysTest, TextsNameAllMembers) {
  EXPECT_EQ(ColdKeyText(ColdPageKey{3, 1, 2, 77, 4}),
            "page 4 of number 77 (table 3, partition 1, group 2)");
  EXPECT_EQ(ColdKeyText(ColdChunkKey{3, 1, 2, 5}), "chunk 5 of kind 2 (table 3, partition 1)");
}

}  // namespace
}  // namespace geardb::engine
