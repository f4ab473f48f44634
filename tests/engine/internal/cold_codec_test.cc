#include "engine/internal/cold_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb::engine {
namespace {

using testing::Random;

constexpr ColumnCodecSpec kSpecs[] = {{ColumnCodec::kNone, 0},
                                      {ColumnCodec::kLz4, 0},
                                      {ColumnCodec::kZstd, 1},
                                      {ColumnCodec::kZstd, 9},
                                      {ColumnCodec::kXorLz4, 0}};

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// A column of one of several kinds.
std::vector<std::byte> MakeColumn(Random* random, uint64_t row_bytes, uint64_t rows) {
  std::vector<std::byte> raw(row_bytes * rows);
  const uint64_t kind = random->Below(4);
  for (size_t i = 0; i < raw.size(); ++i) {
    if (kind == 0) raw[i] = static_cast<std::byte>(random->Next());
    if (kind == 1) raw[i] = static_cast<std::byte>(i / 64);
    if (kind == 2) {
      raw[i] = i < row_bytes || random->OneIn(50) ? static_cast<std::byte>(random->Next())
                                                  : raw[i - row_bytes];
    }
  }
  return raw;
}

TEST(ColdCodecTest, WhatIsEncodedDecodesAndNeverGrows) {
  Random random(1);
  uint64_t smaller[4] = {};
  const uint64_t programs = testing::ShareOf(4000);
  for (uint64_t program = 0; program < programs; ++program) {
    const uint64_t row_bytes = random.Below(random.OneIn(5) ? 5000 : 40);
    const auto raw = MakeColumn(&random, row_bytes, random.Below(33));
    const ColumnCodecSpec& spec = kSpecs[random.Below(std::size(kSpecs))];
    std::string stored = "before";
    const ColumnCodec used = EncodeColumn(spec, {row_bytes, raw}, &stored);
    ASSERT_EQ(stored.substr(0, 6), "before");
    stored.erase(0, 6);
    if (used == ColumnCodec::kNone) {
      ASSERT_EQ(stored.size(), raw.size());
    } else {
      ASSERT_EQ(used, spec.codec);
      ASSERT_LT(stored.size(), raw.size());
      ++smaller[static_cast<size_t>(used)];
    }
    std::vector<std::byte> again(raw.size(), std::byte{0x77});
    ASSERT_OK(DecodeColumn({used, row_bytes, BytesOf(stored)}, again));
    ASSERT_EQ(again, raw);
  }
  for (size_t codec = 1; codec < 4; ++codec) EXPECT_GT(smaller[codec], programs / 20);
}

TEST(ColdCodecTest, FramesThatChangeLittleAreSmallerAsDifferences) {
  Random random(2);
  constexpr size_t kRow = 80000;  // More than the 64 KiB that LZ4 looks back.
  std::vector<std::byte> raw(16 * kRow);
  for (size_t i = 0; i < raw.size(); ++i) {
    raw[i] = i < kRow || random.OneIn(100) ? static_cast<std::byte>(random.Next()) : raw[i - kRow];
  }
  std::string plain, changes;
  EncodeColumn({ColumnCodec::kLz4}, {kRow, raw}, &plain);
  EXPECT_EQ(EncodeColumn({ColumnCodec::kXorLz4}, {kRow, raw}, &changes), ColumnCodec::kXorLz4);
  EXPECT_LT(changes.size() * 2, plain.size());
  EXPECT_LT(changes.size() * 4, raw.size());
}

TEST(ColdCodecTest, OtherSizesAreCorruption) {
  const std::vector<std::byte> raw(1000, std::byte{3});
  for (const ColumnCodecSpec& spec : kSpecs) {
    std::string stored;
    const ColumnCodec used = EncodeColumn(spec, {10, raw}, &stored);
    for (const size_t size : {size_t{0}, size_t{1}, size_t{999}, size_t{1001}, size_t{5000}}) {
      std::vector<std::byte> out(size);
      EXPECT_STATUS(kCorruption, DecodeColumn({used, 10, BytesOf(stored)}, out), "");
    }
    std::vector<std::byte> out(raw.size());
    for (size_t cut = 0; cut < stored.size(); ++cut) {
      EXPECT_STATUS(kCorruption, DecodeColumn({used, 10, BytesOf(stored).first(cut)}, out), "");
    }
  }
  std::vector<std::byte> out(4);
  EXPECT_STATUS(kCorruption, DecodeColumn({ColumnCodec{4}, 1, std::span(out)}, out), "codec 4");
  EXPECT_STATUS(kCorruption, DecodeColumn({ColumnCodec::kXorLz4, 0, std::span(out)}, out), "0");
}

TEST(ColdCodecTest, AnyBytesDecodeOrAreCorruption) {
  Random random(3);
  const uint64_t programs = testing::ShareOf(20000);
  for (uint64_t program = 0; program < programs; ++program) {
    const uint64_t row_bytes = 1 + random.Below(20);
    const auto raw = MakeColumn(&random, row_bytes, 1 + random.Below(30));
    std::string stored;
    ColumnCodec codec = EncodeColumn(kSpecs[random.Below(5)], {row_bytes, raw}, &stored);
    if (random.OneIn(5)) codec = static_cast<ColumnCodec>(random.Below(6));
    for (uint64_t flips = random.Below(4); flips > 0; --flips) {
      stored[random.Below(stored.size())] = static_cast<char>(random.Next());
    }
    if (random.OneIn(4)) stored.resize(random.Below(2 * stored.size()));
    std::vector<std::byte> out(random.OneIn(4) ? random.Below(700) : raw.size());
    const Status status = DecodeColumn({codec, row_bytes, BytesOf(stored)}, out);
    if (!status.ok()) {
      ASSERT_EQ(status.code(), StatusCode::kCorruption) << status;
    }
  }
}

TEST(ColdCodecTest, BadSpecsAreInvalidArgument) {
  EXPECT_OK(CheckColumnCodec({}));
  EXPECT_OK(CheckColumnCodec({ColumnCodec::kZstd, 19}));
  EXPECT_STATUS(kInvalidArgument, CheckColumnCodec({ColumnCodec::kZstd, 20}), "level 20");
  EXPECT_STATUS(kInvalidArgument, CheckColumnCodec({ColumnCodec::kZstd, 0}), "level 0");
  EXPECT_STATUS(kInvalidArgument, CheckColumnCodec({static_cast<ColumnCodec>(9)}), "codec 9");
}

}  // namespace
}  // namespace geardb::engine
