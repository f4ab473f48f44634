#include "index/filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "tests/testing/random_programs.h"

namespace geardb::index {
namespace {

using testing::ShareOf;

/// What a program is compared with: one slot at a time, by C++'s own operators.
using Predicate = std::function<bool(uint64_t)>;

struct Record {
  uint64_t end = 0;
  uint64_t first = 0;
  uint8_t flags = 0;
  uint8_t state = 0;
  uint16_t unused = 0;
  uint32_t unused_too = 0;
};

/// Columns of all the shapes that a table has them in.
class Columns {
 public:
  explicit Columns(uint64_t slots) : slots_(slots) {
    std::mt19937_64 random(slots);
    // At least one, so that there is an address.
    for (uint64_t slot = 0; slot < std::max<uint64_t>(slots, 1); ++slot) {
      versions_.push_back(static_cast<uint32_t>(random() % 20));
      scores_.push_back(random() % 7 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                          : static_cast<float>(random() % 100) / 10);
      for (int i = 0; i < 3; ++i) triples_.push_back(static_cast<int16_t>(random() % 9) - 4);
      Record record;
      record.first = random() % 50;
      record.end = record.first + 1 + random() % 50;
      record.flags = static_cast<uint8_t>(random());
      record.state = static_cast<uint8_t>(random() % 4);
      records_.push_back(record);
    }
  }

  uint64_t slots() const { return slots_; }

  /// Adds a random test to the program, and returns what it asks.
  Predicate AddTest(FilterProgram* program, std::mt19937_64* random) const {
    const auto number = (*random)() % 20;
    const ExactNumber exact(number);
    switch ((*random)() % 6) {
      case 0:
        program->PushTest(program->AddColumn(Dense(versions_.data(), DType::kU32)),
                          CompareRanges(DType::kU32, Comparison::kLess, exact));
        return [this, number](uint64_t slot) { return versions_[slot] < number; };
      case 1: {
        const double bound = static_cast<double>(number) / 2;
        program->PushTest(program->AddColumn(Dense(scores_.data(), DType::kF32)),
                          CompareRanges(DType::kF32, Comparison::kNotEqual, ExactNumber(bound)));
        return [this, bound](uint64_t slot) { return double{scores_[slot]} != bound; };
      }
      case 2: {
        const auto element = (*random)() % 3;
        const std::vector<ExactNumber> any = {ExactNumber(int64_t{-4}), ExactNumber(int64_t{2})};
        program->PushTest(program->AddColumn({.base = reinterpret_cast<const std::byte*>(
                                                  triples_.data() + element),
                                              .stride = 6,
                                              .dtype = DType::kI16}),
                          AnyOfRanges(DType::kI16, any));
        return [this, element](uint64_t slot) {
          const int16_t value = triples_[3 * slot + element];
          return value == -4 || value == 2;
        };
      }
      case 3:
        program->PushTest(program->AddColumn({.base = BytesOf(&Record::end),
                                              .stride = sizeof(Record),
                                              .dtype = DType::kU64,
                                              .less = BytesOf(&Record::first),
                                              .less_bit = BytesOf(&Record::flags)}),
                          CompareRanges(DType::kU64, Comparison::kGreaterEqual, exact));
        return [this, number](uint64_t slot) {
          const Record& record = records_[slot];
          return record.end - record.first - (record.flags & 1) >= number;
        };
      case 4: {
        const auto bit = static_cast<uint8_t>(1 << ((*random)() % 8));
        program->PushTest(
            program->AddColumn(
                {.base = BytesOf(&Record::flags), .stride = sizeof(Record), .bits = bit}),
            CompareRanges(DType::kU8, Comparison::kGreater, ExactNumber(uint64_t{0})));
        return [this, bit](uint64_t slot) { return (records_[slot].flags & bit) != 0; };
      }
      default: {
        const bool value = (*random)() % 2 == 0;
        program->PushConstant(value);
        return [value](uint64_t) { return value; };
      }
    }
  }

 private:
  template <typename T>
  FilterColumn Dense(const T* values, DType dtype) const {
    return {
        .base = reinterpret_cast<const std::byte*>(values), .stride = sizeof(T), .dtype = dtype};
  }
  template <typename T>
  const std::byte* BytesOf(T Record::*field) const {
    return reinterpret_cast<const std::byte*>(&(records_.data()->*field));
  }

  uint64_t slots_;
  std::vector<uint32_t> versions_;
  std::vector<float> scores_;
  std::vector<int16_t> triples_;
  std::vector<Record> records_;
};

/// Adds a random expression, with and without skips.
Predicate AddExpression(const Columns& columns, int depth, FilterProgram* program,
                        std::mt19937_64* random) {
  if (depth == 0 || (*random)() % 4 == 0) {
    Predicate test = columns.AddTest(program, random);
    if ((*random)() % 3 != 0) return test;
    program->Not();
    return [test](uint64_t slot) { return !test(slot); };
  }
  const bool all = (*random)() % 2 == 0;
  const bool skip = (*random)() % 2 == 0;
  const Predicate left = AddExpression(columns, depth - 1, program, random);
  const size_t place = skip ? program->PushSkip(!all) : 0;
  const Predicate right = AddExpression(columns, depth - 1, program, random);
  if (all) {
    program->And();
  } else {
    program->Or();
  }
  if (skip) program->Land(place);
  if (all) return [=](uint64_t slot) { return left(slot) && right(slot); };
  return [=](uint64_t slot) { return left(slot) || right(slot); };
}

TEST(FilterProgramTest, RandomProgramsAreTheirPredicates) {
  std::mt19937_64 random(11);
  for (const uint64_t slots : {0u, 1u, 63u, 64u, 1000u, 1024u, 1025u, 5000u}) {
    const Columns columns(slots);
    for (uint64_t round = 0; round < ShareOf(100); ++round) {
      FilterProgram program;
      const Predicate expected =
          AddExpression(columns, static_cast<int>(round % 6), &program, &random);
      std::vector<Slot> passed, expected_slots;
      FilterRun run(program);
      run.ForEach(slots, [&](Slot slot) { passed.push_back(slot); });
      for (uint64_t slot = 0; slot < slots; ++slot) {
        const bool wanted = expected(slot);
        if (wanted) expected_slots.push_back(static_cast<Slot>(slot));
        ASSERT_EQ(program.Matches(static_cast<Slot>(slot)), wanted) << "slot " << slot;
      }
      ASSERT_EQ(passed, expected_slots);
      ASSERT_EQ(run.Count(slots), expected_slots.size());
    }
  }
}

TEST(FilterProgramTest, BlocksMayBeginAnywhere) {
  const Columns columns(3000);
  std::mt19937_64 random(12);
  for (int round = 0; round < 200; ++round) {
    FilterProgram program;
    const Predicate expected = AddExpression(columns, 3, &program, &random);
    FilterRun run(program);
    const uint64_t first = random() % 3000;
    const auto count =
        static_cast<uint32_t>(random() % (std::min<uint64_t>(1024, 3000 - first) + 1));
    const auto mask = run.Block(first, count);
    ASSERT_EQ(mask.size(), count);
    for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(mask[i], expected(first + i) ? 1 : 0);
  }
}

TEST(FilterProgramTest, SetBytesAreCounted) {
  std::mt19937_64 random(13);
  std::vector<uint8_t> mask(FilterProgram::kBlockSlots, 1);
  EXPECT_EQ(FilterRun::CountSet(mask), 1024u);
  for (int round = 0; round < 100; ++round) {
    mask.resize(random() % 1025);
    uint32_t set = 0;
    for (uint8_t& byte : mask) set += byte = static_cast<uint8_t>(random() % 2);
    ASSERT_EQ(FilterRun::CountSet(mask), set);
  }
}

TEST(FilterProgramTest, SlotsBeyondTwoGiBytesAreFound) {
  // 2^26 slots of 64 bytes: the address needs more than 32 bits, which nothing here is touched for
  // but two pages of a sparse array.
  constexpr uint64_t kSlots = uint64_t{1} << 26;
  const auto bytes = std::make_unique<std::byte[]>(1 << 20);
  FilterProgram program;
  // As if the array began so far before what is there that the last slots lie in it.
  const std::byte* base = bytes.get() - (kSlots - 1024) * 64;
  program.PushTest(program.AddColumn({.base = base, .stride = 64, .dtype = DType::kU8}),
                   CompareRanges(DType::kU8, Comparison::kEqual, ExactNumber(uint64_t{7})));
  bytes[64 * 1000] = std::byte{7};
  FilterRun run(program);
  const auto mask = run.Block(kSlots - 1024, 1024);
  EXPECT_EQ(mask[1000], 1);
  EXPECT_EQ(FilterRun::CountSet(mask), 1u);
  EXPECT_TRUE(program.Matches(static_cast<Slot>(kSlots - 24)));
  EXPECT_FALSE(program.Matches(static_cast<Slot>(kSlots - 25)));
}

}  // namespace
}  // namespace geardb::index
