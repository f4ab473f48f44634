// What a companion keeps follows its owner: trims by the LSNs of pages, live and from the log and
// an image alike.
#include <gtest/gtest.h>

#include "tests/engine/values_fixture.h"

namespace geardb {
namespace {

using testing::Bytes;
using testing::ModelStep;
using testing::ValueRowsOf;
using testing::ValuesSpec;

class TableCompanionsTest : public testing::StoreTest {
 protected:
  /// Steps with text of 8 rows each, `each` of them in a call.
  void AppendSteps(int64_t count, int64_t each) {
    for (int64_t done = 0; done < count; done += each) {
      std::vector<ModelStep> steps(static_cast<size_t>(each), {.text = Bytes(8, 7)});
      const ValueRowsOf rows(steps, next_row_, false);
      ASSERT_OK_AND_ASSIGN(const Appended appended, writer_->AppendSteps(rows.values()));
      id_ = appended.id;
      next_row_ += each;
    }
  }
  std::shared_ptr<engine::TableCore> Core() const {
    return testing::CoreOf(*database_)->FindTable("values");
  }
  /// Of the companion of "text": pages, first row, rows.
  struct Held {
    uint64_t pages = 0, first_row = 0, rows_end = 0;
    friend bool operator==(const Held&, const Held&) = default;
  };
  Held TextHeld() const {
    const auto core = Core();
    const engine::TableState& text = *core->companions[0]->state;
    MutexLock lock(&core->state->mutex);
    Held held{.pages = text.page_count()};
    text.trajectories().ForEach([&](Slot, const index::TrajectoryRecord& record) {
      held.first_row = record.first_row;
      held.rows_end = record.rows_end;
    });
    return held;
  }
  void ExpectPlanAgrees() const {
    const auto core = Core();
    MutexLock lock(&core->state->mutex);
    EXPECT_EQ(core->plan->companion_bytes(), core->state->companion_frame_bytes());
  }

  TrajectoryId id_ = 0;
  int64_t next_row_ = 0;
};

// Pages of "text" have 64 rows, of the table 4 steps: 8 steps fill a page.
TEST_F(TableCompanionsTest, ATrimFreesThePagesOfEarlierSteps) {
  Create(ValuesSpec(false));
  AppendSteps(64, 1);
  EXPECT_EQ(TextHeld(), (Held{8, 0, 512}));
  // Row 35 is in the page that begins with step 32: what was written before that goes.
  ASSERT_OK(table_->Truncate(id_, 35));
  EXPECT_EQ(TextHeld(), (Held{4, 256, 512}));
  ExpectPlanAgrees();
  ASSERT_OK(table_->Truncate(id_, 63));
  EXPECT_EQ(TextHeld(), (Held{1, 448, 512}));
  ExpectPlanAgrees();
  AppendSteps(8, 1);
  EXPECT_EQ(TextHeld(), (Held{2, 448, 576}));
}

TEST_F(TableCompanionsTest, WhatOneCallWroteStaysTogether) {
  Create(ValuesSpec(false));
  AppendSteps(64, 64);
  ASSERT_OK(table_->Truncate(id_, 63));
  EXPECT_EQ(TextHeld(), (Held{8, 0, 512}));
  AppendSteps(8, 8);
  ASSERT_OK(table_->Truncate(id_, 71));
  EXPECT_EQ(TextHeld(), (Held{1, 512, 576}));
  ExpectPlanAgrees();
}

TEST_F(TableCompanionsTest, TheLogSaysTheSame) {
  Create(ValuesSpec(false));
  AppendSteps(64, 1);
  ASSERT_OK(table_->Truncate(id_, 35));
  const Held held = TextHeld();
  const uint64_t bytes = table_->Stats().frame_bytes;
  writer_.reset();
  Reopen();
  OpenAgain("values");
  EXPECT_EQ(TextHeld(), held);
  EXPECT_EQ(table_->Stats().frame_bytes, bytes);
  ExpectPlanAgrees();
}

// The table and its companions come back from an image of the index and the cold store.
TEST_F(TableCompanionsTest, AnImageSaysTheSame) {
  options_.log_bytes_max = 3 << 20;
  OpenEmpty();
  TableSpec spec = ValuesSpec(false);
  spec.columns[5].expected_rows = 1 << 20;
  Create(spec);
  AppendSteps(60, 3);
  ASSERT_OK(table_->Truncate(id_, 35));
  const std::vector<uint8_t> prompt(5000, 9);
  ASSERT_OK(table_->SetColumns(
      id_, std::vector<ColumnValue>{{"prompt", TensorView::Of(std::span<const uint8_t>(prompt))}}));
  const TrajectoryId kept = id_;
  const Held held = TextHeld();
  ASSERT_OK(writer_->Detach(0));
  // As much else as makes the cleaner pass.
  const std::vector<uint8_t> big(300 << 10, 1);
  for (int i = 0; i < 40; ++i) {
    const ValueRowsOf rows({ModelStep()}, 0, true);
    const std::vector<ColumnValue> blob = {
        {"prompt", TensorView::Of(std::span<const uint8_t>(big))}};
    ASSERT_OK_AND_ASSIGN(
        const Appended appended,
        writer_->Append(rows.values(), {.end = End::kTerminated, .trajectory = blob}));
    ASSERT_OK(table_->Remove(std::vector<TrajectoryId>{appended.id}));
  }
  EXPECT_EQ(TextHeld(), held);
  writer_.reset();
  Reopen();
  OpenAgain("values");
  ASSERT_GT(database_->recovery().image, 0u);
  EXPECT_EQ(TextHeld(), held);
  ExpectPlanAgrees();
  const std::vector<std::string_view> columns = {"text", "prompt"};
  ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(kept, columns, {}));
  EXPECT_EQ(rows[0].shape, Shape({8 * 25}));
  EXPECT_EQ(rows[0].offsets.back(), 8 * 25);
  const auto read = rows[1].view().values<uint8_t>();
  EXPECT_EQ(std::vector<uint8_t>(read.begin(), read.end()), prompt);
  ASSERT_OK(writer_->Resume(kept));
  AppendSteps(4, 1);
  EXPECT_EQ(TextHeld().rows_end, held.rows_end + 32);
}

TEST_F(TableCompanionsTest, NobodySeesThem) {
  Create(ValuesSpec(false));
  EXPECT_EQ(database_->Tables(), std::vector<std::string>{"values"});
  EXPECT_STATUS(kNotFound, database_->OpenTable("values', column 'text"), "it has values");
  TableSpec other = ValuesSpec(false);
  other.name = "other";
  ASSERT_OK(database_->CreateTable(other));
  const size_t tables = testing::CoreOf(*database_)->AllTables().size();
  EXPECT_EQ(tables, 2 * 6u);
  writer_.reset();
  table_.reset();
  ASSERT_OK(database_->DropTable("values"));
  EXPECT_EQ(testing::CoreOf(*database_)->AllTables().size(), 6u);
  Reopen();
  EXPECT_EQ(database_->Tables(), std::vector<std::string>{"other"});
  EXPECT_EQ(testing::CoreOf(*database_)->AllTables().size(), 6u);
  ASSERT_OK(database_->CreateTable(ValuesSpec(false)));
  ASSERT_OK(database_->OpenOrCreateTable(ValuesSpec(false)));
}

TEST_F(TableCompanionsTest, TheyComeAndLeaveWithTheirColumns) {
  Create(ValuesSpec(false));
  const std::string_view text = "text";
  AppendSteps(8, 1);
  ASSERT_OK(table_->DropColumns({&text, 1}));
  EXPECT_EQ(testing::CoreOf(*database_)->AllTables().size(), 5u);
  EXPECT_EQ(Core()->companions[0], nullptr);
  EXPECT_EQ(Core()->former_companions[0]->state->page_count(), 0u);
  ExpectPlanAgrees();
  const Column column[] = {{.name = "more", .dtype = DType::kU8, .kind = ColumnKind::kRagged}};
  ASSERT_OK(table_->AddColumns(column));
  // Its number is the next one, not one that is free again.
  ASSERT_EQ(Core()->companions.size(), 6u);
  EXPECT_EQ(Core()->companions[5]->layout().id(), 7u);
  AppendSteps(1, 1);
  writer_.reset();
  Reopen();
  OpenAgain("values");
  ASSERT_EQ(Core()->companions.size(), 6u);
  EXPECT_EQ(Core()->companions[0], nullptr);
  EXPECT_EQ(Core()->companions[5]->layout().id(), 7u);
  EXPECT_EQ(table_->Read(id_, std::vector<std::string_view>{"more"}, {})->at(0).shape, Shape({0}));
  ExpectPlanAgrees();
}

}  // namespace
}  // namespace geardb
