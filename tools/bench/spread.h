// Spread: median and quartiles of repetitions, and times of many calls.
#pragma once

#include <chrono>
#include <vector>

namespace geardb::bench {

/// Half of the values lie between the quartiles. All zero when there is no value.
struct Spread {
  double median = 0;
  double low = 0;   ///< First quartile.
  double high = 0;  ///< Third quartile.
};
Spread SpreadOf(std::vector<double> values);

/// The value that `fraction` (0…1) of the values do not exceed, interpolated between neighbours; 0
/// when there is none.
double Quantile(std::vector<double> values, double fraction);
inline double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

/// Time since its construction.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  double us() const { return seconds() * 1e6; }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// The median time in microseconds of `count` calls of `call`, each timed by itself.
template <typename Call>
double MedianUs(int count, Call call) {
  std::vector<double> times;
  times.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const Stopwatch watch;
    call();
    times.push_back(watch.us());
  }
  return Median(std::move(times));
}

}  // namespace geardb::bench
