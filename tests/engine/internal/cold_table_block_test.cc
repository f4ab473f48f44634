// Blocks of SST files: what is written is found again wherever it lies, and nothing else is.
#include "engine/internal/cold_table_block.h"

#include <gtest/gtest.h>

namespace geardb::engine {
namespace {

std::string KeyOfEntry(uint64_t i) { return "key " + std::to_string(1000 + i) + ", 8 bytes"; }
std::string ValueOfEntry(uint64_t i) { return std::string(i * 37 % 200, static_cast<char>(i)); }

std::string BlockOf(uint64_t entries, uint64_t per_restart) {
  TableBlockWriter block(per_restart);
  for (uint64_t i = 0; i < entries; ++i) block.Add(KeyOfEntry(i), ValueOfEntry(i));
  return std::move(block).Finish();
}

class TableBlockTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(TableBlockTest, ABlockIsReadWhereverItLies) {
  for (const uint64_t entries : {1u, 2u, 15u, 16u, 17u, 100u}) {
    const std::string block = BlockOf(entries, GetParam());
    const std::string file = "before" + block + "behind";
    const auto read = ReadTableBlock(file, 6, GetParam());
    ASSERT_TRUE(read) << entries;
    EXPECT_EQ(read->place.offset, 6u);
    EXPECT_EQ(read->place.end(), 6 + block.size());
    EXPECT_TRUE(HasBlock(file, read->place));
    ASSERT_EQ(read->entries.size(), entries);
    for (uint64_t i = 0; i < entries; ++i) {
      EXPECT_EQ(read->entries[i].key, KeyOfEntry(i));
      EXPECT_EQ(read->entries[i].value, ValueOfEntry(i));
    }
    for (uint64_t at = 0; at < file.size(); ++at) {
      EXPECT_EQ(ReadTableBlock(file, at, GetParam()).has_value(), at == 6) << at;
    }
  }
}

TEST_P(TableBlockTest, NoFlippedBitIsOverlookedNorAShorterFile) {
  const std::string block = BlockOf(20, GetParam());
  for (size_t bit = 0; bit < 8 * block.size(); ++bit) {
    std::string damaged = block;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(ReadTableBlock(damaged, 0, GetParam())) << bit;
  }
  for (size_t bytes = 0; bytes < block.size(); ++bytes) {
    EXPECT_FALSE(ReadTableBlock(std::string_view(block).substr(0, bytes), 0, GetParam())) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(PerRestart, TableBlockTest,
                         ::testing::Values(kEntriesPerRestartOfTail, kEntriesPerRestart,
                                           kAllEntries));

TEST(TableBlockBytesTest, ManyBytesThatAreAlikeAreNoEntries) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string file(size_t{1} << 16, static_cast<char>(byte));
    for (uint64_t at = 0; at < 1000; ++at) {
      ASSERT_FALSE(ReadTableBlock(file, at, kEntriesPerRestart)) << byte;
    }
  }
}

TEST(TableBlockBytesTest, APlaceBeyondTheFileHasNoBlock) {
  const std::string block = BlockOf(3, 1);
  const uint64_t bytes = block.size() - kTableTrailerBytes;
  EXPECT_TRUE(HasBlock(block, {0, bytes}));
  EXPECT_FALSE(HasBlock(block, {0, bytes + 1}));
  EXPECT_FALSE(HasBlock(block, {1, bytes}));
  EXPECT_FALSE(HasBlock(block, {UINT64_MAX, 1}));
  EXPECT_FALSE(HasBlock(block, {0, UINT64_MAX}));
  EXPECT_FALSE(HasBlock("", {0, 0}));
}

TEST(TableBlockBytesTest, VarintsAreThoseOfRocksDb) {
  for (const uint64_t number :
       {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{300}, uint64_t{1} << 35, UINT64_MAX}) {
    std::string bytes;
    AppendVarint(number, &bytes);
    std::string_view left = bytes;
    EXPECT_EQ(TakeVarint(&left), number);
    EXPECT_TRUE(left.empty());
    left = std::string_view(bytes).substr(0, bytes.size() - 1);
    EXPECT_EQ(TakeVarint(&left), std::nullopt);
  }
  std::string bytes;
  AppendVarint(300, &bytes);
  EXPECT_EQ(bytes, "\xac\x02");
  std::string_view endless = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  EXPECT_EQ(TakeVarint(&endless), std::nullopt);
}

}  // namespace
}  // namespace geardb::engine
