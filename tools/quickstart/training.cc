#include "tools/quickstart/training.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

namespace geardb::quickstart {
namespace {

// Streams of random numbers that one seed gives.
constexpr uint64_t kExploreStream = 2;
constexpr uint64_t kResetStream = 3;
constexpr uint64_t kTrialStream = 4;
constexpr uint64_t kFinalStream = 5;

constexpr size_t kShownEpisodes = 20;

double Linear(double begin, double end, double share) {
  return begin + (end - begin) * std::clamp(share, 0.0, 1.0);
}

double Share(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

DqnOptions LearnerOptions(const TrainingOptions& options) {
  DqnOptions dqn;
  dqn.seed = options.seed;
  dqn.updates_total = options.updates_total();
  return dqn;
}

}  // namespace

Training::Training(const TrainingOptions& options, Progress* progress)
    : options_(options), progress_(progress), dqn_(LearnerOptions(options)) {
  counters_.explore = Random(options.seed, kExploreStream);
  counters_.reset = Random(options.seed, kResetStream);
  best_policy_ = dqn_.average();
}

Result<std::unique_ptr<Training>> Training::Open(const TrainingOptions& options,
                                                 AppendReporter* reporter, Progress* progress) {
  std::unique_ptr<Training> training(new Training(options, progress));
  GEARDB_ASSIGN_OR_RETURN(training->replay_, Replay::Open(options.replay, reporter));
  if (!options.replay.create) GEARDB_RETURN_IF_ERROR(training->GoOn());
  if (!training->resumed_) {
    training->observation_ = training->cartpole_.Reset(&training->counters_.reset);
  }
  return training;
}

Status Training::GoOn() {
  const Result<Tag> tag = replay_->LastTag();
  if (tag.ok()) {
    GEARDB_RETURN_IF_ERROR(ReadTag(*tag));
  } else if (tag.status().code() != StatusCode::kNotFound) {
    return tag.status();
  }
  tag_steps_ = counters_.steps;
  steps_ = replay_->steps();
  GEARDB_ASSIGN_OR_RETURN(resumed_, replay_->ResumeEpisode());
  counters_.episodes = replay_->table().Count() - (resumed_ ? 1 : 0);
  if (!resumed_) return Status::Ok();
  // The last row says where the environment was and what was done there: do it again.
  cartpole_.Restore(resumed_->observation, resumed_->rows - 1);
  const CartPole::Step last = cartpole_.Push(resumed_->action);
  observation_ = last.observation;
  if (last.terminated || last.truncated) {
    // Only what f32 rounds away can end here an episode that went on before.
    resumed_.reset();
    return replay_->CutEpisode();
  }
  return Status::Ok();
}

Status Training::Run() {
  const uint64_t interval = options_.interval();
  while (steps_ < options_.steps) {
    GEARDB_RETURN_IF_ERROR(Step());
    while (dqn_.updates() + options_.warm_up_steps < steps_) GEARDB_RETURN_IF_ERROR(Learn());
    if (steps_ % interval == 0) TryPolicy();
    if (steps_ % interval == interval / 2) GEARDB_RETURN_IF_ERROR(WriteTag());
    ShowProgress();
    if (options_.kill_at && steps_ >= *options_.kill_at) {
      progress_->Say("\nSIGKILL for process " + std::to_string(::getpid()) + " at step " +
                     Grouped(steps_));
      ::kill(::getpid(), SIGKILL);
    }
  }
  return Status::Ok();
}

Status Training::Step() {
  const double epsilon =
      Linear(1.0, options_.exploration_end, Share(steps_, options_.exploration_steps));
  Experience experience;
  experience.observation = observation_;
  experience.action = dqn_.Explore(observation_, epsilon, &counters_.explore);
  experience.outcome = cartpole_.Push(experience.action);
  GEARDB_RETURN_IF_ERROR(replay_->Append(experience));
  ++steps_;
  observation_ = experience.outcome.observation;
  if (experience.outcome.terminated || experience.outcome.truncated) {
    if (returns_.size() == kShownEpisodes) returns_.erase(returns_.begin());
    returns_.push_back(cartpole_.steps());
    ++counters_.episodes;
    observation_ = cartpole_.Reset(&counters_.reset);
  }
  return Status::Ok();
}

Status Training::Learn() {
  const double beta = Linear(options_.beta_begin, options_.beta_end,
                             Share(dqn_.updates(), options_.updates_total()));
  GEARDB_ASSIGN_OR_RETURN(const Transitions batch, replay_->Draw(beta));
  const Learned learned = dqn_.Update(batch);
  loss_ += 0.01 * (learned.loss - loss_);
  return replay_->SetPriorities(learned.errors);
}

void Training::TryPolicy() {
  trial_score_ = Play(dqn_.average(), options_.trial_episodes, kTrialStream);
  // Of equals the later one, which has learned longer.
  if (trial_score_ < counters_.best_score) return;
  counters_.best_score = trial_score_;
  counters_.best_steps = steps_;
  best_policy_ = dqn_.average();
}

double Training::FinalScore() { return Play(best_policy_, options_.final_episodes, kFinalStream); }

double Training::Play(const Eigen::VectorXf& policy, int episodes, uint64_t stream) {
  Random random(options_.seed, stream);
  int64_t steps = 0;
  for (int episode = 0; episode < episodes; ++episode) {
    CartPole cartpole;
    CartPole::Step step;
    step.observation = cartpole.Reset(&random);
    while (!step.terminated && !step.truncated) {
      step = cartpole.Push(dqn_.Greedy(policy, step.observation));
    }
    steps += cartpole.steps();
  }
  return static_cast<double>(steps) / episodes;
}

Status Training::WriteTag() {
  static_assert(std::is_trivially_copyable_v<Counters>);
  counters_.steps = steps_;
  const auto counters = std::as_bytes(std::span(&counters_, 1));
  const auto policy =
      std::as_bytes(std::span(best_policy_.data(), static_cast<size_t>(best_policy_.size())));
  std::vector<std::byte> blob(counters.begin(), counters.end());
  blob.insert(blob.end(), policy.begin(), policy.end());
  dqn_.Save(&blob);
  return replay_->WriteTag(blob);
}

Status Training::ReadTag(const Tag& tag) {
  std::span<const std::byte> bytes = tag.blob;
  const size_t policy_bytes = sizeof(float) * static_cast<size_t>(best_policy_.size());
  if (bytes.size() < sizeof(Counters) + policy_bytes) {
    return Status::Corruption("tag '", tag.name, "' at LSN ", tag.lsn, " has ", bytes.size(),
                              " bytes, expected at least ", sizeof(Counters) + policy_bytes);
  }
  std::memcpy(&counters_, bytes.data(), sizeof(Counters));
  if (counters_.version != Counters().version) {
    return Status::Unsupported("tag '", tag.name, "' has version ", counters_.version,
                               ", expected ", Counters().version);
  }
  std::memcpy(best_policy_.data(), bytes.data() + sizeof(Counters), policy_bytes);
  return dqn_.Load(bytes.subspan(sizeof(Counters) + policy_bytes))
      .WithContext("tag '" + tag.name + "'");
}

void Training::ShowProgress() {
  ProgressLine line;
  line.steps = steps_;
  line.steps_total = options_.steps;
  line.episodes = counters_.episodes;
  line.updates = dqn_.updates();
  line.loss = loss_;
  line.trial_score = trial_score_;
  if (!returns_.empty()) {
    line.average_return =
        static_cast<double>(std::accumulate(returns_.begin(), returns_.end(), int64_t{0})) /
        static_cast<double>(returns_.size());
  }
  progress_->Show(line);
}

}  // namespace geardb::quickstart
