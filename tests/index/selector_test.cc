// What all selectors promise (index/selector.h), in random programs against a plain model.

#include "index/selector.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/fixed_math.h"
#include "index/epoch_selector.h"
#include "index/ordered_selector.h"
#include "index/prioritized_selector.h"
#include "index/uniform_selector.h"
#include "tests/index/memory_fixture.h"
#include "tests/index/selector_model.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb::index {
namespace {

constexpr ModelKind kKinds[] = {ModelKind::kUniform, ModelKind::kPrioritized, ModelKind::kWithout,
                                ModelKind::kFifo,    ModelKind::kLifo,        ModelKind::kMinHeap,
                                ModelKind::kMaxHeap, ModelKind::kEpoch};
constexpr const char* kNames[] = {
    "Uniform", "Prioritized", "WithoutReplacement", "Fifo", "Lifo", "MinHeap", "MaxHeap", "Epoch"};
constexpr double kAlpha = 0.6;

std::unique_ptr<Selector> MakeSelector(IndexMemory* memory, ModelKind kind, uint64_t capacity) {
  const auto made = [](auto result) -> std::unique_ptr<Selector> {
    GEARDB_CHECK(result.ok());
    return std::move(result).value();
  };
  const auto ordered = [&](ItemOrder order) {
    return made(OrderedSelector::Create(memory, "s", {.leaf_capacity = capacity, .order = order}));
  };
  switch (kind) {
    case ModelKind::kUniform:
      return made(UniformSelector::Create(memory, "s", capacity));
    case ModelKind::kPrioritized:
    case ModelKind::kWithout:
      return made(
          PrioritizedSelector::Create(memory, "s",
                                      {.leaf_capacity = capacity,
                                       .alpha = kAlpha,
                                       .without_replacement = kind == ModelKind::kWithout}));
    case ModelKind::kFifo:
      return ordered(ItemOrder::kOldestFirst);
    case ModelKind::kLifo:
      return ordered(ItemOrder::kNewestFirst);
    case ModelKind::kMinHeap:
      return ordered(ItemOrder::kSmallestFirst);
    case ModelKind::kMaxHeap:
      return ordered(ItemOrder::kLargestFirst);
    case ModelKind::kEpoch:
      break;
  }
  return made(EpochSelector::Create(memory, "s", capacity));
}

/// Draws through a view at another address.
uint64_t DrawAt(std::byte* base, const Selector& selector, const DrawRequest& request,
                std::span<uint64_t> leaves, std::span<double> probabilities) {
  if (const auto* uniform = dynamic_cast<const UniformSelector*>(&selector)) {
    return UniformView(base + uniform->offset()).Draw(request, leaves, probabilities);
  }
  if (const auto* prioritized = dynamic_cast<const PrioritizedSelector*>(&selector)) {
    return PrioritizedView(base + prioritized->offset()).Draw(request, leaves, probabilities);
  }
  if (const auto* ordered = dynamic_cast<const OrderedSelector*>(&selector)) {
    return OrderedView(base + ordered->offset()).Draw(request, leaves, probabilities);
  }
  const auto& epoch = dynamic_cast<const EpochSelector&>(selector);
  return EpochView(base + epoch.offset()).Draw(request, leaves, probabilities);
}

class Program {
 public:
  Program(ModelKind kind, uint64_t capacity, uint64_t seed)
      : random_(seed),
        capacity_(capacity),
        memory_(TestMemory()),
        selector_(MakeSelector(memory_.get(), kind, capacity)),
        model_(kind) {
    second_ = static_cast<std::byte*>(
        mmap(nullptr, memory_->reserve_bytes(), PROT_READ, MAP_SHARED, memory_->fd(), 0));
    GEARDB_CHECK(second_ != MAP_FAILED);
    hide_from_ = random_() % 20;
  }
  ~Program() { munmap(second_, memory_->reserve_bytes()); }

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE(::testing::Message() << "step " << step);
      if (step == static_cast<int>(hide_from_)) {
        ASSERT_OK(selector_->ReserveHidden());
        hides_ = true;
      }
      const bool bulk = random_() % 8 == 0;
      if (bulk) selector_->BeginBulk();
      for (uint64_t calls = bulk ? random_() % 6 : 1; calls > 0; --calls) {
        Change();
        if (::testing::Test::HasFatalFailure()) return;
      }
      if (bulk) selector_->EndBulk();
      Compare();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  uint64_t RandomLeaf() { return random_() % std::min(capacity_, selector_->reserved() + 3); }
  float RandomRaw() {
    if (random_() % 6 == 0) return 0.0f;
    if (random_() % 20 == 0) return -0.0f;
    return static_cast<float>(random_() % 50) * 0.25f;
  }

  void Change() {
    const uint64_t reserved = selector_->reserved();
    if (reserved == 0 || random_() % 12 == 0) {
      const uint64_t wanted = 1 + random_() % capacity_;
      ASSERT_OK(selector_->Reserve(wanted));
      ASSERT_EQ(selector_->reserved(), std::max(reserved, wanted));
      return;
    }
    const uint64_t begin = random_() % reserved;
    const uint64_t longest = random_() % 4 == 0 ? reserved : 40;
    const LeafRange range{begin, std::min(reserved, begin + 1 + random_() % longest)};
    std::vector<uint64_t> leaves(random_() % (random_() % 4 == 0 ? 600 : 20));
    std::vector<float> raw(leaves.size());
    for (size_t i = 0; i < leaves.size(); ++i) {
      leaves[i] = RandomLeaf();
      raw[i] = RandomRaw();
    }
    uint64_t changed = 0;
    switch (random_() % (model_.kind() == ModelKind::kEpoch ? 12 : 8)) {
      case 0: {
        const float one = RandomRaw();
        for (uint64_t leaf = range.begin; leaf < range.end; ++leaf) {
          changed += model_.Insert(leaf, one);
        }
        ASSERT_EQ(selector_->Insert(range, one), changed);
        return;
      }
      case 1:
      case 2:
        for (uint64_t& leaf : leaves) leaf %= reserved;
        for (size_t i = 0; i < leaves.size(); ++i) changed += model_.Insert(leaves[i], raw[i]);
        ASSERT_EQ(selector_->Insert(leaves, raw), changed);
        return;
      case 3:
        ASSERT_EQ(selector_->Erase(range), model_.Erase(range));
        return;
      case 4:
        for (size_t i = 0; i < leaves.size(); ++i) changed += model_.Update(leaves[i], raw[i]);
        ASSERT_EQ(selector_->Update(leaves, raw), changed);
        return;
      case 5:
      case 6: {
        if (!hides_) return;
        const bool hide = random_() % 2 == 0;
        for (const uint64_t leaf : leaves) changed += model_.SetHidden(leaf, hide);
        ASSERT_EQ(hide ? selector_->Hide(leaves) : selector_->Show(leaves), changed);
        return;
      }
      case 7:
        if (auto* prioritized = dynamic_cast<PrioritizedSelector*>(selector_.get())) {
          prioritized->Rescale(static_cast<int>(random_() % 28));
        }
        return;
      default:
        ChangeEpoch(leaves);
    }
  }

  void ChangeEpoch(const std::vector<uint64_t>& leaves) {
    auto& epoch = dynamic_cast<EpochSelector&>(*selector_);
    auto& items = model_.items();
    uint64_t changed = 0;
    switch (random_() % 6) {
      case 0:
        epoch.BeginEpoch();
        for (auto& [leaf, item] : items) item.in_cut = item.remains = true;
        return;
      case 1:
        epoch.BeginPass();
        for (auto& [leaf, item] : items) item.remains = item.in_cut;
        return;
      case 2:
      case 3:
      case 4:
        for (const uint64_t leaf : leaves) {
          const auto found = items.find(leaf);
          if (found == items.end() || !found->second.remains) continue;
          found->second.remains = false;
          ++changed;
        }
        ASSERT_EQ(epoch.Take(leaves), changed);
        return;
      default:
        for (const uint64_t leaf : leaves) {
          const auto found = items.find(leaf);
          if (found == items.end() || !found->second.in_cut || found->second.remains) continue;
          found->second.remains = true;
          ++changed;
        }
        ASSERT_EQ(epoch.GiveBack(leaves), changed);
    }
  }

  float StoredRaw(uint64_t leaf) const {
    if (const auto* ordered = dynamic_cast<const OrderedSelector*>(selector_.get())) {
      return ordered->raw_priority(leaf);
    }
    return dynamic_cast<const PrioritizedSelector&>(*selector_).raw_priority(leaf);
  }

  void Compare() {
    const auto* prioritized = dynamic_cast<const PrioritizedSelector*>(selector_.get());
    const auto weights = model_.Weights([&](float raw) -> uint64_t {
      return QuantizeWeight(prioritized->WeightOf(raw), prioritized->shift());
    });
    uint64_t total = 0;
    for (const auto& [leaf, weight] : weights) total += weight;
    ASSERT_EQ(selector_->count(), model_.items().size());
    ASSERT_EQ(selector_->drawable(), weights.size());
    ASSERT_EQ(selector_->total(), total);
    ASSERT_EQ(selector_->distinct(), model_.distinct());
    std::vector<uint64_t> members;
    selector_->ForEachMember({0, UINT64_MAX}, [&](uint64_t leaf) { members.push_back(leaf); });
    size_t at = 0;
    uint64_t cut = 0;
    uint64_t remaining = 0;
    for (const auto& [leaf, item] : model_.items()) {
      ASSERT_LT(at, members.size());
      ASSERT_EQ(members[at++], leaf);
      ASSERT_EQ(selector_->IsHidden(leaf), item.hidden) << leaf;
      if (model_.has_priorities()) {
        ASSERT_EQ(StoredRaw(leaf), item.raw) << leaf;
      }
      cut += item.in_cut ? 1 : 0;
      remaining += item.remains ? 1 : 0;
    }
    ASSERT_EQ(at, members.size());
    ASSERT_FALSE(selector_->IsHidden(selector_->reserved()));
    if (const auto* epoch = dynamic_cast<const EpochSelector*>(selector_.get())) {
      ASSERT_EQ(epoch->cut(), cut);
      ASSERT_EQ(epoch->remaining(), remaining);
    }
    CompareDraws(weights);
  }

  void CompareDraws(const std::vector<std::pair<uint64_t, uint64_t>>& weights) {
    const bool all = weights.size() < 300 && random_() % 5 == 0;
    const uint64_t rows = all ? weights.size() + 2 : random_() % 70;
    const DrawRequest request{random_(), random_(),
                              random_() % 3 == 0 ? static_cast<uint32_t>(random_() % 30) : 0};
    const SelectorModel::Drawn expected = model_.Draw(request, rows, weights);
    std::vector<uint64_t> leaves(rows, UINT64_MAX);
    std::vector<double> probabilities(rows, -1);
    const uint64_t drawn = selector_->Draw(request, leaves, probabilities);
    std::vector<uint64_t> at_second(rows, UINT64_MAX);
    ASSERT_EQ(DrawAt(second_, *selector_, request, at_second, {}), drawn);
    ASSERT_EQ(at_second, leaves);
    ASSERT_EQ(drawn, expected.leaves.size());
    for (size_t i = 0; i < rows; ++i) {  // What was not drawn was not written.
      ASSERT_EQ(leaves[i], i < drawn ? expected.leaves[i] : UINT64_MAX) << "row " << i;
      ASSERT_EQ(probabilities[i], i < drawn ? expected.probabilities[i] : -1) << "row " << i;
    }
  }

  std::mt19937_64 random_;
  uint64_t capacity_;
  std::unique_ptr<IndexMemory> memory_;
  std::byte* second_ = nullptr;
  std::unique_ptr<Selector> selector_;
  SelectorModel model_;
  uint64_t hide_from_ = 0;
  bool hides_ = false;
};

class SelectorTest : public ::testing::TestWithParam<ModelKind> {
 protected:
  std::unique_ptr<Selector> Full(IndexMemory* memory, uint64_t leaves) {
    auto selector = MakeSelector(memory, GetParam(), leaves);
    GEARDB_CHECK(selector->Reserve(leaves).ok());
    selector->Insert(LeafRange{0, leaves}, 2.0f);
    if (auto* epoch = dynamic_cast<EpochSelector*>(selector.get())) epoch->BeginEpoch();
    return selector;
  }
};

TEST_P(SelectorTest, RandomProgramsMatchThePlainModel) {
  const uint64_t capacities[] = {1, 31, 33, 257, 1500, 9000};
  for (uint64_t program = 0; program < testing::ShareOf(48); ++program) {
    const uint64_t capacity = capacities[program % std::size(capacities)];
    SCOPED_TRACE(::testing::Message() << "program " << program << ", " << capacity << " leaves");
    Program(GetParam(), capacity, program).Run(50);
    if (HasFatalFailure()) return;
  }
}

TEST_P(SelectorTest, HiddenKeepTheirPlaceAndInsertedAnewAreVisible) {
  const auto memory = TestMemory();
  const auto selector = Full(memory.get(), 10);
  ASSERT_OK(selector->ReserveHidden());
  const std::vector<uint64_t> some = {3, 7, 7, 99};
  EXPECT_EQ(selector->Hide(some), 2u);
  EXPECT_EQ(selector->Hide(some), 0u);
  EXPECT_TRUE(selector->IsHidden(3));
  EXPECT_FALSE(selector->IsHidden(4));
  EXPECT_EQ(selector->count(), 10u);
  EXPECT_EQ(selector->drawable(), 8u);
  EXPECT_TRUE(selector->Contains(7));
  // A member that is inserted or updated while hidden stays so; one erased has forgotten it.
  selector->Insert(LeafRange{7, 8}, 1.0f);
  selector->Update(some, std::vector<float>(4, 5.0f));
  EXPECT_TRUE(selector->IsHidden(7));
  EXPECT_EQ(selector->drawable(), 8u);
  selector->Erase({3, 4});
  EXPECT_FALSE(selector->IsHidden(3));
  selector->Insert(LeafRange{3, 4}, 1.0f);
  EXPECT_FALSE(selector->IsHidden(3));
  EXPECT_EQ(selector->Show(some), 1u);
  EXPECT_EQ(selector->Show(some), 0u);
  std::vector<uint64_t> leaves(400);
  const uint64_t drawn = selector->Draw({.seed = 1}, leaves, {});
  EXPECT_EQ(drawn, selector->distinct() ? selector->drawable() : 400u);
}

TEST_P(SelectorTest, AllHiddenIsNothingToDraw) {
  const auto memory = TestMemory();
  const auto selector = Full(memory.get(), 300);
  ASSERT_OK(selector->ReserveHidden());
  std::vector<uint64_t> all(300);
  for (uint64_t i = 0; i < 300; ++i) all[i] = i;
  EXPECT_EQ(selector->Hide(all), 300u);
  std::vector<uint64_t> leaves = {5, 5};
  EXPECT_EQ(selector->Draw({.seed = 1}, leaves, {}), 0u);
  EXPECT_EQ(leaves, (std::vector<uint64_t>{5, 5}));
  EXPECT_EQ(selector->total(), 0u);
  EXPECT_EQ(selector->count(), 300u);
}

TEST_P(SelectorTest, BudgetsAreRefusedAtEveryCommitWithoutChange) {
  // Every budget from too small for anything to enough: where one is refused, all is as before.
  constexpr uint64_t kStep = uint64_t{4} << 10;
  bool refused_to_grow = false;
  bool refused_to_hide = false;
  bool done = false;
  for (uint64_t budget = kStep; !done; budget += kStep) {
    ASSERT_LT(budget, uint64_t{64} << 20);
    auto memory = TestMemory(budget);
    auto selector = MakeSelector(memory.get(), GetParam(), uint64_t{1} << 30);
    if (!selector->Reserve(1000).ok()) continue;
    selector->Insert(LeafRange{0, 1000}, 2.0f);
    if (auto* epoch = dynamic_cast<EpochSelector*>(selector.get())) epoch->BeginEpoch();
    done = true;
    const auto unchanged = [&](uint64_t reserved) {
      EXPECT_EQ(selector->reserved(), reserved);
      EXPECT_EQ(selector->count(), 1000u);
      EXPECT_EQ(selector->drawable(), 1000u);
      std::vector<uint64_t> leaves(10);
      EXPECT_EQ(selector->Draw({.seed = 1}, leaves, {}), 10u);
    };
    if (const Status status = selector->ReserveHidden(); !status.ok()) {
      EXPECT_STATUS(kResourceExhausted, status, "budget_bytes");
      refused_to_hide = true;
      done = false;
      unchanged(1000);
    }
    if (const Status status = selector->Reserve(600'000); !status.ok()) {
      EXPECT_STATUS(kResourceExhausted, status, "budget_bytes");
      refused_to_grow = true;
      done = false;
      unchanged(1000);
    } else {
      unchanged(600'000);
    }
  }
  EXPECT_TRUE(refused_to_grow);
  // Ordered selectors keep a bit of each key for it.
  EXPECT_EQ(refused_to_hide, GetParam() < ModelKind::kFifo || GetParam() == ModelKind::kEpoch);
}

TEST_P(SelectorTest, NothingIsCommittedForHidingBeforeItIsAskedFor) {
  const auto memory = TestMemory();
  const auto selector = Full(memory.get(), 6'000'000);
  const uint64_t before = selector->committed_bytes();
  EXPECT_EQ(selector->Show(std::vector<uint64_t>{1, 2}), 0u);
  EXPECT_FALSE(selector->IsHidden(1));
  ASSERT_OK(selector->ReserveHidden());
  const bool has_bits = GetParam() < ModelKind::kFifo || GetParam() == ModelKind::kEpoch;
  EXPECT_EQ(selector->committed_bytes() > before, has_bits);
}

TEST_P(SelectorTest, LeavesBeyondTwoToThe31AreLikeOthers) {
  // Heaps end there. Only the pages that are touched take memory.
  const uint64_t first = GetParam() == ModelKind::kMinHeap || GetParam() == ModelKind::kMaxHeap
                             ? (uint64_t{1} << 31) - 100
                             : (uint64_t{1} << 32) + 5;
  auto memory =
      IndexMemory::Create({.budget_bytes = uint64_t{1} << 38, .reserve_bytes = uint64_t{1} << 40});
  ASSERT_OK(memory);
  const auto selector = MakeSelector(memory.value().get(), GetParam(), first + 100);
  ASSERT_OK(selector->Reserve(first + 100));
  ASSERT_OK(selector->ReserveHidden());
  selector->Insert(LeafRange{first, first + 100}, 2.0f);
  selector->Insert(LeafRange{5, 6}, 4.0f);
  EXPECT_EQ(selector->Hide(std::vector<uint64_t>{first + 3}), 1u);
  EXPECT_EQ(selector->count(), 101u);
  if (GetParam() == ModelKind::kEpoch) return;  // Its BeginEpoch would touch every page.
  EXPECT_EQ(selector->drawable(), 100u);
  std::vector<uint64_t> leaves(100);
  EXPECT_EQ(selector->Draw({.seed = 4}, leaves, {}), 100u);
  for (const uint64_t leaf : leaves) {
    EXPECT_TRUE(leaf == 5 || (leaf >= first && leaf != first + 3)) << leaf;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SelectorTest, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kNames[static_cast<int>(kind.param)]; });

}  // namespace
}  // namespace geardb::index
