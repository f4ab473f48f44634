#include "engine/internal/draw_groups.h"

#include <utility>

#include "base/break.h"
#include "base/check.h"
#include "base/concatenate.h"

namespace geardb::engine {

Result<std::unique_ptr<DrawGroups>> DrawGroups::Create(index::IndexMemory* memory,
                                                       std::string_view name, const GroupSpec& spec,
                                                       size_t key_column, uint64_t slot_capacity) {
  const std::string of = std::string(name) + " draw groups";
  GEARDB_ASSIGN_OR_RETURN(
      index::Region region,
      memory->Reserve(of, {slot_capacity * sizeof(Member), slot_capacity * sizeof(Group),
                           slot_capacity * sizeof(uint8_t)}));
  GEARDB_ASSIGN_OR_RETURN(index::LpnAllocator numbers,
                          index::LpnAllocator::Create(memory, of, slot_capacity));
  return std::unique_ptr<DrawGroups>(
      new DrawGroups(spec, key_column, std::move(region), std::move(numbers)));
}

DrawGroups::DrawGroups(const GroupSpec& spec, size_t key_column, index::Region region,
                       index::LpnAllocator numbers)
    : spec_(spec),
      key_column_(key_column),
      region_(std::move(region)),
      numbers_(std::move(numbers)),
      members_(reinterpret_cast<Member*>(region_.part_base(0))),
      groups_(reinterpret_cast<Group*>(region_.part_base(1))),
      shown_(reinterpret_cast<uint8_t*>(region_.part_base(2))) {}

Status DrawGroups::Reserve(uint64_t slot_count) {
  if (slot_count <= reserved_) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(region_.Commit(0, slot_count * sizeof(Member)));
  GEARDB_RETURN_IF_ERROR(region_.Commit(1, slot_count * sizeof(Group)));
  GEARDB_RETURN_IF_ERROR(region_.Commit(2, slot_count * sizeof(uint8_t)));
  GEARDB_RETURN_IF_ERROR(numbers_.Reserve(slot_count));
  reserved_ = slot_count;
  return Status::Ok();
}

void DrawGroups::CountState(const Group& group, uint64_t by) {
  if (group.ready) {
    ready_by_[static_cast<size_t>(group.end)] += by;
  } else {
    waiting_ += by;
  }
}

void DrawGroups::Append(uint64_t number, Slot slot) {
  Group& group = groups_[number];
  Member& member = members_[slot];
  member = {.group_plus_one = static_cast<uint32_t>(number + 1), .next = 0, .previous = group.last};
  if (group.count == 0) {
    group.first = slot;
  } else {
    members_[group.last].next = slot;
  }
  group.last = slot;
  ++group.count;
  ++member_count_;
}

DrawGroups::Joined DrawGroups::Join(const Newcomer& newcomer) {
  GEARDB_CHECK(newcomer.slot < reserved_ && GroupOf(newcomer.slot) == kNoGroup);
  uint64_t number = FindTaking(newcomer.key);
  if (number == kNoGroup) {
    // Each group has a member, a slot: there are as many numbers.
    number = numbers_.Allocate();
    GEARDB_CHECK(number < reserved_);
    WillChange(number);
    groups_[number] = {
        .key = newcomer.key, .first_us = newcomer.now_us, .generation = newcomer.generation};
    taking_.emplace(newcomer.key, number);
  } else {
    WillChange(number);
    CountState(groups_[number], ~uint64_t{0});
  }
  Group& group = groups_[number];
  const bool was_ready = group.ready;
  Append(number, newcomer.slot);
  if (group.count + (kBreak.group_too_small ? 1u : 0u) >= spec_.count) {
    group.ready = true;
    group.end = GroupEnd::kComplete;
    taking_.erase(newcomer.key);
  } else if (spec_.deadline_ms == 0 && group.count >= at_least()) {
    group.ready = true;
  }
  CountState(group, 1);
  return {.group = number, .is_ready_now = group.ready && !was_ready};
}

DrawGroups::Left DrawGroups::Leave(Slot slot) {
  const uint64_t number = GroupOf(slot);
  if (number == kNoGroup) return {};
  WillChange(number);
  Group& group = groups_[number];
  const Member left = std::exchange(members_[slot], Member());
  shown_[slot] = 0;
  --member_count_;
  if (group.count == 1) {
    CountState(group, ~uint64_t{0});
    if (group.end == GroupEnd::kNone) taking_.erase(group.key);
    group = Group();
    GEARDB_CHECK(numbers_.Free(static_cast<uint32_t>(number)));
    return {.group = number, .is_gone = true};
  }
  --group.count;
  const bool is_first = group.first == slot;
  const bool is_last = group.last == slot;
  if (is_first) {
    group.first = left.next;
  } else {
    members_[left.previous].next = left.next;
  }
  if (is_last) {
    group.last = left.previous;
  } else {
    members_[left.next].previous = left.previous;
  }
  return {.group = number, .is_gone = false};
}

bool DrawGroups::Seal(uint64_t number, GroupEnd why) {
  GEARDB_CHECK(TakesMembers(number));
  WillChange(number);
  Group& group = groups_[number];
  CountState(group, ~uint64_t{0});
  const bool is_ready_now = !group.ready;
  group.ready = true;
  group.end = why;
  taking_.erase(group.key);
  CountState(group, 1);
  return is_ready_now;
}

void DrawGroups::Show(Slot slot) {
  const uint64_t number = GroupOf(slot);
  if (number == kNoGroup || WasShown(slot)) return;
  WillChange(number);
  shown_[slot] = 1;
}

GroupStats DrawGroups::Stats() const {
  const auto ready = [this](GroupEnd end) { return ready_by_[static_cast<size_t>(end)]; };
  return {.waiting = waiting_,
          .ready = count() - waiting_,
          .members = member_count_,
          .taking = ready(GroupEnd::kNone),
          .complete = ready(GroupEnd::kComplete),
          .sealed_by_hand = ready(GroupEnd::kSealed),
          .sealed_by_deadline = ready(GroupEnd::kDeadline)};
}

std::string DrawGroups::WaitingText() const {
  if (waiting_ == 0) return "";
  uint64_t least = kNoGroup;  // The same one whatever order they come in.
  ForEachTaking([&](uint64_t group) {
    if (!IsReady(group)) least = std::min(least, group);
  });
  return Concatenate(waiting_, waiting_ == 1 ? " group waits" : " groups wait",
                     " for members: that of key ", KeyOf(least), " has ", CountOf(least), " of ",
                     spec_.count);
}

std::string DrawGroups::Restore(const Stored& stored, std::span<const Slot> members) {
  if (stored.group >= reserved_ || InUse(stored.group)) return "its number is another's";
  if (stored.generation == 0) return "it has no generation";
  if (members.empty() || members.size() > spec_.count) {
    return Concatenate("it has ", members.size(), " members, of ", spec_.count);
  }
  const bool takes = stored.end == GroupEnd::kNone;
  if (!stored.ready && !takes) return "it takes no members and is not ready";
  const bool full = members.size() == spec_.count;
  if (takes && full) return "it is complete and takes members";
  const bool enough = spec_.deadline_ms == 0 && members.size() >= at_least();
  if (!stored.ready && enough) return "it has as many members as it needs and is not ready";
  if (takes && stored.ready && (spec_.deadline_ms != 0 || at_least() == spec_.count)) {
    return "it is ready and takes members";
  }
  for (const Slot slot : members) {
    if (slot >= reserved_ || GroupOf(slot) != kNoGroup) {
      return Concatenate("its member in slot ", slot, " is another's, or none");
    }
    if (!numbers_.InUse(static_cast<uint32_t>(stored.group))) {
      GEARDB_CHECK(numbers_.AllocateSpecific(static_cast<uint32_t>(stored.group)));
      groups_[stored.group] = {.key = stored.key,
                               .generation = stored.generation,
                               .ready = stored.ready,
                               .end = stored.end};
    }
    Append(stored.group, slot);
  }
  CountState(groups_[stored.group], 1);
  if (!takes || taking_.emplace(stored.key, stored.group).second) return "";
  return Concatenate("another one of key ", stored.key, " takes members, too");
}

}  // namespace geardb::engine
