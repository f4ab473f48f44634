// Children that append rows with ragged text, set a blob anew and trim, and die: what is there is
// what was acknowledged, or that and what was under way, with its values whole.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/engine/values_fixture.h"
#include "tests/testing/killed_child.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::Bytes;
using testing::ValueRowsOf;
using testing::ValuesSpec;

constexpr int64_t kRows = 150;

/// What parent and child share.
struct SharedValues {
  std::atomic<int64_t> rows{0};     // Acknowledged, of the only trajectory.
  std::atomic<int64_t> prompts{0};  // Likewise, how often the blob was set.
};

Bytes TextOf(int64_t row) {
  return Bytes(static_cast<size_t>(row * 37 % 90), static_cast<uint8_t>(row));
}
/// What the blob is once it was set so many times; every fifth time empty.
Bytes PromptOf(int64_t number) {
  return Bytes(static_cast<size_t>(number % 5 == 0 ? 0 : 1 + number * 791 % 6000),
               static_cast<uint8_t>(number));
}

class ValuesKillTest : public testing::StoreTest {
 protected:
  /// Of the only trajectory, which may have another id in each program; 0: there is none.
  static TrajectoryId IdOf(const Table& table) {
    const auto records = table.Scan(ScanOptions{});
    return records.empty() ? 0 : records[0].id;
  }

  Status Work() {
    GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(dir_->path(), options_));
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable("values"));
    GEARDB_ASSIGN_OR_RETURN(const auto writer, table->NewWriter({}));
    TrajectoryId id = IdOf(*table);
    if (id != 0) GEARDB_RETURN_IF_ERROR(writer->Resume(id));
    while (shared_->rows.load() < kRows) {
      const int64_t row = shared_->rows.load();
      const ValueRowsOf rows({{.text = TextOf(row)}}, row, true, false, false);
      GEARDB_ASSIGN_OR_RETURN(const Appended appended, writer->Append(rows.values()));
      id = appended.id;
      shared_->rows.store(row + 1);
      if (row % 3 == 0) {
        const Bytes prompt = PromptOf(shared_->prompts.load() + 1);
        const std::vector<ColumnValue> values = {
            {"prompt", TensorView::Of(std::span<const uint8_t>(prompt))}};
        GEARDB_RETURN_IF_ERROR(table->SetColumns(id, values));
        shared_->prompts.fetch_add(1);
      }
      if (row % 8 == 7 && row > 20) GEARDB_RETURN_IF_ERROR(table->Truncate(id, row - 16));
    }
    return Status::Ok();
  }

  void Check() {
    ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("values"));
    if (table_->Count() == 0) {
      EXPECT_EQ(shared_->rows.load(), 0);
      return;
    }
    ASSERT_OK_AND_ASSIGN(const TrajectoryRecord record, table_->Find(IdOf(*table_)));
    ASSERT_TRUE(record.rows_end == shared_->rows.load() ||
                record.rows_end == shared_->rows.load() + 1);
    shared_->rows.store(record.rows_end);
    const std::vector<std::string_view> columns = {"text", "prompt"};
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(record.id, columns, {}));
    const auto text = read[0].view().values<uint8_t>();
    const auto& offsets = read[0].offsets;
    ASSERT_EQ(static_cast<int64_t>(offsets.size()) - 1, record.rows_end - record.first_row);
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      ASSERT_EQ(Bytes(text.begin() + offsets[i], text.begin() + offsets[i + 1]),
                TextOf(record.first_row + static_cast<int64_t>(i)));
    }
    const auto prompt = read[1].view().values<uint8_t>();
    const Bytes found(prompt.begin(), prompt.end());
    const int64_t prompts = shared_->prompts.load();
    if (found != (prompts == 0 ? Bytes() : PromptOf(prompts))) {
      ASSERT_EQ(found, PromptOf(prompts + 1)) << "set " << prompts << " times";
      shared_->prompts.store(prompts + 1);
    }
  }

  testing::SharedWithChildren<SharedValues> shared_;
  int kills_ = 0;
};

TEST_F(ValuesKillTest, ValuesAreWholeOrNotThere) {
  options_.segment_bytes = 128 << 10;
  options_.ring_bytes = 128 << 10;
  TableSpec spec = ValuesSpec(false);
  std::erase_if(spec.columns, [](const Column& column) { return column.name == "big"; });
  for (Column& column : spec.columns) column.expected_rows *= 10;
  const char* points[] = {"write_batch", "copy_into_ring", "copy_rows"};
  const auto programs = static_cast<int64_t>(testing::ShareOf(4));
  for (int64_t program = 0; program < programs; ++program) {
    SCOPED_TRACE("program " + std::to_string(program));
    shared_->rows.store(0);
    shared_->prompts.store(0);
    OpenEmpty();
    Create(spec);
    Close();
    for (int64_t life = 0; life < 40 && shared_->rows.load() < kRows; ++life) {
      const testing::Death death = {points[(life + program) % 3],
                                    1 + (life * 7 + program * 3) % 17};
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

// Children that give all values of a late ragged column others, again and again: the values of one
// call are there, those of the last that was acknowledged or of the one after it.
class ValuesPatchKillTest : public ValuesKillTest {
 protected:
  static constexpr int64_t kSteps = 10;
  static constexpr int64_t kPatches = 120;

  /// Of a row, after so many patches.
  static Bytes ValueOf(int64_t patches, int64_t row) {
    return patches == 0 ? Bytes()
                        : Bytes(static_cast<size_t>((patches * 31 + row * 7) % 60),
                                static_cast<uint8_t>(patches + row));
  }
  Status Patch() {
    GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(dir_->path(), options_));
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable("values"));
    while (shared_->rows.load() < kPatches) {
      const int64_t next = shared_->rows.load() + 1;
      Bytes values;
      std::vector<uint64_t> offsets = {0};
      for (int64_t row = 0; row < kSteps; ++row) {
        const Bytes value = ValueOf(next, row);
        values.insert(values.end(), value.begin(), value.end());
        offsets.push_back(values.size());
      }
      const RowSpan span{1, 0, kSteps};
      const ColumnValue given{"late", TensorView::Of(std::span<const uint8_t>(values)), offsets};
      GEARDB_RETURN_IF_ERROR(table->Patch({&span, 1}, {&given, 1}).status());
      shared_->rows.store(next);
    }
    return Status::Ok();
  }
  void CheckPatched() {
    ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("values"));
    const std::string_view name = "late";
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(1, {&name, 1}, {}));
    const auto found = read[0].view().values<uint8_t>();
    const auto& offsets = read[0].offsets;
    ASSERT_EQ(offsets.size(), size_t{kSteps + 1});
    const auto is = [&](int64_t patches) {
      bool all = true;
      for (int64_t row = 0; row < kSteps; ++row) {
        const auto at = static_cast<size_t>(row);
        all &= Bytes(found.begin() + offsets[at], found.begin() + offsets[at + 1]) ==
               ValueOf(patches, row);
      }
      return all;
    };
    const int64_t acknowledged = shared_->rows.load();
    ASSERT_TRUE(is(acknowledged) || is(acknowledged + 1)) << acknowledged;
    if (!is(acknowledged)) shared_->rows.store(acknowledged + 1);
    EXPECT_LT(table_->Stats().frame_bytes, uint64_t{32} << 10);
  }
};

TEST_F(ValuesPatchKillTest, ValuesOfOneCallAreThereTogether) {
  options_.segment_bytes = 64 << 10;
  options_.ring_bytes = 32 << 10;
  TableSpec spec;
  spec.name = "values";
  spec.steps_per_page = 4;
  spec.expected_steps = kSteps;
  spec.groups = {{.name = "late", .late = true}};
  spec.columns = {{.name = "row", .dtype = DType::kI64},
                  {.name = "late",
                   .dtype = DType::kU8,
                   .kind = ColumnKind::kRagged,
                   .group = "late",
                   .expected_rows = 30}};
  const char* points[] = {"patch_values", "patch", "write_batch", "copy_into_ring"};
  const auto programs = static_cast<int64_t>(testing::ShareOf(4));
  for (int64_t program = 0; program < programs; ++program) {
    SCOPED_TRACE("program " + std::to_string(program));
    shared_->rows.store(0);
    OpenEmpty();
    Create(spec);
    const std::vector<int64_t> rows(kSteps, 0);
    const ColumnValue row{"row", TensorView::Of(std::span<const int64_t>(rows))};
    ASSERT_OK(writer_->AppendSteps({&row, 1}, {.end = End::kTerminated}));
    writer_.reset();
    Close();
    for (int64_t life = 0; life < 30 && shared_->rows.load() < kPatches; ++life) {
      const testing::Death death = {points[(life + program) % 4],
                                    1 + (life * 7 + program * 3) % 13};
      const testing::ChildEnd end = testing::RunChild(death, [this] { return Patch(); });
      if (HasFailure()) return;
      kills_ += end == testing::ChildEnd::kAtPoint ? 1 : 0;
      Open();
      CheckPatched();
      testing::DropFrames(*database_);
      CheckPatched();
      if (HasFailure()) return;
      Close();
    }
  }
  EXPECT_GT(kills_, 5 * programs);
}

}  // namespace
}  // namespace geardb
