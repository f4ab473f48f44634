// concurrent: wal/writer_thread.h
#include "wal/writer_thread.h"

#include "tests/testing/temp_dir.h"
#include "tests/testing/thread_limit.h"
#include "tests/wal/log_fixture.h"

namespace geardb::wal {
namespace {

TEST(WriterThreadConcurrentTest, DoesItsWorkBeforeItEnds) {
  for (int round = 0; round < 100; ++round) {
    bool done = false;
    ASSERT_OK_AND_ASSIGN(auto thread, WriterThread::Start("log"));
    thread->Do([&] { done = true; });
    thread.reset();
    EXPECT_TRUE(done);
  }
}

TEST(WriterThreadConcurrentTest, EndsWithoutWork) { ASSERT_OK(WriterThread::Start("log")); }

class WriterThreadTest : public LogFixture {
 protected:
  void RunLimited(const std::function<void()>& function) {
    if (testing::RunAsOnlyProcess(dir_.path(), function)) return;
    GTEST_SKIP() << "a process of a user of its own cannot be had";
  }
  static void ExpectRefused(const Status& status) {
    EXPECT_STATUS(kResourceExhausted, status,
                  "starting the thread that drains and syncs db/log: "
                  "Resource temporarily unavailable");
  }

  testing::TempDir dir_;
};

TEST_F(WriterThreadTest, WithoutOneNoLogIsCreated) {
  RunLimited([this] {
    options_.log.background = true;
    {
      const testing::ThreadLimit limit(1);
      ExpectRefused(CreateLog(env_.get(), "db", options_.log).status());
    }
    ASSERT_OK_AND_ASSIGN(const bool exists, env_->Exists("db"));
    EXPECT_FALSE(exists);
    CreateAndOpen();
  });
}

TEST_F(WriterThreadTest, WithoutOneAnOpenIsRefusedBeforeItReadsOrWrites) {
  CreateAndOpen();
  Append(1, 1000);
  env_->Die();
  seen_ = SeenLog();
  env_->Crash(testing::CrashKind::kProcess);
  RunLimited([this] {
    options_.log.background = true;
    {
      const testing::ThreadLimit limit(1);
      std::vector<SeenRecord> visited;
      ExpectRefused(OpenAndSee(env_.get(), "db", options_, &visited).status());
      EXPECT_TRUE(visited.empty());
      options_.read_only = true;
      Open();  // Nobody reads ahead, and there is nothing to drain.
      EXPECT_EQ(Numbers(), std::vector<uint64_t>{1});
      seen_ = SeenLog();
      options_.read_only = false;
    }
    const testing::ThreadLimit limit(2);  // Of the drain and of reading ahead, the drain has it.
    Open();
    EXPECT_EQ(Numbers(), std::vector<uint64_t>{1});
    EXPECT_EQ(report().epoch, (Epoch{0, 2}));
    EXPECT_NE(report().cut_lsn, kNoLsn);
    EXPECT_OK(writer()->WaitSynced(Append(2, 1000).end, Deadline::Infinite()));
    EXPECT_OK(writer()->Close());
  });
}

}  // namespace
}  // namespace geardb::wal
