// RuleCoverage: which edge rules random programs have tried in which situations, so that a test can
// say that they have tried all.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "tests/conformance/window_model.h"

namespace geardb::conformance {

class RuleCoverage {
 public:
  /// Notes the situation of every item that `rule` has in `model`, which was compared.
  void Note(const ModelRule& rule, const WindowModel& model);
  /// Pairs of rules without any item in a situation, a line each: open and ended episodes, with and
  /// without their head, of trajectories, of streams and across the ends of streams; and pairs with
  /// a side that shifts, no window of which has moved where it may.
  std::string Missing() const;

 private:
  struct PairOfRules {
    std::array<size_t, 12> items{};  ///< By open, head_missing, and kind of table.
    size_t moved_while_open = 0;
    size_t moved_ended = 0;
  };
  std::array<std::array<PairOfRules, 5>, 5> pairs_{};
};

}  // namespace geardb::conformance
