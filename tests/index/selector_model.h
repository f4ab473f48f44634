// SelectorModel: what every selector must do, in plain maps and linear searches, for comparison.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "index/selector.h"

namespace geardb::index {

enum class ModelKind { kUniform, kPrioritized, kWithout, kFifo, kLifo, kMinHeap, kMaxHeap, kEpoch };

class SelectorModel {
 public:
  struct Item {
    float raw = 1.0f;
    uint64_t sequence = 0;
    bool hidden = false;
    bool in_cut = false;
    bool remains = false;
  };
  struct Drawn {
    std::vector<uint64_t> leaves;
    std::vector<double> probabilities;
  };

  explicit SelectorModel(ModelKind kind) : kind_(kind) {}

  ModelKind kind() const { return kind_; }
  bool ordered() const { return kind_ >= ModelKind::kFifo && kind_ <= ModelKind::kMaxHeap; }
  bool heap() const { return kind_ == ModelKind::kMinHeap || kind_ == ModelKind::kMaxHeap; }
  bool weighted() const { return kind_ == ModelKind::kPrioritized || kind_ == ModelKind::kWithout; }
  bool has_priorities() const { return heap() || weighted(); }
  bool distinct() const { return kind_ != ModelKind::kUniform && kind_ != ModelKind::kPrioritized; }
  std::map<uint64_t, Item>& items() { return items_; }
  const std::map<uint64_t, Item>& items() const { return items_; }

  uint64_t Insert(uint64_t leaf, float raw) {
    const auto [found, added] = items_.try_emplace(leaf);
    found->second.raw = raw;
    if (added) found->second.sequence = next_sequence_++;
    return added ? 1 : 0;
  }
  uint64_t Erase(LeafRange range) {
    const size_t before = items_.size();
    if (range.size() > 0) {
      items_.erase(items_.lower_bound(range.begin), items_.lower_bound(range.end));
    }
    return before - items_.size();
  }
  uint64_t Update(uint64_t leaf, float raw) {
    const auto found = items_.find(leaf);
    if (found == items_.end()) return 0;
    found->second.raw = raw;
    return 1;
  }
  uint64_t SetHidden(uint64_t leaf, bool hidden) {
    const auto found = items_.find(leaf);
    return found != items_.end() && std::exchange(found->second.hidden, hidden) != hidden ? 1 : 0;
  }

  /// `weight_of(raw)` is asked of weighted kinds. In leaf order.
  template <typename WeightOf>
  std::vector<std::pair<uint64_t, uint64_t>> Weights(WeightOf weight_of) const {
    std::vector<std::pair<uint64_t, uint64_t>> weights;
    for (const auto& [leaf, item] : items_) {
      if (item.hidden || (kind_ == ModelKind::kEpoch && !item.remains)) continue;
      const uint64_t weight = weighted() ? weight_of(item.raw) : 1;
      if (weight > 0) weights.emplace_back(leaf, weight);
    }
    return weights;
  }

  /// The definition in index/selector.h: weights laid end to end, or the order.
  Drawn Draw(const DrawRequest& request, uint64_t rows,
             std::vector<std::pair<uint64_t, uint64_t>> weights) const {
    Drawn drawn;
    uint64_t total = 0;
    for (const auto& [leaf, weight] : weights) total += weight;
    if (ordered()) {
      std::vector<std::pair<Item, uint64_t>> order;
      for (const auto& [leaf, weight] : weights) order.emplace_back(items_.at(leaf), leaf);
      std::sort(order.begin(), order.end(),
                [this](const auto& a, const auto& b) { return Before(a.first, b.first); });
      for (uint64_t row = request.first_row; row < order.size() && drawn.leaves.size() < rows;
           ++row) {
        drawn.leaves.push_back(order[row].second);
        drawn.probabilities.push_back(1.0);
      }
      return drawn;
    }
    uint64_t left = total;
    for (uint64_t row = 0; row < request.first_row + rows && left > 0; ++row) {
      uint64_t point = MulHi64(PhiloxRandom64(request.seed, request.draw_number,
                                              static_cast<uint32_t>(row), PhiloxPurpose::kItem),
                               left);
      auto at = weights.begin();
      while (point >= at->second) point -= (at++)->second;
      if (row >= request.first_row) {
        drawn.leaves.push_back(at->first);
        drawn.probabilities.push_back(static_cast<double>(at->second) / static_cast<double>(total));
      }
      if (!distinct()) continue;
      left -= at->second;
      weights.erase(at);
    }
    return drawn;
  }

 private:
  bool Before(const Item& x, const Item& y) const {
    if (kind_ == ModelKind::kLifo) return x.sequence > y.sequence;
    if (kind_ == ModelKind::kMinHeap && x.raw != y.raw) return x.raw < y.raw;
    if (kind_ == ModelKind::kMaxHeap && x.raw != y.raw) return x.raw > y.raw;
    return x.sequence < y.sequence;
  }

  ModelKind kind_;
  uint64_t next_sequence_ = 0;
  std::map<uint64_t, Item> items_;
};

}  // namespace geardb::index
