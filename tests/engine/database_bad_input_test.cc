// What is wrong with a directory, its files, or a call: a clear error, and nothing changed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/files.h"
#include "tests/testing/store_fixture.h"
#include "wal/manifest.h"

namespace geardb {
namespace {

using testing::FaultEnv;
using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class DatabaseBadInputTest : public StoreTest {
 protected:
  Status TryOpen() { return Database::Open(dir_->path(), options_).status(); }
  std::string ReadFile(const std::string& name) { return testing::ReadBytes(dir_->File(name)); }
  void WriteFile(const std::string& name, std::string_view bytes) {
    testing::WriteBytes(dir_->File(name), bytes);
  }
  /// Every file and its bytes.
  std::map<std::string, std::string> Files() { return testing::FilesOf(dir_->path()); }
  /// A store with 200 closed trajectories of 20 rows, closed. The log was opened once more: what
  /// is damaged below its start the ring does not mend.
  void FillAndClose() {
    TableSpec spec = StepSpec();
    spec.priority_tables = {WindowSpec("per")};
    Create(spec);
    for (int64_t t = 0; t < 200; ++t) AppendClosed(100 * t, 20);
    Reopen();
    Close();
  }
};

TEST_F(DatabaseBadInputTest, ASecondOwnerIsTold) {
  EXPECT_STATUS(kFailedPrecondition, TryOpen(), dir_->path());
  Close();
  EXPECT_OK(TryOpen());
}

TEST_F(DatabaseBadInputTest, CreationIsAChoice) {
  options_.error_if_exists = true;
  Close();
  EXPECT_STATUS(kAlreadyExists, TryOpen(), dir_->path());
  options_.error_if_exists = false;
  options_.create_if_missing = false;
  EXPECT_OK(TryOpen());
  dir_ = std::make_unique<testing::TempDir>();
  EXPECT_STATUS(kNotFound, TryOpen(), dir_->path());
  options_.create_if_missing = true;
  options_.read_only = true;
  EXPECT_STATUS(kNotFound, TryOpen(), "no database");
  EXPECT_TRUE(Files().empty());
}

TEST_F(DatabaseBadInputTest, UnknownNamesNameTheKnown) {
  EXPECT_STATUS(kNotFound, database_->OpenTable("steps"), "no table 'steps'; it has none");
  Create(StepSpec());
  EXPECT_STATUS(kNotFound, database_->OpenTable("stepz"), "no table 'stepz'; it has steps");
  EXPECT_STATUS(kNotFound, table_->OpenPriorityTable("per"),
                "no priority table 'per'; it has none");
  EXPECT_EQ(table_->priority_table("per"), nullptr);
  EXPECT_STATUS(kNotFound, database_->DropTable("stepz"), "no table 'stepz'; it has steps");
  EXPECT_STATUS(kAlreadyExists, database_->CreateTable(StepSpec()), "a table 'steps'");
}

TEST_F(DatabaseBadInputTest, WrongSchemasMakeNoTable) {
  TableSpec spec = StepSpec();
  spec.columns[0].shape = {0};
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "'obs'");
  EXPECT_STATUS(kInvalidArgument, database_->OpenOrCreateTable(spec), "'obs'");
  spec = StepSpec();
  spec.priority_tables = {WindowSpec("good"), WindowSpec("bad", {.before = -1})};
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "'bad'");
  EXPECT_TRUE(database_->Tables().empty());
  Reopen();
  EXPECT_TRUE(database_->Tables().empty());
}

TEST_F(DatabaseBadInputTest, WrongOptionsAreRefused) {
  Close();
  const auto refused = [&](auto change, const char* part) {
    const DatabaseOptions good = options_;
    change(options_);
    const Status status = TryOpen();
    options_ = good;
    EXPECT_TRUE(testing::HasStatus(StatusCode::kInvalidArgument, status, part)) << part;
  };
  for (const int64_t interval : {0, -1}) {
    refused([&](auto& o) { o.sync_interval_ms = interval; }, "sync_interval_ms");
  }
  refused([](auto& o) { o.ack = static_cast<Ack>(3); }, "acknowledgement 3");
  refused([](auto& o) { o.budgets.frames_bytes = 1000; }, "1000 bytes");
  EXPECT_OK(TryOpen());
  dir_ = std::make_unique<testing::TempDir>();
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{100'000}, uint64_t{16} << 10}) {
    refused([&](auto& o) { o.ring_bytes = bytes; }, "ring");
    // 0 chooses.
    if (bytes > 0) refused([&](auto& o) { o.segment_bytes = bytes; }, "segment");
  }
  EXPECT_FALSE(std::filesystem::exists(dir_->File(wal::kManifestName)));
  EXPECT_OK(TryOpen());
}

TEST_F(DatabaseBadInputTest, ANewerFormatIsNamed) {
  FillAndClose();
  // What a newer version would write: the next number, and a checksum that fits (wal/FORMAT.md).
  auto bytes = ReadFile(wal::kManifestName);
  const uint32_t version = wal::kFormatVersion;
  bytes[8] = static_cast<char>(version + 1);
  const auto all = std::as_bytes(std::span(bytes));
  Hasher64 hasher(0);
  hasher.Add(all.first(16));
  hasher.Add(all.subspan(24));
  const uint64_t checksum = hasher.Finish();
  std::memcpy(bytes.data() + 16, &checksum, sizeof(checksum));
  WriteFile(wal::kManifestName, bytes);
  const auto before = Files();
  EXPECT_STATUS(kUnsupported, TryOpen(), std::to_string(version + 1));
  options_.read_only = true;
  EXPECT_STATUS(kUnsupported, TryOpen(), std::to_string(version + 1));
  EXPECT_TRUE(before == Files());
}

TEST_F(DatabaseBadInputTest, DamagedManifestIsNamed) {
  FillAndClose();
  auto bytes = ReadFile(wal::kManifestName);
  bytes[bytes.size() / 2] ^= 1;
  WriteFile(wal::kManifestName, bytes);
  const auto before = Files();
  EXPECT_STATUS(kCorruption, TryOpen(), wal::kManifestName);
  EXPECT_TRUE(before == Files());
  WriteFile(wal::kManifestName, "");
  EXPECT_STATUS(kCorruption, TryOpen(), wal::kManifestName);
}

TEST_F(DatabaseBadInputTest, ForeignFilesAreLeftAlone) {
  FillAndClose();
  WriteFile("notes.txt", "hi");
  WriteFile("segment-zzz", "x");
  std::filesystem::create_directory(dir_->File("folder"));
  Open();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 200u);
  Close();
  EXPECT_EQ(ReadFile("notes.txt"), "hi");
  EXPECT_EQ(ReadFile("segment-zzz"), "x");
}

TEST_F(DatabaseBadInputTest, ADirectoryThatIsAFileIsAnError) {
  Close();
  WriteFile("file", "x");
  EXPECT_FALSE(Database::Open(dir_->File("file"), options_).ok());
  EXPECT_FALSE(Database::Open(dir_->File("a/b/c"), options_).ok());
  EXPECT_FALSE(Database::Open("", options_).ok());
}

TEST_F(DatabaseBadInputTest, ADamagedPieceCostsItsTrajectoryByName) {
  FillAndClose();
  // In the middle of the first segment lie pieces: 16 bytes of each row.
  const std::string segment = "log/segment-000001";
  auto bytes = ReadFile(segment);
  // The rewards of trajectory 101: rows 10,000… hold k / 4.
  const float reward[2] = {10'004.0f / 4, 10'005.0f / 4};
  const auto* wanted = reinterpret_cast<const char*>(reward);
  const auto at = std::search(bytes.begin(), bytes.end(), wanted, wanted + sizeof(reward));
  ASSERT_NE(at, bytes.end());
  *at = static_cast<char>(*at ^ 1);
  WriteFile(segment, bytes);
  for (const bool read_only : {true, false}) {
    SCOPED_TRACE(read_only);
    options_.read_only = read_only;
    Open();
    EXPECT_EQ(database_->recovery().damaged_pages, 1u);
    EXPECT_NE(database_->recovery().note.find("'steps'/101"), std::string::npos)
        << database_->recovery().note;
    auto table = database_->OpenTable("steps");
    ASSERT_OK(table);
    EXPECT_EQ((*table)->Count(), 199u);
    EXPECT_STATUS(kNotFound, (*table)->Read(101, {}, {}), "no trajectory 101");
    EXPECT_OK((*table)->Read(100, {}, {}));
    EXPECT_EQ((*table)->priority_table("per")->Count(), 199u * 20);
    table = std::shared_ptr<Table>();
    Close();
  }
  Open();
  EXPECT_EQ(database_->recovery().damaged_pages, 0u);  // Still in the log; nobody needs it.
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 199u);
}

TEST_F(DatabaseBadInputTest, FilesOfOthersAreNotReplacedByADatabase) {
  Close();
  for (const char* other : {"log/train.csv", "log/segment", "log/ring.old"}) {
    SCOPED_TRACE(other);
    dir_ = std::make_unique<testing::TempDir>();
    std::filesystem::create_directory(dir_->File("log"));
    WriteFile(other, "mine");
    const auto before = Files();
    EXPECT_STATUS(kFailedPrecondition, TryOpen(), "no file of a database");
    EXPECT_TRUE(before == Files());
  }
}

TEST_F(DatabaseBadInputTest, ADatabaseWithoutItsManifestIsNotReplacedByANewOne) {
  FillAndClose();
  std::filesystem::remove(dir_->File("MANIFEST"));
  const auto before = Files();
  EXPECT_STATUS(kCorruption, TryOpen(), "no MANIFEST beside it");
  EXPECT_TRUE(before == Files());
  // Before anything was logged there is nothing to lose.
  dir_ = std::make_unique<testing::TempDir>();
  Open();
  Close();
  std::filesystem::remove(dir_->File("MANIFEST"));
  EXPECT_OK(TryOpen());
}

TEST_F(DatabaseBadInputTest, AColdStoreWithoutItsLogIsNotTakenForANewDatabase) {
  Close();
  dir_ = std::make_unique<testing::TempDir>();
  std::filesystem::create_directory(dir_->File("cold"));
  WriteFile("cold/CURRENT", "MANIFEST-000001\n");
  const auto before = Files();
  EXPECT_STATUS(kCorruption, TryOpen(), "holds a cold store, but there is no MANIFEST");
  EXPECT_TRUE(before == Files());
}

TEST_F(DatabaseBadInputTest, DamagedRecordsAreNamedAndNothingIsWritten) {
  FillAndClose();
  const std::string segment = "log/segment-000001";
  auto bytes = ReadFile(segment);
  // A whole sector in the middle of what is synced: headers among it.
  for (size_t i = 40'000; i < 44'000; ++i) bytes[i] = static_cast<char>(0x5A);
  WriteFile(segment, bytes);
  const auto before = Files();
  const Status status = TryOpen();
  EXPECT_EQ(status.code(), StatusCode::kCorruption) << status;
  EXPECT_NE(std::string(status.message()).find(segment), std::string::npos) << status;
  EXPECT_TRUE(before == Files());
  // Read-only it can be looked at up to the damage.
  options_.read_only = true;
  Open();
  EXPECT_FALSE(database_->recovery().note.empty());
  auto table = database_->OpenTable("steps");
  ASSERT_OK(table);
  EXPECT_GT((*table)->Count(), 10u);
  EXPECT_LT((*table)->Count(), 200u);
  EXPECT_TRUE(before == Files());
}

TEST_F(DatabaseBadInputTest, AFullLogSaysWhatPinsIt) {
  options_.segment_bytes = uint64_t{64} << 10;
  options_.ring_bytes = uint64_t{64} << 10;
  options_.log_bytes_max = uint64_t{1} << 20;
  options_.cold_tier = false;
  OpenEmpty();
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  const Rows rows(0, 500);
  Status status;
  uint64_t count = 0;
  for (; status.ok() && count < 1000; ++count) {
    status = writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
  }
  EXPECT_STATUS(kResourceExhausted, status, "1048576");
  EXPECT_EQ(table_->Count(), count - 1);
  // Removals and tags have segments of their own, and the store goes on.
  const TrajectoryId ids[] = {1};
  EXPECT_OK(table_->Remove(ids));
  EXPECT_OK(database_->WriteTag("full", {}));
  EXPECT_STATUS(kResourceExhausted,
                writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}), "1048576");
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), count - 2);
  EXPECT_OK(database_->LastTag("full"));
}

TEST_F(DatabaseBadInputTest, AFullDiskIsNamedAndTheStoreGoesOn) {
  FaultEnv env(1);
  DatabaseOptions options = options_;
  options.env = &env;
  options.segment_bytes = uint64_t{64} << 10;
  options.ring_bytes = uint64_t{64} << 10;
  auto database = Database::Open("db", options);
  ASSERT_OK(database);
  TableSpec spec = StepSpec();
  auto table = (*database)->CreateTable(spec);
  ASSERT_OK(table);
  auto writer = (*table)->NewWriter({.admission_timeout_ms = 100});
  ASSERT_OK(writer);
  const Rows rows(0, 500);
  env.set_disk_bytes_max(env.disk_bytes() + (uint64_t{256} << 10));
  Status status;
  uint64_t count = 0;
  for (; status.ok() && count < 1000; ++count) {
    status = (*writer)->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_EQ((*table)->Count(), count - 1);
  const TrajectoryId ids[] = {1};
  EXPECT_OK((*table)->Remove(ids));
  env.set_disk_bytes_max(uint64_t{1} << 30);
  status = Status::DeadlineExceeded("");
  for (int tries = 0; tries < 100 && !status.ok(); ++tries) {
    status = (*writer)->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
  }
  EXPECT_OK(status);
  EXPECT_OK((*database)->Close());
}

}  // namespace
}  // namespace geardb
