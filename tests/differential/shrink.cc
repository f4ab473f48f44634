#include "tests/differential/shrink.h"

#include <algorithm>

namespace geardb::differential {
namespace {

class Shrinker {
 public:
  Shrinker(const Program& program, const ShowsDifference& shows, size_t runs_max)
      : shows_(shows), runs_max_(runs_max) {
    ++kept_.runs;
    const auto first = shows_(program);
    if (!first) return;
    kept_.difference = *first;
    kind_ = first->kind;
    Keep(program, *first);
  }

  Shrunk Run() {
    // A lower number may let steps go, and fewer steps a number be lower.
    for (bool smaller = !kept_.program.empty(); smaller;) {
      smaller = TakeOutSteps();
      smaller |= LowerNumbers();
      smaller &= !Spent();
    }
    return kept_;
  }

 private:
  bool Spent() const { return kept_.runs >= runs_max_; }

  void Keep(const Program& program, const Difference& difference) {
    kept_.program = program;
    kept_.difference = difference;
    // What follows the difference is not needed.
    kept_.program.resize(std::min(program.size(), difference.step + 1));
  }

  /// Keeps it if it shows the same kind of difference.
  bool Try(const Program& program) {
    if (Spent()) return false;
    ++kept_.runs;
    const auto difference = shows_(program);
    if (!difference || difference->kind != kind_) return false;
    Keep(program, *difference);
    return true;
  }

  bool TakeOutSteps() {
    const size_t before = kept_.program.size();
    size_t piece = std::max<size_t>(kept_.program.size() / 2, 1);
    for (;;) {
      // From the end: a step seldom matters for those before it.
      for (size_t end = kept_.program.size(); end > 0 && !Spent();) {
        end = std::min(end, kept_.program.size());
        const size_t first = end > piece ? end - piece : 0;
        Program without = kept_.program;
        without.erase(without.begin() + static_cast<ptrdiff_t>(first),
                      without.begin() + static_cast<ptrdiff_t>(end));
        Try(without);
        end = first;
      }
      if (piece == 1 || Spent()) break;
      piece /= 2;
    }
    return kept_.program.size() < before;
  }

  bool LowerNumbers() {
    bool lower = false;
    for (size_t s = 0; s < kept_.program.size(); ++s) {
      for (size_t n = 0; n < kept_.program[s].numbers.size(); ++n) {
        lower |= LowerNumber(s, n);
        if (s >= kept_.program.size()) return lower;
      }
    }
    return lower;
  }

  bool LowerNumber(size_t step, size_t number) {
    bool lower = false;
    // The remainders keep the first choices that a number makes.
    for (uint64_t below = 1; below <= uint64_t{1} << 36; below *= 4) {
      const uint64_t now = kept_.program[step].numbers[number];
      if (now < below) return lower;
      Program lowered = kept_.program;
      lowered[step].numbers[number] = now % below;
      if (!Try(lowered)) continue;
      lower = true;
      break;
    }
    while (step < kept_.program.size()) {
      Program lowered = kept_.program;
      uint64_t& value = lowered[step].numbers[number];
      if (value == 0) break;
      value /= 2;
      if (!Try(lowered)) break;
      lower = true;
    }
    return lower;
  }

  const ShowsDifference& shows_;
  const size_t runs_max_;
  std::string kind_;
  Shrunk kept_;
};

}  // namespace

Shrunk Shrink(const Program& program, const ShowsDifference& shows, size_t runs_max) {
  return Shrinker(program, shows, runs_max).Run();
}

}  // namespace geardb::differential
