// A process that forks keeps its database; the child can use nothing of it, and harms nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "engine/priority_table.h"
#include "engine/sampler.h"
#include "tests/testing/sanitizers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class DatabaseForkTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.ack = Ack::kSync;
    Open();
    TableSpec spec = StepSpec();
    spec.priority_tables = {WindowSpec("per")};
    Create(spec, {.lanes = 2});
    AppendClosed(0, 100);
    open_ = Append(100, 10).id;
    auto sampler = priority("per")->NewSampler({.batch = 4, .prefetch = 2});
    ASSERT_OK(sampler);
    sampler_ = std::move(*sampler);
  }

  /// Runs in a child, which fails its test when it fails or hangs.
  template <typename Function>
  static pid_t Fork(const Function& function) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::alarm(60);
    function();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  static void Join(pid_t child) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  /// What a process does that leaves in the ordinary way.
  void DestroyAll() {
    batch_.reset();
    sampler_.reset();
    writer_.reset();
    table_.reset();
    database_.reset();
  }

  TrajectoryId open_ = 0;
  std::unique_ptr<Sampler> sampler_;
  std::optional<Batch> batch_;
};

TEST_F(DatabaseForkTest, AChildThatDestroysItsCopyChangesNothing) {
  ASSERT_OK_AND_ASSIGN(batch_, sampler_->Next());
  const pid_t child = Fork([this] { DestroyAll(); });
  // Meanwhile and afterwards the owner goes on.
  Append(110, 20);
  Join(child);
  Append(130, 20);
  Append(500, 30, End::kTerminated, 1);
  ASSERT_OK(sampler_->Next());
  ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{1}));
  DestroyAll();
  Open();
  EXPECT_TRUE(database_->recovery().clean);
  OpenAgain("steps");
  EXPECT_EQ(Numbers(open_), testing::Count(100, 50));
  EXPECT_EQ(table_->Count(), 2u);
}

TEST_F(DatabaseForkTest, InAChildCallsAreRefused) {
  ASSERT_OK_AND_ASSIGN(batch_, sampler_->Next());
  const std::vector<ItemHandle> handles(batch_->handles().begin(), batch_->handles().end());
  PriorityTable* const per = priority("per");
  Join(Fork([&] {
    const auto refused = [](const auto& result) {
      EXPECT_STATUS(kFailedPrecondition, result, "of which this one is a fork");
    };
    const Rows rows(110, 2);
    const std::vector<TrajectoryId> ids{1};
    const std::vector<float> ones(handles.size(), 1.0f);
    refused(writer_->AppendSteps(rows.many()));
    refused(writer_->AppendTrajectory(rows.many(), {.lane = 1, .end = End::kTerminated}));
    refused(writer_->AppendLanes(rows.many(), {}));
    refused(writer_->Cut());
    refused(writer_->Resume(open_, 1));
    refused(sampler_->Next());
    refused(per->Set(handles, ones));
    refused(per->SetAll(ones));
    refused(per->NewSampler({.batch = 4}));
    refused(table_->NewWriter({}));
    refused(table_->Read(1, {}, {}));
    refused(table_->Find(1));
    refused(table_->Remove(ids));
    refused(table_->Truncate(open_, 105));
    refused(table_->OpenPriorityTable("per"));
    refused(database_->OpenTable("steps"));
    refused(database_->CreateTable(StepSpec()));
    refused(database_->DropTable("steps"));
    refused(database_->WriteTag("tag", {}));
    refused(database_->OpenOrCreateTable(StepSpec()));
    refused(database_->LastTag());
    refused(per->Priority({1, 0}));
    refused(per->Probability({1, 0}));
    refused(database_->Sync());
    refused(database_->Wait(Ticket{1}, Ack::kSync));
    refused(database_->Close());
  }));
  EXPECT_EQ(batch_->handles().size(), handles.size());
  EXPECT_OK(sampler_->Next());
  EXPECT_EQ(Numbers(open_), testing::Count(100, 10));
}

TEST_F(DatabaseForkTest, AChildMayHaveADatabaseOfItsOwn) {
  if (testing::kSanitized) GTEST_SKIP() << "a thread may fork with the sanitizer's allocator held";
  Join(Fork([&] {
    const testing::TempDir directory;
    const auto own = Database::Open(directory.path(), options_);
    ASSERT_OK(own);
    EXPECT_OK((*own)->CreateTable(StepSpec()));
    EXPECT_OK((*own)->Close());
  }));
}

// A thread that holds a mutex when its process forks never gives it back in the child.
TEST_F(DatabaseForkTest, RefusalsWaitForNoMutex) {
  ASSERT_OK_AND_ASSIGN(batch_, sampler_->Next());
  PriorityTable* const per = priority("per");
  const std::vector<float> ones(batch_->handles().size(), 1.0f);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) (void)per->Items();  // Mostly within the table's mutex.
  });
  for (int round = 0; round < 20; ++round) {
    Join(Fork([&] {
      EXPECT_FALSE(per->Set(batch_->handles(), ones).ok());
      EXPECT_FALSE(per->SetAll(ones).ok());
      EXPECT_FALSE(per->Priority({1, 0}).ok());
      EXPECT_FALSE(per->Probability({1, 0}).ok());
      EXPECT_FALSE(writer_->Cut().ok());
      EXPECT_FALSE(sampler_->Next().ok());
      EXPECT_FALSE(table_->Find(1).ok());
    }));
  }
  stop.store(true);
  reader.join();
}

TEST_F(DatabaseForkTest, TheOwnerMayOpenAgainWhileAChildLives) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = Fork([&] {
    ::close(pipe[1]);
    char byte;
    EXPECT_EQ(::read(pipe[0], &byte, 1), 0);  // Until the owner closes its end.
  });
  DestroyAll();
  Open();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 2u);
  ::close(pipe[1]);
  ::close(pipe[0]);
  Join(child);
}

// Such as the worker processes of a learner.
TEST_F(DatabaseForkTest, AnOwnerThatWasKilledLeavesTheDirectoryFreeWhateverChildrenItHas) {
  DestroyAll();
  int started[2];
  int running[2];
  ASSERT_EQ(::pipe(started), 0);
  ASSERT_EQ(::pipe(running), 0);
  const pid_t owner = Fork([&] {
    Open();
    ::close(running[1]);
    const pid_t worker = ::fork();
    char byte = 0;
    if (worker == 0) {
      const bool told = ::write(started[1], &byte, 1) == 1;
      ::_exit(told && ::read(running[0], &byte, 1) == 0 ? 0 : 1);  // Until the test closes its end.
    }
    for (;;) ::pause();
  });
  char byte = 0;
  ASSERT_EQ(::read(started[0], &byte, 1), 1);
  EXPECT_STATUS(kFailedPrecondition, Database::Open(dir_->path(), options_),
                "is held by process " + std::to_string(owner));
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  Open();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 2u);
  for (const int fd : {started[0], started[1], running[0], running[1]}) ::close(fd);
}

}  // namespace
}  // namespace geardb
