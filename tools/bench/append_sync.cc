// Small trajectories at `sync` ack by many writers: how well one fdatasync serves all who wait.
#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>

#include "tools/bench/ceilings.h"
#include "tools/bench/slow_sync_env.h"
#include "tools/bench/spread.h"
#include "tools/bench/store.h"

namespace geardb::bench {
namespace {

constexpr int64_t kSteps = 10;
constexpr uint64_t kPayload = 100;

/// What each fdatasync of a slow disk takes more than the machine's, one after the other.
constexpr std::chrono::milliseconds kSlower{1};

/// Who appends, and to which disk.
struct SyncKind {
  int writers = 16;
  bool slow = false;
};

/// What a round of all writers took.
struct Round {
  double appends_per_second = 0;
  std::vector<double> us;  ///< Of each append.
};

class SyncScene : public Scene {
 public:
  SyncScene(const Settings& settings, const SyncKind& kind)
      : settings_(settings),
        writers_(kind.writers),
        appends_(settings.tiny ? 3 : 100),
        slow_env_(kind.slow ? std::make_unique<SlowSyncEnv>(kSlower) : nullptr),
        env_(kind.slow ? slow_env_.get() : Env::Posix()) {}

  Status Open() {
    DatabaseOptions options = RoomyOptions(uint64_t{256} << 20, uint64_t{128} << 20);
    options.env = env_;
    TableSpec spec = PlainTable(kPayload, kSteps);
    spec.priority_tables = {WindowsOf(1, SelectorKind::kPrioritized)};
    GEARDB_ASSIGN_OR_RETURN(store_, MakeStore(settings_, options, spec));
    return Status::Ok();
  }

 protected:
  Result<Round> Append() {
    const std::vector<std::byte> rows(kSteps * kPayload, std::byte{1});
    const TensorView view = RowsOver(store_->table->spec(), rows.data(), kSteps);
    std::vector<std::vector<double>> times(static_cast<size_t>(writers_));
    std::vector<Status> failures(times.size());
    std::vector<std::unique_ptr<Writer>> writers;
    for (int i = 0; i < writers_; ++i) {
      GEARDB_ASSIGN_OR_RETURN(auto writer, store_->table->NewWriter({.ack = Ack::kSync}));
      writers.push_back(std::move(writer));
    }
    const Stopwatch watch;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < times.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < appends_ && failures[i].ok(); ++n) {
          const Stopwatch one;
          failures[i] =
              writers[i]->AppendTrajectory({{"obs", view}}, {.end = End::kTerminated}).status();
          times[i].push_back(one.us());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    Round round{static_cast<double>(writers_ * appends_) / watch.seconds(), {}};
    for (size_t i = 0; i < times.size(); ++i) {
      GEARDB_RETURN_IF_ERROR(failures[i]);
      round.us.insert(round.us.end(), times[i].begin(), times[i].end());
    }
    return round;
  }

  /// Before and after, since disks change their minds.
  Result<double> BareUs() {
    const int count = settings_.tiny ? 8 : slow_env_ == nullptr ? 200 : 20;
    GEARDB_ASSIGN_OR_RETURN(const SyncTimes times, MeasureSyncs(settings_.directory, count, env_));
    return times.fdatasync_us;
  }

  const Settings settings_;
  const int writers_;
  const int appends_;
  const std::unique_ptr<SlowSyncEnv> slow_env_;
  Env* const env_;
  std::shared_ptr<Store> store_;
};

class SyncRateScene final : public SyncScene {
 public:
  using SyncScene::SyncScene;
  Result<Figure> Measure() override {
    GEARDB_ASSIGN_OR_RETURN(const double before, BareUs());
    const uint64_t syncs_before = store_->db->Stats().fdatasyncs;
    GEARDB_ASSIGN_OR_RETURN(Round round, Append());
    const DatabaseStats stats = store_->db->Stats();
    GEARDB_ASSIGN_OR_RETURN(const double after, BareUs());
    const double sync_us = (before + after) / 2;
    return Figure{
        round.appends_per_second,
        writers_ / (sync_us * 1e-6),
        {{"fdatasync_us", sync_us},
         {"own_fdatasync_us", static_cast<double>(stats.fdatasync_p50_us)},
         {"appends_per_fdatasync", static_cast<double>(round.us.size()) /
                                       static_cast<double>(stats.fdatasyncs - syncs_before)},
         {"p50_us", Quantile(round.us, 0.5)},
         {"p99_us", Quantile(round.us, 0.99)}}};
  }
};

class SyncTailScene final : public SyncScene {
 public:
  using SyncScene::SyncScene;
  Result<Figure> Measure() override {
    GEARDB_ASSIGN_OR_RETURN(const double before, BareUs());
    GEARDB_ASSIGN_OR_RETURN(Round round, Append());
    GEARDB_ASSIGN_OR_RETURN(const double after, BareUs());
    return Figure{
        Quantile(round.us, 0.99), (before + after) / 2, {{"p50_us", Quantile(round.us, 0.5)}}};
  }
};

template <typename SceneType>
Row SyncRow(const char* name, const SyncKind& kind, Target target) {
  const bool rate = std::is_same_v<SceneType, SyncRateScene>;
  return {.name = name,
          .size = kind.writers,
          .size_of = "writers",
          .what = std::string(rate ? "appends per second" : "p99 of an append") +
                  ", trajectories of 10 steps of 100 B at sync ack, a thread for each writer" +
                  (kind.slow ? "; a disk whose fdatasyncs, one after the other, take " +
                                   std::to_string(kSlower.count()) + " ms more than the machine's"
                             : ""),
          .ceiling = std::string(rate ? "writers / " : "") +
                     "median of a bare direct write of 4 KiB's fdatasync",
          .unit = rate ? Unit::kPerSecond : Unit::kMicroseconds,
          .target = target,
          .make = [kind](Bench* bench) -> Result<std::unique_ptr<Scene>> {
            auto scene = std::make_unique<SceneType>(bench->settings, kind);
            GEARDB_RETURN_IF_ERROR(scene->Open());
            return std::unique_ptr<Scene>(std::move(scene));
          }};
}

}  // namespace

std::vector<Row> AppendSyncRows(const Settings&) {
  const Target rate{Target::Kind::kRatioAtLeast, 0.35};
  const Target tail{Target::Kind::kRatioAtMost, 4};
  const SyncKind slow{.slow = true};
  return {SyncRow<SyncRateScene>("append.sync", {.writers = 1}, {}),
          SyncRow<SyncRateScene>("append.sync", {}, rate),
          SyncRow<SyncTailScene>("append.sync.p99", {}, tail),
          SyncRow<SyncRateScene>("append.sync.slow", slow, rate),
          SyncRow<SyncTailScene>("append.sync.slow.p99", slow, tail)};
}

}  // namespace geardb::bench
