#include "index/page_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <deque>
#include <random>
#include <vector>

#include "index/lpn_allocator.h"
#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

std::unique_ptr<PageTable> MakePageTable(IndexMemory* memory, uint64_t capacity, uint64_t reserved,
                                         size_t groups = 1) {
  auto table =
      PageTable::Create(memory, "pages", {.lpn_capacity = capacity, .group_count = groups});
  GEARDB_CHECK(table.ok() && table.value()->Reserve(reserved).ok());
  return std::move(table).value();
}

/// Steps that Find takes from the tail, by the rule that page_table.h states.
int Steps(const PageTable& table, PageList list, uint32_t page_number) {
  int steps = 0;
  for (Lpn lpn = list.tail; table.page(lpn).page_number != page_number; ++steps) {
    const PageRecord& page = table.page(lpn);
    lpn = page.jump != kNoLpn && page.jump_page >= page_number ? page.jump : page.prev;
  }
  return steps;
}

TEST(PageTableTest, JumpsAreThoseOfSkewBinaryLists) {
  // Myers' own definition, page by page.
  std::vector<int64_t> jump;  // -1: none
  for (int64_t k = 0; k < 5000; ++k) {
    const auto jump_of = [&](int64_t page) {
      return page < 0 ? int64_t{-1} : jump[static_cast<size_t>(page)];
    };
    const int64_t tail = k - 1;
    const int64_t first = jump_of(tail);
    const int64_t second = jump_of(first);
    jump.push_back(k > 0 && tail - first == first - second ? second : tail);
    const uint32_t expected = jump.back() < 0 ? kNoPage : static_cast<uint32_t>(jump.back());
    ASSERT_EQ(JumpOf(static_cast<uint32_t>(k)), expected) << "page " << k;
  }
  EXPECT_EQ(JumpOf(UINT32_MAX - 1), kNoPage);  // 2^32 - 1 pages are one perfect tree.
}

TEST(PageTableTest, EveryPageIsFoundInLogarithmicTime) {
  const auto memory = TestMemory();
  constexpr uint32_t kPages = 3000;
  const auto table = MakePageTable(memory.get(), kPages, kPages);
  PageList list;
  for (uint32_t k = 0; k < kPages; ++k) {
    // LPNs in an order of their own.
    const Lpn lpn = (k * 1601) % kPages;
    table->Append({.lpn = lpn, .slot = 7, .generation = k, .page_number = k}, &list);
    ASSERT_EQ(list.tail, lpn);
  }
  const int bound = 3 * std::bit_width(kPages);
  for (uint32_t k = 0; k < kPages; ++k) {
    const Lpn found = table->Find(list, k);
    ASSERT_NE(found, kNoLpn);
    ASSERT_EQ(table->page(found).page_number, k);
    ASSERT_EQ(table->page(found).generation, k);
    ASSERT_LE(Steps(*table, list, k), bound);
  }
  EXPECT_EQ(table->Find(list, kPages), kNoLpn);
}

TEST(PageTableTest, ManyListsWithTrimmedHeadsMatchDeques) {
  const auto memory = TestMemory();
  constexpr uint64_t kCapacity = 3000;
  const auto table = MakePageTable(memory.get(), kCapacity, kCapacity);
  auto created = LpnAllocator::Create(memory.get(), "lpns", kCapacity);
  ASSERT_OK(created);
  LpnAllocator& lpns = created.value();
  ASSERT_OK(lpns.Reserve(kCapacity));
  struct Model {
    PageList list;
    std::deque<Lpn> pages;
    uint32_t first_page = 0;
  };
  std::vector<Model> models(5);
  models[3].first_page = 1000;  // A trajectory whose older pages were never here.
  std::mt19937_64 random(12);
  for (int step = 0; step < 60'000; ++step) {
    const size_t slot = random() % models.size();
    Model& model = models[slot];
    // Lists grow and shrink by turns; freed LPNs go to other lists at once.
    const bool growing = (static_cast<size_t>(step) / 4000 + slot) % 3 != 0;
    if ((random() % 10 < 8) == growing && lpns.used() < kCapacity) {
      const Lpn lpn = lpns.Allocate();
      const uint32_t number = model.first_page + static_cast<uint32_t>(model.pages.size());
      table->Append({.lpn = lpn,
                     .slot = static_cast<Slot>(slot),
                     .generation = static_cast<uint32_t>(step),
                     .page_number = number},
                    &model.list);
      model.pages.push_back(lpn);
      ASSERT_TRUE(table->IsLive(lpn, static_cast<uint32_t>(step)));
    } else if (!model.pages.empty()) {
      const uint32_t generation = table->page(model.pages.front()).generation;
      ASSERT_EQ(table->UnlinkHead(&model.list), model.pages.front());
      ASSERT_FALSE(table->IsLive(model.pages.front(), generation));
      ASSERT_TRUE(lpns.Free(model.pages.front()));
      model.pages.pop_front();
      ++model.first_page;
    }
    ASSERT_EQ(model.list.head, model.pages.empty() ? kNoLpn : model.pages.front());
    ASSERT_EQ(model.list.tail, model.pages.empty() ? kNoLpn : model.pages.back());
    if (model.pages.empty()) {
      ASSERT_EQ(table->Find(model.list, model.first_page), kNoLpn);
      continue;
    }
    const size_t pick = random() % model.pages.size();
    const uint32_t number = model.first_page + static_cast<uint32_t>(pick);
    ASSERT_EQ(table->Find(model.list, number), model.pages[pick]);
    ASSERT_LE(Steps(*table, model.list, number), 3 * 12);
    const PageRecord& page = table->page(model.pages[pick]);
    ASSERT_EQ(page.slot, slot);
    ASSERT_EQ(page.prev, pick == 0 ? kNoLpn : model.pages[pick - 1]);
    ASSERT_EQ(page.next, pick + 1 == model.pages.size() ? kNoLpn : model.pages[pick + 1]);
    ASSERT_EQ(table->Find(model.list, model.first_page + static_cast<uint32_t>(model.pages.size())),
              kNoLpn);
    if (model.first_page > 0) {
      ASSERT_EQ(table->Find(model.list, model.first_page - 1), kNoLpn);
      ASSERT_EQ(table->Find(model.list, 0), kNoLpn);
    }
  }
}

TEST(PageTableTest, GroupRecordsAreFreshForEveryPage) {
  const auto memory = TestMemory();
  const auto table = MakePageTable(memory.get(), 100, 100, 2);
  PageList list;
  for (uint32_t round = 0; round < 2; ++round) {
    table->Append({.lpn = 5, .slot = 1, .generation = round, .page_number = 0}, &list);
    for (size_t group = 0; group < 2; ++group) {
      GroupPageRecord& page = table->group_page(group, 5);
      EXPECT_FALSE(page.frame.valid());
      EXPECT_EQ(page.newest_lsn, kNoLsn);
      EXPECT_EQ(page.birth_lsn, kNoLsn);
      EXPECT_EQ(page.rows_filled, 0u);
      EXPECT_EQ(page.piece_count, 0u);
      page.frame = FrameRef::Make(1, 128 * (group + 1));
      page.rows_filled = static_cast<uint16_t>(group + 3);
    }
    EXPECT_EQ(table->view().group_page(1, 5).rows_filled, 4u);
    EXPECT_EQ(table->view().group_page(0, 5).frame, FrameRef::Make(1, 128));
    EXPECT_EQ(table->UnlinkHead(&list), 5u);
    // Readers of the freed page may still be there: its frame stays until the LPN is reused.
    EXPECT_TRUE(table->group_page(0, 5).frame.valid());
  }
}

TEST(PageTableTest, LateGenerationIsNotLive) {
  const auto memory = TestMemory();
  const auto table = MakePageTable(memory.get(), 100, 100);
  PageList list;
  EXPECT_FALSE(table->IsLive(0, 0));  // Never used: all zero.
  table->Append({.lpn = 0, .slot = 1, .generation = 3, .page_number = 0}, &list);
  EXPECT_TRUE(table->IsLive(0, 3));
  EXPECT_FALSE(table->IsLive(0, 2));
  EXPECT_FALSE(table->IsLive(100, 3));
  EXPECT_FALSE(table->IsLive(kNoLpn, 3));
}

TEST(PageTableTest, WrongOptionsAreNamed) {
  const auto memory = TestMemory();
  const auto create = [&](uint64_t capacity, size_t groups) {
    return PageTable::Create(memory.get(), "p", {.lpn_capacity = capacity, .group_count = groups});
  };
  EXPECT_STATUS(kInvalidArgument, create(0, 1), "0 pages");
  EXPECT_STATUS(kInvalidArgument, create(10, 257), "257 column groups");
  const auto small = TestMemory(uint64_t{1} << 20);
  const auto table = MakePageTable(small.get(), 1 << 29, 10);
  EXPECT_STATUS(kResourceExhausted, table->Reserve(1 << 24), "'pages'");
  EXPECT_EQ(table->reserved(), 10u);
}

}  // namespace
}  // namespace geardb::index
