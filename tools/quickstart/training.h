// Training: the loop that acts, stores, draws and learns, and what of it goes into a tag.
//
// Invariants:
// - All that decides what happens next is in the store and its tag, so a run is a function of its
//   seed: a process that goes on after a death draws, explores and learns as any other would.
// - The number of updates follows from the number of stored steps. Steps that were stored after the
//   tag are not lost, so the updates that were lost are made again.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "tools/quickstart/cartpole.h"
#include "tools/quickstart/dqn.h"
#include "tools/quickstart/progress.h"
#include "tools/quickstart/random.h"
#include "tools/quickstart/replay.h"

namespace geardb::quickstart {

struct TrainingOptions {
  ReplayOptions replay;
  uint64_t seed = 1;
  uint64_t steps = 60'000;                  ///< Of the environment, in all.
  std::optional<uint64_t> kill_at = {};     ///< Dies by SIGKILL once so many steps are stored.
  uint64_t warm_up_steps = 500;             ///< Before the first update.
  uint64_t exploration_steps = 5'000;       ///< Until ε has fallen from 1…
  double exploration_end = 0.02;            ///< …to this.
  double beta_begin = 0.4, beta_end = 1.0;  ///< Of the importance weights, linear in updates.
  int trial_episodes = 50;                  ///< Greedy episodes that a policy is chosen by.
  int final_episodes = 100;                 ///< Greedy episodes that the chosen one is judged by.

  /// Every so many steps the policy is tried; half-way between two trials a tag is written.
  uint64_t interval() const { return steps < 5'000 ? 100 : steps / 50; }
  uint64_t updates_total() const { return steps - warm_up_steps; }
};

/// A learner with its store. Used by one thread.
class Training {
 public:
  /// Opens the store; goes on from its newest tag and its open episode when there are any.
  static Result<std::unique_ptr<Training>> Open(const TrainingOptions& options,
                                                AppendReporter* reporter, Progress* progress);
  /// Trains until `steps` are stored, or dies at `kill_at`.
  Status Run();
  /// Average return of the best policy over `final_episodes` that no policy was chosen by.
  double FinalScore();

  Replay& replay() { return *replay_; }
  uint64_t updates() const { return dqn_.updates(); }
  /// Steps that the tag knew of; what the store holds beyond was stored after it. 0: no tag.
  uint64_t tag_steps() const { return tag_steps_; }
  const std::optional<OpenEpisode>& resumed() const { return resumed_; }
  Status Close() { return replay_->Close(); }

 private:
  /// What a tag holds besides the networks. Stored as its bytes.
  struct Counters {
    uint64_t version = 1;
    uint64_t steps = 0;
    uint64_t episodes = 0;
    Random explore, reset;
    double best_score = -1;
    uint64_t best_steps = 0;  ///< Steps at which the best policy was found.
  };

  Training(const TrainingOptions& options, Progress* progress);
  Status GoOn();
  Status Step();
  Status Learn();
  void TryPolicy();
  double Play(const Eigen::VectorXf& policy, int episodes, uint64_t stream);
  Status WriteTag();
  Status ReadTag(const Tag& tag);
  void ShowProgress();

  TrainingOptions options_;
  Progress* progress_;
  std::unique_ptr<Replay> replay_;
  Dqn dqn_;
  Counters counters_;
  Eigen::VectorXf best_policy_;
  CartPole cartpole_;
  Observation observation_{};
  uint64_t steps_ = 0;
  uint64_t tag_steps_ = 0;
  std::optional<OpenEpisode> resumed_;
  std::vector<int64_t> returns_;  ///< Of the newest episodes, for the display.
  double loss_ = 0;
  double trial_score_ = 0;
};

}  // namespace geardb::quickstart
