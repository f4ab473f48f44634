// The good blocks of an SST file's bytes, wherever others are bad.
#include "engine/internal/cold_table_keys.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace geardb::engine {
namespace {

constexpr uint64_t kBlocksOfFile = 6;
constexpr uint64_t kKeysOfBlock = 20;

std::string TableKey(uint64_t number, TableKeyType type, uint64_t sequence = 9) {
  std::string key = "key " + std::to_string(1000 + number);
  const uint64_t end = sequence << 8 | static_cast<uint8_t>(type);
  return key.append(reinterpret_cast<const char*>(&end), sizeof(end));
}

/// Blocks of values and deletions, where each begins, and where the last one ends.
std::string FileOfBlocks(std::vector<uint64_t>* begins) {
  std::string file;
  for (uint64_t block = 0; block < kBlocksOfFile; ++block) {
    begins->push_back(file.size());
    TableBlockWriter writer(kEntriesPerRestart);
    for (uint64_t i = 0; i < kKeysOfBlock; ++i) {
      const bool deletes = i % 5 == 3;
      writer.Add(TableKey(block * kKeysOfBlock + i,
                          deletes ? TableKeyType::kDeletion : TableKeyType::kValue),
                 deletes ? "" : std::string(i * 7, 'v'));
    }
    file += std::move(writer).Finish();
  }
  begins->push_back(file.size());
  return file;
}

std::vector<uint64_t> BlocksFound(const std::string& file) {
  std::vector<uint64_t> found;
  KeyBlocks blocks(file);
  while (const auto block = blocks.Next()) found.push_back(block->place.offset);
  return found;
}

TEST(ColdTableKeysTest, AKeysEndSaysWhatItIs) {
  for (const TableKeyType type : {TableKeyType::kDeletion, TableKeyType::kValue,
                                  TableKeyType::kRangeDeletion, TableKeyType::kBlob}) {
    EXPECT_EQ(UserKeyOf(TableKey(5, type)), "key 1005");
    EXPECT_EQ(TypeOfKey(TableKey(5, type)), type);
  }
}

TEST(ColdTableKeysTest, EveryBlockIsFoundButTheOneWithABadByte) {
  std::vector<uint64_t> begins;
  const std::string file = FileOfBlocks(&begins);
  for (uint64_t at = 0; at < file.size(); at += 3) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::vector<uint64_t> expected;
    for (uint64_t block = 0; block < kBlocksOfFile; ++block) {
      if (at < begins[block] || at >= begins[block + 1]) expected.push_back(begins[block]);
    }
    EXPECT_EQ(BlocksFound(damaged), expected) << at;
  }
}

TEST(ColdTableKeysTest, OfAFileThatWasCutThoseBeforeTheCutAreFound) {
  std::vector<uint64_t> begins;
  const std::string file = FileOfBlocks(&begins);
  for (uint64_t bytes = 0; bytes <= file.size(); bytes += 5) {
    std::vector<uint64_t> expected;
    for (uint64_t block = 0; block < kBlocksOfFile; ++block) {
      if (begins[block + 1] <= bytes) expected.push_back(begins[block]);
    }
    EXPECT_EQ(BlocksFound(file.substr(0, bytes)), expected) << bytes;
  }
}

// An older copy of a block within a bad one, and what leads to blocks.
TEST(ColdTableKeysTest, WhatDoesNotAscendIsNoBlockOfTheFile) {
  std::vector<uint64_t> begins;
  std::string file = FileOfBlocks(&begins);
  const size_t all = begins.size() - 1;
  file += file.substr(0, begins[1]);
  TableBlockWriter ranges(kEntriesPerRestart);
  ranges.Add(TableKey(900, TableKeyType::kRangeDeletion), "key 901");
  file += std::move(ranges).Finish();
  EXPECT_EQ(BlocksFound(file).size(), all);
}

}  // namespace
}  // namespace geardb::engine
