// concurrent: engine/internal/log_prefetch.cc
#include "engine/internal/log_prefetch.h"

#include <filesystem>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class LogPrefetchConcurrentTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    Open();
    Create(testing::StepSpec());
    for (int i = 0; i < 400; ++i) AppendClosed(i * 10, 8);
    Close();
    ASSERT_OK_AND_ASSIGN(manifest_, wal::ReadManifest(Env::Posix(), dir_->path()));
    ASSERT_OK_AND_ASSIGN(map_, wal::SegmentMap::Read(Env::Posix(), LogDirectory(), manifest_, 0));
    ASSERT_GT(map_.names.size(), 0u);
  }
  std::string LogDirectory() const { return JoinPath(dir_->path(), wal::kLogDirectoryName); }
  PrefetchedLog Log(Lsn from, Lsn released) {
    return {.env = Env::Posix(),
            .directory = dir_->path(),
            .manifest = manifest_,
            .map = map_,
            .from = from,
            .released = released};
  }

  wal::Manifest manifest_;
  wal::SegmentMap map_;
};

TEST_F(LogPrefetchConcurrentTest, ReadsTheRingAndTheSegmentsFromThereOn) {
  LogPrefetch whole(Log(0, 0), true);
  whole.Wait();
  const uint64_t segment = manifest_.segment_bytes;
  EXPECT_EQ(whole.bytes(), manifest_.ring_bytes + map_.names.size() * segment);
  LogPrefetch last(Log(map_.names.rbegin()->first + 5, 0), true);
  last.Wait();
  EXPECT_EQ(last.bytes(), manifest_.ring_bytes + segment);
  const Lsn end = map_.names.rbegin()->first + segment;
  LogPrefetch released(Log(end, map_.names.begin()->first + segment), true);
  released.Wait();
  EXPECT_EQ(released.bytes(), manifest_.ring_bytes + segment);
}

TEST_F(LogPrefetchConcurrentTest, DoesNothingWithoutAThreadAndEndsWithWhoHasIt) {
  LogPrefetch none(Log(0, 0), false);
  none.Wait();
  EXPECT_EQ(none.bytes(), 0u);
  for (int i = 0; i < 50; ++i) const LogPrefetch stopped(Log(0, 0), true);
}

TEST_F(LogPrefetchConcurrentTest, AFileThatIsGoneEndsIt) {
  std::filesystem::remove(JoinPath(LogDirectory(), wal::kRingName));
  LogPrefetch prefetch(Log(0, 0), true);
  prefetch.Wait();
  EXPECT_EQ(prefetch.bytes(), 0u);
}

}  // namespace
}  // namespace geardb::engine
