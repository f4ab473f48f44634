// Which version of each chunk an image has, as it is stored.
#include "engine/internal/image_versions.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

TEST(ImageVersionsTest, WhatWasEncodedIsFoundAgain) {
  ImageVersions versions;
  EXPECT_EQ(versions.Parts(), 0u);
  EXPECT_TRUE(versions.Encode().empty());
  const auto chunk = [](uint64_t k) {
    return ImageChunk{static_cast<TableId>(k % 7), static_cast<ImageKind>(1 + k % 6), k};
  };
  constexpr uint64_t kChunks = 4'000;  // More than one part has.
  for (uint64_t k = 0; k < kChunks; ++k) {
    versions.Set(chunk(k), {.place = static_cast<uint16_t>(k % 2), .lsn = 3 * k, .hash = ~k});
  }
  const std::vector<std::string> parts = versions.Encode();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(versions.Parts(), 2u);
  EXPECT_EQ(parts[0].size(), kImageChunkBytes);
  ImageVersions found;
  for (const std::string& part : parts) ASSERT_OK(found.Decode(part));
  EXPECT_EQ(found.all(), versions.all());
  ASSERT_NE(found.Find(chunk(17)), nullptr);
  EXPECT_EQ(found.Find(chunk(17))->lsn, 51u);
  EXPECT_EQ(found.Find({9, ImageKind::kPages, 17}), nullptr);
}

TEST(ImageVersionsTest, BytesThatAreNoEntriesAreRefused) {
  ImageVersions versions;
  const ImageChunk chunk{3, ImageKind::kItems, 1};
  versions.Set(chunk, {.place = 1, .lsn = 5, .hash = 9});
  std::string part = versions.Encode()[0];
  EXPECT_STATUS(kInvalidArgument, ImageVersions().Decode(part.substr(1)), "31 bytes");
  EXPECT_STATUS(kInvalidArgument, ImageVersions().Decode(part + part), "twice");
  part[6] = 2;
  EXPECT_STATUS(kInvalidArgument, ImageVersions().Decode(part), "place 2");
}

TEST(ImageVersionsTest, PlacesHaveKeysOfTheirOwn) {
  const ImageChunk chunk{3, ImageKind::kItems, 1};
  const ColdChunkKey first = ImageVersions::KeyOf(chunk, 0);
  const ColdChunkKey second = ImageVersions::KeyOf(chunk, 1);
  EXPECT_EQ(first.kind, 6);
  EXPECT_EQ(second.kind, 0x106);
  EXPECT_NE(EncodeColdKey(first), EncodeColdKey(second));
}

}  // namespace
}  // namespace geardb::engine
