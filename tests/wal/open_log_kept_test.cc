// Opens of a log that keeps more than they read.
#include <algorithm>

#include "tests/wal/log_fixture.h"
#include "wal/open_log.h"
#include "wal/record_codec.h"
#include "wal/segment_map.h"

namespace geardb::wal {
namespace {

using OpenLogKeptTest = LogFixture;

// Their pages lie in the log, and nothing else can.
TEST_F(OpenLogKeptTest, SegmentsThatAreKeptAndNotReadAreNotLookedThrough) {
  CreateAndOpen();
  for (uint64_t number = 1; writer()->end() < 3 * options_.log.segment_bytes; ++number) {
    Append(number, 4000);
    ASSERT_OK(writer()->DrainOnce());
  }
  const Lsn end = writer()->end();
  ASSERT_OK(writer()->Close());
  const Manifest manifest = seen_.log.manifest;
  seen_ = SeenLog();
  const auto plant = [&](const std::string& name) {
    auto bytes = env_->Contents("db/log/" + name);
    const Lsn lsn = 9 * bytes.size() + 8192;
    WritePlainRecord(bytes.data() + 8192,
                     RecordHeader{.lsn = lsn,
                                  .synced_lsn = lsn,
                                  .term = manifest.epoch.term,
                                  .open = manifest.epoch.open + 7,
                                  .length = 128},
                     manifest.uuid, manifest.Seed());
    env_->Put("db/log/" + name, bytes);
  };
  ASSERT_OK_AND_ASSIGN(const SegmentMap map, SegmentMap::Read(env_.get(), "db/log", manifest, 0));
  plant(map.names.at(0));
  options_.from = end;
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), "it is older than the log");
  options_.keep = 0;
  EXPECT_OK(OpenAndSee(env_.get(), "db", options_));
  // What is nobody's may be what the log went on in.
  for (const std::string& name : map.all) {
    const bool named =
        std::ranges::any_of(map.names, [&](const auto& of) { return of.second == name; });
    if (!named) plant(name);
  }
  ASSERT_GT(map.all.size(), map.names.size());
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options_), "it is older than the log");
}

TEST_F(OpenLogKeptTest, ALogThatEndsTooEarlyIsRefusedBeforeAnythingIsWritten) {
  CreateAndOpen();
  Append(1, 1000);
  const Lsn end = writer()->end();
  env_->Die();
  seen_ = SeenLog();
  env_->Crash(testing::CrashKind::kProcess);
  const uint64_t before = env_->operations();
  OpenOptions options = options_;
  options.reach = end + 1;
  EXPECT_STATUS(kCorruption, OpenAndSee(env_.get(), "db", options),
                "is as of LSN " + std::to_string(end + 1));
  EXPECT_EQ(env_->operations(), before);
  options_.reach = end;
  Open();
  EXPECT_EQ(records().size(), 1u);
}

}  // namespace
}  // namespace geardb::wal
