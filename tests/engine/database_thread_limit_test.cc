// Where the system gives no more threads: what cannot be without one is refused by name and changes
// nothing, all else goes on.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/priority_table.h"
#include "engine/sampler.h"
#include "tests/testing/store_fixture.h"
#include "tests/testing/thread_limit.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::ThreadLimit;
using testing::WindowSpec;

class DatabaseThreadLimitTest : public StoreTest {
 protected:
  void SetUp() override {
    Open();
    TableSpec spec = StepSpec();
    spec.priority_tables = {WindowSpec("per")};
    Create(spec);
    AppendClosed(0, 100);
    Close();
  }
  void RunLimited(const std::function<void()>& function) {
    if (testing::RunAsOnlyProcess(dir_->path(), function)) return;
    GTEST_SKIP() << "a process of a user of its own cannot be had";
  }
  Result<std::unique_ptr<Sampler>> NewSampler(int64_t prefetch) {
    return priority("per")->NewSampler(
        {.batch = 4, .prefetch = prefetch, .seed = 3, .restart_draw = 100});
  }
};

TEST_F(DatabaseThreadLimitTest, AnOpenIsRefusedAndWorksWhenTriedAgain) {
  RunLimited([this] {
    const std::string fresh = dir_->File("fresh");
    {
      const ThreadLimit limit(1);
      for (const std::string& directory : {dir_->path(), fresh}) {
        EXPECT_STATUS(kResourceExhausted, Database::Open(directory, options_),
                      "starting the thread that drains and syncs " + directory +
                          "/log: Resource temporarily unavailable");
      }
      EXPECT_FALSE(std::filesystem::exists(fresh));
      DatabaseOptions looking = options_;
      looking.read_only = true;
      looking.prefault = true;  // By the calling thread.
      EXPECT_OK(Database::Open(dir_->path(), looking));
    }
    Open();
    EXPECT_TRUE(database_->recovery().clean);
    OpenAgain("steps");
    EXPECT_EQ(table_->Count(), 1u);
    EXPECT_OK(Database::Open(fresh, options_));
  });
}

TEST_F(DatabaseThreadLimitTest, OneThreadIsEnoughForAllButPrefetching) {
  RunLimited([this] {
    {
      const ThreadLimit limit(2);
      options_.ack = Ack::kMemory;  // Others fill large records, where there is a thread for it.
      Open();
      OpenAgain("steps");
      EXPECT_STATUS(kResourceExhausted, NewSampler(2),
                    "starting the thread that prefetches for a sampler of priority table 'per': "
                    "Resource temporarily unavailable");
      auto sampler = priority("per")->NewSampler({.batch = 4});
      ASSERT_OK(sampler);
      ASSERT_OK_AND_ASSIGN(const Batch batch, (*sampler)->Next());
      EXPECT_EQ(batch.draw_number(), 0u);  // The one refused has restarted nothing.
      AppendClosed(100, 5'000);            // Filled by the call itself.
    }
    ASSERT_OK_AND_ASSIGN(const auto sampler, NewSampler(2));
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    EXPECT_EQ(batch.draw_number(), 100u);
    EXPECT_OK(database_->Close());
  });
}

}  // namespace
}  // namespace geardb
