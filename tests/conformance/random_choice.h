// RandomChoice: small random decisions of a test program, from a seed that a failure prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace geardb::conformance {

class RandomChoice {
 public:
  explicit RandomChoice(uint64_t seed) : bits_(seed) {}

  uint64_t Bits() { return bits_(); }
  /// In [0, bound), bound ≥ 1.
  uint64_t Below(uint64_t bound) { return bits_() % bound; }
  /// In [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }
  bool Percent(uint64_t percent) { return Below(100) < percent; }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return values.begin()[Below(values.size())];
  }
  template <typename T>
  const T& Of(const std::vector<T>& values) {
    return values[Below(values.size())];
  }
  template <typename T>
  void Shuffle(std::vector<T>* values) {
    for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[Below(i)]);
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace geardb::conformance
