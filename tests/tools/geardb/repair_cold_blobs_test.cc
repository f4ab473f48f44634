// A blob file of the cold store that was cut short, or whose header or footer is bad, costs the
// trajectories whose values it no longer has, and no others: in geardb repair and in a draw.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/internal/cold_blobs.h"
#include "tests/testing/random_programs.h"
#include "tests/tools/geardb/cold_damage_fixture.h"
#include "tests/tools/geardb/json.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using engine::BlobPlace;
using testing::CliRun;
using testing::LinesWith;

class RepairColdBlobsTest : public testing::ColdDamageStoreTest {
 protected:
  /// The values of pages in blob files, by trajectory.
  std::multimap<TrajectoryId, BlobPlace> Values() const {
    std::multimap<TrajectoryId, BlobPlace> values;
    const auto db = engine::OpenColdDb(store() + "/cold", {.read_only = true}).value();
    for (TrajectoryId id = 1; id <= kTrajectories; ++id) {
      for (uint32_t page = 0; page < kRows / 4; ++page) {
        const auto place = engine::FindBlobPlace(*db, {.table = 1, .trajectory = id, .page = page});
        if (place) values.emplace(id, *place);
      }
    }
    return values;
  }
  /// The trajectories with a value in the file that ends behind `end`.
  std::set<TrajectoryId> Beyond(const std::string& file, uint64_t end) const {
    std::set<TrajectoryId> ids;
    for (const auto& [id, place] : Values()) {
      if (place.path == file && place.offset + place.bytes > end) ids.insert(id);
    }
    return ids;
  }
  std::vector<std::string> SomeBlobsOf(const std::string& family) const {
    std::vector<std::string> blobs;
    for (const std::string& name : SomeFiles(family, ".blob")) {
      blobs.push_back(store() + "/cold" + name);
    }
    return blobs;
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
  /// The file is named, and a repair loses exactly these; what it says before it then does.
  void ExpectLost(const std::string& file, const std::set<TrajectoryId>& expected) {
    const CliRun verify = Run("verify");
    EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out << verify.err;
    EXPECT_EQ(LinesWith(verify.out, "DAMAGE: " + file + " has no good "), 1u) << verify.out;
    EXPECT_EQ(LinesWith(verify.out, "DAMAGE: table frames, trajectory "), expected.size())
        << verify.out;
    const auto before = testing::FilesOf(store());
    const CliRun dry = Run("repair", {"--dry-run", "--json"});
    EXPECT_EQ(dry.code, cli::kExitDamage) << dry.out << dry.err;
    EXPECT_TRUE(testing::FilesOf(store()) == before);
    EXPECT_NE(dry.out.find("header and footer again"), std::string::npos) << dry.out;
    EXPECT_EQ(LostOf(dry), expected);
    const CliRun repair = Run("repair", {"--json"});
    ASSERT_EQ(repair.code, cli::kExitGood) << repair.out << repair.err;
    EXPECT_EQ(LostOf(repair), expected);
    ExpectGood();
    std::set<TrajectoryId> left = Left();
    EXPECT_EQ(left.size(), kTrajectories - expected.size());
    for (const TrajectoryId id : expected) EXPECT_FALSE(left.contains(id)) << id;
  }
};

TEST_F(RepairColdBlobsTest, ACutCostsTheTrajectoriesWithValuesBeyondIt) {
  uint64_t partly = 0, cases = 0;
  for (const std::string& file : SomeBlobsOf("pages")) {
    Restore();
    const uint64_t size = fs::file_size(file);
    const std::set<TrajectoryId> all = Beyond(file, 0);
    std::optional<BlobPlace> middle;
    for (const auto& [id, place] : Values()) {
      if (place.path == file && (!middle || place.offset < size / 2)) middle = place;
    }
    if (!middle) continue;
    const uint64_t end = middle->offset + middle->bytes;
    // In a value, a byte before its end, at it, in the next one's header, in the footer; in the
    // file's header, and all of it.
    for (const uint64_t at : {middle->offset + 5, end - 1, end, end + 3, size - 32, size - 31,
                              size - 1, uint64_t{30}, uint64_t{7}, uint64_t{0}}) {
      if (file != SomeBlobsOf("pages").front() && at != end - 1) continue;
      if (!testing::InShare(cases++)) continue;
      SCOPED_TRACE(file + " at " + std::to_string(at) + " of " + std::to_string(size));
      Restore();
      fs::resize_file(file, at);
      const std::set<TrajectoryId> lost = at == 0 ? all : Beyond(file, at);
      partly += !lost.empty() && lost.size() < all.size() ? 1u : 0u;
      ExpectLost(file, lost);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(partly, 0u);
}

TEST_F(RepairColdBlobsTest, ABadHeaderOrFooterCostsNothing) {
  uint64_t cases = 0;
  for (const char* family : {"pages", "chunks", "copies"}) {
    const std::vector<std::string> files = SomeBlobsOf(family);
    for (const std::string& file : files) {
      // Counted from the end where it is negative; of most files one byte of each.
      const bool all = file == files.front() && family == std::string("pages");
      for (const int64_t place : {0, 9, 13, 29, -32, -20, -1}) {
        if ((!all && place != 13 && place != -1) || !testing::InShare(cases++)) continue;
        Restore();
        const uint64_t at = static_cast<uint64_t>(place) + (place < 0 ? fs::file_size(file) : 0);
        SCOPED_TRACE(file + " at " + std::to_string(at));
        testing::FlipByte(file, at);
        ExpectLost(file, {});
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(RepairColdBlobsTest, ACutFileOfIndexChunksCostsNothing) {
  for (const char* family : {"chunks", "copies"}) {
    for (const std::string& file : SomeBlobsOf(family)) {
      for (const bool empty : {false, true}) {
        SCOPED_TRACE(file + (empty ? ", empty" : ""));
        Restore();
        fs::resize_file(file, empty ? 0 : fs::file_size(file) / 2);
        ExpectLost(file, {});
        if (HasFailure()) return;
      }
    }
  }
}

// What is appended then fills the log several times: compactions meet the files, and values that
// are beyond a cut have no keys any more.
TEST_F(RepairColdBlobsTest, AppendsGoOnAfterwardsAndTheFileLeaves) {
  const std::string file = SomeBlobsOf("pages").front();
  fs::resize_file(file, fs::file_size(file) / 2);
  ASSERT_EQ(Run("repair").code, cli::kExitGood);
  const std::set<TrajectoryId> left = Left();
  {
    const auto store = testing::Must(engine::ColdStore::Open(this->store() + "/cold", {}));
    ASSERT_OK(store->CompactForSpace());
    EXPECT_TRUE(store->damage().empty());
    ASSERT_OK(store->Close());
  }
  EXPECT_FALSE(fs::exists(file));
  ASSERT_OK(Append());
  EXPECT_EQ(Left(), left);
  ExpectGood();
}

// A file that is whole but for its footer says nothing of the value that a draw wants.
TEST_F(RepairColdBlobsTest, ADatabaseThatRunsReadsWhatIsLeftAndRemovesNothing) {
  const std::string file = SomeBlobsOf("pages").front();
  const uint64_t half = fs::file_size(file) / 2;
  fs::resize_file(file, half);
  const std::set<TrajectoryId> lost = Beyond(file, half);
  const std::set<TrajectoryId> all = Beyond(file, 0);
  ASSERT_LT(lost.size(), all.size());
  const auto database = testing::Must(Database::Open(store(), testing::LargeStoreOptions()));
  const auto table = testing::Must(database->OpenTable("frames"));
  for (const TrajectoryId id : all) {
    const auto rows = table->Read(id, {}, {});
    if (lost.contains(id)) {
      EXPECT_STATUS(kCorruption, rows, "trajectory " + std::to_string(id));
      continue;
    }
    ASSERT_OK(rows) << id;
    EXPECT_TRUE(std::ranges::equal((*rows)[0].view().values<uint8_t>(), BytesOf(id))) << id;
  }
  EXPECT_EQ(table->Scan({}).size(), kTrajectories);
}

TEST_F(RepairColdBlobsTest, ABadValueIsNamedByTrajectoryFileAndOffset) {
  const auto values = Values();
  const auto& [id, place] = *values.begin();
  testing::FlipByte(place.path, place.offset + place.bytes / 2);
  const std::string where = place.path + " at offset " + std::to_string(place.offset);
  const CliRun verify = Run("verify");
  EXPECT_EQ(verify.code, cli::kExitDamage);
  EXPECT_EQ(LinesWith(verify.out, "DAMAGE: table frames, trajectory " + std::to_string(id)), 1u)
      << verify.out;
  EXPECT_EQ(LinesWith(verify.out, where), 1u) << verify.out;
  const CliRun dry = Run("repair", {"--dry-run"});
  EXPECT_EQ(LinesWith(dry.out, where), 1u) << dry.out;
}

}  // namespace
}  // namespace geardb
