// Children that add and drop columns, and append by writers of all ages, and die: what is there is
// the table after the last change that was acknowledged, or the one after it.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/testing/drop_frames.h"
#include "tests/testing/killed_child.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

constexpr int64_t kChanges = 60;

/// What parent and child share.
struct SharedColumns {
  std::atomic<int64_t> changes{0};  // Acknowledged, of the columns.
  std::atomic<int64_t> rows{0};     // Likewise, of the only trajectory.
};

/// Whether column "c<k>" is there after so many changes: change 2k adds it, change 2k + 5 drops it.
bool IsThere(int64_t column, int64_t changes) {
  return changes > 2 * column && changes <= 2 * column + 5;
}
/// Every third one is ragged: its rows have one value, or none where nobody gave any.
bool IsRagged(int64_t column) { return column % 3 == 1; }
std::string NameOf(int64_t column) { return "c" + std::to_string(column); }

Status Change(Table* table, int64_t number) {
  if (number % 2 == 0) {
    Column column{.name = NameOf(number / 2), .default_value = static_cast<double>(number)};
    if (IsRagged(number / 2)) {
      column.kind = ColumnKind::kRagged;
      column.expected_rows = 1;
      column.default_value = 0;
    }
    return table->AddColumns({&column, 1});
  }
  if (number < 5)
    return table->DropColumns({}).code() == StatusCode::kInvalidArgument
               ? Status::Ok()
               : Status::Internal("a change of nothing");
  const std::string name = NameOf((number - 5) / 2);
  const std::string_view names[] = {name};
  return table->DropColumns(names);
}

class ColumnsKillTest : public testing::StoreTest {
 protected:
  /// Rows of "action" k and, in each added column, −k − 1.
  static Status AppendRow(Writer* writer, const TableSpec& known, int64_t row) {
    const testing::Rows rows(row, 1);
    std::vector<ColumnValue> values = rows.one();
    const auto given = static_cast<float>(-row - 1);
    for (const Column& column : known.columns) {
      if (column.group.empty()) continue;
      const bool ragged = column.kind == ColumnKind::kRagged;
      values.push_back({column.name, ragged ? TensorView::Of(std::span<const float>(&given, 1))
                                            : TensorView::Scalar(given)});
    }
    return writer->Append(values).status();
  }

  Status Work() {
    GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(dir_->path(), options_));
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable("steps"));
    TableSpec known = table->spec();
    GEARDB_ASSIGN_OR_RETURN(auto writer, table->NewWriter({}));
    if (shared_->rows.load() > 0) GEARDB_RETURN_IF_ERROR(writer->Resume(1));
    for (int64_t k = shared_->changes.load(); k < kChanges; ++k) {
      for (int more = 0; more < 3; ++more) {
        GEARDB_RETURN_IF_ERROR(AppendRow(writer.get(), known, shared_->rows.load()));
        shared_->rows.fetch_add(1);
      }
      if (k % 3 == 1) {
        known = table->spec();
        GEARDB_RETURN_IF_ERROR(writer->Detach().status());
        GEARDB_ASSIGN_OR_RETURN(writer, table->NewWriter({}));
        GEARDB_RETURN_IF_ERROR(writer->Resume(1));
      }
      GEARDB_RETURN_IF_ERROR(Change(table.get(), k));
      shared_->changes.store(k + 1);
    }
    return Status::Ok();
  }

  /// The columns of some number of changes; returns it.
  int64_t FindChanges() const {
    const TableSpec spec = table_->spec();
    for (int64_t changes : {shared_->changes.load(), shared_->changes.load() + 1}) {
      size_t there = 5;
      bool all = true;
      for (int64_t column = 0; column <= kChanges / 2; ++column) {
        if (!IsThere(column, changes)) continue;
        ++there;
        all &= std::any_of(spec.columns.begin(), spec.columns.end(),
                           [&](const Column& known) { return known.name == NameOf(column); });
      }
      if (all && there == spec.columns.size()) return changes;
    }
    return -1;
  }

  void Check() {
    ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("steps"));
    const int64_t changes = FindChanges();
    ASSERT_GE(changes, 0) << "after " << shared_->changes.load() << " changes";
    shared_->changes.store(changes);
    if (table_->Count() == 0) {
      EXPECT_EQ(shared_->rows.load(), 0);
      return;
    }
    const auto rows = static_cast<int64_t>(Numbers(1).size());
    ASSERT_TRUE(rows == shared_->rows.load() || rows == shared_->rows.load() + 1);
    shared_->rows.store(rows);
    EXPECT_EQ(Numbers(1), testing::Count(0, static_cast<int32_t>(rows)));
    for (int64_t column = 0; column <= kChanges / 2; ++column) {
      if (!IsThere(column, changes)) continue;
      const std::string name = NameOf(column);
      const std::string_view names[] = {name};
      ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(1, names, {}));
      const auto given = read[0].view().values<float>();
      std::vector<float> values(given.begin(), given.end());
      if (IsRagged(column)) {
        values.assign(static_cast<size_t>(rows), static_cast<float>(2 * column));
        for (size_t row = 0; row < values.size(); ++row) {
          const auto at = static_cast<size_t>(read[0].offsets[row]);
          if (read[0].offsets[row + 1] > read[0].offsets[row]) values[row] = given[at];
        }
      }
      bool known = false;  // By the writer of a row; by all after it.
      for (int64_t row = 0; row < rows; ++row) {
        const float value = values[static_cast<size_t>(row)];
        known |= value == static_cast<float>(-row - 1);
        ASSERT_EQ(value, known ? static_cast<float>(-row - 1) : static_cast<float>(2 * column))
            << name << ", row " << row;
      }
    }
  }

  testing::SharedWithChildren<SharedColumns> shared_;
  int kills_ = 0;
};

TEST_F(ColumnsKillTest, WhatWasAcknowledgedIsThereAndAtMostOneChangeMore) {
  options_.segment_bytes = 64 << 10;
  options_.ring_bytes = 32 << 10;
  const char* points[] = {"columns", "copy_into_ring", "sync_begun", "synced", "copy_rows"};
  const auto programs = static_cast<int64_t>(testing::ShareOf(8));
  for (int64_t program = 0; program < programs; ++program) {
    SCOPED_TRACE("program " + std::to_string(program));
    shared_->changes.store(0);
    shared_->rows.store(0);
    OpenEmpty();
    Create(testing::StepSpec());
    Close();
    for (int64_t life = 0; life < 40 && shared_->changes.load() < kChanges; ++life) {
      const testing::Death death = {points[(life + program) % 5],
                                    1 + (life * 7 + program * 3) % 11};
      const testing::ChildEnd end = testing::RunChild(death, [this] { return Work(); });
      if (HasFailure()) return;
      kills_ += end == testing::ChildEnd::kAtPoint ? 1 : 0;
      Open();
      Check();
      testing::DropFrames(*database_);
      Check();
      if (HasFailure()) return;
      Close();
    }
  }
  EXPECT_GT(kills_, 5 * programs);
}

}  // namespace
}  // namespace geardb
