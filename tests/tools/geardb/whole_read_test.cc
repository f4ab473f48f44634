// geardb verify and geardb repair read every column: a damaged page of a blob or of a wide column
// is named, and costs its trajectory like any other.

#include "tools/geardb/whole_read.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "engine/internal/cold_db.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::Json;

constexpr int64_t kWide = 512;
constexpr int64_t kBlobRows = 12000;
constexpr TrajectoryId kReadTrajectoriesMin = 700;

DatabaseOptions SmallLogOptions() {
  DatabaseOptions options;
  options.budgets.frames_bytes = uint64_t{16} << 20;
  options.segment_bytes = uint64_t{256} << 10;
  options.ring_bytes = uint64_t{256} << 10;
  options.log_bytes_max = uint64_t{4} << 20;
  options.background = false;
  return options;
}

std::vector<uint8_t> Values(TrajectoryId id, int64_t count) {
  std::vector<uint8_t> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<uint8_t>(id * 37 + static_cast<uint64_t>(i) * 11));
  }
  return values;
}

class ValueDamageTest : public ::testing::Test {
 protected:
  /// Rows of a byte, and values of some thousands: nearly all of the store's pages hold these.
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(store(), SmallLogOptions()));
    TableSpec spec{.name = "t"};
    spec.columns = {{.name = "x", .dtype = DType::kU8},
                    {.name = "wide",
                     .dtype = DType::kU8,
                     .shape = {kWide},
                     .kind = ColumnKind::kPerTrajectory,
                     .compression = Compression::kNone},
                    {.name = "blob",
                     .dtype = DType::kU8,
                     .kind = ColumnKind::kBlob,
                     .compression = Compression::kNone}};
    ASSERT_OK_AND_ASSIGN(const auto table, database->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    for (TrajectoryId id = 1; id <= kReadTrajectoriesMin; ++id) {
      const std::vector<uint8_t> x = {7};
      const auto wide = Values(id, kWide);
      const auto blob = Values(id, kBlobRows);
      const ColumnValue rows[] = {{"x", TensorView::Of<uint8_t>(x, {1})}};
      const ColumnValue values[] = {{"wide", TensorView::Of<uint8_t>(wide, {kWide})},
                                    {"blob", TensorView::Of<uint8_t>(blob, {kBlobRows})}};
      ASSERT_OK(
          writer->AppendTrajectory(rows, {.end = End::kTerminated, .trajectory = values}).status());
    }
    ASSERT_NE(database->Stats().image_lsn, 0u);
    ASSERT_OK(database->Close());
  }
  std::string store() const { return dir_.File("store"); }
  CliRun Run(const std::string& command, const std::vector<std::string>& words = {}) const {
    std::vector<std::string> all = {command, store(), "--memory", "64MB"};
    all.insert(all.end(), words.begin(), words.end());
    return testing::RunCli(all);
  }
  /// Whose blob or wide column cannot be read.
  std::set<TrajectoryId> Damaged() const {
    std::set<TrajectoryId> damaged;
    DatabaseOptions options = SmallLogOptions();
    options.read_only = true;
    const auto database = Database::Open(store(), options).value();
    const auto table = database->OpenTable("t").value();
    for (const TrajectoryRecord& record : table->Scan({})) {
      for (const std::string_view column : {"wide", "blob"}) {
        const auto read = table->Read(record.id, std::span(&column, 1), {});
        if (!read.ok()) {
          EXPECT_EQ(read.status().code(), StatusCode::kCorruption) << read.status();
          damaged.insert(record.id);
          continue;
        }
        const auto expected = Values(record.id, column == "wide" ? kWide : kBlobRows);
        const auto values = (*read)[0].view().values<uint8_t>();
        EXPECT_TRUE(std::ranges::equal(values, expected)) << record.id;
      }
    }
    return damaged;
  }

  testing::TempDir dir_;
};

TEST_F(ValueDamageTest, ABadPageOfAValueIsNamedAndItsTrajectoryRemoved) {
  EXPECT_EQ(Run("verify").code, cli::kExitGood);
  EXPECT_EQ(Run("repair").out, "nothing to repair\n");
  std::vector<std::string> files;
  {
    ASSERT_OK_AND_ASSIGN(const auto db, engine::OpenColdDb(store() + "/cold", {.read_only = true}));
    rocksdb::ColumnFamilyMetaData pages;
    db->db->GetColumnFamilyMetaData(db->pages, &pages);
    for (const auto& blob : pages.blob_files) {
      const std::string& name = blob.blob_file_name;
      files.push_back(store() + "/cold" + name.substr(name.rfind('/')));
    }
  }
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) {
    for (const uint64_t part : {2u, 3u}) testing::FlipByte(file, fs::file_size(file) / part);
  }
  const std::set<TrajectoryId> damaged = Damaged();
  ASSERT_GT(damaged.size(), 0u);
  ASSERT_LT(damaged.size(), 100u);

  const auto verified = Json::Parse(Run("verify", {"--json"}).out);
  ASSERT_TRUE(verified.has_value());
  std::set<std::string> named;
  for (const Json& problem : (*verified)["problems"].items()) {
    const std::string place = problem["place"].text();
    if (place.starts_with("table t, ")) named.insert(place);
  }
  std::set<std::string> expected;
  for (const TrajectoryId id : damaged) {
    expected.insert("table t, trajectory " + std::to_string(id));
  }
  EXPECT_EQ(named, expected);

  const CliRun repaired = Run("repair", {"--json"});
  ASSERT_EQ(repaired.code, cli::kExitGood) << repaired.out << repaired.err;
  const auto plan = Json::Parse(repaired.out);
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ((*plan)["tables"].items().size(), 1u);
  std::set<TrajectoryId> lost;
  for (const Json& id : (*plan)["tables"][0]["trajectories"].items()) {
    lost.insert(static_cast<TrajectoryId>(id.integer()));
  }
  EXPECT_EQ(lost, damaged);
  EXPECT_TRUE(Damaged().empty());
  const CliRun after = Run("verify");
  EXPECT_EQ(after.code, cli::kExitGood) << after.out;
}

TEST_F(ValueDamageTest, AWholeReadReadsAll) {
  ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(store(), SmallLogOptions()));
  ASSERT_OK_AND_ASSIGN(const auto table, database->OpenTable("t"));
  const cli::WholeRead whole(table.get());
  for (const TrajectoryRecord& record : table->Scan({})) EXPECT_OK(whole.Read(record));
  TrajectoryRecord absent;
  absent.id = kReadTrajectoriesMin + 1;
  absent.rows_end = 1;
  EXPECT_STATUS(kNotFound, whole.Read(absent), std::to_string(absent.id));
}

}  // namespace
}  // namespace geardb
