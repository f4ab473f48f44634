#include "engine/internal/image_draw_groups.h"

#include <algorithm>
#include <bit>

namespace geardb::engine {
namespace {

/// Of a group in a chunk, but for its members.
constexpr uint64_t kGroupBytes = 4 + 4 + 8 + 1 + 1 + 4;
constexpr uint64_t kGroupsPerChunkMax = uint64_t{1} << 16;

// Of a group in a chunk.
constexpr uint8_t kIsReady = 1;
constexpr uint8_t kHasShown = 2;  // Some members were shown: which ones, is behind the members.
constexpr uint8_t kFlags = kIsReady | kHasShown;

}  // namespace

GroupsShape::GroupsShape(const DrawGroups& of, uint64_t slots, uint64_t chunk_bytes)
    : groups(slots) {
  const uint64_t bytes = kGroupBytes + of.spec().count * sizeof(Slot);
  groups_per_chunk =
      std::clamp<uint64_t>(std::bit_floor(chunk_bytes / bytes), 1, kGroupsPerChunkMax);
}

GroupsCopy GroupsImage::Copy(const DrawGroups& groups, const GroupsShape& shape, uint64_t chunk) {
  GroupsCopy copy{.chunk = chunk};
  const uint64_t begin = chunk * shape.groups_per_chunk;
  const uint64_t end = std::min(begin + shape.groups_per_chunk, shape.groups);
  for (uint64_t group = begin; group < end; ++group) {
    if (!groups.InUse(group)) continue;
    copy.groups.push_back({.group = group,
                           .key = groups.KeyOf(group),
                           .generation = groups.GenerationOf(group),
                           .ready = groups.IsReady(group),
                           .end = groups.EndOf(group)});
    copy.counts.push_back(groups.CountOf(group));
    groups.ForEachMember(group, [&](Slot slot) {
      copy.members.push_back(slot);
      copy.shown.push_back(groups.WasShown(slot) ? 1 : 0);
    });
  }
  return copy;
}

Status GroupsImage::Give(const GroupsCopy& copy, Lsn lsn, const ImageSink& sink) const {
  ChunkWriter writer(Chunk(copy.chunk), lsn);
  const size_t count = copy.groups.size();
  const auto& groups = copy.groups;
  std::vector<uint8_t> flags;
  std::vector<uint8_t> shown;  // Of groups that have such members.
  auto next = copy.shown.begin();
  for (size_t i = 0; i < count; ++i) {
    const std::span<const uint8_t> of_group(next, copy.counts[i]);
    next += copy.counts[i];
    const bool has_shown = std::ranges::count(of_group, 1) > 0;
    flags.push_back((groups[i].ready ? kIsReady : 0) | (has_shown ? kHasShown : 0));
    if (has_shown) shown.insert(shown.end(), of_group.begin(), of_group.end());
  }
  writer.Put(static_cast<uint32_t>(count));
  writer.PutArray<uint32_t>(count,
                            [&](size_t i) { return static_cast<uint32_t>(groups[i].group); });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return groups[i].generation; });
  writer.PutArray<int64_t>(count, [&](size_t i) { return groups[i].key; });
  writer.PutArray<uint8_t>(count, [&](size_t i) { return flags[i]; });
  writer.PutArray<uint8_t>(count, [&](size_t i) { return static_cast<uint8_t>(groups[i].end); });
  writer.PutArray<uint32_t>(count, [&](size_t i) { return copy.counts[i]; });
  writer.PutArray<uint32_t>(copy.members.size(), [&](size_t i) { return copy.members[i]; });
  writer.PutArray<uint8_t>(shown.size(), [&](size_t i) { return shown[i]; });
  return writer.GiveTo(sink);
}

Status GroupsImage::Load(const fb::PriorityTableHead& head, Lsn lsn, const ImageSource& source,
                         const TableState& state, DrawGroups* groups) const {
  const GroupsShape shape(*groups, state.trajectories().reserved(), chunk_bytes_);
  for (uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
    const ImageChunk name = Chunk(chunk);
    GEARDB_ASSIGN_OR_RETURN(ChunkReader reader, ChunkReader::Open(source, name, lsn));
    const auto count = reader.Get<uint32_t>();
    const auto numbers = reader.Array<uint32_t>(count);
    const auto generations = reader.Array<uint32_t>(count);
    const auto keys = reader.Array<int64_t>(count);
    const auto flags = reader.Array<uint8_t>(count);
    const auto ends = reader.Array<uint8_t>(count);
    const auto counts = reader.Array<uint32_t>(count);
    uint64_t all = 0;
    uint64_t all_shown = 0;  // Members of groups some of which were shown.
    for (size_t i = 0; i < counts.size(); ++i) {
      all += counts[i];
      if ((flags[i] & kHasShown) != 0) all_shown += counts[i];
    }
    const auto members = reader.Array<uint32_t>(all);
    const auto shown = reader.Array<uint8_t>(all_shown);
    GEARDB_RETURN_IF_ERROR(reader.CheckEnd());
    size_t next = 0;
    size_t next_shown = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      std::vector<Slot> slots;
      for (uint32_t k = 0; k < counts[i]; ++k) slots.push_back(members[next++]);
      std::string why;
      const bool ascends = i == 0 || numbers[i] > numbers[i - 1];
      if (!ascends || numbers[i] / shape.groups_per_chunk != chunk) why = "it is out of place";
      if (flags[i] > kFlags || ends[i] > static_cast<uint8_t>(kGroupEndLast))
        why = "it has no state";
      if (why.empty()) {
        why = groups->Restore({.group = numbers[i],
                               .key = keys[i],
                               .generation = generations[i],
                               .ready = (flags[i] & kIsReady) != 0,
                               .end = static_cast<GroupEnd>(ends[i])},
                              slots);
      }
      if (!why.empty()) return BadChunk(name, "draw group ", numbers[i], ": ", why);
      if ((flags[i] & kHasShown) == 0) continue;
      for (const Slot slot : slots) {
        if (shown[next_shown++] != 0) groups->Show(slot);
      }
    }
  }
  if (groups->count() == head.groups() && groups->member_count() == head.group_members()) {
    return Status::Ok();
  }
  return BadChunk({table_, ImageKind::kTable, 0}, "priority table '",
                  state.priority(number_).spec().name, "': it says ", head.groups(), " groups of ",
                  head.group_members(), " members; its chunks have ", groups->count(), " of ",
                  groups->member_count());
}

Status GroupsImage::Check(const TableState& state, const PriorityState& priority) const {
  const DrawGroups& groups = *priority.groups();
  Status status;
  const GroupsShape shape(groups, state.trajectories().reserved(), chunk_bytes_);
  const auto chunk_of = [&](uint64_t group) { return Chunk(group / shape.groups_per_chunk); };
  uint64_t members = 0;
  state.trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
    const uint64_t group = groups.GroupOf(slot);
    const bool is_member = group != DrawGroups::kNoGroup;
    members += is_member ? 1 : 0;
    const bool ready =
        priority.required.empty() || state.ReadyEnd(priority, slot) >= state.StepsEnd(record);
    if (!is_member || (ready && state.IsTrajectoryItem(record)) || !status.ok()) return;
    status =
        BadChunk(chunk_of(group), "trajectory ", record.id,
                 " cannot be a member of a group of priority table '", priority.spec().name, "'");
  });
  GEARDB_RETURN_IF_ERROR(status);
  if (members != groups.member_count()) {
    return BadChunk(chunk_of(0), "it, or one behind it, has members that are not there");
  }
  uint64_t items = 0;
  for (uint64_t group = 0; group < groups.reserved() && status.ok(); ++group) {
    const bool is_item = priority.selector().Contains(group);
    items += is_item ? 1 : 0;
    const bool wanted = groups.InUse(group) && groups.IsReady(group) && !priority.IsDeleted(group);
    if (is_item == wanted) continue;
    status = BadChunk(chunk_of(group), "draw group ", group, " of priority table '",
                      priority.spec().name, is_item ? "' is an item" : "' is no item");
  }
  GEARDB_RETURN_IF_ERROR(status);
  if (items == priority.selector().count()) return Status::Ok();
  return BadChunk(chunk_of(0), "priority table '", priority.spec().name,
                  "' has items that are no groups");
}

}  // namespace geardb::engine
