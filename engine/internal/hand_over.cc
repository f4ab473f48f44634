// Sampler::Impl: the hand-over of a batch, one record for all its parts: after a crash a batch is
// counted in all of them or in none.

#include "base/crash_point.h"
#include "engine/internal/audit.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/sampler_impl.h"
#include "engine/internal/set_filter.h"
#include "engine/internal/table_change.h"

namespace geardb {

namespace fb = engine::fb;

Result<Lsn> Sampler::Impl::CommitHandOver(engine::Change* change, Deadline deadline) {
  engine::DatabaseCore& core = *database();
  const engine::CommitOptions how{.deadline = deadline, .makes_room = true};
  const wal::RecordSize size = wal::RecordSize::For(change->body_bytes().size(), {});
  wal::Reservation reservation;
  {
    engine::ChangeScope scope(&core, sources_[0].priority_table->table.get(), how);
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, how, &waited));
    for (const engine::SamplerSource& source : sources_) {
      GEARDB_RETURN_IF_ERROR(core.CheckNotDropped(*source.priority_table->table));
    }
    reservation = scope.Reserve({.type = how.type, .size = size});
    core.room_made.NotifyAll();
  }
  core.Finish(reservation, {}, change);
  return reservation.end;
}

Status Sampler::Impl::HandOver(Drawn* batch, Deadline deadline) {
  engine::FunctionChange change(nullptr);
  auto& body = change.body;
  std::vector<flatbuffers::Offset<fb::Operation>> operations;
  const engine::AuditedHandOver how{.sampler = options_.name,
                                    .drawn_lsn = batch->rep->lsn,
                                    .handed_us = database()->clock->WallTimeUs()};
  for (size_t p = 0; p < sources_.size(); ++p) {
    const engine::PartRows& part = batch->parts[p];
    const auto sampled = body.CreateVectorOfStructs(part.sampled);
    // Nobody else changes them before the record is applied.
    std::vector<fb::Handed> handed = part.reservation.items;
    handed.insert(handed.end(), part.reservation.uncounted.begin(),
                  part.reservation.uncounted.end());
    const auto items = handed.empty() ? 0 : body.CreateVectorOfStructs(handed);
    const engine::EpochMark& mark = part.reservation.mark;
    const auto audit = options_.audit ? engine::EncodeAudit(&body, part.audit, how) : 0;
    const engine::DrawGroups* const groups = sources_[p].priority().groups();
    const auto hand_over =
        fb::CreateHandOver(body, part.draw_number, sampled, items, mark.epoch, mark.pass, audit,
                           groups != nullptr && groups->TakesWhenReady());
    const PriorityTable::Impl& of = *sources_[p].priority_table;
    operations.push_back(fb::CreateOperation(body, of.table->layout().id(), of.number,
                                             fb::Change::HandOver, hand_over.Union()));
  }
  body.Finish(fb::CreateBody(body, body.CreateVector(operations)));
  const auto& written = *flatbuffers::GetRoot<fb::Body>(body.GetBufferPointer())->operations();
  change.set_apply([&](Lsn, Lsn end) {
    for (uint32_t p = 0; p < sources_.size(); ++p) {
      engine::TableState* state = sources_[p].state();
      engine::PartRows& part = batch->parts[p];
      engine::ApplyLock lock(state, end);
      state->CancelDraw(sources_[p].priority_table->number, &part.reservation);
      state->Apply(*written.Get(p)->change_as_HandOver(), sources_[p].priority_table->number);
      if (sources_[p].priority().groups() == nullptr) continue;
      // Who joined a group after its draw may have made another one ready.
      if (state->FollowUpDue()) sources_[p].priority_table->table->follow_up_due.store(true);
      state->changed.NotifyAll();
    }
  });
  std::vector<bool> counted;
  for (const engine::PartRows& part : batch->parts) {
    counted.push_back(!part.reservation.items.empty() || !part.reservation.uncounted.empty());
  }
  GEARDB_ASSIGN_OR_RETURN(const Lsn end, CommitHandOver(&change, deadline));
  GEARDB_RETURN_IF_ERROR(database()->Acknowledge(end, Ack::kLog));
  CrashPoint("handed_over");
  for (size_t p = 0; p < sources_.size(); ++p) {
    const auto& table = sources_[p].priority_table->table;
    if (table->follow_up_due.load()) engine::FollowUp(database(), table);
    if (counted[p]) engine::RemoveFinished(database(), table, batch->parts[p].sampled);
  }
  return Status::Ok();
}

}  // namespace geardb
