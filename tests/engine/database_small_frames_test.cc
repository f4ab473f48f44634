// Many small tables and columns in a small budget of frames: what is accepted is appended to, and
// what cannot be is refused with the bytes that would do.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/page_view.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/named_number.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

constexpr uint64_t kSmallMiB = uint64_t{1} << 20;

std::string RaggedName(size_t k) { return "r" + std::to_string(k); }

std::vector<Column> RaggedColumns(size_t first, size_t end) {
  std::vector<Column> columns;
  for (size_t k = first; k < end; ++k) {
    columns.push_back(
        {.name = RaggedName(k), .dtype = DType::kU8, .shape = {256}, .kind = ColumnKind::kRagged});
  }
  return columns;
}

/// The byte of which all rows of a column of trajectory `number` are.
uint8_t SmallByte(int64_t number, size_t column) {
  return static_cast<uint8_t>(number * 31 + static_cast<int64_t>(column) * 7 + 1);
}

class DatabaseSmallFramesTest : public testing::StoreTest {
 protected:
  void OpenWith(uint64_t frames_bytes) {
    options_.budgets.frames_bytes = frames_bytes;
    OpenEmpty();
  }
  static TableSpec RaggedSpec(size_t columns) {
    TableSpec spec;
    spec.name = "ragged";
    spec.columns = RaggedColumns(0, columns);
    spec.columns.push_back({.name = "step", .dtype = DType::kI32});
    return spec;
  }
  /// A trajectory of four steps of two rows in each column, given in two calls.
  void AppendRagged(size_t columns, int64_t number) {
    static const std::vector<uint64_t> offsets = {0, 2, 4};
    std::vector<std::vector<uint8_t>> bytes;
    for (size_t k = 0; k < columns; ++k) bytes.emplace_back(4 * 256, SmallByte(number, k));
    const std::vector<int32_t> steps(2, static_cast<int32_t>(number));
    for (const End end : {End::kGo, End::kTerminated}) {
      std::vector<ColumnValue> values = {{"step", TensorView::Of<int32_t>(steps)}};
      for (size_t k = 0; k < columns; ++k) {
        values.push_back(
            {names_[k], TensorView(bytes[k].data(), DType::kU8, Shape({4, 256})), offsets});
      }
      const auto appended = writer_->AppendSteps(values, {.end = end});
      ASSERT_OK(appended) << number;
      if (end == End::kTerminated) numbers_.push_back({appended->id, number});
    }
  }
  /// Four times the budget, in frames: a value's page has 64 KiB.
  void FillRagged(size_t columns, int64_t first) {
    const uint64_t count = 4 * options_.budgets.frames_bytes / (columns << 16) + 1;
    for (uint64_t n = 0; n < count; ++n) {
      ASSERT_NO_FATAL_FAILURE(AppendRagged(columns, first + static_cast<int64_t>(n)));
    }
  }
  /// Of one in so many trajectories, all rows.
  void ExpectRagged(size_t columns) const {
    for (size_t i = 0; i < numbers_.size(); i += 1 + numbers_.size() / 200) {
      const auto& [id, number] = numbers_[i];
      ASSERT_OK_AND_ASSIGN(const auto values, table_->Read(id, {}, {}));
      for (size_t k = 0; k < columns; ++k) {
        const auto column = std::find_if(values.begin(), values.end(),
                                         [&](const auto& one) { return one.column == names_[k]; });
        ASSERT_NE(column, values.end()) << names_[k];
        ASSERT_EQ(column->bytes, std::vector<std::byte>(8 * 256, std::byte{SmallByte(number, k)}))
            << "trajectory " << id << ", column " << k;
      }
    }
  }
  static uint64_t NamedBytes(const Status& refused) {
    return testing::NumberBehind("use at least ", refused).value_or(0);
  }
  const std::vector<std::string> names_ = [] {
    std::vector<std::string> names;
    for (size_t k = 0; k < 64; ++k) names.push_back(RaggedName(k));
    return names;
  }();
  std::vector<std::pair<TrajectoryId, int64_t>> numbers_;
};

TEST_F(DatabaseSmallFramesTest, ManyColumnsOfValuesAreAppendedTo) {
  for (const auto& [columns, mib] : {std::pair<size_t, uint64_t>{32, 64}, {8, 16}, {32, 18}}) {
    SCOPED_TRACE(std::to_string(columns) + " columns in " + std::to_string(mib) + " MiB");
    OpenWith(mib * kSmallMiB);
    numbers_.clear();
    Create(RaggedSpec(columns));
    ASSERT_NO_FATAL_FAILURE(FillRagged(columns, 0));
    Reopen();
    OpenAgain("ragged");
    ExpectRagged(columns);
    ASSERT_NO_FATAL_FAILURE(AppendRagged(columns, 1'000'000));
  }
}

// Others have all frames when they come, in whole slabs.
TEST_F(DatabaseSmallFramesTest, ColumnsOfValuesThatComeLaterAreAppendedTo) {
  OpenWith(40 * kSmallMiB);
  Create(RaggedSpec(2));
  ASSERT_NO_FATAL_FAILURE(FillRagged(2, 0));
  EXPECT_TRUE(testing::CoreOf(*database_)->arena->SharedNow().empty());
  ASSERT_OK(table_->AddColumns(RaggedColumns(2, 24)));
  writer_.reset();
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  numbers_.clear();
  ASSERT_NO_FATAL_FAILURE(FillRagged(24, 500'000));
  Reopen();
  OpenAgain("ragged");
  ExpectRagged(24);
}

TEST_F(DatabaseSmallFramesTest, ManyTablesAreAppendedTo) {
  OpenWith(64 * kSmallMiB);
  struct One {
    std::shared_ptr<Table> table;
    std::unique_ptr<Writer> writer;
    std::map<TrajectoryId, uint8_t> bytes;
  };
  std::vector<One> tables(40);
  for (size_t k = 0; k < tables.size(); ++k) {
    TableSpec spec;
    spec.name = "table" + std::to_string(k);
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {4096}}};
    spec.steps_per_page = 4;
    ASSERT_OK_AND_ASSIGN(tables[k].table, database_->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(tables[k].writer, tables[k].table->NewWriter({}));
  }
  // In turns, so that all have a trajectory open; three times the budget.
  constexpr int64_t kRows = 33;
  for (uint8_t round = 0; round < 40; ++round) {
    for (const bool last : {false, true}) {
      for (size_t k = 0; k < tables.size(); ++k) {
        const int64_t rows = last ? kRows - 17 : 17;
        const std::vector<uint8_t> bytes(static_cast<size_t>(rows) * 4096, SmallByte(round, k));
        const auto appended = tables[k].writer->AppendSteps(
            {{"x", TensorView::Of<uint8_t>(bytes, Shape({rows, 4096}))}},
            {.end = last ? End::kTerminated : End::kGo});
        ASSERT_OK(appended) << "table " << k << ", round " << int{round};
        tables[k].bytes[appended->id] = SmallByte(round, k);
      }
    }
  }
  for (const One& one : tables) {
    for (const auto& [id, byte] : one.bytes) {
      ASSERT_OK_AND_ASSIGN(const auto rows, one.table->Read(id, {}, {}));
      ASSERT_EQ(rows[0].bytes, std::vector<std::byte>(kRows * 4096, std::byte{byte}));
    }
  }
}

// The bytes that a refusal names are enough, and fewer are not.
TEST_F(DatabaseSmallFramesTest, ARefusalNamesTheBytesThatDo) {
  constexpr size_t kColumns = 32;
  OpenWith(2 * kSmallMiB);
  const uint64_t enough = NamedBytes(database_->CreateTable(RaggedSpec(kColumns)).status());
  ASSERT_GT(enough, 2 * kSmallMiB);
  EXPECT_TRUE(database_->Tables().empty());
  OpenWith(enough - 1);
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(RaggedSpec(kColumns)),
                "table 'ragged': the frame budget of " + std::to_string(enough - kSlabBytes) +
                    " bytes (budgets.frames_bytes) is less");
  OpenWith(enough);
  Create(RaggedSpec(kColumns));
  ASSERT_NO_FATAL_FAILURE(FillRagged(kColumns, 0));
  ExpectRagged(kColumns);
  // An open for writing asks for as many; one that only reads shows what there is.
  Close();
  options_.budgets.frames_bytes = enough - kSlabBytes;
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->path(), options_),
                "use at least " + std::to_string(enough));
  options_.read_only = true;
  Open();
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("ragged"));
  ExpectRagged(kColumns);
}

TEST_F(DatabaseSmallFramesTest, ARefusalOfColumnsNamesTheBytesThatDo) {
  constexpr size_t kColumns = 32;
  OpenWith(16 * kSmallMiB);
  Create(RaggedSpec(1));
  ASSERT_NO_FATAL_FAILURE(AppendRagged(1, 0));
  const uint64_t enough = NamedBytes(table_->AddColumns(RaggedColumns(1, kColumns)));
  ASSERT_GT(enough, 16 * kSmallMiB);
  EXPECT_EQ(table_->spec().columns.size(), 2u);
  for (const bool fits : {false, true}) {
    options_.budgets.frames_bytes = fits ? enough : enough - kSlabBytes;
    Reopen();
    OpenAgain("ragged");
    EXPECT_EQ(table_->AddColumns(RaggedColumns(1, kColumns)).ok(), fits);
  }
  writer_.reset();
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  numbers_.clear();
  ASSERT_NO_FATAL_FAILURE(FillRagged(kColumns, 500'000));
  ExpectRagged(kColumns);
}

// Frames of more than a slab, where others have parts of all of them: what these can give up makes
// slabs free.
TEST_F(DatabaseSmallFramesTest, LargePagesFindSlabsAmongSharedOnes) {
  options_.ring_bytes = options_.segment_bytes = 16 * kSmallMiB;
  OpenWith(24 * kSmallMiB);
  std::vector<std::unique_ptr<Writer>> writers;
  for (int k = 0; k < 6; ++k) {
    TableSpec spec;
    spec.name = "small" + std::to_string(k);
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {64 << 10}}};
    spec.steps_per_page = 1;
    ASSERT_OK_AND_ASSIGN(const auto table, database_->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(auto writer, table->NewWriter({}));
    writers.push_back(std::move(writer));
  }
  TableSpec spec;
  spec.name = "large";
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {3 << 20}}};
  spec.steps_per_page = 1;
  Create(spec);
  const std::vector<uint8_t> small(64 << 10, 1);
  const auto fill = [&] {
    for (int i = 0; i < 600; ++i) {
      ASSERT_OK(writers[static_cast<size_t>(i) % 6]->Append(
          {{"x", TensorView::Of<uint8_t>(small)}},
          {.end = i % 50 < 6 ? End::kGo : End::kTerminated}));
    }
  };
  ASSERT_NO_FATAL_FAILURE(fill());
  EXPECT_EQ(testing::CoreOf(*database_)->arena->SharedNow().size(), 12u);
  const std::vector<uint8_t> large(3 << 20, 2);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(writer_->Append({{"x", TensorView::Of<uint8_t>(large)}},
                              {.end = i % 2 == 0 ? End::kGo : End::kTerminated}))
        << i;
  }
  ASSERT_NO_FATAL_FAILURE(fill());
}

// Two tables of large pages: each alone has room.
TEST_F(DatabaseSmallFramesTest, TablesAreCountedTogether) {
  options_.ring_bytes = options_.segment_bytes = 32 * kSmallMiB;
  OpenWith(24 * kSmallMiB);
  TableSpec spec;
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {5 << 20}}};
  spec.steps_per_page = 1;
  spec.name = "one";
  Create(spec);
  spec.name = "two";
  ASSERT_OK_AND_ASSIGN(const auto two, database_->CreateTable(spec));
  spec.name = "three";
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "use at least 37748736");
  // Open trajectories, whose last pages stay.
  ASSERT_OK_AND_ASSIGN(const auto other, two->NewWriter({}));
  std::vector<uint8_t> row(5 << 20);
  for (uint8_t i = 0; i < 8; ++i) {
    std::fill(row.begin(), row.end(), i);
    for (Writer* writer : {writer_.get(), other.get()}) {
      ASSERT_OK(writer->Append({{"x", TensorView::Of<uint8_t>(row)}})) << int{i};
    }
  }
  const auto there = table_->Scan({});
  ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(there[0].id, {}, {.begin = 3, .end = 4}));
  EXPECT_EQ(rows[0].bytes, std::vector<std::byte>(5 << 20, std::byte{3}));
}

}  // namespace
}  // namespace geardb
