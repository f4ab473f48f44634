#include "engine/internal/table_history.h"

#include <gtest/gtest.h>

#include "engine/internal/stored_schema.h"
#include "engine/internal/table_layout.h"
#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

TableSpec Spec() {
  TableSpec spec;
  spec.name = "t";
  spec.columns = {{.name = "obs", .shape = {3}},
                  {.name = "late", .group = "late"},
                  {.name = "score", .kind = ColumnKind::kPerTrajectory}};
  spec.groups = {{.name = "late", .late = true}};
  spec.steps_per_page = 4;
  return spec;
}

Result<TableHistory> Added(const TableHistory& before, std::vector<Column> columns,
                           std::vector<ColumnGroup> groups = {}) {
  return WithColumns(before, columns, groups);
}
Result<TableHistory> Dropped(const TableHistory& before, std::vector<std::string_view> names) {
  return WithoutColumns(before, names);
}

TableHistory Changed() {
  TableHistory history(Spec());
  history = *Added(history,
                   {{.name = "a", .dtype = DType::kU8, .shape = {2}, .group = "more"},
                    {.name = "b", .group = "more", .default_value = 2},
                    {.name = "tail", .group = "tail"},
                    {.name = "tag", .dtype = DType::kU16, .kind = ColumnKind::kPerTrajectory}},
                   {{.name = "more"}, {.name = "tail", .late = true}});
  history = *Dropped(history, {"a", "tail", "score"});
  history = *Added(history, {{.name = "a", .default_value = 1}, {.name = "score"}});
  return *Dropped(history, {"b"});
}

TEST(TableHistoryTest, EveryVersionIsTheTableOfItsTime) {
  const TableHistory history = Changed();
  ASSERT_EQ(history.version, 4u);
  EXPECT_EQ(history.SpecAt(0), Spec());
  const auto names = [&](uint32_t version) {
    std::string all;
    for (const Column& column : history.SpecAt(version).columns) all += column.name + " ";
    for (const ColumnGroup& group : history.SpecAt(version).groups) all += "[" + group.name + "]";
    return all;
  };
  EXPECT_EQ(names(1), "obs late score a b tail tag [late][more][tail]");
  EXPECT_EQ(names(2), "obs late b tag [late][more]");
  EXPECT_EQ(names(3), "obs late b tag a score [late][more][a][score]");
  EXPECT_EQ(names(4), "obs late tag a score [late][a][score]");
  for (uint32_t version = 0; version <= 4; ++version) {
    EXPECT_OK(ValidateTableSpec(history.SpecAt(version)));
  }
  EXPECT_OK(ValidateHistory(history));
}

TEST(TableHistoryTest, NumbersAndPlacesOfALayoutStay) {
  const TableHistory history = Changed();
  const TableLayout last(history, 4, 1);
  for (uint32_t version = 0; version <= 4; ++version) {
    const TableLayout layout(history, version, 1);
    EXPECT_EQ(layout.spec(), history.SpecAt(version));
    for (size_t c = 0; c < layout.step_columns().size(); ++c) {
      EXPECT_EQ(layout.step_columns()[c].group, last.step_columns()[c].group);
      EXPECT_EQ(layout.RowOffset(c, 3), last.RowOffset(c, 3));
    }
    for (size_t c = 0; c < layout.trajectory_columns().size(); ++c) {
      EXPECT_EQ(layout.trajectory_columns()[c].place, last.trajectory_columns()[c].place);
    }
    for (size_t g = 0; g < layout.group_count(); ++g) {
      EXPECT_EQ(layout.group(g).filled_place, last.group(g).filled_place);
      EXPECT_EQ(layout.group(g).pages.frame_bytes(), last.group(g).pages.frame_bytes());
    }
    for (size_t place = 0; place < layout.place_bytes().size(); ++place) {
      EXPECT_EQ(layout.place_bytes()[place], last.place_bytes()[place]);
    }
  }
  // A name is found as the column that has it now.
  EXPECT_EQ(TableLayout(history, 1, 1).FindStepColumn("a"), 2u);
  EXPECT_EQ(TableLayout(history, 2, 1).FindStepColumn("a"), std::nullopt);
  EXPECT_EQ(last.FindStepColumn("a"), 5u);
  EXPECT_EQ(last.FindTrajectoryColumn("score"), std::nullopt);
  EXPECT_EQ(last.FindStepColumn("score"), 6u);
  EXPECT_EQ(last.FindGroup("more"), std::nullopt);
  EXPECT_EQ(last.FindGroup("a"), 4u);
  const uint32_t dropped[] = {2, 3};
  EXPECT_TRUE(std::ranges::equal(last.dropped_groups(), dropped));
  const uint32_t appended[] = {0, 4, 5};
  EXPECT_TRUE(std::ranges::equal(last.appended_groups(), appended));
  EXPECT_EQ(last.bytes_per_step(), 12u + 4u + 4u + 4u);
}

TEST(TableHistoryTest, WhatIsStoredIsTakenUp) {
  const TableHistory history = Changed();
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(EncodeTableHistory(&builder, history));
  const auto* stored = flatbuffers::GetRoot<fb::TableSpec>(builder.GetBufferPointer());
  ASSERT_OK_AND_ASSIGN(const TableHistory read, DecodeTableHistory(stored));
  EXPECT_EQ(read.version, history.version);
  for (uint32_t version = 0; version <= 4; ++version) {
    EXPECT_EQ(read.SpecAt(version), history.SpecAt(version)) << version;
  }
  EXPECT_OK(ValidateHistory(read));
  EXPECT_STATUS(kCorruption, DecodeTableSpec(stored), "is created with changes");
}

TEST(TableHistoryTest, AChangeThatIsStoredIsMadeAgain) {
  TableHistory before(Spec());
  for (int change = 0; change < 2; ++change) {
    ASSERT_OK_AND_ASSIGN(
        const TableHistory after,
        Added(before,
              {{.name = "own" + std::to_string(change)},
               {.name = "x" + std::to_string(change), .kind = ColumnKind::kPerTrajectory},
               {.name = "y" + std::to_string(change), .group = "g" + std::to_string(change)}},
              {{.name = "g" + std::to_string(change), .is_volatile = true}}));
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(EncodeAddColumns(&builder, after));
    ASSERT_OK_AND_ASSIGN(
        const TableHistory read,
        DecodeAddColumns(*flatbuffers::GetRoot<fb::AddColumns>(builder.GetBufferPointer()),
                         before));
    EXPECT_EQ(read.spec(), after.spec());
    EXPECT_EQ(read.version, after.version);
    EXPECT_EQ(read.groups.size(), after.groups.size());
    // Over another table the numbers of its groups are none that come.
    if (change == 1) {
      EXPECT_STATUS(
          kCorruption,
          DecodeAddColumns(*flatbuffers::GetRoot<fb::AddColumns>(builder.GetBufferPointer()),
                           TableHistory(Spec())),
          "which does not come with it");
    }
    before = after;
  }
}

TEST(TableHistoryTest, WrongColumnsAreRefusedByName) {
  const TableHistory history(Spec());
  EXPECT_STATUS(kInvalidArgument, Added(history, {}), "no columns are to be added");
  EXPECT_STATUS(kInvalidArgument, Added(history, {{.name = "obs"}}), "two columns named 'obs'");
  EXPECT_STATUS(kInvalidArgument, Added(history, {{.name = "x", .group = "late"}}),
                "cannot be added to group 'late', which is there");
  EXPECT_STATUS(kInvalidArgument, Added(history, {{.name = "x", .group = "none"}}),
                "names group 'none', which is not added to table 't' with it");
  EXPECT_STATUS(kInvalidArgument, Added(history, {{.name = "x"}}, {{.name = "g"}}),
                "no column is in group 'g'");
  EXPECT_STATUS(kInvalidArgument, Added(history, {{.name = "late2", .in_final_row = true}}),
                "has no final_row");
  EXPECT_STATUS(kInvalidArgument, Dropped(history, {}), "no columns are to be dropped");
  EXPECT_STATUS(kNotFound, Dropped(history, {"x"}), "has no column 'x'; it has obs, late, score");
  EXPECT_STATUS(kInvalidArgument, Dropped(history, {"score", "score"}), "is dropped twice");
  EXPECT_STATUS(kInvalidArgument, Dropped(history, {"obs"}), "no per-step column");
}

TEST(TableHistoryTest, CompanionsOfColumnsThatComeAreNumbered) {
  auto after = Added(TableHistory(Spec()),
                     {{.name = "wide", .shape = {17}, .kind = ColumnKind::kPerTrajectory},
                      {.name = "narrow", .kind = ColumnKind::kPerTrajectory},
                      {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged}});
  ASSERT_OK(after);
  EXPECT_STATUS(kInvalidArgument, ValidateHistory(*after), "'wide' has its values in table 0");
  EXPECT_EQ(NumberCompanions(&*after, 9), 11u);
  ASSERT_OK(ValidateHistory(*after));
  const TableLayout layout(*after, 1, 3);
  ASSERT_EQ(layout.companions().size(), 2u);
  EXPECT_EQ(layout.companions()[0].id, 9u);
  EXPECT_EQ(layout.companions()[1].id, 10u);
  auto dropped = Dropped(*after, {"wide"});
  ASSERT_OK(dropped);
  EXPECT_EQ(NumberCompanions(&*dropped, 20), 20u);
  const TableLayout left(*dropped, 2, 3);
  EXPECT_TRUE(left.companions()[0].dropped);
  EXPECT_FALSE(left.companions()[1].dropped);
  after->columns.back().companion = 0;
  EXPECT_STATUS(kInvalidArgument, ValidateHistory(*after), "'text' has its values in table 0");
}

TEST(TableHistoryTest, NumbersEnd) {
  TableHistory history(Spec());
  for (;;) {
    const auto next = Added(history, {{.name = "x"}});
    if (!next.ok()) {
      EXPECT_STATUS(kInvalidArgument, next, "column groups, dropped ones included; at most 256");
      break;
    }
    history = *Dropped(*next, {"x"});
  }
  EXPECT_EQ(history.groups.size(), kColumnGroupNumbersMax - 1);
  EXPECT_OK(ValidateHistory(history));
  while (history.columns.size() < kColumnNumbersMax) {
    std::vector<Column> many;
    std::vector<std::string_view> names;
    for (size_t i = 0; i < 64 && history.columns.size() + many.size() < kColumnNumbersMax; ++i) {
      many.push_back({.name = "y" + std::to_string(i), .kind = ColumnKind::kPerTrajectory});
    }
    for (const Column& column : many) names.push_back(column.name);
    history = *Dropped(*Added(history, many), names);
  }
  EXPECT_STATUS(kInvalidArgument,
                Added(history, {{.name = "y", .kind = ColumnKind::kPerTrajectory}}),
                "columns, dropped ones included; at most 1024");
  EXPECT_OK(ValidateHistory(history));
}

TEST(TableHistoryTest, AHistoryThatNoChangesMakeIsNone) {
  const auto refused = [](const auto& change, std::string_view why) {
    TableHistory history = Changed();
    change(&history);
    EXPECT_STATUS(kInvalidArgument, ValidateHistory(history), why);
  };
  refused([](TableHistory* h) { h->version = 5; }, "5 changes of its columns");
  refused([](TableHistory* h) { h->version = 3; }, "comes with change 1 and leaves with 4 of 3");
  refused([](TableHistory* h) { h->version = 5000; }, "5000 changes");
  refused([](TableHistory* h) { h->columns[0].added = 2; }, "comes into group 0");
  refused([](TableHistory* h) { h->columns[3].dropped = 1; }, "leaves with 1");
  refused([](TableHistory* h) { h->columns[3].group = 1; }, "does not come with its group");
  refused([](TableHistory* h) { h->columns[3].group = 9; }, "does not come with its group");
  refused([](TableHistory* h) { h->columns[3].group = 0; }, "into group 0");
  refused([](TableHistory* h) { h->columns[6].group = 2; }, "into group 2");
  refused([](TableHistory* h) { h->groups[1].added = 0; }, "group");
  refused([](TableHistory* h) { h->columns[7].column.name = "obs"; }, "two columns named 'obs'");
  refused([](TableHistory* h) { h->columns[0].dropped = 4; }, "no per-step column");
}

}  // namespace
}  // namespace geardb::engine
