// What a database takes on a full disk, and until when.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/priority_table.h"
#include "tests/testing/descriptor_limit.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/log_end.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::FaultEnv;
using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

constexpr uint64_t kSegment = uint64_t{64} << 10;

class DatabaseFullDiskTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.env = &env_;
    options_.background = false;
    options_.segment_bytes = kSegment;
    options_.ring_bytes = kSegment;
    Open();
    Create(StepSpec(), {.lanes = 2});
    open_ = Append(0, 3, End::kGo, 1).id;
    // Room for a few segments and the spare files.
    env_.set_disk_bytes_max(env_.disk_bytes() + 6 * kSegment);
  }
  void TearDown() override { Close(); }

  /// Appends fewer and fewer rows until one is refused, too.
  Status FillDisk() {
    Status status;
    for (const int64_t count : {500, 20, 1}) {
      const Rows rows(0, count);
      for (status = {}; status.ok();) {
        status = writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
      }
    }
    return status;
  }
  Status AppendOne() { return writer_->Append(Rows(0, 1).one()).status(); }

  FaultEnv env_{1};
  TrajectoryId open_ = 0;
};

TEST_F(DatabaseFullDiskTest, AppendsLeaveTheReserveToRemovalsTagsAndClosings) {
  EXPECT_STATUS(kResourceExhausted, FillDisk(), "No space left");
  const uint64_t count = table_->Count();
  TrajectoryId next = open_ + 1;
  const std::vector<std::byte> blob(5000);
  EXPECT_OK(database_->WriteTag("first", blob));
  for (int opens = 0; opens < 3; ++opens) {
    SCOPED_TRACE(opens);
    EXPECT_STATUS(kResourceExhausted, AppendOne(), "leaves 2 to removals, tags, closings");
    EXPECT_STATUS(kResourceExhausted, FillDisk(), "No space left");
    EXPECT_OK(table_->Remove({&next, 1}));
    ++next;
    EXPECT_OK(database_->WriteTag("again", std::span(blob).first(100)));
    EXPECT_EQ(table_->Count(), count - static_cast<uint64_t>(opens) - 1);
    Reopen();
    OpenAgain("steps", {.lanes = 2});
    EXPECT_EQ(database_->LastTag("first")->blob.size(), blob.size());
  }
  EXPECT_OK(writer_->Resume(open_, 1));
  EXPECT_OK(writer_->Cut(1));
  // Up to the end of the reserve, which is one segment.
  const Lsn reserve_end = AlignUp(database_->Stats().log_end, kSegment);
  Status status;
  while (status.ok()) status = database_->WriteTag("more", {}).status();
  EXPECT_STATUS(kResourceExhausted, status, "1 spare segment files and leaves 1 to the next open");
  EXPECT_LE(database_->Stats().log_end, reserve_end);
  EXPECT_GT(database_->Stats().log_end, reserve_end - 500);
  // A segment's room, and appends go on: it takes the place of the one that was taken.
  env_.set_disk_bytes_max(env_.disk_bytes() + 2 * kSegment);
  EXPECT_OK(AppendOne());
  Reopen();
  OpenAgain("steps");
  EXPECT_OK(AppendOne());
}

// What has to leave takes more than one record, and these may use the reserve.
TEST_F(DatabaseFullDiskTest, AnAppendThatIsRefusedHasEvictedNothing) {
  options_.ring_bytes = 2 * kSegment;
  const std::vector<std::byte> blob(500);
  int refused = 0;
  int taken = 0;
  for (uint64_t left = 4'000; left < 48'000; left += 4'000) {
    SCOPED_TRACE(left);
    env_.set_disk_bytes_max(UINT64_MAX);
    OpenEmpty();
    TableSpec spec = StepSpec();
    spec.steps_per_page = 32;
    spec.steps_max = 700;
    Create(spec);
    for (int t = 0; t < 700; ++t) AppendClosed(t, 1);
    while (kSegment - database_->Stats().log_end % kSegment < left) AppendClosed(0, 1);
    env_.set_disk_bytes_max(env_.disk_bytes());
    while (kSegment - database_->Stats().log_end % kSegment > left) {
      ASSERT_OK(database_->WriteTag("filler", blob));
    }
    const Lsn end = database_->Stats().log_end;
    const auto appended = writer_->AppendTrajectory(Rows(0, 700).many(), {.end = End::kTerminated});
    if (appended.ok()) {
      ++taken;
      EXPECT_EQ(table_->Count(), 1u);
      continue;
    }
    ++refused;
    EXPECT_STATUS(kResourceExhausted, appended, "No space left");
    testing::ExpectNothingWritten(*database_, end);
    EXPECT_EQ(table_->Count(), 700u);
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(taken, 0);
}

TEST_F(DatabaseFullDiskTest, ASetOfSeveralRecordsThatIsRefusedHasSetNothing) {
  env_.set_disk_bytes_max(UINT64_MAX);
  OpenEmpty();
  TableSpec spec = StepSpec();
  spec.steps_per_page = 256;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  AppendClosed(0, 3'000);
  PriorityTable* const per = priority("per");
  const std::vector<RowId> items = per->Items();
  const std::vector<std::byte> blob(500);
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    // From another place in a segment each time.
    env_.set_disk_bytes_max(UINT64_MAX);
    for (int i = 0; i < 15; ++i) ASSERT_OK(database_->WriteTag("filler", blob));
    env_.set_disk_bytes_max(env_.disk_bytes() + kSegment);
    float told = per->Priority(items[0]).value();
    Status status;
    while (status.ok()) {
      status = per->Set(items, std::vector<float>(items.size(), told + 1)).status();
      if (status.ok()) ++told;
    }
    EXPECT_STATUS(kResourceExhausted, status, "No space left");
    for (const RowId& item : items) ASSERT_EQ(per->Priority(item).value(), told);
  }
}

// cp --sparse, rsync -S and tar -S leave holes where a store has zeros, whose space was reserved.
class DatabaseSparseCopyTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.segment_bytes = kSegment;
    options_.ring_bytes = kSegment;
    Open();
    Create(StepSpec());
  }
};

TEST_F(DatabaseSparseCopyTest, AnOpenReservesTheSpaceAgain) {
  AppendClosed(0, 10);
  Close();
  int holes = 0;
  const auto for_each_file = [&](const auto& visit) {
    for (const auto& entry : std::filesystem::directory_iterator(dir_->File("log"))) {
      struct stat status = {};
      ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
      visit(entry.path(), status.st_blocks * 512 < status.st_size);
    }
  };
  for_each_file([](const std::filesystem::path& path, bool) {
    ASSERT_OK_AND_ASSIGN(const auto bytes,
                         ReadWholeFile(Env::Posix(), path.string(), 2 * kSegment));
    std::filesystem::remove(path);
    std::ofstream copy(path, std::ios::binary);
    for (uint64_t at = 0; at < bytes.size(); at += 4096) {
      const std::span<const std::byte> block = std::span(bytes).subspan(at, 4096);
      if (std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; })) continue;
      copy.seekp(static_cast<std::streamoff>(at));
      copy.write(reinterpret_cast<const char*>(block.data()), 4096);
    }
    copy.close();
    std::filesystem::resize_file(path, bytes.size());
  });
  for_each_file([&](const auto&, bool has_holes) { holes += has_holes ? 1 : 0; });
  EXPECT_GE(holes, 2);
  Open();
  for_each_file(
      [](const std::filesystem::path& path, bool has_holes) { EXPECT_FALSE(has_holes) << path; });
  OpenAgain("steps");
  EXPECT_EQ(Numbers(1), testing::Count(0, 10));
}

// Without a descriptor for the next segment a store is as full as its disk, and no more broken.
class DatabaseDescriptorsTest : public StoreTest {
 protected:
  void SetUp() override {
    if (!testing::DescriptorLimit::MayBeReached()) GTEST_SKIP() << "of a sanitizer";
    options_.segment_bytes = kSegment;
    options_.ring_bytes = kSegment;
    Open();
    Create(StepSpec());
  }
};

TEST_F(DatabaseDescriptorsTest, WithoutOneForTheNextSegmentAppendsWait) {
  {
    const testing::DescriptorLimit limit(24);
    const Rows rows(0, 500);
    Status status;
    int appends = 0;
    for (; status.ok() && appends < 1000; ++appends) {
      status = writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
    }
    EXPECT_STATUS(kResourceExhausted, status, "Too many open files");
    EXPECT_GT(appends, 20);
    EXPECT_OK(database_->WriteTag("tag", {}));
  }
  for (int i = 0; i < 100; ++i) AppendClosed(0, 500);
  Reopen();
  EXPECT_TRUE(database_->recovery().clean);
}

TEST_F(DatabaseDescriptorsTest, AnOpenWithoutThemIsRefusedAndMayBeTriedAgain) {
  AppendClosed(0, 500);
  Close();
  int refused = 0;
  while (true) {
    const testing::DescriptorLimit limit(refused);
    const auto opened = Database::Open(dir_->path(), options_);
    if (opened.ok()) break;
    EXPECT_STATUS(kResourceExhausted, opened, "Too many open files");
    ASSERT_LT(++refused, 100);
  }
  EXPECT_GT(refused, 0);
  Open();
  EXPECT_TRUE(database_->recovery().clean);
  OpenAgain("steps");
  EXPECT_EQ(Numbers(1), testing::Count(0, 500));
}

}  // namespace
}  // namespace geardb
