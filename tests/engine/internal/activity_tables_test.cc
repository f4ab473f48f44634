#include "engine/internal/activity_tables.h"

#include <gtest/gtest.h>

#include <random>

namespace geardb::engine {
namespace {

TEST(ActivityTablesTest, NoTablesComeBackAsNone) {
  const auto bytes = EncodeTables({.seen_us = 5}, 1024);
  EXPECT_EQ(bytes.size() % 8, 0u);
  const auto decoded = DecodeTables(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->tables.size(), 0u);
  EXPECT_EQ(decoded->seen_us, 5);
}

TEST(ActivityTablesTest, BytesKeepWithinTheirBound) {
  TablesActivity tables;
  for (uint32_t i = 0; i < 40; ++i) tables.tables.push_back({.id = i, .name = "table"});
  size_t last = 0;
  for (uint64_t most = 256; most < 8192; most += 64) {
    const auto bytes = EncodeTables(tables, most);
    EXPECT_LE(bytes.size(), most);
    const auto decoded = DecodeTables(bytes);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->tables.size() + decoded->left_out, 40u);
    EXPECT_GE(decoded->tables.size(), last);
    last = decoded->tables.size();
  }
  EXPECT_EQ(last, 40u);
}

TEST(ActivityTablesTest, HostileBytesAreReadOrRefused) {
  TablesActivity tables;
  for (uint32_t i = 0; i < 3; ++i) {
    tables.tables.push_back({.id = i,
                             .name = "table",
                             .places = {{.group = "g", .pages = 4}},
                             .priority_tables = {{.name = "all", .items = 3}}});
  }
  const auto good = EncodeTables(tables, 4096);
  std::mt19937_64 random(11);
  uint64_t read = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = good;
    if (random() % 4 == 0) bytes.resize(random() % good.size() / 8 * 8);
    for (uint64_t c = random() % 4; c > 0 && !bytes.empty(); --c) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    read += DecodeTables(bytes).has_value() ? 1u : 0u;
  }
  EXPECT_GT(read, 1000u);
  EXPECT_LT(read, 20'000u);
}

}  // namespace
}  // namespace geardb::engine
