#include "engine/internal/image_items.h"

#include <random>

#include "tests/testing/image_core.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

using testing::ImageChunks;

constexpr Lsn kLsn = 1000;
constexpr TableId kTable = 4;

class ImageItemsTest : public ::testing::Test {
 protected:
  std::unique_ptr<PriorityState> Make(const PriorityTableSpec& spec, uint64_t leaves) {
    auto made = PriorityState::Create(memory_.get(), spec, leaves);
    GEARDB_CHECK(made.ok() && (*made)->Reserve(leaves).ok());
    return std::move(*made);
  }

  ImageChunks Save(const PriorityState& priority) {
    ImageChunks image;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(ItemsImage::SaveHead(&builder, priority));
    ChunkWriter head({kTable, ImageKind::kTable, 0}, kLsn);
    head.PutBytes(
        {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()});
    EXPECT_OK(head.GiveTo(image.sink()));
    const ItemsImage items(kTable, 3);
    const ItemsShape shape(priority);
    for (uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
      const ItemsCopy copy = ItemsImage::Copy(priority, shape, chunk);
      EXPECT_OK(items.Give(shape, copy, kLsn, image.sink()));
    }
    return image;
  }

  /// Into one of the spec that the head has.
  Result<std::unique_ptr<PriorityState>> Load(const ImageChunks& image, uint64_t leaves) {
    const std::string& bytes = image.chunks.at({kTable, ImageKind::kTable, 0});
    const auto* head = flatbuffers::GetRoot<fb::PriorityTableHead>(bytes.data() + 24);
    GEARDB_ASSIGN_OR_RETURN(const PriorityTableSpec spec, DecodePriorityTableSpec(head->spec()));
    std::unique_ptr<PriorityState> priority = Make(spec, leaves);
    priority->selector().BeginBulk();
    GEARDB_RETURN_IF_ERROR(ItemsImage(kTable, 3).Load(*head, kLsn, image.source(), priority.get()));
    priority->selector().EndBulk();
    return priority;
  }

  void ExpectSame(const PriorityState& a, const PriorityState& b) {
    ASSERT_EQ(a.selector().count(), b.selector().count());
    EXPECT_EQ(a.selector().drawable(), b.selector().drawable());
    EXPECT_EQ(a.selector().total(), b.selector().total());
    EXPECT_EQ(a.max_priority(), b.max_priority());
    EXPECT_EQ(a.CountExhausted(), b.CountExhausted());
    index::RateLimiterState counts = a.limiter().state();
    counts.reserved = 0;
    EXPECT_EQ(counts, b.limiter().state());
    ASSERT_EQ(a.CountDeleted({0, a.selector().reserved()}),
              b.CountDeleted({0, b.selector().reserved()}));
    a.ForEachDeleted([&](uint64_t leaf) { ASSERT_TRUE(b.IsDeleted(leaf)) << leaf; });
    if (a.epoch() != nullptr) {
      EpochStats stats = a.epoch()->Stats();
      stats.reserved = 0;
      EXPECT_EQ(stats, b.epoch()->Stats());
      a.epoch()->selector().cut_members().ForEach({0, a.selector().reserved()}, [&](uint64_t leaf) {
        ASSERT_TRUE(b.epoch()->selector().InCut(leaf)) << leaf;
        const bool left = a.epoch()->Remains(leaf) || a.epoch()->reserved_leaves().contains(leaf);
        ASSERT_EQ(left, b.epoch()->Remains(leaf)) << leaf;
      });
    }
    a.selector().ForEachMember({0, a.selector().reserved()}, [&](uint64_t leaf) {
      ASSERT_TRUE(b.selector().Contains(leaf)) << leaf;
      ASSERT_EQ(a.raw_priority(leaf), b.raw_priority(leaf)) << leaf;
      ASSERT_EQ(a.selector().IsHidden(leaf), b.selector().IsHidden(leaf)) << leaf;
    });
    std::vector<uint64_t> of_a(50);
    std::vector<uint64_t> of_b(50);
    of_a.resize(a.selector().Draw({.seed = 5, .draw_number = 9}, of_a, {}));
    of_b.resize(b.selector().Draw({.seed = 5, .draw_number = 9}, of_b, {}));
    EXPECT_EQ(of_a, of_b);
  }

  const std::unique_ptr<index::IndexMemory> memory_ = [] {
    auto memory = index::IndexMemory::Create(
        {.budget_bytes = uint64_t{1} << 30, .reserve_bytes = uint64_t{1} << 40, .name = "items"});
    GEARDB_CHECK(memory.ok());
    return std::move(*memory);
  }();
};

/// One random change, to both.
void Change(std::mt19937_64* random, uint64_t leaves, std::vector<PriorityState*> priorities) {
  const uint64_t begin = (*random)() % leaves;
  const uint64_t end = std::min(leaves, begin + (*random)() % 40);
  const float raw = static_cast<float>((*random)() % 9) / 4;
  const uint64_t what = (*random)() % 12;
  for (PriorityState* priority : priorities) {
    index::Selector& selector = priority->selector();
    std::vector<uint64_t> there;
    selector.ForEachMember({begin, end}, [&](uint64_t leaf) { there.push_back(leaf); });
    const std::vector<float> values(there.size(), raw + 1);
    if (what < 3) {
      std::vector<uint64_t> free;  // What was deleted is no item.
      for (uint64_t leaf = begin; leaf < end; ++leaf) {
        if (!priority->IsDeleted(leaf)) free.push_back(leaf);
      }
      priority->Insert(free, std::vector<float>(free.size(), raw));
    }
    if (what == 3) priority->Erase({begin, end});
    if (what == 4) selector.Update(there, values);
    if (what == 5) priority->Sample(there.size(), there);
    if (what == 6) {
      const PriorityLimits limits{.max_times_sampled = static_cast<uint32_t>(begin % 3)};
      EXPECT_OK(priority->PrepareLimits(limits));
      priority->Configure(limits);
    }
    if (what == 7 && priority->prioritized() != nullptr) {
      priority->prioritized()->Rescale(static_cast<int>(begin % 30));
    }
    if (what == 8) {
      EXPECT_OK(priority->PrepareDelete());
      for (size_t i = 0; i < there.size(); i += 3) priority->Delete(there[i]);
    }
    if (what == 9) priority->Leave({begin, end});
    if (EpochState* epoch = priority->epoch()) {
      if (what == 10) epoch->Begin();
      if (what == 11) epoch->Cover(epoch->mark(), there);
      if (what == 7 && begin % 2 == 0) epoch->EndPass(epoch->mark());
    }
    priority->seed += what;
    priority->next_draw += end;
  }
}

TEST_F(ImageItemsTest, EveryKindComesBackAndGoesOnAlike) {
  for (uint64_t program = 0; program < testing::ShareOf(64); ++program) {
    SCOPED_TRACE("program " + std::to_string(program));
    std::mt19937_64 random(program);
    PriorityTableSpec spec = testing::WindowSpec("items");
    spec.selector = static_cast<SelectorKind>(program % (static_cast<int>(kSelectorKindLast) + 1));
    spec.max_times_sampled = random() % 2 == 0 ? 0 : 2;
    spec.epoch.passes = 3;
    const uint64_t leaves = program % 5 == 0 ? 5 : 20'000 + random() % 200'000;
    const auto priority = Make(spec, leaves);
    for (int i = 0; i < 60; ++i) Change(&random, leaves, {priority.get()});
    const ImageChunks image = Save(*priority);
    EXPECT_EQ(Save(*priority).chunks, image.chunks);
    ASSERT_OK_AND_ASSIGN(const auto loaded, Load(image, leaves));
    ExpectSame(*priority, *loaded);
    EXPECT_EQ(Save(*loaded).chunks, image.chunks);
    EXPECT_EQ(loaded->spec(), priority->spec());
    EXPECT_EQ(loaded->next_ahead, priority->next_draw);
    for (int i = 0; i < 60; ++i) Change(&random, leaves, {priority.get(), loaded.get()});
    ExpectSame(*priority, *loaded);
    if (HasFailure()) return;
  }
}

TEST_F(ImageItemsTest, ChunksAreForPowersOfTwoOfLeaves) {
  const auto leaves_of = [&](SelectorKind selector, uint32_t max_times) {
    PriorityTableSpec spec = testing::WindowSpec("items");
    spec.selector = selector;
    spec.max_times_sampled = max_times;
    return ItemsShape(*Make(spec, 10)).leaves_per_chunk;
  };
  EXPECT_EQ(leaves_of(SelectorKind::kUniform, 0), uint64_t{1} << 18);
  EXPECT_EQ(leaves_of(SelectorKind::kUniform, 1), uint64_t{1} << 15);
  EXPECT_EQ(leaves_of(SelectorKind::kPrioritized, 0), uint64_t{1} << 14);
  EXPECT_EQ(leaves_of(SelectorKind::kFifo, 0), uint64_t{1} << 13);
  EXPECT_EQ(leaves_of(SelectorKind::kMinHeap, 1), uint64_t{1} << 12);
}

TEST_F(ImageItemsTest, ItemsFarApartTakeLittle) {
  constexpr uint64_t kLeaves = uint64_t{1} << 20;
  PriorityTableSpec spec = testing::WindowSpec("items");
  spec.selector = SelectorKind::kUniform;
  const auto priority = Make(spec, kLeaves);
  for (const uint64_t leaf : {uint64_t{0}, kLeaves / 2 - 1, kLeaves / 2, kLeaves - 1}) {
    priority->Insert({leaf, leaf + 1}, 1);
  }
  const ImageChunks image = Save(*priority);
  EXPECT_EQ(image.CountOf(ImageKind::kItems), 4u);
  EXPECT_LT(image.bytes(), 2'000u) << "a bit for 64 leaves up to the last item";
  ASSERT_OK_AND_ASSIGN(const auto loaded, Load(image, kLeaves));
  ExpectSame(*priority, *loaded);
  priority->Insert({0, kLeaves}, 1);
  const ImageChunks full = Save(*priority);
  EXPECT_LT(full.bytes(), kLeaves / 8 * 102 / 100 + 1000);
  ASSERT_OK_AND_ASSIGN(const auto all, Load(full, kLeaves));
  ExpectSame(*priority, *all);
}

TEST_F(ImageItemsTest, WhatADrawHasTakenOfAnEpochRemainsInItsImage) {
  PriorityTableSpec spec = testing::WindowSpec("items");
  spec.selector = SelectorKind::kEpoch;
  spec.epoch.passes = 2;
  const auto priority = Make(spec, 300);
  priority->Insert({10, 200}, 1);
  priority->epoch()->Begin();
  priority->epoch()->Cover({1, 1}, std::vector<uint64_t>{10, 20, 30});
  const ImageChunks before = Save(*priority);
  std::vector<uint64_t> leaves(60);
  priority->DrawReserved({.seed = 1}, leaves, {});
  EXPECT_EQ(Save(*priority).chunks, before.chunks);
  ASSERT_OK_AND_ASSIGN(const auto loaded, Load(before, 300));
  EXPECT_EQ(loaded->epoch()->Stats().remaining, 187u);
  // All but three were to come: the pass goes on where it stood.
  priority->CancelReserved(60, leaves, {1, 1});
  for (PriorityState* each : {priority.get(), loaded.get()}) {
    each->epoch()->Cover({1, 1}, leaves);
    EXPECT_EQ(each->epoch()->Stats().remaining, 127u);
  }
  ExpectSame(*priority, *loaded);
}

TEST_F(ImageItemsTest, WhatIsCountedOnWithoutAMaximumIsCountedOn) {
  PriorityTableSpec spec = testing::WindowSpec("items");
  spec.max_times_sampled = 2;
  const auto priority = Make(spec, 10);
  priority->Insert({0, 3}, 1);
  const std::vector<uint64_t> two = {0, 1};
  priority->Sample(2, two);
  priority->Configure({});
  ASSERT_OK_AND_ASSIGN(const auto loaded, Load(Save(*priority), 10));
  EXPECT_FALSE(loaded->bounded());
  for (PriorityState* each : {priority.get(), loaded.get()}) {
    each->Sample(2, two);
    ASSERT_OK(each->PrepareLimits({.max_times_sampled = 2}));
    each->Configure({.max_times_sampled = 2});
    EXPECT_EQ(each->CountExhausted(), 2u);
  }
  ExpectSame(*priority, *loaded);
}

}  // namespace
}  // namespace geardb::engine
