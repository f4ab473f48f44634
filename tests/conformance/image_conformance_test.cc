// Random programs on a real store, of which images are taken on the way: a database that is loaded
// from one is in everything the database that the log before it makes, and stays so with the log
// behind it.
//
// GEARDB_CONFORMANCE_PROGRAMS and GEARDB_CONFORMANCE_SEED as in window_conformance_test.cc.
#include <gtest/gtest.h>

#include "engine/internal/table_image.h"
#include "tests/conformance/store_twin.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/image_core.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"
#include "wal/open_log.h"

namespace geardb::conformance {
namespace {

using testing::ImageChunks;
using testing::ImageCore;
using testing::KeptRecord;

struct TakenImage {
  Lsn lsn = 0;
  ImageChunks image;
};

/// Epochs, and limits that keep no append waiting, and no trajectory from staying.
void AddLimits(TableSpec* spec, RandomChoice* choice) {
  for (PriorityTableSpec& priority : spec->priority_tables) {
    priority.remove_when_exhausted = false;
    if (choice->Percent(25)) {
      priority.selector = SelectorKind::kEpoch;
      priority.epoch.passes = static_cast<uint32_t>(choice->Between(1, 3));
      continue;
    }
    if (choice->Percent(40)) {
      priority.max_times_sampled = static_cast<uint32_t>(choice->Between(1, 3));
    }
    if (choice->Percent(20)) {
      priority.limiter = {.kind = LimiterKind::kRatio, .min_size = 2, .error_buffer = 1e6};
    } else if (choice->Percent(20)) {
      priority.max_times_sampled = 0;
      const bool lifo = priority.selector == SelectorKind::kLifo;
      priority.limiter = {.kind = lifo ? LimiterKind::kStack : LimiterKind::kQueue,
                          .capacity = 1'000'000};
    }
  }
}

class ImageProgram {
 public:
  explicit ImageProgram(uint64_t seed) : choice_(seed), env_(seed) {
    RandomTable table = MakeRandomTable(&choice_);
    AddLimits(&table.spec, &choice_);
    description_ = DescribeTable(table);
    twin_ = std::make_unique<StoreTwin>(std::move(table), directory_.path(), &env_, &choice_);
  }

  void Run() {
    SCOPED_TRACE(description_);
    for (int64_t round = choice_.Between(3, 5); round > 0; --round) {
      for (int64_t i = choice_.Between(4, 20); i > 0; --i) ChangeOrDraw();
      GoOn(true);
      if (::testing::Test::HasFailure()) return;
      Take();
      if (choice_.Percent(25)) {
        GoOn(true);
        samplers_.clear();
        // The table is opened with the limits that it was made with.
        for (const DrawnTable& drawn : twin_->drawn()) {
          ASSERT_OK(twin_->priority_table(drawn)->Configure(
              {drawn.spec.limiter, drawn.spec.max_times_sampled, false}));
        }
        twin_->Reopen();
      }
    }
    for (int64_t i = choice_.Between(4, 20); i > 0; --i) ChangeOrDraw();
    GoOn(true);
    samplers_.clear();
    EXPECT_EQ(finished_, images_.size());
    ASSERT_OK(twin_->database()->Close());
    ReadLog();
    for (const TakenImage& taken : images_) {
      SCOPED_TRACE("image as of LSN " + std::to_string(taken.lsn));
      Check(taken);
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  void ChangeOrDraw() {
    if (::testing::Test::HasFailure()) return;
    GoOn(false);
    const uint64_t what = choice_.Below(10);
    if (what < 6) return twin_->Change();
    if (what == 6) return Configure();
    if (what == 8 && choice_.Percent(60)) return BeginEpoch();
    if (what == 7 && choice_.Percent(30)) {
      const std::string name = "tag " + std::to_string(choice_.Below(3));
      ASSERT_OK(twin_->database()->WriteTag(name, std::as_bytes(std::span(name))));
      return;
    }
    Draw();
  }

  /// Also by samplers that live on, so that some draws are reserved when an image is taken.
  void Draw() {
    const DrawnTable& drawn = choice_.Of(twin_->drawn());
    SamplerOptions options;
    options.batch = choice_.Between(1, 4);
    options.prefetch = choice_.Percent(40) ? 2 : 0;
    options.drop_last = choice_.Percent(30);
    options.views = {View{.column = "reward", .name = {}, .rows = {}}};
    if (choice_.Percent(10)) options.restart_draw = choice_.Below(100);
    auto sampler = twin_->priority_table(drawn)->NewSampler(options);
    ASSERT_OK(sampler);
    for (int64_t i = choice_.Between(1, 3); i > 0; --i) {
      const auto batch = (*sampler)->Next(Deadline::Now());
      if (!batch.ok()) break;  // There are too few items.
    }
    if (choice_.Percent(30)) samplers_.push_back(std::move(*sampler));
  }

  void BeginEpoch() {
    const DrawnTable& drawn = choice_.Of(twin_->drawn());
    if (drawn.spec.selector != SelectorKind::kEpoch) return Draw();
    ASSERT_OK(twin_->priority_table(drawn)->BeginEpoch());
  }

  void Configure() {
    const DrawnTable& drawn = choice_.Of(twin_->drawn());
    if (drawn.spec.selector == SelectorKind::kEpoch) return;
    PriorityLimits limits{.max_times_sampled = static_cast<uint32_t>(choice_.Below(4)),
                          .remove_when_exhausted = false};
    if (choice_.Percent(20)) {
      limits.max_times_sampled = 0;
      const bool lifo = drawn.spec.selector == SelectorKind::kLifo;
      limits.limiter = {.kind = lifo ? LimiterKind::kStack : LimiterKind::kQueue,
                        .capacity = 1'000'000};
    }
    ASSERT_OK(twin_->priority_table(drawn)->Configure(limits));
  }

  /// Of the living database, with what its samplers hold reserved.
  void Take() {
    const auto core = testing::CoreOf(*twin_->database());
    MutexLock lock(&core->commit);
    ASSERT_OK(core->CatchUp());
    TakenImage taken{.lsn = core->log->end(), .image = {}};
    ASSERT_OK(engine::SaveDatabase(core.get(), taken.lsn, taken.image.sink()));
    ImageChunks again;
    ASSERT_OK(engine::SaveDatabase(core.get(), taken.lsn, again.sink()));
    EXPECT_EQ(again.chunks, taken.image.chunks);
    slow_ = std::make_unique<engine::DatabaseImage>(core.get(), taken.lsn);
    slow_core_ = core;
    slow_chunks_.chunks.clear();
    images_.push_back(std::move(taken));
  }

  /// Some chunks, or all that are left, of the image that is taken while the store changes: it is
  /// that of the moment at which it was begun.
  void GoOn(bool to_the_end) {
    if (slow_ == nullptr) return;
    const uint64_t most = to_the_end ? UINT64_MAX : choice_.Below(3);
    for (uint64_t i = 0; i < most && !slow_->done(); ++i) {
      ASSERT_OK(slow_->GiveNext(slow_chunks_.sink()));
    }
    if (!slow_->done()) return;
    EXPECT_EQ(slow_chunks_.chunks, images_.back().image.chunks);
    slow_.reset();
    slow_core_.reset();
    ++finished_;
  }

  void ReadLog() {
    ASSERT_OK(wal::OpenLog(&env_, directory_.path(), {.log = {}, .read_only = true},
                           [&](const wal::RecordView& record) {
                             log_.emplace_back(record);
                             return Status::Ok();
                           }));
  }

  void Check(const TakenImage& taken) {
    ImageCore replayed;
    size_t next = 0;
    for (; next < log_.size() && log_[next].record.lsn < taken.lsn; ++next) {
      ASSERT_OK(replayed.Replay(log_[next]));
    }
    ImageCore loaded;
    ASSERT_OK(loaded.Load(taken.image, taken.lsn));
    ASSERT_EQ(loaded.Dump(), replayed.Dump());
    ImageChunks again;
    ASSERT_OK(loaded.Save(taken.lsn, &again));
    EXPECT_EQ(again.chunks, taken.image.chunks);
    // And of what a log has made.
    ImageChunks of_log;
    ASSERT_OK(replayed.Save(taken.lsn, &of_log));
    ImageCore second;
    ASSERT_OK(second.Load(of_log, taken.lsn));
    ASSERT_EQ(second.Dump(), replayed.Dump());

    loaded.TakeFrames(&replayed);
    for (; next < log_.size() && !::testing::Test::HasFailure(); ++next) {
      ASSERT_OK(replayed.Replay(log_[next]));
      ASSERT_OK(loaded.Replay(log_[next]));
      if (choice_.Percent(10)) {
        ASSERT_EQ(loaded.Dump(), replayed.Dump());
      }
    }
    ASSERT_OK(replayed.Finish());
    ASSERT_OK(loaded.Finish());
    EXPECT_EQ(testing::DumpIndex(loaded.core()), testing::DumpIndex(replayed.core()));
    for (const auto& table : loaded.core().AllTables()) {
      const auto other = replayed.core().TableById(table->layout().id());
      EXPECT_EQ(engine::NumbersOf(*table->plan), engine::NumbersOf(*other->plan));
    }
  }

  RandomChoice choice_;
  testing::FaultEnv env_;
  const testing::TempDir directory_;
  std::string description_;
  std::unique_ptr<StoreTwin> twin_;
  std::vector<std::unique_ptr<Sampler>> samplers_;
  std::vector<TakenImage> images_;
  std::shared_ptr<engine::DatabaseCore> slow_core_;  // Outlives the image.
  std::unique_ptr<engine::DatabaseImage> slow_;
  ImageChunks slow_chunks_;
  uint64_t finished_ = 0;
  std::vector<KeptRecord> log_;
};

TEST(ImageConformanceTest, ALoadedImageIsWhatTheLogBeforeItMakes) {
  const uint64_t first = testing::FromEnvironment("GEARDB_CONFORMANCE_SEED", 1);
  const uint64_t programs =
      testing::FromEnvironment("GEARDB_CONFORMANCE_PROGRAMS", testing::ShareOf(200));
  for (uint64_t seed = first; seed < first + programs && !HasFailure(); ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    ImageProgram(seed).Run();
  }
}

}  // namespace
}  // namespace geardb::conformance
