// Writers.
#include <algorithm>
#include <optional>

#include "tests/differential/runner.h"

namespace geardb::differential {
namespace {

/// A lane of a writer that is there.
struct UsedLane {
  Writer* writer = nullptr;
  uint32_t lane = 0;
  TrajectoryId* open = nullptr;  ///< The model's; 0: none.
  bool there = false;            ///< What is open has not left the table.

  /// What a call comes to that ends or leaves what is open.
  StatusCode expected() const {
    if (*open == 0) return StatusCode::kFailedPrecondition;
    return there ? StatusCode::kOk : StatusCode::kNotFound;
  }
};

std::optional<UsedLane> FindLane(LiveTable* live, uint64_t number) {
  if (live == nullptr) return std::nullopt;
  const auto place = static_cast<uint32_t>(number % kLanes);
  const size_t writer = live->plain.WriterOf(place);
  if (live->writers[writer] == nullptr) return std::nullopt;
  UsedLane used{.writer = live->writers[writer].get(),
                .lane = writer == 0 ? 0 : place - kLanesOfWriter[0]};
  used.open = &live->plain.writers[writer].lanes[used.lane];
  used.there = live->plain.trajectories.contains(*used.open);
  return used;
}

std::optional<Ack> AckKind(uint64_t number) {
  const uint64_t kind = number % 16;
  if (kind < 9) return std::nullopt;
  return kind < 15 ? Ack::kMemory : Ack::kSync;
}

bool Bound(const AppendCall& call) { return IsBounded(call.live->plain.spec); }

}  // namespace

void CallValues::Add(const Column& column, const std::vector<Value>& rows,
                     std::optional<int64_t> outer) {
  names_.push_back(column.name);
  Bytes& bytes = bytes_.emplace_back();
  for (const Value& row : rows) bytes.insert(bytes.end(), row->begin(), row->end());
  std::vector<uint64_t> offsets = OffsetsOf<uint64_t>(column, rows);
  if (AnyLength(column)) {
    const auto total = static_cast<int64_t>(offsets.back());
    types_.emplace_back(column.dtype, column.shape.WithOuter({total}));
  } else {
    types_.emplace_back(column.dtype, outer ? column.shape.WithOuter({*outer}) : column.shape);
  }
  if (!AnyLength(column) || !outer) offsets.clear();
  offsets_.push_back(std::move(offsets));
}

ColumnValues CallValues::values() {
  values_.clear();
  for (size_t i = 0; i < names_.size(); ++i) {
    const TensorView view(bytes_[i].data(), types_[i].first, types_[i].second);
    values_.push_back({names_[i], view, offsets_[i]});
  }
  return values_;
}

bool Runner::EnsureWriter(LiveTable* live, size_t writer) {
  if (live->writers[writer] != nullptr) return true;
  auto made = live->table->NewWriter(
      {.lanes = kLanesOfWriter[writer], .admission_timeout_ms = kNobodyHelpsMs});
  if (!SameCode("writer", made.status(), StatusCode::kOk)) return false;
  live->writers[writer] = std::move(*made);
  live->plain.MakeWriter(writer);
  return true;
}

AppendCall Runner::MakeCall(LiveTable* live, size_t writer, const std::vector<uint32_t>& lanes,
                            const std::vector<End>& ends, int64_t count, uint64_t seed,
                            uint64_t extras) {
  AppendCall call{.live = live, .writer = writer, .ends = ends};
  const PlainWriter& plain = live->plain.writers[writer];
  for (size_t i = 0; i < lanes.size(); ++i) {
    PlainLaneRows& lane = call.lanes.emplace_back();
    lane.lane = lanes[i];
    lane.end = ends[i];
    const uint64_t of_lane = Mixed(seed, lanes[i]);
    const auto random = [&](const PlainColumn& column, uint64_t row) {
      return std::make_shared<const Bytes>(
          RowOf(column.column, Mixed(of_lane, row * 64 + column.number)));
    };
    lane.rows.resize(static_cast<size_t>(count));
    const bool final =
        live->plain.spec.final_row && (ends[i] == End::kTerminated || ends[i] == End::kTruncated);
    for (const PlainColumn& column : plain.columns) {
      if (column.per_step() && !column.late) {
        for (size_t r = 0; r < lane.rows.size(); ++r) {
          lane.rows[r][column.number] = random(column, r);
        }
        if (final && column.column.in_final_row) lane.final[column.number] = random(column, 99);
      } else if (!column.per_step() && (extras >> (column.number % 8) & 1) != 0) {
        lane.trajectory[column.number] = random(column, 98);
      }
    }
  }
  return call;
}

/// The arrays of a call.
void Runner::BindCall(AppendCall* call, bool of_lanes) {
  const PlainWriter& plain = call->live->plain.writers[call->writer];
  const auto lanes = static_cast<int64_t>(call->lanes.size());
  const auto row_of = [](const Values& values, const PlainColumn& column) {
    const auto found = values.find(column.number);
    return found == values.end() ? column.unwritten : found->second;
  };
  for (const PlainColumn& column : plain.columns) {
    std::vector<Value> rows, final, trajectory;
    bool any_final = false;
    for (const PlainLaneRows& lane : call->lanes) {
      for (const Values& row : lane.rows) rows.push_back(row_of(row, column));
      any_final |= lane.final.contains(column.number);
      final.push_back(row_of(lane.final, column));
      trajectory.push_back(row_of(lane.trajectory, column));
    }
    const std::optional<int64_t> outer = of_lanes ? std::optional(lanes) : std::nullopt;
    if (column.per_step() && !column.late) {
      const auto count = static_cast<int64_t>(rows.size());
      call->rows.Add(column.column, rows, call->one_row ? std::nullopt : std::optional(count));
      if (any_final) call->final.Add(column.column, final, outer);
    } else if (!column.per_step() && call->lanes[0].trajectory.contains(column.number)) {
      call->trajectory.Add(column.column, trajectory, outer);
    }
  }
  for (const auto& [number, values] : call->given) {
    call->priority_names.push_back(call->live->plain.priorities[number].spec.name);
  }
  size_t at = 0;
  for (const auto& [number, values] : call->given) {
    call->priorities.push_back({call->priority_names[at++], values});
  }
}

/// Initial priorities for the items of one priority table: one each, one for all, a wrong number.
void Runner::GivePriorities(AppendCall* call, Choices* choices) {
  const auto& priorities = call->live->plain.priorities;
  if (!choices->OneIn(4) || Bound(*call) || priorities.empty()) return;
  const size_t number = choices->Below(priorities.size());
  const PriorityTableSpec& spec = priorities[number].spec;
  if (!spec.required.empty() || spec.item == ItemKind::kGroup) return;  // Refused: its items wait.
  const int64_t items = call->live->plain.NewItems(call->writer, call->lanes)[number];
  if (!HasPriorities(priorities[number].spec.selector) || items == 0) return;
  const uint64_t how = choices->Below(5);
  call->wrong_count = how == 4;
  const auto count = static_cast<size_t>(how == 3 ? 1 : how == 4 ? items + 2 : items);
  for (size_t i = 0; i < count; ++i) {
    call->given[number].push_back(PriorityOf(Mixed(choices->rest(), i)));
  }
}

StatusCode Runner::ExpectedOf(const AppendCall& call, Op op) {
  const PlainTable& plain = call.live->plain;
  const PlainWriter& writer = plain.writers[call.writer];
  for (const PlainLaneRows& lane : call.lanes) {
    const TrajectoryId id = writer.lanes[lane.lane];
    const auto found = plain.trajectories.find(id);
    if (lane.end == End::kSkip || id == 0) continue;
    if (found == plain.trajectories.end()) {
      // A whole trajectory goes on with nothing, so that nothing is missed.
      if (op == Op::append_trajectory) continue;
      return StatusCode::kNotFound;
    }
    const bool between = plain.spec.stream && found->second.rows.back().end != End::kGo;
    if (op == Op::append_trajectory && !between) return StatusCode::kFailedPrecondition;
  }
  if (Bound(call) && !plain.MayHold(call.writer, call.lanes)) {
    return StatusCode::kResourceExhausted;
  }
  if (call.wrong_count) return StatusCode::kInvalidArgument;
  std::vector<int64_t> items;
  for (size_t p = 0; p < plain.priorities.size(); ++p) {
    if (plain.priorities[p].spec.limiter.kind == LimiterKind::kMinSize) continue;
    if (items.empty()) items = plain.NewItems(call.writer, call.lanes);
    const StatusCode code = AdmitsItems(plain.priorities[p], items[p]);
    if (code != StatusCode::kOk) return code;
  }
  return StatusCode::kOk;
}

size_t Runner::AddTo(WriteBatch* batch, AppendCall* call, Op op) {
  Writer* const writer = call->live->writers[call->writer].get();
  if (op == Op::append_lanes) {
    const AppendLanesOptions options{.ends = call->ends,
                                     .final = call->final.values(),
                                     .trajectory = call->trajectory.values(),
                                     .priorities = call->priorities};
    return batch->AppendLanes(writer, call->rows.values(), options);
  }
  const AppendOptions options{.lane = call->lanes[0].lane,
                              .end = call->lanes[0].end,
                              .final = call->final.values(),
                              .trajectory = call->trajectory.values(),
                              .priorities = call->priorities};
  if (op == Op::append) return batch->Append(writer, call->rows.values(), options);
  if (op == Op::append_steps) return batch->AppendSteps(writer, call->rows.values(), options);
  return batch->AppendTrajectory(writer, call->rows.values(), options);
}

/// A call that would wait in vain is made as a batch of one, which may be told not to wait.
Result<std::vector<Appended>> Runner::Make(AppendCall* call, Op op, StatusCode expected) {
  Writer* const writer = call->live->writers[call->writer].get();
  if (expected == StatusCode::kDeadlineExceeded || expected == StatusCode::kResourceExhausted) {
    WriteBatch batch;
    AddTo(&batch, call, op);
    auto outcome = database_->Write(batch, {.admission_timeout_ms = 0});
    if (WaitsForIds(outcome.status())) {
      // New ids wait for one, before anything else is asked: refused as well.
      return Status(expected, "ids");
    }
    if (!outcome.ok()) return outcome.status();
    return outcome->operations[0].appended;
  }
  if (op == Op::append_lanes) {
    return writer->AppendLanes(call->rows.values(), {.ends = call->ends,
                                                     .final = call->final.values(),
                                                     .trajectory = call->trajectory.values(),
                                                     .priorities = call->priorities,
                                                     .ack = call->ack});
  }
  const AppendOptions options{.lane = call->lanes[0].lane,
                              .end = call->lanes[0].end,
                              .final = call->final.values(),
                              .trajectory = call->trajectory.values(),
                              .priorities = call->priorities,
                              .ack = call->ack};
  const ColumnValues rows = call->rows.values();
  auto appended = op == Op::append         ? writer->Append(rows, options)
                  : op == Op::append_steps ? writer->AppendSteps(rows, options)
                                           : writer->AppendTrajectory(rows, options);
  if (!appended.ok()) return appended.status();
  return std::vector<Appended>{*appended};
}

/// What was acknowledged in memory is waited for, so that it can be seen; of what was synced the
/// log says so.
bool Runner::AckedAsAsked(const AppendCall& call, Lsn end) {
  if (!call.ack) return true;
  ++result_.counts.shown[*call.ack == Ack::kSync ? "synced appends" : "appends in memory"];
  if (*call.ack == Ack::kSync) return Same("synced", database_->Stats().log_synced >= end, true);
  return SameCode("wait", database_->Wait({end}, Ack::kLog), StatusCode::kOk);
}

void Runner::TakeOver(AppendCall* call, const std::vector<Appended>& appended) {
  PlainTable& plain = call->live->plain;
  PlainWriter& writer = plain.writers[call->writer];
  if (!Same("lanes", appended.size(), call->lanes.size())) return;
  std::vector<TrajectoryId> ids;
  for (size_t i = 0; i < appended.size(); ++i) {
    const PlainLaneRows& lane = call->lanes[i];
    const bool nothing = lane.end == End::kSkip || plain.Vanishes(call->writer, lane);
    const TrajectoryId open = writer.lanes[lane.lane];
    const TrajectoryId id = appended[i].id;
    const bool fresh = open == 0 && !nothing;
    ids.push_back(id);
    if (fresh && id > plain.last_id) {
      if (!Same("first row", appended[i].first_row, 0)) return;
    } else if (!Same("id", id, nothing ? 0 : open) || nothing) {
      if (different()) return;
      continue;
    } else if (!Same("first row", appended[i].first_row, plain.trajectories.at(id).rows_end())) {
      return;
    }
    last_end_ = appended[i].end_lsn;
    if (!AckedAsAsked(*call, last_end_)) return;
    if (!Same("rows", appended[i].rows, static_cast<int64_t>(lane.rows.size()))) return;
  }
  std::vector<TrajectoryId> victims;
  if (plain.spec.remover == Remover::kUniform) {
    const auto left = call->live->table->ReadRemovals(call->live->removals_seen);
    for (const Removal& removal : left->removals) {
      if (removal.reason == RemovalReason::kCapacity) victims.push_back(removal.id);
    }
  }
  const size_t removed = plain.removals.size();
  const int64_t trimmed = plain.RowsTrimmed();
  if (!plain.Append(call->writer, call->lanes, call->given, ids, victims)) {
    return Differ("what left the full table", Printed(victims));
  }
  if (plain.spec.bytes_max > 0) {
    result_.counts.removed["capacity in bytes"] += plain.removals.size() - removed;
    if (plain.RowsTrimmed() > trimmed) ++result_.counts.removed["trimmed for bytes"];
  }
  for (const PlainLaneRows& lane : call->lanes) {
    const TrajectoryId open = writer.lanes[lane.lane];
    Same("open trajectory", call->live->writers[call->writer]->open_trajectory(lane.lane),
         plain.trajectories.contains(open) ? open : 0);
  }
}

void Runner::AppendOne(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  const auto place = static_cast<uint32_t>(step.numbers[1] % kLanes);
  const size_t writer = live->plain.WriterOf(place);
  if (!EnsureWriter(live, writer)) return;
  Choices choices(step.numbers[2]);
  const bool whole = step.op == Op::append_trajectory;
  const auto count = step.op == Op::append ? 1 : 1 + static_cast<int64_t>(choices.Below(kRowsMax));
  constexpr End kEnds[] = {End::kGo, End::kGo, End::kTerminated, End::kTruncated, End::kCut};
  const End end = whole ? kEnds[2 + choices.Below(3)] : kEnds[choices.Below(5)];
  const uint32_t lane = writer == 0 ? 0 : place - kLanesOfWriter[0];
  Choices extras(step.numbers[3]);
  AppendCall call = MakeCall(live, writer, {lane}, {end}, count, choices.rest(), extras.Below(256));
  call.one_row = step.op == Op::append;
  call.ack = AckKind(step.numbers[1] / kLanes);
  TrajectoryId& open = live->plain.writers[writer].lanes[lane];
  const bool removed = open != 0 && !live->plain.trajectories.contains(open);
  if (removed && whole) open = 0;
  if (!removed || whole) GivePriorities(&call, &extras);
  BindCall(&call, /*of_lanes=*/false);
  const StatusCode expected = ExpectedOf(call, step.op);
  const auto appended = Make(&call, step.op, expected);
  if (!SameCode("append", appended.status(), expected)) return;
  if (expected == StatusCode::kNotFound) open = 0;
  if (appended.ok()) TakeOver(&call, *appended);
}

void Runner::AppendLanes(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr || !EnsureWriter(live, 1)) return;
  Choices choices(step.numbers[1]);
  constexpr End kEnds[] = {End::kGo,        End::kGo,  End::kGo,  End::kTerminated,
                           End::kTruncated, End::kCut, End::kSkip};
  std::vector<uint32_t> lanes;
  std::vector<End> ends;
  for (uint32_t lane = 0; lane < kLanesOfWriter[1]; ++lane) {
    lanes.push_back(lane);
    ends.push_back(kEnds[choices.Below(std::size(kEnds))]);
  }
  PlainWriter& writer = live->plain.writers[1];
  AppendCall call = MakeCall(live, 1, lanes, ends, 1, step.numbers[2], step.numbers[3]);
  call.ack = AckKind(step.numbers[2]);
  BindCall(&call, /*of_lanes=*/true);
  const StatusCode expected = ExpectedOf(call, Op::append_lanes);
  const auto appended = Make(&call, Op::append_lanes, expected);
  if (!SameCode("append", appended.status(), expected)) return;
  if (expected == StatusCode::kNotFound) {
    // Lanes whose trajectory was removed are free again.
    for (const uint32_t lane : lanes) {
      if (ends[lane] != End::kSkip && !live->plain.trajectories.contains(writer.lanes[lane])) {
        writer.lanes[lane] = 0;
      }
    }
  }
  if (appended.ok()) TakeOver(&call, *appended);
}

void Runner::Cut(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  const auto used = FindLane(live, step.numbers[1]);
  if (!used) return;
  const auto cut = used->writer->Cut(used->lane);
  if (!SameCode("cut", cut.status(), used->expected())) return;
  const TrajectoryId id = *used->open;
  *used->open = 0;
  if (used->there) Same("id", cut->id, live->plain.Cut(id) ? id : 0);
}

void Runner::Detach(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  const auto used = FindLane(live, step.numbers[1]);
  if (!used) return;
  const auto detached = used->writer->Detach(used->lane);
  if (!SameCode("detach", detached.status(), used->expected())) return;
  if (used->there) {
    Same("id", *detached, *used->open);
    ++live->plain.moment;
    live->plain.Orphan(*used->open);
    live->plain.Settle();
  }
  *used->open = 0;
}

void Runner::Leave(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  const size_t writer = step.numbers[1] % std::size(kLanesOfWriter);
  if (live == nullptr || live->writers[writer] == nullptr) return;
  live->writers[writer].reset();
  live->plain.Leave(writer);
}

void Runner::Resume(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  const auto place = static_cast<uint32_t>(step.numbers[1] % kLanes);
  const size_t writer = live->plain.WriterOf(place);
  if (!EnsureWriter(live, writer)) return;
  const uint32_t lane = writer == 0 ? 0 : place - kLanesOfWriter[0];
  std::vector<TrajectoryId> orphans;
  for (const auto& [id, trajectory] : live->plain.trajectories) {
    if (trajectory.state == TrajectoryState::kOrphaned) orphans.push_back(id);
  }
  const PlainTrajectory* chosen = TrajectoryAt(live, step.numbers[2]);
  if (!orphans.empty()) {
    chosen = &live->plain.trajectories.at(orphans[step.numbers[2] % orphans.size()]);
  }
  const TrajectoryId id = chosen == nullptr ? live->plain.last_id + 1000 : chosen->id;
  PlainWriter& plain = live->plain.writers[writer];
  TrajectoryId& open = plain.lanes[lane];
  if (!live->plain.trajectories.contains(open)) open = 0;
  StatusCode expected = StatusCode::kOk;
  if (chosen == nullptr) expected = StatusCode::kNotFound;
  if (chosen != nullptr && orphans.empty()) expected = StatusCode::kFailedPrecondition;
  if (open != 0 || plain.layout != live->plain.layout) expected = StatusCode::kFailedPrecondition;
  if (!SameCode("resume", live->writers[writer]->Resume(id, lane), expected)) return;
  if (expected != StatusCode::kOk) return;
  PlainTrajectory& taken = live->plain.trajectories.at(id);
  ++live->plain.moment;
  taken.state = TrajectoryState::kOpen;
  taken.touched = live->plain.moment;
  open = id;
  live->plain.Settle();
}

}  // namespace geardb::differential
