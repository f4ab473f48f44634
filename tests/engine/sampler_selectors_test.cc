// Ordered selectors and draws without replacement: random programs of appends, removals, sets,
// draws and reopens against a plain model of each priority table.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/fixed_math.h"
#include "tests/engine/sampler_fixture.h"
#include "tests/index/selector_model.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using index::ModelKind;
using index::SelectorModel;
using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

struct Kind {
  const char* name;
  SelectorKind selector;
  ModelKind model;
};
constexpr Kind kKinds[] = {
    {"fifo", SelectorKind::kFifo, ModelKind::kFifo},
    {"lifo", SelectorKind::kLifo, ModelKind::kLifo},
    {"min", SelectorKind::kMinHeap, ModelKind::kMinHeap},
    {"max", SelectorKind::kMaxHeap, ModelKind::kMaxHeap},
    {"without", SelectorKind::kWithoutReplacement, ModelKind::kWithout},
};
constexpr uint32_t kLanes = 3;

PriorityTableSpec SpecOf(const Kind& kind) {
  PriorityTableSpec spec = WindowSpec(kind.name);
  spec.selector = kind.selector;
  if (kind.selector == SelectorKind::kMinHeap) {
    spec.initial = InitialPriority::kConstant;
    spec.initial_priority_value = 2.5f;
  }
  return spec;
}

/// An item, in the order of trajectories and rows.
uint64_t KeyOf(TrajectoryId id, int64_t row) { return id << 20 | static_cast<uint64_t>(row); }

/// One priority table as it should be.
struct Twin {
  explicit Twin(const Kind& its_kind) : kind(its_kind), items(its_kind.model) {}

  float Initial() const { return kind.selector == SelectorKind::kMinHeap ? 2.5f : max; }

  Kind kind;
  SelectorModel items;
  float max = 1.0f;
  uint64_t draws = 0;
};

class SamplerSelectorsTest : public testing::SamplerFixture {
 protected:
  void CreateAll() {
    TableSpec spec = StepSpec();
    twins_.clear();
    for (const Kind& kind : kKinds) {
      spec.priority_tables.push_back(SpecOf(kind));
      twins_.emplace_back(kind);
    }
    Create(spec, {.lanes = kLanes});
  }
  float RandomRaw() {
    return random_() % 5 == 0 ? 0.0f : static_cast<float>(random_() % 40) * 0.25f;
  }

  /// Items that one call makes drawable, in the order of lanes and rows, with these priorities.
  void Insert(const std::vector<uint64_t>& keys,
              const std::map<std::string, std::vector<float>>& given) {
    for (Twin& twin : twins_) {
      const float initial = twin.Initial();
      const auto values = given.find(twin.kind.name);
      for (size_t i = 0; i < keys.size(); ++i) {
        float raw = initial;
        if (values != given.end()) {
          raw = values->second.size() == 1 ? values->second[0] : values->second[i];
        }
        twin.max = std::max(twin.max, raw);
        twin.items.Insert(keys[i], raw);
      }
    }
  }
  std::map<std::string, std::vector<float>> RandomGiven(size_t items) {
    std::map<std::string, std::vector<float>> given;
    for (const Kind& kind : kKinds) {
      if (random_() % 3 != 0) continue;
      auto& values = given[kind.name];
      values.resize(random_() % 2 == 0 ? 1 : items);
      for (float& value : values) value = RandomRaw();
    }
    return given;
  }
  static std::vector<InitialPriorities> Views(
      const std::map<std::string, std::vector<float>>& given) {
    std::vector<InitialPriorities> views;
    for (const auto& [name, values] : given) views.push_back({name, values});
    return views;
  }

  void AppendSome() {
    const auto lane = static_cast<uint32_t>(random_() % kLanes);
    const auto count = static_cast<int64_t>(1 + random_() % 7);
    const End end = random_() % 3 == 0 ? End::kTerminated : End::kGo;
    const Rows rows(0, count);
    const auto given = RandomGiven(static_cast<size_t>(count));
    const auto views = Views(given);
    const auto appended =
        writer_->AppendSteps(rows.many(), {.lane = lane, .end = end, .priorities = views});
    ASSERT_OK(appended);
    std::vector<uint64_t> keys;
    for (int64_t row = 0; row < count; ++row) {
      keys.push_back(KeyOf(appended->id, appended->first_row + row));
    }
    Insert(keys, given);
    if (end != End::kGo) closed_.push_back(appended->id);
  }
  void AppendToLanes() {
    std::vector<End> ends(kLanes);
    size_t items = 0;
    for (End& end : ends) {
      end = random_() % 3 == 0 ? End::kSkip : random_() % 3 == 0 ? End::kTerminated : End::kGo;
      items += end == End::kSkip ? 0 : 1;
    }
    if (items == 0) return;
    const Rows rows(0, kLanes);
    const auto given = RandomGiven(items);
    const auto views = Views(given);
    const auto appended = writer_->AppendLanes(rows.many(), {.ends = ends, .priorities = views});
    ASSERT_OK(appended);
    std::vector<uint64_t> keys;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (ends[lane] == End::kSkip) continue;
      keys.push_back(KeyOf((*appended)[lane].id, (*appended)[lane].first_row));
      if (ends[lane] == End::kTerminated) closed_.push_back((*appended)[lane].id);
    }
    Insert(keys, given);
  }
  void RemoveSome() {
    if (closed_.empty()) return;
    const size_t at = random_() % closed_.size();
    const TrajectoryId id = closed_[at];
    closed_.erase(closed_.begin() + static_cast<long>(at));
    ASSERT_OK(table_->Remove({&id, 1}));
    for (Twin& twin : twins_) twin.items.Erase({KeyOf(id, 0), KeyOf(id + 1, 0)});
  }
  void SetSome() {
    Twin& twin = twins_[random_() % twins_.size()];
    if (random_() % 6 == 0 && !twin.items.items().empty()) {
      const float value[] = {RandomRaw()};
      const auto outcome = priority(twin.kind.name)->SetAll(value);
      ASSERT_OK(outcome);
      ASSERT_EQ(outcome->applied, twin.items.items().size());
      for (auto& [key, item] : twin.items.items()) item.raw = value[0];
      twin.max = std::max(twin.max, value[0]);
      return;
    }
    std::vector<RowId> rows;
    std::vector<float> values;
    uint64_t applied = 0;
    for (uint64_t i = random_() % 20; i > 0; --i) {
      rows.push_back({1 + random_() % 30, static_cast<int64_t>(random_() % 12)});
      values.push_back(RandomRaw());
      if (twin.items.Update(KeyOf(rows.back().id, rows.back().row), values.back()) == 0) continue;
      ++applied;
      twin.max = std::max(twin.max, values.back());
    }
    const auto outcome = priority(twin.kind.name)->Set(rows, values);
    ASSERT_OK(outcome);
    ASSERT_EQ(outcome->applied, applied);
    ASSERT_EQ(outcome->stale, rows.size() - applied);
  }
  void ReopenAll() {
    Close();
    Open();
    OpenAgain("steps", {.lanes = kLanes});
  }

  /// Weights in leaf order, and which item each leaf is. Leaves are those of a batch of all items.
  std::vector<std::pair<uint64_t, uint64_t>> WeightsOf(const Twin& twin,
                                                       std::map<uint64_t, uint64_t>* key_of) {
    PriorityTable* table = priority(twin.kind.name);
    const int shift = table->Stats().scale_shift;
    const auto by_key = twin.items.Weights(
        [&](float raw) -> uint64_t { return QuantizeWeight(Pow(double{raw}, 1.0), shift); });
    if (twin.items.ordered() || by_key.empty()) {
      for (const auto& [key, weight] : by_key) (*key_of)[key] = key;
      return by_key;
    }
    auto all = table->NewSampler({.batch = static_cast<int64_t>(by_key.size()), .observer = true});
    EXPECT_OK(all);
    const auto batch = (*all)->Next(Deadline::Now());
    EXPECT_OK(batch);
    if (!batch.ok()) return {};
    std::map<uint64_t, uint64_t> by_leaf;
    const std::map<uint64_t, uint64_t> weights(by_key.begin(), by_key.end());
    for (size_t i = 0; i < by_key.size(); ++i) {
      const uint64_t key = KeyOf(batch->trajectory_ids()[i], batch->anchors()[i]);
      EXPECT_TRUE(weights.contains(key)) << key;
      (*key_of)[batch->handles()[i].leaf] = key;
      by_leaf[batch->handles()[i].leaf] = weights.contains(key) ? weights.at(key) : 0;
    }
    EXPECT_EQ(by_leaf.size(), by_key.size());
    return {by_leaf.begin(), by_leaf.end()};
  }

  void Compare(Twin* twin) {
    PriorityTable* table = priority(twin->kind.name);
    SCOPED_TRACE(twin->kind.name);
    std::map<uint64_t, uint64_t> key_of;
    const auto weights = WeightsOf(*twin, &key_of);
    ASSERT_EQ(table->Count(), twin->items.items().size());
    ASSERT_EQ(table->DrawableCount(), weights.size());
    const bool has_priorities = twin->items.has_priorities();
    ASSERT_EQ(table->MaxPriority(), has_priorities ? twin->max : 1.0f);
    std::vector<uint64_t> keys;
    for (const RowId& row : table->Items()) keys.push_back(KeyOf(row.id, row.row));
    size_t at = 0;
    for (const auto& [key, item] : twin->items.items()) {
      ASSERT_EQ(keys[at++], key);
      const RowId row{key >> 20, static_cast<int64_t>(key & 0xFFFFF)};
      const auto raw = table->Priority(row);
      ASSERT_OK(raw);
      ASSERT_EQ(*raw, has_priorities ? item.raw : 1.0f) << row.id << " " << row.row;
      if (twin->items.ordered()) {
        ASSERT_EQ(*table->Probability(row), 1.0);
      }
    }
    if (weights.empty()) return;
    const uint64_t rows = 1 + random_() % weights.size();
    const bool observer = random_() % 2 == 0;
    SamplerOptions options{.batch = static_cast<int64_t>(rows),
                           .views = {{.column = "action"}},
                           .beta = 1.0,
                           .observer = observer,
                           .seed = random_()};
    auto sampler = table->NewSampler(options);
    ASSERT_OK(sampler);
    const auto batch = (*sampler)->Next(Deadline::Now());
    ASSERT_OK(batch);
    const uint64_t number = observer ? 0 : twin->draws++;
    ASSERT_EQ(batch->draw_number(), number);
    const SelectorModel::Drawn expected =
        twin->items.Draw({observer ? options.seed : 7, number}, rows, weights);
    ASSERT_EQ(expected.leaves.size(), rows);
    double largest = 0;
    for (const double p : expected.probabilities) largest = std::max(largest, 1 / p);
    for (size_t i = 0; i < rows; ++i) {
      ASSERT_EQ(KeyOf(batch->trajectory_ids()[i], batch->anchors()[i]),
                key_of.at(expected.leaves[i]))
          << "row " << i << " of " << rows;
      ASSERT_EQ(batch->probabilities()[i], expected.probabilities[i]);
      const double weight = 1 / expected.probabilities[i] / largest;
      ASSERT_NEAR(batch->weights()[i], twin->items.ordered() ? 1.0 : weight, 1e-5);
    }
  }

  std::mt19937_64 random_;
  std::vector<Twin> twins_;
  std::vector<TrajectoryId> closed_;
};

TEST_F(SamplerSelectorsTest, RandomProgramsMatchThePlainModel) {
  for (uint64_t program = 0; program < testing::ShareOf(12); ++program) {
    random_.seed(program);
    closed_.clear();
    OpenEmpty();
    CreateAll();
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE(::testing::Message() << "program " << program << ", step " << step);
      switch (random_() % 12) {
        case 0:
        case 1:
        case 2:
        case 3:
          AppendSome();
          break;
        case 4:
        case 5:
          AppendToLanes();
          break;
        case 6:
          RemoveSome();
          break;
        case 7:
          ReopenAll();
          break;
        default:
          SetSome();
      }
      if (HasFatalFailure()) return;
      for (Twin& twin : twins_) {
        if (random_() % 3 == 0) Compare(&twin);
        if (HasFatalFailure()) return;
      }
    }
    ReopenAll();
    for (Twin& twin : twins_) Compare(&twin);
    if (HasFatalFailure()) return;
  }
}

TEST_F(SamplerSelectorsTest, DistinctBatchesWaitForAsManyItems) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    OpenEmpty();
    CreateWith(SpecOf(kind));
    auto sampler = priority(kind.name)->NewSampler({.batch = 5});
    ASSERT_OK(sampler);
    EXPECT_STATUS(kDeadlineExceeded, (*sampler)->Next(Deadline::Now()), "has nothing to draw");
    Append(0, 4);
    EXPECT_STATUS(kDeadlineExceeded, (*sampler)->Next(Deadline::Now()),
                  "holds 4 items that can be drawn; the batch takes 5 distinct ones");
    Append(4, 1);
    const auto batch = (*sampler)->Next(Deadline::Now());
    ASSERT_OK(batch);
    EXPECT_EQ(batch->draw_number(), 0u);  // What timed out has used none.
    const std::set<int64_t> rows(batch->anchors().begin(), batch->anchors().end());
    EXPECT_EQ(rows, (std::set<int64_t>{0, 1, 2, 3, 4}));
  }
}

TEST_F(SamplerSelectorsTest, WhatIsThereBeforeThePriorityTableComesInOrderOfSlotAndRow) {
  Create(StepSpec());
  const TrajectoryId first = AppendClosed(0, 3);
  const TrajectoryId second = AppendClosed(10, 3);
  ASSERT_OK(table_->CreatePriorityTable(SpecOf(kKinds[0])));
  const TrajectoryId third = AppendClosed(20, 1);
  for (const bool reopened : {false, true}) {
    if (reopened) {
      Close();
      Open();
      OpenAgain("steps");
    }
    auto sampler = priority("fifo")->NewSampler({.batch = 7});
    ASSERT_OK(sampler);
    const auto batch = (*sampler)->Next();
    ASSERT_OK(batch);
    const std::vector<TrajectoryId> ids(batch->trajectory_ids().begin(),
                                        batch->trajectory_ids().end());
    EXPECT_EQ(ids, (std::vector<TrajectoryId>{first, first, first, second, second, second, third}));
    const std::vector<int64_t> rows(batch->anchors().begin(), batch->anchors().end());
    EXPECT_EQ(rows, (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0}));
  }
}

}  // namespace
}  // namespace geardb
