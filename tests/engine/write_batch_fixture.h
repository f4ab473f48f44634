// Batches over two tables: "a", which is `table_` of the fixture, and "b" with final rows.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/write_batch.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/index_dump.h"
#include "tests/testing/log_end.h"
#include "tests/testing/store_fixture.h"

namespace geardb {

class WriteBatchTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    TableSpec b = testing::StepSpec(/*final_row=*/true);
    b.name = "b";
    b.priority_tables = {testing::WindowSpec("demos")};
    Create(b, {.lanes = 3});
    b_ = table_;
    b_writer_ = std::move(writer_);
    TableSpec a = testing::StepSpec();
    a.name = "a";
    a.priority_tables = {testing::WindowSpec("per"), testing::WindowSpec("pairs", {.length = 2})};
    Create(a, {.lanes = 3});
  }
  void ReopenBoth() {
    b_.reset();
    b_writer_.reset();
    Reopen();
    OpenAgain("b", {.lanes = 3});
    b_ = table_;
    b_writer_ = std::move(writer_);
    OpenAgain("a", {.lanes = 3});
  }
  std::shared_ptr<PriorityTable> per() { return table_->priority_table("per"); }
  std::shared_ptr<PriorityTable> demos() { return b_->priority_table("demos"); }
  static float Score(const std::shared_ptr<Table>& table, TrajectoryId id) {
    const std::string_view column = "score";
    const auto read = table->Read(id, {&column, 1}, {});
    EXPECT_OK(read);
    return read.ok() ? (*read)[0].view().values<float>()[0] : 0;
  }
  std::string Dump() { return testing::DumpIndex(*testing::CoreOf(*database_)); }
  /// The batch is refused with this, and nothing has changed.
  void ExpectRefused(StatusCode code, const WriteBatch& batch, const std::string& text,
                     const WriteOptions& options = {.admission_timeout_ms = 0}) {
    const std::string before = Dump();
    const Lsn end = database_->Stats().log_end;
    const Result<WriteOutcome> outcome = database_->Write(batch, options);
    EXPECT_EQ(outcome.status().code(), code) << outcome.status().ToString();
    EXPECT_NE(outcome.status().ToString().find(text), std::string::npos)
        << outcome.status().ToString();
    testing::ExpectNothingWritten(*database_, end);
    EXPECT_EQ(Dump(), before);
  }

  std::shared_ptr<Table> b_;
  std::unique_ptr<Writer> b_writer_;
};

}  // namespace geardb
