#include "engine/internal/activity_file.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <tuple>

#include "base/hash.h"
#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kSeed = 42;
constexpr size_t kNumbers = sizeof(ActivityCounters) / sizeof(uint64_t);

/// Every counter has a value of its own.
ActivityCounters Numbered(uint64_t first) {
  std::array<uint64_t, kNumbers> numbers;
  for (size_t i = 0; i < kNumbers; ++i) numbers[i] = first + i * 1'000'003;
  ActivityCounters counters;
  std::memcpy(static_cast<void*>(&counters), numbers.data(), sizeof(counters));
  return counters;
}

TableActivity Seen(const std::string& name) {
  return {
      .id = 4,
      .name = name,
      .trajectories = 100,
      .open_trajectories = 2,
      .steps = 1000,
      .pages = 55,
      .frame_bytes = 1 << 20,
      .row_bytes = 1 << 19,
      .places = {{.group = "", .frame_bytes = 4096, .pages = 50, .framed = 3, .in_log = 20},
                 {.group = "late", .in_cold = 30, .in_both = 4, .only_framed = 5, .column = "c"}},
      .priority_tables = {{.name = "all",
                           .items = 9,
                           .drawable_items = 8,
                           .draws = 7,
                           .blocked = {.samples = {"few", 1}, .inserts = {"many", 2}}}}};
}

DatabaseActivity Example() {
  return {.known = true,
          .note = {},
          .opening = 7,
          .since = 3,
          .opened_us = 1'700'000'000'000'000,
          .written_us = 1'700'000'001'000'000,
          .last = Numbered(5),
          .total = Numbered(uint64_t{1} << 40),
          .tables = {.tables = {Seen("first"), Seen("second")}, .left_out = 3, .seen_us = 17}};
}

/// All but the priority tables.
auto FieldsOf(const TableActivity& of) {
  return std::tie(of.id, of.name, of.trajectories, of.open_trajectories, of.steps, of.pages,
                  of.frame_bytes, of.row_bytes, of.places);
}

auto FieldsOf(const PriorityTableActivity& of) {
  return std::tie(of.name, of.items, of.drawable_items, of.draws, of.blocked.samples.reason,
                  of.blocked.samples.waiting, of.blocked.inserts.reason,
                  of.blocked.inserts.waiting);
}

void ExpectEqual(const DatabaseActivity& a, const DatabaseActivity& b) {
  EXPECT_EQ(a.known, b.known);
  EXPECT_EQ(a.opening, b.opening);
  EXPECT_EQ(a.since, b.since);
  EXPECT_EQ(a.opened_us, b.opened_us);
  EXPECT_EQ(a.written_us, b.written_us);
  EXPECT_EQ(a.last, b.last);
  EXPECT_EQ(a.total, b.total);
  EXPECT_EQ(a.tables.left_out, b.tables.left_out);
  EXPECT_EQ(a.tables.seen_us, b.tables.seen_us);
  ASSERT_EQ(a.tables.tables.size(), b.tables.tables.size());
  for (size_t t = 0; t < a.tables.tables.size(); ++t) {
    const TableActivity& x = a.tables.tables[t];
    const TableActivity& y = b.tables.tables[t];
    EXPECT_EQ(FieldsOf(x), FieldsOf(y));
    ASSERT_EQ(x.priority_tables.size(), y.priority_tables.size());
    for (size_t p = 0; p < x.priority_tables.size(); ++p) {
      EXPECT_EQ(FieldsOf(x.priority_tables[p]), FieldsOf(y.priority_tables[p]));
    }
  }
}

/// Puts a checksum that fits at the end.
std::vector<std::byte> Sealed(std::vector<std::byte> bytes) {
  const uint64_t checksum = Hash64(std::span(bytes).first(bytes.size() - 8), kSeed);
  std::memcpy(bytes.data() + bytes.size() - 8, &checksum, 8);
  return bytes;
}

TEST(ActivityFileTest, ComesBackAsItWasWritten) {
  const auto bytes = EncodeActivity(Example(), kSeed);
  constexpr size_t kLevels = 20;
  EXPECT_GT(bytes.size(), 48 + 2 * 8 * kNumbers + 8 + 8 * kLevels + 8 + 8);
  EXPECT_EQ(bytes.size() % 8, 0u);
  ASSERT_OK_AND_ASSIGN(const DatabaseActivity decoded, DecodeActivity(bytes, kSeed));
  ExpectEqual(decoded, Example());
}

TEST(ActivityFileTest, EveryFlippedBitIsNoticed) {
  const auto bytes = EncodeActivity(Example(), kSeed);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte{static_cast<unsigned char>(1 << bit % 8)};
    EXPECT_FALSE(DecodeActivity(damaged, kSeed).ok()) << bit;
  }
}

TEST(ActivityFileTest, EveryShorterFileIsCorruption) {
  const auto bytes = EncodeActivity(Example(), kSeed);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_STATUS(kCorruption, DecodeActivity(std::span(bytes).first(size), kSeed), "") << size;
  }
}

TEST(ActivityFileTest, AnotherDatabasesFileIsRefused) {
  EXPECT_STATUS(kCorruption, DecodeActivity(EncodeActivity(Example(), kSeed + 1), kSeed),
                "checksum");
}

TEST(ActivityFileTest, ALaterVersionIsNamed) {
  auto bytes = EncodeActivity(Example(), kSeed);
  bytes[8] = std::byte{9};
  EXPECT_STATUS(kUnsupported, DecodeActivity(Sealed(bytes), kSeed), "version 9");
}

TEST(ActivityFileTest, CountersThatAnotherProgramDoesNotHaveAreZeroOrPassedOver) {
  const auto bytes = EncodeActivity(Example(), kSeed);
  for (const uint64_t counters :
       {uint64_t{0}, uint64_t{1}, uint64_t{kNumbers - 1}, uint64_t{kNumbers + 5}, uint64_t{1024}}) {
    std::vector<std::byte> other(48 + 2 * 8 * counters + 8);
    std::memcpy(other.data(), bytes.data(), 48);
    other[8] = std::byte{1};  // Without levels.
    const auto length = static_cast<uint32_t>(other.size());
    std::memcpy(other.data() + 12, &length, 4);
    std::memcpy(other.data() + 40, &counters, 8);
    for (uint64_t i = 0; i < counters; ++i) {
      const uint64_t last = 100 + i, total = 200 + i;
      std::memcpy(other.data() + 48 + 8 * i, &last, 8);
      std::memcpy(other.data() + 48 + 8 * (counters + i), &total, 8);
    }
    ASSERT_OK_AND_ASSIGN(const DatabaseActivity decoded, DecodeActivity(Sealed(other), kSeed));
    EXPECT_EQ(decoded.last.frame_hits, counters > 0 ? 100u : 0u);
    EXPECT_EQ(decoded.total.frame_hits, counters > 0 ? 200u : 0u);
    const uint64_t end = kNumbers - 1;
    EXPECT_EQ(decoded.total.wait_for_pages_us, counters > end ? 200 + end : 0u);
  }
}

TEST(ActivityFileTest, TablesForWhichThereIsNoRoomAreCounted) {
  DatabaseActivity many = Example();
  many.tables = {};
  for (int i = 0; i < 3000; ++i) many.tables.tables.push_back(Seen(std::string(500, 'n')));
  const auto bytes = EncodeActivity(many, kSeed);
  EXPECT_LE(bytes.size(), kCountersBytesMax);
  EXPECT_GT(bytes.size(), kCountersBytesMax / 10 * 9);
  ASSERT_OK_AND_ASSIGN(const DatabaseActivity decoded, DecodeActivity(bytes, kSeed));
  EXPECT_EQ(decoded.tables.tables.size() + decoded.tables.left_out, 3000u);
  EXPECT_GT(decoded.tables.tables.size(), 500u);
}

TEST(ActivityFileTest, AFileOfTheVersionBeforeHasNoTables) {
  const auto bytes = EncodeActivity(Example(), kSeed);
  const size_t end = 48 + 2 * 8 * kNumbers + 8 + 8 * 20;
  std::vector<std::byte> before(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(end) + 8);
  before[8] = std::byte{2};
  const auto length = static_cast<uint32_t>(before.size());
  std::memcpy(before.data() + 12, &length, 4);
  ASSERT_OK_AND_ASSIGN(const DatabaseActivity decoded, DecodeActivity(Sealed(before), kSeed));
  EXPECT_EQ(decoded.last, Example().last);
  EXPECT_EQ(decoded.tables.tables.size(), 0u);
}

TEST(ActivityFileTest, HostileBytesWithAChecksumThatFitsAreReadOrRefused) {
  std::mt19937_64 next(7);
  const auto good = EncodeActivity(Example(), kSeed);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = good;
    if (next() % 4 == 0) bytes.resize(next() % (2 * good.size()) + 1);
    const uint64_t changes = next() % 4;
    for (uint64_t c = 0; c < changes; ++c) {
      const uint64_t place = next() % 2 == 0 ? next() % 48 : next();
      bytes[place % bytes.size()] = static_cast<std::byte>(next());
    }
    const auto decoded = DecodeActivity(bytes.size() >= 8 ? Sealed(bytes) : bytes, kSeed);
    if (decoded.ok()) {
      EXPECT_TRUE(decoded->known);
    }
  }
}

TEST(ActivityFileTest, SumsAreCounterByCounter) {
  const ActivityCounters sum = Sum(Numbered(10), Numbered(1000));
  std::array<uint64_t, kNumbers> numbers;
  std::memcpy(numbers.data(), &sum, sizeof(sum));
  for (size_t i = 0; i < kNumbers; ++i) EXPECT_EQ(numbers[i], 1010 + 2 * i * 1'000'003);
}

}  // namespace
}  // namespace geardb::engine
