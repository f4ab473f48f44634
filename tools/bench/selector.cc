// Drawing 256 items and updating 256 priorities: the prioritized selector alone.
#include <algorithm>

#include "base/philox.h"
#include "index/prioritized_selector.h"
#include "tools/bench/row.h"
#include "tools/bench/spread.h"

namespace geardb::bench {
namespace {

constexpr size_t kBatch = 256;

/// A selector over `items` leaves with random priorities.
struct Selector {
  std::unique_ptr<index::IndexMemory> memory;
  std::unique_ptr<index::PrioritizedSelector> selector;
};

Result<std::shared_ptr<Selector>> MakeSelector(uint64_t items) {
  auto made = std::make_shared<Selector>();
  GEARDB_ASSIGN_OR_RETURN(made->memory, index::IndexMemory::Create(
                                            {.budget_bytes = items * 10 + (uint64_t{32} << 20)}));
  GEARDB_ASSIGN_OR_RETURN(
      made->selector, index::PrioritizedSelector::Create(made->memory.get(), "bench",
                                                         {.leaf_capacity = items, .alpha = 0.6}));
  GEARDB_RETURN_IF_ERROR(made->selector->Reserve(items));
  std::vector<uint64_t> leaves(4096);
  std::vector<float> priorities(4096);
  made->selector->BeginBulk();
  for (uint64_t begin = 0; begin < items; begin += leaves.size()) {
    const uint64_t count = std::min<uint64_t>(leaves.size(), items - begin);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t random =
          PhiloxRandom64(3, 0, static_cast<uint32_t>(begin + i), PhiloxPurpose::kItem);
      leaves[i] = begin + i;
      priorities[i] = static_cast<float>((random >> 40) + 1) / 16777216.0f;
    }
    made->selector->Insert(std::span(leaves).first(count), std::span(priorities).first(count));
  }
  made->selector->EndBulk();
  return made;
}

/// The cache lines that a draw or an update of some leaves must touch, addresses known beforehand.
class Lines {
 public:
  /// All lines of the groups on the way from the root, as a draw must look at.
  void AddDescent(const TreeView& tree, uint64_t leaf) {
    uint64_t group = leaf / kTreeFanOut;
    AddRange(tree.leaves() + group * kTreeFanOut, kTreeFanOut * sizeof(uint32_t));
    for (int level = 1; level + 1 < tree.shape.level_count; ++level) {
      group /= kTreeFanOut;
      if (tree.shape.level_entries[level] <= kTreeFanOut && group > 0) break;
      AddRange(tree.nodes(level) + group * kTreeFanOut, kTreeFanOut * sizeof(uint64_t));
    }
  }
  /// The line of the leaf and of each node above it, as an update must change.
  void AddPath(const TreeView& tree, uint64_t leaf) {
    AddRange(tree.leaves() + leaf, 1);
    for (int level = 1; level < tree.shape.level_count; ++level) {
      leaf /= kTreeFanOut;
      AddRange(tree.nodes(level) + leaf, 1);
    }
  }
  void AddRange(const void* at, uint64_t bytes) {
    const auto begin = AlignDown(reinterpret_cast<uint64_t>(at), 64);
    const auto end = reinterpret_cast<uint64_t>(at) + bytes;
    for (uint64_t line = begin; line < end; line += 64) {
      lines_.push_back(reinterpret_cast<const uint64_t*>(line));
    }
  }
  uint64_t Touch() const {
    constexpr size_t kAhead = 32;
    uint64_t sum = 0;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (i + kAhead < lines_.size()) __builtin_prefetch(lines_[i + kAhead]);
      sum += *lines_[i];
    }
    return sum;
  }

 private:
  std::vector<const uint64_t*> lines_;
};

class SelectorScene : public Scene {
 public:
  explicit SelectorScene(std::shared_ptr<Selector> kept)
      : selector_(*kept->selector), kept_(std::move(kept)) {}

 protected:
  /// The leaves of the next batch.
  std::span<const uint64_t> NextLeaves() {
    selector_.Draw({.seed = 5, .draw_number = draw_++, .first_row = 0}, leaves_, probabilities_);
    return leaves_;
  }

  index::PrioritizedSelector& selector_;
  std::shared_ptr<Selector> kept_;
  std::vector<uint64_t> leaves_ = std::vector<uint64_t>(kBatch);
  std::vector<double> probabilities_ = std::vector<double>(kBatch);
  uint64_t draw_ = 0;
  volatile uint64_t sum_ = 0;  // Keeps the bare loop's reads.
};

constexpr int kCalls = 200;

class DrawScene final : public SelectorScene {
 public:
  using SelectorScene::SelectorScene;

  Result<Figure> Measure() override {
    std::vector<Lines> lines(kCalls);
    for (Lines& batch : lines) {
      for (const uint64_t leaf : NextLeaves()) batch.AddDescent(selector_.view().tree(), leaf);
    }
    const double draw = MedianUs(kCalls, [this] { NextLeaves(); });
    size_t at = 0;
    const double touch = MedianUs(kCalls, [&] { sum_ = sum_ + lines[at++].Touch(); });
    return Figure{draw, touch, {}};
  }
};

class UpdateScene final : public SelectorScene {
 public:
  using SelectorScene::SelectorScene;

  Result<Figure> Measure() override {
    std::vector<float> priorities(kBatch);
    std::vector<double> updates;
    std::vector<double> touches;
    const auto draw = [&] {
      NextLeaves();
      for (size_t i = 0; i < kBatch; ++i) {
        const uint64_t random =
            PhiloxRandom64(8, draw_, static_cast<uint32_t>(i), PhiloxPurpose::kItem);
        priorities[i] = static_cast<float>((random & 0xFFFF) + 1) / 65536.0f;
      }
    };
    for (int call = 0; call < kCalls; ++call) {
      draw();
      const Stopwatch update;
      selector_.Update(leaves_, priorities);
      updates.push_back(update.us());
    }
    for (int call = 0; call < kCalls; ++call) {
      draw();
      Lines lines;
      for (const uint64_t leaf : leaves_) lines.AddPath(selector_.view().tree(), leaf);
      const Stopwatch touch;
      sum_ = sum_ + lines.Touch();
      touches.push_back(touch.us());
    }
    return Figure{Median(std::move(updates)), Median(std::move(touches)), {}};
  }
};

template <typename SceneType>
Row SelectorRow(const char* name, int64_t items, double bound_us) {
  const bool draws = std::is_same_v<SceneType, DrawScene>;
  return {.name = name,
          .size = items,
          .size_of = "items",
          .what = draws ? "256 items with probabilities drawn from the prioritized selector alone"
                        : "256 raw priorities of items just drawn set in the prioritized selector "
                          "alone, p^alpha "
                          "included",
          .ceiling = draws ? "touching the cache lines of 256 descents, addresses known beforehand"
                           : "touching the cache lines of 256 paths of the tree, addresses known "
                             "beforehand",
          .unit = Unit::kMicroseconds,
          .target = items == 10'000'000 ? Target{Target::Kind::kValueAtMost, bound_us} : Target{},
          .make = [items](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            GEARDB_ASSIGN_OR_RETURN(
                auto selector,
                bench->keeper.Get<Selector>("selector " + std::to_string(items), [items] {
                  return MakeSelector(static_cast<uint64_t>(items));
                }));
            return std::unique_ptr<Scene>(std::make_unique<SceneType>(selector));
          },
          .keeps = true};
}

}  // namespace

std::vector<Row> SelectorRows(const Settings& settings) {
  std::vector<Row> rows;
  for (const int64_t items : {100'000, 1'000'000, 10'000'000}) {
    rows.push_back(SelectorRow<DrawScene>("draw.selector", items, 20));
    rows.push_back(SelectorRow<UpdateScene>("update.selector", items, 15));
    if (settings.tiny) break;
  }
  return rows;
}

}  // namespace geardb::bench
