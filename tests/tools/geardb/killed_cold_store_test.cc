// geardb verify and geardb repair of a store that was killed and has lost a file of its log: a cold
// store with an image of the index, and a column of any length.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/sanitizers.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/command.h"
#include "tools/geardb/text_table.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::Json;
using testing::LinesWith;

constexpr int64_t kRows = 40;
constexpr int64_t kRowBytes = 512;
constexpr TrajectoryId kTrajectoriesMin = 600;
constexpr uint64_t kReplayBytesMin = uint64_t{512} << 10;
/// Trajectories: five segments and more.
constexpr TrajectoryId kUnsynced = 70;
/// Less than a segment.
constexpr uint64_t kBehindBytesMax = uint64_t{128} << 10;

DatabaseOptions Options() {
  DatabaseOptions options;
  options.budgets.frames_bytes = uint64_t{16} << 20;
  options.segment_bytes = uint64_t{256} << 10;
  options.ring_bytes = uint64_t{256} << 10;
  options.log_bytes_max = uint64_t{4} << 20;
  // A pass of the cleaner is made when the log is full, and not before.
  options.background = false;
  return options;
}

uint8_t Byte(TrajectoryId id, int64_t row) {
  return static_cast<uint8_t>(id * 31 + static_cast<uint64_t>(row) * 7);
}

/// Row k of a trajectory has k characters.
std::vector<uint8_t> Text(TrajectoryId id) {
  std::vector<uint8_t> text;
  for (int64_t row = 0; row < kRows; ++row) {
    text.insert(text.end(), static_cast<size_t>(row), Byte(id + 1, row));
  }
  return text;
}

/// Bytes of the log since the image of the index; 0: there is none.
uint64_t ReplayBytes(const Database& database) {
  const DatabaseStats stats = database.Stats();
  return stats.image_lsn == 0 ? 0 : stats.log_end - stats.image_lsn;
}

/// Where the owner died.
enum class Died {
  kLongAfterAnImage,  ///< Some segments since it are no longer in the ring.
  kBehindAnImage,     ///< A pass of the cleaner has just ended.
  kLongUnsynced,      ///< As the first, and then some segments were written and not synced.
};

/// More than the log holds.
Status Fill(Database* database, Died died) {
  TableSpec spec{.name = "t"};
  spec.columns = {
      {.name = "x", .dtype = DType::kU8, .shape = {kRowBytes}, .compression = Compression::kNone},
      {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged}};
  GEARDB_ASSIGN_OR_RETURN(const auto table, database->CreateTable(spec));
  GEARDB_ASSIGN_OR_RETURN(const auto writer, table->NewWriter({}));
  std::vector<uint64_t> offsets(kRows + 1);
  for (size_t row = 0; row < kRows; ++row) offsets[row + 1] = offsets[row] + row;
  const auto enough = [&] {
    const uint64_t bytes = ReplayBytes(*database);
    return died == Died::kBehindAnImage ? bytes > 0 && bytes < kBehindBytesMax
                                        : bytes >= kReplayBytesMin;
  };
  const auto add = [&](TrajectoryId id) {
    std::vector<uint8_t> x;
    for (int64_t row = 0; row < kRows; ++row) x.insert(x.end(), kRowBytes, Byte(id, row));
    const std::vector<uint8_t> text = Text(id);
    const ColumnValue values[] = {
        {"x", TensorView::Of<uint8_t>(x, {kRows, kRowBytes})},
        {"text", TensorView::Of<uint8_t>(text), offsets},
    };
    return writer->AppendTrajectory(values, {.end = End::kTerminated}).status();
  };
  TrajectoryId id = 1;
  for (; id <= kTrajectoriesMin || !enough(); ++id) GEARDB_RETURN_IF_ERROR(add(id));
  GEARDB_RETURN_IF_ERROR(database->Sync());
  // Its record says what was synced.
  const TrajectoryId last = died == Died::kLongUnsynced ? id + kUnsynced : id;
  for (; id <= last; ++id) GEARDB_RETURN_IF_ERROR(add(id));
  return Status::Ok();
}

/// Fills a store in another process, which is killed.
void MakeKilledStore(const std::string& directory, Died died) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto database = Database::Open(directory, Options());
    const Status filled = database.ok() ? Fill(database->get(), died) : database.status();
    if (filled.ok()) ::raise(SIGKILL);
    std::fprintf(stderr, "%s\n", filled.ToString().c_str());
    ::_exit(1);
  }
  int status = 0;
  GEARDB_CHECK(::waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

class KilledColdStoreTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_dir_ = new testing::TempDir;
    MakeKilledStore(made_dir_->File("store"), Died::kLongAfterAnImage);
    MakeKilledStore(made_dir_->File("behind"), Died::kBehindAnImage);
    MakeKilledStore(made_dir_->File("unsynced"), Died::kLongUnsynced);
    DatabaseOptions options = Options();
    options.read_only = true;
    const auto database = Database::Open(made_dir_->File("store"), options).value();
    trajectories_ = database->OpenTable("t").value()->Count();
  }
  static void TearDownTestSuite() {
    delete made_dir_;
    made_dir_ = nullptr;
  }
  void SetUp() override { Restore(); }
  void Restore(const std::string& name = "store") {
    fs::remove_all(store());
    fs::copy(made_dir_->File(name), store(), fs::copy_options::recursive);
  }
  std::string store() const { return dir_.File("store"); }
  CliRun Run(const std::string& command, const std::vector<std::string>& words = {}) const {
    std::vector<std::string> all = {command, store(), "--memory", "64MB"};
    all.insert(all.end(), words.begin(), words.end());
    return testing::RunCli(all);
  }
  /// Files of segments, by the LSN of their first record.
  std::map<Lsn, std::string> Segments() const {
    std::map<Lsn, std::string> segments;
    for (const auto& entry : fs::directory_iterator(store() + "/log")) {
      if (!entry.path().filename().string().starts_with("segment-")) continue;
      const std::string bytes = testing::ReadBytes(entry.path());
      Lsn lsn = 0;
      std::memcpy(&lsn, bytes.data() + 8, sizeof(lsn));
      segments[lsn] = entry.path();
    }
    return segments;
  }

  static testing::TempDir* made_dir_;
  static uint64_t trajectories_;
  testing::TempDir dir_;
};

testing::TempDir* KilledColdStoreTest::made_dir_ = nullptr;
uint64_t KilledColdStoreTest::trajectories_ = 0;

TEST_F(KilledColdStoreTest, AWholeStoreIsGood) {
  const CliRun verify = Run("verify");
  EXPECT_EQ(verify.code, cli::kExitGood) << verify.out << verify.err;
  const auto shown = Json::Parse(Run("info", {"--json"}).out);
  ASSERT_TRUE(shown.has_value());
  ASSERT_FALSE((*shown)["log"]["image"].is_null()) << verify.out;
  EXPECT_GE(Segments().size(), 4u);
}

// With the ring as it was, and with one that a power loss has left empty.
TEST_F(KilledColdStoreTest, VerifyFindsDamageWhereverAnOpenForWritingDoes) {
  uint64_t cases = 0, refused = 0;
  for (const char* made : {"store", "behind"}) {
    Restore(made);
    const auto segments = Segments();
    for (const auto& [lsn, file] : segments) {
      for (const bool ring : {true, false}) {
        if (!testing::InShare(cases++)) continue;
        SCOPED_TRACE(std::string(made) + " without the segment of " + std::to_string(lsn) +
                     (ring ? "" : " and an empty ring"));
        Restore(made);
        fs::remove(file);
        if (!ring) testing::WriteBytes(store() + "/log/ring", std::string(256 << 10, '\0'));
        const auto before = testing::FilesOf(store());
        const CliRun verify = Run("verify");
        EXPECT_TRUE(testing::FilesOf(store()) == before);
        const Status opened = Database::Open(store(), Options()).status();
        if (opened.ok()) continue;
        EXPECT_EQ(opened.code(), StatusCode::kCorruption) << opened;
        ++refused;
        EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out << opened;
        // Rows that are lost say nothing of the log: where it is damaged is said, too.
        const std::string said(opened.message());
        const size_t at = said.find("the log is damaged at LSN ");
        ASSERT_NE(at, std::string::npos) << said;
        EXPECT_GE(LinesWith(verify.out, said.substr(at, said.find(',', at) - at)), 1u)
            << verify.out << said;
      }
    }
  }
  if (!testing::kSanitized) {  // Few are, and not each is run there.
    EXPECT_GE(refused, 4u);
  }
}

// What was not synced is no damage where it is lost, but nobody should lose it unawares.
TEST_F(KilledColdStoreTest, VerifySaysWhereAnOpenForWritingWouldEndTheLogEarly) {
  Restore("unsynced");
  const auto segments = Segments();
  Lsn end = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto whole, Database::Open(store(), Options()));
    end = whole->recovery().end;
  }
  int dropped = 0;
  for (const auto& [lsn, file] : segments) {
    SCOPED_TRACE("without the segment of " + std::to_string(lsn));
    Restore("unsynced");
    fs::remove(file);
    const CliRun verify = Run("verify");
    const auto opened = Database::Open(store(), Options());
    if (!opened.ok() || (*opened)->recovery().end >= end) continue;
    ++dropped;
    EXPECT_NE(verify.code, cli::kExitGood) << verify.out;
  }
  EXPECT_GE(dropped, 1);
}

TEST_F(KilledColdStoreTest, WhatTheRingHasOfALostSegmentIsNotCutOff) {
  const auto segments = Segments();
  fs::remove(segments.rbegin()->second);
  EXPECT_EQ(Run("verify").code, cli::kExitDamage);
  const CliRun run = Run("repair");
  EXPECT_EQ(run.code, cli::kExitGood) << run.out << run.err;
  EXPECT_EQ(LinesWith(run.out, "done: the ring's copy is put back"), 1u) << run.out;
  EXPECT_EQ(LinesWith(run.out, "nothing is lost"), 1u) << run.out;
  EXPECT_EQ(Run("verify").code, cli::kExitGood);
  ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(store(), Options()));
  EXPECT_EQ(database->OpenTable("t").value()->Count(), trajectories_);
}

// Segments are written over when the log has gone round: behind its end a file has older records.
TEST_F(KilledColdStoreTest, ASegmentThatLostItsFirstRecordIsTheOneThatItWas) {
  for (const auto& [lsn, file] : Segments()) {
    SCOPED_TRACE(lsn);
    Restore();
    testing::FlipByte(file, 5);
    const CliRun run = Run("repair");
    EXPECT_EQ(run.code, cli::kExitGood) << run.out << run.err;
    EXPECT_EQ(LinesWith(run.out, "it is the segment of LSN " + cli::Grouped(lsn) + ","), 1u)
        << run.out;
    EXPECT_EQ(LinesWith(run.out, "nothing is lost"), 1u) << run.out;
  }
}

// Of a killed store and one that was closed: what is damage is mended, and what is none is left.
TEST_F(KilledColdStoreTest, WhatVerifyCallsDamageARepairMends) {
  const std::vector<std::function<void(const std::string&)>> losses = {
      [](const std::string& file) { testing::FlipByte(file, 5); },
      [](const std::string& file) { fs::resize_file(file, fs::file_size(file) / 2); },
      [](const std::string& file) { fs::resize_file(file, 0); },
      [](const std::string& file) { fs::remove(file); }};
  fs::copy(store(), dir_.File("closed"), fs::copy_options::recursive);
  {
    ASSERT_OK_AND_ASSIGN(const auto closed, Database::Open(dir_.File("closed"), Options()));
    ASSERT_OK(closed->Close());
  }
  uint64_t cases = 0, damaged = 0, notes = 0;
  for (const bool closed : {false, true}) {
    size_t next = closed ? 1 : 0;
    for (const auto& [lsn, file] : Segments()) {
      if (!testing::InShare(cases++)) continue;
      SCOPED_TRACE(file + ", loss " + std::to_string(next) + (closed ? ", closed" : ", killed"));
      fs::remove_all(store());
      fs::copy(closed ? dir_.File("closed") : made_dir_->File("store"), store(),
               fs::copy_options::recursive);
      losses[next](file);
      next = (next + 1) % losses.size();
      const CliRun verify = Run("verify");
      const CliRun repair = Run("repair");
      EXPECT_EQ(repair.code, cli::kExitGood) << repair.out << repair.err;
      const bool mends = repair.out != "nothing to repair\n";
      EXPECT_EQ(verify.code == cli::kExitDamage, mends) << verify.out << repair.out;
      damaged += mends ? 1 : 0;
      notes += mends ? 0 : 1;
      if (!mends) continue;
      const CliRun after = Run("verify");
      EXPECT_EQ(after.code, cli::kExitGood) << after.out << repair.out;
      EXPECT_EQ(Run("repair").out, "nothing to repair\n");
    }
  }
  EXPECT_GT(damaged, testing::ShareOf(8));
  if (!testing::kSanitized) {  // As above.
    EXPECT_GT(notes, 2u);
  }
}

TEST_F(KilledColdStoreTest, ALostEndOfTheLogIsSaidOfTheTableThatHasTheColumn) {
  // The last one that the ring has not all of.
  const auto shown = Json::Parse(Run("info", {"--json"}).out);
  ASSERT_TRUE(shown.has_value());
  const auto end = static_cast<Lsn>((*shown)["log"]["end"].integer());
  const auto segments = Segments();
  fs::remove(std::prev(segments.lower_bound(end - Options().ring_bytes))->second);
  const CliRun dry = Run("repair", {"--dry-run"});
  EXPECT_EQ(dry.code, cli::kExitDamage) << dry.out << dry.err;
  EXPECT_GE(LinesWith(dry.out, "LOST: table t: "), 1u) << dry.out;
  EXPECT_EQ(LinesWith(dry.out, "LOST: table number"), 0u) << dry.out;
  const CliRun done = Run("repair", {"--json"});
  ASSERT_EQ(done.code, cli::kExitGood) << done.out << done.err;
  const auto plan = Json::Parse(done.out);
  ASSERT_TRUE(plan.has_value()) << done.out;
  ASSERT_EQ((*plan)["tables"].items().size(), 1u) << done.out;
  const Json& loss = (*plan)["tables"][0];
  EXPECT_EQ(loss["name"].text(), "t");
  EXPECT_FALSE(loss["whole"].truth());
  std::set<TrajectoryId> lost;
  for (const Json& id : loss["trajectories"].items()) {
    lost.insert(static_cast<TrajectoryId>(id.integer()));
  }
  EXPECT_GT(lost.size(), 0u);
  EXPECT_LT(lost.size(), trajectories_ / 2);
  for (const Json& range : loss["unnamed"].items()) {
    const auto last = range["last"].is_null() ? trajectories_
                                              : static_cast<TrajectoryId>(range["last"].integer());
    for (auto id = static_cast<TrajectoryId>(range["first"].integer()); id <= last; ++id) {
      lost.insert(id);
    }
  }

  ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(store(), Options()));
  ASSERT_OK_AND_ASSIGN(const auto table, database->OpenTable("t"));
  for (TrajectoryId id = 1; id <= trajectories_; ++id) {
    const auto rows = table->Read(id, {}, {});
    if (lost.contains(id)) {
      EXPECT_EQ(rows.status().code(), StatusCode::kNotFound) << id;
      continue;
    }
    ASSERT_OK(rows) << id;
    const auto x = (*rows)[0].view().values<uint8_t>();
    EXPECT_EQ(x[static_cast<size_t>(3 * kRowBytes)], Byte(id, 3)) << id;
    const auto text = (*rows)[1].view().values<uint8_t>();
    EXPECT_EQ(std::vector<uint8_t>(text.begin(), text.end()), Text(id)) << id;
  }
}

}  // namespace
}  // namespace geardb
