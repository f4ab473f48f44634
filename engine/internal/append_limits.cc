// Limiters, in step 3 of an append: whether they admit the items that it makes drawable.
// engine/internal/append.h has the other steps.
//
// An append in parts asks again before its record, since others have had the commit mutex between:
// it keeps the places that it was given, returns those that it needs no more, and asks where it
// makes more items by now.
//
// A limiter sees what is published. Whoever finds it closed first waits until all that has an LSN
// is published, and then for the next record that may open it: which has its LSN, and has woken
// whoever waits, by the time the commit mutex is free again.

#include "base/break.h"
#include "engine/internal/append.h"

namespace geardb {

using engine::AppendPlan;
using engine::ChangeScope;
using engine::LaneRows;

bool Writer::Impl::LimitsInserts() const {
  // Needs no lock: limits change while whoever logs them has the commit mutex.
  for (size_t i = 0; i < table_->state->priority_table_count(); ++i) {
    if (table_->state->priority(i).limits_inserts()) return true;
  }
  return false;
}

std::optional<uint32_t> Writer::Impl::TryAdmitItems(Calls calls, AppendPlan* plan,
                                                    index::LimiterBlock* block) {
  engine::TableState& state = *table_->state;
  MutexLock lock(&table_->state->mutex);
  std::vector<uint64_t> items(state.priority_table_count(), 0);
  bool fewer = false;
  for (uint32_t i = 0; i < items.size(); ++i) {
    engine::PriorityState& priority = state.priority(i);
    if (priority.groups() != nullptr) {
      items[i] = priority.limits_inserts() ? CountNewGroups(i, calls) : 0;
    } else if (priority.limits_inserts()) {
      for (const LaneRows& call : calls) items[i] += NewItems(i, call, *plan);
    }
    const uint64_t had = i < plan->admitted.size() ? plan->admitted[i] : 0;
    fewer |= items[i] < had;
    if (items[i] <= had) continue;
    priority.admitted -= had;  // They are among those that it asks for.
    *block = priority.BlockedInsert(items[i]);
    priority.admitted += had;
    if (!block->text.empty()) return i;
  }
  state.Arrived(plan->admitted);
  for (size_t i = 0; i < items.size(); ++i) state.priority(i).admitted += items[i];
  plan->admitted = std::move(items);
  if (fewer) database_->room_made.NotifyAll();
  return std::nullopt;
}

Status Writer::Impl::AdmitItems(Calls calls, ChangeScope* scope, AppendPlan* plan, bool* again) {
  if (plan->admitted.empty() && !LimitsInserts()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(AwaitLanes(calls));
  // What completes a group may be an append that is on its way.
  if (LimitsGroups()) GEARDB_RETURN_IF_ERROR(database_->CatchUp());
  index::LimiterBlock block;
  std::optional<uint32_t> closed = TryAdmitItems(calls, plan, &block);
  if (closed && database_->log->published() < database_->log->end()) {
    GEARDB_RETURN_IF_ERROR(database_->CatchUp());
    closed = TryAdmitItems(calls, plan, &block);
  }
  if (!closed) return Status::Ok();
  engine::TableState& state = *table_->state;
  std::string name;
  {
    MutexLock lock(&state.mutex);
    name = state.priority(*closed).spec().name;
  }
  if (block.reason == index::LimiterBlock::Reason::kNever) {
    return Status::InvalidArgument("table '", layout().spec().name, "': priority table '", name,
                                   "' never admits the call: ", block.text);
  }
  const Deadline deadline = scope->how().deadline;
  const auto waiting = [&](bool begins) {
    MutexLock lock(&state.mutex);
    state.priority(*closed).appends_waiting += begins ? 1u : ~0u;
  };
  // Once the database is closed nobody will sample.
  GEARDB_RETURN_IF_ERROR(database_->CheckWritable());
  if (plan->before_wait) plan->before_wait();
  ReturnPlaces(plan);  // Two that have some and wait for more would wait for each other.
  const engine::FrameQueue::Pause pause(plan->hold);
  const engine::WaitTimer timer(&database_->waits.limiters);
  waiting(true);
  *again = !deadline.passed() && database_->room_made.WaitUntil(&database_->commit, deadline);
  waiting(false);
  if (*again || kBreak.admit_at_deadline) return Status::Ok();
  return Status::DeadlineExceeded("table '", layout().spec().name,
                                  "': the append was never admitted: priority table '", name,
                                  "' waits: ", block.text);
}

void Writer::Impl::ReturnPlaces(AppendPlan* plan) {
  if (plan->admitted.empty()) return;
  ReleaseItems(plan);
  database_->room_made.NotifyAll();
}

void Writer::Impl::ReleaseItems(AppendPlan* plan) {
  if (plan->admitted.empty()) return;
  MutexLock lock(&table_->state->mutex);
  table_->state->Arrived(plan->admitted);
  plan->admitted.clear();
}

}  // namespace geardb
