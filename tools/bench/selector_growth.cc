// What an item costs in every selector and every remover, from 10^5 to 10^7 items: drawn, updated,
// inserted, chosen to leave. The reporter flags what grows as no descent of a tree does.
#include <algorithm>
#include <array>

#include "base/philox.h"
#include "index/epoch_selector.h"
#include "index/heap_remover.h"
#include "index/lifo_remover.h"
#include "index/ordered_selector.h"
#include "index/prioritized_selector.h"
#include "index/uniform_remover.h"
#include "index/uniform_selector.h"
#include "tools/bench/ceilings.h"
#include "tools/bench/row.h"
#include "tools/bench/spread.h"

namespace geardb::bench {
namespace {

constexpr size_t kBatch = 256;
constexpr int kCalls = 100;

float PriorityOf(uint64_t draw, uint64_t item) {
  const uint64_t random =
      PhiloxRandom64(draw, item >> 32, static_cast<uint32_t>(item), PhiloxPurpose::kItem);
  return static_cast<float>((random >> 40) + 1) / 16777216.0f;
}

/// The `count` items from place `begin` on of a walk over all of them, which jumps: an item comes
/// again once all others have come.
std::vector<uint64_t> ScatteredItems(uint64_t begin, uint64_t count, uint64_t items) {
  constexpr uint64_t kJump = 7'368'787;  // A prime: no size has it as a factor.
  std::vector<uint64_t> chosen;
  for (uint64_t i = 0; i < count; ++i) chosen.push_back((begin + i) % items * kJump % items);
  return chosen;
}

double NsPerItem(std::vector<double> us) {
  return Median(std::move(us)) * 1000 / static_cast<double>(kBatch);
}

/// Touches a line for each item of a batch, addresses known beforehand: no choice costs less.
class LineTouch {
 public:
  explicit LineTouch(uint64_t bytes) : memory_(std::max<uint64_t>(bytes, 4096)) {}

  double NsPerItem() {
    std::vector<double> us;
    for (int call = 0; call < kCalls; ++call) {
      std::array<const std::byte*, kBatch> lines;
      for (uint32_t i = 0; i < kBatch; ++i) {
        const uint64_t random = PhiloxRandom64(12, ++touched_, i, PhiloxPurpose::kItem);
        lines[i] = memory_.get() + MulHi64(random, memory_.size() / 64) * 64;
      }
      uint8_t sum = 0;
      const Stopwatch watch;
      constexpr size_t kAhead = 32;
      for (size_t i = 0; i < kBatch; ++i) {
        if (i + kAhead < kBatch) __builtin_prefetch(lines[i + kAhead]);
        sum = static_cast<uint8_t>(sum + std::to_integer<uint8_t>(*lines[i]));
      }
      us.push_back(watch.us());
      sum_ = sum;
    }
    return bench::NsPerItem(std::move(us));
  }

 private:
  Memory memory_;
  uint64_t touched_ = 0;
  volatile uint8_t sum_ = 0;  // Keeps the reads.
};

// ---- Selectors.

enum class Kind : uint8_t {
  kUniform,
  kPrioritized,
  kFifo,
  kLifo,
  kMinHeap,
  kMaxHeap,
  kWithoutReplacement,
  kEpoch,
};
constexpr std::array kKinds = {
    Kind::kUniform, Kind::kPrioritized,        Kind::kFifo, Kind::kLifo, Kind::kMinHeap,
    Kind::kMaxHeap, Kind::kWithoutReplacement, Kind::kEpoch};
constexpr const char* kKindNames[] = {"uniform",  "prioritized",         "fifo", "lifo", "min_heap",
                                      "max_heap", "without_replacement", "epoch"};

template <typename Kept>
Result<std::unique_ptr<index::Selector>> AsSelector(Result<std::unique_ptr<Kept>> made) {
  GEARDB_RETURN_IF_ERROR(made.status());
  return std::unique_ptr<index::Selector>(std::move(made).value());
}

Result<std::unique_ptr<index::Selector>> MakeKind(Kind kind, index::IndexMemory* memory,
                                                  uint64_t items) {
  const auto ordered = [&](index::ItemOrder order) {
    return AsSelector(
        index::OrderedSelector::Create(memory, "bench", {.leaf_capacity = items, .order = order}));
  };
  const auto weighted = [&](bool without) {
    return AsSelector(index::PrioritizedSelector::Create(
        memory, "bench", {.leaf_capacity = items, .alpha = 0.6, .without_replacement = without}));
  };
  switch (kind) {
    case Kind::kUniform:
      return AsSelector(index::UniformSelector::Create(memory, "bench", items));
    case Kind::kPrioritized:
      return weighted(false);
    case Kind::kFifo:
      return ordered(index::ItemOrder::kOldestFirst);
    case Kind::kLifo:
      return ordered(index::ItemOrder::kNewestFirst);
    case Kind::kMinHeap:
      return ordered(index::ItemOrder::kSmallestFirst);
    case Kind::kMaxHeap:
      return ordered(index::ItemOrder::kLargestFirst);
    case Kind::kWithoutReplacement:
      return weighted(true);
    case Kind::kEpoch:
      break;
  }
  return AsSelector(index::EpochSelector::Create(memory, "bench", items));
}

/// A selector of a kind over `items` items.
struct Selection {
  std::unique_ptr<index::IndexMemory> memory;
  std::unique_ptr<index::Selector> selector;
  index::EpochSelector* epoch = nullptr;  ///< The same, where it is one.
  std::unique_ptr<LineTouch> lines;
  uint64_t items = 0;
  uint64_t draw = 0;
  uint64_t walked = 0;  ///< Items given by ScatteredItems.
};

Result<std::shared_ptr<Selection>> MakeSelection(Kind kind, uint64_t items) {
  auto made = std::make_shared<Selection>();
  made->items = items;
  GEARDB_ASSIGN_OR_RETURN(made->memory, index::IndexMemory::Create(
                                            {.budget_bytes = items * 20 + (uint64_t{32} << 20)}));
  GEARDB_ASSIGN_OR_RETURN(made->selector, MakeKind(kind, made->memory.get(), items));
  index::Selector& selector = *made->selector;
  GEARDB_RETURN_IF_ERROR(selector.Reserve(items));
  std::vector<uint64_t> leaves(4096);
  std::vector<float> priorities(4096);
  selector.BeginBulk();
  for (uint64_t begin = 0; begin < items; begin += leaves.size()) {
    const uint64_t count = std::min<uint64_t>(leaves.size(), items - begin);
    for (uint64_t i = 0; i < count; ++i) {
      leaves[i] = begin + i;
      priorities[i] = PriorityOf(3, begin + i);
    }
    selector.Insert(std::span(leaves).first(count), std::span(priorities).first(count));
  }
  selector.EndBulk();
  if (kind == Kind::kEpoch) {
    made->epoch = static_cast<index::EpochSelector*>(made->selector.get());
    made->epoch->BeginEpoch();
  }
  made->lines = std::make_unique<LineTouch>(selector.committed_bytes());
  return made;
}

enum class Call : uint8_t { kDraw, kUpdate, kInsert };
constexpr std::array kCallsOf = {Call::kDraw, Call::kUpdate, Call::kInsert};
constexpr const char* kCallNames[] = {"draw", "update", "insert"};

class SelectionScene final : public Scene {
 public:
  SelectionScene(std::shared_ptr<Selection> kept, Call call)
      : selection_(*kept), kept_(std::move(kept)), call_(call) {}

  Result<Figure> Measure() override {
    std::vector<double> us;
    if (call_ == Call::kInsert) us = Insert();
    while (us.size() < kCalls && call_ != Call::kInsert) {
      ++selection_.draw;
      us.push_back(call_ == Call::kDraw ? Draw() : Update());
    }
    return Figure{NsPerItem(std::move(us)), selection_.lines->NsPerItem(), {}};
  }

 private:
  double Draw() {
    const Stopwatch watch;
    const uint64_t rows = selection_.selector->Draw(
        {.seed = 5, .draw_number = selection_.draw, .first_row = 0}, leaves_, probabilities_);
    const double us = watch.us();
    GEARDB_CHECK(rows == leaves_.size());
    return us;
  }

  /// Raw priorities of what a draw has given; in an epoch it is covered, and put back.
  double Update() {
    Draw();
    std::vector<float> priorities;
    for (const uint64_t leaf : leaves_) priorities.push_back(PriorityOf(selection_.draw, leaf));
    const Stopwatch watch;
    if (selection_.epoch != nullptr) {
      selection_.epoch->Take(leaves_);
    } else {
      selection_.selector->Update(leaves_, priorities);
    }
    const double us = watch.us();
    if (selection_.epoch != nullptr) selection_.epoch->GiveBack(leaves_);
    return us;
  }

  /// Into the places of as many members, scattered over all, which leave before: all of them before
  /// the first call, so that no call finds its places in the caches.
  std::vector<double> Insert() {
    const uint64_t calls = std::min<uint64_t>(kCalls, selection_.items / (2 * kBatch));
    const std::vector<uint64_t> leaves =
        ScatteredItems(selection_.walked, calls * kBatch, selection_.items);
    selection_.walked += leaves.size();
    std::vector<float> priorities;
    for (const uint64_t leaf : leaves) {
      selection_.selector->Erase(index::LeafRange{leaf, leaf + 1});
      priorities.push_back(PriorityOf(selection_.walked, leaf));
    }
    std::vector<double> us;
    for (uint64_t at = 0; at < leaves.size(); at += kBatch) {
      const Stopwatch watch;
      selection_.selector->Insert(std::span(leaves).subspan(at, kBatch),
                                  std::span(priorities).subspan(at, kBatch));
      us.push_back(watch.us());
    }
    // What came later is in no epoch: this one takes it up.
    if (selection_.epoch != nullptr) selection_.epoch->RestoreCut(leaves);
    if (selection_.epoch != nullptr) selection_.epoch->GiveBack(leaves);
    return us;
  }

  Selection& selection_;
  std::shared_ptr<Selection> kept_;
  const Call call_;
  std::vector<uint64_t> leaves_ = std::vector<uint64_t>(kBatch);
  std::vector<double> probabilities_ = std::vector<double>(kBatch);
};

// ---- Removers.

enum class RemoverKind : uint8_t { kLifo, kUniform, kMinHeap, kMaxHeap };
constexpr std::array kRemoverKinds = {RemoverKind::kLifo, RemoverKind::kUniform,
                                      RemoverKind::kMinHeap, RemoverKind::kMaxHeap};
constexpr const char* kRemoverNames[] = {"lifo", "uniform", "min_heap", "max_heap"};

struct Leaving {
  std::unique_ptr<index::IndexMemory> memory;
  std::unique_ptr<index::Remover> remover;
  index::HeapRemover* heap = nullptr;  ///< The same, where it is one.
  std::unique_ptr<LineTouch> lines;
  uint64_t items = 0;
  uint64_t removals = 0;
};

void AddLeft(Leaving* leaving, Slot slot) {
  leaving->remover->Add({slot, 0, leaving->items + leaving->removals + slot});
  if (leaving->heap != nullptr) {
    leaving->heap->SetPriority(slot, PriorityOf(4 + leaving->removals, slot));
  }
}

Result<std::shared_ptr<Leaving>> MakeLeaving(RemoverKind kind, uint64_t items) {
  auto made = std::make_shared<Leaving>();
  made->items = items;
  GEARDB_ASSIGN_OR_RETURN(
      made->memory, index::IndexMemory::Create({.budget_bytes = items * 4 + (uint64_t{32} << 20)}));
  if (kind == RemoverKind::kUniform) {
    GEARDB_ASSIGN_OR_RETURN(made->remover,
                            index::UniformRemover::Create(made->memory.get(), "bench",
                                                          {.slot_capacity = items, .seed = 6}));
  } else if (kind == RemoverKind::kLifo) {
    made->remover = std::make_unique<index::LifoRemover>();
  } else {
    using Order = index::HeapRemover::Order;
    auto heap = std::make_unique<index::HeapRemover>(
        kind == RemoverKind::kMinHeap ? Order::kSmallestFirst : Order::kLargestFirst);
    made->heap = heap.get();
    made->remover = std::move(heap);
  }
  GEARDB_RETURN_IF_ERROR(made->remover->Reserve(items));
  for (uint64_t slot = 0; slot < items; ++slot) AddLeft(made.get(), static_cast<Slot>(slot));
  made->lines = std::make_unique<LineTouch>(items * 16);
  return made;
}

/// Chooses a batch and takes it out, or puts as many in.
class LeavingScene final : public Scene {
 public:
  LeavingScene(std::shared_ptr<Leaving> kept, bool adds)
      : leaving_(*kept), kept_(std::move(kept)), adds_(adds) {}

  Result<Figure> Measure() override {
    std::vector<double> us;
    for (int call = 0; call < kCalls; ++call) {
      std::vector<Slot> slots;
      slots.reserve(kBatch);
      const Stopwatch choice;
      leaving_.remover->Begin(leaving_.removals);
      while (slots.size() < kBatch) {
        const auto slot = leaving_.remover->Next();
        GEARDB_CHECK(slot.has_value());
        slots.push_back(*slot);
      }
      leaving_.remover->End();
      for (const Slot slot : slots) leaving_.remover->Erase(slot);
      const double chosen = choice.us();
      leaving_.removals += kBatch;
      const Stopwatch adding;
      for (const Slot slot : slots) AddLeft(&leaving_, slot);
      us.push_back(adds_ ? adding.us() : chosen);
    }
    return Figure{NsPerItem(std::move(us)), leaving_.lines->NsPerItem(), {}};
  }

 private:
  Leaving& leaving_;
  std::shared_ptr<Leaving> kept_;
  const bool adds_;
};

// ---- Rows.

Row GrowthRow(std::string name, int64_t items, std::string what) {
  return {.name = std::move(name),
          .size = items,
          .size_of = "items",
          .what = std::move(what),
          .ceiling =
              "touching one random cache line of as many bytes for each item, addresses "
              "known beforehand",
          .unit = Unit::kNanoseconds,
          .repetitions = 5,
          .keeps = true,
          .logarithmic = true};
}

Row SelectionRow(Kind kind, Call call, int64_t items) {
  const char* const name = kKindNames[static_cast<size_t>(kind)];
  constexpr const char* kWhat[] = {
      "drawn, 256 in a call, probabilities included",
      "given a new raw priority behind a draw of 256 (of an epoch: covered)",
      "inserted, 256 in a call, into the places of scattered ones that have left"};
  Row row = GrowthRow(
      std::string("selector.") + name + "." + kCallNames[static_cast<size_t>(call)], items,
      std::string("an item of the ") + name + " selector " + kWhat[static_cast<size_t>(call)]);
  row.make = [=](Bench* bench) -> Result<std::unique_ptr<Scene>> {
    const std::string key = std::string("selection ") + name + " " + std::to_string(items);
    GEARDB_ASSIGN_OR_RETURN(auto kept, bench->keeper.Get<Selection>(key, [=] {
      return MakeSelection(kind, static_cast<uint64_t>(items));
    }));
    return std::unique_ptr<Scene>(std::make_unique<SelectionScene>(std::move(kept), call));
  };
  return row;
}

Row LeavingRow(RemoverKind kind, bool adds, int64_t items) {
  const char* const name = kRemoverNames[static_cast<size_t>(kind)];
  Row row =
      GrowthRow(std::string("remover.") + name + (adds ? ".add" : ".choose"), items,
                std::string("a trajectory of the ") + name + " remover " +
                    (adds ? "added, with its priority" : "chosen and taken out") + ", 256 in turn");
  row.make = [=](Bench* bench) -> Result<std::unique_ptr<Scene>> {
    const std::string key = std::string("leaving ") + name + " " + std::to_string(items);
    GEARDB_ASSIGN_OR_RETURN(auto kept, bench->keeper.Get<Leaving>(key, [=] {
      return MakeLeaving(kind, static_cast<uint64_t>(items));
    }));
    return std::unique_ptr<Scene>(std::make_unique<LeavingScene>(std::move(kept), adds));
  };
  return row;
}

}  // namespace

std::vector<Row> SelectorGrowthRows(const Settings& settings) {
  std::vector<Row> rows;
  std::vector<int64_t> sizes = {100'000, 1'000'000, 10'000'000};
  if (settings.tiny) sizes = {1000, 10'000};
  for (const Kind kind : kKinds) {
    for (const int64_t items : sizes) {
      for (const Call call : kCallsOf) rows.push_back(SelectionRow(kind, call, items));
    }
  }
  for (const RemoverKind kind : kRemoverKinds) {
    for (const int64_t items : sizes) {
      for (const bool adds : {false, true}) rows.push_back(LeavingRow(kind, adds, items));
    }
  }
  return rows;
}

}  // namespace geardb::bench
