#include "tests/conformance/rule_coverage.h"

#include <sstream>

namespace geardb::conformance {
namespace {

constexpr const char* kRules[] = {"require", "clip", "pad", "repeat", "shift"};
constexpr const char* kTables[] = {"trajectory", "stream", "crossing"};

}  // namespace

void RuleCoverage::Note(const ModelRule& rule, const WindowModel& model) {
  if (rule.trajectories) return;
  PairOfRules& pair = pairs_[static_cast<size_t>(rule.left)][static_cast<size_t>(rule.right)];
  const size_t table = !model.table().stream ? 0 : rule.cross_ends ? 2 : 1;
  for (const ModelItem& item : model.Items(rule)) {
    const WindowModel::Situation situation = model.SituationOf(rule, item);
    const size_t open = situation.open ? 1 : 0;
    const size_t trimmed = situation.head_missing ? 1 : 0;
    ++pair.items[table * 4 + open * 2 + trimmed];
    if (situation.moved) ++(situation.open ? pair.moved_while_open : pair.moved_ended);
  }
}

std::string RuleCoverage::Missing() const {
  std::ostringstream missing;
  for (size_t left = 0; left < pairs_.size(); ++left) {
    for (size_t right = 0; right < pairs_.size(); ++right) {
      const PairOfRules& pair = pairs_[left][right];
      const auto line = [&]() -> std::ostream& {
        return missing << "left " << kRules[left] << ", right " << kRules[right] << ": ";
      };
      for (size_t i = 0; i < pair.items.size(); ++i) {
        if (pair.items[i] > 0) continue;
        line() << kTables[i / 4] << (i / 2 % 2 == 1 ? ", open" : ", ended")
               << (i % 2 == 1 ? ", trimmed" : "") << "\n";
      }
      const bool left_shifts = static_cast<Side>(left) == Side::kShift;
      const bool right_shifts = static_cast<Side>(right) == Side::kShift;
      if (left_shifts && pair.moved_while_open == 0) line() << "no move while open\n";
      if ((left_shifts || right_shifts) && pair.moved_ended == 0) line() << "no move\n";
    }
  }
  return std::move(missing).str();
}

}  // namespace geardb::conformance
