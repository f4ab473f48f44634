// Writers of batches over several tables that are killed with SIGKILL, at random and at named
// points: after each death every table has the same batches, all those that were acknowledged among
// them, and no part of another.
//
// GEARDB_BATCH_KILLS sets the number of children (default 40), GEARDB_KILL_SEED what they do.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>

#include "tests/testing/drop_frames.h"
#include "tests/testing/killed_child.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::FromEnvironment;
using testing::Rows;

constexpr size_t kTables = 3;
/// Each table keeps so many batches: a batch removes what the one so many before it has appended.
constexpr int64_t kKept = 4;

/// What parent and child share.
struct SharedBatches {
  std::atomic<int64_t> begun{0};
  std::atomic<int64_t> acknowledged{0};
};

class WriteBatchKillTest : public ::testing::Test {
 protected:
  WriteBatchKillTest() {
    options_.budgets.frames_bytes = 32 << 20;
    options_.budgets.index_bytes = 32 << 20;
    options_.segment_bytes = 64 << 10;
    options_.ring_bytes = 32 << 10;
    options_.log_bytes_max = 24 * options_.segment_bytes;
  }

  struct Store {
    std::unique_ptr<Database> database;
    std::vector<std::shared_ptr<Table>> tables;
    std::vector<std::unique_ptr<Writer>> writers;
  };
  Status Open(Store* store) {
    GEARDB_ASSIGN_OR_RETURN(store->database, Database::Open(dir_.path(), options_));
    for (size_t t = 0; t < kTables; ++t) {
      TableSpec spec = testing::StepSpec();
      spec.name = "t" + std::to_string(t);
      spec.steps_per_page = 32;
      spec.priority_tables = {testing::WindowSpec("per")};
      GEARDB_ASSIGN_OR_RETURN(auto table, store->database->OpenOrCreateTable(spec));
      GEARDB_ASSIGN_OR_RETURN(auto writer, table->NewWriter({}));
      store->tables.push_back(std::move(table));
      store->writers.push_back(std::move(writer));
    }
    return Status::Ok();
  }
  /// Numbers of the batches in a table, by trajectory: "action" of its first row.
  static Result<std::map<int64_t, TrajectoryId>> BatchesIn(const Table& table) {
    std::map<int64_t, TrajectoryId> batches;
    for (const TrajectoryRecord& record : table.Scan({})) {
      const std::string_view action = "action";
      GEARDB_ASSIGN_OR_RETURN(const auto rows, table.Read(record.id, {&action, 1}, {}));
      const auto numbers = rows[0].view().values<int32_t>();
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] != numbers[0] + static_cast<int32_t>(i)) {
          return Status::Internal("trajectory ", record.id, " has other rows than its batch");
        }
      }
      batches[numbers[0] / 10'000] = record.id;
    }
    return batches;
  }
  /// Batch `number`, of which one in three takes parts.
  Status Write(Store* store, int64_t number) {
    const int64_t count = number % 3 == 0 ? 200 : 1 + number % 40;
    const Rows rows(10'000 * number, count);
    const float priority[] = {static_cast<float>(number + 1)};
    WriteBatch batch;
    std::vector<RowId> items(kTables);
    for (size_t t = 0; t < kTables; ++t) {
      batch.AppendTrajectory(store->writers[t].get(), rows.many(), {.end = End::kTerminated});
      GEARDB_ASSIGN_OR_RETURN(const auto batches, BatchesIn(*store->tables[t]));
      const auto per = store->tables[t]->priority_table("per");
      if (!batches.empty()) {
        items[t] = {batches.rbegin()->second, 0};
        batch.Set(per, {&items[t], 1}, priority);
      }
      const auto old = batches.find(number - kKept);
      if (old != batches.end()) batch.Remove(store->tables[t], {&old->second, 1});
    }
    const std::vector<std::byte> blob(static_cast<size_t>(number % 50));
    if (number % 2 == 0) batch.WriteTag("batch", blob);
    return store->database->Write(batch).status();
  }

  /// Goes on with one batch after the other, until it fails.
  Status Work() {
    Store store;
    GEARDB_RETURN_IF_ERROR(Open(&store));
    for (;;) {
      const int64_t number = shared_->begun.load();
      shared_->begun.store(number + 1);
      GEARDB_RETURN_IF_ERROR(Write(&store, number));
      shared_->acknowledged.store(number + 1);
    }
  }

  /// Without a point it dies once so many batches have begun.
  void KillAWriter(const testing::Death& death) {
    const int64_t until = shared_->begun.load() + (death.point == nullptr ? death.hits : 400);
    const testing::ChildEnd end = testing::RunChild(
        death, [this] { return Work(); }, [&] { return shared_->begun.load() >= until; });
    if (end == testing::ChildEnd::kAtPoint) ++deaths_[death.point];
  }

  void Verify() {
    for (int opened = 0; opened < 2; ++opened) {
      Store store;
      ASSERT_OK(Open(&store));
      if (opened == 1) testing::DropFrames(*store.database);
      ASSERT_OK_AND_ASSIGN(const auto batches, BatchesIn(*store.tables[0]));
      const int64_t last = batches.empty() ? -1 : batches.rbegin()->first;
      // Of batches that had begun, one at most was not acknowledged.
      EXPECT_GE(last, shared_->acknowledged.load() - 1);
      EXPECT_LT(last, shared_->begun.load());
      for (size_t t = 0; t < kTables; ++t) {
        SCOPED_TRACE("table " + std::to_string(t));
        ASSERT_OK_AND_ASSIGN(const auto there, BatchesIn(*store.tables[t]));
        EXPECT_EQ(there, batches) << "ids and numbers of its batches";
        EXPECT_EQ(there.size(), static_cast<size_t>(std::min(last + 1, kKept)));
        const auto per = store.tables[t]->priority_table("per");
        EXPECT_EQ(per->MaxPriority(), static_cast<float>(last < 1 ? 1 : last + 1));
      }
      const auto tag = store.database->LastTag("batch");
      if (last >= 0) {
        ASSERT_OK(tag);
        EXPECT_EQ(tag->blob.size(), static_cast<size_t>((last - last % 2) % 50));
      }
      shared_->begun.store(last + 1);
      shared_->acknowledged.store(last + 1);
    }
  }

  testing::TempDir dir_;
  DatabaseOptions options_;
  testing::SharedWithChildren<SharedBatches> shared_;
  std::map<std::string, uint64_t> deaths_;
};

TEST_F(WriteBatchKillTest, ABatchIsInAllTablesOrInNone) {
  const char* const points[] = {nullptr, "write_batch", "copy_into_ring", "copy_rows",
                                "drain", "write_batch", "clean"};
  const uint64_t kills = FromEnvironment("GEARDB_BATCH_KILLS", testing::ShareOf(56));
  std::mt19937_64 random(FromEnvironment("GEARDB_KILL_SEED", 1));
  for (uint64_t round = 0; round < kills; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const char* const point = points[round % std::size(points)];
    const bool rare = point != nullptr && std::strcmp(point, "clean") == 0;
    KillAWriter({point, static_cast<int64_t>(1 + random() % (rare ? 2 : 60))});
    if (HasFailure()) return;
    Verify();
    if (HasFailure()) return;
  }
  for (const char* const point : points) {
    if (point == nullptr || kills < std::size(points)) continue;
    std::printf("%8llu kills at %s\n", static_cast<unsigned long long>(deaths_[point]), point);
    EXPECT_GT(deaths_[point], 0u) << "no child died at " << point;
  }
}

}  // namespace
}  // namespace geardb
