// Random histories of the real log on the fault file system, compared with an oracle of what was
// published and what was synced: appends filled in any order, drains, syncs, seals, recycling,
// failed syncs, death of the process and power loss at any operation, also in the middle of an
// open. After every open all that was acknowledged at the crash's level is there, byte for byte, in
// order, and nothing else; a second open finds the same.
#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

#include "base/crash_point.h"
#include "tests/testing/random_programs.h"
#include "tests/wal/log_fixture.h"

namespace geardb::wal {
namespace {

using testing::CrashKind;
using testing::FaultEnv;
using testing::FromEnvironment;
using testing::Random;

// An open has passed the point at which its cut is durable. Set by the crash hook.
bool cut_is_synced = false;

struct Appended {
  TestRecord record;
  Reservation reservation;
};

class History {
 public:
  explicit History(uint64_t seed) : seed_(seed), random_(seed), env_(seed ^ 0x5eed) {
    options_.log = SmallLog();
    if (random_.OneIn(3)) options_.log.ring_bytes = uint64_t{64} << 10;
    if (random_.OneIn(4)) options_.log.ring_bytes = uint64_t{128} << 10;
    options_.log.log_bytes_max = uint64_t{512} << 10;
    env_.set_direct(!random_.OneIn(4));
    env_.set_direct_writes(!random_.OneIn(4));
    options_.log.shared_map = !random_.OneIn(5);
    mean_bytes_ = 1 + random_.Below(12000);
    crash_every_ = 8 + random_.Below(80);
    crash_open_every_ = 2 + random_.Below(6);
    if (random_.OneIn(2)) fail_every_ = 8 + random_.Below(80);
  }

  void Run(int steps) {
    ASSERT_OK(CreateLog(&env_, "db", options_.log));
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE("seed " + std::to_string(seed_) + " step " + std::to_string(i));
      if (writer() == nullptr) {
        OpenOnce();
        if (writer() != nullptr && random_.OneIn(4)) Crash();  // Open twice.
      } else {
        touched_ = true;
        Step();
      }
    }
    seen_ = SeenLog();
  }

  uint64_t opens() const { return opens_; }
  uint64_t ring_records() const { return ring_records_; }
  uint64_t deaths() const { return deaths_; }
  uint64_t power_losses() const { return power_losses_; }
  uint64_t crashed_opens() const { return crashed_opens_; }
  uint64_t cut_records() const { return cut_records_; }
  uint64_t recycled() const { return recycled_; }
  uint64_t failed_syncs() const { return failed_syncs_; }
  uint64_t failed_opens() const { return failed_opens_; }

 private:
  LogWriter* writer() { return seen_.log.writer.get(); }

  void Step() {
    // What is published later is not acknowledged.
    if (writer()->failure().ok()) published_before_ = writer()->published();
    if (FailsNow(fail_every_)) env_.FailSyncAfter(1 + random_.Below(4));
    switch (random_.Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        Reserve();
        break;
      case 4:
      case 5:
      case 6:
        FillOne();
        break;
      case 7:
        Drain();
        break;
      case 8:
        (void)writer()->SyncOnce().ok();
        break;
      case 9:
        env_.WriteBackSome();
        break;
      case 10:
        if (flying_.empty() && random_.OneIn(2)) (void)writer()->SealOnce().ok();
        break;
      case 11:
        Recycle();
        break;
    }
    if (random_.OneIn(crash_every_)) env_.SetCrashAfter(1 + random_.Below(6));
    const bool failed = !env_.crashed() && !writer()->failure().ok();
    if (env_.crashed() || random_.OneIn(failed ? 4 : crash_every_)) {
      failed_syncs_ += failed ? 1 : 0;
      Crash();
    }
  }

  // Only histories with failures draw for them.
  bool FailsNow(uint64_t every) { return fail_every_ > 0 && random_.OneIn(every); }

  // Whole blocks only: then the drain often stops inside a record.
  void Drain() {
    (void)(random_.OneIn(2) ? writer()->DrainOnce() : writer()->DrainBlocksOnce()).ok();
  }

  void Reserve() {
    if (flying_.size() >= 4) return;
    TestRecord record{.number = ++last_number_, .piece_bytes = {}};
    const uint64_t pieces = random_.Below(3);
    for (uint64_t i = 0; i < pieces; ++i) {
      record.piece_bytes.push_back(random_.Below(2 * mean_bytes_ / pieces));
    }
    const RecordSize size = SizeOf(record);
    if (size.total() > writer()->record_bytes_max()) return;
    if (!writer()->HasRoom(size, Urgency::kAppend)) {
      if (random_.OneIn(2)) Drain();
      if (random_.OneIn(2)) (void)writer()->PrepareSpares().ok();
      return;
    }
    appended_.push_back({record, ReserveRecord(writer(), record)});
    flying_.push_back(appended_.size() - 1);
  }

  void FillOne() {
    if (flying_.empty()) return;
    const auto it = flying_.begin() + static_cast<ptrdiff_t>(random_.Below(flying_.size()));
    const Appended& record = appended_[*it];
    FillRecord(writer(), record.reservation, record.record);
    writer()->Publish(record.reservation, nullptr);
    flying_.erase(it);
  }

  // As the cleaner does: what is released is in a flush that is durable, so later opens begin
  // there.
  void Recycle() {
    std::vector<Lsn> ends;
    for (const Appended& a : appended_) {
      if (a.reservation.end <= writer()->synced()) ends.push_back(a.reservation.end);
    }
    if (ends.empty() || random_.OneIn(2)) return;
    const Lsn released = ends[random_.Below(ends.size())];
    if (released <= from_ || env_.crashed()) return;
    from_ = released;
    const uint64_t live = writer()->Stats().segments_live;
    writer()->ReleaseBelow(from_, "the test");
    recycled_ += live - writer()->Stats().segments_live;
  }

  void Crash() {
    const CrashKind kind = random_.OneIn(2) ? CrashKind::kProcess : CrashKind::kPowerLoss;
    if (writer() != nullptr) {
      // A published record is acknowledged unless the log has failed: an unmapped ring refused it,
      // or a sync failed.
      published_floor_ = writer()->failure().ok() ? writer()->published() : published_before_;
      synced_floor_ = std::max(synced_floor_, writer()->synced());
      if (touched_) stable_end_ = kNoLsn;
    } else {
      ++crashed_opens_;
      // An open that crashed after its cut was synced has fixed what the next one finds; only the
      // first power loss may still take what was never synced.
      if (kind == CrashKind::kPowerLoss && !power_lost_) cut_count_.reset();
    }
    power_lost_ = kind == CrashKind::kPowerLoss || (power_lost_ && writer() == nullptr);
    // A ring that is written and not mapped promises `log` acks for the death of the process only,
    // like the map.
    (kind == CrashKind::kProcess ? deaths_ : power_losses_) += 1;
    if (kind == CrashKind::kPowerLoss) published_floor_ = std::min(published_floor_, synced_floor_);
    env_.Die();
    seen_ = SeenLog();
    env_.Crash(kind);
    env_.ClearFailures();
    flying_.clear();
  }

  void OpenOnce() {
    options_.from = from_;
    const bool crash = random_.OneIn(crash_open_every_);
    if (crash) env_.SetCrashAfter(1 + random_.Below(20));
    if (FailsNow(crash_open_every_)) env_.FailSyncAfter(1 + random_.Below(6));
    std::vector<SeenRecord> visited;
    cut_is_synced = false;
    SetCrashHook([](const char* name) {
      if (std::strcmp(name, "recovery_drain") == 0) cut_is_synced = true;
    });
    auto seen = OpenAndSee(&env_, "db", options_, &visited);
    SetCrashHook(nullptr);
    const bool failed = fail_every_ > 0 && seen.status().code() == StatusCode::kIoError;
    if (env_.crashed() || failed) {
      failed_opens_ += env_.crashed() ? 0u : 1u;
      if (cut_count_.has_value() && cut_is_synced) {
        ASSERT_EQ(visited.size(), *cut_count_);
      }
      if (cut_is_synced) cut_count_ = visited.size();
      Crash();
      return;
    }
    ASSERT_OK(seen);
    seen_ = std::move(seen).value();
    env_.SetCrashAfter(UINT64_MAX / 2);
    ++opens_;
    Compare();
  }

  void Compare() {
    const Lsn end = seen_.log.report.read.end_lsn;
    ring_records_ += seen_.log.report.read.ring_records;
    ASSERT_GE(end, published_floor_) << "acknowledged bytes are lost";
    if (stable_end_ != kNoLsn) {
      ASSERT_EQ(end, stable_end_) << "two opens differ";
    }
    if (cut_count_.has_value()) {
      ASSERT_EQ(seen_.records.size(), *cut_count_) << "an open found more or less than one before "
                                                      "it, which had synced its cut";
    }
    cut_count_.reset();
    power_lost_ = false;
    size_t at = 0;
    while (at < appended_.size() && appended_[at].reservation.end <= from_) ++at;
    for (const SeenRecord& seen : seen_.records) {
      ASSERT_LT(at, appended_.size()) << "a record that was never written, at " << seen.lsn;
      const Appended& wrote = appended_[at++];
      ASSERT_EQ(seen.lsn, wrote.reservation.lsn);
      ASSERT_EQ(seen.number, wrote.record.number);
      ASSERT_EQ(seen.pieces, wrote.record.piece_bytes.size());
      ASSERT_EQ(seen.bad_pieces, 0u);
      ASSERT_TRUE(seen.content_right) << "record " << seen.number;
    }
    cut_records_ += appended_.size() - at;
    if (at < appended_.size()) {
      ASSERT_GE(appended_[at].reservation.end, end);
    }
    appended_.resize(at);
    // What an open served is durable from there on.
    published_floor_ = synced_floor_ = stable_end_ = end;
    touched_ = false;
  }

  const uint64_t seed_;
  Random random_;
  FaultEnv env_;
  OpenOptions options_;
  SeenLog seen_;
  uint64_t mean_bytes_ = 0, crash_every_ = 0, crash_open_every_ = 0;
  uint64_t fail_every_ = 0;  // 0: no sync fails.
  std::vector<Appended> appended_;
  std::deque<size_t> flying_;
  std::optional<size_t> cut_count_;  // Records seen by a crashed open that had synced its cut.
  bool power_lost_ = false;          // Since the last open that served.
  uint64_t last_number_ = 0;
  bool touched_ = false;  // Anything was done since the last open.
  Lsn published_before_ = 0;
  Lsn from_ = 0, published_floor_ = 0, synced_floor_ = 0, stable_end_ = kNoLsn;
  uint64_t opens_ = 0, ring_records_ = 0, deaths_ = 0, power_losses_ = 0, crashed_opens_ = 0;
  uint64_t cut_records_ = 0, recycled_ = 0, failed_syncs_ = 0, failed_opens_ = 0;
};

// Seeds from GEARDB_LOG_HISTORIES_FROM, as many as GEARDB_LOG_HISTORIES says.
TEST(LogHistoryTest, WhatWasAcknowledgedSurvivesEveryCrash) {
  const uint64_t first = FromEnvironment("GEARDB_LOG_HISTORIES_FROM", 1);
  const uint64_t count = FromEnvironment("GEARDB_LOG_HISTORIES", testing::ShareOf(300));
  uint64_t opens = 0, ring = 0, deaths = 0, power = 0, crashed_opens = 0, cut = 0, recycled = 0;
  uint64_t failed_syncs = 0, failed_opens = 0;
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
    History history(seed);
    history.Run(400);
    opens += history.opens();
    ring += history.ring_records();
    deaths += history.deaths();
    power += history.power_losses();
    crashed_opens += history.crashed_opens();
    cut += history.cut_records();
    recycled += history.recycled();
    failed_syncs += history.failed_syncs();
    failed_opens += history.failed_opens();
  }
  std::printf(
      "opens %llu, deaths %llu, power losses %llu, opens that crashed %llu, "
      "records from the ring %llu, cut %llu, segments recycled %llu, syncs that failed %llu, "
      "opens that failed %llu\n",
      static_cast<unsigned long long>(opens), static_cast<unsigned long long>(deaths),
      static_cast<unsigned long long>(power), static_cast<unsigned long long>(crashed_opens),
      static_cast<unsigned long long>(ring), static_cast<unsigned long long>(cut),
      static_cast<unsigned long long>(recycled), static_cast<unsigned long long>(failed_syncs),
      static_cast<unsigned long long>(failed_opens));
  // The histories reach what they are for.
  EXPECT_GT(ring, 0u);
  EXPECT_GT(crashed_opens, 0u);
  EXPECT_GT(cut, 0u);
  EXPECT_GT(recycled, 0u);
  EXPECT_GT(failed_syncs, 0u);
  EXPECT_GT(failed_opens, 0u);
}

}  // namespace
}  // namespace geardb::wal
