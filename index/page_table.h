// PageTable: the records of the pages of one partition, by LPN. The pages of a trajectory form a
// list from head to tail, with a jump pointer each, so that page k is found from the tail in
// O(log pages): the skew-binary lists of Myers, "An applicative random-access stack", 1983.
//
// A jump leads from page k to page JumpOf(k), a function of k alone: it does not depend on trims.
//
// Invariants: page numbers of a list are consecutive; the head has no prev, the tail no next; a
// jump whose page is not older than the head leads to a living page of the list.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "index/change_watch.h"
#include "index/index_memory.h"

namespace geardb::index {

/// Place of a page in its trajectory. Fixed layout, no pointers.
struct PageRecord {
  Slot slot = kNoSlot;       ///< Of its trajectory.
  uint32_t generation = 0;   ///< Of the page; names it in item handles.
  uint32_t page_number = 0;  ///< First absolute row / S.
  Lpn prev = kNoLpn;
  Lpn next = kNoLpn;
  Lpn jump = kNoLpn;       ///< kNoLpn, or the page below; stale when that is trimmed.
  uint32_t jump_page = 0;  ///< Page number that `jump` had.
  uint32_t in_use = 0;     ///< 0: the page is free, and nothing else here means anything.
};
static_assert(sizeof(PageRecord) == 32 && std::is_trivially_copyable_v<PageRecord>);

/// Where the bytes of a page of one column group are. Fixed layout, no pointers.
struct GroupPageRecord {
  FrameRef frame;           ///< Not valid: no frame.
  Lsn newest_lsn = kNoLsn;  ///< Of the record of its newest piece in the log.
  Lsn birth_lsn = kNoLsn;   ///< Of the record of its first piece.
  /// Where the log has all its rows in one piece, and half of that one's checksum; kNoLsn: nowhere.
  Lsn piece_at = kNoLsn;
  uint32_t piece_checksum = 0;
  uint16_t rows_filled = 0;  ///< Rows written, from the page's first.
  uint8_t piece_count = 0;   ///< 255: or more.
  uint8_t flags = 0;         ///< The engine's.
};
static_assert(sizeof(GroupPageRecord) == 40 && std::is_trivially_copyable_v<GroupPageRecord>);

/// Head and tail of a trajectory's list; both kNoLpn when it is empty.
struct PageList {
  Lpn head = kNoLpn;
  Lpn tail = kNoLpn;
};

inline constexpr uint32_t kNoPage = UINT32_MAX;
/// The page number to which page `page_number` jumps; kNoPage where it has none (pages 0, 2, 6, …).
uint32_t JumpOf(uint32_t page_number);

/// Column groups of a page table, those that nobody uses any more included.
inline constexpr size_t kPageGroupsMax = 256;

/// First bytes of a page table's region. Fixed layout; offsets are from IndexMemory::base(), since
/// groups that come later have regions of their own.
struct PageTableHeader {
  uint64_t reserved = 0;  ///< LPNs that may be touched.
  uint64_t pages_offset = 0;
  uint64_t flags_offset = 0;    ///< Of the row flags, where there are some.
  uint64_t flags_per_page = 0;  ///< Bytes; 0: none.
  uint64_t group_count = 0;
  uint64_t group_offset[kPageGroupsMax] = {};
};

/// Reads a page table from its bytes, at any address. Trivially copyable, owns nothing.
class PageView {
 public:
  /// `base` is where this process maps the IndexMemory, `offset` is PageTable::offset().
  PageView(std::byte* base, uint64_t offset);

  const PageRecord& page(Lpn lpn) const { return pages_[lpn]; }
  const GroupPageRecord& group_page(size_t group, Lpn lpn) const {
    return reinterpret_cast<const GroupPageRecord*>(base_ + header_->group_offset[group])[lpn];
  }
  /// A byte for each row of a page; only where Options::row_flags asked for them.
  const uint8_t* row_flags(Lpn lpn) const {
    return reinterpret_cast<const uint8_t*>(base_ + header_->flags_offset) +
           lpn * header_->flags_per_page;
  }
  /// The page with this number, or kNoLpn when the list does not have it.
  Lpn Find(PageList list, uint32_t page_number) const;
  uint64_t reserved() const { return header_->reserved; }

 private:
  friend class PageTable;
  std::byte* base_;
  PageTableHeader* header_;
  PageRecord* pages_;
};

/// The writer. Not thread-safe: the owner orders it. Only Create, AddGroup and Reserve can fail.
class PageTable {
 public:
  struct Options {
    uint64_t lpn_capacity = 0;  ///< 1…2^32 - 2; costs address space alone.
    size_t group_count = 1;     ///< 1…kPageGroupsMax.
    uint32_t row_flags = 0;     ///< Bytes of row flags of a page: its rows, or none.
  };
  static Result<std::unique_ptr<PageTable>> Create(IndexMemory* memory, std::string_view name,
                                                   const Options& options);

  /// Adds a column group, whose records of the LPNs reserved so far are fresh. Readers are ordered
  /// by the owner, as everywhere.
  Status AddGroup();
  /// Makes LPNs [0, lpn_count) usable.
  Status Reserve(uint64_t lpn_count);
  uint64_t reserved() const { return view_.reserved(); }

  /// A page to be put behind a list's tail.
  struct NewPage {
    Lpn lpn = kNoLpn;  ///< Free.
    Slot slot = kNoSlot;
    uint32_t generation = 0;
    uint32_t page_number = 0;  ///< The tail's + 1; any for an empty list.
  };
  /// Links the page and updates `list`; the page's group records become fresh.
  void Append(const NewPage& page, PageList* list);
  /// Frees the head of a list that is not empty and updates `list`. Returns the freed LPN. Its
  /// group records are left as they are until the LPN is used again.
  Lpn UnlinkHead(PageList* list);

  Lpn Find(PageList list, uint32_t page_number) const { return view_.Find(list, page_number); }
  /// lpn < reserved(). Links are changed by Append and UnlinkHead alone.
  const PageRecord& page(Lpn lpn) const { return view_.page(lpn); }
  GroupPageRecord& group_page(size_t group, Lpn lpn) {
    WillChange(lpn);
    return reinterpret_cast<GroupPageRecord*>(groups_[group].base())[lpn];
  }
  const GroupPageRecord& group_page(size_t group, Lpn lpn) const {
    return view_.group_page(group, lpn);
  }
  /// The same, to change what says where its bytes are in this process: a watch is not told.
  GroupPageRecord& residency(size_t group, Lpn lpn) {
    return reinterpret_cast<GroupPageRecord*>(groups_[group].base())[lpn];
  }
  uint8_t* row_flags(Lpn lpn) {
    WillChange(lpn);
    return const_cast<uint8_t*>(view_.row_flags(lpn));
  }
  const uint8_t* row_flags(Lpn lpn) const { return view_.row_flags(lpn); }
  /// The page is in use and has this generation.
  bool IsLive(Lpn lpn, uint32_t generation) const;

  /// Tells `watch` before a page begins or is freed, or anything of it but its links changes or is
  /// given out to be changed; null: nobody. Who only reads asks a const table.
  void Watch(ChangeWatch* watch) { watch_ = watch; }

  size_t group_count() const { return static_cast<size_t>(view_.header_->group_count); }
  /// Index memory that it has committed.
  uint64_t committed_bytes() const;
  const PageView& view() const { return view_; }
  /// Where the view begins, from IndexMemory::base().
  uint64_t offset() const { return region_.offset(); }

 private:
  PageTable(IndexMemory* memory, Region region, uint64_t lpn_capacity);
  void WillChange(Lpn lpn) {
    if (watch_ != nullptr) watch_->BeforeChange(lpn, uint64_t{lpn} + 1);
  }

  IndexMemory* const memory_;
  const uint64_t lpn_capacity_;
  Region region_;  // parts: header, pages, row flags
  std::vector<Region> groups_;
  PageView view_;
  ChangeWatch* watch_ = nullptr;
};

}  // namespace geardb::index
