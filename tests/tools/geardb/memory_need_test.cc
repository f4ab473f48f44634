// What MemoryNeed counts, compared with the smallest budget that a replay really fits.

#include "tools/geardb/memory_need.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/tools/geardb/sample_store.h"

namespace geardb::cli {
namespace {

constexpr uint64_t kSlab = uint64_t{2} << 20;

class MemoryNeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    DatabaseOptions options = testing::SampleOptions();
    options.budgets.frames_bytes = 32 * kSlab;
    options.ring_bytes = 4 << 20;
    options.segment_bytes = 4 << 20;
    ASSERT_OK_AND_ASSIGN(database_, Database::Open(directory_, options));
  }

  /// Pages of one slab quarter: a step has 64 KiB.
  static TableSpec Spec(std::string name, uint64_t steps_max) {
    return {.name = std::move(name),
            .columns = {{.name = "x", .dtype = DType::kU8, .shape = {64 << 10}}},
            .steps_per_page = 8,
            .steps_max = steps_max};
  }
  std::shared_ptr<Table> Make(const TableSpec& spec) {
    auto table = database_->CreateTable(spec);
    EXPECT_OK(table);
    return *table;
  }
  static void Append(Table* table, int64_t steps) {
    const std::vector<uint8_t> x(static_cast<size_t>(steps) << 16, 1);
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    for (int64_t done = 0; done < steps; done += 8) {
      const int64_t count = std::min<int64_t>(8, steps - done);
      ASSERT_OK(writer->AppendSteps({{"x", TensorView(x.data(), DType::kU8, {count, 64 << 10})}},
                                    {.end = done + count == steps ? End::kTerminated : End::kGo}));
    }
  }

  uint64_t Need() {
    EXPECT_OK(database_->Close());
    Invocation invocation;
    invocation.arguments.Set("directory", directory_);
    const auto files = OpenFiles(invocation);
    EXPECT_OK(files);
    const auto need = MemoryNeedOf(*files);
    EXPECT_OK(need);
    return *need;
  }
  Status OpenWith(uint64_t frames_bytes) {
    DatabaseOptions options = testing::SampleOptions();
    options.read_only = true;
    options.resident = true;
    options.budgets.frames_bytes = frames_bytes;
    return Database::Open(directory_, options).status();
  }
  /// The replay of one table fits exactly what was counted.
  void ExpectNeed(uint64_t slabs) {
    EXPECT_EQ(Need(), slabs * kSlab);
    EXPECT_OK(OpenWith(slabs * kSlab));
    if (slabs == 1) return;
    EXPECT_STATUS(kResourceExhausted, OpenWith((slabs - 1) * kSlab), "frame budget");
  }

  testing::TempDir dir_;
  const std::string directory_ = dir_.File("store");
  std::unique_ptr<Database> database_;
};

TEST_F(MemoryNeedTest, AnEmptyDatabaseTakesASlab) { ExpectNeed(1); }

TEST_F(MemoryNeedTest, PagesThatStayAreCounted) {
  const auto table = Make(Spec("t", 0));
  for (int i = 0; i < 3; ++i) Append(table.get(), 20);  // Three pages each.
  ExpectNeed(3);
}

TEST_F(MemoryNeedTest, PagesThatLeaveMakeRoom) {
  const auto table = Make(Spec("t", 64));
  for (int i = 0; i < 40; ++i) Append(table.get(), 16);
  ExpectNeed(2);
}

TEST_F(MemoryNeedTest, TrajectoriesThatWereRemovedCountWhileTheyAreThere) {
  const auto table = Make(Spec("t", 0));
  Append(table.get(), 96);
  const TrajectoryId first = table->Scan({})[0].id;
  ASSERT_OK(table->Remove({&first, 1}));
  Append(table.get(), 16);
  ExpectNeed(3);
}

TEST_F(MemoryNeedTest, TrimmedPagesMakeRoom) {
  const auto table = Make(Spec("t", 0));
  Append(table.get(), 96);
  ASSERT_OK(table->Truncate(table->Scan({})[0].id, 81));
  Append(table.get(), 80);
  ExpectNeed(3);
}

TEST_F(MemoryNeedTest, PagesOfValuesAreCounted) {
  const auto table = Make({.name = "t",
                           .columns = {{.name = "n", .dtype = DType::kU8},
                                       {.name = "blob",
                                        .dtype = DType::kU8,
                                        .kind = ColumnKind::kBlob,
                                        .expected_rows = 1 << 20}},
                           .steps_per_page = 8});
  ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
  const std::vector<uint8_t> megabyte(1 << 20, 1);
  const ColumnValue blob{"blob", TensorView::Of(std::span<const uint8_t>(megabyte))};
  const uint8_t one = 1;
  const ColumnValue step{"n", TensorView(&one, DType::kU8, {})};
  TrajectoryId last = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const Appended appended,
        writer->Append({&step, 1}, {.end = End::kTerminated, .trajectory = {&blob, 1}}));
    last = appended.id;
    // What is replaced, or leaves with its trajectory, makes room.
    ASSERT_OK(table->SetColumns(last, {&blob, 1}));
    if (i % 2 != 0) continue;
    ASSERT_OK(table->Remove({&last, 1}));
  }
  // Ten blobs of half a slab at a time, and one slab of steps.
  ExpectNeed(6);
}

// Their pages were never there at the same time.
TEST_F(MemoryNeedTest, TablesThatWereFullInTurnTakeNoMoreThanOne) {
  for (const char* name : {"a", "b", "c", "d"}) {
    const auto table = Make(Spec(name, 0));
    Append(table.get(), 96);
    const TrajectoryId id = table->Scan({})[0].id;
    ASSERT_OK(table->Remove({&id, 1}));
  }
  ExpectNeed(3);
}

TEST_F(MemoryNeedTest, OfSeveralTablesEnoughIsCounted) {
  const auto first = Make(Spec("a", 64));
  const auto second = Make(Spec("b", 64));
  for (int i = 0; i < 20; ++i) {
    Append(first.get(), 16);
    Append(second.get(), 16);
  }
  ASSERT_OK(database_->DropTable("a"));
  const auto third = Make(Spec("c", 0));
  Append(third.get(), 40);
  EXPECT_OK(OpenWith(Need()));
}

// Groups without rows have their defaults in memory, too, which are not counted.
TEST_F(MemoryNeedTest, MoreThanWasGivenIsAskedFor) {
  const auto table = Make(Spec("t", 0));
  Append(table.get(), 8);
  EXPECT_OK(database_->Close());
  Invocation invocation;
  invocation.arguments.Set("directory", directory_);
  ASSERT_OK_AND_ASSIGN(const auto files, OpenFiles(invocation));
  invocation.arguments.Set("memory", "2097152");
  const Status failure = Status::ResourceExhausted("the frame budget is too small");
  EXPECT_STATUS(kResourceExhausted, ExplainMemory(invocation, files, failure),
                "take 4.0 MiB and do not fit --memory 2MiB: give --memory 4MiB: ");
}

}  // namespace
}  // namespace geardb::cli
