// Drawing and updating through the public calls, over steps and over windows of 64 steps.
#include <algorithm>
#include <cstring>

#include "base/philox.h"
#include "index/prioritized_selector.h"
#include "index/uniform_selector.h"
#include "tools/bench/ceilings.h"
#include "tools/bench/machine.h"
#include "tools/bench/row.h"
#include "tools/bench/spread.h"
#include "tools/bench/store.h"

namespace geardb::bench {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kTrajectorySteps = 1000;
constexpr int kCalls = 100;
/// Calls before those that are timed, of Next and of what it is compared with: a learner draws
/// thousands of times a second from one tree, and as much of it as fits is in the caches.
constexpr int kCallsBefore = 2000;

/// What a store of `steps` steps of 4 bytes takes, with both selectors, and the bare ones beside.
uint64_t MemoryFor(int64_t steps) {
  return static_cast<uint64_t>(steps) * 28 + (uint64_t{1} << 30);
}

/// A table of steps of 4 bytes with a uniform and a prioritized priority table over windows, and
/// for the ceiling the same selectors alone.
struct Steps {
  std::shared_ptr<Store> store;
  std::unique_ptr<index::IndexMemory> memory;
  std::unique_ptr<index::Selector> bare[2];  // By SelectorKind.
};

Status AddBareSelectors(Steps* made, uint64_t steps) {
  GEARDB_ASSIGN_OR_RETURN(made->memory, index::IndexMemory::Create(
                                            {.budget_bytes = steps * 10 + (uint64_t{64} << 20)}));
  GEARDB_ASSIGN_OR_RETURN(made->bare[0],
                          index::UniformSelector::Create(made->memory.get(), "uniform", steps));
  GEARDB_ASSIGN_OR_RETURN(
      made->bare[1], index::PrioritizedSelector::Create(made->memory.get(), "prioritized",
                                                        {.leaf_capacity = steps, .alpha = 0.6}));
  for (auto& selector : made->bare) {
    GEARDB_RETURN_IF_ERROR(selector->Reserve(steps));
    selector->BeginBulk();
    for (uint64_t begin = 0; begin < steps; begin += kTrajectorySteps) {
      const uint64_t random = PhiloxRandom64(1, 0, static_cast<uint32_t>(begin / kTrajectorySteps),
                                             PhiloxPurpose::kItem);
      selector->Insert({begin, std::min<uint64_t>(begin + kTrajectorySteps, steps)},
                       static_cast<float>((random >> 40) + 1) / 16777216.0f);
    }
    selector->EndBulk();
  }
  return Status::Ok();
}

Result<std::shared_ptr<Steps>> MakeSteps(const Settings& settings, int64_t steps, int64_t window) {
  const uint64_t needed = MemoryFor(steps);
  if (needed > AvailableMemoryBytes()) {
    return Status::ResourceExhausted(steps, " steps need ", needed >> 20, " MiB of memory; ",
                                     AvailableMemoryBytes() >> 20, " MiB are free");
  }
  auto made = std::make_shared<Steps>();
  TableSpec spec = PlainTable(4, kTrajectorySteps);
  spec.priority_tables = {WindowsOf(window, SelectorKind::kUniform),
                          WindowsOf(window, SelectorKind::kPrioritized)};
  const auto bytes = static_cast<uint64_t>(steps);
  DatabaseOptions options =
      RoomyOptions(bytes * 5 + (uint64_t{64} << 20), bytes * 10 + (uint64_t{128} << 20));
  options.prefault = false;  // Filling it touches it.
  GEARDB_ASSIGN_OR_RETURN(made->store, MakeStore(settings, options, spec));
  GEARDB_RETURN_IF_ERROR(FillWithSteps(made->store.get(), steps, kTrajectorySteps));
  GEARDB_RETURN_IF_ERROR(AddBareSelectors(made.get(), bytes));
  return made;
}

Result<std::shared_ptr<Steps>> StepsOf(Bench* bench, int64_t steps, int64_t window) {
  const std::string key = "steps " + std::to_string(steps) + " by " + std::to_string(window);
  return bench->keeper.Get<Steps>(key, [&] { return MakeSteps(bench->settings, steps, window); });
}

/// What a row draws.
struct DrawKind {
  int64_t steps = 0;
  int64_t window = 1;
  SelectorKind selector = SelectorKind::kPrioritized;
  bool gather = false;
};

class NextScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench, const DrawKind& kind) {
    std::unique_ptr<NextScene> scene(new NextScene(kind));
    GEARDB_ASSIGN_OR_RETURN(scene->steps_, StepsOf(bench, kind.steps, kind.window));
    SamplerOptions options{.batch = kBatch};
    if (kind.gather) options.views = {{.column = "obs"}};
    auto table = scene->steps_->store->table->priority_table(SelectorName(kind.selector));
    GEARDB_ASSIGN_OR_RETURN(scene->sampler_, table->NewSampler(options));
    scene->calls_before_ = bench->settings.tiny ? 10 : kCallsBefore;
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    std::vector<double> nexts;
    for (int call = -calls_before_; call < kCalls; ++call) {
      const Stopwatch next;
      auto batch = sampler_->Next();
      if (call >= 0) nexts.push_back(next.us());
      GEARDB_RETURN_IF_ERROR(batch.status());
    }
    for (int call = 0; call < calls_before_; ++call) DrawBare();
    const double bare = MedianUs(kCalls, [this] { DrawBare(); });
    const double p99 = Quantile(nexts, 0.99);
    return Figure{Median(std::move(nexts)), bare, {{"p99_us", p99}}};
  }

 private:
  explicit NextScene(const DrawKind& kind)
      : kind_(kind),
        source_(kind.gather ? static_cast<uint64_t>(kind.steps) * sizeof(float) : 1),
        batch_(static_cast<uint64_t>(kBatch * kind.window) * sizeof(float)) {}

  void DrawBare() {
    steps_->bare[static_cast<size_t>(kind_.selector)]->Draw(
        {.seed = 9, .draw_number = draw_++, .first_row = 0}, leaves_, probabilities_);
    if (kind_.gather) CopyRows(static_cast<uint64_t>(kind_.window) * sizeof(float));
  }

  /// The bytes of the drawn windows, as if the steps lay one after the other.
  void CopyRows(uint64_t row_bytes) {
    const uint64_t last = source_.size() - row_bytes;
    for (const uint64_t leaf : leaves_) {
      const std::byte* at = source_.get() + std::min(leaf * sizeof(float), last);
      for (uint64_t line = 0; line < row_bytes; line += 64) __builtin_prefetch(at + line);
    }
    std::byte* to = batch_.get();
    for (const uint64_t leaf : leaves_) {
      std::memcpy(to, source_.get() + std::min(leaf * sizeof(float), last), row_bytes);
      to += row_bytes;
    }
  }

  const DrawKind kind_;
  std::shared_ptr<Steps> steps_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<uint64_t> leaves_ = std::vector<uint64_t>(kBatch);
  std::vector<double> probabilities_ = std::vector<double>(kBatch);
  uint64_t draw_ = 0;
  int calls_before_ = 0;
  Memory source_;
  Memory batch_;
};

class SetScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench, int64_t items) {
    std::unique_ptr<SetScene> scene(new SetScene);
    GEARDB_ASSIGN_OR_RETURN(scene->steps_, StepsOf(bench, items, 1));
    scene->table_ = scene->steps_->store->table->priority_table("prioritized");
    GEARDB_ASSIGN_OR_RETURN(scene->sampler_,
                            scene->table_->NewSampler({.batch = kBatch, .observer = true}));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    std::vector<double> sets;
    std::vector<float> priorities(kBatch);
    const auto choose = [&] {
      ++draw_;
      for (size_t i = 0; i < priorities.size(); ++i) {
        const uint64_t random =
            PhiloxRandom64(4, draw_, static_cast<uint32_t>(i), PhiloxPurpose::kItem);
        priorities[i] = static_cast<float>((random & 0xFFFF) + 1) / 65536.0f;
      }
    };
    for (int call = 0; call < kCalls; ++call) {
      GEARDB_ASSIGN_OR_RETURN(Batch batch, sampler_->Next());
      choose();
      const Stopwatch set;
      const auto outcome = table_->Set(batch.handles(), priorities);
      sets.push_back(set.us());
      GEARDB_RETURN_IF_ERROR(outcome.status());
      if (outcome->applied != priorities.size()) {
        return Status::Internal("of ", priorities.size(), " updates ", outcome->applied,
                                " were applied");
      }
    }
    std::vector<double> bares;
    std::vector<uint64_t> leaves(kBatch);
    index::Selector& bare = *steps_->bare[1];
    for (int call = 0; call < kCalls; ++call) {
      choose();
      bare.Draw({.seed = 9, .draw_number = draw_, .first_row = 0}, leaves, {});
      const Stopwatch update;
      bare.Update(leaves, priorities);
      bares.push_back(update.us());
    }
    const double p99 = Quantile(sets, 0.99);
    return Figure{Median(std::move(sets)), Median(std::move(bares)), {{"p99_us", p99}}};
  }

 private:
  SetScene() = default;
  std::shared_ptr<Steps> steps_;
  std::shared_ptr<PriorityTable> table_;
  std::unique_ptr<Sampler> sampler_;
  uint64_t draw_ = 0;
};

std::string DrawName(const DrawKind& kind) {
  std::string name = kind.window == 1 ? "draw.next" : "window.next";
  name += std::string(".") + SelectorName(kind.selector);
  return name + (kind.gather ? ".gather" : "");
}

Row NextRow(const DrawKind& kind) {
  Target target;
  const int64_t wanted = kind.window == 1 ? 10'000'000 : 300'000'000;
  const bool timed = kind.window > 1 || kind.selector == SelectorKind::kPrioritized;
  if (kind.steps == wanted && timed && !kind.gather) {
    target = {Target::Kind::kValueAtMost, kind.window == 1 ? 20.0 : 100.0};
  }
  const bool peer = kind.window == 1 && kind.gather && kind.selector == SelectorKind::kPrioritized;
  return {
      .name = DrawName(kind),
      .size = kind.steps,
      .size_of = kind.window == 1 ? "items" : "steps",
      .what = std::string("Sampler::Next of 256 ") +
              (kind.window == 1 ? "steps" : "windows of 64 steps") +
              " of 4 bytes with items, weights and the hand-over's log record, after 2 000 "
              "calls, " +
              (kind.gather ? "gather included" : "no gather"),
      .ceiling = std::string("the selector's draw alone") +
                 (kind.gather ? " and a bare copy of as many rows" : ""),
      .unit = Unit::kMicroseconds,
      .target = target,
      .make = [kind](Bench* bench) { return NextScene::Make(bench, kind); },
      .peer = peer ? PeerWork{"cpprb", "sample --items " + std::to_string(kind.steps)} : PeerWork(),
      .keeps = true};
}

Row SetRow(int64_t items) {
  return {.name = "update.set",
          .size = items,
          .size_of = "items",
          .what = "PriorityTable::Set of the 256 handles just drawn, its log record included",
          .ceiling = "the selector's update alone",
          .unit = Unit::kMicroseconds,
          .target = items == 10'000'000 ? Target{Target::Kind::kValueAtMost, 15} : Target{},
          .make = [items](Bench* bench) { return SetScene::Make(bench, items); },
          .peer = {"cpprb", "update --items " + std::to_string(items)},
          .keeps = true};
}

}  // namespace

std::vector<Row> DrawRows(const Settings& settings) {
  std::vector<Row> rows;
  for (const int64_t items : {100'000, 1'000'000, 10'000'000}) {
    rows.push_back(NextRow({items, 1, SelectorKind::kPrioritized, false}));
    rows.push_back(NextRow({items, 1, SelectorKind::kPrioritized, true}));
    rows.push_back(SetRow(items));
    if (settings.tiny) break;
  }
  for (const int64_t steps : {100'000, 1'000'000, 10'000'000, 300'000'000}) {
    for (const SelectorKind selector : {SelectorKind::kUniform, SelectorKind::kPrioritized}) {
      rows.push_back(NextRow({steps, 64, selector, false}));
      rows.push_back(NextRow({steps, 64, selector, true}));
    }
    if (settings.tiny) break;
  }
  return rows;
}

}  // namespace geardb::bench
