#include "wal/manifest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/hash.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb::wal {
namespace {

Manifest Example() {
  Manifest manifest;
  for (size_t i = 0; i < manifest.uuid.size(); ++i) manifest.uuid[i] = static_cast<std::byte>(i);
  manifest.epoch = {.term = 3, .open = 17};
  manifest.start = 640;
  manifest.cut = 1280;
  manifest.ring_bytes = 32768;
  manifest.segment_bytes = 65536;
  return manifest;
}

// What a later program may write: the first 24 bytes are laid out as now, the rest is not.
std::vector<std::byte> MakeNewerManifest(uint32_t version) {
  std::vector<std::byte> bytes = EncodeManifest(Example());
  bytes.resize(200, std::byte{0x5a});
  const uint32_t size = 200;
  std::memcpy(bytes.data() + 8, &version, 4);
  std::memcpy(bytes.data() + 12, &size, 4);
  Hasher64 hasher(0);
  hasher.Add(std::span(bytes).first(16));
  hasher.Add(std::span(bytes).subspan(24));
  const uint64_t checksum = hasher.Finish();
  std::memcpy(bytes.data() + 16, &checksum, 8);
  return bytes;
}

TEST(ManifestTest, ComesBackAsItWasWritten) {
  const auto bytes = EncodeManifest(Example());
  EXPECT_EQ(bytes.size(), 80u);
  ASSERT_OK_AND_ASSIGN(const Manifest decoded, DecodeManifest(bytes, "MANIFEST"));
  EXPECT_EQ(decoded, Example());
  EXPECT_EQ(UuidText(decoded.uuid), "000102030405060708090a0b0c0d0e0f");
}

TEST(ManifestTest, EveryFlippedBitIsNoticed) {
  const auto bytes = EncodeManifest(Example());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte{static_cast<unsigned char>(1 << bit % 8)};
    EXPECT_STATUS(kCorruption, DecodeManifest(damaged, "db/MANIFEST"), "db/MANIFEST") << bit;
  }
}

TEST(ManifestTest, EveryShorterOrLongerFileIsCorruption) {
  auto bytes = EncodeManifest(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_STATUS(kCorruption, DecodeManifest(std::span(bytes).first(size), "M"), "M");
  }
  bytes.push_back(std::byte{0});
  EXPECT_STATUS(kCorruption, DecodeManifest(bytes, "M"), "81 bytes");
}

TEST(ManifestTest, ANewerFormatIsNamedWithBothVersions) {
  const auto newer = MakeNewerManifest(7);
  EXPECT_STATUS(kUnsupported, DecodeManifest(newer, "db/MANIFEST"),
                "format version 7, this program reads version 1");
}

TEST(ManifestTest, AWrongLengthWithARightChecksumIsNamed) {
  EXPECT_STATUS(kCorruption, DecodeManifest(MakeNewerManifest(kFormatVersion), "db/MANIFEST"),
                "of 200 bytes (80 expected)");
}

TEST(ManifestTest, ForeignFilesAreNoManifest) {
  const std::string text = "a text that somebody put there, longer than a manifest's front";
  EXPECT_STATUS(kCorruption, DecodeManifest(std::as_bytes(std::span(text)), "db/MANIFEST"),
                "no GearDB manifest");
}

TEST(ManifestTest, ReplacingIsAtomicOverPowerLossAtEveryOperation) {
  std::set<uint32_t> opens;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    testing::FaultEnv env(seed);
    ASSERT_OK(env.CreateDirectory("db"));
    Manifest manifest = Example();
    ASSERT_OK(WriteManifest(&env, "db", manifest));
    env.SetCrashAfter(1 + seed % 6);
    manifest.epoch.open = 18;
    const bool written = WriteManifest(&env, "db", manifest).ok();
    env.Crash(testing::CrashKind::kPowerLoss);
    ASSERT_OK_AND_ASSIGN(const Manifest found, ReadManifest(&env, "db"));
    if (written) {
      EXPECT_EQ(found.epoch.open, 18u);
    }
    EXPECT_TRUE(found.epoch.open == 17 || found.epoch.open == 18);
    opens.insert(found.epoch.open);
    // A leftover of the interrupted replacement is no obstacle.
    EXPECT_OK(WriteManifest(&env, "db", manifest));
  }
  EXPECT_EQ(opens.size(), 2u);
}

TEST(ManifestTest, AFullDiskDoesNotStopIt) {
  testing::FaultEnv env(1);
  ASSERT_OK(env.CreateDirectory("db"));
  Manifest manifest = Example();
  ASSERT_OK(WriteManifest(&env, "db", manifest));
  env.set_disk_bytes_max(env.disk_bytes());
  for (uint32_t open = 18; open < 25; ++open) {
    manifest.epoch.open = open;
    ASSERT_OK(WriteManifest(&env, "db", manifest));
    ASSERT_OK_AND_ASSIGN(const Manifest found, ReadManifest(&env, "db"));
    EXPECT_EQ(found.epoch.open, open);
  }
}

// What it keeps for that, nobody else gets after a power loss either.
TEST(ManifestTest, AFullDiskDoesNotStopItAfterAPowerLoss) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    testing::FaultEnv env(seed);
    ASSERT_OK(env.CreateDirectory("db"));
    Manifest manifest = Example();
    ASSERT_OK(WriteManifest(&env, "db", manifest));
    for (uint32_t open = 18; open < 21; ++open) {
      env.Crash(testing::CrashKind::kPowerLoss);
      env.set_disk_bytes_max(env.disk_bytes());
      manifest.epoch.open = open;
      ASSERT_OK(WriteManifest(&env, "db", manifest));
    }
  }
}

TEST(ManifestTest, WhatItKeepsForAFullDiskIsDurable) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    testing::FaultEnv env(seed);
    ASSERT_OK(env.CreateDirectory("db"));
    ASSERT_OK(WriteManifest(&env, "db", Example()));
    const auto reserve = env.Contents("db/RESERVE");
    ASSERT_GE(reserve.size(), 2 * kBlockBytes);
    env.Crash(testing::CrashKind::kPowerLoss);
    EXPECT_EQ(env.Contents("db/RESERVE").size(), reserve.size());
  }
}

// Not a byte can be had, not even those that a removal has just given back: with a power loss at
// every operation there is the old manifest or the new one, and the next one can be written.
TEST(ManifestTest, AFullDiskWhoseFreedSpaceIsTakenDoesNotStopIt) {
  std::set<uint32_t> opens;
  for (uint64_t seed = 0; seed < 240; ++seed) {
    SCOPED_TRACE(seed);
    testing::FaultEnv env(seed);
    ASSERT_OK(env.CreateDirectory("db"));
    Manifest manifest = Example();
    ASSERT_OK(WriteManifest(&env, "db", manifest));
    env.set_disk_bytes_max(0);
    env.SetCrashAfter(1 + seed % 12);
    manifest.epoch.open = 18;
    const bool written = WriteManifest(&env, "db", manifest).ok();
    env.Crash(testing::CrashKind::kPowerLoss);
    ASSERT_OK_AND_ASSIGN(const Manifest found, ReadManifest(&env, "db"));
    EXPECT_TRUE(found.epoch.open == 18 || (!written && found.epoch.open == 17));
    opens.insert(found.epoch.open);
    for (uint32_t open = 19; open < 22; ++open) {
      manifest.epoch.open = open;
      ASSERT_OK(WriteManifest(&env, "db", manifest));
      env.Crash(testing::CrashKind::kPowerLoss);
      ASSERT_OK_AND_ASSIGN(const Manifest next, ReadManifest(&env, "db"));
      EXPECT_EQ(next, manifest);
    }
  }
  EXPECT_EQ(opens.size(), 2u);
}

TEST(ManifestTest, AFirstOneNeedsSpace) {
  testing::FaultEnv env(1);
  ASSERT_OK(env.CreateDirectory("db"));
  env.set_disk_bytes_max(0);
  EXPECT_STATUS(kResourceExhausted, WriteManifest(&env, "db", Example()), "No space left");
  EXPECT_STATUS(kNotFound, ReadManifest(&env, "db"), "db/MANIFEST");
}

TEST(ManifestTest, ADirectoryWithoutOneIsNotFound) {
  testing::FaultEnv env(1);
  ASSERT_OK(env.CreateDirectory("db"));
  EXPECT_STATUS(kNotFound, ReadManifest(&env, "db"), "db/MANIFEST");
}

TEST(ManifestTest, NamesOfSegmentsAreNumbers) {
  EXPECT_EQ(SegmentName(7), "segment-000007");
  uint64_t number = 0;
  EXPECT_TRUE(ParseSegmentName("segment-000007", &number));
  EXPECT_EQ(number, 7u);
  EXPECT_TRUE(ParseSegmentName(SegmentName(123456789), &number));
  EXPECT_EQ(number, 123456789u);
  for (const char* name : {"segment-", "segment-1", "segment-00000x", "ring", "segment-0000001.bak",
                           "xsegment-000001"}) {
    EXPECT_FALSE(ParseSegmentName(name, &number)) << name;
  }
}

}  // namespace
}  // namespace geardb::wal
