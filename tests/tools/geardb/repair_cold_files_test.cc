// An SST file of the cold store that cannot be read costs the pages that it has itself, and no
// others, though the reads of all others pass through it: neither in a draw nor in geardb repair.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/internal/cold_db.h"
#include "tests/testing/files.h"
#include "tests/testing/random_programs.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tests/tools/geardb/large_store_fixture.h"
#include "tests/tools/geardb/must.h"
#include "tests/tools/geardb/sst_file.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using engine::ColdPageKey;
using engine::ColdRead;
using engine::ColdStore;
using testing::CliRun;
using testing::Must;

constexpr uint32_t kRowsOfPage = 4;
constexpr ColdPageKey kChanged{.table = 1, .trajectory = 13, .page = 0};
constexpr uint64_t kRowOfFrameBytes = 4096;

const PageLayout& LayoutOfFrames() {
  static const std::vector<uint64_t> kColumns = {kRowOfFrameBytes};
  static const PageLayout layout(kColumns, kRowsOfPage);
  return layout;
}

/// What happens to a file of which then nothing can be read.
struct FileLoss {
  const char* name;
  std::function<void(const std::string& path)> happen;
};
const std::vector<FileLoss>& FileLosses() {
  static const std::vector<FileLoss> losses = {
      {"truncated", [](const std::string& path) { fs::resize_file(path, 0); }},
      {"overwritten",
       [](const std::string& path) {
         testing::WriteBytes(path, std::string(fs::file_size(path), '\0'));
       }},
      {"deleted", [](const std::string& path) { fs::remove(path); }}};
  return losses;
}

class RepairColdFilesTest : public testing::LargeStoreTest {
 protected:
  /// Loses a file of the store, as it is now, in each way.
  void AfterEachLossOf(const std::string& file, const std::function<void()>& expect) {
    fs::copy(store(), dir_.File("with"), fs::copy_options::recursive);
    for (const FileLoss& loss : FileLosses()) {
      SCOPED_TRACE(loss.name);
      Restore(dir_.File("with"));
      loss.happen(file);
      expect();
    }
  }
  std::string cold() const { return store() + "/cold"; }

  /// The SST files of pages, with the trajectories of the values in each.
  std::map<std::string, std::set<TrajectoryId>> PageFiles() const {
    std::map<std::string, std::set<TrajectoryId>> files;
    const auto db = Must(engine::OpenColdDb(cold(), {.read_only = true}));
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    for (const auto& table : tables) {
      if (table.column_family_name != "pages") continue;
      const std::string path = cold() + table.name;
      files[path] = testing::TrajectoriesIn(path);
    }
    return files;
  }
  /// What goes into a file: values by key, or deletions.
  using Entries = std::map<ColdPageKey, std::optional<std::string>>;
  /// Puts these into the cold store, in a file of their own, whose path is returned. It has the
  /// values itself.
  std::string AddFile(const Entries& entries) const {
    const auto before = PageFiles();
    {
      const auto db = Must(engine::OpenColdDb(cold(), {.blob_bytes_min = uint64_t{1} << 30}));
      // A compaction would come at once for a file of deletions.
      EXPECT_TRUE(db->db->SetOptions(db->pages, {{"disable_auto_compactions", "true"}}).ok());
      rocksdb::WriteBatch batch;
      for (const auto& [key, value] : entries) {
        const std::string bytes = engine::EncodeColdKey(key);
        const rocksdb::Status put =
            value ? batch.Put(db->pages, bytes, *value) : batch.Delete(db->pages, bytes);
        EXPECT_TRUE(put.ok());
      }
      Must(db->Write(&batch));
      EXPECT_TRUE(db->db->Flush({}, db->families()).ok());
      Must(db->Close());
    }
    // The last one: an open may have begun a compaction before.
    std::string added;
    for (const auto& [path, ids] : PageFiles()) {
      if (!before.contains(path)) added = path;
    }
    EXPECT_NE(added, "");
    return added;
  }
  /// A file of deletions alone, from the first key to the last.
  std::string AddDeletions() const {
    Entries entries;
    for (TrajectoryId id = 1; id <= made_.trajectories; id += 20) {
      entries[{.table = 1, .trajectory = id, .page = 1000}] = std::nullopt;
    }
    entries[{.table = 1, .trajectory = 0, .page = 0}] = std::nullopt;
    entries[{.table = 1, .trajectory = made_.trajectories + 1, .page = 0}] = std::nullopt;
    const std::string file = AddFile(entries);
    EXPECT_TRUE(PageFiles()[file].empty());
    return file;
  }
  /// An older version of the page kChanged, and above it the one that is asked for, which has the
  /// file that is returned to itself.
  std::string AddVersions() const {
    std::vector<std::byte> frame(LayoutOfFrames().frame_bytes());
    const std::vector<std::byte> other(frame.size(), std::byte{0x33});
    ColdRead now = {
        .key = kChanged, .layout = &LayoutOfFrames(), .frame = frame, .header = {}, .status = {}};
    Must(Must(ColdStore::Open(cold(), {.read_only = true}))->ReadPages({&now, 1}));
    EXPECT_EQ(now.header.rows, kRowsOfPage);
    engine::ColdPageHeader before = now.header;
    if (before.lsn != kNoLsn) --before.lsn;
    std::string older, newer;
    Must(engine::EncodeColdPage(kChanged, {&LayoutOfFrames(), other, before, {}}, &older));
    Must(engine::EncodeColdPage(kChanged, {&LayoutOfFrames(), frame, now.header, {}}, &newer));
    AddFile({{kChanged, older}});
    std::string newest = AddFile({{kChanged, newer}});
    EXPECT_EQ(PageFiles()[newest], std::set<TrajectoryId>{kChanged.trajectory});
    return newest;
  }
  /// Makes the cold store one of format 3, all of whose pages are written anew.
  void ForgetLsns() const {
    const auto db = Must(engine::OpenColdDb(cold(), {}));
    rocksdb::WriteBatch batch;
    std::vector<std::byte> frame(LayoutOfFrames().frame_bytes());
    std::unique_ptr<rocksdb::Iterator> at(db->db->NewIterator({}, db->pages));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      const auto key = engine::DecodeColdPageKey(engine::ViewOf(at->key()));
      if (!key) continue;
      auto header =
          Must(engine::DecodeColdPage(*key, engine::ViewOf(at->value()), LayoutOfFrames(), frame));
      EXPECT_NE(header.lsn, kNoLsn);
      header.lsn = kNoLsn;
      std::string value;
      Must(engine::EncodeColdPage(*key, {&LayoutOfFrames(), frame, header, {}}, &value));
      EXPECT_TRUE(batch.Put(db->pages, at->key(), value).ok());
    }
    at.reset();
    db->format = engine::kColdFormatWithoutLsns;
    EXPECT_TRUE(PutColdOwn(*db, Must(ReadColdOwn(*db)), &batch).ok());
    Must(db->Write(&batch));
    EXPECT_TRUE(db->db->Flush({}, db->families()).ok());
    Must(db->Close());
  }
  CliRun Run(const std::string& command, const std::vector<std::string>& words = {}) const {
    std::vector<std::string> all = {command, store(), "--memory", "64MB"};
    all.insert(all.end(), words.begin(), words.end());
    return testing::RunCli(all);
  }
  /// Draws, all of which go well: nothing is removed.
  void ExpectDraws() {
    const auto database = Must(Database::Open(store(), testing::LargeStoreOptions()));
    const auto table = Must(database->OpenTable("frames"));
    const uint64_t count = table->Scan({}).size();
    const auto priorities = Must(table->OpenPriorityTable("all"));
    const auto sampler =
        Must(priorities->NewSampler({.batch = 64, .views = {{.column = "frame"}}}));
    for (int draw = 0; draw < 10; ++draw) EXPECT_OK(sampler->Next());
    EXPECT_EQ(table->Scan({}).size(), count);
  }
  /// Repairs it: these are lost, the dry run says so, and all others are there byte for byte.
  void ExpectRepairLoses(const std::function<void(const std::set<TrajectoryId>&)>& check) {
    const CliRun dry = Run("repair", {"--dry-run", "--json"});
    EXPECT_EQ(dry.code, cli::kExitDamage) << dry.out << dry.err;
    const CliRun repair = Run("repair", {"--json"});
    ASSERT_EQ(repair.code, cli::kExitGood) << repair.out << repair.err;
    EXPECT_EQ(LostOf(dry), LostOf(repair));
    check(LostOf(repair));
    const CliRun verify = Run("verify");
    EXPECT_EQ(verify.code, cli::kExitGood) << verify.out << verify.err;
    EXPECT_EQ(Run("repair").out, "nothing to repair\n");
    ExpectAllBut(LostOf(repair));
  }
  static std::set<TrajectoryId> LostOf(const CliRun& run) {
    std::set<TrajectoryId> lost;
    const auto json = testing::Json::Parse(run.out);
    EXPECT_TRUE(json.has_value()) << run.out << run.err;
    if (!json) return lost;
    for (const testing::Json& table : (*json)["tables"].items()) {
      for (const testing::Json& id : table["trajectories"].items()) {
        lost.insert(static_cast<TrajectoryId>(id.integer()));
      }
    }
    return lost;
  }
  void ExpectAllBut(const std::set<TrajectoryId>& lost) const {
    const auto database = Must(Database::Open(store(), testing::LargeStoreOptions()));
    const auto table = Must(database->OpenTable("frames"));
    for (TrajectoryId id = 1; id <= made_.trajectories; ++id) {
      const auto rows = table->Read(id, {}, {});
      if (lost.contains(id)) {
        EXPECT_EQ(rows.status().code(), StatusCode::kNotFound) << id;
        continue;
      }
      ASSERT_OK(rows) << id;
      ASSERT_TRUE(testing::HasBytes((*rows)[0].view(), testing::LargeStoreBytes(id))) << id;
    }
    ASSERT_OK(database->Close());
  }
};

TEST_F(RepairColdFilesTest, AFileOfDeletionsAloneCostsNothing) {
  const std::string file = AddDeletions();
  AfterEachLossOf(file, [&] {
    ExpectDraws();
    ExpectRepairLoses(
        [](const std::set<TrajectoryId>& lost) { EXPECT_EQ(lost, std::set<TrajectoryId>{}); });
  });
}

TEST_F(RepairColdFilesTest, AFileWithABadEndCostsNothingNotEvenBeforeItsRepair) {
  uint64_t files = 0;
  for (const auto& of_pages : PageFiles()) {
    if (!testing::InShare(files++)) continue;
    const std::string& file = of_pages.first;
    SCOPED_TRACE(file);
    const auto flip = [&] { testing::FlipByte(file, fs::file_size(file) - 3); };
    flip();
    ExpectAllBut({});
    Restore();
    flip();
    const CliRun verify = Run("verify");
    EXPECT_EQ(verify.code, cli::kExitDamage);
    EXPECT_NE(verify.out.find(file + " has a bad tail"), std::string::npos) << verify.out;
    const CliRun repair = Run("repair");
    EXPECT_EQ(repair.code, cli::kExitGood) << repair.err;
    EXPECT_NE(repair.out.find("nothing is lost"), std::string::npos) << repair.out;
    EXPECT_EQ(Run("verify").code, cli::kExitGood);
    ExpectAllBut({});
    Restore();
    if (HasFailure()) return;
  }
}

// Frames here are so alike that most pages are small, and lie in SST files.
TEST_F(RepairColdFilesTest, AFileOfPagesCostsTheTrajectoriesInIt) {
  uint64_t files = 0;
  for (const auto& file : PageFiles()) {
    for (const FileLoss& loss : FileLosses()) {
      if (file.second.empty() || !testing::InShare(files++)) continue;
      SCOPED_TRACE(file.first + ": " + loss.name);
      Restore();
      loss.happen(file.first);
      ExpectRepairLoses([&](const std::set<TrajectoryId>& lost) {
        EXPECT_FALSE(lost.empty());
        EXPECT_TRUE(std::ranges::includes(file.second, lost));
      });
    }
  }
  EXPECT_GT(files, 0u);
}

// A queue stood before the first of them, and others failed nearly always; filters that were set,
// priority tables that were made, and batches that had been drawn ahead showed them again.
TEST_F(RepairColdFilesTest, DrawsMeetWhatALostFileHadOnce) {
  std::set<std::string> said;
  for (const auto& [file, ids] : PageFiles()) {
    SCOPED_TRACE(file);
    if (ids.empty() || !said.empty()) continue;
    Restore();
    fs::remove(file);
    const auto database = Must(Database::Open(store(), testing::LargeStoreOptions()));
    const auto table = Must(database->OpenTable("frames"));
    const uint64_t count = table->Scan({}).size();
    const auto draw_all = [&](const char* name) {
      const auto sampler =
          Must(Must(table->OpenPriorityTable(name))
                   ->NewSampler({.batch = 4, .views = {{.column = "frame"}}, .prefetch = 3}));
      int in_a_row = 0;
      for (int draw = 0; draw < 20'000 && in_a_row < 100; ++draw) {
        const auto batch = sampler->Next();
        in_a_row = batch.ok() ? in_a_row + 1 : 0;
        if (batch.ok()) continue;
        EXPECT_STATUS(kCorruption, batch, "the trajectory is not drawn until the next open");
        EXPECT_TRUE(said.insert(batch.status().ToString()).second) << batch.status();
      }
      EXPECT_EQ(in_a_row, 100);
    };
    Must(table->CreatePriorityTable({.name = "first", .selector = SelectorKind::kFifo}));
    draw_all("first");
    draw_all("all");
    Must(Must(table->OpenPriorityTable("first"))->SetFilter("length > 0"));
    draw_all("first");
    Must(table->CreatePriorityTable({.name = "last", .selector = SelectorKind::kLifo}));
    draw_all("last");
    EXPECT_LE(said.size(), ids.size());
    EXPECT_EQ(table->Scan({}).size(), count);  // The file may come back.
  }
  EXPECT_GT(said.size(), 0u);
}

TEST_F(RepairColdFilesTest, AnOlderVersionThatComesUpIsNotTakenForThePage) {
  const std::string newest = AddVersions();
  AfterEachLossOf(newest, [&] {
    ExpectRepairLoses([](const std::set<TrajectoryId>& lost) {
      EXPECT_EQ(lost, std::set<TrajectoryId>{kChanged.trajectory});
    });
  });
}

// Nothing says which version a page is: what reads through the file fail for is removed first.
TEST_F(RepairColdFilesTest, InAStoreWithoutLsnsNoOlderVersionIsTakenForAPageEither) {
  ForgetLsns();
  const std::string newest = AddVersions();
  AfterEachLossOf(newest, [&] {
    ExpectRepairLoses([](const std::set<TrajectoryId>& lost) {
      EXPECT_TRUE(lost.contains(kChanged.trajectory));
    });
  });
}

// A bad block is in the way of pages that it does not have, too: of those behind its filter.
TEST_F(RepairColdFilesTest, ABadBlockOfDeletionsCostsNothing) {
  const std::string file = AddDeletions();
  testing::FlipByte(file, 5);
  ExpectRepairLoses(
      [](const std::set<TrajectoryId>& lost) { EXPECT_EQ(lost, std::set<TrajectoryId>{}); });
}

// Rows of it are appended behind the image, so that an open needs those that came before.
TEST_F(RepairColdFilesTest, AnOpenThatNeedsAPageBehindABadFileFindsIt) {
  const std::vector<uint8_t> row(kRowOfFrameBytes, 7);
  const TensorView one(row.data(), DType::kU8, Shape({kRowOfFrameBytes}));
  TrajectoryId open = 0;
  {
    const auto database = Must(Database::Open(store(), testing::LargeStoreOptions()));
    const auto table = Must(database->OpenTable("frames"));
    const auto goes_on = Must(table->NewWriter({}));
    open = Must(goes_on->Append({{"frame", one}})).id;
    const auto others = Must(table->NewWriter({}));
    const std::vector<uint8_t> many(kRowOfFrameBytes * 4, 9);
    const TensorView rows(many.data(), DType::kU8, Shape({4, kRowOfFrameBytes}));
    for (int i = 0; i < 1000; ++i) {
      Must(others->AppendTrajectory({{"frame", rows}}, {.end = End::kTerminated}));
    }
    Must(goes_on->Append({{"frame", one}}));
    ASSERT_OK(database->Close());
  }
  const std::string file = AddDeletions();
  fs::resize_file(file, 0);
  const auto expect_it = [&] {
    const auto database = Must(Database::Open(store(), testing::LargeStoreOptions()));
    const auto read = Must(Must(database->OpenTable("frames"))->Read(open, {}, {}));
    EXPECT_TRUE(std::ranges::equal(read[0].view().values<uint8_t>(),
                                   std::vector<uint8_t>(2 * kRowOfFrameBytes, 7)));
  };
  expect_it();
  ExpectRepairLoses([](const std::set<TrajectoryId>& lost) { EXPECT_TRUE(lost.empty()); });
  expect_it();
}

}  // namespace
}  // namespace geardb
