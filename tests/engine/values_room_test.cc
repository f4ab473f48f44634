// Ragged columns beyond memory: orphans that are resumed and late values that are patched find room
// for the pages that they go on in, by dropping those of others.
#include "tests/engine/values_fixture.h"

namespace geardb {
namespace {

using testing::Bytes;

constexpr size_t kTextBytes = 3000;
constexpr size_t kLogps = 200;
constexpr int kTrajectories = 300;

class ValuesRoomTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.budgets.frames_bytes = 8 << 20;
    Open();
    TableSpec spec;
    spec.name = "values";
    spec.steps_per_page = 4;
    spec.groups = {{.name = "late", .late = true}};
    spec.columns = {
        {.name = "row", .dtype = DType::kI64},
        {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged, .expected_rows = 3000},
        {.name = "logps", .kind = ColumnKind::kRagged, .group = "late", .expected_rows = 200}};
    ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  }
  static Bytes TextOf(size_t number, int64_t row) {
    return Bytes(kTextBytes, static_cast<uint8_t>(number * 7 + static_cast<size_t>(row)));
  }
  static std::vector<float> LogpsOf(size_t number, int64_t row) {
    return std::vector<float>(kLogps, static_cast<float>(number * 10 + static_cast<size_t>(row)));
  }
  TrajectoryId AddRow(size_t number, int64_t row, End end) {
    const Bytes text = TextOf(number, row);
    const std::vector<uint64_t> offsets = {0, text.size()};
    const std::vector<int64_t> rows = {row};
    const std::vector<ColumnValue> values = {
        {"row", TensorView::Of(std::span<const int64_t>(rows))},
        {"text", TensorView::Of(std::span<const uint8_t>(text)), offsets}};
    const auto appended = writer_->AppendSteps(values, {.end = end});
    EXPECT_OK(appended);
    return appended.ok() ? appended->id : 0;
  }
  void PatchRow(size_t number, TrajectoryId id, int64_t row) {
    const std::vector<float> logps = LogpsOf(number, row);
    const std::vector<uint64_t> offsets = {0, logps.size()};
    const std::vector<ColumnValue> values = {
        {"logps", TensorView::Of(std::span<const float>(logps)), offsets}};
    const std::vector<RowSpan> spans = {{.id = id, .first_row = row, .rows = 1}};
    const auto patched = table_->Patch(spans, values);
    ASSERT_OK(patched);
    EXPECT_EQ(patched->applied, 1u);
  }
  void ExpectRows(size_t number, TrajectoryId id, int64_t count) {
    const std::vector<std::string_view> names = {"text", "logps"};
    ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, names, {}));
    Bytes text;
    std::vector<float> logps;
    for (int64_t row = 0; row < count; ++row) {
      const Bytes more = TextOf(number, row);
      text.insert(text.end(), more.begin(), more.end());
      const std::vector<float> patched = LogpsOf(number, row);
      logps.insert(logps.end(), patched.begin(), patched.end());
    }
    const auto texts = read[0].view().values<uint8_t>();
    EXPECT_TRUE(std::equal(texts.begin(), texts.end(), text.begin(), text.end())) << id;
    const auto floats = read[1].view().values<float>();
    EXPECT_TRUE(std::equal(floats.begin(), floats.end(), logps.begin(), logps.end())) << id;
  }
};

// It was called a batch of no operations.
TEST_F(ValuesRoomTest, ACallThatNoRecordTakesIsCalledOne) {
  writer_.reset();
  options_.ring_bytes = 256 << 10;
  options_.budgets.frames_bytes = 64 << 20;
  OpenEmpty();
  TableSpec spec{.name = "values"};
  spec.steps_per_page = 1;
  spec.columns = {{.name = "row", .dtype = DType::kI64},
                  {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged}};
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  // A page each: without the text, they just fit.
  const std::vector<int64_t> rows(1350);
  const std::vector<uint64_t> offsets(rows.size() + 1);
  const std::vector<ColumnValue> values = {{"row", TensorView::Of(std::span<const int64_t>(rows))},
                                           {"text", TensorView(&rows, DType::kU8, {0}), offsets}};
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(values), "the call needs a log record of ");
}

TEST_F(ValuesRoomTest, PagesOfOthersMakeRoom) {
  std::vector<TrajectoryId> ids;
  for (size_t i = 0; i < kTrajectories; ++i) {
    ids.push_back(AddRow(i, 0, End::kGo));
    ASSERT_OK_AND_ASSIGN(const TrajectoryId left, writer_->Detach());
    ASSERT_EQ(left, ids.back());
  }
  for (int64_t row = 1; row < 6; ++row) {
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_OK(writer_->Resume(ids[i]));
      ASSERT_EQ(AddRow(i, row, row == 5 ? End::kTerminated : End::kGo), ids[i]);
      if (row < 5) {
        ASSERT_OK(writer_->Detach());
      }
    }
  }
  for (int64_t row = 0; row < 6; ++row) {
    for (size_t i = 0; i < ids.size(); i += 3) PatchRow(i, ids[i], row);
  }
  EXPECT_GT(database_->Stats().log_page_reads, 100u);
  for (size_t i = 0; i < ids.size(); i += 3) ExpectRows(i, ids[i], 6);
  Reopen();
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("values"));
  for (size_t i = 0; i < ids.size(); i += 3) ExpectRows(i, ids[i], 6);
}

}  // namespace
}  // namespace geardb
