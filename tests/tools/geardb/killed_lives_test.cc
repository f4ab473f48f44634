// geardb verify and geardb repair of stores whose owners were killed, at points of random lives: an
// open for writing takes each as it is, so nothing is damaged and nothing is to be repaired.
//
// GEARDB_KILLED_LIVES sets the number of stores, GEARDB_KILLED_LIVES_SEED what becomes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/crash_point.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/killed_child.h"
#include "tests/testing/random_programs.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

using testing::CliRun;
using testing::Random;

constexpr int64_t kStepBytes = 500;
/// More than a quarter of the ring: their records are in parts.
constexpr int64_t kPartsRows = 400;
constexpr uint64_t kLives = 6;
constexpr const char* kEndOfLife = "the end of a life";

DatabaseOptions LifeOptions() {
  DatabaseOptions options;
  options.budgets.frames_bytes = uint64_t{16} << 20;
  options.segment_bytes = uint64_t{64} << 10;
  options.ring_bytes = uint64_t{256} << 10;
  options.log_bytes_max = uint64_t{2} << 20;
  options.background = false;
  return options;
}

TableSpec LifeSpec(const std::string& name, uint64_t trajectories_max) {
  TableSpec spec{.name = name,
                 .columns = {{.name = "x", .dtype = DType::kU8, .shape = {kStepBytes}}},
                 .steps_per_page = 16};
  spec.trajectories_max = trajectories_max;
  return spec;
}

/// What an owner does, with two tables: nothing leaves one of them by itself.
class Life {
 public:
  Life(Database* database, uint64_t seed) : database_(database), random_(seed) {}

  Status Run() {
    GEARDB_ASSIGN_OR_RETURN(tables_[0], database_->OpenOrCreateTable(LifeSpec("full", 12)));
    GEARDB_ASSIGN_OR_RETURN(tables_[1], database_->OpenOrCreateTable(LifeSpec("kept", 0)));
    for (int i = 0; i < 2; ++i) {
      GEARDB_ASSIGN_OR_RETURN(writers_[i], tables_[i]->NewWriter({.lanes = 2}));
    }
    for (uint64_t step = random_.Below(120); step > 0; --step) GEARDB_RETURN_IF_ERROR(Step());
    CrashPoint(kEndOfLife);
    return Status::Ok();
  }

 private:
  Status Step() {
    const size_t at = random_.Below(2);
    switch (random_.Below(8)) {
      case 0:
        return Append(at, 0, 1 + random_.Below(kPartsRows), End::kTerminated);
      case 1:
      case 2:
        return RemoveOne(at);
      case 3:
        return Patch(at);
      case 4:
        return random_.OneIn(4) ? database_->Sync() : Append(at, 1, 3, End::kTruncated);
      case 5:
        return Append(at, 0, 1 + random_.Below(40), End::kTerminated);
      default:
        return Append(at, 1, 1 + random_.Below(9), End::kGo);
    }
  }
  Status Append(size_t at, uint32_t lane, uint64_t rows, End end) {
    const std::vector<uint8_t> x(rows * kStepBytes, static_cast<uint8_t>(random_.Next()));
    return writers_[at]
        ->AppendSteps({{"x", TensorView(x.data(), DType::kU8,
                                        Shape({static_cast<int64_t>(rows), kStepBytes}))}},
                      {.lane = lane, .end = end})
        .status();
  }
  /// Some trajectory that no writer has.
  const TrajectoryRecord* Choose(size_t at) {
    chosen_ = tables_[at]->Scan({});
    std::erase_if(chosen_, [](const TrajectoryRecord& record) {
      return record.state == TrajectoryState::kOpen;
    });
    return chosen_.empty() ? nullptr : &chosen_[random_.Below(chosen_.size())];
  }
  Status RemoveOne(size_t at) {
    const TrajectoryRecord* record = Choose(at);
    if (record == nullptr) return Status::Ok();
    return tables_[at]->Remove(std::span(&record->id, 1));
  }
  Status Patch(size_t at) {
    const TrajectoryRecord* record = Choose(at);
    if (record == nullptr) return Status::Ok();
    const std::vector<uint8_t> x(kStepBytes, static_cast<uint8_t>(random_.Next()));
    const RowSpan row{record->id, record->first_row, 1};
    const ColumnValue value{"x", TensorView(x.data(), DType::kU8, Shape({1, kStepBytes}))};
    return tables_[at]->Patch({&row, 1}, {&value, 1}).status();
  }

  Database* const database_;
  Random random_;
  std::shared_ptr<Table> tables_[2];
  std::unique_ptr<Writer> writers_[2];
  std::vector<TrajectoryRecord> chosen_;
};

/// Lives in `directory` and dies there.
void LiveAndDie(const std::string& directory, const testing::Death& death, uint64_t seed) {
  (void)testing::RunChild(death, [&] {
    GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(directory, LifeOptions()));
    GEARDB_RETURN_IF_ERROR(Life(database.get(), seed).Run());
    return database->Close();
  });
}

/// `geardb verify` and `geardb repair` find nothing wrong, and change nothing.
void ExpectHealthy(const std::string& directory) {
  const auto before = testing::FilesOf(directory);
  if (before.empty()) return;  // It died before there was anything.
  const CliRun verify = testing::RunCli({"verify", directory});
  EXPECT_EQ(verify.code, cli::kExitGood) << verify.out << verify.err;
  const CliRun repair = testing::RunCli({"repair", directory});
  EXPECT_EQ(repair.code, cli::kExitGood) << repair.out << repair.err;
  EXPECT_NE(repair.out.find("nothing to repair"), std::string::npos) << repair.out;
  EXPECT_TRUE(testing::FilesOf(directory) == before);
}

TEST(KilledLivesTest, WhatAnOpenTakesIsNotDamaged) {
  static constexpr const char* kPoints[] = {
      kEndOfLife,      kEndOfLife,       kEndOfLife,       "copy_into_ring", "drain",
      "rotate",        "synced",         "append_evicts",  "removal",        "patch",
      "clean",         "index_chunk",    "image_taken",    "flush",          "recycle",
      "recovery_read", "recovery_drain", "recovery_epoch",
  };
  const uint64_t stores = testing::FromEnvironment("GEARDB_KILLED_LIVES", testing::ShareOf(16));
  const uint64_t seed = testing::FromEnvironment("GEARDB_KILLED_LIVES_SEED", 1);
  for (uint64_t store = 0; store < stores; ++store) {
    const testing::TempDir dir;
    Random random(seed * 1000 + store);
    for (uint64_t life = 0; life < kLives; ++life) {
      const testing::Death death{.point = kPoints[random.Below(std::size(kPoints))],
                                 .hits = static_cast<int64_t>(1 + random.Below(20))};
      const testing::Death late{.point = death.point,
                                .hits = death.point == kEndOfLife ? 1 : death.hits};
      SCOPED_TRACE("store " + std::to_string(store) + ", life " + std::to_string(life) + ": " +
                   death.point);
      LiveAndDie(dir.File("store"), late, random.Next());
      ExpectHealthy(dir.File("store"));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// The log ends in the ring, in a segment that has no file yet.
TEST(KilledLivesTest, WhatOnlyTheRingHoldsIsNotCutOff) {
  const testing::TempDir dir;
  const std::string store = dir.File("store");
  const testing::Death death{.point = kEndOfLife};
  const testing::ChildEnd end = testing::RunChild(death, [&] {
    GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(store, LifeOptions()));
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->CreateTable(LifeSpec("t", 0)));
    GEARDB_ASSIGN_OR_RETURN(const auto writer, table->NewWriter({}));
    const std::vector<uint8_t> x(50 * kStepBytes, 3);
    for (int i = 0; i < 4; ++i) {
      GEARDB_RETURN_IF_ERROR(
          writer
              ->AppendTrajectory({{"x", TensorView(x.data(), DType::kU8, Shape({50, kStepBytes}))}},
                                 {.end = End::kTerminated, .ack = Ack::kLog})
              .status());
    }
    CrashPoint(kEndOfLife);
    return Status::Ok();
  });
  ASSERT_EQ(end, testing::ChildEnd::kAtPoint);
  ExpectHealthy(store);
  ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(store, LifeOptions()));
  EXPECT_GT(database->recovery().ring_records, 0u);
  EXPECT_EQ(database->OpenTable("t").value()->Count(), 4u);
}

}  // namespace
}  // namespace geardb
