#include "index/page_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/break.h"
#include "base/check.h"

namespace geardb::index {
namespace {

constexpr size_t kPageTableHeaderPart = 0;
constexpr size_t kPageTablePagesPart = 1;
constexpr size_t kPageTableFlagsPart = 2;

}  // namespace

uint32_t JumpOf(uint32_t page_number) {
  // The list up to page k has k + 1 pages: a sum of numbers 2^i - 1, the largest possible first.
  // The jump leads over the last and smallest of them.
  uint64_t rest = uint64_t{page_number} + 1;
  uint64_t last = 0;
  while (rest > 0) {
    last = std::bit_floor(rest + 1) - 1;
    rest -= last;
  }
  const uint64_t left = uint64_t{page_number} + 1 - last;
  return left == 0 ? kNoPage : static_cast<uint32_t>(left - 1);
}

PageView::PageView(std::byte* base, uint64_t offset)
    : base_(base),
      header_(reinterpret_cast<PageTableHeader*>(base + offset)),
      pages_(reinterpret_cast<PageRecord*>(base + header_->pages_offset)) {}

Lpn PageView::Find(PageList list, uint32_t page_number) const {
  if (list.tail == kNoLpn || page_number < page(list.head).page_number ||
      page_number > page(list.tail).page_number) {
    return kNoLpn;
  }
  // A jump not beyond the page looked for is not beyond the head either, so it is not stale.
  Lpn lpn = list.tail;
  while (page(lpn).page_number != page_number) {
    const PageRecord& here = page(lpn);
    lpn = here.jump != kNoLpn && here.jump_page >= page_number ? here.jump : here.prev;
  }
  return lpn;
}

Result<std::unique_ptr<PageTable>> PageTable::Create(IndexMemory* memory, std::string_view name,
                                                     const Options& options) {
  if (options.lpn_capacity == 0 || options.lpn_capacity >= kNoLpn) {
    return Status::InvalidArgument("page table '", name, "' for ", options.lpn_capacity,
                                   " pages: 1 to ", kNoLpn - 1, " are possible");
  }
  if (options.group_count == 0 || options.group_count > kPageGroupsMax) {
    return Status::InvalidArgument("page table '", name, "' for ", options.group_count,
                                   " column groups: 1 to ", kPageGroupsMax, " are possible");
  }
  GEARDB_ASSIGN_OR_RETURN(
      Region region,
      memory->Reserve(name, {sizeof(PageTableHeader), options.lpn_capacity * sizeof(PageRecord),
                             options.lpn_capacity * options.row_flags}));
  GEARDB_RETURN_IF_ERROR(region.Commit(kPageTableHeaderPart, sizeof(PageTableHeader)));
  auto* header = reinterpret_cast<PageTableHeader*>(region.base());
  header->pages_offset = region.offset() + region.part_offset(kPageTablePagesPart);
  header->flags_offset = region.offset() + region.part_offset(kPageTableFlagsPart);
  header->flags_per_page = options.row_flags;
  std::unique_ptr<PageTable> table(new PageTable(memory, std::move(region), options.lpn_capacity));
  while (table->group_count() < options.group_count) {
    GEARDB_RETURN_IF_ERROR(table->AddGroup());
  }
  return table;
}

PageTable::PageTable(IndexMemory* memory, Region region, uint64_t lpn_capacity)
    : memory_(memory),
      lpn_capacity_(lpn_capacity),
      region_(std::move(region)),
      view_(memory->base(), region_.offset()) {}

Status PageTable::AddGroup() {
  const size_t group = group_count();
  if (group >= kPageGroupsMax) {
    return Status::ResourceExhausted("page table '", region_.name(), "' has ", group,
                                     " column groups; at most ", kPageGroupsMax, " are possible");
  }
  GEARDB_ASSIGN_OR_RETURN(
      Region records, memory_->Reserve(region_.name(), {lpn_capacity_ * sizeof(GroupPageRecord)}));
  if (reserved() > 0) {
    GEARDB_RETURN_IF_ERROR(records.Commit(0, reserved() * sizeof(GroupPageRecord)));
    auto* fresh = reinterpret_cast<GroupPageRecord*>(records.base());
    std::fill_n(fresh, reserved(), GroupPageRecord{});
  }
  view_.header_->group_offset[group] = records.offset() + records.part_offset(0);
  view_.header_->group_count = group + 1;
  groups_.push_back(std::move(records));
  return Status::Ok();
}

uint64_t PageTable::committed_bytes() const {
  uint64_t bytes = region_.committed_bytes();
  for (const Region& group : groups_) bytes += group.committed_bytes();
  return bytes;
}

Status PageTable::Reserve(uint64_t lpn_count) {
  if (lpn_count <= reserved()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(region_.Commit(kPageTablePagesPart, lpn_count * sizeof(PageRecord)));
  GEARDB_RETURN_IF_ERROR(
      region_.Commit(kPageTableFlagsPart, lpn_count * view_.header_->flags_per_page));
  for (Region& group : groups_) {
    GEARDB_RETURN_IF_ERROR(group.Commit(0, lpn_count * sizeof(GroupPageRecord)));
  }
  view_.header_->reserved = lpn_count;
  return Status::Ok();
}

void PageTable::Append(const NewPage& page, PageList* list) {
  GEARDB_CHECK(page.lpn < reserved() && view_.pages_[page.lpn].in_use == 0);
  WillChange(page.lpn);
  PageRecord& fresh = view_.pages_[page.lpn];
  fresh = PageRecord{};
  fresh.slot = page.slot;
  fresh.generation = page.generation;
  fresh.page_number = page.page_number;
  fresh.in_use = 1;
  if (list->tail == kNoLpn) {
    list->head = page.lpn;
  } else {
    PageRecord& tail = view_.pages_[list->tail];
    GEARDB_CHECK(page.page_number == tail.page_number + 1);
    tail.next = page.lpn;
    fresh.prev = list->tail;
    const uint32_t target = JumpOf(page.page_number);
    if (target != kNoPage && target >= view_.pages_[list->head].page_number) {
      // The page before, or else where the jump of the page before's jump leads (Myers).
      fresh.jump = target == tail.page_number ? list->tail : view_.pages_[tail.jump].jump;
      fresh.jump_page = target;
    }
  }
  list->tail = page.lpn;
  for (size_t group = 0; group < group_count(); ++group) {
    group_page(group, page.lpn) = GroupPageRecord{};
  }
}

Lpn PageTable::UnlinkHead(PageList* list) {
  const Lpn freed = list->head;
  GEARDB_CHECK(freed != kNoLpn);
  WillChange(freed);
  PageRecord& head = view_.pages_[freed];
  list->head = head.next;
  if (list->head == kNoLpn) {
    list->tail = kNoLpn;
  } else {
    view_.pages_[list->head].prev = kNoLpn;
  }
  head.in_use = 0;
  return freed;
}

bool PageTable::IsLive(Lpn lpn, uint32_t generation) const {
  if (lpn >= reserved() || page(lpn).in_use == 0) return false;
  return kBreak.ignore_generation || page(lpn).generation == generation;
}

}  // namespace geardb::index
