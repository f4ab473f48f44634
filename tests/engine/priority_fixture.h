// Priority tables under test: appends with initial priorities, and what the weights should be.
#pragma once

#include <cmath>
#include <map>
#include <vector>

#include "tests/testing/store_fixture.h"

namespace geardb::testing {

/// A table of StepSpec with priority tables of the test's.
class PriorityFixture : public StoreTest {
 protected:
  void CreateWith(std::vector<PriorityTableSpec> priorities, bool final_row = false) {
    TableSpec spec = StepSpec(final_row);
    spec.priority_tables = std::move(priorities);
    Create(spec);
  }
  Status AppendWith(int64_t count, End end, const std::vector<InitialPriorities>& priorities) {
    const Rows rows(0, count);
    const Rows last(count, 1);
    AppendOptions options{.end = end, .priorities = priorities};
    if (table_->spec().final_row && end != End::kGo && end != End::kCut) {
      options.final = last.final_row();
    }
    return writer_->AppendSteps(rows.many(), options).status();
  }
  std::vector<float> RawPriorities(const std::string& name) {
    std::vector<float> values;
    PriorityTable* table = priority(name);
    for (const RowId& item : table->Items()) values.push_back(*table->Priority(item));
    return values;
  }
  /// Every item's probability is w / Σw to the quantisation: q = w 2^s, halves rounded up, at
  /// least 1.
  void ExpectProbabilities(const std::string& name, const std::map<int64_t, double>& weights) {
    PriorityTable* table = priority(name);
    const double scale = std::exp2(table->Stats().scale_shift);
    double total = 0;
    const auto quantised = [&](double w) {
      return w > 0 ? std::max(1.0, std::floor(w * scale + 0.5)) : 0.0;
    };
    for (const auto& [row, w] : weights) total += quantised(w);
    for (const auto& [row, w] : weights) {
      const auto probability = table->Probability({1, row});
      ASSERT_OK(probability);
      // A weight that lies between two steps may be rounded either way: p^1 is no exact p.
      const double step = 1.5 / total;
      EXPECT_NEAR(*probability, quantised(w) / total, step) << "row " << row;
      // And the quantisation itself is fine.
      EXPECT_NEAR(quantised(w) / scale, w, 1 / scale);
    }
  }
};

}  // namespace geardb::testing
