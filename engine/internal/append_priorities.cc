// Initial priorities, in step 3 of an append: what is given, for how many items, and the scale that
// it needs. engine/internal/append.h has the other steps.

#include <algorithm>
#include <cstring>

#include "engine/internal/append.h"
#include "engine/internal/set_priorities.h"

namespace geardb {

namespace fb = engine::fb;
using engine::AppendPlan;
using engine::ChangeScope;
using engine::Lane;
using engine::LaneRows;

namespace {

/// The value of an f32 per-trajectory column in a lane's copy of them; of one that came later than
/// the writer, and was not set, its default.
float LaneColumnValue(const Lane& lane, const engine::TableLayout& now, std::string_view name) {
  const auto number = now.FindTrajectoryColumn(name);
  if (!number) return 0.0f;
  const auto columns = now.trajectory_columns();
  size_t offset = 0;
  for (size_t c = 0; c < *number; ++c) offset += columns[c].bytes;
  float value = 0;
  const bool there = offset + sizeof(value) <= lane.columns.size();
  const void* const from = there ? static_cast<const void*>(lane.columns.data() + offset)
                                 : &columns[*number].default_bits;
  std::memcpy(&value, from, sizeof(value));
  return index::ValidPriority(value) ? value : 0.0f;
}

}  // namespace

Status Writer::Impl::CheckPriorities(Priorities priorities) const {
  if (priorities.empty()) return Status::Ok();
  MutexLock lock(&table_->state->mutex);
  for (const InitialPriorities& given : priorities) {
    if (!engine::FindPriorityTable(*table_->state, given.priority_table)) {
      return Status::NotFound("table '", layout().spec().name, "' has no priority table '",
                              given.priority_table, "'");
    }
    const auto number = engine::FindPriorityTable(*table_->state, given.priority_table);
    if (table_->state->priority(*number).groups() != nullptr) {
      return Status::InvalidArgument("priority table '", given.priority_table,
                                     "' draws groups; an append cannot give their initial "
                                     "priorities: they are the schema's");
    }
    if (!table_->state->priority(*number).required.empty()) {
      return Status::InvalidArgument("priority table '", given.priority_table,
                                     "': its items wait for what it requires; an append cannot "
                                     "give their initial priorities");
    }
    if (given.values.empty()) {
      return Status::InvalidArgument("priority table '", given.priority_table,
                                     "': no initial priorities are given");
    }
    for (const InitialPriorities* other = priorities.data(); other != &given; ++other) {
      if (other->priority_table != given.priority_table) continue;
      return Status::InvalidArgument("priority table '", given.priority_table,
                                     "': initial priorities are given twice");
    }
    for (size_t i = 0; i < given.values.size(); ++i) {
      if (index::ValidPriority(given.values[i])) continue;
      return Status::InvalidArgument("priority table '", given.priority_table,
                                     "': initial priority ", i, " is ", given.values[i],
                                     "; expected a finite value of at least 0");
    }
  }
  return Status::Ok();
}

Status Writer::Impl::CheckItemCount(const InitialPriorities& given, uint64_t items) {
  if (given.values.size() == items || given.values.size() == 1) return Status::Ok();
  return Status::InvalidArgument("priority table '", given.priority_table,
                                 "': ", given.values.size(), " initial priorities for ", items,
                                 " items that become drawable");
}

Status Writer::Impl::AwaitLanes(Calls calls) const {
  for (const LaneRows& call : calls) {
    const Lane& lane = *lanes_[call.lane];
    if (lane.id == 0) continue;
    GEARDB_RETURN_IF_ERROR(
        database_->log->WaitPublished(table_->plan->last_lsn(lane.slot), Deadline::Infinite()));
  }
  return Status::Ok();
}

uint64_t Writer::Impl::NewItems(uint32_t priority_table, const LaneRows& call,
                                const AppendPlan& plan) const {
  const Lane& lane = *lanes_[call.lane];
  uint64_t first = 0;
  if (lane.id != 0) {
    first = table_->state->trajectories().record(lane.slot).first_row;
    // What the record evicts goes before its rows come.
    for (const fb::Trimmed& trimmed : plan.eviction.trimmed) {
      if (trimmed.slot() == lane.slot) first = std::max(first, trimmed.first_row());
    }
  }
  return engine::CountNewItems(*table_->state,
                               {.priority_table = priority_table, .first_row = first}, lane, call);
}

Status Writer::Impl::CheckItemCounts(Calls calls, Priorities priorities, AppendPlan* plan) {
  plan->largest_given.clear();
  if (priorities.empty()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(AwaitLanes(calls));
  MutexLock lock(&table_->state->mutex);
  for (const InitialPriorities& given : priorities) {
    const uint32_t number = *engine::FindPriorityTable(*table_->state, given.priority_table);
    uint64_t items = 0;
    for (const LaneRows& call : calls) items += NewItems(number, call, *plan);
    GEARDB_RETURN_IF_ERROR(CheckItemCount(given, items));
    if (items == 0) continue;
    plan->largest_given.emplace_back(number,
                                     *std::max_element(given.values.begin(), given.values.end()));
  }
  return Status::Ok();
}

float Writer::Impl::LargestIncoming(uint32_t priority_table, Calls calls,
                                    Priorities priorities) const {
  const PriorityTableSpec& spec = table_->state->priority(priority_table).spec();
  for (const InitialPriorities& given : priorities) {
    if (given.priority_table != spec.name) continue;
    return *std::max_element(given.values.begin(), given.values.end());
  }
  if (spec.initial != InitialPriority::kColumn) {
    return InitialPriorityOf(priority_table, *lanes_[calls[0].lane]);
  }
  const auto column = table_->layout().FindTrajectoryColumn(spec.initial_priority_column);
  float largest = 0;
  for (const LaneRows& call : calls) {
    float value = InitialPriorityOf(priority_table, *lanes_[call.lane]);
    if (column && *column < call.trajectory.size() && call.trajectory[*column] != nullptr) {
      std::memcpy(&value, call.trajectory[*column], sizeof(value));
    }
    if (index::ValidPriority(value)) largest = std::max(largest, value);
  }
  return largest;
}

Status Writer::Impl::RescaleIfDue(Calls calls, Priorities priorities, ChangeScope* scope,
                                  const AppendPlan& plan, bool* again) {
  for (uint32_t i = 0; i < table_->state->priority_table_count(); ++i) {
    const index::PrioritizedSelector* selector = table_->state->priority(i).prioritized();
    if (selector == nullptr) continue;
    // Needs no lock: a shift changes while whoever logs it has the commit mutex.
    const auto fits = [&](float raw) { return selector->MaxWeightFits(selector->WeightOf(raw)); };
    if (fits(LargestIncoming(i, calls, priorities))) continue;
    // Rare: what reaches no item needs no scale.
    GEARDB_RETURN_IF_ERROR(AwaitLanes(calls));
    std::optional<int> shift;
    {
      MutexLock lock(&table_->state->mutex);
      float largest = 0;
      for (const LaneRows& call : calls) {
        if (NewItems(i, call, plan) == 0) continue;
        largest = std::max(largest, LargestIncoming(i, {&call, 1}, priorities));
      }
      if (!fits(largest)) shift = selector->AdviseShift(selector->WeightOf(largest));
    }
    if (!shift) continue;
    *again = true;
    GEARDB_ASSIGN_OR_RETURN(std::vector<wal::RecordSize> sizes, Records(priorities, plan));
    GEARDB_RETURN_IF_ERROR(
        engine::RescaleAhead(database_.get(), scope, table_, {i, *shift}, std::move(sizes)));
    return Status::Ok();  // It has waited, perhaps: all is decided again.
  }
  return Status::Ok();
}

float Writer::Impl::InitialPriorityOf(uint32_t priority_table, const Lane& lane) const {
  const PriorityTableSpec& spec = table_->state->priority(priority_table).spec();
  switch (spec.initial) {
    case InitialPriority::kConstant:
      return spec.initial_priority_value;
    case InitialPriority::kColumn:
      return LaneColumnValue(lane, table_->layout(), spec.initial_priority_column);
    case InitialPriority::kMax:
      break;
  }
  return table_->plan->max_priority[priority_table];
}

std::vector<flatbuffers::Offset<fb::NewItems>> Writer::Impl::BuildItems(
    Calls calls, Priorities priorities, flatbuffers::FlatBufferBuilder* builder) {
  auto& body = *builder;
  std::vector<flatbuffers::Offset<fb::NewItems>> items;
  for (uint32_t i = 0; i < table_->state->priority_table_count(); ++i) {
    const PriorityTableSpec& spec = table_->state->priority(i).spec();
    if (!HasPriorities(spec.selector)) continue;
    float value = InitialPriorityOf(i, *lanes_[calls[0].lane]);
    std::vector<float> each;
    bool per_rows = false;
    const auto given = std::find_if(priorities.begin(), priorities.end(),
                                    [&](const auto& p) { return p.priority_table == spec.name; });
    if (given != priorities.end() && given->values.size() == 1) {
      value = given->values[0];
    } else if (given != priorities.end()) {
      each.assign(given->values.begin(), given->values.end());
    } else if (spec.initial == InitialPriority::kColumn) {
      per_rows = true;
      for (const LaneRows& call : calls) each.push_back(InitialPriorityOf(i, *lanes_[call.lane]));
    }
    const auto each_offset = each.empty() ? 0 : body.CreateVector(each);
    items.push_back(fb::CreateNewItems(body, i, value, each_offset, per_rows));
  }
  return items;
}

}  // namespace geardb
