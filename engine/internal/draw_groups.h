// DrawGroups: which trajectories a priority table over groups draws together (GroupSpec), as the
// records of the log have made them. Guarded by its table's mutex.
//
// A group has a *number*, the leaf that it is in the selector: the lowest free one when it began,
// so that numbers follow from the log alone. It keeps it, with its weight, its place in an order
// and its counts, whichever members leave; the leaf is not that of a member, which might leave
// before the others. Its generation is that of the trajectory that began it, which no other
// trajectory of the table ever has: so no two groups have the same handle.
//
// Invariants:
// - a slot is a member of at most one group, and a group in use has 1…count members, in the order
//   in which they joined;
// - of the groups of a key at most one takes members; one that is not ready does;
// - all but `first_us` is a function of the log's records. That is a time of this process, for who
//   looks for deadlines, and no state.
//
// Members and groups are arrays in index memory, 53 bytes a slot and what finds a free number;
// which group of a key takes members is a hash of those groups alone, in memory beside the budget.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/status.h"
#include "base/types.h"
#include "engine/schema.h"
#include "engine/stats.h"
#include "index/change_watch.h"
#include "index/index_memory.h"
#include "index/lpn_allocator.h"

namespace geardb::engine {

/// Why a group takes no more members. In images: frozen.
enum class GroupEnd : uint8_t {
  kNone = 0,  ///< It takes them.
  kComplete = 1,
  kSealed = 2,  ///< By hand.
  kDeadline = 3,
  kUndrawable = 4,  ///< It can be drawn no more: seen when it came to that, or another would join.
  kCut = 5,         ///< It is in the cut of an epoch.
};
inline constexpr GroupEnd kGroupEndLast = GroupEnd::kCut;

class DrawGroups {
 public:
  static constexpr uint64_t kNoGroup = UINT64_MAX;

  /// `key_column` is the number of the key among the per-trajectory columns. `memory` outlives it.
  static Result<std::unique_ptr<DrawGroups>> Create(index::IndexMemory* memory,
                                                    std::string_view name, const GroupSpec& spec,
                                                    size_t key_column, uint64_t slot_capacity);
  /// Admission: slots below, and as many groups, are usable. ResourceExhausted names the budget.
  Status Reserve(uint64_t slot_count);
  uint64_t committed_bytes() const { return region_.committed_bytes(); }

  const GroupSpec& spec() const { return spec_; }
  size_t key_column() const { return key_column_; }
  uint32_t at_least() const { return spec_.at_least == 0 ? spec_.count : spec_.at_least; }
  /// Groups that are ready may take members yet: some come after the draw that shows the others.
  bool TakesWhenReady() const { return spec_.deadline_ms == 0 && at_least() < spec_.count; }

  // Changes.

  struct Newcomer {
    Slot slot = kNoSlot;
    uint32_t generation = 0;
    int64_t key = 0;
    int64_t now_us = 0;
  };
  struct Joined {
    uint64_t group = kNoGroup;
    bool is_ready_now = false;  ///< And was not before.
  };
  /// A slot that is no member joins the group of its key that takes members, or begins one.
  Joined Join(const Newcomer& newcomer);
  struct Left {
    uint64_t group = kNoGroup;  ///< It was a member of this one.
    bool is_gone = false;       ///< That was its last.
  };
  /// A slot is no member from here on; no group where it was none.
  Left Leave(Slot slot);
  /// A group that takes members takes none any more; true when it is ready now and was not.
  bool Seal(uint64_t group, GroupEnd why);
  /// A batch that was handed over has shown this member; nothing where the slot is none.
  void Show(Slot slot);
  /// Tells `watch` of a group before it changes; null: nobody.
  void Watch(index::ChangeWatch* watch) { watch_ = watch; }

  // Reading. `group` is below reserved().

  uint64_t reserved() const { return reserved_; }
  bool InUse(uint64_t group) const { return groups_[group].count > 0; }
  bool IsReady(uint64_t group) const { return groups_[group].ready; }
  bool TakesMembers(uint64_t group) const {
    return InUse(group) && groups_[group].end == GroupEnd::kNone;
  }
  GroupEnd EndOf(uint64_t group) const { return groups_[group].end; }
  uint32_t GenerationOf(uint64_t group) const { return groups_[group].generation; }
  int64_t KeyOf(uint64_t group) const { return groups_[group].key; }
  uint32_t CountOf(uint64_t group) const { return groups_[group].count; }
  int64_t FirstUs(uint64_t group) const { return groups_[group].first_us; }
  Slot FirstOf(uint64_t group) const { return groups_[group].first; }
  Slot LastOf(uint64_t group) const { return groups_[group].last; }
  /// The group that a slot is a member of, or kNoGroup.
  uint64_t GroupOf(Slot slot) const { return uint64_t{members_[slot].group_plus_one} - 1; }
  /// Of a member: a batch that was handed over has shown it since it joined.
  bool WasShown(Slot slot) const { return shown_[slot] != 0; }
  /// The group of a key that takes members, or kNoGroup.
  uint64_t FindTaking(int64_t key) const {
    const auto found = taking_.find(key);
    return found == taking_.end() ? kNoGroup : found->second;
  }
  /// Calls `visit(slot)` for the members in their order.
  template <typename Visit>
  void ForEachMember(uint64_t group, const Visit& visit) const {
    Slot slot = groups_[group].first;
    for (uint32_t i = 0; i < groups_[group].count; ++i) {
      visit(slot);
      slot = members_[slot].next;
    }
  }
  /// Calls `visit(group)` for the groups that take members, in no particular order.
  template <typename Visit>
  void ForEachTaking(const Visit& visit) const {
    for (const auto& [key, group] : taking_) visit(group);
  }
  /// Groups there are, and members of all.
  uint64_t count() const { return numbers_.used(); }
  uint64_t member_count() const { return member_count_; }
  GroupStats Stats() const;
  /// "3 groups wait for members; that of key 7 has 2 of 4"; "" where none waits.
  std::string WaitingText() const;

  // Of an image (image_draw_groups.h).

  struct Stored {
    uint64_t group = kNoGroup;
    int64_t key = 0;
    uint32_t generation = 0;
    bool ready = false;
    GroupEnd end = GroupEnd::kNone;
  };
  /// A group of `members`, in their order. What is wrong with it, or "". None was shown.
  std::string Restore(const Stored& stored, std::span<const Slot> members);

 private:
  struct Member {
    uint32_t group_plus_one = 0;  // 0: of none, as zeroed memory says.
    Slot next = 0;
    Slot previous = 0;
  };
  struct Group {
    int64_t key = 0;
    int64_t first_us = 0;
    uint32_t generation = 0;
    Slot first = 0;
    Slot last = 0;
    uint32_t count = 0;  // 0: not in use.
    bool ready = false;
    GroupEnd end = GroupEnd::kNone;
  };
  static_assert(sizeof(Member) == 12 && sizeof(Group) == 40);

  DrawGroups(const GroupSpec& spec, size_t key_column, index::Region region,
             index::LpnAllocator numbers);
  void WillChange(uint64_t group) {
    if (watch_ != nullptr) watch_->BeforeChange(group, group + 1);
  }
  void Append(uint64_t group, Slot slot);
  /// Counts a group that is as it is, or counts it no more.
  void CountState(const Group& group, uint64_t by);

  const GroupSpec spec_;
  const size_t key_column_;
  index::Region region_;
  index::LpnAllocator numbers_;
  Member* members_ = nullptr;
  Group* groups_ = nullptr;
  uint8_t* shown_ = nullptr;  // Of members; 1: WasShown.
  uint64_t reserved_ = 0;
  uint64_t member_count_ = 0;
  uint64_t waiting_ = 0;
  std::array<uint64_t, static_cast<size_t>(kGroupEndLast) + 1> ready_by_ = {};
  std::unordered_map<int64_t, uint64_t> taking_;  // By key.
  index::ChangeWatch* watch_ = nullptr;
};

/// A key as the integer that it is, from a column's value.
int64_t KeyOfBytes(DType dtype, std::span<const std::byte> bytes);

/// InvalidArgument naming what is wrong with the groups of a priority table, or with one of other
/// items that says how they would be.
Status ValidateDrawGroups(const TableSpec& table, const PriorityTableSpec& spec);
/// "of 4 by 'prompt', ready with 2 after 500 ms"; in part, as it is.
std::string DescribeDrawGroups(const GroupSpec& spec);
/// "window", "trajectory", or "group " and the above.
std::string DescribeItem(const PriorityTableSpec& spec);

}  // namespace geardb::engine
