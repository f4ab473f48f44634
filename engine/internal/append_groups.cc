// Draw groups and limiters, in step 3 of an append: how many groups it makes ready.
// engine/internal/append.h has the other steps.

#include <map>

#include "engine/internal/append.h"

namespace geardb {

using engine::DrawGroups;
using engine::Lane;
using engine::LaneRows;

bool Writer::Impl::LimitsGroups() const {
  // Needs no lock: as LimitsInserts.
  for (size_t i = 0; i < table_->state->priority_table_count(); ++i) {
    const engine::PriorityState& priority = table_->state->priority(i);
    if (priority.groups() != nullptr && priority.limits_inserts()) return true;
  }
  return false;
}

int64_t Writer::Impl::IncomingKey(const DrawGroups& groups, const LaneRows& call) const {
  const size_t number = groups.key_column();
  const auto columns = table_->layout().trajectory_columns();
  const engine::TrajectoryColumn& column = columns[number];
  if (number < call.trajectory.size() && call.trajectory[number] != nullptr) {
    const auto* const given = reinterpret_cast<const std::byte*>(call.trajectory[number]);
    return engine::KeyOfBytes(column.dtype, {given, column.bytes});
  }
  size_t offset = 0;
  for (size_t c = 0; c < number; ++c) offset += columns[c].bytes;
  const std::vector<std::byte>& values = lanes_[call.lane]->columns;
  if (offset + column.bytes <= values.size()) {
    return engine::KeyOfBytes(column.dtype, {values.data() + offset, column.bytes});
  }
  // It came later than this writer, and was not set.
  return engine::KeyOfBytes(column.dtype, std::as_bytes(std::span(&column.default_bits, 1)));
}

uint64_t Writer::Impl::CountNewGroups(uint32_t priority_table, Calls calls) const {
  const engine::PriorityState& priority = table_->state->priority(priority_table);
  const DrawGroups& groups = *priority.groups();
  struct Taking {
    uint64_t members = 0;
    bool ready = false;
  };
  std::map<int64_t, Taking> by_key;
  uint64_t ready = 0;
  for (const LaneRows& call : calls) {
    const Lane& lane = *lanes_[call.lane];
    const bool joins =
        engine::CountNewItems(*table_->state, {.priority_table = priority_table}, lane, call) > 0;
    if (!joins) continue;
    const int64_t key = IncomingKey(groups, call);
    const auto [at, is_new] = by_key.try_emplace(key);
    Taking& taking = at->second;
    const uint64_t group = is_new ? groups.FindTaking(key) : DrawGroups::kNoGroup;
    if (group != DrawGroups::kNoGroup) {
      taking = {.members = groups.CountOf(group), .ready = groups.IsReady(group)};
      const bool undrawable = priority.IsExhausted(group) || priority.IsDeleted(group);
      if (taking.ready && undrawable) taking = {};
    }
    ++taking.members;
    const bool complete = taking.members == groups.spec().count;
    const bool enough = groups.spec().deadline_ms == 0 && taking.members >= groups.at_least();
    if (!taking.ready && (complete || enough)) {
      ++ready;
      taking.ready = true;
    }
    if (complete) taking = {};  // The next one begins another group.
  }
  return ready;
}

}  // namespace geardb
