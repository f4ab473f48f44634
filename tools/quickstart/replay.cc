#include "tools/quickstart/replay.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/hash.h"

namespace geardb::quickstart {
namespace {

/// What keeps an item with no error drawable.
constexpr float kPriorityFloor = 0.01f;

TableSpec CartPoleTable(const ReplayOptions& options) {
  TableSpec spec;
  spec.name = kTableName;
  spec.columns = {
      {.name = "obs",
       .dtype = DType::kF32,
       .shape = Shape({kObservationSize}),
       .in_final_row = true},
      {.name = "action", .dtype = DType::kI32},
      {.name = "reward", .dtype = DType::kF32},
  };
  spec.final_row = true;
  spec.expected_steps = kStepLimit;

  PriorityTableSpec per;
  per.name = kPriorityTableName;
  per.window.extent = {.before = 0, .length = 1, .after = options.n_step};
  per.alpha = options.alpha;
  per.seed = options.seed;
  spec.priority_tables = {per};
  return spec;
}

SamplerOptions PrioritizedReplay(const ReplayOptions& options) {
  const ViewRows anchor = {.begin = 0, .count = 1};
  SamplerOptions sampler;
  sampler.batch = options.batch;
  sampler.views = {
      {.column = "obs", .rows = anchor},
      {.column = "action", .rows = anchor},
      {.column = "obs", .name = "bootstrap_obs", .rows = {.bootstrap = true}},
  };
  sampler.n_step = NStep{.reward_column = "reward", .n = options.n_step, .gamma = options.gamma};
  return sampler;
}

/// The checksum of a row as the oracle will find it.
uint64_t RowChecksum(const Observation& observation, int32_t action, float reward) {
  Hasher64 hasher(0);
  hasher.Add(std::as_bytes(std::span(observation)));
  hasher.Add(std::as_bytes(std::span(&action, 1)));
  hasher.Add(std::as_bytes(std::span(&reward, 1)));
  return hasher.Finish();
}

}  // namespace

DatabaseOptions StoreOptions(const ReplayOptions& options) {
  // A step leaves about 3 KiB in the log: its row, the draw of a batch, and the new priorities.
  constexpr uint64_t kLogBytesPerStep = 8192;
  DatabaseOptions database;
  database.create_if_missing = options.create;
  database.error_if_exists = options.create;
  database.log_bytes_max = std::max(database.log_bytes_max, options.steps * kLogBytesPerStep);
  database.segment_bytes = uint64_t{16} << 20;
  database.ring_bytes = uint64_t{8} << 20;
  return database;
}

Result<std::unique_ptr<Replay>> Replay::Open(const ReplayOptions& options,
                                             AppendReporter* reporter) {
  std::unique_ptr<Replay> replay(new Replay(options, reporter));
  GEARDB_RETURN_IF_ERROR(replay->Attach());
  return replay;
}

Status Replay::Attach() {
  GEARDB_ASSIGN_OR_RETURN(database_, Database::Open(options_.directory, StoreOptions(options_)));
  GEARDB_ASSIGN_OR_RETURN(table_, database_->OpenOrCreateTable(CartPoleTable(options_)));
  GEARDB_ASSIGN_OR_RETURN(priorities_, table_->OpenPriorityTable(kPriorityTableName));
  GEARDB_ASSIGN_OR_RETURN(writer_, table_->NewWriter({.ack = Ack::kLog}));
  GEARDB_ASSIGN_OR_RETURN(sampler_, priorities_->NewSampler(PrioritizedReplay(options_)));
  return Status::Ok();
}

Status Replay::Append(const Experience& experience) {
  const CartPole::Step& outcome = experience.outcome;
  const std::array<ColumnValue, 3> row = {{
      {"obs", TensorView::Of<float>(experience.observation)},
      {"action", TensorView::Scalar(experience.action)},
      {"reward", TensorView::Scalar(outcome.reward)},
  }};
  const std::array<ColumnValue, 1> final = {{
      {"obs", TensorView::Of<float>(outcome.observation)},
  }};
  AppendOptions append;
  AppendReport report;
  report.checksum = RowChecksum(experience.observation, experience.action, outcome.reward);
  if (outcome.terminated || outcome.truncated) {
    append.end = outcome.terminated ? End::kTerminated : End::kTruncated;
    append.final = final;
    report.has_final = 1;
    report.final_checksum = RowChecksum(outcome.observation, 0, 0);
  }
  GEARDB_RETURN_IF_ERROR(reporter_->Report(report));

  Appended appended;
  {
    const LatencyTimer timer(&append_times_);
    GEARDB_ASSIGN_OR_RETURN(appended, writer_->Append(row, append));
  }
  report.kind = AppendReport::Kind::kAcknowledged;
  report.id = appended.id;
  report.row = appended.first_row;
  return reporter_->Report(report);
}

Result<Transitions> Replay::Draw(double beta) {
  GEARDB_RETURN_IF_ERROR(sampler_->set_beta(beta));
  batch_.reset();
  {
    const LatencyTimer timer(&draw_times_);
    GEARDB_ASSIGN_OR_RETURN(batch_, sampler_->Next());
  }
  const Batch& batch = *batch_;
  Transitions transitions;
  transitions.observations = batch["obs"].values<float>();
  transitions.actions = batch["action"].values<int32_t>();
  transitions.returns = batch["nstep.return"].values<float>();
  transitions.discounts = batch["nstep.discount"].values<float>();
  transitions.masks = batch["nstep.mask"].values<float>();
  transitions.next_observations = batch["bootstrap_obs"].values<float>();
  transitions.weights = batch.weights();
  return transitions;
}

Status Replay::SetPriorities(std::span<const float> errors) {
  new_priorities_.assign(errors.begin(), errors.end());
  for (float& priority : new_priorities_) priority += kPriorityFloor;
  const LatencyTimer timer(&update_times_);
  GEARDB_ASSIGN_OR_RETURN(const SetOutcome outcome,
                          priorities_->Set(batch_->handles(), new_priorities_));
  if (outcome.applied + outcome.stale == 0) {
    return Status::Internal("none of ", errors.size(), " priorities was applied");
  }
  return Status::Ok();
}

Status Replay::WriteTag(std::span<const std::byte> blob) {
  return database_->WriteTag(kTagName, blob).status();
}

Result<std::optional<OpenEpisode>> Replay::ResumeEpisode() {
  const std::vector<TrajectoryRecord> orphans = table_->Scan({.state = TrajectoryState::kOrphaned});
  if (orphans.empty()) return std::optional<OpenEpisode>();
  const TrajectoryRecord& orphan = orphans.back();
  GEARDB_RETURN_IF_ERROR(writer_->Resume(orphan.id));
  const std::array<std::string_view, 2> columns = {"obs", "action"};
  GEARDB_ASSIGN_OR_RETURN(const std::vector<ColumnRows> last,
                          table_->Read(orphan.id, columns, {.begin = -1}));
  OpenEpisode episode;
  episode.id = orphan.id;
  episode.rows = orphan.rows_end;
  const std::span<const float> observation = last[0].view().values<float>();
  std::copy(observation.begin(), observation.end(), episode.observation.begin());
  episode.action = last[1].view().values<int32_t>()[0];
  return std::optional(episode);
}

Status Replay::CutEpisode() { return writer_->Cut().status(); }

Status Replay::Close() {
  batch_.reset();
  sampler_.reset();
  writer_.reset();
  return database_->Close();
}

}  // namespace geardb::quickstart
