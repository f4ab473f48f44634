// A bad page with values of any length is said of the trajectory that they are of: the table that
// holds them, and its own ids, are nobody's to know.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/internal/cold_blobs.h"
#include "engine/internal/cold_db.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tests/tools/geardb/large_store.h"
#include "tests/tools/geardb/must.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

using testing::CliRun;
using testing::LinesWith;
using testing::Must;

constexpr TrajectoryId kTrajectories = 900;
constexpr int64_t kSteps = 4;
constexpr uint64_t kTextBytes = 20000;
/// Others have no text, and so no trajectory in the table of the texts.
constexpr TrajectoryId kTextOfEach = 3;

void MakeTexts(const std::string& directory) {
  const auto database = Must(Database::Open(directory, testing::LargeStoreOptions()));
  TableSpec spec{.name = "talks"};
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {2048}},
                  {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged}};
  spec.steps_per_page = 4;
  const auto table = Must(database->CreateTable(spec));
  const auto writer = Must(table->NewWriter({}));
  std::mt19937_64 random(1);
  for (TrajectoryId id = 1; id <= kTrajectories; ++id) {
    std::vector<uint8_t> x(size_t{kSteps} * 2048), text(id % kTextOfEach == 0 ? kTextBytes : 0);
    for (uint8_t& byte : x) byte = static_cast<uint8_t>(random());
    for (uint8_t& byte : text) byte = static_cast<uint8_t>(random());
    // All of it is the last step's.
    const std::vector<uint64_t> offsets = {0, 0, 0, 0, text.size()};
    std::vector<ColumnValue> values = {{"x", TensorView::Of<uint8_t>(x, {kSteps, 2048})}};
    values.push_back({"text", TensorView::Of<uint8_t>(text), offsets});
    Must(writer->AppendTrajectory(values, {.end = End::kTerminated}));
  }
  ASSERT_OK(database->Close());
}

TEST(CompanionDamageTest, ABadPageOfValuesIsSaidOfTheirTrajectory) {
  const testing::TempDir dir;
  const std::string store = dir.File("store");
  MakeTexts(store);
  constexpr TrajectoryId kOfTexts = 7;
  {
    const auto db = Must(engine::OpenColdDb(store + "/cold", {.read_only = true}));
    const auto place = engine::FindBlobPlace(*db, {.table = 2, .trajectory = kOfTexts, .page = 0});
    ASSERT_TRUE(place.has_value());
    testing::FlipByte(place->path, place->offset + place->bytes / 2);
  }
  const std::string id = std::to_string(kOfTexts * kTextOfEach);
  const std::string page = "page 0 of trajectory " + id + " of table 'talks', column 'text'";
  const CliRun verify = testing::RunCli({"verify", store});
  EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out;
  EXPECT_EQ(LinesWith(verify.out, "DAMAGE: table talks, trajectory " + id + ": "), 1u)
      << verify.out;
  EXPECT_EQ(LinesWith(verify.out, page), 1u) << verify.out;
  const CliRun repair = testing::RunCli({"repair", store});
  EXPECT_EQ(repair.code, cli::kExitGood) << repair.out << repair.err;
  EXPECT_EQ(LinesWith(repair.out, "DAMAGE: " + page), 1u) << repair.out;
  EXPECT_EQ(LinesWith(repair.out, "LOST: table talks: 1 trajectory: " + id), 1u) << repair.out;
  EXPECT_EQ(testing::RunCli({"verify", store}).code, cli::kExitGood);
}

}  // namespace
}  // namespace geardb
