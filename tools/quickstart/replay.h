// Replay: the learner's experience in GearDB. All that the quickstart asks of the store is here.
//
// One table: a row is an observation, the action taken and its reward; the final row holds the last
// observation. One priority table over windows of one step, with room for n-step returns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/database.h"
#include "tools/quickstart/cartpole.h"
#include "tools/quickstart/dqn.h"
#include "tools/quickstart/oracle.h"

namespace geardb::quickstart {

inline constexpr std::string_view kTableName = "cartpole";
inline constexpr std::string_view kPriorityTableName = "per";
inline constexpr std::string_view kTagName = "learner";

struct ReplayOptions {
  std::string directory;
  uint64_t seed = 1;
  uint64_t steps = 60'000;  ///< Expected in all; only bounds the log.
  int64_t batch = 64;
  int64_t n_step = 3;
  double gamma = 0.99;
  double alpha = 0.6;   ///< Exponent of the priorities.
  bool create = false;  ///< The directory must not hold a database yet; else it must.
};

/// One step of an environment.
struct Experience {
  Observation observation;  ///< Before the action.
  int32_t action = 0;
  CartPole::Step outcome;
};

/// The trajectory that was open when its process died.
struct OpenEpisode {
  TrajectoryId id = 0;
  int64_t rows = 0;
  Observation observation;  ///< Of its last row.
  int32_t action = 0;
};

/// An open store with one writer and one sampler. Used by one thread.
class Replay {
 public:
  /// Reports of appends go to `reporter`, which must outlive the object.
  static Result<std::unique_ptr<Replay>> Open(const ReplayOptions& options,
                                              AppendReporter* reporter);

  /// Appends a step to the episode that is open (or opens one). Acknowledged at Ack::kLog.
  Status Append(const Experience& experience);

  /// Draws a batch. It stays valid until the next Draw.
  Result<Transitions> Draw(double beta);
  /// Sets the priorities of the batch drawn last, by its handles.
  Status SetPriorities(std::span<const float> errors);

  /// One atomic cut of everything above, with the learner's state.
  Status WriteTag(std::span<const std::byte> blob);
  Result<Tag> LastTag() const { return database_->LastTag(kTagName); }

  /// Looks for an episode that the last process left open, and goes on with it.
  Result<std::optional<OpenEpisode>> ResumeEpisode();
  /// Ends the open episode, whose last observation is then its end.
  Status CutEpisode();

  uint64_t steps() const { return table_->StepCount(); }
  Table& table() { return *table_; }
  Database& database() { return *database_; }
  PriorityTable& priorities() { return *priorities_; }
  /// Times of the calls into the store.
  const LatencyHistogram& append_times() const { return append_times_; }
  const LatencyHistogram& draw_times() const { return draw_times_; }
  const LatencyHistogram& update_times() const { return update_times_; }

  Status Close();

 private:
  Replay(const ReplayOptions& options, AppendReporter* reporter)
      : options_(options), reporter_(reporter) {}
  Status Attach();

  ReplayOptions options_;
  AppendReporter* reporter_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
  std::shared_ptr<PriorityTable> priorities_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Sampler> sampler_;
  std::optional<Batch> batch_;
  std::vector<float> new_priorities_;
  LatencyHistogram append_times_, draw_times_, update_times_;
};

/// The options that every process of the quickstart opens its store with.
DatabaseOptions StoreOptions(const ReplayOptions& options);

}  // namespace geardb::quickstart
