// How long a call of an append may take at 70 % of the rate that a store sustains, while the
// cleaner moves pages and RocksDB compacts.
#include <algorithm>
#include <chrono>

#include "base/mutex.h"
#include "tools/bench/spread.h"
#include "tools/bench/whole_store.h"

namespace geardb::bench {
namespace {

constexpr int64_t kSteps = 64;
constexpr double kShareOfRate = 0.7;

/// Times of calls in microseconds: each by itself, and from the moment that its turn had come.
struct Calls {
  std::vector<double> own;
  std::vector<double> from_turn;
};

/// Waits for turns that follow one another at a rate.
class Pace {
 public:
  explicit Pace(double seconds_a_turn) : seconds_(seconds_a_turn) {}

  /// Microseconds since this turn has come; negative never.
  double Await() {
    using std::chrono::duration;
    const auto offset = duration<double>(seconds_ * static_cast<double>(turn_++));
    const auto at =
        began_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(offset);
    MutexLock lock(&mutex_);
    while (std::chrono::steady_clock::now() < at) changed_.WaitUntil(&mutex_, Deadline(at));
    return duration<double>(std::chrono::steady_clock::now() - at).count() * 1e6;
  }

 private:
  const double seconds_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  uint64_t turn_ = 0;
  Mutex mutex_;
  CondVar changed_;
};

class AppendStallScene final : public Scene {
 public:
  static Result<std::unique_ptr<Scene>> Make(Bench* bench) {
    const Settings& settings = bench->settings;
    const uint64_t log = Scaled(settings, kGiB / 2);
    GEARDB_RETURN_IF_ERROR(CheckDiskRoom(settings, 20 * log));
    std::unique_ptr<AppendStallScene> scene(new AppendStallScene(settings));
    scene->unit_ = log;
    GEARDB_ASSIGN_OR_RETURN(scene->cleaned_, scene->MakeOne(log));
    GEARDB_ASSIGN_OR_RETURN(scene->alone_, scene->MakeOne(64 * kGiB));
    return std::unique_ptr<Scene>(std::move(scene));
  }

  Result<Figure> Measure() override {
    const Stopwatch watch;
    GEARDB_RETURN_IF_ERROR(episodes_.AppendBytes(cleaned_.get(), 2 * unit_));
    const double sustained = static_cast<double>(2 * unit_) / watch.seconds();
    const double seconds_a_call = static_cast<double>(episodes_.bytes()) / sustained / kShareOfRate;
    const DatabaseStats before = cleaned_->db->Stats();
    DatabaseStats after = before;
    Calls calls;
    const Stopwatch paced;
    Pace pace(seconds_a_call);
    // Until both have run, but not for ever.
    for (uint64_t part = 0; part < 8; ++part) {
      GEARDB_RETURN_IF_ERROR(Append(cleaned_.get(), unit_ / 2, &pace, &calls));
      after = cleaned_->db->Stats();
      if (part >= 3 && after.cleaner.passes >= before.cleaner.passes + 3 &&
          after.cold.compactions > before.cold.compactions) {
        break;
      }
    }
    const double seconds = paced.seconds();
    GEARDB_RETURN_IF_ERROR(after.cleaner.last);
    Calls alone;
    Pace pace_alone(seconds_a_call);
    GEARDB_RETURN_IF_ERROR(Append(alone_.get(), unit_, &pace_alone, &alone));
    const auto count = [](uint64_t to, uint64_t from) { return static_cast<double>(to - from); };
    passes_ = after.cleaner.passes - before.cleaner.passes;
    compactions_ = after.cold.compactions - before.cold.compactions;
    return Figure{
        Quantile(calls.own, 0.999),
        0,
        {{"p50_us", Quantile(calls.own, 0.5)},
         {"p99_us", Quantile(calls.own, 0.99)},
         {"max_us", Quantile(calls.own, 1)},
         {"from_turn_p99_us", Quantile(calls.from_turn, 0.99)},
         {"from_turn_p99.9_us", Quantile(calls.from_turn, 0.999)},
         {"from_turn_max_us", Quantile(calls.from_turn, 1)},
         {"alone_p50_us", Quantile(alone.own, 0.5)},
         {"alone_p99_us", Quantile(alone.own, 0.99)},
         {"alone_p99.9_us", Quantile(alone.own, 0.999)},
         {"alone_max_us", Quantile(alone.own, 1)},
         {"sustained_bytes_per_second", sustained},
         {"bytes_per_second", static_cast<double>(calls.own.size() * episodes_.bytes()) / seconds},
         {"calls", static_cast<double>(calls.own.size())},
         {"passes", static_cast<double>(passes_)},
         {"compactions", static_cast<double>(compactions_)},
         {"compaction_bytes", count(after.cold.compaction_bytes, before.cold.compaction_bytes)},
         {"waited_for_log_us", count(after.waits.log_room.us, before.waits.log_room.us)},
         {"waited_for_frames_us", count(after.waits.frames.us, before.waits.frames.us)}}};
  }

  std::string note() const override {
    if (passes_ > 0 && compactions_ > 0) return {};
    return "the last repetition saw " + std::to_string(passes_) + " passes of the cleaner and " +
           std::to_string(compactions_) + " compactions";
  }

 private:
  explicit AppendStallScene(const Settings& settings) : settings_(settings) {}

  /// A full table from which trajectories leave at random, so that RocksDB has what to compact.
  Result<std::shared_ptr<Store>> MakeOne(uint64_t log_bytes) {
    TableSpec spec = PlainTable(kStepBytes, kSteps);
    spec.steps_per_page = static_cast<uint32_t>(kSteps);
    spec.bytes_max = 2 * unit_;
    spec.remover = Remover::kUniform;
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    DatabaseOptions options =
        WholeOptions({.log_bytes = unit_, .frames_bytes = unit_, .index_bytes = unit_ / 4});
    options.log_bytes_max = std::max(log_bytes, options.log_bytes_max);
    GEARDB_ASSIGN_OR_RETURN(auto store, MakeStore(settings_, options, spec));
    GEARDB_RETURN_IF_ERROR(episodes_.AppendBytes(store.get(), 4 * unit_));
    GEARDB_RETURN_IF_ERROR(store->db->Sync());
    return store;
  }

  Status Append(Store* store, uint64_t bytes, Pace* pace, Calls* calls) {
    for (uint64_t done = 0; done < bytes; done += episodes_.bytes()) {
      const double late = pace->Await();
      const Stopwatch watch;
      GEARDB_RETURN_IF_ERROR(episodes_.Append(store));
      calls->own.push_back(watch.us());
      calls->from_turn.push_back(late + calls->own.back());
    }
    return Status::Ok();
  }

  const Settings settings_;
  uint64_t unit_ = 0;
  uint64_t passes_ = 0;
  uint64_t compactions_ = 0;
  std::shared_ptr<Store> cleaned_;
  std::shared_ptr<Store> alone_;
  Episodes episodes_{kSteps, kStepBytes, Content::kHalf};
};

}  // namespace

std::vector<Row> AppendStallRows(const Settings& settings) {
  const uint64_t unit = Scaled(settings, kGiB / 2);
  return {{.name = "append.stall",
           .size = static_cast<int64_t>(kPageBytes),
           .size_of = "bytes a call",
           .what = "p99.9 of a call at log ack that appends a trajectory of 64 KiB, at 70 % of the "
                   "rate that was sustained just before, to a full table of " +
                   SizeText(2 * unit) + " from which trajectories leave at random, with a log of " +
                   SizeText(unit) + "; alone: with a log that takes all",
           .unit = Unit::kMicroseconds,
           .target = {Target::Kind::kValueAtMost, 10'000},
           .repetitions = 3,
           .make = [](Bench* bench) { return AppendStallScene::Make(bench); }}};
}

}  // namespace geardb::bench
