// A table with columns of all types, a plain list of what was appended to it, and random filters
// with the predicate that each is in C++.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/table.h"
#include "kernels/convert.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb::testing {

using Real = long double;  // Holds each i64, u64 and f64 exactly.

/// A trajectory as it was appended.
struct Known {
  TrajectoryId id = 0;
  std::string state = "open";
  std::string end = "go";
  std::map<std::string, Real> numbers;
  bool solved = false;
  std::set<std::string> set;
  std::vector<float> rewards;  // Of its steps.
};

inline TableSpec ScanSpec(uint32_t steps_per_page, bool final_row) {
  const auto once = [](std::string name, DType dtype, Shape shape = {}) {
    return Column{.name = std::move(name),
                  .dtype = dtype,
                  .shape = shape,
                  .kind = ColumnKind::kPerTrajectory};
  };
  return TableSpec{.name = "t",
                   .columns = {{.name = "reward", .in_final_row = final_row},
                               {.name = "pair", .dtype = DType::kI32, .shape = {2}},
                               once("version", DType::kU32),
                               once("score", DType::kF32),
                               once("half", DType::kF16),
                               once("solved", DType::kBool),
                               once("big", DType::kU64),
                               once("delta", DType::kI64),
                               once("triple", DType::kI16, {3}),
                               once("obs/x", DType::kF64)},
                   .final_row = final_row,
                   .steps_per_page = steps_per_page};
}

/// The values of the per-trajectory columns of one call.
struct Values {
  uint32_t version = 0;
  float score = 0;
  Float16 half = {};
  bool solved = false;
  uint64_t big = 0;
  int64_t delta = 0;
  int16_t triple[3] = {};
  double x = 0;

  explicit Values(Random* random) {
    version = static_cast<uint32_t>(random->Below(12));
    score = random->OneIn(6) ? std::nanf("") : static_cast<float>(random->Below(40)) / 8 - 1;
    half = FloatToFloat16(random->OneIn(9) ? std::nanf("")
                                           : static_cast<float>(random->Below(50)) / 4);
    solved = random->OneIn(2);
    big = (uint64_t{1} << 63) + random->Below(5);
    delta = static_cast<int64_t>(random->Below(6)) - (int64_t{1} << 54);
    for (int16_t& one : triple) one = static_cast<int16_t>(static_cast<int>(random->Below(7)) - 3);
    x = static_cast<double>(random->Below(30)) * 0.1;
  }

  /// Those of a random set of columns, which `known` then has.
  std::vector<ColumnValue> Some(Random* random, Known* known) const {
    std::vector<ColumnValue> some;
    const auto maybe = [&](std::string_view name, const TensorView& view, auto note) {
      if (random->OneIn(4)) return;
      some.push_back({name, view});
      known->set.insert(std::string(name));
      note();
    };
    auto& numbers = known->numbers;
    maybe("version", TensorView::Scalar(version), [&] { numbers["version"] = version; });
    maybe("score", TensorView::Scalar(score), [&] { numbers["score"] = score; });
    maybe("half", TensorView::Scalar(half), [&] { numbers["half"] = Float16ToFloat(half); });
    maybe("solved", TensorView::Scalar(solved), [&] { known->solved = solved; });
    maybe("big", TensorView::Scalar(big), [&] { numbers["big"] = static_cast<Real>(big); });
    maybe("delta", TensorView::Scalar(delta), [&] { numbers["delta"] = static_cast<Real>(delta); });
    maybe("triple", TensorView::Of(std::span<const int16_t>(triple)), [&] {
      for (int i = 0; i < 3; ++i) numbers["triple[" + std::to_string(i) + "]"] = triple[i];
    });
    maybe("obs/x", TensorView::Scalar(x), [&] { numbers["`obs/x`"] = x; });
    return some;
  }
};

class ScanTest : public StoreTest {
 protected:
  /// Appends trajectories to a new table: closed, open and orphaned ones, some truncated or
  /// removed.
  void Fill(uint32_t steps_per_page, bool final_row, uint64_t count) {
    OpenEmpty();
    known_.clear();
    Random random(7);
    Create(ScanSpec(steps_per_page, final_row), {.lanes = 4});
    uint32_t lane = 0;
    for (uint64_t t = 0; t < count; ++t) {
      if (t == count / 2) {
        // The writer dies with a trajectory open on lane 3.
        AppendOne(&random, 3, End::kGo, final_row);
        known_.back().state = "orphaned";
        writer_.reset();
        ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = 4}));
      }
      const End ends[] = {End::kTerminated, End::kTruncated, End::kCut};
      AppendOne(&random, lane, ends[random.Below(3)], final_row);
      if (random.OneIn(10)) RemoveAt(random.Below(known_.size()));
      if (random.OneIn(10)) TruncateAt(random.Below(known_.size()), &random);
    }
    for (lane = 0; lane < 3; ++lane) AppendOne(&random, lane, End::kGo, final_row);
  }

  std::vector<TrajectoryId> Passing(const Filter& filter) {
    std::vector<TrajectoryId> ids;
    const auto records = table_->Scan(filter);
    EXPECT_OK(records);
    if (!records.ok()) return ids;
    for (const TrajectoryRecord& record : *records) ids.push_back(record.id);
    return ids;
  }

  std::vector<Known> known_;  // In order of id.

 private:
  void AppendOne(Random* random, uint32_t lane, End end, bool final_row) {
    Known known;
    for (const std::string_view name : {"version", "score", "half", "big", "delta", "triple[0]",
                                        "triple[1]", "triple[2]", "`obs/x`"}) {
      known.numbers[std::string(name)] = 0;
    }
    const Values values(random);
    const auto count = static_cast<int64_t>(2 + random->Below(20));
    std::vector<float> rewards;
    std::vector<int32_t> pairs;
    for (int64_t i = 0; i < count; ++i) {
      rewards.push_back(random->OneIn(20) ? std::nanf("")
                                          : static_cast<float>(random->Below(1000)) / 7 - 50);
      pairs.push_back(static_cast<int32_t>(i));
      pairs.push_back(static_cast<int32_t>(i * i));
    }
    const auto some = values.Some(random, &known);
    const float last = 1e9f;
    const ColumnValue final[] = {{"reward", TensorView::Scalar(last)}};
    AppendOptions options{.lane = lane, .end = end, .trajectory = some};
    const bool has_final = end == End::kTerminated || end == End::kTruncated;
    if (final_row && has_final) options.final = final;
    const auto appended = writer_->AppendSteps(
        {{"reward", TensorView::Of(std::span<const float>(rewards))},
         {"pair", TensorView::Of(std::span<const int32_t>(pairs), {count, 2})}},
        options);
    ASSERT_OK(appended);
    // A cut of a table with final rows makes the last row the final one.
    if (final_row && end == End::kCut) rewards.pop_back();
    known.id = appended->id;
    known.rewards = rewards;
    if (end != End::kGo) {
      known.state = "closed";
      known.end = end == End::kCut ? "cut" : end == End::kTruncated ? "truncated" : "terminated";
    }
    known.numbers["id"] = static_cast<Real>(appended->id);
    known.numbers["length"] = static_cast<Real>(rewards.size());
    known.numbers["first_row"] = 0;
    known.numbers["times_sampled"] = 0;
    ASSERT_OK_AND_ASSIGN(const TrajectoryRecord record, table_->Find(appended->id));
    known.numbers["created_us"] = static_cast<Real>(record.created_us);
    known_.push_back(known);
  }

  void RemoveAt(uint64_t place) {
    const TrajectoryId ids[] = {known_[place].id};
    ASSERT_OK(table_->Remove(ids));
    known_.erase(known_.begin() + static_cast<ptrdiff_t>(place));
  }

  void TruncateAt(uint64_t place, Random* random) {
    Known& known = known_[place];
    const auto length = static_cast<uint64_t>(known.numbers["length"]);
    const uint64_t drop = random->Below(length);
    const auto first = static_cast<uint64_t>(known.numbers["first_row"]) + drop;
    ASSERT_OK(table_->Truncate(known.id, static_cast<int64_t>(first)));
    known.numbers["first_row"] = static_cast<Real>(first);
    known.numbers["length"] -= static_cast<Real>(drop);
    known.rewards.erase(known.rewards.begin(),
                        known.rewards.begin() + static_cast<ptrdiff_t>(drop));
  }
};

/// A filter's text and what it means.
struct Meaning {
  std::string text;
  std::function<bool(const Known&)> passes;
};

class MeaningMaker {
 public:
  MeaningMaker(const std::vector<Known>* known, uint64_t seed) : known_(*known), random_(seed) {}

  Meaning Make(int depth) {
    if (depth == 0 || random_.OneIn(4)) return Condition();
    const Meaning a = Make(depth - 1);
    if (random_.OneIn(4)) {
      return {"!(" + a.text + ")", [a](const Known& one) { return !a.passes(one); }};
    }
    const Meaning b = Make(depth - 1);
    if (random_.OneIn(2)) {
      return {"(" + a.text + ") && (" + b.text + ")",
              [a, b](const Known& one) { return a.passes(one) && b.passes(one); }};
    }
    return {a.text + " || " + b.text,
            [a, b](const Known& one) { return a.passes(one) || b.passes(one); }};
  }

 private:
  static std::string TextOf(Real value) {
    char text[64];
    const bool integer = value == std::floor(value);
    std::snprintf(text, sizeof(text), integer ? "%.0Lf" : "%.20Lg", value);
    return text;
  }
  /// A number that some trajectory has, or one near it.
  Real NumberFor(const std::string& name) {
    const Real number = known_[random_.Below(known_.size())].numbers.at(name);
    if (std::isnan(number)) return 1;
    if (random_.OneIn(3)) return number + 1;
    return random_.OneIn(4) ? std::floor(number) : number;
  }

  Meaning Condition() {
    const auto& numbers = known_[0].numbers;
    const std::string name =
        std::next(numbers.begin(), static_cast<ptrdiff_t>(random_.Below(numbers.size())))->first;
    switch (random_.Below(9)) {
      case 0: {
        const std::string words[] = {"open", "closed", "orphaned"};
        const std::string word = words[random_.Below(3)];
        return {"state == " + word, [word](const Known& one) { return one.state == word; }};
      }
      case 1:
        return {"end in {cut, terminated}",
                [](const Known& one) { return one.end == "cut" || one.end == "terminated"; }};
      case 2:
        return {"solved", [](const Known& one) { return one.solved; }};
      case 3: {
        const std::string columns[] = {"version", "triple", "solved", "score"};
        const std::string column = columns[random_.Below(4)];
        return {"isset(" + column + ")",
                [column](const Known& one) { return one.set.contains(column); }};
      }
      case 4: {
        const std::string real = random_.OneIn(2) ? "score" : "half";
        return {"isnan(" + real + ")",
                [real](const Known& one) { return std::isnan(one.numbers.at(real)); }};
      }
      case 5: {
        const Real a = NumberFor(name), b = NumberFor(name);
        return {name + " in {" + TextOf(a) + ", " + TextOf(b) + "}", [=](const Known& one) {
                  return one.numbers.at(name) == a || one.numbers.at(name) == b;
                }};
      }
      default:
        return Comparison(name, NumberFor(name));
    }
  }

  Meaning Comparison(const std::string& name, Real with) {
    const auto make = [&](const char* symbol, auto compare) {
      return Meaning{name + " " + symbol + " " + TextOf(with),
                     [=](const Known& one) { return compare(one.numbers.at(name), with); }};
    };
    switch (random_.Below(6)) {
      case 0:
        return make("==", std::equal_to<Real>());
      case 1:
        return make("!=", std::not_equal_to<Real>());
      case 2:
        return make("<", std::less<Real>());
      case 3:
        return make("<=", std::less_equal<Real>());
      case 4:
        return make(">", std::greater<Real>());
      default:
        return make(">=", std::greater_equal<Real>());
    }
  }

  const std::vector<Known>& known_;
  Random random_;
};

}  // namespace geardb::testing
