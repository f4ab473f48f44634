// Any byte but 0 that is given for a bool is stored as 1, on every way into a table.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

using Bytes = std::vector<uint8_t>;

class WriterBoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    TableSpec spec{.name = "t", .final_row = true, .steps_per_page = 4};
    spec.columns = {
        {.name = "b", .dtype = DType::kBool, .shape = {3}, .in_final_row = true},
        {.name = "u", .dtype = DType::kU8},
        {.name = "set", .dtype = DType::kBool, .shape = {2}, .kind = ColumnKind::kPerTrajectory},
    };
    spec.priority_tables = {{.name = "per", .window = {.extent = {.after = 1}}}};
    ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  }
  void Open() {
    table_.reset();
    database_.reset();
    DatabaseOptions options;
    options.budgets.frames_bytes = 32 << 20;
    ASSERT_OK_AND_ASSIGN(database_, Database::Open(dir_.File("store"), options));
    if (database_->Tables().empty()) return;
    ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("t"));
  }
  static TensorView Bools(const Bytes& bytes, Shape shape) {
    return TensorView(bytes.data(), DType::kBool, shape);
  }
  Bytes Read(TrajectoryId id, std::string_view column) {
    const std::string_view columns[] = {column};
    const auto rows = table_->Read(id, columns, {});
    EXPECT_OK(rows);
    if (!rows.ok()) return {};
    Bytes bytes;
    for (const std::byte byte : (*rows)[0].bytes) bytes.push_back(static_cast<uint8_t>(byte));
    return bytes;
  }

  testing::TempDir dir_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
};

TEST_F(WriterBoolTest, RowsFinalRowsAndColumnsOfATrajectoryHoldOnlyZeroAndOne) {
  const Bytes rows = {0, 1, 7, 2, 0, 128, 255, 254, 0, 16, 0, 1, 0, 0, 3};
  const Bytes plain = {0, 1, 7, 255, 128};
  const Bytes last = {9, 0, 64};
  const Bytes set = {0, 200};
  const ColumnValue final{"b", Bools(last, {3})};
  const ColumnValue value{"set", Bools(set, {2})};
  ASSERT_OK_AND_ASSIGN(const auto writer, table_->NewWriter({}));
  ASSERT_OK_AND_ASSIGN(
      const Appended appended,
      writer->AppendTrajectory(
          {{"b", Bools(rows, {5, 3})}, {"u", TensorView(plain.data(), DType::kU8, {5})}},
          {.end = End::kTerminated, .final = {&final, 1}, .trajectory = {&value, 1}}));
  for (const char* when : {"as written", "reopened"}) {
    SCOPED_TRACE(when);
    EXPECT_EQ(Read(appended.id, "b"),
              (Bytes{0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1}));
    EXPECT_EQ(Read(appended.id, "set"), (Bytes{0, 1}));
    EXPECT_EQ(Read(appended.id, "u"), (Bytes{0, 1, 7, 255, 128, 0})) << "a u8 keeps its bytes";
    Open();
  }
}

TEST_F(WriterBoolTest, LanesAndSetColumnsToo) {
  const Bytes rows = {4, 0, 1, 0, 99, 0};
  const Bytes plain = {5, 6};
  const Bytes set = {17, 0};
  ASSERT_OK_AND_ASSIGN(const auto writer, table_->NewWriter({.lanes = 2}));
  const std::vector<ColumnValue> lanes = {{"b", Bools(rows, {2, 3})},
                                          {"u", TensorView(plain.data(), DType::kU8, {2})}};
  ASSERT_OK_AND_ASSIGN(const auto appended, writer->AppendLanes(lanes, {}));
  const ColumnValue value{"set", Bools(set, {2})};
  ASSERT_OK(table_->SetColumns(appended[1].id, {&value, 1}));
  EXPECT_EQ(Read(appended[0].id, "b"), (Bytes{1, 0, 1}));
  EXPECT_EQ(Read(appended[1].id, "b"), (Bytes{0, 1, 0}));
  EXPECT_EQ(Read(appended[1].id, "set"), (Bytes{1, 0}));
}

TEST_F(WriterBoolTest, BatchesShowThem) {
  const Bytes rows = {7, 7, 7, 8, 8, 8};
  const Bytes plain = {5, 6};
  ASSERT_OK_AND_ASSIGN(const auto writer, table_->NewWriter({}));
  ASSERT_OK(writer->AppendSteps(
      {{"b", Bools(rows, {2, 3})}, {"u", TensorView(plain.data(), DType::kU8, {2})}}));
  ASSERT_OK_AND_ASSIGN(const auto per, table_->OpenPriorityTable("per"));
  SamplerOptions options{.batch = 2};
  options.views = {{.column = "b"}, {.column = "b", .name = "f", .to_f32 = true}};
  ASSERT_OK_AND_ASSIGN(const auto sampler, per->NewSampler(options));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  const auto* bytes = static_cast<const uint8_t*>(batch["b"].bytes);
  EXPECT_EQ(Bytes(bytes, bytes + batch["b"].byte_count()), Bytes(6, 1));
  for (const float value : batch["f"].values<float>()) EXPECT_EQ(value, 1.0f);
}

}  // namespace
}  // namespace geardb
