// The log on the operating system's files with its background thread and many writers.
// concurrent: wal/writer_background.cc wal/writer_core.h wal/log_writer.cc wal/drain.h
// concurrent: wal/segment_file.h base/crash_point.h
#include <atomic>
#include <thread>
#include <vector>

#include "base/crash_point.h"
#include "base/mutex.h"
#include "tests/testing/temp_dir.h"
#include "tests/wal/log_fixture.h"
#include "wal/drain.h"  // This and the next two: what the threads of a LogWriter share.
#include "wal/segment_file.h"
#include "wal/writer_core.h"

namespace geardb::wal {
namespace {

class WriterBackgroundConcurrentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.log = SmallLog();
    options_.log.segment_bytes = uint64_t{1} << 20;
    options_.log.ring_bytes = uint64_t{512} << 10;
    options_.log.log_bytes_max = uint64_t{256} << 20;
    options_.log.background = true;
    ASSERT_OK(CreateLog(Env::Posix(), db(), options_.log));
    Open();
  }
  void TearDown() override { SetCrashHook(nullptr); }

  std::string db() const { return dir_.File("db"); }
  void Open() {
    auto seen = OpenAndSee(Env::Posix(), db(), options_);
    ASSERT_OK(seen);
    seen_ = std::move(seen).value();
  }
  LogWriter* writer() { return seen_.log.writer.get(); }

  // What a writer of the engine does.
  Reservation Append(const TestRecord& record, PublishCallback* callback) {
    const RecordSize size = SizeOf(record);
    Reservation reservation;
    while (true) {
      {
        MutexLock lock(&commit_mutex_);
        if (writer()->HasRoom(size, Urgency::kAppend)) {
          reservation = ReserveRecord(writer(), record);
          break;
        }
      }
      const Status status = writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite());
      EXPECT_OK(status);
      if (!status.ok()) return {};
    }
    FillRecord(writer(), reservation, record);
    writer()->Publish(reservation, callback);
    return reservation;
  }

  testing::TempDir dir_;
  OpenOptions options_;
  SeenLog seen_;
  Mutex commit_mutex_;
};

class OrderCheck final : public PublishCallback {
 public:
  void OnPublished(Lsn lsn, Lsn end) override {
    EXPECT_GE(lsn, last_end_);  // Not guarded: one call at a time is what is tested.
    last_end_ = end;
    ++calls_;
  }
  uint64_t calls() const { return calls_; }

 private:
  Lsn last_end_ = 0;
  uint64_t calls_ = 0;
};

TEST_F(WriterBackgroundConcurrentTest, ManyWritersShareOneLog) {
  constexpr int kThreads = 4, kEach = 400;
  OrderCheck order;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &order] {
      testing::Random random(static_cast<uint64_t>(t));
      for (int i = 0; i < kEach; ++i) {
        const TestRecord record{.number = static_cast<uint64_t>(t * kEach + i),
                                .piece_bytes = {random.Below(random.OneIn(10) ? 60000 : 2000)}};
        const Reservation reservation = Append(record, &order);
        EXPECT_OK(writer()->WaitPublished(reservation.end, Deadline::Infinite()));
        if (i % 20 == 0) {
          EXPECT_OK(writer()->WaitSynced(reservation.end, Deadline::Infinite()));
          EXPECT_GE(writer()->synced(), reservation.end);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order.calls(), uint64_t{kThreads * kEach});
  EXPECT_OK(writer()->Close());
  seen_ = SeenLog();
  Open();
  ASSERT_EQ(seen_.records.size(), size_t{kThreads * kEach});
  std::vector<uint64_t> numbers;
  for (const SeenRecord& record : seen_.records) {
    EXPECT_TRUE(record.content_right && record.bad_pieces == 0);
    numbers.push_back(record.number);
  }
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i);
}

TEST_F(WriterBackgroundConcurrentTest, AnIdleLogIsDrainedSyncedAndSealed) {
  options_.log.idle_seal_ms = 20;
  seen_ = SeenLog();
  Open();
  const Reservation reservation = Append({.number = 1, .piece_bytes = {1000}}, nullptr);
  while (writer()->synced() < reservation.end + kSealRecordBytes) std::this_thread::yield();
  EXPECT_EQ(writer()->end(), reservation.end + kSealRecordBytes);
  // Asleep by now, or about to be: the next record wakes it.
  const Reservation next = Append({.number = 2, .piece_bytes = {1000}}, nullptr);
  while (writer()->synced() < next.end + kSealRecordBytes) std::this_thread::yield();
  EXPECT_EQ(writer()->Stats().seals, 2u);
}

TEST_F(WriterBackgroundConcurrentTest, ABusyLogIsSyncedWithinItsInterval) {
  for (const int64_t interval_ms : {0, 1}) {
    SCOPED_TRACE(interval_ms);
    options_.log.idle_seal_ms = int64_t{1} << 40;  // Only time makes it sync.
    options_.log.drain_interval_ms = 1;
    options_.log.sync_interval_ms = interval_ms;
    seen_ = SeenLog();
    Open();
    const Reservation first = Append({.number = 0, .piece_bytes = {100}}, nullptr);
    // Nobody pauses or waits for a sync. The bound is many times what the ring holds: the thread
    // that drains it works again and again while this appends, and looks at the clock each time.
    const Lsn bound = first.end + 128 * options_.log.ring_bytes;
    uint64_t number = 0;
    while (writer()->Stats().synced < first.end && writer()->end() < bound) {
      Append({.number = ++number, .piece_bytes = {100}}, nullptr);
    }
    EXPECT_GE(writer()->Stats().synced, first.end) << "after " << number << " appends";
  }
}

TEST_F(WriterBackgroundConcurrentTest, SealsAndAppendsDoNotCollide) {
  options_.log.idle_seal_ms = 0;
  options_.log.drain_interval_ms = 1;
  options_.log.sync_interval_ms = 0;
  seen_ = SeenLog();
  Open();
  for (uint64_t i = 0; i < 300; ++i) {
    const Reservation reservation = Append({.number = i, .piece_bytes = {i * 13}}, nullptr);
    if (i % 8 == 0) {
      EXPECT_OK(writer()->WaitSynced(reservation.end, Deadline::Infinite()));
    }
  }
  EXPECT_OK(writer()->Close());
  seen_ = SeenLog();
  Open();
  EXPECT_EQ(seen_.records.size(), 300u);
}

TEST_F(WriterBackgroundConcurrentTest, SyncsAreSharedByAllWhoWait) {
  constexpr int kThreads = 8, kEach = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kEach; ++i) {
        const Reservation reservation = Append({.number = 1, .piece_bytes = {100}}, nullptr);
        EXPECT_OK(writer()->WaitSynced(reservation.end, Deadline::Infinite()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const LogStats stats = writer()->Stats();
  EXPECT_GT(stats.fsyncs, 0u);
  EXPECT_LE(stats.fsyncs, uint64_t{kThreads * kEach});
  EXPECT_GE(stats.synced, stats.end - kSealRecordBytes);
}

TEST_F(WriterBackgroundConcurrentTest, CrashPointsMayBePassedByManyThreads) {
  static std::atomic<int> passed;
  passed = 0;
  SetCrashHook([](const char*) { passed.fetch_add(1); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 20; ++i) {
        const Reservation reservation = Append({.number = 1, .piece_bytes = {100}}, nullptr);
        EXPECT_OK(writer()->WaitSynced(reservation.end, Deadline::Infinite()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(passed.load(), 60);
  SetCrashHook(nullptr);
}

}  // namespace
}  // namespace geardb::wal
