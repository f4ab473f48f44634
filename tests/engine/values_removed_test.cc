// A trajectory leaves, or a column, while rows are on their way to its values: they go nowhere,
// least of all into the frame that its last page had, which may be another's by then.
//
// concurrent: engine/internal/write_companions.cc
#include <functional>
#include <map>
#include <thread>

#include "base/crash_point.h"
#include "tests/engine/values_fixture.h"

namespace geardb {
namespace {

using testing::Bytes;

/// So many that a page is full that takes the frame of one which was not.
constexpr int64_t kRowsOfOthers = 40;
constexpr int64_t kOthers = 40;

/// Done at the call's n-th "take_frames", once.
std::function<void()> g_meanwhile;
int g_calls_left = 0;

class ValuesRemovedTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    Create(testing::TextSpec());
    ASSERT_OK_AND_ASSIGN(others_, table_->NewWriter({}));
  }
  void TearDown() override {
    SetCrashHook(nullptr);
    g_meanwhile = nullptr;
    others_.reset();
    StoreTest::TearDown();
  }
  void Meanwhile(int nth, std::function<void()> what) {
    g_meanwhile = std::move(what);
    g_calls_left = nth;
    SetCrashHook([](const char* name) {
      if (std::string_view(name) != "take_frames" || --g_calls_left != 0) return;
      g_meanwhile();
    });
  }
  static Bytes TextOf(int64_t number, int64_t row) {
    Bytes text(static_cast<size_t>(20 + (number + row) % 17));
    for (size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<uint8_t>(number * 31 + row * 7 + static_cast<int64_t>(i));
    }
    return text;
  }
  Result<Appended> Append(Writer* writer, int64_t number, int64_t first, int64_t count, End end) {
    std::vector<int64_t> rows;
    Bytes text;
    std::vector<uint64_t> offsets = {0};
    for (int64_t row = first; row < first + count; ++row) {
      rows.push_back(row);
      const Bytes one = TextOf(number, row);
      text.insert(text.end(), one.begin(), one.end());
      offsets.push_back(text.size());
    }
    const std::vector<ColumnValue> values = {
        {"row", TensorView::Of(std::span<const int64_t>(rows))},
        {"text", TensorView::Of(std::span<const uint8_t>(text)), offsets}};
    return writer->AppendSteps(values, {.end = end});
  }
  void AddOthers(int64_t first, int64_t end) {
    for (int64_t number = first; number < end; ++number) {
      ASSERT_OK_AND_ASSIGN(const Appended added,
                           Append(others_.get(), number, 0, kRowsOfOthers, End::kTerminated));
      numbers_[added.id] = number;
    }
  }
  /// It leaves with so many others that their frames are taken again, all of them by other pages.
  void Replace(TrajectoryId id) {
    std::vector<TrajectoryId> gone = {id};
    for (const auto& [other, number] : numbers_) gone.push_back(other);
    ASSERT_OK(table_->Remove(gone));
    numbers_.clear();
    AddOthers(1000, 1000 + 2 * kOthers);
  }
  void ExpectOthers() const {
    ASSERT_EQ(numbers_.size(), static_cast<size_t>(2 * kOthers));
    for (const auto& [id, number] : numbers_) {
      const std::string_view column = "text";
      ASSERT_OK_AND_ASSIGN(const auto read, table_->Read(id, {&column, 1}, {}));
      const auto text = read[0].view().values<uint8_t>();
      Bytes expected;
      for (int64_t row = 0; row < kRowsOfOthers; ++row) {
        const Bytes one = TextOf(number, row);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      EXPECT_EQ(Bytes(text.begin(), text.end()), expected) << "trajectory " << id;
    }
  }

  static constexpr RowSpan kAll{.id = 0, .first_row = 0, .rows = 3};
  /// Values of so many bytes in all, for a trajectory of three steps.
  Result<PatchOutcome> PatchAll(TrajectoryId id, size_t bytes) {
    const Bytes text(bytes, 7);
    const std::vector<uint64_t> offsets = {0, bytes / 2, bytes, bytes};
    const std::vector<ColumnValue> values = {
        {"text", TensorView::Of(std::span<const uint8_t>(text)), offsets}};
    RowSpan span = kAll;
    span.id = id;
    return table_->Patch({&span, 1}, values);
  }

  std::unique_ptr<Writer> others_;
  std::map<TrajectoryId, int64_t> numbers_;
};

TEST_F(ValuesRemovedTest, WhileTheyArePatched) {
  ASSERT_OK_AND_ASSIGN(const Appended patched, Append(writer_.get(), 0, 0, 12, End::kTerminated));
  const Bytes text(200, 0xEE);
  const std::vector<uint64_t> offsets = {0, 200};
  const std::vector<ColumnValue> values = {
      {"text", TensorView::Of(std::span<const uint8_t>(text)), offsets}};
  const RowSpan span{.id = patched.id, .first_row = 3, .rows = 1};
  AddOthers(0, kOthers);
  Meanwhile(1, [&] { Replace(patched.id); });
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome, table_->Patch({&span, 1}, values));
  EXPECT_EQ(outcome.applied, 0u);
  EXPECT_EQ(outcome.stale, 1u);
  ExpectOthers();
}

// The second time frames are taken for what goes into the companion.
TEST_F(ValuesRemovedTest, WhileTheyAreAppended) {
  ASSERT_OK_AND_ASSIGN(const Appended open, Append(writer_.get(), 0, 0, 12, End::kGo));
  AddOthers(0, kOthers);
  Meanwhile(2, [&] { Replace(open.id); });
  EXPECT_STATUS(kNotFound, Append(writer_.get(), 0, 12, 3, End::kGo), "was removed");
  ExpectOthers();
  // The next one begins another.
  ASSERT_OK_AND_ASSIGN(const Appended next, Append(writer_.get(), 0, 0, 3, End::kGo));
  EXPECT_NE(next.id, open.id);
}

// A slot that is free has the generation of the trajectory that has left it: an open refused the
// log, where the values had got into it.
TEST_F(ValuesRemovedTest, WhileTheyGetTheirFirstValues) {
  const std::vector<int64_t> rows = {1, 2, 3};
  const std::vector<uint64_t> offsets = {0, 0, 0, 0};
  const std::vector<ColumnValue> values = {{"row", TensorView::Of(std::span<const int64_t>(rows))},
                                           {"text", TensorView(nullptr, DType::kU8, {0}), offsets}};
  ASSERT_OK_AND_ASSIGN(const Appended empty,
                       writer_->AppendSteps(values, {.end = End::kTerminated}));
  Meanwhile(1, [&] { ASSERT_OK(table_->Remove({&empty.id, 1})); });
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome, PatchAll(empty.id, 300));
  EXPECT_EQ(outcome.applied, 0u);
  EXPECT_EQ(outcome.stale, 3u);
  ASSERT_OK(Append(writer_.get(), 1, 0, 3, End::kTerminated));  // In the slot that it had.
  writer_.reset();
  others_.reset();
  Reopen();
  OpenAgain("values");
  EXPECT_EQ(table_->Count(), 1u);
}

TEST_F(ValuesRemovedTest, WhileTheirColumnIsDropped) {
  ASSERT_OK(Append(writer_.get(), 0, 0, 11, End::kGo));
  ASSERT_OK_AND_ASSIGN(
      const auto other,
      database_->CreateTable({.name = "other",
                              .columns = {{.name = "x", .dtype = DType::kU8, .shape = {256}}},
                              .steps_per_page = 4}));
  ASSERT_OK_AND_ASSIGN(const auto writer, other->NewWriter({}));
  const Bytes x(size_t{256} * 64, 0x11);
  const std::vector<ColumnValue> values = {{"x", TensorView(x.data(), DType::kU8, {64, 256})}};
  // Another table takes the frames.
  Meanwhile(2, [&] {
    const std::string_view name = "text";
    ASSERT_OK(table_->DropColumns({&name, 1}));
    for (int i = 0; i < 300; ++i) ASSERT_OK(writer->AppendSteps(values, {.end = End::kTruncated}));
  });
  ASSERT_OK(Append(writer_.get(), 0, 11, 3, End::kGo));
  for (TrajectoryId id = 1; id <= 300; ++id) {
    const std::string_view column = "x";
    ASSERT_OK_AND_ASSIGN(const auto read, other->Read(id, {&column, 1}, {}));
    const auto bytes = read[0].view().values<uint8_t>();
    ASSERT_EQ(Bytes(bytes.begin(), bytes.end()), x) << "trajectory " << id;
  }
}

using ValuesRemovedConcurrentTest = ValuesRemovedTest;

// What is evicted was counted without the values that its record had on their way; their pages were
// never taken again, and an open refused the next.
TEST_F(ValuesRemovedConcurrentTest, EvictedWhileTheirValuesAreWritten) {
  TableSpec spec = table_->spec();
  spec.name = "few";
  spec.groups = {{.name = "late", .late = true}};
  spec.columns[1].group = "late";
  spec.trajectories_max = 4;
  ASSERT_OK_AND_ASSIGN(table_, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  const std::vector<int64_t> rows = {1, 2, 3};
  const std::vector<ColumnValue> values = {{"row", TensorView::Of(std::span<const int64_t>(rows))}};
  std::vector<TrajectoryId> ids;
  const auto add = [&] {
    const auto appended = writer_->AppendSteps(values, {.end = End::kTerminated});
    ASSERT_OK(appended);
    ids.push_back(appended->id);
  };
  for (size_t round = 0; round < 30; ++round) {
    while (ids.size() < round + 4) {
      add();
      ASSERT_OK(PatchAll(ids.back(), 1000));
    }
    const TrajectoryId patched = ids[round];  // The thread adds others.
    std::thread evicts([&] {
      for (size_t i = 0; i < round; ++i) std::this_thread::yield();
      add();
    });
    EXPECT_OK(PatchAll(patched, 2 << 20));
    evicts.join();
    ASSERT_OK(PatchAll(ids.back(), 1000));
  }
  writer_.reset();
  others_.reset();
  Reopen();
  OpenAgain("few");
  EXPECT_EQ(table_->Count(), 4u);
}

}  // namespace
}  // namespace geardb
